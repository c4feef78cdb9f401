-- answered
SELECT COUNT(*) AS n FROM people

-- answered
SELECT count(1) FROM people

-- answered
SELECT COUNT(person_id) FROM people

-- answered
SELECT COUNT(DISTINCT person_id) AS persons FROM people

-- answered
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY sex

-- answered
SELECT sex, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY 2 DESC

-- answered
SELECT sex, education, COUNT(*) AS n FROM people GROUP BY ALL ORDER BY ALL

-- answered
FROM people SELECT sex, COUNT(*) GROUP BY sex

-- answered
SELECT education, AVG(income) AS mean_income, STDDEV(income) AS spread, COUNT(income) AS n FROM people GROUP BY education

-- answered
SELECT AVG(income), STDDEV_SAMP(income) / SQRT(COUNT(income)) AS standard_error FROM people

-- answered
SELECT SUM(income) / COUNT(*) AS income_per_head, SUM(income) / COUNT(income) AS income_per_answer FROM people

-- answered
SELECT MEDIAN(age) AS median_age FROM people

-- answered
SELECT sex, MEDIAN(age) FROM people GROUP BY sex

-- other: a list is one column for each of its elements
SELECT QUANTILE_CONT(age, [0.25, 0.5, 0.75]) FROM people

-- answered
SELECT QUANTILE_CONT(age, 0.25) AS q1, MEDIAN(age) AS q2, QUANTILE_CONT(age, 0.75) AS q3, QUANTILE_CONT(age, 0.75) - QUANTILE_CONT(age, 0.25) AS iqr FROM people

-- answered
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age) AS p90 FROM people

-- answered
SELECT sex, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) AS p50, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age DESC) AS p10 FROM people GROUP BY sex

-- answered
SELECT education, QUANTILE_DISC(age, 0.1) AS p10, QUANTILE_DISC(age, 0.9) AS p90 FROM people GROUP BY education

-- answered
SELECT MIN(age), MAX(age), MAX(age) - MIN(age) AS span FROM people

-- answered
SELECT sex, MIN(age), MAX(age) FROM people GROUP BY sex

-- answered
SELECT MODE(education) FROM people

-- answered
SELECT occupation, COUNT(*) AS n FROM people GROUP BY occupation ORDER BY n DESC, occupation LIMIT 2

-- answered
SELECT COUNT(DISTINCT occupation) FROM people

-- answered
SELECT education, COUNT(DISTINCT occupation) AS occupations FROM people GROUP BY education

-- answered
SELECT SUM(CASE WHEN smoker THEN 1 ELSE 0 END) * 100.0 / COUNT(*) AS pct_smokers FROM people

-- answered
SELECT 100.0 * COUNT(*) FILTER (WHERE smoker) / COUNT(*) AS pct_smokers FROM people

-- answered
SELECT AVG(smoker::INT) AS share FROM people

-- answered
SELECT AVG(CAST(smoker AS INTEGER)) * 100 AS pct FROM people

-- answered
SELECT AVG(CASE WHEN smoker THEN 1.0 ELSE 0 END) FROM people

-- answered
SELECT COUNT_IF(smoker) AS smokers, COUNT_IF(NOT smoker) AS others FROM people

-- answered
SELECT SUM(smoker::INTEGER) FROM people

-- answered
SELECT SUM(IF(smoker, 1, 0)) AS smokers FROM people

-- answered
SELECT COUNT(CASE WHEN smoker THEN 1 END) AS smokers, COUNT(CASE WHEN NOT smoker THEN 1 END) AS others FROM people

-- answered
SELECT COUNT(NULLIF(smoker, FALSE)) AS smokers FROM people

-- answered
SELECT sex, smoker, COUNT(*) AS n, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY sex), 1) AS pct FROM people GROUP BY sex, smoker ORDER BY sex, smoker

-- answered
SELECT sex, AVG(income) AS mean, AVG(income) - AVG(AVG(income)) OVER () AS gap FROM people GROUP BY sex

-- answered
WITH t AS (SELECT sex, AVG(income) AS m FROM people GROUP BY sex) SELECT MAX(m) FILTER (WHERE sex = 'male') - MAX(m) FILTER (WHERE sex = 'female') AS pay_gap FROM t

-- answered
WITH t AS (SELECT sex, AVG(income) AS m FROM people GROUP BY sex) SELECT a.m / b.m AS ratio FROM t a, t b WHERE a.sex = 'female' AND b.sex = 'male'

-- answered
SELECT AVG(income) FILTER (WHERE sex = 'male') - AVG(income) FILTER (WHERE sex = 'female') AS pay_gap FROM people

-- answered
SELECT (SELECT AVG(income) FROM people WHERE sex = 'male') - (SELECT AVG(income) FROM people WHERE sex = 'female') AS pay_gap

-- answered
SELECT CASE WHEN age BETWEEN 16 AND 24 THEN '16-24' WHEN age BETWEEN 25 AND 44 THEN '25-44' WHEN age BETWEEN 45 AND 64 THEN '45-64' ELSE '65+' END AS age_group, COUNT(*) AS n, AVG(income) AS mean_income FROM people GROUP BY age_group ORDER BY age_group

-- answered
SELECT CASE WHEN age < 25 THEN '16-24' WHEN age < 45 THEN '25-44' WHEN age < 65 THEN '45-64' ELSE '65+' END AS age_group, sex, COUNT(*) FROM people GROUP BY 1, 2

-- answered
SELECT FLOOR(age / 5) * 5 AS age_from, FLOOR(age / 5) * 5 + 4 AS age_to, COUNT(*) FROM people GROUP BY 1, 2 ORDER BY 1

-- answered
SELECT age - age % 10 AS decade, COUNT(*) AS n FROM people GROUP BY decade ORDER BY decade

-- answered
SELECT (age // 10) * 10 || 's' AS decade, COUNT(*) AS n FROM people GROUP BY ALL

-- answered
SELECT WIDTH_BUCKET(weight, 40.5, 100.25, 7) AS part, COUNT(*) AS n, AVG(weight) AS w FROM people GROUP BY part

-- answered
SELECT WIDTH_BUCKET(income, 0, 200000, 10) AS bucket, COUNT(*) FROM people GROUP BY bucket ORDER BY bucket

-- answered
SELECT FLOOR(income / 20000) AS bin, COUNT(*) AS n, REPEAT('*', CAST(COUNT(*) AS INTEGER) // 10) AS bar FROM people WHERE income IS NOT NULL GROUP BY bin ORDER BY bin

-- other: DuckDB's map as one text of JSON
SELECT HISTOGRAM(age // 10) FROM people

-- answered
SELECT TRUNC(income / 10000) * 10000 AS bin, COUNT(*) FROM people GROUP BY bin HAVING COUNT(*) > 5 ORDER BY bin

-- answered
SELECT LN(income + 1)::INTEGER AS magnitude, COUNT(*) FROM people WHERE income > 1000 GROUP BY magnitude

-- answered
SELECT age, COUNT(*) AS n FROM people GROUP BY age ORDER BY age

-- answered
SELECT age, n, SUM(n) OVER (ORDER BY age) AS running, SUM(n) OVER (ORDER BY age) / SUM(n) OVER () AS cumulative_share FROM (SELECT age, COUNT(*) AS n FROM people GROUP BY age) t

-- answered
SELECT age, AVG(COUNT(*)) OVER (ORDER BY age ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING) AS smoothed FROM people GROUP BY age ORDER BY age

-- answered
SELECT CORR(height, weight) FROM people

-- answered
SELECT sex, CORR(height, weight) AS r, REGR_SLOPE(weight, height) AS slope FROM people GROUP BY sex

-- answered
SELECT REGR_SLOPE(income, age) AS b, REGR_INTERCEPT(income, age) AS a, REGR_R2(income, age) AS r2, REGR_COUNT(income, age) AS n FROM people

-- answered
SELECT COVAR_SAMP(height, weight) / (STDDEV(height) * STDDEV(weight)) AS r FROM people

-- answered
SELECT AVG(weight / ((height / 100) * (height / 100))) AS bmi FROM people

-- answered
SELECT AVG(weight / POWER(height / 100, 2)) AS bmi FROM people

-- answered
SELECT CASE WHEN weight / (height / 100) ** 2 < 18.5 THEN 'under' WHEN weight / (height / 100) ** 2 < 25 THEN 'normal' ELSE 'over' END AS class, COUNT(*) FROM people GROUP BY class

-- answered
SELECT COUNT(*) FILTER (WHERE weight / (height * height / 10000) > 30) * 1.0 / COUNT(*) AS obese FROM people

-- answered
WITH b AS (SELECT person_id, sex, weight / ((height / 100) * (height / 100)) AS bmi FROM people) SELECT sex, AVG(bmi), STDDEV(bmi) FROM b GROUP BY sex

-- answered
SELECT sex, VAR_POP(height), VAR_SAMP(height) FROM people GROUP BY sex

-- answered
SELECT SKEWNESS(income) FROM people

-- answered
SELECT KURTOSIS(height) FROM people

-- other: LEAST and GREATEST give NULL for NULL
SELECT EXP(AVG(LN(GREATEST(income, 1)))) AS geometric FROM people

-- answered
SELECT GEOMETRIC_MEAN(height) FROM people

-- answered
SELECT 1 / AVG(1 / height) AS harmonic FROM people

-- answered
SELECT SQRT(AVG(height * height)) AS rms FROM people

-- answered
SELECT STDDEV(height) / AVG(height) AS cv FROM people

-- answered
SELECT COUNT(*) - COUNT(income) AS missing_income, COUNT(*) - COUNT(insured) AS missing_insured FROM people

-- answered
SELECT SUM(CASE WHEN income IS NULL THEN 1 ELSE 0 END) AS missing FROM people

-- answered
SELECT COUNT(*) AS n, COUNT(income) AS filled, ROUND(100.0 * COUNT(income) / COUNT(*), 2) AS completeness FROM people

-- answered
SELECT insured, COUNT(*) FROM people GROUP BY insured

-- answered
SELECT COALESCE(CAST(insured AS VARCHAR), 'unknown') AS insured, COUNT(*) FROM people GROUP BY 1

-- answered
SELECT CASE insured WHEN TRUE THEN 'yes' WHEN FALSE THEN 'no' ELSE 'unknown' END AS answer, COUNT(*) FROM people GROUP BY answer

-- answered
SELECT insured IS NULL AS unknown, COUNT(*) FROM people GROUP BY unknown

-- answered
SELECT s.state, COUNT(*) AS n FROM people p JOIN states s ON p.state_code = s.state_code GROUP BY s.state ORDER BY n DESC

-- answered
SELECT s.state, COUNT(*) AS n FROM people p, states s WHERE p.state_code = s.state_code GROUP BY s.state

-- answered
SELECT state, COUNT(*) AS n FROM people INNER JOIN states USING (state_code) GROUP BY state

-- answered
SELECT state, COUNT(*) AS n FROM people NATURAL JOIN states GROUP BY state

-- answered
SELECT s.state, COUNT(p.person_id) AS n FROM states s LEFT JOIN people p USING (state_code) GROUP BY s.state

-- answered
SELECT s.state, COUNT(p.person_id) AS n FROM people p RIGHT JOIN states s ON p.state_code = s.state_code GROUP BY s.state

-- not yet: unsupported_function
SELECT s.state, COUNT(*) / ANY_VALUE(s.area) AS density FROM people p JOIN states s USING (state_code) GROUP BY s.state

-- answered
SELECT s.state, t.n, t.n / s.area AS density FROM (SELECT state_code, COUNT(*) AS n FROM people GROUP BY state_code) t JOIN states s ON s.state_code = t.state_code ORDER BY density DESC

-- answered
WITH counts AS (SELECT state_code, COUNT(*) AS n FROM people GROUP BY state_code) SELECT state, n, n / area AS density FROM counts JOIN states USING (state_code)

-- answered
SELECT s.coast, AVG(p.income) FROM people p JOIN states s USING (state_code) GROUP BY s.coast

-- answered
SELECT COUNT(*) FROM people WHERE state_code IN (SELECT state_code FROM states WHERE coast)

-- answered
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM states s WHERE s.state_code = p.state_code AND s.coast)

-- answered
SELECT COUNT(*) FROM people SEMI JOIN states USING (state_code)

-- answered
SELECT state FROM states WHERE state_code NOT IN (SELECT state_code FROM (SELECT state_code, COUNT(*) AS n FROM people GROUP BY state_code) t WHERE n > 40)

-- answered
SELECT sex, education, COUNT(*) FROM people GROUP BY ROLLUP (sex, education)

-- answered
SELECT sex, education, COUNT(*) FROM people GROUP BY CUBE (sex, education)

-- answered
SELECT COALESCE(sex, 'all') AS sex, COALESCE(education, 'all') AS education, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), (education), ())

-- answered
SELECT CASE WHEN GROUPING(sex) = 1 THEN 'total' ELSE sex END AS sex, SUM(income) FROM people GROUP BY ROLLUP (sex)

-- answered
SELECT sex, COUNT(*) FROM people GROUP BY sex UNION ALL SELECT 'total', COUNT(*) FROM people

-- answered
SELECT education, SUM(CASE WHEN sex = 'male' THEN 1 ELSE 0 END) AS men, SUM(CASE WHEN sex = 'female' THEN 1 ELSE 0 END) AS women FROM people GROUP BY education

-- answered
SELECT education, COUNT(*) FILTER (WHERE sex = 'male') AS men, COUNT(*) FILTER (WHERE sex = 'female') AS women FROM people GROUP BY education

-- answered
PIVOT (SELECT education, sex, COUNT(*) AS n FROM people GROUP BY education, sex) ON sex USING SUM(n)

-- answered
SELECT * FROM (SELECT education, sex, COUNT(*) AS n FROM people GROUP BY education, sex) PIVOT (SUM(n) FOR sex IN ('female', 'male'))

-- answered
SELECT education, MAX(n) FILTER (WHERE sex = 'male') AS men, MAX(n) FILTER (WHERE sex = 'female') AS women FROM (SELECT education, sex, COUNT(*) AS n FROM people GROUP BY education, sex) t GROUP BY education

-- answered
SELECT education, MAX(CASE WHEN sex = 'male' THEN mean END) AS men, MAX(CASE WHEN sex = 'female' THEN mean END) AS women FROM (SELECT education, sex, AVG(income) AS mean FROM people GROUP BY 1, 2) t GROUP BY education

-- answered
SELECT measure, value FROM (SELECT AVG(height) AS height, AVG(weight) AS weight FROM people) UNPIVOT (value FOR measure IN (height, weight))

-- answered
UNPIVOT (SELECT AVG(height) AS height, AVG(weight) AS weight FROM people) ON height, weight INTO NAME measure VALUE mean

-- answered
SELECT 'height' AS measure, AVG(height) AS mean FROM people UNION ALL SELECT 'weight', AVG(weight) FROM people

-- answered
SELECT state_code, education, COUNT(*) AS n FROM people GROUP BY state_code, education QUALIFY ROW_NUMBER() OVER (PARTITION BY state_code ORDER BY COUNT(*) DESC, education) = 1

-- answered
SELECT state_code, education, n FROM (SELECT state_code, education, COUNT(*) AS n, RANK() OVER (PARTITION BY state_code ORDER BY COUNT(*) DESC) AS r FROM people GROUP BY state_code, education) t WHERE r = 1

-- answered
WITH t AS (SELECT state_code, education, COUNT(*) AS n FROM people GROUP BY ALL) SELECT state_code, ARG_MAX(education, n) AS commonest FROM t GROUP BY state_code

-- answered
SELECT state_code, AVG(income) AS m FROM people GROUP BY state_code HAVING AVG(income) > (SELECT AVG(income) FROM people)

-- answered
SELECT state_code, COUNT(*) AS n FROM people GROUP BY state_code HAVING n > 45 ORDER BY n DESC

-- answered
SELECT state_code, AVG(income) AS m, NTILE(3) OVER (ORDER BY AVG(income)) AS tercile FROM people GROUP BY state_code

-- answered
SELECT state_code, AVG(income) AS m, PERCENT_RANK() OVER (ORDER BY AVG(income)) AS p FROM people GROUP BY state_code

-- answered
SELECT state_code, (m - AVG(m) OVER ()) / STDDEV(m) OVER () AS z FROM (SELECT state_code, AVG(income) AS m FROM people GROUP BY state_code) t

-- answered
SELECT MEDIAN(n), QUANTILE_CONT(n, 0.9), MIN(n), MAX(n) FROM (SELECT state_code, COUNT(*) AS n FROM people GROUP BY state_code) t

-- answered
SELECT SUM(n * n) / (SUM(n) * SUM(n)) AS concentration FROM (SELECT state_code, COUNT(*) AS n FROM people GROUP BY state_code) t

-- answered
SELECT -SUM(share * LN(share)) AS entropy FROM (SELECT COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY education) t

-- not yet: unsupported_function
SELECT LIST(education ORDER BY n DESC) FROM (SELECT education, COUNT(*) AS n FROM people GROUP BY education) t

-- answered
SELECT STRING_AGG(education || ': ' || CAST(n AS VARCHAR), '; ' ORDER BY education) FROM (SELECT education, ROUND(COUNT(*))::INTEGER AS n FROM people GROUP BY education) t

-- answered
SELECT * EXCLUDE (n), n * 2 AS twice FROM (SELECT sex, education, COUNT(*) AS n FROM people GROUP BY sex, education) t

-- answered
SELECT * REPLACE (ROUND(m, -2) AS m) FROM (SELECT sex, AVG(income) AS m FROM people GROUP BY sex) t

-- answered
SELECT COLUMNS('m.*') FROM (SELECT sex, AVG(income) AS mean, MAX(age) AS most FROM people GROUP BY sex) t

-- answered
SELECT YEAR(born) AS y, COUNT(*) FROM people WHERE born BETWEEN DATE '1960-01-01' AND DATE '1999-12-31' GROUP BY y ORDER BY y

-- answered
SELECT EXTRACT(YEAR FROM born) // 10 * 10 AS decade, COUNT(*) FROM people WHERE born >= '1950-01-01' AND born < '2000-01-01' GROUP BY decade

-- answered
SELECT date_trunc('decade', born) AS decade, COUNT(*) FROM people WHERE born >= DATE '1950-01-01' AND born < DATE '2000-01-01' GROUP BY decade

-- answered
SELECT MONTHNAME(born) AS m, COUNT(*) FROM people GROUP BY m ORDER BY COUNT(*) DESC

-- answered
SELECT AVG(date_diff('year', born, DATE '2025-01-01')) AS mean_age FROM people

-- answered
SELECT AVG(DATE '2025-01-01' - born) / 365.25 AS mean_age FROM people WHERE born BETWEEN DATE '1930-01-01' AND DATE '2020-01-01'

-- answered
SELECT COUNT(*) FROM people WHERE born > DATE '2000-01-01' - INTERVAL '18 years'

-- answered
SELECT COUNT(*) FROM people WHERE EXTRACT(MONTH FROM born) = 12 AND EXTRACT(DAY FROM born) BETWEEN 24 AND 26

-- answered
SELECT date_trunc('month', registered) AS month, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY date_trunc('month', registered)) AS so_far FROM people WHERE registered >= '2023-01-01' AND registered < '2025-01-01' GROUP BY 1 ORDER BY 1

-- answered
SELECT CAST(date_trunc('quarter', registered) AS DATE) AS quarter, COUNT(*) FROM people WHERE registered >= TIMESTAMP '2023-01-01' AND registered < TIMESTAMP '2025-01-01' GROUP BY quarter

-- answered
SELECT STRFTIME(registered, '%Y-%m') AS month, COUNT(*) FROM people WHERE registered >= '2023-01-01' AND registered < '2024-01-01' GROUP BY month ORDER BY month

-- answered
SELECT CASE WHEN HOUR(registered) BETWEEN 6 AND 17 THEN 'day' ELSE 'night' END AS half, COUNT(*) FROM people GROUP BY half

-- answered
SELECT children, COUNT(*) AS families FROM people WHERE children > 0 GROUP BY children

-- answered
SELECT CASE WHEN children >= 3 THEN '3+' ELSE CAST(children AS VARCHAR) END AS children, COUNT(*) FROM people GROUP BY 1

-- answered
SELECT LEAST(children, 3) AS c, AVG(hours) FROM people GROUP BY c

-- answered
SELECT SUM(children) AS all_children, AVG(children) AS per_person, SUM(children) FILTER (WHERE sex = 'female') AS of_women FROM people

-- answered
SELECT UPPER(LEFT(education, 1)) AS letter, COUNT(*) FROM people GROUP BY letter

-- answered
SELECT CONCAT(sex, '/', education) AS cell, COUNT(*) FROM people GROUP BY cell

-- answered
SELECT sex || ' ' || education AS cell, AVG(hours) AS h FROM people GROUP BY ALL

-- answered
SELECT COUNT(*) FROM people WHERE occupation ILIKE '%APPLE%'

-- answered
SELECT COUNT(*) FROM people WHERE LOWER(occupation) LIKE 'eco%' OR occupation IN ('blue', 'web')

-- answered
SELECT COUNT(*) FROM people WHERE occupation SIMILAR TO '(blue|web)'

-- answered
SELECT COUNT(*) FROM people WHERE REGEXP_MATCHES(occupation, '^[a-z ]+$')

-- answered
SELECT LENGTH(occupation) AS len, COUNT(*) FROM people GROUP BY len HAVING COUNT(*) > 20

-- other: the bounds that the histogram chooses clip
SELECT AVG(LENGTH(occupation)) FROM people WHERE LENGTH(occupation) < 50

-- answered
SELECT CONTAINS(occupation, 'e') AS has, COUNT(*) FROM people GROUP BY has

-- answered
SELECT COUNT(*) FROM people WHERE income BETWEEN 20000 AND 60000 AND NOT smoker AND (education = 'college' OR hours > 40)

-- answered
SELECT COUNT(*) FROM people WHERE (sex, education) IN (('male', 'school'), ('female', 'college'))

-- answered
SELECT COUNT(*) FROM people WHERE education NOT IN ('school') AND sex <> 'male' AND age != 50

-- answered
SELECT COUNT(*) FROM people WHERE age >= 18 AND age <= 65 AND income IS NOT NULL

-- answered
SELECT income > 50000 AS rich, COUNT(*) FROM people GROUP BY rich

-- answered
SELECT IFNULL(income, 0) > 50000 AS rich, smoker, COUNT(*) FROM people GROUP BY 1, 2

-- answered
SELECT COUNT(*) FROM people WHERE income > (SELECT AVG(income) FROM people)

-- answered
SELECT COUNT(*) FROM people WHERE age > (SELECT MEDIAN(age) FROM people)

-- answered
WITH m AS (SELECT AVG(income) AS mean, STDDEV(income) AS sd FROM people) SELECT COUNT(*) FROM people, m WHERE income > m.mean + 1 * m.sd

-- answered
SELECT SUM(income) FILTER (WHERE age >= 65) / SUM(income) AS share_of_old FROM people

-- answered
SELECT education, SUM(income) AS total, SUM(income) / (SELECT SUM(income) FROM people) AS share FROM people GROUP BY education ORDER BY share DESC

-- answered
SELECT ROUND(AVG(income)::DECIMAL(12, 2), 1) AS mean, FORMAT('{:.1f}', AVG(income)) AS said FROM people

-- answered
SELECT 'mean income: ' || ROUND(AVG(income))::VARCHAR AS said FROM people

-- answered
SELECT SUM(hours) * 52 AS hours_a_year, SUM(income / NULLIF(hours * 52, 0)) / COUNT(*) AS wage FROM people WHERE hours >= 10

-- answered
SELECT SUM(income) / NULLIF(SUM(hours * 52), 0) AS wage FROM people

-- other: LEAST and GREATEST give NULL for NULL
SELECT AVG(GREATEST(0, LEAST(income, 100000))) AS capped FROM people

-- answered
SELECT AVG(CASE WHEN income > 100000 THEN 100000 ELSE income END) AS capped FROM people

-- answered
SELECT AVG(income * 1.1 - 500) AS after FROM people

-- answered
SELECT SUM(ROUND(income * 0.2, 0)) AS tax FROM people

-- answered
SELECT SUM(CASE WHEN income <= 20000 THEN 0 WHEN income <= 60000 THEN (income - 20000) * 0.2 ELSE 8000 + (income - 60000) * 0.4 END) AS tax FROM people

-- answered
SELECT VARIANCE(income) FILTER (WHERE sex = 'male') / VARIANCE(income) FILTER (WHERE sex = 'female') AS f FROM people

-- answered
SELECT (AVG(a) - AVG(b)) AS d FROM (SELECT CASE WHEN sex = 'male' THEN height END AS a, CASE WHEN sex = 'female' THEN height END AS b FROM people) t

-- answered
SELECT * FROM states

-- answered
SELECT COUNT(*), SUM(area) FROM states WHERE coast

-- answered
SELECT DISTINCT education FROM people ORDER BY education

-- answered
SELECT DISTINCT sex, smoker FROM people

-- answered
SELECT education FROM people GROUP BY education HAVING COUNT(*) > 60

-- answered
SELECT BOOL_OR(smoker), BOOL_AND(smoker) FROM people

-- answered
SELECT FIRST(education ORDER BY n DESC) AS top FROM (SELECT education, COUNT(*) AS n FROM people GROUP BY education) t

-- answered
SELECT v.low, v.high, COUNT(*) FROM people p JOIN (VALUES (16, 30), (31, 60), (61, 95)) v(low, high) ON p.age BETWEEN v.low AND v.high GROUP BY v.low, v.high

-- answered
WITH bands(low, high, name) AS (VALUES (16, 30, 'young'), (31, 60, 'middle'), (61, 95, 'old')) SELECT name, COUNT(*) FROM people JOIN bands ON age BETWEEN low AND high GROUP BY name

-- answered
SELECT g.age, COALESCE(t.n, 0) AS n FROM generate_series(16, 30) g(age) LEFT JOIN (SELECT age, COUNT(*) AS n FROM people GROUP BY age) t ON t.age = g.age ORDER BY g.age

-- answered
SELECT COUNT(*) AS "Number of people", AVG(p.height) AS "Mean height (cm)" FROM people AS p WHERE p."age" > 30

-- answered
SELECT /* a comment */ COUNT(*) -- another
FROM people WHERE TRUE

-- answered
SELECT p.sex, COUNT(*) AS n, AVG(p.age) AS mean_age FROM (SELECT * FROM people WHERE age >= 18) AS p GROUP BY p.sex

-- answered
WITH adults AS (SELECT * FROM people WHERE age >= 18), men AS (SELECT * FROM adults WHERE sex = 'male') SELECT COUNT(*), AVG(height) FROM men

-- answered
SELECT x.sex, x.n, y.n FROM (SELECT sex, COUNT(*) AS n FROM people WHERE smoker GROUP BY sex) x FULL JOIN (SELECT sex, COUNT(*) AS n FROM people WHERE NOT smoker GROUP BY sex) y ON x.sex = y.sex

-- answered
SELECT sex, SUM(income) AS s FROM people WHERE income > 100000 GROUP BY sex INTERSECT SELECT sex, SUM(income) AS s FROM people WHERE income > 100000 GROUP BY sex

-- answered
SELECT COUNT(*) FROM (SELECT person_id FROM people WHERE smoker UNION SELECT person_id FROM people WHERE age > 60) t

-- answered
SELECT COUNT(*) FROM (SELECT person_id FROM people WHERE smoker INTERSECT SELECT person_id FROM people WHERE age > 60) t

-- answered
SELECT COUNT(*) FROM (SELECT person_id FROM people WHERE smoker EXCEPT SELECT person_id FROM people WHERE age > 60) t

-- answered
SELECT CBRT(AVG(height * weight * age)) FROM people

-- answered
SELECT AVG(ABS(height - 175)) AS mean_deviation FROM people

-- other: values inside a place, one of 4,096, are not distinguished
SELECT MAD(age) FROM people

-- answered
SELECT SUM(PRODUCT) FROM (SELECT hours * children AS PRODUCT FROM people) t

-- answered
SELECT APPROX_COUNT_DISTINCT(occupation) FROM people

-- answered
SELECT SUM(CAST(age AS DOUBLE)) / CAST(COUNT(*) AS DOUBLE) AS mean FROM people

-- answered
SELECT TRY_CAST(AVG(age) AS INTEGER) FROM people

-- answered
SELECT COUNT(*) FROM people LIMIT 1

-- answered
SELECT education, COUNT(*) AS n FROM people GROUP BY education ORDER BY n DESC LIMIT 1 OFFSET 1

-- answered
SELECT education, COUNT(*) AS n FROM people GROUP BY education ORDER BY n DESC FETCH FIRST 2 ROWS ONLY

-- answered
SELECT education, COUNT(*) AS n, n * 100.0 / SUM(n) OVER () AS pct FROM people GROUP BY education

-- answered
SELECT age // 10 AS d, COUNT(*) AS n, d * 10 AS years FROM people GROUP BY d

-- answered
SELECT QUANTILE_DISC(age, [0.1, 0.9])[2] FROM people

-- answered
SELECT education, MODE(sex), AVG(age) FROM people GROUP BY education

-- answered
SELECT sex, MODE(occupation), COUNT(*) AS n FROM people WHERE occupation <> 'PROMO tin' GROUP BY sex HAVING n > 10 ORDER BY n DESC

-- answered
SELECT SUM(smoker), SUM(age > 50) FROM people

-- answered
SELECT state_code, COUNT(DISTINCT (occupation, age // 10, insured)) FROM people GROUP BY state_code

-- answered
SELECT COUNT(*) AS n, APPROX_TOP_K(education, 3)[1] AS best FROM people

-- answered
SELECT education, BOOL_OR(age > 90), COUNT(*) FROM people GROUP BY education

-- answered
SELECT what, COUNT(*), AVG(v) FROM people UNPIVOT (v FOR what IN (income, height, weight)) GROUP BY what

-- answered
PIVOT (SELECT education, sex, COUNT(*) AS n FROM people GROUP BY education, sex) ON sex IN ('female', 'male') USING SUM(n)

-- answered
SELECT COUNT(*) FILTER (WHERE AGE(DATE '2024-12-31', born) >= INTERVAL 65 YEAR) AS old, COUNT(*) FROM people

-- answered
SELECT COUNT(*) FROM people WHERE AGE(DATE '2024-01-01', born) >= INTERVAL 18 YEAR

-- answered
SELECT COUNT(*) FROM people WHERE registered - born > INTERVAL 40 YEAR

-- answered
SELECT sex, AVG(registered) FROM people WHERE registered BETWEEN '2020-01-01' AND '2026-01-01' GROUP BY sex

-- answered
SELECT AVG(registered - CAST(born AS TIMESTAMP)) FROM people WHERE registered > '2020-01-01' AND registered < '2027-01-01'

-- answered
SELECT AVG(date_diff('day', born, registered::DATE)) FROM people WHERE registered > '2020-01-01' AND registered < '2027-01-01'

-- answered
SELECT date_trunc('year', registered) - date_trunc('year', born::TIMESTAMP) AS lived, COUNT(*) FROM people GROUP BY lived

-- answered
SELECT sex, COUNT(DISTINCT d) FROM (SELECT sex, date_trunc('month', registered) - date_trunc('month', born::TIMESTAMP) AS d FROM people) t GROUP BY sex

-- answered
SELECT date_trunc('hour', registered) - date_trunc('day', registered) AS clock, COUNT(*) AS n FROM people GROUP BY clock HAVING n > 5 ORDER BY clock LIMIT 3

-- answered
SELECT MODE(date_trunc('month', registered) - date_trunc('year', registered)) FROM people

-- answered
SELECT clock > INTERVAL 100 DAY AS late, SUM(n) FROM (SELECT date_trunc('month', registered) - date_trunc('year', registered) AS clock, COUNT(*) AS n FROM people GROUP BY clock) t GROUP BY late

-- answered
SELECT s.big, COUNT(*) FROM people p JOIN (SELECT state_code, area > 100 AS big FROM states WHERE coast) s USING (state_code) GROUP BY s.big

-- answered
SELECT s.coast, COUNT(*) FROM people p JOIN (SELECT DISTINCT state_code, coast FROM states) s USING (state_code) GROUP BY s.coast

-- answered
SELECT COUNT(*) FROM people WHERE state_code IN (SELECT state_code FROM states ORDER BY area DESC, state_code LIMIT 2) AND weight * 3 > (SELECT AVG(area) FROM states WHERE coast)
