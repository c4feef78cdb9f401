"""Rows that everybody knows, as queries read them: tables of values, what FROM lists, and how much they may cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.constant_rows import facts_of
from sql_rewrite.expressions import ColumnRef, Value

__all__ = ["KnownRows", "KnownTable", "Meter", "Row"]

Row = Mapping[tuple[str, str], Value]
"""The values of a row, by relation and name of their columns."""


@dataclass(frozen=True, slots=True)
class KnownTable:
    """Rows that everybody knows: names and types of columns, and values."""

    names: tuple[str, ...]
    kinds: tuple[ColumnType, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(slots=True)
class Meter:
    """The operators that the queries of one text may take before anything runs: an estimate is free."""

    left: int = 500_000

    def take(self, operators: int, place: Callable[[], Refused]) -> None:
        """Counts these. Errors: Refused where there are too many."""
        self.left -= operators
        if self.left < 0:
            raise place()


@dataclass(frozen=True, slots=True)
class KnownRows:
    """What a FROM lists: columns by the relation that has them, rows by column, and names that USING merged."""

    columns: tuple[tuple[str, str, ColumnRef], ...]
    rows: tuple[Row, ...]
    merged: frozenset[str] = field(default=frozenset())

    @staticmethod
    def of(table: KnownTable, alias: str, relation: str) -> KnownRows:
        """The rows of a table under a name; `relation` is a name of ours that no other one has."""
        refs = []
        for place, (name, kind) in enumerate(zip(table.names, table.kinds, strict=True)):
            values = [row[place] for row in table.rows]
            refs.append(replace(facts_of(f"v{place}", name, kind, values), relation=relation))
        keys = [(ref.relation, ref.name) for ref in refs]
        rows = tuple(dict(zip(keys, row, strict=True)) for row in table.rows)
        return KnownRows(tuple((alias.lower(), name, ref) for name, ref in zip(table.names, refs, strict=True)), rows)

    def named(self, name: str, relation: str = "") -> list[ColumnRef]:
        """The columns of that name, one of each relation, the first one."""
        found: dict[str, ColumnRef] = {}
        for alias, own, ref in self.columns:
            if own.lower() == name.lower() and relation.lower() in ("", alias):
                found.setdefault(ref.relation, ref)
        return list(found.values())[: 1 if name.lower() in self.merged else None]

    def star(self, relation: str = "") -> list[tuple[str, ColumnRef]]:
        """The columns that a star shows."""
        shown: list[tuple[str, ColumnRef]] = []
        for alias, name, ref in self.columns:
            again = name.lower() in self.merged and any(name.lower() == known.lower() for known, _ in shown)
            if relation.lower() in ("", alias) and not (again and not relation):
                shown.append((name, ref))
        return shown
