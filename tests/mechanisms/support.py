"""What the tests of this folder share: bit sources with a memory, a recorder, small statistics and cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mechanisms import gateway
from mechanisms.estimates import ESTIMATORS
from mechanisms.measurement import Integers, Measurement, Perturbed, coarsen, narrow
from mechanisms.randomness import BitSource, Words
from privacy.aggregate import AggregateFunction
from privacy.exact import Exact
from privacy.policy import ColumnType, KeyValue
from privacy.statistic import (
    CoreStatistics,
    Encoding,
    Estimate,
    KeyColumn,
    Keys,
    Sensitivity,
    Statistic,
    StatisticKind,
)
from privacy.unit import Neighbouring

FALSE_ALARM = 1e-9
"""Chance that a statistical test here is red for right code, had its seed been drawn at random."""


class SeededBits:
    """A repeatable bit source. Lives in tests only."""

    def __init__(self, seed: int = 1) -> None:
        self._generator = np.random.Generator(np.random.Philox(seed))

    def words(self, count: int) -> Words:
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)


class ScriptedBits:
    """Gives the written words first, and one fixed word forever after."""

    def __init__(self, first: Words, then: int = 2**63) -> None:
        self._first = first
        self._then = then
        self.refinements = 0

    def words(self, count: int) -> Words:
        given, self._first = self._first[:count], self._first[count:]
        missing = count - given.size
        self.refinements += missing
        return np.concatenate([given, np.full(missing, self._then, dtype=np.uint64)])


@dataclass(frozen=True)
class Call:
    """One call of the gateway: the measurement (with its declared sensitivity) and the exact matrix."""

    measurement: Measurement
    exact: Integers


@contextmanager
def recorded(
    noiseless: bool = False, perturb: Callable[[Measurement, Integers, BitSource], Perturbed] | None = None
) -> Iterator[list[Call]]:
    """Records every call of the gateway; with `noiseless`, answers with exact sums and keeps every group."""
    calls: list[Call] = []
    real = gateway.perturb

    def recorder(measurement: Measurement, exact: Integers, bits: BitSource) -> Perturbed:
        calls.append(Call(measurement, exact.copy()))
        if perturb is not None:
            return perturb(measurement, exact, bits)
        if noiseless:
            return Perturbed(coarsen(narrow(exact), measurement.grid), np.ones(len(exact), dtype=np.bool_))
        return real(measurement, exact, bits)

    gateway.perturb = recorder
    try:
        yield calls
    finally:
        gateway.perturb = real


def sensitivity(l1: int, *, l2_squared: int | None = None, l0: int = 1, linf: int | None = None) -> Sensitivity:
    return Sensitivity(
        relation=Neighbouring.ADD_REMOVE,
        l0=l0,
        l1=Fraction(l1),
        l2_squared=Fraction(l1**2 if l2_squared is None else l2_squared),
        linf=Fraction(linf or l1),
    )


def units(name: str = "u", *, groups: int = 1) -> Statistic:
    bound = sensitivity(groups, l2_squared=groups, l0=groups, linf=1)
    return Statistic(name=name, kind=StatisticKind.UNITS, sensitivity=bound)


def count(name: str = "n", *, rows: int = 1) -> Statistic:
    return Statistic(name=name, kind=StatisticKind.COUNT, sensitivity=sensitivity(rows))


def plain_sum(name: str = "s", *, lowest: int = 0, highest: int = 100, step: Fraction = Fraction(1)) -> Statistic:
    return Statistic(
        name=name,
        kind=StatisticKind.SUM,
        sensitivity=sensitivity(max(abs(lowest), abs(highest))),
        encoding=Encoding(Fraction(0), step, lowest, highest),
    )


def moments(
    name: str = "m",
    *,
    degree: int = 2,
    width: int = 100,
    offset: Fraction = Fraction(0),
    step: Fraction = Fraction(1),
    nulls: bool = False,
) -> Statistic:
    coordinates = degree + 1 + nulls
    return Statistic(
        name=name,
        kind=StatisticKind.MOMENTS,
        sensitivity=sensitivity(width**degree, l0=coordinates),
        coordinates=coordinates,
        encoding=Encoding(offset, step, 0, width),
        degree=degree,
        counts_nulls=nulls,
    )


def two_averages(name: str = "p", *, first: int = 2**11, second: int = 2**10) -> Statistic:
    """The pairs by which averages of two columns are measured: y in steps of a half, x in steps of 2 from 7 on."""
    return Statistic(
        name=name,
        kind=StatisticKind.PRODUCTS,
        sensitivity=sensitivity(first * second, l0=4),
        coordinates=4,
        encoding=Encoding(Fraction(0), Fraction(1, 2), 0, first),
        degree=1,
        second=Encoding(Fraction(7), Fraction(2), 0, second),
        second_degree=1,
        parts=2,
    )


def bernstein(values: np.ndarray[Any, Any], *, width: int, degree: int, nulls: int | None = None) -> list[int]:
    """The exact coordinates of one cell."""
    t = values.astype(object)
    parts = [width - t, t] if degree == 1 else [(width - t) ** 2, 2 * t * (width - t), t**2]
    return [int(part.sum()) for part in parts] + ([] if nulls is None else [nulls * width**degree])


def held(statistic: Statistic) -> tuple[Estimate, ...]:
    """An estimate for every aggregate that the statistic holds: a view of the estimators."""
    found = []
    for kind, estimator in ESTIMATORS.items():
        try:
            estimator.form(statistic)
        except ValueError:
            continue
        found.append(Estimate(kind.value, kind, statistic.name, integer=kind.whole(ColumnType.NUMBER)))
    return tuple(found)


MOMENT_ESTIMATES = {degree: held(moments(degree=degree)) for degree in (1, 2)}
"""By the degree of the moments."""


def truths(values: np.ndarray[Any, Any], *, nulls: int = 0) -> dict[str, float]:
    """What each estimate of moments is of plain values, where it is defined: the definitions of the aggregates."""
    floats = values.astype(np.float64)
    found = {e.name: ESTIMATORS[e.kind].truth(floats, nulls=nulls) for e in MOMENT_ESTIMATES[2]}
    return {name: truth for name, truth in found.items() if truth is not None}


def cells_core(statistics: Sequence[Statistic], estimates: Sequence[Estimate], cells: int) -> CoreStatistics:
    """A core over the public keys 0..cells-1."""
    domain: tuple[tuple[KeyValue, ...], ...] = tuple((i,) for i in range(cells))
    keys = Keys((KeyColumn("k", ColumnType.INTEGER),), domain, 1)
    return CoreStatistics("core", keys, tuple(statistics), tuple(estimates))


def scalar_core(statistics: Sequence[Statistic], estimates: Sequence[Estimate]) -> CoreStatistics:
    return CoreStatistics("core", Keys((), ((),), 1), tuple(statistics), tuple(estimates))


def selected_core(
    *others: Statistic, groups: int = 1, estimates: Sequence[Estimate] = (), kind: ColumnType = ColumnType.TEXT
) -> CoreStatistics:
    """A core whose groups are released by partition selection."""
    rows = Estimate("rows", AggregateFunction.ROWS, "u", integer=True)
    keys = Keys((KeyColumn("k", kind),), None, groups, "u")
    return CoreStatistics("core", keys, (units(groups=groups), *others), (rows, *estimates))


def same_cells(core: CoreStatistics, sums: dict[str, int], cells: int) -> Exact:
    """The same exact sums in every cell."""
    columns: dict[str, Any] = {name: [value] * cells for name, value in sums.items()}
    return Exact(keys={"k": list(range(cells))} if core.keys.columns else {}, sums=columns, rows=cells)
