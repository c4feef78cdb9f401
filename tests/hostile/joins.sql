-- refused: join_not_on_key
SELECT COUNT(*) FROM people, visits

-- refused: join_not_on_key
SELECT COUNT(*) FROM people p, visits v WHERE p.person_id = v.person_id + 0

-- refused: unsupported_sql
SELECT COUNT(*) FROM people CROSS JOIN visits

-- refused: join_not_on_key
SELECT COUNT(*) FROM people JOIN visits ON TRUE

-- refused: join_not_on_key
SELECT COUNT(*) FROM people JOIN visits ON 1 = 1

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits JOIN people ON visits.person_id = people.person_id OR TRUE

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v LEFT JOIN people p ON v.person_id = p.person_id AND (p.age > v.cost OR p.age > 3) JOIN hospitals h USING (hospital_id)

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN people p ON v.person_id <= p.person_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN people p ON v.person_id <> p.person_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN people p ON v.person_id + 0 = p.person_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN people p ON v.visit_id = p.person_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN people p ON v.person_id = p.age

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN people p ON v.cost = p.salary

-- refused: join_not_on_key
SELECT COUNT(*) FROM people a JOIN people b ON a.age = b.age

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits a JOIN visits b USING (hospital_id)

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN hospitals h ON v.hospital_id = h.beds

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN hospitals h ON v.ward = h.region

-- refused: join_not_on_key
SELECT COUNT(*) FROM people p JOIN hospitals h ON TRUE

-- refused: join_not_on_key
SELECT COUNT(*) FROM tests t JOIN people p ON t.test_id = p.person_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM tests t JOIN visits v ON t.test_id = v.visit_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN people p

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN people p ON v.person_id = v.person_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN people p ON p.person_id = p.person_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN people p ON v.person_id IS NOT DISTINCT FROM p.person_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN people p ON (v.person_id, 1) = (p.person_id, 1)

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN people p ON v.person_id IN (p.person_id)

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN people p ON EXISTS (SELECT 1)

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN hospitals h USING (hospital_id, person_id)

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v LEFT JOIN people p ON TRUE

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN tests t ON v.person_id = t.test_id

-- refused: join_multiplies
SELECT COUNT(*) FROM tests a JOIN tests b ON a.visit_id = b.visit_id JOIN tests c ON a.visit_id = c.visit_id

-- refused: unsupported_sql
SELECT COUNT(*) FROM hospitals h LEFT JOIN visits v ON v.hospital_id = h.hospital_id

-- refused: join_multiplies
SELECT SUM(a.cost) FROM visits a JOIN hospitals h ON a.hospital_id = h.hospital_id JOIN visits b ON b.hospital_id = h.hospital_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM tests a JOIN visits v ON a.visit_id = v.visit_id JOIN tests b ON b.test_id = v.visit_id

-- refused: unsupported_sql
SELECT COUNT(*) FROM people POSITIONAL JOIN visits

-- refused: unsupported_sql
SELECT COUNT(*) FROM visits ASOF JOIN people ON visits.person_id >= people.person_id

-- refused: unsupported_sql
SELECT COUNT(*) FROM visits v ASOF JOIN people p USING (person_id)

-- refused: correlated_subquery
SELECT COUNT(*) FROM visits v SEMI JOIN people p ON v.person_id > p.person_id

-- refused: correlated_subquery
SELECT COUNT(*) FROM people p ANTI JOIN visits v ON v.ward = p.sex

-- refused: unsupported_sql
SELECT COUNT(*) FROM people p NATURAL SEMI JOIN visits v

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v FULL JOIN people p ON v.person_id = p.person_id OR v.cost = p.income

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v FULL OUTER JOIN people p ON TRUE

-- refused: unsupported_sql
SELECT COUNT(*) FROM visits v FULL JOIN people p USING (person_id) JOIN hospitals h USING (hospital_id)

-- refused: unsupported_sql
SELECT COUNT(*) FROM visits v RIGHT OUTER JOIN hospitals h ON v.hospital_id = h.hospital_id

-- refused: unsupported_sql
SELECT COUNT(*) FROM visits v LEFT SEMI JOIN people p ON v.person_id = p.person_id

-- refused: unsupported_sql
SELECT COUNT(*) FROM visits v LEFT ANTI JOIN people p ON v.person_id = p.person_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v JOIN (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t ON v.ward > t.sex

-- refused: unsupported_sql
WITH a AS (SELECT COUNT(*) AS n FROM people) SELECT COUNT(*) FROM visits LEFT JOIN a ON visits.cost > a.n

-- refused: raw_rows
WITH a AS (SELECT COUNT(*) AS n FROM people) SELECT COUNT(*), a.n FROM visits, a

-- refused: join_not_on_key
WITH a AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) SELECT COUNT(*) FROM visits, a WHERE visits.cost > a.n

-- refused: join_not_on_key
WITH a AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) SELECT COUNT(*) FROM people p RIGHT JOIN a ON p.sex = a.sex

-- refused: unsupported_sql
SELECT x.n FROM (SELECT COUNT(*) AS n FROM people) x POSITIONAL JOIN (SELECT COUNT(*) AS n FROM visits) y

-- refused: unsupported_sql
SELECT x.n FROM (SELECT COUNT(*) AS n FROM people) x NATURAL JOIN (SELECT COUNT(*) AS n FROM visits) y

-- refused: unsupported_sql
SELECT x.n FROM (SELECT COUNT(*) AS n FROM people) x ASOF JOIN (SELECT COUNT(*) AS n FROM visits) y ON x.n >= y.n

-- refused: unsupported_sql
SELECT x.n FROM (SELECT COUNT(*) AS n FROM people) x NATURAL SEMI JOIN (SELECT COUNT(*) AS n FROM visits) y

-- refused: unsupported_sql
SELECT x.n FROM (SELECT COUNT(*) AS n FROM people) x NATURAL ANTI JOIN (SELECT COUNT(*) AS n FROM visits) y

-- refused: ambiguous_column
SELECT COUNT(*) FROM people, people

-- refused: ambiguous_column
SELECT COUNT(*) FROM people p, visits p

-- refused: ambiguous_column
SELECT COUNT(*) FROM visits v JOIN people v ON v.person_id = v.person_id

-- refused: ambiguous_column
SELECT COUNT(*) FROM people JOIN people ON people.person_id = people.person_id

-- refused: ambiguous_column
SELECT t.n FROM (SELECT COUNT(*) AS n FROM people) t, (SELECT COUNT(*) AS n FROM visits) t

-- refused: ambiguous_column
SELECT SUM(hospital_id % 2) FROM tests t JOIN visits v ON t.visit_id = v.visit_id JOIN visits w ON w.visit_id = t.visit_id

-- refused: join_multiplies
SELECT COUNT(*) FROM visits a JOIN visits b USING (person_id) JOIN visits c USING (person_id)

-- refused: join_multiplies
SELECT COUNT(*) FROM visits a LEFT JOIN visits b ON a.person_id = b.person_id LEFT JOIN visits c ON a.person_id = c.person_id

-- refused: join_multiplies
SELECT SUM(a.cost) FROM visits a, visits b, visits c WHERE a.person_id = b.person_id AND b.person_id = c.person_id

-- refused: unsupported_sql
SELECT COUNT(*) FROM (SELECT h.region FROM hospitals h LEFT JOIN visits v ON v.hospital_id = h.hospital_id) t

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits v LEFT JOIN people p ON v.person_id = p.person_id AND (v.cost > 3) <> (p.age > v.cost) JOIN hospitals h USING (hospital_id)

-- refused: join_not_on_key
SELECT COUNT(*) FROM people p, visits v WHERE p.person_id = v.person_id OR p.age > 3

-- refused: raw_rows
SELECT x FROM people LEFT JOIN (VALUES (1), (2)) AS v(x) ON age = x

-- refused: unsupported_sql
SELECT COUNT(*) FROM people FULL JOIN (VALUES (1), (2)) AS v(x) ON age = x

-- refused: unsupported_sql
SELECT COUNT(*) FROM people SEMI JOIN (VALUES (1), (2)) AS v(x) ON age = x

-- refused: unsupported_sql
SELECT COUNT(*) FROM people ANTI JOIN (VALUES (1), (2)) AS v(x) ON age = x

-- refused: unsupported_sql
SELECT COUNT(*) FROM people POSITIONAL JOIN (VALUES (1), (2)) AS v(x)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people ASOF JOIN (VALUES (1), (2)) AS v(x) ON age >= x

-- refused: unsupported_sql
SELECT x, age, COUNT(age) FROM (VALUES ('female'), ('nobody')) AS v(x) LEFT JOIN people ON sex = x GROUP BY x, age

-- refused: unsupported_sql
SELECT COALESCE(x, sex) AS y, COUNT(age) FROM (VALUES ('female'), (NULL)) AS v(x) FULL JOIN people ON sex = x GROUP BY y

-- refused: unsupported_sql
SELECT x, COUNT(age) FROM (VALUES ('female'), ('nobody')) AS v(x) LEFT JOIN people ON sex = x WHERE age IS NULL GROUP BY x

-- refused: unsupported_sql
SELECT region, SUM(beds) FROM hospitals h FULL JOIN visits v ON v.hospital_id = h.hospital_id GROUP BY region

-- refused: unsupported_sql
SELECT x, COUNT(*) FROM (VALUES ('female'), ('male')) AS v(x) LEFT JOIN people ON sex = x GROUP BY x

-- refused: unsupported_sql
SELECT COUNT(*) FROM visits v JOIN (VALUES (1)) AS c(x) ON v.cost > c.x RIGHT JOIN people p ON v.person_id = p.person_id

-- refused: unsupported_sql
SELECT COUNT(*) FROM people, (VALUES (age)) AS v(x)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people, UNNEST([age, 3]) AS v(x)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people, generate_series(1, age) AS v(x)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people, (VALUES ((SELECT COUNT(*) FROM people))) AS v(x)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people, (VALUES (1), ('a')) AS v(x)

-- refused: unsupported_sql
SELECT COUNT(*) FROM people, (VALUES (1, 2), (3)) AS v(x)

-- refused: volatile_function
SELECT COUNT(*) FROM people, (VALUES (random())) AS v(x) WHERE age > x

-- refused: too_large
SELECT COUNT(*) FROM people, generate_series(1, 100000000000) AS v(x)

-- refused: ambiguous_column
SELECT x, COUNT(*) FROM people, (VALUES (1)) AS v(x), (VALUES (2)) AS w(x) GROUP BY x

-- refused: raw_rows
SELECT age, x FROM people, (VALUES (1)) AS v(x)

-- refused: join_not_on_key
SELECT COUNT(*) FROM people NATURAL JOIN hospitals

-- refused: join_not_on_key
SELECT COUNT(*) FROM visits a NATURAL JOIN visits b

-- refused: join_not_on_key
SELECT COUNT(*) FROM people p JOIN hospitals h ON p.education = h.region

-- refused: join_not_on_key
SELECT COUNT(*) FROM people p JOIN hospitals h ON p.education = h.hospital_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM people p JOIN hospitals h ON p.age > h.hospital_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM people p JOIN hospitals h ON p.age + 1 = h.hospital_id

-- refused: join_multiplies
SELECT COUNT(*) FROM hospitals h JOIN people p ON p.hours = h.hospital_id JOIN hospitals k ON k.hospital_id = h.hospital_id JOIN people q ON q.hours = k.hospital_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM people AS p FULL JOIN (SELECT education AS e, COUNT(*) AS n FROM people GROUP BY 1) AS r ON p.education = r.e

-- refused: group_by_unit
SELECT COUNT(*) FROM people WHERE age IN (SELECT person_id FROM visits GROUP BY person_id HAVING COUNT(*) > 3)

-- refused: group_by_unit
SELECT COUNT(*) FROM people WHERE age IN (SELECT DISTINCT person_id + 0 FROM visits)

-- refused: group_by_unit
SELECT COUNT(*) FROM people AS p WHERE age > (SELECT AVG(v.cost) FROM visits AS v WHERE v.visit_id = p.age)

-- refused: unsupported_type
SELECT r.n, COUNT(*) FROM people AS p JOIN (SELECT education, COUNT(*) AS n FROM people GROUP BY 1) AS r ON p.education = r.education GROUP BY r.n
