"""Propose-test-release of the median of block answers: propose_test_release.md.

An owner proposes by how much one block may move the median. Whether that holds, and how many answers would have to
change before it did not, is tested with noise; only then is the median released, with noise for the proposal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms.measurement import SCALE_BITS, Integers
from mechanisms.randomness import BitSource
from mechanisms.samplers import rounded_laplace
from privacy.events.approximate import ApproximateEvent
from privacy.numbers import dyadic_up

__all__ = ["ProposeTestRelease", "distance_to_instability", "median_place"]

_GRAIN = 2**20
"""Parts of one answer in which noise on a distance is drawn."""


def median_place(answers: Integers) -> int:
    """The median of answers by place: the one that half of the others, rounded down, come before."""
    below = np.cumsum(answers)
    return int(np.searchsorted(below, int(below[-1]) // 2, side="right"))


def distance_to_instability(answers: Integers, width: int) -> int:
    """How many answers have to change until one more change may move the median by more than `width` places.

    Zero where that is so already; the number of answers where no change ever does. Neighbours differ by at most one.
    Shape: answers by place, of a number that is fixed.
    """
    count, places = int(answers.sum()), answers.size
    if width >= places - 1:
        return count
    # In order, with as many at both ends of the range as changes may put there.
    middle = count // 2
    ordered = np.repeat(np.arange(places), answers.astype(np.int64))
    padded = np.concatenate([np.zeros(count + 1, dtype=np.int64), ordered, np.full(count + 1, places - 1)])
    centre = middle + count + 1
    # Of each answer from the middle on, the nearest one before the middle, or at it, that lies too far below.
    upper = padded[centre : centre + count + 1]
    lower = np.searchsorted(padded[: centre + 1], upper - width, side="left") - 1
    # A window of k + 1 steps over the median: k changes empty what is inside.
    steps = np.arange(centre, centre + count + 1) - lower
    possible = lower >= 0
    return min(count, int((steps[possible] - 1).min())) if possible.any() else count


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeTestRelease:
    """The price and the noise of one median of block answers: (epsilon, delta)-DP, its refusal included.

    Half of epsilon tests, the other half releases. `width` is the proposal, in places.
    Errors: ValueError for a proposal below one place, or a delta that is not below a half.
    """

    epsilon: Fraction
    delta: Fraction
    width: int

    def __post_init__(self) -> None:
        if self.width < 1 or not 0 < self.delta < Fraction(1, 2) or self.epsilon <= 0:
            raise ValueError("a proposal has a width of a place or more, and a delta below a half")

    def event(self) -> ApproximateEvent:
        """The price, whichever way the test ends."""
        return ApproximateEvent(epsilon=self.epsilon, delta=self.delta)

    @property
    def threshold(self) -> Fraction:
        """What the noisy distance has to exceed: ln(1 / (2 delta)) over the test's epsilon, rounded up."""
        return Fraction(math.log(1 / (2 * self.delta))) * (1 + Fraction(1, 2**40)) / (self.epsilon / 2)

    def answer(self, answers: Integers, bits: BitSource) -> int | None:
        """The place of the median with noise, before it is held to the range; None where the test does not pass.

        Both noises are drawn in either case.
        """
        scale = dyadic_up(_GRAIN / (self.epsilon / 2), bits=SCALE_BITS)
        tested = int(rounded_laplace(scale=scale, count=1, bits=bits)[0])
        released = int(rounded_laplace(scale=dyadic_up(self.width / (self.epsilon / 2), bits=SCALE_BITS), count=1,
                                       bits=bits)[0])  # fmt: skip
        noisy = distance_to_instability(answers, self.width) * _GRAIN + tested
        if noisy <= math.ceil(self.threshold * _GRAIN):
            return None
        return median_place(answers) + released
