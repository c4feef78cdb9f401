-- refused: raw_rows
SELECT * FROM people

-- refused: raw_rows
SELECT * FROM people LIMIT 10

-- refused: raw_rows
SELECT person_id, income FROM people ORDER BY income DESC LIMIT 5

-- refused: raw_rows
SELECT age, sex, income FROM people WHERE state_code = 'NY'

-- refused: raw_rows
SELECT income FROM people WHERE person_id = 17

-- refused: raw_rows
SELECT occupation FROM people WHERE age = 95 AND sex = 'female'

-- refused: group_by_unit
SELECT person_id, COUNT(*) FROM people GROUP BY person_id

-- refused: group_by_unit
SELECT person_id, SUM(income) FROM people GROUP BY ROLLUP (person_id)

-- refused: group_by_unit
SELECT DISTINCT person_id FROM people

-- refused: group_by_unit
SELECT person_id + 1 AS k, AVG(income) FROM people GROUP BY k

-- refused: raw_rows
SELECT p.*, s.state FROM people p JOIN states s USING (state_code)

-- refused: raw_rows
SELECT * EXCLUDE (income) FROM people

-- refused: unsupported_function
SELECT COLUMNS(*) FROM people

-- refused: volatile_function
SELECT COUNT(*), random() FROM people

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE random() < 0.1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people USING SAMPLE 10%

-- refused: private_row_limit
SELECT AVG(income) FROM (SELECT income FROM people ORDER BY income DESC LIMIT 10) t

-- refused: private_row_limit
SELECT AVG(income) FROM (SELECT income FROM people LIMIT 100) t

-- refused: correlated_subquery
SELECT COUNT(*) FROM people p WHERE income > (SELECT AVG(q.income) FROM people q WHERE q.state_code = p.state_code AND q.person_id <> p.person_id)

-- refused: join_not_on_key
SELECT COUNT(*) FROM people a JOIN people b ON a.age = b.age

-- refused: join_not_on_key
SELECT COUNT(*) FROM people a, people b WHERE a.income > b.income

-- refused: join_not_on_key
SELECT COUNT(*) FROM people a JOIN people b ON a.born = b.born AND a.sex = b.sex

-- refused: private_row_limit
SELECT age, RANK() OVER (ORDER BY income DESC) FROM people

-- refused: private_row_limit
SELECT AVG(r) FROM (SELECT RANK() OVER (ORDER BY income) AS r FROM people) t

-- refused: private_row_limit
SELECT COUNT(*) FROM (SELECT COUNT(*) OVER (PARTITION BY born, sex, state_code) AS k FROM people) t WHERE k = 1

-- refused: private_row_limit
SELECT AVG(income - lag) FROM (SELECT income, LAG(income) OVER (ORDER BY person_id) AS lag FROM people) t

-- refused: unsupported_function
SELECT LIST(income) FROM people

-- refused: unsupported_function
SELECT STRING_AGG(occupation, ', ') FROM people

-- refused: unsupported_function
SELECT ARRAY_AGG(person_id) FROM people

-- refused: unsupported_function
SELECT sex, FIRST(income) FROM people GROUP BY sex

-- refused: unsupported_function
SELECT ANY_VALUE(income) FROM people

-- refused: unsupported_function
SELECT ARG_MAX(person_id, income) FROM people

-- refused: column_without_bounds
SELECT MAX(person_id) FROM people

-- refused: unsupported_type
SELECT MAX(occupation) FROM people

-- refused: unsupported_function
SELECT HASH(occupation), COUNT(*) FROM people GROUP BY 1

-- refused: unsupported_function
SELECT MD5(occupation) AS m, COUNT(*) FROM people GROUP BY m

-- refused: unsupported_type
SELECT SUM(occupation) FROM people

-- refused: unsupported_type
SELECT AVG(sex) FROM people

-- refused: unknown_column
SELECT AVG(salary) FROM people

-- refused: unknown_table
SELECT AVG(income) FROM persons

-- refused: unknown_table
SELECT COUNT(*) FROM information_schema.tables

-- refused: unsupported_sql
SELECT table_name FROM duckdb_tables()

-- refused: unknown_table
SELECT * FROM 'people.csv'

-- refused: unsupported_sql
SELECT COUNT(*) FROM read_csv('people.csv')

-- refused: parse_error
SELECT TOP 5 * FROM people

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE ROWNUM < 10

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WITH (NOLOCK)

-- refused: parse_error
SELECT COUNT(*) FROM `people`

-- refused: raw_rows
SELECT NVL(income, 0) FROM people

-- refused: raw_rows
SELECT sex, COUNT(*) FROM people

-- refused: raw_rows
SELECT sex, age, COUNT(*) FROM people GROUP BY sex

-- refused: raw_rows
SELECT COUNT(*) FROM people HAVING age > 5

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE COUNT(*) > 5

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE age > '40 years'

-- refused: many_statements
SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM states

-- refused: not_a_query
DELETE FROM people WHERE age > 90

-- refused: not_a_query
UPDATE people SET income = 0

-- refused: not_a_query
CREATE TABLE copy AS SELECT * FROM people

-- refused: not_a_query
COPY (SELECT * FROM people) TO 'people.csv'

-- refused: not_a_query
EXPLAIN ANALYZE SELECT AVG(income) FROM people

-- refused: not_a_query
DESCRIBE people

-- refused: not_a_query
SUMMARIZE people

-- refused: not_a_query
SHOW TABLES

-- refused: unsupported_sql
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT COUNT(*) FROM people, t

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE income > $threshold

-- refused: no_groups
SELECT COUNT(*) FROM people WHERE sex = 'male' AND sex = 'female' GROUP BY sex

-- refused: raw_rows
SELECT CASE WHEN person_id = 17 THEN income ELSE 0 END FROM people

-- refused: group_by_unit
PIVOT people ON sex USING AVG(income)

-- refused: group_by_unit
SELECT COUNT(*) FROM people GROUP BY person_id, sex

-- refused: private_row_limit
SELECT AVG(income) OVER () FROM people

-- refused: raw_rows
SELECT sex FROM people ORDER BY income LIMIT 1

-- refused: unsupported_sql
SELECT COUNT(DISTINCT person_id, sex) FROM people

-- refused: unsupported_type
SELECT VAR_POP(DISTINCT occupation) FROM people

-- refused: volatile_function
SELECT current_user, COUNT(*) FROM people

-- refused: unsupported_function
SELECT getenv('HOME'), COUNT(*) FROM people

-- refused: unsupported_function
SELECT WIDTH_BUCKET(income, age, 200000, 10) AS bucket, COUNT(*) FROM people GROUP BY bucket

-- refused: unsupported_function
SELECT WIDTH_BUCKET(income, 200000, 0, 10) AS bucket, COUNT(*) FROM people GROUP BY bucket

-- refused: unsupported_function
SELECT WIDTH_BUCKET(income, 0, 200000, 0) AS bucket, COUNT(*) FROM people GROUP BY bucket
