"""The privacy unit, and the way of each protected table to it."""

from __future__ import annotations

from collections.abc import Sequence

from privacy.wording import nearest
from server.datasets.finding import WARNING, Path
from server.datasets.meaning.contribution import judge_contribution, judge_text_lengths
from server.datasets.meaning.judged import Judged
from server.datasets.model import TableFile, UnitFile
from server.datasets.reading import entries
from server.datasets.routes import Route, routes_to_unit

__all__ = ["holds_units_often", "judge_unit", "judge_way", "table_of_units"]


def judge_unit(judged: Judged) -> None:
    """Finds what is wrong with the declaration of the privacy unit."""
    unit = judged.unit
    if unit is None or not judged.known_table(("unit", "table"), unit.table):
        return
    if unit.key is not None:
        judged.known_column(("unit", "key"), unit.table, unit.key)
        judged.key_type(("unit", "key"), unit.table, unit.key)
    _key_or_rows(judged, unit)
    table = judged.tables.get(unit.table)
    if table is not None and table.public:
        judged.problem(
            ("unit", "table"),
            what=f'the table of the privacy unit, "{unit.table}", is public',
            why="Then nobody would be protected.",
            instead=f"Remove public: true from {unit.table}, or name the table of people.",
        )


def _rows_as_read(judged: Judged) -> bool:
    """Whether `rows` is absent or has its shape: another one is reported as that."""
    return isinstance(entries(judged.data.get("unit")).get("rows", False), bool)


def _key_or_rows(judged: Judged, unit: UnitFile) -> None:
    """Exactly one of the two says what a unit is."""
    if unit.key is not None and unit.rows:
        judged.problem(
            ("unit", "rows"),
            what='"unit" has both key and rows: true',
            why="Either a column names the unit, or each row is one.",
            instead="Remove rows where one unit may have several rows; remove key where no column names it.",
        )
    elif unit.key is None and not unit.rows and not judged.written(("unit", "key")) and _rows_as_read(judged):
        judged.problem(
            ("unit",),
            what='"key" is missing in "unit"',
            why="Without it nobody knows which rows belong to one unit.",
            instead=f"Name the column that names the unit: unit: {{table: {unit.table}, key: COLUMN}}. Where no "
            f"column does and each row is one person: unit: {{table: {unit.table}, rows: true}}.",
        )
    elif unit.rows:
        judged.problem(
            ("unit", "rows"),
            code=WARNING,
            what=f'each row of table "{unit.table}" is a privacy unit of its own',
            why="That is right when each person has one row. A person with several rows is protected one row at a "
            "time: what all of them say together is not hidden.",
            instead="If a column says which rows belong to one person, name it: "
            f"unit: {{table: {unit.table}, key: COLUMN}}.",
        )


def judge_way(judged: Judged, name: str, table: TableFile) -> None:
    """Finds tables that reach the privacy unit in no way, or in more than one."""
    if table.public or judged.unit is None:
        return
    owner = judged.tables.get(judged.unit.table)
    if owner is None or owner.public:
        return  # reported where the unit is declared
    path: Path = ("tables", name)
    if table.unit_via is not None and table.unit_via not in table.references:
        near = nearest(table.unit_via, list(table.references))
        judged.problem(
            (*path, "unit_via"),
            what=f'"unit_via" of table "{name}" names no reference',
            why=f'"{table.unit_via}" is not among its references ({", ".join(table.references) or "none"}).',
            instead=f'Did you mean "{near}"?' if near else "Name a column that is listed under references.",
        )
        return
    routes = list(routes_to_unit(judged.unit, judged.tables, name))
    if not routes:
        _no_way(judged, path, name, table)
    elif len(routes) > 1:
        listed = "; ".join(route.text(name) for route in routes[:5])
        judged.problem(
            path,
            what=f'table "{name}" reaches the privacy unit in more than one way',
            why=f"Its rows could belong to different units ({listed}), and only one of them would be protected.",
            instead=f"Choose one with unit_via, for instance unit_via: {_first_step(routes)}.",
        )
    else:
        judge_contribution(judged, path, name, table, routes[0])
        if not routes[0].one_row:
            judge_text_lengths(judged, path, name, table)


def holds_units_often(judged: Judged, name: str, column: str) -> bool:
    """Whether a table is declared to have several rows of a unit, which a column of it names."""
    table = judged.tables.get(name)
    return (
        judged.unit is not None
        and (name, column) == (judged.unit.table, judged.unit.key)
        and table is not None
        and table.key is None
        and table.contribution is not None
    )


def table_of_units(judged: Judged, name: str, column: str, other: str, key: str) -> str:
    """What to do about two tables of events without a table of those whose events they are."""
    tables = [(judged.tables[table], part) for table, part in ((other, key), (name, column))]
    ends = [(table.source.file, _source_name(table, part)) for table, part in tables]
    simple = all(file.endswith((".csv", ".parquet")) and "'" not in file for file, _ in ends)
    rows = " UNION ".join(f"SELECT DISTINCT {column} AS {key} FROM '{file}'" for file, column in ends)
    how = f", made for instance by duckdb -c \"COPY ({rows}) TO 'units.parquet'\"" if simple else ""
    return (
        "Both tables may have several rows of one unit. Add a table with one row for each unit "
        f"(columns: {key}{how}), with key: {key}; name it under unit, and let {other} and {name} refer to it: "
        f"references: {{{key}: units.{key}}}."
    )


def _no_way(judged: Judged, path: Path, name: str, table: TableFile) -> None:
    assert judged.unit is not None
    if len(entries(entries(judged.raw.get(name)).get("references"))) > len(table.references):
        return  # a reference with a wrong shape is reported as that
    if judged.unit.key is None:
        if judged.unit.rows:
            judged.problem(
                path,
                what=f'table "{name}" does not reach the privacy unit',
                why=f'The units are the rows of table "{judged.unit.table}", and nothing in another table can say '
                "which of them its rows belong to.",
                instead=f"Add public: true when everybody may know every row of {name}, describe it in a dataset "
                f"file of its own, or name a column of {judged.unit.table} under unit: key.",
            )
        return
    holds = judged.unit.key in table.columns
    example = judged.unit.key if holds else f"column_that_holds_{judged.unit.key}"[:63]
    judged.problem(
        path,
        what=f'table "{name}" does not reach the privacy unit',
        why=f'No chain of references leads from it to "{judged.unit.table}.{judged.unit.key}", so it is unknown whose '
        "rows these are.",
        instead=table_of_units(judged, name, judged.unit.key, judged.unit.table, judged.unit.key)
        if holds and holds_units_often(judged, judged.unit.table, judged.unit.key)
        else f"Add references: {{{example}: {judged.unit.table}.{judged.unit.key}}}, or public: true when everybody "
        "may know every row.",
    )


def _first_step(routes: Sequence[Route]) -> str:
    return next((route.steps[0].column for route in routes if route.steps), "a_reference")


def _source_name(table: TableFile, column: str) -> str:
    """A column as SQL finds it in the data file."""
    declared = table.columns.get(column)
    name = column if declared is None or declared.source_name is None else declared.source_name
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'
