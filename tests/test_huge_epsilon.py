"""With a huge epsilon the answer is the plain answer: every supported shape of SQL against DuckDB on the plain tables.

The journey's parts run as in tests/plain_clinic.py. The analyst's own text runs on the plain tables. Contribution
bounds do not bind and values lie within their bounds. Where a meaning differs by design the query stays inside the
common part; the differences are tested at the end of the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from sql_rewrite.lift import lift
from tests.plain_clinic import PEOPLE, Clinic, declared, open_clinic


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """One snapshot for all queries."""
    with open_clinic(tmp_path_factory.mktemp("clinic")) as opened:
        yield opened


def same(expected: Any, actual: Any) -> bool:
    """Equal: integers and texts exactly, doubles to one part in a million."""
    if isinstance(expected, float) or isinstance(actual, float):
        if expected is None or actual is None:
            return expected is actual
        return math.isclose(expected, actual, rel_tol=1e-6, abs_tol=1e-6)
    return bool(expected == actual) and isinstance(expected, bool) == isinstance(actual, bool)


def order(row: list[Any]) -> Any:
    """A sorting key for rows that come in no order; doubles only by their leading digits."""
    return [(value is None, str(round(value, 2)) if isinstance(value, float) else str(value)) for value in row]


def compare(expected: list[list[Any]], actual: list[list[Any]], *, ordered: bool) -> None:
    """Fails with the first difference."""
    if not ordered:
        expected, actual = sorted(expected, key=order), sorted(actual, key=order)
    assert len(expected) == len(actual), (expected, actual)
    for left, right in zip(expected, actual, strict=True):
        assert len(left) == len(right)
        assert all(same(a, b) for a, b in zip(left, right, strict=True)), (left, right)


QUERIES: list[tuple[str, dict[str, Any]]] = [
    (sql, {})
    for sql in (
        # Aggregates
        "SELECT COUNT(*) FROM people",
        "SELECT COUNT(1), COUNT(weight), COUNT(age) FROM people",
        "SELECT COUNT(DISTINCT person_id) FROM people",
        "SELECT COUNT(DISTINCT person_id) FROM visits",
        "SELECT COUNT(DISTINCT person_id) FILTER (WHERE days > 20), COUNT(DISTINCT person_id) FROM visits",
        "SELECT COUNT_IF(age > 40), COUNT_IF(age <= 40) FROM people",
        "SELECT SUM(age), SUM(weight) FROM people",
        "SELECT SUM(days), SUM(cost) FROM visits",
        "SELECT AVG(age), MEAN(weight) FROM people",
        "SELECT AVG(cost), AVG(days), COUNT(*) FROM visits",
        "SELECT VAR_POP(age), VAR_SAMP(age), VARIANCE(weight) FROM people",
        "SELECT STDDEV(age), STDDEV_POP(weight), STDDEV_SAMP(weight), AVG(weight), COUNT(*) FROM people",
        "SELECT STDDEV(cost), VAR_POP(days) FROM visits",
        "SELECT SUM(age * 2 + 1), SUM(-age), SUM(ABS(age - 50)) FROM people",
        "SELECT SUM(CASE WHEN sex = 'Male' THEN age ELSE 0 END) FROM people",
        "SELECT SUM((CASE WHEN member THEN age ELSE 0 END * 2)), CASE WHEN COUNT(*) > 1 THEN 1 END * 3 FROM people",
        "SELECT SUM(age / 4), AVG(weight * 0.5 - 3) FROM people",
        "SELECT SUM(GREATEST(20, LEAST(age, 60))) FROM people",
        "SELECT SUM(COALESCE(weight, 0)), AVG(COALESCE(weight, 70.5)) FROM people",
        "SELECT AVG(ROUND(weight, 1)), SUM(NULLIF(level, 2)) FROM people",
        "SELECT SUM(CAST(member AS BIGINT)), SUM(year(born)) FROM people WHERE year(born) BETWEEN 1900 AND 2020",
        # Nested blocks of rows
        "SELECT sex, AVG(half) FROM (SELECT sex, age / 2 AS half, person_id FROM people WHERE member) AS t "
        "GROUP BY sex",
        "WITH v AS (SELECT v.*, p.sex, h.region FROM visits AS v JOIN people AS p USING (person_id) JOIN "
        "hospitals AS h "
        "ON v.hospital_id = h.hospital_id WHERE p.age > 20), w AS (SELECT sex, region, cost * 2 AS c FROM v "
        "WHERE days > 2) "
        "SELECT sex, region, SUM(c), COUNT(*) FROM w GROUP BY ALL",
        "SELECT h.region, COUNT(*), SUM(cost) FROM hospitals AS h, visits AS v, people AS p WHERE v.person_id = "
        "p.person_id "
        "AND v.hospital_id = h.hospital_id AND p.sex = 'Male' AND v.cost > p.age GROUP BY h.region",
        "SELECT p.sex, COUNT(*) FROM (SELECT * FROM visits) AS v JOIN (SELECT person_id, sex FROM people) AS p "
        "ON v.person_id = p.person_id GROUP BY p.sex",
        "SELECT COUNT(*), SUM(x) FROM (SELECT CASE WHEN weight IS NULL THEN 1 ELSE 2 END AS x FROM people) AS t "
        "WHERE x = 1",
        "SELECT h.region, COUNT(v.cost) AS n, COUNT(DISTINCT v.person_id) FROM hospitals AS h LEFT JOIN "
        "(SELECT * FROM visits WHERE days > 50) AS v ON v.hospital_id = h.hospital_id GROUP BY h.region",
        # Aggregation within each unit
        "SELECT AVG(n), COUNT(*) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id HAVING "
        "COUNT(*) > 2) t",
        "SELECT n // 3 AS k, COUNT(*), AVG(total) FROM (SELECT person_id, COUNT(*) AS n, SUM(cost) AS total FROM "
        "visits GROUP BY person_id) AS t GROUP BY k",
        "SELECT p.sex, AVG(t.mean), SUM(t.longest), AVG(t.kinds) FROM (SELECT person_id, AVG(cost) AS mean, "
        "MAX(days) AS longest, COUNT(DISTINCT kind) AS kinds FROM visits WHERE days > 1 GROUP BY 1) AS t JOIN "
        "people AS p USING (person_id) GROUP BY p.sex",
        "SELECT year(first), COUNT(*), COUNT_IF(urgent) FROM (SELECT person_id, MIN(day) AS first, BOOL_OR(kind = "
        "'urgent') AS urgent FROM visits GROUP BY 1) AS t GROUP BY 1",
        "WITH m(p, k, n) AS (SELECT person_id, month(day), COUNT(*) FROM visits GROUP BY ALL) SELECT k, SUM(n), "
        "COUNT(*) FROM m GROUP BY k",
        "SELECT AVG(most) FROM (SELECT person_id, MAX(n) AS most FROM (SELECT person_id, dept, COUNT(*) AS n FROM "
        "visits GROUP BY person_id, dept) AS a GROUP BY person_id) AS b",
        "SELECT kind, COUNT(*) FROM (SELECT DISTINCT person_id, kind, dept FROM visits) AS t GROUP BY kind",
        "SELECT p.sex, AVG(COALESCE(t.n, 0)), COUNT(*) FILTER (WHERE t.n IS NULL) FROM people AS p LEFT JOIN "
        "(SELECT person_id, COUNT(*) AS n FROM visits GROUP BY 1) AS t ON t.person_id = p.person_id GROUP BY p.sex",
        "SELECT COUNT(*), SUM(v.cost) FROM visits AS v JOIN (SELECT person_id, AVG(cost) AS mean FROM visits GROUP "
        "BY 1) AS t ON v.person_id = t.person_id WHERE v.cost > t.mean",
        # Joins on the unit
        "SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.person_id = b.person_id AND a.day < b.day AND "
        "b.days > 30",
        "SELECT p.member, COUNT(*), SUM(v.days) FROM people AS p LEFT JOIN visits AS v USING (person_id) GROUP BY "
        "p.member",
        "SELECT COUNT(*) FROM people AS p, visits AS v, visits AS w WHERE v.person_id = p.person_id AND "
        "w.person_id = p.person_id AND v.days > 35 AND w.days < 5",
        "SELECT LEAST(n, 2) AS k, COUNT(*) FROM (SELECT p.person_id, COUNT(v.visit_id) AS n FROM people AS p LEFT "
        "JOIN visits AS v ON "
        "v.person_id = p.person_id AND v.kind = 'urgent' AND v.cost > 900 GROUP BY p.person_id) AS t GROUP BY k",
        "SELECT COUNT(*), SUM(p.age) FROM visits AS v LEFT JOIN people AS p ON v.person_id = p.person_id AND p.age > "
        "50",
        "SELECT COUNT(*) FROM people AS p LEFT JOIN (SELECT * FROM visits WHERE cost > 2000) AS v USING (person_id) "
        "WHERE v.visit_id IS NULL",
        # IN and EXISTS on the unit
        "SELECT sex, COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM visits WHERE cost > 2000) GROUP "
        "BY sex",
        "SELECT COUNT(*), AVG(age) FROM people AS p WHERE NOT EXISTS (SELECT 1 FROM visits AS v WHERE v.person_id = "
        "p.person_id AND kind = 'urgent')",
        "SELECT kind, COUNT(*) FROM visits WHERE person_id NOT IN (SELECT person_id FROM people WHERE member) OR "
        "person_id IN (SELECT person_id FROM visits GROUP BY person_id HAVING COUNT(*) > 5) GROUP BY kind",
        "SELECT EXISTS (SELECT * FROM visits WHERE visits.person_id = people.person_id) AS seen, COUNT(*) FROM people "
        "GROUP BY seen",
        "SELECT kind, COUNT(*) FROM visits WHERE hospital_id IN (SELECT hospital_id FROM hospitals WHERE beds > 60) OR "
        "hospital_id NOT IN (SELECT h.hospital_id FROM hospitals AS h WHERE region = 'north') GROUP BY kind",
        # Quantiles, of whole numbers with a place each
        "SELECT MEDIAN(age), QUANTILE_CONT(age, 0.9), QUANTILE_DISC(age, 0.25), MIN(age), MAX(level) FROM people",
        "SELECT sex, MEDIAN(age) / 2 AS half, COUNT(*), AVG(age) FROM people GROUP BY sex",
        "SELECT level, PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY age DESC) FILTER (WHERE member) AS q, "
        "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY age) AS r FROM people GROUP BY level HAVING MEDIAN(age) > 3",
        "SELECT MEDIAN(CASE WHEN age > 50 THEN age END), QUANTILE(age, 1), APPROX_QUANTILE(age + level, 0) FROM people",
        # FILTER and WHERE
        "SELECT SUM(age) FILTER (WHERE member), COUNT(*) FILTER (WHERE NOT member) FROM people",
        "SELECT AVG(cost) FILTER (WHERE kind = 'urgent'), COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM people WHERE age BETWEEN 30 AND 60 AND sex = 'Female'",
        "SELECT COUNT(*) FROM people WHERE age IN (20, 30, 40, 50) OR edu LIKE 's%'",
        "SELECT COUNT(*) FROM people WHERE note IS NULL OR note NOT LIKE '%b%'",
        "SELECT COUNT(*), SUM(age) FROM people WHERE weight IS NOT NULL AND weight / age > 1.5",
        "SELECT COUNT(*) FROM people WHERE born >= DATE '1970-01-01' AND month(born) < 7",
        "SELECT COUNT(*) FROM people WHERE NOT (member OR level > 1)",
        "SELECT COUNT(*) FROM people WHERE weight <> 70 IS TRUE",
        "SELECT COUNT(*) FROM visits WHERE date_diff('day', day, DATE '2023-12-31') < 100",
        "SELECT COUNT(*) FROM people WHERE lower(note) = 'b%' OR length(note) = 3",
        # GROUP BY public keys
        "SELECT sex, COUNT(*) FROM people GROUP BY sex",
        "SELECT sex, level, COUNT(*), AVG(age), SUM(weight) FROM people GROUP BY sex, level",
        "SELECT level, STDDEV(weight) AS d FROM people GROUP BY 1",
        "SELECT member, AVG(age) FROM people GROUP BY ALL",
        "SELECT age > 40 AS older, COUNT(*) FROM people GROUP BY older",
        "SELECT month(born) AS m, COUNT(*) FROM people GROUP BY m ORDER BY m",
        "SELECT CASE WHEN age < 40 THEN 'young' ELSE 'old' END AS band, AVG(weight) FROM people GROUP BY band",
        "SELECT level // 2 AS half, SUM(age) FROM people GROUP BY half",
        "SELECT FLOOR(level / 2) AS half, SUM(age) FROM people GROUP BY half ORDER BY half",
        "SELECT ROUND(level / 3) * 3 AS k, COUNT(*) FROM people GROUP BY k",
        "SELECT CEIL(level / 3) AS q, COUNT(*) FROM people GROUP BY q HAVING CEIL(level / 3) > 0 ORDER BY q",
        "SELECT CAST(FLOOR(level / 2) AS VARCHAR) AS half, FLOOR(level / 2) / 4 AS x, COUNT(*) FROM people "
        "GROUP BY FLOOR(level / 2)",
        "SELECT FLOOR(level / 2) AS a, CAST(FLOOR(level / 2) AS BIGINT) AS b, sex, AVG(age) FROM people GROUP BY ALL",
        "SELECT k, SUM(n) OVER (ORDER BY k) FROM (SELECT TRUNC(level / 2) AS k, COUNT(*) AS n FROM people GROUP BY k)",
        "SELECT upper(sex) AS s, COUNT(*) FROM people GROUP BY upper(sex)",
        "SELECT kind, COUNT(*), SUM(cost), COUNT(DISTINCT person_id) FROM visits GROUP BY kind",
        # GROUP BY hidden keys
        "SELECT edu, COUNT(*) FROM people GROUP BY edu",
        "SELECT edu, sex, COUNT(*), AVG(age) FROM people GROUP BY edu, sex",
        "SELECT FLOOR(age / 30) * 30 AS band, COUNT(*), AVG(weight) FROM people GROUP BY band ORDER BY band",
        "SELECT ROUND(weight, -2) AS w, COUNT(*) FROM people GROUP BY w",
        "SELECT TRUNC(weight / -50 - 1) AS w, edu, COUNT(*) FROM people WHERE weight IS NOT NULL GROUP BY w, edu",
        "SELECT CEIL(cost / 2500) AS k, COUNT(*), SUM(days) FROM visits GROUP BY k",
        "SELECT edu, STDDEV(age), SUM(weight) FROM people WHERE member GROUP BY edu",
        "SELECT dept, COUNT(*), AVG(cost) FROM visits GROUP BY dept",
        "SELECT dept, month(day) AS m, SUM(days) FROM visits WHERE month(day) < 4 GROUP BY dept, m",
        # Joins
        "SELECT p.sex, COUNT(*), AVG(v.cost) FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY p.sex",
        "SELECT h.region, SUM(v.days) FROM visits v JOIN hospitals h USING (hospital_id) GROUP BY ALL",
        "SELECT p.edu, h.region, COUNT(*) FROM visits v JOIN people p ON p.person_id = v.person_id "
        "LEFT JOIN hospitals h ON v.hospital_id = h.hospital_id "
        "WHERE h.beds > 50 AND p.age < 80 GROUP BY p.edu, h.region",
        "SELECT SUM(h.beds) FROM visits v JOIN hospitals h ON v.hospital_id = h.hospital_id",
        # Shell: arithmetic, HAVING, ORDER BY, LIMIT, QUALIFY, windows
        "SELECT SUM(age) * 1.0 / COUNT(*), COUNT(*) + 1 FROM people",
        "SELECT level, COUNT(*) AS n FROM people GROUP BY level HAVING COUNT(*) > 50 AND level > 0 ORDER BY level DESC",
        "SELECT edu, COUNT(*) AS n FROM people GROUP BY edu ORDER BY n DESC, edu LIMIT 2",
        "SELECT level, SUM(age) AS s FROM people GROUP BY level ORDER BY s LIMIT 2 OFFSET 1",
        "SELECT sex, level, COUNT(*) AS n FROM people GROUP BY sex, level "
        "QUALIFY row_number() OVER (PARTITION BY sex ORDER BY COUNT(*) DESC, level) = 1",
        "SELECT level, COUNT(*) AS n, rank() OVER (ORDER BY COUNT(*) DESC) AS r FROM people GROUP BY level",
        "SELECT level, SUM(COUNT(*)) OVER (ORDER BY level) AS running FROM people GROUP BY level ORDER BY level",
        "SELECT sex, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY sex",
        "SELECT month(day) AS m, COUNT(*) - lag(COUNT(*)) OVER (ORDER BY month(day)) AS step FROM visits GROUP BY m",
        "SELECT kind, ROUND(AVG(cost)) AS c, CASE WHEN COUNT(*) > 10 THEN 'many' ELSE 'few' END AS size "
        "FROM visits GROUP BY kind",
        "SELECT DISTINCT n > 0 FROM (SELECT level, COUNT(*) AS n FROM people GROUP BY level)",
        # Levels: ROLLUP, CUBE and GROUPING SETS of private blocks, of releases and of public tables
        "SELECT sex, level, COUNT(*) AS n FROM people GROUP BY ROLLUP(sex, level)",
        "SELECT sex, level, COUNT(*) AS n, SUM(age), GROUPING(sex) AS gs, GROUPING(sex, level) AS g FROM "
        "people GROUP BY ROLLUP(sex, level) ORDER BY sex NULLS LAST, level NULLS LAST",
        "SELECT sex, member, AVG(weight) AS w, AVG(age), COUNT(*) FROM people GROUP BY CUBE(sex, member)",
        "SELECT sex, level, COUNT(weight) FROM people GROUP BY GROUPING SETS ((sex, level), (sex), ())",
        "SELECT sex, level, SUM(weight) * 2 AS s FROM people GROUP BY GROUPING SETS ((sex), (level))",
        "SELECT level // 2 AS half, sex, COUNT(*) AS n FROM people GROUP BY ROLLUP(half, sex) HAVING COUNT(*) > 10",
        "SELECT sex, level, COUNT(*) FROM people GROUP BY sex, ROLLUP(level)",
        "SELECT COALESCE(sex, 'all') AS s, COUNT(*) FROM people GROUP BY ROLLUP(sex)",
        "SELECT CASE WHEN GROUPING(sex) = 1 THEN 'all' ELSE sex END AS s, COUNT(*) FILTER (WHERE age > 40), "
        "AVG(age) FILTER (WHERE member) FROM people GROUP BY ROLLUP(sex)",
        "SELECT FLOOR(level / 2) AS half, sex, COUNT(*) AS n FROM people GROUP BY ROLLUP(FLOOR(level / 2), sex)",
        "SELECT kind, COUNT(*), SUM(cost), AVG(cost) FROM visits GROUP BY ROLLUP(kind)",
        "SELECT kind, month(day) AS m, SUM(days) AS s FROM visits GROUP BY ROLLUP(kind, month(day))",
        "SELECT sex, n / SUM(n) OVER () AS share FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY "
        "ROLLUP(sex)) WHERE sex IS NOT NULL",
        "SELECT sex, level, COUNT(*) FROM people GROUP BY ROLLUP(1, 2)",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP(sex) QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) <= 2",
        "SELECT h.region, kind, COUNT(*) FROM visits v JOIN hospitals h USING (hospital_id) GROUP BY "
        "ROLLUP(h.region, kind)",
        "SELECT sex, level, member, COUNT(*) FROM people GROUP BY ROLLUP((sex, level), member)",
        "SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP(sex), ROLLUP(level)",
        "SELECT sex, level, GROUPING_ID(level, sex) AS g, COUNT(*) FROM people GROUP BY CUBE(sex, level) "
        "HAVING GROUPING(sex) = 0",
        "SELECT region, COUNT(*), GROUPING(region) FROM hospitals GROUP BY ROLLUP(region)",
        "SELECT region, COUNT(*), GROUPING(region) AS g FROM hospitals GROUP BY ROLLUP(region)",
        "SELECT region, hospital_id, MAX(beds) FROM hospitals GROUP BY GROUPING SETS ((region, hospital_id), "
        "region, ())",
        "SELECT s, SUM(n) FROM (SELECT sex AS s, level, COUNT(*) AS n FROM people GROUP BY ALL) GROUP BY ROLLUP(s)",
        "SELECT s, SUM(n), RANK() OVER (ORDER BY GROUPING(s)) FROM (SELECT sex AS s, level, COUNT(*) AS n "
        "FROM people GROUP BY ALL) GROUP BY ROLLUP(s) HAVING SUM(n) > 0 ORDER BY GROUPING(s)",
        "SELECT sex, AVG(age) FROM people GROUP BY ROLLUP(sex)",
        "SELECT sex, level, VAR_POP(age) AS v, AVG(age), GROUPING(level) AS g FROM people GROUP BY CUBE(sex, level)",
        "SELECT kind, COUNT(DISTINCT person_id) AS n FROM visits GROUP BY ROLLUP(kind) ORDER BY n DESC LIMIT 3",
        "SELECT sex, level, MEDIAN(age) AS m FROM people GROUP BY GROUPING SETS ((level), (sex), ()) HAVING m > 10",
        "SELECT FLOOR(level / 2) AS half, sex, COUNT(*) AS n, STDDEV_POP(age) FROM people GROUP BY ROLLUP(half, sex)",
        # Functions of released numbers
        "SELECT sex, STRING_AGG(CAST(level AS VARCHAR), ',' ORDER BY level) AS s "
        "FROM (SELECT sex, level, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex, level) t GROUP BY sex",
        "SELECT STRING_AGG(DISTINCT sex, ', ' ORDER BY sex) "
        "FROM (SELECT sex, level, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex, level) t",
        "SELECT sex, LISTAGG(level, '-' ORDER BY level DESC) FILTER (WHERE level > 0) "
        "FROM (SELECT sex, level, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex, level) t GROUP BY sex",
        "SELECT * EXCLUDE (a) FROM (SELECT sex, level, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex, level) t",
        "SELECT t.* EXCLUDE (a, n) "
        "FROM (SELECT sex, level, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex, level) t",
        "SELECT sex, MODE(level % 2) "
        "FROM (SELECT sex, level, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex, level) t WHERE "
        "level > 0 GROUP BY sex",
        "SELECT ROUND(SKEWNESS(n), 4), ROUND(KURTOSIS(n), 4), ROUND(REGR_SLOPE(n, level), 4), "
        "ROUND(REGR_R2(n, level), 4), REGR_COUNT(n, level) "
        "FROM (SELECT sex, level, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex, level) t",
        "SELECT CONCAT_WS('-', sex, level), REVERSE(sex), PI() * level "
        "FROM (SELECT sex, level, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex, level) t",
        "SELECT STRFTIME(DATE '2024-05-06', '%Y-%m'), MONTHNAME(DATE '2024-05-06'), LAST_DAY(DATE '2024-02-06'), n "
        "FROM (SELECT sex, level, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex, level) t",
        # Public tables, VALUES, UNNEST and series: alone, and beside releases
        "SELECT * FROM hospitals",
        "SELECT COUNT(*) FROM hospitals",
        "SELECT region, COUNT(*) AS n, SUM(beds) AS b, AVG(beds) FROM hospitals GROUP BY region ORDER BY region",
        "SELECT h.region, g.beds FROM hospitals h JOIN hospitals g ON h.hospital_id = g.hospital_id WHERE h.beds > 50",
        "SELECT hospital_id, beds, RANK() OVER (ORDER BY beds DESC) AS r FROM hospitals ORDER BY r LIMIT 2",
        "WITH big AS (SELECT * FROM hospitals WHERE beds >= 100) SELECT region, MAX(beds) FROM big GROUP BY 1",
        "SELECT MAX(beds) - (SELECT MIN(beds) FROM hospitals) FROM hospitals",
        "SELECT * FROM (VALUES (1,'a'),(2,'b')) AS t(id, name)",
        "SELECT col0 + 1 FROM (VALUES (1,'a'),(2,'b')) t",
        "WITH t(a, b) AS (VALUES (1, 2), (3, 4)) SELECT SUM(a), MAX(b) FROM t",
        "SELECT x * 2 FROM UNNEST([1,2,3]) AS t(x)",
        "SELECT * FROM UNNEST(['a', NULL, 'b'])",
        "SELECT * FROM generate_series(1,10) AS t(x) WHERE x % 2 = 0",
        "SELECT SUM(range) FROM range(5)",
        "SELECT d, CAST(d AS DATE) AS e FROM generate_series(DATE '2024-01-30', DATE '2024-06-01', INTERVAL "
        "1 MONTH) AS g(d)",
        "SELECT x FROM UNNEST(generate_series(1,7,2)) AS t(x)",
        "SELECT x FROM range(10, 0, -3) AS t(x)",
        "SELECT s.level, w.w * s.n FROM (SELECT level, COUNT(*) AS n FROM people GROUP BY level) s JOIN "
        "(VALUES (0, 0.5), (1, 2.0), (2, 1.0)) AS w(level, w) ON s.level = w.level",
        "SELECT sex, COUNT(*) * 100.0 / (SELECT SUM(beds) FROM hospitals) AS p FROM people GROUP BY sex",
        "SELECT h.region FROM hospitals h WHERE EXISTS (SELECT 1 FROM hospitals g WHERE g.region = h.region "
        "AND g.beds > h.beds)",
        "SELECT region, COUNT(*) FROM hospitals WHERE region LIKE 'n%' GROUP BY ALL HAVING COUNT(*) > 1",
        "SELECT x, COALESCE(n, 0) FROM generate_series(0, 5) AS g(x) LEFT JOIN (SELECT level, COUNT(*) AS n "
        "FROM people GROUP BY level) p ON p.level = g.x",
        "SELECT h.region, n FROM (SELECT level, COUNT(*) AS n FROM people GROUP BY level) p, hospitals h",
        "SELECT * FROM hospitals, range(1, 4) AS r(i) WHERE hospital_id = i",
        # Shell: derived tables, CTEs, set operations, subqueries, joins of releases
        "SELECT SUM(n), MAX(n), AVG(n) FROM (SELECT level, COUNT(*) AS n FROM people GROUP BY level)",
        "WITH a AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) SELECT sex, n, n / SUM(n) OVER () FROM a",
        "WITH a AS (SELECT level, COUNT(*) AS n FROM people GROUP BY level), b AS (SELECT MAX(n) AS m FROM a) "
        "SELECT a.level, a.n, b.m - a.n FROM a, b",
        "WITH a(k, n) AS (SELECT sex, COUNT(*) FROM people GROUP BY sex) SELECT k, n FROM a WHERE n > 10",
        "SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM visits",
        "SELECT level FROM people GROUP BY level HAVING COUNT(*) > 0 EXCEPT SELECT 3",
        "SELECT level, member FROM people GROUP BY ALL HAVING COUNT(*) > 30 INTERSECT "
        "SELECT level // 2 AS l, member FROM people GROUP BY l, member HAVING COUNT(*) > 40",
        "SELECT (SELECT COUNT(*) FROM visits) * 1.0 / (SELECT COUNT(*) FROM people) AS visits_per_person",
        "SELECT a.n - b.n FROM (SELECT COUNT(*) AS n FROM people WHERE member) a, "
        "(SELECT COUNT(*) AS n FROM people WHERE NOT member) b",
        "SELECT a.sex, a.n, b.c FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) a JOIN (SELECT p.sex, "
        "AVG(v.cost) AS c FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY p.sex) b ON a.sex = "
        "b.sex",
        "SELECT sex, n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t "
        "WHERE n >= (SELECT COUNT(*) FROM people) / 2.5",
        "SELECT MEDIAN(n), STDDEV_POP(n) FROM (SELECT month(born) AS m, COUNT(*) AS n FROM people GROUP BY m)",
        "SELECT sex, SUM(n) FROM (SELECT sex, level, COUNT(*) AS n FROM people GROUP BY sex, level) GROUP BY sex",
        "SELECT * FROM (SELECT edu, COUNT(*) AS n FROM people GROUP BY edu) ORDER BY edu",
        'SELECT COUNT(*) AS "the count", 1 AS one /* a comment */ FROM people -- another',
        "SELECT 1 + 1 AS two",
    )
]
QUERIES += [
    ("SELECT COUNT(*) FROM people WHERE age > $least AND sex = $sex", {"least": 40, "sex": "Male"}),
    ("SELECT level, COUNT(*) AS n FROM people GROUP BY level HAVING COUNT(*) > $n", {"n": 30}),
    ("SELECT SUM(age + $more) FROM people WHERE weight < $weight", {"more": 3, "weight": 88.5}),
    ("SELECT (SELECT COUNT(*) FROM people WHERE age > $x) * 1.0 / (SELECT COUNT(*) FROM people) AS r", {"x": 50}),
]


def test_every_shape_is_listed() -> None:
    """Nobody has thinned out the list."""
    assert len({sql for sql, _ in QUERIES}) == len(QUERIES) >= 85


def cases() -> Iterator[Any]:
    """Every query with both families; hidden groups that people share are selected with Gaussian noise only.

    Noise is a thing of its own, whatever the query: by day each third is asked with Laplace noise, by night all are.
    """
    for place, (sql, parameters) in enumerate(QUERIES):
        shared = "FROM visits" in sql and ("dept" in sql or "p.edu" in sql or "CEIL(cost" in sql)
        for family in ("gaussian",) if shared else ("laplace", "gaussian"):
            marks = [pytest.mark.nightly] if family == "laplace" and place % 3 else []
            yield pytest.param(sql, parameters, family, id=f"{family}: {sql}", marks=marks)


@pytest.mark.sparse(8)
@pytest.mark.parametrize(("sql", "parameters", "family"), list(cases()))
def test_huge_epsilon_equals_the_plain_answer(
    clinic: Clinic, sql: str, parameters: dict[str, Any], family: str
) -> None:
    """The journey's answer is DuckDB's answer to the same text on the plain tables."""
    ordered = "ORDER BY" in sql.rsplit(")", 1)[-1]
    answered = clinic.answer(sql, parameters, gaussian=family == "gaussian")
    compare(clinic.directly(sql, parameters), answered, ordered=ordered)


DIFFERENT: list[tuple[str, list[list[Any]], str]] = [
    ("SELECT SUM(age) FROM people WHERE age > 1000", [[0]], "the sum of no rows is 0, as its noise has no NULL"),
    ("SELECT kind, COUNT(*) FROM visits WHERE days < 0 GROUP BY kind", [["plan", 0], ["urgent", 0]],
     "public groups are shown even when nobody is in them"),
    ("SELECT kind, COUNT(*) FROM visits WHERE kind = 'plan' AND days < 0 GROUP BY kind", [["plan", 0]],
     "but for those that the conditions on keys rule out"),
    ("SELECT COUNT(*) FROM people WHERE 1 / (age - age) > 0", [[0]], "division by zero is NULL"),
    ("SELECT COUNT(*) FROM people WHERE CAST(edu AS BIGINT) IS NULL", [[PEOPLE]], "CAST is TRY_CAST"),
    ("SELECT COUNT(*) FROM people WHERE LEAST(NULL, age) IS NULL", [[PEOPLE]], "LEAST of NULL is NULL"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "expected", "why"), DIFFERENT, ids=[why for _, _, why in DIFFERENT])
def test_differences_by_design(clinic: Clinic, sql: str, expected: list[list[Any]], why: str) -> None:
    """Where the answer is not DuckDB's, it is what the language says."""
    assert expected == clinic.answer(sql, {}, gaussian=True), why


def test_groups_without_an_aggregate_read_nothing() -> None:
    """Public groups alone need no rows: they are those of the declarations, and nothing is measured."""
    assert lift("SELECT level FROM people GROUP BY level", declared()).cores == ()


def test_clipping_is_the_only_change_of_values(clinic: Clinic) -> None:
    """Values beyond their bounds are clipped in sums, and only there: conditions see what is stored."""
    sql = "SELECT SUM(GREATEST(30, LEAST(age, 40))), COUNT(*) FILTER (WHERE age > 40) FROM people"
    compare(clinic.directly(sql, {}), clinic.answer(sql, {}, gaussian=False), ordered=True)
