-- refused: raw_rows
SELECT * FROM people

-- refused: raw_rows
SELECT people.* FROM people

-- refused: raw_rows
SELECT p.* FROM people p

-- refused: raw_rows
TABLE people

-- refused: raw_rows
FROM people

-- refused: raw_rows
SELECT age FROM people

-- refused: raw_rows
SELECT person_id, income FROM people WHERE person_id = 7

-- refused: raw_rows
SELECT age, hours FROM people ORDER BY age

-- refused: raw_rows
SELECT age FROM people LIMIT 1

-- refused: raw_rows
SELECT age FROM people ORDER BY income DESC LIMIT 1

-- refused: raw_rows
SELECT 1 FROM people

-- refused: raw_rows
SELECT NULL FROM people

-- refused: raw_rows
SELECT 'x' FROM people WHERE person_id = 7

-- refused: raw_rows
SELECT TRUE FROM people

-- refused: raw_rows
SELECT COALESCE(income, 0) FROM people

-- refused: raw_rows
SELECT age + 1 AS x FROM people

-- refused: raw_rows
SELECT sex, age, COUNT(*) FROM people GROUP BY sex

-- refused: raw_rows
SELECT age, COUNT(*) FROM people

-- refused: raw_rows
SELECT COUNT(*) + age FROM people

-- refused: raw_rows
SELECT COUNT(*), income FROM people GROUP BY sex

-- refused: raw_rows
SELECT sex, age + COUNT(*) FROM people GROUP BY sex

-- refused: raw_rows
SELECT sex, CASE WHEN age > 3 THEN COUNT(*) END FROM people GROUP BY sex

-- refused: raw_rows
SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING age > 3

-- refused: raw_rows
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY age

-- refused: raw_rows
SELECT sex, COUNT(*) FROM people GROUP BY sex QUALIFY age > 3

-- refused: raw_rows
SELECT sex, RANK() OVER (ORDER BY age) FROM people GROUP BY sex

-- refused: raw_rows
SELECT sex, SUM(COUNT(*)) OVER (PARTITION BY age) FROM people GROUP BY sex

-- refused: raw_rows
SELECT age + 1, COUNT(*) FROM people GROUP BY age + 2

-- refused: raw_rows
SELECT UPPER(education), COUNT(*) FROM people GROUP BY LOWER(education)

-- refused: raw_rows
SELECT * FROM (SELECT * FROM people)

-- refused: private_row_limit
SELECT COUNT(*) FROM (SELECT * FROM people LIMIT 1)

-- refused: private_row_limit
SELECT COUNT(*) FROM (SELECT age FROM people ORDER BY age LIMIT 1 OFFSET 3)

-- refused: raw_rows
SELECT age FROM (SELECT age FROM people WHERE age > 3) t

-- refused: raw_rows
SELECT age + 1, t.* FROM (SELECT age FROM people) t

-- refused: raw_rows
WITH a AS (SELECT * FROM people), b AS (SELECT * FROM a) SELECT age FROM b

-- refused: raw_rows
WITH a AS (SELECT age FROM people) SELECT age, COUNT(*) FROM a GROUP BY age + 1

-- refused: raw_rows
WITH a AS MATERIALIZED (SELECT age FROM people) SELECT age FROM a

-- refused: raw_rows
SELECT (SELECT age FROM people)

-- refused: raw_rows
SELECT (SELECT income FROM people WHERE person_id = 7)

-- refused: raw_rows
SELECT (SELECT income FROM people WHERE age = 21)

-- refused: raw_rows
SELECT 1 WHERE EXISTS (SELECT 1 FROM people WHERE person_id = 7)

-- refused: raw_rows
SELECT 1 WHERE 7 IN (SELECT person_id FROM people)

-- refused: raw_rows
SELECT EXISTS (SELECT 1 FROM people WHERE income > 1000000)

-- refused: raw_rows
SELECT n FROM (SELECT COUNT(*) AS n FROM people) WHERE n IN (SELECT age FROM people)

-- refused: raw_rows
SELECT n, (SELECT income FROM people) FROM (SELECT COUNT(*) AS n FROM people)

-- refused: raw_rows
SELECT age FROM people UNION ALL SELECT hours FROM people

-- refused: raw_rows
SELECT age FROM people UNION SELECT age FROM people

-- refused: raw_rows
SELECT age FROM people EXCEPT SELECT hours FROM people

-- refused: raw_rows
SELECT age FROM people INTERSECT SELECT hours FROM people

-- refused: raw_rows
SELECT COUNT(*) FROM people UNION ALL SELECT age FROM people

-- refused: raw_rows
SELECT * FROM people JOIN visits USING (person_id)

-- refused: raw_rows
SELECT p.age, v.cost FROM visits v JOIN people p ON v.person_id = p.person_id

-- refused: raw_rows
SELECT * FROM visits JOIN hospitals ON visits.hospital_id = hospitals.hospital_id

-- refused: raw_rows
SELECT COUNT(*) FROM people ORDER BY age

-- refused: raw_rows
SELECT COUNT(*) FROM people HAVING age > 3

-- refused: raw_rows
SELECT SUM(age) WITHIN GROUP (ORDER BY age) FROM people

-- refused: raw_rows
SELECT * EXCLUDE (income) FROM people

-- refused: raw_rows
SELECT * REPLACE (age + 1 AS age) FROM people

-- refused: raw_rows
SELECT * RENAME (age AS alter) FROM people

-- refused: unsupported_sql
SELECT * LIKE 'a%' FROM people

-- refused: raw_rows
SELECT visits.cost FROM visits

-- refused: raw_rows
SELECT result FROM tests

-- refused: raw_rows
SELECT DISTINCT * FROM people

-- refused: raw_rows
SELECT *, COUNT(*) FROM people

-- refused: raw_rows
SELECT COUNT(*), * FROM people

-- refused: raw_rows
SELECT COUNT(*), people.* FROM people GROUP BY ALL

-- refused: raw_rows
SELECT p.age FROM people AS p WHERE p.income > 10

-- refused: unknown_column
SELECT people FROM people

-- refused: unknown_column
SELECT COUNT(people) FROM people

-- refused: unknown_column
SELECT p FROM people p

-- refused: unknown_column
SELECT COUNT(people.*) FROM people

-- refused: unknown_column
SELECT rowid FROM people

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE rowid = 1

-- refused: unknown_column
SELECT MAX(rowid) FROM people

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE "unit$id" = 1

-- refused: unknown_column
SELECT "unit$draw", COUNT(*) FROM people GROUP BY 1

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE "unit$draw" > 7

-- refused: unknown_column
SELECT COUNT(*) FROM people p WHERE p."unit$id" IS NULL

-- refused: unknown_column
SELECT filename, COUNT(*) FROM people GROUP BY filename

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE nothing = 1

-- refused: unknown_column
SELECT SUM(nothing) FROM people

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE people.nothing = 1

-- refused: unknown_column
SELECT sex, COUNT(*) FROM people GROUP BY nothing

-- refused: unknown_column
SELECT COUNT(*) FROM people GROUP BY 7

-- refused: unknown_column
SELECT COUNT(*) FROM people GROUP BY 0

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE "AGE " = 1

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE "age""" = 1

-- refused: unknown_column
SELECT t FROM (SELECT COUNT(*) AS n FROM people) t

-- refused: unknown_column
SELECT n.n FROM (SELECT COUNT(*) AS m FROM people) n

-- refused: unknown_column
SELECT m FROM (SELECT COUNT(*) AS n FROM people)

-- refused: unsupported_sql
SELECT "id$0" FROM (SELECT COUNT(*) AS n FROM people) t

-- refused: unsupported_sql
SELECT "row$" FROM (SELECT COUNT(*) AS n FROM people) t

-- refused: unsupported_sql
SELECT "replicate$" FROM (SELECT COUNT(*) AS n FROM people) t

-- refused: unknown_column
SELECT a0 FROM (SELECT COUNT(*) AS n FROM people) t

-- refused: unknown_column
SELECT n, row_number FROM (SELECT COUNT(*) AS n FROM people) t

-- refused: unknown_column
SELECT sex, n FROM (SELECT sex, COUNT(*) AS t FROM people GROUP BY sex) n

-- refused: unknown_column
WITH a AS (SELECT COUNT(*) AS n FROM people) SELECT a FROM a

-- refused: unknown_column
SELECT COUNT(*) FROM visits WHERE age > 3

-- refused: unknown_column
SELECT cost, COUNT(*) FROM people GROUP BY cost
