"""The Gaussian tail in decimals against mpmath."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest

from privacy.special import erfc, erfc_inverse, precise, rounded_down, rounded_up, to_decimal


@pytest.mark.parametrize(
    "text", ["-30", "-3", "-0.001", "0", "1e-40", "0.3", "2", "4.999999", "5", "5.000001", "9", "60"]
)
def test_erfc_has_forty_digits(text: str) -> None:
    """Shows erfc on both sides of the change from series to fraction, to 40 digits relative."""
    with precise():
        value = str(erfc(Decimal(text)))
    with mpmath.workdps(90):
        assert mpmath.almosteq(mpmath.erfc(mpmath.mpf(text)), mpmath.mpf(value), rel_eps=mpmath.mpf("1e-40"))


@pytest.mark.parametrize("text", ["1e-30", "1e-6", "0.1", "0.999", "1.001", "17", "25", "700", "1e6"])
def test_inverse_gives_the_exponent_back(text: str) -> None:
    """Shows erfc(erfc_inverse(L)) = e^-L from 10^-30 to 10^6, where a float has long become zero."""
    with precise():
        back = -erfc(erfc_inverse(Decimal(text))).ln()
        assert abs(back - Decimal(text)) <= Decimal(text) * Decimal("1e-40")


@pytest.mark.parametrize(
    "value", [Fraction(1, 3), Fraction(2, 3), Fraction(10**40, 7), Fraction(1, 7 * 10**40), Fraction(5)]
)
def test_rounding_is_outward(value: Fraction) -> None:
    """Shows that the truth lies strictly between both roundings, which are 10^-24 apart."""
    with precise():
        below, above = rounded_down(to_decimal(value)), rounded_up(to_decimal(value))
    assert below < value < above
    assert above - below < value / 10**24


def test_zero_stays_zero() -> None:
    """Shows that rounding makes no loss out of nothing."""
    assert rounded_up(Decimal(0)) == rounded_down(Decimal(0)) == 0
