"""A public table of a snapshot, read whole for outer queries.

A worker of its own opens the snapshot, reads that table and ends. What the shell's workers get is a table of values, as
they get released ones: no process that runs an analyst's text ever opens a file with rows of people in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from engines.arrays import columns_of, decode_values
from engines.frames import Frame, FrameFault
from engines.process import Failure, LoneWorker
from engines.shell import ShellColumn, ShellTable
from engines.snapshot import Refused, attach_options, read_refused
from engines.snapshot_findings import SnapshotFinding, SnapshotRefused
from engines.stored import public_columns
from privacy.policy import ColumnType
from privacy.values import Cell, Json

__all__ = ["public_table"]

READ_SECONDS: Final = 60.0
"""How long a table may take to be read, where nothing else is said."""


def public_table(snapshot: Path, table: str, *, cells_max: int, timeout_seconds: float = READ_SECONDS) -> ShellTable:
    """Every row of a public table of a snapshot, under its own name.

    Errors: LookupError unless the table was declared public; SnapshotRefused (too_many_rows) when it has more cells, or
    more than 64 MiB of text, (not_completed) when it cannot be read within the time.
    """
    columns = public_columns(snapshot).get(table)
    if not columns:
        raise LookupError("the snapshot has no such public table")
    listed: list[Json] = [[name, kind] for name, kind in columns.items()]
    request: dict[str, Json] = {"operation": "public_table", "snapshot": str(snapshot.absolute()), "table": table}
    request |= {"columns": listed, "cells_max": cells_max}
    with LoneWorker(attach_options()) as worker:
        answer = worker.call(request, timeout_seconds=timeout_seconds, parse=_values)
    if isinstance(answer, Failure) or (isinstance(answer, list) and len(answer) != len(columns)):
        raise SnapshotRefused([SnapshotFinding("not_completed")])
    if isinstance(answer, Refused):
        raise SnapshotRefused(answer.findings)
    return ShellTable(
        table,
        tuple(
            ShellColumn(name, ColumnType(kind), cells)
            for (name, kind), cells in zip(columns.items(), answer, strict=True)
        ),
    )


def _values(frame: Frame) -> list[tuple[Cell, ...]] | Refused:
    """The values of every column."""
    refused = read_refused(frame)
    if refused is not None:
        return refused
    rows = frame.header["rows"]
    if type(rows) is not int or rows < 0:
        raise FrameFault
    return [tuple(decode_values(description, buffers, rows)) for description, buffers in columns_of(frame)]
