"""Smooth sensitivity: the bound is smooth, the laws keep their epsilon and delta, and known wrong forms do not."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pytest

from mechanisms.samplers.student import rounded_student
from mechanisms.smooth_sensitivity import (
    FLOOR,
    SmoothGaussian,
    SmoothLaplace,
    SmoothStudent,
    quantile_place,
    reached_at_distance,
    smooth_sensitivity,
)
from tests.mechanisms.support import SeededBits

Counts = npt.NDArray[np.int64]
Law = Callable[[Counts], npt.NDArray[np.float64]]

MEDIAN = Fraction(1, 2)
VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "local_sensitivity.json").read_text())
TABLES = [
    np.array([int(digit) for digit in rows], dtype=np.int64)
    for rows in ("00000000", "10000001", "30000004", "90900019", "00900003")
]


def neighbours(counts: Counts) -> Iterator[Counts]:
    """Every table with one row more or less."""
    for place in range(counts.size):
        for change in (1, -1):
            other = counts.copy()
            other[place] += change
            if other[place] >= 0:
                yield other


@pytest.mark.parametrize("fraction", [MEDIAN, Fraction(1, 10), Fraction(19, 20)])
def test_the_bound_is_smooth_and_above_the_local_sensitivity(fraction: Fraction) -> None:
    """Of random tables and all their neighbours; and no distance is missed, the first of them included."""
    source, beta = np.random.default_rng(5), Fraction(1, 5)
    for counts in [*TABLES, *(source.integers(0, 4, 7) * source.integers(0, 2, 7) for _ in range(60))]:
        own = smooth_sensitivity(counts, fraction, beta)
        distances = np.arange(400)
        every = float((reached_at_distance(counts, fraction, distances) * np.exp(-0.2 * distances)).max())
        assert own == pytest.approx(max(every, FLOOR), rel=1e-8)
        for other in neighbours(counts):
            assert own >= abs(quantile_place(counts, fraction) - quantile_place(other, fraction))
            assert own <= math.exp(0.2) * smooth_sensitivity(other, fraction, beta)


def _law(place: int, scale: float, places: int, below: Callable[[float], float]) -> npt.NDArray[np.float64]:
    """The chances of each place, of real noise that is rounded and held to the range."""
    ends = [0.0, *(below((place_end - 0.5 - place) / scale) for place_end in range(1, places)), 1.0]
    return np.diff(ends)


def _student(value: float) -> float:
    return 0.5 + value / (2 * math.sqrt(2 + value * value))


def _laplace(value: float) -> float:
    return math.exp(value) / 2 if value < 0 else 1 - math.exp(-value) / 2


def smooth_law(noise: SmoothStudent | SmoothLaplace | SmoothGaussian, *, rate: float = 1.0, local: bool = False) -> Law:
    """The exact law of an answer; with a rate of two or local sensitivity it is a known wrong form."""
    below = {SmoothStudent: _student, SmoothLaplace: _laplace, SmoothGaussian: NormalDist().cdf}[type(noise)]

    def law(counts: Counts) -> npt.NDArray[np.float64]:
        place = quantile_place(counts, MEDIAN)
        scale = smooth_sensitivity(counts, MEDIAN, noise.beta * Fraction(rate))
        if local:
            scale = max(FLOOR, max(abs(place - quantile_place(other, MEDIAN)) for other in neighbours(counts)))
        return _law(place, scale / float(noise.alpha), counts.size, below)

    return law


def loss_of(law: Law, epsilon: float, tables: list[Counts]) -> float:
    """The greatest delta at that epsilon between neighbours."""
    worst = 0.0
    for counts in tables:
        mine = law(counts)
        for other in neighbours(counts):
            theirs = law(other)
            for one, two in ((mine, theirs), (theirs, mine)):
                worst = max(worst, float(np.maximum(one - math.exp(epsilon) * two, 0).sum()))
    return worst


def far(rows: int, places: int = 64) -> Counts:
    """Rows at both ends, so that the median jumps."""
    counts = np.zeros(places, dtype=np.int64)
    counts[0], counts[-1] = rows, rows
    return counts


FAR = [far(rows) for rows in (1, 4, 20)] + [far(6) + 3 * np.eye(64, dtype=np.int64)[30]]


def test_students_noise_is_pure() -> None:
    """Epsilon holds without a delta, and not with local sensitivity in place of a smooth one."""
    noise = SmoothStudent(epsilon=Fraction(2))
    tables = [*TABLES, *FAR]
    assert loss_of(smooth_law(noise), 2.0, tables) < 1e-12
    assert loss_of(smooth_law(noise, local=True), 2.0, tables) > 0.4


@pytest.mark.parametrize("kind", [SmoothLaplace, SmoothGaussian])
def test_noise_with_a_delta_keeps_it(kind: type[SmoothLaplace] | type[SmoothGaussian]) -> None:
    """Delta holds; with local sensitivity in place of a smooth one it does not, by orders of magnitude."""
    noise = kind(epsilon=Fraction(1), delta=Fraction(1, 10**4))
    tables = [*TABLES, *FAR]
    assert loss_of(smooth_law(noise), 1.0, tables) <= 1e-4
    assert loss_of(smooth_law(noise, local=True), 1.0, tables) > 0.3


def test_a_rate_that_is_too_large_is_refuted() -> None:
    """Beta of two times what the noise may have: the two scales and the slide have more than delta, or epsilon."""
    epsilon, delta = 1.0, 1e-6
    beta = float(SmoothLaplace(epsilon=Fraction(1), delta=Fraction(1, 10**6)).beta)

    def escaped(rate: float) -> float:
        # Of noise that is wider by e^rate and moved by half of epsilon: where the density ratio is above e^epsilon.
        wider = math.exp(rate)
        edge = (epsilon - wider * epsilon / 2 + rate) / (wider - 1)
        return (math.exp(-edge) - math.exp(epsilon - (edge + epsilon / 2) * wider)) / 2

    assert escaped(beta) <= delta
    assert escaped(2 * beta) > 10 * delta
    # Student's noise: far out, densities of two neighbours' scales differ by what growing may cost, and not by more.
    noise = SmoothStudent(epsilon=Fraction(2))
    for rate, holds in ((1, True), (2, False)):
        wider, far_out = math.exp(rate * float(noise.beta)), 10.0**3
        density = (2 + (far_out / wider) ** 2) ** -1.5 / wider / (2 + far_out**2) ** -1.5
        assert (math.log(density) <= 2 * float(noise.beta) + 1e-6) == holds
    with pytest.raises(ValueError, match="too large"):
        SmoothLaplace(epsilon=Fraction(9), delta=Fraction(1, 10**6))


def test_the_errors_of_a_textbook() -> None:
    """Of a mean: removal counts in its sensitivity, and the greatest bound is looked for from distance zero on."""
    known = VECTORS["smooth"]
    n, u, beta = 32_561, 100, known["beta"]

    def greatest(first: int, removed: int) -> float:
        """2 S of a mean of n rows in [0, u]: of added rows alone the sensitivity is u / (m + 1), else u / (m - 1)."""
        return max(2 * math.exp(-beta * k) * u / (n - k + removed) for k in range(first, 2_000))

    assert greatest(0, 1) == pytest.approx(known["seed_2S"], rel=1e-12)
    assert greatest(1, 1) == pytest.approx(known["seed_text_k_from_1"], rel=1e-12)
    assert greatest(0, -1) == pytest.approx(known["bound_u_over_n_minus_1"], rel=1e-12)
    # What is left out is too little in both cases: the local sensitivity of the table itself is more than S from 1 on.
    assert greatest(1, -1) < 2 * u / (n - 1) <= greatest(0, -1)
    counts = far(2)
    local = max(abs(quantile_place(counts, MEDIAN) - quantile_place(other, MEDIAN)) for other in neighbours(counts))
    later = np.arange(1, 400)
    without_zero = float((reached_at_distance(counts, MEDIAN, later) * np.exp(-0.5 * later)).max())
    assert without_zero < local <= smooth_sensitivity(counts, MEDIAN, Fraction(1, 2))


def test_students_sampler_has_the_law() -> None:
    """Frequencies of 40,000 draws against the exact law, and the sign; a scale of a tenth more is told apart."""
    bits, count = SeededBits(31), 40_000
    drawn = np.array([rounded_student(scale=Fraction(3, 2), bits=bits) for _ in range(count)])
    edges = np.arange(-6.5, 7.5)

    def distance(scale: float) -> float:
        cells = np.diff([0.0, *(_student(edge / scale) for edge in edges), 1.0])
        seen = np.histogram(drawn, [-np.inf, *edges, np.inf])[0]
        return float(((seen - count * cells) ** 2 / (count * cells)).sum())

    assert distance(1.5) < 45
    assert distance(1.65) > 90
