"""Quantiles on neighbouring data: a unit is in one interval of each level of a tree, and changes nothing else."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from tests.audit.generate import Query, Scene
from tests.audit.harness import Audit, Tally
from tests.audit.smallest import scene

PEOPLE: list[dict[str, Any]] = [
    {"x": 3, "y": 2.5, "k": "a", "w": "one"},
    {"x": 3, "y": 2.5, "k": "a", "w": "two"},
    {"x": 10, "y": 10.0, "k": "b", "w": "one"},
    {"x": -(2**63), "y": -math.inf, "k": "b", "w": None},
    {"x": 2**63 - 1, "y": 1.7976931348623157e308, "k": None, "w": "x"},
    {"x": None, "y": math.nan, "k": "a", "w": "y"},
    {"x": 0, "y": -0.0, "k": "b", "w": "z"},
    {"x": 7, "y": 5e-324, "k": None, "w": "z"},
]
QUERIES = (
    ("SELECT MEDIAN(y) FROM people", True),
    ("SELECT QUANTILE_CONT(x, 0.9), QUANTILE_DISC(x, 0.1), MIN(x), COUNT(*), AVG(x) FROM people", False),
    ("SELECT k, MEDIAN(x), MAX(x) FROM people GROUP BY k", True),
    ("SELECT k, PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY x * 2 - x) FROM people GROUP BY k", False),
    ("SELECT MEDIAN(x) FILTER (WHERE w <> 'one'), MEDIAN(x) FILTER (WHERE y > 2) FROM people WHERE k = 'a'", True),
)


def audit(world: Scene, sql: str, without: int, *, gaussian: bool, epsilon: Fraction = Fraction(1)) -> Tally:
    """Audits one triple."""
    tally = Tally()
    Audit(world, Query(sql, {}), gaussian, epsilon, frozenset(world.units) - {without}).check(tally)
    assert not tally.refused
    return tally


@pytest.mark.parametrize(("sql", "gaussian"), QUERIES)
def test_one_person_changes_one_interval_of_each_level(sql: str, gaussian: bool) -> None:
    """Sums are those of the definition, and move by no more than is declared, whoever is left out."""
    world = scene(PEOPLE)
    for without in (0, 2, 4, 5) if "(y)" in sql else range(len(PEOPLE)):
        assert "ranks" in audit(world, sql, without, gaussian=gaussian).kinds


@pytest.mark.parametrize(
    ("bounds", "column"), [(("-10", "-2"), "x"), (("0", "0"), "x"), (("0", "1000000"), "x"), (("0", "10"), "y")]
)
def test_the_declared_bound_is_attained(bounds: tuple[str, str], column: str) -> None:
    """A person with a value moves a tree by all of its sensitivity in each norm; nothing is charged in vain."""
    world = scene([{"x": 5, "y": 5.0}, {}], bounds=bounds)
    tally = audit(world, f"SELECT MEDIAN({column}) FROM people", 0, gaussian=True)
    for most in (tally.tightest, tally.squares, tally.greatest):
        assert most["ranks"] == 1


def test_several_rows_of_a_person_and_hidden_groups_are_refused() -> None:
    """What is not proved is not answered, and says so before anything is spent."""
    dataset = scene(PEOPLE).dataset
    for sql in (
        "SELECT MEDIAN(y) FROM visits",
        "SELECT MAX(v.y) FROM visits v JOIN people p ON v.person_id = p.person_id",
        "SELECT w, MEDIAN(y) FROM people GROUP BY w",
    ):
        with pytest.raises(Refused) as refused:
            bound(lift(sql, dataset))
        assert [finding.code for finding in refused.value.findings] == ["unsupported_sql"]
