-- answered
SELECT COUNT(*) FROM visits

-- answered
SELECT COUNT(DISTINCT patient_id) AS patients, COUNT(*) AS visits, COUNT(*) * 1.0 / COUNT(DISTINCT patient_id) AS per_patient FROM visits

-- answered
SELECT department, COUNT(*) AS visits, SUM(cost) AS cost, AVG(cost) AS mean_cost FROM visits GROUP BY department ORDER BY cost DESC

-- answered
SELECT department, AVG(length_of_stay_days) AS alos FROM visits GROUP BY department ORDER BY alos DESC LIMIT 3

-- answered
SELECT department, SUM(cost) / SUM(length_of_stay_days) AS cost_per_day FROM visits GROUP BY department

-- answered
SELECT department, COUNT(*) FILTER (WHERE length_of_stay_days = 0) AS day_cases, COUNT(*) FILTER (WHERE length_of_stay_days > 30) AS long_stays FROM visits GROUP BY department

-- answered
SELECT department, SUM(CASE WHEN length_of_stay_days = 0 THEN 1 ELSE 0 END) / COUNT(*) AS share FROM visits GROUP BY department

-- answered
SELECT date_trunc('month', visit_date) AS month, COUNT(*) AS n FROM visits GROUP BY month ORDER BY month

-- answered
SELECT YEAR(visit_date) AS y, MONTH(visit_date) AS m, COUNT(*) AS n FROM visits GROUP BY y, m ORDER BY y, m

-- answered
SELECT EXTRACT(YEAR FROM visit_date) AS y, EXTRACT(MONTH FROM visit_date) AS m, SUM(cost) FROM visits GROUP BY 1, 2 ORDER BY 1, 2

-- answered
SELECT STRFTIME(visit_date, '%Y-%m') AS month, COUNT(*) AS n FROM visits GROUP BY month ORDER BY month

-- answered
SELECT date_part('year', visit_date) AS y, date_part('quarter', visit_date) AS q, COUNT(*) FROM visits GROUP BY ALL ORDER BY ALL

-- answered
SELECT YEAR(visit_date) || '-Q' || QUARTER(visit_date) AS quarter, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1

-- answered
SELECT CAST(YEAR(visit_date) AS VARCHAR) AS y, COUNT(*) FROM visits GROUP BY y

-- answered
SELECT YEARWEEK(visit_date) AS w, COUNT(*) FROM visits WHERE visit_date >= '2024-01-01' AND visit_date < '2024-03-01' GROUP BY w

-- answered
SELECT ISODOW(visit_date) AS d, DAYNAME(visit_date) AS name, COUNT(*) FROM visits GROUP BY ALL

-- answered
SELECT time_bucket(INTERVAL '1 month', visit_date) AS month, COUNT(*) FROM visits GROUP BY month

-- answered
SELECT time_bucket(INTERVAL 2 WEEK, visit_date) AS fortnight, COUNT(*) FROM visits WHERE visit_date BETWEEN '2024-01-01' AND '2024-06-30' GROUP BY fortnight

-- answered
SELECT LAST_DAY(visit_date) AS month_end, COUNT(*) FROM visits WHERE YEAR(visit_date) = 2024 GROUP BY month_end

-- answered
SELECT MAKE_DATE(YEAR(visit_date), MONTH(visit_date), 1) AS month, COUNT(*) FROM visits WHERE YEAR(visit_date) = 2024 GROUP BY month

-- answered
WITH m AS (SELECT date_trunc('month', visit_date) AS month, COUNT(*) AS n FROM visits GROUP BY month) SELECT month, n, n - LAG(n) OVER (ORDER BY month) AS change, 100.0 * (n - LAG(n) OVER (ORDER BY month)) / LAG(n) OVER (ORDER BY month) AS pct FROM m ORDER BY month

-- answered
WITH m AS (SELECT YEAR(visit_date) AS y, MONTH(visit_date) AS m, SUM(cost) AS s FROM visits GROUP BY 1, 2) SELECT a.m, a.s AS this_year, b.s AS last_year, a.s / b.s - 1 AS growth FROM m a JOIN m b ON a.m = b.m AND a.y = b.y + 1 WHERE a.y = 2024 ORDER BY a.m

-- answered
SELECT m, MAX(s) FILTER (WHERE y = 2024) / MAX(s) FILTER (WHERE y = 2023) - 1 AS yoy FROM (SELECT YEAR(visit_date) AS y, MONTH(visit_date) AS m, SUM(cost) AS s FROM visits GROUP BY 1, 2) t GROUP BY m ORDER BY m

-- answered
SELECT MONTH(visit_date) AS m, SUM(CASE WHEN YEAR(visit_date) = 2023 THEN cost ELSE 0 END) AS y2023, SUM(CASE WHEN YEAR(visit_date) = 2024 THEN cost ELSE 0 END) AS y2024 FROM visits GROUP BY m

-- answered
SELECT month, AVG(n) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS moving_average FROM (SELECT date_trunc('month', visit_date) AS month, COUNT(*) AS n FROM visits GROUP BY month) t

-- answered
SELECT month, SUM(SUM(cost)) OVER (PARTITION BY YEAR(month) ORDER BY month) AS year_to_date FROM (SELECT date_trunc('month', visit_date) AS month, cost FROM visits) t GROUP BY month

-- answered
SELECT y, n, FIRST_VALUE(n) OVER (ORDER BY y) AS base, n / FIRST_VALUE(n) OVER (ORDER BY y) AS indexed FROM (SELECT YEAR(visit_date) AS y, COUNT(*) AS n FROM visits GROUP BY y) t

-- answered
SELECT department, YEAR(visit_date) AS y, COUNT(*) AS n, n / LAG(n) OVER (PARTITION BY department ORDER BY y) AS growth FROM visits GROUP BY department, y ORDER BY department, y

-- answered
PIVOT (SELECT department, YEAR(visit_date) AS y, COUNT(*) AS n FROM visits GROUP BY ALL) ON y IN (2023, 2024) USING SUM(n) GROUP BY department

-- answered
SELECT department, "2023", "2024" FROM (SELECT department, YEAR(visit_date) AS y, COUNT(*) AS n FROM visits GROUP BY ALL) PIVOT (SUM(n) FOR y IN (2023, 2024))

-- answered
SELECT department, RANK() OVER (ORDER BY SUM(cost) DESC) AS place FROM visits GROUP BY department ORDER BY place

-- answered
SELECT department, DENSE_RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM visits GROUP BY department QUALIFY place <= 2

-- answered
SELECT YEAR(visit_date) AS y, department, COUNT(*) AS n FROM visits GROUP BY y, department QUALIFY RANK() OVER (PARTITION BY y ORDER BY n DESC) <= 2

-- answered
SELECT department, SUM(cost) AS s, SUM(SUM(cost)) OVER (ORDER BY SUM(cost) DESC) / SUM(SUM(cost)) OVER () AS pareto FROM visits GROUP BY department ORDER BY s DESC

-- answered
SELECT p.sex, COUNT(*) AS visits, AVG(v.cost) FROM visits v JOIN patients p ON v.patient_id = p.patient_id GROUP BY p.sex

-- answered
SELECT sex, SUM(cost) FROM visits JOIN patients USING (patient_id) GROUP BY sex

-- answered
SELECT p.sex, SUM(v.cost) FROM visits v, patients p WHERE v.patient_id = p.patient_id AND p.age >= 18 GROUP BY p.sex

-- answered
SELECT sex, COUNT(*) FROM visits NATURAL JOIN patients GROUP BY sex

-- answered
SELECT p.region, p.sex, COUNT(DISTINCT v.patient_id) AS patients FROM visits v JOIN patients p USING (patient_id) WHERE v.department = 'Cardiology' GROUP BY p.region, p.sex

-- answered
SELECT h.region, COUNT(*) AS n FROM visits v JOIN hospitals h ON h.hospital_id = v.hospital_id GROUP BY h.region ORDER BY n DESC

-- answered
SELECT h.name, COUNT(*) AS n FROM visits v JOIN hospitals h USING (hospital_id) GROUP BY h.name ORDER BY n DESC, h.name LIMIT 5

-- answered
SELECT h.name, COUNT(v.visit_id) AS n FROM hospitals h LEFT JOIN visits v ON v.hospital_id = h.hospital_id GROUP BY h.name

-- answered
SELECT h.name, h.beds, COUNT(*) AS n, COUNT(*) * 1.0 / h.beds AS per_bed FROM visits v JOIN hospitals h USING (hospital_id) GROUP BY h.name, h.beds

-- answered
SELECT h.name, SUM(v.length_of_stay_days) / (h.beds * 731.0) AS occupancy FROM visits v JOIN hospitals h USING (hospital_id) GROUP BY h.name, h.beds

-- answered
WITH v AS (SELECT hospital_id, COUNT(*) AS n FROM visits GROUP BY hospital_id) SELECT h.name, v.n / h.beds AS per_bed FROM hospitals h JOIN v ON v.hospital_id = h.hospital_id ORDER BY h.name

-- answered
SELECT h.name, COALESCE(v.n, 0) AS n FROM hospitals h LEFT JOIN (SELECT hospital_id, COUNT(*) AS n FROM visits WHERE department = 'Oncology' GROUP BY hospital_id) v USING (hospital_id)

-- answered
SELECT h.region, p.sex, d.department, COUNT(*) FROM visits d JOIN hospitals h USING (hospital_id) JOIN patients p USING (patient_id) GROUP BY h.region, p.sex, d.department

-- answered
SELECT COUNT(*) FROM visits v JOIN patients p USING (patient_id) JOIN hospitals h USING (hospital_id) WHERE p.region <> h.region

-- answered
SELECT AVG(CASE WHEN p.region = h.region THEN 1.0 ELSE 0.0 END) AS at_home FROM visits v JOIN patients p ON p.patient_id = v.patient_id JOIN hospitals h ON h.hospital_id = v.hospital_id

-- answered
SELECT p.region AS home, h.region AS treated, COUNT(*) AS n FROM visits v JOIN patients p USING (patient_id) JOIN hospitals h USING (hospital_id) GROUP BY home, treated

-- answered
SELECT CASE WHEN h.beds >= 400 THEN 'large' ELSE 'small' END AS size, AVG(v.cost) FROM visits v JOIN hospitals h USING (hospital_id) GROUP BY size

-- answered
SELECT CASE WHEN p.age < 18 THEN 'child' WHEN p.age < 65 THEN 'adult' ELSE 'senior' END AS age_group, v.department, COUNT(*) FROM visits v JOIN patients p USING (patient_id) GROUP BY ALL

-- other: values inside a place, one of 4,096, are not distinguished
SELECT MEDIAN(cost) FROM visits

-- answered
SELECT MEDIAN(length_of_stay_days) FROM visits

-- answered
SELECT department, MEDIAN(length_of_stay_days) AS med FROM visits GROUP BY department

-- answered
SELECT QUANTILE_CONT(length_of_stay_days, 0.95) FROM visits WHERE department = 'Cardiology'

-- answered
SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY length_of_stay_days) FROM visits

-- other: values inside a place, one of 4,096, are not distinguished
SELECT MAX(cost), MIN(cost) FROM visits

-- answered
SELECT MAX(length_of_stay_days) FROM visits

-- answered
SELECT department, MAX(length_of_stay_days) FROM visits GROUP BY department

-- answered
SELECT MIN(visit_date), MAX(visit_date) FROM visits

-- answered
SELECT MODE(department) FROM visits

-- answered
SELECT department FROM visits GROUP BY department ORDER BY COUNT(*) DESC LIMIT 1

-- other: a quantile is as near as a place of its tree
SELECT sex, MEDIAN(income), QUANTILE_CONT(income, 0.9) / QUANTILE_CONT(income, 0.1) AS p90_p10 FROM patients GROUP BY sex

-- answered
SELECT n, COUNT(*) AS patients FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t GROUP BY n ORDER BY n

-- answered
SELECT AVG(n), STDDEV(n), MEDIAN(n), MAX(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t

-- other: a quantile is as near as a place of its tree
SELECT MEDIAN(total) FROM (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) t

-- answered
WITH per AS (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) SELECT CASE WHEN n = 1 THEN 'once' WHEN n <= 5 THEN 'some' ELSE 'many' END AS kind, COUNT(*) AS patients, SUM(n) AS visits FROM per GROUP BY kind

-- answered
WITH per AS (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) SELECT COUNT(*) FILTER (WHERE total > 40000) * 100.0 / COUNT(*) AS pct_expensive FROM per

-- answered
SELECT AVG(total) FROM (SELECT patient_id, SUM(cost) AS total FROM visits WHERE YEAR(visit_date) = 2024 GROUP BY patient_id HAVING COUNT(*) >= 2) t

-- answered
SELECT p.sex, AVG(t.total) FROM (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) t JOIN patients p ON p.patient_id = t.patient_id GROUP BY p.sex

-- answered
SELECT p.region, AVG(COALESCE(t.n, 0)) AS visits_per_patient FROM patients p LEFT JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t USING (patient_id) GROUP BY p.region

-- answered
SELECT COUNT(*) FROM patients p LEFT JOIN visits v USING (patient_id) WHERE v.patient_id IS NULL

-- answered
SELECT COUNT(*) FROM patients ANTI JOIN visits USING (patient_id)

-- answered
SELECT COUNT(*) FROM patients WHERE patient_id NOT IN (SELECT patient_id FROM visits)

-- answered
SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.department = 'Emergency')

-- answered
SELECT sex, COUNT(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM visits WHERE cost > 15000) GROUP BY sex

-- answered
SELECT p.sex, COUNT(DISTINCT v.patient_id) * 100.0 / COUNT(DISTINCT p.patient_id) AS pct_seen FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id GROUP BY p.sex

-- answered
SELECT AVG(CASE WHEN EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id) THEN 1 ELSE 0 END) AS share FROM patients p

-- answered
SELECT sex, AVG((SELECT COUNT(*) FROM visits v WHERE v.patient_id = p.patient_id)) AS visits FROM patients p GROUP BY sex

-- answered
WITH c AS (SELECT DISTINCT patient_id FROM visits WHERE department = 'Cardiology'), o AS (SELECT DISTINCT patient_id FROM visits WHERE department = 'Oncology') SELECT COUNT(*) FROM c JOIN o USING (patient_id)

-- answered
SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE department IN ('Cardiology', 'Oncology') GROUP BY patient_id HAVING COUNT(DISTINCT department) = 2) t

-- answered
SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE department = 'Cardiology' INTERSECT SELECT patient_id FROM visits WHERE department = 'Oncology') t

-- answered
SELECT COUNT(*) FILTER (WHERE a) AS emergency, COUNT(*) FILTER (WHERE a AND b) AS then_cardiology FROM (SELECT patient_id, BOOL_OR(department = 'Emergency') AS a, BOOL_OR(department = 'Cardiology') AS b FROM visits GROUP BY patient_id) t

-- answered
SELECT COUNT(*) FILTER (WHERE e IS NOT NULL) AS step1, COUNT(*) FILTER (WHERE c > e) AS step2 FROM (SELECT patient_id, MIN(visit_date) FILTER (WHERE department = 'Emergency') AS e, MAX(visit_date) FILTER (WHERE department = 'Cardiology') AS c FROM visits GROUP BY patient_id) t

-- answered
WITH f AS (SELECT patient_id, MIN(visit_date) AS first_visit FROM visits GROUP BY patient_id) SELECT date_trunc('quarter', first_visit) AS cohort, COUNT(*) AS patients FROM f WHERE first_visit >= '2023-01-01' AND first_visit < '2025-01-01' GROUP BY cohort ORDER BY cohort

-- answered
WITH f AS (SELECT patient_id, MIN(visit_date) AS first_visit FROM visits GROUP BY patient_id) SELECT YEAR(f.first_visit) AS cohort, date_diff('month', f.first_visit, v.visit_date) AS month_no, COUNT(DISTINCT v.patient_id) AS active FROM visits v JOIN f ON f.patient_id = v.patient_id WHERE date_diff('month', f.first_visit, v.visit_date) BETWEEN 0 AND 6 GROUP BY cohort, month_no

-- answered
WITH f AS (SELECT patient_id, MIN(visit_date) AS d FROM visits GROUP BY patient_id) SELECT COUNT(DISTINCT v.patient_id) AS returned FROM f JOIN visits v USING (patient_id) WHERE v.visit_date > f.d AND v.visit_date <= f.d + INTERVAL 90 DAY

-- answered
SELECT AVG(date_diff('day', f, l)) FROM (SELECT patient_id, MIN(visit_date) AS f, MAX(visit_date) AS l FROM visits GROUP BY patient_id) t WHERE date_diff('day', f, l) BETWEEN 0 AND 1100

-- answered
SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id = b.patient_id WHERE b.visit_date > a.visit_date AND b.visit_date <= a.visit_date + INTERVAL 30 DAY

-- answered
SELECT a.department, COUNT(*) AS readmissions FROM visits a JOIN visits b ON a.patient_id = b.patient_id AND b.visit_date > a.visit_date AND date_diff('day', a.visit_date, b.visit_date) <= 30 GROUP BY a.department

-- answered
SELECT department, COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY visit_date, visit_id) AS r FROM visits) t WHERE r = 1 GROUP BY department

-- answered
SELECT AVG(gap) FROM (SELECT date_diff('day', LAG(visit_date) OVER (PARTITION BY patient_id ORDER BY visit_date, visit_id), visit_date) AS gap FROM visits) t WHERE gap BETWEEN 0 AND 1000

-- answered
SELECT COUNT(*) FROM (SELECT patient_id, visit_date - LAG(visit_date) OVER (PARTITION BY patient_id ORDER BY visit_date, visit_id) AS gap FROM visits) t WHERE gap < 30

-- answered
SELECT COUNT(*) FROM visits v WHERE visit_date = (SELECT MIN(w.visit_date) FROM visits w WHERE w.patient_id = v.patient_id)

-- answered
SELECT AVG(share) FROM (SELECT cost / SUM(cost) OVER (PARTITION BY patient_id) AS share FROM visits) t WHERE share BETWEEN 0 AND 1

-- answered
SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)

-- answered
SELECT department, COUNT(*) FROM visits v WHERE cost > (SELECT AVG(w.cost) FROM visits w WHERE w.department = v.department) GROUP BY department

-- answered
WITH m AS (SELECT department, AVG(cost) AS mean FROM visits GROUP BY department) SELECT v.department, COUNT(*) FROM visits v JOIN m ON m.department = v.department WHERE v.cost > m.mean GROUP BY v.department

-- answered
WITH top AS (SELECT department FROM visits GROUP BY department ORDER BY SUM(cost) DESC LIMIT 2) SELECT COUNT(*) FROM visits WHERE department IN (SELECT department FROM top)

-- answered
SELECT COUNT(*) FROM visits WHERE department IN (SELECT department FROM visits GROUP BY department HAVING COUNT(*) > 100)

-- answered
SELECT department, SUM(cost) AS total FROM visits WHERE department IN (SELECT department FROM visits GROUP BY 1 HAVING AVG(cost) > 10 ORDER BY COUNT(*) DESC LIMIT 3) GROUP BY department

-- answered
WITH busy AS (SELECT department, COUNT(*) AS n FROM visits GROUP BY department HAVING COUNT(*) > 100) SELECT v.department, AVG(v.cost) AS mean FROM visits v JOIN busy b ON v.department = b.department GROUP BY v.department

-- answered
WITH d AS (SELECT department, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY department) SELECT COUNT(*) FROM visits WHERE department NOT IN (SELECT department FROM d WHERE mean > 2 * n)

-- answered
SELECT COUNT(*) FROM (SELECT patient_id, cost FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY cost DESC, visit_id) = 1) t WHERE cost > (SELECT AVG(cost) FROM visits)

-- answered
SELECT COUNT(*) FROM (SELECT patient_id, SUM(CASE WHEN cost > (SELECT AVG(cost) FROM visits) THEN 1 ELSE 0 END) OVER (PARTITION BY patient_id) AS s FROM visits) t WHERE s > 2

-- answered
WITH top AS (SELECT department, SUM(cost) AS s FROM visits GROUP BY department ORDER BY s DESC LIMIT 2) SELECT SUM(s) / (SELECT SUM(cost) FROM visits) AS share_of_top FROM top

-- answered
SELECT CASE WHEN r <= 2 THEN department ELSE 'other' END AS department, SUM(n) AS n FROM (SELECT department, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) AS r FROM visits GROUP BY department) t GROUP BY 1 ORDER BY n DESC

-- answered
SELECT department, n, n - AVG(n) OVER () AS above FROM (SELECT department, COUNT(*) AS n FROM visits GROUP BY department) t WHERE n > (SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visits GROUP BY department) u)

-- answered
SELECT v.department, v.n, p.total, v.n / p.total AS share FROM (SELECT department, COUNT(DISTINCT patient_id) AS n FROM visits GROUP BY department) v CROSS JOIN (SELECT COUNT(*) AS total FROM patients) p

-- answered
SELECT COUNT(*) AS n, 'patients' AS what FROM patients UNION ALL BY NAME SELECT 'visits' AS what, COUNT(*) AS n FROM visits

-- answered
SELECT 'all' AS department, COUNT(*) AS n FROM visits UNION ALL SELECT department, COUNT(*) FROM visits GROUP BY department ORDER BY n DESC

-- answered
SELECT department FROM visits WHERE cost > 100 GROUP BY department EXCEPT SELECT 'Emergency'

-- answered
SELECT department, COALESCE(region, 'all') AS region, COUNT(*) FROM visits JOIN hospitals USING (hospital_id) GROUP BY GROUPING SETS ((department, region), (department))

-- answered
SELECT department, YEAR(visit_date) AS y, SUM(cost) FROM visits GROUP BY ROLLUP (department, YEAR(visit_date))

-- answered
SELECT department, CORR(length_of_stay_days, cost) FROM visits GROUP BY department

-- answered
SELECT REGR_SLOPE(cost, length_of_stay_days) AS per_day, REGR_INTERCEPT(cost, length_of_stay_days) AS fixed FROM visits

-- answered
SELECT FLOOR(cost / 1000) * 1000 AS bin, COUNT(*) FROM visits GROUP BY bin ORDER BY bin

-- answered
SELECT CASE WHEN cost < 500 THEN 'a: <500' WHEN cost < 5000 THEN 'b: <5000' ELSE 'c: more' END AS band, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY band ORDER BY band

-- answered
SELECT length_of_stay_days // 7 AS weeks, COUNT(*) FROM visits GROUP BY weeks ORDER BY weeks

-- answered
SELECT LEAST(length_of_stay_days, 14) AS days, COUNT(*) FROM visits GROUP BY days ORDER BY days

-- answered
SELECT SUM(LEAST(cost, 5000)) FROM visits

-- answered
SELECT SUM(cost) FILTER (WHERE department = 'Oncology') / SUM(cost) AS share FROM visits

-- answered
SELECT 1 - COUNT(*) FILTER (WHERE department = 'Emergency') / COUNT(*) AS planned FROM visits

-- answered
SELECT SUM(cost * CASE WHEN YEAR(visit_date) = 2023 THEN 1.05 ELSE 1 END) AS adjusted FROM visits

-- answered
SELECT COUNT(*) FROM visits WHERE DAYOFWEEK(visit_date) IN (0, 6)

-- answered
SELECT DAYOFWEEK(visit_date) IN (0, 6) AS weekend, AVG(cost) FROM visits GROUP BY weekend

-- answered
SELECT COUNT(*) FROM visits WHERE visit_date BETWEEN DATE '2024-01-01' AND DATE '2024-12-31' AND department NOT IN ('Emergency', 'General')

-- answered
SELECT COUNT(*) FROM visits WHERE STRFTIME(visit_date, '%m-%d') = '12-24'

-- answered
SELECT COUNT(*) FROM visits WHERE date_trunc('year', visit_date) = '2024-01-01'

-- answered
SELECT COUNT(*) FROM visits WHERE visit_date::VARCHAR LIKE '2024-02-%'

-- answered
SELECT COUNT(*) FROM visits WHERE visit_date <= DATE '2024-06-30' AND visit_date + CAST(length_of_stay_days AS INTEGER) > DATE '2024-06-30'

-- answered
SELECT SUM(length_of_stay_days) FROM visits WHERE visit_date >= DATE '2024-01-01' AND visit_date < DATE '2024-01-01' + INTERVAL '1 year'

-- answered
SELECT p.birth_year // 10 * 10 AS decade, AVG(v.length_of_stay_days) FROM patients p JOIN visits v ON v.patient_id = p.patient_id GROUP BY decade ORDER BY decade

-- answered
SELECT smoker, AVG(n) FROM (SELECT p.patient_id, p.smoker, COUNT(v.visit_id) AS n FROM patients p LEFT JOIN visits v ON p.patient_id = v.patient_id GROUP BY p.patient_id, p.smoker) t GROUP BY smoker

-- answered
SELECT smoker, department, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (PARTITION BY smoker) AS pct FROM visits JOIN patients USING (patient_id) GROUP BY smoker, department

-- answered
SELECT region, AVG(income) AS mean, AVG(income) / AVG(AVG(income)) OVER () AS relative FROM patients GROUP BY region

-- answered
SELECT region, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY region ROWS UNBOUNDED PRECEDING) AS running FROM patients GROUP BY region

-- answered
SELECT region, SUM(COUNT(*)) OVER (ORDER BY region) AS up_to FROM patients GROUP BY region ORDER BY region

-- answered
SELECT region, hospitals, patients, patients / hospitals AS per_hospital FROM (SELECT region, COUNT(*) AS hospitals FROM hospitals GROUP BY region) h JOIN (SELECT region, COUNT(*) AS patients FROM patients GROUP BY region) p USING (region)

-- answered
SELECT region, SUM(beds) AS beds, COUNT(*) AS hospitals FROM hospitals GROUP BY region ORDER BY beds DESC

-- answered
SELECT name FROM hospitals WHERE beds = (SELECT MAX(beds) FROM hospitals)

-- not yet: unsupported_function
SELECT department, LIST(n ORDER BY y) AS by_year FROM (SELECT department, YEAR(visit_date) AS y, COUNT(*) AS n FROM visits GROUP BY ALL) t GROUP BY department

-- answered
SELECT STRING_AGG(department, ' > ' ORDER BY n DESC) FROM (SELECT department, COUNT(*) AS n FROM visits GROUP BY department) t

-- answered
SELECT ARG_MAX(department, n) AS busiest, MAX(n) FROM (SELECT department, COUNT(*) AS n FROM visits GROUP BY department) t

-- answered
SELECT COUNT(DISTINCT hospital_id) FROM visits WHERE department = 'Oncology'

-- answered
SELECT COUNT(DISTINCT visit_date) FROM visits

-- answered
SELECT patient_class, COUNT(*) FROM (SELECT patient_id, CASE WHEN SUM(length_of_stay_days) > 100 THEN 'long' ELSE 'short' END AS patient_class FROM visits GROUP BY patient_id) t GROUP BY patient_class

-- answered
SELECT COUNT(*) FROM (SELECT patient_id, hospital_id FROM visits GROUP BY patient_id, hospital_id HAVING COUNT(*) > 1) t

-- answered
SELECT AVG(h) FROM (SELECT patient_id, COUNT(DISTINCT hospital_id) AS h FROM visits GROUP BY patient_id) t

-- answered
SELECT SUM(s) / COUNT(*) FROM (SELECT patient_id, SUM(cost) AS s FROM visits GROUP BY 1) t

-- answered
WITH v AS (SELECT v.*, p.sex, h.region FROM visits v JOIN patients p USING (patient_id) JOIN hospitals h USING (hospital_id)) SELECT sex, region, COUNT(*), AVG(cost) FROM v GROUP BY sex, region

-- answered
WITH v AS (SELECT department, cost FROM visits WHERE YEAR(visit_date) = 2023 UNION ALL SELECT department, cost FROM visits WHERE YEAR(visit_date) = 2024) SELECT department, SUM(cost) FROM v GROUP BY department

-- answered
SELECT COUNT(*) AS visits, COUNT(DISTINCT v.patient_id) AS patients, SUM(v.cost) AS cost, AVG(v.cost) AS mean, STDDEV(v.cost) AS spread, AVG(p.age) AS age FROM visits v JOIN patients p USING (patient_id)

-- answered
SELECT department, COUNT(*) AS n, SUM(cost) AS total, AVG(cost) AS mean, AVG(length_of_stay_days) AS stay, COUNT(DISTINCT patient_id) AS patients FROM visits WHERE visit_date >= '2024-01-01' GROUP BY department ORDER BY total DESC

-- answered
SELECT ENTROPY(department) FROM visits

-- answered
SELECT department, AVG(cost) - (SELECT AVG(cost) FROM visits) AS difference FROM visits GROUP BY department

-- answered
SELECT department, AVG(cost) FROM visits GROUP BY department HAVING COUNT(*) >= 20 AND AVG(cost) > 1000 ORDER BY department

-- answered
SELECT SUM(cost) AS total FROM visits WHERE patient_id IN (SELECT patient_id FROM patients WHERE smoker AND age > 50)

-- answered
SELECT department, SUM(cost) AS total FROM visits WHERE EXISTS (SELECT * FROM patients p WHERE p.patient_id = visits.patient_id AND p.sex = 'female') GROUP BY department

-- answered
SELECT DISTINCT ON (y) y, department, n FROM (SELECT YEAR(visit_date) AS y, department, COUNT(*) AS n FROM visits GROUP BY ALL) t ORDER BY y, n DESC

-- answered
SELECT department, MIN(visit_date), QUANTILE_DISC(visit_date, 0.5) FROM visits GROUP BY department

-- answered
SELECT date_diff('day', MIN(visit_date), MAX(visit_date)) FROM visits

-- answered
SELECT h.name, COUNT(*) FROM patients p JOIN hospitals h ON p.region = h.region GROUP BY h.name

-- answered
SELECT h.region, COUNT(*), AVG(p.age) FROM patients p JOIN hospitals h ON p.age BETWEEN h.beds / 10 AND h.beds / 5 GROUP BY h.region

-- answered
SELECT COUNT(*) FROM patients p LEFT JOIN hospitals h ON p.region = h.region AND h.beds > 400

-- answered
SELECT COUNT(*) FROM patients p LEFT JOIN hospitals h ON p.region = h.region AND h.beds > 400 WHERE h.name IS NULL

-- answered
SELECT COUNT(*) FROM patients p LEFT JOIN hospitals h ON p.age > h.beds / 10 WHERE h.name IS NULL

-- answered
SELECT COALESCE(h.name, 'none') AS n, COUNT(*) FROM patients p LEFT JOIN hospitals h ON p.region = h.region AND h.beds > 400 GROUP BY n

-- answered
SELECT COUNT(*) FROM patients p, hospitals h WHERE p.region = h.region AND h.beds > 200

-- answered
SELECT COUNT(*) FROM hospitals h JOIN patients p ON p.region = h.region

-- answered
SELECT COUNT(*) FROM hospitals h, patients p WHERE p.age < h.beds / 10 AND p.age >= h.beds / 20

-- answered
SELECT h.name, COUNT(p.patient_id) FROM patients p RIGHT JOIN hospitals h ON p.region = h.region GROUP BY h.name

-- answered
SELECT h.name, COUNT(p.patient_id) FROM patients p RIGHT JOIN hospitals h ON p.region = h.region AND p.age > 60 GROUP BY h.name

-- answered
SELECT h.name, COUNT(v.visit_id), SUM(v.cost) FROM patients p JOIN visits v USING (patient_id) RIGHT JOIN hospitals h ON v.hospital_id = h.hospital_id AND p.age > 50 AND v.cost > h.beds * 10 GROUP BY h.name

-- answered
SELECT h.region, COUNT(*) FROM visits v JOIN patients p ON v.patient_id = p.patient_id JOIN hospitals h ON h.region = p.region AND h.hospital_id = v.hospital_id GROUP BY h.region

-- answered
SELECT COUNT(*) FROM visits v JOIN patients p ON v.patient_id = p.patient_id JOIN hospitals h ON h.region = p.region AND h.beds > v.length_of_stay_days * 10

-- answered
SELECT n, COUNT(*) FROM (SELECT p.patient_id, COUNT(*) AS n FROM patients p JOIN hospitals h ON p.region = h.region GROUP BY p.patient_id) t GROUP BY n

-- answered
SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM hospitals h WHERE h.region = p.region AND h.beds > 500)

-- answered
SELECT COUNT(*) FROM patients p SEMI JOIN hospitals h ON h.region = p.region AND h.beds > 500

-- answered
SELECT COUNT(*) FROM patients p WHERE p.region IN (SELECT region FROM hospitals WHERE beds > 500)

-- answered
SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM hospitals h WHERE p.age BETWEEN h.beds / 10 AND h.beds / 9)

-- answered
SELECT COUNT(*) FROM patients p WHERE p.region NOT IN (SELECT region FROM hospitals WHERE beds > 500)

-- answered
SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM hospitals h WHERE h.region = p.region AND h.beds / 10 > p.age)

-- answered
SELECT COUNT(*) FROM visits v WHERE v.cost > (SELECT AVG(w.cost) FROM visits w WHERE w.department = v.department)

-- answered
SELECT department, COUNT(*) FROM visits v WHERE v.cost > (SELECT 1.2 * AVG(w.cost) FROM visits w WHERE w.department = v.department AND w.length_of_stay_days > 2) GROUP BY department

-- answered
SELECT AVG(p.income - (SELECT AVG(q.income) FROM patients q WHERE q.region = p.region AND q.sex = p.sex)) AS gap FROM patients p WHERE p.smoker

-- answered
SELECT COUNT(*) FROM patients p WHERE (SELECT COUNT(*) FROM patients q WHERE q.region = p.region) > 35

-- answered
SELECT COUNT(*) FROM patients p WHERE p.income > (SELECT MAX(q.income) / 2 FROM patients q WHERE q.region = p.region)

-- answered
SELECT COUNT(*) FROM patients p WHERE (SELECT COUNT(*) FROM patients q WHERE q.region = p.region AND q.region <> 'Coast') < 1

-- answered
SELECT COUNT(*) FROM (SELECT patient_id FROM patients INTERSECT ALL SELECT patient_id FROM visits) t

-- answered
SELECT COUNT(*) FROM (SELECT patient_id FROM visits EXCEPT ALL SELECT patient_id FROM patients) t

-- answered
SELECT department, COUNT(*) FROM (SELECT patient_id, department FROM visits WHERE cost > 3000 INTERSECT ALL SELECT patient_id, department FROM visits WHERE length_of_stay_days > 20) t GROUP BY department

-- answered
SELECT department, COUNT(*) FROM (SELECT patient_id, department FROM visits EXCEPT ALL SELECT patient_id, department FROM visits WHERE cost > 9000) t GROUP BY department

-- answered
WITH a AS (SELECT patient_id AS p, department FROM visits), b AS (SELECT patient_id, department AS d FROM visits WHERE cost < 5000) SELECT COUNT(*) FROM (SELECT * FROM a EXCEPT ALL SELECT * FROM b) t

-- answered
SELECT COUNT(*) FROM (SELECT patient_id, department FROM visits EXCEPT ALL (SELECT patient_id, department FROM visits WHERE cost > 9000 INTERSECT ALL SELECT patient_id, department FROM visits WHERE length_of_stay_days > 9)) t

-- answered
SELECT s.m, COUNT(v.visit_id) AS n FROM generate_series(DATE '2022-10-01', DATE '2025-03-01', INTERVAL 1 MONTH) AS s(m) LEFT JOIN visits v ON date_trunc('month', v.visit_date) = s.m GROUP BY s.m ORDER BY s.m

-- answered
SELECT s.age, COUNT(p.patient_id) AS n FROM generate_series(90, 110) AS s(age) LEFT JOIN patients p ON p.age = s.age GROUP BY s.age

-- answered
SELECT b.name, COUNT(p.patient_id) FROM (VALUES ('child', 0, 18), ('adult', 18, 65), ('old', 65, 90), ('ancient', 101, 120)) b(name, low, high) LEFT JOIN patients p ON p.age >= b.low AND p.age < b.high GROUP BY b.name

-- answered
SELECT s.m, d.department, COUNT(v.visit_id) AS n FROM generate_series(DATE '2023-01-01', DATE '2024-12-01', INTERVAL 1 MONTH) AS s(m) CROSS JOIN (VALUES ('Cardiology'), ('Oncology')) d(department) LEFT JOIN visits v ON date_trunc('month', v.visit_date) = s.m AND v.department = d.department GROUP BY s.m, d.department

-- answered
SELECT s.m::DATE AS month, COUNT(v.visit_id) AS n, AVG(v.cost) AS a FROM generate_series(DATE '2023-01-01', DATE '2024-12-01', INTERVAL 1 MONTH) AS s(m) LEFT JOIN visits v ON v.visit_date >= s.m AND v.visit_date < s.m + INTERVAL 1 MONTH GROUP BY month ORDER BY month

-- answered
SELECT s.m, COUNT(v.visit_id) AS n FROM visits v RIGHT JOIN generate_series(DATE '2022-10-01', DATE '2025-03-01', INTERVAL 1 MONTH) AS s(m) ON date_trunc('month', v.visit_date) = s.m GROUP BY s.m ORDER BY s.m

-- answered
SELECT h.name, COUNT(v.visit_id) FROM hospitals h FULL JOIN visits v ON v.hospital_id = h.hospital_id GROUP BY h.name

-- answered
SELECT s.m, COUNT(v.visit_id) AS n FROM generate_series(DATE '2023-02-01', DATE '2023-06-01', INTERVAL 1 MONTH) AS s(m) FULL JOIN visits v ON date_trunc('month', v.visit_date) = s.m GROUP BY s.m ORDER BY s.m

-- answered
WITH months AS (SELECT m FROM generate_series(DATE '2023-01-01', DATE '2024-12-01', INTERVAL 1 MONTH) AS t(m)) SELECT m, COUNT(v.visit_id) AS n, COALESCE(SUM(v.cost), 0) AS c FROM months LEFT JOIN visits v ON date_trunc('month', v.visit_date) = months.m GROUP BY m ORDER BY m

-- answered
WITH months AS (SELECT CAST(unnest(generate_series(DATE '2023-01-01', DATE '2023-12-01', INTERVAL 1 MONTH)) AS DATE) AS m) SELECT m, COUNT(v.visit_id) AS n FROM months LEFT JOIN visits v ON date_trunc('month', v.visit_date) = m GROUP BY m

-- answered
SELECT h.region, COUNT(v.visit_id) AS n FROM hospitals h LEFT JOIN visits v ON v.hospital_id = h.hospital_id AND h.beds > 400 GROUP BY h.region

-- answered
SELECT hospital_id, COUNT(v.visit_id) AS n FROM hospitals h LEFT JOIN visits v USING (hospital_id) GROUP BY hospital_id

-- answered
SELECT s.m, p.sex, COUNT(v.visit_id) AS n FROM generate_series(DATE '2024-11-01', DATE '2025-02-01', INTERVAL 1 MONTH) AS s(m) CROSS JOIN (VALUES ('female'), ('male')) p(sex) LEFT JOIN (SELECT v.visit_id, v.visit_date, q.sex FROM visits v JOIN patients q USING (patient_id)) v ON date_trunc('month', v.visit_date) = s.m AND v.sex = p.sex GROUP BY ALL

-- answered
SELECT s.m, COUNT(p.patient_id) AS n FROM generate_series(DATE '2024-11-01', DATE '2025-02-01', INTERVAL 1 MONTH) AS s(m) LEFT JOIN visits v ON date_trunc('month', v.visit_date) = s.m LEFT JOIN patients p ON p.patient_id = v.patient_id AND p.sex = 'female' GROUP BY s.m

-- answered
SELECT s.m, COUNT(v.visit_id) FILTER (WHERE v.department = 'Oncology') AS n, MEDIAN(v.cost) FROM generate_series(DATE '2024-11-01', DATE '2025-02-01', INTERVAL 1 MONTH) AS s(m) LEFT JOIN visits v ON date_trunc('month', v.visit_date) = s.m WHERE s.m > DATE '2024-11-01' GROUP BY s.m HAVING COUNT(v.visit_id) < 1

-- answered
SELECT k.d, COUNT(v.visit_id) AS n, SUM(v.cost) FROM visits v FULL JOIN (VALUES ('Cardiology'), ('Nowhere'), (NULL)) k(d) ON v.department = k.d GROUP BY 1

-- answered
SELECT b.name, COUNT(p.patient_id), AVG(p.income) FROM patients p FULL JOIN (VALUES ('young', 0, 30), ('mid', 25, 60), ('none', 200, 300)) b(name, low, high) ON p.age >= b.low AND p.age < b.high GROUP BY b.name

-- answered
SELECT COUNT(v.visit_id), COUNT(DISTINCT v.patient_id) FROM generate_series(DATE '2024-11-01', DATE '2025-02-01', INTERVAL 1 MONTH) AS s(m) LEFT JOIN visits v ON date_trunc('month', v.visit_date) = s.m

-- answered
SELECT s.m, SUM(CASE WHEN v.department = 'Oncology' THEN 1 ELSE 0 END) AS n FROM generate_series(DATE '2024-11-01', DATE '2025-02-01', INTERVAL 1 MONTH) AS s(m) LEFT JOIN visits v ON date_trunc('month', v.visit_date) = s.m GROUP BY s.m

-- answered
SELECT h.region, COUNT(v.visit_id) FROM (SELECT * FROM visits WHERE cost > 100) v FULL JOIN hospitals h ON v.hospital_id = h.hospital_id GROUP BY h.region

-- answered
SELECT s.x, COUNT(CASE WHEN p.sex = 'male' THEN 1 END), COUNT_IF(p.smoker), SUM(CASE WHEN p.smoker THEN p.age ELSE 0 END) FROM range(95, 105) s(x) LEFT JOIN patients p ON p.age = s.x GROUP BY s.x

-- answered
SELECT age, COUNT(p.patient_id) FROM range(95, 105) s(age) LEFT JOIN patients p USING (age) GROUP BY age

-- answered
SELECT COUNT(*) FROM patients WHERE (region, age) IN (SELECT region, beds % 100 FROM hospitals)

-- answered
SELECT COUNT(*) FROM patients WHERE (region, sex) NOT IN (VALUES ('North', 'female'), ('Coast', 'male'))

-- answered
SELECT COUNT(*) FROM patients WHERE (region, age) NOT IN (SELECT region, beds % 100 FROM hospitals)

-- answered
SELECT COUNT(*) FROM visits WHERE (hospital_id, department) IN (SELECT hospital_id, CASE WHEN beds > 400 THEN 'Cardiology' ELSE 'Oncology' END FROM hospitals WHERE region = 'North')

-- answered
SELECT COUNT(*) FROM visits v WHERE (v.hospital_id, v.department) IN (SELECT * FROM (VALUES (1, 'Oncology'), (2, 'General')) t(a, b))

-- answered
WITH picks(h, d) AS (VALUES (1, 'Oncology'), (2, 'General')) SELECT COUNT(*) FROM visits WHERE (hospital_id, department) IN (SELECT h, d FROM picks)

-- answered
SELECT COUNT(*) FROM visits WHERE department IN (VALUES ('Oncology'), ('General'))

-- answered
WITH picks AS (SELECT * FROM (VALUES ('Oncology'), ('General')) t(d)) SELECT COUNT(*) FROM visits WHERE department NOT IN (SELECT d FROM picks)

-- answered
SELECT SUM(CASE WHEN (region, sex) IN (VALUES ('North', 'female'), ('Coast', 'male')) THEN 1 ELSE 0 END) AS n, COUNT(*) FROM patients

-- answered
SELECT COUNT(*) FROM visits WHERE (hospital_id, department, length_of_stay_days % 3) IN (SELECT * FROM (VALUES (1, 'Oncology', 1), (2, 'General', 0), (1, 'General', 1)) t(a, b, c))

-- answered
SELECT COUNT(*) FROM visits WHERE (hospital_id, department) IN (VALUES (1, 'Oncology'), (2, NULL))

-- answered
SELECT name, AVG(value) FROM patients UNPIVOT (value FOR name IN (age, birth_year)) GROUP BY name

-- answered
SELECT name, COUNT(*), AVG(value) FROM (UNPIVOT patients ON age, birth_year INTO NAME name VALUE value) GROUP BY name

-- answered
SELECT * FROM (SELECT department, cost, YEAR(visit_date) AS y FROM visits) PIVOT (SUM(cost) FOR y IN (2023, 2024) GROUP BY department)

-- answered
PIVOT visits ON department IN ('Cardiology', 'Oncology') USING COUNT(*) GROUP BY hospital_id

-- answered
PIVOT (SELECT department, YEAR(visit_date) AS y, cost FROM visits) ON y IN (2023, 2024) USING AVG(cost) AS c GROUP BY department

-- answered
SELECT * FROM (PIVOT patients ON sex IN ('female', 'male') USING COUNT(*), AVG(age) GROUP BY region)

-- answered
WITH p AS (PIVOT patients ON sex IN ('female', 'male') USING COUNT(*) GROUP BY region) SELECT region, female FROM p

-- answered
SELECT region, f_n, m_n, f_n + m_n AS total FROM patients PIVOT (COUNT(*) AS n, AVG(age) AS a FOR sex IN ('female' AS f, 'male' AS m) GROUP BY region) ORDER BY region

-- answered
PIVOT (SELECT region, sex FROM patients WHERE age > 30) ON sex IN ('female', 'male') USING COUNT(*)

-- answered
WITH v AS (SELECT department, hospital_id, cost FROM visits WHERE cost > 50) PIVOT v ON department IN ('General', 'Oncology') USING SUM(cost) GROUP BY hospital_id

-- answered
SELECT region, n, AVG(v) FROM patients UNPIVOT (v FOR n IN (age AS 'years', income)) AS u GROUP BY region, n

-- answered
SELECT n, COUNT(*) FROM patients UNPIVOT INCLUDE NULLS (v FOR n IN (age, income)) GROUP BY n

-- answered
SELECT COUNT(DISTINCT patient_id) FROM patients UNPIVOT (v FOR n IN (age, income)) WHERE v > 90

-- answered
PIVOT patients ON smoker IN (true, false), sex IN ('female') USING COUNT(*) GROUP BY region

-- answered
SELECT AVG(m) FROM (SELECT patient_id, MEDIAN(cost) AS m FROM visits GROUP BY patient_id)

-- answered
SELECT AVG(m) FROM (SELECT patient_id, QUANTILE_CONT(cost, 0.25) AS m FROM visits GROUP BY patient_id)

-- answered
SELECT AVG(m) FROM (SELECT patient_id, QUANTILE_DISC(cost, 0.75) AS m FROM visits GROUP BY patient_id)

-- answered
SELECT AVG(m) FROM (SELECT patient_id, MAD(length_of_stay_days) AS m FROM visits GROUP BY patient_id)

-- answered
SELECT AVG(m) FROM (SELECT patient_id, MEDIAN(length_of_stay_days) AS m FROM visits GROUP BY patient_id) WHERE m > 3

-- answered
SELECT AVG(m) FROM (SELECT patient_id, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost) AS m FROM visits GROUP BY patient_id)

-- answered
SELECT COUNT(*) FROM (SELECT patient_id, QUANTILE_DISC(visit_date, 0.5) AS m FROM visits GROUP BY patient_id) WHERE m >= DATE '2024-01-01'

-- answered
SELECT COUNT(*) FROM patients p WHERE p.income < (SELECT MEDIAN(v.cost) * 10 FROM visits v WHERE v.patient_id = p.patient_id)

-- answered
SELECT AVG(m) FROM (SELECT patient_id, MAD(cost) AS m, QUANTILE(length_of_stay_days, 0.9) AS q FROM visits GROUP BY patient_id HAVING MEDIAN(cost) > 5000) WHERE q > 20

-- answered
SELECT AVG(m) FROM (SELECT patient_id, PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY cost DESC) AS m FROM visits GROUP BY patient_id)

-- answered
SELECT COUNT(*) FROM (SELECT patient_id AS p, hospital_id % 3, MODE() WITHIN GROUP (ORDER BY department) AS m FROM visits GROUP BY ALL) WHERE m IS NOT NULL

-- other: of values that a patient has equally often DuckDB takes any, and here it is the least
SELECT m, COUNT(*) FROM (SELECT patient_id, MODE(department) AS m FROM visits GROUP BY patient_id) GROUP BY m

-- other: of values that a patient has equally often DuckDB takes any, and here it is the least
SELECT AVG(m) FROM (SELECT patient_id, YEAR(visit_date) AS y, MODE(length_of_stay_days // 30) AS m FROM visits WHERE cost > 100 GROUP BY 1, 2) WHERE y = 2024

-- answered
SELECT SUM(s) FROM (SELECT patient_id, SUM(length_of_stay_days) OVER (PARTITION BY patient_id ORDER BY visit_date RANGE BETWEEN INTERVAL 30 DAY PRECEDING AND CURRENT ROW) AS s FROM visits)

-- answered
SELECT SUM(s) FROM (SELECT patient_id, COUNT(*) OVER (PARTITION BY patient_id ORDER BY visit_date RANGE BETWEEN INTERVAL 30 DAY PRECEDING AND INTERVAL 1 DAY PRECEDING) AS s FROM visits) WHERE s > 0

-- answered
SELECT AVG(s) FROM (SELECT patient_id, SUM(length_of_stay_days) OVER (PARTITION BY patient_id ORDER BY visit_date GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM visits)

-- answered
SELECT AVG(s) FROM (SELECT patient_id, SUM(length_of_stay_days) OVER (PARTITION BY patient_id ORDER BY visit_date ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) AS s FROM visits)

-- answered
SELECT AVG(s) FROM (SELECT patient_id, LAG(length_of_stay_days IGNORE NULLS) OVER (PARTITION BY patient_id ORDER BY visit_id) AS s FROM visits)

-- answered
SELECT AVG(s) FROM (SELECT patient_id, LAST_VALUE(CASE WHEN cost > 5000 THEN length_of_stay_days END IGNORE NULLS) OVER (PARTITION BY patient_id ORDER BY visit_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s FROM visits)

-- answered
SELECT AVG(s) FROM (SELECT patient_id, COUNT(*) OVER (PARTITION BY patient_id ORDER BY length_of_stay_days RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING) AS s FROM visits)

-- other: values inside a place, one of 4,096, are not distinguished
SELECT department, MAD(cost) FROM visits GROUP BY department

-- answered
PIVOT (SELECT region, sex FROM patients) ON sex USING COUNT(*)

-- answered
PIVOT patients ON sex USING COUNT(*) GROUP BY region

-- answered
SELECT m, COUNT(*), AVG(n) AS a FROM (SELECT patient_id, MODE() WITHIN GROUP (ORDER BY department) AS m, COUNT(*) AS n FROM visits GROUP BY patient_id) t GROUP BY m

-- answered
SELECT AVG(m), AVG(k), AVG(s) FROM (SELECT patient_id, YEAR(visit_date) AS y, MODE() WITHIN GROUP (ORDER BY length_of_stay_days // 10) FILTER (WHERE cost > 3000) AS m, MEDIAN(cost) AS k, MAX(cost) - MIN(cost) AS s FROM visits GROUP BY ALL HAVING COUNT(*) > 1) t

-- answered
SELECT h, COUNT(*) FROM (SELECT patient_id, MODE() WITHIN GROUP (ORDER BY department) AS m, MODE() WITHIN GROUP (ORDER BY hospital_id % 3) AS h FROM visits GROUP BY patient_id) t WHERE m < 'G' GROUP BY h

-- other: of values that are there as often DuckDB takes any, and here it is the least
SELECT m, AVG(n) AS a FROM (SELECT patient_id, MODE(department) AS m, COUNT(*) AS n FROM visits GROUP BY patient_id HAVING COUNT(*) > 2) t GROUP BY m

-- answered
SELECT hospital_id, COUNT(v.visit_id) AS n FROM visits v FULL JOIN hospitals h USING (hospital_id) GROUP BY hospital_id

-- answered
SELECT Hospital_Id AS x, COUNT(visit_id) AS n FROM hospitals h FULL OUTER JOIN visits v USING (HOSPITAL_ID) WHERE hospital_id < 5 AND beds > 100 GROUP BY x ORDER BY n DESC

-- answered
SELECT COALESCE(h.hospital_id, v.hospital_id) % 4 AS k, h.region, COUNT(v.visit_id) AS n, SUM(v.cost) FROM visits v FULL JOIN hospitals h ON v.hospital_id = h.hospital_id GROUP BY ALL

-- answered
SELECT hospital_id, COUNT(v.visit_id) AS n FROM (SELECT * FROM visits WHERE hospital_id < 4) v FULL JOIN hospitals h USING (hospital_id) GROUP BY hospital_id

-- answered
SELECT sex, hospital_id, COUNT(v.visit_id) AS n FROM visits v JOIN patients p USING (patient_id) FULL JOIN hospitals h USING (hospital_id) WHERE sex = 'male' GROUP BY 1, 2

-- answered
SELECT COUNT(*), COUNT(v.cost), SUM(v.cost) FROM patients p LEFT JOIN (SELECT patient_id, cost, department AS d FROM visits WHERE department <> 'Oncology') v ON v.patient_id = p.patient_id AND v.cost > 10000 AND v.d <> 'General'

-- answered
SELECT COUNT(*), COUNT(v.n), SUM(v.n) FROM patients p LEFT JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) v ON v.patient_id = p.patient_id AND v.n > 4

-- answered
SELECT COUNT(*), COUNT(v.n) FROM patients p LEFT JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id HAVING SUM(cost) > 1000) v ON v.patient_id = p.patient_id AND v.n BETWEEN 2 AND 4 WHERE p.age > 20

-- answered
SELECT COUNT(*), COUNT(v.cost) FROM patients p LEFT JOIN (SELECT patient_id, cost, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY cost) AS k FROM visits) v ON v.patient_id = p.patient_id AND v.k <= 2 AND v.cost > 5000

-- answered
SELECT COUNT(*), COUNT(v.n) FROM patients p LEFT JOIN (SELECT patient_id, department, COUNT(*) AS n FROM visits GROUP BY ALL) v ON v.patient_id = p.patient_id AND v.department = 'Oncology'

-- answered
SELECT COUNT(*), COUNT(u.cost) FROM patients p LEFT JOIN (SELECT patient_id, cost FROM visits UNION ALL SELECT patient_id, cost / 2 FROM visits) u ON u.patient_id = p.patient_id AND u.cost > 5000

-- answered
SELECT COUNT(*), COUNT(v.cost) FROM patients p LEFT JOIN visits v ON p.patient_id = v.patient_id AND p.age > 50

-- answered
SELECT p.sex, COUNT(v.visit_id) AS n FROM visits v RIGHT JOIN patients p ON v.patient_id = p.patient_id AND v.cost > 500 AND p.smoker GROUP BY p.sex

-- answered
SELECT a.department, COUNT(b.cost) FROM visits a LEFT JOIN visits b ON a.patient_id = b.patient_id AND b.department = 'Emergency' AND b.visit_date BETWEEN a.visit_date AND a.visit_date + 30 GROUP BY a.department

-- answered
SELECT p.sex, COUNT(*), COUNT(DISTINCT p.patient_id) FROM visits v LEFT JOIN patients p ON p.patient_id = v.patient_id AND v.department = 'General' GROUP BY p.sex

-- answered
SELECT COUNT(DISTINCT p.patient_id) FROM visits v LEFT JOIN (SELECT patient_id, age FROM patients) p ON p.patient_id = v.patient_id AND p.age > 50

-- answered
SELECT h.region, COUNT(*) FROM visits v LEFT JOIN hospitals h ON h.hospital_id = v.hospital_id AND h.beds > v.cost / 10 GROUP BY h.region

-- answered
SELECT n, COUNT(*) FROM (SELECT p.patient_id, COUNT(v.visit_id) AS n FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id AND p.age > 30 AND v.cost > 100 GROUP BY p.patient_id) t GROUP BY n

-- answered
SELECT COUNT(v.cost) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id AND p.age > (SELECT AVG(age) FROM patients)

-- answered
SELECT department, AVG(visit_date), COUNT(*) FROM visits GROUP BY department

-- answered
SELECT department, AVG(visit_date) > DATE '2023-12-31' AS late FROM visits GROUP BY department

-- answered
SELECT AVG(last_visit) FROM (SELECT patient_id, MAX(visit_date) AS last_visit FROM visits GROUP BY patient_id) t

-- answered
SELECT AVG(CASE WHEN cost > 100 THEN visit_date END), CAST(AVG(visit_date) AS DATE) FROM visits

-- answered
SELECT department, AVG(visit_date) FROM visits GROUP BY ROLLUP (department)

-- answered
SELECT department, COUNT(*) FROM visits GROUP BY department HAVING AVG(visit_date) < '2024-01-05'

-- answered
SELECT department, AVG(cost), QUANTILE_DISC(length_of_stay_days, [0.1, 0.9])[1] AS q FROM visits GROUP BY ROLLUP (department)

-- answered
SELECT COUNT(*) FROM visits v JOIN (SELECT hospital_id, beds FROM hospitals WHERE beds > 100) h USING (hospital_id)

-- answered
SELECT h.big, COUNT(*) FROM visits v JOIN (SELECT hospital_id, beds > 300 AS big FROM hospitals) h USING (hospital_id) GROUP BY h.big

-- answered
SELECT h.region, COUNT(*), AVG(v.cost) FROM visits v JOIN (SELECT hospital_id, region FROM hospitals) h USING (hospital_id) GROUP BY h.region

-- answered
WITH big AS (SELECT hospital_id FROM hospitals WHERE beds > 300) SELECT COUNT(*) FROM visits WHERE hospital_id IN (SELECT hospital_id FROM big)

-- answered
WITH big AS (SELECT hospital_id, UPPER(region) AS place FROM hospitals WHERE beds > 300) SELECT b.place, SUM(v.cost) FROM visits v, big b WHERE v.hospital_id = b.hospital_id GROUP BY b.place

-- answered
SELECT COUNT(h.beds), COUNT(*) FROM visits v LEFT JOIN (SELECT hospital_id, beds FROM hospitals WHERE beds > 100) h ON h.hospital_id = v.hospital_id

-- answered
SELECT department, MAX(DISTINCT length_of_stay_days) - MIN(DISTINCT length_of_stay_days) AS span FROM visits GROUP BY department

-- answered
SELECT COUNT(*) FROM visits WHERE patient_id = ANY (SELECT patient_id FROM patients WHERE smoker) AND cost > 10

-- answered
SELECT COUNT(*) FROM visits WHERE department <> ALL (SELECT department FROM visits GROUP BY department HAVING COUNT(*) > 160)

-- answered
SELECT COUNT(*) FROM visits WHERE hospital_id = ANY (SELECT hospital_id FROM hospitals WHERE beds > 300)

-- answered
SELECT COUNT(*) FROM visits WHERE length_of_stay_days * 10 > (SELECT AVG(beds) FROM hospitals)

-- answered
SELECT department, COUNT(*) FILTER (WHERE cost > (SELECT MIN(beds) FROM hospitals)) FROM visits GROUP BY department

-- answered
SELECT COUNT(*) FROM visits WHERE cost BETWEEN (SELECT MIN(beds) FROM hospitals) AND (SELECT MAX(beds) FROM hospitals)

-- answered
SELECT COUNT(*) FROM visits WHERE hospital_id IN (1, (SELECT MAX(hospital_id) FROM hospitals))

-- answered
SELECT AVG(CASE WHEN cost > (SELECT MEDIAN(beds) FROM hospitals) THEN 1 ELSE 0 END) FROM visits

-- answered
SELECT COUNT(*) FROM visits WHERE cost > (SELECT beds FROM hospitals WHERE hospital_id = 3)

-- answered
SELECT SUM(cost / (SELECT SUM(beds) FROM hospitals)) FROM visits

-- answered
SELECT COUNT(*), COUNT_IF(cost > COALESCE((SELECT AVG(beds) FROM hospitals WHERE beds > 10000), 500)) FROM visits WHERE cost > (SELECT STDDEV(beds) FROM hospitals)

-- answered
SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) + (SELECT MIN(beds) FROM hospitals) FROM visits)

-- answered
SELECT h.n, COUNT(*) FROM patients p JOIN (SELECT region, COUNT(*) AS n FROM hospitals GROUP BY region) h USING (region) GROUP BY h.n

-- answered
SELECT COUNT(*) FROM patients p LEFT JOIN (SELECT region, MAX(beds) AS most FROM hospitals GROUP BY region) h ON h.region = p.region WHERE h.most IS NULL OR h.most > 300

-- answered
WITH sizes AS (SELECT region, SUM(beds) AS beds, COUNT(*) AS n FROM hospitals GROUP BY region), big AS (SELECT region, beds / n AS mean FROM sizes WHERE n > 1) SELECT b.region, COUNT(*) FROM patients p JOIN big b ON b.region = p.region GROUP BY b.region

-- answered
SELECT COUNT(*) FROM visits WHERE hospital_id IN (SELECT hospital_id FROM hospitals ORDER BY beds DESC, hospital_id LIMIT 3)

-- answered
SELECT COUNT(*) FROM patients WHERE region IN (SELECT region FROM hospitals GROUP BY region HAVING COUNT(*) > 2)

-- answered
SELECT COUNT(*) FROM visits WHERE hospital_id NOT IN (SELECT h.hospital_id FROM hospitals h JOIN (SELECT region, MAX(beds) AS b FROM hospitals GROUP BY region) t ON t.region = h.region AND t.b = h.beds)

-- answered
SELECT t.region, COUNT(*), AVG(v.cost) FROM visits v JOIN (SELECT hospital_id, region FROM hospitals WHERE beds > (SELECT AVG(beds) FROM hospitals)) t USING (hospital_id) GROUP BY t.region

-- answered
SELECT COUNT(*) FROM visits v JOIN (SELECT hospital_id FROM hospitals WHERE region = 'North' UNION SELECT hospital_id FROM hospitals WHERE beds > 300) h USING (hospital_id)

-- answered
SELECT COUNT(*) FROM patients WHERE EXISTS (SELECT MAX(beds) FROM hospitals WHERE beds > 5000)

-- answered
SELECT COUNT(*) FROM visits WHERE cost > ANY (SELECT beds FROM hospitals) AND NOT (cost < ALL (SELECT NULLIF(beds, 100) FROM hospitals))

-- answered
SELECT COUNT(*), COUNT_IF(cost < ANY (SELECT beds FROM hospitals WHERE beds > 10000)) FROM visits WHERE cost <= ALL (SELECT beds FROM hospitals WHERE beds > 10000)

-- answered
SELECT COUNT(*) FROM visits WHERE cost > ALL (SELECT AVG(cost) FROM visits GROUP BY department)

-- answered
WITH r AS (SELECT department, AVG(cost) AS a FROM visits GROUP BY department) SELECT department, COUNT(*) FROM visits WHERE cost > ANY (SELECT a FROM r WHERE department <> 'General') GROUP BY department

-- answered
SELECT COUNT(*) FROM visits v WHERE v.cost >= ALL (SELECT w.cost FROM visits w WHERE w.patient_id = v.patient_id)

-- answered
SELECT department, COUNT(*) FROM visits GROUP BY department HAVING COUNT(*) >= ALL (SELECT COUNT(*) FROM visits GROUP BY department)

-- answered
SELECT COUNT(*) FROM visits v WHERE v.cost > (SELECT h.beds FROM hospitals h WHERE h.hospital_id = v.hospital_id)

-- answered
SELECT COUNT(*) FROM patients p WHERE p.age > 10 * (SELECT COUNT(*) FROM hospitals h WHERE h.region = p.region AND h.beds > 400)

-- answered
SELECT (SELECT region FROM hospitals h WHERE h.hospital_id = v.hospital_id) AS place, COUNT(*) FROM visits v GROUP BY place

-- answered
SELECT COUNT(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.department = 'General' AND (w.cost > v.cost * 2 OR (w.department = v.department AND w.visit_date > v.visit_date)))

-- answered
WITH t AS (SELECT region, MIN(beds) AS least FROM hospitals GROUP BY region) SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM t WHERE t.region = p.region AND p.age > t.least)

-- answered
SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM (VALUES (20, 30), (60, 70)) AS b(low, high) WHERE p.age >= b.low AND p.age < b.high)

-- answered
SELECT COUNT(*) FROM visits WHERE department == ANY(ARRAY['Oncology'])

-- answered
SELECT h.region, COUNT(*) FROM visits v JOIN (SELECT hospital_id, region, RANK() OVER (ORDER BY beds DESC) AS r FROM hospitals) h USING (hospital_id) WHERE h.r <= 3 GROUP BY h.region

-- answered
SELECT COUNT(*) FROM visits v JOIN (SELECT hospital_id, region FROM hospitals QUALIFY ROW_NUMBER() OVER (PARTITION BY region ORDER BY beds DESC, hospital_id) = 1) h USING (hospital_id)

-- answered
SELECT COUNT(*) FROM visits WHERE (hospital_id, department) NOT IN (VALUES (1, 'Oncology'), (2, NULL))

-- answered
SELECT COUNT(*) FROM visits v FULL JOIN patients p ON v.patient_id = p.patient_id AND v.cost > p.age * 10

-- answered
SELECT COUNT(*), COUNT(v.cost), COUNT(w.cost), SUM(v.cost) FROM visits v FULL JOIN visits w ON v.patient_id = w.patient_id AND (v.cost > w.cost OR v.visit_date > w.visit_date)

-- answered
SELECT COUNT(*), COUNT(DISTINCT patient_id) FROM visits v FULL JOIN visits w USING (patient_id, department)

-- answered
SELECT COUNT(*), COUNT(v.cost) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id AND p.age + v.cost > 300

-- answered
SELECT COUNT(*), COUNT(v.cost) FROM visits p LEFT JOIN visits v ON v.patient_id = p.patient_id AND (p.visit_date > v.visit_date OR p.cost > v.cost)

-- answered
SELECT p.sex, COUNT(*), COUNT(v.cost) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id AND NOT (p.age > 50 AND v.cost > 400 OR v.department = 'Oncology') GROUP BY p.sex

-- answered
SELECT COUNT(*), SUM(x), COUNT(x) FROM patients p LEFT JOIN (SELECT patient_id, COALESCE(cost, 0) / 2 AS x FROM visits WHERE cost > 100) v ON p.patient_id = v.patient_id

-- answered
SELECT COUNT(*), SUM(x), COUNT(x) FROM patients p LEFT JOIN (SELECT v.patient_id, v.cost + w.age AS x FROM visits v JOIN patients w USING (patient_id) WHERE v.cost > w.age) v ON p.patient_id = v.patient_id AND v.x > p.age

-- answered
SELECT COUNT(*), COUNT(b) FROM visits v LEFT JOIN (SELECT hospital_id, COALESCE(beds, 0) * 2 AS b FROM hospitals WHERE beds > 300) h ON h.hospital_id = v.hospital_id

-- answered
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.visit_date > v.visit_date AND w.cost > v.cost)

-- answered
SELECT COUNT(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.visit_date > v.visit_date AND w.cost > v.cost AND w.department <> v.department)

-- answered
SELECT COUNT(*) FROM visits v WHERE (SELECT COUNT(*) FROM visits w WHERE w.patient_id = v.patient_id AND w.visit_date <= v.visit_date) > 3

-- answered
SELECT department, SUM((SELECT COUNT(*) FROM visits w WHERE w.patient_id = v.patient_id AND w.cost < v.cost)) FROM visits v GROUP BY department

-- answered
SELECT COUNT(*) FROM visits v WHERE cost > (SELECT AVG(w.cost) FROM visits w WHERE w.patient_id = v.patient_id AND w.visit_date < v.visit_date)

-- answered
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.cost BETWEEN v.cost * 1.1 AND v.cost * 2)

-- answered
SELECT COUNT(*) FROM visits v WHERE v.visit_date NOT IN (SELECT w.visit_date FROM visits w WHERE w.patient_id = v.patient_id AND w.cost > v.cost AND w.department < v.department)

-- answered
SELECT COUNT(*) FROM visits v WHERE v.visit_date + 3 IN (SELECT w.visit_date FROM visits w WHERE w.patient_id = v.patient_id)

-- answered
SELECT COUNT(*), COUNT(v.cost) FROM visits v FULL JOIN patients p ON v.patient_id = p.patient_id AND NOT (v.cost > p.age * 10 OR p.age > 60)

-- answered
SELECT COUNT(*), COUNT(x.y) FROM patients p LEFT JOIN (SELECT patient_id, 1 AS y FROM visits WHERE cost > 400) x USING (patient_id)

-- answered
SELECT COALESCE(x.n, 0) AS visits, COUNT(*) FROM patients p LEFT JOIN (SELECT patient_id, COUNT(*) + 1 AS n FROM visits GROUP BY patient_id) x USING (patient_id) GROUP BY visits

-- answered
SELECT COUNT(*), AVG(x.t) FROM patients p LEFT JOIN (SELECT a.patient_id, a.cost - b.cost AS t FROM visits a JOIN visits b ON a.patient_id = b.patient_id AND b.visit_date < a.visit_date) x ON x.patient_id = p.patient_id

-- answered
SELECT COUNT(*), COUNT(v.c) FROM patients p LEFT JOIN (SELECT patient_id, cost * 2 AS c FROM visits) v ON v.patient_id = p.patient_id AND v.c > 10000

-- answered
SELECT COUNT(*), COUNT(v.cost) FROM patients p LEFT JOIN (SELECT patient_id, cost FROM visits) v ON v.patient_id = p.patient_id AND (p.age > 50 OR v.cost > 9)

-- answered
SELECT COUNT(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.visit_date >= v.visit_date AND w.cost <> v.cost)

-- answered
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.department = v.department AND w.visit_date < v.visit_date AND w.cost <= v.cost * 0.5)

-- answered
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.visit_date <> v.visit_date AND w.cost > v.cost + 10)

-- answered
SELECT COUNT(*) FROM visits v JOIN patients p USING (patient_id) WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.visit_date <= v.visit_date AND w.cost < p.age * 3 AND w.department = 'General')

-- answered
SELECT p.sex, COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = p.patient_id AND w.length_of_stay_days > p.age AND w.hospital_id < p.age) GROUP BY p.sex

-- answered
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.cost > v.cost AND w.cost < v.cost * 1.2)
