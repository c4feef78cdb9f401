"""Value bounds of columns."""

from __future__ import annotations

import math
from decimal import Decimal

from server.datasets.finding import WARNING, Path
from server.datasets.keys import moment_bounds
from server.datasets.meaning.judged import Judged
from server.datasets.model import ColumnFile, TableFile

__all__ = ["judge_bounds"]

_BOUND_LIMIT = 10**18


def judge_bounds(judged: Judged, table_name: str, table: TableFile, name: str, column: ColumnFile) -> None:
    """Finds what is wrong with a column's value bounds, and what to say of a number that has none."""
    path: Path = ("tables", table_name, "columns", name, "bounds")
    called = f'column "{table_name}.{name}"'
    if column.bounds is None:
        if _asks_for_bounds(judged, table_name, table, name, column) and not judged.written(path):
            judged.problem(
                path[:-1],
                code=WARNING,
                what=f"{called} has no value bounds",
                why="COUNT works; the first question with SUM, AVG or VAR chooses some with a quarter of its spend, "
                "and is refused where the policy forbids that.",
                instead="Add bounds: [lowest, highest plausible value], from what the column means, not from rows.",
            )
        return
    if column.type in ("text", "boolean"):
        judged.problem(
            path,
            what=f"{called} of type {column.type} cannot have bounds",
            why="Only numbers, dates and timestamps are clipped.",
            instead="Remove bounds; for groups that are known beforehand use keys.",
        )
        return
    if column.type in ("date", "timestamp"):
        _moments(judged, path, called, column)
        return
    if any(isinstance(value, str) for value in column.bounds):
        judged.problem(
            path,
            what=f"the bounds of {called} are not numbers",
            why=f"The column is of type {column.type}.",
            instead="Write the lowest and the highest plausible number.",
        )
        return
    lower, upper = (Decimal(value) for value in column.bounds)
    if column.type == "integer" and any(value != value.to_integral_value() for value in (lower, upper)):
        judged.problem(
            path,
            what=f"{called} is of type integer, and its bounds are not whole numbers",
            why="Bounds are values that the column can have.",
            instead=f"Write bounds: [{math.floor(lower)}, {math.ceil(upper)}].",
        )
    if max(abs(lower), abs(upper)) > _BOUND_LIMIT:
        judged.problem(
            path,
            what=f"a bound of {called} is too large",
            why="The noise is proportional to it, and beyond 1e18 every answer would be noise alone.",
            instead="Write the highest plausible value.",
        )
    if lower > upper:
        judged.problem(
            path,
            what=f"the bounds of {called} are reversed",
            why=f"The lowest value, {lower}, is above the highest, {upper}.",
            instead=f"Write bounds: [{upper}, {lower}].",
        )
    elif lower == upper:
        judged.problem(
            path,
            what=f"the bounds of {called} are equal",
            why="Every value would be clipped to the same number.",
            instead="Write the lowest and the highest plausible value, or leave bounds out.",
        )


def _moments(judged: Judged, path: Path, called: str, column: ColumnFile) -> None:
    """Bounds of a column of dates or timestamps."""
    assert column.bounds is not None
    try:
        lower, upper = moment_bounds(column)
    except ValueError as error:
        judged.problem(
            path,
            what=f"the bounds of {called} cannot be used",
            why=f"Each end must be {error}.",
            instead='Write bounds: ["2020-01-01", "2025-12-31"], the first and the last plausible one.',
        )
        return
    if lower >= upper:
        judged.problem(
            path,
            what=f"the bounds of {called} are {'equal' if lower == upper else 'reversed'}",
            why="Every value would be clipped to one moment, or to none.",
            instead="Write the first and the last plausible moment.",
        )


def _asks_for_bounds(judged: Judged, table_name: str, table: TableFile, name: str, column: ColumnFile) -> bool:
    if table.public or column.type not in ("integer", "number"):
        return False
    names_rows = name == table.key or name in table.references
    return not names_rows and (judged.unit is None or (table_name, name) != (judged.unit.table, judged.unit.key))
