-- refused: group_by_unit
SELECT person_id, COUNT(*) FROM people GROUP BY person_id

-- refused: group_by_unit
SELECT person_id, COUNT(*) FROM people GROUP BY 1

-- refused: group_by_unit
SELECT person_id, COUNT(*) FROM people GROUP BY ALL

-- refused: group_by_unit
SELECT COUNT(*) FROM people GROUP BY person_id

-- refused: group_by_unit
SELECT COUNT(*) FROM people GROUP BY people.person_id

-- refused: group_by_unit
SELECT COUNT(*) FROM people GROUP BY (person_id)

-- refused: group_by_unit
SELECT COUNT(*) FROM people GROUP BY "PERSON_ID"

-- refused: group_by_unit
SELECT person_id AS x, COUNT(*) FROM people GROUP BY x

-- refused: group_by_unit
SELECT sex, person_id, COUNT(*) FROM people GROUP BY sex, person_id

-- refused: group_by_unit
SELECT person_id, SUM(cost) FROM visits GROUP BY person_id

-- refused: group_by_unit
SELECT v.person_id, COUNT(*) FROM visits v GROUP BY ALL

-- refused: group_by_unit
SELECT p.person_id, AVG(v.cost) FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY p.person_id

-- refused: group_by_unit
SELECT ward, person_id, COUNT(*) FROM visits GROUP BY ward, person_id

-- refused: group_by_unit
SELECT v.person_id, COUNT(*) FROM tests t JOIN visits v ON t.visit_id = v.visit_id GROUP BY 1

-- refused: unsupported_sql
SELECT MODE(DISTINCT n) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id)

-- refused: group_by_unit
SELECT person_id, COUNT(*) FROM people GROUP BY person_id HAVING COUNT(*) > 1

-- refused: group_by_unit
SELECT person_id, COUNT(*) FROM people GROUP BY person_id LIMIT 1

-- refused: group_by_unit
SELECT person_id + 0, COUNT(*) FROM people GROUP BY 1

-- refused: group_by_unit
SELECT 7 - person_id, COUNT(*) FROM people GROUP BY 1

-- refused: group_by_unit
SELECT person_id * 3 AS k, COUNT(*) FROM people GROUP BY k

-- refused: group_by_unit
SELECT -person_id, COUNT(*) FROM people GROUP BY 1

-- refused: group_by_unit
SELECT CAST(person_id AS VARCHAR), COUNT(*) FROM people GROUP BY 1

-- refused: group_by_unit
SELECT CAST(CAST(person_id AS DOUBLE) AS BIGINT), COUNT(*) FROM people GROUP BY 1

-- refused: group_by_unit
SELECT FLOOR(CAST(person_id AS DOUBLE)), COUNT(*) FROM people GROUP BY 1

-- refused: group_by_unit
SELECT 'p' || CAST(person_id AS VARCHAR) || '!', COUNT(*) FROM people GROUP BY 1

-- refused: group_by_unit
SELECT CONCAT(CAST(person_id AS VARCHAR), '-', sex), COUNT(*) FROM people GROUP BY 1

-- refused: group_by_unit
SELECT COALESCE(person_id, 0), COUNT(*) FROM people GROUP BY 1

-- refused: group_by_unit
SELECT NULLIF(person_id, 4), COUNT(*) FROM people GROUP BY 1

-- refused: group_by_unit
SELECT sex, person_id + 1, COUNT(*) FROM people GROUP BY ALL

-- refused: group_by_unit
SELECT visit_id, COUNT(*) FROM visits GROUP BY 1

-- refused: group_by_unit
SELECT visit_id * 2 + 1 AS k, AVG(cost) FROM visits GROUP BY k

-- refused: group_by_unit
SELECT ward, visit_id, COUNT(*) FROM visits GROUP BY ward, visit_id

-- refused: group_by_unit
SELECT visit_id, COUNT(*) FROM tests GROUP BY visit_id

-- refused: group_by_unit
SELECT v.visit_id, AVG(t.result) FROM tests t JOIN visits v ON t.visit_id = v.visit_id GROUP BY 1

-- refused: group_by_unit
SELECT p.person_id + 0 AS k, SUM(v.cost) FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY k
