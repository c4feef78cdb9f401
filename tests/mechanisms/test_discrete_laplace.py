"""Two-sided geometric noise: its law, what it costs, its intervals, and that only pure prices draw it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms.calibrate import Price, at_chosen_norms, calibrate, calibrate_for_half_width
from mechanisms.estimates import estimate_column
from mechanisms.families import NoiseFamily
from mechanisms.measurement import Measurement, narrow
from mechanisms.measurements.discrete_laplace import DiscreteLaplaceMeasurement
from mechanisms.measurements.laplace import LaplaceMeasurement
from mechanisms.noisy_sums import NoisySums, sums_from_plain, sums_to_plain
from mechanisms.samplers import discrete_laplace, rounded_laplace
from mechanisms.weighted_cells import weighted_sums
from privacy.aggregate import AggregateFunction
from privacy.events import LaplaceEvent
from privacy.events.approximate import DiscreteLaplaceEvent
from privacy.statistic import Estimate, Statistic
from tests.mechanisms.support import SeededBits, cells_core, count, moments, plain_sum, scalar_core, units

DRAWS = 200_000
ALARM = 1e-6
"""The chance that a right sampler fails one of these tests."""

COUNT = Estimate("n", AggregateFunction.ROWS, "n", integer=True)


def made(epsilon: object, statistic: Statistic | None = None, *, pure: bool = True) -> Measurement:
    core = scalar_core([statistic or count()], [])
    (one,) = calibrate([core], Price(NoiseFamily.LAPLACE, Fraction(str(epsilon)), Fraction(0), pure)).measurements
    return one


def law(scale: float, reach: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """P(X = k) for k = -reach..reach."""
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1)).astype(float)


@pytest.mark.parametrize("scale", ["1/5", "1/4", "7/8", "1", "5/2", "8"])
def test_the_noise_has_the_law_of_the_proof(scale: str) -> None:
    """A chi-squared test with the exact probabilities, in both ways of drawing; rounded Laplace noise fails it."""
    b = Fraction(math.ceil(Fraction(scale) * 2**40), 2**40)
    reach = max(2, math.ceil(4 * b))
    expected = law(float(b), reach)
    drawn = discrete_laplace(scale=b, count=DRAWS, bits=SeededBits(11))
    twin = rounded_laplace(scale=b, count=DRAWS, bits=SeededBits(12))
    for numbers, holds in ((drawn, True), (twin, False)):
        inside = numbers[np.abs(numbers) <= reach] + reach
        observed = np.append(np.bincount(inside, minlength=2 * reach + 1), DRAWS - inside.size).astype(float)
        shares = np.append(expected, 1 - expected.sum()) * DRAWS
        many = shares > 5
        observed = np.append(observed[many], observed[~many].sum())
        shares = np.append(shares[many], shares[~many].sum())
        p_value = stats.chisquare(observed[shares > 0], shares[shares > 0]).pvalue
        assert p_value > ALARM if holds else p_value < ALARM or b > 2


@pytest.mark.parametrize("epsilon", ["5", "1", "1/3"])
@pytest.mark.parametrize("change", [1, 3])
def test_the_event_is_the_law(epsilon: str, change: int) -> None:
    """The ratio of chances of every outcome is within epsilon, and attains it; no measure of it is too little."""
    b = change / float(Fraction(epsilon))
    event = DiscreteLaplaceEvent(l1_sensitivity=Fraction(change), scale=Fraction(change) / Fraction(epsilon))
    chances = law(b, 60)
    ratios = np.log(chances[:-change] / chances[change:])
    assert float(event.loss().pure or 0) == pytest.approx(np.abs(ratios).max(), rel=1e-9)
    # Twin: the measures of Laplace noise are too little for it.
    laplace = LaplaceEvent(l1_sensitivity=Fraction(change), scale=event.scale).loss()
    assert laplace.mu_squared is not None
    assert event.loss().mu_squared is not None
    if change == 1:
        rarest = 1 / (1 + math.exp(float(Fraction(epsilon))))
        mu = 2 * stats.norm.isf(rarest)
        assert float(event.loss().mu_squared or 0) >= mu**2 * (1 - 1e-9) > float(laplace.mu_squared)


@pytest.mark.parametrize("epsilon", ["0.2", "1", "2", "5", "40"])
def test_errors_are_exact(epsilon: str) -> None:
    """Variance and quantile by summing the law; the quantile is the least that holds."""
    measurement = made(epsilon)
    assert isinstance(measurement, DiscreteLaplaceMeasurement)
    scale = float(measurement.scale)
    reach = math.ceil(60 * scale) + 5
    chances, k = law(scale, reach), np.arange(-reach, reach + 1)
    assert measurement.variance() == pytest.approx(float((chances * k**2).sum()), rel=1e-9)
    for alpha in (0.3, 0.05, 0.0004):
        t = measurement.quantile_single(alpha)
        assert chances[np.abs(k) > t].sum() <= alpha
        assert t == 0 or chances[np.abs(k) > t - 1].sum() > alpha * (1 - 1e-9)
    plain = made(epsilon, pure=False)
    assert isinstance(plain, LaplaceMeasurement)
    ratio = math.sqrt(plain.variance() / measurement.variance())
    assert ratio == pytest.approx(math.sqrt(math.cosh(0.5 / scale)), rel=1e-6)
    assert ratio == pytest.approx({"0.2": 1.0025, "1": 1.062, "2": 1.242, "5": 2.476, "40": 15_574}[epsilon], rel=1e-3)


@pytest.mark.parametrize("epsilon", ["0.2", "1", "3", "6"])
def test_sums_of_cells_are_covered(epsilon: str) -> None:
    """Of one to forty cells, by exact convolution: the interval of a sum misses with at most alpha, to a hundredth."""
    measurement = made(epsilon)
    reach = math.ceil(40 * float(measurement.scale_of_sums)) + 3
    one = law(float(measurement.scale_of_sums), reach)
    several = one
    for cells in range(1, 41):
        if cells > 1:
            several = np.convolve(several, one)
        if cells not in (1, 2, 3, 7, 20, 40):
            continue
        sums = NoisySums(measurement, narrow(np.zeros((cells, 1), dtype=np.int64)), (COUNT,))
        size = np.abs(np.arange(several.size) - several.size // 2)
        for alpha in (0.2, 0.05, 0.001):
            found = weighted_sums(sums, COUNT, np.ones((1, cells)), alpha)
            assert several[size > float(found.reaches[0])].sum() <= alpha * 1.01


def test_intervals_are_whole_and_hold() -> None:
    """Ends of counts are whole numbers, and hold the truth as often as they say (seeded)."""
    measurement = made("1.5")
    noisy = measurement.perturb(narrow(np.full((20_000, 1), 7)), SeededBits(5)).sums
    column = estimate_column(measurement, COUNT, noisy, alpha=0.05)
    lows, highs = np.array(column.lows), np.array(column.highs)
    assert lows.dtype.kind == highs.dtype.kind == "i"
    assert 0.95 - 0.006 < ((lows <= 7) & (highs >= 7)).mean()


def test_only_pure_prices_draw_it() -> None:
    """Counts and units with narrow noise on accounts without delta; nothing else changes its noise."""
    assert made(1, pure=False).name == "laplace"
    assert made(1).name == made(1, units("n")).name == "discrete_laplace"
    assert made("0.1").name == made(1, plain_sum()).name == made(1, moments()).name == "laplace"
    price = Price(NoiseFamily.LAPLACE, Fraction(3, 10), Fraction(0), pure=True)
    core = cells_core([count()], [COUNT], 3)
    calibration = calibrate([core], price)
    assert calibration.family is NoiseFamily.LAPLACE
    assert sum(loss for event in calibration.events() if (loss := event.loss().pure)) <= price.amount
    assert at_chosen_norms(calibration, core) == calibration


def test_a_width_costs_less() -> None:
    """Half a width that noise of this kind keeps is the price: at two rows to either side 0.73 of the plain one."""
    core = scalar_core([count()], [COUNT])
    prices = [
        calibrate_for_half_width([core], Fraction(width), Fraction(95, 100), NoiseFamily.LAPLACE, pure=pure).amount
        for width in (1, 2)
        for pure in (True, False)
    ]
    assert prices[0] < prices[1]
    assert prices[2] < prices[3]
    for amount, width in ((prices[0], 1), (prices[2], 2)):
        assert made(amount).quantile_single(0.05) <= width < made(amount * Fraction(99, 100)).quantile_single(0.05)


def test_stored_releases_keep_their_law() -> None:
    """Laplace noise of before is read as that, and this noise as this."""
    for pure in (True, False):
        one = NoisySums(made(1, pure=pure), narrow(np.array([[5]])), (COUNT,))
        (read,) = sums_from_plain(sums_to_plain([one]))  # type: ignore[arg-type]
        assert read.measurement == one.measurement
