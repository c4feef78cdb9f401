-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE random() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE rand() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE uuid() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE gen_random_uuid() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE nextval('s') IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE currval('s') IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE now() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE today() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE current_date IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE current_timestamp IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE current_time IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE current_localtimestamp() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE localtimestamp IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE localtime IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE get_current_timestamp() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE get_current_time() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE transaction_timestamp() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE current_setting('threads') IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE getvariable('x') IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE txid_current() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE current_query() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE current_user IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE current_schema() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE current_schemas(true) IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE current_database() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE version() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE setseed(0.5) IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE current_date() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE current_timestamp() IS NULL

-- refused: volatile_function
SELECT COUNT(*) FILTER (WHERE random() IS NOT NULL) FROM people

-- refused: volatile_function
SELECT COUNT(*) FILTER (WHERE rand() IS NOT NULL) FROM people

-- refused: volatile_function
SELECT COUNT(*) FILTER (WHERE uuid() IS NOT NULL) FROM people

-- refused: volatile_function
SELECT COUNT(*) FILTER (WHERE gen_random_uuid() IS NOT NULL) FROM people

-- refused: volatile_function
SELECT COUNT(*) FILTER (WHERE nextval('s') IS NOT NULL) FROM people

-- refused: volatile_function
SELECT COUNT(*) FILTER (WHERE currval('s') IS NOT NULL) FROM people

-- refused: volatile_function
SELECT COUNT(*) FILTER (WHERE now() IS NOT NULL) FROM people

-- refused: volatile_function
SELECT COUNT(*) FILTER (WHERE today() IS NOT NULL) FROM people

-- refused: volatile_function
SELECT COUNT(*) FILTER (WHERE current_date IS NOT NULL) FROM people

-- refused: volatile_function
SELECT COUNT(*) FILTER (WHERE current_timestamp IS NOT NULL) FROM people

-- refused: volatile_function
SELECT COUNT(*) FILTER (WHERE current_time IS NOT NULL) FROM people

-- refused: volatile_function
SELECT COUNT(*) FILTER (WHERE current_localtimestamp() IS NOT NULL) FROM people

-- refused: volatile_function
SELECT SUM(age * random()) FROM people

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE born < current_date

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE born < now()

-- refused: volatile_function
SELECT random(), COUNT(*) FROM people GROUP BY 1

-- refused: volatile_function
SELECT COUNT(*) FROM people ORDER BY random()

-- refused: volatile_function
SELECT COUNT(*) + random() FROM people

-- refused: volatile_function
SELECT n, random() FROM (SELECT COUNT(*) AS n FROM people)

-- refused: volatile_function
SELECT uuid() FROM (SELECT COUNT(*) AS n FROM people)

-- refused: volatile_function
SELECT n FROM (SELECT COUNT(*) AS n FROM people) WHERE random() < 0.5

-- refused: volatile_function
SELECT current_date

-- refused: volatile_function
SELECT now()

-- refused: volatile_function
SELECT random()

-- refused: volatile_function
SELECT current_setting('threads')

-- refused: volatile_function
SELECT n FROM (SELECT COUNT(*) AS n FROM people) WHERE nextval('s') > 1

-- refused: volatile_function
SELECT n FROM (SELECT COUNT(*) AS n FROM people) WHERE current_timestamp IS NULL
