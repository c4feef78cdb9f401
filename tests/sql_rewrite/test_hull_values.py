"""Bounds chosen for columns reach what is computed of them within a unit, where it lies among their values."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest

from privacy.bounds import ValueBounds, number_of_date
from privacy.refusal import Refused
from sql_rewrite.automatic_bounds import Place, bound_with, unbounded_columns
from sql_rewrite.expressions import interval_of
from sql_rewrite.lift import lift
from sql_rewrite.plan import Core
from tests.sql_rewrite.datasets import clinic

OPEN = clinic(automatic_bounds=True)
CHOSEN = {
    ("people", "born"): ValueBounds(
        number_of_date(datetime.date(1950, 1, 1)), number_of_date(datetime.date(1999, 12, 31))
    ),
    ("people", "income"): ValueBounds(Fraction(0), Fraction(500)),
    ("visits", "day"): ValueBounds(
        number_of_date(datetime.date(2020, 1, 1)), number_of_date(datetime.date(2020, 12, 31))
    ),
}
DAY, BORN, INCOME = ("visits", "day"), ("people", "born"), ("people", "income")
VISITS = "SELECT AVG(m) FROM (SELECT person_id, {} AS m FROM visits GROUP BY person_id) AS t"
PEOPLE = "SELECT AVG(m) FROM (SELECT person_id, {} AS m FROM people GROUP BY person_id) AS t"
BOTH = (
    "SELECT AVG(m) FROM (SELECT v.person_id, {} AS m FROM visits v JOIN people p ON v.person_id = p.person_id "
    "GROUP BY v.person_id) AS t"
)
WINDOW = "SELECT AVG(m) FROM (SELECT person_id, {} AS m FROM visits) AS t"
OVER = "OVER (PARTITION BY person_id ORDER BY day)"


def core_of(sql: str) -> Core:
    """The only core of a text."""
    (core,) = lift(sql, OPEN, {}).cores
    return core


@pytest.mark.parametrize(
    ("sql", "places", "low", "high"),
    [
        (BOTH.format("MEDIAN(v.day - p.born)"), (BORN, DAY), 7_306, 25_932),
        (BOTH.format("AVG(v.day - p.born)"), (BORN, DAY), 7_306, 25_932),
        (BOTH.format("QUANTILE_CONT(v.day - p.born, 0.9)") + " WHERE m < 9000", (BORN, DAY), 7_306, 9_000),
        (VISITS.format("MAX(day) - MIN(day)"), (DAY,), -365, 365),
        (VISITS.format("DATE_DIFF('day', MIN(day), MAX(day))"), (DAY,), -365, 365),
        (VISITS.format("MAX(YEAR(day)) - 2000"), (DAY,), 20, 20),
        (VISITS.format("MAD(day - DATE '2020-01-01')"), (DAY,), 0, 365),
        (VISITS.format("ARG_MAX(day - DATE '2020-01-01', cost)"), (DAY,), 0, 365),
        (PEOPLE.format("MAX(income)"), (INCOME,), 0, 500),
        (PEOPLE.format("AVG(income) + COUNT(*)"), (INCOME,), 1, 501),
        (WINDOW.format(f"day - LAG(day) {OVER}"), (DAY,), -365, 365),
        (WINDOW.format(f"MAX(day) {OVER} - day"), (DAY,), -365, 365),
        ("SELECT AVG(DATE_DIFF('day', m, m)) FROM (SELECT MIN(day) AS m FROM visits GROUP BY person_id) AS t",
         (DAY,), -365, 365),
    ],
)  # fmt: skip
def test_what_lies_among_the_values_has_their_bounds(sql: str, places: tuple[Place, ...], low: int, high: int) -> None:
    """Shows which histograms are bought, and the range of what is summed."""
    core = core_of(sql)
    assert unbounded_columns(core, OPEN) == places
    bounded, used = bound_with(core, OPEN, {place: CHOSEN[place] for place in places})
    assert used == {place: CHOSEN[place] for place in places}
    found = bounded.statistics[0].argument
    assert found is not None
    interval = interval_of(found)
    assert (interval.lower, interval.upper) == (low, high)


@pytest.mark.parametrize(
    "sql",
    [
        VISITS.format("SUM(day - DATE '2020-01-01')"),
        PEOPLE.format("SUM(income)"),
        PEOPLE.format("1 / MAX(income)"),
        WINDOW.format(f"LAG(visit_id) {OVER}"),
    ],
)
def test_what_grows_with_the_rows_has_none(sql: str) -> None:
    """Shows the refusal of what may be far outside of them: sums, quotients, and identifiers."""
    with pytest.raises(Refused) as refused:
        unbounded_columns(core_of(sql), OPEN)
    assert refused.value.findings[0].code == "column_without_bounds"


@pytest.mark.parametrize("value", ["MEDIAN(v.day - p.born)", "MAX(v.day) - MIN(p.born)", "MAX(YEAR(v.day))"])
@pytest.mark.parametrize("where", ["", " WHERE m >= 0"])
def test_the_calendar_is_no_range_of_what_is_computed(value: str, where: str) -> None:
    """Shows that 9,999 years are sold to nobody where bounds may not be chosen."""
    closed = clinic(automatic_bounds=False)
    (core,) = lift(BOTH.format(value) + where, closed, {}).cores
    with pytest.raises(Refused) as refused:
        unbounded_columns(core, closed)
    assert refused.value.findings[0].code == "column_without_bounds"
