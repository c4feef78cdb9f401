"""Sums over all cells of a product of keys and over the cells of coarser levels, measured together and made consistent.

Every level of a lattice is measured with noise of its own; the least-squares estimate of the finest level follows from
all of them, and every coarser number is the sum of the finest ones below it: consistency.md. Functions of released
numbers, but for `stacked`, which adds up exact ones. Nothing here knows of SQL: a hierarchy with totals that add up is
a lattice.

Arrays of cells have the cells in row-major order of the keys, and coordinates of a statistic as their last axis. Nodes
are the cells of all measured levels, level by level in the order of `weights`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats
from mechanisms.measurement import Integers, narrow

__all__ = ["CELLS_MAX", "Lattice", "Level", "chosen_lattice", "of_one_cell", "sizes_of"]

Level = tuple[int, ...]
"""The places of the keys that a level groups by, in ascending order."""

CELLS_MAX = 1000
"""Most cells of the finest level of a lattice: the error of its sums is computed from a weight for each node."""

_SAFE = 2**59

_Number = TypeVar("_Number", np.float64, np.object_)


@dataclass(frozen=True, slots=True)
class Lattice:
    """The number of values of each key, and the measured levels, each with the whole number that its sums are times.

    Noise is of one scale on all of them, so a sum of weight w has the w-th part of it. The finest level is measured.

    A size may be that of one digit of the place of a value in an order: `axes` says of each key how many values it has,
    and how many of `sizes` are its digits. Places behind its last value are nodes that are measured as any other, and
    no cells (consistency.md, Proposition 6). Without `axes` each of the sizes is a key.
    """

    sizes: tuple[int, ...]
    weights: tuple[tuple[Level, int], ...]
    axes: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        assert all(size >= 1 for size in self.sizes)
        assert not self.axes or sum(digits for _, digits in self.axes) == len(self.sizes)
        assert all(0 < count <= room for (count, _), room in zip(self.axes, self._rooms, strict=True) if self.axes)
        assert all(weight >= 1 for _, weight in self.weights)
        levels = [level for level, _ in self.weights]
        assert len(set(levels)) == len(levels)
        assert tuple(range(len(self.sizes))) in levels
        assert all(set(level) <= set(range(len(self.sizes))) for level in levels)

    @classmethod
    def of(cls, text: str) -> Self:
        """The lattice of a text that `text` gave. Errors: ValueError for another one."""
        named, *levels = text.split(" ")
        axes, weights = [], []
        for one in levels:
            weight, places = one.split("*")
            weights.append((tuple(map(int, places.split(","))) if places else (), int(weight)))
        sizes: list[int] = []
        for key in named.split("x"):
            count, digits = key.split(":") if ":" in key else (key, key)
            sizes += map(int, digits.split("."))
            axes.append((int(count), digits.count(".") + 1))
        try:
            return cls(tuple(sizes), tuple(weights), tuple(axes) if ":" in named else ())
        except AssertionError:
            raise ValueError("it is not the text of a lattice") from None

    @property
    def text(self) -> str:
        """Sizes and levels as one string: `6x2 2*0,1 1*` is 6 times 2 cells of weight 2, and a total of weight 1.

        `100:4.5.5` in place of a size are the digits of a key of 100 values.
        """
        levels = (f"{weight}*{','.join(map(str, level))}" for level, weight in self.weights)
        return " ".join(("x".join(self._named()), *levels))

    def _named(self) -> Iterator[str]:
        sizes = iter(map(str, self.sizes))
        for count, digits in self.axes or ((size, 1) for size in self.sizes):
            own = ".".join(itertools.islice(sizes, digits))
            yield own if own == str(count) else f"{count}:{own}"

    @property
    def _rooms(self) -> tuple[int, ...]:
        """Of each key with axes, for how many values its digits have room."""
        sizes = iter(self.sizes)
        return tuple(math.prod(itertools.islice(sizes, digits)) for _, digits in self.axes)

    @property
    def cells(self) -> int:
        """Cells, of which an exact sum is given and an estimate released."""
        return math.prod(count for count, _ in self.axes) if self.axes else self.room

    @property
    def room(self) -> int:
        """Groups of the finest level: the cells, and the places of digits that no value has."""
        return math.prod(self.sizes)

    @property
    def nodes(self) -> int:
        """Cells of all measured levels."""
        return sum(self.cells_of(level) for level, _ in self.weights)

    def cells_of(self, level: Level) -> int:
        """Cells of a level."""
        return math.prod(self.sizes[place] for place in level)

    def merged(self, level: Level) -> int:
        """How many groups of the finest level are in each group of a level."""
        return self.room // self.cells_of(level)

    def stacked(self, exact: Integers) -> Integers:
        """The sums of all nodes (nodes x coordinates), times their weights, from those of the cells."""
        cells, coordinates = exact.shape
        assert cells == self.cells
        most = max(weight for _, weight in self.weights) * cells
        greatest = max(1, abs(int(exact.max())), abs(int(exact.min()))) if exact.size else 1
        whole = exact if exact.dtype == np.int64 and greatest * most <= _SAFE else exact.astype(object)
        tensor = self._wide(whole[None])[0]
        parts = [
            (tensor.sum(axis=self._away(level)) * weight).reshape(-1, coordinates) for level, weight in self.weights
        ]
        return narrow(np.concatenate(parts))

    def consistent(self, noisy: Integers) -> Integers:
        """The least-squares estimate of the cells (cells x coordinates), in whole numbers, from noisy sums of nodes.

        Whole numbers such that the sum of the first k cells is that of the estimates, rounded: each cell is less than
        one away from its estimate, and so is the sum of any cells that follow one another.
        """
        coordinates = noisy.shape[1]
        right = np.zeros((*self.sizes, coordinates), dtype=object)
        start = 0
        for level, weight in self.weights:
            count = self.cells_of(level)
            part = noisy[start : start + count].astype(object) * weight
            right = right + part.reshape(*self._kept(level), coordinates)
            start += count
        effects = {kept: self.eigenvalue(kept) for kept in _prefixes(self.chains)}
        common = math.lcm(*effects.values())
        tops = np.zeros_like(right)
        for kept, component in self._components(right):
            tops = tops + component * (common // effects[kept])
        bottom = common * self.room
        below = np.cumsum(self._cells_of(tops[None])[0], axis=0)
        whole = (2 * below + bottom) // (2 * bottom)
        return narrow(np.diff(whole, axis=0, prepend=np.zeros((1, coordinates), dtype=object)))

    def gathered(self, noise: Floats) -> Floats:
        """What noise does to the estimates (... x nodes x coordinates to ... x cells x coordinates)."""
        *rows, nodes, coordinates = noise.shape
        assert nodes == self.nodes
        flat = noise.reshape(-1, nodes, coordinates)
        right = np.zeros((len(flat), *self.sizes, coordinates))
        start = 0
        for level, weight in self.weights:
            count = self.cells_of(level)
            part = flat[:, start : start + count] * weight
            right += part.reshape(len(flat), *self._kept(level), coordinates)
            start += count
        return self._cells_of(self._solved(right)).reshape(*rows, self.cells, coordinates)

    def spread(self, weights: Floats) -> Floats:
        """How much the noise of each node takes part in weighted sums of estimates of the cells.

        Shape: ... x cells x coordinates to ... x nodes x coordinates.
        """
        *rows, cells, coordinates = weights.shape
        tensor = self._wide(weights.reshape(-1, cells, coordinates))
        solved = self._solved(tensor)
        parts = [
            (solved.sum(axis=tuple(axis + 1 for axis in self._away(level))) * weight).reshape(
                len(tensor), self.cells_of(level), coordinates
            )
            for level, weight in self.weights
        ]
        return np.concatenate(parts, axis=1).reshape(*rows, self.nodes, coordinates)

    def _solved(self, tensor: Floats) -> Floats:
        """The solution of the normal equations in floats, for each of the rows (rows x keys x coordinates)."""
        solved = np.zeros_like(tensor)
        for kept, component in self._components(tensor, first=1):
            solved = solved + component / (self.eigenvalue(kept) * self.room)
        return solved

    def eigenvalue(self, kept: Level) -> int:
        """The eigenvalue of the normal equations on effects of some keys: consistency.md, Proposition 1."""
        return sum(weight**2 * self.merged(level) for level, weight in self.weights if set(kept) <= set(level))

    def variance_of(self, level: Level) -> float:
        """The variance of the estimate of a cell of a level, measured or not, in variances of the noise."""
        inside = set(level)
        total = math.fsum(dimension / eigenvalue for kept, dimension, eigenvalue in _effects(self) if kept <= inside)
        return total * self.merged(level) / self.cells_of(level)

    def change(self, power: int, groups: int) -> int:
        """What a unit changes in all nodes over what it changes in the cells: in L1, or in squares of L2.

        The unit changes at most so many cells. consistency.md, Proposition 3.
        """
        if power == 1:
            return sum(weight for _, weight in self.weights)
        return sum(weight**2 * min(groups, self.merged(level)) for level, weight in self.weights)

    def _away(self, level: Level) -> tuple[int, ...]:
        return tuple(axis for axis in range(len(self.sizes)) if axis not in level)

    def _kept(self, level: Level) -> tuple[int, ...]:
        return tuple(size if axis in level else 1 for axis, size in enumerate(self.sizes))

    def _wide(self, tensor: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """Cells (rows x cells x coordinates) by digits (rows x sizes x coordinates), zero where no cell is."""
        rows, _, coordinates = tensor.shape
        if not self.axes:
            return tensor.reshape(rows, *self.sizes, coordinates)
        wide: npt.NDArray[_Number] = np.zeros((rows, *self._rooms, coordinates), dtype=tensor.dtype)
        counts: list[int] = [count for count, _ in self.axes]
        wide[(slice(None), *map(slice, counts))] = tensor.reshape(rows, *counts, coordinates)
        return wide.reshape(rows, *self.sizes, coordinates)

    def _cells_of(self, tensor: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """The way back: rows x cells x coordinates."""
        rows, coordinates = len(tensor), tensor.shape[-1]
        if self.axes:
            wide = tensor.reshape(rows, *self._rooms, coordinates)
            tensor = wide[(slice(None), *(slice(count) for count, _ in self.axes))]
        return tensor.reshape(rows, -1, coordinates)

    @property
    def chains(self) -> tuple[Level, ...]:
        """The keys in chains, such that each measured level that has a key has all that are before it in its chain."""
        return _chains(len(self.sizes), tuple(level for level, _ in self.weights))

    def _components(
        self, tensor: npt.NDArray[_Number], *, first: int = 0, chain: int = 0
    ) -> Iterator[tuple[Level, npt.NDArray[_Number]]]:
        """The parts of cells that are effects of some keys, times `room`, of the chains from `chain` on.

        Effects of one chain that have the same eigenvalue are one part: consistency.md, Proposition 6. The keys are the
        axes from `first` on.
        """
        if chain == len(self.chains):
            yield (), tensor
            return
        places: Level = self.chains[chain]
        kept: Level
        length: int
        before: npt.NDArray[_Number] | None = None
        for length in range(len(places) + 1):
            away = tuple(first + place for place in places[length:])
            means = tensor.sum(axis=away, keepdims=True) * math.prod(self.sizes[place] for place in places[:length])
            part: npt.NDArray[_Number] = means if before is None else means - before
            before = means
            for kept, component in self._components(part, first=first, chain=chain + 1):
                yield tuple(sorted((*places[:length], *kept))), component


@lru_cache(maxsize=64)
def _chains(keys: int, levels: tuple[Level, ...]) -> tuple[Level, ...]:
    chains: list[list[int]] = []
    for place in range(keys):
        holding = [level for level in levels if place in level]
        chain = next((one for one in chains if all(one[-1] in level for level in holding)), None)
        if chain is None:
            chains.append([place])
        else:
            chain.append(place)
    return tuple(map(tuple, chains))


def _prefixes(chains: tuple[Level, ...]) -> Iterator[Level]:
    """The keys of each part: of every chain the first ones."""
    for lengths in itertools.product(*(range(len(chain) + 1) for chain in chains)):
        yield tuple(sorted(place for chain, length in zip(chains, lengths, strict=True) for place in chain[:length]))


@lru_cache(maxsize=16)
def _subsets(count: int) -> tuple[Level, ...]:
    """All subsets of so many keys."""
    return tuple(
        itertools.chain.from_iterable(itertools.combinations(range(count), length) for length in range(count + 1))
    )


@lru_cache(maxsize=64)
def _effects(lattice: Lattice) -> tuple[tuple[frozenset[int], int, int], ...]:
    """Of the effects of each subset of keys, how many are independent of each other, and their eigenvalue."""
    return tuple(
        (frozenset(kept), math.prod(lattice.sizes[place] - 1 for place in kept), lattice.eigenvalue(kept))
        for kept in _subsets(len(lattice.sizes))
    )


@lru_cache(maxsize=64)
def of_one_cell(lattice: Lattice) -> tuple[Floats, Floats]:
    """The weights of the nodes' noise in the estimate of one cell, without signs, and how many nodes have each.

    The same for every cell: shifting the values of a key moves nodes within their levels.
    """
    cell = np.zeros((lattice.cells, 1))
    cell[0] = 1.0
    weights = np.abs(lattice.spread(cell)[:, 0])
    found, counts = np.unique(np.round(weights / weights.max(), 12), return_counts=True)
    busy = found > 0
    return found[busy] * weights.max(), counts[busy].astype(np.float64)


def sizes_of(domain: Sequence[tuple[object, ...]]) -> tuple[int, ...] | None:
    """The number of values of each key whose product, in row-major order, is the domain; None where it is not."""
    if not domain or not domain[0]:
        return None
    values = [list(dict.fromkeys(cell[place] for cell in domain)) for place in range(len(domain[0]))]
    sizes = tuple(map(len, values))
    if math.prod(sizes) != len(domain):
        return None
    return sizes if list(itertools.product(*values)) == list(domain) else None


EFFECTS_MAX = 256
"""Most levels of a question times its effects, which are two to the power of its keys."""

WEIGHT_MAX = 8
"""Greatest weight of a level."""

WORSE = 2.0
"""How many times greater than from the finest level alone the error of no level becomes for the sake of others."""

_BEYOND = 32.0
"""How many times more an error counts beyond that."""

WORTH = 1.05
"""How many times smaller the geometric mean of the errors has to become before coarser levels are measured: the release
of the finest level alone answers the question without levels too, and may be stored."""


@lru_cache(maxsize=256)
def chosen_lattice(sizes: tuple[int, ...], asked: tuple[Level, ...], *, power: int, groups: int) -> Lattice | None:
    """The weights with which the levels of a question are measured; None where the finest level alone is best.

    `power` is that of the norm to which noise is calibrated, `groups` the most cells of the finest level in which one
    unit changes a sum. The least geometric mean of the errors of the levels that are asked for, which is that of their
    relative errors too, whatever the numbers are; and none more than `WORSE` times that from the finest level alone.
    Reads no data. Of equal choices the first, and a better one is better by a millionth at least, so that every machine
    finds the same.
    """
    finest = tuple(range(len(sizes)))
    if len(asked) << len(sizes) > EFFECTS_MAX or math.prod(sizes) > CELLS_MAX or set(asked) <= {finest}:
        return None
    levels = (finest, *(level for level in asked if level != finest))

    score = _score(sizes, levels, asked, power=power, groups=groups)
    alone = (1, *(0 for _ in levels[1:]))
    best, least = _descent(alone, score)
    for weight in (1, WEIGHT_MAX):
        other, known = _descent((1, *(weight for _ in levels[1:])), score)
        if known < least - 1e-6:
            best, least = other, known
    if not any(best[1:]) or score(alone) - least < 2 * len(asked) * math.log(WORTH):
        return None
    shared = math.gcd(*best)
    return Lattice(
        sizes, tuple((level, weight // shared) for level, weight in zip(levels, best, strict=True) if weight)
    )


def _score(
    sizes: tuple[int, ...], levels: Sequence[Level], asked: Sequence[Level], *, power: int, groups: int
) -> Callable[[tuple[int, ...]], float]:
    """The logarithm of the product of the squared errors of the levels asked for, by weights of levels, 0 for none.

    The first level is the finest. As `Lattice.variance_of` and `Lattice.change`, of which there would be thousands.
    """
    only = Lattice(sizes, ((levels[0], 1),))
    merged = [only.merged(level) for level in levels]
    costs = [1 if power == 1 else min(groups, one) for one in merged]
    effects = [
        [
            (place, many)
            for place, (level, many) in enumerate(zip(levels, merged, strict=True))
            if set(kept) <= set(level)
        ]
        for kept in _subsets(len(sizes))
    ]
    parts = []
    for level in asked:
        inside = [
            (place, dimension * only.merged(level) / only.cells_of(level))
            for place, (kept, dimension, _) in enumerate(_effects(only))
            if kept <= set(level)
        ]
        parts.append((inside, math.log(WORSE**2 * only.variance_of(level))))

    def score(weights: tuple[int, ...]) -> float:
        squares = [weight**2 for weight in weights]
        eigenvalues = [sum(squares[place] * many for place, many in effect) for effect in effects]
        change = sum(weights) ** 2 if power == 1 else sum(a * b for a, b in zip(squares, costs, strict=True))
        total = 0.0
        for inside, most in parts:
            error = math.log(change * math.fsum(part / eigenvalues[place] for place, part in inside))
            total += error + _BEYOND * max(0.0, error - most)
        return total

    return score


def _descent(start: tuple[int, ...], score: Callable[[tuple[int, ...]], float]) -> tuple[tuple[int, ...], float]:
    """Weights that no change of one of them makes better, and their score."""
    found, known = start, score(start)
    better = True
    while better:
        better = False
        for place in range(len(found)):
            for weight in range(0 if place else 1, WEIGHT_MAX + 1):
                tried = (*found[:place], weight, *found[place + 1 :])
                if (value := score(tried)) < known - 1e-6:
                    found, known, better = tried, value, True
    return found, known
