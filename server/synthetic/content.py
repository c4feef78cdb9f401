"""The rows of a synthetic table as they are stored: columns of JSON, compressed."""

from __future__ import annotations

import datetime
import json
import zlib
from collections.abc import Sequence

from engines.shell import ShellColumn, ShellTable
from privacy.policy import ColumnType
from privacy.values import Cell

__all__ = ["packed", "unpacked"]


def packed(columns: Sequence[ShellColumn]) -> bytes:
    """The columns as bytes."""
    stored = [[column.name, column.type.value, [_plain(value) for value in column.values]] for column in columns]
    return zlib.compress(json.dumps(stored, ensure_ascii=False, separators=(",", ":")).encode(), 6)


def unpacked(name: str, content: bytes) -> ShellTable:
    """The table of `packed` columns. Errors: ValueError for anything else."""
    columns = []
    for column, kind, values in json.loads(zlib.decompress(content)):
        declared = ColumnType(kind)
        columns.append(ShellColumn(column, declared, tuple(_value(value, declared) for value in values)))
    return ShellTable(name, tuple(columns))


def _plain(value: Cell) -> object:
    return value.isoformat() if isinstance(value, datetime.date | datetime.datetime) else value


def _value(value: Cell, kind: ColumnType) -> Cell:
    if isinstance(value, str) and kind is ColumnType.DATE:
        return datetime.date.fromisoformat(value)
    if isinstance(value, str) and kind is ColumnType.TIMESTAMP:
        return datetime.datetime.fromisoformat(value)
    return value
