"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

__all__ = ["whole_file", "write_whole"]


@contextmanager
def whole_file(path: Path, *, mode: int | None = None) -> Iterator[TextIO]:
    """A text file to write, which takes its place when the block ends: readers see the old text or the new one.

    A link stays one, and a file that exists keeps its permissions unless `mode` is given. Errors: OSError.
    """
    path = path.resolve()
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
        with open(handle, "w", encoding="utf-8", newline="") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if mode is None and path.exists():
            fresh.chmod(path.stat().st_mode & 0o7777)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def write_whole(path: Path, text: str, *, mode: int | None = None) -> None:
    """Writes a text file in one step, as `whole_file` does. Errors: OSError."""
    with whole_file(path, mode=mode) as stream:
        stream.write(text)
