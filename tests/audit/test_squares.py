"""L2 norms that are found without a group for each cell of a unit: the same audit as of all norms, and planted bugs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from privacy.norms import NormPower
from sql_rewrite import norm_shapes
from sql_rewrite.dialects.duckdb import DuckDB
from sql_rewrite.relations import SquaredTotals
from tests.audit.generate import Scene, make_scene
from tests.audit.normed import automatic, without_negatives
from tests.audit.test_norms import look, with_visits
from tests.audit.violation import Violation
from tests.thinned import slow_ones

TEXTS = [
    "SELECT kind, COUNT(*) AS n, SUM(days) AS s, AVG(cost) AS a FROM visits GROUP BY 1",
    "SELECT urgent, kind, SUM(cost) AS s, COUNT(days) AS n, VARIANCE(cost) FILTER (WHERE urgent) AS v FROM visits "
    "GROUP BY 1, 2",
    "SELECT visit_id % 5 AS k, COUNT(*) FILTER (WHERE urgent) AS n FROM visits WHERE visit_id % 5 IN (0, 1, 2, 3, 4) "
    "GROUP BY 1",
    "SELECT p.member, kind, COUNT(*) AS n, SUM(v.cost) AS s FROM visits v JOIN people p ON v.person_id = p.person_id "
    "GROUP BY 1, 2",
]


def scene_of(rows: int) -> Scene:
    """Where no sum is negative, and the spare unit has so many visits."""
    return with_visits(automatic(without_negatives(make_scene(3))), rows)


@pytest.fixture(autouse=True)
def any_number_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few groups there are, norms are found beside rows."""
    monkeypatch.setattr(norm_shapes, "_SPREAD_CELLS", 1)


@pytest.mark.slow
@pytest.mark.parametrize("rows", slow_ones([5], [1, 5, 5_000]))
def test_units_of_any_size(rows: int) -> None:
    """Sums and histograms are those of the reference, and one unit moves them by no more than is declared."""
    assert look(scene_of(rows), TEXTS if rows < 1_000 else TEXTS[:2], (NormPower.L2,), spare=True, turns=1).triples >= 2


BUGS: dict[str, tuple[int, Callable[[str], str]]] = {
    "rows that share a bucket count by themselves": (4, lambda text: text.replace('"uo" & ~"ue"', '"uo" & "ue"')),
    "units with three rows in a bucket have none that share it": (
        60,
        lambda text: text.replace("CAST(18446744073709551615 AS UBIGINT)", "CAST(0 AS UBIGINT)"),
    ),
    "squares of rows are left beside those of their cells": (60, lambda text: text.replace(" - CAST(", " - 0 * CAST(")),
}
"""What is wrong, and with how many rows of one unit it shows."""


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part of the statement that the proof needs: without it the audit finds another sum than expected."""
    genuine, (rows, plant) = DuckDB._squared_totals, BUGS[bug]

    def squared(self: DuckDB, node: SquaredTotals) -> str:
        made = genuine(self, node)
        assert plant(made) != made
        return plant(made)

    monkeypatch.setitem(DuckDB._writers, SquaredTotals, squared)
    with pytest.raises(Violation, match=r"expected|changed by|another number of units"):
        look(scene_of(rows), TEXTS[:2], (NormPower.L2,), spare=True, turns=2)
