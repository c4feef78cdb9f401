"""Noisy sums with the law of their noise: what every value and error of a released table is computed from.

A stored release keeps them, so that its intervals at any confidence, and its simulated errors, are those of a fresh
one. Everything here reads released numbers only (post-processing: Dwork and Roth 2014, Proposition 2.1).
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NotRequired, TypedDict, TypeVar

from mechanisms.estimates import Column, estimate_column, held_to, linear_form, of_nobody
from mechanisms.families import MEASUREMENTS
from mechanisms.measurement import Integers, Measurement, integers, narrow
from privacy.policy import ColumnType
from privacy.release import ColumnKind, ReleasedColumn
from privacy.statistic import Estimate, Statistic
from privacy.values import Json

__all__ = [
    "NoisySums",
    "Stored",
    "StoredMeasurement",
    "measurement_from_plain",
    "measurement_to_plain",
    "released_columns",
    "sums_from_plain",
    "sums_to_plain",
]

Described = TypeVar("Described")


class StoredMeasurement(TypedDict):
    """One measurement as JSON holds it."""

    mechanism: str
    measurement: Mapping[str, Json]


class Stored(StoredMeasurement):
    """One `NoisySums` as JSON holds it."""

    estimates: Sequence[Mapping[str, Json]]
    sums: Sequence[Sequence[int]]
    fine: NotRequired[Sequence[Sequence[int]]]


@dataclass(frozen=True, slots=True)
class NoisySums:
    """Noisy sums of one statistic (cells x coordinates, in units of the measurement's grid) of the groups shown.

    `fine` are those of a mean of releases before its last rounding, in units of 2^-16 of the grid; None of others.
    """

    measurement: Measurement
    values: Integers
    estimates: tuple[Estimate, ...]
    fine: Integers | None = field(default=None, repr=False)

    @property
    def selects(self) -> bool:
        """Whether groups are shown by these very counts."""
        return self.measurement.selects

    def estimate(self, name: str) -> Estimate | None:
        """The estimate of that name, None when another statistic has it."""
        return next((estimate for estimate in self.estimates if estimate.name == name), None)

    def linear(self, name: str) -> bool:
        """Whether the estimate is linear in the sums, so that its error is the same in every cell."""
        estimate = self.estimate(name)
        return estimate is not None and linear_form(self.measurement.statistic, estimate.kind) is not None

    def held_to(self, estimate: Estimate) -> tuple[float, float] | None:
        """The ends of the range to which its noisy values are held; None where they are held to nothing."""
        return held_to(self.measurement, estimate)

    def of_nobody(self, estimate: Estimate, alpha: float) -> tuple[bool, ...]:
        """Of each cell, whether the estimate may be that of no row with a value."""
        return of_nobody(self.measurement, estimate, self.values, alpha=alpha)

    def column(self, estimate: Estimate, alpha: float) -> Column:
        """One estimate of every cell, with intervals that each miss with probability at most alpha."""
        return estimate_column(self.measurement, estimate, self.values, alpha=alpha)


def released_columns(sums: Sequence[NoisySums], alpha: float) -> dict[str, ReleasedColumn]:
    """All estimates of the sums as columns of a released table, by name."""
    columns: dict[str, ReleasedColumn] = {}
    for one in sums:
        for estimate in one.estimates:
            column = one.column(estimate, alpha)
            columns[estimate.name] = ReleasedColumn(
                name=estimate.name,
                role=ColumnKind.RELEASED,
                type=ColumnType.INTEGER if estimate.integer else ColumnType.NUMBER,
                values=column.values,
                standard_errors=column.standard_errors,
                lows=column.lows,
                highs=column.highs,
                linear=linear_form(one.measurement.statistic, estimate.kind) is not None,
            )
    return columns


def sums_to_plain(sums: Sequence[NoisySums]) -> list[Json]:
    """The sums as JSON holds them. Fractions are text, exact."""
    return [
        {
            **measurement_to_plain(one.measurement),
            "estimates": [_plain(estimate) for estimate in one.estimates],
            "sums": one.values.tolist(),
            **({} if one.fine is None else {"fine": one.fine.tolist()}),
        }
        for one in sums
    ]


def measurement_to_plain(measurement: Measurement) -> dict[str, Json]:
    """The law of the noise of a statistic as JSON holds it."""
    return {"mechanism": measurement.name, "measurement": _plain(measurement)}


def measurement_from_plain(stored: StoredMeasurement) -> Measurement:
    """What `measurement_to_plain` gave. Errors: KeyError, TypeError or ValueError for anything else."""
    return _typed(MEASUREMENTS[stored["mechanism"]], stored["measurement"])


def sums_from_plain(stored: Sequence[Stored]) -> tuple[NoisySums, ...]:
    """What `sums_to_plain` gave. Errors: KeyError, TypeError or ValueError for anything else."""
    result = []
    for one in stored:
        measurement = measurement_from_plain(one)
        rows = one["sums"]
        values = integers(rows).reshape(len(rows), measurement.statistic.coordinates)
        estimates = tuple(_typed(Estimate, estimate) for estimate in one["estimates"])
        fine = integers(one["fine"]).reshape(values.shape) if "fine" in one else None
        result.append(NoisySums(measurement, narrow(values), estimates, fine))
    return tuple(result)


def _plain(value: object) -> Json:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(getattr(value, name)) for name in _names(type(value))}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    assert value is None or isinstance(value, int | str | bool), "only plain fields are stored"
    return value


@functools.cache
def _names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass, which would be looked for again for every value."""
    return tuple(field.name for field in dataclasses.fields(kind))


def _typed(kind: Callable[..., Described], value: Mapping[str, Json]) -> Described:
    """What is described by fields of the annotated types. A field that the stored form does not have keeps its default.

    A field that this version does not know is an error: without it the noise would have another law.
    """
    gone: Mapping[str, int] = Statistic.GONE if kind is Statistic else {}
    if any(value.get(name, only) != only for name, only in gone.items()):
        raise ValueError("a field that is gone has a value that it never had")
    hints = _hints(kind)
    return kind(**{name: _field(hints[name], part) for name, part in value.items() if name not in gone})


@functools.cache
def _hints(kind: Callable[..., object]) -> Mapping[str, object]:
    """The types of the fields, whose texts would be compiled again for every value."""
    return typing.get_type_hints(kind)


def _field(kind: object, value: Json) -> object:
    """A value of the annotated type."""
    if value is None:
        return None
    if isinstance(kind, types.UnionType):
        kind = next(part for part in typing.get_args(kind) if part is not type(None))
    if kind is Fraction:
        return Fraction(str(value))
    if typing.get_origin(kind) is tuple:
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise TypeError("a tuple is stored as its parts")
        return tuple(_field(typing.get_args(kind)[0], one) for one in value)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        if not isinstance(value, Mapping):
            raise TypeError("an object is stored as its fields")
        return _typed(kind, value)
    return value
