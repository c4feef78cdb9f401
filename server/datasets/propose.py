"""A first dataset file from the names and types of a data file's columns. Bounds and keys are asked for, never read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol, TypeVar

from engines.table_source import SUFFIXES, file_format
from privacy.bounds import ContributionBound
from privacy.policy import ColumnType
from server.datasets.advice import CONTRIBUTION_EXAMPLE
from server.datasets.identifiers import RESERVED, column_name_for, identifier_for
from server.datasets.model import VERSION
from server.datasets.schema import SCHEMA_PATH

__all__ = [
    "InspectedColumn",
    "InspectedTable",
    "NamedColumn",
    "named_columns",
    "propose",
    "table_of_units",
    "tables_of_units",
    "tables_with_unit",
]


class InspectedColumn(Protocol):
    """A column of a data file: its name, and the type that fits it (None when none does)."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> ColumnType | None: ...

    @property
    def source_type(self) -> str: ...

    @property
    def required(self) -> bool: ...


class InspectedTable(Protocol):
    """A table of a data file."""

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> Sequence[InspectedColumn]: ...

    @property
    def rows(self) -> int: ...

    @property
    def decimal(self) -> str: ...

    @property
    def dates(self) -> str: ...

    @property
    def encoding(self) -> str: ...

    @property
    def thousands(self) -> str | None: ...

    @property
    def nulls(self) -> Sequence[str]: ...

    @property
    def key(self) -> str | None: ...

    @property
    def unique(self) -> Sequence[str]: ...

    @property
    def references(self) -> Sequence[tuple[str, str, str]]: ...

    @property
    def file(self) -> str: ...


_HEAD = """\
# A dataset file of Noisegate, proposed from the names and types of the columns in {file}.
# What stands here is public to the analysts of the dataset. Lines that say "asked" wait for you: fill them in from
# what the columns mean, never from the rows: bounds and lists that are read from rows reveal facts about people.
# Check it with:   noisegate dataset check THIS_FILE        More: docs/datasets.md
"""

_Table = TypeVar("_Table", bound=InspectedTable)

_BOUNDS = "# bounds: [LOWEST, HIGHEST]   # asked: lowest and highest plausible value; SUM, AVG and VAR need them"
_KEYS = "# keys: [A, B, C]   # asked: the possible values, if everybody knows them; else rare groups are not shown"
_LENGTH = "# length_max: 50   # asked: most characters by its meaning; else answers with text functions wait"
_ROWS_EXPECTED = "# asked: about how many rows, if everybody may know; answers then appear sooner"
_DOUBTFUL = frozenset(("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP"))
"""What the engine guesses for columns of a CSV file; where text is proposed instead, the file says why."""

_ZONED = "TIMESTAMP WITH TIME ZONE"

_ROWS = "# says: each row is one unit, a person with several rows is several units; if a column names them, use key"


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


def _unit_name(table: InspectedTable, unit: str) -> str | None:
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


def tables_with_unit(inspected: Sequence[_Table], unit: str) -> tuple[_Table, ...]:
    """The tables that have the unit's column."""
    return tuple(table for table in inspected if _unit_name(table, unit) is not None)


def table_of_units(inspected: Sequence[_Table], unit: str) -> _Table | None:
    """The one table whose unique key the database says the unit's column is; None where that does not decide.

    A column is unique where it is the PRIMARY KEY, or where a FOREIGN KEY points to it. Of several such tables
    those whose key is itself a reference to another one hold more about the same units.
    """
    targets = {(target, key) for table in inspected for _, target, key in table.references}
    keyed = {
        table.name: table
        for table in tables_with_unit(inspected, unit)
        if (own := _unit_source(table, unit)) is not None and (own == table.key or (table.name, own) in targets)
    }
    first = [
        table
        for table in keyed.values()
        if not any(
            column == _unit_source(table, unit) and target in keyed and target != table.name
            for column, target, _ in table.references
        )
    ]
    return first[0] if len(first) == 1 else None


def tables_of_units(inspected: Sequence[_Table], unit: str) -> tuple[_Table, ...]:
    """The tables that have the unit's column, and those whose references lead to one of them in one way."""
    having = tables_with_unit(inspected, unit)
    usable = [table for table in inspected if any(not item.refused for item in named_columns(table))]
    places = {table.name: f"t{number}" for number, table in enumerate(usable)}
    references = {places[table.name]: _references(table, usable, places) for table in usable}
    for table in having:
        references[places[table.name]] = {"": "unit."}
    ways = _ways(references, "unit")
    while several := [name for name, columns in ways.items() if len(columns) > 1]:
        references = {name: {} if name in several else listed for name, listed in references.items()}
        ways = _ways(references, "unit")
    return tuple(table for table in usable if places[table.name] in ways)


def propose(
    inspected: Sequence[InspectedTable],
    *,
    unit: str | None,
    file: str,
    dataset: str | None = None,
    unit_table: str | None = None,
    contribution: ContributionBound | None = None,
    rows_are_units: bool = False,
) -> str:
    """The text of a dataset file for the tables in `file`.

    `unit` is the column that names the privacy unit, as the file or as SQL calls it; None leaves the question in the
    text, unless `rows_are_units` says that each row is one. `unit_table` chooses the table of the units where several
    have the column (the first one by default). `contribution` says how much one unit may have: of the other tables
    that have the column, or where there are none, of the table of the units. Without it, and where others refer to it,
    that table's column is declared as its key, which is verified when the data is attached. Keys, references and unique
    columns that a database declares are taken over; the first table of the units is then one whose key the unit is.
    Errors: ValueError when there is no usable table, or no table has the unit's column.
    """
    assert unit is None or not rows_are_units
    usable = [table for table in inspected if any(not item.refused for item in named_columns(table))]
    if not usable:
        raise ValueError(f'"{file}" has no table with a column that can be used')
    names = _table_names(usable, file)
    owners = usable if rows_are_units else _owners(usable, unit, file)
    chosen = next((table for table in owners if unit_table in (None, table.name, names[table.name])), None)
    if owners and chosen is None:
        raise ValueError(f'"{file}" has no table "{unit_table}"' + (f' with a column "{unit}"' if unit else ""))
    owner = names[chosen.name] if chosen is not None else None

    lines = [f"# yaml-language-server: $schema={SCHEMA_PATH.as_uri()}"] if SCHEMA_PATH.exists() else []
    lines += _HEAD.format(file=_comment(file)).splitlines()
    lines.append(f"version: {VERSION}")
    lines.append(f"dataset: {identifier_for(dataset or (owner or names[usable[0].name]))}")
    key = None if chosen is None or unit is None else _unit_name(chosen, unit)
    lines += _unit(owner, key, rows_are_units=rows_are_units)
    lines.append("tables:")
    references = {names[table.name]: _references(table, usable, names) for table in usable}
    if unit is not None and chosen is not None:
        for table in owners:
            column = _unit_name(table, unit)
            if table is not chosen and column is not None:
                references[names[table.name]].setdefault(column, f"{owner}.{key}")
    referred = not rows_are_units and any(
        target.partition(".")[0] == owner for listed in references.values() for target in listed.values()
    )
    ways = _ways(references, owner) if key is not None else {}
    for table in usable:
        lines += _table(
            table,
            name=names[table.name],
            file=table.file or file,
            references=references[names[table.name]],
            ways=ways.get(names[table.name], ()),
            unit=None if unit is None else _unit_name(table, unit),
            key=key,
            owner=owner,
            contribution=None if referred and table is chosen else contribution,
            referred=referred,
        )
    lines += [
        "policy:",
        '  epsilon_default: "0.1"',
        '  epsilon_max: "1"',
        '  delta_per_query: "0.000000001"',
    ]
    return "\n".join(lines) + "\n"


def _unit(owner: str | None, key: str | None, *, rows_are_units: bool) -> list[str]:
    """The lines that say whose presence is protected, or ask for it."""
    if rows_are_units:
        return [f"unit: {{table: {owner}, rows: true}}   {_ROWS}"]
    if owner is not None:
        return [f"unit: {{table: {owner}, key: {key}}}"]
    return [
        "unit:   # asked: whose presence is protected? The table of people and the column that names them",
        "  table:",
        "  key:   # or, when each row is one person and no column names them: rows: true",
    ]


def _owners(usable: Sequence[InspectedTable], unit: str | None, file: str) -> list[InspectedTable]:
    """The tables that may be that of the units, the likeliest first. Errors: ValueError when none has the column."""
    if unit is None:
        return []
    owners = tables_with_unit(usable, unit)
    if not owners:
        known = ", ".join(column.name for table in usable for column in table.columns)
        raise ValueError(f'"{file}" has no column "{unit}"; its columns are {known}')
    decided = table_of_units(usable, unit)
    return sorted(
        owners,
        key=lambda table: (table is not decided, table.key is None or table.key != _unit_source(table, unit)),
    )


def _table(
    table: InspectedTable,
    *,
    name: str,
    file: str,
    references: Mapping[str, str],
    ways: Sequence[str],
    unit: str | None,
    key: str | None,
    owner: str | None,
    contribution: ContributionBound | None,
    referred: bool,
) -> list[str]:
    """The lines of one table; `unit` is its column that holds the unit's key, `key` that of the table `owner`.

    `ways` are the columns whose references lead to the units, directly or through other tables.
    """
    led = bool(ways)
    lines = [f"  {name}:", *_source(table, file)]
    # Only as a comment: it is a fact about rows until the owner says that everybody may know it.
    lines.append(f"    # rows_expected: {rounded_up(table.rows)}   {_ROWS_EXPECTED}")
    one_row = name == owner and unit is not None and contribution is None
    # The database says that the unit's column is unique here: each unit has one row, as in the table of units.
    single = unit is not None and table.key is not None and _name_of(table, table.key) == unit
    if one_row:
        lines.append(f"    key: {unit}   # says: each unit has one row here; verified when the data is attached")
        if not referred:
            lines.append(
                "    # has one unit several rows? then instead of key, with numbers that most units stay within:"
            )
            lines.append(f"    # {CONTRIBUTION_EXAMPLE}")
    elif table.key is not None and (own := _name_of(table, table.key)) is not None:
        lines.append(f"    key: {own}   # says: no two rows share it; verified when the data is attached")
    if _has_zone(table):
        lines.append(
            "    # asked: whose days and clock do moments with a time zone mean? zone: UTC, Europe/Berlin, ..."
        )
    if references:
        listed = ", ".join(f"{column}: {target}" for column, target in references.items())
        lines.append(f"    references: {{{listed}}}")
    if len(ways) > 1:
        lines.append(
            f"    unit_via: {unit}   # says: whose row it is; its other references lead to units too"
            if unit in ways
            else f"    # asked: which reference says whose row it is? unit_via: {' or '.join(ways)}"
        )
    if unit is None and not led and owner is not None and name != owner:
        ask = "references: {COLUMN: TABLE.KEY}, or public: true" if key is not None else "public: true, or remove it"
        lines.append(f"    # asked: how do its rows belong to the units? {ask}")
    if contribution is not None and (unit is not None or led) and not single:
        bound = (
            f"    contribution: {{rows_per_unit: {contribution.rows_per_unit}, "
            f"groups_per_unit: {contribution.groups_per_unit}, "
            f"rows_per_unit_and_group: {contribution.rows_per_unit_and_group}}}"
        )
        lines.append(bound)
    elif (unit is not None or led) and not (one_row or single):
        lines.append("    # asked: how much of one unit may count? Numbers that most units stay within")
        lines.append(f"    # {CONTRIBUTION_EXAMPLE}")
    lines.append("    columns:")
    several = not (one_row or single or (name == owner and unit is None))
    for item in named_columns(table):
        unique = item.column.name in table.unique and not (one_row and item.name == unit)
        lines += _column(item, unit=unit, several=several, unique=unique)
    return lines


def _has_zone(table: InspectedTable) -> bool:
    """Whether a column holds moments with a time zone."""
    return any(column.source_type.upper() == _ZONED for column in table.columns)


def _source(table: InspectedTable, file: str) -> list[str]:
    """The lines that say where the rows of a table are and how they are written."""
    inside = f", table: {_quoted(table.name)}" if table.name and file_format(file) == "duckdb" else ""
    if table.decimal != ".":
        inside += f", decimal: {_quoted(table.decimal)}"
    if table.thousands is not None:
        inside += f", thousands: {_quoted(table.thousands)}"
    if table.dates != "YYYY-MM-DD":
        inside += f", dates: {_quoted(table.dates)}"
    if table.nulls:
        inside += f", nulls: [{', '.join(map(_quoted, table.nulls))}]"
    if table.encoding != "utf-8":
        inside += f", encoding: {table.encoding}"
    if _has_zone(table):
        inside += ", zone: UTC"
    lines = [f"    source: {{file: {_quoted(file)}{inside}}}"]
    if table.nulls:
        lines.append("    # nulls says: these words stand for missing values, and are values of no column; is that so?")
    if file_format(file) == "csv" and any(column.type is ColumnType.TEXT for column in table.columns):
        lines.append("    # numbers, days or truth values proposed as text? say in source how they are written: "
                     "decimal, thousands,")  # fmt: skip
        lines.append("    # dates, nulls (marks such as NA), true, false (docs/datasets.md), and change their type")
    return lines


def _unit_source(table: InspectedTable, unit: str) -> str | None:
    """The name that the unit's column has in the data."""
    name = _unit_name(table, unit)
    return next((item.column.name for item in named_columns(table) if not item.refused and item.name == name), None)


def _name_of(table: InspectedTable, column: str) -> str | None:
    """The SQL name of a column that is called so in the data, or None when it is left out."""
    found = (item for item in named_columns(table) if item.column.name == column and not item.refused)
    return next((item.name for item in found), None)


def _references(table: InspectedTable, usable: Sequence[InspectedTable], names: Mapping[str, str]) -> dict[str, str]:
    """The references that the database declares, between tables and columns that are described."""
    found: dict[str, str] = {}
    for column, target, key in table.references:
        other = next((item for item in usable if item.name == target), None)
        own, there = _name_of(table, column), None if other is None else _name_of(other, key)
        if other is not None and other is not table and own is not None and there is not None:
            found.setdefault(own, f"{names[other.name]}.{there}")
    return found


def _ways(references: Mapping[str, Mapping[str, str]], owner: str | None) -> dict[str, list[str]]:
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


def _column(item: NamedColumn, *, unit: str | None, several: bool, unique: bool) -> list[str]:
    """The lines of a column; `several` says that one unit may have several rows in its table."""
    column = item.column
    if item.refused:
        return [f"      # left out: {_comment(column.name)} ({item.refused})"]
    assert column.type is not None
    lines = [f"      {_name(item.name)}:", f"        type: {column.type.value}"]
    if item.renamed:
        lines.insert(1, f"        source_name: {_quoted(column.name)}   # its name in the file; SQL says {item.name}")
    if column.type is ColumnType.TEXT and column.source_type in _DOUBTFUL:
        lines[-1] += f"   # most values look like {column.source_type}, and not all can be read so: docs/datasets.md"
    if column.required:
        lines.append("        nullable: false   # as the file declares; verified when the data is attached")
    if unique:
        lines.append("        unique: true   # as the file declares; verified when the data is attached")
    if item.name != unit and column.type in (ColumnType.INTEGER, ColumnType.NUMBER):
        lines.append(f"        {_BOUNDS}")
    if item.name != unit and column.type is ColumnType.TEXT:
        if not unique:  # a group of it would be one person
            lines.append(f"        {_KEYS}")
        if several:
            lines.append(f"        {_LENGTH}")
    return lines


def _table_names(tables: Sequence[InspectedTable], file: str) -> dict[str, str]:
    """A usable name for each table, without repeats; a table without a name is called as its file."""
    names: dict[str, str] = {}
    for table in tables:
        base = identifier_for(table.name or _stem(file))
        base = f"{base[:62]}_" if base.lower() in RESERVED else base
        names[table.name] = _free(base, {taken.lower() for taken in names.values()})
    return names


def rounded_up(rows: int) -> int:
    """The number of rows as the next of 1, 2, 5, 10, 20, 50, ...: a size that says little about one person."""
    unit = 1
    while True:
        for size in (unit, 2 * unit, 5 * unit):
            if size >= rows:
                return size
        unit *= 10


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
