"""How much memory a worker may hold, and the watch over what it really holds.

DuckDB's `memory_limit` counts what its buffer manager hands out: tables, hash tables, sorts. Strings that operators
make for the current vector, and the interpreter itself, are not in it. A worker's resident limit therefore is

    engine's limit * open snapshots + threads * strings of one vector + the process itself

The plan bounds the strings of one row (`privacy.statement.TEXT_ROW_BYTES_MAX`), so those of a vector of 2,048 rows are
bounded, and neither rows nor strings bring the process to its limit. The watch is the fence behind that: a process that
is above its limit all the same ends itself, as a lack of memory and not as a fault, before the machine suffers.

The rows of a model are arrays of the interpreter's. Its worker keeps one snapshot open, so the limit of the other one
is theirs, and a model is refused before its charge where the declared number of rows needs more (`design_row_bytes`).
The tables that a snapshot keeps of units are read like all others: the engine counts them.
"""

from __future__ import annotations

import os
import threading
from typing import Final

from privacy.statement import TEXT_ROW_BYTES_MAX

__all__ = ["MEMORY_EXIT", "MemoryWatch", "design_row_bytes", "resident_bytes", "resident_limit_mb"]

MEMORY_EXIT: Final = 77
"""The exit code of a process that used up its memory."""

_MEGABYTE: Final = 1 << 20
_VECTOR_ROWS: Final = 2_048
_PROCESS_MB: Final = 192
"""The interpreter, numpy, the engine's code and two open files."""
_SLACK: Final = 1.1
"""Blocks that hold strings are not full."""
_LOOK_SECONDS: Final = 0.02


def resident_limit_mb(memory_limit_mb: int, *, threads: int, snapshots: int) -> int:
    """The resident size that a worker stays below, in mebibytes: its engines', and what they do not count."""
    texts = int(threads * _VECTOR_ROWS * TEXT_ROW_BYTES_MAX * _SLACK) // _MEGABYTE + 1
    return snapshots * memory_limit_mb + texts + _PROCESS_MB


def design_row_bytes(*, columns: int, width: int) -> int:
    """Most bytes that a worker holds for one row of a model, while it is read, encoded (design.py) and added up.

    `columns` are those of the result, with unit, part and label: at eight bytes, their NULLs, and copies of one column
    and another. `width` are encoded columns, of two bytes. The rest are norms, labels and the order by unit, at eight
    each, with what they are made of. Measured for arrays of all kinds (tests/engines/test_design.py).
    """
    return 12 * columns + 2 * width + 128


def resident_bytes() -> int | None:
    """Bytes of this process in memory; None where the platform does not say it."""
    try:
        with open("/proc/self/statm") as handle:
            return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


class MemoryWatch:
    """Ends this process when it is above its resident limit. Looks while a request runs."""

    def __init__(self, resident_mb: int) -> None:
        self._most = resident_mb * _MEGABYTE
        self._busy = threading.Event()
        if resident_bytes() is not None:
            threading.Thread(target=self._watch, daemon=True).start()

    def begin(self) -> None:
        """A request starts."""
        self._busy.set()

    def end(self) -> None:
        """It has ended."""
        self._busy.clear()

    def _watch(self) -> None:
        pause = threading.Event()
        while self._busy.wait():
            if (resident_bytes() or 0) > self._most:
                os._exit(MEMORY_EXIT)
            pause.wait(_LOOK_SECONDS)
