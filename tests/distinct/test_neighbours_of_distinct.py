"""Random questions with DISTINCT on neighbours whose values are shared: sums, sensitivities and the choice of values.

The audit of tests/audit with a second meaning of its own (tests/audit/different.py): with and without one unit, the
engine's sums are those of the union, and they differ by no more than is declared. Bugs are planted and caught.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from privacy.bounds import ContributionBound
from sql_rewrite import lower as lowering
from sql_rewrite.bound import bound
from sql_rewrite.dialects.duckdb import DuckDB
from sql_rewrite.lift import lift
from sql_rewrite.relations import ChosenValues
from tests.audit import harness
from tests.audit.generate import Query, Scene, make_query
from tests.audit.harness import Tally, audit_scene
from tests.audit.planted import change_sensitivity
from tests.audit.smallest import audited, scene
from tests.audit.violation import Violation

_CALLS = re.compile(
    r"\b(?:(?:SUM|AVG|MEAN|VAR_POP|VAR_SAMP|VARIANCE|STDDEV|STDDEV_POP|STDDEV_SAMP)\(|COUNT\((?!\*|DISTINCT|1\)))"
)


def of_values(scene: Scene, seed: int) -> Query:
    """A random query with DISTINCT in most of its aggregates."""
    query, r = make_query(scene, seed), random.Random(seed)
    return replace(query, sql=_CALLS.sub(lambda call: call[0] + "DISTINCT " * (r.random() < 0.7), query.sql))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit asks these questions."""
    monkeypatch.setattr(harness, "make_query", of_values)


@pytest.mark.usefixtures("asked")
@pytest.mark.sparse(2)
@pytest.mark.parametrize("seed", range(3_000, 3_004))
def test_one_unit_changes_no_more_than_declared(seed: int) -> None:
    """Random rows (NULL, NaN, infinities, extremes, shared values) and questions, exactly."""
    tally = Tally()
    audit_scene(seed, queries=8, neighbours=2, tally=tally)
    assert tally.triples == 16
    assert any(kind.endswith("of values") for kind in tally.kinds), tally.kinds


# The smallest data on which a rule shows


def people(
    *visits: tuple[int, str, float], contribution: ContributionBound, bounds: tuple[str, str] = ("0", "10")
) -> Scene:
    """Persons with visits, each in a group with a value."""
    rows = [{"person_id": unit, "x": int(value), "y": float(value), "k": key} for unit, key, value in visits]
    return scene([{} for _ in range(8)], rows, bounds=bounds, contribution=contribution)


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("COUNT(DISTINCT x)", "count of values"),
        ("SUM(DISTINCT y)", "sum of values"),
        ("AVG(DISTINCT y)", "moments1 of values"),
        ("STDDEV(DISTINCT y)", "moments2 of values"),
    ],
)
@pytest.mark.parametrize("spread", [(2, 1), (3, 0)], ids=["two groups", "one group"])
def test_every_bound_is_attained(call: str, kind: str, spread: tuple[int, int]) -> None:
    """Values at the bound that nobody else has are all that a unit may move, in each norm; m in L2 as well."""
    rows = max(spread)
    values = [(0, key, 10) for key, count in zip("ab", spread, strict=True) for _ in range(count)]
    if kind == "count of values":
        values = [(0, key, number) for number, (_, key, _) in enumerate(values)]
    elif kind.startswith(("sum", "moments")) and rows > 1:
        # Different values beyond the upper bound all count as it.
        values = [(0, key, 10 + number) for number, (_, key, _) in enumerate(values)]
    world = people(*values, (1, "a", 99), contribution=ContributionBound(3, 2, rows))
    tally = audited(world, f"SELECT k, {call} FROM visits GROUP BY k", 0, gaussian=True)
    assert tally.kinds.keys() == {kind}
    for most in (tally.tightest, tally.squares, tally.greatest):
        assert most[kind] == 1


@pytest.mark.sparse(8)
@pytest.mark.parametrize("rows", [0, 1, 5, 50])
@pytest.mark.parametrize("shared", [0, 3, 50])
def test_shared_values_count_once(rows: int, shared: int) -> None:
    """One unit's values are another's: leaving it moves what only it brought in, whatever the others kept."""
    mine = [(0, "ab"[number % 2], number) for number in range(rows)]
    others = [(1 + number % 7, "ab"[number % 2], number) for number in range(shared)]
    world = people(*mine, *others, contribution=ContributionBound(4, 2, 3))
    for call in ("COUNT(DISTINCT x)", "SUM(DISTINCT x), COUNT(DISTINCT x), AVG(DISTINCT x)"):
        audited(world, f"SELECT k, {call} FROM visits GROUP BY k", 0, gaussian=True)
        audited(world, f"SELECT {call} FILTER (WHERE x > 1) FROM visits", 0)


def test_zeros_are_one_value_and_what_is_not_finite_is_none() -> None:
    """-0.0 is 0.0; NaN, infinities and NULL are no values: three units have four values together."""
    odd = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5, 5e-324, 1.7976931348623157e308]
    rows = [{"person_id": number % 3, "y": value, "k": "a"} for number, value in enumerate([*odd, *odd, None])]
    world = scene([{}, {}, {}], rows, contribution=ContributionBound(20, 2, 20))
    tally = audited(world, "SELECT COUNT(DISTINCT y), COUNT(DISTINCT y + 1) FROM visits", 0)
    assert tally.kinds == {"count of values": 2}


@pytest.mark.parametrize(
    "sql", ["SELECT COUNT(DISTINCT x) FROM people", "SELECT k, AVG(DISTINCT y) FROM people GROUP BY k"]
)
def test_one_row_each_is_bounded_by_itself(sql: str) -> None:
    """Where a unit owns one row it brings in one value, without any choice."""
    (core,) = bound(lift(sql, people(contribution=ContributionBound(4, 2, 3)).dataset))
    (statistic,) = core.described.statistics
    size = 1 if statistic.encoding is None else statistic.encoding.highest
    assert statistic.sensitivity.l1 == size
    assert '"place"' not in lowering.lower(core).sql
    world = scene([{"x": 3, "y": 3.0, "k": "a"}, {"x": 3, "y": 3.0, "k": "a"}, {"x": 4, "y": 4.0, "k": "b"}])
    for unit in (0, 2):
        audited(world, sql, unit)


# Planted bugs


def written(patch: pytest.MonkeyPatch, write: Callable[[DuckDB, ChosenValues], str]) -> None:
    """Another choice of values."""
    patch.setitem(DuckDB._writers, ChosenValues, write)


def scaled_and_not_chosen(patch: pytest.MonkeyPatch) -> None:
    """A value weighs what one of its owners is scaled to (here rounded down), not what a unit that keeps it adds."""

    def write(dialect: DuckDB, node: ChosenValues) -> str:
        keys = "".join(f', "{key}"' for key in node.keys)
        counted = f'SELECT *, COUNT(*) OVER (PARTITION BY "u"{keys}) AS "c" FROM ({dialect.write(node.rows)}) AS "i"'
        worst = f'MAX("c") OVER (PARTITION BY "{node.value}"{keys})'
        return f'SELECT * FROM (SELECT *, {worst} AS "m" FROM ({counted}) AS "j") AS "l" WHERE "m" <= {node.values}'

    written(patch, write)


def every_value_kept(patch: pytest.MonkeyPatch) -> None:
    """No choice at all."""
    written(patch, lambda dialect, node: dialect.write(node.rows))


def bound_over_all_groups_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Only the values of each group are bounded."""
    genuine = DuckDB._writers[ChosenValues]
    written(patch, lambda dialect, node: genuine(dialect, replace(node, total=None)))


def choice_by_what_others_have(patch: pytest.MonkeyPatch) -> None:
    """Rare values first: who else has a value decides what a unit brings in."""
    _ordered(patch, lambda node: f'COUNT(*) OVER (PARTITION BY "{node.value}")')


def choice_by_order_of_rows(patch: pytest.MonkeyPatch) -> None:
    """The first values as they come."""
    _ordered(patch, lambda node: "ROW_NUMBER() OVER ()")


def _ordered(patch: pytest.MonkeyPatch, order: Callable[[ChosenValues], str]) -> None:
    def write(dialect: DuckDB, node: ChosenValues) -> str:
        keys = "".join(f', "{key}"' for key in node.keys)
        rows = f'SELECT *, {order(node)} AS "o" FROM ({dialect.write(node.rows)}) AS "i"'
        ranked = f'SELECT *, ROW_NUMBER() OVER (PARTITION BY "u"{keys} ORDER BY "o") AS "n" FROM ({rows}) AS "j"'
        return f'SELECT * FROM ({ranked}) AS "l" WHERE "n" <= {node.values}'

    written(patch, write)


def root_of_the_number_in_l2(patch: pytest.MonkeyPatch) -> None:
    """Values are taken for coordinates."""

    def root(_: Any, item: Any) -> Any:
        s = item.statistic.sensitivity
        return replace(s, l2_squared=max(s.l1 * s.linf / item.rows, s.linf**2)) if item.distinct is not None else s

    change_sensitivity(patch, root)


BUGS: list[tuple[Callable[[pytest.MonkeyPatch], None], str]] = [
    (scaled_and_not_chosen, "l1 changed by"),
    (every_value_kept, "l1 changed by"),
    (bound_over_all_groups_forgotten, "expected"),
    (choice_by_what_others_have, "expected|changed by"),
    (choice_by_order_of_rows, "expected"),
    (root_of_the_number_in_l2, "l2_squared changed by"),
]


@pytest.mark.sparse(2)
@pytest.mark.parametrize(("plant", "says"), BUGS, ids=[plant.__name__ for plant, _ in BUGS])
def test_a_planted_bug_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One unit with many values over two groups, some of which others have, and the same world without it."""
    mine = [(0, "ab"[number % 2], number) for number in range(24)]
    others = [(1 + number % 7, "ab"[number % 2], number) for number in range(12, 24)]
    total = 4 if plant is bound_over_all_groups_forgotten else 6
    world = people(*mine, *others, contribution=ContributionBound(total, 2, 3))
    sql = "SELECT k, COUNT(DISTINCT x) FROM visits GROUP BY k"
    audited(world, sql, 0, gaussian=True)
    plant(monkeypatch)
    with pytest.raises(Violation, match=says):
        audited(world, sql, 0, gaussian=True)


def test_the_order_of_rows_does_not_matter() -> None:
    """Two stores hold the same rows in other orders, under other numbers of units: the sums are the same."""
    mine = [(unit, "ab"[number % 2], number * 3) for unit in range(3) for number in range(9)]
    world = people(*mine, contribution=ContributionBound(4, 2, 3))
    query = Query("SELECT k, COUNT(DISTINCT x), SUM(DISTINCT y) FROM visits GROUP BY k", {})
    found = []
    for seed in range(4):
        store = harness.Store(world, frozenset(world.units), seed=seed)
        side = harness.run(store, world, query, gaussian=True, epsilon=Fraction(1))
        found.append([call.exact for core in side.sides for call in core.calls])
        store.close()
    assert all(sums == found[0] for sums in found)
