"""Truncated geometric selection: exact laws as fractions, against the optimum of the literature and the claim."""

from __future__ import annotations

import dataclasses
import itertools
import json
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy import stats

from mechanisms.samplers.weighted import WEIGHT_BITS, WeightTable
from mechanisms.truncated_geometric import SUPPORT_MAX, SelectionTable, _Part, selection_table
from tests.mechanisms.support import FALSE_ALARM, ScriptedBits, SeededBits

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "partition_selection.json").read_text())["vectors"]
SINGLE = [vector for vector in VECTORS if vector["kappa"] == 1]
NOISES = json.loads((Path(__file__).parents[1] / "vectors" / "discrete_noise.json").read_text())["discrete_laplace"]

PRICES = [
    (Fraction(1), Fraction(1, 10**5)),
    (Fraction(1, 2), Fraction(1, 10**6)),
    (Fraction(2), Fraction(1, 1000)),
    (Fraction(3, 10), Fraction(1, 5)),
    (Fraction(20), Fraction(1, 10**12)),
    (Fraction(1, 10), Fraction(1, 10**4)),
]


def table_of(vector: dict[str, float]) -> SelectionTable:
    return selection_table(epsilon=Fraction(str(vector["eps"])), delta=Fraction(str(vector["delta"])))


def exponential(epsilon: Fraction) -> Fraction:
    """e^epsilon rounded down, from 60 digits."""
    with mpmath.workdps(60):
        value = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator) * (1 - mpmath.mpf(10) ** -50)
        return Fraction(int(value * mpmath.mpf(10) ** 50), 10**50)


@pytest.mark.parametrize("vector", SINGLE, ids=lambda vector: f"{vector['eps']}-{vector['delta']}")
def test_reaches_the_optimum(vector: dict[str, float]) -> None:
    """The chance to release 1 to 5 units is optimal, and 50, 95 and 99.9 per cent come at the optimal counts."""
    table = table_of(vector)
    chances = [float(table.keep_probability(units)) for units in range(1, 6)]
    assert chances == pytest.approx(vector["opt_pi_1_to_5"], rel=1e-12)
    for level, name in ((Fraction(1, 2), "opt_n50"), (Fraction(95, 100), "opt_n95"), (Fraction(999, 1000), "opt_n999")):
        least = vector[name]
        assert table.keep_probability(least) >= level > table.keep_probability(least - 1)


def output_law(table: SelectionTable, units: int) -> dict[tuple[int, int] | None, Fraction]:
    """The exact law of (drawn threshold, released count), or None for not released; no units: not released."""
    if units == 0:
        return {None: Fraction(1)}
    law: dict[tuple[int, int] | None, Fraction] = {None: Fraction(0)}
    for part in table.parts:
        for x in range(-part.k, part.k + 1):
            outcome = (part.k, units + x) if units + x > part.k else None
            law[outcome] = law.get(outcome, Fraction(0)) + Fraction(part.weights[abs(x)], 1 << WEIGHT_BITS)
    return law


def excess(
    first: dict[tuple[int, int] | None, Fraction], second: dict[tuple[int, int] | None, Fraction], ratio: Fraction
) -> Fraction:
    """The exact hockey-stick divergence: the least delta for which first <= ratio second + delta."""
    return sum(
        (max(Fraction(0), p - ratio * second.get(outcome, Fraction(0))) for outcome, p in first.items()), Fraction(0)
    )


@pytest.mark.sparse(3)
@pytest.mark.parametrize(("epsilon", "delta"), PRICES, ids=str)
def test_neighbours_by_enumeration(epsilon: Fraction, delta: Fraction) -> None:
    """For n and n+1 units, "not released" included, both exact laws are within e^epsilon and delta of each other."""
    table = selection_table(epsilon=epsilon, delta=delta)
    ratio = exponential(epsilon)
    laws = [output_law(table, units) for units in range(2 * table.threshold + 4)]
    for fewer, more in itertools.pairwise(laws):
        assert sum(fewer.values()) == 1
        assert excess(more, fewer, ratio) <= delta
        assert excess(fewer, more, ratio) <= delta


def test_the_enumeration_sees_a_threshold_one_too_low() -> None:
    """The planted bug: releasing counts at the threshold itself breaks delta."""
    epsilon, delta = PRICES[0]
    table = selection_table(epsilon=epsilon, delta=delta)

    def low(units: int) -> dict[tuple[int, int] | None, Fraction]:
        law: dict[tuple[int, int] | None, Fraction] = {None: Fraction(0)}
        for part in table.parts:
            for x in range(-part.k, part.k + 1):
                outcome = (part.k, units + x) if units + x >= part.k else None
                law[outcome] = law.get(outcome, Fraction(0)) + Fraction(part.weights[abs(x)], 1 << WEIGHT_BITS)
        return law

    assert excess(low(1), output_law(table, 0), exponential(epsilon)) > delta


def test_one_unit_is_released_with_delta_and_no_more() -> None:
    """One group per unit: the exact chance of a singleton is at most delta, and nearly all of it is used."""
    for epsilon, delta in PRICES:
        chance = selection_table(epsilon=epsilon, delta=delta).keep_probability(1)
        assert chance <= delta
    table = selection_table(epsilon=Fraction(1), delta=Fraction(1, 10**6))
    assert table.keep_probability(1) > Fraction(999999, 10**12)
    assert table.keep_probability(0) == 0


@pytest.mark.parametrize(("epsilon", "delta"), PRICES, ids=str)
def test_more_units_are_released_more_often(epsilon: Fraction, delta: Fraction) -> None:
    """The chance never falls with the number of units, and reaches one."""
    table = selection_table(epsilon=epsilon, delta=delta)
    chances = [table.keep_probability(units) for units in range(2 * table.threshold + 3)]
    assert chances == sorted(chances)
    assert chances[-1] == 1


@pytest.mark.parametrize("bug", ["ratio", "tail", "total", "zero"])
def test_a_wrong_table_is_refused(bug: str) -> None:
    """Weights that break the claim in any way cannot become a table."""
    good = selection_table(epsilon=Fraction(1), delta=Fraction(1, 10**5))
    part = good.parts[-1]
    weights = list(part.weights)
    delta = good.delta
    if bug == "ratio":  # one weight at the flank moves by one per mille
        weights[3] += weights[3] // 1000
        weights[0] -= 2 * (weights[3] - part.weights[3])
    elif bug == "tail":
        delta = delta * Fraction(999, 1000)
    elif bug == "total":
        weights[0] += 1
    parts = (*good.parts[:-1], _Part(tuple(weights)))
    if bug == "zero":
        parts = (_Part((1 << WEIGHT_BITS,)),)
    with pytest.raises(AssertionError):
        dataclasses.replace(good, parts=parts, delta=delta)


def test_draws_follow_the_table() -> None:
    """400,000 draws of noise and threshold against the exact probabilities (chi-square, false alarm 1e-9), and a
    planted shift of the noise by one is caught."""
    table = selection_table(epsilon=Fraction(1, 2), delta=Fraction(1, 10**5))
    noise, threshold = table.draw(400_000, SeededBits(31))
    support = range(-table.threshold, table.threshold + 1)

    def chance(values: np.ndarray) -> float:
        expected = np.array([float(table.probability(x)) for x in support]) * noise.size
        observed = np.array([(values == x).sum() for x in support], dtype=float)
        small = expected < 50
        result: float = stats.chisquare(
            np.append(observed[~small], observed[small].sum()), np.append(expected[~small], expected[small].sum())
        ).pvalue
        return result

    assert chance(noise) > FALSE_ALARM
    assert chance(np.clip(noise + 1, -table.threshold, table.threshold)) < FALSE_ALARM
    for part in table.parts:
        share = (part.weights[0] + 2 * sum(part.weights[1:])) / (1 << WEIGHT_BITS)
        assert (threshold == part.k).mean() == pytest.approx(share, abs=7 * (share * (1 - share) / noise.size) ** 0.5)
        assert (np.abs(noise[threshold == part.k]) <= part.k).all()


def test_ties_are_finished_with_further_bits() -> None:
    """A leading word equal to that of a bound is decided by all 192 bits, on both sides of the bound."""
    leading = 2**63
    table = WeightTable((leading << 128 | 5 << 64, (1 << WEIGHT_BITS) - (leading << 128 | 5 << 64)))
    word = np.array([leading], dtype=np.uint64)
    assert table.draw(1, ScriptedBits(word, then=4)).tolist() == [0]
    assert table.draw(1, ScriptedBits(word, then=5)).tolist() == [1]
    assert table.draw(1, ScriptedBits(word, then=6)).tolist() == [1]
    assert table.draw(1, ScriptedBits(word - np.uint64(1))).tolist() == [0]
    assert table.draw(1, ScriptedBits(word + np.uint64(1))).tolist() == [1]


def test_enumeration_of_a_small_table() -> None:
    """Every leading byte of a table of sixteenths gives its entry: exact, no statistics."""
    sixteenths = (3, 1, 7, 5)
    table = WeightTable(tuple(part << (WEIGHT_BITS - 4) for part in sixteenths))
    words = np.arange(256, dtype=np.uint64) << np.uint64(56)
    drawn = table.draw(256, ScriptedBits(words, then=0))
    assert [16 * part for part in sixteenths] == np.bincount(drawn).tolist()


@pytest.mark.parametrize("vector", NOISES, ids=lambda vector: vector["scale"])
def test_variance_is_that_of_the_geometric(vector: dict[str, str]) -> None:
    """The variance of the noise is the discrete Laplace's of the vectors, up to truncation at delta 1e-12."""
    epsilon = 1 / Fraction(vector["scale"])
    table = selection_table(epsilon=epsilon, delta=Fraction(1, 10**12))
    assert table.variance() == pytest.approx(float(vector["variance"]), rel=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (Fraction(0), Fraction(1, 10)),
        (Fraction(-1), Fraction(1, 10)),
        (Fraction(1), Fraction(0)),
        (Fraction(1), Fraction(1)),
        (Fraction(1, 10**6), Fraction(1, 10**7)),
        (Fraction(1, 10**25), Fraction(1, 10**7)),
        (Fraction(1), Fraction(1, 10**60)),
    ],
    ids=str,
)
def test_prices_without_a_table_are_refused(epsilon: Fraction, delta: Fraction) -> None:
    """Zero, negative and vanishing amounts get one clear ValueError, quickly."""
    with pytest.raises(ValueError, match=r"partition selection|delta"):
        selection_table(epsilon=epsilon, delta=delta)


def test_a_huge_epsilon_gives_nearly_no_noise() -> None:
    """At epsilon 10^6 two units are released and counted right, except with probability below 1e-16."""
    table = selection_table(epsilon=Fraction(10**6), delta=Fraction(1, 10**7))
    assert table.probability(0) > 1 - Fraction(1, 10**16)
    assert table.keep_probability(2) > 1 - Fraction(1, 10**16)
    assert table.threshold <= SUPPORT_MAX


def test_quantile_is_exact() -> None:
    """The quantile is the least t whose outside has at most alpha."""
    table = selection_table(epsilon=Fraction(1, 2), delta=Fraction(1, 10**5))
    for alpha in (0.5, 0.05, 0.001):
        t = table.quantile(alpha)
        outside = [sum(table.probability(x) for x in range(-60, 61) if abs(x) > u) for u in (t - 1, t)]
        assert outside[1] <= Fraction(alpha) < outside[0]
