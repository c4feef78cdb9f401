"""A generated statement on its way to an engine, and the shape of what it returns."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from privacy.by_slots import by_slots
from privacy.policy import ColumnType

__all__ = [
    "TEXT_ROW_BYTES_MAX",
    "Parameter",
    "Released",
    "Shared",
    "SharedTable",
    "StageValue",
    "Statement",
    "StatementKey",
    "StatementPlaces",
    "StatementSum",
    "Step",
]

TEXT_ROW_BYTES_MAX = 128 * 1024
"""Most bytes of text that a statement's operators may make of one row, all together (sql_rewrite/memory.py proves it).

The engine holds them outside its own memory limit, for as many rows at a time as a vector has and once per thread;
workers keep room for that (engines/memory.py).
"""


@dataclass(frozen=True, slots=True)
class StageValue:
    """What an earlier stage of the question releases: a parameter that is bound when it is (`filled`).

    `type` is that of its values.
    """

    core: str
    column: str
    type: ColumnType = field(default=ColumnType.NUMBER, compare=False, repr=False)


Released = str | int | float | bool | datetime.date | datetime.datetime | None
"""What is bound for it."""

Parameter = str | int | float | bool | datetime.date | datetime.datetime | StageValue | None


class Step(enum.StrEnum):
    """Where an engine stopped with a text that it was asked to judge. Workers send the values."""

    READ = "read"
    """In the syntax."""

    BIND = "bind"
    """At a name, a type or a call."""

    END = "end"
    """It did not come to an end within its time and memory."""


@dataclass(frozen=True, slots=True)
class StatementKey:
    """A result column that holds one group key, read as Python values of that type."""

    name: str
    type: ColumnType


@by_slots
@dataclass(frozen=True, slots=True)
class StatementSum:
    """An exact 128-bit integer sum, carried by two BIGINT columns `{name}_high` and `{name}_low`.

    value = high * 2**62 + low, where both have the sign of the value. `bound` is the greatest absolute value
    that the plan proved possible for a table of 2**40 rows; the engine's adapter refuses a larger one.
    """

    name: str
    bound: int


@dataclass(frozen=True, slots=True)
class StatementPlaces:
    """Numbers of rows by place, of each group: two result columns of lists, `{name}_places` and `{name}_rows`.

    A list holds places from 0 to below `places`, each at most once, and as many numbers; together they are at most
    `bound`, which the engine's adapter checks.
    """

    name: str
    places: int
    bound: int


@dataclass(frozen=True, slots=True)
class SharedTable:
    """A table of the worker's own that a statement reads: the result of one SELECT, under a name of ours."""

    name: str
    sql: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """What two statements of one question read alike: tables that are made once, in this order.

    Later tables may read earlier ones. `kept` says that they stay for the next statement of the same lease; a worker
    drops them when that has run, when another statement comes, and at the latest with the lease.
    """

    tables: tuple[SharedTable, ...]
    kept: bool

    def filled(self, values: Mapping[StageValue, Released]) -> Shared:
        """As `Statement.filled`."""
        tables = [replace(table, parameters=_filled(table.parameters, values)) for table in self.tables]
        return replace(self, tables=tuple(tables))


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL that we generated, its typed parameters ($1, $2, ...), and its result columns in order (keys first)."""

    sql: str
    parameters: tuple[Parameter, ...]
    keys: tuple[StatementKey, ...]
    sums: tuple[StatementSum, ...]
    shared: Shared | None = None
    by_place: tuple[StatementPlaces, ...] = ()
    """What comes after the sums."""

    def filled(self, values: Mapping[StageValue, Released]) -> Statement:
        """The statement with these numbers for what earlier stages release. Errors: KeyError for one that is missing.

        An engine accepts no statement in which one is left.
        """
        return replace(
            self, parameters=_filled(self.parameters, values), shared=self.shared and self.shared.filled(values)
        )


def _filled(parameters: tuple[Parameter, ...], values: Mapping[StageValue, Released]) -> tuple[Parameter, ...]:
    return tuple(values[one] if isinstance(one, StageValue) else one for one in parameters)
