"""From true sums to a released table: the only reader of `Exact`.

Order of work: check what the engine gave, select groups, perturb the other statistics on the groups that are shown,
compute estimates. Anything that does not fit the plan is `ExecutionFailed`, without detail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from mechanisms import gateway
from mechanisms.calibrate import Calibration
from mechanisms.fitted_trees import fitting
from mechanisms.interval import two_sided_alpha
from mechanisms.measurement import Integers, Measurement, integers, plain_text
from mechanisms.noisy_sums import NoisySums, released_columns
from mechanisms.randomness import BitSource
from mechanisms.ranks import nodes_of
from mechanisms.released_table import ReleasedTable
from privacy.exact import Exact
from privacy.numbers import decimal_text
from privacy.policy import ColumnType, KeyValue
from privacy.refusal import ExecutionFailed
from privacy.release import ColumnKind, MechanismNote, ReleasedColumn
from privacy.statistic import CoreStatistics, Statistic
from privacy.values import Cell

__all__ = [
    "ROWS_MAX",
    "counts_by_place",
    "counts_of_cells",
    "noisy_vector",
    "note_of",
    "notes_of",
    "release",
    "single_sum",
]

ROWS_MAX = 2**40
"""Rows of a table for which the plan's bounds hold; see moments.md."""

Key = tuple[KeyValue, ...]


def release(
    core: CoreStatistics,
    calibration: Calibration,
    exact: Exact,
    *,
    bits: BitSource,
    confidence: Fraction,
) -> ReleasedTable:
    """The noisy table of one core.

    Ensures: public keys come in the order of their domain, all of them; chosen ones as they were drawn; selected keys
    in the order of the keys, NULL last; never in the order of rows. Every number that depends on rows has passed
    `gateway.perturb` once.
    Errors: ExecutionFailed for sums or keys that the plan rules out; ValueError for a confidence outside [0.5, 0.9999].
    """
    alpha = two_sided_alpha(confidence)
    keys, sums = _revealed(core, exact)
    noisy: dict[str, Integers]
    if core.choice is not None:
        shown, noisy = _chosen(core, calibration, keys, sums, bits), {}
    elif core.keys.domain is not None:
        order, shown = _public_order(keys, core.keys.domain)
        noisy = {
            statistic.name: gateway.perturb(
                calibration.measurement(core.name, statistic.name),
                _counted(statistic, _placed(sums[statistic.name], order, len(shown))),
                bits,
            ).sums
            for statistic in core.statistics
        }
    else:
        shown, noisy, calibration = _select(core, calibration, keys, sums, bits)
    columns = [
        ReleasedColumn(name=column.name, role=ColumnKind.KEY, type=column.type, values=tuple(key[i] for key in shown))
        for i, column in enumerate(core.keys.columns)
    ]
    told = _sums(core, calibration, noisy)
    released = released_columns(told, alpha)
    columns += [released[estimate.name] for estimate in core.estimates]
    return ReleasedTable(
        name=core.name,
        rows=len(shown),
        columns=tuple(columns),
        confidence=decimal_text(confidence),
        notes=notes_of(core, calibration),
        sums=told,
        family=calibration.family,
    )


def single_sum(core: CoreStatistics, exact: Exact) -> int:
    """The true sum of a core without groups whose one statistic has one coordinate: for a comparison, not for release.

    Errors: ExecutionFailed for sums that the plan rules out.
    """
    (statistic,) = core.statistics
    assert core.keys.domain == ((),)
    assert statistic.coordinates == 1
    keys, sums = _revealed(core, exact)
    order, shown = _public_order(keys, core.keys.domain)
    return int(_placed(sums[statistic.name], order, len(shown))[0, 0])


def counts_by_place(core: CoreStatistics, exact: Exact) -> Integers:
    """True counts of a core's one statistic: of ranks by finer place, else by public group.

    For a test (propose_test_release.md), and for what compares and measures cells (stream_synopsis.md).

    Errors: ExecutionFailed for sums that the plan rules out.
    """
    (statistic,) = core.statistics
    assert core.keys.domain is not None
    keys, sums = _revealed(core, exact)
    order, shown = _public_order(keys, core.keys.domain)
    placed = _placed(sums[statistic.name], order, len(shown))
    if statistic.tree is None:
        assert statistic.coordinates == 1
        return placed[:, 0]
    assert core.keys.domain == ((),)
    return placed[0, : statistic.places]


def noisy_vector(measurement: Measurement, exact: Exact, *, coordinates: int, bits: BitSource) -> list[int]:
    """Sums of a vector over units (private_descent.md) with their noise, in integer units of the measurement.

    Each coordinate is a cell to the measurement. Errors: ExecutionFailed for another number of sums.
    """
    columns, sums, rows = exact.reveal()
    given = list(sums.get("sums", ()))
    if columns or rows != 1 or len(given) != coordinates or any(type(value) is not int for value in given):
        raise ExecutionFailed
    matrix = integers([[int(str(value))] for value in given])
    return [int(value) * measurement.grid for value in gateway.perturb(measurement, matrix, bits).sums[:, 0].tolist()]


def counts_of_cells(exact: Exact, sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    """True counts of the cells of several marginals, one after another, for a measurement (synthetic_marginals.md).

    Rows are the marginal's number, the cell and its count; a cell without a row has the count zero. Shape: the sum of
    `sizes`, how many cells each has. Errors: ExecutionFailed for rows that the statement cannot have returned.
    """
    keys, sums, rows = exact.reveal()
    cells = np.array(sizes, dtype=np.int64)
    starts = np.cumsum(cells) - cells
    try:
        number = np.array(list(keys["k0"]), dtype=np.int64)
        cell = np.array(list(keys["k1"]), dtype=np.int64)
        count = np.array([int(str(value)) for value in sums["c0_0"]], dtype=np.int64)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ExecutionFailed from None
    if not len(number) == len(cell) == len(count) == rows:
        raise ExecutionFailed
    if rows and (number.min() < 0 or number.max() >= len(cells) or cell.min() < 0 or count.min() < 0):
        raise ExecutionFailed
    if (cell >= cells[number]).any():
        raise ExecutionFailed
    places = starts[number] + cell
    if len(np.unique(places)) != rows:
        raise ExecutionFailed
    every = np.zeros(int(cells.sum()), dtype=np.int64)
    every[places] = count
    return every


def _chosen(
    core: CoreStatistics,
    calibration: Calibration,
    keys: list[Key],
    sums: dict[str, Integers],
    bits: BitSource,
) -> list[Key]:
    """The public groups that a choice by noisy sums releases, in its order, and nothing of the sums."""
    assert core.keys.domain is not None
    (statistic,) = core.statistics
    order, every = _public_order(keys, core.keys.domain)
    matrix = _placed(sums[statistic.name], order, len(every))
    chosen = gateway.perturb(calibration.measurement(core.name, statistic.name), matrix, bits).chosen
    if chosen is None:
        raise ExecutionFailed
    return [every[place] for place in chosen]


def _select(
    core: CoreStatistics,
    calibration: Calibration,
    keys: list[Key],
    sums: dict[str, Integers],
    bits: BitSource,
) -> tuple[list[Key], dict[str, Integers], Calibration]:
    """Groups that pass partition selection, sorted, with noisy sums of every statistic.

    And the calibration that they have: where very many groups are shown, trees are coarser (`fitting`).
    """
    assert core.keys.selection is not None
    ordered = sorted(range(len(keys)), key=lambda row: [(value is None, _sortable(value)) for value in keys[row]])
    rows = np.array(ordered, dtype=np.intp)
    selection = gateway.perturb(
        calibration.measurement(core.name, core.keys.selection), sums[core.keys.selection][rows], bits
    )
    if selection.kept is None:
        raise ExecutionFailed
    kept = np.flatnonzero(selection.kept)
    noisy = {} if selection.values is None else {core.keys.selection: selection.values[kept]}
    calibration = fitting(calibration, core.name, groups=len(kept))
    for statistic in core.statistics:
        if statistic.name != core.keys.selection:
            measurement = calibration.measurement(core.name, statistic.name)
            held = _counted(measurement.statistic, sums[statistic.name][rows[kept]])
            noisy[statistic.name] = gateway.perturb(measurement, held, bits).sums
    return [keys[ordered[i]] for i in kept.tolist()], noisy, calibration


def _sortable(value: KeyValue) -> KeyValue:
    return 0 if value is None else value


def _revealed(core: CoreStatistics, exact: Exact) -> tuple[list[Key], dict[str, Integers]]:
    """Keys and sums (cells x coordinates) as the plan promised them, or ExecutionFailed."""
    columns, sums, count = exact.reveal()
    try:
        lists = [_keys(columns[column.name], column.type) for column in core.keys.columns]
        given = {
            statistic.name: [_integers(sums[f"{statistic.name}_{i}"]) for i in range(statistic.coordinates)]
            for statistic in core.statistics
            if statistic.tree is None
        }
        trees = {
            statistic.name: np.concatenate(
                [
                    _by_place(sums[statistic.name], statistic, count),
                    *(_of_blocks(sums[name], statistic, count) for name in statistic.block_names),
                ],
                axis=1,
            )
            for statistic in core.statistics
            if statistic.tree is not None
        }
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ExecutionFailed from None
    if any(len(values) != count for values in lists):
        raise ExecutionFailed
    if any(len(part) != count for parts in given.values() for part in parts):
        raise ExecutionFailed
    keys: list[Key] = list(zip(*lists, strict=True)) if lists else [()] * count
    if len(set(keys)) != len(keys):
        raise ExecutionFailed
    matrices = {
        statistic.name: trees[statistic.name]
        if statistic.tree is not None
        else _stacked(given[statistic.name], count, statistic.coordinates)
        for statistic in core.statistics
    }
    for statistic in core.statistics:
        _recheck(statistic, matrices[statistic.name])
    return keys, matrices


def _keys(values: Sequence[Cell], wanted: ColumnType) -> list[KeyValue]:
    """A column of keys of the declared type; anything else raises."""
    keys = [value for value in values if _of_type(value, wanted)]
    if len(keys) != len(values):
        raise TypeError
    return keys


def _of_type(value: object, wanted: ColumnType) -> TypeGuard[KeyValue]:
    """Whether a key has the declared type; True and 1 would otherwise count as the same group."""
    return value is None or type(value) in wanted.python


def _integers(values: Iterable[object]) -> Integers:
    """A column of exact integers; anything else raises."""
    if isinstance(values, np.ndarray) and values.dtype == np.int64 and values.ndim == 1:
        return values
    given: list[int] = []
    for value in values.tolist() if isinstance(values, np.ndarray) else values:
        if type(value) is not int:
            raise TypeError
        given.append(value)
    return integers(given)


def _by_place(places: object, statistic: Statistic, count: int) -> Integers:
    """Rows by place (cells x places) as their worth; anything else raises."""
    tree, units = statistic.tree, statistic.place_units
    assert tree is not None
    if not isinstance(places, np.ndarray) or places.dtype != np.int64 or places.shape != (count, statistic.places):
        raise TypeError
    # Sums of all places stay within 64 bits: the engine's adapter has compared them with the plan's bound.
    if places.size and int(places.max()) > ROWS_MAX * units:
        raise ValueError
    return places * (tree.worth // units)


def _of_blocks(places: object, statistic: Statistic, count: int) -> Integers:
    """Answers of blocks by place (cells x places), of which no cell has more than there are blocks."""
    assert statistic.drawn is not None
    if not isinstance(places, np.ndarray) or places.dtype != np.int64 or places.shape != (count, statistic.places):
        raise TypeError
    if places.size and (int(places.min()) < 0 or int(places.sum(axis=1).max()) > statistic.drawn.blocks):
        raise ValueError
    return places


def _counted(statistic: Statistic, matrix: Integers) -> Integers:
    """The sums that noise is added to: of ranks those of places on all nodes of the tree, or a coarser one.

    Where quantiles are drawn the places follow, among which they are, and what blocks answer by place."""
    tree = statistic.tree
    if tree is None:
        return matrix
    rows = matrix if statistic.drawn is None else matrix[:, : statistic.places]
    merged = rows.shape[1] // tree.places
    nodes = nodes_of(tree, rows.reshape(len(rows), tree.places, merged).sum(axis=2))
    return nodes if statistic.drawn is None else np.concatenate([nodes, matrix], axis=1)


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
    lowest, highest = (ROWS_MAX * end for end in statistic.of_one_row)
    if statistic.tree is not None:
        # By place, before they are added up on each level. What blocks answer has been checked by itself.
        highest //= statistic.tree.levels
        matrix = matrix[:, : statistic.places] if statistic.drawn is not None else matrix
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
    wide = matrix.dtype != np.int64
    result: Integers = np.zeros((cells, matrix.shape[1]), dtype=object if wide else np.int64)
    result[order] = matrix
    return result


def _sums(core: CoreStatistics, calibration: Calibration, noisy: dict[str, Integers]) -> tuple[NoisySums, ...]:
    """The noisy sums with the law of their noise, and the estimates that each statistic gives.

    A selection that releases no numbers has none. Errors: ExecutionFailed when an estimate was to be made of it.
    """
    if any(estimate.statistic not in noisy for estimate in core.estimates):
        raise ExecutionFailed
    return tuple(
        NoisySums(
            calibration.measurement(core.name, statistic.name),
            noisy[statistic.name],
            tuple(estimate for estimate in core.estimates if estimate.statistic == statistic.name),
        )
        for statistic in core.statistics
        if statistic.name in noisy
    )


def notes_of(core: CoreStatistics, calibration: Calibration) -> tuple[MechanismNote, ...]:
    """What was done to each statistic, for the analyst."""
    notes = []
    for statistic in core.statistics:
        estimates = tuple(e.name for e in core.estimates if e.statistic == statistic.name)
        notes.append(note_of(calibration.measurement(core.name, statistic.name), estimates))
    return tuple(notes)


def note_of(measurement: Measurement, estimates: tuple[str, ...] = ()) -> MechanismNote:
    """What was done to a statistic, and the estimates made of it."""
    return MechanismNote(
        statistic=measurement.statistic.name,
        mechanism=measurement.name,
        scale=plain_text(measurement.scale_of_sums * measurement.unit),
        sensitivity=measurement.sensitivity_text,
        argument=measurement.statistic.argument,
        share=plain_text(measurement.share),
        estimates=estimates,
    )
