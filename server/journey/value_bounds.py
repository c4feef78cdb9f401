"""Value bounds that a question chooses: from histograms released by itself, or by an earlier question.

Whatever is chosen here is a function of released numbers (mechanisms/value_bounds.md). What it costs was reserved
before: within the chosen bounds each statistic has the loss that it was priced with (`at_chosen_norms`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import assert_never

from mechanisms.calibrate import Calibration, at_chosen_norms
from mechanisms.families import NoiseFamily
from mechanisms.released_table import ReleasedTable
from mechanisms.value_bounds import BoundsChoice, choose_bounds
from privacy.bounds import ValueBounds, date_at, timestamp_at
from privacy.norms import NormOf
from privacy.policy import ColumnType
from privacy.refusal import ExecutionFailed
from privacy.release import BoundsNote, BoundsSource
from privacy.statistic import Statistic, StatisticKind
from server.calibrations import Calibrations
from server.journey.norms import norm_choice
from server.journey.query import Histogram, Prepared
from server.journey.value_stage import Told
from sql_rewrite.automatic_bounds import Place, bound_with, places_of
from sql_rewrite.bound import BoundedCore
from sql_rewrite.contribution import Contribution, NormedContribution
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.expressions import columns_of, number_text
from sql_rewrite.lower import lower
from sql_rewrite.norms import lower_norms, norm_core
from sql_rewrite.value_histogram import ValueHistogram

__all__ = ["NO_NORMS", "at_chosen_bounds", "bounds_note", "chosen_by"]


NO_NORMS: Mapping[str, ReleasedTable] = MappingProxyType({})

_ROWS_UNKNOWN = 4.0
"""The norm over the root of the rows of a unit, where no histogram of norms says it: that of units of 16 rows."""


def at_chosen_bounds(
    prepared: Prepared,
    calibration: Calibration,
    told: Sequence[Told],
    dialect: Dialect,
    *,
    norms: Mapping[str, ReleasedTable] = NO_NORMS,
) -> tuple[Prepared, Calibration]:
    """The query with the bounds that its histograms choose, each in its place, and the noise of its sums there.

    `norms` are histograms of the norms of units, by core, of cores that have one already: how much noise there will be
    follows from them.
    The keys of its cores stay those of questions that choose; the loss of each statistic is that of `calibration`.
    Errors: ValueError for noise out of range; ExecutionFailed for a histogram that is not of this column.
    """
    stage = prepared.values
    assert stage is not None
    choices: dict[Place, BoundsChoice] = {}
    sources: dict[Place, BoundsSource] = {}
    for histogram, one in zip(stage.histograms, told, strict=True):
        place = (histogram.table, histogram.column.name)
        choices[place] = _choice(prepared, calibration, histogram, one.table, norms)
        sources[place] = one.source
    cores, notes = [], {}
    ends: dict[str, tuple[tuple[str, str, Fraction, Fraction], ...]] = {}
    for nominal, core in zip(prepared.cores, prepared.plan.cores, strict=True):
        places = stage.places.get(core.name, ())
        if not places:
            cores.append(nominal)
            continue
        wanted = {place: ValueBounds(choices[place].lower, choices[place].upper) for place in places}
        bounded, used = bound_with(core, prepared.plan.dataset, wanted, power=prepared.power)
        cores.append(bounded)
        calibration = calibration.with_core(at_chosen_norms(calibration, bounded.described))
        ends[core.name] = tuple((*place, used[place].lower, used[place].upper) for place in places)
        notes[core.name] = tuple(
            bounds_note(place, used[place], _type(stage.histograms, place), sources[place], choices[place])
            for place in places
        )
    histograms = tuple(
        None if histogram is None else _same_norms(histogram, core, dialect)
        for core, histogram in zip(cores, prepared.histograms, strict=True)
    )
    bound = replace(
        prepared,
        cores=tuple(cores),
        statements=tuple(lower(core, dialect) for core in cores),
        histograms=histograms,
        calibrations=Calibrations(),
        values=None,
        bounds=notes,
        ends=ends,
    )
    return bound, calibration


def _same_norms(histogram: Histogram, core: BoundedCore, dialect: Dialect) -> Histogram:
    """The histogram of norms of a core whose bounds were chosen: the same norms of the same rows."""
    described = norm_core(core)
    assert described is not None
    return replace(histogram, described=described, statement=lower_norms(core, dialect, shared=histogram.shared))


def _choice(
    prepared: Prepared,
    calibration: Calibration,
    histogram: ValueHistogram,
    table: ReleasedTable,
    norms: Mapping[str, ReleasedTable],
) -> BoundsChoice:
    noise, from_zero, cells = _noise(prepared, calibration, (histogram.table, histogram.column.name), norms)
    return chosen_by(histogram, table, noise=noise, from_zero=from_zero, cells=cells)


def chosen_by(
    histogram: ValueHistogram, table: ReleasedTable, *, noise: float, from_zero: bool, cells: int
) -> BoundsChoice:
    """The bounds that a released histogram chooses for sums over so many cells, `noise` as of `choose_bounds`.

    Errors: ExecutionFailed for a table that is not of this histogram.
    """
    domain = histogram.bounded.described.keys.domain
    assert domain is not None
    found = table.sums[0] if table.sums else None
    if found is None or found.values.shape != (len(domain), 1):
        raise ExecutionFailed
    grid = found.measurement.grid
    counts = {
        int(str(cell)): float(count) * grid for (cell,), count in zip(domain, found.values[:, 0].tolist(), strict=True)
    }
    lows, highs = histogram.ends(counts)
    return choose_bounds(
        lows,
        highs,
        histogram.grid,
        deviation=math.sqrt(found.measurement.variance()) * grid,
        cells=cells,
        noise=noise,
        from_zero=from_zero,
        laplace=table.family is NoiseFamily.LAPLACE,
    )


def _noise(
    prepared: Prepared, calibration: Calibration, place: Place, norms: Mapping[str, ReleasedTable]
) -> tuple[float, bool, int]:
    """The noise of a sum for each unit of width between the bounds of a column, or of their magnitude, and the cells.

    The greatest noise and the fewest cells of the sums that read the column, for each row that a unit with a value
    beyond the bounds is taken to lose (`_of_one_unit`); where histograms of norms follow from bounds, and where the
    column has a quantile, whose noise does not grow with the width, for one row of the norm.
    """
    assert prepared.values is not None
    found: list[tuple[float, bool]] = []
    ranks: list[tuple[float, bool]] = []
    cells: list[int] = []
    for core in prepared.cores:
        name = core.described.name
        if place not in prepared.values.places.get(name, ()):
            continue
        domain = core.described.keys.domain
        cells.append(1 if domain is None else max(1, len(domain)))
        for bounded in core.statistics:
            encoding = bounded.statistic.encoding
            if encoding is None:
                continue
            read = (column for argument in bounded.arguments for column in columns_of(argument))
            if not any(place in places_of(column, core.core) for column in read):
                continue
            measurement = calibration.measurement(name, bounded.statistic.name)
            alone = bounded.statistic.kind is StatisticKind.SUM
            # Within nominal bounds an argument may be zero everywhere (`x // 10`): its noise is that of a step then.
            row = max(abs(encoding.lowest), encoding.highest, 1) if alone else bounded.statistic.row_units
            noise = math.sqrt(measurement.variance()) * measurement.grid / row
            ranked = bounded.statistic.kind is StatisticKind.RANKS
            for_one_row = ranked and isinstance(core.contribution, NormedContribution)
            if name not in prepared.values.stepped and not for_one_row:
                noise *= _of_one_unit(core, bounded.statistic, calibration, norms.get(name))
            (ranks if ranked else found).append((noise, alone))
    # A quantile that the bounds leave out is lost, and wide ones cost it next to nothing: its places are many.
    found = ranks or found
    return max(noise for noise, _ in found), all(alone for _, alone in found), min(cells)


def _of_one_unit(
    core: BoundedCore, statistic: Statistic, calibration: Calibration, histogram: ReleasedTable | None
) -> float:
    """By what the noise of a row is multiplied, to be compared with what one unit of a histogram of values loses.

    A unit of r rows with a value beyond the bounds loses between one row's excess and r times that: the root of r is
    taken. Of counted rows the noise is already that of all r. Of scaled ones it is that of one row, and grows with the
    norm, which is about that of a large unit, while r is the mean at that norm.
    """
    contribution = core.contribution
    match contribution:
        case Contribution():
            return 1 / math.sqrt(contribution.total)
        case NormedContribution():
            norm = next((one.norm for one in core.norms if one.norm.name == statistic.norm), None)
            if norm is None or norm.of is not NormOf.ROWS:
                return 1.0
            if histogram is None:
                return _ROWS_UNKNOWN
            choice = norm_choice(core, norm, calibration, histogram)
            if choice is None or not choice.size:
                return _ROWS_UNKNOWN
            return choice.norm / math.sqrt(choice.size)
        case _:
            assert_never(contribution)


def _type(histograms: Sequence[ValueHistogram], place: Place) -> ColumnType:
    return next(one.column.type for one in histograms if (one.table, one.column.name) == place)


def bounds_note(
    place: Place, bounds: ValueBounds, kind: ColumnType, source: BoundsSource, choice: BoundsChoice
) -> BoundsNote:
    """What an answer says of chosen bounds."""
    table, column = place
    share, error = choice.share, choice.share_error
    return BoundsNote(
        table,
        column,
        _text(bounds.lower, kind),
        _text(bounds.upper, kind),
        source,
        choice.certain,
        None if share is None else round(share, 6),
        None if error is None else round(error, 6),
    )


def _text(end: Fraction, kind: ColumnType) -> str:
    """A bound as a value of the column is written."""
    match kind:
        case ColumnType.DATE:
            return date_at(end).isoformat()
        case ColumnType.TIMESTAMP:
            return timestamp_at(end).isoformat(sep=" ")
        case ColumnType.INTEGER | ColumnType.NUMBER:
            return number_text(end)
        case ColumnType.BOOLEAN | ColumnType.TEXT:
            raise AssertionError(f"bounds of a {kind.value} are never chosen")
        case _:
            assert_never(kind)
