-- refused: raw_rows
SELECT * FROM readings WHERE home = 'h7'

-- refused: group_by_unit
SELECT home, AVG(value) FROM readings GROUP BY home ORDER BY 2 DESC LIMIT 5

-- refused: group_by_unit
SELECT home, date_trunc('day', moment) AS d, SUM(value) FROM readings GROUP BY home, d

-- refused: raw_rows
SELECT moment, value FROM readings WHERE fault

-- refused: raw_rows
SELECT moment, value FROM readings ORDER BY moment DESC LIMIT 1

-- refused: group_by_unit
SELECT DISTINCT home FROM readings WHERE value > 99

-- refused: unsupported_type
SELECT MAX(home) FROM homes

-- refused: unsupported_function
SELECT LAST(value) FROM readings

-- refused: unsupported_function
SELECT ARG_MAX(home, value) FROM readings

-- refused: private_row_limit
SELECT AVG(d) FROM (SELECT value - LAG(value) OVER (ORDER BY moment) AS d FROM readings) t

-- refused: private_row_limit
SELECT AVG(v) FROM (SELECT AVG(value) OVER (ORDER BY moment RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) AS v FROM readings) t

-- refused: unsupported_sql
SELECT COUNT(*) FROM readings a ASOF JOIN readings b ON a.kind = b.kind AND a.moment >= b.moment

-- refused: join_not_on_key
SELECT COUNT(*) FROM readings a JOIN readings b ON a.moment = b.moment

-- refused: join_not_on_key
SELECT COUNT(*) FROM homes a JOIN homes b ON a.city = b.city

-- refused: correlated_subquery
SELECT COUNT(*) FROM readings WHERE value > (SELECT value FROM readings LIMIT 1)

-- refused: unsupported_function
SELECT LIST(value ORDER BY moment) FROM readings WHERE home = 'h1'

-- refused: unsupported_function
SELECT time_bucket(INTERVAL 1 HOUR, moment), FIRST(value) FROM readings GROUP BY 1

-- refused: unsupported_function
SELECT COUNT(*) FROM readings WHERE moment = clock_timestamp()

-- refused: unsupported_type
SELECT SUM(moment) FROM readings

-- refused: unsupported_type
SELECT AVG(kind) FROM readings

-- refused: unsupported_type
SELECT value, COUNT(*) FROM readings GROUP BY value

-- refused: unknown_table
SELECT moment, COUNT(*) FROM sensors GROUP BY moment

-- refused: unknown_column
SELECT COUNT(*) FROM readings WHERE temperature > 30

-- refused: column_without_bounds
SELECT SUM(EXP(EXP(value))) FROM readings

-- refused: unsupported_function
SELECT REPEAT(kind, 1000000000), COUNT(*) FROM readings GROUP BY 1

-- refused: unsupported_function
SELECT COUNT(*) FROM readings WHERE kind ~ '(a)\1'

-- refused: too_large
SELECT COUNT(*) FROM generate_series(1, 1000000000)

-- refused: too_large
SELECT COUNT(*) FROM readings, range(1000000)

-- refused: unsupported_function
SELECT ENCODE(kind), COUNT(*) FROM readings GROUP BY 1

-- refused: unsupported_function
SELECT COUNT(*) FROM readings WHERE kind COLLATE NOCASE = 'HEAT'

-- refused: unsupported_function
SELECT LIST_TRANSFORM([1, 2], x -> x + 1), COUNT(*) FROM readings

-- refused: unsupported_function
SELECT {'n': COUNT(*)} FROM readings

-- refused: unsupported_type
SELECT COUNT(*)::BIT FROM readings

-- refused: raw_rows
SELECT kind, COUNT(*) FROM readings GROUP BY kind ORDER BY value

-- refused: unsupported_sql
SELECT AVG(value) FROM readings LIMIT ALL OFFSET random()

-- refused: private_row_limit
SELECT AVG(value) FROM (SELECT * FROM readings WHERE value > 5 LIMIT 5 OFFSET 10) t

-- refused: raw_rows
SELECT home, kind FROM readings EXCEPT SELECT home, kind FROM readings WHERE fault

-- refused: unknown_column
SELECT rowid, COUNT(*) FROM readings GROUP BY rowid

-- refused: unknown_column
SELECT AVG(value) FROM readings WHERE rowid < 10

-- refused: column_without_bounds
SELECT AVG(moment - TIMESTAMP '2024-01-01') FROM readings

-- refused: unsupported_function
SELECT EXTRACT(month FROM moment - TIMESTAMP '2024-01-01') AS m, COUNT(*) FROM readings GROUP BY m

-- refused: unsupported_type
SELECT COUNT(*) FROM readings WHERE AGE(moment, TIMESTAMP '2023-06-01') > INTERVAL 30 DAY

-- refused: unsupported_type
SELECT COUNT(*) FROM readings WHERE moment - TIMESTAMP '2024-01-01' > (SELECT AVG(moment - TIMESTAMP '2024-01-01') FROM readings WHERE moment BETWEEN '2023-01-01' AND '2025-01-01')

-- refused: unsupported_sql
SELECT SUM(s) FROM (SELECT home, MAX(value) OVER (PARTITION BY home ORDER BY moment RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) AS s FROM readings)

-- refused: unsupported_sql
SELECT SUM(s) FROM (SELECT home, FIRST_VALUE(value) OVER (PARTITION BY home ORDER BY moment RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS s FROM readings)

-- refused: unsupported_type
SELECT VARIANCE(g) FROM (SELECT moment - TIMESTAMP '2023-01-01' AS g FROM readings) t

-- refused: unsupported_type
SELECT SUM(g) FROM (SELECT moment - TIMESTAMP '2023-01-01' AS g FROM readings) t

-- refused: unsupported_type
SELECT AVG(g / 2) FROM (SELECT moment - TIMESTAMP '2023-01-01' AS g FROM readings) t

-- refused: unsupported_type
SELECT moment - TIMESTAMP '2023-01-01' AS g FROM readings
