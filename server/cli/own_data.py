"""The user's own file: what it holds, what it is asked to be, and the dataset file that is proposed for it.

Names and types only, never values of rows.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.failure import CommandFailed, UsageError
from server.cli.options import absolute, option
from server.cli.output import printable, say

if TYPE_CHECKING:
    from engines.inspected import InspectedTable

__all__ = ["DEMO", "About", "OwnData", "OwnFile", "inspect", "renamed_lines"]

DEMO = "demo"

_EACH_ROW = "Where each row is one person and no column names them: --each-row"


def inspect(path: Path) -> tuple[InspectedTable, ...]:
    """Tables and columns of a data file, a folder or a pattern. Errors: DataRefused, SnapshotRefused, OSError.

    Says on standard error what of a folder is not read.
    """
    from server.datasets.inspecting import inspect_data, subfolders

    found = inspect_data(absolute(path))
    if inside := subfolders(absolute(path)):
        pattern = "a pattern such as 'folder/*/*.csv' takes their files as the parts of one table"
        say(f'left out: {inside} in "{printable(path)}"; {pattern}', error=True, verbatim=True)
    return found


def _column_list(tables: Sequence[InspectedTable]) -> str:
    """The names of all columns, for a message."""
    named = [(f"{table.name}." if len(tables) > 1 else "", column.name) for table in tables for column in table.columns]
    return _listed([printable(table + column) for table, column in named], most=60)


def _listed(names: list[str], *, most: int) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# What is proposed for it


def renamed_lines(tables: tuple[InspectedTable, ...]) -> list[str]:
    """Says which columns SQL knows by another name than the file, which are left out, and how it is written."""
    from server.datasets.naming import named_columns

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


@dataclass(frozen=True, slots=True)
class About:
    """What people say of their own file: options of `init` and `up`."""

    unit: str | None = option("--unit COLUMN", "The column that says whose row it is: a person, a household.")
    each_row: bool = option("--each-row", "In place of --unit: each row is one unit, a person with one row.", False)
    unit_table: str | None = option("--table NAME", "The table with one row per unit, if several have the column.")
    dataset: str | None = option("--dataset NAME", "Name of the dataset. Default: the file's.")

    def require_one_unit(self, rows_per_unit: int | None = None) -> None:
        """Errors: UsageError where each row is a unit and something else is too."""
        given = "--unit" if self.unit is not None else "--rows-per-unit" if rows_per_unit is not None else None
        if self.each_row and given:
            raise UsageError(f"""{given} and --each-row exclude each other
                Either a column names the unit, or each row is one.
                Keep --unit where one person may have several rows.""")

    def guessed(self, tables: Sequence[InspectedTable]) -> list[str]:
        """Says that the table of the units is a guess, where several have the column and nothing decides."""
        from server.datasets.unit_tables import table_of_units, tables_with_unit

        if self.unit is None or self.unit_table is not None:
            return []
        owners = tables_with_unit(tables, self.unit)
        if len(owners) < 2 or table_of_units(tables, self.unit) is not None:
            return []
        first, *others = (printable(table.name) for table in owners)
        return [
            f"Several tables have the column; {first} is taken as the one with one row per unit. If it is another one:",
            f"  --table {' or --table '.join(map(shlex.quote, others[:10]))}",
        ]

    def proposal(
        self, tables: Sequence[InspectedTable], file: str, rows: int | None = None, *, several: bool = False
    ) -> str:
        """The text of a dataset file, in which `rows` of one unit count, or as many as each question chooses.

        `several` says that a unit may have several rows also in the table of the units. Errors: UsageError for unknown
        names.
        """
        from privacy.bounds import AutomaticContribution, ContributionBound
        from privacy.wording import nearest
        from server.datasets import propose

        bound: AutomaticContribution | ContributionBound | None = AutomaticContribution() if several else None
        if rows is not None:
            bound = ContributionBound(rows_per_unit=rows, groups_per_unit=min(rows, 4), rows_per_unit_and_group=rows)
        named = {"unit": self.unit, "unit_table": self.unit_table, "dataset": self.dataset}
        try:
            return propose(tables, file=file, contribution=bound, rows_are_units=self.each_row, **named)
        except ValueError as error:
            names = [column.name for table in tables for column in table.columns]
            absent, near = self.unit is not None and self.unit not in names, nearest(self.unit or "", names)
            advice = "Choose another column with --unit COLUMN, or another table with --table NAME."
            if absent and near:
                advice = f'Did you mean --unit "{printable(near)}"?'
            raise UsageError(f"""could not propose a dataset file
                {error}.
                {advice}
                {_EACH_ROW if absent else ""}""") from None


# What `up` knows of it


@dataclass(frozen=True, slots=True)
class OwnData:
    """The file of `up` that is the user's own."""

    data: Path | None = option("--data FILE", "Your own CSV, Parquet or DuckDB file; the options below describe it.")
    rows_per_unit: int | None = option("--rows-per-unit N", "At most N rows of one unit count.", min=1, max=100_000)

    def file(self, about: About) -> OwnFile | None:
        """The file that is meant, None for the demo. Errors: UsageError where options do not fit."""
        options = {"--unit": about.unit, "--table": about.unit_table, "--dataset": about.dataset,
                   "--rows-per-unit": self.rows_per_unit, "--each-row": about.each_row or None}  # fmt: skip
        given = [name for name, value in options.items() if value is not None]
        if self.data is None and given:
            raise UsageError(f"""{given[0]} needs --data
                It says something about your own file.
                For instance: noisegate up --data people.csv --unit person_id""")
        if self.data is None:
            return None
        about.require_one_unit(self.rows_per_unit)
        if about.unit is None and not about.each_row:
            raise UsageError(f"""--unit is missing
                Noisegate protects whole units, mostly people, so it must know which column says whose row it is.
                Name one with --unit COLUMN. The columns are: {_column_list(inspect(self.data))}
                {_EACH_ROW}""")
        return OwnFile(about, absolute(self.data), self.rows_per_unit)


class OwnFile:
    """The user's own file, its tables, and what is assumed of them."""

    def __init__(self, about: About, path: Path, rows_per_unit: int | None) -> None:
        from server.datasets.identifiers import identifier_for
        from server.datasets.inspecting import stem
        from server.datasets.unit_tables import table_of_units, tables_of_units, tables_with_unit

        self.path = path
        self.unit = about.unit
        self.name = identifier_for(about.dataset or stem(path))
        if about.dataset not in (None, self.name):
            raise UsageError(f"""--dataset is not accepted
                A dataset's name has letters, digits and underscores, and no digit first.
                For instance: --dataset {self.name}""")
        if self.name == DEMO:
            raise UsageError("""the dataset cannot be named "demo"
                That is the name of the demo data.
                Choose another one with --dataset NAME.""")
        found = inspect(path)
        having, owners, chosen, decided = found, found, about.unit_table, None
        if about.unit is not None:
            # Other tables would need declarations that only their owner can make.
            having, owners = tables_of_units(found, about.unit), tables_with_unit(found, about.unit)
            decided = table_of_units(found, about.unit) if chosen is None and len(owners) > 1 else None
        elif chosen is not None:
            having = tuple(table for table in found if table.name == chosen)
        self.decided = decided is not None
        self.unit_table = chosen if decided is None else decided.name
        if len(owners) > 1 and self.unit_table is None:
            whose = "The file has several tables" if self.unit is None else "Several tables have the column"
            raise UsageError(f"""--table is missing
                {whose}: {", ".join(printable(table.name) for table in owners)}. One of them has one row per unit.
                Name it: {" or ".join(f"--table {shlex.quote(printable(table.name))}" for table in owners[:10])}""")
        self.tables = having or found
        self.left_out = [printable(table.name) for table in found if table not in self.tables]
        # One row of one unit in one table: then the unit's column can turn out to repeat.
        self.single = len(self.tables) == 1
        self.assumed = not self.single and rows_per_unit is None
        self.rows_per_unit = rows_per_unit
        self._about = replace(about, dataset=self.name, unit_table=self.unit_table)
        self.text()  # a wrong column or table is refused now, before anything is made
        self.columns = _column_list(self.tables)

    def text(self, *, several: bool = False) -> str:
        """The dataset file for it; `several` says that a unit has several rows in its only table."""
        return self._about.proposal(self.tables, str(self.path), self.rows_per_unit, several=several)

    def wrong_table(self) -> CommandFailed:
        """The failure when the table of the units turns out to have several rows of one."""
        others = ", ".join(printable(table.name) for table in self.tables if table.name != self.unit_table)
        return CommandFailed(f"""table "{self.unit_table}" has several rows of one unit
            Other tables refer to it, and a reference must find one row. Nothing was attached.
            Name the table with one row per unit with --table: {others}.
            Or describe one table alone: noisegate init, then noisegate dataset add.""")

    def remarks(self, described: Path) -> list[str]:
        """What the proposal assumes, for its owner to judge."""
        lines = [f"reading {self.path.name}: columns {self.columns}", *renamed_lines(self.tables)]
        if self.left_out:
            names = ", ".join(self.left_out)
            lines += [
                f"left out: table {names} (only its owner can say how its rows belong to the units)",
                '  Where anyone may know its rows, say "public: true" in the dataset file (docs/datasets.md)',
            ]
        if self.decided:
            keyed = f"{printable(self.unit_table)}, whose key the database says {printable(self.unit)} is"
            lines.append(f"units: one row for each in table {keyed} (another one: --table NAME)")
        if self.unit is None:
            lines += [
                "each row counts as one person. That is right when everybody has one row: whoever has several is",
                "  protected one row at a time, not as a whole. Where a column names the person, use --unit COLUMN.",
            ]
        return lines + (self.assumption(described, "in the tables that refer to it, ") if self.assumed else [])

    @staticmethod
    def assumption(described: Path, why: str) -> list[str]:
        """Says how much of one unit will count, and where to say otherwise."""
        return [
            f"{why}each question chooses how much of one unit counts, for a small part of its price.",
            "  With Laplace noise, groups that are not public need numbers: at most 20 rows of one unit, in 4 groups.",
            f'  Choose numbers of your own with --rows-per-unit, or under "contribution" in {described}',
        ]

    def require_same(self, described: Path) -> None:
        """Errors: CommandFailed when there is a dataset file of that name already, and it describes other data."""
        from server.datasets import load

        if not described.exists():
            return
        tables = load(described).tables.values()
        if str(self.path) not in {os.path.abspath(described.parent / table.source.file) for table in tables}:
            raise CommandFailed(f"""there is a dataset "{self.name}" already, of other data
                "{described}" does not mention "{self.path}".
                Choose another name with --dataset NAME.""")
