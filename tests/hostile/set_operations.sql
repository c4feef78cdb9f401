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
SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT hours FROM people)

-- refused: raw_rows
SELECT COUNT(*) FROM (SELECT person_id FROM people EXCEPT SELECT person_id FROM visits)

-- refused: raw_rows
WITH a AS (SELECT age FROM people UNION ALL SELECT age FROM people) SELECT COUNT(*) FROM a

-- refused: unsupported_sql
SELECT sex, COUNT(DISTINCT age) FROM people GROUP BY ROLLUP (sex)

-- refused: unsupported_sql
SELECT sex, SUM(DISTINCT age) FROM people GROUP BY GROUPING SETS ((sex), ())
