-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT COUNT(*) FROM people WHERE age NOT IN (0, 1) >= FALSE

-- answered: groups of keys, as their declarations or a threshold show them
SELECT DISTINCT sex FROM people

-- answered: groups of keys, as their declarations or a threshold show them
SELECT DISTINCT education FROM people

-- answered: groups of keys, as their declarations or a threshold show them
SELECT sex, smoker FROM people GROUP BY ALL

-- answered: groups of keys, as their declarations or a threshold show them
SELECT COUNT(*) FROM (SELECT DISTINCT sex FROM people)

-- answered: groups of keys, as their declarations or a threshold show them
WITH a AS (SELECT DISTINCT education FROM people) SELECT COUNT(*) FROM a

-- answered: different values count once, whoever has them
SELECT COUNT(DISTINCT age) FROM people

-- answered: different values count once, whoever has them
SELECT COUNT(DISTINCT sex) FROM people

-- answered: different values count once, whoever has them
SELECT COUNT(DISTINCT person_id + 0) FROM people

-- answered: different values count once, whoever has them
SELECT COUNT(DISTINCT visit_id) FROM visits

-- answered: different values count once, whoever has them
SELECT SUM(DISTINCT age) FROM people

-- answered: different values count once, whoever has them
SELECT AVG(DISTINCT age) FROM people

-- answered: different values count once, whoever has them
SELECT STDDEV(DISTINCT age) FROM people

-- answered: different values count once, whoever has them
SELECT APPROX_COUNT_DISTINCT(age) FROM people

-- answered: different values count once, whoever has them
SELECT ward, COUNT(DISTINCT day), AVG(DISTINCT cost) FILTER (WHERE cost > 3) AS a, COUNT(*) FROM visits GROUP BY ward

-- answered: different values count once, whoever has them
SELECT COUNT(DISTINCT ward || 'x') AS n, SUM(DISTINCT cost) AS s, STDDEV(DISTINCT cost) AS d FROM visits WHERE cost > 1

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT COUNT(*) FROM people WHERE age NOT IN (0, 1) = TRUE

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT COUNT(*) FROM people WHERE age NOT BETWEEN 1 AND 2 = TRUE

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT COUNT(*) FROM people WHERE education NOT LIKE 'a' = TRUE

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT COUNT(*) FROM people WHERE NOT smoker = TRUE

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT COUNT(*) FROM people WHERE NOT age = 1 AND smoker

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT COUNT(*) FROM people WHERE NOT age IS NULL

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT COUNT(*) FROM people WHERE hours IS NULL = TRUE

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT COUNT(*) FROM people WHERE hours IS NULL OR NOT hours > 5 AND smoker

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT 2 NOT IN (0, 1) >= FALSE

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT 2 NOT BETWEEN 0 AND 1 >= FALSE

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT 'b' NOT LIKE 'a' >= FALSE

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT 2 IS NOT NULL >= FALSE

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT (NOT TRUE) = FALSE, NOT TRUE = FALSE

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT 1 - (2 - 3), 12 / (2 * 3), -(2 - 5), (1 + 2) * 3

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT n NOT IN (0, 1) >= FALSE, n - (n - 1) FROM (SELECT COUNT(*) AS n FROM people)

-- answered: NOT IN binds tighter than a comparison with a truth value, here and there
SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) NOT IN (0, 1) >= FALSE

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE age == 34

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE age != 34

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE education ~~ 's%'

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE education !~~ 's%'

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE hours ISNULL

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE hours NOTNULL

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE hours NOT NULL

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE age IN [34, 50]

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE IFNULL(hours, 1) > 0

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE age % 3 - 1 // 2 = 0

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE -age < -50

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE - - age > 50

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE age - -1 > 50

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE 7 // 2 * 2 + 7 % 2 = age - 27

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE age::VARCHAR = '34'

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE CAST(age AS VARCHAR(1)) = '34'

-- answered: other spellings of operators are the dialect's own
SELECT COUNT(*) FROM people WHERE hours IS NOT DISTINCT FROM NULL

-- answered: clauses may be left out, written first, or end with a comma
FROM people SELECT COUNT(*)

-- answered: clauses may be left out, written first, or end with a comma
SELECT COUNT(*), FROM people

-- answered: clauses may be left out, written first, or end with a comma
SELECT c: COUNT(*) FROM people

-- answered: clauses may be left out, written first, or end with a comma
SELECT ALL COUNT(*) FROM people

-- answered: clauses may be left out, written first, or end with a comma
SELECT COUNT(ALL age) FROM people

-- answered: clauses may be left out, written first, or end with a comma
SELECT SUM(ALL age) FROM people

-- answered: clauses may be left out, written first, or end with a comma
SELECT COUNT() FROM people

-- answered: clauses may be left out, written first, or end with a comma
SELECT COUNT(*) FILTER (age > 18) FROM people

-- answered: clauses may be left out, written first, or end with a comma
SELECT COUNT(*) FROM people;

-- answered: clauses may be left out, written first, or end with a comma
SELECT COUNT(*) FROM people;;

-- answered: clauses may be left out, written first, or end with a comma
;SELECT COUNT(*) FROM people

-- answered: clauses may be left out, written first, or end with a comma
(SELECT COUNT(*) FROM people)

-- answered: clauses may be left out, written first, or end with a comma
((SELECT COUNT(*) FROM people))

-- answered: clauses may be left out, written first, or end with a comma
SELECT COUNT(*) FROM people OFFSET 1

-- answered: clauses may be left out, written first, or end with a comma
SELECT COUNT(*) FROM people LIMIT 0

-- answered: clauses may be left out, written first, or end with a comma
SELECT COUNT(*) FROM people LIMIT 1 OFFSET 0

-- answered: clauses may be left out, written first, or end with a comma
SELECT 1

-- answered: clauses may be left out, written first, or end with a comma
SELECT 1 + 1 AS two, 'x' AS x

-- answered: comments and spaces are no part of the question
SELECT /*+ PARALLEL(8) */ COUNT(*) FROM people

-- answered: comments and spaces are no part of the question
SELECT /* a /* nested */ comment */ COUNT(*) FROM people

-- answered: comments and spaces are no part of the question
SELECT COUNT(*)/**/FROM/**/people--

-- answered: comments and spaces are no part of the question
SELECT COUNT(*) FROM people -- WHERE age > 1

-- answered: comments and spaces are no part of the question
SELECT '--' AS x, '/*' AS y, COUNT(*) FROM people

-- answered: names are found without regard to ASCII case, in the dataset's own tables only
SELECT COUNT(*) FROM PEOPLE

-- answered: names are found without regard to ASCII case, in the dataset's own tables only
SELECT COUNT(*) FROM "PeOpLe"

-- answered: names are found without regard to ASCII case, in the dataset's own tables only
SELECT COUNT(*) FROM clinic.people

-- answered: names are found without regard to ASCII case, in the dataset's own tables only
SELECT COUNT(*) FROM "people"

-- answered: names are found without regard to ASCII case, in the dataset's own tables only
SELECT COUNT(*) FROM 'people'

-- answered: names are found without regard to ASCII case, in the dataset's own tables only
SELECT COUNT(*) FROM people FINAL

-- answered: names are found without regard to ASCII case, in the dataset's own tables only
SELECT COUNT(*) FROM people AS "select"

-- answered: names are found without regard to ASCII case, in the dataset's own tables only
SELECT COUNT(*) AS "a""b" FROM people

-- answered: names are found without regard to ASCII case, in the dataset's own tables only
SELECT COUNT(*) AS "; DROP TABLE people; --" FROM people

-- answered: names are found without regard to ASCII case, in the dataset's own tables only
SELECT a0 FROM (SELECT COUNT(*) AS a0 FROM people) AS c1

-- answered: names are found without regard to ASCII case, in the dataset's own tables only
WITH people AS (SELECT COUNT(*) AS n FROM people) SELECT n FROM people

-- answered: names are found without regard to ASCII case, in the dataset's own tables only
WITH c0 AS (SELECT COUNT(*) AS n FROM people), c1 AS (SELECT COUNT(*) AS n FROM visits) SELECT c0.n, c1.n FROM c0, c1

-- answered: names are found without regard to ASCII case, in the dataset's own tables only
SELECT count.count FROM (SELECT COUNT(*) AS count FROM people) AS count

-- answered: a text is a value, whatever it looks like
SELECT COUNT(*) FROM people WHERE education = 'x'' OR 1=1 --'

-- answered: a text is a value, whatever it looks like
SELECT COUNT(*) FROM people WHERE education = '\'

-- answered: a text is a value, whatever it looks like
SELECT COUNT(*) FROM people WHERE education = '%_\'

-- answered: a text is a value, whatever it looks like
SELECT COUNT(*) FROM people WHERE education LIKE '\%%' ESCAPE '\'

-- answered: a text is a value, whatever it looks like
SELECT COUNT(*) FROM people WHERE education = '{{ 7 * 7 }}'

-- answered: a text is a value, whatever it looks like
SELECT COUNT(*) FROM people WHERE education = '$1' OR education = '?' OR education = ':x'

-- answered: a text is a value, whatever it looks like
SELECT COUNT(*) FROM people WHERE education = '; DELETE FROM people'

-- answered: a text is a value, whatever it looks like
SELECT COUNT(*) FROM people WHERE education = 'école'

-- answered: a text is a value, whatever it looks like
SELECT COUNT(*) FROM people WHERE education = 'a''b"c'

-- answered: a text is a value, whatever it looks like
SELECT COUNT(*) FROM people WHERE education = '/*' OR education = '*/'

-- answered: a text is a value, whatever it looks like
SELECT '"' AS double, '\' AS slash, COUNT(*) FROM people

-- answered: numbers are read as the dialect reads them
SELECT COUNT(*) FROM people WHERE age = 3_4

-- answered: numbers are read as the dialect reads them
SELECT COUNT(*) FROM people WHERE age < 1e3

-- answered: numbers are read as the dialect reads them
SELECT COUNT(*) FROM people WHERE age > .5

-- answered: numbers are read as the dialect reads them
SELECT COUNT(*) FROM people WHERE age > 5.

-- answered: numbers are read as the dialect reads them
SELECT COUNT(*) FROM people WHERE age < 9223372036854775807

-- answered: numbers are read as the dialect reads them
SELECT COUNT(*) FROM people WHERE age > -9223372036854775808

-- answered: numbers are read as the dialect reads them
SELECT COUNT(*) FROM people WHERE income > 1e300 OR income < -1e300

-- answered: numbers are read as the dialect reads them
SELECT COUNT(*) FROM people WHERE age = 0034

-- answered: numbers are read as the dialect reads them
SELECT COUNT(*) FROM people WHERE age > -0.0

-- answered: numbers are read as the dialect reads them
SELECT COUNT(*) FROM people WHERE age + 9223372036854775807 > 0

-- answered: numbers are read as the dialect reads them
SELECT COUNT(*) FROM people WHERE person_id * 9223372036854775807 > 0

-- answered: one person may be asked for: the answer has noise for one person, and it is paid for
SELECT COUNT(*) FROM people WHERE person_id = 7

-- answered: one person may be asked for: the answer has noise for one person, and it is paid for
SELECT SUM(age) FROM people WHERE person_id IN (1, 2, 3)

-- answered: one person may be asked for: the answer has noise for one person, and it is paid for
SELECT COUNT(*) FROM people WHERE person_id > 3 AND person_id < 5

-- answered: one person may be asked for: the answer has noise for one person, and it is paid for
SELECT COUNT(*) FROM visits WHERE person_id = 1

-- answered: the range follows from the expression, also where it looks unbounded
SELECT SUM(LN(age + 1)) FROM people

-- answered: the range follows from the expression, also where it looks unbounded
SELECT SUM(person_id % 2) FROM people

-- answered: the range follows from the expression, also where it looks unbounded
SELECT SUM(SIGN(income)) FROM people

-- answered: the range follows from the expression, also where it looks unbounded
SELECT SUM(CASE WHEN income > 0 THEN 1 ELSE 0 END) FROM people

-- answered: released numbers may be used freely
SELECT sex, n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t ORDER BY n DESC, sex LIMIT 1

-- answered: released numbers may be used freely
SELECT DISTINCT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- answered: released numbers may be used freely
SELECT sex, ROW_NUMBER() OVER (ORDER BY n DESC, sex) AS r FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- answered: released numbers may be used freely
SELECT n FROM (SELECT COUNT(*) AS n FROM people) EXCEPT SELECT n FROM (SELECT COUNT(*) + 1 AS n FROM people)

-- answered: released numbers may be used freely
SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM visits

-- answered: released numbers may be used freely
SELECT COUNT(*) FROM people INTERSECT SELECT COUNT(*) FROM people

-- answered: released numbers may be used freely
SELECT x.sex, y.n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) x, (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) y

-- answered: released numbers may be used freely
SELECT (SELECT COUNT(*) FROM people) - (SELECT COUNT(*) FROM people) AS zero

-- answered: released numbers may be used freely
SELECT n FROM (SELECT COUNT(*) AS n FROM people) t WHERE EXISTS (SELECT 1 FROM (SELECT COUNT(*) AS m FROM visits) u WHERE u.m >= t.n)

-- answered: released numbers may be used freely
SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) > 0 QUALIFY RANK() OVER (ORDER BY sex) = 1

-- answered: released numbers may be used freely
SELECT sex, LAG(COUNT(*)) OVER (ORDER BY sex) FROM people GROUP BY sex

-- answered: released numbers may be used freely
SELECT MEDIAN(n), MAX(n), MIN(n) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)

-- answered: released numbers may be used freely
SELECT 5 IS NULL, 2 IN (1, 2), 2 BETWEEN 1 AND 3, NOT TRUE

-- answered: released numbers may be used freely
SELECT -2 * 3 + 4 // 3 % 5 AS x

-- answered: released numbers may be used freely
SELECT 1 WHERE 1 = 2

-- answered: released numbers may be used freely
SELECT NULL AS x, COUNT(*) FROM people

-- answered, unlike DuckDB: DuckDB leaves NULL out of LEAST and GREATEST; here a missing value is no bound
SELECT SUM(GREATEST(0, LEAST(income, 500))) FROM people

-- answered, unlike DuckDB: DuckDB leaves NULL out of LEAST and GREATEST; here a missing value is no bound
SELECT COUNT(*) FROM people WHERE GREATEST(hours, age) > 40

-- answered, unlike DuckDB: where DuckDB raises, the value is NULL
SELECT COUNT(*) FROM people WHERE CAST(education AS BIGINT) = 1

-- answered, unlike DuckDB: where DuckDB raises, the value is NULL
SELECT COUNT(*) FROM people WHERE CAST(education AS DATE) IS NULL

-- answered, unlike DuckDB: where DuckDB raises, the value is NULL
SELECT COUNT(*) FROM people WHERE LN(age - 34) > 0

-- answered, unlike DuckDB: where DuckDB raises, the value is NULL
SELECT COUNT(*) FROM people WHERE SQRT(income) > 1

-- answered, unlike DuckDB: where DuckDB raises, the value is NULL
SELECT COUNT(*) FROM people WHERE age // hours = 0

-- answered, unlike DuckDB: where DuckDB raises, the value is NULL
SELECT COUNT(*) FROM people WHERE age % hours = 0

-- answered, unlike DuckDB: where DuckDB raises, the value is NULL
SELECT COUNT(*) FROM people WHERE CASE WHEN person_id = 7 THEN CAST(education AS BIGINT) = 0 ELSE TRUE END

-- answered, unlike DuckDB: where DuckDB raises, the value is NULL
SELECT SUM(age / 0) FROM people

-- answered, unlike DuckDB: where DuckDB raises, the value is NULL
SELECT SUM(age / hours) FROM people

-- answered, unlike DuckDB: where DuckDB raises, the value is NULL
SELECT SUM(LN(income)) FROM people

-- answered, unlike DuckDB: where DuckDB raises, the value is NULL
SELECT COUNT(*) FROM people WHERE ABS(-9223372036854775808) > age

-- answered, unlike DuckDB: public keys appear also where nobody is
SELECT person_id % 2, COUNT(*) FROM people GROUP BY 1

-- answered, unlike DuckDB: public keys appear also where nobody is
SELECT hours, COUNT(*) FROM people GROUP BY hours

-- answered, unlike DuckDB: public keys appear also where nobody is
SELECT COUNT(*) FROM people GROUP BY MONTH(born)

-- answered: the engine of released numbers reads every operator with the dialect's precedence
SELECT 2 ^ 3 ^ 2, -2 ^ 2, 2 ** 3

-- answered: the engine of released numbers reads every operator with the dialect's precedence
SELECT POWER(2, 3), 7 % -3, -7 // 2, 7 / 2, 1 / 3 * 3

-- answered: the engine of released numbers reads every operator with the dialect's precedence
SELECT CAST('1' AS INTEGER) + 1, '1'::DOUBLE, CAST(2.5 AS INTEGER)

-- answered: the engine of released numbers reads every operator with the dialect's precedence
SELECT 1 = 1 AND NOT 2 = 2 OR 3 = 3, NOT (1 = 1 OR 2 = 2), 1 - 1 - 1, 8 / 4 / 2, 2 * (3 + 4)

-- answered: the engine of released numbers reads every operator with the dialect's precedence
SELECT 'a' || 'b' LIKE 'a%' AND 1 < 2, NOT 'a' LIKE 'b', 1 IS NULL OR TRUE

-- answered: the engine of released numbers reads every operator with the dialect's precedence
SELECT CASE WHEN 1 = 2 THEN 3 ELSE 4 END + 1, COALESCE(NULL, 1 + 2) * 3

-- answered: the engine of released numbers reads every operator with the dialect's precedence
SELECT -(-1), - -1, -(1 - 2), 1 - -1

-- answered: the engine of released numbers reads every operator with the dialect's precedence
SELECT DATE '2020-01-01' + INTERVAL 1 MONTH

-- answered: the engine of released numbers reads every operator with the dialect's precedence
SELECT LOG(100), LOG(2, 8), LN(1), ROUND(2.567, 1), FLOOR(-1.5), TRUNC(1.9)

-- answered: the engine of released numbers reads every operator with the dialect's precedence
SELECT n IN (1, 2) = FALSE, (n = 8) = TRUE, n IS NOT DISTINCT FROM 8 FROM (SELECT COUNT(*) AS n FROM people)

-- answered: the engine of released numbers reads every operator with the dialect's precedence
SELECT n BETWEEN 1 AND 2 + 3 AND TRUE FROM (SELECT COUNT(*) AS n FROM people)

-- answered: a name means the column first, then the alias, and may repeat in the answer
SELECT sex, COUNT(*) AS sex FROM people GROUP BY sex

-- answered: a name means the column first, then the alias, and may repeat in the answer
SELECT sex AS age, age AS sex, COUNT(*) FROM people GROUP BY sex, age

-- answered: a name means the column first, then the alias, and may repeat in the answer
SELECT COUNT(*) AS age, SUM(age) FROM people

-- answered: a name means the column first, then the alias, and may repeat in the answer
SELECT sex, COUNT(*) AS smoker FROM people GROUP BY sex ORDER BY smoker

-- answered: a name means the column first, then the alias, and may repeat in the answer
SELECT age AS a, a + 1 AS b, COUNT(*) FROM people GROUP BY age

-- answered: a name means the column first, then the alias, and may repeat in the answer
SELECT COUNT(*) n, SUM(age) n FROM people

-- answered: a name means the column first, then the alias, and may repeat in the answer
SELECT x.*, y.* FROM (SELECT COUNT(*) n FROM people) x, (SELECT COUNT(*) n FROM visits) y

-- answered: a constant is searched in a text
SELECT COUNT(*) FROM people WHERE strpos(education, 'a') = 2 OR instr(education, 'a') IS NULL

-- answered: a constant is searched in a text
SELECT COUNT(*) FROM people WHERE position('a' IN (education)) > 0

-- answered: a constant is searched in a text
SELECT COUNT(*) FROM people WHERE position('a' IN education) IN (1, 2)

-- answered: words between the arguments of SUBSTRING
SELECT COUNT(*) FROM people WHERE SUBSTRING(education FROM 1 FOR 4) = 'Bach' OR SUBSTRING(education FROM 2) = 'x'

-- answered: words between the arguments of SUBSTRING
SELECT COUNT(*) FROM people WHERE SUBSTRING(education FOR 2) = 'Ba'

-- answered: seconds since 1970
SELECT COUNT(*) FROM people WHERE EXTRACT(EPOCH FROM born) > 0 AND date_part('epoch', born) > 1

-- answered: brackets around keys mean nothing
SELECT sex AS s, smoker, COUNT(*) FROM people GROUP BY (s), ((smoker))

-- answered: a list of keys in brackets is the list
SELECT sex, smoker, COUNT(*) FROM people GROUP BY (sex, smoker)

-- answered: a position in brackets is a position
SELECT sex, COUNT(*) AS n FROM people GROUP BY (1) ORDER BY (2), (n)

-- answered: brackets around a table mean nothing
SELECT COUNT(a.age) FROM (people) AS a

-- answered: main is the only schema
SELECT COUNT(*) FROM main.people

-- answered: main is the only schema
SELECT COUNT(*) FROM "main"."people"

-- answered: brackets around a table mean nothing
SELECT COUNT(*) FROM (people)

-- answered: keys of which many units share a value are keys like all others
SELECT visit_id // 4 AS k, COUNT(*) FROM visits GROUP BY k

-- answered: keys of which many units share a value are keys like all others
SELECT hospital_id, COUNT(*) FROM visits GROUP BY 1

-- answered: keys of which many units share a value are keys like all others
SELECT LENGTH(CAST(person_id AS VARCHAR)) AS k, COUNT(*) FROM people GROUP BY k

-- answered: a quote in a comment means nothing while every space is plain
SELECT COUNT(*) /* it's "one */ FROM people -- isn't it
WHERE education = 'école'

-- answered: a number that is not a position is a constant to group by
SELECT SUM(n) AS s FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t GROUP BY 1.5

-- answered: a number that is not a position is a constant to group by
SELECT MAX(n) AS m FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t GROUP BY 1e3

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE born + INTERVAL 1 DAY > DATE '2020-01-01'

-- answered, unlike DuckDB: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE make_date(age, 1, 1) IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE date_add(born, INTERVAL 1 DAY) IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE date_sub('day', born, born) IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE last_day(born) IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE born + 1 > DATE '2020-01-01'

-- answered: free post-processing of released numbers
SELECT string_agg(sex, ',' ORDER BY sex) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- answered: free post-processing of released numbers
SELECT kurtosis(n) AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- answered: free post-processing of released numbers
SELECT * EXCLUDE (n) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- answered: everybody knows what is in it
SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t, unnest([1, 2]) u

-- answered: everybody knows what is in it
SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t, range(10)

-- answered: everybody knows what is in it
SELECT COUNT(*) FROM range(10)

-- answered: everybody knows what is in it
SELECT COUNT(*) FROM generate_series(1, 10)

-- answered: everybody knows what is in it
SELECT COUNT(*) FROM unnest([1, 2])

-- answered: everybody knows what is in it
SELECT COUNT(*) FROM (VALUES (1), (2)) t(a)

-- answered: everybody knows what is in it
SELECT * FROM (VALUES (1)) AS t

-- answered: everybody knows what is in it
SELECT COUNT(*) FROM hospitals

-- answered: everybody knows what is in it
SELECT region, COUNT(*) FROM hospitals GROUP BY region

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE strftime(born, '%Y') IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE ascii(education) IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE unicode(education) IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE ord(education) IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE translate(education, 'a', 'b') IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE weekday(born) IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE century(born) IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE concat_ws(',', sex, education) IS NULL

-- answered: rows about people may meet where they belong to one unit
SELECT COUNT(*) FROM people a JOIN people b ON a.person_id = b.person_id

-- answered: rows about people may meet where they belong to one unit
SELECT COUNT(*) FROM people a JOIN people b USING (person_id)

-- answered: rows about people may meet where they belong to one unit
SELECT COUNT(*) FROM visits a JOIN visits b ON a.person_id = b.person_id

-- answered: rows about people may meet where they belong to one unit
SELECT COUNT(*) FROM people LEFT JOIN visits ON people.person_id = visits.person_id

-- answered: rows about people may meet where they belong to one unit
SELECT COUNT(*) FROM people LEFT JOIN visits USING (person_id)

-- answered: an aggregate within each unit is no row about anybody until it is aggregated again
WITH a AS (SELECT person_id, SUM(cost) AS s FROM visits GROUP BY person_id) SELECT AVG(s) FROM a

-- answered: rows about people may meet where they belong to one unit
SELECT COUNT(*) FROM visits a JOIN people p ON a.person_id = p.person_id JOIN visits b ON b.person_id = p.person_id

-- answered: rows about people may meet where they belong to one unit
SELECT COUNT(*) FROM visits v RIGHT JOIN people p ON v.person_id = p.person_id

-- answered: every level follows from the finest one
SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex)

-- answered: every level follows from the finest one
SELECT sex, COUNT(*) FROM people GROUP BY CUBE (sex, smoker)

-- answered: every level follows from the finest one
SELECT sex, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), ())

-- answered: every level follows from the finest one
SELECT sex, SUM(n) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t GROUP BY ROLLUP (sex)

-- answered: every level follows from the finest one
SELECT sex, SUM(n) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t GROUP BY CUBE (sex)

-- answered: whether a unit has such rows follows from its own
SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM visits)

-- answered: whether a unit has such rows follows from its own
SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM visits WHERE visits.person_id = people.person_id)

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE education SIMILAR TO 'a'

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE education ~ 'a'

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE regexp_extract(education, 'a') IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE regexp_replace(education, 'a', 'b') IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE regexp_full_match(education, 'a') IS NULL

-- answered, unlike DuckDB: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE acos(income) IS NULL

-- answered, unlike DuckDB: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE asin(income) IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE atan2(age, hours) IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE degrees(income) IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE tan(income) IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE sin(income) IS NULL

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE cos(income) IS NULL

-- answered: the function has a value for every row, here and there
SELECT regexp_matches(education, 'a'), COUNT(*) FROM people GROUP BY 1

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FILTER (WHERE regexp_matches(education, 'a') IS NULL) FROM people

-- answered: the function has a value for every row, here and there
SELECT SUM(CASE WHEN regexp_matches(education, 'a') IS NULL THEN 1 ELSE 0 END) FROM people

-- answered: the function has a value for every row, here and there
SELECT COUNT(regexp_matches(education, 'a')) FROM people

-- answered, unlike DuckDB: the function has a value for every row, here and there
SELECT sex, COUNT(*) FROM people GROUP BY sex, regexp_matches(education, 'a')

-- answered: the function has a value for every row, here and there
SELECT COUNT_IF(regexp_matches(education, 'a') IS NOT NULL) FROM people

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE CASE WHEN person_id = 7 THEN regexp_matches(education, 'a') IS NULL ELSE TRUE END

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE CAST(age AS DECIMAL(10, 2)) = 1

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE CAST(age AS HUGEINT) = 1

-- answered: the function has a value for every row, here and there
SELECT COUNT(*) FROM people WHERE CAST(age AS UBIGINT) = 1

-- answered: the function has a value for every row, here and there
SELECT COUNT(CAST(age - 30 AS UHUGEINT)) FROM people WHERE age >= 30

-- answered: rows of several branches, each of one person
SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT hours FROM people)

-- answered: rows of several branches, each of one person
SELECT COUNT(*) FROM (SELECT person_id FROM people EXCEPT SELECT person_id FROM visits)

-- answered: rows of several branches, each of one person
WITH a AS (SELECT age FROM people UNION ALL SELECT age FROM people) SELECT COUNT(*) FROM a

-- answered: its levels are releases of their own
SELECT education, COUNT(*) FROM people GROUP BY ROLLUP (education)

-- answered: its levels are releases of their own
SELECT sex, STDDEV(age) FROM people GROUP BY ROLLUP (sex)

-- answered: its levels are releases of their own
SELECT sex, COUNT(DISTINCT person_id) FROM people GROUP BY CUBE (sex, smoker)

-- answered: its levels are releases of their own
SELECT sex, COUNT(DISTINCT age) FROM people GROUP BY ROLLUP (sex)

-- answered: its levels are releases of their own
SELECT sex, SUM(DISTINCT age) FROM people GROUP BY GROUPING SETS ((sex), ())

-- answered: a visit is one row of one person
SELECT COUNT(*) FROM visits a JOIN visits b USING (visit_id)

-- answered: tests of one visit are one person's
SELECT COUNT(*) FROM tests a JOIN visits v ON a.visit_id = v.visit_id JOIN tests b ON b.visit_id = v.visit_id

-- answered: the nested query reads rows of the same person alone
SELECT COUNT(*) FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id) > 3

-- answered: a visit and its tests are one person's
SELECT COUNT(*) FROM visits LEFT JOIN tests ON visits.visit_id = tests.visit_id

-- answered: constants beside rows of one person are no rows of another
SELECT b.name, COUNT(*) FROM people JOIN (VALUES ('young', 0, 30), ('any', 0, 200)) AS b(name, low, high) ON age >= low AND age < high GROUP BY b.name

-- answered: constants beside rows of one person are no rows of another
SELECT x, COUNT(*) FROM visits CROSS JOIN generate_series(1, 3) AS g(x) GROUP BY x

-- answered: constants beside rows of one person are no rows of another
SELECT COUNT(*) FROM people, UNNEST(['female', 'nobody']) AS s(word) WHERE sex = word

-- answered: each row is of one person, whatever it meets
SELECT COUNT(*) FROM people NATURAL JOIN visits

-- answered: each row is of one person, whatever it meets
SELECT COUNT(*) FROM visits NATURAL JOIN people

-- answered: each row is of one person, whatever it meets
SELECT COUNT(*) FROM people, unnest([1, 2])

-- answered: a released number in the private part
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)

-- answered: a released number in the private part
SELECT COUNT(*) FROM people WHERE age <> (SELECT AVG(age) FROM people)

-- answered: one released row, which every row meets
SELECT COUNT(*) FROM people p, (SELECT COUNT(*) AS n FROM visits) t

-- answered: one released row, which every row meets
WITH a AS (SELECT COUNT(*) AS n FROM people) SELECT COUNT(*) FROM visits, a WHERE visits.cost > a.n

-- answered: each row is of one person, whatever it meets
SELECT COUNT(*) FROM people p JOIN hospitals h ON p.person_id = h.hospital_id

-- answered: another spelling of what is answered
SELECT COUNT(*) FROM people WHERE age || sex = 'a'

-- answered: another spelling of what is answered
SELECT * FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t PIVOT (SUM(n) FOR sex IN ('male', 'female'))

-- answered: another spelling of what is answered
SELECT * FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t UNPIVOT (a FOR b IN (n))

-- answered: another spelling of what is answered
SELECT * REPLACE (1 AS n) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t

-- answered: another spelling of what is answered
SELECT COUNT(*) FROM people FETCH FIRST 1 ROW ONLY

-- answered: a full join on the unit
SELECT COUNT(*) FROM visits v FULL JOIN people p ON v.person_id = p.person_id

-- answered: a full join on the unit
SELECT COUNT(*) FROM visits v FULL OUTER JOIN people p USING (person_id)

-- answered: an outer join that keeps public rows
SELECT x, COUNT(age) FROM (VALUES ('female'), ('nobody')) AS v(x) LEFT JOIN people ON sex = x GROUP BY x

-- answered: an outer join that keeps public rows
SELECT x, COUNT(age) FROM (VALUES ('female'), (NULL)) AS v(x) LEFT JOIN people ON sex = x GROUP BY x

-- answered: an outer join that keeps public rows
SELECT region, COUNT(v.visit_id) FROM hospitals h FULL JOIN visits v ON v.hospital_id = h.hospital_id GROUP BY region

-- answered: a pivot of rows is a release of groups
SELECT sex, "true", "false" FROM (PIVOT people ON smoker IN (true, false) USING COUNT(*) GROUP BY sex) t

-- answered: an unpivot repeats each row
SELECT k, AVG(v) FROM people UNPIVOT (v FOR k IN (age, hours)) GROUP BY k

-- answered: a nested query of constants is a constant
SELECT (SELECT 1) AS x, COUNT(*) FROM people GROUP BY 1

-- answered: a nested query of constants is a constant
SELECT COUNT(*) FROM people GROUP BY (SELECT 1)

-- answered: a nested query of constants is a constant
SELECT COUNT(*) FROM people WHERE age IN (SELECT 17)
