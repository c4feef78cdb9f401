"""Every promise about relations of people's rows, tested on the rows that a second meaning makes of them.

What is derived of a node (sources.py, unit_facts.py, unit_keys.py and unit_values.py of sql_rewrite) is checked
against the rows that the interpreter makes of it: types, NULL, ranges, domains, the unit, uniqueness, rows of a unit,
what is the same in all of them, and keys that say whose a row is.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from privacy.policy import ColumnType, Dataset
from sql_rewrite.expressions import ColumnRef, interval_of
from sql_rewrite.plan import Source
from sql_rewrite.references import reference
from sql_rewrite.unit_facts import names_unit, rows_of_unit, steady_relations
from sql_rewrite.unit_keys import key_space
from tests.audit import interpreter
from tests.audit.violation import require

__all__ = ["check_promises"]

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
Owners = Mapping[str, Sequence[Any]]

_TYPES: Mapping[ColumnType, tuple[type, ...]] = {
    ColumnType.INTEGER: (int,),
    ColumnType.NUMBER: (int, float),
    ColumnType.TEXT: (str,),
    ColumnType.BOOLEAN: (bool,),
    ColumnType.DATE: (datetime.date,),
    ColumnType.TIMESTAMP: (datetime.datetime,),
}


def check_promises(
    sources: Sequence[Source], dataset: Dataset, rows: Rows, owners: Owners, *, within: bool = False
) -> int:
    """Checks everything that is known of joined sources and of all below them; returns how many relations there were.

    Of data `within` its declared bounds, of values and of rows of a unit, what is computed is within those that follow.
    Errors: Violation.
    """
    checked = 0
    for below in _below(sources):
        checked += check_promises(below, dataset, rows, owners, within=within)
    for source in sources:
        alone, found = replace(source, join=None), interpreter.source_rows(source, rows, owners)
        _check_alone(alone, dataset, found)
        if within:
            _check_declared(alone, dataset, found)
        checked += 1
    _check_joined(sources, dataset, interpreter._joined(sources, rows, owners))
    return checked


def _below(sources: Sequence[Source]) -> Iterator[Sequence[Source]]:
    for source in sources:
        computed = source.groups or source.windows
        if computed is not None:
            yield computed.sources
        if source.union is not None:
            yield from (branch.sources for branch in source.union.branches)


def _check_alone(source: Source, dataset: Dataset, found: Sequence[tuple[Mapping[str, Any], Any]]) -> None:
    """The rows of one source, before it is joined."""
    table = source.table
    columns = [reference(source, column, dataset) for column in table.columns]
    of_unit: dict[Any, int] = defaultdict(int)
    for row, unit in found:
        of_unit[unit] += 1
        for column in columns:
            _check_value(column, row[column.name], unit, table.protected)
    if not table.protected:
        require(all(unit is None for unit in of_unit), f"{table.name}: a public row with a unit")
        return
    require(None not in of_unit, f"{table.name}: a row of nobody")
    most = max(of_unit.values(), default=0)
    require(most <= table.rows_stored, f"{table.name}: {most} rows of a unit, {table.rows_stored} are promised")
    require(not table.one_row or most <= 1, f"{table.name}: one row of a unit is promised")
    if table.key is not None:
        keys = [row[table.key] for row, _ in found]
        require(len(keys) == len(set(keys)), f"{table.name}: a key that repeats")


def _check_declared(source: Source, dataset: Dataset, found: Sequence[tuple[Mapping[str, Any], Any]]) -> None:
    """The ranges that follow from declared bounds, of numbers."""
    for column in (reference(source, column, dataset) for column in source.table.columns):
        if column.declared is None or column.type not in (ColumnType.INTEGER, ColumnType.NUMBER):
            continue
        values = [row[column.name] for row, _ in found if row[column.name] is not None]
        beyond = [value for value in values if not column.declared.contains(value)]
        require(not beyond, f"{column.relation}.{column.name}: {beyond[:1]} outside {column.declared}, which follows")


def _check_value(column: ColumnRef, value: Any, unit: Any, protected: bool) -> None:
    place = f"{column.relation}.{column.name}"
    if value is None:
        require(column.nullable, f"{place}: NULL")
        require(not (column.is_unit and protected), f"{place}: a unit that is NULL")
        return
    require(isinstance(value, _TYPES[column.type]), f"{place}: {value!r} is no {column.type.value}")
    if column.type in (ColumnType.INTEGER, ColumnType.NUMBER):
        require(interval_of(column).contains(value), f"{place}: {value!r} outside {column.interval}")
    if column.domain is not None and column.other is None:
        require(value in column.domain, f"{place}: {value!r} outside its domain")
    if column.length_max is not None and column.other is None:
        require(len(value) <= column.length_max, f"{place}: a text that is too long")
    require(not (column.is_unit and protected) or value == unit, f"{place}: {value!r} of unit {unit!r}")


def _check_joined(
    sources: Sequence[Source], dataset: Dataset, found: Sequence[tuple[Mapping[tuple[str, str], Any], Any]]
) -> None:
    """The joined rows: NULL after outer joins, the unit, their number, what is the same in all, and whose they are."""
    columns = [reference(source, column, dataset) for source in sources for column in source.table.columns]
    steady = steady_relations(sources)
    of_unit: dict[Any, int] = defaultdict(int)
    same: dict[tuple[Any, str, str], Any] = {}
    owner: dict[tuple[Any, Any], Any] = {}
    spaces = {(column.relation, column.name): key_space(column, sources) for column in columns}
    for row, unit in found:
        of_unit[unit] += 1
        for column in columns:
            value, place = row[column.relation, column.name], f"{column.relation}.{column.name}"
            require(value is not None or column.nullable or names_unit(column, sources), f"{place}: NULL after a join")
            require(not names_unit(column, sources) or value == unit, f"{place}: the unit of another row")
            if column.relation in steady:
                first = same.setdefault((unit, column.relation, column.name), value)
                require(first == value, f"{place}: not the same in all rows of a unit")
            space = spaces[column.relation, column.name]
            if space is not None:
                require(value is not None, f"{place}: a key that is NULL")
                require(owner.setdefault((space, value), unit) == unit, f"{place}: one key of two units")
    most, promised = max(of_unit.values(), default=0), rows_of_unit(sources)
    require(most <= promised, f"{most} joined rows of a unit, {promised} are promised")
