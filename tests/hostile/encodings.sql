-- refused, escaped: parse_error
SELECT COUNT(*) FROM people\x00

-- refused, escaped: parse_error
SELECT\x0bCOUNT(*) FROM people

-- refused, escaped: parse_error
SELECT COUNT(*) FROM people WHERE sex = 'a\x00b'

-- refused, escaped: parse_error
SELECT COUNT(*) FROM people WHERE sex = '\x1b[31m'

-- refused, escaped: parse_error
SELECT COUNT(*) FROM people WHERE sex = '\x07'

-- refused, escaped: parse_error
\ufeffSELECT COUNT(*) FROM people

-- refused, escaped: unknown_table
SELECT COUNT(*) FROM people\u200b WHERE age > 1

-- refused, escaped: unknown_table
SELECT COUNT(*) FROM peop\u200ble

-- refused: unknown_table
SELECT COUNT(*) FROM pеople

-- refused: unknown_table
SELECT COUNT(*) FROM "peoplé"

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE ａge > 1

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE smoKer

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE İncome > 1

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE ıncome > 1

-- refused: unknown_column
SELECT COUNT(*) FROM people WHERE ſex = 'male'

-- refused: unknown_table
SELECT COUNT(*) FROM viſits

-- refused, escaped: unknown_table
SELECT COUNT(*) FROM \u202eelpoep

-- refused: parse_error
SELECT COUNT(*) FROM people; SELECT 1

-- refused: unknown_column
SELECT COUNT(＊) FROM people

-- refused, escaped: parse_error
\u2028

-- refused, escaped: parse_error


-- refused, escaped: parse_error
 

-- refused, escaped: parse_error
\t\n\r

-- refused: parse_error
;

-- refused: parse_error
;;;

-- refused, escaped: parse_error
--

-- refused: parse_error
/* only a comment */

-- refused, escaped: parse_error
\r

-- refused, escaped: parse_error
SELECT COUNT(*) FROM people --\rWHERE

-- refused: parse_error
'

-- refused: parse_error
"

-- refused: parse_error
(

-- refused: parse_error
)

-- refused: parse_error
\

-- refused: parse_error
SELECT \ COUNT(*)

-- refused: not_a_query
💩

-- refused, escaped: parse_error
SELECT COUNT(*) FROM people WHERE sex = '\x7f' AND

-- refused: parse_error
%00

-- refused, escaped: not_a_query
DELETE\xa0FROM people

-- refused: many_statements
SELECT 1;
SELECT 2

-- refused, escaped: many_statements
SELECT 1;--\rSELECT 2

-- refused, escaped: raw_rows
SELECT\xa0*\u3000FROM\u2003people

-- refused: raw_rows
select/**/age/**/from/**/people

-- refused, escaped: raw_rows
SELECT -- \n * -- x\r FROM people

-- refused: parse_error
SELECT/*/**/*/* FROM people

-- refused, escaped: parse_error
SELECT COUNT(*) FROM people /*/* */ WHERE smoker -- */

-- refused, escaped: parse_error
SELECT COUNT(*) FROM people\xa0WHERE smoker

-- refused, escaped: parse_error
SELECT sex, COUNT(*) AS "n\xa0", SUM(age) AS n FROM people GROUP BY sex ORDER BY n\xa0

-- refused, escaped: parse_error
SELECT sex, COUNT(*) AS "n\u2028DESC", SUM(age) AS n FROM people GROUP BY sex ORDER BY n\u2028DESC

-- refused, escaped: parse_error
SELECT sex, COUNT(*) AS "n\u200bDESC", SUM(age) AS n FROM people GROUP BY sex ORDER BY n\u200bDESC

-- refused, escaped: parse_error
SELECT COUNT(*) /* ' */ FROM people WHERE education = 'a\xa0b'

-- refused: parse_error
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY +1

-- refused: parse_error
SELECT COUNT(*) FROM ..people
