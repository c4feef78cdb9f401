-- refused: unknown_table
SELECT COUNT(*) FROM 'people.csv'

-- refused: unknown_table
SELECT COUNT(*) FROM '/etc/passwd'

-- refused: unknown_table
SELECT COUNT(*) FROM 'x.parquet'

-- refused: unknown_table
SELECT COUNT(*) FROM 's3://b/x.parquet'

-- refused: unknown_table
SELECT COUNT(*) FROM 'http://h/x.csv'

-- refused: unknown_table
SELECT COUNT(*) FROM "x.csv"

-- refused: unknown_table
SELECT COUNT(*) FROM "/etc/passwd"

-- refused: unknown_table
SELECT COUNT(*) FROM '*.csv'

-- refused: unknown_table
SELECT COUNT(*) FROM 'x.duckdb'

-- refused: unknown_table
SELECT COUNT(*) FROM '../x.json'

-- refused: unknown_table
SELECT COUNT(*) FROM people_

-- refused: unknown_table
SELECT COUNT(*) FROM persons

-- refused: unknown_table
SELECT COUNT(*) FROM "PEOPLE "

-- refused: unknown_table
SELECT COUNT(*) FROM information_schema.tables

-- refused: unknown_table
SELECT COUNT(*) FROM pg_catalog.pg_class

-- refused: unknown_table
SELECT COUNT(*) FROM temp.people

-- refused: unknown_table
SELECT COUNT(*) FROM sqlite_master

-- refused: unknown_table
SELECT COUNT(*) FROM duckdb_tables

-- refused: unknown_table
SELECT COUNT(*) FROM pragma_version

-- refused: unknown_table
SELECT COUNT(*) FROM other.people

-- refused: unknown_table
SELECT COUNT(*) FROM memory.main

-- refused: unknown_table
SELECT COUNT(*) FROM df

-- refused: unknown_table
SELECT COUNT(*) FROM c0

-- refused: unknown_table
SELECT COUNT(*) FROM unit

-- refused: unknown_table
SELECT COUNT(*) FROM "unit$id"

-- refused: unknown_table
SELECT COUNT(*) FROM people2

-- refused: unknown_table
SELECT COUNT(*) FROM clinic.nothing

-- refused: unknown_table
SELECT COUNT(*) FROM sqlite_schema

-- refused: parse_error
SELECT COUNT(*) FROM "people\""

-- refused: unknown_table
SELECT COUNT(*) FROM pg_tables

-- refused: unknown_table
SELECT COUNT(*) FROM "clinic.people"

-- refused: unknown_table
FROM 'people.csv'

-- refused: unknown_table
FROM '/etc/passwd'

-- refused: unknown_table
FROM 'x.parquet'

-- refused: unknown_table
FROM 's3://b/x.parquet'

-- refused: unknown_table
FROM 'http://h/x.csv'

-- refused: unknown_table
FROM "x.csv"

-- refused: unknown_table
SELECT COUNT(*) FROM people, nothing

-- refused: unknown_table
SELECT COUNT(*) FROM people JOIN nothing ON people.person_id = nothing.person_id

-- refused: unknown_table
SELECT COUNT(*) FROM people p, p.age

-- refused: unknown_table
SELECT (SELECT COUNT(*) FROM nothing)

-- refused: unknown_table
WITH a AS (SELECT COUNT(*) AS n FROM people) SELECT n FROM b

-- refused: unknown_table
WITH a AS (SELECT n FROM b), b AS (SELECT COUNT(*) AS n FROM people) SELECT n FROM a, b

-- refused: unknown_table
SELECT COUNT(*) FROM people WHERE visits.cost > 1

-- refused: unknown_table
SELECT x.age, COUNT(*) FROM people GROUP BY x.age

-- refused: unknown_table
SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM 'x.csv'

-- refused: unsupported_sql
SELECT COUNT(*) FROM read_csv('x.csv')

-- refused: unsupported_sql
SELECT COUNT(*) FROM read_csv_auto('x.csv')

-- refused: unsupported_sql
SELECT COUNT(*) FROM read_parquet('x.parquet')

-- refused: unsupported_sql
SELECT COUNT(*) FROM parquet_scan('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM read_json('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM read_json_auto('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM read_ndjson('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM read_text('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM read_blob('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM glob('*')

-- refused: unsupported_sql
SELECT COUNT(*) FROM sniff_csv('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM read_duckdb('x', table_name = 'people')

-- refused: unsupported_sql
SELECT COUNT(*) FROM query('SELECT 1')

-- refused: unsupported_sql
SELECT COUNT(*) FROM query_table('people')

-- refused: unsupported_sql
SELECT COUNT(*) FROM query('SELECT income FROM people WHERE person_id = 7')

-- refused: unsupported_sql
SELECT COUNT(*) FROM json_execute_serialized_sql(json_serialize_sql('select income from people'))

-- refused: unsupported_sql
SELECT COUNT(*) FROM duckdb_tables()

-- refused: unsupported_sql
SELECT COUNT(*) FROM duckdb_settings()

-- refused: unsupported_sql
SELECT COUNT(*) FROM duckdb_columns()

-- refused: unsupported_sql
SELECT COUNT(*) FROM duckdb_functions()

-- refused: unsupported_sql
SELECT COUNT(*) FROM duckdb_secrets()

-- refused: unsupported_sql
SELECT COUNT(*) FROM duckdb_memory()

-- refused: unsupported_sql
SELECT COUNT(*) FROM duckdb_logs()

-- refused: unsupported_sql
SELECT COUNT(*) FROM duckdb_databases()

-- refused: unsupported_sql
SELECT COUNT(*) FROM duckdb_extensions()

-- refused: unsupported_sql
SELECT COUNT(*) FROM duckdb_variables()

-- refused: unsupported_sql
SELECT COUNT(*) FROM duckdb_temporary_files()

-- refused: unsupported_sql
SELECT COUNT(*) FROM pragma_storage_info('people')

-- refused: unsupported_sql
SELECT COUNT(*) FROM pragma_table_info('people')

-- refused: unsupported_sql
SELECT COUNT(*) FROM pragma_database_size()

-- refused: unsupported_sql
SELECT COUNT(*) FROM pragma_version()

-- refused: unsupported_sql
SELECT COUNT(*) FROM pragma_metadata_info()

-- refused: unsupported_sql
SELECT COUNT(*) FROM parquet_metadata('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM parquet_schema('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM parquet_kv_metadata('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM parquet_file_metadata('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM repeat_row(1, num_rows = 1000000000)

-- refused: unsupported_sql
SELECT COUNT(*) FROM repeat('x', 10)

-- refused: unsupported_sql
SELECT COUNT(*) FROM summary(people)

-- refused: unsupported_sql
SELECT COUNT(*) FROM test_all_types()

-- refused: unsupported_sql
SELECT COUNT(*) FROM seq_scan('people')

-- refused: unsupported_sql
SELECT COUNT(*) FROM arrow_scan(1, 2, 3)

-- refused: unsupported_sql
SELECT COUNT(*) FROM pandas_scan(1)

-- refused: unsupported_sql
SELECT COUNT(*) FROM sqlite_scan('x', 'y')

-- refused: unsupported_sql
SELECT COUNT(*) FROM postgres_scan('x', 'y', 'z')

-- refused: unsupported_sql
SELECT COUNT(*) FROM mysql_scan('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM iceberg_scan('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM delta_scan('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM st_read('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM read_xlsx('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM which_secret('x', 's3')

-- refused: unsupported_sql
SELECT COUNT(*) FROM force_checkpoint()

-- refused: unsupported_sql
SELECT COUNT(*) FROM checkpoint()

-- refused: unsupported_sql
SELECT COUNT(*) FROM unnest_rewrite([1])

-- refused: unsupported_sql
SELECT COUNT(*) FROM summary((SELECT income FROM people))

-- refused: unsupported_sql
SELECT COUNT(*) FROM sql_auto_complete('SEL')

-- refused: unsupported_sql
SELECT COUNT(*) FROM duckdb_approx_database_count()

-- refused: unsupported_sql
SELECT COUNT(*) FROM duckdb_prepared_statements()

-- refused: unsupported_sql
SELECT COUNT(*) FROM duckdb_log_contexts()

-- refused: unsupported_sql
SELECT COUNT(*) FROM from_substrait('x')

-- refused: unsupported_sql
SELECT COUNT(*) FROM get_substrait('SELECT 1')

-- refused: unsupported_sql
SELECT COUNT(*) FROM load_aws_credentials()

-- refused: unsupported_sql
SELECT COUNT(*) FROM histogram('people', 'age')

-- refused: unsupported_sql
SELECT COUNT(*) FROM histogram_values('people', 'age')

-- refused: unsupported_sql
SELECT * FROM read_csv('x.csv')

-- refused: unsupported_sql
SELECT * FROM read_csv_auto('x.csv')

-- refused: unsupported_sql
SELECT * FROM read_parquet('x.parquet')

-- refused: unsupported_sql
SELECT * FROM parquet_scan('x')

-- refused: unsupported_sql
SELECT * FROM read_json('x')

-- refused: unsupported_sql
SELECT * FROM read_json_auto('x')

-- refused: unsupported_sql
SELECT * FROM read_ndjson('x')

-- refused: unsupported_sql
SELECT * FROM read_text('x')

-- refused: unsupported_sql
SELECT * FROM read_blob('x')

-- refused: unsupported_sql
SELECT * FROM glob('*')

-- refused: unsupported_sql
SELECT * FROM sniff_csv('x')

-- refused: unsupported_sql
SELECT * FROM read_duckdb('x', table_name = 'people')

-- refused: unsupported_sql
SELECT COUNT(*) FROM people, read_csv('x.csv')

-- refused: unsupported_sql
SELECT COUNT(*) FROM people, LATERAL (SELECT 1)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people, LATERAL (SELECT age)

-- refused: unsupported_sql
SELECT COUNT(*) FROM a.clinic.people

-- refused: unsupported_sql
SELECT COUNT(*) FROM a.b.clinic.people

-- refused: unsupported_sql
SELECT COUNT(*) FROM people AS p(a, b)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people AVG(age)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people p(age, person_id) WHERE age > 3

-- refused: group_by_unit
SELECT COUNT(*) FROM people PIVOT (SUM(age) FOR sex IN ('male'))

-- refused: unsupported_sql
SELECT COUNT(*) FROM people UNPIVOT ((a, c) FOR b IN ((age, hours)))

-- refused: group_by_unit
SELECT COUNT(*) FROM (PIVOT people ON sex IN ('male') USING SUM(age))

-- refused: unsupported_sql
PIVOT people ON education USING COUNT(*) GROUP BY sex

-- refused: unsupported_sql
SELECT COUNT(*) FROM people TABLESAMPLE 10%

-- refused: unsupported_sql
SELECT COUNT(*) FROM people TABLESAMPLE RESERVOIR(10)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people TABLESAMPLE BERNOULLI(10%) REPEATABLE (42)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people TABLESAMPLE SYSTEM(10)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people USING SAMPLE 10

-- refused: unsupported_sql
SELECT COUNT(*) FROM people USING SAMPLE 10%

-- refused: unsupported_sql
SELECT COUNT(*) FROM people USING SAMPLE reservoir(10 ROWS) REPEATABLE (1)

-- refused: correlated_subquery
WITH r AS (SELECT education, COUNT(*) AS n FROM people GROUP BY education) SELECT COUNT(*) FROM people WHERE education IN (SELECT education FROM r TABLESAMPLE 10%)

-- refused: correlated_subquery
WITH r AS (SELECT education, COUNT(*) AS n FROM people GROUP BY education) SELECT COUNT(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM r TABLESAMPLE 10% WHERE r.education = p.education)

-- refused: correlated_subquery
WITH r AS (SELECT education, COUNT(*) AS n FROM people GROUP BY education) SELECT COUNT(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM r AS q(n, education) WHERE q.education = p.education)

-- refused: correlated_subquery
WITH r AS (SELECT education, COUNT(*) AS n FROM people GROUP BY education) SELECT COUNT(*) FROM people AS p SEMI JOIN r AS q(n, education) ON q.education = p.education

-- refused: unsupported_sql
SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM people) TABLESAMPLE 50%

-- refused: unsupported_sql
SELECT n FROM (SELECT COUNT(*) AS n FROM people) USING SAMPLE 1

-- refused: unsupported_sql
SELECT COUNT(*) FROM clinic.people WHERE clinic.people.age > 1

-- refused: unsupported_sql
SELECT n FROM (SELECT COUNT(*) AS n FROM people) t, LATERAL (SELECT t.n) u

-- refused: unsupported_sql
SELECT COUNT(*) FROM 'people.csv' TABLESAMPLE 1

-- refused: unsupported_sql
PIVOT people sex USING COUNT(*)
