"""Values of expressions, narrowed to one type, and references in Python made of functions of that type."""

from __future__ import annotations

import datetime
from collections.abc import Callable

from sql_rewrite.expressions import Value
from sql_rewrite.functions.operator import Reference

__all__ = ["day", "midnight", "number", "of_day", "of_number", "of_text", "of_texts", "order", "text", "whole"]


def number(value: Value) -> float:
    """The value of an INTEGER, as the exact int that it is, or of a NUMBER."""
    assert isinstance(value, int | float)
    return value


def whole(value: Value) -> int:
    """The value of an INTEGER."""
    assert isinstance(value, int)
    return value


def text(value: Value) -> str:
    """The value of a TEXT."""
    assert isinstance(value, str)
    return value


def day(value: Value) -> datetime.date:
    """The value of a DATE, or of a TIMESTAMP, which is a date with a clock."""
    assert isinstance(value, datetime.date)
    return value


def midnight(value: datetime.date) -> datetime.datetime:
    """A TIMESTAMP as it is, a DATE at its beginning."""
    if isinstance(value, datetime.datetime):
        return value
    return datetime.datetime(value.year, value.month, value.day)


def order(first: Value, second: Value) -> int:
    """Below zero when the first value sorts before the second, above when after. Requires: values of one type."""
    if isinstance(first, str):
        other: str = text(second)
        return (first > other) - (first < other)
    if isinstance(first, datetime.date):
        date = day(second)
        return (first > date) - (first < date)
    left, right = number(first), number(second)
    return (left > right) - (left < right)


def of_number(function: Callable[[float], Value]) -> Reference:
    """The function of the only argument, a number."""
    return lambda call, values: function(number(values[0]))


def of_text(function: Callable[[str], Value]) -> Reference:
    """The function of the only argument, a text."""
    return lambda call, values: function(text(values[0]))


def of_texts(function: Callable[[str, str], Value]) -> Reference:
    """The function of both arguments, texts."""
    return lambda call, values: function(text(values[0]), text(values[1]))


def of_day(function: Callable[[datetime.date], Value]) -> Reference:
    """The function of the only argument, a date or a timestamp."""
    return lambda call, values: function(day(values[0]))
