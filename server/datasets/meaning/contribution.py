"""Contribution bounds, and what rows and texts of one unit do to them and to the moment of an answer."""

from __future__ import annotations

import contextlib

from privacy.policy import LENGTH_MAX_DEFAULT, ROWS_STORED_DEFAULT, ColumnType
from server.datasets.finding import WARNING, Path
from server.datasets.keys import range_values
from server.datasets.meaning.judged import Judged
from server.datasets.model import ContributionFile, KeysRange, TableFile
from server.datasets.routes import Route
from server.datasets.waiting import text_wait_seconds

__all__ = ["judge_contribution", "judge_text_lengths"]

_WAIT_SECONDS = 0.1
"""A text column whose functions delay answers by this much gets a warning."""

_SHORT_TEXT = 50


def judge_contribution(judged: Judged, path: Path, name: str, table: TableFile, route: Route) -> None:
    """Finds what is wrong with a table's contribution bounds, given its way to the privacy unit."""
    bound = table.contribution
    stored = table.rows_stored_per_unit
    counted = bound if isinstance(bound, ContributionFile) else None
    if stored is not None and route.one_row:
        judged.problem(
            (*path, "rows_stored_per_unit"),
            what=f'"rows_stored_per_unit" of table "{name}" has no use',
            why="Each unit has one row there.",
            instead="Remove rows_stored_per_unit.",
        )
    elif stored is not None and counted is not None and stored < counted.rows_per_unit:
        judged.problem(
            (*path, "rows_stored_per_unit"),
            what=f'table "{name}" keeps fewer rows of a unit than may count',
            why=f"rows_per_unit says that {counted.rows_per_unit} rows count, and {stored} are kept.",
            instead=f"Raise rows_stored_per_unit to {counted.rows_per_unit} at least, or lower rows_per_unit.",
        )
    if route.one_row:
        if counted is not None and (
            counted.rows_per_unit,
            counted.groups_per_unit,
            counted.rows_per_unit_and_group,
        ) != (1, 1, 1):
            judged.problem(
                (*path, "contribution"),
                what=f'the contribution of table "{name}" is larger than its key allows',
                why="Its rows are the privacy units, so each unit has one."
                if route.unit_column is None
                else "Its key names the privacy unit, so each unit has one row.",
                instead="Remove contribution."
                if route.unit_column is None
                else "Remove contribution, or remove key when a unit may have several rows.",
            )
        return
    if bound is None:
        if not judged.written((*path, "contribution")):
            judged.problem(
                path,
                what=f'table "{name}" has no contribution bounds',
                why="One unit may have any number of its rows, so the noise would have to be endless; with bounds, "
                "a unit beyond them is scaled down.",
                instead="Add contribution: auto, and each question chooses the bound at a small part of its price; or "
                "contribution: {rows_per_unit: 40, groups_per_unit: 4, rows_per_unit_and_group: 15} "
                "with numbers that most units stay within; they come from what you know, not from the rows."
                + (f" Where each unit has one row, add key: {route.unit_column}." if route.unit_column else ""),
            )
        return
    if counted is None:
        return  # chosen by each question
    bound = counted
    if bound.rows_per_unit_and_group > bound.rows_per_unit or bound.groups_per_unit > bound.rows_per_unit:
        judged.problem(
            (*path, "contribution"),
            code=WARNING,
            what=f'the contribution of table "{name}" is wider than its rows_per_unit',
            why="A unit with that many rows cannot be in more groups, or have more rows in one group; the "
            "wider number only adds noise.",
            instead="Lower groups_per_unit and rows_per_unit_and_group to rows_per_unit at most.",
        )
    _declared_groups(judged, path, name, table, bound.groups_per_unit)


def _declared_groups(judged: Judged, path: Path, name: str, table: TableFile, groups: int) -> None:
    """Warns where grouping by one column alone already leaves out groups of a unit."""
    beyond = []
    for column_name, column in table.columns.items():
        count = 0
        if isinstance(column.keys, list):
            count = len(column.keys)
        elif isinstance(column.keys, KeysRange):
            with contextlib.suppress(ValueError):
                count = len(range_values(column.keys.range, ColumnType(column.type)))
        if count > groups:
            beyond.append((count, column_name))
    if beyond:
        count, column_name = max(beyond)
        judged.problem(
            (*path, "contribution"),
            code=WARNING,
            what=f'groups_per_unit of table "{name}" is below the groups of "{column_name}"',
            why=f'"{column_name}" declares {count:,} groups, and one unit counts in at most {groups:,} of them: an '
            "answer by that column is too low for units in more.",
            instead=f"Write groups_per_unit: {count} when units may be in all of them; a question can name its own "
            "bound too.",
        )


def judge_text_lengths(judged: Judged, path: Path, name: str, table: TableFile) -> None:
    """Warns where texts of unknown length make every answer wait that has a function of them."""
    bound = table.contribution
    counted = bound.rows_per_unit if isinstance(bound, ContributionFile) else 0
    rows = table.rows_stored_per_unit or max(ROWS_STORED_DEFAULT, counted)
    seconds = text_wait_seconds(rows=rows, characters=LENGTH_MAX_DEFAULT)
    short = text_wait_seconds(rows=rows, characters=_SHORT_TEXT)
    if seconds < _WAIT_SECONDS:
        return
    for column_name, column in table.columns.items():
        names_rows = column_name == table.key or column_name in table.references
        if column.type != "text" or column.keys is not None or column.length_max is not None or names_rows:
            continue
        if judged.unit is not None and (name, column_name) == (judged.unit.table, judged.unit.key):
            continue
        judged.problem(
            (*path, "columns", column_name),
            code=WARNING,
            what=f'column "{name}.{column_name}" has no length_max',
            why=f"{rows:,} rows of one unit may hold {LENGTH_MAX_DEFAULT:,} characters each, so an answer with a "
            f"function of this text, such as LOWER, is shown after {seconds:.1g} s or more.",
            instead="Add length_max, the most characters that such a text has by its meaning, not by the rows. "
            f"With {_SHORT_TEXT} it is {short:.1g} s. Longer texts are cut.",
        )
