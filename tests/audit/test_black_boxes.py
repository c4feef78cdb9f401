"""Black boxes: what each measurement draws on two neighbours is within its price, and with too little noise it is not.

Nothing is known of a measurement here but its price and what it draws. Grey boxes are in the other files of this
folder, laws in tests/mechanisms; docs/mechanisms.md has all three for each mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pytest

from mechanisms.calibrate import Price, calibrate
from mechanisms.families import MEASUREMENTS, NoiseFamily
from mechanisms.gateway import perturb
from mechanisms.measurement import Measurement, Perturbed
from mechanisms.measurements.gaussian_combined import CombinedGaussian
from mechanisms.randomness import SystemBits
from privacy.rank_tree import Drawn, QuantileMechanism
from privacy.statistic import CoreStatistics, Statistic
from tests.mechanisms.support import FALSE_ALARM, cells_core, count, moments, scalar_core, selected_core, two_averages
from tests.mechanisms.test_choices import chosen_core
from tests.mechanisms.test_consistency import counted
from tests.mechanisms.test_drawn_ranks import core_of as ranks_core
from tests.mechanisms.test_weighted_threshold import WHOLE, weighted_core

LAPLACE, GAUSSIAN = NoiseFamily.LAPLACE, NoiseFamily.GAUSSIAN
BLOCKS = 5
MANY, FEW = 40_000, 2_000
BITS = SystemBits()
Outcomes = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Box:
    """A measurement, one with too little noise for that price, and what either draws on each of two neighbours."""

    made: Measurement
    wrong: Measurement
    draw: Callable[[Measurement, int], Outcomes]


def made_for(
    core: CoreStatistics, family: NoiseFamily, amount: int = 1, delta: str = "0", *, pure: bool = False
) -> Measurement:
    """The only measurement of a core at a price."""
    (found,) = calibrate([core], Price(family, Fraction(amount), Fraction(delta), pure)).measurements
    return found


def shown(drawn: Perturbed) -> Outcomes:
    """Noisy counts, minus infinity where a group is not shown."""
    values = drawn.sums[:, 0].astype(np.float64)
    return values if drawn.kept is None else np.where(drawn.kept, values, -np.inf)


def of_cells(low: int, change: int) -> Callable[[Measurement, int], Outcomes]:
    """A draw for each of many cells, one unit more in each of the second; without units no group occurs."""

    def draw(made: Measurement, side: int) -> Outcomes:
        if low == side == 0 and made.selects:
            return np.full(MANY, -np.inf)
        return shown(perturb(made, np.full((MANY, 1), low + side * change), BITS))

    return draw


def of_moments(made: Measurement, side: int) -> Outcomes:
    """One row more in the middle of its range, in the direction in which its vector is told from noise best."""
    width = 100
    row = np.array([width**2 // 4, width**2 // 2, width**2 // 4])
    noisy = perturb(made, np.tile(50 * row + side * row, (MANY, 1)), BITS).sums
    found: Outcomes = noisy @ np.array([1.0, 7.0, 1.0])
    return found


def of_pairs(made: Measurement, side: int) -> Outcomes:
    """One row more with both values at an end, in the direction in which it is told from noise best."""
    row = np.array([0, 0, 0, made.statistic.row_units])
    noisy = perturb(made, np.tile(50 * row + side * row, (MANY, 1)), BITS).sums.astype(np.float64)
    forms = noisy @ np.array([[1, -1, -1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, 1, 1, 1]])
    found: Outcomes = forms @ np.array([52.0, 37.0, 37.0, 2.0])
    return found


def of_rows(made: Measurement, side: int) -> Outcomes:
    """The noisy rows of a group of one unit, at an end of its values, that nobody else is in; if it is shown."""
    if not side:
        return np.full(MANY, -np.inf)
    row = [made.statistic.row_units] + [0] * (made.statistic.coordinates - 1)
    drawn = perturb(made, np.tile(np.array([row]), (MANY, 1)), BITS)
    assert drawn.kept is not None
    return np.where(drawn.kept, drawn.sums.sum(axis=1).astype(np.float64), -np.inf)


def selected_by_rows(statistic: Statistic | None = None) -> CoreStatistics:
    """A core whose groups are selected by the rows of its moments."""
    core, own = selected_core(), moments(degree=1) if statistic is None else statistic
    return replace(core, keys=replace(core.keys, selection=own.name), statistics=(own,), estimates=())


def chosen(made: Measurement, side: int) -> Outcomes:
    """Which of ten cells is chosen, where the first is before all others by nothing or by one."""
    scores = np.array([[side]] + [[0]] * 9)
    return np.array([(perturb(made, scores, BITS).chosen or (0,))[0] for _ in range(FEW)], dtype=np.float64)


def of_levels(made: Measurement, side: int) -> Outcomes:
    """The first of fifty by four cells, after it was made consistent; each coordinate is measured by itself."""
    exact = np.zeros((200, 4_000), dtype=np.int64)
    exact[0] += side
    found: Outcomes = made.perturb(exact, BITS).sums[0].astype(np.float64)
    return found


def median(method: QuantileMechanism) -> CoreStatistics:
    """A core whose median of 32 places is drawn in this way."""
    core = ranks_core(31, finer=1)
    (statistic,), estimates = core.statistics, core.estimates[:1]
    assert statistic.tree is not None
    blocks = BLOCKS if method is QuantileMechanism.SAMPLE_AND_AGGREGATE else 0
    drawn = Drawn((Fraction(1, 2),), (), 1, method, blocks)
    statistic = replace(statistic, drawn=drawn, coordinates=statistic.tree.nodes + 1)
    return replace(core, statistics=(statistic,), estimates=estimates)


def of_ranks(made: Measurement, side: int) -> Outcomes:
    """The place that is drawn of three rows at each end and one more, or where one block of five changes its answer."""
    statistic = made.statistic
    assert statistic.tree is not None
    assert statistic.drawn is not None
    exact = np.zeros(statistic.summed, dtype=np.int64)
    ends = exact[-statistic.places :]
    blocks = statistic.drawn.blocks
    ends[0], ends[31] = (blocks // 2 + side, (blocks + 1) // 2 - side) if blocks else (3 + side, 3)
    if not blocks:
        ends *= statistic.tree.worth
    return perturb(made, np.tile(exact, (FEW, 1)), BITS).sums[:, -1].astype(np.float64)


def claims(made: Measurement) -> list[tuple[float, float]]:
    """What the price of a measurement promises: pairs of epsilon and delta."""
    loss = made.event().loss()
    if loss.pure is not None:
        return [(float(loss.pure), float(loss.delta))]
    assert loss.mu_squared is not None
    mu, law = math.sqrt(loss.mu_squared), NormalDist()
    return [
        (
            epsilon,
            law.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * law.cdf(-mu / 2 - epsilon / mu) + float(loss.delta),
        )
        for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0)
    ]


def refuted(made: Measurement, one: Outcomes, two: Outcomes) -> bool:
    """Whether outcomes on two neighbours cannot be those of the price: some interval of them is too frequent on one.

    All frequencies of intervals to one side are within a radius of their chances, of both neighbours, except once in
    1 / FALSE_ALARM times (Dvoretzky, Kiefer and Wolfowitz 1956; Massart 1990).
    """
    radius = math.sqrt(math.log(4 / FALSE_ALARM) / 2 / one.size)
    ends = np.unique(np.concatenate([one, two]))
    below = [np.searchsorted(np.sort(side), ends, side="right") / side.size for side in (one, two)]
    return any(
        bool(np.any(often - radius - math.exp(epsilon) * (rarely + radius) > delta))
        for first, second in (below, below[::-1])
        for often, rarely in ((first, second), (1 - first, 1 - second))
        for epsilon, delta in claims(made)
    )


def boxes() -> dict[str, Callable[[], Box]]:
    """One for each kind of measurement, by its name."""

    def noise(made: Measurement, draw: Callable[[Measurement, int], Outcomes], field: str, times: Fraction) -> Box:
        changed = {field: getattr(made, field) * times}
        return Box(made, replace(made, **changed), draw)

    def counts() -> CoreStatistics:
        return cells_core([count()], [], 1)

    less, more = Fraction(1, 4), Fraction(16)
    table = counted((50, 4), (0, 1), (0,), ())
    ways = QuantileMechanism
    smooth, sampled, plain = ways.SMOOTH, ways.SAMPLE_AND_AGGREGATE, ways.EXPONENTIAL
    hidden = of_cells(0, 1)
    weight = of_cells(0, WHOLE)
    a_row = of_rows
    return {
        "laplace": lambda: noise(made_for(counts(), LAPLACE), of_cells(50, 1), "scale", less),
        "discrete_laplace": lambda: noise(made_for(counts(), LAPLACE, pure=True), of_cells(50, 1), "scale", less),
        "gaussian": lambda: noise(made_for(counts(), GAUSSIAN), of_cells(50, 1), "sigma", less),
        "gaussian_moments": lambda: noise(made_for(scalar_core([moments()], []), GAUSSIAN), of_moments, "sigma", less),
        "gaussian_pairs": lambda: noise(made_for(scalar_core([two_averages()], []), GAUSSIAN), of_pairs, "sigma", less),
        "truncated_geometric": lambda: noise(
            made_for(selected_core(), LAPLACE, delta="0.02"), of_cells(50, 1), "epsilon", 1 / less
        ),
        "truncated_geometric, alone": lambda: noise(
            made_for(selected_core(), LAPLACE, delta="0.02"), hidden, "delta", more
        ),
        "gaussian_threshold": lambda: noise(
            made_for(selected_core(), GAUSSIAN, delta="0.02"), of_cells(50, 1), "sigma", less
        ),
        "gaussian_threshold, alone": lambda: noise(
            made_for(selected_core(), GAUSSIAN, delta="0.02"), hidden, "delta", more
        ),
        "gaussian_moments_threshold": lambda: noise(
            made_for(selected_by_rows(), GAUSSIAN, delta="0.02"), a_row, "delta", more
        ),
        "laplace_moments_threshold": lambda: noise(
            made_for(selected_by_rows(), LAPLACE, delta="0.02"), a_row, "delta", more
        ),
        "gaussian_pairs_threshold": lambda: noise(
            made_for(selected_by_rows(two_averages()), GAUSSIAN, delta="0.02"), a_row, "delta", more
        ),
        "weighted_threshold": lambda: noise(made_for(weighted_core(4), GAUSSIAN, delta="0.02"), weight, "delta", more),
        "exponential_mechanism": lambda: noise(
            made_for(chosen_core("abcdefghij"), GAUSSIAN), chosen, "scale", less / 2
        ),
        "permute_and_flip": lambda: noise(made_for(chosen_core("abcdefghij"), LAPLACE), chosen, "scale", less / 2),
        "laplace_levels": lambda: noise(made_for(table, LAPLACE), of_levels, "scale", less),
        "gaussian_levels": lambda: noise(made_for(table, GAUSSIAN), of_levels, "sigma", less),
        "laplace_ranks": lambda: noise(made_for(median(plain), LAPLACE), of_ranks, "greatest", more),
        "gaussian_ranks": lambda: noise(made_for(median(plain), GAUSSIAN), of_ranks, "greatest", more),
        "laplace_smooth": lambda: noise(made_for(median(smooth), LAPLACE), of_ranks, "epsilon", more),
        "gaussian_smooth": lambda: noise(made_for(median(smooth), GAUSSIAN), of_ranks, "epsilon", more),
        "laplace_blocks": lambda: noise(made_for(median(sampled), LAPLACE), of_ranks, "greatest", more),
        "gaussian_blocks": lambda: noise(made_for(median(sampled), GAUSSIAN), of_ranks, "greatest", more),
    }


SLOWER = {
    "gaussian_levels",
    "laplace_levels",
    "gaussian_ranks",
    "laplace_smooth",
    "gaussian_smooth",
    "laplace_blocks",
    "gaussian_blocks",
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOWER)) for name in boxes()])
def test_what_is_drawn_is_within_the_price(name: str) -> None:
    """Shows it of the measurement, and refutes one with too little noise at the same price."""
    box = boxes()[name]()
    assert name.split(",")[0] == box.made.name
    assert not refuted(box.made, box.draw(box.made, 0), box.draw(box.made, 1))
    assert refuted(box.made, box.draw(box.wrong, 0), box.draw(box.wrong, 1))


def test_every_kind_of_measurement_has_a_box() -> None:
    """Shows that a kind that is added is audited as well. Means of releases are never drawn (test_combined.py)."""
    assert {name.split(",")[0] for name in boxes()} == set(MEASUREMENTS) - {CombinedGaussian.name}
