-- refused: raw_rows
SELECT * FROM visits WHERE patient_id = 12

-- refused: group_by_unit
SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id ORDER BY n DESC LIMIT 10

-- refused: group_by_unit
SELECT patient_id, SUM(cost) FROM visits GROUP BY patient_id HAVING SUM(cost) > 50000

-- refused: raw_rows
SELECT visit_id, cost FROM visits ORDER BY cost DESC LIMIT 3

-- refused: group_by_unit
SELECT visit_id, COUNT(*) FROM visits GROUP BY visit_id

-- refused: group_by_unit
SELECT p.patient_id, p.age, COUNT(v.visit_id) FROM patients p LEFT JOIN visits v USING (patient_id) GROUP BY p.patient_id, p.age

-- refused: group_by_unit
SELECT department, patient_id, COUNT(*) FROM visits GROUP BY department, patient_id

-- refused: raw_rows
SELECT patient_id FROM visits WHERE department = 'Oncology' INTERSECT SELECT patient_id FROM patients WHERE age < 18

-- refused: group_by_unit
SELECT DISTINCT patient_id FROM visits WHERE hospital_id = 3

-- refused: unsupported_function
SELECT STRING_AGG(CAST(patient_id AS VARCHAR), ',') FROM visits WHERE department = 'Oncology'

-- refused: column_without_bounds
SELECT MIN(patient_id) FROM visits WHERE cost > 19000

-- refused: unsupported_function
SELECT department, LIST(cost) FROM visits GROUP BY department

-- refused: unsupported_function
SELECT department, FIRST(cost ORDER BY visit_date) FROM visits GROUP BY department

-- refused: unsupported_function
SELECT department, ARG_MAX(patient_id, cost) FROM visits GROUP BY department

-- refused: join_not_on_key
SELECT a.patient_id, b.patient_id FROM visits a JOIN visits b ON a.hospital_id = b.hospital_id AND a.visit_date = b.visit_date

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits a JOIN visits b ON a.hospital_id = b.hospital_id AND a.visit_date = b.visit_date AND a.patient_id <> b.patient_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM patients a JOIN patients b ON a.age = b.age AND a.region = b.region

-- refused: join_not_on_key
SELECT COUNT(*) FROM patients p JOIN visits v ON p.age = v.length_of_stay_days

-- refused: raw_rows
SELECT h.name, p.age FROM visits v JOIN hospitals h USING (hospital_id) JOIN patients p USING (patient_id)

-- refused: private_row_limit
SELECT visit_date, SUM(cost) OVER (ORDER BY visit_date) FROM visits

-- refused: private_row_limit
SELECT COUNT(*) FROM (SELECT visit_date - LAG(visit_date) OVER (ORDER BY visit_date) AS gap FROM visits) t WHERE gap > 3

-- refused: private_row_limit
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY hospital_id ORDER BY cost DESC) AS r, cost FROM visits) t WHERE r <= 10

-- refused: private_row_limit
SELECT AVG(cost) FROM (SELECT cost, NTILE(10) OVER (ORDER BY cost) AS d FROM visits) t WHERE d = 10

-- refused: private_row_limit
SELECT AVG(cost) FROM (SELECT * FROM visits ORDER BY cost DESC LIMIT 100) t

-- refused: unsupported_type
SELECT AVG(cost) FROM (SELECT DISTINCT cost FROM visits LIMIT 50) t

-- refused: unsupported_sql
SELECT COUNT(*) FROM (SELECT patient_id, QUANTILE_DISC( , 0.5) AS m FROM visits GROUP BY patient_id) WHERE m >= DATE '2024-01-01'

-- refused: unsupported_sql
SELECT AVG(cost) FROM visits TABLESAMPLE 1 PERCENT

-- refused: correlated_subquery
SELECT COUNT(*) FROM patients p WHERE income > (SELECT income FROM patients WHERE patient_id = 7)

-- refused: correlated_subquery
SELECT COUNT(*) FROM patients p WHERE (SELECT COUNT(*) FROM patients q WHERE q.income > p.income) < 10

-- refused: correlated_subquery
SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM patients q WHERE q.birth_year = p.birth_year AND q.patient_id <> p.patient_id)

-- refused: correlated_subquery
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.hospital_id = v.hospital_id AND w.visit_date = v.visit_date AND w.patient_id <> v.patient_id)

-- refused: correlated_subquery
SELECT COUNT(*) FROM visits WHERE cost IN (SELECT cost FROM visits WHERE patient_id = 7)

-- refused: volatile_function
SELECT COUNT(*) FROM visits WHERE uuid() IS NOT NULL

-- refused: volatile_function
SELECT uuid() AS id, COUNT(*) FROM visits GROUP BY department

-- refused: volatile_function
SELECT COUNT(*) FROM visits WHERE getvariable('x') = 1

-- refused: unknown_table
SELECT COUNT(*) FROM visits v JOIN hospital h USING (hospital_id)

-- refused: unknown_table
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.department = vv.department AND w.visit_date < v.visit_date AND w.cost <= v.cost)

-- refused: unknown_column
SELECT AVG(price) FROM visits

-- refused: unknown_column
SELECT AVG(v.age) FROM visits v JOIN patients p USING (patient_id)

-- refused: ambiguous_column
SELECT patient_id FROM patients p JOIN visits v ON p.patient_id = v.patient_id

-- refused: ambiguous_column
SELECT region, COUNT(*) FROM visits v JOIN patients p ON v.patient_id = p.patient_id JOIN hospitals h ON h.hospital_id = v.hospital_id GROUP BY region

-- refused: unsupported_type
SELECT SUM(department) FROM visits

-- refused: unsupported_type
SELECT SUM(visit_date) FROM visits

-- refused: unsupported_type
SELECT department + 1, COUNT(*) FROM visits GROUP BY 1

-- refused: unsupported_type
SELECT SUM(cost) FROM visits GROUP BY cost

-- refused: unsupported_type
SELECT cost, COUNT(*) FROM visits GROUP BY cost

-- refused: raw_rows
SELECT department, cost FROM visits GROUP BY department

-- refused: raw_rows
SELECT department, COUNT(*) FROM visits GROUP BY department HAVING cost > 5

-- refused: raw_rows
SELECT COUNT(*) FROM visits ORDER BY cost

-- refused: unsupported_function
SELECT JSON_OBJECT('n', COUNT(*)) FROM visits

-- refused: unsupported_function
SELECT TO_CHAR(visit_date, 'YYYY-MM') AS m, COUNT(*) FROM visits GROUP BY m

-- refused: unsupported_function
SELECT DATE_FORMAT(visit_date, '%Y-%m') AS m, COUNT(*) FROM visits GROUP BY m

-- refused: unsupported_function
SELECT COUNT(*) FROM visits WHERE visit_date > GETDATE() - 30

-- refused: unknown_column
SELECT COUNT(*) FROM visits WHERE visit_date >= SYSDATE

-- refused: parse_error
SELECT DECODE(department, 'Oncology', 1, 0) AS d, COUNT(*) FROM visits GROUP BY d

-- refused: parse_error
SELECT COUNT(*) FROM visits MINUS SELECT COUNT(*) FROM patients

-- refused: unsupported_sql
SELECT department, COUNT(*) FROM visits GROUP BY department WITH ROLLUP

-- refused: unsupported_sql
SELECT @n := COUNT(*) FROM visits

-- refused: unknown_column
SELECT COUNT(*) FROM visits WHERE department = "Oncology"

-- refused: unsupported_type
SELECT MEDIAN(department) FROM visits

-- refused: unsupported_type
SELECT CORR(department, cost) FROM visits

-- refused: unsupported_sql
SELECT QUANTILE_CONT(cost, 1.5) FROM visits

-- refused: unsupported_function
SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(department, '(?=O)')

-- refused: column_without_bounds
SELECT SUM(POWER(cost, 400)) FROM visits

-- refused: not_a_query
INSERT INTO visits SELECT * FROM visits

-- refused: not_a_query
DROP TABLE visits

-- refused: not_a_query
ATTACH 'other.duckdb' AS other

-- refused: not_a_query
SET memory_limit = '100GB'

-- refused: not_a_query
PRAGMA table_info('visits')

-- refused: not_a_query
CALL pragma_version()

-- refused: not_a_query
BEGIN TRANSACTION

-- refused: many_statements
SELECT COUNT(*) FROM visits; DROP TABLE visits

-- refused: raw_rows
(SELECT * FROM visits)

-- refused: raw_rows
TABLE visits

-- refused: raw_rows
FROM visits

-- refused: unknown_column
SELECT v FROM visits v

-- refused: group_by_unit
SELECT COUNT(*) AS n, patient_id FROM visits GROUP BY ALL

-- refused: group_by_unit
SELECT SUM(cost) FROM visits WHERE patient_id = 7 GROUP BY patient_id

-- refused: join_multiplies
SELECT COUNT(*) FROM patients a JOIN hospitals h ON a.region = h.region JOIN patients b ON b.region = h.region

-- refused: join_not_on_key
SELECT COUNT(*) FROM patients a JOIN hospitals h ON a.age > h.beds JOIN patients b ON b.age > h.beds

-- refused: join_not_on_key
SELECT COUNT(*) FROM patients a, patients b, hospitals h WHERE a.region = h.region AND b.region = h.region

-- refused: unsupported_sql
SELECT COUNT(*) FROM (SELECT department FROM visits EXCEPT ALL SELECT department FROM visits WHERE cost > 9000) t

-- refused: unsupported_sql
SELECT s.x, COUNT(*) FROM range(95, 105) s(x) LEFT JOIN patients p ON p.age = s.x GROUP BY s.x

-- refused: unsupported_sql
SELECT COUNT(*) FROM visits WHERE (hospital_id, department) IN (SELECT hospital_id FROM hospitals)

-- refused: raw_rows
UNPIVOT patients ON age, birth_year INTO NAME n VALUE v

-- refused: group_by_unit
PIVOT patients ON sex IN ('female', 'male') USING COUNT(*)

-- refused: unsupported_function
SELECT department, MAD(cost) FROM visits GROUP BY ROLLUP (department)

-- refused: unsupported_type
SELECT AVG(m) FROM (SELECT patient_id, MEDIAN(visit_date) AS m FROM visits GROUP BY patient_id)

-- refused: unsupported_function
SELECT m, COUNT(*) FROM (SELECT patient_id, MODE(DISTINCT department) AS m, COUNT(*) AS n FROM visits GROUP BY patient_id) GROUP BY m

-- refused: unsupported_function
SELECT AVG(s) FROM (SELECT MEDIAN(cost) OVER (PARTITION BY patient_id) AS s FROM visits)

-- refused: unsupported_function
SELECT COUNT(*) FROM (SELECT patient_id, MODE(department) OVER (PARTITION BY patient_id) AS m, COUNT(*) OVER (PARTITION BY patient_id) AS n FROM visits) t WHERE m = 'Oncology'

-- refused: unsupported_sql
SELECT hospital_id, COUNT(*) AS n FROM visits v FULL JOIN hospitals h USING (hospital_id) GROUP BY hospital_id

-- refused: unsupported_sql
SELECT v.hospital_id, COUNT(v.visit_id) AS n FROM visits v FULL JOIN hospitals h USING (hospital_id) GROUP BY v.hospital_id

-- refused: unsupported_sql
SELECT hospital_id, COUNT(v.visit_id) AS n FROM visits v FULL JOIN hospitals h USING (hospital_id) WHERE v.hospital_id IS NULL GROUP BY hospital_id

-- refused: unsupported_sql
SELECT COUNT(*) FROM visits WHERE cost > (SELECT beds FROM hospitals)

-- refused: unsupported_sql
SELECT COUNT(*) FROM visits WHERE hospital_id IN (SELECT hospital_id FROM hospitals LIMIT 2)

-- refused: unsupported_function
SELECT COUNT(*) FROM visits WHERE cost > (SELECT FIRST(beds) FROM hospitals)

-- refused: unsupported_sql
SELECT COUNT(*) FROM patients p WHERE p.age >= ALL (SELECT q.age FROM patients q WHERE q.region = p.region)
