"""Rows that follow from what a dataset declares, and from nobody: for trying questions before data are asked.

A column takes its declared keys alike often, or values evenly between its bounds. Where neither is declared nothing is
known, and something ordinary is made up: `Invented.assumed` names such columns. A person has about three rows in a
table that may hold several, or as many as the declared number of rows gives each.
"""

from __future__ import annotations

import csv
import datetime
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import assert_never

from privacy.bounds import date_at, timestamp_at
from privacy.policy import Column, ColumnType, Dataset, KeyValue, Table

__all__ = ["UNITS_DEFAULT", "Invented", "InventedTable", "invent", "with_sources"]

UNITS_DEFAULT = 5_000
_ROWS_MAX = 200_000
_ROWS_MEAN = 3.0
_PUBLIC_ROWS = 50
_NULLS = 0.05
_WORDS = 30
_DAYS = (datetime.date(2015, 1, 1), datetime.date(2024, 12, 31))

Values = list[KeyValue | float]


@dataclass(frozen=True, slots=True)
class InventedTable:
    """The columns of one table, all of one length."""

    table: Table
    columns: dict[str, Values]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values())))

    def write(self, path: Path) -> None:
        """As CSV with a header; NULL is an empty cell."""
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(self.columns)
            writer.writerows(
                zip(*([_text(value) for value in values] for values in self.columns.values()), strict=True)
            )


@dataclass(frozen=True, slots=True)
class Invented:
    """Every table of a dataset, and the columns of people of which nothing is declared."""

    tables: tuple[InventedTable, ...]
    assumed: tuple[str, ...]


def invent(
    dataset: Dataset, *, units: int, seed: int = 0, drawn: Mapping[str, Mapping[str, Sequence[object]]] | None = None
) -> Invented:
    """The rows. A function of declarations, of `units`, how many people there are, and of `seed`.

    `drawn` has columns of rows that stand for nobody, by table: a synthetic table that was paid for. Its rows are taken
    one after the other, again from the first where they are too few.
    """
    maker = _Maker(dataset, units, random.Random(seed), drawn or {})  # noqa: S311 - no noise: rows of nobody
    made = tuple(maker.table(table.name) for table in dataset.tables if table.drawn is None)
    return Invented(made, tuple(sorted(maker.assumed)))


def with_sources(document: Mapping[str, object]) -> dict[str, object]:
    """A dataset file whose tables are read from what `InventedTable.write` wrote, under their own names."""
    changed: dict[str, object] = json.loads(json.dumps(document))
    tables = changed["tables"]
    assert isinstance(tables, dict)
    for name, table in tables.items():
        table["source"] = {"file": f"{name}.csv"}
        for column in table["columns"].values():
            column.pop("source_name", None)
    # What the least price is follows from the root's limit, which is not there yet.
    changed["policy"] = {**_part(changed.get("policy")), "epsilon_min": "0.000000000001"}
    return changed


def _part(part: object) -> dict[str, object]:
    return part if isinstance(part, dict) else {}


class _Maker:
    """Makes tables in the order of their references: a row names a row that is there."""

    def __init__(
        self,
        dataset: Dataset,
        units: int,
        source: random.Random,
        drawn: Mapping[str, Mapping[str, Sequence[object]]],
    ) -> None:
        self._dataset = dataset
        self._units = units
        self._source = source
        self._drawn = drawn
        self._made: dict[str, InventedTable] = {}
        self._begun: set[str] = set()
        self.assumed: set[str] = set()

    def table(self, name: str) -> InventedTable:
        """A table, made once."""
        if name in self._made:
            return self._made[name]
        table = self._dataset.table(name)
        assert table is not None
        self._begun.add(name)
        owners = self._owners(table)
        rows = len(owners) if owners is not None else self._public_rows(table)
        given = self._drawn.get(table.name, {})
        columns: dict[str, Values] = {}
        for column in table.columns:
            known = given.get(column.name)
            if owners is not None and column.name == self._owning(table):
                columns[column.name] = list(owners)
            elif table.key == column.name or column.unique:
                columns[column.name] = self._unique(table, column, rows)
            elif known:
                columns[column.name] = [_held(known[place % len(known)]) for place in range(rows)]
            else:
                columns[column.name] = self._values(table, column, rows)
        made = InventedTable(table, columns)
        self._made[name] = made
        return made

    def _is_unit_table(self, table: Table) -> bool:
        return table.name == self._dataset.unit.table

    def _owning(self, table: Table) -> str | None:
        """The column that says whose a row is: a unit's key, or the key of the row of another table."""
        if not table.protected:
            return None
        if self._is_unit_table(table):
            return self._dataset.unit.key
        return table.unit_path[0].column if table.unit_path else table.unit_column

    def _owners(self, table: Table) -> Values | None:
        """Of a table of people, for each row the key of the one that it belongs to."""
        if not table.protected:
            return None
        if self._is_unit_table(table):
            named = None if self._dataset.unit.key is None else table.column(self._dataset.unit.key)
            units: Values = [_plain_key(place) if named is None else _key(named, place) for place in range(self._units)]
            return units if named is None else self._repeated(units, table)
        if table.unit_path:
            step = table.unit_path[0]
            parents = self.table(step.table).columns[step.key]
        else:
            unit = self._dataset.table(self._dataset.unit.table)
            key = self._dataset.unit.key
            assert unit is not None
            assert key is not None
            parents = list(dict.fromkeys(self.table(unit.name).columns[key]))
        return self._repeated(parents, table)

    def _repeated(self, parents: Values, table: Table) -> Values:
        if table.one_row:
            return list(parents)
        most = min(table.rows_stored, 50)
        mean = _ROWS_MEAN if table.rows_expected is None else table.rows_expected / max(len(parents), 1)
        mean = min(max(mean, 1.0), most, _ROWS_MAX / max(len(parents), 1))
        found: Values = []
        for parent in parents:
            count = 1
            while count < most and self._source.random() > 1 / mean:
                count += 1
            found += [parent] * count
        return found[:_ROWS_MAX]

    def _unique(self, table: Table, column: Column, rows: int) -> Values:
        """Values that no other row has: those that are keys elsewhere, where the column says what they are."""
        wanted: Values = [value for value in self._public_keys(table, column) if value is not None]
        return wanted if len(wanted) == rows else [_key(column, place) for place in range(rows)]

    def _public_rows(self, table: Table) -> int:
        """At least as many as its keys have values; as many as they are, where a column without repeats has them."""
        for column in table.columns:
            if table.key == column.name or column.unique:
                wanted = [value for value in self._public_keys(table, column) if value is not None]
                if wanted:
                    return len(wanted)
        listed = [len(column.keys.values) for column in table.columns if column.keys is not None]
        return max([_PUBLIC_ROWS, *listed]) if listed else _PUBLIC_ROWS

    def _values(self, table: Table, column: Column, rows: int) -> Values:
        reference = next((one for one in table.references if one.column == column.name), None)
        if reference is not None and reference.table not in self._begun - self._made.keys():
            named = [value for value in self.table(reference.table).columns[reference.key] if value is not None]
            return [self._source.choice(named) for _ in range(rows)]
        wanted = self._public_keys(table, column)
        if wanted:
            # Each key once, so that no key of another table is missing; then alike often.
            return [wanted[place] if place < len(wanted) else self._source.choice(wanted) for place in range(rows)]
        if table.protected and column.keys is None and column.bounds is None and column.type is not ColumnType.BOOLEAN:
            self.assumed.add(f"{table.name}.{column.name}")
        nulls = _NULLS if column.nullable and column.keys is None else 0.0
        return [None if nulls and self._source.random() < nulls else self._value(column) for _ in range(rows)]

    def _public_keys(self, table: Table, column: Column) -> Values:
        """Of a column of a public table its values, which are public, or those that are keys elsewhere."""
        if table.protected:
            return []
        if column.keys is not None:
            return list(column.keys.values)
        for other in self._dataset.tables:
            for one in other.columns:
                if one.keys is not None and one.keys_from == (table.name, column.name):
                    return list(one.keys.values)
        return []

    def _value(self, column: Column) -> KeyValue | float:
        if column.keys is not None:
            return self._source.choice(column.keys.values)
        if column.bounds is not None:
            return self._between(column, column.bounds.lower, column.bounds.upper)
        match column.type:
            case ColumnType.BOOLEAN:
                return self._source.random() < 0.5
            case ColumnType.TEXT:
                return f"value{int(_WORDS * self._source.random() ** 2)}"[: column.length_stored]
            case ColumnType.INTEGER:
                return self._source.randint(0, 100)
            case ColumnType.NUMBER:
                return round(self._source.expovariate(1 / 50), 2)
            case ColumnType.DATE:
                return datetime.date.fromordinal(self._source.randint(*(day.toordinal() for day in _DAYS)))
            case ColumnType.TIMESTAMP:
                day = self._source.randint(*(day.toordinal() for day in _DAYS))
                return datetime.datetime.fromordinal(day) + datetime.timedelta(seconds=self._source.randrange(86_400))
            case _:
                assert_never(column.type)

    def _between(self, column: Column, lower: Fraction, upper: Fraction) -> KeyValue | float:
        match column.type:
            case ColumnType.DATE:
                return date_at(Fraction(self._source.randint(int(lower), int(upper))))
            case ColumnType.TIMESTAMP:
                return timestamp_at(Fraction(self._source.randint(int(lower), int(upper))))
            case ColumnType.INTEGER:
                return self._source.randint(int(-(-lower // 1)), int(upper // 1))
            case ColumnType.NUMBER | ColumnType.TEXT | ColumnType.BOOLEAN:
                return float(lower) + (float(upper) - float(lower)) * self._source.random()
            case _:
                assert_never(column.type)


def _plain_key(place: int) -> int:
    return place + 1


def _key(column: Column, place: int) -> KeyValue | float:
    """A value that no other row has."""
    match column.type:
        case ColumnType.INTEGER:
            return _plain_key(place)
        case ColumnType.TEXT:
            return str(_plain_key(place))
        case ColumnType.NUMBER:
            return float(_plain_key(place))
        case ColumnType.DATE:
            return datetime.date(1900, 1, 1) + datetime.timedelta(days=place)
        case ColumnType.TIMESTAMP:
            return datetime.datetime(1900, 1, 1) + datetime.timedelta(seconds=place)
        case ColumnType.BOOLEAN:
            return place % 2 == 0
        case _:
            assert_never(column.type)


def _held(value: object) -> KeyValue | float:
    assert value is None or isinstance(value, str | int | float | bool | datetime.date)
    return value


def _text(value: KeyValue | float) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, datetime.date) else str(value)
