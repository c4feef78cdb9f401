"""The amounts that a price may be searched over: six significant digits, in whole picos.

A fixed grid, rather than an interval halved until it is short, makes the least amount that serves a wish one definite
number: of two wishes the one that is served by more amounts never gets the greater number.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from privacy.numbers import PICO, units_up

__all__ = ["amount_at", "index_up", "least_amount"]

_FINE = 999_999  # up to here every pico is an amount of its own
_DECADE = 900_000


def amount_at(index: int) -> Fraction:
    """The amount with this number, counted from 1 (one pico); rising without gaps."""
    assert index >= 1
    if index <= _FINE:
        return index * PICO
    decade, place = divmod(index - _FINE - 1, _DECADE)
    return Fraction((100_000 + place) * 10 ** (decade + 1)) * PICO


def index_up(amount: Fraction) -> int:
    """The number of the least amount that is not below this one."""
    units = max(units_up(amount, PICO), 1)
    if units <= _FINE:
        return units
    decade = len(str(units)) - 6
    mantissa: int = -(-units // 10**decade)
    # 999999.5 is rounded up into the next decade, whose first number follows at once.
    return _FINE + 1 + (decade - 1) * _DECADE + (mantissa - 100_000)


def least_amount(serves: Callable[[Fraction], bool], *, guess: Fraction, greatest: Fraction) -> Fraction:
    """The least amount of the grid that serves, found from a guess.

    Requires: whoever is served by an amount is served by every greater one, up to `greatest`, which serves.
    """
    last = index_up(greatest)
    low, high = 0, last  # the number `low` does not serve, `high` does
    index, step = min(max(index_up(guess), 1), last), 1
    rising = not serves(amount_at(index))
    while True:
        if rising:
            low = index
            index = min(index + step, last)
            if index == last or serves(amount_at(index)):
                high = index
                break
        else:
            high = index
            index -= step
            if index < 1:
                break
            if not serves(amount_at(index)):
                low = index
                break
        step *= 8
    while high - low > 1:
        middle = (low + high) // 2
        if serves(amount_at(middle)):
            high = middle
        else:
            low = middle
    return amount_at(high)
