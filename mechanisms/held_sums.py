"""Answers from the sums of a stored release that were measured for another question.

Which sums say what is the caller's to know (sql_rewrite/frames.py); here it is decided which of them are precise
enough, and the table is made. All of it is computed from released numbers and from the laws of their noise, so it costs
nothing (post-processing: Dwork and Roth 2014, Proposition 2.1), and each interval holds as often as one of a fresh
release: the estimator, the noisy sums and the law of their noise are those with which it is proved, and which release
was taken follows from the plan, the price and stored qualities, not from any noisy value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mechanisms.estimates import expected_errors, linear_form
from mechanisms.families import BY_MECHANISM
from mechanisms.measurement import Law, Measurement
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.gaussian_combined import CombinedGaussian, factors
from mechanisms.measurements.gaussian_moments import GaussianMoments
from mechanisms.noisy_sums import NoisySums, released_columns
from mechanisms.released_table import ReleasedTable
from mechanisms.summed import Summed, added_up, adds_up
from privacy.aggregate import AggregateFunction
from privacy.release import ColumnKind, MechanismNote, ReleasedColumn
from privacy.statistic import Encoding, Estimate, Keys, Statistic, StatisticKind

__all__ = ["HeldSums", "Wanted", "added_table", "answered", "derived_table", "keys_table", "may_say"]

_CLOSE = 1 + 1e-9
"""Relative room for the rounding of floats when errors are compared."""

_WIDE = 8
"""Deviations in units of the grid from which on rounding, of variance 1/12, is a part in 700 of the noise."""

_BESIDE = 200
"""How many times the variance of its rounding the noise of a mean has where precisions alone are compared."""

_FINE = 2**28
"""Steps between the bounds of values from which on the rounding of a value is far below any noise: all of them have
about as many where values are not whole (sql_rewrite/encodings.py)."""


@dataclass(frozen=True, slots=True)
class HeldSums:
    """The sums of one statistic of a stored release, without the numbers: their noise, and the estimands they give."""

    measurement: Measurement
    gives: frozenset[str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One column that is asked for: its estimand, its aggregate, and how it would be measured anew."""

    estimand: str
    function: AggregateFunction
    estimate: Estimate
    fresh: Measurement
    whole: bool
    """Whether the values of its argument are whole numbers, or it has none."""


def answered(
    held: Sequence[HeldSums],
    wanted: Sequence[Wanted],
    alphas: Sequence[float],
    *,
    selection: Measurement | None = None,
    exact: bool = True,
    widths: bool = True,
) -> tuple[Estimate, ...] | None:
    """The columns as estimates of held sums, each at least as exact as measured anew; None where one is not held.

    An estimate is as exact as another when its standard error and the half widths of its interval at all `alphas` are
    at most the other's: exactly where they follow from the noise alone, and in groups of some sizes of a ratio.
    `selection` is what would select hidden groups: those of a release were selected by the same sums, with no more
    noise and no less delta. Without `exact` any error will do. Without `widths` a mean of releases serves by its
    standard errors alone, as it serves a spend for its own question: its intervals hold at every look, and are wider.
    """
    if selection is not None and not any(_selects_as(one.measurement, selection) for one in held):
        return None
    found = [_answered(held, one, alphas, exact=exact, widths=widths) for one in wanted]
    known = tuple(estimate for estimate in found if estimate is not None)
    return known if len(known) == len(wanted) else None


def _answered(
    held: Sequence[HeldSums], wanted: Wanted, alphas: Sequence[float], *, exact: bool, widths: bool
) -> Estimate | None:
    for one in held:
        kind = _kind(one.gives, wanted)
        if kind is None:
            continue
        estimate = _estimate(replace(wanted, function=kind), one.measurement.statistic)
        if estimate is not None and (not exact or _as_exact(one.measurement, estimate, wanted, alphas, widths=widths)):
            return estimate
    return None


def may_say(gives: frozenset[str], estimand: str) -> bool:
    """Whether sums that give these estimands may say another one: what is quick to see of `answered`."""
    name, _, column = estimand.partition(":")
    return estimand in gives or (name == "moments" and not gives.isdisjoint((f"first:{column}", f"second:{column}")))


def _kind(gives: frozenset[str], wanted: Wanted) -> AggregateFunction | None:
    """As which aggregate these sums say a column; None where they do not give it.

    An average may be the mean of one of two values: sql_rewrite/together.py.
    """
    if wanted.estimand in gives:
        return wanted.function
    name, _, column = wanted.estimand.partition(":")
    if name == "moments" and wanted.function is AggregateFunction.AVERAGE:
        for place, kind in (
            ("first", AggregateFunction.REGRESSION_MEAN_Y),
            ("second", AggregateFunction.REGRESSION_MEAN_X),
        ):
            if f"{place}:{column}" in gives:
                return kind
    return None


def _encoding(statistic: Statistic, kind: AggregateFunction) -> Encoding | None:
    """How the values become integers that an aggregate is computed from."""
    return statistic.second if kind is AggregateFunction.REGRESSION_MEAN_X else statistic.encoding


def _estimate(wanted: Wanted, statistic: Statistic) -> Estimate | None:
    """The column as an estimate of a statistic that gives its estimand; None where its sums do not say it so well."""
    kind = wanted.function
    # Sums that count one thing say it as a number of rows.
    one_thing = {
        AggregateFunction.UNITS: (StatisticKind.COUNT, StatisticKind.MOMENTS, StatisticKind.PRODUCTS),
        AggregateFunction.VALUES: (StatisticKind.COUNT, StatisticKind.UNITS, StatisticKind.PRODUCTS),
    }
    if statistic.kind in one_thing.get(kind, ()):
        kind = AggregateFunction.ROWS
    try:
        linear_form(statistic, kind)
    except ValueError:
        return None
    fresh = _encoding(wanted.fresh.statistic, wanted.estimate.kind)
    if not _as_fine(_encoding(statistic, kind), fresh, whole=wanted.whole):
        return None
    return replace(wanted.estimate, kind=kind, statistic=statistic.name)


def _as_fine(held: Encoding | None, fresh: Encoding | None, *, whole: bool) -> bool:
    """Whether values in held sums are rounded no coarser than anew, or to no more than a part in 2^28 of the range."""
    if held is None or fresh is None or held == fresh:
        return True
    if whole and all((part / held.step).denominator == 1 for part in (Fraction(1), held.offset)):
        return True  # every whole number is a number of steps
    return held.step <= fresh.step or held.highest - held.lowest >= _FINE


def _as_exact(held: Measurement, estimate: Estimate, wanted: Wanted, alphas: Sequence[float], *, widths: bool) -> bool:
    fresh, compared = wanted.fresh, wanted.estimate
    looked = isinstance(held, CombinedGaussian) and not widths
    if looked and type(fresh) in (GaussianMeasurement, GaussianMoments) and _alike(held.statistic, fresh.statistic):
        assert isinstance(held, CombinedGaussian)
        assert isinstance(fresh, GaussianMeasurement)
        noise = float(held.sigma) ** 2
        if factors(held) == factors(fresh) and held.rounded_variance <= noise / _BESIDE:
            return held.scale_of_sums <= fresh.scale_of_sums
    if held.name == fresh.name and _alike(held.statistic, fresh.statistic):
        return _amount(held) >= _amount(fresh)
    if isinstance(held, Summed) and held.one.name == fresh.name and _alike(held.statistic, fresh.statistic):
        deviation = fresh.scale_of_sums
        if held.one.law is Law.NORMAL and deviation >= _WIDE * fresh.grid:
            # The same sums with normal noise, beside which rounding is nothing.
            return held.one.scale_of_sums**2 * held.cells <= deviation**2
    if held.statistic.tree is not None or held.selects or fresh.selects:
        return False
    if estimate.kind is AggregateFunction.PRESENT:
        # What it says follows from the interval of a count.
        estimate, compared = (replace(one, kind=AggregateFunction.ROWS) for one in (estimate, compared))
    for alpha in alphas:
        ours, theirs = (
            expected_errors(measurement, one, alpha=alpha) for measurement, one in ((held, estimate), (fresh, compared))
        )
        for mine, other in zip(ours, theirs, strict=True):
            compared_errors = [
                (mine.standard_error, other.standard_error),
                (mine.standard_error_at_most, other.standard_error_at_most),
            ]
            for error, limit in compared_errors if looked else [*compared_errors, (mine.half_width, other.half_width)]:
                if limit is not None and (error is None or error > limit * _CLOSE):
                    return False
    return True


def _selects_as(held: Measurement, fresh: Measurement) -> bool:
    if not held.selects or held.name != fresh.name or not _alike(held.statistic, fresh.statistic):
        return False
    return _amount(held) >= _amount(fresh) and held.event().loss().delta >= fresh.event().loss().delta


def _amount(measurement: Measurement) -> Fraction:
    """How much of the currency of its noise a measurement costs: of two of the same sums the greater is more exact."""
    return BY_MECHANISM[measurement.name].currency.amount_of(measurement.event().loss())


def _alike(one: Statistic, other: Statistic) -> bool:
    """Whether two statistics are the same sums, whatever they are called."""
    return replace(one, name="", argument="") == replace(other, name="", argument="")


def added_table(table: ReleasedTable, keys: Keys, groups: Sequence[Sequence[int]]) -> ReleasedTable:
    """A release with groups that are sums of its own: for each cell of `keys`, in their order, the rows that make it.

    It has no columns but the keys: others are computed from its sums. Errors: ValueError where the numbers of rows
    differ.
    """
    kept = [one for one in table.sums or () if adds_up(one.measurement, len(groups[0]))]
    return keys_table(table, keys, [added_up(one, groups) for one in kept], table.notes)


def keys_table(
    table: ReleasedTable, keys: Keys, sums: Sequence[NoisySums], notes: Sequence[MechanismNote]
) -> ReleasedTable:
    """A release with these sums of the cells of `keys`, in their order, and no columns but the keys."""
    assert keys.domain is not None
    columns = [
        ReleasedColumn(column.name, ColumnKind.KEY, column.type, tuple([cell[place] for cell in keys.domain]))
        for place, column in enumerate(keys.columns)
    ]
    return replace(
        table, rows=len(keys.domain), columns=tuple(columns), sums=tuple(sums), notes=tuple(notes), cells=None
    )


def derived_table(
    table: ReleasedTable, name: str, estimates: Sequence[Estimate], *, alpha: float, keys: Sequence[str]
) -> ReleasedTable:
    """The table of a core with these estimates, computed from the sums of a release of the same groups.

    `keys` are the names of the core's keys, in the order of the release's. Errors: ValueError where the release has no
    sums of an estimate's statistic.
    """
    held = {one.measurement.statistic.name: one for one in table.sums or ()}
    if any(estimate.statistic not in held for estimate in estimates):
        raise ValueError("the release has no sums of this statistic")
    sums = tuple(
        NoisySums(one.measurement, one.values, tuple(e for e in estimates if e.statistic == statistic))
        for statistic, one in held.items()
    )
    columns = released_columns(sums, alpha)
    old = [column for column in table.columns if column.role is ColumnKind.KEY]
    notes = {note.statistic: note for note in table.notes}
    return replace(
        table,
        name=name,
        columns=(
            *(replace(column, name=key) for column, key in zip(old, keys, strict=True)),
            *(columns[estimate.name] for estimate in estimates),
        ),
        sums=tuple(one for one in sums if one.estimates or one.selects),
        notes=tuple(
            replace(notes[one.measurement.statistic.name], estimates=tuple(e.name for e in one.estimates))
            for one in sums
            if one.estimates or one.selects
        ),
    )
