-- answered
SELECT city, COUNT(*) FROM homes GROUP BY city

-- answered
SELECT kind, AVG(value) FROM readings GROUP BY kind

-- answered
SELECT city, kind, AVG(value) FROM readings JOIN homes USING (home) GROUP BY city, kind

-- answered
SELECT EXTRACT(HOUR FROM moment) AS h, AVG(value) FROM readings GROUP BY h ORDER BY h

-- answered
SELECT HOUR(moment) AS h, kind, COUNT(*) FROM readings WHERE kind <> 'water' GROUP BY h, kind

-- answered
SELECT date_trunc('day', moment) AS d, SUM(value) FROM readings WHERE moment >= TIMESTAMP '2024-01-01 00:00:00' AND moment
< TIMESTAMP '2024-02-01 00:00:00' GROUP BY d

-- answered
SELECT date_trunc('month', moment) AS m, COUNT(*) FROM readings WHERE moment BETWEEN TIMESTAMP '2023-01-01' AND
TIMESTAMP '2024-12-31' GROUP BY m

-- answered
SELECT time_bucket(INTERVAL 6 HOUR, moment) AS b, COUNT(*) FROM readings WHERE moment >= TIMESTAMP '2024-01-01' AND moment
< TIMESTAMP '2024-01-08' GROUP BY b

-- answered
SELECT ROUND(value, -1) AS bin, COUNT(*) FROM readings GROUP BY bin

-- answered
SELECT FLOOR(value / 5) * 5 AS bin, COUNT(*) FROM readings GROUP BY bin

-- answered
SELECT FLOOR(value / 2.5) * 2.5 AS bin, COUNT(*) FROM readings GROUP BY bin

-- answered
SELECT COUNT(*) FILTER (WHERE fault) AS faults, COUNT(*) AS n FROM readings

-- answered
SELECT kind, COUNT(*) FILTER (WHERE fault) * 1.0 / COUNT(*) AS rate FROM readings GROUP BY kind

-- answered
SELECT quality_opt, COUNT(*) FROM readings GROUP BY quality_opt

-- answered
SELECT COUNT(DISTINCT home) FROM readings WHERE fault

-- answered
SELECT kind, COUNT(DISTINCT home) FROM readings GROUP BY kind

-- answered
SELECT AVG(persons), AVG(area), AVG(area / persons) FROM homes

-- answered
SELECT persons, COUNT(*) FROM homes GROUP BY persons

-- answered
SELECT CORR(persons, area) FROM homes

-- answered
SELECT REGR_SLOPE(area, persons), REGR_INTERCEPT(area, persons), REGR_R2(area, persons) FROM homes

-- answered
SELECT STDDEV_POP(value), VAR_POP(value) FROM readings

-- not yet: unsupported_sql
SELECT MEDIAN(value) FROM readings WHERE kind = 'power'

-- not yet: unsupported_sql
SELECT kind, QUANTILE_CONT(value, 0.95) FROM readings GROUP BY kind

-- not yet: unsupported_sql
SELECT kind, MAX(value) FROM readings GROUP BY kind

-- answered
SELECT AVG(v) FROM (SELECT home, AVG(value) AS v FROM readings GROUP BY home) t

-- answered
SELECT city, AVG(total) FROM (SELECT r.home, h.city, SUM(r.value) AS total FROM readings r JOIN homes h USING
(home) GROUP BY r.home, h.city) t GROUP BY city

-- answered
SELECT COUNT(*) FROM (SELECT home, kind, MAX(value) AS peak FROM readings GROUP BY home, kind) t WHERE peak >
90

-- answered
SELECT COUNT(*) FROM homes h WHERE EXISTS (SELECT 1 FROM readings r WHERE r.home = h.home AND r.fault)

-- answered
SELECT city, COUNT(*) FROM homes WHERE home IN (SELECT home FROM readings WHERE value > 95) GROUP BY city

-- answered
SELECT COUNT(*) FROM readings a JOIN readings b ON a.home = b.home AND a.kind = 'heat' AND b.kind = 'power'

-- answered
SELECT AVG(value) FROM (SELECT value FROM readings WHERE NOT fault AND quality_opt >= 2) t

-- answered
WITH good AS (SELECT * FROM readings WHERE NOT fault) SELECT kind, AVG(value) FROM good GROUP BY kind

-- answered
WITH good AS (SELECT home, kind, value FROM readings WHERE NOT fault), big AS (SELECT home, city FROM homes
WHERE area > 100) SELECT city, kind, AVG(value) FROM good JOIN big ON good.home = big.home GROUP BY city, kind

-- refused: group_by_unit
SELECT home, COUNT(*) FROM readings GROUP BY home

-- refused: unsupported_type
SELECT AVG(moment) FROM readings

-- answered
SELECT DAYOFWEEK(moment) AS d, COUNT(*) FROM readings GROUP BY d

-- answered
SELECT WEEK(moment) AS w, COUNT(*) FROM readings GROUP BY w

-- answered
SELECT STRFTIME(moment, '%H') AS h, COUNT(*) FROM readings GROUP BY h

-- answered
SELECT moment::DATE AS day, COUNT(*) FROM readings WHERE moment >= TIMESTAMP '2024-03-01' AND moment < TIMESTAMP
'2024-04-01' GROUP BY day

-- answered
SELECT COUNT(*) FROM readings WHERE moment > TIMESTAMP '2024-06-01' + INTERVAL 2 MONTH

-- answered
SELECT SUM(value) FROM readings WHERE EXTRACT(YEAR FROM moment) = 2024 AND kind = 'water'

-- answered
SELECT kind, SUM(value) AS s FROM readings GROUP BY kind ORDER BY s DESC LIMIT 2

-- answered
SELECT kind, SUM(value) - LAG(SUM(value)) OVER (ORDER BY kind) AS step FROM readings GROUP BY kind

-- answered
SELECT CASE WHEN value > 50 THEN 'high' ELSE 'low' END AS level, COUNT(*) FROM readings GROUP BY level

-- answered
SELECT SQRT(AVG(value * value)) FROM readings

-- answered
SELECT AVG(ABS(value - 50)) FROM readings

-- answered
SELECT AVG(LEAST(value, 80)) FROM readings

-- answered
SELECT SUM(SIN(value)) FROM readings

-- answered
SELECT COUNT(*) FROM readings WHERE value % 2 < 1

-- answered
SELECT COUNT(*), AVG(value) FROM readings WHERE quality_opt IS NOT NULL

-- answered
SELECT kind, quality_opt, COUNT(*) FROM readings GROUP BY ALL

-- answered
SELECT kind, fault, AVG(value) FROM readings GROUP BY GROUPING SETS ((kind, fault), (kind))

-- not yet: unsupported_function
SELECT MODE(kind) FROM readings

-- answered
SELECT SEM(value) FROM readings

-- not yet: unsupported_function
SELECT MAD(value) FROM readings

-- not yet: unsupported_function
SELECT ENTROPY(kind) FROM readings

-- not yet: correlated_subquery
SELECT COUNT(*) FROM homes WHERE area > (SELECT AVG(area) FROM homes)

-- answered
SELECT city, n, n * 1.0 / (SELECT COUNT(*) FROM homes) AS share FROM (SELECT city, COUNT(*) AS n FROM homes
GROUP BY city) t

-- answered
SELECT h.city, COUNT(DISTINCT r.home) * 1.0 / COUNT(DISTINCT h.home) FROM homes h LEFT JOIN readings r ON
r.home = h.home GROUP BY h.city

-- refused: unsupported_function
SELECT LAST(value ORDER BY moment) FROM readings
