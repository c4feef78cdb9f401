"""Levels that are measured together, once more from their definition: nodes, noise, least squares and whole numbers.

Nothing of `mechanisms.consistency` is used but the levels and weights that a measurement says it has.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from mechanisms.measurements.levels import GaussianLevels, LaplaceLevels

__all__ = ["Together", "least_squares", "nodes_of", "whole"]

Together = LaplaceLevels | GaussianLevels


def _members(measurement: Together) -> list[tuple[int, list[int]]]:
    """Of each node its weight and the places in it, level by level; places that no value has among them."""
    lattice = measurement.lattice
    places = list(itertools.product(*(range(size) for size in lattice.sizes)))
    found = []
    for level, weight in lattice.weights:
        for node in itertools.product(*(range(lattice.sizes[place]) for place in level)):
            inside = [i for i, cell in enumerate(places) if tuple(cell[place] for place in level) == node]
            found.append((weight, inside))
    return found


def _values(measurement: Together) -> list[int]:
    """The places that are cells, in the order of the cells: those whose digits write a value that its key has."""
    lattice = measurement.lattice
    axes = lattice.axes or tuple((size, 1) for size in lattice.sizes)
    found = []
    for number, digits in enumerate(itertools.product(*(range(size) for size in lattice.sizes))):
        left, real = list(zip(digits, lattice.sizes, strict=True)), True
        for count, length in axes:
            value = 0
            for digit, size in left[:length]:
                value = value * size + digit
            left, real = left[length:], real and value < count
        if real:
            found.append(number)
    return found


def nodes_of(measurement: Together, cells: Sequence[Sequence[int]]) -> list[list[int]]:
    """The sums of all nodes, times their weights: nodes x coordinates."""
    coordinates = range(len(cells[0]))
    known = dict(zip(_values(measurement), cells, strict=True))
    nothing = [0] * len(cells[0])
    return [
        [weight * sum(known.get(i, nothing)[c] for i in inside) for c in coordinates]
        for weight, inside in _members(measurement)
    ]


def least_squares(measurement: Together, noisy: Sequence[Sequence[int]]) -> list[list[Fraction]]:
    """The normal equations, solved by elimination in fractions: cells x coordinates."""
    members = _members(measurement)
    count = math.prod(measurement.lattice.sizes)
    coordinates = len(noisy[0])
    rows = [[Fraction(0)] * (count + coordinates) for _ in range(count)]
    for (weight, inside), sums in zip(members, noisy, strict=True):
        for i in inside:
            for j in inside:
                rows[i][j] += weight**2
            for c in range(coordinates):
                rows[i][count + c] += weight * sums[c]
    for i in range(count):
        pivot = rows[i][i]
        rows[i] = [value / pivot for value in rows[i]]
        for j in range(count):
            if j != i and rows[j][i]:
                factor = rows[j][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [rows[place][count:] for place in _values(measurement)]


def whole(estimates: Sequence[Sequence[Fraction]]) -> list[list[int]]:
    """Whole numbers whose running sums are the rounded running sums of the estimates."""
    before, running, found = [0] * len(estimates[0]), [Fraction(0)] * len(estimates[0]), []
    for row in estimates:
        running = [a + b for a, b in zip(running, row, strict=True)]
        rounded = [math.floor(value + Fraction(1, 2)) for value in running]
        found.append([a - b for a, b in zip(rounded, before, strict=True)])
        before = rounded
    return found
