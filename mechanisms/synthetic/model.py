"""A model of a table from noisy marginals: a tree of columns, each of which depends on one or two before it.

Everything here is a function of released numbers. Noisy marginals that overlap are made consistent first: what several
of them say of the same count is weighted by their variances, and each marginal is then fitted to the smaller ones that
it contains, so that the model has exactly these. Rows are drawn column by column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats
from mechanisms.profile import nonnegative
from mechanisms.randomness import BitSource
from mechanisms.synthetic.counts import CELLS_MAX, TRIPLE_CELLS_MAX, Noisy
from mechanisms.synthetic.price import SELECTED_FROM
from privacy.binned import BinnedColumn, Marginal, cells_of

__all__ = ["Model", "expected_pairs", "narrowed", "triples_of"]

Places = npt.NDArray[np.int64]

_ROUNDS: Final = 60
"""Rounds of fitting a marginal to smaller ones; each round is exact in one of them."""

_MIXED: Final = 1e-3

_SURE: Final = 4.0
"""Deviations of noise above which a place of a column without bounds is taken to have rows."""


def narrowed(
    columns: Sequence[BinnedColumn], noisy: Sequence[Noisy]
) -> tuple[tuple[BinnedColumn, ...], tuple[Noisy, ...]]:
    """Columns without bounds, with the places alone between which noisy counts show rows, and their marginals."""
    fewer, counts = [], []
    for column, one in zip(columns, noisy, strict=True):
        if not column.chosen:
            fewer.append(column)
            counts.append(one)
            continue
        values = one.counts[: column.size - column.null]
        seen = np.nonzero(values > _SURE * one.sigma)[0]
        first, last = (int(seen[0]), int(seen[-1])) if len(seen) else (0, len(values) - 1)
        kept = values[first : last + 1].copy()
        if column.null:
            kept = np.append(kept, one.counts[-1])
        fewer.append(column.narrowed(first, last))
        counts.append(Noisy(one.marginal, kept, one.sigma))
    return tuple(fewer), tuple(counts)


def _total(noisy: Sequence[Noisy]) -> float:
    """How many rows there are, by all marginals together: each says it with the noise of all of its cells."""
    weights = np.array([1 / (one.variance * one.counts.size) for one in noisy])
    sums = np.array([float(one.counts.sum()) for one in noisy])
    return max(1.0, float((weights * sums).sum() / weights.sum()))


def _combined(marginal: Marginal, noisy: Sequence[Noisy]) -> Floats | None:
    """What all marginals that contain these columns say of them, weighted by their variances; None where none does."""
    total, weight = None, 0.0
    for one in noisy:
        if not set(marginal) <= set(one.marginal):
            continue
        others = tuple(axis for axis, column in enumerate(one.marginal) if column not in marginal)
        summed = one.counts.sum(axis=others)
        kept = [column for column in one.marginal if column in marginal]
        summed = np.transpose(summed, [kept.index(column) for column in marginal])
        part = 1 / (one.variance * math.prod(one.counts.shape[axis] for axis in others))
        total = summed * part if total is None else total + summed * part
        weight += part
    return None if total is None else total / weight


def _fitted(noisy: Floats, margins: Sequence[tuple[tuple[int, ...], Floats]], likely: Floats) -> Floats:
    """Counts that are not negative, near the noisy ones, with these sums over the other axes.

    `margins` are pairs of axes and sums; `likely` are counts that have them, a little of which is mixed in: cells
    where noise alone has left nothing could otherwise make it impossible to meet them.
    """
    total = float(likely.sum())
    counts = nonnegative(noisy.reshape(-1), total).reshape(noisy.shape)
    counts = (1 - _MIXED) * counts + _MIXED * likely
    axes = range(noisy.ndim)
    for _ in range(_ROUNDS):
        for kept, wanted in margins:
            others = tuple(axis for axis in axes if axis not in kept)
            had = counts.sum(axis=others)
            factor = np.divide(wanted, had, out=np.zeros_like(had), where=had > 0)
            counts = counts * np.expand_dims(factor, others)
    result: Floats = counts
    return result


def expected_pairs(ones: Sequence[Noisy], pairs: Sequence[Marginal]) -> dict[Marginal, Floats]:
    """The counts of pairs of columns if no column depended on another one, by the marginals of single columns."""
    total = _total(ones)
    fitted = [nonnegative(one.counts, total) for one in ones]
    return {(i, j): np.outer(fitted[i], fitted[j]) / total for i, j in pairs}


def _path(left: Floats, right: Floats) -> Floats:
    """The counts of three columns, of which the first and the last depend on the middle one alone."""
    shared = right.sum(axis=1)
    conditional = np.divide(right, shared[:, None], out=np.zeros_like(right), where=shared[:, None] > 0)
    result: Floats = left[:, :, None] * conditional[None, :, :]
    return result


@dataclass(frozen=True, slots=True)
class _Tree:
    """Columns in an order in which each comes after its parent, and the parents; those without one begin a tree."""

    order: tuple[int, ...]
    parent: Mapping[int, int]

    @staticmethod
    def of(columns: int, pairs: Sequence[Marginal]) -> _Tree:
        """The forest of these pairs, from the column with the most pairs on."""
        beside: dict[int, list[int]] = {number: [] for number in range(columns)}
        for i, j in pairs:
            beside[i].append(j)
            beside[j].append(i)
        order: list[int] = []
        parent: dict[int, int] = {}
        for start in sorted(beside, key=lambda number: (-len(beside[number]), number)):
            waiting = [start] if start not in order else []
            while waiting:
                here = waiting.pop(0)
                order.append(here)
                for child in beside[here]:
                    if child not in order and child not in waiting:
                        parent[child] = here
                        waiting.append(child)
        return _Tree(tuple(order), parent)

    def second_parents(self, child: int) -> list[int]:
        """What a column may depend on beside its parent: its parent's parent, and its parent's earlier children."""
        if child not in self.parent:
            return []
        parent = self.parent[child]
        earlier = self.order[: self.order.index(child)]
        siblings = [one for one in earlier if self.parent.get(one) == parent]
        return [*([self.parent[parent]] if parent in self.parent else []), *siblings]


def triples_of(columns: Sequence[BinnedColumn], noisy: Sequence[Noisy]) -> dict[Marginal, Floats]:
    """The triples that may be measured beside the tree of the chosen pairs, with the counts that it leads to expect.

    The last column of each is the child; the first two are a pair of the tree. Few, those with the fewest cells first.
    """
    pairs = [one.marginal for one in noisy if len(one.marginal) == 2]
    tree = _Tree.of(len(columns), pairs)
    every = [(other, tree.parent[child], child) for child in tree.order for other in tree.second_parents(child)]
    every = [one for one in every if cells_of(columns, one) <= TRIPLE_CELLS_MAX]
    every.sort(key=lambda one: cells_of(columns, one))
    if len(columns) < SELECTED_FROM:
        every = every[:1]
    model, cells = Model.of(columns, noisy), 0
    found: dict[Marginal, Floats] = {}
    for one in every[: 4 * len(columns)]:
        cells += cells_of(columns, one)
        if cells > CELLS_MAX:
            break
        found[one] = model.expected(one)
    return found


@dataclass(frozen=True, slots=True)
class Model:
    """The model: for each column its parents and the counts of the column beside them (parents first).

    `total` is about how many rows there are.
    """

    total: float
    order: tuple[int, ...]
    parents: Mapping[int, tuple[int, ...]]
    tables: Mapping[int, Floats]

    @staticmethod
    def of(columns: Sequence[BinnedColumn], noisy: Sequence[Noisy]) -> Model:
        """The model of these marginals: of every column, of a forest of pairs, and of triples beside it."""
        total = _total(noisy)
        ones = {}
        for number in range(len(columns)):
            counts = _combined((number,), noisy)
            assert counts is not None
            ones[number] = nonnegative(counts, total)
        tree = _Tree.of(len(columns), [one.marginal for one in noisy if len(one.marginal) == 2])
        pairs: dict[Marginal, Floats] = {}
        for child, parent in tree.parent.items():
            counts = _combined((parent, child), noisy)
            assert counts is not None
            likely = np.outer(ones[parent], ones[child]) / total
            pairs[parent, child] = _fitted(counts, [((0,), ones[parent]), ((1,), ones[child])], likely)
        parents: dict[int, tuple[int, ...]] = dict.fromkeys(range(len(columns)), ())
        tables = dict(ones)
        for child, parent in tree.parent.items():
            parents[child], tables[child] = (parent,), pairs[parent, child]
        for one in noisy:
            if len(one.marginal) == 3:
                other, parent, child = one.marginal
                above = pairs[other, parent] if (other, parent) in pairs else pairs[parent, other].T
                margins = [((0, 1), above), ((1, 2), pairs[parent, child])]
                likely = _path(above, pairs[parent, child])
                parents[child], tables[child] = (other, parent), _fitted(one.counts, margins, likely)
        return Model(total, tree.order, parents, tables)

    def expected(self, triple: Marginal) -> Floats:
        """The counts of three columns of a path of the tree, the middle one second, in a model of pairs alone."""
        first, middle, last = triple
        return _path(self._pair(first, middle), self._pair(middle, last))

    def _pair(self, first: int, second: int) -> Floats:
        if self.parents[second] == (first,):
            return self.tables[second]
        if self.parents[first] == (second,):
            return self.tables[first].T
        raise ValueError("no pair of the tree")

    def drawn(self, rows: int, bits: BitSource) -> Places:
        """Places of so many rows (rows x columns), drawn from the model, with as little chance as that needs.

        Within each combination of the parents' places the places of a column are spread evenly over its conditional
        law, and which row gets which of them is random.
        """
        found = np.zeros((rows, len(self.order)), dtype=np.int64)
        for column in self.order:
            table, parents = self.tables[column], self.parents[column]
            shape = table.shape[:-1]
            group = np.zeros(rows, dtype=np.int64)
            for size, parent in zip(shape, parents, strict=True):
                group = group * size + found[:, parent]
            found[:, column] = _spread(group, table.reshape(-1, table.shape[-1]), bits)
        return found


def _uniform(count: int, bits: BitSource) -> Floats:
    return (bits.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _spread(group: Places, table: Floats, bits: BitSource) -> Places:
    """A place for each row, by the conditional law of its group (groups x places)."""
    rows = len(group)
    sums = table.sum(axis=1)
    whole = table.sum(axis=0)
    whole = whole / whole.sum() if whole.sum() > 0 else np.full(table.shape[1], 1 / table.shape[1])
    law = np.where(sums[:, None] > 0, table / np.where(sums > 0, sums, 1)[:, None], whole[None, :])
    cumulative = np.cumsum(law, axis=1)
    cumulative = cumulative / cumulative[:, -1:]
    order = np.lexsort((bits.words(rows), group))
    sorted_group = group[order]
    counts = np.bincount(group, minlength=len(table))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    rank = np.arange(rows) - starts[sorted_group]
    offset = _uniform(len(table), bits)[sorted_group]
    point = np.minimum((rank + offset) / counts[sorted_group], 1 - 2.0**-40)
    edges = (cumulative + np.arange(len(table))[:, None]).reshape(-1)
    place = np.searchsorted(edges, sorted_group + point, side="right") - sorted_group * table.shape[1]
    result = np.empty(rows, dtype=np.int64)
    result[order] = np.clip(place, 0, table.shape[1] - 1)
    return result
