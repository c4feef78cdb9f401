"""Logs: one JSON object per line, from a list of allowed fields, without texts, literals, values or exceptions' words.

An exception is logged as its class and its path through this program: its message may repeat a
cell, a literal or a password, and so may the variables around it.
"""

from __future__ import annotations

import datetime
import json
import logging
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

__all__ = ["ALLOWED_FIELDS", "Log", "coarse_seconds", "configure_logs", "duration_bucket", "logger", "where"]

ALLOWED_FIELDS = frozenset(
    {
        "event",
        "level",
        "time",
        "request_id",
        "method",
        "route",
        "status",
        "duration",
        "code",
        "charged",
        "query_id",
        "dataset",
        "exception",
        "where",
        "reason",
        "check",
        "count",
        "names",
        "version",
        "logger",
        "message",
        "instance",
        "kind",
        "category",
    }
)
"""Every field that a line may have; others are dropped, and their number is logged."""

_ROOT = Path(__file__).resolve().parent.parent
_UVICORN_LOGGERS = ("uvicorn", "uvicorn.error")
_BUCKETS = ((0.01, "<10ms"), (0.1, "<100ms"), (1.0, "<1s"), (10.0, "<10s"))


def duration_bucket(seconds: float) -> str:
    """A duration in five steps: how long a query ran is a fact about rows, so the log is coarse."""
    return next((name for limit, name in _BUCKETS if seconds < limit), ">=10s")


def coarse_seconds(seconds: float) -> float:
    """A duration as the upper end of its step; 100 for the last step, which has none."""
    return next((limit for limit, _ in _BUCKETS if seconds < limit), 100.0)


def where(error: BaseException) -> str:
    """The exception's way through this program: `file:line` of our own files, innermost last, at most eight."""
    places = []
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if path.is_relative_to(_ROOT) and "site-packages" not in path.parts:
            places.append(f"{path.relative_to(_ROOT).as_posix()}:{frame.lineno}")
    return " > ".join(places[-8:])


def _kept(fields: Mapping[str, object]) -> dict[str, object]:
    kept = {name: _plain(value) for name, value in fields.items() if name in ALLOWED_FIELDS}
    dropped = len(fields) - len(kept)
    if dropped:
        kept["count"] = dropped
        kept["message"] = "fields dropped"
    return kept


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value[:200] if isinstance(value, str) else type(value).__name__


class Log:
    """Writes events with fields as lines of JSON. Safe to use from many threads."""

    def __init__(self, *, level: int, stream: TextIO) -> None:
        self._level = level
        self._stream = stream
        self._lock = threading.Lock()

    def log(self, level: int, event: str, **fields: object) -> None:
        """One line, if lines of that level are logged."""
        if level < self._level:
            return
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        line = {**_kept(fields), "event": event, "level": logging.getLevelName(level).lower(), "time": now}
        text = json.dumps(line, ensure_ascii=True) + "\n"
        with self._lock:
            self._stream.write(text)
            self._stream.flush()

    def debug(self, event: str, **fields: object) -> None:
        """A line for developers."""
        self.log(logging.DEBUG, event, **fields)

    def info(self, event: str, **fields: object) -> None:
        """A line about what happens as it should."""
        self.log(logging.INFO, event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        """A line about what somebody should look at."""
        self.log(logging.WARNING, event, **fields)

    def error(self, event: str, **fields: object) -> None:
        """A line about what went wrong."""
        self.log(logging.ERROR, event, **fields)


class _Records(logging.Handler):
    """Records of the standard library's logging, as lines of ours.

    Rooms below this one log an event with `fields`, which are filtered like ours. Of libraries only the location: the
    web server's own lines about its life are passed with their text.
    """

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("noisegate."):
            _logger.log(record.levelno, str(record.msg), **getattr(record, "fields", {}))
            return
        fields: dict[str, object] = {"logger": record.name}
        if record.name in _UVICORN_LOGGERS and record.levelno < logging.ERROR and not record.exc_info:
            fields["message"] = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            fields["exception"] = type(record.exc_info[1]).__name__
            fields["where"] = where(record.exc_info[1])
        _logger.log(record.levelno, "library", **fields)


_logger = Log(level=logging.WARNING, stream=sys.stderr)


def logger() -> Log:
    """The program's log. Until `configure_logs` it logs warnings only, in the same form."""
    return _logger


def configure_logs(*, level: str = "info", stream: TextIO | None = None) -> None:
    """Sends the logs of this program and of every library to `stream` (standard error), in this form only."""
    global _logger
    number = logging.getLevelNamesMapping()[level.upper()]
    _logger = Log(level=number, stream=stream or sys.stderr)
    root = logging.getLogger()
    root.handlers = [_Records()]
    root.setLevel(max(number, logging.INFO))
    for name in (*_UVICORN_LOGGERS, "uvicorn.access"):
        library = logging.getLogger(name)
        library.handlers = []
        library.propagate = name != "uvicorn.access"
