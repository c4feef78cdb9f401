"""Interval arithmetic on exact fractions. Every function returns an interval that contains all possible results."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction

from privacy.numbers import float_down, float_up
from sql_rewrite.expressions import ANY, BIGINT, Interval

__all__ = [
    "NUMBER_MAX",
    "ZERO",
    "absolute",
    "add",
    "between",
    "converted",
    "divide",
    "filled",
    "hull",
    "intersect",
    "largest",
    "monotone",
    "multiply",
    "negate",
    "outward",
    "point",
    "smallest",
    "truncated",
]

NUMBER_MAX = Fraction(sys.float_info.max)
"""The largest double."""

_WHOLE = 2**53
"""Every whole number up to this size is a double."""

ZERO = Interval(Fraction(0), Fraction(0))

_Extended = Fraction | float
"""A fraction, or one of the two float infinities."""


def _low(interval: Interval) -> _Extended:
    return -math.inf if interval.lower is None else interval.lower


def _high(interval: Interval) -> _Extended:
    return math.inf if interval.upper is None else interval.upper


def _make(lower: _Extended, upper: _Extended) -> Interval:
    return Interval(
        None if isinstance(lower, float) else lower,
        None if isinstance(upper, float) else upper,
    )


def point(value: int | Fraction) -> Interval:
    """The interval of one value."""
    return Interval(Fraction(value), Fraction(value))


def between(lower: int | Fraction, upper: int | Fraction) -> Interval:
    """The interval of two values."""
    return Interval(Fraction(lower), Fraction(upper))


def filled(interval: Interval) -> Interval:
    """The interval with unknown sides replaced by the range of finite doubles."""
    return Interval(
        -NUMBER_MAX if interval.lower is None else interval.lower,
        NUMBER_MAX if interval.upper is None else interval.upper,
    )


def outward(interval: Interval) -> Interval:
    """The interval with sides moved outward to doubles; a side beyond the largest double becomes unknown.

    Rounding to nearest is monotone, so an exact result within the interval rounds to a double within this one.
    """
    lower, upper = interval.lower, interval.upper
    if _is_double(lower) and _is_double(upper):
        return interval
    return Interval(
        None if lower is None or abs(lower) > NUMBER_MAX else Fraction(float_down(lower)),
        None if upper is None or abs(upper) > NUMBER_MAX else Fraction(float_up(upper)),
    )


def _is_double(side: Fraction | None) -> bool:
    """Whether a side is unknown, or small enough a whole number that it is a double."""
    return side is None or (side.denominator == 1 and -_WHOLE <= side.numerator <= _WHOLE)


def converted(interval: Interval, *, wide: bool) -> Interval:
    """All doubles that the integers of the interval may become; from HUGEINT the engine may miss by two doubles."""
    if interval is BIGINT and not wide:
        return _STORED  # of every column without a narrower range
    result = outward(interval)
    if not wide:
        return result
    low, high = result.lower, result.upper
    for _ in range(2):
        low = None if low is None else Fraction(math.nextafter(float(low), -math.inf))
        high = None if high is None else Fraction(math.nextafter(float(high), math.inf))
    return Interval(low, high)


_STORED = outward(BIGINT)


def hull(intervals: Iterable[Interval]) -> Interval:
    """The smallest interval that contains all of them."""
    listed = list(intervals)
    return _make(min(map(_low, listed)), max(map(_high, listed)))


def intersect(first: Interval, second: Interval) -> Interval:
    """The values in both; zero when there is none, because then no value exists at all."""
    lower, upper = max(_low(first), _low(second)), min(_high(first), _high(second))
    return _make(lower, upper) if lower <= upper else ZERO


def add(first: Interval, second: Interval) -> Interval:
    """All sums."""
    return Interval(
        None if first.lower is None or second.lower is None else first.lower + second.lower,
        None if first.upper is None or second.upper is None else first.upper + second.upper,
    )


def negate(interval: Interval) -> Interval:
    """All negatives."""
    return Interval(
        None if interval.upper is None else -interval.upper, None if interval.lower is None else -interval.lower
    )


def absolute(interval: Interval) -> Interval:
    """All absolute values."""
    low, high = _low(interval), _high(interval)
    if low >= 0:
        return interval
    if high <= 0:
        return negate(interval)
    return _make(Fraction(0), max(-low, high))


def _product(first: _Extended, second: _Extended) -> _Extended:
    # 0 times an unknown finite value is 0; float infinities only stand for "unknown side" here.
    if first == 0 or second == 0:
        return Fraction(0)
    if isinstance(first, float) or isinstance(second, float):
        return math.inf if (first > 0) == (second > 0) else -math.inf
    return first * second


def multiply(first: Interval, second: Interval) -> Interval:
    """All products."""
    corners = [_product(a, b) for a in (_low(first), _high(first)) for b in (_low(second), _high(second))]
    return _make(min(corners), max(corners))


def divide(first: Interval, second: Interval, *, least_divisor: Fraction | None = None) -> Interval:
    """All quotients by divisors that are not zero; `least_divisor` is a lower bound of their absolute value."""
    low, high = _low(second), _high(second)
    pieces = []
    if high > 0:
        start = max(low, least_divisor or Fraction(0))
        if start <= high:
            pieces.append((start, high))
    if low < 0:
        end = min(high, -(least_divisor or Fraction(0)))
        if low <= end:
            pieces.append((low, end))
    results = []
    for nearest, farthest in pieces:
        reciprocal = _make(
            *sorted(
                (
                    _reciprocal(nearest, positive=high > 0 and nearest >= 0),
                    _reciprocal(farthest, positive=high > 0 and nearest >= 0),
                )
            )
        )
        results.append(multiply(first, reciprocal))
    return hull(results) if results else ZERO


def _reciprocal(value: _Extended, *, positive: bool) -> _Extended:
    if isinstance(value, float):
        return Fraction(0)
    if value == 0:
        return math.inf if positive else -math.inf
    return 1 / value


def truncated(interval: Interval) -> Interval:
    """All values with the fraction cut off towards zero."""
    return monotone(interval, lambda value: Fraction(math.trunc(value)))


def monotone(interval: Interval, function: Callable[[Fraction], Fraction]) -> Interval:
    """All results of a non-decreasing exact function."""
    return Interval(
        None if interval.lower is None else function(interval.lower),
        None if interval.upper is None else function(interval.upper),
    )


def smallest(intervals: Iterable[Interval]) -> Interval:
    """All results of taking the least of one value from each."""
    listed = list(intervals)
    return _make(min(map(_low, listed)), min(map(_high, listed))) if listed else ANY


def largest(intervals: Iterable[Interval]) -> Interval:
    """All results of taking the greatest of one value from each."""
    listed = list(intervals)
    return _make(max(map(_low, listed)), max(map(_high, listed))) if listed else ANY
