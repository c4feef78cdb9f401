"""Every node of relations and every aggregate, on units of 0, 1, 5, 50 and 5,000 rows with extremes of every type.

Three data sets are one: all units, all but the one with most rows, and that one alone. Of sums to which units add, the
first is the second and the third together; what differs is within what is declared; and no row makes anything raise.
Where the engine adds different values, neighbours alone are compared.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from fractions import Fraction
from typing import Any

import pytest

from privacy.bounds import ContributionBound
from privacy.norms import NormPower
from sql_rewrite import numbered_rows, unit_facts, unit_groups
from sql_rewrite.dialects.duckdb import DuckDB
from sql_rewrite.relations import WithinUnit
from tests.audit.generate import Query, Scene
from tests.audit.harness import Audit, Side, Store, Tally, check_pair, run
from tests.audit.smallest import audited, scene
from tests.audit.violation import Violation, require

_WHOLE: tuple[Any, ...] = (2**63 - 1, -(2**63), 2**53 + 1, 0, None, 7, -1)
_REAL: tuple[Any, ...] = (
    1.7976931348623157e308, -1.7976931348623157e308, 5e-324, -0.0, 0.0, math.nan, math.inf, -math.inf, None, 3.5,
)  # fmt: skip
_WORDS: tuple[Any, ...] = (
    None, "", "a", "A", "ä", "a\u0308", "x\ty", "z" * 300, "1e400", "99999999999999999999", "NaN", "2020-13-45",
)  # fmt: skip

RELATIONS: Mapping[str, str] = {
    "scan": "SELECT person_id, x AS v, k FROM visits",
    "filter": "SELECT person_id, y AS v, k FROM visits WHERE x > 0 OR w < 'b'",
    "projection": "SELECT person_id, x * x - y AS v, CASE WHEN y < 0 THEN k ELSE 'a' END AS k FROM visits",
    "parent": "SELECT v.person_id, v.x AS v, p.k FROM visits AS v JOIN people AS p ON v.person_id = p.person_id",
    "unit join": "SELECT a.person_id, a.y AS v, b.k FROM visits AS a JOIN people AS b ON a.person_id = b.person_id",
    "left join": "SELECT a.person_id, b.y AS v, b.k FROM people AS a LEFT JOIN visits AS b "
    "ON a.person_id = b.person_id AND b.x > 0",
    "full join": "SELECT COALESCE(a.person_id, b.person_id) AS person_id, a.x + b.x AS v, a.k FROM visits AS a "
    "FULL JOIN people AS b ON a.person_id = b.person_id",
    "full join on more": "SELECT COALESCE(a.person_id, b.person_id) AS person_id, b.y AS v, a.k FROM visits AS a "
    "FULL JOIN people AS b ON a.person_id = b.person_id AND (a.x > b.x OR a.y < 3)",
    "left join on either": "SELECT a.person_id, b.y AS v, b.k FROM people AS a LEFT JOIN visits AS b "
    "ON a.person_id = b.person_id AND (a.x > 0 OR b.x > 0)",
    "left join on both": "SELECT a.person_id, b.y AS v, b.k FROM people AS a LEFT JOIN visits AS b "
    "ON a.person_id = b.person_id AND a.y + b.y > 0",
    "left join of computed rows": "SELECT a.person_id, b.v, b.k FROM people AS a LEFT JOIN (SELECT person_id, "
    "COALESCE(x, 3) AS v, 'a' AS k FROM visits WHERE y > 0) AS b ON a.person_id = b.person_id",
    "left join of joined rows": "SELECT a.person_id, b.v, b.k FROM people AS a LEFT JOIN (SELECT v.person_id, "
    "COALESCE(v.x, p.x) AS v, p.k FROM visits AS v JOIN people AS p ON v.person_id = p.person_id) AS b "
    "ON a.person_id = b.person_id AND b.v > a.x",
    "groups": "SELECT person_id, SUM(x) AS v, MIN(k) AS k FROM visits GROUP BY person_id HAVING COUNT(DISTINCT w) > 1",
    "groups of keys": "SELECT person_id, AVG(y) AS v, k FROM visits GROUP BY person_id, k",
    "groups of numbers": "SELECT person_id, y AS v, MAX(k) AS k FROM visits GROUP BY person_id, y",
    "distinct": "SELECT DISTINCT person_id, y AS v, k FROM visits",
    "union all": "SELECT person_id, x AS v, k FROM visits UNION ALL SELECT person_id, y, w FROM people",
    "union": "SELECT person_id, x AS v, k FROM visits UNION SELECT person_id, -y, k FROM visits",
    "intersect": "SELECT person_id, y AS v, k FROM visits INTERSECT SELECT person_id, -y, k FROM visits",
    "except": "SELECT person_id, y AS v, k FROM visits EXCEPT SELECT person_id, x, w FROM visits",
    "constants": "SELECT person_id, x * c.n AS v, c.m AS k FROM visits CROSS JOIN "
    "(VALUES (9223372036854775807, 'a'), (-3, 'b'), (NULL, NULL)) AS c(n, m)",
    "bands": "SELECT person_id, y AS v, c.m AS k FROM visits JOIN (VALUES (-10.0, 0.0, 'a'), (0.0, 1e9, 'b')) "
    "AS c(low, high, m) ON y >= c.low AND y < c.high",
    "outer constants": "SELECT person_id, c.n AS v, k FROM visits LEFT JOIN (VALUES (1), (1), (2)) AS c(n) ON x > c.n",
    "series": "SELECT person_id, g.n AS v, k FROM visits, generate_series(1, 3) AS g(n) WHERE x > g.n",
    "numbers of rows": "SELECT person_id, x AS v, k FROM visits "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY y) <= 2",
    "distinct on": "SELECT DISTINCT ON (person_id, k) person_id, y AS v, k FROM visits ORDER BY w DESC",
    "neighbours": "SELECT person_id, LAG(x, 2) OVER (PARTITION BY person_id ORDER BY y DESC NULLS FIRST) AS v, k "
    "FROM visits",
    "ends": "SELECT person_id, x AS v, FIRST_VALUE(k) OVER (PARTITION BY person_id ORDER BY y, w) AS k FROM visits",
    "frames": "SELECT person_id, SUM(y) OVER (PARTITION BY person_id ORDER BY w ROWS BETWEEN 20 PRECEDING AND CURRENT "
    "ROW) AS v, k FROM visits",
    "ranks": "SELECT person_id, DENSE_RANK() OVER (PARTITION BY person_id ORDER BY y, w) AS v, k FROM visits",
    "two windows": "SELECT person_id, SUM(s) OVER (PARTITION BY person_id, k ORDER BY s) AS v, k FROM "
    "(SELECT person_id, k, SUM(x) OVER (PARTITION BY person_id ORDER BY y) AS s FROM visits) AS q",
    "in": "SELECT person_id, x AS v, k FROM visits WHERE person_id NOT IN (SELECT person_id FROM people WHERE y > 0)",
    "semi join": "SELECT v.person_id, v.x AS v, v.k FROM visits AS v SEMI JOIN people AS p "
    "ON v.person_id = p.person_id AND p.k = 'a'",
    "exists": "SELECT v.person_id, v.x AS v, v.k FROM visits AS v WHERE EXISTS (SELECT 1 FROM visits AS u "
    "WHERE u.person_id = v.person_id AND u.k = v.k AND u.x < v.x)",
    "not exists": "SELECT v.person_id, v.y AS v, v.k FROM visits AS v WHERE NOT EXISTS (SELECT 1 FROM visits AS u "
    "WHERE u.person_id = v.person_id AND u.w = v.w AND u.y <> v.y)",
    "exists of pairs": "SELECT p.person_id, p.x AS v, p.k FROM people AS p WHERE EXISTS (SELECT 1 FROM visits AS u "
    "WHERE u.person_id = p.person_id AND u.x < p.x AND u.y > p.y)",
    "value of pairs": "SELECT p.person_id, (SELECT COUNT(u.x) FROM visits AS u WHERE u.person_id = p.person_id "
    "AND u.y <= p.y) AS v, p.k FROM people AS p",
    "value of others": "SELECT v.person_id, v.x AS v, v.k FROM visits AS v WHERE y > (SELECT AVG(u.y) FROM visits AS u "
    "WHERE u.person_id = v.person_id AND u.k = v.k)",
    "medians": "SELECT person_id, MEDIAN(y) AS v, MIN(k) AS k FROM visits GROUP BY person_id",
    "quantiles": "SELECT person_id, QUANTILE_DISC(x, 0.9) AS v, k FROM visits GROUP BY person_id, k",
    "deviations": "SELECT person_id, MAD(y) AS v, MAX(k) AS k FROM visits GROUP BY person_id",
    "modes": "SELECT q.person_id, q.m AS v, 'a' AS k FROM (SELECT person_id, MODE(x) AS m FROM visits "
    "GROUP BY person_id) AS q",
    "modes beside others": "SELECT person_id, MODE(y) FILTER (WHERE x <> 7) AS v, MODE(w) AS k FROM visits "
    "GROUP BY person_id HAVING COUNT(*) > 1",
    "left join of groups": "SELECT a.person_id, g.v, g.k FROM people AS a LEFT JOIN (SELECT person_id, MAX(x) AS v, k "
    "FROM visits GROUP BY person_id, k) AS g ON a.person_id = g.person_id AND g.v > 0 AND g.k <> 'b'",
    "frames of groups": "SELECT person_id, MAX(x) OVER (PARTITION BY person_id ORDER BY k GROUPS BETWEEN 1 PRECEDING "
    "AND CURRENT ROW EXCLUDE GROUP) AS v, k FROM visits",
    "unpivot": "SELECT person_id, v, k FROM (SELECT person_id, k, x, x // 2 AS half FROM visits) "
    "UNPIVOT (v FOR name IN (x, half)) AS u",
    "combinations": "SELECT person_id, y AS v, k FROM visits WHERE (k, x) IN (('a', 7), ('b', 0), ('a', -1))",
}
"""Each with a number `v` of any size and a word `k`."""

_HELD = "GREATEST(-2, LEAST(9, v))"
AGGREGATES: tuple[str, ...] = (
    f"SELECT COUNT(*), COUNT(v), SUM({_HELD}) FROM ({{}}) AS t",
    f"SELECT k, COUNT(DISTINCT v), AVG({_HELD}) FROM ({{}}) AS t GROUP BY k",
    f"SELECT MEDIAN({_HELD}), STDDEV({_HELD}) FROM ({{}}) AS t WHERE k IS NOT NULL",
    f"SELECT CORR({_HELD}, LENGTH(k)), SUM(DISTINCT {_HELD}) FROM ({{}}) AS t",
)
"""One set for each relation here, in turn; all of them in the nightly run."""

EVERY = [(name, AGGREGATES[place % len(AGGREGATES)]) for place, name in enumerate(RELATIONS)]
ALL = [(name, aggregates) for name in RELATIONS for aggregates in AGGREGATES]


def _scene(*counts: int) -> Scene:
    """Persons with so many visits; some of whose values are anything."""
    drawn = random.Random(11)

    def row(unit: int) -> dict[str, Any]:
        return {
            "person_id": unit, "x": drawn.choice(_WHOLE), "y": drawn.choice(_REAL), "k": drawn.choice(("a", "b", None)),
            "w": drawn.choice(_WORDS),
        }  # fmt: skip

    people = [{**row(unit), "person_id": unit} for unit in range(len(counts))]
    visits = [row(unit) for unit, count in enumerate(counts) for _ in range(count)]
    return scene(people, visits, contribution=ContributionBound(6, 2, 4))


@pytest.fixture(scope="module")
def large() -> Iterator[tuple[Scene, tuple[Store, Store, Store]]]:
    """The data of all units, all but the last, and the last alone."""
    made = _scene(0, 1, 5, 50, 5_000)
    units = frozenset(made.units)
    parts = (units, units - {4}, frozenset({4}))
    with ExitStack() as stack:
        one, two, three = (stack.enter_context(closing(Store(made, part, seed=n))) for n, part in enumerate(parts))
        yield made, (one, two, three)


def _added(sides: tuple[Side, Side, Side]) -> None:
    """That the first data's sums are those of the others together."""
    for core, *found in zip(sides[0].cores, *(side.sides for side in sides), strict=True):
        whole, others, alone = found
        for call, *rest in zip(whole.calls, others.calls, alone.calls, strict=True):
            if call.measurement.statistic.distinct:
                continue
            zero = (0,) * call.measurement.statistic.coordinates
            parts = [
                dict(zip(side.keys, one.exact, strict=True)) for side, one in zip((others, alone), rest, strict=True)
            ]
            for key, sums in zip(whole.keys, call.exact, strict=True):
                wanted = tuple(a + b for a, b in zip(*(part.get(key, zero) for part in parts), strict=True))
                name = f"{call.statistic} of {core.described.name}"
                require(sums == wanted, f"{name}, {key}: {sums} beside others, {wanted} apart")


def _checked(made: Scene, stores: tuple[Store, Store, Store], sql: str) -> None:
    query = Query(sql, {})

    def ran(store: Store) -> Side:
        return run(store, made, query, gaussian=True, epsilon=Fraction(1), power=NormPower.L2)

    one, two, three = (ran(store) for store in stores)
    check_pair(one, two, Tally())
    _added((one, two, three))


@pytest.mark.sparse(8)
@pytest.mark.parametrize(("name", "aggregates"), EVERY, ids=list(RELATIONS))
def test_a_unit_of_many_rows_adds_what_it_adds_alone(
    large: tuple[Scene, tuple[Store, Store, Store]], name: str, aggregates: str
) -> None:
    """Shows unit-locality, sensitivities and totality beside a unit with 5,000 rows, of each node once."""
    _checked(*large, aggregates.format(RELATIONS[name]))


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_unit_of_many_rows_adds_what_it_adds_alone_in_every_aggregate(
    large: tuple[Scene, tuple[Store, Store, Store]],
) -> None:
    """Shows the same of every node under every set of aggregates."""
    for name, aggregates in ALL:
        _checked(*large, aggregates.format(RELATIONS[name]))


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_every_node_means_what_it_says_of_extremes() -> None:
    """Shows that every node is what plain Python makes of units of 0, 1, 5 and 50 rows, under every aggregate."""
    made = _scene(0, 1, 5, 50)
    for name, aggregates in ALL:
        for without in (2, 3):
            tally = Tally()
            neighbour = frozenset(made.units) - {without}
            Audit(made, Query(aggregates.format(RELATIONS[name]), {}), True, Fraction(1), neighbour).check(tally)
            assert not tally.refused, name


# What would be wrong

_FEW = [{"person_id": unit, "x": x, "y": float(x), "k": "ab"[x % 2]} for unit in (0, 1) for x in range(5)]


def _always(*given: object) -> bool:
    return True


def _caught(sql: str, says: str) -> None:
    with pytest.raises(Violation, match=says):
        audited(scene([{}, {}], _FEW), sql, 1)


def test_windows_that_are_taken_for_one_value_of_a_unit_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants that groups by the number of a row are one of each unit."""
    monkeypatch.setattr(unit_facts, "_over_all_rows", _always)
    numbers = "SELECT person_id, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY x) AS r FROM visits"
    _caught(
        f"SELECT COUNT(*) FROM (SELECT person_id, r, COUNT(*) AS n FROM ({numbers}) AS t GROUP BY person_id, r) AS q",
        "changed by",
    )


def test_first_rows_of_parts_of_a_unit_that_are_taken_for_its_first_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants that a unit has one row of number 1, although rows are numbered by another key besides."""
    monkeypatch.setattr(numbered_rows, "constant_per_unit", _always)
    place = "ROW_NUMBER() OVER (PARTITION BY person_id, k ORDER BY x) = 1"
    _caught(f"SELECT COUNT(*) FROM (SELECT person_id, x FROM visits QUALIFY {place}) AS t", "changed by 2, declared 1")


def test_groups_of_several_keys_that_are_taken_for_one_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants that a unit has one group, whatever it is grouped by."""
    monkeypatch.setattr(unit_groups, "constant_per_unit", _always)
    _caught("SELECT COUNT(*) FROM (SELECT person_id, k FROM visits GROUP BY person_id, k) AS t", "changed by")


def test_ranks_that_are_taken_for_numbers_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants that a unit has one row of rank 1, although equal rows share it."""
    monkeypatch.setattr(numbered_rows, "_numbers", _always)
    place = "RANK() OVER (PARTITION BY person_id ORDER BY k) = 1"
    _caught(f"SELECT COUNT(*) FROM (SELECT person_id, x FROM visits QUALIFY {place}) AS t", "changed by 3, declared 1")


def test_rows_that_depend_on_others_are_caught(
    large: tuple[Scene, tuple[Store, Store, Store]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plants numbers of rows among everybody's."""

    def everybody(dialect: Any, node: WithinUnit) -> str:
        return DuckDB._within_unit(dialect, node).replace('PARTITION BY "u"', "PARTITION BY 1", 1)

    monkeypatch.setitem(DuckDB._writers, WithinUnit, everybody)
    with pytest.raises(Violation, match="beside others"):
        _checked(*large, AGGREGATES[0].format(RELATIONS["numbers of rows"]))
