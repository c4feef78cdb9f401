"""Precision that is bought and not bought again: the difference between a stored release and a wish, and their mean.

Reads declarations and released numbers only; the difference is measured as every release is. gaussian_combined.md has
the proof of its price and of the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mechanisms.calibrate import Calibration
from mechanisms.estimates import linear_form, linear_half_width
from mechanisms.interval import two_sided_alpha
from mechanisms.measurement import Measurement, narrow
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.gaussian_combined import CombinedGaussian, as_kept, factors, means
from mechanisms.measurements.gaussian_moments import GaussianMoments
from mechanisms.measurements.gaussian_pairs import GaussianPairs
from mechanisms.noisy_sums import NoisySums, released_columns
from mechanisms.release import notes_of
from mechanisms.released_table import ReleasedTable
from privacy.numbers import PICO
from privacy.refusal import ExecutionFailed
from privacy.release import ColumnKind
from privacy.statistic import CoreStatistics

__all__ = ["LOOKS_MAX", "Difference", "difference", "half_widths", "mean_of", "sharpenable", "stated_half_widths"]

_LARGE = 1024 * PICO
"""Differences beyond this are whole picos and one less, so that parts cost no more than the whole: the ledger counts in
picos, and rounds each charge up."""

_SUMMED: tuple[type[Measurement], ...] = (GaussianMeasurement, GaussianMoments, GaussianPairs, CombinedGaussian)
"""One independent draw on every sum. Kinds that are made of these, such as those of several levels, are not meant."""

LOOKS_MAX = 64
"""Most releases that one mean is made of: its events are kept with it, one by one."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What is bought of one core beside a stored release: the measurements that are drawn, and those of the mean."""

    drawn: Calibration
    mean: Calibration


def sharpenable(core: CoreStatistics, table: ReleasedTable) -> tuple[GaussianMeasurement, ...] | None:
    """The measurements of a stored release that can be made more precise, in the order of the core; None if it cannot.

    Gaussian noise on every sum of every public cell, one draw each, of the same statistics as now: what was selected,
    chosen, drawn as a rank or measured on several levels is bought whole.
    """
    if core.keys.domain is None or core.choice is not None or table.sums is None or table.cells is not None:
        return None
    stored = {one.measurement.statistic.name: one.measurement for one in table.sums}
    found = []
    for statistic in core.statistics:
        measurement = stored.get(statistic.name)
        if type(measurement) not in _SUMMED:
            return None
        assert isinstance(measurement, GaussianMeasurement)
        looks = measurement.looks if isinstance(measurement, CombinedGaussian) else 1
        if measurement.statistic != statistic or looks >= LOOKS_MAX:
            return None
        found.append(measurement)
    return tuple(found)


def difference(
    core: CoreStatistics,
    wanted: Calibration,
    stored: Sequence[GaussianMeasurement],
    *,
    scale: Fraction = Fraction(1),
    times: Fraction = Fraction(1),
) -> Difference | None:
    """What is missing from a stored release to `scale` times the mu squared of `wanted`, `times` as much of that.

    None where nothing is missing of some statistic, or the wish is not for Gaussian noise on each sum by itself.
    Errors: ValueError for noise out of range.
    """
    drawn, together = [], []
    for before in stored:
        wish = wanted.measurement(core.name, before.statistic.name)
        if (
            type(wish) not in (GaussianMeasurement, GaussianMoments, GaussianPairs)
            or wish.statistic != before.statistic
        ):
            return None
        assert isinstance(wish, GaussianMeasurement)
        if factors(wish) != factors(before) or wish.mixed != before.mixed:
            return None
        missing = (_mu_squared(wish) * scale - _mu_squared(before)) * times
        if missing <= 0:
            return None
        if missing > _LARGE:
            missing = (missing // PICO - 1) * PICO
        added = type(wish).for_mu_squared(
            core=core.name, statistic=before.statistic, share=wish.share, mu_squared=missing
        )
        mean, _ = CombinedGaussian.of(before, added)
        drawn.append(added)
        together.append(mean)
    return Difference(Calibration((core,), tuple(drawn)), Calibration((core,), tuple(together)))


def mean_of(core: CoreStatistics, stored: ReleasedTable, fresh: ReleasedTable, confidence: Fraction) -> ReleasedTable:
    """The mean of a stored release and the fresh one of the difference, as the table that is released.

    Errors: ExecutionFailed for tables that are not of the same cells and statistics.
    """
    kept = {one.measurement.statistic.name: one for one in stored.sums or ()}
    sums, measurements = [], []
    for added in fresh.sums or ():
        before = kept[added.measurement.statistic.name]
        first, second = before.measurement, added.measurement
        if not isinstance(first, GaussianMeasurement) or not isinstance(second, GaussianMeasurement):
            raise ExecutionFailed
        if before.values.shape != added.values.shape or first.statistic != second.statistic:
            raise ExecutionFailed
        mean, values, fine = means(first, as_kept(first, before.values, before.fine), second, added.values)
        sums.append(NoisySums(mean, narrow(values), added.estimates, fine))
        measurements.append(mean)
    released = released_columns(sums, two_sided_alpha(confidence))
    columns = [
        column if column.role == ColumnKind.KEY else replace(released[column.name], name=column.name)
        for column in fresh.columns
    ]
    notes = notes_of(core, Calibration((core,), tuple(measurements)))
    return replace(
        fresh,
        columns=tuple(columns),
        notes=notes,
        sums=tuple(sums),
        norms=stored.norms,
        bounds=stored.bounds,
        steps=stored.steps,
        scaled_to=stored.scaled_to,
        clipped_to=stored.clipped_to,
    )


def stated_half_widths(core: CoreStatistics, measurements: Sequence[Measurement], alpha: float) -> list[float]:
    """Half the widths of the intervals of all linear estimates of a core, each missing with at most alpha."""
    by_name = {one.statistic.name: one for one in measurements}
    return [
        linear_half_width(by_name[estimate.statistic], form, alpha)
        for estimate in core.estimates
        for form in [linear_form(by_name[estimate.statistic].statistic, estimate.kind)]
        if form is not None
    ]


def half_widths(core: CoreStatistics, calibration: Calibration, alpha: float) -> list[float]:
    """As `stated_half_widths`, of a calibration."""
    return stated_half_widths(core, calibration.measurements_of(core.name), alpha)


def _mu_squared(measurement: GaussianMeasurement) -> Fraction:
    if isinstance(measurement, CombinedGaussian):
        return measurement.mu_squared
    return measurement.l2_squared / measurement.scale_of_sums**2
