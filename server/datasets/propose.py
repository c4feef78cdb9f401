"""A first dataset file from the names and types of a data file's columns. Bounds and keys are asked for, never read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Protocol

from privacy.bounds import ContributionBound
from privacy.policy import ColumnType
from server.datasets.files import SUFFIXES, file_format
from server.datasets.identifiers import identifier_for, is_identifier
from server.datasets.schema import SCHEMA_PATH

__all__ = ["InspectedColumn", "InspectedTable", "propose"]


class InspectedColumn(Protocol):
    """A column of a data file: its name, and the type that fits it (None when none does)."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> ColumnType | None: ...


class InspectedTable(Protocol):
    """A table of a data file."""

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> Sequence[InspectedColumn]: ...


_HEAD = """\
# A dataset file of Noisegate, proposed from the names and types of the columns in {file}.
# What stands here is public to the analysts of the dataset. Lines that say "asked" wait for you: fill them in from
# what the columns mean, never from the rows, because bounds and lists that were read from rows tell about people.
# Check it with:   noisegate dataset check THIS_FILE        More: docs/datasets.md
"""

_BOUNDS = "# bounds: [LOWEST, HIGHEST]   # asked: lowest and highest plausible value; SUM, AVG and VAR need them"
_KEYS = "# keys: [A, B, C]   # asked: the possible values, if everybody knows them; else rare groups are not shown"


def propose(
    inspected: Sequence[InspectedTable],
    *,
    unit: str | None,
    file: str,
    dataset: str | None = None,
    unit_table: str | None = None,
    contribution: ContributionBound | None = None,
) -> str:
    """The text of a dataset file for the tables in `file`.

    `unit` is the column that names the privacy unit; None leaves the question in the text. `unit_table` chooses the
    table of the units where several have the column (the first one by default). `contribution` says that one unit may
    have several rows of that table; without it the unit's column is declared as its key, which is verified when the
    data is attached.
    Errors: ValueError when there is no usable table, or no table has the unit's column.
    """
    usable = [table for table in inspected if any(_usable(column) for column in table.columns)]
    if not usable:
        raise ValueError(f'"{file}" has no table with a column that can be used')
    names = _table_names(usable, file)
    owners = [table for table in usable if unit is not None and unit in [column.name for column in table.columns]]
    if unit is not None and not owners:
        known = ", ".join(column.name for table in usable for column in table.columns)
        raise ValueError(f'"{file}" has no column "{unit}"; its columns are {known}')
    if unit is not None and not is_identifier(unit):
        raise ValueError(f'column "{unit}" cannot be used as a name: rename it, for instance "{identifier_for(unit)}"')
    chosen = next((table for table in owners if unit_table in (None, table.name, names[table.name])), None)
    if owners and chosen is None:
        raise ValueError(f'"{file}" has no table "{unit_table}" with a column "{unit}"')
    owner = names[chosen.name] if chosen is not None else None

    lines = [f"# yaml-language-server: $schema={SCHEMA_PATH.as_uri()}"] if SCHEMA_PATH.exists() else []
    lines += _HEAD.format(file=_comment(file)).splitlines()
    lines.append(f"dataset: {identifier_for(dataset or (owner or names[usable[0].name]))}")
    if owner is not None:
        lines.append(f"unit: {{table: {owner}, key: {unit}}}")
    else:
        lines.append("unit:   # asked: whose presence is protected? The table of people and the column that names them")
        lines += ["  table:", "  key:"]
    lines.append("tables:")
    for table in usable:
        lines += _table(
            table,
            name=names[table.name],
            file=file,
            unit=unit,
            owner=owner,
            contribution=contribution,
        )
    lines += [
        "policy:",
        '  epsilon_default: "0.1"',
        '  epsilon_max: "1"',
        '  delta_per_query: "0.000000001"',
    ]
    return "\n".join(lines) + "\n"


def _table(
    table: InspectedTable,
    *,
    name: str,
    file: str,
    unit: str | None,
    owner: str | None,
    contribution: ContributionBound | None,
) -> list[str]:
    lines = [f"  {name}:"]
    inside = f", table: {_quoted(table.name)}" if table.name and file_format(file) == "duckdb" else ""
    lines.append(f"    source: {{file: {_quoted(file)}{inside}}}")
    has_unit = unit is not None and unit in [column.name for column in table.columns]
    one_row = name == owner and contribution is None
    if one_row:
        lines.append(f"    key: {unit}   # says: each unit has one row here; verified when the data is attached")
        lines.append("    # has one unit several rows? then instead of key, with numbers that most units stay within:")
        lines.append("    # contribution: {rows_per_unit: 40, groups_per_unit: 4, rows_per_unit_and_group: 15}")
    if has_unit and name != owner:
        lines.append(f"    references: {{{unit}: {owner}.{unit}}}")
    elif not has_unit and unit is not None:
        lines.append(
            "    # asked: how do its rows belong to the units? references: {COLUMN: TABLE.KEY}, or public: true"
        )
    if name == owner and contribution is not None:
        lines.append(
            f"    contribution: {{rows_per_unit: {contribution.rows_per_unit}, "
            f"groups_per_unit: {contribution.groups_per_unit}, "
            f"rows_per_unit_and_group: {contribution.rows_per_unit_and_group}}}"
        )
    elif has_unit and not one_row:
        lines.append("    # asked: how much of one unit may count? Numbers that most units stay within")
        lines.append("    # contribution: {rows_per_unit: 40, groups_per_unit: 4, rows_per_unit_and_group: 15}")
    lines.append("    columns:")
    seen: set[str] = set()
    for column in table.columns:
        lines += _column(column, unit=unit, seen=seen)
    return lines


def _column(column: InspectedColumn, *, unit: str | None, seen: set[str]) -> list[str]:
    if not _usable(column) or column.name.lower() in seen:
        reason = "its type is not supported" if column.type is None else "rename it in the data: letters, digits and _"
        reason = "its name repeats another one" if column.name.lower() in seen else reason
        return [f"      # left out: {_comment(column.name)} ({reason})"]
    seen.add(column.name.lower())
    assert column.type is not None
    lines = [f"      {_name(column.name)}:", f"        type: {column.type.value}"]
    if column.name != unit and column.type in (ColumnType.INTEGER, ColumnType.NUMBER):
        lines.append(f"        {_BOUNDS}")
    if column.name != unit and column.type is ColumnType.TEXT:
        lines.append(f"        {_KEYS}")
    return lines


def _usable(column: InspectedColumn) -> bool:
    return column.type is not None and is_identifier(column.name)


def _table_names(tables: Sequence[InspectedTable], file: str) -> dict[str, str]:
    """A usable name for each table, without repeats; a table without a name is called as its file."""
    names: dict[str, str] = {}
    for table in tables:
        base = identifier_for(table.name or _stem(file))
        name, number = base, 2
        while name.lower() in {taken.lower() for taken in names.values()}:
            name, number = f"{base[:58]}_{number}", number + 1
        names[table.name] = name
    return names


def _stem(file: str) -> str:
    name = PurePath(file).name
    suffix = next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(suffix)]


def _name(name: str) -> str:
    # Our reader takes every name as text; other YAML tools would read these as something else.
    return f'"{name}"' if name.lower() in {"y", "n", "yes", "no", "on", "off", "true", "false", "null"} else name


def _quoted(text: str) -> str:
    escaped = "".join(
        character if character.isprintable() and character not in '"\\' else _escape(character) for character in text
    )
    return f'"{escaped}"'


def _escape(character: str) -> str:
    return f"\\{character}" if character in '"\\' else f"\\U{ord(character):08x}"


def _comment(text: str) -> str:
    """Text inside a comment: one line, whatever the data file is called."""
    return "".join(character if character.isprintable() else "?" for character in text)[:200]
