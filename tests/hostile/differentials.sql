-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age! IS NULL

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age! IN (1, 2)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age! BETWEEN 1 AND 2

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE education! LIKE 'a%'

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age! IS DISTINCT FROM 6

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE !smoker

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE ! (age > 3)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE NOT !smoker

-- refused: unsupported_sql
SELECT 5! IS NULL

-- refused: unsupported_sql
SELECT 5! IN (3, 2)

-- refused: unsupported_sql
SELECT 3! IS DISTINCT FROM 6

-- refused: unsupported_sql
SELECT !TRUE

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE ~age + 5 > 1

-- refused: unsupported_sql
SELECT ~5 + 5

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE ABS(age) ^ 2 > 1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE 2 ** -age > 1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE -age ^ 2 > 1

-- refused: unsupported_sql
SELECT SUM(-age ^ 2) FROM people

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age ^ ~2 + 5 > 1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age & 0 || 2 & 1 = '0'

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age & 1 = 1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age | 1 = 1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age << 2 > 1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age >> 2 > 1

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age # 2 > 1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE smoker IS TRUE || 'a'

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age IS 5

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE smoker IS UNKNOWN

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE @age > 1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE @NULL IS NULL

-- refused: unsupported_sql
SELECT @TRUE

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age BETWEEN SYMMETRIC 5 AND 1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age <=> 1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age DIV 2 = 1

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE education GLOB 'a*'

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE education ~~~ 'a*'

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE education LIKE ANY ('a', 'b')

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE (age, hours) = (1, 2)

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE ROW(age, hours) IS NULL

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age = 1 OVERLAPS 2

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE born AT TIME ZONE 'UTC' > DATE '2020-01-01'

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE education = $$school$$

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE education = $a$school$a$

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE education = E'a\nb'

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE education = N'a'

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE education = U&'a'

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE education[1] = 'a'

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age IS JSON

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE education = 'a' COLLATE "C"

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE smoker OR FALSE -> 5

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE age -> 'x' IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE education ->> 'x' IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE 1 = '{"a":1}'::json -> 'a'

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE education ~* 'a'

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE decode(education, 'replace') = 'a'

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE NVL(age, 1) > 0

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE education COLLATE NOCASE = 'a'

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE list_contains([1, 2], age)

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE apply([age], lambda x: x) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE date_trunc('month', born, 'UTC') IS NULL

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE education.upper() = 'A'

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age.abs() = 3

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE sex = 'a' 'b'

-- refused: parse_error
SELECT COUNT(*) FROM people {# WHERE smoker #}

-- refused: parse_error
SELECT COUNT(*) {# a comment of templates #} FROM people

-- refused: unsupported_function
SELECT {{ 1 }}

-- refused: parse_error
SELECT COUNT(*) {% if x %} FROM people

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE sex = X'41'

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE sex = B'101'

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE `sex` = 'a'

-- refused: parse_error
SELECT `age`, COUNT(*) FROM people GROUP BY `age`

-- refused: parse_error
SELECT COUNT(*) FROM people # comment

-- refused: parse_error
SELECT COUNT(*) FROM people // comment

-- refused: parse_error
SELECT COUNT(*) FROM people -/- comment

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE 1 < age < 3

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age = hours = TRUE

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age > 1 = TRUE

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age MOD 2 = 1

-- refused: parse_error
SELECT TOP 5 COUNT(*) FROM people

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age !> 3

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age =! 3

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE [age] = 3 AND "" = 1

-- refused: parse_error
SELECT COUNT(*) AS "" FROM people

-- refused: parse_error
SELECT COUNT(*) 'name' FROM people

-- refused: parse_error
SELECT COUNT(*) end FROM people

-- refused: parse_error
SELECT COUNT(*) FROM people end

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE education = 'a' || || 'b'

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age = 5age

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE smoker NOT IS NULL

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age = ?

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age > ? AND hours > ?

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age = 1 AND

-- refused: parse_error
SELECT COUNT(*) FROM people SETTINGS max_threads = 1

-- refused: parse_error
SELECT COUNT(*) FROM people FORMAT JSON

-- refused: parse_error
SELECT COUNT(*) FROM people MATCH_RECOGNIZE (PATTERN (a) DEFINE a AS TRUE)

-- refused: parse_error
SELECT COUNT(*) FROM people GROUP BY DISTINCT sex

-- refused: unsupported_function
SELECT DATE(born, ) FROM people

-- refused: parse_error
SELECT COUNT(ALL) FROM people

-- refused: parse_error
SELECT COUNT(*) FILTER (WHERE age > 1) FILTER (WHERE age < 5) FROM people

-- refused: parse_error
SELECT SUM(age, hours) FROM people

-- refused: parse_error
SELECT AVG() FROM people
