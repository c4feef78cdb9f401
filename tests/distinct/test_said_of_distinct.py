"""What estimates and answers say of different values: what they are of, and what the bounds cut."""

from __future__ import annotations

import pytest

from privacy.bounds import AskedContribution
from privacy.norms import NormPower
from server.estimands import estimand, what_is_cut
from sql_rewrite.bound import bound
from sql_rewrite.contribution import Contribution
from sql_rewrite.lift import lift
from tests.sql_rewrite.datasets import AUTOMATIC, CLINIC


@pytest.mark.parametrize(
    ("sql", "estimands", "cut"),
    [
        ("SELECT COUNT(DISTINCT age) FROM people", ["different values: each unit has one row"], None),
        (
            "SELECT COUNT(DISTINCT day), SUM(DISTINCT cost) FROM visits",
            [
                "different values, of which each unit brings in at most 40",
                "the sum of different values, of which each unit brings in at most 40",
            ],
            "Of its different values a unit brings in at most 40 (rows_per_unit), chosen by a keyed hash",
        ),
        (
            "SELECT month(day) AS m, AVG(DISTINCT cost) FROM visits GROUP BY m",
            ["over different values, of which each unit brings in at most 15 in a group, 40 over all groups"],
            "at most 15 in each group (rows_per_unit_and_group), 40 over all groups (rows_per_unit)",
        ),
    ],
)
def test_an_answer_says_how_many_values_a_unit_brings_in(sql: str, estimands: list[str], cut: str | None) -> None:
    """The bounds by their names, in one sentence; nothing where each unit has one row."""
    (core,) = bound(lift(sql, CLINIC))
    assert sorted(estimand(core, estimate) for estimate in core.described.estimates) == estimands
    said = what_is_cut(core)
    assert (cut is None) == (said is None or "different values" not in said)
    assert cut is None or cut in str(said)


def test_a_request_names_the_number_of_values() -> None:
    """Fewer rows of a unit are fewer values of it, and less noise."""
    sql = "SELECT COUNT(DISTINCT day) FROM visits"
    found = []
    for rows in (40, 3, 1):
        (core,) = bound(lift(sql, CLINIC.bounded_by(AskedContribution(rows_per_unit=rows))))
        (statistic,) = core.described.statistics
        found.append((statistic.sensitivity.l1, statistic.sensitivity.l2_squared))
    assert found == [(40, 1600), (3, 9), (1, 1)]


@pytest.mark.parametrize("power", NormPower)
def test_norms_never_bound_different_values(power: NormPower) -> None:
    """Where questions choose bounds, one with DISTINCT of values is bounded by counts, and its company with it."""
    for calls in ("COUNT(DISTINCT cost)", "COUNT(DISTINCT cost), COUNT(*), AVG(cost)"):
        (core,) = bound(lift(f"SELECT {calls} FROM visits", AUTOMATIC), power=power)
        assert isinstance(core.contribution, Contribution)
        assert core.norms == ()
