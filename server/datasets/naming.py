"""The names that tables and columns of a data file get in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import PurePath

from engines.inspected import InspectedColumn, InspectedTable
from engines.table_source import SUFFIXES
from server.datasets.identifiers import RESERVED, column_name_for, identifier_for

__all__ = ["NamedColumn", "name_of", "named_columns", "table_names"]


@dataclass(frozen=True, slots=True)
class NamedColumn:
    """A column of a data file with the name that it gets in SQL; `refused` says why it gets none."""

    column: InspectedColumn
    name: str
    refused: str = ""

    @property
    def renamed(self) -> bool:
        """Whether SQL knows the column by another name than the file."""
        return not self.refused and self.name != self.column.name


def named_columns(table: InspectedTable) -> tuple[NamedColumn, ...]:
    """The columns of a table, each under a name that SQL reads without quotes and that no other one has.

    A column that has such a name keeps it, whatever others are called.
    """
    exact = [column.name for column in table.columns]
    folded = [name.strip().lower() for name in exact]
    taken = {name.lower() for name in exact if column_name_for(name) == name}
    kept: set[str] = set()
    found = []
    for column, same in zip(table.columns, folded, strict=True):
        refused = ""
        if column.type is None:
            refused = "its type is not supported"
        elif not same:
            refused = "it has no name in the header"
        elif exact.count(column.name) > 1:
            refused = "the file has several columns of this name: rename them in the data"
        name = column_name_for(column.name.strip())
        if not refused and (name != column.name or name.lower() in kept):
            name = _free(name, taken)
        if not refused:
            taken.add(name.lower())
            kept.add(name.lower())
        found.append(NamedColumn(column, name, refused))
    return tuple(found)


def _free(name: str, taken: AbstractSet[str]) -> str:
    """The name, with a number where it is taken."""
    free, number = name, 2
    while free.lower() in taken:
        free, number = f"{name[:58].rstrip('_')}_{number}", number + 1
    return free


def name_of(table: InspectedTable, column: str) -> str | None:
    """The SQL name of a column that is called so in the data, or None when it is left out."""
    found = (item for item in named_columns(table) if item.column.name == column and not item.refused)
    return next((item.name for item in found), None)


def table_names(tables: Sequence[InspectedTable], file: str) -> dict[str, str]:
    """A usable name for each table, without repeats; a table without a name is called as its file."""
    names: dict[str, str] = {}
    for table in tables:
        base = identifier_for(table.name or _stem(file))
        base = f"{base[:62]}_" if base.lower() in RESERVED else base
        names[table.name] = _free(base, {taken.lower() for taken in names.values()})
    return names


def _stem(file: str) -> str:
    name = PurePath(file).name
    suffix = next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(suffix)]
