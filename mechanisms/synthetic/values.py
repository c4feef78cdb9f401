"""Values of synthetic rows from their places: a key for its place, and a number or a date drawn within its bin."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Callable
from typing import TypeVar, assert_never

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats
from mechanisms.randomness import BitSource
from privacy.binned import BinnedColumn
from privacy.bounds import ValueBounds, date_at, timestamp_at
from privacy.histogram import GridScale
from privacy.policy import Column, ColumnType
from privacy.values import Cell

__all__ = ["values_of"]

_DAY_SECONDS = 86_400

T = TypeVar("T", datetime.date, datetime.datetime)


def values_of(column: Column, binned: BinnedColumn, places: npt.NDArray[np.int64], bits: BitSource) -> tuple[Cell, ...]:
    """A value for each place: within the bounds of the column where it has some. NULL for the place of NULL."""
    histogram = binned.histogram
    real = np.minimum(places, binned.last - binned.first) + binned.first
    if histogram.grid is None:
        keys: list[Cell] = list(histogram.keys)
        if histogram.other:
            other = None if column.keys is None else column.keys.other
            keys.append(None if other is None else other.value)
        values = [keys[place] for place in real.tolist()]
    else:
        uniform = (bits.words(len(places)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        if histogram.grid.scale is GridScale.MONTHS:
            values = _dates(column, binned, real, uniform)
        else:
            values = _numbers(column, binned, real, uniform)
    if binned.null:
        null = (places == binned.size - 1).tolist()
        values = [None if missing else value for missing, value in zip(null, values, strict=True)]
    return tuple(values)


def _numbers(column: Column, binned: BinnedColumn, places: npt.NDArray[np.int64], uniform: Floats) -> list[Cell]:
    grid = binned.histogram.grid
    assert grid is not None
    edges = np.array([float(edge) for edge in grid.edges()])
    if grid.scale is GridScale.LOGARITHMIC:
        # The middle place is zero itself.
        low = np.concatenate([edges[: grid.count], [0.0], edges[grid.count + 1 : -1]])
        high = np.concatenate([edges[1 : grid.count + 1], [0.0], edges[grid.count + 2 :]])
    else:
        low, high = edges[:-1], edges[1:]
    if column.type is ColumnType.INTEGER and grid.scale is GridScale.LINEAR:
        drawn = low[places] + np.floor(uniform * (high - low)[places])
    else:
        drawn = low[places] + uniform * (high - low)[places]
    if column.bounds is not None:
        drawn = np.clip(drawn, float(column.bounds.lower), float(column.bounds.upper))
    if column.type is ColumnType.INTEGER:
        return [round(value) for value in drawn.tolist()]
    return list(drawn.tolist())


def _dates(column: Column, binned: BinnedColumn, places: npt.NDArray[np.int64], uniform: Floats) -> list[Cell]:
    grid = binned.histogram.grid
    assert grid is not None
    first, width = int(grid.first), int(grid.width)
    values: list[Cell] = []
    for place, part in zip(places.tolist(), uniform.tolist(), strict=True):
        begin = _month(first + place * width)
        end = _month(first + (place + 1) * width - 1)
        end = end.replace(day=calendar.monthrange(end.year, end.month)[1])
        days = (end - begin).days + 1
        value: Cell
        match column.type:
            case ColumnType.DATE:
                value = _held(begin + datetime.timedelta(days=int(part * days)), column.bounds, date_at)
            case ColumnType.TIMESTAMP:
                seconds = int(part * days * _DAY_SECONDS)
                moment = datetime.datetime(begin.year, begin.month, 1) + datetime.timedelta(seconds=seconds)
                value = _held(moment, column.bounds, timestamp_at)
            case ColumnType.INTEGER | ColumnType.NUMBER | ColumnType.TEXT | ColumnType.BOOLEAN:
                raise ValueError("only dates lie on a grid of months")
            case _:
                assert_never(column.type)
        values.append(value)
    return values


def _month(number: int) -> datetime.date:
    return datetime.date(number // 12, number % 12 + 1, 1)


def _held(value: T, bounds: ValueBounds | None, at: Callable[..., T]) -> T:
    """The value within the bounds of its column."""
    return value if bounds is None else min(max(value, at(bounds.lower)), at(bounds.upper))
