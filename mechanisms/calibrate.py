"""From a price to measurements: how a core's statistics share it, and what errors that promises. Reads no data."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mechanisms.amounts import least_amount
from mechanisms.estimates import (
    ExpectedError,
    expected_errors,
    linear_form,
    linear_half_width,
    linear_standard_error,
)
from mechanisms.families import BY_MECHANISM, FAMILIES, Family, NoiseFamily, Price
from mechanisms.interval import two_sided_alpha
from mechanisms.measurement import Measurement
from privacy.composition import compose
from privacy.events import Event
from privacy.loss import Loss
from privacy.norms import norms_name
from privacy.statistic import SELECTING, CoreStatistics, Statistic
from privacy.unit import Neighbouring
from privacy.value_grid import is_values_name

__all__ = [
    "HISTOGRAM_SHARE",
    "UNKNOWN_WIDTH",
    "UNPROMISED_WIDTH",
    "VALUES_SHARE",
    "Calibration",
    "Price",
    "at_chosen_norms",
    "calibrate",
    "calibrate_for_half_width",
    "even_part",
    "evenly",
    "is_histogram",
    "losses",
    "needed_parts",
    "part_of",
    "split_of",
]

HISTOGRAM_SHARE = Fraction(1, 16)
"""Part of a core's price that buys the histogram of norms by which its question chooses the norm of its sums."""

VALUES_SHARE = Fraction(1, 4)
"""Part of a question's price that buys the histograms of values by which it chooses the bounds of columns."""

UNKNOWN_WIDTH = "no estimate of the query has a width that is known before the answer"
"""Why no half width can be promised, at any price."""

UNPROMISED_WIDTH = "the half width cannot be promised within the largest price"
"""Why this half width cannot be promised; more may follow."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The measurements of a query, one per statistic, in the order of cores and statistics."""

    cores: tuple[CoreStatistics, ...]
    measurements: tuple[Measurement, ...]

    @property
    def family(self) -> NoiseFamily:
        """The family of the noise, which is one for the whole query."""
        (family,) = {BY_MECHANISM[measurement.name].name for measurement in self.measurements}
        return family

    def events(self) -> tuple[Event, ...]:
        """The price of the whole query, computed from what will be drawn."""
        return tuple(measurement.event() for measurement in self.measurements)

    def events_of(self, core_name: str) -> tuple[Event, ...]:
        """The price of one core."""
        return tuple(measurement.event() for measurement in self.measurements_of(core_name))

    def measurements_of(self, core_name: str) -> tuple[Measurement, ...]:
        """The measurements of one core. KeyError for another name."""
        found = tuple(measurement for measurement in self.measurements if measurement.core == core_name)
        if not found:
            raise KeyError(core_name)
        return found

    def measurement(self, core_name: str, statistic_name: str) -> Measurement:
        """The measurement of one statistic. KeyError when there is none."""
        for measurement in self.measurements_of(core_name):
            if measurement.statistic.name == statistic_name:
                return measurement
        raise KeyError(statistic_name)

    def with_core(self, other: Calibration) -> Calibration:
        """This calibration with the cores of another one in place of those of the same names."""
        cores = {core.name: core for core in other.cores}
        return Calibration(
            tuple(cores.get(core.name, core) for core in self.cores),
            tuple(
                other.measurement(measurement.core, measurement.statistic.name)
                if measurement.core in cores
                else measurement
                for measurement in self.measurements
            ),
        )

    def predicted_errors(self, core_name: str) -> dict[str, float | None]:
        """The standard error that each estimate will have; None where it depends on the answer (ratios)."""
        core = next(core for core in self.cores if core.name == core_name)
        errors: dict[str, float | None] = {}
        for estimate in core.estimates:
            measurement = self.measurement(core_name, estimate.statistic)
            form = linear_form(measurement.statistic, estimate.kind)
            errors[estimate.name] = (
                None if form is None else linear_standard_error(measurement, form, integer=estimate.integer)
            )
        return errors

    def expected_errors(
        self, core_name: str, confidence: Fraction, *, cells: int = 1
    ) -> dict[str, tuple[ExpectedError, ...]]:
        """For each estimate that is a ratio, the errors that it would have in groups of some sizes.

        Half-widths are those of intervals of which `cells` hold at once.
        """
        alpha = two_sided_alpha(confidence, cells)
        core = next(core for core in self.cores if core.name == core_name)
        expected: dict[str, tuple[ExpectedError, ...]] = {}
        for estimate in core.estimates:
            measurement = self.measurement(core_name, estimate.statistic)
            if linear_form(measurement.statistic, estimate.kind) is None:
                expected[estimate.name] = expected_errors(measurement, estimate, alpha=alpha)
        return expected

    def predicted_half_widths(self, core_name: str, confidence: Fraction, *, cells: int = 1) -> dict[str, float | None]:
        """Half the width of the interval that each estimate will have where `cells` of them hold at once.

        None where it depends on the answer.
        """
        alpha = two_sided_alpha(confidence, cells)
        core = next(core for core in self.cores if core.name == core_name)
        widths: dict[str, float | None] = {}
        for estimate in core.estimates:
            measurement = self.measurement(core_name, estimate.statistic)
            form = linear_form(measurement.statistic, estimate.kind)
            widths[estimate.name] = None if form is None else linear_half_width(measurement, form, alpha)
        return widths


def calibrate(cores: Sequence[CoreStatistics], price: Price) -> Calibration:
    """The measurements that the price buys, shared by all statistics of all cores, less the histograms' part.

    Ensures: the events of the result add up to at most the price, and to the price itself when epsilon is rounded up to
    the ledger's unit. The delta is shared equally by the cores that select groups; without one it is not used.
    Errors: ValueError, never from data: a price that is not positive, cores without statistics or with equal names,
    groups that need selection without delta, several groups per unit under a Laplace price, noise out of range.
    """
    calibration = _shared(cores, price)
    for measurement in calibration.measurements:
        measurement.prepare()
    return calibration


def losses(cores: Sequence[CoreStatistics], price: Price) -> tuple[Loss, ...]:
    """What each core costs at this price, without the tables and thresholds that drawing needs: for searches.

    Errors: ValueError as `calibrate`, but for those tables.
    """
    calibration = _shared(cores, price)
    return tuple(compose(calibration.events_of(core.name)) for core in cores)


def is_histogram(core: CoreStatistics, cores: Sequence[CoreStatistics]) -> bool:
    """Whether the core is a histogram of values, or that of norms of another one among the cores."""
    return is_values_name(core.name) or any(other.norms and core.name == norms_name(other.name) for other in cores)


def part_of(core: CoreStatistics, cores: Sequence[CoreStatistics], price: Price | None = None) -> Fraction:
    """The part of a price that a core gets, all its statistics together; None for one whose parts are fixed."""
    return sum(_shares(cores, () if price is None else price.parts)[core.name], Fraction(0))


def split_of(core: CoreStatistics, cores: Sequence[CoreStatistics], price: Price) -> str:
    """How a price splits a core's part by need, as text; empty where its statistics have their fixed parts."""
    shares = _shares(cores, price.parts)[core.name]
    if len({share / one.parts for share, one in zip(shares, core.statistics, strict=True)}) == 1:
        return ""
    return ":".join(str(share / min(shares)) for share in shares)


def even_part(core: CoreStatistics, cores: Sequence[CoreStatistics], price: Price, *, least: bool) -> Fraction:
    """The part of a price at which fixed parts give each statistic of a core as much as this one does, or more.

    `least`: at which none gets more than this price gives it.
    """
    shares = _shares(cores, price.parts)[core.name]
    each = [share / one.parts for share, one in zip(shares, core.statistics, strict=True)]
    return _number(core) * (min(each) if least else max(each))


def evenly(cores: Sequence[CoreStatistics], price: Price) -> Price:
    """The least price with fixed parts that gives each statistic as much as this one does."""
    if not price.parts:
        return price
    statistics = [statistic for core in cores for statistic in core.statistics]
    most = max(Fraction(part, one.parts) for part, one in zip(price.parts, statistics, strict=True))
    times = most * sum(one.parts for one in statistics) / sum(price.parts)
    return replace(price, amount=price.amount * times, parts=())


def _number(core: CoreStatistics) -> int:
    """How many equal parts of a price a core's statistics get."""
    return sum(statistic.parts for statistic in core.statistics)


def _shares(cores: Sequence[CoreStatistics], parts: tuple[int, ...]) -> dict[str, tuple[Fraction, ...]]:
    """The part of the price of each statistic, by core; `parts` as of a `Price`."""
    if not parts:
        of = _parts(cores)
        return {core.name: tuple(one.parts * of[core.name] for one in core.statistics) for core in cores}
    found, place = {}, 0
    for core in cores:
        own = parts[place : place + len(core.statistics)]
        found[core.name] = tuple(Fraction(part, sum(parts)) for part in own)
        place += len(own)
    assert place == len(parts), "a part of the price for each statistic"
    return found


def _parts(cores: Sequence[CoreStatistics]) -> dict[str, Fraction]:
    """One part of the price, of which each statistic of a core gets `parts`, by core.

    Statistics share equally, but one that stands in place of several gets the parts of all of them. Histograms of
    values take `VALUES_SHARE` of the whole, equally. Where a core comes with the histogram of its norms, that takes
    `HISTOGRAM_SHARE` of the core's part, its norms equally.
    """
    histograms = {core.name: core for core in cores if is_histogram(core, cores)}
    total = sum(_number(core) for core in cores if core.name not in histograms)
    values = [name for name in histograms if is_values_name(name)]
    parts = dict.fromkeys(values, VALUES_SHARE / max(1, len(values)))
    for core in cores:
        if core.name in histograms:
            continue
        parts[core.name] = Fraction(1, total) * (1 - VALUES_SHARE if values else 1)
        histogram = histograms.get(norms_name(core.name))
        if histogram is not None:
            whole = parts[core.name] * _number(core)
            parts[core.name] *= 1 - HISTOGRAM_SHARE
            parts[histogram.name] = whole * HISTOGRAM_SHARE / len(histogram.statistics)
    return parts


def at_chosen_norms(calibration: Calibration, core: CoreStatistics) -> Calibration:
    """A core whose norms were chosen, where each statistic has the loss that it had at the norms it was priced at.

    Ensures: no statistic costs more than its measurement in `calibration` did: its amount is the loss of that, and
    noise is rounded up. So what was reserved before the choice covers what is drawn after it (norm_choice.md).
    Errors: ValueError for noise out of range, KeyError for a core that the calibration does not have.
    """
    measurements = []
    for statistic in core.statistics:
        reserved = calibration.measurement(core.name, statistic.name)
        if statistic == reserved.statistic:
            measurements.append(reserved)
            continue
        family = BY_MECHANISM[reserved.name]
        amount = family.currency.amount_of(reserved.event().loss())
        measurement = _noise(family, core, statistic, share=reserved.share, amount=amount)
        measurement.prepare()
        measurements.append(measurement)
    return Calibration((core,), tuple(measurements))


def _shared(cores: Sequence[CoreStatistics], price: Price) -> Calibration:
    """`calibrate` without preparing tables and thresholds."""
    selecting = [core for core in cores if core.keys.selection is not None]
    if not any(core.statistics for core in cores):
        raise ValueError("there is no statistic to spend the price on")
    if len({core.name for core in cores}) != len(cores):
        raise ValueError("two cores have the same name")
    if selecting and not 0 < price.delta < 1:
        raise ValueError("groups that are not public need a delta above zero and below one")
    for core in cores:
        _check(core)
    shares = _shares(cores, price.parts)
    measurements = tuple(
        _measurement(core, statistic, share, price, delta=price.delta / max(1, len(selecting)))
        for core in cores
        for statistic, share in zip(core.statistics, shares[core.name], strict=True)
    )
    return Calibration(tuple(cores), measurements)


def _check(core: CoreStatistics) -> None:
    """Refuses estimates that their statistic cannot give, and sensitivities that nothing is calibrated to."""
    by_name = {statistic.name: statistic for statistic in core.statistics}
    for statistic in core.statistics:
        if statistic.sensitivity.relation is not Neighbouring.ADD_REMOVE:
            raise ValueError("noise is calibrated to adding or removing one privacy unit only")
    for estimate in core.estimates:
        linear_form(by_name[estimate.statistic], estimate.kind)
    if core.keys.selection is not None and by_name[core.keys.selection].kind not in SELECTING:
        raise ValueError("groups are selected by their number of units or of rows, or by weights")


def _measurement(
    core: CoreStatistics, statistic: Statistic, share: Fraction, price: Price, *, delta: Fraction
) -> Measurement:
    family = FAMILIES[price.family].paid(pure=price.pure)
    if price.amount <= 0:
        raise ValueError("the price must be greater than zero")
    amount = price.amount * share
    if core.choice is not None:
        return family.chosen(core, statistic, share=share, amount=amount)
    if core.keys.selection == statistic.name:
        return family.selection(core, statistic, share=share, amount=amount, delta=delta)
    return _noise(family, core, statistic, share=share, amount=amount)


def _noise(
    family: Family, core: CoreStatistics, statistic: Statistic, *, share: Fraction, amount: Fraction
) -> Measurement:
    """Noise on all sums of a statistic: on those of several levels where the core's levels are better off with it."""
    lattice = family.lattice(core)
    if lattice is None:
        return family.measurement(core.name, statistic, share=share, amount=amount)
    return family.measurement_of_levels(core, statistic, lattice, share=share, amount=amount)


def calibrate_for_half_width(
    cores: Sequence[CoreStatistics],
    half_width: Fraction,
    confidence: Fraction,
    family: NoiseFamily,
    *,
    cells: int = 1,
    delta: Fraction = Fraction(0),
    unshown: Collection[str] = (),
    epsilon_max: Fraction = Fraction(10**5),
    pure: bool = False,
) -> Price:
    """The least price of six digits at which every linear estimate has an interval of at most that half width.

    Nothing is promised of the cores that are `unshown`; they get their parts of the price as in any other query.
    `cells` of these intervals are to hold at once with the confidence. `pure` as of a `Price`.

    Widths never grow with the price: a scale of noise falls with it, and so does the grid to which sums are rounded, a
    power of two that divides the one before. So the prices that serve a width also serve every wider one, and a
    wider wish never gets the greater price.
    Statistics share it by need where that costs less (shares.md): the parts depend on the cores and the noise alone.
    Ratios (averages, variances) have no width that is known before the answer; they are not considered.
    Errors: ValueError when there is no linear estimate, the width is not positive, or it needs more than `epsilon_max`
    (its square for a family whose amounts are squares).
    """
    if half_width <= 0:
        raise ValueError("the half width must be greater than zero")
    alpha = two_sided_alpha(confidence, cells)
    promised = [core for core in cores if core.name not in unshown and not is_histogram(core, cores)]
    linear = [
        estimate
        for core in promised
        for estimate in core.estimates
        if linear_form(_statistic(core, estimate.statistic), estimate.kind) is not None
    ]
    if not linear:
        raise ValueError(UNKNOWN_WIDTH)
    whole = all(estimate.integer or estimate.kind.whole(None) for estimate in linear)
    goal = float(half_width)

    limit = epsilon_max ** FAMILIES[family].currency.power

    def least(one: Price) -> Price | None:
        """The least price with these parts; None where the width cannot be promised."""

        def fits(amount: Fraction) -> bool:
            return _widest(cores, promised, replace(one, amount=amount), alpha) <= goal

        def drawable(amount: Fraction) -> bool:
            calibrate(cores, replace(one, amount=amount))
            return True

        if not _safely(fits, limit):
            return None
        guess = _guess(cores, promised, one, alpha, goal)
        found = least_amount(lambda amount: _safely(fits, amount), guess=guess, greatest=limit)
        if not _safely(drawable, found):
            # Tables and thresholds can need more than the width does; where the largest price has none there is none.
            drawable(limit)
            found = least_amount(lambda amount: _safely(drawable, amount), guess=found, greatest=limit)
        return replace(one, amount=found)

    fixed = Price(family, Fraction(1), delta, pure)
    parts = needed_parts(cores, promised, fixed)
    found = [
        price for price in (least(fixed), least(replace(fixed, parts=parts)) if parts else None) if price is not None
    ]
    if not found:
        hint = " (a whole number cannot be made more precise)" if whole and goal < 1 else ""
        raise ValueError(f"{UNPROMISED_WIDTH}{hint}")
    return min(found, key=lambda price: price.amount)


_FINEST = 256
"""The least part that a statistic gets by need, of what the one that needs most gets for each of its fixed parts."""


def needed_parts(cores: Sequence[CoreStatistics], promised: Sequence[CoreStatistics], price: Price) -> tuple[int, ...]:
    """The parts of a price by which all widths that are promised are equal; empty where the fixed parts are used.

    Each statistic by itself at the amount of `price`: so they depend on the cores and the noise alone, and a wider
    width never costs more. Those of which no width is promised, and that of a selection, keep their fixed part beside
    the one that needs most. Not where histograms choose norms or bounds, nor where keys are chosen.
    """
    if any(is_histogram(core, cores) or core.choice is not None for core in cores):
        return ()
    family, needs = FAMILIES[price.family].paid(pure=price.pure), list[Fraction | None]()
    shown = {core.name for core in promised}
    for core in cores:
        for statistic in core.statistics:
            forms = [
                form
                for estimate in (core.estimates if core.name in shown and core.keys.selection != statistic.name else ())
                if estimate.statistic == statistic.name
                for form in [linear_form(statistic, estimate.kind)]
                if form is not None
            ]
            if not forms:
                needs.append(None)
                continue
            try:
                measurement = _noise(family, core, statistic, share=Fraction(1), amount=price.amount)
            except ValueError:
                return ()
            width = max(linear_half_width(measurement, form, _USUAL) for form in forms)
            needs.append(Fraction(width) ** family.currency.power / statistic.parts)
    most = max((need for need in needs if need is not None), default=Fraction(0))
    fixed = [statistic.parts for core in cores for statistic in core.statistics]
    if most <= 0 or len(fixed) < 2:
        return ()
    parts = tuple(
        part * _FINEST if need is None else max(1, math.ceil(part * _FINEST * need / most))
        for part, need in zip(fixed, needs, strict=True)
    )
    return parts if sum(parts) <= _WORTH * _FINEST * sum(fixed) else ()


_WORTH = Fraction(19, 20)
"""Parts by need are used where they save a twentieth at least: releases of another split serve fewer questions."""

_USUAL = 0.05
"""At which alpha needs are compared: the quantiles of the noise of one sum and of several hardly differ in shape."""


def _guess(
    cores: Sequence[CoreStatistics],
    promised: Sequence[CoreStatistics],
    one: Price,
    alpha: float,
    goal: float,
) -> Fraction:
    """Near the least amount for a width: the widths of most noise are inverse to epsilon, or to mu."""
    try:
        ratio = min(max(_widest(cores, promised, one, alpha) / goal, 1e-9), 1e9)
    except ValueError:
        ratio = 1.0
    return Fraction(ratio ** FAMILIES[one.family].currency.power)


def _statistic(core: CoreStatistics, name: str) -> Statistic:
    return next(statistic for statistic in core.statistics if statistic.name == name)


def _safely(fits: Callable[[Fraction], bool], amount: Fraction) -> bool:
    """An amount too small for any noise in range does not fit."""
    try:
        return fits(amount)
    except ValueError:
        return False


def _widest(cores: Sequence[CoreStatistics], promised: Sequence[CoreStatistics], price: Price, alpha: float) -> float:
    calibration = _shared(cores, price)
    widths = [
        linear_half_width(measurement, form, alpha)
        for core in promised
        for estimate in core.estimates
        for measurement in [calibration.measurement(core.name, estimate.statistic)]
        for form in [linear_form(measurement.statistic, estimate.kind)]
        if form is not None
    ]
    return max(widths)
