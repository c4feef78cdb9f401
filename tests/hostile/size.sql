-- refused: too_large
SELECT COUNT(*) FROM people WHERE age > (((((((((((((((((((((((((((((((((1)))))))))))))))))))))))))))))))))

-- refused: too_large
SELECT SUM(age + 0), SUM(age + 1), SUM(age + 2), SUM(age + 3), SUM(age + 4), SUM(age + 5), SUM(age + 6), SUM(age + 7), SUM(age + 8), SUM(age + 9), SUM(age + 10), SUM(age + 11), SUM(age + 12), SUM(age + 13), SUM(age + 14), SUM(age + 15), SUM(age + 16), SUM(age + 17), SUM(age + 18), SUM(age + 19), SUM(age + 20), SUM(age + 21), SUM(age + 22), SUM(age + 23), SUM(age + 24), SUM(age + 25), SUM(age + 26), SUM(age + 27), SUM(age + 28), SUM(age + 29), SUM(age + 30), SUM(age + 31), SUM(age + 32) FROM people

-- refused: too_large
SELECT COUNT(*) FROM people WHERE CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN CASE WHEN smoker THEN TRUE END END END END END END END END END END END END END END END END END END END END END END END END END END END END END END END END END

-- refused: too_large
SELECT COUNT(*) FROM people GROUP BY age + 0, age + 1, age + 2, age + 3, age + 4, age + 5, age + 6, age + 7, age + 8, age + 9, age + 10, age + 11, age + 12, age + 13, age + 14, age + 15, age + 16

-- refused: too_large
SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT COUNT(*) FROM people)))))))))))))))))))))))))))))))))

-- refused: too_large
SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people

-- refused: too_large
SELECT COUNT(*) FROM people WHERE lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(lower(education))))))))))))))))))))))))))))))))) = 'a'

-- refused: too_large
SELECT COUNT(*) FROM people WHERE age > [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]

-- refused: too_large
SELECT ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(ABS(1)))))))))))))))))))))))))))))))))

-- refused: too_large
WITH a0 AS (SELECT COUNT(*) AS n FROM people), a1 AS (SELECT x.n FROM a0 x, a0 y), a2 AS (SELECT x.n FROM a1 x, a1 y), a3 AS (SELECT x.n FROM a2 x, a2 y), a4 AS (SELECT x.n FROM a3 x, a3 y), a5 AS (SELECT x.n FROM a4 x, a4 y), a6 AS (SELECT x.n FROM a5 x, a5 y), a7 AS (SELECT x.n FROM a6 x, a6 y), a8 AS (SELECT x.n FROM a7 x, a7 y), a9 AS (SELECT x.n FROM a8 x, a8 y), a10 AS (SELECT x.n FROM a9 x, a9 y), a11 AS (SELECT x.n FROM a10 x, a10 y) SELECT n FROM a11

-- refused: too_large
WITH a0 AS (SELECT COUNT(*) AS n FROM people), a1 AS (SELECT n FROM a0 UNION ALL SELECT n FROM a0), a2 AS (SELECT n FROM a1 UNION ALL SELECT n FROM a1), a3 AS (SELECT n FROM a2 UNION ALL SELECT n FROM a2), a4 AS (SELECT n FROM a3 UNION ALL SELECT n FROM a3), a5 AS (SELECT n FROM a4 UNION ALL SELECT n FROM a4), a6 AS (SELECT n FROM a5 UNION ALL SELECT n FROM a5), a7 AS (SELECT n FROM a6 UNION ALL SELECT n FROM a6), a8 AS (SELECT n FROM a7 UNION ALL SELECT n FROM a7), a9 AS (SELECT n FROM a8 UNION ALL SELECT n FROM a8), a10 AS (SELECT n FROM a9 UNION ALL SELECT n FROM a9), a11 AS (SELECT n FROM a10 UNION ALL SELECT n FROM a10) SELECT n FROM a11

-- refused: too_large
WITH a0 AS (SELECT COUNT(*) AS n FROM people), a1 AS (SELECT (SELECT MAX(n) FROM a0) + (SELECT MIN(n) FROM a0) AS n), a2 AS (SELECT (SELECT MAX(n) FROM a1) + (SELECT MIN(n) FROM a1) AS n), a3 AS (SELECT (SELECT MAX(n) FROM a2) + (SELECT MIN(n) FROM a2) AS n), a4 AS (SELECT (SELECT MAX(n) FROM a3) + (SELECT MIN(n) FROM a3) AS n), a5 AS (SELECT (SELECT MAX(n) FROM a4) + (SELECT MIN(n) FROM a4) AS n), a6 AS (SELECT (SELECT MAX(n) FROM a5) + (SELECT MIN(n) FROM a5) AS n), a7 AS (SELECT (SELECT MAX(n) FROM a6) + (SELECT MIN(n) FROM a6) AS n) SELECT n FROM a7

-- refused: too_large
SELECT COUNT(*) FROM visits JOIN people p0 ON visits.person_id = p0.person_id JOIN people p1 ON visits.person_id = p1.person_id JOIN people p2 ON visits.person_id = p2.person_id JOIN people p3 ON visits.person_id = p3.person_id JOIN people p4 ON visits.person_id = p4.person_id JOIN people p5 ON visits.person_id = p5.person_id JOIN people p6 ON visits.person_id = p6.person_id JOIN people p7 ON visits.person_id = p7.person_id JOIN people p8 ON visits.person_id = p8.person_id
