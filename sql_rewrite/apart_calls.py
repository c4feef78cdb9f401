"""The calls that are set apart in blocks of their own (apart.py): which they are, and the bins that one lists."""

from __future__ import annotations

from sqlglot import exp

from sql_rewrite.aggregate_calls import is_histogram, is_mode
from sql_rewrite.refuse import refuse
from sql_rewrite.text import Text

__all__ = ["BINS_MAX", "adds_up", "bins_of", "is_apart", "makes_histogram", "name_of_call"]

BINS_MAX = 100
"""Most bins that a histogram lists."""


def is_apart(call: exp.Expr, *, people: bool) -> bool:
    """Whether a block of its own answers the call: HISTOGRAM, APPROX_TOP_K and, over people, MODE."""
    inner = call.this if isinstance(call, exp.Filter) else call
    return is_histogram(inner) or isinstance(inner, exp.ApproxTopK) or (people and is_mode(call))


def adds_up(call: exp.Expr) -> bool:
    """Whether a coarser level's value is the sum, or the weighted mean, of those below it."""
    inner = call.this if isinstance(call, exp.Filter) else call
    return isinstance(inner, exp.Count | exp.CountIf | exp.Sum | exp.Avg) and inner.find(exp.Distinct) is None


def makes_histogram(call: exp.Expr) -> bool:
    """Whether it is HISTOGRAM, with or without FILTER."""
    return is_histogram(call.this if isinstance(call, exp.Filter) else call)


def name_of_call(call: exp.Expr) -> str:
    """Its name, for a message."""
    inner = call.this if isinstance(call, exp.Filter) else call
    if is_mode(call):
        return "MODE"
    return "HISTOGRAM" if is_histogram(inner) else "APPROX_TOP_K"


def bins_of(call: exp.Anonymous, text: Text) -> list[exp.Expr]:
    """The upper ends of the bins, in order. Errors: Refused."""
    listed = call.expressions[1]
    ends = listed.expressions if isinstance(listed, exp.Array) else []
    numbers = [_value(end) for end in ends]
    known = [number for number in numbers if number is not None]
    if len(call.expressions) > 2 or not ends or len(known) < len(ends) or sorted(set(known)) != known:
        raise refuse(
            "unsupported_sql",
            "HISTOGRAM is refused with such bins",
            "They are no list of different numbers that are written out in rising order.",
            "write the upper ends of the bins as a list of numbers, the least one first",
            position=text.position(listed),
        )
    if len(ends) > BINS_MAX:
        raise refuse(
            "too_large",
            "HISTOGRAM is refused",
            f"It has more than {BINS_MAX} bins.",
            "write fewer bins",
            position=text.position(listed),
        )
    return list(ends)


def _value(end: exp.Expr) -> float | None:
    """The number that an end of a bin is."""
    if isinstance(end, exp.Neg):
        inner = _value(end.this)
        return None if inner is None else -inner
    return float(end.this) if isinstance(end, exp.Literal) and not end.is_string else None
