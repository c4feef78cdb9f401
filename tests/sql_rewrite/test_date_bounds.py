"""Bounds of dates and timestamps: differences have the range that follows from them, and none without them."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest

from privacy.bounds import ValueBounds, date_at, number_of_date, number_of_timestamp, timestamp_at
from privacy.policy import ColumnType, Dataset
from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.expressions import Literal
from sql_rewrite.functions import build, clip_columns
from sql_rewrite.functions.moments import moments_of
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from tests.sql_rewrite.datasets import CLINIC

FIRST, LAST = datetime.date(2023, 1, 1), datetime.date(2025, 12, 31)


def declared() -> Dataset:
    """The clinic with bounds for the day of a visit."""
    bounds = ValueBounds(number_of_date(FIRST), number_of_date(LAST))
    tables = tuple(
        replace(t, columns=tuple(replace(c, bounds=bounds) if c.name == "day" else c for c in t.columns))
        for t in CLINIC.tables
    )
    return replace(CLINIC, tables=tables)


@pytest.mark.parametrize(
    ("argument", "low", "high"),
    [
        ("date_diff('day', DATE '2023-01-01', day)", 0, 1095),
        ("date_diff('day', day, DATE '2023-01-01')", -1095, 0),
        ("day - DATE '2023-01-01'", 0, 1095),
        ("DATE '2024-01-01' - day", -730, 365),
        ("day - date_trunc('month', day)", -1065, 1095),
        ("date_diff('month', DATE '2024-06-15', day)", -17, 18),
        ("date_diff('day', date_trunc('month', day), day)", -1065, 1095),
        ("date_diff('hour', CAST('2023-01-01 00:00:00' AS TIMESTAMP), day)", 0, 26280),
        ("year(day)", 2023, 2025),
    ],
)
def test_differences_have_the_range_of_the_bounds(argument: str, low: int, high: int) -> None:
    """The range of a difference follows from the declared first and last day, and its columns are clipped to them."""
    (core,) = bound(lift(f"SELECT AVG({argument}) FROM visits", declared()))
    encoding = core.statistics[0].statistic.encoding
    assert encoding is not None
    assert (low, high) == (encoding.offset, encoding.offset + encoding.step * encoding.highest)
    assert FIRST in lower(core).parameters


@pytest.mark.parametrize(
    "argument",
    ["date_diff('day', day, DATE '2025-01-01')", "day - DATE '2025-01-01'", "epoch(day)", "epoch(day) / 86400 + 1"],
)
def test_a_difference_without_bounds_is_not_sold_as_noise(argument: str) -> None:
    """Without declared bounds the range is the calendar's: AVG and SUM are refused, a clipped one is answered."""
    for call in ("AVG", "SUM", "STDDEV"):
        with pytest.raises(Refused) as caught:
            bound(lift(f"SELECT {call}({argument}) FROM visits", CLINIC))
        (finding,) = caught.value.findings
        assert finding.code == "column_without_bounds"
        assert '"day"' in finding.why
    assert bound(lift(f"SELECT AVG(GREATEST(0, LEAST({argument}, 400))) FROM visits", CLINIC))
    assert bound(lift(f"SELECT COUNT({argument}) FROM visits WHERE {argument} > 3", CLINIC))


@pytest.mark.parametrize("argument", ["date_diff('day', DATE '2023-01-01', day)", "day - DATE '2023-01-01'"])
def test_a_condition_at_one_end_leaves_the_calendar_at_the_other(argument: str) -> None:
    """What a condition says of one end does not make 9,999 years a range: both ends have to be said."""
    with pytest.raises(Refused) as caught:
        bound(lift(f"SELECT AVG({argument}) FROM visits WHERE {argument} < 100", CLINIC))
    assert caught.value.findings[0].code == "column_without_bounds"
    assert bound(lift(f"SELECT AVG({argument}) FROM visits WHERE {argument} BETWEEN 0 AND 99", CLINIC))
    assert bound(lift(f"SELECT AVG({argument}) FROM visits WHERE {argument} < 100", declared()))


def test_ends_are_the_ends_of_what_is_computed() -> None:
    """Truncation and conversion keep the order of moments, so ends stay ends; an unknown column has none."""
    (visits,) = lift("SELECT day, COUNT(*) FROM visits GROUP BY day", declared()).cores
    column = clip_columns(visits.keys[0][1])
    month = build("date_trunc", (Literal("month", ColumnType.TEXT), column))
    assert moments_of(column) == (FIRST, LAST)
    assert moments_of(month) == (FIRST, datetime.date(2025, 12, 1))
    first, last = (datetime.datetime(end.year, end.month, end.day) for end in (FIRST, LAST))
    moment = build("cast_timestamp", (column,))
    assert moments_of(moment) == (first, last)
    assert moments_of(build("cast_date", (moment,))) == (FIRST, LAST)
    early, nothing = Literal(datetime.date(1990, 1, 1), ColumnType.DATE), Literal(None, ColumnType.DATE)
    truth = Literal(value=True, type=ColumnType.BOOLEAN)
    assert moments_of(build("case", (truth, column, nothing))) == (FIRST, LAST)
    assert moments_of(build("case", (truth, column, early))) == (early.value, LAST)
    assert moments_of(build("nullif", (column, early))) == (FIRST, LAST)
    (plain,) = lift("SELECT day, COUNT(*) FROM visits GROUP BY day", CLINIC).cores
    unknown = clip_columns(plain.keys[0][1])
    assert moments_of(unknown) is None
    # A part whose ends nobody knows may be beyond those of all others.
    for operator, parts in (
        ("case", (truth, column, unknown)),
        ("coalesce", (unknown, column)),
        ("least", (column, unknown)),
    ):
        assert moments_of(build(operator, parts)) is None


def test_numbers_of_moments_come_back() -> None:
    """The numbers that stand for bounds are exact from the first moment to the last."""
    for day in (datetime.date.min, FIRST, datetime.date.max):
        assert date_at(number_of_date(day)) == day
    for moment in (datetime.datetime.min, datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime.datetime.max):
        assert timestamp_at(number_of_timestamp(moment)) == moment
