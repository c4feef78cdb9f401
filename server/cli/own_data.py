"""The user's own file: what it holds, what it is asked to be, and the dataset file that is proposed for it.

Names and types only, never values of rows.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.explaining import explained
from server.cli.failure import CommandFailed, usage_error
from server.cli.options import absolute, flag, option
from server.cli.output import printable

if TYPE_CHECKING:
    from engines.inspected import InspectedTable

__all__ = ["DEMO", "ROWS_PER_UNIT", "OwnData", "OwnFile", "inspect", "proposing", "renamed_lines"]

DEMO = "demo"
ROWS_PER_UNIT = 20
"""Rows of one unit that count when a file turns out to have several of one. A fixed number: not read from rows."""

_EACH_ROW = "Where each row is one person and no column names them: --each-row"


def inspect(path: Path) -> tuple[InspectedTable, ...]:
    """Tables and columns of a data file, a folder or a pattern. Errors: CommandFailed."""
    from server.datasets.inspecting import inspect_data

    with explained():
        return inspect_data(absolute(path))


def _column_list(tables: tuple[InspectedTable, ...]) -> str:
    """The names of all columns, for a message."""
    return _listed(
        [
            printable(f"{table.name}.{column.name}" if len(tables) > 1 else column.name)
            for table in tables
            for column in table.columns
        ],
        most=60,
    )


def _listed(names: list[str], *, most: int) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# What is proposed for it


def renamed_lines(tables: tuple[InspectedTable, ...]) -> list[str]:
    """Says which columns SQL knows by another name than the file, which are left out, and how it is written."""
    from server.datasets.propose import named_columns

    items = [item for table in tables for item in named_columns(table)]
    renamed = [f'"{printable(item.column.name)}" is {item.name}' for item in items if item.renamed]
    left_out = [f'"{printable(item.column.name)}" ({item.refused})' for item in items if item.refused]
    lines = [f"names for SQL: {_listed(renamed, most=20)}"] if renamed else []
    lines += [f"left out: {_listed(left_out, most=20)}"] if left_out else []
    for table in tables:
        written = [f'numbers with decimal "{table.decimal}"'] if table.decimal != "." else []
        written += [f'thousands parted by "{table.thousands}"'] if table.thousands is not None else []
        written += [f"days as {table.dates}"] if table.dates != "YYYY-MM-DD" else []
        written += [f"{', '.join(table.nulls)} as missing values"] if table.nulls else []
        lines += [f"read in {printable(table.name)}: {', '.join(written)}"] if written else []
    return lines


@contextmanager
def proposing(tables: tuple[InspectedTable, ...], unit: str | None) -> Iterator[None]:
    """Turns what `propose` refuses into CommandFailed (wrong usage): a column or table that is not there."""
    from privacy.wording import nearest

    try:
        yield
    except ValueError as error:
        names = [column.name for table in tables for column in table.columns]
        near = nearest(unit or "", names)
        advice = ["Choose another column with --unit COLUMN, or another table with --table NAME."]
        if near and unit not in names:
            advice = [f'Did you mean --unit "{printable(near)}"?']
        if unit is not None and unit not in names:
            advice.append(_EACH_ROW)
        raise usage_error("could not propose a dataset file", why=f"{error}.", instead=advice) from None


# What `up` is told about it


@dataclass(frozen=True, slots=True)
class OwnData:
    """The options of `up` that describe a file of the user's own."""

    data: Path | None = option("--data FILE", "Your own CSV, Parquet or DuckDB file.")
    unit: str | None = option("--unit COLUMN", "With --data: the column that says whose row it is.")
    unit_table: str | None = option("--table NAME", "With --data: the table with one row per unit.")
    dataset: str | None = option("--dataset NAME", "With --data: name of the dataset.")
    rows_per_unit: int | None = option(
        "--rows-per-unit N", "With --data: one unit has several rows, and at most N of them count.", min=1, max=100_000
    )
    each_row: bool = flag("--each-row", "With --data, in place of --unit: each row is one unit, one person.")

    def file(self) -> OwnFile | None:
        """The file that is meant, None for the demo. Errors: CommandFailed (wrong usage) where options do not fit."""
        told = {"--unit": self.unit, "--table": self.unit_table, "--dataset": self.dataset,
                "--rows-per-unit": self.rows_per_unit, "--each-row": self.each_row or None}  # fmt: skip
        given = [name for name, value in told.items() if value is not None]
        if self.data is None and given:
            raise usage_error(
                f"{given[0]} needs --data",
                why="It says something about your own file.",
                instead="For instance: noisegate up --data people.csv --unit person_id",
            )
        refused = [name for name in given if name in ("--unit", "--rows-per-unit")]
        if self.each_row and refused:
            raise usage_error(
                f"{refused[0]} and --each-row exclude each other",
                why="Either a column names the unit, or each row is one.",
                instead="Keep --unit where one person may have several rows.",
            )
        if self.data is not None and self.unit is None and not self.each_row:
            columns = _column_list(inspect(self.data))
            raise usage_error(
                "--unit is missing",
                why="Noisegate protects whole units, mostly people, so it must know which column says whose row it is.",
                instead=(f"Name one with --unit COLUMN. The columns are: {columns}", _EACH_ROW),
            )
        return None if self.data is None else OwnFile(self, absolute(self.data))


class OwnFile:
    """The user's own file, its tables, and what is assumed of them."""

    def __init__(self, told: OwnData, path: Path) -> None:
        from server.datasets.identifiers import identifier_for
        from server.datasets.inspecting import stem
        from server.datasets.propose import table_of_units, tables_of_units, tables_with_unit

        self.path = path
        self.unit = told.unit
        self.unit_table = told.unit_table
        self.name = identifier_for(told.dataset or stem(path))
        if told.dataset not in (None, self.name):
            raise usage_error(
                "--dataset is not accepted",
                why="A dataset's name has letters, digits and underscores, and no digit first.",
                instead=f"For instance: --dataset {self.name}",
            )
        if self.name == DEMO:
            raise usage_error(
                'the dataset cannot be named "demo"',
                why="That is the name of the demo data.",
                instead="Choose another one with --dataset NAME.",
            )
        found = inspect(path)
        # Other tables would need declarations that only their owner can make.
        having = found if self.unit is None else tables_of_units(found, self.unit)
        holding = found if self.unit is None else tables_with_unit(found, self.unit)
        owners = [printable(table.name) for table in holding]
        several = self.unit is not None and self.unit_table is None and len(owners) > 1
        decided = table_of_units(found, self.unit) if several and self.unit is not None else None
        self.decided = decided is not None
        if decided is not None:
            self.unit_table = decided.name
        if len(owners) > 1 and self.unit_table is None:
            whose = "The file has several tables" if self.unit is None else "Several tables have the column"
            raise usage_error(
                "--table is missing",
                why=f"{whose}: {', '.join(owners)}. One of them has one row per unit.",
                instead="Name it: " + " or ".join(f"--table {shlex.quote(name)}" for name in owners[:10]),
            )
        if self.unit is None and self.unit_table is not None:
            having = tuple(table for table in found if table.name == self.unit_table)
        self.tables = having or found
        self.left_out = [printable(table.name) for table in found if table not in self.tables]
        # One row of one unit in one table: then the unit's column can turn out to repeat.
        self.single = len(self.tables) == 1
        self.assumed = not self.single and told.rows_per_unit is None
        self.rows_per_unit = ROWS_PER_UNIT if self.assumed else told.rows_per_unit
        self.text()  # the words of a wrong column or table come now, before anything is made
        self.columns = _column_list(self.tables)

    def text(self, *, rows_per_unit: int | None = None) -> str:
        """The dataset file for it."""
        from privacy.bounds import ContributionBound
        from server.datasets import propose

        rows = self.rows_per_unit or rows_per_unit
        bound = None
        if rows is not None:
            bound = ContributionBound(rows_per_unit=rows, groups_per_unit=min(rows, 4), rows_per_unit_and_group=rows)
        with proposing(self.tables, self.unit):
            return propose(
                self.tables,
                unit=self.unit,
                file=str(self.path),
                dataset=self.name,
                unit_table=self.unit_table,
                contribution=bound,
                rows_are_units=self.unit is None,
            )

    def wrong_table(self) -> CommandFailed:
        """The failure when the table of the units turns out to have several rows of one."""
        others = ", ".join(printable(table.name) for table in self.tables if table.name != self.unit_table)
        return CommandFailed(
            f'table "{self.unit_table}" has several rows of one unit',
            why="Other tables refer to it, and a reference must find one row. Nothing was attached.",
            instead=(
                f"Name the table with one row per unit with --table: {others}.",
                "Or describe one table alone: noisegate init, then noisegate dataset add.",
            ),
        )

    def remarks(self, described: Path) -> list[str]:
        """What the proposal assumes, for its owner to judge."""
        lines = [f"reading {self.path.name}: columns {self.columns}", *renamed_lines(self.tables)]
        if self.left_out:
            names = ", ".join(self.left_out)
            lines.append(f"left out: table {names} (only its owner can say how its rows belong to the units)")
        if self.decided:
            lines.append(
                f"units: one row for each in table {printable(self.unit_table)}, whose key the database says "
                f"{printable(self.unit)} is (another one: --table NAME)"
            )
        if self.unit is None:
            lines += [
                "each row counts as one person. That is right when everybody has one row: who has several is protected",
                "  one row at a time, not as a whole. If a column names the person, use --unit COLUMN instead.",
            ]
        return lines + (self.assumption(described, "of the tables that refer to it, ") if self.assumed else [])

    @staticmethod
    def assumption(described: Path, why: str) -> list[str]:
        """Says how many rows of one unit will count, and where to say otherwise."""
        return [
            f"{why}at most {ROWS_PER_UNIT} rows of one unit will count.",
            "  This is a fixed number, not one that was read from your rows. Choose your own with --rows-per-unit, or",
            f'  under "contribution" in {described}',
        ]

    def require_same(self, described: Path) -> None:
        """Errors: CommandFailed when there is a dataset file of that name already, and it describes other data."""
        from server.datasets import load

        if not described.exists():
            return
        tables = load(described).tables.values()
        if str(self.path) not in {os.path.abspath(described.parent / table.source.file) for table in tables}:
            raise CommandFailed(
                f'there is a dataset "{self.name}" already, of other data',
                why=f'"{described}" does not mention "{self.path}".',
                instead="Choose another name with --dataset NAME.",
            )
