-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age = 0x10

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age = 0b10

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age = 1__0

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age = 1D

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age = 1L

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE age = 1.2.3

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age = 1.5e

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age = 1e+

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age = 1e5e5

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE age = ٣

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE age = １

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age = 1 2

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE sex = 'male

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE "sex = 'male'

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE sex = 'it's'

-- refused: parse_error
SELECT COUNT(*) FROM people /* not closed

-- refused: parse_error
SELECT COUNT(*) FROM people /* /* */

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE sex = $$male

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE sex = $a$male$b$

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE sex = ‘male’

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age ≥ 3

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE age ＞ 3

-- refused: too_large
SELECT COUNT(*) FROM people WHERE age = 9223372036854775808

-- refused: too_large
SELECT COUNT(*) FROM people WHERE age = -9223372036854775809

-- refused: too_large
SELECT COUNT(*) FROM people WHERE age = 99999999999999999999999999

-- refused: too_large
SELECT COUNT(*) FROM people WHERE age > 1e400

-- refused: too_large
SELECT COUNT(*) FROM people WHERE age > -1e400

-- refused: too_large
SELECT COUNT(*) FROM people WHERE age > 1e301

-- refused: too_large
SELECT SUM(age * 170141183460469231731687303715884105727) FROM people

-- refused: too_large
SELECT SUM(person_id * person_id * person_id) FROM people

-- refused: too_large
SELECT COUNT(*) FROM people WHERE person_id * person_id * person_id > 5

-- refused: too_large
SELECT COUNT(*) FROM people WHERE education = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'

-- refused: too_large
SELECT COUNT(*) FROM people WHERE age = 9999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE age = '5'

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE sex = 5

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE age = TRUE

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE smoker = 1

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE smoker = 'true'

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE age

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE education

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE 1

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE 'true'

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE NULL

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE age AND smoker

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE NOT age

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE -sex = 'a'

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE sex + 1 > 2

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE sex * sex = 'a'

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE smoker > FALSE + 1

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE born > '2020'

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE born > 'yesterday'

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE born = '2020-02-30'

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE born > 'infinity'

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE born > '2020-01-01T00:00:00Z'

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE born > 5

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE DATE 'not a date' = born

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE age IN ('a', 'b')

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE age BETWEEN 'a' AND 'b'

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE CASE WHEN smoker THEN 1 ELSE 'a' END = 1

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE COALESCE(age, 'a') = 1

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE LOWER(age) = 'a'

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE LENGTH(age) = 1

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE YEAR(age) = 1

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE YEAR(education) = 1

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE SQRT(education) = 1

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE ABS(smoker) = 1

-- refused: unsupported_type
SELECT SUM(education) FROM people

-- refused: unsupported_type
SELECT SUM(born) FROM people

-- refused: unsupported_type
SELECT AVG(smoker = TRUE) FROM people

-- refused: unsupported_type
SELECT AVG(sex) FROM people

-- refused: unsupported_type
SELECT STDDEV(born) FROM people

-- refused: unsupported_type
SELECT COUNT_IF(age) FROM people

-- refused: unsupported_type
SELECT COUNT(*) FILTER (WHERE age) FROM people

-- refused: unsupported_type
SELECT salary, COUNT(*) FROM people GROUP BY salary

-- refused: unsupported_type
SELECT age / 2, COUNT(*) FROM people GROUP BY 1

-- refused: unsupported_type
SELECT COUNT(*) FROM people GROUP BY income * 2

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE CAST(education AS BLOB) IS NULL

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE CAST(education AS JSON) IS NULL

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE CAST(education AS UUID) IS NULL

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE CAST(education AS TIME) IS NULL

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE CAST(education AS TIMESTAMPTZ) IS NULL

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE CAST(education AS INTEGER[]) IS NULL

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE CAST(education AS STRUCT(a INTEGER)) IS NULL

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE CAST(education AS INTERVAL) IS NULL

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE CAST(education AS sometype) IS NULL

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE education::BIT IS NULL

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE CAST(sex AS ENUM ('a')) = 'a'

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE CAST(born AS BIGINT) = 1

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE CAST(income AS VARCHAR) = '1'

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE CAST(smoker AS DATE) IS NULL

-- refused: unsupported_type
SELECT COUNT(*) FROM people WHERE income // 2 = 1
