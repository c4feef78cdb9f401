"""Samplers against their distributions, in both directions, with planted bugs that must be caught.

All seeds are fixed; had they been drawn at random, right code would be red with probability 1e-9 per test. With
400,000 draws the most powerful scale tests see an error of two per cent with near certainty.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mechanisms.randomness import BitSource
from mechanisms.samplers import gaussian, laplace, rounded_gaussian, rounded_laplace
from tests.mechanisms.support import FALSE_ALARM, SeededBits

Draws = np.ndarray[Any, Any]
Sampler = Callable[[Fraction, int, BitSource], Draws]

COUNT = 400_000


def draw_laplace(scale: Fraction, count: int, bits: BitSource) -> Draws:
    return rounded_laplace(scale=scale, count=count, bits=bits)


def draw_gaussian(scale: Fraction, count: int, bits: BitSource) -> Draws:
    return rounded_gaussian(sigma=scale, count=count, bits=bits)


def laplace_cdf(x: Draws) -> Draws:
    return np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)


FAMILIES: dict[str, tuple[Sampler, Callable[[Draws], Draws]]] = {
    "laplace": (draw_laplace, laplace_cdf),
    "gaussian": (draw_gaussian, stats.norm.cdf),
}


def scale_chances(family: str, scale: Fraction, drawn: Draws) -> tuple[float, float]:
    """Chances of as little and of as much noise under the claim: the most powerful tests for a wrong scale."""
    x = drawn / float(scale)
    if family == "laplace":
        statistic, freedom = 2 * np.abs(x).sum(), 2 * x.size
    else:
        statistic, freedom = (x**2).sum(), x.size
    return float(stats.chi2.cdf(statistic, freedom)), float(stats.chi2.sf(statistic, freedom))


def shape_chance(family: str, scale: Fraction, drawn: Draws) -> float:
    """Chance of a worse chi-square against the rounded distribution, in cells of at least 50 expected draws."""
    cdf = FAMILIES[family][1]
    reach = int(np.ceil(float(scale) * (12 if family == "laplace" else 5))) + 1
    step = max(1, int(float(scale) / 8))
    # Cells end at whole numbers plus a half, where rounding cuts; zero is a cell of its own.
    positive = np.arange(0, reach, step) + 0.5
    ends = np.concatenate([-positive[::-1], positive])
    expected = np.diff(np.concatenate([[0.0], cdf(ends / float(scale)), [1.0]])) * drawn.size
    observed = np.histogram(drawn, np.concatenate([[-np.inf], ends, [np.inf]]))[0].astype(float)
    order = np.argsort(expected)
    small = order[np.cumsum(expected[order]) < 50]
    small = order[: small.size + 1]
    rest = np.setdiff1d(order, small)
    observed = np.append(observed[rest], observed[small].sum())
    expected = np.append(expected[rest], expected[small].sum())
    chance: float = stats.chisquare(observed, expected).pvalue
    return chance


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scale", [Fraction(2**12), Fraction(12345, 2), Fraction(2**20)], ids=str)
def test_scale_in_both_directions(family: str, scale: Fraction) -> None:
    """There is neither too little noise (privacy) nor too much (use)."""
    drawn = FAMILIES[family][0](scale, COUNT, SeededBits(21))
    low, high = scale_chances(family, scale, drawn)
    assert low > FALSE_ALARM
    assert high > FALSE_ALARM


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("factor", "side"), [(0.9, 0), (0.98, 0), (1.02, 1), (1.1, 1)])
def test_a_wrong_scale_is_caught(family: str, factor: float, side: int) -> None:
    """The planted bug: noise of 0.9, 0.98, 1.02 and 1.1 times the scale, each caught on its own side."""
    scale = Fraction(2**12)
    wrong = Fraction(int(2**12 * factor * 2**10), 2**10)
    drawn = FAMILIES[family][0](wrong, COUNT, SeededBits(22))
    assert scale_chances(family, scale, drawn)[side] < FALSE_ALARM


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(1), Fraction(7, 2), Fraction(10), Fraction(1000)], ids=str)
def test_shape(family: str, scale: Fraction) -> None:
    """Every integer has the probability of its rounding interval, from scales below one to a thousand."""
    drawn = FAMILIES[family][0](scale, COUNT, SeededBits(23))
    assert shape_chance(family, scale, drawn) > FALSE_ALARM


BUGS: dict[str, Callable[[Sampler, Fraction, int], Draws]] = {
    "scale 0.9": lambda draw, scale, count: draw(scale * Fraction(115, 128), count, SeededBits(24)),
    "truncated, not rounded": lambda draw, scale, count: np.trunc(draw(scale * 2**20, count, SeededBits(24)) / 2**20),
    "sign bias": lambda draw, scale, count: np.where(
        SeededBits(25).words(count) < 2**64 // 50,
        np.abs(draw(scale, count, SeededBits(24))),
        draw(scale, count, SeededBits(24)),
    ),
    "coarse uniforms": lambda draw, scale, count: np.rint(
        np.copysign(
            -float(scale) * np.log(((SeededBits(24).words(count) >> np.uint64(56)).astype(float) + 0.5) / 256),
            draw(scale, count, SeededBits(26)) + 0.1,
        )
    ),
    "no zeros": lambda draw, scale, count: (
        (x := draw(scale, count, SeededBits(24))) + np.where((x == 0) & (SeededBits(25).words(count) < 2**63), 1, 0)
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("bug", BUGS)
def test_a_wrong_shape_is_caught(family: str, bug: str) -> None:
    """Each planted bug of the shape is caught at scale 7/2."""
    scale = Fraction(7, 2)
    drawn = BUGS[bug](FAMILIES[family][0], scale, COUNT)
    assert shape_chance(family, scale, drawn) < FALSE_ALARM


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.slow
def test_shape_when_the_exact_path_is_forced(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a margin so wide that about two draws in five are finished exactly, the shape is the same."""
    scale = Fraction(7, 2)
    monkeypatch.setattr(laplace, "MARGIN", 0.2 / float(scale))
    monkeypatch.setattr(gaussian, "MARGIN", 0.1 / float(scale))
    exact = {"laplace": 0, "gaussian": 0}

    for module, name in ((laplace, "laplace"), (gaussian, "gaussian")):
        real = module._exact

        def counting(*arguments: Any, real: Any = real, name: str = name) -> Any:
            exact[name] += 1
            return real(*arguments)

        monkeypatch.setattr(module, "_exact", counting)
    count = 60_000
    drawn = FAMILIES[family][0](scale, count, SeededBits(27))
    finished = exact[family] * (2 if family == "gaussian" else 1) / count
    assert 0.3 < finished < 0.5
    assert shape_chance(family, scale, drawn) > FALSE_ALARM


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lag", ["neighbour", "half", "block"])
def test_draws_are_independent(family: str, lag: str) -> None:
    """Neighbours, the two normals of one pair and the same place in two blocks: independent, by magnitude and sign."""
    drawn = FAMILIES[family][0](Fraction(2**12), COUNT, SeededBits(28))
    shift = {"neighbour": 1, "half": COUNT // 2, "block": laplace.BLOCK}[lag]
    assert dependence_chance(drawn[:-shift], drawn[shift:]) > FALSE_ALARM


def dependence_chance(left: Draws, right: Draws) -> float:
    """Chance of a worse contingency table of octiles."""
    cuts = np.quantile(left, np.linspace(0, 1, 9)[1:-1])
    table = np.histogram2d(np.digitize(left, cuts), np.digitize(right, cuts), bins=[np.arange(9), np.arange(9)])[0]
    chance: float = stats.chi2_contingency(table).pvalue
    return chance


def test_dependence_is_caught() -> None:
    """The planted bug: one draw in fifty repeats its neighbour's magnitude."""
    drawn = draw_laplace(Fraction(2**12), COUNT, SeededBits(28))
    right = np.where(SeededBits(29).words(COUNT) < 2**64 // 50, np.abs(drawn), np.roll(drawn, 1))
    assert dependence_chance(drawn, right) < FALSE_ALARM
