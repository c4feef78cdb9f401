-- refused: group_by_unit
SELECT person_id, COUNT(*) FROM people GROUP BY ROLLUP (person_id)

-- refused: group_by_unit
SELECT sex, person_id, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), (person_id))

-- refused: unsupported_sql
SELECT sex, GROUPING(age), COUNT(*) FROM people GROUP BY ROLLUP (sex)

-- refused: unsupported_function
SELECT sex, GROUPING(sex), COUNT(*) FROM people GROUP BY sex

-- refused: raw_rows
SELECT sex, age, COUNT(*) FROM people GROUP BY ROLLUP (sex)

-- refused: raw_rows
SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex) HAVING age > 3

-- refused: too_large
SELECT sex, smoker, COUNT(*) FROM people GROUP BY CUBE (sex, smoker), CUBE (sex, smoker), ROLLUP (sex)

-- refused: too_large
SELECT sex, COUNT(*) FROM people GROUP BY CUBE (sex, sex, sex, sex, sex, sex, sex, sex, sex, sex, sex, sex, sex, sex, sex, sex, sex)

-- refused: volatile_function
SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex) HAVING random() > 0.5

-- refused: unsupported_function
SELECT sex, COUNT(*) FROM people WHERE GROUPING(sex) = 0 GROUP BY ROLLUP (sex)
