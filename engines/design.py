"""The encoded rows of a model in a worker, and exact sums over units: mechanisms/private_descent.md, sections 1 to 3.

Everything is whole numbers. What a unit adds follows from its own rows and from what the request holds, whatever the
order of rows, the number of others or the library that multiplies: products of matrices are of whole numbers in
doubles, small enough that every partial sum is exact. Roundings are toward zero and before any sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt

from privacy.training import (
    CLIPPED_UNITS,
    HELD_PLACES,
    ROW_UNITS,
    UNIT_WEIGHT,
    WEIGHT_UNITS,
    WEIGHTS_NORM_MAX,
    Clipping,
    Wanted,
    norm_of,
)

__all__ = ["Design", "DesignColumn", "Gathered"]

Whole = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_CHUNK_CELLS = 1 << 18
_ROWS_EXACT = 1 << 20
"""Rows of a chunk: its sums of products of 2^28 stay below 2^48."""

_STEPS_PER_ONE = 256
_REACH = 16
_CURVE: Whole = np.array(
    [
        round(ROW_UNITS / (1 + math.exp(-(place + 0.5) / _STEPS_PER_ONE)))
        for place in range(-_REACH * _STEPS_PER_ONE, _REACH * _STEPS_PER_ONE)
    ],
    dtype=np.int64,
)
"""The logistic curve in integer units, by steps of its argument."""


@dataclass(frozen=True, slots=True)
class DesignColumn:
    """A result column: a number with this greatest T, or, with `keys`, the place of one of so many keys."""

    highest: int
    keys: bool


@dataclass(frozen=True, slots=True, repr=False)
class Gathered:
    """Rows as the engine gave them: numbers of units, the parts that they are in, columns and where they are NULL."""

    units: Whole
    parts: Whole
    columns: Sequence[Whole]
    nulls: Sequence[npt.NDArray[np.bool_]]
    label: Whole
    label_null: npt.NDArray[np.bool_]


class Design:
    """Encoded rows, in the order of their units. Has no text form."""

    __slots__ = ("_clip", "_clipping", "_held", "_label", "_own", "_rows", "_signed", "_starts", "_unit_rows", "_whole")

    def __init__(
        self,
        gathered: Gathered,
        columns: Sequence[DesignColumn],
        label: DesignColumn,
        *,
        held: int,
        clipping: Clipping,
        clip: int,
    ) -> None:
        """Encodes the rows that have a label. `held` of HELD_PLACES parts of the units are held out.

        `clip`: the norm to which rows, or gradients, are held; for rows in units of encoded rows before they are
        scaled, for gradients in those of what is added up.
        """
        assert 0 <= held < HELD_PLACES
        assert clip >= 1
        there = np.flatnonzero(~gathered.label_null)
        order = there[np.argsort(gathered.units[there], kind="stable")]
        units = gathered.units[order]
        self._starts: Whole = np.flatnonzero(np.diff(units, prepend=-1)).astype(np.int64)
        self._unit_rows: Whole = np.diff(self._starts, append=len(units)).astype(np.int64)
        self._held: npt.NDArray[np.bool_] = gathered.parts[order[self._starts]] < held
        steps = np.clip(gathered.label[order], 0, label.highest)
        self._label: Whole = steps * ROW_UNITS // label.highest
        self._signed: Whole = 2 * self._label - ROW_UNITS
        self._clipping, self._clip = clipping, clip
        self._rows = self._encoded(gathered, columns, order)
        most = norm_of((1 + len(columns)) * ROW_UNITS**2)
        self._scale(clip if clipping is Clipping.INPUTS else most, by_unit=clipping is Clipping.INPUTS)

    def __repr__(self) -> str:
        return "<Design>"

    @staticmethod
    def _encoded(gathered: Gathered, columns: Sequence[DesignColumn], order: Whole) -> npt.NDArray[np.int16]:
        """The rows before any scaling: the intercept, numbers in [-1, 1], one or zero for each key."""
        width = 1 + sum(column.highest if column.keys else 1 for column in columns)
        rows = np.zeros((len(order), width), dtype=np.int16)
        rows[:, 0] = ROW_UNITS
        place = 1
        for column, values, null in zip(columns, gathered.columns, gathered.nulls, strict=True):
            there = ~null[order]
            steps = np.clip(np.where(there, values[order], 0), 0, column.highest)
            if column.keys:
                found = np.flatnonzero(there & (steps > 0))
                rows[found, place + steps[found] - 1] = ROW_UNITS
                place += column.highest
            else:
                # NULL adds nothing: it is the middle of the bounds.
                value = _toward_zero((2 * steps - column.highest) * ROW_UNITS, np.int64(column.highest))
                rows[:, place] = np.where(there, value, 0)
                place += 1
        return rows

    def _scale(self, most: int, *, by_unit: bool) -> None:
        """Rows of norm at most ROW_UNITS, each scaled by itself, as in the formula that predicts.

        With `by_unit` the sums over a unit that is not held out take each of its rows by the part `_own` / `_whole`:
        what is then left of the norms of all its rows adds up to ROW_UNITS at most. Labels between -1 and 1 are scaled
        by unit with the rows of products: least squares of rows that are scaled and labels that are not would be those
        of another line.
        """
        norms = np.zeros(len(self._rows), dtype=np.int64)
        for part in self._chunks():
            wide = self._rows[part].astype(np.int64)
            norms[part] = _root_above((wide * wide).sum(axis=1))
        self._own: Whole = np.maximum(norms, most)
        self._whole: Whole = self._own
        if by_unit and len(self._starts):
            of_units = np.repeat(np.add.reduceat(norms, self._starts), self._unit_rows)
            of_units = np.where(np.repeat(self._held, self._unit_rows), norms, of_units)
            self._whole = np.maximum(of_units, most)
        self._signed = _toward_zero(self._signed * most, self._whole)
        for part in self._chunks():
            wide = self._rows[part].astype(np.int64)
            self._rows[part] = _toward_zero(wide * ROW_UNITS, self._own[part, None])

    def sums(self, wanted: Wanted, weights: Sequence[int]) -> list[int]:
        """Exact sums over units. `weights` are whole numbers of the unit WEIGHT_UNITS, one for each column, or none.

        Errors: ValueError for weights beyond their norm.
        """
        given = np.array(weights, dtype=np.int64)
        if len(given) not in (0, self._rows.shape[1]) or sum(w * w for w in weights) > WEIGHTS_NORM_MAX**2:
            raise ValueError
        if wanted is Wanted.PRODUCTS and self._clipping is not Clipping.INPUTS:
            raise ValueError
        match wanted:
            case Wanted.COUNT:
                return [int((~self._held).sum())]
            case Wanted.GRADIENT:
                return self._gradient(given)
            case Wanted.PRODUCTS:
                return self._products()
            case Wanted.OUTCOMES:
                return self._outcomes(given)
            case Wanted.ERRORS:
                return self._errors(given)
            case _:
                assert_never(wanted)

    def _gradient(self, weights: Whole) -> list[int]:
        if self._clipping is Clipping.GRADIENTS:
            return self._clipped_gradient(weights)
        total = np.zeros(self._rows.shape[1], dtype=np.int64)
        kept = np.repeat(~self._held, self._unit_rows)
        for part in self._chunks():
            rows = self._rows[part].astype(np.float64)
            # Predicted from the row by itself; then the row counts by its part of the unit.
            residual = _toward_zero(self._residual(rows, weights, part) * self._own[part], self._whole[part])
            residual = np.where(kept[part], residual, 0)
            total += (residual.astype(np.float64) @ rows).astype(np.int64)
        return total.tolist()

    def _clipped_gradient(self, weights: Whole) -> list[int]:
        """Each unit's gradient over all of its rows, scaled to the norm and cut toward zero; then the sum.

        All numbers are whole and below 2^53, in doubles: products, sums and quotients by powers of two are exact.
        """
        total = np.zeros(self._rows.shape[1], dtype=np.int64)
        for first, last in self._unit_chunks():
            counts = self._unit_rows[first:last]
            part = slice(int(self._starts[first]), int(self._starts[last - 1] + counts[-1]))
            rows = self._rows[part].astype(np.float64)
            of_unit = self._residual(rows, weights, part).astype(np.float64)[:, None] * rows
            if len(of_unit) > len(counts):
                of_unit = np.add.reduceat(of_unit, self._starts[first:last] - part.start, axis=0)
            # Of k rows the norm is at most k times 2^28: cut until it is at most 2^26, whose square doubles hold.
            coarse = 4 << _bits_of(counts)
            of_unit = np.trunc(of_unit / coarse[:, None])
            norms = _root_above((of_unit * of_unit).sum(axis=1).astype(np.int64))
            # Back to the same scale for all units: one is 2^26 over the clip, times what was cut.
            held = np.maximum(norms * (coarse >> 2), self._clip)
            scaled = _quotients(of_unit * CLIPPED_UNITS, -(-held // (coarse >> 2)))
            total += scaled[~self._held[first:last]].sum(axis=0).astype(np.int64)
        return total.tolist()

    def _products(self) -> list[int]:
        """The upper triangle of all pairs of columns, row by row, then each column with the scaled label in [-1, 1]."""
        width = self._rows.shape[1]
        pairs = np.zeros((width, width), dtype=np.int64)
        along = np.zeros(width, dtype=np.int64)
        kept = np.repeat(~self._held, self._unit_rows)
        for part in self._chunks():
            of_unit = _toward_zero(self._rows[part].astype(np.int64) * self._own[part, None], self._whole[part, None])
            rows = np.where(kept[part][:, None], of_unit, 0).astype(np.float64)
            pairs += (rows.T @ rows).astype(np.int64)
            along += (self._signed[part].astype(np.float64) @ rows).astype(np.int64)
        return [*pairs[np.triu_indices(width)].tolist(), *along.tolist()]

    def _outcomes(self, weights: Whole) -> list[int]:
        """Weights of held-out rows that are 0 and called 0, 0 called 1, 1 called 0, and 1 called 1."""
        total = np.zeros(4, dtype=np.int64)
        weight = self._row_weights()
        for part in self._chunks():
            called = self._scores(self._rows[part].astype(np.float64), weights) > 0
            place = 2 * (2 * self._label[part] > ROW_UNITS) + called
            for cell in range(4):
                total[cell] += weight[part][place == cell].sum()
        return total.tolist()

    def _errors(self, weights: Whole) -> list[int]:
        """Of held-out rows the weight, and by it the label, its square and a quarter of the squared error."""
        total = np.zeros(4, dtype=np.int64)
        weight = self._row_weights()
        for part in self._chunks():
            scores = self._scores(self._rows[part].astype(np.float64), weights)
            # In units of 2^-14, labels and what is predicted in [-1, 1].
            signed = 2 * self._label[part] - ROW_UNITS
            called = np.clip(_toward_zero(scores, np.int64(WEIGHT_UNITS)), -ROW_UNITS, ROW_UNITS)
            error = signed - called
            own = weight[part]
            total += [
                int(own.sum()),
                int(_toward_zero(own * signed, np.int64(ROW_UNITS)).sum()),
                int((own * (signed * signed // ROW_UNITS) // ROW_UNITS).sum()),
                int((own * (error * error // (4 * ROW_UNITS)) // ROW_UNITS).sum()),
            ]
        return total.tolist()

    def _row_weights(self) -> Whole:
        """What each row weighs: an equal part of its unit where that is held out, else nothing."""
        return np.repeat(np.where(self._held, UNIT_WEIGHT // np.maximum(self._unit_rows, 1), 0), self._unit_rows)

    def _residual(self, rows: Floats, weights: Whole, part: slice) -> Whole:
        """Predicted less true, in [-ROW_UNITS, ROW_UNITS]."""
        unit = ROW_UNITS * WEIGHT_UNITS // _STEPS_PER_ONE
        place = self._scores(rows, weights) // unit + _REACH * _STEPS_PER_ONE
        called: Whole = _CURVE[np.clip(place, 0, len(_CURVE) - 1)]
        return called - self._label[part]

    @staticmethod
    def _scores(rows: Floats, weights: Whole) -> Whole:
        """Products of rows and weights: whole numbers of at most 2^40, however they are added."""
        scores: Whole = (rows @ weights.astype(np.float64)).astype(np.int64)
        return scores

    def _chunks(self) -> Iterator[slice]:
        size = min(_ROWS_EXACT, max(1, _CHUNK_CELLS // self._rows.shape[1]))
        for first in range(0, len(self._rows), size):
            yield slice(first, min(first + size, len(self._rows)))

    def _unit_chunks(self) -> Iterator[tuple[int, int]]:
        """Units whose rows fit a chunk, or one unit that does not."""
        size = max(1, _CHUNK_CELLS // self._rows.shape[1])
        first, count = 0, len(self._starts)
        while first < count:
            last = int(np.searchsorted(self._starts, self._starts[first] + size, side="right"))
            last = min(max(last - 1, first + 1), count) if last < count else count
            yield first, last
            first = last


def _toward_zero(values: Whole, divisor: Whole | np.int64) -> Whole:
    """Quotients cut toward zero: never greater in magnitude than the true ones."""
    result: Whole = np.sign(values) * (np.abs(values) // divisor)
    return result


def _quotients(values: Floats, divisors: Whole) -> Floats:
    """Quotients of each row of whole numbers by a whole number, cut toward zero.

    Requires: values of at most 2^52, divisors at most 2^27, quotients at most 2^26. A quotient that is no whole number
    is at least 2^-27 away from one, and a division of doubles is wrong by at most 2^-28 below 2^26: it reaches none.
    """
    assert not divisors.size or int(divisors.max()) <= 2**27
    result: Floats = np.trunc(values / divisors.astype(np.float64)[:, None])
    return result


def _root_above(squares: Whole) -> Whole:
    """Integers that are not below the roots. Requires: squares below 2^53, which doubles hold.

    A root of a double is rounded to a double that is not below the floor of the true root.
    """
    assert not squares.size or int(squares.max()) < 2**53
    roots: Whole = np.floor(np.sqrt(squares.astype(np.float64))).astype(np.int64)
    return roots + (roots * roots < squares)


def _bits_of(counts: Whole) -> Whole:
    """For each count the least b with count <= 2^b."""
    bits = np.zeros(len(counts), dtype=np.int64)
    while (counts > 1 << bits).any():
        bits += counts > 1 << bits
    return bits
