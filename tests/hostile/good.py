"""Texts that are answered, as the seeds of mutations: each kind of construct that the language has, once or twice."""

from __future__ import annotations

__all__ = ["GOOD"]

GOOD: tuple[str, ...] = (
    "SELECT COUNT(*) FROM people",
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY sex",
    "SELECT sex, AVG(age) FROM people WHERE age > 18 AND NOT smoker GROUP BY sex HAVING COUNT(*) > 0 ORDER BY 2 DESC",
    "SELECT COUNT(*), SUM(age), AVG(age), VARIANCE(age), STDDEV_POP(age) FROM people",
    "SELECT COUNT(DISTINCT person_id) FROM people WHERE education LIKE 's%' OR education IS NULL",
    "SELECT SUM(GREATEST(0, LEAST(age * 7, 500))) FROM people",
    "SELECT SUM(CASE WHEN age BETWEEN 18 AND 64 THEN salary ELSE 0 END) FROM people",
    "SELECT COUNT(*) FILTER (WHERE smoker) AS a, COUNT(*) FILTER (WHERE age >= 50) AS b FROM people",
    "SELECT COUNT_IF(hours > 30) FROM people WHERE born >= DATE '1960-01-01'",
    "SELECT education, COUNT(*) FROM people GROUP BY education",
    "SELECT YEAR(born) AS y, COUNT(*) FROM people GROUP BY y",
    "SELECT EXTRACT(YEAR FROM born) AS m, SUM(age % 7 + 1) FROM people GROUP BY ALL",
    "SELECT age // 20 AS band, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY n DESC, band",
    "SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS g, COUNT(*) "
    "FROM people GROUP BY g",
    "SELECT smoker, sex, AVG(hours) FROM people WHERE hours IS NOT NULL OR age >= 0 GROUP BY smoker, sex",
    "SELECT COUNT(*) FROM people WHERE LOWER(TRIM(education)) IN ('school', 'university') AND LENGTH(education) <> 3",
    "SELECT COUNT(*) FROM people WHERE COALESCE(hours, 0) * 2 - age / 3 > 10.5",
    "SELECT COUNT(*) FROM people WHERE CAST(age AS VARCHAR) || '!' = '34!' OR TRY_CAST(education AS BIGINT) = 3",
    "SELECT COUNT(*) FROM people WHERE ROUND(SQRT(ABS(income)), 1) > 1 AND SIGN(income) = 1 AND LN(salary) IS NOT NULL",
    "SELECT COUNT(*) FROM people WHERE date_trunc('month', born) = DATE '1990-02-01'",
    "SELECT COUNT(*) FROM people WHERE datediff('day', born, DATE '2020-01-01') > 10000",
    "SELECT ward, COUNT(*), AVG(cost) FROM visits GROUP BY ward",
    "SELECT COUNT(*) FROM people WHERE born + INTERVAL 20 YEAR < DATE '2010-01-31' - INTERVAL '1 year 2 days'",
    "SELECT COUNT(*) FROM people WHERE EXTRACT(year FROM AGE(DATE '2020-01-01', born)) > 40 "
    "OR born + CAST(age AS INTEGER) < DATE '1980-01-01'",
    "SELECT FLOOR(age / 0.5) * 0.5 AS b, ROUND(age / 7.0, 1), COUNT(*) FROM people GROUP BY ALL "
    "HAVING ROUND(age / 7.0, 1) > 0",
    "SELECT b * 2 AS c, n FROM (SELECT ROUND(age / 7.0, 1) AS b, COUNT(*) AS n FROM people GROUP BY 1) t",
    "SELECT COUNT(*) FROM people WHERE education ~ '^s.*l$' OR REGEXP_EXTRACT(education, '(o+)', 1) = 'oo'",
    "SELECT STRFTIME(born, '%Y-%m') AS m, SPLIT_PART(education, 'o', 1) AS s, COUNT(*) FROM people GROUP BY ALL",
    "SELECT time_bucket(INTERVAL 5 YEAR, born) AS b, COUNT(*) FROM people GROUP BY b",
    "SELECT AVG(gap) FROM (SELECT date_diff('day', LAG(day) OVER (PARTITION BY person_id ORDER BY day), day) AS gap "
    "FROM visits) AS t WHERE gap BETWEEN 0 AND 365",
    "SELECT ward, COUNT(*) FROM (SELECT * FROM visits "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day DESC) = 1) AS t GROUP BY ward",
    "SELECT COUNT(*) FROM (SELECT RANK() OVER w AS r, NTILE(4) OVER w AS q, LEAD(ward, 2, 'none') OVER w AS n, "
    "SUM(cost) OVER (PARTITION BY person_id, ward ORDER BY day ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s "
    "FROM visits WINDOW w AS (PARTITION BY person_id ORDER BY day DESC NULLS FIRST)) AS t "
    "WHERE r < q OR s > 100 OR n = 'x'",
    "SELECT AVG(cost) FROM (SELECT DISTINCT ON (person_id) person_id, cost FROM visits ORDER BY person_id, day) AS t",
    "SELECT ward, COUNT(*) FROM (SELECT person_id, ward, COUNT(*) AS n FROM visits GROUP BY person_id, ward "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY n DESC) = 1) AS t GROUP BY ward",
    "SELECT h.region, COUNT(*) FROM visits v JOIN hospitals h ON v.hospital_id = h.hospital_id GROUP BY h.region",
    "SELECT p.sex, SUM(v.cost) FROM visits AS v JOIN people AS p USING (person_id) WHERE p.age > 10 GROUP BY p.sex",
    "SELECT COUNT(*) "
    "FROM visits LEFT JOIN hospitals ON visits.hospital_id = hospitals.hospital_id WHERE region IS NULL",
    "SELECT COUNT(result), SUM(result) FROM tests t JOIN visits v ON t.visit_id = v.visit_id WHERE v.cost > 1",
    "WITH a AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) SELECT sex, n, n / SUM(n) OVER () AS share FROM a",
    "WITH a(s, n) AS (SELECT sex, COUNT(*) FROM people GROUP BY sex) SELECT x.s, y.n FROM a x JOIN a y ON x.s = y.s",
    "SELECT sex, n, RANK() OVER (ORDER BY n DESC, sex) AS r FROM (SELECT sex, COUNT(*) n FROM people GROUP BY sex) t",
    "SELECT (SELECT COUNT(*) FROM people WHERE smoker) * 100.0 / (SELECT COUNT(*) FROM people) AS percentage",
    "SELECT COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*) FROM visits ORDER BY n LIMIT 2",
    "SELECT sex, SUM(COUNT(*)) OVER (PARTITION BY sex) AS t "
    "FROM people GROUP BY sex QUALIFY ROW_NUMBER() OVER (ORDER BY sex) < 3",
    "SELECT MAX(n), MIN(n), COUNT(*) FROM (SELECT smoker, COUNT(*) AS n FROM people GROUP BY smoker) AS t WHERE n > 1",
    "SELECT sex FROM (SELECT sex, COUNT(*) n FROM people GROUP BY sex) WHERE n IN (SELECT COUNT(*) "
    "FROM people GROUP BY sex)",
    "SELECT DISTINCT n > 1 AS big FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)",
    "SELECT sex, LAG(n, 1) OVER w AS before FROM (SELECT sex, COUNT(*) n "
    "FROM people GROUP BY sex) WINDOW w AS (ORDER BY sex)",
    "FROM people SELECT COUNT(*) WHERE age <> 3",
    'SELECT COUNT(*) FROM clinic.people AS "P p" WHERE "P p"."age" IS DISTINCT '
    "FROM 34 -- a comment\n/* and /* one */ more */",
)
