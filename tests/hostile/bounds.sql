-- refused: column_without_bounds
SELECT SUM(income) FROM people

-- refused: column_without_bounds
SELECT AVG(income) FROM people

-- refused: column_without_bounds
SELECT VARIANCE(income) FROM people

-- refused: column_without_bounds
SELECT STDDEV(income) FROM people

-- refused: column_without_bounds
SELECT SUM(person_id) FROM people

-- refused: column_without_bounds
SELECT SUM(income * 2) FROM people

-- refused: column_without_bounds
SELECT SUM(age + income) FROM people

-- refused: column_without_bounds
SELECT SUM(LEAST(income, 500)) FROM people

-- refused: column_without_bounds
SELECT SUM(GREATEST(income, 0)) FROM people

-- refused: column_without_bounds
SELECT SUM(ABS(income)) FROM people

-- refused: column_without_bounds
SELECT SUM(CASE WHEN income > 0 OR income < 10 THEN income ELSE 0 END) FROM people

-- refused: column_without_bounds
SELECT SUM(NULLIF(income, 0)) FROM people

-- refused: column_without_bounds
SELECT SUM(COALESCE(income, 0)) FROM people

-- refused: column_without_bounds
SELECT SUM(CAST(education AS BIGINT)) FROM people

-- refused: column_without_bounds
SELECT SUM(TRY_CAST(education AS DOUBLE)) FROM people

-- refused: column_without_bounds
SELECT SUM(EXP(income)) FROM people

-- refused: column_without_bounds
SELECT SUM(SQRT(income)) FROM people

-- refused: column_without_bounds
SELECT SUM(ROUND(income, 2)) FROM people

-- refused: column_without_bounds
SELECT SUM(age) FILTER (WHERE smoker), SUM(income) FROM people

-- refused: column_without_bounds
SELECT sex, SUM(income) FROM people GROUP BY sex

-- refused: column_without_bounds
SELECT SUM(income) FROM people WHERE income >= 0

-- refused: column_without_bounds
SELECT SUM(visit_id) FROM visits

-- refused: column_without_bounds
SELECT SUM(hospital_id) FROM visits

-- refused: column_without_bounds
SELECT AVG(p.income) FROM visits v JOIN people p ON v.person_id = p.person_id

-- refused: column_without_bounds
SELECT SUM(age * 1e300) FROM people

-- refused: column_without_bounds
SELECT SUM(salary * 1e15) FROM people

-- refused: column_without_bounds
SELECT SUM(GREATEST(-1e16, LEAST(income, 1e16))) FROM people

-- refused: column_without_bounds
SELECT SUM(person_id * 1) FROM people

-- refused: column_without_bounds
SELECT SUM(person_id - person_id) FROM people

-- refused: column_without_bounds
SELECT MAX(s) FROM (SELECT SUM(income) AS s FROM people)

-- refused: column_without_bounds
WITH a AS (SELECT sex, AVG(income) AS m FROM people GROUP BY sex) SELECT m FROM a

-- refused: column_without_bounds
SELECT (SELECT SUM(income) FROM people) / 2

-- refused: key_domain_too_large
SELECT hours, hours + 1, hours + 2, COUNT(*) FROM people GROUP BY ALL

-- refused: key_domain_too_large
SELECT hours, hours * 2, hours % 7, sex, smoker, COUNT(*) FROM people GROUP BY ALL

-- refused: key_domain_too_large
SELECT hours, age % 100, age % 50, COUNT(*) FROM people GROUP BY ALL

-- refused: key_domain_too_large
SELECT MONTH(born), DAY(born), age % 100, smoker, COUNT(*) FROM people GROUP BY ALL

-- refused: key_domain_too_large
SELECT hours, p.hours + 1, p.hours * 2, COUNT(*) FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY ALL

-- refused: key_domain_too_large
SELECT CASE WHEN age < 3 THEN hours END, hours, DAY(born), COUNT(*) FROM people GROUP BY ALL

-- refused: key_domain_too_large
SELECT COUNT(*) FROM people GROUP BY DAYOFYEAR(born), age % 180

-- refused: unsupported_sql
SELECT COUNT(DISTINCT person_id, age) FROM people

-- refused: unsupported_sql
SELECT COUNT(DISTINCT *) FROM people

-- refused: unsupported_sql
SELECT COUNT(DISTINCT) FROM people

-- refused: unsupported_sql
SELECT SUM(DISTINCT age, hours) FROM people

-- refused: unsupported_sql
SELECT AVG(DISTINCT age ORDER BY age) FROM people

-- refused: column_without_bounds
SELECT SUM(DISTINCT income) FROM people

-- refused: unsupported_type
SELECT SUM(DISTINCT education) FROM people

-- refused: private_row_limit
SELECT COUNT(DISTINCT age) OVER () FROM people

-- refused: unsupported_sql
SELECT COUNT(1, 2) FROM people

-- refused: unsupported_sql
SELECT COUNT(age ORDER BY age) FROM people

-- refused: unsupported_sql
SELECT SUM(age ORDER BY age) FROM people

-- refused: unsupported_sql
SELECT AVG(age ORDER BY income LIMIT 1) FROM people

-- refused: unsupported_sql
SELECT SUM(age) IGNORE NULLS FROM people

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE COUNT(*) > 1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE SUM(age) > 1

-- refused: private_row_limit
SELECT COUNT(*) FROM people WHERE AVG(age) OVER () > 1

-- refused: column_without_bounds
SELECT AVG(day - DATE '2023-01-01') FROM visits

-- refused: column_without_bounds
SELECT AVG(day - DATE '2023-01-01') FROM visits WHERE day - DATE '2023-01-01' < 100

-- refused: column_without_bounds
SELECT SUM(date_diff('day', DATE '2023-01-01', day)) FROM visits WHERE day > DATE '2023-01-01'
