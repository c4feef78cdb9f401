"""Signs of life of a long step, on standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["progress"]

_FIRST_SECONDS = 2.0
_NEXT_SECONDS = 10.0
"""Between lines where the output is no terminal; a terminal's line is rewritten each second."""


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Says after two seconds what is being done, and from then on how long it has taken."""
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(what, done, time.monotonic()), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(what: str, done: threading.Event, started: float) -> None:
    terminal = sys.stderr.isatty()
    shown = False
    pause = _FIRST_SECONDS
    while not done.wait(pause):
        line = f"  {what} ... {time.monotonic() - started:.0f} s"
        sys.stderr.write(f"\r\x1b[K{line}" if terminal else f"{line}\n")
        sys.stderr.flush()
        shown, pause = True, 1.0 if terminal else _NEXT_SECONDS
    if shown and terminal:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
