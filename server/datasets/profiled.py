"""What the published profile of a dataset advises about its file: noisy figures that were paid for, never rows.

Bounds that follow from it reveal nothing more: they are functions of released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from server.datasets.model import ColumnFile, DatasetFile, TableFile
from server.profile_types import ColumnProfile, CountQuantile, Figure, Profile, Quantile, TableProfile

__all__ = ["profile_advice"]

_Quantile = TypeVar("_Quantile", Quantile, CountQuantile)

_FAR = 4
"""How many times a bound may be what nearly all units need before a smaller one is advised."""


def profile_advice(profile: Profile, file: DatasetFile | None = None) -> list[str]:
    """Lines of advice, the first of which says where they are from; none where there is nothing to change.

    Without a file everything is said that a file may declare.
    """
    lines: list[str] = []
    for table in profile["tables"]:
        declared = None if file is None else file.tables.get(table["name"])
        if file is None or declared is not None:
            lines += _contribution_lines(table, declared)
            for column in table["columns"]:
                known = None if declared is None else declared.columns.get(column["name"])
                lines += _column_lines(f"{table['name']}.{column['name']}", column, known)
    if not lines:
        return []
    said = f"By the profile of data version {profile['data_version'][:16]} (noisy, and published already):"
    return [said, *(f"  {line}" for line in lines)]


def _contribution_lines(table: TableProfile, declared: TableFile | None) -> Iterator[str]:
    """How many rows and groups units have, beside the bounds that the file declares."""
    name, rows = table["name"], table["rows_per_unit"]
    bound = None if declared is None else declared.contribution
    if bound == "auto":
        # Each question chooses for itself.
        return
    if rows is not None:
        yield from _number_line(name, "rows", rows, "rows_per_unit", None if bound is None else bound.rows_per_unit)
    groups = None if bound is None else bound.groups_per_unit
    for column in table["columns"]:
        for quantiles, words in ((column["groups_per_unit"], "groups"), (column["months_per_unit"], "months")):
            if quantiles is not None:
                what = f"{words} by {column['name']}"
                yield from _number_line(name, what, quantiles, "groups_per_unit", groups)


def _number_line(
    table: str, what: str, quantiles: list[CountQuantile], name: str, declared: int | None
) -> Iterator[str]:
    most, nearly_all = _at(quantiles, 0.9), _at(quantiles, 0.99)
    have = f"{table}: 90 % of the units have at most {most['high']} {what}, 99 % at most {nearly_all['high']}"
    advised = nearly_all["high"]
    if declared is None:
        yield f"{have}. For instance: {name}: {advised}"
    elif declared < most["low"]:
        yield f"{have}, and {name} is {declared}. What is beyond is cut. For instance: {name}: {advised}"
    elif name == "rows_per_unit" and declared > _FAR * advised:
        yield f"{have}, and {name} is {declared}, for which there is more noise. For instance: {name}: {advised}"


def _column_lines(name: str, column: ColumnProfile, declared: ColumnFile | None) -> Iterator[str]:
    """The range of a column's values, where it has no bounds, or far wider ones."""
    if (
        column["quantiles"] is None
        or column["keys"] is not None
        or (declared is not None and declared.keys is not None)
    ):
        return
    low, high = _at(column["quantiles"], 0.05)["low"], _at(column["quantiles"], 0.95)["high"]
    within = f"{name}: 90 % of the units lie from {low} to {high}"
    if declared is None or declared.bounds is None:
        yield f"{within}. For instance: bounds: [{_below(low)}, {_above(high)}]"
        return
    lower, upper = declared.bounds
    numbers = [value for value in (lower, upper, low, high) if not isinstance(value, str)]
    if len(numbers) == 4 and float(upper) - float(lower) > _FAR * max(float(high) - float(low), 1e-300):
        ends = f"bounds: [{max(_below(low), float(lower)):g}, {min(_above(high), float(upper)):g}]"
        yield f"{within}, and the bounds are [{lower}, {upper}], for which there is more noise. For instance: {ends}"


def _at(quantiles: Sequence[_Quantile], level: float) -> _Quantile:
    return next(one for one in quantiles if one["level"] == level)


def _above(value: Figure) -> Figure:
    """The next number of two digits that is not below; a day as it is."""
    return value if isinstance(value, str) else _two_digits(float(value), math.ceil)


def _below(value: Figure) -> Figure:
    return value if isinstance(value, str) else _two_digits(float(value), math.floor)


def _two_digits(value: float, rounded: Callable[[float], int]) -> float | int:
    if value == 0:
        return 0
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    number = float(f"{rounded(round(value / step, 9)) * step:.2g}")
    return int(number) if number.is_integer() else number
