-- refused: unsupported_sql
SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t, unnest([n]) u

-- refused: unsupported_sql
SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t, range(n)

-- refused: volatile_function
SELECT COUNT(*) FROM range(random())

-- refused: too_large
SELECT COUNT(*) FROM range(1000000000000)

-- refused: unsupported_sql
SELECT COUNT(*) FROM range(1, 10, 0)

-- refused: unsupported_sql
SELECT COUNT(*) FROM generate_series(1, (SELECT COUNT(*) FROM people))

-- refused: unsupported_sql
SELECT COUNT(*) FROM unnest((SELECT list(age) FROM people))

-- refused: unsupported_sql
SELECT COUNT(*) FROM unnest([1, 2], [3])

-- refused: unsupported_sql
SELECT * FROM (VALUES (1), (2, 3)) AS t

-- refused: volatile_function
SELECT * FROM (VALUES (random())) AS t

-- refused: unsupported_sql
SELECT * FROM (VALUES ((SELECT MAX(age) FROM people))) AS t

-- refused: volatile_function
SELECT * FROM (VALUES (now())) AS t

-- refused: unsupported_sql
SELECT * FROM hospitals TABLESAMPLE 10%

-- refused: unsupported_sql
SELECT * FROM hospitals AT (VERSION => 1)

-- refused: volatile_function
SELECT nextval('x'), region FROM hospitals

-- refused: unsupported_function
SELECT getenv('HOME') FROM hospitals

-- refused: volatile_function
SELECT current_setting('threads') FROM hospitals

-- refused: volatile_function
SELECT random() FROM hospitals

-- refused: volatile_function
SELECT region, uuid() FROM hospitals

-- refused: unsupported_sql
SELECT h.* FROM hospitals h, LATERAL (SELECT h.beds) l

-- refused: unsupported_sql
SELECT * FROM hospitals POSITIONAL JOIN hospitals g

-- refused: join_not_on_key
SELECT * FROM hospitals, people

-- refused: raw_rows
SELECT h.region, p.age FROM hospitals h JOIN people p ON p.person_id = h.hospital_id

-- refused: raw_rows
SELECT * FROM hospitals WHERE hospital_id IN (SELECT hospital_id FROM visits)

-- refused: unknown_table
SELECT * FROM hospitals WHERE EXISTS (SELECT 1 FROM visits v WHERE v.hospital_id = hospitals.hospital_id)

-- refused: raw_rows
SELECT region FROM hospitals UNION ALL SELECT sex FROM people

-- refused: unknown_column
SELECT "unit$id" FROM hospitals

-- refused: unknown_column
SELECT rowid FROM hospitals

-- refused: unsupported_sql
SELECT "row$" FROM hospitals

-- refused: unknown_table
SELECT region FROM hospitals, p0

-- refused: unsupported_sql
SELECT * FROM hospitals, read_csv('x.csv')

-- refused: volatile_function
SELECT * FROM generate_series(TIMESTAMP '2024-01-01', now(), INTERVAL 1 DAY)

-- refused: unsupported_function
SELECT * FROM generate_series(1, 10, 1, 1)

-- refused: unsupported_function
SELECT UNNEST([1, 2]) FROM hospitals

-- refused: unknown_column
SELECT hospitals FROM hospitals

-- refused: unsupported_function
SELECT COLUMNS(c -> c LIKE 'b%') FROM hospitals

-- refused: unsupported_sql
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT * FROM t
