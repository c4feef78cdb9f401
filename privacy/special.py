"""The Gaussian tail in decimal arithmetic, for privacy figures that need more digits than a float has.

Everything runs in one context of 80 digits with the widest exponents, so that e^(10^6) and e^(-10^12) are ordinary
numbers and differences of nearly equal tails keep their digits. Results leave as fractions rounded outward with
a relative margin of 10^-25: some 10^25 times the error of the arithmetic, and too small to notice.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction

__all__ = ["erfc", "erfc_inverse", "precise", "rounded_down", "rounded_up", "to_decimal"]

_CONTEXT = decimal.Context(
    prec=80,
    rounding=decimal.ROUND_HALF_EVEN,
    Emin=decimal.MIN_EMIN,
    Emax=decimal.MAX_EMAX,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")
_DIGITS = 30  # significant digits of what leaves this module
_MARGIN = Fraction(1, 10**25)
_SERIES_BELOW = Decimal(5)
_CLOSE = Decimal("1e-60")


@contextmanager
def precise() -> Iterator[None]:
    """Runs the body in the context of this module; every function here expects to be called inside it."""
    with decimal.localcontext(_CONTEXT):
        yield


def to_decimal(value: Fraction) -> Decimal:
    """The fraction to 80 digits."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def rounded_up(value: Decimal) -> Fraction:
    """A fraction not below the true value of a non-negative result, with a short decimal denominator."""
    return _short(Fraction(value) * (1 + _MARGIN), up=True)


def rounded_down(value: Decimal) -> Fraction:
    """A fraction not above the true value of a non-negative result, with a short decimal denominator."""
    return _short(Fraction(value) * (1 - _MARGIN), up=False)


def _short(value: Fraction, *, up: bool) -> Fraction:
    """The value to 30 significant digits, so that sums of many of them stay small fractions."""
    assert value >= 0, "only non-negative amounts are rounded outward here"
    rounding = decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    with decimal.localcontext(_CONTEXT) as context:
        context.prec = _DIGITS
        context.rounding = rounding
        return Fraction(Decimal(value.numerator) / Decimal(value.denominator))


def erfc(z: Decimal) -> Decimal:
    """The complementary error function, to at least 40 digits for every real argument."""
    if z < 0:
        return 2 - erfc(-z)
    if z < _SERIES_BELOW:
        return 1 - _erf_series(z)
    return (-z * z).exp() / (_PI.sqrt() * _fraction(z))


def _erf_series(z: Decimal) -> Decimal:
    """erf(z) = 2/sqrt(pi) e^(-z^2) (z + 2z^3/3 + 4z^5/15 + ...): positive terms only, so nothing cancels."""
    twice = 2 * z * z
    term = total = z
    odd = 1
    while term > total * Decimal("1e-85"):
        odd += 2
        term = term * twice / odd
        total += term
    return 2 / _PI.sqrt() * (-z * z).exp() * total


def _fraction(z: Decimal) -> Decimal:
    """z + (1/2)/(z + 1/(z + (3/2)/(z + ...))).

    Partial fractions with positive entries lie alternately below and above their limit, so two neighbours that
    agree enclose it.
    """
    before, above = Decimal(1), z
    before_below, below = Decimal(0), Decimal(1)
    last = z
    step = 0
    while True:
        step += 1
        entry = Decimal(step) / 2
        before, above = above, z * above + entry * before
        before_below, below = below, z * below + entry * before_below
        value = above / below
        if abs(value - last) <= value * _CLOSE:
            return value
        last = value


def erfc_inverse(exponent: Decimal) -> Decimal:
    """The z > 0 with erfc(z) = e^(-exponent), for a positive exponent, never below the root by more than rounding.

    The logarithm of erfc is concave and falling, so a tangent meets a level to the right of the curve: after the first
    one, Newton's steps approach the root from above. They begin where floats find it, which leaves two steps or three.
    """
    z = _near_inverse(exponent)
    slope, growth = 2 / _PI.sqrt(), exponent.exp()
    for _ in range(200):
        tail = erfc(z)
        step = _log_near_one(tail * growth) * tail / (slope * (-z * z).exp())
        z += step
        if abs(step) <= z * Decimal("1e-29"):
            # Steps square their error, so the next one would be below 10^-55.
            return z
    raise ArithmeticError("Newton's steps did not settle")  # pragma: no cover


def _log_near_one(value: Decimal) -> Decimal:
    """The logarithm; of what is within 10^-9 of one by its series, which is many times faster."""
    near = value - 1
    if abs(near) > Decimal("1e-9"):
        return value.ln()
    total, power = Decimal(0), -near
    for number in range(1, 10):
        total -= power / number
        power *= -near
    return total


def _near_inverse(exponent: Decimal) -> Decimal:
    """`erfc_inverse` to the digits of a float: where the steps begin, so what it gets wrong only makes them more."""
    level, slope = float(exponent), 2 / math.sqrt(math.pi)
    z = math.sqrt(level) if level > 1 else level / slope
    for _ in range(12):
        if level < 0.5:
            z -= (math.erf(z) + math.expm1(-level)) / (slope * math.exp(-z * z))
        elif z < 25:
            tail = math.erfc(z)
            z += (math.log(tail) + level) * tail / (slope * math.exp(-z * z))
        else:
            square = 1 / (z * z)
            series = math.log1p(-square / 2 * (1 - square * 1.5 * (1 - square * 2.5)))
            z += (level - z * z - math.log(z * math.sqrt(math.pi)) + series) / (2 * z)
    return Decimal(z)
