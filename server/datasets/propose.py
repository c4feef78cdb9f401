"""A first dataset file from the names and types of a data file's columns. Bounds and keys are asked for, never read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engines.inspected import InspectedTable
from engines.table_source import file_format
from privacy.bounds import AutomaticContribution, ContributionBound
from privacy.policy import ColumnType
from server.datasets.advice import CONTRIBUTION_EXAMPLE
from server.datasets.identifiers import identifier_for
from server.datasets.model import VERSION
from server.datasets.naming import NamedColumn, name_of, named_columns, table_names
from server.datasets.schema import SCHEMA_PATH
from server.datasets.unit_tables import references_of, table_of_units, tables_with_unit, unit_name, unit_source, ways_to

__all__ = ["propose"]


_HEAD = """\
# A dataset file of Noisegate, proposed from the names and types of the columns in {file}.
# What is written here is public to the analysts of the dataset. Lines that say "asked" wait for you: fill them in from
# what the columns mean, never from the rows: bounds and lists that are read from rows reveal facts about people.
# Check it with:   noisegate dataset check THIS_FILE        More: docs/datasets.md
"""

_BOUNDS = "# bounds: [LOWEST, HIGHEST]   # asked: lowest and highest plausible value; else SUM and AVG buy bounds"
_KEYS = "# keys: [A, B, C]   # asked: the possible values, if everybody knows them; else rare groups are not shown"
_LENGTH = "# length_max: 50   # asked: most characters by its meaning; else answers with text functions wait"
_ROWS_EXPECTED = "# asked: about how many rows, if everybody may know; answers then appear sooner"
_DOUBTFUL = frozenset(("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP"))
"""What the engine guesses for columns of a CSV file; where text is proposed instead, the file says why."""

_ZONED = "TIMESTAMP WITH TIME ZONE"

_GUESSED = (
    "# asked: several tables have the column; is this the one with one row per unit? if not: init with --table NAME"
)
_ROWS = "# says: each row is one unit, a person with several rows is several units; if a column names them, use key"


def propose(
    inspected: Sequence[InspectedTable],
    *,
    unit: str | None,
    file: str,
    dataset: str | None = None,
    unit_table: str | None = None,
    contribution: ContributionBound | AutomaticContribution | None = None,
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
    names = table_names(usable, file)
    owners = usable if rows_are_units else _owners(usable, unit, file)
    chosen = next((table for table in owners if unit_table in (None, table.name, names[table.name])), None)
    if owners and chosen is None:
        raise ValueError(f'"{file}" has no table "{unit_table}"' + (f' with a column "{unit}"' if unit else ""))
    owner = names[chosen.name] if chosen is not None else None

    lines = [f"# yaml-language-server: $schema={SCHEMA_PATH.as_uri()}"] if SCHEMA_PATH.exists() else []
    lines += _HEAD.format(file=_comment(file)).splitlines()
    lines.append(f"version: {VERSION}")
    lines.append(f"dataset: {identifier_for(dataset or (owner or names[usable[0].name]))}")
    key = None if chosen is None or unit is None else unit_name(chosen, unit)
    guessed = unit is not None and unit_table is None and len(owners) > 1 and table_of_units(usable, unit) is None
    lines += _unit(owner, key, rows_are_units=rows_are_units, guessed=guessed)
    lines.append("tables:")
    references = {names[table.name]: references_of(table, usable, names) for table in usable}
    if unit is not None and chosen is not None:
        for table in owners:
            column = unit_name(table, unit)
            if table is not chosen and column is not None:
                references[names[table.name]].setdefault(column, f"{owner}.{key}")
    referred = not rows_are_units and any(
        target.partition(".")[0] == owner for listed in references.values() for target in listed.values()
    )
    ways = ways_to(references, owner) if key is not None else {}
    for table in usable:
        lines += _table(
            table,
            name=names[table.name],
            file=table.file or file,
            references=references[names[table.name]],
            ways=ways.get(names[table.name], ()),
            unit=None if unit is None else unit_name(table, unit),
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


def _unit(owner: str | None, key: str | None, *, rows_are_units: bool, guessed: bool) -> list[str]:
    """The lines that say whose presence is protected, or ask for it; `guessed` where several tables may say it."""
    if rows_are_units:
        return [f"unit: {{table: {owner}, rows: true}}   {_ROWS}"]
    if owner is not None:
        return [f"unit: {{table: {owner}, key: {key}}}" + (f"   {_GUESSED}" if guessed else "")]
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
        key=lambda table: (table is not decided, table.key is None or table.key != unit_source(table, unit)),
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
    contribution: ContributionBound | AutomaticContribution | None,
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
    single = unit is not None and table.key is not None and name_of(table, table.key) == unit
    if one_row:
        lines.append(f"    key: {unit}   # says: each unit has one row here; verified when the data is attached")
        if not referred:
            lines.append(
                "    # has one unit several rows? then instead of key, with numbers that most units stay within:"
            )
            lines.append(f"    # {CONTRIBUTION_EXAMPLE}")
    elif table.key is not None and (own := name_of(table, table.key)) is not None:
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
    if isinstance(contribution, ContributionBound) and (unit is not None or led) and not single:
        bound = (
            f"    contribution: {{rows_per_unit: {contribution.rows_per_unit}, "
            f"groups_per_unit: {contribution.groups_per_unit}, "
            f"rows_per_unit_and_group: {contribution.rows_per_unit_and_group}}}"
        )
        lines.append(bound)
    elif (unit is not None or led) and not (one_row or single):
        lines.append("    contribution: auto   # each question chooses how much of one unit counts")
        lines.append(f"    # or numbers that most units stay within: {CONTRIBUTION_EXAMPLE}")
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


def rounded_up(rows: int) -> int:
    """The number of rows as the next of 1, 2, 5, 10, 20, 50, ...: a size that says little about one person."""
    unit = 1
    while True:
        for size in (unit, 2 * unit, 5 * unit):
            if size >= rows:
                return size
        unit *= 10


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
