"""Comparisons with a noisy threshold, decided exactly; the noisy threshold never leaves the room.

Both noises are one-sided: a scale times -ln U of a uniform U whose leading bits are drawn, and further ones where a
comparison needs them. A comparison is decided in floats where their error cannot matter, and elsewhere in intervals
that shrink until zero lies outside. Proof: rounding.md, section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.measurement import Integers, narrow
from mechanisms.randomness import BitSource
from mechanisms.samplers.undecided import Magnitude, require_scale

__all__ = ["Comparisons", "NoisyThreshold"]

MARGIN = 2.0**-28
"""Bound on the error of float noise in units of the scales. Tests widen it to force the exact path."""

SHARE = 2.0**-46
"""Bound on the error of the float of a distance, as a part of it."""

_EDGE = 2.0**-18
"""Uniforms this near to 0 or 1 are always compared exactly: their bits are too few for the margin."""

_EXTRA = 64


@dataclass(slots=True, repr=False)
class NoisyThreshold:
    """The noise of a threshold, drawn once: `scale` times a real that is known by its leading bits.

    A secret: whoever knows it sees through every comparison with it. No readable repr.
    """

    scale: Fraction
    noise: Magnitude

    @classmethod
    def drawn(cls, scale: Fraction, bits: BitSource) -> NoisyThreshold:
        """Fresh noise. Errors: ValueError for a scale that is no positive dyadic, or out of range."""
        require_scale(scale)
        return cls(scale, Magnitude(int(bits.words(1)[0]), 64))

    def compare(self, distances: Integers, *, scale: Fraction, bits: BitSource) -> Comparisons:
        """Each distance from the threshold with fresh one-sided noise of `scale`, against the noise of the threshold.

        Requires: `scale` a positive dyadic; integers in one dimension.
        Ensures: the law is that of real noise, exactly; equality has probability zero. Takes a word for each distance,
        and then one more for each refinement. What is learnt of the threshold's noise stays known in later calls.
        Errors: ValueError for another scale.
        """
        require_scale(scale)
        distances = narrow(distances)
        return Comparisons(self, distances, scale, bits)


class Comparisons:
    """Which of some noisy distances lie above the noise of the threshold, and by how much. No readable repr."""

    __slots__ = ("_distances", "_known", "_scale", "_threshold", "_words", "above")

    above: npt.NDArray[np.bool_]
    """The outcome for each distance."""

    def __init__(self, threshold: NoisyThreshold, distances: Integers, scale: Fraction, bits: BitSource) -> None:
        self._threshold = threshold
        self._distances = distances
        self._scale = scale
        self._words = bits.words(distances.size)
        self._known: dict[int, Magnitude] = {}
        self.above = self._decided(bits)

    def gap(self, place: int, bits: BitSource) -> int:
        """The noisy distance less the noise of the threshold, rounded to the nearest integer.

        Ensures: exactly the rounding of the real that was compared; a tie has probability zero.
        """
        while True:
            low, high = self._ends(place)
            if low is not None and high is not None and _rounded(low) == _rounded(high):
                return _rounded(low)
            self._refine(place, bits)

    def _decided(self, bits: BitSource) -> npt.NDArray[np.bool_]:
        noise, scale = self._threshold.noise, self._threshold.scale
        uniform = self._words.astype(np.float64) * 2.0**-64
        known = noise.value / (1 << noise.length)
        plain = self._distances.astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            noisy = plain - float(self._scale) * np.log(uniform) + float(scale) * np.log(np.float64(known))
            error = MARGIN * float(self._scale + scale) + SHARE * np.abs(plain)
            unsure = ~(np.abs(noisy) > error) | (uniform < _EDGE) | (uniform > 1 - _EDGE)
        if not _EDGE <= known <= 1 - _EDGE:
            unsure[:] = True
        above: npt.NDArray[np.bool_] = noisy > 0
        for place in np.flatnonzero(unsure).tolist():
            above[place] = self._exactly(place, bits)
        return above

    def _exactly(self, place: int, bits: BitSource) -> bool:
        """The sign of one comparison, by intervals."""
        while True:
            low, high = self._ends(place)
            if low is not None and low > 0:
                return True
            if high is not None and high < 0:
                return False
            self._refine(place, bits)

    def _refine(self, place: int, bits: BitSource) -> None:
        self._noise(place).refine(bits)
        self._threshold.noise.refine(bits)

    def _noise(self, place: int) -> Magnitude:
        """The noise of one distance, as far as it is known."""
        return self._known.setdefault(place, Magnitude(int(self._words[place]), 64))

    def _ends(self, place: int) -> tuple[Fraction | None, Fraction | None]:
        """Where the noisy distance less the noise of the threshold lies; None where it has no end."""
        own, other = self._noise(place), self._threshold.noise
        places = max(own.length, other.length) + _EXTRA
        plus, minus = own.enclose(places), other.enclose(places)
        start, up, down = (
            int(self._distances[place]),
            self._scale / (1 << places),
            self._threshold.scale / (1 << places),
        )
        low = None if minus.high is None else start + up * plus.low - down * minus.high
        high = None if plus.high is None else start + up * plus.high - down * minus.low
        return low, high


def _rounded(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))
