"""The weighted threshold: a unit's own groups stay hidden except with delta, however many groups it has."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from mechanisms import weighted_threshold as module
from mechanisms.calibrate import Calibration, at_chosen_norms, calibrate
from mechanisms.families import NoiseFamily, Price
from mechanisms.gateway import perturb
from mechanisms.measurement import root_up
from mechanisms.measurements.weighted_threshold import WeightedThresholdMeasurement
from mechanisms.release import release
from mechanisms.weighted_threshold import weight, weighted_threshold
from privacy.policy import ColumnType
from privacy.statistic import CoreStatistics, Encoding, KeyColumn, Keys, Sensitivity, Statistic, StatisticKind
from privacy.unit import Neighbouring
from tests.mechanisms.support import MOMENT_ESTIMATES, SeededBits, bernstein, moments, same_cells, selected_core, truths

WHOLE = 2**20
MOST = 1_000


def weights(most: int = MOST) -> Statistic:
    """The weights of units with at most so many groups."""
    whole = Fraction(WHOLE)
    return Statistic(
        name="u",
        kind=StatisticKind.WEIGHTS,
        sensitivity=Sensitivity(
            Neighbouring.ADD_REMOVE, l0=most, l1=whole * root_up(Fraction(most)), l2_squared=whole**2, linf=whole
        ),
        encoding=Encoding(Fraction(0), 1 / whole, 0, WHOLE),
    )


def weighted_core(most: int = MOST) -> CoreStatistics:
    """A core whose groups are selected by weights."""
    core = selected_core(groups=most)
    keys = Keys(core.keys.columns, None, most, "u")
    return replace(core, keys=keys, statistics=(weights(most),), estimates=())


def measured(*, mu_squared: Fraction = Fraction(1), delta: Fraction, most: int = MOST) -> WeightedThresholdMeasurement:
    """Its selection at this price."""
    found = calibrate([weighted_core(most)], Price(NoiseFamily.GAUSSIAN, mu_squared, delta)).measurements[0]
    assert isinstance(found, WeightedThresholdMeasurement)
    return found


def chance_of_any(sigma: Fraction, groups: int, threshold: int) -> mpmath.mpf:
    """The exact chance that any of a unit's own groups reaches the threshold."""
    held = math.floor(mpmath.mpf(WHOLE) / mpmath.sqrt(groups))
    reach = (mpmath.mpf(threshold) - held - 0.5) * sigma.denominator / sigma.numerator
    return -mpmath.expm1(groups * mpmath.log1p(-mpmath.erfc(reach / mpmath.sqrt(2)) / 2))


@pytest.mark.sparse(7)
@pytest.mark.parametrize("scale", [Fraction(1, 64), Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(40)], ids=str)
@pytest.mark.parametrize("delta", [Fraction(1, 4), Fraction(1, 10**6), Fraction(1, 10**12)], ids=str)
def test_no_number_of_groups_passes_with_more_than_delta(scale: Fraction, delta: Fraction) -> None:
    """Every number of groups up to the most stays within delta; a threshold lower by sigma / 500 fails for some."""
    sigma = scale * WHOLE
    threshold = weighted_threshold(sigma=sigma, groups_per_unit=MOST, delta=delta, whole=WHOLE)
    lower = math.floor(threshold - sigma / 500 - 2)
    with mpmath.workdps(60):
        claim = mpmath.mpf(delta.numerator) / delta.denominator
        assert all(chance_of_any(sigma, groups, threshold) <= claim for groups in range(1, MOST + 1))
        assert any(chance_of_any(sigma, groups, lower) > claim for groups in range(1, MOST + 1))


def test_which_number_of_groups_is_the_worst_depends_on_the_noise() -> None:
    """With little noise a unit with one group is the worst, with much one with the most groups is."""
    with mpmath.workdps(30):
        worst = [
            max(range(1, MOST + 1), key=lambda k, s=scale: chance_of_any(s, k, threshold))
            for scale in (Fraction(WHOLE, 64), Fraction(WHOLE))
            for threshold in [weighted_threshold(sigma=scale, groups_per_unit=MOST, delta=Fraction(1, 4), whole=WHOLE)]
        ]
    assert worst == [1, MOST]


@pytest.mark.parametrize("groups", [1, 2, 3, 10, 999, 2**20])
def test_the_weights_of_a_unit_have_norm_one(groups: int) -> None:
    """The whole vector is at most the whole weight in L2, and within its rounding of it."""
    held = weight(groups=groups, whole=WHOLE)
    assert held**2 * groups <= WHOLE**2 < (held + 1) ** 2 * groups


def rate_of_any(measurement: WeightedThresholdMeasurement, groups: int, *, of: int, held: int | None = None) -> float:
    """Two worlds: how often a group that only one unit makes is shown, by drawing for so many units."""
    held = weight(groups=groups, whole=WHOLE) if held is None else held
    drawn = perturb(measurement, np.full((of * groups, 1), held, dtype=np.int64), SeededBits(groups))
    assert drawn.kept is not None
    return float(drawn.kept.reshape(of, groups).any(axis=1).mean())


@pytest.mark.parametrize("mu_squared", [Fraction(1), Fraction(16), Fraction(400)], ids=str)
@pytest.mark.parametrize(("groups", "units"), [(1, 100_000), (2, 50_000), (10, 20_000), (MOST, 1_000)])
def test_an_adversarial_unit_is_shown_with_at_most_delta(mu_squared: Fraction, groups: int, units: int) -> None:
    """In the world without the unit none of its groups occurs; in the other one is shown as often as the law says."""
    delta = Fraction(1, 20)
    measurement = measured(mu_squared=mu_squared, delta=delta)
    expected = float(chance_of_any(measurement.sigma, groups, measurement.threshold))
    assert expected <= delta
    assert abs(rate_of_any(measurement, groups, of=units) - expected) < 6.2 * (expected / units) ** 0.5 + 1e-4


def test_planted_bugs_show_a_unit_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weight 1 in place of 1 / sqrt(k), a threshold for one group alone, a unit counted twice in a group."""
    delta = Fraction(1, 20)
    genuine = module._quantile
    calm, loud = (measured(mu_squared=mu, delta=delta) for mu in (Fraction(400), Fraction(1)))
    assert rate_of_any(calm, 10, of=5_000, held=WHOLE) > 2 * delta
    assert rate_of_any(calm, 1, of=5_000, held=2 * WHOLE) > 2 * delta
    monkeypatch.setattr(module, "_quantile", lambda groups, delta: genuine(groups=1, delta=delta))
    weighted_threshold.cache_clear()
    try:
        assert rate_of_any(loud, MOST, of=1_000) > 2 * delta
    finally:
        weighted_threshold.cache_clear()


def test_the_event_is_that_of_norm_one_and_the_whole_delta() -> None:
    """Sigma is the whole weight over mu, whatever the most groups are; the delta is the threshold's."""
    delta = Fraction(1, 10**6)
    for most in (2, MOST):
        found = measured(mu_squared=Fraction(1, 4), delta=delta, most=most)
        event = found.event()
        assert found.sigma == 2 * WHOLE
        assert (event.l2_squared, event.variance, event.delta) == (WHOLE**2, found.sigma**2, delta)
        assert found.shown_ends(np.array([[found.threshold]]), 0.05) is None
    assert measured(delta=delta, most=2).threshold < measured(delta=delta).threshold


def test_groups_at_the_threshold_are_kept() -> None:
    """Exactly the noisy weights at the threshold or above are kept."""
    found = measured(delta=Fraction(1, 10**6))
    exact = np.arange(0, 20 * WHOLE, WHOLE // 20, dtype=np.int64).reshape(-1, 1)
    drawn = perturb(found, exact, SeededBits(3))
    assert drawn.kept is not None
    assert (drawn.kept == (drawn.sums[:, 0] >= found.threshold)).all()
    assert 0 < drawn.kept.sum() < len(exact)


def test_chosen_norms_leave_the_selection_as_it_was_reserved() -> None:
    """Weights are no function of a norm: the measurement that was priced is the one that is drawn."""
    core = weighted_core()
    reserved = calibrate([core], Price(NoiseFamily.GAUSSIAN, Fraction(1), Fraction(1, 10**6)))
    assert at_chosen_norms(reserved, core) == Calibration((core,), reserved.measurements)


def test_laplace_noise_selects_nothing_by_weights() -> None:
    """A pure price has no such selection."""
    with pytest.raises(ValueError, match="pure price"):
        calibrate([weighted_core()], Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(1, 10**6)))


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1, 10)], ids=str)
def test_other_deltas_are_refused(delta: Fraction) -> None:
    """A threshold needs a delta inside (0, 1)."""
    with pytest.raises(ValueError, match="delta"):
        weighted_threshold(sigma=Fraction(1), groups_per_unit=3, delta=delta, whole=WHOLE)


@pytest.mark.parametrize("groups", [1, 4, 100])
@pytest.mark.parametrize("mu_squared", [Fraction(1, 16), Fraction(4)], ids=str)
def test_half_of_such_groups_are_shown(groups: int, mu_squared: Fraction) -> None:
    """What an estimate says: a group of so many units is shown as often as not, and one unit fewer less often."""
    found = measured(mu_squared=mu_squared, delta=Fraction(1, 10**6))
    units, held = found.half_shown(groups), weight(groups=groups, whole=WHOLE)
    drawn = [
        perturb(found, np.full((20_000, 1), number * held, dtype=np.int64), SeededBits(5)).kept
        for number in (units, units - 1)
    ]
    shares = [float(kept.mean()) for kept in drawn if kept is not None]
    assert shares[0] >= 0.5 - 0.02
    assert shares[1] <= 0.5 + 0.02
    assert shares[0] - shares[1] > 0 or held < float(found.sigma) / 100


@pytest.mark.parametrize("rows", [60, 400])
def test_counts_and_averages_of_shown_groups_cover(rows: int) -> None:
    """Given that a group is shown, its sums have noise of their own: COUNT, AVG and spreads cover as elsewhere.

    At a selection that shows about half of the groups, where noise that selects would lean the most.
    """
    cells, estimates = 4_000, MOMENT_ESTIMATES[2]
    values = (17 + (SeededBits(7).words(rows) % np.uint64(74))).astype(np.int64)
    core = weighted_core()
    keys = replace(core.keys, columns=(KeyColumn("k", ColumnType.INTEGER),))
    core = replace(core, keys=keys, statistics=(*core.statistics, moments(nulls=True)), estimates=tuple(estimates))
    calibration = calibrate([core], Price(NoiseFamily.GAUSSIAN, Fraction(8), Fraction(1, 10**6)))
    selection = calibration.measurement("core", "u")
    assert isinstance(selection, WeightedThresholdMeasurement)
    sums = {f"m_{place}": part for place, part in enumerate(bernstein(values, width=100, degree=2, nulls=3))}
    exact = same_cells(core, {"u_0": selection.threshold, **sums}, cells)
    table = release(core, calibration, exact, bits=SeededBits(8), confidence=Fraction(95, 100))
    assert 0.45 < table.rows / cells < 0.55
    truth = truths(values, nulls=3)
    for column in table.columns[1:]:
        known, true = truth[column.name], 0
        for low, high in zip(column.lows, column.highs, strict=True):
            assert low is not None
            assert high is not None
            true += low - 1e-9 <= known <= high + 1e-9
        assert true / table.rows > 0.95 - 6.2 * math.sqrt(0.95 * 0.05 / table.rows), column.name


@pytest.mark.parametrize("family", list(NoiseFamily))
@pytest.mark.parametrize("amount", [Fraction(1, 20), Fraction(2)], ids=str)
def test_the_other_selections_show_half_of_such_groups(family: NoiseFamily, amount: Fraction) -> None:
    """The same of counts of units, under either family: with one unit fewer it is less than a half."""
    core = selected_core()
    (found,) = calibrate([core], Price(family, amount, Fraction(1, 10**6))).measurements
    units = found.half_shown(1)
    assert units is not None
    assert found.half_shown(100) == units
    for number, least, most in ((units, 0.48, 1.0), (units - 1, 0.0, 0.5)):
        kept = perturb(found, np.full((20_000, 1), number, dtype=np.int64), SeededBits(5)).kept
        assert kept is not None
        assert least <= kept.mean() <= most + 0.02
