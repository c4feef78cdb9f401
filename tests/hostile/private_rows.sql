-- refused: unsupported_type
SELECT DISTINCT income FROM people ORDER BY 1 LIMIT 1

-- refused: group_by_unit
SELECT DISTINCT person_id, sex FROM people

-- refused: no_groups
SELECT DISTINCT sex FROM people WHERE 1 = 2

-- refused: private_row_limit
SELECT DISTINCT ROW_NUMBER() OVER (ORDER BY sex) FROM people

-- refused: private_row_limit
SELECT ROW_NUMBER() OVER () FROM people

-- refused: private_row_limit
SELECT RANK() OVER (ORDER BY income) FROM people

-- refused: private_row_limit
SELECT LAG(income) OVER (ORDER BY person_id) FROM people

-- refused: private_row_limit
SELECT age, SUM(age) OVER () FROM people

-- refused: private_row_limit
SELECT FIRST_VALUE(income) OVER (ORDER BY age) FROM people

-- refused: private_row_limit
SELECT NTILE(4) OVER (ORDER BY income) FROM people

-- refused: private_row_limit
SELECT COUNT(*) OVER () FROM people

-- refused: private_row_limit
SELECT AVG(age) OVER (PARTITION BY sex) FROM people

-- refused: raw_rows
SELECT person_id FROM people QUALIFY ROW_NUMBER() OVER (ORDER BY income DESC) = 1

-- refused: private_row_limit
SELECT COUNT(*) FROM people WHERE ROW_NUMBER() OVER () = 1

-- refused: private_row_limit
SELECT COUNT(*) FROM people WHERE RANK() OVER (ORDER BY income) < 3

-- refused: private_row_limit
SELECT SUM(ROW_NUMBER() OVER ()) FROM people

-- refused: private_row_limit
SELECT COUNT(*) FILTER (WHERE ROW_NUMBER() OVER () < 3) FROM people

-- refused: private_row_limit
SELECT ROW_NUMBER() OVER () AS r, COUNT(*) FROM people GROUP BY r

-- refused: private_row_limit
SELECT COUNT(*) FROM (SELECT age, ROW_NUMBER() OVER (ORDER BY age) AS r FROM people) WHERE r < 5
