"""Quantiles as people write them: several in one call, of dates and timestamps, in groups that are not declared."""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction

import pytest

from privacy.bounds import ValueBounds, number_of_date
from privacy.policy import Column, ColumnType, Dataset
from privacy.refusal import Refused
from privacy.statistic import StatisticKind
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.plan import Plan
from sql_rewrite.plan_key import canonical_core
from sql_rewrite.plan_warnings import plan_warnings
from tests.sql_rewrite.datasets import AUTOMATIC, CLINIC


def lifted(sql: str, dataset: Dataset = CLINIC) -> Plan:
    """The plan of a text."""
    return lift(sql, dataset, {})


def outputs(plan: Plan) -> list[str]:
    """The names of an answer's columns."""
    return [output.name for output in plan.shell.outputs]


def dated(dataset: Dataset) -> Dataset:
    """The dataset with bounds for all dates."""
    ends = ValueBounds(*(number_of_date(datetime.date(year, 1, 1)) for year in (1900, 2030)))

    def column(one: Column) -> Column:
        return replace(one, bounds=ends) if one.type is ColumnType.DATE else one

    tables = [replace(table, columns=tuple(map(column, table.columns))) for table in dataset.tables]
    return replace(dataset, tables=tuple(tables))


DATED = dated(CLINIC)


@pytest.mark.parametrize(
    ("written", "meant", "names"),
    [
        ("QUANTILE_CONT(age, [0.25, 0.5]) AS q", "QUANTILE_CONT(age, 0.25), QUANTILE_CONT(age, 0.5)", ["q_1", "q_2"]),
        ("QUANTILE_DISC(age, [0.1])", "QUANTILE_DISC(age, 0.1)", ["QUANTILE_DISC(age, 0.1)"]),
        ("APPROX_QUANTILE(age, [0.1, 0.9]) AS q", "QUANTILE_DISC(age, 0.1), QUANTILE_DISC(age, 0.9)", ["q_1", "q_2"]),
        ("QUANTILE(age, (0.1, 0.9)) AS q", "QUANTILE_DISC(age, 0.1), QUANTILE_DISC(age, 0.9)", ["q_1", "q_2"]),
        (
            "PERCENTILE_CONT([0.25, 0.5]) WITHIN GROUP (ORDER BY age) AS q",
            "QUANTILE_CONT(age, 0.25), QUANTILE_CONT(age, 0.5)",
            ["q_1", "q_2"],
        ),
        (
            "QUANTILE_CONT(age, [0.25, 0.5]) FILTER (WHERE smoker) AS q",
            "QUANTILE_CONT(age, 0.25) FILTER (WHERE smoker), QUANTILE_CONT(age, 0.5) FILTER (WHERE smoker)",
            ["q_1", "q_2"],
        ),
        ("QUANTILE_CONT(age, [0.25, 0.5])[2] AS q", "QUANTILE_CONT(age, 0.5)", ["q"]),
        ("QUANTILE_DISC(age, [0.25, 0.5])[1] AS q", "QUANTILE_DISC(age, 0.25)", ["q"]),
        ("APPROX_QUANTILE(age, [0.25, 0.5])[2] AS q", "QUANTILE_DISC(age, 0.5)", ["q"]),
        (
            "QUANTILE_CONT(age, [0.25, 0.75])[2] - QUANTILE_CONT(age, [0.25, 0.75])[1] AS iqr",
            "QUANTILE_CONT(age, 0.25), QUANTILE_CONT(age, 0.75)",
            ["iqr"],
        ),
    ],
)
def test_a_list_is_a_call_for_each_of_its_elements(written: str, meant: str, names: list[str]) -> None:
    """One core with one tree, as of the calls one by one."""
    plan, other = lifted(f"SELECT {written} FROM people"), lifted(f"SELECT {meant} FROM people")
    assert outputs(plan) == names
    assert [canonical_core(core) for core in plan.cores] == [canonical_core(core) for core in other.cores]
    (bounded,) = bound(plan)
    assert [item.statistic.kind for item in bounded.statistics] == [StatisticKind.RANKS]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT QUANTILE_CONT(age, []) FROM people",
        "SELECT QUANTILE_CONT(age, [0.5, 1.5]) FROM people",
        "SELECT QUANTILE_CONT(age, [0.5])[2] FROM people",
        "SELECT QUANTILE_CONT(age, [0.5])[0] FROM people",
        "SELECT QUANTILE_CONT(age, [0.25, 0.5])[1:2] FROM people",
        "SELECT UNNEST(QUANTILE_CONT(age, [0.25, 0.5])) FROM people",
        "SELECT list_extract(QUANTILE_CONT(age, [0.25, 0.5]), 1) FROM people",
        "SELECT QUANTILE_CONT(age, [0.25, 0.5]), sex FROM people GROUP BY 2",
        "SELECT sex, QUANTILE_CONT(age, [0.25, 0.5]) FROM people GROUP BY sex ORDER BY 2",
        "SELECT QUANTILE_CONT(age, [0.25, [0.5]]) FROM people",
    ],
)
def test_other_lists_are_refused(sql: str) -> None:
    """What cannot be a column for each element says so."""
    with pytest.raises(Refused) as refused:
        lifted(sql)
    assert all(finding.code.startswith("unsupported") for finding in refused.value.findings)


def test_places_before_a_list_are_those_that_are_written() -> None:
    """The first column of the select list is still the first."""
    plan = lifted("SELECT sex, QUANTILE_CONT(age, [0.25, 0.5]) AS q FROM people GROUP BY 1 ORDER BY 1")
    assert outputs(plan) == ["sex", "q_1", "q_2"]


@pytest.mark.parametrize(
    ("call", "days"),
    [
        ("MEDIAN(born)", "MEDIAN(date_diff('day', DATE '1970-01-01', born))"),
        ("MIN(born)", "MIN(date_diff('day', DATE '1970-01-01', born))"),
        ("QUANTILE_DISC(born, 0.9)", "QUANTILE_DISC(date_diff('day', DATE '1970-01-01', born), 0.9)"),
        ("MAX(born) FILTER (WHERE smoker)", "MAX(date_diff('day', DATE '1970-01-01', born)) FILTER (WHERE smoker)"),
        ("MAX(born + INTERVAL 1 HOUR)",
         "MAX(date_diff('second', TIMESTAMP '1970-01-01 00:00:00', born + INTERVAL 1 HOUR))"),
    ],
)  # fmt: skip
def test_quantiles_of_moments_are_those_of_days_or_seconds(call: str, days: str) -> None:
    """The same core, so that the number beside the date is free."""
    plan, other = lifted(f"SELECT {call} FROM people", DATED), lifted(f"SELECT {days} FROM people", DATED)
    assert [canonical_core(core) for core in plan.cores] == [canonical_core(core) for core in other.cores]
    bound(plan)
    both = lifted(f"SELECT {call} AS d, {days} AS n FROM people", DATED)
    assert len(both.cores[0].aggregates) == 1


@pytest.mark.parametrize(
    "call",
    [
        "MIN(born)",
        "MEDIAN(born)",
        "MAX(born) FILTER (WHERE sex <> ')')",
        "QUANTILE_CONT(born, 0.25)",
        "QUANTILE_DISC(LAST_DAY(born), 0.25)",
        "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY born DESC)",
        "PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY date_trunc('month', born))",
        "QUANTILE_CONT(income, 0.25)",
        "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY income + 1)",
    ],
)
def test_advice_for_dates_is_accepted_as_it_is_pasted(call: str) -> None:
    """Without bounds it says how to clip days; with them where the interval is."""
    with pytest.raises(Refused) as refused:
        bound(lifted(f"SELECT {call} FROM people"))
    (finding,) = refused.value.findings
    assert finding.code == "column_without_bounds"
    pasted = finding.instead[0].replace("<lowest>", "-20000").replace("<highest>", "20000")
    part = lifted(f"SELECT {call} FROM people").cores[0].aggregates[0].fraction
    (bounded,) = bound(lifted(f"SELECT {pasted} FROM people"))
    assert bounded.core.aggregates[0].fraction == part
    tree = bounded.statistics[0].statistic.tree
    assert tree is not None
    assert (tree.lower, tree.upper) == (Fraction(-20000), Fraction(20000))
    if "born" not in call:
        return
    plan = lifted(f"SELECT {call} FROM people", DATED)
    for warning in plan_warnings(plan, bound(plan)):
        if warning.code == "extreme_quantile":
            advice = warning.instead[0].partition(" beside it")[0]
            beside = call.removeprefix(call.partition(" FILTER")[0])
            both = lifted(f"SELECT {call}, {advice}{beside} FROM people", DATED)
            assert len(both.cores[0].aggregates) == 1


@pytest.mark.parametrize(("call", "code"), [("MAX(born)", ""), ("MEDIAN(born)", "unsupported_type")])
def test_a_released_date_is_a_date_in_a_later_stage(call: str, code: str) -> None:
    """Never the number of days that it is computed from; timestamps are refused there."""
    sql = f"SELECT COUNT(*) FROM people WHERE CAST(born AS VARCHAR) < (SELECT CAST({call} AS VARCHAR) FROM people)"
    if code:
        with pytest.raises(Refused) as refused:
            lifted(sql, DATED)
        assert [finding.code for finding in refused.value.findings] == [code]
        return
    plan = lifted(sql, DATED)
    assert "add_days" in repr(plan.cores[1].where)


def test_hidden_groups_have_small_trees_and_few_of_them() -> None:
    """64 places for each, and four of them at most: what is kept of a group before it is shown stays small."""
    for dataset in (CLINIC, AUTOMATIC):
        calls = ", ".join(f"MEDIAN({number} * cost)" for number in range(1, 5))
        (bounded,) = bound(lifted(f"SELECT ward, {calls} FROM visits GROUP BY ward", dataset))
        trees = [item.statistic.tree for item in bounded.statistics if item.statistic.tree is not None]
        assert [tree.places for tree in trees] == [64] * 4
        with pytest.raises(Refused) as refused:
            bound(lifted(f"SELECT ward, {calls}, MEDIAN(7 * cost) FROM visits GROUP BY ward", dataset))
        assert [finding.code for finding in refused.value.findings] == ["too_large"]


@pytest.mark.parametrize(
    ("sql", "drawn"),
    [
        ("SELECT QUANTILE_CONT(cost, [0.1, 0.5, 0.9]) AS q FROM visits", 3),
        ("SELECT QUANTILE_CONT(cost, [0.1, 0.5, 0.8, 0.9]) AS q FROM visits", 0),
        ("SELECT month(day) AS k, QUANTILE_CONT(cost, [0.1, 0.5, 0.9]) AS q FROM visits GROUP BY k", 3),
        ("SELECT day(day) AS k, MEDIAN(cost) FROM visits GROUP BY k", 1),
        ("SELECT day(day) AS k, QUANTILE_CONT(cost, [0.1, 0.9]) AS q FROM visits GROUP BY k", 0),
        ("SELECT hours AS k, MEDIAN(salary) FROM people GROUP BY k", 0),
        # A place for each value, in any number of groups.
        ("SELECT sex AS k, QUANTILE_CONT(10 * age, [0.1, 0.5, 0.9]) AS q FROM people GROUP BY k", 3),
    ],
)
def test_quantiles_are_drawn_where_groups_have_places_enough(sql: str, drawn: int) -> None:
    """A thousand places of a group for each: among fewer what the tree says is nearer, at all of the price."""
    (bounded,) = bound(lifted(sql))
    (statistic,) = [item.statistic for item in bounded.statistics if item.statistic.tree is not None]
    assert (0 if statistic.drawn is None else statistic.drawn.count) == drawn
