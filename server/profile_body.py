"""A profile as JSON, from its noisy tables: what analysts read about a dataset that nobody declared.

A function of released numbers alone. Every figure has the interval of its noise, each by itself at `CONFIDENCE`.
"""

from __future__ import annotations

import calendar
import datetime
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from mechanisms.profile import (
    NoisyCounts,
    Place,
    Range,
    count_range,
    difference_range,
    quantile_place,
    rows_range,
    share_range,
)
from mechanisms.released_table import ReleasedTable
from privacy.histogram import Grid, GridScale, Histogram, HistogramOf
from privacy.policy import Column, ColumnType, KeyValue, key_as_json
from privacy.values import Json
from sql_rewrite.profile import COUNTED, ProfiledTable

__all__ = ["CONFIDENCE", "profiled_table_body"]

CONFIDENCE = Fraction(95, 100)

_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
_COUNT_LEVELS = (0.5, 0.9, 0.99)
_ALPHA = float(1 - CONFIDENCE)


def profiled_table_body(profiled: ProfiledTable, released: ReleasedTable) -> dict[str, Json]:
    """The profile of one table."""
    return _Body(profiled, released).body()


class _Body:
    def __init__(self, profiled: ProfiledTable, released: ReleasedTable) -> None:
        sums = released.sums_of(COUNTED)
        assert sums is not None
        self.table = profiled.table
        self.counts: dict[tuple[HistogramOf, str | None], tuple[Histogram, NoisyCounts]] = {}
        start = 0
        for histogram in profiled.histograms:
            counts = NoisyCounts.of(sums, start, histogram.bins)
            self.counts[histogram.of, histogram.column] = histogram, counts
            start += histogram.bins
        self.units = self.counts[HistogramOf.UNITS, None][1]

    def body(self) -> dict[str, Json]:
        units = count_range(self.units, _ALPHA)
        body: dict[str, Json] = {"name": self.table.name, "units": _range(units, whole=True)}
        if self.table.one_row:
            return {**body, "rows": body["units"], "rows_per_unit": None, "columns": self._columns()}
        histogram, counts = self.counts[HistogramOf.ROWS, None]
        least, greatest = _ends(histogram, self.table.rows_stored)
        rows = rows_range(counts, np.array(least, float), np.array(greatest, float), _ALPHA, units=units)
        return {
            **body,
            "rows": None if rows is None else _range(rows, whole=True),
            "rows_per_unit": self._number_quantiles(HistogramOf.ROWS, None, self.table.rows_stored),
            "columns": self._columns(),
        }

    def _columns(self) -> Sequence[Json]:
        return [self._column(column) for column in self.table.columns]

    def _column(self, column: Column) -> Mapping[str, Json]:
        body: dict[str, Json] = {"name": column.name, "null": None, "quantiles": None, "keys": None}
        found = [self.counts.get((of, column.name)) for of in (HistogramOf.VALUES, HistogramOf.KEYS, HistogramOf.NULLS)]
        of_column = next((one for one in found if one is not None), None)
        if of_column is not None:
            histogram, counts = of_column
            if histogram.null:
                missing = count_range(counts.part(histogram.bins - 1, histogram.bins), _ALPHA / 2)
                share = share_range(missing, count_range(self.units, _ALPHA / 2))
                body["null"] = None if share is None else _range(share)
            if histogram.grid is not None:
                body["quantiles"] = self._quantiles(column, histogram, counts)
            if histogram.of is HistogramOf.KEYS:
                body["keys"] = _keys(column, histogram, counts)
                body["quantiles"] = self._key_quantiles(histogram, counts)
        body["groups_per_unit"] = self._number_quantiles(HistogramOf.GROUPS, column.name, None)
        body["months_per_unit"] = self._number_quantiles(HistogramOf.MONTHS, column.name, None)
        return body

    def _quantiles(self, column: Column, histogram: Histogram, counts: NoisyCounts) -> list[Json] | None:
        assert histogram.grid is not None
        places = histogram.grid.places
        units = count_range(self.units, _ALPHA)
        if histogram.null:
            units = difference_range(self.units, counts.part(places, places + 1), _ALPHA)
        told: list[Json] = []
        for level in _LEVELS:
            place = quantile_place(counts.part(0, places), level, _ALPHA, units=units)
            if place is None:
                return None
            value, low, high = _on_grid(histogram.grid, place, column.type)
            told.append({"level": level, "value": value, "low": low, "high": high})
        return told

    def _key_quantiles(self, histogram: Histogram, counts: NoisyCounts) -> list[Json] | None:
        """Quantiles of keys that are numbers or days, in their order; None of others, and where others count too."""
        keys = [key for key in histogram.keys if isinstance(key, int | datetime.date) and not isinstance(key, bool)]
        if histogram.other or len(keys) < max(len(histogram.keys), 2):
            return None
        order = sorted(range(len(keys)), key=lambda place: keys[place])
        ordered = NoisyCounts(counts.counts[order], counts.law, counts.scale, counts.rounding)
        units = count_range(self.units, _ALPHA)
        if histogram.null:
            units = difference_range(self.units, counts.part(histogram.bins - 1, histogram.bins), _ALPHA)
        told: list[Json] = []
        for level in _LEVELS:
            place = quantile_place(ordered, level, _ALPHA, units=units)
            if place is None:
                return None
            value, low, high = (key_as_json(keys[order[at]]) for at in (place.place, place.first, place.last))
            told.append({"level": level, "value": value, "low": low, "high": high})
        return told

    def _number_quantiles(self, of: HistogramOf, column: str | None, most: int | None) -> list[Json] | None:
        """Quantiles of a number of rows or groups."""
        found = self.counts.get((of, column))
        if found is None:
            return None
        histogram, counts = found
        least, greatest = _ends(histogram, most)
        units = count_range(self.units, _ALPHA)
        told: list[Json] = []
        for level in _COUNT_LEVELS:
            place = quantile_place(counts, level, _ALPHA, units=units)
            if place is None:
                return None
            low, high = least[place.first], greatest[place.last]
            value = least[place.place] + int(place.part * (greatest[place.place] - least[place.place]))
            told.append({"level": level, "value": value, "low": low, "high": high})
        return told


def _ends(histogram: Histogram, most: int | None) -> tuple[list[int], list[int]]:
    """The least and the greatest number of each bin; that of the last bin is `most`, where it is known."""
    least = list(histogram.least)
    last = max(least[-1], least[-1] if most is None else most)
    return least, [*(number - 1 for number in least[1:]), last]


def _keys(column: Column, histogram: Histogram, counts: NoisyCounts) -> list[Json]:
    """The units of each key, one value of each unit: in declared order, all others and NULL behind them."""
    names: list[KeyValue] = list(histogram.keys)
    other = None if column.keys is None else column.keys.other
    if histogram.other and other is not None:
        names.append(other.value)
    if histogram.null:
        names.append(None)
    return [
        {"key": key_as_json(name), "units": _range(count_range(counts.part(place, place + 1), _ALPHA), whole=True)}
        for place, name in enumerate(names)
    ]


def _range(told: Range, *, whole: bool = False) -> dict[str, Json]:
    if whole:
        return {"value": round(told.value), "low": math.floor(told.low), "high": math.ceil(told.high)}
    return {"value": round(told.value, 6), "low": round(told.low, 6), "high": round(told.high, 6)}


def _on_grid(grid: Grid, place: Place, kind: ColumnType) -> tuple[Json, Json, Json]:
    """The value in the middle, and the ends of the first and the last place."""
    edges = grid.edges()
    low, high = edges[place.first], edges[place.last + 1]
    value = edges[place.place] + Fraction(place.part) * (edges[place.place + 1] - edges[place.place])
    if grid.scale is GridScale.LOGARITHMIC and place.place == grid.count:
        value = Fraction(0)
    if kind in (ColumnType.DATE, ColumnType.TIMESTAMP):
        return (
            _month(math.floor(value)).isoformat(),
            _month(math.floor(low)).isoformat(),
            _last_day(math.ceil(high) - 1).isoformat(),
        )
    if kind is ColumnType.INTEGER:
        lowest = math.floor(low)
        highest = math.ceil(high) - (grid.scale is GridScale.LINEAR)
        return min(max(math.floor(value), lowest), highest), lowest, highest
    return _digits(value), _digits(low), _digits(high)


def _month(number: int) -> datetime.date:
    return datetime.date(min(max(number // 12, 1), 9999), number % 12 + 1, 1)


def _last_day(number: int) -> datetime.date:
    first = _month(number)
    return first.replace(day=calendar.monthrange(first.year, first.month)[1])


def _digits(value: Fraction) -> float:
    """Nine significant digits."""
    return float(f"{float(value):.9g}")
