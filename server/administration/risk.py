"""How easily the people of a dataset could be told apart by what others know of them: for its owner alone.

True counts about rows, without noise. No route calls this: only a command on the machine that holds the data.

    class          the units that agree in some columns, the quasi-identifiers
    k              the size of the smallest class: the table is k-anonymous in these columns
    generalise     coarser columns until the smallest class has k units, found greedily; then each is made finer again
                   as far as k allows, so no single column could be one step finer
    linkage        somebody knows these columns of a person and looks for the row: the share found for certain, and of
                   guesses that are right
    differencing   somebody asks how many people there are with and without one person: certain of exact answers, and
                   measured here on answers with noise, beside the limit that no attack on them passes

k-anonymity is a property of a table, no protection of answers: a class whose members share a secret gives it away, and
two k-anonymous tables may tell everybody apart. It says how careful to be with copies of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import assert_never

from engines.classes import ClassCounter, ClassSizes, Coarse, Coarseness, Spread
from mechanisms.randomness import BitSource, SystemBits
from mechanisms.samplers.laplace import rounded_laplace
from privacy.conversions import membership_guess
from privacy.numbers import dyadic_up
from privacy.policy import Column, ColumnType, Dataset, Table

__all__ = ["COLUMNS_MAX", "Classes", "Differencing", "Generalised", "Risk", "generalise", "measure", "suitable"]

COLUMNS_MAX = 16
"""Most columns that are combined."""

_TRIALS = 20_000
_GRID = 1 << 12
"""Steps of one person in a count, in which noise is drawn."""

_BUCKETS = ((1, 1), (2, 2), (3, 4), (5, 9), (10, 49), (50, None))
_WIDTHS = (2, 5, 10, 20, 25, 50, 100, 200, 250, 500)


@dataclass(frozen=True, slots=True)
class Classes:
    """Units by the size of their smallest class."""

    sizes: ClassSizes

    @property
    def units(self) -> int:
        """How many units have rows in the table."""
        return sum(units for _, units in self.sizes)

    @property
    def least(self) -> int:
        """k: the size of the smallest class; 0 without units."""
        return self.sizes[0][0] if self.sizes else 0

    @property
    def certain(self) -> float:
        """The share of units that are alone in a class."""
        return self._share(1, 1)

    @property
    def guessed(self) -> float:
        """The share of right guesses of somebody who picks a member of the smallest class of each unit at random."""
        return sum(units / size for size, units in self.sizes) / max(self.units, 1)

    def buckets(self) -> list[tuple[int, int | None, int, float]]:
        """Sizes from, to (None: no end), units and their share."""
        return [(low, high, self._within(low, high), self._share(low, high)) for low, high in _BUCKETS]

    def _within(self, low: int, high: int | None) -> int:
        return sum(units for size, units in self.sizes if low <= size and (high is None or size <= high))

    def _share(self, low: int, high: int | None) -> float:
        return self._within(low, high) / max(self.units, 1)


@dataclass(frozen=True, slots=True)
class Generalised:
    """Columns that are coarse enough for k, and their classes; `columns` has their SQL too, None for one left out."""

    k: int
    columns: tuple[tuple[Coarse, str | None], ...]
    classes: Classes


@dataclass(frozen=True, slots=True)
class Differencing:
    """Two counts that differ in one person, at `epsilon` of noise each: how often the difference is read rightly."""

    epsilon: Fraction
    exact: float
    noisy: float
    limit: float


@dataclass(frozen=True, slots=True)
class Risk:
    """The report. `alone` has the classes of each column by itself."""

    table: str
    columns: tuple[str, ...]
    classes: Classes
    alone: tuple[Classes, ...]
    generalised: Generalised | None
    differencing: Differencing


def suitable(dataset: Dataset, table: Table) -> tuple[str, ...]:
    """The columns of a table that may be quasi-identifiers: all but the privacy unit's and the table's own key."""
    own = {table.key, table.unit_column, dataset.unit.key if dataset.unit.table == table.name else None}
    return tuple(column.name for column in table.columns if column.name not in own)


def measure(
    snapshot: Path,
    dataset: Dataset,
    table: Table,
    columns: Sequence[str],
    *,
    k: int,
    bits: BitSource | None = None,
) -> Risk:
    """The report of some columns of a protected table.

    Requires: between one and `COLUMNS_MAX` names of `suitable` columns, k at least 2.
    Errors: SnapshotRefused when they could not be counted.
    """
    assert table.protected
    assert 0 < len(columns) <= COLUMNS_MAX
    exact = [Coarse(name) for name in columns]
    with ClassCounter(snapshot, table.name) as counter:
        classes = Classes(counter.sizes(exact))
        alone = tuple(Classes(counter.sizes([column])) for column in exact) if len(exact) > 1 else (classes,)
        generalised = generalise(counter, table, columns, k=k)
    return Risk(
        table=table.name,
        columns=tuple(columns),
        classes=classes,
        alone=alone,
        generalised=generalised,
        differencing=difference(dataset.limits.epsilon_default, bits or SystemBits()),
    )


def generalise(counter: ClassCounter, table: Table, columns: Sequence[str], *, k: int) -> Generalised | None:
    """Coarser columns with classes of at least k units; None where not even all units together are k.

    The column with the most different values is made coarser first, one step at a time; then each column in turn is
    made finer again as far as k allows. The best choice over all columns at once is NP-hard (Meyerson, Williams 2004).
    """
    found = counter.spreads(columns)
    declared = {column.name: column for column in table.columns}
    ladders = [_ladder(declared[name], spread) for name, spread in zip(columns, found, strict=True)]
    levels = [0] * len(columns)

    def classes_at(chosen: Sequence[int]) -> Classes:
        coarse = [ladder[level] for ladder, level in zip(ladders, chosen, strict=True)]
        return Classes(counter.sizes(coarse))

    classes = classes_at(levels)
    while 0 < classes.least < k and any(level < len(ladder) - 1 for ladder, level in zip(ladders, levels, strict=True)):
        open_ = [place for place, ladder in enumerate(ladders) if levels[place] < len(ladder) - 1]
        widest = max(open_, key=lambda place: _values(found[place], ladders[place][levels[place]]))
        levels[widest] += 1
        classes = classes_at(levels)
    if classes.least < k:
        return None
    for place in range(len(levels)):
        while levels[place] > 0:
            finer = [*levels]
            finer[place] -= 1
            tried = classes_at(finer)
            if tried.least < k:
                break
            levels, classes = finer, tried
    chosen = [ladder[level] for ladder, level in zip(ladders, levels, strict=True)]
    return Generalised(k, tuple((coarse, _sql(coarse)) for coarse in chosen), classes)


def difference(epsilon: Fraction, bits: BitSource) -> Differencing:
    """The differencing attack on two counts with Laplace noise: whoever sees them says "there" above one half."""
    noise = rounded_laplace(scale=dyadic_up(_GRID / epsilon), count=2 * _TRIALS, bits=bits)
    there = [(2 * trial) % 4 == 0 for trial in range(_TRIALS)]
    right = sum(
        (int(noise[2 * trial] - noise[2 * trial + 1]) + _GRID * there[trial] > _GRID // 2) == there[trial]
        for trial in range(_TRIALS)
    )
    # One answer holds the person or not, the other one never does: what it knows of the person is one epsilon.
    return Differencing(epsilon, 1.0, right / _TRIALS, float(membership_guess(epsilon)))


def _ladder(column: Column, spread: Spread) -> list[Coarse]:
    """A column's forms, the finest first; the last one leaves it out."""
    name = column.name
    match column.type:
        case ColumnType.INTEGER | ColumnType.NUMBER:
            powers = max(len(str(int(spread.range))) - 3, 0) + 1
            widths = [
                width * 10**power for power in range(powers) for width in _WIDTHS if width * 10**power <= spread.range
            ]
            steps: list[tuple[Coarseness, int]] = [("width", width) for width in dict.fromkeys(sorted(widths))]
        case ColumnType.TEXT:
            steps = [("prefix", length) for length in (6, 5, 4, 3, 2, 1) if length < spread.length]
        case ColumnType.DATE:
            steps = [("month", 0), ("year", 0)]
        case ColumnType.TIMESTAMP:
            steps = [("day", 0), ("month", 0), ("year", 0)]
        case ColumnType.BOOLEAN:
            steps = []
        case _:
            assert_never(column.type)
    return [Coarse(name), *(Coarse(name, kept, size) for kept, size in steps), Coarse(name, "hidden")]


def _values(spread: Spread, coarse: Coarse) -> float:
    """About how many different values a column has in this form."""
    match coarse.kept:
        case "exact":
            return spread.values
        case "width":
            return min(spread.values, spread.range / coarse.size)
        case "prefix":
            return spread.values * coarse.size / max(spread.length, 1)
        case "day":
            return spread.values / 2
        case "month":
            return spread.values / 30
        case "year":
            return spread.values / 365
        case "hidden":
            return 0
        case _:
            assert_never(coarse.kept)


def _sql(coarse: Coarse) -> str | None:
    """The form as an analyst would group by it; None for a column that is left out."""
    match coarse.kept:
        case "exact":
            return coarse.column
        case "width":
            return f"FLOOR({coarse.column} / {coarse.size}) * {coarse.size}"
        case "prefix":
            return f"LEFT({coarse.column}, {coarse.size})"
        case "day" | "month" | "year":
            return f"DATE_TRUNC('{coarse.kept}', {coarse.column})"
        case "hidden":
            return None
        case _:
            assert_never(coarse.kept)
