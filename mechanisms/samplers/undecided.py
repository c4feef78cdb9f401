"""Undecided draws: the same real numbers as on the fast path, enclosed in intervals that shrink until they round.

A real uniform U in [0, 1] is known by its leading bits: an integer `value` and a `length` say that
U lies in [value, value + 1] / 2^length. More bits narrow it and never move it. All arithmetic is on integers scaled by
a power of two; each transcendental value comes from mpmath with 40 bits more than its enclosure claims.
See rounding.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.randomness import BitSource

__all__ = ["SCALE_MAX", "SCALE_MIN", "Interval", "Magnitude", "Turn", "logarithm", "require_scale"]

SCALE_MAX = Fraction(2**45)
"""Largest scale: keeps every result within 64 bits with room for sums."""

SCALE_MIN = Fraction(1, 2**200)
"""Smallest scale: below it nothing but zero is ever drawn, and floats would underflow."""

_GUARD = 40
_SLACK = 4
"""Units of the last place by which each enclosure is widened."""


def require_scale(scale: Fraction) -> None:
    """Refuses a scale that is not a positive dyadic within the range of the samplers: ValueError."""
    if not isinstance(scale, Fraction) or scale <= 0 or scale.denominator & (scale.denominator - 1):
        raise ValueError("a noise scale must be a positive fraction whose denominator is a power of two")
    if not SCALE_MIN <= scale <= SCALE_MAX:
        raise ValueError("the noise scale is outside the range of the samplers")


@dataclass(frozen=True, slots=True)
class Interval:
    """The reals between two integers over 2^places; an upper end of None is infinite."""

    low: int
    high: int | None
    places: int

    def rounded(self, scale: Fraction) -> int | None:
        """The one integer to which scale times every real of the interval rounds, or None when there are several."""
        if self.high is None:
            return None
        divisor = scale.denominator << self.places
        low = (2 * self.low * scale.numerator + divisor) // (2 * divisor)
        high = (2 * self.high * scale.numerator + divisor) // (2 * divisor)
        return low if low == high else None

    def times(self, other: Interval) -> Interval:
        """Enclosure of the products, when this interval is not negative."""
        assert self.places == other.places
        assert self.low >= 0
        assert other.high is not None
        if self.high is None:
            return self
        products = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(products) >> self.places, (max(products) >> self.places) + 1, self.places)

    def root(self) -> Interval:
        """Enclosure of the square roots, when this interval is not negative."""
        high = None if self.high is None else math.isqrt(self.high << self.places) + 1
        return Interval(math.isqrt(self.low << self.places), high, self.places)


@dataclass(slots=True, repr=False)
class Magnitude:
    """The real -ln U of a lazily refined uniform U. No readable repr: of a threshold it is kept for months."""

    value: int
    length: int

    def refine(self, bits: BitSource) -> None:
        """Learns 64 more bits of U."""
        self.value = self.value << 64 | int(bits.words(1)[0])
        self.length += 64

    def enclose(self, places: int, *, factor: int = 1) -> Interval:
        """Where factor times -ln U lies."""
        low = factor * _negative_log(self.value + 1, self.length, places) - _SLACK
        if self.value == 0:
            return Interval(max(low, 0), None, places)
        return Interval(max(low, 0), factor * _negative_log(self.value, self.length, places) + _SLACK, places)


@dataclass(slots=True, repr=False)
class Turn:
    """A lazily refined uniform angle: pi times a real in [-1, 1], known as [value, value + 1] / 2^length."""

    value: int
    length: int

    def refine(self, bits: BitSource) -> None:
        """Learns 64 more bits."""
        self.value = self.value << 64 | int(bits.words(1)[0])
        self.length += 64

    def enclose(self, places: int) -> tuple[Interval, Interval]:
        """Where its cosine and its sine lie: the value at the middle, widened by half the angle's width (the
        derivatives are at most one)."""
        # Loaded when it is needed, which is almost never: it takes a tenth of the server's start.
        from mpmath.libmp import from_man_exp, mpf_cos_sin_pi, to_fixed

        middle = from_man_exp(2 * self.value + 1, -(self.length + 1))
        # Half the width is pi / 2^(length + 1), which is less than 2 / 2^length.
        width = (2 << (places - self.length)) + _SLACK
        cosine, sine = (int(to_fixed(part, places)) for part in mpf_cos_sin_pi(middle, places + _GUARD))
        return Interval(cosine - width, cosine + width, places), Interval(sine - width, sine + width, places)


def logarithm(value: int, places: int, *, up: bool) -> int:
    """-ln(value / 2^places) in units of 2^-places, rounded up or down by a little more than its error."""
    return _negative_log(value, places, places) + (_SLACK if up else -_SLACK)


def _negative_log(value: int, length: int, places: int) -> int:
    """-ln(value / 2^length) in units of 2^-places, within two units."""
    # Loaded when it is needed: it takes a tenth of the server's start.
    from mpmath.libmp import from_man_exp, mpf_log, to_fixed

    return -int(to_fixed(mpf_log(from_man_exp(value, -length), places + _GUARD), places))
