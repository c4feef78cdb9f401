"""A table as Arrow and Parquet, by an optional library that is imported here, nowhere else, and only when needed."""

from __future__ import annotations

import datetime
import functools
import importlib
import json
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from server.formats.table import Column, Table, as_text, sort_of

__all__ = ["arrow_modules", "to_arrow_file", "to_arrow_stream", "to_parquet"]

_DECIMAL_DIGITS = 38


class _Arrow(NamedTuple):
    base: Any
    ipc: Any
    parquet: Any


@functools.cache
def arrow_modules() -> _Arrow | None:
    """The modules of pyarrow, or None when it is not installed."""
    try:
        return _Arrow(*(importlib.import_module(name) for name in ("pyarrow", "pyarrow.ipc", "pyarrow.parquet")))
    except ImportError:
        return None


def _arrow_table(table: Table) -> tuple[_Arrow, Any]:
    arrow = arrow_modules()
    assert arrow is not None, "the format is chosen before it is written"
    arrays, fields = [], []
    for column in table.columns:
        array = _array(arrow.base, column)
        about = {"kind": column.kind, "column": str(column.of), "type": column.type}
        arrays.append(array)
        fields.append(
            arrow.base.field(
                column.name, array.type, metadata={f"noisegate.{name}": text for name, text in about.items()}
            )
        )
    about_text = json.dumps(table.about, separators=(",", ":"), ensure_ascii=False)
    schema = arrow.base.schema(fields, metadata={"noisegate": about_text})
    return arrow, arrow.base.Table.from_arrays(arrays, schema=schema)


def _array(base: Any, column: Column) -> Any:
    """The values in the Arrow type of their column; as text when one of them does not fit, so that none is lost."""
    values = column.values
    if column.kind in ("low", "high"):
        return base.array([_outward(value, up=column.kind == "high") for value in values], base.float64())
    sort = sort_of(column.type)
    if sort in ("whole", "wide") and _all(values, int):
        largest = max((abs(value) for value in values if value is not None), default=0)
        if sort == "whole" and largest < 2**63:
            return base.array(values, base.int64())
        if largest < 10**_DECIMAL_DIGITS:
            numbers = [None if value is None else Decimal(value) for value in values]
            return base.array(numbers, base.decimal128(_DECIMAL_DIGITS, 0))
    if sort == "number" and _all(values, int, float):
        numbers_or_none = _numbers(values)
        if numbers_or_none is not None:
            return base.array(numbers_or_none, base.float64())
    if sort == "boolean" and all(value is None or isinstance(value, bool) for value in values):
        return base.array(values, base.bool_())
    if sort in ("date", "timestamp"):
        moments = _moments(values, datetime.date if sort == "date" else datetime.datetime)
        if moments is not None:
            return base.array(moments, base.date32() if sort == "date" else base.timestamp("us"))
    return base.array([as_text(value) for value in values], base.string())


def _all(values: Iterable[Any], *types: type) -> bool:
    return all(value is None or (isinstance(value, types) and not isinstance(value, bool)) for value in values)


def _numbers(values: Sequence[Any]) -> list[float | None] | None:
    try:
        return [None if value is None else float(value) for value in values]
    except OverflowError:
        return None


def _moments(values: Sequence[Any], type_: type[datetime.date]) -> list[Any] | None:
    """Dates or times of ISO texts; None when one of them would not come back as the same text."""
    moments: list[Any] = []
    for value in values:
        try:
            moment = None if value is None else type_.fromisoformat(value)
        except (TypeError, ValueError):
            return None
        if moment is not None and (moment.isoformat() != value or getattr(moment, "tzinfo", None) is not None):
            return None
        moments.append(moment)
    return moments


def _outward(value: float | int | None, *, up: bool) -> float | None:
    """The end of an interval as a binary number: exact up to 2^53, beyond it never further inside."""
    if value is None or isinstance(value, float):
        return value
    try:
        near = float(value)
    except OverflowError:
        largest = math.nextafter(math.inf, 0)
        return (math.inf if up else largest) if value > 0 else (-largest if up else -math.inf)
    inside = near < value if up else near > value
    return math.nextafter(near, math.inf if up else -math.inf) if inside else near


def to_arrow_stream(table: Table) -> bytes:
    arrow, made = _arrow_table(table)
    sink = arrow.base.BufferOutputStream()
    with arrow.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    return bytes(sink.getvalue())


def to_arrow_file(table: Table) -> bytes:
    arrow, made = _arrow_table(table)
    sink = arrow.base.BufferOutputStream()
    with arrow.ipc.new_file(sink, made.schema) as writer:
        writer.write_table(made)
    return bytes(sink.getvalue())


def to_parquet(table: Table) -> bytes:
    arrow, made = _arrow_table(table)
    sink = arrow.base.BufferOutputStream()
    arrow.parquet.write_table(made, sink)
    return bytes(sink.getvalue())
