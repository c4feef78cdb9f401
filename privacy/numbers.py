"""Exact amounts: decimal text in, fractions inside, integers in the ledger, never a bare float.

Epsilon, rho and mu squared are stored as whole picos (10^-12), delta as whole attos (10^-18). Decimal
units are used instead of binary ones because people write budgets in decimals: ten charges of "0.1" must
fill a limit of "1" exactly, and with units of 2^-40 rounded up the tenth charge would be refused.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

__all__ = [
    "ATTO",
    "PICO",
    "decimal_text",
    "dyadic_up",
    "float_down",
    "float_up",
    "parse_decimal",
    "units_down",
    "units_up",
]

PICO = Fraction(1, 10**12)
"""Unit in which the ledger stores epsilon, rho and mu squared."""

ATTO = Fraction(1, 10**18)
"""Unit in which the ledger stores delta."""

_DECIMAL = re.compile(r"\+?(\d{1,40})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,3}))?\Z", re.ASCII)


def parse_decimal(
    text: str,
    *,
    name: str,
    maximum: Fraction,
    unit: Fraction,
    zero_allowed: bool = False,
) -> Fraction:
    """The exact value of a decimal written as text.

    Requires: `name` is how the caller calls the amount, for the message.
    Ensures: the value is a whole multiple of `unit`, at most `maximum`, above zero unless `zero_allowed`.
    Errors: ValueError with one sentence for anything else (NaN, infinity, signs, too many digits, floats).
    """
    if not isinstance(text, str):
        # A ValueError like every other refusal of an amount: callers turn it into one kind of answer.
        raise ValueError(f'{name} must be a decimal written as text, such as "0.5"')  # noqa: TRY004
    match = _DECIMAL.match(text)
    if match is None:
        raise ValueError(f'{name} must be a plain positive decimal such as "0.5" or "1e-6"')
    whole, fraction, exponent = match.groups()
    power = int(exponent or "0")
    if abs(power) > 60:
        raise ValueError(f"{name} is outside the range that can be stored")
    value = Fraction(int(whole + (fraction or "")), 10 ** len(fraction or "")) * Fraction(10) ** power
    if value == 0 and not zero_allowed:
        raise ValueError(f"{name} must be greater than zero")
    if value > maximum:
        raise ValueError(f"{name} must be at most {decimal_text(maximum)}")
    if (value / unit).denominator != 1:
        raise ValueError(f"{name} is finer than the smallest amount, {decimal_text(unit)}")
    return value


def decimal_text(value: Fraction, *, places: int = 18, up: bool = True) -> str:
    """The value as plain decimal text, exact when it has at most `places` decimals, else rounded (up by default)."""
    scaled = value.numerator * 10**places
    whole = -(-scaled // value.denominator) if up else scaled // value.denominator
    sign = "-" if whole < 0 else ""
    digits = str(abs(whole)).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")
    return sign + text


def units_up(value: Fraction, unit: Fraction) -> int:
    """Whole units that cover the value (rounded up): the direction for everything that is spent."""
    # In whole numbers, here and below: a quotient of fractions is reduced, which is most of its time.
    return -(-value.numerator * unit.denominator // (value.denominator * unit.numerator))


def units_down(value: Fraction, unit: Fraction) -> int:
    """Whole units within the value (rounded down): the direction for every limit."""
    return value.numerator * unit.denominator // (value.denominator * unit.numerator)


def float_up(value: Fraction) -> float:
    """The smallest float that is not below the value."""
    result = float(value)
    return result if Fraction(result) >= value else math.nextafter(result, math.inf)


def float_down(value: Fraction) -> float:
    """The largest float that is not above the value."""
    result = float(value)
    return result if Fraction(result) <= value else math.nextafter(result, -math.inf)


def dyadic_up(value: Fraction, *, bits: int = 60) -> Fraction:
    """The value rounded up to `bits` significant binary digits: a denominator that is a power of two."""
    if value <= 0:
        raise ValueError("only positive values are rounded to a dyadic")
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    unit = Fraction(2) ** (exponent - bits)
    return math.ceil(value / unit) * unit
