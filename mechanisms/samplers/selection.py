"""Selections: the greatest of integer scores with real noise on each, found exactly. No noisy score leaves this module.

One word of 64 bits for each score gives the leading bits of a real uniform U; E = -ln U is standard exponential, and
-ln E standard Gumbel. Noisy scores are compared in floats where the error cannot matter, and elsewhere in intervals
that shrink until one of them lies above all others. Proof: rounding.md.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.measurement import Integers, narrow
from mechanisms.randomness import BitSource, Words
from mechanisms.samplers.undecided import Magnitude, logarithm, require_scale

__all__ = ["Race", "best"]

MARGIN = 2.0**-28
"""Bound on the error of float noise in units of the scale. Tests widen it to force the exact path."""

SHARE = 2.0**-46
"""Bound on the error of the float of a score, as a part of it."""

_EDGE = 2.0**-18
"""Uniforms this near to 0 or 1 are always compared exactly: their bits are too few for the margin."""

_EXTRA = 64


class Race(enum.Enum):
    """The law of the noise on each score."""

    EXPONENTIAL = "exponential"
    """One-sided, of mean 1."""

    GUMBEL = "gumbel"
    """Standard: the greatest of scores with it is drawn by the exponential mechanism."""


def best(scores: Integers, *, count: int, scale: Fraction, race: Race, bits: BitSource) -> list[int]:
    """The places of the `count` greatest of the scores plus `scale` times independent noise, the greatest first.

    Requires: `scale` a positive dyadic, at most 2^45; integers in one dimension, at least `count` of them.
    Ensures: the law is that of real noise, exactly; two noisy scores are equal with probability zero. Takes one word
    for each score first, and then one more for each refinement.
    Errors: ValueError for another scale.
    """
    require_scale(scale)
    assert 1 <= count <= scores.size
    noisy = _Field(narrow(scores), bits.words(scores.size), scale, race)
    return [noisy.winner(bits) for _ in range(count)]


@dataclass(slots=True, repr=False)
class _Field:
    """The noisy scores that are still in the race, enclosed in floats; those that were refined, as they are known.

    Has no readable repr: the scores are true ones.
    """

    scores: Integers
    words: Words
    scale: Fraction
    race: Race
    _low: npt.NDArray[np.float64] = field(init=False)
    _high: npt.NDArray[np.float64] = field(init=False)
    _known: dict[int, Magnitude] = field(init=False, default_factory=dict)
    _most: int = field(init=False)

    def __post_init__(self) -> None:
        self._most = int(self.scores.max())
        places = (self.scores - self._most).astype(np.float64) / float(self.scale)
        uniform = self.words.astype(np.float64) * 2.0**-64
        with np.errstate(divide="ignore", invalid="ignore"):
            noise = -np.log(uniform)
            if self.race is Race.GUMBEL:
                noise = -np.log(noise)
        error = MARGIN - SHARE * places
        self._low, self._high = places + noise - error, places + noise + error
        unsure = (uniform < _EDGE) | (uniform > 1 - _EDGE)
        self._low[unsure], self._high[unsure] = -np.inf, np.inf

    def winner(self, bits: BitSource) -> int:
        """The place of the greatest noisy score, which leaves the race."""
        # A maximum is found without branches on what the numbers are, which the place of a maximum is not.
        near = [int(place) for place in np.flatnonzero(self._high >= self._low.max())]
        found = near[0] if len(near) == 1 else self._exactly(near, bits)
        self._low[found] = self._high[found] = -np.inf
        return found

    def _exactly(self, near: list[int], bits: BitSource) -> int:
        """The greatest of a few noisy scores, by intervals."""
        near = [place for place in near if self._high[place] > -np.inf]  # without those that left the race
        for place in near:
            self._known.setdefault(place, Magnitude(int(self.words[place]), 64))
        while True:
            ends = {place: self._ends(place) for place in near}
            lows = {place: low for place, (low, _) in ends.items() if low is not None}
            leader = max(lows, key=lambda place: lows[place], default=None)
            if leader is not None:
                least = lows[leader]
                near = [p for p in near if p == leader or ends[p][1] is None or _at_least(ends[p][1], least)]
                if len(near) == 1:
                    return leader
            for place in near:
                self._known[place].refine(bits)

    def _ends(self, place: int) -> tuple[Fraction | None, Fraction | None]:
        """Where the noisy score lies, counted from the greatest score; None where it has no end."""
        magnitude = self._known[place]
        places = magnitude.length + _EXTRA
        inside = magnitude.enclose(places)
        low: int | None = inside.low
        high = inside.high
        if self.race is Race.GUMBEL:
            low, high = (
                None if high is None else logarithm(high, places, up=False),
                None if inside.low == 0 else logarithm(inside.low, places, up=True),
            )
        start, unit = int(self.scores[place]) - self._most, self.scale / (1 << places)
        return None if low is None else start + low * unit, None if high is None else start + high * unit


def _at_least(value: Fraction | None, other: Fraction) -> bool:
    return value is None or value >= other
