"""Quantiles of dates and timestamps: those of whole days or seconds since a fixed moment, shown as moments.

MEDIAN(born)   core:   MEDIAN(date_diff('day', DATE '1970-01-01', born))
               shell:  TIMESTAMP '1970-01-01 00:00:00' + INTERVAL (a0 * 86400000) MILLISECOND

The types are DuckDB's: a date for MIN, MAX and QUANTILE_DISC of dates, a timestamp for all others.
"""

from __future__ import annotations

import re
from typing import assert_never

import sqlglot
from sqlglot import exp

from privacy.policy import ColumnType
from privacy.statistic_kind import StatisticKind
from sql_rewrite.expressions import Call
from sql_rewrite.plan import Aggregate
from sql_rewrite.syntax import DIALECT

__all__ = ["MOMENTS", "as_moment", "moment_of", "since_start", "since_written"]

MOMENTS = (ColumnType.DATE, ColumnType.TIMESTAMP)

_SINCE = {
    ColumnType.DATE: "date_diff('day', DATE '1970-01-01', x)",
    ColumnType.TIMESTAMP: "date_diff('second', TIMESTAMP '1970-01-01 00:00:00', x)",
}
_NUMBER = re.compile(r"date_?diff", re.IGNORECASE)
_MILLISECONDS = {ColumnType.DATE: 86_400_000, ColumnType.TIMESTAMP: 1_000}


def since_start(operand: exp.Expr, kind: ColumnType) -> exp.Expr:
    """The whole days or seconds from the fixed moment to what an operand gives."""
    return _with(_SINCE[kind], operand)


def since_written(written: str, kind: ColumnType) -> str:
    """The same as SQL text."""
    return _SINCE[kind].replace("x", written)


def moment_of(aggregate: Aggregate) -> ColumnType | None:
    """Of which moments an aggregate is written, whose argument are days or seconds; None for one of numbers."""
    argument = aggregate.argument
    if not isinstance(argument, Call) or argument.operator != "date_diff" or _NUMBER.search(aggregate.text):
        return None
    kind = argument.arguments[-1].type
    return kind if kind in MOMENTS and aggregate.function.statistic is StatisticKind.RANKS else None


def as_moment(number: exp.Expr, aggregate: Aggregate, kind: ColumnType) -> exp.Expr:
    """The moment that is so many days or seconds after the fixed one."""
    match kind:
        case ColumnType.DATE if aggregate.function.whole(ColumnType.INTEGER):
            return exp.Paren(this=_with("DATE '1970-01-01' + CAST(x AS INTEGER)", number))
        case ColumnType.DATE | ColumnType.TIMESTAMP:
            whole = f"CAST(x * {_MILLISECONDS[kind]} AS BIGINT)"
            return exp.Paren(this=_with(f"TIMESTAMP '1970-01-01 00:00:00' + INTERVAL ({whole}) MILLISECOND", number))
        case ColumnType.INTEGER | ColumnType.NUMBER | ColumnType.TEXT | ColumnType.BOOLEAN:
            raise AssertionError("only dates and timestamps are moments")
        case _:
            assert_never(kind)


def _with(text: str, value: exp.Expr) -> exp.Expr:
    """The expression of a text of ours, with a value in place of x."""
    tree = sqlglot.parse_one(text, read=DIALECT)
    (place,) = tree.find_all(exp.Column)
    place.replace(value.copy())
    return tree
