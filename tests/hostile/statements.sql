-- refused: not_a_query
INSERT INTO people VALUES (1)

-- refused: not_a_query
INSERT INTO people SELECT * FROM people

-- refused: not_a_query
INSERT OR REPLACE INTO people VALUES (1)

-- refused: not_a_query
UPDATE people SET age = 1

-- refused: not_a_query
UPDATE people SET age = 1 WHERE person_id = 7

-- refused: not_a_query
DELETE FROM people

-- refused: not_a_query
DELETE FROM people WHERE person_id = 7 RETURNING income

-- refused: not_a_query
TRUNCATE people

-- refused: not_a_query
TRUNCATE TABLE people

-- refused: not_a_query
DROP TABLE people

-- refused: not_a_query
DROP TABLE IF EXISTS people CASCADE

-- refused: not_a_query
DROP SCHEMA main CASCADE

-- refused: not_a_query
ALTER TABLE people ADD COLUMN x INTEGER

-- refused: not_a_query
ALTER TABLE people DROP COLUMN income

-- refused: not_a_query
ALTER TABLE people RENAME TO persons

-- refused: not_a_query
CREATE TABLE x AS SELECT * FROM people

-- refused: not_a_query
CREATE OR REPLACE TABLE people AS SELECT 1

-- refused: not_a_query
CREATE TEMP TABLE x AS SELECT income FROM people

-- refused: not_a_query
CREATE TEMP VIEW people AS SELECT 1 AS person_id

-- refused: not_a_query
CREATE VIEW v AS SELECT COUNT(*) FROM people

-- refused: not_a_query
CREATE TEMP MACRO sum(x) AS 7

-- refused: not_a_query
CREATE MACRO f(a) AS TABLE SELECT * FROM people

-- refused: not_a_query
CREATE FUNCTION f(a) AS a + 1

-- refused: not_a_query
CREATE SEQUENCE s

-- refused: not_a_query
CREATE TYPE t AS ENUM ('a')

-- refused: not_a_query
CREATE INDEX i ON people (age)

-- refused: not_a_query
CREATE SCHEMA x

-- refused: not_a_query
CREATE SECRET s (TYPE S3)

-- refused: not_a_query
ATTACH 'x.duckdb' AS y

-- refused: not_a_query
ATTACH ':memory:' AS y

-- refused: not_a_query
ATTACH 'x.duckdb' AS y (READ_ONLY)

-- refused: not_a_query
DETACH clinic

-- refused: not_a_query
USE clinic

-- refused: not_a_query
COPY people TO 'x.csv'

-- refused: not_a_query
COPY people FROM 'x.csv'

-- refused: not_a_query
COPY (SELECT * FROM people) TO 'x.parquet'

-- refused: not_a_query
SET threads = 1

-- refused: not_a_query
SET VARIABLE x = (SELECT MAX(income) FROM people)

-- refused: not_a_query
SET search_path = 'main'

-- refused: not_a_query
SET GLOBAL memory_limit = '1GB'

-- refused: not_a_query
RESET threads

-- refused: not_a_query
PRAGMA database_list

-- refused: not_a_query
PRAGMA table_info('people')

-- refused: not_a_query
PRAGMA enable_profiling

-- refused: not_a_query
BEGIN

-- refused: not_a_query
BEGIN TRANSACTION

-- refused: not_a_query
COMMIT

-- refused: not_a_query
ROLLBACK

-- refused: not_a_query
SUMMARIZE people

-- refused: not_a_query
DESCRIBE people

-- refused: not_a_query
DESCRIBE SELECT * FROM people

-- refused: not_a_query
SHOW TABLES

-- refused: not_a_query
SHOW ALL TABLES

-- refused: not_a_query
EXPLAIN SELECT COUNT(*) FROM people

-- refused: not_a_query
EXPLAIN ANALYZE SELECT * FROM people WHERE person_id = 7

-- refused: not_a_query
ANALYZE people

-- refused: not_a_query
PREPARE q AS SELECT * FROM people

-- refused: not_a_query
EXECUTE q

-- refused: not_a_query
DEALLOCATE q

-- refused: not_a_query
CALL pragma_version()

-- refused: not_a_query
LOAD httpfs

-- refused: not_a_query
INSTALL httpfs

-- refused: not_a_query
VACUUM

-- refused: not_a_query
COMMENT ON TABLE people IS 'x'

-- refused: not_a_query
GRANT SELECT ON people TO x

-- refused: not_a_query
REVOKE SELECT ON people FROM x

-- refused: not_a_query
MERGE INTO people USING visits ON people.person_id = visits.person_id WHEN MATCHED THEN DELETE

-- refused: not_a_query
KILL 1

-- refused: not_a_query
VALUES (1)

-- refused: not_a_query
VALUES (1), (2)

-- refused: group_by_unit
PIVOT people ON sex IN ('male') USING SUM(age)

-- refused: raw_rows
UNPIVOT people ON age, hours INTO NAME a VALUE b


-- refused: not_a_query
CHECKPOINT

-- refused: not_a_query
FORCE CHECKPOINT

-- refused: not_a_query
EXPORT DATABASE 'd'

-- refused: not_a_query
IMPORT DATABASE 'd'

-- refused: not_a_query
FORCE INSTALL httpfs

-- refused: parse_error
WITH x AS (COPY people TO 'z.csv') SELECT 1

-- refused: unsupported_sql
WITH x AS (DROP TABLE people) SELECT 1

-- refused: not_a_query
SELECT COUNT(*) FROM (SHOW TABLES)

-- refused: not_a_query
SELECT COUNT(*) FROM (DESCRIBE people)

-- refused: not_a_query
SELECT COUNT(*) FROM (SUMMARIZE people)

-- refused: not_a_query
SELECT MIN(max) FROM (SUMMARIZE people)

-- refused: parse_error
SELECT COUNT(*) FROM (DELETE FROM people RETURNING age)

-- refused: parse_error
SELECT COUNT(*) FROM people INTO OUTFILE 'x'

-- refused: parse_error
SELEC COUNT(*) FROM people

-- refused: parse_error
SELECT COUNT(* FROM people

-- refused: parse_error
SELECT COUNT(*)) FROM people

-- refused: parse_error
SELECT COUNT(*) FROM

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE

-- refused: parse_error
SELECT COUNT(*) FROM people GROUP BY

-- refused: parse_error
SELECT COUNT(*) FROM people ORDER BY

-- refused: parse_error
SELECT COUNT(*) FROM people HAVING

-- refused: parse_error
SELECT COUNT(*) FROM people LIMIT

-- refused: parse_error
SELECT COUNT(*) people FROM people people people

-- refused: parse_error
SELECT FROM WHERE

-- refused: parse_error
SELECT , COUNT(*) FROM people

-- refused: parse_error
SELECT COUNT(*),, COUNT(*) FROM people

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age IN ()

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age IN (1,,2)

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age IN

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age BETWEEN 1

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age BETWEEN 1 5

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE CASE WHEN smoker 1 ELSE 2 END = 1

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE CASE END

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age >

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE > 3

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age ==== 3

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE CAST(age AS)

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE CAST(age)

-- refused: parse_error
JOIN people USING (person_id)

-- refused: parse_error
SELECT COUNT(*) JOIN people ON true

-- refused: parse_error
SELECT COUNT(*), SUM(age) > visits AS v JOIN people AS p USING (person_id)

-- refused: parse_error
SELECT COUNT(*) FROM people, JOIN visits USING (person_id)

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age > 1 SELECT 1

-- refused: parse_error
SELECT COUNT(*) FROM people LIMIT 2 WHERE age > 1

-- refused: parse_error
SELECT COUNT(*) FROM people LIMIT 5, 3

-- refused: parse_error
SELECT COUNT(*) FROM people ORDER BY 1 ASC DESC

-- refused: parse_error
SELECT COUNT(*) FROM people*

-- refused: parse_error
WITH a(n) (SELECT COUNT(*) FROM people) SELECT n FROM a

-- refused: parse_error
WITH a(n n) AS (SELECT COUNT(*) FROM people) SELECT n FROM a

-- refused: parse_error
WITH AS (SELECT 1) SELECT 1

-- refused: many_statements
SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM people

-- refused: many_statements
SELECT 1; SELECT 2; SELECT 3

-- refused: many_statements
SELECT COUNT(*) FROM people; DROP TABLE people

-- refused: many_statements
SELECT COUNT(*) FROM people; DELETE FROM people; --

-- refused: many_statements
SELECT COUNT(*) FROM people;/* */SELECT 1

-- refused: many_statements
BEGIN; SELECT COUNT(*) FROM people; COMMIT

-- refused: many_statements
SET VARIABLE x = 1; SELECT COUNT(*) FROM people

-- refused: many_statements
ATTACH 'x' AS y; SELECT COUNT(*) FROM y.people

-- refused: unsupported_sql
SELECT COUNT(*) INTO x FROM people

-- refused: unsupported_sql
SELECT COUNT(*) FROM people FOR UPDATE

-- refused: unsupported_sql
SELECT COUNT(*) FROM people FOR SHARE

-- refused: unsupported_sql
SELECT COUNT(*) FROM people FETCH NEXT 5 ROWS WITH TIES

-- refused: unsupported_sql
SELECT COUNT(*) FROM people LIMIT 10%

-- refused: unsupported_sql
SELECT COUNT(*) FROM people LIMIT 10 PERCENT

-- refused: unsupported_sql
SELECT COUNT(*) FROM people LIMIT ALL

-- refused: unsupported_sql
SELECT COUNT(*) FROM people LIMIT NULL

-- refused: unsupported_sql
SELECT COUNT(*) FROM people LIMIT -1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people LIMIT 1.5

-- refused: unsupported_sql
SELECT COUNT(*) FROM people LIMIT 'a'

-- refused: unsupported_sql
SELECT COUNT(*) FROM people LIMIT (SELECT 1)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people OFFSET -1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people OFFSET (SELECT COUNT(*) FROM people)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people CONNECT BY PRIOR age = hours

-- refused: unsupported_sql
SELECT COUNT(*) FROM people LATERAL VIEW explode(x) t

-- refused: unsupported_sql
SELECT COUNT(*) FROM people AT (VERSION => 1)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people AT (TIMESTAMP => now())

-- refused: unsupported_sql
SELECT COUNT(*) FROM people FOR SYSTEM_TIME AS OF '2020-01-01'

-- refused: unsupported_sql
SELECT COUNT(*) FROM ONLY people

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WITH (NOLOCK)

-- refused: unsupported_sql
SELECT

-- refused: unsupported_sql
SELECT AS STRUCT COUNT(*) AS n FROM people

-- refused: not_a_query
WITH x AS (INSERT INTO people VALUES (1) RETURNING age) SELECT COUNT(*) FROM x

-- refused: unsupported_sql
WITH a AS (SELECT COUNT(*) FROM people) SELECT 1

-- refused: unsupported_sql
WITH a AS (SELECT COUNT(*) AS n FROM people), b AS (SELECT 1 AS m) SELECT n FROM a
