-- refused: unsupported_sql
SELECT COUNT(*) FROM people UNION BY NAME SELECT COUNT(*) FROM visits

-- refused: unsupported_sql
SELECT COUNT(*) FROM people UNION ALL BY NAME SELECT COUNT(*) FROM visits

-- refused: unsupported_sql
SELECT COUNT(*), 1 FROM people UNION ALL SELECT COUNT(*) FROM visits

-- refused: unsupported_sql
SELECT COUNT(*) FROM people EXCEPT SELECT COUNT(*), 2 FROM visits

-- refused: unsupported_sql
WITH RECURSIVE a AS (SELECT 1) SELECT * FROM a

-- refused: unsupported_sql
WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a) SELECT n FROM a

-- refused: unsupported_sql
WITH RECURSIVE a AS (SELECT COUNT(*) AS n FROM people UNION ALL SELECT n + 1 FROM a WHERE n < 10) SELECT n FROM a

-- refused: unsupported_sql
WITH RECURSIVE a(n) USING KEY (n) AS (SELECT 1) SELECT n FROM a

-- refused: unsupported_sql
WITH RECURSIVE people AS (SELECT COUNT(*) AS n FROM people) SELECT n FROM people

-- refused: raw_rows
(SELECT age FROM people) UNION (SELECT 1)

-- refused: raw_rows
SELECT COUNT(*) FROM people UNION ALL FROM people

-- refused: raw_rows
SELECT age FROM (SELECT age FROM people UNION ALL SELECT hours FROM people)

-- refused: raw_rows
SELECT * FROM (SELECT person_id FROM people UNION SELECT person_id FROM visits)

-- refused: group_by_unit
SELECT u, COUNT(*) FROM (SELECT person_id AS u FROM people UNION ALL SELECT person_id FROM visits) GROUP BY u

-- refused: group_by_unit
SELECT u, COUNT(*) FROM (SELECT person_id AS u FROM people UNION ALL SELECT visit_id FROM visits) GROUP BY u

-- refused: correlated_subquery
SELECT COUNT(*) FROM (SELECT age FROM people UNION SELECT hours FROM people)

-- refused: correlated_subquery
SELECT COUNT(*) FROM (SELECT age FROM people INTERSECT SELECT hours FROM people)

-- refused: correlated_subquery
SELECT COUNT(*) FROM (SELECT age FROM people EXCEPT SELECT hours FROM people)

-- refused: correlated_subquery
SELECT COUNT(*) FROM (SELECT person_id FROM people EXCEPT SELECT visit_id FROM visits)

-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM visits UNION ALL SELECT visit_id FROM visits)

-- refused: private_row_limit
SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT hours FROM people ORDER BY 1 LIMIT 3)

-- refused: private_row_limit
SELECT COUNT(*) FROM ((SELECT age FROM people ORDER BY age LIMIT 1) UNION ALL SELECT hours FROM people)

-- refused: unsupported_sql
SELECT COUNT(*) FROM (SELECT age FROM people EXCEPT ALL SELECT hours FROM people)

-- refused: unsupported_sql
SELECT COUNT(*) FROM (SELECT sex FROM people INTERSECT ALL SELECT ward FROM visits)

-- refused: unsupported_sql
SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT age, sex FROM people)

-- refused: unsupported_sql
SELECT COUNT(*) FROM (SELECT sex FROM people UNION ALL SELECT region FROM hospitals)

-- refused: unsupported_type
SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT sex FROM people)

-- refused: unsupported_type
SELECT COUNT(*) FROM (SELECT born FROM people UNION ALL SELECT '2020-01-01' FROM people)

-- refused: unsupported_type
SELECT COUNT(*) FROM (SELECT smoker FROM people UNION ALL SELECT age FROM people)

-- refused: ambiguous_column
SELECT COUNT(*) FROM (SELECT age, hours AS age FROM people UNION ALL BY NAME SELECT age FROM people)

-- refused: raw_rows
SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT COUNT(*) FROM people)

-- refused: column_without_bounds
SELECT SUM(x) FROM (SELECT age AS x FROM people UNION ALL SELECT hospital_id FROM visits)

-- refused: too_large
SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people UNION ALL SELECT age FROM people)
