"""Windows within each unit: random questions, compared exactly with plain Python on data and on neighbours.

What one unit adds is the same beside any others, in whatever order the rows are, and within what is declared
(tests/audit/unit_windows.py is the second meaning, which knows of no order but that of contents).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sql_rewrite import lower_unit_windows, numbered_rows
from sql_rewrite.dialects.duckdb import DuckDB
from sql_rewrite.relations import WithinUnit
from tests.audit import harness
from tests.audit.harness import Tally, audit_scene
from tests.audit.smallest import audited, scene
from tests.audit.violation import Violation
from tests.audit.windows import make_windows


def _audited(monkeypatch: pytest.MonkeyPatch, seeds: range, *, queries: int) -> Tally:
    monkeypatch.setattr(harness, "make_query", make_windows)
    tally = Tally()
    for seed in seeds:
        audit_scene(seed, queries=queries, neighbours=2, tally=tally, shrink=False)
    return tally


@pytest.mark.slow
def test_a_unit_adds_the_same_beside_any_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows unit-locality, sensitivities and totality of some windows."""
    tally = _audited(monkeypatch, range(5_100, 5_102), queries=10)
    assert tally.triples == 40
    assert sum(tally.refused.values()) <= 20, tally.refused


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_unit_adds_the_same_beside_any_others_in_many_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the same of two thousand triples."""
    tally = _audited(monkeypatch, range(6_100, 6_150), queries=20)
    assert tally.triples == 2_000
    assert sum(tally.refused.values()) <= 700, tally.refused


@pytest.mark.parametrize("value", ["SUM(income)", "AVG(income) OVER (PARTITION BY person_id ORDER BY big)"])
def test_numbers_of_any_size_are_held_to_the_greatest_that_is_summed(value: str) -> None:
    """Shows that sums within a unit are what the definition says where a number in steps is beyond all doubles."""
    world = scene([{}, {}], [{"person_id": 0, "y": y} for y in (1e308, -1e308, 3.5)] + [{"person_id": 1, "y": 1e308}])
    tables = tuple(
        replace(table, columns=tuple(replace(c, name="income", bounds=None) if c.name == "y" else
                                     replace(c, name="big") if c.name == "x" else c for c in table.columns))
        for table in world.dataset.tables
    )  # fmt: skip
    rows = {
        name: [{{"y": "income", "x": "big"}.get(key, key): cell for key, cell in row.items()} for row in of_table]
        for name, of_table in world.rows.items()
    }
    unbounded = replace(world, dataset=replace(world.dataset, tables=tables), rows=rows)
    group = "" if "OVER" in value else " GROUP BY person_id"
    sql = f"SELECT SUM(GREATEST(0, LEAST(s, 9))), COUNT(s) FROM (SELECT {value} AS s FROM visits{group}) AS t"
    for without in (0, 1):
        audited(unbounded, sql, without)


def _caught(monkeypatch: pytest.MonkeyPatch) -> str:
    with pytest.raises(Violation) as caught:
        _audited(monkeypatch, range(7_100, 7_110), queries=6)
    return str(caught.value)


@pytest.mark.slow
def test_windows_of_several_units_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants partitions without the unit."""
    genuine = WithinUnit
    monkeypatch.setattr(DuckDB, "_writers", {**DuckDB._writers, genuine: _without_unit})
    _caught(monkeypatch)


def _without_unit(dialect: Any, node: WithinUnit) -> str:
    return DuckDB._within_unit(dialect, node).replace('PARTITION BY "u"', "PARTITION BY 1", 1)


@pytest.mark.slow
def test_equal_rows_in_the_order_of_the_table_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants row numbers that leave rows which are equal in the order as they come."""
    monkeypatch.setattr(lower_unit_windows, "content_keys", lambda computed: ())
    _caught(monkeypatch)


@pytest.mark.slow
def test_fewer_rows_than_are_kept_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants that a unit has one row, however many numbers of rows a condition keeps."""
    genuine = numbered_rows._fewer
    monkeypatch.setattr(numbered_rows, "_fewer", lambda table, most: genuine(table, 1))
    _caught(monkeypatch)
