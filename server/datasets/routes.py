"""How a protected table reaches the privacy unit: the chain of references that says whose row a row is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from privacy.policy import Reference
from server.datasets.model import TableFile, UnitFile

__all__ = ["Route", "routes_to_unit"]

_ROUTES_MAX = 16


@dataclass(frozen=True, slots=True)
class Route:
    """One way from a table to the unit.

    `steps` are the references to follow; the first one's column belongs to the table itself. `unit_column` is the
    column of the table that holds the unit's key, when one does. `one_row` is True when the declared key of the table
    is that column, so that each unit has one row, or when the rows of the table are the units.
    """

    steps: tuple[Reference, ...]
    unit_column: str | None
    one_row: bool

    def text(self, table: str) -> str:
        """The way in words, for a finding."""
        parts = [f"{table}.{self.unit_column}" if self.unit_column else f"rows of {table}"] if not self.steps else []
        here = table
        for step in self.steps:
            parts.append(f"{here}.{step.column} -> {step.table}.{step.key}")
            here = step.table
        return ", ".join(parts)


def routes_to_unit(unit: UnitFile, tables: Mapping[str, TableFile], name: str) -> Iterator[Route]:
    """Every way from a protected table to the unit, without going in circles; at most 16.

    A table's `unit_via` leaves only the ways that begin with that reference, also where the table is a step of
    another table's way. References to public tables are not ways. Where the rows of a table are the units, no other
    table has rows of units: nothing in it could say which ones.
    """
    table = tables[name]
    if unit.key is None:
        if name == unit.table:
            yield Route((), None, one_row=True)
        return
    if name == unit.table:
        yield Route((), unit.key, one_row=table.key == unit.key)
        return
    for steps in itertools.islice(_walk(unit, tables, name, (name,)), _ROUTES_MAX):
        first = steps[0]
        direct = first.table == unit.table and first.key == unit.key
        yield Route(steps, first.column if direct else None, one_row=direct and table.key == first.column)


def _walk(
    unit: UnitFile, tables: Mapping[str, TableFile], name: str, seen: tuple[str, ...]
) -> Iterator[tuple[Reference, ...]]:
    table = tables[name]
    for column, target in table.references.items():
        if table.unit_via is not None and column != table.unit_via:
            continue
        other, _, key = target.partition(".")
        part = tables.get(other)
        if part is None or part.public or other in seen:
            continue
        step = Reference(column=column, table=other, key=key)
        if other == unit.table:
            yield (step,)
        else:
            for rest in _walk(unit, tables, other, (*seen, other)):
                yield (step, *rest)
