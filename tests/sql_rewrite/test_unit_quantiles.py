"""MEDIAN, quantiles, MAD and MODE within a unit, MAD of rows: what is known of them, their identity, refusals."""

from __future__ import annotations

from fractions import Fraction

import pytest

from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.expressions import Interval, interval_of
from sql_rewrite.functions import clip_columns
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import core_key
from tests.sql_rewrite.datasets import CLINIC
from tests.sql_rewrite.test_unit_groups import column


def keys(text: str) -> list[str]:
    """The identities of what a text releases."""
    return [core_key(one, CLINIC) for one in bound(lift(text, CLINIC))]


@pytest.mark.parametrize(
    ("call", "kind", "low", "high"),
    [
        ("MEDIAN(cost)", ColumnType.NUMBER, 0, 5_000),
        ("QUANTILE_CONT(LEAST(cost, 100), 0.3)", ColumnType.NUMBER, 0, 100),
        ("QUANTILE_DISC(cost, 0.3)", ColumnType.NUMBER, 0, 5_000),
        ("MODE(cost)", ColumnType.NUMBER, 0, 5_000),
        ("MAD(GREATEST(cost, 1000))", ColumnType.NUMBER, 0, 4_000),
    ],
)
def test_what_is_known_of_them(call: str, kind: ColumnType, low: int, high: int) -> None:
    """Shows types and bounds: values lie between the argument's, and distances are no longer than its range."""
    found = column(call)
    assert found.type is kind
    assert found.declared == Interval(Fraction(low), Fraction(high))
    assert found.nullable


@pytest.mark.parametrize(
    ("call", "where", "low", "high"),
    [
        ("MEDIAN(cost)", "cost BETWEEN 10 AND 60", 10, 60),
        ("MAD(cost)", "cost BETWEEN 10 AND 60", 0, 50),
        ("MAX(cost)", "cost <= 60", 0, 60),
        ("MODE(cost) FILTER (WHERE cost < 60)", "TRUE", 0, 60),
        ("MEDIAN(date_diff('day', DATE '2020-01-01', day))", "day - DATE '2020-01-01' BETWEEN 0 AND 8", 0, 8),
        ("QUANTILE_DISC(cost * 2, 0.9)", "cost * 2 BETWEEN 7 AND 9", 7, 9),
        ("MIN(cost + 1)", "cost + 1 > 5", 5, 5_001),
        ("MEDIAN(cost + 1) FILTER (WHERE cost + 1 > 5)", "TRUE", 5, 5_001),
        ("MEDIAN(cost)", "cost > 4000 OR day IS NULL", 0, 5_000),
        ("MEDIAN(cost)", "cost > 90000", 5_000, 5_000),
    ],
)
def test_conditions_on_rows_narrow_what_is_among_them(call: str, where: str, low: int, high: int) -> None:
    """Shows that the sum around it clips to the range that the rows read can have, and the value stays as it is."""
    nested = f"SELECT person_id, {call} AS m FROM visits WHERE {where} GROUP BY person_id"
    (core,) = bound(lift(f"SELECT AVG(m) FROM ({nested}) AS t", CLINIC))
    (aggregate,) = core.core.aggregates
    assert aggregate.argument is not None
    ends = interval_of(clip_columns(aggregate.argument))
    assert (ends.lower, ends.upper) == (low, high)


def test_a_date_is_the_one_in_the_middle() -> None:
    """Shows that a discrete quantile keeps its type, and that what lies between two dates is refused with it."""
    assert column("QUANTILE_DISC(day, 0.5)").type is ColumnType.DATE
    with pytest.raises(Refused) as refused:
        column("MEDIAN(day)")
    assert refused.value.findings[0].instead == ("use QUANTILE_DISC(day, 0.5), which is one of them",)


def test_one_quantile_in_several_spellings_is_one_question() -> None:
    """Shows it, and that another part of the rows is another one."""
    text = "SELECT SUM(GREATEST(0, LEAST(9, m))) FROM (SELECT person_id, {} AS m FROM visits GROUP BY person_id) AS t"
    calls = ("MEDIAN(cost)", "QUANTILE_CONT(cost, 0.5)", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost)")
    assert len({tuple(keys(text.format(call))) for call in calls}) == 1
    others = ("MEDIAN(cost)", "QUANTILE_CONT(cost, 0.4)", "QUANTILE_DISC(cost, 0.5)", "MAD(cost)", "MIN(cost)")
    assert len({tuple(keys(text.format(call))) for call in others}) == len(others)


def test_a_mode_is_the_value_of_the_greatest_group() -> None:
    """Shows that it is the block that it is written out as."""
    mode = "SELECT m, COUNT(*) FROM (SELECT person_id, MODE(ward) AS m FROM visits GROUP BY person_id) AS t GROUP BY m"
    inner = "SELECT person_id AS p, ward AS w, 0 - COUNT(ward) AS n FROM visits GROUP BY person_id, ward"
    written = f"SELECT m, COUNT(*) FROM (SELECT p, ARG_MIN(w, n) AS m FROM ({inner}) AS i GROUP BY p) AS t GROUP BY m"
    assert keys(mode) == keys(written)


def test_keys_beside_a_mode_are_columns_before_they_are_aliases() -> None:
    """Shows that an alias makes a key where no table has the name, and else the column does, as engines read it."""
    text = "SELECT AVG(n) FROM (SELECT person_id, UPPER(ward) AS {}, MODE(cost) AS n FROM visits GROUP BY 1, {}) AS t"
    assert keys(text.format("w", "w")) == keys(text.format("w", "UPPER(ward)"))
    assert keys(text.format("ward", "ward")) == keys(text.format("v", "ward")) != keys(text.format("w", "w"))


def test_a_median_distance_of_rows_is_two_stages() -> None:
    """Shows that it is the median of distances from the released median."""
    mad = "SELECT MAD(age) FROM people WHERE sex = 'male'"
    stages = (
        "SELECT MEDIAN(ABS(age - (SELECT MEDIAN(age) FROM people WHERE sex = 'male'))) FROM people WHERE sex = 'male'"
    )
    assert keys(mad) == keys(stages)
    assert len(keys(mad)) == 2
    grouped = "SELECT p.sex, {} AS m FROM people AS p WHERE p.age > 5 OR smoker GROUP BY p.sex, smoker"
    nested = "(SELECT MEDIAN(w.salary) FROM people w WHERE (w.age > 5 OR w.smoker) AND w.sex = p.sex AND {})"
    nested = nested.format("w.smoker = p.smoker")
    assert keys(grouped.format("MAD(salary)")) == keys(grouped.format(f"MEDIAN(ABS(salary - {nested}))"))
    with pytest.raises(Refused) as refused:
        bound(lift("SELECT MAD(income) AS m FROM people WHERE sex = 'male'", CLINIC))
    finding = refused.value.findings[0]
    assert finding.position is not None
    assert finding.position.text == "MAD(income)"
    assert finding.instead[0] == "MAD(GREATEST(<lowest>, LEAST(income, <highest>)))"
    assert len(keys("SELECT MAD(income) AS m FROM people WHERE income BETWEEN 0 AND 9000")) == 2


@pytest.mark.parametrize(
    "text",
    [
        "SELECT education, MAD(age) FROM people GROUP BY education",
        "SELECT sex, MAD(age) FROM people GROUP BY ROLLUP (sex)",
        "SELECT sex, MAD(age) FROM people AS rows_of_mad GROUP BY sex",
        "SELECT AVG(n) FROM (SELECT person_id, MODE(DISTINCT cost) AS n, COUNT(*) FROM visits GROUP BY person_id) AS t",
        "SELECT AVG(n) FROM (SELECT person_id, STDDEV(cost) AS n FROM visits GROUP BY person_id) AS t",
        "SELECT AVG(n) FROM (SELECT MEDIAN(cost) OVER (PARTITION BY person_id) AS n FROM visits) AS t",
    ],
)
def test_others_are_refused(text: str) -> None:
    """Shows distances of groups, MODE of different values, and what depends on the order of a sum."""
    with pytest.raises(Refused) as refused:
        lift(text, CLINIC)
    assert refused.value.findings[0].code == "unsupported_function"
