"""From true sums to a released table: the only reader of `Exact`.

Order of work: check what the engine gave, select groups, perturb the other statistics on the groups that are shown,
compute estimates. Anything that does not fit the plan is `ExecutionFailed`, without detail.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms import gateway
from mechanisms.calibrate import Calibration
from mechanisms.estimates import Column, estimate_column, linear_form, simulate_column
from mechanisms.interval import Floats, two_sided_alpha
from mechanisms.measurement import Integers, Measurement, plain_text
from mechanisms.randomness import BitSource
from privacy.exact import Exact
from privacy.numbers import decimal_text
from privacy.policy import ColumnType, KeyValue
from privacy.refusal import ExecutionFailed
from privacy.release import MechanismNote, ReleasedColumn, ReleasedTable
from privacy.statistic import CoreStatistics, Statistic, StatisticKind

__all__ = ["REPLICATES", "ROWS_MAX", "release"]

ROWS_MAX = 2**40
"""Rows of a table for which the plan's bounds hold; see moments.md."""

REPLICATES = 400
"""Simulated answers per released column, for the shell's error bounds."""

REPLICATE_NUMBERS_MAX = 2_000_000
REPLICATE_CELLS_MAX = 200_000

REPLICATE_SPREAD_MAX = 2.0**36
"""Widest noise (in units of its grid) that is simulated. Wider noise is drawn in exact arithmetic, a thousand times
slower: at the smallest price one query would keep the server busy for minutes with error bars."""

Key = tuple[KeyValue, ...]


def release(
    core: CoreStatistics,
    calibration: Calibration,
    exact: Exact,
    *,
    bits: BitSource,
    confidence: Fraction,
    replicates: int = REPLICATES,
) -> ReleasedTable:
    """The noisy table of one core.

    Ensures: public keys come in the order of their domain, all of them; selected keys in the order of the keys, NULL
    last; never in the order of rows. Every number that depends on rows has passed `gateway.perturb` once.
    `replicates` is lowered for many cells, none above 200,000; 0 leaves them out.
    Errors: ExecutionFailed for sums or keys that the plan rules out; ValueError for a confidence outside [0.5, 0.9999].
    """
    alpha = two_sided_alpha(confidence)
    keys, sums = _revealed(core, exact)
    if core.keys.domain is not None:
        order, shown = _public_order(keys, core.keys.domain)
        noisy = {
            statistic.name: gateway.perturb(
                calibration.measurement(core.name, statistic.name),
                _placed(sums[statistic.name], order, len(shown)),
                bits,
            ).values
            for statistic in core.statistics
        }
    else:
        shown, noisy = _select(core, calibration, keys, sums, bits)
    columns = [
        ReleasedColumn(name=column.name, role="key", type=column.type, values=tuple(key[i] for key in shown))
        for i, column in enumerate(core.keys.columns)
    ]
    columns += _released(core, calibration, noisy, len(shown), bits, alpha=alpha, replicates=replicates)
    return ReleasedTable(
        name=core.name,
        rows=len(shown),
        columns=tuple(columns),
        confidence=decimal_text(confidence),
        notes=_notes(core, calibration),
    )


def _select(
    core: CoreStatistics,
    calibration: Calibration,
    keys: list[Key],
    sums: dict[str, Integers],
    bits: BitSource,
) -> tuple[list[Key], dict[str, Integers]]:
    """Groups that pass partition selection, sorted, with noisy sums of every statistic."""
    assert core.keys.selection is not None
    ordered = sorted(range(len(keys)), key=lambda row: [(value is None, _sortable(value)) for value in keys[row]])
    rows = np.array(ordered, dtype=np.intp)
    selection = gateway.perturb(
        calibration.measurement(core.name, core.keys.selection), sums[core.keys.selection][rows], bits
    )
    if selection.kept is None:
        raise ExecutionFailed
    kept = np.flatnonzero(selection.kept)
    noisy = {core.keys.selection: selection.values[kept]}
    for statistic in core.statistics:
        if statistic.name != core.keys.selection:
            measurement = calibration.measurement(core.name, statistic.name)
            noisy[statistic.name] = gateway.perturb(measurement, sums[statistic.name][rows[kept]], bits).values
    return [keys[ordered[i]] for i in kept.tolist()], noisy


def _sortable(value: KeyValue) -> Any:
    return 0 if value is None else value


def _revealed(core: CoreStatistics, exact: Exact) -> tuple[list[Key], dict[str, Integers]]:
    """Keys and sums (cells x coordinates) as the plan promised them, or ExecutionFailed."""
    columns, sums, count = exact.reveal()
    try:
        lists = [list(columns[column.name]) for column in core.keys.columns]
        given = {
            statistic.name: [_integers(sums[f"{statistic.name}_{i}"]) for i in range(statistic.coordinates)]
            for statistic in core.statistics
        }
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ExecutionFailed from None
    if any(len(values) != count for values in lists):
        raise ExecutionFailed
    if any(len(part) != count for parts in given.values() for part in parts):
        raise ExecutionFailed
    if any(
        not _of_type(value, column.type)
        for column, values in zip(core.keys.columns, lists, strict=True)
        for value in values
    ):
        raise ExecutionFailed
    keys: list[Key] = list(zip(*lists, strict=True)) if lists else [()] * count
    if len(set(keys)) != len(keys):
        raise ExecutionFailed
    matrices = {
        statistic.name: _stacked(given[statistic.name], count, statistic.coordinates) for statistic in core.statistics
    }
    for statistic in core.statistics:
        _recheck(statistic, matrices[statistic.name])
    return keys, matrices


_PYTHON_TYPES: dict[ColumnType, tuple[type, ...]] = {
    ColumnType.INTEGER: (int,),
    ColumnType.NUMBER: (float, int),
    ColumnType.TEXT: (str,),
    ColumnType.BOOLEAN: (bool,),
    ColumnType.DATE: (datetime.date,),
    ColumnType.TIMESTAMP: (datetime.datetime,),
}


def _of_type(value: Any, wanted: ColumnType) -> bool:
    """Whether a key has the declared type; True and 1 would otherwise count as the same group."""
    return value is None or type(value) in _PYTHON_TYPES[wanted]


def _integers(values: Any) -> Integers:
    """A column of exact integers; anything else raises."""
    if isinstance(values, np.ndarray):
        if values.dtype == np.int64 and values.ndim == 1:
            return values
        values = values.tolist()
    if any(type(value) is not int for value in values):
        raise TypeError
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array(values, dtype=object)


def _stacked(parts: Sequence[Integers], count: int, coordinates: int) -> Integers:
    wide = any(part.dtype != np.int64 for part in parts)
    result: Integers = np.empty((count, coordinates), dtype=object if wide else np.int64)
    for i, part in enumerate(parts):
        result[:, i] = part
    return result


def _recheck(statistic: Statistic, matrix: Integers) -> None:
    """The bounds of the plan, once more outside the engine: a sum beyond them would have unknown sensitivity."""
    if not matrix.size:
        return
    encoding = statistic.encoding
    if statistic.kind in (StatisticKind.UNITS, StatisticKind.COUNT):
        lowest, highest = 0, ROWS_MAX
    elif statistic.kind is StatisticKind.SUM:
        assert encoding is not None
        lowest, highest = min(encoding.lowest, 0) * ROWS_MAX, max(encoding.highest, 0) * ROWS_MAX
    else:
        assert encoding is not None
        lowest, highest = 0, encoding.highest**statistic.degree * ROWS_MAX
    if int(matrix.min()) < lowest or int(matrix.max()) > highest:
        raise ExecutionFailed
    if statistic.coordinates > 1:
        fits = matrix.dtype == np.int64 and int(matrix.max()) < 2**60
        rows = matrix if fits else matrix.astype(object)
        if int(rows.sum(axis=1).max()) > highest:
            raise ExecutionFailed


def _public_order(keys: list[Key], domain: tuple[Key, ...]) -> tuple[npt.NDArray[np.intp], list[Key]]:
    """For each given group its place in the domain. A group outside is a fault of ours."""
    places = {key: place for place, key in enumerate(domain)}
    try:
        return np.array([places[key] for key in keys], dtype=np.intp), list(domain)
    except KeyError:
        raise ExecutionFailed from None


def _placed(matrix: Integers, order: npt.NDArray[np.intp], cells: int) -> Integers:
    """Sums in the order of the domain, zero where the engine gave no group."""
    result: Integers = np.zeros((cells, matrix.shape[1]), dtype=matrix.dtype)
    result[order] = matrix
    return result


def _released(
    core: CoreStatistics,
    calibration: Calibration,
    noisy: dict[str, Integers],
    cells: int,
    bits: BitSource,
    *,
    alpha: float,
    replicates: int,
) -> list[ReleasedColumn]:
    """All estimates, in the order of the core; those of one statistic share its simulated noise."""
    simulations = _simulations(cells, sum(statistic.coordinates for statistic in core.statistics), replicates)
    columns: dict[str, ReleasedColumn] = {}
    for statistic in core.statistics:
        wanted = [estimate for estimate in core.estimates if estimate.statistic == statistic.name]
        if not wanted:
            continue
        measurement = calibration.measurement(core.name, statistic.name)
        quick = measurement.variance() <= REPLICATE_SPREAD_MAX**2
        simulated = _simulated(measurement, noisy[statistic.name], simulations, bits) if simulations and quick else None
        for estimate in wanted:
            column: Column = estimate_column(measurement, estimate, noisy[statistic.name], alpha=alpha)
            columns[estimate.name] = ReleasedColumn(
                name=estimate.name,
                role="released",
                type=ColumnType.INTEGER if estimate.integer else ColumnType.NUMBER,
                values=column.values,
                standard_errors=column.standard_errors,
                lows=column.lows,
                highs=column.highs,
                linear=linear_form(statistic, estimate.kind) is not None,
                replicates=None if simulated is None else simulate_column(measurement, estimate, simulated),
            )
    return [columns[estimate.name] for estimate in core.estimates]


def _simulations(cells: int, coordinates: int, asked: int) -> int:
    """How many simulated answers fit into memory, for all statistics of a core together."""
    if not cells or cells > REPLICATE_CELLS_MAX:
        return 0
    return min(asked, REPLICATE_NUMBERS_MAX // (cells * coordinates))


def _simulated(measurement: Measurement, noisy: Integers, simulations: int, bits: BitSource) -> Floats:
    """Released sums with fresh noise on top: simulations x cells x coordinates. Reads no true sum."""
    noise = measurement.noise(simulations * noisy.size, bits).reshape(simulations, *noisy.shape)
    return noise.astype(np.float64) + noisy.astype(np.float64)


def _notes(core: CoreStatistics, calibration: Calibration) -> tuple[MechanismNote, ...]:
    """What was done to each statistic, for the analyst."""
    notes = []
    for statistic in core.statistics:
        measurement = calibration.measurement(core.name, statistic.name)
        notes.append(
            MechanismNote(
                statistic=statistic.name,
                mechanism=measurement.name,
                scale=plain_text(measurement.scale_of_sums * measurement.unit),
                sensitivity=measurement.sensitivity_text,
                argument=statistic.argument,
                share=plain_text(measurement.share),
                estimates=tuple(e.name for e in core.estimates if e.statistic == statistic.name),
            )
        )
    return tuple(notes)
