-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE age IN (SELECT age FROM people)

-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE age NOT IN (SELECT age FROM people)

-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE NOT EXISTS (SELECT 1 FROM visits)

-- refused: correlated_subquery
SELECT COUNT(*) FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.hospital_id < p.age) > 3

-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE age > (SELECT age FROM people)

-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people GROUP BY sex)

-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people LIMIT 1)

-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE age > (SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM people GROUP BY sex) AS t)

-- refused: raw_rows
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) + age FROM people)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age), MAX(age) FROM people)

-- refused: correlated_subquery
SELECT SUM(CASE WHEN EXISTS (SELECT 1 FROM visits) THEN 1 ELSE 0 END) FROM people

-- refused: correlated_subquery
SELECT COUNT(*) FILTER (WHERE age IN (SELECT age FROM people)) FROM people

-- refused: correlated_subquery
SELECT (SELECT hours FROM people) AS x, COUNT(*) FROM people GROUP BY 1

-- refused: correlated_subquery
SELECT COUNT(*) FROM people GROUP BY (SELECT hours FROM people)

-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE id IN (SELECT id FROM visits)

-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE age IN (SELECT 1 FROM visits)

-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE (SELECT income FROM people p2 WHERE p2.person_id = 7) > 0

-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE income = (SELECT income FROM people p WHERE p.person_id = people.person_id)

-- refused: correlated_subquery
SELECT COUNT_IF(EXISTS (SELECT 1 FROM visits)) FROM people

-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE age = ANY (SELECT q.age FROM people q WHERE q.person_id = 7)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age > ALL (SELECT age FROM people)

-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE age = SOME (SELECT age FROM people)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age = ANY ([1, hours])

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age IN 1

-- refused: correlated_subquery
SELECT COUNT(*) FROM people WHERE (age, hours) IN (SELECT age, hours FROM people)

-- refused: raw_rows
SELECT n > ALL (SELECT age FROM people) FROM (SELECT COUNT(*) AS n FROM people)

-- refused: raw_rows
SELECT ARRAY (SELECT age FROM people)

-- refused: unsupported_function
SELECT ARRAY (SELECT COUNT(*) FROM people)
