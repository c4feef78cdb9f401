"""Means and quantiles of dates, timestamps and intervals: those of numbers, shown as what they are of.

MEDIAN(born)        core:   MEDIAN(date_diff('day', DATE '1970-01-01', born))
                    shell:  TIMESTAMP '1970-01-01 00:00:00' + INTERVAL (a0 * 86400000) MILLISECOND
AVG(born)           the same of AVG(date_diff('day', DATE '1970-01-01', born)), of timestamps in whole seconds
AVG(ended - began)  core:   AVG(epoch(ended - began))
                    shell:  INTERVAL (TRUNC(a0 / 86400)) DAY + INTERVAL (the rest * 1000000) MICROSECOND

The types are DuckDB's: a date for MIN, MAX and QUANTILE_DISC of dates, a timestamp for all others; of a difference of
timestamps an interval, which has seconds and no months, so that its number of seconds says all of it.
"""

from __future__ import annotations

import re
from typing import Literal, assert_never

import sqlglot
from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType
from privacy.statistic_kind import StatisticKind
from sql_rewrite.expressions import Call
from sql_rewrite.plan import Aggregate
from sql_rewrite.syntax import DIALECT

__all__ = ["MOMENTS", "Shown", "as_interval", "as_moment", "number_written", "seconds_of", "since_start"]

MOMENTS = (ColumnType.DATE, ColumnType.TIMESTAMP)

Shown = ColumnType | Literal["interval"]
"""What the number of an aggregate is shown as."""

_SINCE = {
    ColumnType.DATE: "date_diff('day', DATE '1970-01-01', x)",
    ColumnType.TIMESTAMP: "date_diff('second', TIMESTAMP '1970-01-01 00:00:00', x)",
}
_INTERVAL = (
    "INTERVAL (TRY_CAST(TRUNC(x / 86400) AS INTEGER)) DAY + "
    "INTERVAL (TRY_CAST((x - 86400 * TRUNC(x / 86400)) * 1000000 AS BIGINT)) MICROSECOND"
)
_MICROSECONDS = (
    "INTERVAL (CAST(x // 86400000000 AS INTEGER)) DAY + INTERVAL (x - 86400000000 * (x // 86400000000)) MICROSECOND"
)
_SECONDS = re.compile(r"epoch|date_?part|extract|date_?diff", re.IGNORECASE)
_NUMBER = re.compile(r"date_?diff", re.IGNORECASE)
_MILLISECONDS = {ColumnType.DATE: 86_400_000, ColumnType.TIMESTAMP: 1_000}


def since_start(operand: exp.Expr, kind: ColumnType) -> exp.Expr:
    """The whole days or seconds from the fixed moment to what an operand gives."""
    return _with(_SINCE[kind], operand)


def seconds_of(operand: exp.Expr) -> exp.Expr:
    """The seconds of a difference of timestamps."""
    return _with("epoch(x)", operand)


def number_written(aggregate: Aggregate, written: str) -> str | None:
    """The number that an aggregate is of, as SQL text, where `written` is a moment or an interval; None for others."""
    if _of_interval(aggregate):
        return f"epoch({written})"
    kind = _moment_of(aggregate)
    return None if kind is None else _SINCE[kind].replace("x", written)


def _of_interval(aggregate: Aggregate) -> bool:
    argument = aggregate.argument
    if not isinstance(argument, Call) or argument.operator != "subtract" or _SECONDS.search(aggregate.text):
        return False
    return all(isinstance(part, Call) and part.operator == "epoch" for part in argument.arguments)


def _moment_of(aggregate: Aggregate) -> ColumnType | None:
    """Of which moments an aggregate is written, whose argument are days or seconds; None for one of numbers."""
    argument = aggregate.argument
    if not isinstance(argument, Call) or argument.operator != "date_diff" or _NUMBER.search(aggregate.text):
        return None
    kind = argument.arguments[-1].type
    of_moments = aggregate.function.statistic is StatisticKind.RANKS or aggregate.function is AggregateFunction.AVERAGE
    return kind if kind in MOMENTS and of_moments else None


def as_moment(number: exp.Expr, aggregate: Aggregate, kind: Shown) -> exp.Expr:
    """The moment that is so many days or seconds after the fixed one, or the interval of so many seconds."""
    match kind:
        case "interval":
            return exp.Paren(this=_with(_INTERVAL, number))
        case ColumnType.DATE if aggregate.function.whole(ColumnType.INTEGER):
            return exp.Paren(this=_with("DATE '1970-01-01' + CAST(x AS INTEGER)", number))
        case ColumnType.DATE | ColumnType.TIMESTAMP:
            whole = f"CAST(x * {_MILLISECONDS[kind]} AS BIGINT)"
            return exp.Paren(this=_with(f"TIMESTAMP '1970-01-01 00:00:00' + INTERVAL ({whole}) MILLISECOND", number))
        case ColumnType.INTEGER | ColumnType.NUMBER | ColumnType.TEXT | ColumnType.BOOLEAN:
            raise AssertionError("only dates and timestamps are moments")
        case _:
            assert_never(kind)


def as_interval(microseconds: exp.Expr) -> exp.Expr:
    """The interval of so many microseconds."""
    return exp.Paren(this=_with(_MICROSECONDS, microseconds))


def _with(text: str, value: exp.Expr) -> exp.Expr:
    """The expression of a text of ours, with a value in place of x."""
    tree = sqlglot.parse_one(text, read=DIALECT)
    for place in list(tree.find_all(exp.Column)):
        place.replace(value.copy())
    return tree
