"""A table as Arrow and Parquet, by an optional library that is imported here, nowhere else, and only when needed."""

from __future__ import annotations

import contextlib
import datetime
import functools
import importlib
import json
import math
from collections.abc import Sequence
from decimal import Decimal
from types import ModuleType
from typing import NamedTuple, Protocol, TypeVar

from privacy.values import Cell, Json
from server.formats.table import Column, Table, as_text, sort_of

__all__ = ["arrow_modules", "to_arrow_file", "to_arrow_stream", "to_parquet"]

_DECIMAL_DIGITS = 38
_Kind = TypeVar("_Kind", bool, int, float, str)


class _Arrow(NamedTuple):
    base: ModuleType
    ipc: ModuleType
    parquet: ModuleType


class _ArrowArray(Protocol):
    @property
    def type(self) -> object: ...


class _ArrowTable(Protocol):
    @property
    def schema(self) -> object: ...


@functools.cache
def arrow_modules() -> _Arrow | None:
    """The modules of pyarrow, or None when it is not installed."""
    try:
        return _Arrow(*(importlib.import_module(name) for name in ("pyarrow", "pyarrow.ipc", "pyarrow.parquet")))
    except ImportError:
        return None


def _arrow_table(table: Table) -> tuple[_Arrow, _ArrowTable]:
    arrow = arrow_modules()
    assert arrow is not None, "the format is chosen before it is written"
    arrays, fields = [], []
    for column in table.columns:
        array: _ArrowArray = arrow.base.array(*_typed(arrow.base, column))
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


def _typed(base: ModuleType, column: Column) -> tuple[Sequence[Cell], object]:
    """The values and the Arrow type of their column: text when one of them does not fit, so that none is lost."""
    sort = "number" if column.kind in ("low", "high") else sort_of(column.type)
    if sort in ("whole", "wide") and (whole := _only(column.values, int)) is not None:
        largest = max((abs(value) for value in whole if value is not None), default=0)
        if sort == "whole" and largest < 2**63:
            return whole, base.int64()
        if largest < 10**_DECIMAL_DIGITS:
            numbers = [None if value is None else Decimal(value) for value in whole]
            return numbers, base.decimal128(_DECIMAL_DIGITS, 0)
    if sort == "number" and (real := _only(column.values, int, float)) is not None:
        if column.kind in ("low", "high"):
            return [_outward(value, up=column.kind == "high") for value in real], base.float64()
        with contextlib.suppress(OverflowError):
            return [None if value is None else float(value) for value in real], base.float64()
    if sort == "boolean" and (truths := _only(column.values, bool)) is not None:
        return truths, base.bool_()
    if sort in ("date", "timestamp"):
        moments = _moments(column.values, datetime.date if sort == "date" else datetime.datetime)
        if moments is not None:
            return moments, base.date32() if sort == "date" else base.timestamp("us")
    return [as_text(value) for value in column.values], base.string()


def _only(values: Sequence[Json], *kinds: type[_Kind]) -> list[_Kind | None] | None:
    """The values, None when one of them is of another kind. A truth value is not a number."""
    found: list[_Kind | None] = []
    for value in values:
        if value is None:
            found.append(None)
        elif isinstance(value, kinds) and isinstance(value, bool) == (bool in kinds):
            found.append(value)
        else:
            return None
    return found


def _moments(values: Sequence[Json], type_: type[datetime.date]) -> list[datetime.date | None] | None:
    """Dates or times of ISO texts; None when one of them would not come back as the same text."""
    texts = _only(values, str)
    if texts is None:
        return None
    moments: list[datetime.date | None] = []
    for text in texts:
        try:
            moment = None if text is None else type_.fromisoformat(text)
        except ValueError:
            return None
        if moment is not None and (moment.isoformat() != text or getattr(moment, "tzinfo", None) is not None):
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
    """The table as an Arrow IPC stream."""
    return _batches(table, "new_stream")


def to_arrow_file(table: Table) -> bytes:
    """The table as an Arrow IPC file."""
    return _batches(table, "new_file")


def _batches(table: Table, form: str) -> bytes:
    arrow, made = _arrow_table(table)
    sink = arrow.base.BufferOutputStream()
    with getattr(arrow.ipc, form)(sink, made.schema) as writer:
        writer.write_table(made)
    return bytes(sink.getvalue())


def to_parquet(table: Table) -> bytes:
    """The table as a Parquet file."""
    arrow, made = _arrow_table(table)
    sink = arrow.base.BufferOutputStream()
    arrow.parquet.write_table(made, sink)
    return bytes(sink.getvalue())
