"""Groups merged by their noisy numbers, with intervals that hold whatever was merged: merging.md.

Functions of released numbers. Nothing here knows of keys or calendars: a `Node` is some groups that may be shown as one
row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import assert_never

import numpy as np

from mechanisms.estimates import linear_form
from mechanisms.interval import Floats
from mechanisms.linear import weighted_quantiles
from mechanisms.measurement import Law
from mechanisms.noisy_sums import NoisySums
from privacy.statistic import Estimate

__all__ = ["Merger", "Node", "Row", "nodes_of", "rows_shown"]


@dataclass(frozen=True)
class Node:
    """Groups (by their places) that may be one row: those of its children, or a single one that has none.

    `rest`: of the children that are too small one row is made, beside those that are not; else all of them are one as
    soon as any is too small.
    """

    cells: tuple[int, ...]
    level: str = ""
    children: tuple[Node, ...] = ()
    rest: bool = False

    def __post_init__(self) -> None:
        assert self.cells
        assert not self.children or sorted(self.cells) == sorted(cell for one in self.children for cell in one.cells)
        assert self.children or len(self.cells) == 1


@dataclass(frozen=True, slots=True)
class Row:
    """A row that is shown: its groups, the level that it is of, and whether it is as exact as was asked."""

    cells: tuple[int, ...]
    level: str
    met: bool
    whole: tuple[int, ...] = ()
    """Of a row that is the rest of a node: all groups of that node."""


def nodes_of(roots: Sequence[Node]) -> list[Node]:
    """All nodes, each before its children."""

    def below(node: Node) -> Iterator[Node]:
        yield node
        for child in node.children:
            yield from below(child)

    return [node for root in roots for node in below(root)]


class Merger:
    """The noisy numbers of one column: sums over groups, and intervals that hold for all nodes at once."""

    def __init__(self, one: NoisySums, estimate: Estimate, roots: Sequence[Node], alpha: float) -> None:
        """Intervals of all nodes together miss with probability at most `alpha`.

        Errors: ValueError for an estimate that is not linear in its sums, or noise whose law does not add up.
        """
        form = linear_form(one.measurement.statistic, estimate.kind)
        if form is None:
            raise ValueError("the estimate is not linear in its sums")
        self._one, self._estimate = one, estimate
        self._form = [Fraction(part) * one.measurement.grid for part in form]
        self._nodes = {node.cells: place for place, node in enumerate(nodes_of(roots))}
        self._alpha = alpha / len(self._nodes)

    @property
    def _weights(self) -> Floats:
        weights = np.zeros((len(self._nodes), len(self._one.values)))
        for cells, place in self._nodes.items():
            weights[place, list(cells)] = 1.0
        return weights

    @cached_property
    def _noise(self) -> tuple[Floats, Floats]:
        """The half widths of the intervals of all nodes, and their standard errors."""
        measurement, weights = self._one.measurement, self._weights
        vector = weights[:, :, None] * np.array([float(part) for part in self._form])
        spread, beside = measurement.spread(vector), np.zeros(len(weights))
        if spread is None:
            flat = vector.reshape(-1, vector.shape[-1])
            scaled = measurement.scaled(flat).reshape(len(weights), -1)
            variance = measurement.noise_variances(flat).reshape(len(weights), -1).sum(axis=1)
            rounding = np.abs(vector).reshape(len(weights), -1) * measurement.noise_rounding
        else:
            scaled, variance = measurement.scaled(spread), measurement.noise_variances(spread)
            rounding = np.abs(spread) * measurement.noise_rounding
            beside = np.abs(np.diff(vector, axis=1, prepend=0.0, append=0.0)).sum(axis=(1, 2)) / 2
        laplace, normal = np.zeros((len(weights), 0)), np.zeros(len(weights))
        match measurement.law:
            case Law.LAPLACE:
                laplace = np.abs(scaled)
            case Law.NORMAL:
                normal = (scaled**2).sum(axis=-1)
            case Law.OTHER:
                raise ValueError("the law of the noise is not one that adds up")
            case _:
                assert_never(measurement.law)
        wider = measurement.widening(self._alpha)
        reaches = weighted_quantiles(laplace, normal, rounding, self._alpha, wider=wider) + beside
        if self._whole:
            # Sums of whole numbers: an error within a reach is within its whole part.
            reaches = np.floor(reaches * (1 + 1e-12) + 1e-9)
        elif self._estimate.integer:
            reaches = reaches + 0.5
        return reaches, np.sqrt(variance)

    @property
    def _whole(self) -> bool:
        return self._estimate.integer and all(part.denominator == 1 for part in self._form)

    @cached_property
    def _cells(self) -> list[Fraction]:
        return [
            sum((part * int(number) for part, number in zip(self._form, row, strict=True)), Fraction(0))
            for row in self._one.values
        ]

    def value(self, cells: Sequence[int]) -> int | float:
        """The sum of some groups' numbers."""
        total = sum((self._cells[cell] for cell in cells), Fraction(0))
        return round(total) if self._estimate.integer else float(total)

    def reach(self, row: Row) -> float:
        """Half the width of a row's interval: merging.md, Proposition 2."""
        reaches, _ = self._noise
        if not row.whole:
            return float(reaches[self._nodes[row.cells]])
        parts = sum(float(reaches[self._nodes[cell,]]) for cell in row.cells)
        others = [cell for cell in row.whole if cell not in row.cells]
        around = float(reaches[self._nodes[row.whole]]) + sum(float(reaches[self._nodes[cell,]]) for cell in others)
        return min(parts, around)

    def error(self, row: Row) -> float | None:
        """The standard error of a row's number without the choice of rows; None of the rest of a node."""
        _, errors = self._noise
        return None if row.whole else float(errors[self._nodes[row.cells]])

    def meets(self, row: Row, relative: Fraction) -> bool:
        """Whether half the width of a row's interval is at most such a part of its number."""
        return self.reach(row) <= float(relative) * self.value(row.cells)


def rows_shown(roots: Sequence[Node], merger: Merger, relative: Fraction) -> tuple[Row, ...]:
    """The rows into which groups are merged until each is as exact as asked, or is all of its root.

    Each group is in one row.
    """

    def row(node: Node) -> Row:
        found = Row(node.cells, node.level, met=False)
        return Row(node.cells, node.level, met=merger.meets(found, relative))

    def below(node: Node) -> list[Row]:
        if not node.children:
            return [row(node)]
        if node.rest:
            return list(_with_rest(node))
        rows = [one for child in node.children for one in below(child)]
        return rows if all(one.met for one in rows) else [row(node)]

    def _with_rest(node: Node) -> Iterator[Row]:
        alone = [row(child) for child in node.children]
        small = [one for one in alone if not one.met]
        large = sorted((one for one in alone if one.met), key=lambda one: merger.value(one.cells), reverse=True)
        while small and large:
            rest = Row(tuple(sorted(cell for one in small for cell in one.cells)), node.level, False, node.cells)
            if len(small) > 1 and merger.meets(rest, relative):
                kept = {one.cells for one in large}
                yield from (one for one in alone if one.cells in kept)
                yield Row(rest.cells, rest.level, True, node.cells)
                return
            small.append(large.pop())
        yield from [row(node)] if small else alone

    return tuple(one for root in roots for one in below(root))
