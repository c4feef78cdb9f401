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

-- answered
SELECT MEDIAN(value) FROM readings WHERE kind = 'power'

-- answered
SELECT kind, QUANTILE_CONT(value, 0.95) FROM readings GROUP BY kind

-- answered
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

-- refused: column_without_bounds
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

-- answered
SELECT MODE(kind) FROM readings

-- answered
SELECT MODE() WITHIN GROUP (ORDER BY kind) AS kind FROM readings

-- answered
SELECT kind FROM readings GROUP BY kind ORDER BY COUNT(*) DESC, kind LIMIT 1

-- answered
SELECT SEM(value) FROM readings

-- answered
SELECT MAD(value) FROM readings

-- answered
SELECT ENTROPY(kind) FROM readings

-- answered
SELECT COUNT(*) FROM homes WHERE area > (SELECT AVG(area) FROM homes)

-- answered
SELECT city, n, n * 1.0 / (SELECT COUNT(*) FROM homes) AS share FROM (SELECT city, COUNT(*) AS n FROM homes
GROUP BY city) t

-- answered
SELECT h.city, COUNT(DISTINCT r.home) * 1.0 / COUNT(DISTINCT h.home) FROM homes h LEFT JOIN readings r ON
r.home = h.home GROUP BY h.city

-- refused: unsupported_function
SELECT LAST(value ORDER BY moment) FROM readings

-- answered
SELECT time_bucket(INTERVAL '15 minutes', moment) AS t, AVG(value) FROM readings WHERE moment >= '2024-01-01 00:00:00' AND moment < '2024-01-01 06:00:00' GROUP BY t ORDER BY t

-- answered
SELECT date_trunc('hour', moment) AS h, COUNT(*) FROM readings WHERE moment >= TIMESTAMP '2024-05-05' AND moment < TIMESTAMP '2024-05-06' GROUP BY h

-- answered
SELECT date_part('hour', moment) AS h, AVG(value) AS mean, STDDEV(value) AS sd FROM readings WHERE kind = 'power' GROUP BY h ORDER BY h

-- answered
SELECT EXTRACT(ISODOW FROM moment) AS d, EXTRACT(HOUR FROM moment) AS h, COUNT(*) FROM readings GROUP BY d, h

-- answered
SELECT CASE WHEN MONTH(moment) IN (12, 1, 2) THEN 'winter' WHEN MONTH(moment) <= 5 THEN 'spring' WHEN MONTH(moment) <= 8 THEN 'summer' ELSE 'autumn' END AS season, kind, AVG(value) FROM readings GROUP BY season, kind

-- answered
SELECT kind, AVG(value) FILTER (WHERE HOUR(moment) BETWEEN 8 AND 19) / AVG(value) FILTER (WHERE NOT HOUR(moment) BETWEEN 8 AND 19) AS day_to_night FROM readings GROUP BY kind

-- answered
SELECT h, v, v / MAX(v) OVER () AS of_peak FROM (SELECT HOUR(moment) AS h, AVG(value) AS v FROM readings GROUP BY h) t ORDER BY h

-- answered
SELECT ARG_MAX(h, v) AS peak_hour FROM (SELECT HOUR(moment) AS h, AVG(value) AS v FROM readings GROUP BY h) t

-- answered
SELECT city, SUM(value) / COUNT(DISTINCT home) AS per_home FROM readings JOIN homes USING (home) GROUP BY city

-- answered
SELECT city, SUM(value) / SUM(persons) AS per_person FROM readings NATURAL JOIN homes GROUP BY city

-- answered
SELECT FLOOR(area / 50) * 50 AS size, AVG(v) FROM (SELECT h.home, h.area, AVG(r.value) AS v FROM homes h JOIN readings r USING (home) WHERE r.kind = 'heat' GROUP BY h.home, h.area) t GROUP BY size ORDER BY size

-- answered
SELECT CORR(h.area, t.v) FROM homes h JOIN (SELECT home, AVG(value) AS v FROM readings WHERE kind = 'heat' GROUP BY home) t ON t.home = h.home

-- answered
SELECT kind, fault_rate, RANK() OVER (ORDER BY fault_rate DESC) FROM (SELECT kind, AVG(fault::INT) AS fault_rate FROM readings GROUP BY kind) t

-- answered
SELECT kind, ROUND(100 * AVG(CASE WHEN fault THEN 1 ELSE 0 END), 1) || ' %' AS faults FROM readings GROUP BY kind

-- answered
SELECT COUNT(*) FROM (SELECT home FROM readings WHERE fault GROUP BY home HAVING COUNT(*) >= 3) t

-- answered
SELECT COUNT(*) FROM (SELECT home, moment, LAG(value) OVER (PARTITION BY home ORDER BY moment, value) AS before, value FROM readings WHERE kind = 'power') t WHERE value > before + 50

-- answered
SELECT AVG(value - before) FROM (SELECT value, LAG(value) OVER (PARTITION BY home, kind ORDER BY moment, value) AS before FROM readings) t

-- answered
SELECT kind, LAST_VALUE(n) OVER (ORDER BY y ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS latest, y FROM (SELECT 'all' AS kind, YEAR(moment) AS y, COUNT(*) AS n FROM readings GROUP BY y) t

-- answered
SELECT AVG(value) FROM (SELECT home, value, ROW_NUMBER() OVER (PARTITION BY home ORDER BY moment DESC, value) AS r FROM readings) t WHERE r = 1

-- other: the engine's own quantile is approximate
SELECT kind, APPROX_QUANTILE(value, 0.9) FROM readings GROUP BY kind

-- other: a quantile is as near as a place of its tree
SELECT city, MEDIAN(area) FROM homes GROUP BY city

-- answered
SELECT MEDIAN(v) FROM (SELECT home, AVG(value) AS v FROM readings GROUP BY home) t

-- answered
SELECT city, QUANTILE_CONT(peak, 0.9) FROM (SELECT home, MAX(value) AS peak FROM readings GROUP BY home) t JOIN homes USING (home) GROUP BY city

-- answered
SELECT kind, COUNT(*) FROM readings WHERE value > (SELECT AVG(value) + 2 * STDDEV(value) FROM readings) GROUP BY kind

-- answered
SELECT COUNT(*) FROM readings r JOIN (SELECT kind, AVG(value) AS mean FROM readings GROUP BY kind) m ON m.kind = r.kind WHERE r.value > m.mean

-- answered
SELECT k.kind, COUNT(r.value) FROM (VALUES ('heat'), ('power'), ('gas')) k(kind) LEFT JOIN readings r ON r.kind = k.kind GROUP BY k.kind

-- answered
SELECT t.low, COUNT(*) FROM readings r JOIN (VALUES (0, 50), (50, 80), (80, 100)) t(low, high) ON r.value >= t.low AND r.value < t.high GROUP BY t.low

-- answered
SELECT kind, SUM(CASE WHEN quality_opt IS NULL THEN 1 ELSE 0 END) AS unknown, SUM(CASE WHEN quality_opt = 0 THEN 1 ELSE 0 END) AS bad FROM readings GROUP BY kind

-- answered
SELECT COALESCE(quality_opt, -1) AS q, COUNT(*) FROM readings GROUP BY q ORDER BY q

-- answered
SELECT * FROM (SELECT kind, HOUR(moment) // 6 AS q, AVG(value) AS v FROM readings GROUP BY kind, q) PIVOT (AVG(v) FOR q IN (0, 1, 2, 3))

-- not yet: unsupported_type
SELECT epoch(date_trunc('day', moment)) AS t, COUNT(*) FROM readings WHERE moment >= '2024-01-01' AND moment < '2024-01-15' GROUP BY t

-- answered
SELECT MINUTE(moment) // 15 * 15 AS quarter, COUNT(*) FROM readings GROUP BY quarter

-- other: days of few homes are not shown, so the window has other rows
SELECT moment::DATE AS day, AVG(AVG(value)) OVER (ORDER BY moment::DATE ROWS 6 PRECEDING) AS week_mean FROM readings WHERE moment >= '2024-03-01' AND moment < '2024-04-01' GROUP BY day ORDER BY day

-- answered
SELECT day, v FROM (SELECT date_trunc('day', moment) AS day, SUM(value) AS v FROM readings WHERE moment >= '2024-03-01' AND moment < '2024-04-01' GROUP BY day) t WHERE v = (SELECT MAX(v) FROM (SELECT SUM(value) AS v FROM readings WHERE moment >= '2024-03-01' AND moment < '2024-04-01' GROUP BY date_trunc('day', moment)) u)

-- answered
SELECT LN(AVG(EXP(value / 10))) FROM readings

-- answered
SELECT SUM(value * value) - SUM(value) * SUM(value) / COUNT(*) AS sum_of_squares FROM readings

-- answered
SELECT COUNT(*) FROM readings WHERE moment BETWEEN '2024-02-29 12:00' AND '2024-03-01'

-- answered
SELECT kind, COUNT(*) FROM readings WHERE date_diff('minute', TIMESTAMP '2024-01-01', moment) BETWEEN 0 AND 100000 GROUP BY kind

-- answered
SELECT kind, city, n FROM (SELECT kind, city, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY kind ORDER BY COUNT(*) DESC) AS r FROM readings JOIN homes USING (home) GROUP BY kind, city) t WHERE r = 1 ORDER BY kind

-- answered
SELECT persons > 4 AS large, kind, SUM(value) FROM homes JOIN readings ON homes.home = readings.home GROUP BY large, kind

-- answered
SELECT kind, AVG(value) FROM (SELECT home, kind, value FROM readings
QUALIFY RANK() OVER (PARTITION BY home, kind ORDER BY moment DESC) = 1) t GROUP BY kind

-- answered
SELECT AVG(most - least) FROM (SELECT DISTINCT home, MAX(value) OVER w AS most, MIN(value) OVER w AS least FROM readings
WINDOW w AS (PARTITION BY home)) t

-- answered
SELECT kind, COUNT(*) FROM (SELECT kind, fault, LEAD(fault) OVER (PARTITION BY home, kind ORDER BY moment, value) AS next FROM readings) t
WHERE fault AND NOT next GROUP BY kind

-- answered
SELECT COUNT(*) FROM (SELECT NTILE(4) OVER (PARTITION BY home ORDER BY value, moment, kind) AS quarter, CUME_DIST() OVER (PARTITION BY home
ORDER BY value) AS part FROM readings) t WHERE quarter = 1 AND part > 0.1

-- answered
SELECT COUNT(*) FROM (SELECT COUNT(*) FILTER (WHERE fault) OVER (PARTITION BY home ORDER BY moment) AS faults FROM readings) t
WHERE faults BETWEEN 1 AND 3

-- answered
SELECT COUNT(*), AVG(COALESCE(a.v, 0) - COALESCE(b.v, 0)) FROM (SELECT home, MAX(value) AS v FROM readings WHERE kind = 'heat' GROUP BY home) a
FULL JOIN (SELECT home, MAX(value) AS v FROM readings WHERE kind = 'water' GROUP BY home) b USING (home)

-- answered
SELECT COUNT(*) FROM readings WHERE moment - TIMESTAMP '2023-06-01' < INTERVAL '10 days'

-- answered
SELECT COUNT(*) FROM readings WHERE TIMESTAMP '2024-12-31' - moment BETWEEN INTERVAL 1 DAY AND INTERVAL 1 YEAR

-- answered
SELECT COUNT(*) FROM (SELECT home, epoch(moment - LAG(moment) OVER (PARTITION BY home ORDER BY moment)) / 3600 AS gap FROM readings) WHERE gap > 24

-- answered
SELECT AVG(gap) FROM (SELECT home, epoch(moment - LAG(moment) OVER (PARTITION BY home ORDER BY moment)) / 3600 AS gap FROM readings) WHERE gap BETWEEN 0 AND 2000

-- answered
SELECT EXTRACT(day FROM moment - TIMESTAMP '2023-01-01') // 100 AS d, COUNT(*) FROM readings WHERE moment - TIMESTAMP '2023-01-01' < INTERVAL 1 YEAR GROUP BY d

-- answered
SELECT EXTRACT(hour FROM moment - TIMESTAMP '2024-01-01 05:00:00') AS h, COUNT(*) FROM readings GROUP BY h

-- answered
SELECT COUNT(*) FROM readings WHERE moment - TIMESTAMP '2024-01-01' BETWEEN -INTERVAL 1 MONTH AND INTERVAL '36 hours'

-- answered
SELECT COUNT(*) FROM readings WHERE INTERVAL 3 MONTH >= moment - TIMESTAMP '2023-06-01 12:00:00'

-- answered
SELECT AVG(LEAST(GREATEST(epoch(moment - TIMESTAMP '2024-01-01') / 3600, -10000), 10000)) FROM readings

-- answered
SELECT AVG(s) FROM (SELECT home, LAG(quality_opt, 2 IGNORE NULLS) OVER (PARTITION BY home ORDER BY moment) AS s FROM readings)

-- answered
SELECT AVG(s), COUNT(s) FROM (SELECT home, LAST_VALUE(quality_opt IGNORE NULLS) OVER (PARTITION BY home ORDER BY moment ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s FROM readings)

-- answered
SELECT AVG(s) FROM (SELECT home, AVG(value) OVER (PARTITION BY home ORDER BY moment RANGE BETWEEN INTERVAL '30 days 12 hours' PRECEDING AND INTERVAL 1 HOUR FOLLOWING EXCLUDE CURRENT ROW) AS s FROM readings)

-- answered
SELECT SUM(s) FROM (SELECT home, COUNT(*) OVER (PARTITION BY home ORDER BY quality_opt DESC RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM readings)

-- answered
SELECT SUM(s) FROM (SELECT home, COUNT(*) OVER (PARTITION BY home ORDER BY value RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING EXCLUDE GROUP) AS s FROM readings)

-- answered
SELECT SUM(s) FROM (SELECT home, SUM(value) OVER (PARTITION BY home ORDER BY quality_opt GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) AS s FROM readings)

-- answered
SELECT kind, AVG(moment - TIMESTAMP '2023-01-01') AS d, AVG(epoch(moment - TIMESTAMP '2023-01-01')) AS s FROM readings WHERE moment BETWEEN '2023-01-01' AND '2025-01-01' GROUP BY kind HAVING AVG(moment - TIMESTAMP '2023-01-01') > INTERVAL 3 DAY ORDER BY d

-- answered
SELECT MAX(TIMESTAMP '2025-01-01' - moment) AS d, COUNT(moment - TIMESTAMP '2023-01-01') AS n, INTERVAL 90 MINUTE AS i FROM readings WHERE moment BETWEEN '2023-01-01' AND '2025-01-01'

-- answered
SELECT COUNT(*), COUNT_IF(EXTRACT(hour FROM s) > 12) FROM (SELECT moment - TIMESTAMP '2023-01-01' AS s FROM readings) t WHERE s > INTERVAL 3 DAY AND t.s BETWEEN INTERVAL 1 DAY AND INTERVAL 300 DAY

-- answered
WITH a(k, s) AS (SELECT kind, moment - TIMESTAMP '2023-01-01' FROM readings), b AS (SELECT * FROM a WHERE s < INTERVAL 700 DAY) SELECT k, AVG(LEAST(GREATEST(epoch(s) / 3600, 0), 20000)) AS hours FROM b GROUP BY k

-- answered
SELECT COUNT(*) FROM (SELECT home, MAX(moment) - MIN(moment) AS stay, COUNT(*) AS n FROM readings GROUP BY home) t WHERE stay > INTERVAL 500 DAY

-- answered
SELECT COUNT(gap), COUNT_IF(gap IS NULL), COUNT_IF(gap IS NOT NULL AND gap <= INTERVAL 1 DAY) FROM (SELECT moment - LAG(moment) OVER (PARTITION BY home ORDER BY moment) AS gap FROM readings) t

-- answered
SELECT COUNT_IF(s > INTERVAL 300 DAY) FROM (SELECT moment - TIMESTAMP '2023-01-01' AS s FROM readings UNION ALL SELECT moment - TIMESTAMP '2022-12-31' FROM readings WHERE value > 50) t

-- answered
SELECT COUNT(*) FROM (SELECT home, moment - LAG(moment) OVER (PARTITION BY home ORDER BY moment) AS gap FROM readings) WHERE gap > INTERVAL 1 DAY

-- answered
SELECT CASE WHEN s > INTERVAL 100 DAY THEN 'long' ELSE 'short' END AS c, EXTRACT(hour FROM s) // 6 AS q, COUNT(*) FROM (SELECT moment - TIMESTAMP '2023-01-01' AS s FROM readings) t GROUP BY ALL

-- answered
SELECT EXTRACT(epoch FROM AVG(moment - TIMESTAMP '2023-01-01')) / 3600 AS h FROM readings WHERE moment BETWEEN '2023-01-01' AND '2025-01-01'

-- answered
SELECT kind, AVG(moment) FROM readings WHERE moment BETWEEN '2023-01-01' AND '2025-01-01' GROUP BY kind
