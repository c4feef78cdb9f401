"""Contribution bounds: sensitivities over all groups of a unit, statistics that are shared, one row as a bound."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest

from privacy.bounds import ContributionBound
from privacy.policy import Dataset
from privacy.statistic import Statistic, StatisticKind
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.contribution import Bounding, Contribution
from sql_rewrite.lift import lift
from tests.sql_rewrite.datasets import CLINIC


def clinic(*bounds: int) -> Dataset:
    """The clinic with other bounds for its visits."""
    contribution = ContributionBound(*bounds)
    tables = tuple(replace(t, contribution=contribution) if t.name == "visits" else t for t in CLINIC.tables)
    return replace(CLINIC, tables=tables)


def core(sql: str, dataset: Dataset) -> BoundedCore:
    """The only core of a query."""
    (found,) = bound(lift(sql, dataset))
    return found


def unit(statistic: Statistic) -> int:
    """Integer units of one row."""
    assert statistic.encoding is not None
    return statistic.encoding.highest ** max(1, statistic.degree)


@pytest.mark.parametrize(
    ("groups", "rows", "total"), [(4, 15, 40), (3, 5, 7), (5, 2, 9), (2, 3, 6), (4, 1, 3), (6, 30, 80)]
)
def test_no_spread_of_rows_is_beyond_the_norms(groups: int, rows: int, total: int) -> None:
    """Over all whole spreads of a unit's rows, L1 and L2 are reached and never passed."""
    contribution = Contribution(groups=groups, rows=rows, total=total, one_row=False, choose_groups=True)
    spreads = [s for s in itertools.combinations_with_replacement(range(rows + 1), groups) if sum(s) <= total]
    assert contribution.l1_rows == max(map(sum, spreads))
    assert contribution.l2_squared_rows == max(sum(part**2 for part in spread) for spread in spreads)


def test_a_bound_over_all_groups_is_used_and_not_the_product() -> None:
    """With the defaults of `up --data` (R rows, four groups of R rows) grouped noise is that of R rows, not of 4 R."""
    dataset = clinic(40, 4, 40)
    for sql in ("SELECT ward, COUNT(*) FROM visits GROUP BY ward", "SELECT ward, AVG(cost) FROM visits GROUP BY ward"):
        statistic = core(sql, dataset).statistics[-1].statistic
        assert statistic.sensitivity.l1 == 40 * unit(statistic)
        assert statistic.sensitivity.l2_squared == 40**2 * unit(statistic) ** 2
        assert statistic.sensitivity.l0 == 4 * statistic.coordinates


def test_counting_rows_is_counting_units_where_one_row_counts() -> None:
    """With one row per unit and group, COUNT(*) is the selection's own count: it takes no share of the price."""
    answer = core("SELECT ward, COUNT(*) FROM visits GROUP BY ward", clinic(40, 4, 1)).described
    assert [statistic.kind for statistic in answer.statistics] == [StatisticKind.UNITS]
    assert answer.keys.selection == answer.estimates[0].statistic
    scaled = core("SELECT ward, COUNT(*) FROM visits GROUP BY ward", clinic(3, 4, 1)).described
    assert [statistic.kind for statistic in scaled.statistics] == [StatisticKind.UNITS, StatisticKind.COUNT]


def test_one_row_is_a_bound_for_a_table_with_more() -> None:
    """A bound of one row does not say that each unit has one: units are grouped and bounded like with any other."""
    answer = core("SELECT COUNT(*), SUM(cost) FROM visits", clinic(1, 1, 1))
    assert not answer.contribution.one_row
    assert (answer.contribution.rows, answer.contribution.total) == (1, 1)
    assert core("SELECT COUNT(*) FROM people", clinic(1, 1, 1)).contribution.one_row


def test_what_stands_beside_an_aggregate_decides_only_what_is_shared() -> None:
    """A sum and a count share one clipped vector, with an average one vector of both, with a deviation none."""
    dataset = clinic(40, 4, 15)

    def shapes(calls: str) -> list[tuple[str, Bounding, int]]:
        found = core(f"SELECT {calls} FROM visits", dataset).statistics
        return [(b.statistic.kind.value, b.bounding, b.statistic.coordinates) for b in found]

    nulls = 1  # cost may be NULL
    assert shapes("SUM(cost)") == [("sum", Bounding.CLIPPED, 1)]
    assert shapes("SUM(cost), COUNT(*)") == [("moments", Bounding.CLIPPED, 2 + nulls)]
    assert shapes("AVG(cost), COUNT(*)") == [("moments", Bounding.SCALED, 2 + nulls)]
    assert shapes("SUM(cost), AVG(cost)") == [("moments", Bounding.BOTH, 3)]
    assert shapes("SUM(cost), STDDEV(cost)") == [("sum", Bounding.CLIPPED, 1), ("moments", Bounding.SCALED, 3)]
    l1 = {
        b.statistic.sensitivity.l1 / unit(b.statistic)
        for b in core("SELECT SUM(cost), AVG(cost) FROM visits", dataset).statistics
    }
    assert l1 == {Fraction(40)}, "a vector of both has the sensitivity of one"
