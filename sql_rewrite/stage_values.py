"""Released values in the private part of a query: columns of an earlier stage, the same in every row.

An expression of a core may hold a number that another core of the same question has released. It stands there as a
column of a relation of ours: of unknown value, NULL allowed, so types, ranges and sensitivities are proved for every
value that it can have. In the statement it is a parameter that is bound when the earlier stage is released
(`privacy.statement.StageValue`); the text of the statement is the same for every value (mechanisms/stages.md).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, Literal, columns_of
from sql_rewrite.plan import GROUPS, KEY_CHARACTERS_MAX, Core

__all__ = [
    "KEY_TYPES",
    "is_released",
    "lists_of",
    "places_read",
    "released_flag",
    "released_key",
    "released_of",
    "released_value",
    "stages_of",
]

_MARK = "$"


def released_value(core: str, column: str, *, declared: Interval | None, shown: str) -> ColumnRef:
    """The value of a column of a core that releases one row. `declared` is where its values belong, as in a column."""
    kind = ColumnType.NUMBER
    return ColumnRef(f"{core}{_MARK}", column, kind, nullable=True, declared=declared, shown=shown)


def released_flag(core: str, name: str) -> ColumnRef:
    """Whether a group of a core is in a list: a truth value that is never NULL (stage_tables.py)."""
    return ColumnRef(f"{core}{_MARK}", name, ColumnType.BOOLEAN, nullable=False, shown=name)


KEY_TYPES = (ColumnType.TEXT, ColumnType.INTEGER, ColumnType.DATE, ColumnType.TIMESTAMP, ColumnType.BOOLEAN)
"""Types of hidden keys that later stages compare; a number with a fraction equals none safely."""


def released_key(core: str, name: str, kind: ColumnType) -> ColumnRef:
    """A hidden key of a group of a core, NULL where it has fewer groups: of its type, and any value of that.

    A text is no longer than keys are cut to (lower.py).
    """
    most = KEY_CHARACTERS_MAX if kind is ColumnType.TEXT else None
    return ColumnRef(f"{core}{_MARK}", name, kind, nullable=True, length_max=most, shown=name)


def is_released(reference: ColumnRef) -> bool:
    """Whether a column is a value that an earlier stage releases."""
    return reference.relation.endswith(_MARK) and reference.relation != GROUPS


def released_of(reference: ColumnRef) -> str:
    """The core that releases it."""
    assert is_released(reference)
    return reference.relation.removesuffix(_MARK)


def stages_of(core: Core) -> frozenset[str]:
    """The cores whose released values this one reads."""
    found = {column for expression in _expressions(core) for column in columns_of(expression)}
    return frozenset(released_of(column) for column in found if is_released(column))


def lists_of(core: Core) -> frozenset[tuple[str, str]]:
    """The lists of groups that it reads: of which core, and their names."""
    found = {column for expression in _expressions(core) for column in columns_of(expression)}
    read = set()
    for column in filter(is_released, found):
        name, _, place = column.name.partition("@")
        listed, of_hidden, _ = place.partition(".")
        read.add((released_of(column), listed if of_hidden else name))
    return frozenset(read)


def places_read(core: Core) -> frozenset[tuple[str, str]]:
    """The places of lists of hidden groups that it reads: of which core, and their numbers."""
    found = {column for expression in _expressions(core) for column in columns_of(expression)}
    names = [(released_of(column), column.name.partition("@")[2]) for column in found if is_released(column)]
    return frozenset((core, place.rpartition(".")[2]) for core, place in names if place)


def _expressions(value: object) -> Iterator[Expression]:
    """Every expression inside a part of a plan."""
    if isinstance(value, (ColumnRef, Literal, Call)):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _expressions(item)
    else:
        for name in _fields(type(value)):
            yield from _expressions(getattr(value, name))


def _fields(kind: type) -> tuple[str, ...]:
    """The fields of a part of a plan; none of other values, and of what is declared about its tables."""
    if kind not in _KNOWN:
        of_plans = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
        _KNOWN[kind] = (
            tuple(field.name for field in dataclasses.fields(kind))
            if of_plans and dataclasses.is_dataclass(kind)
            else ()
        )
    return _KNOWN[kind]


_KNOWN: dict[type, tuple[str, ...]] = {}
"""The fields of the types that have been met."""
