"""Which columns need bounds that a question chooses, and the core that has them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from privacy.bounds import ValueBounds
from privacy.norms import NormPower
from privacy.policy import Dataset
from privacy.refusal import Refused
from privacy.value_grid import grid_of
from server.journey.value_stage import value_stage
from sql_rewrite.automatic_bounds import Place, bound_with, nominal_bounds, unbounded_columns, with_bounds
from sql_rewrite.bound import bound_core
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.expressions import describe, interval_of
from sql_rewrite.lift import lift
from sql_rewrite.plan import Core
from sql_rewrite.plan_key import core_key
from sql_rewrite.value_histogram import lower_histogram, value_histogram
from tests.sql_rewrite.datasets import CLINIC

OPEN = replace(CLINIC, limits=replace(CLINIC.limits, automatic_bounds=True))


def core_of(sql: str, dataset: Dataset = OPEN) -> Core:
    """The only core of a text."""
    (core,) = lift(sql, dataset, {}).cores
    return core


@pytest.mark.parametrize(
    ("sql", "places"),
    [
        ("SELECT AVG(age) FROM people", []),
        ("SELECT COUNT(income) FROM people", []),
        ("SELECT AVG(income) FROM people", [("people", "income")]),
        ("SELECT AVG(income), SUM(income), STDDEV(income) FROM people WHERE income > 5", [("people", "income")]),
        ("SELECT SUM(income * salary) FROM people", [("people", "income")]),
        ("SELECT AVG(LEAST(GREATEST(income, 0), 5) + salary) FROM people", []),
        ("SELECT AVG(CASE WHEN income > 5 THEN age ELSE 0 END) FROM people", []),
        ("SELECT AVG(date_diff('day', born, DATE '2020-01-01')) FROM people", [("people", "born")]),
        (
            "SELECT AVG(date_diff('day', p.born, v.day)) FROM visits v JOIN people p ON v.person_id = p.person_id",
            [("people", "born"), ("visits", "day")],
        ),
    ],
)
def test_columns_that_sums_need(sql: str, places: list[Place]) -> None:
    """Those that no declaration and no text bounds, and no others."""
    assert list(unbounded_columns(core_of(sql), OPEN)) == places


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(person_id) FROM people",
        "SELECT SUM(1 / income) FROM people",
        "SELECT AVG(CAST(education AS INTEGER)) FROM people",
    ],
)
def test_what_no_bounds_help_is_refused_as_before(sql: str) -> None:
    """Ids, ranges that include a division by zero, and text."""
    with pytest.raises(Refused) as refused:
        unbounded_columns(core_of(sql), OPEN)
    assert refused.value.findings[0].code == "column_without_bounds"


def test_a_policy_that_forbids_it_refuses() -> None:
    """Shows that the default of a dataset in memory is the refusal."""
    assert not CLINIC.limits.automatic_bounds
    with pytest.raises(Refused):
        unbounded_columns(core_of("SELECT AVG(income) FROM people"), CLINIC)


def test_bounds_clip_the_sums_and_nothing_else() -> None:
    """A condition and a FILTER see the stored value, whatever bounds were chosen."""
    core = core_of("SELECT AVG(income) FILTER (WHERE income > 5) FROM people WHERE income <> 7")
    bounded, used = bound_with(core, OPEN, {("people", "income"): ValueBounds(Fraction(1), Fraction(3))})
    assert used == {("people", "income"): ValueBounds(Fraction(1), Fraction(3))}
    (statistic,) = bounded.statistics
    assert statistic.argument is not None
    assert describe(statistic.argument) == "clip(income, 1.0 to 3.0)"
    assert bounded.core.where is core.where
    assert bounded.core.aggregates[0].filter is core.aggregates[0].filter


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(income) FROM people",
        "SELECT SUM(income * income) FROM people",
        "SELECT SUM(income * income * income) FROM people",
        "SELECT AVG(date_diff('day', born, DATE '2020-01-01') * 10000000000) FROM people",
        "SELECT VARIANCE(income * 1000000) FROM people",
    ],
)
def test_every_choice_can_be_bound(sql: str) -> None:
    """Whatever a histogram chooses, the core can be bound: in need within narrower bounds, which are told."""
    core = core_of(sql)
    tables = {table.name: table for table in OPEN.tables}
    places = unbounded_columns(core, OPEN)
    kinds = {(t, c): tables[t].column(c).type for t, c in places}  # type: ignore[union-attr]
    for lowest, highest in ((0, -1), (-1, -1), (0, 0), (len, len)):
        chosen = {}
        for place in places:
            grid = grid_of(kinds[place])
            middle = len(grid.lows) // 2
            low, high = (middle if end is len else end for end in (lowest, highest))
            chosen[place] = ValueBounds(grid.lows[low], grid.highs[high])  # type: ignore[call-overload]
        bounded, used = bound_with(core, OPEN, chosen)
        assert len(bounded.statistics) == len(bound_core(with_bounds(core, _nominal(kinds)), OPEN).statistics)
        for place, bounds in used.items():
            assert bounds.lower >= min(chosen[place].lower, nominal_bounds(kinds[place]).lower)


def _nominal(kinds: dict[Place, object]) -> dict[Place, ValueBounds]:
    return {place: nominal_bounds(kind) for place, kind in kinds.items()}  # type: ignore[arg-type]


def test_chosen_bounds_have_an_identity_of_their_own() -> None:
    """A release at chosen bounds is not one at declared bounds, were they the nominal ones."""
    plan = lift("SELECT AVG(income) FROM people", OPEN, {})
    stage = value_stage(plan, NormPower.L2, DUCKDB)
    assert stage is not None
    nominal = with_bounds(plan.cores[0], {("people", "income"): ValueBounds(Fraction(-1), Fraction(1))})
    declared = core_key(bound_core(nominal, OPEN), OPEN)
    assert stage.key("c0", declared) != declared


def test_a_histogram_is_of_the_column_alone() -> None:
    """The same identity and statement for every question about the column, another for other data or columns."""
    stages = [
        value_stage(lift(sql, OPEN, {}), NormPower.L2, DUCKDB)
        for sql in (
            "SELECT AVG(income) FROM people",
            "SELECT sex, SUM(income) FROM people WHERE age > 5 GROUP BY sex",
            "SELECT STDDEV(p.income) FROM visits v JOIN people p ON v.person_id = p.person_id",
        )
    ]
    assert len({stage.keys for stage in stages if stage is not None}) == 1
    assert all(stage is not None for stage in stages)
    later = replace(OPEN, data_version="later")
    keys = {
        core_key(value_histogram("b0", table, column, dataset).bounded, dataset)
        for table, column, dataset in (
            ("people", "income", OPEN),
            ("people", "income", later),
            ("people", "age", OPEN),
            ("visits", "cost", OPEN),
        )
    }
    assert len(keys) == 4
    assert '"people"' in lower_histogram(value_histogram("b0", "people", "income", OPEN)).sql


PAIR = "SELECT SUM(c) FROM (SELECT {} AS c FROM people UNION ALL SELECT {} FROM visits) AS t"


@pytest.mark.parametrize(
    ("first", "second", "columns", "limits"),
    [
        ("income", "cost", ("people.income",), (-3, 5_000)),
        ("income", "hospital_id", ("people.income", "visits.hospital_id"), (-3, 7)),
        ("income", "NULL", ("people.income",), (-3, 7)),
        ("income", "40", ("people.income",), (-3, 40)),
    ],
)
def test_a_union_is_bounded_by_the_bounds_of_its_branches(
    first: str, second: str, columns: tuple[str, ...], limits: tuple[int, int]
) -> None:
    """Shows which histograms are bought, and the hull of what they choose, what is declared, and constants."""
    core = core_of(PAIR.format(first, second))
    wanted = unbounded_columns(core, OPEN)
    assert tuple(map(".".join, wanted)) == columns
    chosen = dict.fromkeys(wanted, ValueBounds(Fraction(-3), Fraction(7)))
    bounded, used = bound_with(core, OPEN, chosen)
    assert used == chosen
    (statistic,) = bounded.statistics
    assert statistic.argument is not None
    interval = interval_of(statistic.argument)
    assert (interval.lower, interval.upper) == limits
    assert bounded.clipped() == ()


@pytest.mark.parametrize(("first", "second"), [("income * 2", "cost"), ("income", "visit_id"), ("person_id", "cost")])
def test_a_union_with_what_has_no_histogram_is_refused(first: str, second: str) -> None:
    """Shows that no bounds are made up of what is computed, or of identifiers."""
    with pytest.raises(Refused) as refused:
        unbounded_columns(core_of(PAIR.format(first, second)), OPEN)
    assert refused.value.findings[0].code == "column_without_bounds"
