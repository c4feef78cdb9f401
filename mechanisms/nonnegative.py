"""Noisy counts without negative ones, whose sum stays what it was: nonnegative.md. Functions of released numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

__all__ = ["nonnegative"]


def nonnegative(numbers: Sequence[int | float]) -> tuple[int | float, ...]:
    """The nearest numbers that are not negative and have the same sum; zeros where that is negative.

    Nearest by the sum of squares: all that stay above zero lose one amount. Whole numbers stay whole: their running
    sums are rounded to nearest, so each is less than one away from the nearest one, and none is negative.
    """
    exact = [Fraction(number) for number in numbers]
    total = sum(exact, Fraction(0))
    if total <= 0:
        return tuple(type(number)(0) for number in numbers)
    if all(number >= 0 for number in exact):
        return tuple(numbers)
    above, reached = Fraction(0), Fraction(0)
    for place, number in enumerate(sorted(exact, reverse=True), start=1):
        reached += number
        if number - (reached - total) / place <= 0:
            break
        above = (reached - total) / place
    nearest = [max(Fraction(0), number - above) for number in exact]
    if any(isinstance(number, float) for number in numbers):
        return tuple(map(float, nearest))
    running, before, whole = Fraction(0), 0, list[int | float]()
    for number in nearest:
        running += number
        after = (2 * running + 1).__floor__() // 2
        whole.append(after - before)
        before = after
    return tuple(whole)
