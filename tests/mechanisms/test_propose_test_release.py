"""Propose-test-release: the distance by brute force, the exact law between neighbours, and a wrong form refuted."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from mechanisms.propose_test_release import ProposeTestRelease, distance_to_instability, median_place
from tests.mechanisms.support import SeededBits

Counts = npt.NDArray[np.int64]
VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "local_sensitivity.json").read_text())["ptr"]
PLACES = 5


def changed(counts: Counts) -> Iterator[Counts]:
    """Every table with one answer changed."""
    for gone in np.flatnonzero(counts):
        for place in range(counts.size):
            if place != gone:
                other = counts.copy()
                other[gone] -= 1
                other[place] += 1
                yield other


def moves(counts: Counts) -> int:
    """The local sensitivity of the median."""
    return max(abs(median_place(counts) - median_place(other)) for other in changed(counts))


@pytest.mark.parametrize("blocks", [3, 4])
def test_the_distance_is_that_of_its_definition(blocks: int) -> None:
    """Of every multiset of a few answers, and every width: how many changes until the median may jump further."""
    tables = [np.bincount(one, minlength=PLACES) for one in combinations_with_replacement(range(PLACES), blocks)]
    sensitivity = {tuple(one.tolist()): moves(one) for one in tables}
    for width in range(1, PLACES):
        bad = [np.array(one) for one, moved in sensitivity.items() if moved > width]
        for counts in tables:
            apart = [int(np.abs(counts - other).sum()) // 2 for other in bad]
            assert distance_to_instability(counts, width) == min([blocks, *apart]), (counts, width)


def law(mechanism: ProposeTestRelease, counts: Counts, *, threshold: float, test: float, scale: float) -> list[float]:
    """The chances of a refusal and of each place (held to the range)."""

    def above(value: float) -> float:
        return math.exp(-value * test) / 2 if value > 0 else 1 - math.exp(value * test) / 2

    passed = above(threshold - distance_to_instability(counts, mechanism.width))
    centre = median_place(counts)

    def below(value: float) -> float:
        return math.exp(value / scale) / 2 if value < 0 else 1 - math.exp(-value / scale) / 2

    ends = [0.0, *(below(place - 0.5 - centre) for place in range(1, counts.size)), 1.0]
    return [1 - passed, *(passed * np.diff(ends)).tolist()]


def delta_of(mechanism: ProposeTestRelease, epsilon: float, *, threshold: float, test: float, scale: float) -> float:
    """The greatest delta at this epsilon between any two neighbours among tables of nine answers."""
    worst = 0.0
    for low in range(10):
        for high in range(10 - low):
            counts = np.array([low, 0, 9 - low - high, 0, 0, 0, 0, high])
            mine = law(mechanism, counts, threshold=threshold, test=test, scale=scale)
            for other in changed(counts):
                theirs = law(mechanism, other, threshold=threshold, test=test, scale=scale)
                for one, two in ((mine, theirs), (theirs, mine)):
                    pairs = zip(one, two, strict=True)
                    worst = max(worst, sum(max(0.0, a - math.exp(epsilon) * b) for a, b in pairs))
    return worst


def test_the_law_keeps_epsilon_and_delta() -> None:
    """The right form holds at its price and is nearly attained; a textbook's form is refuted at what it claims."""
    epsilon, delta = 4.0, 1e-3
    right = ProposeTestRelease(epsilon=Fraction(4), delta=Fraction(1, 1000), width=1)
    found = delta_of(right, epsilon, threshold=float(right.threshold), test=2.0, scale=0.5)
    assert 0 < found <= delta
    seeds = delta_of(right, epsilon, threshold=math.log(2 / delta) / (2 * epsilon), test=epsilon, scale=1 / epsilon)
    assert seeds > 10 * delta
    # As if the test had passed: local sensitivity itself as the scale.
    assert delta_of(right, epsilon, threshold=-100.0, test=2.0, scale=0.5) > 0.5


def test_the_figures_of_a_textbook() -> None:
    """A textbook's figures on Adult: threshold, chance of a false pass, and the distance of the mean."""
    epsilon, delta = VECTORS["eps"], VECTORS["delta"]
    seeds = math.log(2 / delta) / (2 * epsilon)
    assert seeds == pytest.approx(VECTORS["threshold_seed"])
    assert math.exp(-epsilon * seeds) / 2 == pytest.approx(VECTORS["false_pass_prob_seed"])
    assert VECTORS["false_pass_prob_seed"] / delta == pytest.approx(11_500, rel=0.01)
    right = ProposeTestRelease(epsilon=Fraction(1), delta=Fraction(delta), width=1)
    assert float(right.threshold) == pytest.approx(VECTORS["threshold_correct_eps_half_each"])
    loss = right.event().loss()
    assert (loss.pure, loss.delta) == (1, Fraction(delta))
    # Of a mean within [0, u]: rows are taken away until a removal, u / (m - 1), moves it by more than b.
    n, u, b = VECTORS["n"], VECTORS["u"], VECTORS["b"]
    assert next(k for k in range(n) if u / (n - k - 1) > b) == VECTORS["D_correct_remove_rows"] < VECTORS["D_seed"]


@pytest.mark.parametrize(("spread", "answered"), [(1, True), (400, False)])
def test_answers_that_agree_are_released(spread: int, answered: bool) -> None:
    """Where blocks agree the median comes out near; where they do not it is refused, and the price is the same."""
    mechanism = ProposeTestRelease(epsilon=Fraction(2), delta=Fraction(1, 10**6), width=3)
    answers, bits = np.bincount(500 + np.arange(256) % spread, minlength=1000), SeededBits(31)
    found = [mechanism.answer(answers, bits) for _ in range(20)]
    assert all((one is not None) == answered for one in found)
    assert not answered or abs(np.median([one for one in found if one is not None]) - 500) < 10


def test_what_is_no_proposal() -> None:
    """A width of nothing, or a delta that says nothing."""
    for width, delta in ((0, Fraction(1, 10**6)), (1, Fraction(1, 2))):
        with pytest.raises(ValueError, match="proposal"):
            ProposeTestRelease(epsilon=Fraction(1), delta=delta, width=width)
