"""Which tables of a data file hold a unit's column, and which references lead to the units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engines.inspected import InspectedTable
from server.datasets.naming import name_of, named_columns

__all__ = [
    "references_of",
    "table_of_units",
    "tables_of_units",
    "tables_with_unit",
    "unit_name",
    "unit_source",
    "ways_to",
]


def unit_name(table: InspectedTable, unit: str) -> str | None:
    """The SQL name of the unit's column, given by that name or by the one that it has in the file."""
    usable = [item for item in named_columns(table) if not item.refused]
    for same in (
        lambda item: item.column.name == unit,
        lambda item: item.name == unit,
        lambda item: unit.lower() in (item.column.name.strip().lower(), item.name.lower()),
    ):
        names = [item.name for item in usable if same(item)]
        if names:
            return names[0] if len(names) == 1 else None
    return None


def tables_with_unit(inspected: Sequence[InspectedTable], unit: str) -> tuple[InspectedTable, ...]:
    """The tables that have the unit's column."""
    return tuple(table for table in inspected if unit_name(table, unit) is not None)


def table_of_units(inspected: Sequence[InspectedTable], unit: str) -> InspectedTable | None:
    """The one table whose unique key the database says the unit's column is; None where that does not decide.

    A column is unique where it is the PRIMARY KEY, or where a FOREIGN KEY points to it. Of several such tables
    those whose key is itself a reference to another one hold more about the same units.
    """
    targets = {(target, key) for table in inspected for _, target, key in table.references}
    keyed = {
        table.name: table
        for table in tables_with_unit(inspected, unit)
        if (own := unit_source(table, unit)) is not None and (own == table.key or (table.name, own) in targets)
    }
    first = [
        table
        for table in keyed.values()
        if not any(
            column == unit_source(table, unit) and target in keyed and target != table.name
            for column, target, _ in table.references
        )
    ]
    return first[0] if len(first) == 1 else None


def tables_of_units(inspected: Sequence[InspectedTable], unit: str) -> tuple[InspectedTable, ...]:
    """The tables that have the unit's column, and those whose references lead to one of them in one way."""
    having = tables_with_unit(inspected, unit)
    usable = [table for table in inspected if any(not item.refused for item in named_columns(table))]
    places = {table.name: f"t{number}" for number, table in enumerate(usable)}
    references = {places[table.name]: references_of(table, usable, places) for table in usable}
    for table in having:
        references[places[table.name]] = {"": "unit."}
    ways = ways_to(references, "unit")
    while several := [name for name, columns in ways.items() if len(columns) > 1]:
        references = {name: {} if name in several else listed for name, listed in references.items()}
        ways = ways_to(references, "unit")
    return tuple(table for table in usable if places[table.name] in ways)


def unit_source(table: InspectedTable, unit: str) -> str | None:
    """The name that the unit's column has in the data."""
    name = unit_name(table, unit)
    return next((item.column.name for item in named_columns(table) if not item.refused and item.name == name), None)


def references_of(table: InspectedTable, usable: Sequence[InspectedTable], names: Mapping[str, str]) -> dict[str, str]:
    """The references that the database declares, between tables and columns that are described."""
    found: dict[str, str] = {}
    for column, target, key in table.references:
        other = next((item for item in usable if item.name == target), None)
        own, there = name_of(table, column), None if other is None else name_of(other, key)
        if other is not None and other is not table and own is not None and there is not None:
            found.setdefault(own, f"{names[other.name]}.{there}")
    return found


def ways_to(references: Mapping[str, Mapping[str, str]], owner: str | None) -> dict[str, list[str]]:
    """For each table that leads to the table of the units, over any number of steps: the columns that do."""
    found: dict[str, list[str]] = {}
    while True:
        known = {*found, owner}
        ways = {
            name: [column for column, target in listed.items() if target.partition(".")[0] in known - {name}]
            for name, listed in references.items()
            if name != owner
        }
        more = {name: columns for name, columns in ways.items() if columns}
        if more == found:
            return found
        found = more
