"""Reads what the room of engines logs."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any


class _Lines(logging.Handler):
    """Keeps events with their fields."""

    def __init__(self, lines: list[dict[str, Any]]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append({"event": record.getMessage(), "level": record.levelname, **getattr(record, "fields", {})})


@contextlib.contextmanager
def capture_logs() -> Iterator[list[dict[str, Any]]]:
    """The lines that are logged inside of the context, by anybody in this process."""
    lines: list[dict[str, Any]] = []
    handler, root = _Lines(lines), logging.getLogger()
    root.addHandler(handler)
    try:
        yield lines
    finally:
        root.removeHandler(handler)
