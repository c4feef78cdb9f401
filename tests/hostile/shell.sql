-- refused: unsupported_function
SELECT read_text('x') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT read_blob('x') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT getenv('HOME') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT query('SELECT 1') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT error('x') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT sleep_ms(1000) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT repeat('x', 1000000000) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT list_transform([n], lambda x: x + 1) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT list_aggregate([n], 'sum') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: parse_error
SELECT apply([n], lambda x: x) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT range(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT generate_series(1, n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT unnest([n]) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT unnest([1, 2]) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT regexp_matches(sex, '(a+)+$') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT regexp_replace(sex, 'a', 'b') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT format('{:d}', n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT printf('%d', n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT lpad(sex, 1000000000, 'x') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT rpad(sex, 1000000000, 'x') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT factorial(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT chr(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT json_serialize_sql('SELECT 1') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: volatile_function
SELECT getvariable('x') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT write_log('x') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT list_value(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT [n] AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT struct_pack(a := n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT map([sex], [n]) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT hash(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT md5(sex) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT bar(n, 0, 10) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT map_keys(histogram(n)) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT list(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT array_agg(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT first(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT last(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT approx_quantile(n, 0.5) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT reservoir_quantile(n, 0.5) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT md5_number(CAST(n AS VARCHAR)) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT strptime(sex, '%Y') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT nvl(n, 0) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT truncate(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT signum(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT iif(n > 1, 1, 2) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT levenshtein(sex, 'a') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT sha256(sex) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT string_split(sex, 'a') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT typeof(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT stats(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT pg_typeof(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT current_catalog() AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT array_length([n]) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT len([n]) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT translate(sex, 'a', 'b') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT make_date(n, 1, 1) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT to_days(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT gamma(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT sin(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT fdiv(n, 2) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT geomean(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT product(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT bit_xor(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT entropy(n, 2) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT mod(n, 2, 3) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT log10(n, 1) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT booland_agg(n > 1) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT logical_or(n > 1) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT stdev(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT variance_pop(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT stem(sex) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT set_bit('1'::BIT, 0, 1) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT parse_filename(sex) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT in_search_path('a', 'b') AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT pg_get_viewdef(1) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT duckdb_tables() AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT bitstring('1', 1000000000) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT array_cross_product([1,2,3], [1,2,3]) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT nextafter(n, 2) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t WHERE error('x') IS NULL

-- refused: unsupported_function
SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t ORDER BY sleep_ms(1000)

-- refused: unsupported_function
SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t GROUP BY n HAVING read_text('x') IS NULL

-- refused: unsupported_function
SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING error('x') IS NULL

-- refused: unsupported_function
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY error('x')

-- refused: unsupported_function
SELECT repeat(sex, 1000000000), COUNT(*) FROM people GROUP BY sex

-- refused: unsupported_function
SELECT COLUMNS(*) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT COLUMNS('n') + 1 FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT COLUMNS(c -> c LIKE 'n%') FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT COUNT(COLUMNS(*)) FROM people

-- refused: unsupported_function
SELECT COLUMNS(*) FROM people

-- refused: unsupported_function
SELECT MAX(COLUMNS(*)) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT n -> 'a' FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT sex ->> 'a' FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT {'a': n} FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT sex.upper() FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT n.error() FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT sex COLLATE NOCASE FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t, read_csv('x.csv')

-- refused: unsupported_sql
SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t JOIN LATERAL (SELECT t.n) u ON TRUE

-- refused: unsupported_sql
SELECT n[1] FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT sex[1:2] FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_function
SELECT [x + 1 FOR x IN [n]] FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT (n, sex) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT (n, 1) = (1, 1) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT (*) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT DISTINCT ON (sex) n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT t.* RENAME (n AS m) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT * LIKE 'n%' FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT n & 1 FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT n | 1 FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT n << 70 FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT ~n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT sex SIMILAR TO '(a+)+' FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT sex GLOB 'm*' FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT n AT TIME ZONE 'UTC' FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- refused: unsupported_sql
SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t LIMIT (SELECT 1)

-- refused: unsupported_sql
SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t LIMIT n

-- refused: unsupported_sql
SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t LIMIT 50%

-- refused: unsupported_sql
SELECT $1

-- refused: unsupported_sql
SELECT $x

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age > $x

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age > $1

-- refused: unsupported_sql
SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t WHERE n > $limit

-- refused: unsupported_sql
SELECT COUNT(*) FROM people LIMIT $x

-- refused: unsupported_sql
SELECT COUNT(*) AS "id$0", COUNT(*) + 1 AS "row$" FROM people

-- refused: unsupported_sql
SELECT "id$0" + 1 AS "replicate$" FROM (SELECT COUNT(*) AS "id$0" FROM people) AS "c0"

-- refused: unsupported_sql
SELECT "derived1$".n FROM (SELECT COUNT(*) AS n FROM people) AS "derived1$", (SELECT COUNT(*) AS m FROM visits)

-- refused: ambiguous_column
WITH a AS (SELECT COUNT(*) n, SUM(age) n FROM people) SELECT n FROM a

-- refused: ambiguous_column
WITH a AS (SELECT COUNT(*) n, SUM(age) n FROM people) SELECT * FROM a

-- refused: ambiguous_column
SELECT * FROM (SELECT COUNT(*) n, SUM(age) "N" FROM people) t

-- refused: ambiguous_column
SELECT * FROM (SELECT * FROM (SELECT COUNT(*) n FROM people) x, (SELECT COUNT(*) n FROM visits) y) z

-- refused: unsupported_sql
SELECT "id$0" FROM (SELECT sex AS "id$0", COUNT(*) AS "ID$1" FROM people GROUP BY sex) t

-- refused: unsupported_sql
WITH a("row$") AS (SELECT COUNT(*) FROM people) SELECT 1 AS x FROM a

-- refused: unsupported_sql
SELECT 1 AS x FROM (SELECT COUNT(*) AS n FROM people) AS "nested0$"

-- refused: unsupported_sql
SELECT 1 AS x FROM (SELECT COUNT(*) AS n FROM people) AS "driver$"

-- refused: unsupported_sql
SELECT 1 AS x FROM (SELECT COUNT(*) AS n FROM people) AS "renamed$"

-- refused: unsupported_sql
SELECT COUNT(*) AS "REPLICATE$" FROM people

-- refused: unsupported_sql
SELECT SUM(n) IGNORE NULLS FROM (SELECT COUNT(*) AS n FROM people)

-- refused: too_large
SELECT COUNT(*) AS a0, a0 + a0 AS a1, a1 + a1 AS a2, a2 + a2 AS a3, a3 + a3 AS a4, a4 + a4 AS a5, a5 + a5 AS a6, a6 + a6 AS a7, a7 + a7 AS a8, a8 + a8 AS a9, a9 + a9 AS b0, b0 + b0 AS b1, b1 + b1 AS b2 FROM people

-- refused: ambiguous_column
SELECT sex, COUNT(*) AS n, SUM(age) AS n FROM people GROUP BY sex HAVING n > 4

-- refused: ambiguous_column
SELECT COUNT(*) AS n, SUM(age) AS N, n + 1 AS z FROM people

-- refused: ambiguous_column
SELECT * FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS x JOIN (SELECT sex, SUM(age) AS m FROM people GROUP BY sex) AS y USING (sex)
