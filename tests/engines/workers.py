"""What holds for workers of either kind: bombs that they survive as a pool, and failures that say nothing."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

__all__ = ["BOMBS", "CANARY", "ENDED", "assert_says_nothing", "eventually", "gone"]

CANARY = "CANARY4711"
"""Text of a row, which no failure may show."""

BOMBS = (
    "length(repeat('x', 2000000000) || repeat('y', 2000000000))",
    "(SELECT count(*) FROM range(1000000000000))",
    "list_sum([x + 1 for x in range(100000000)])",
    "(SELECT sum(sleep_ms(60000) IS NULL) FROM range(3))",
)
"""Expressions that eat time or memory. The last one would have a value in the end."""

ENDED = {"timeout", "memory", "refused"}
"""The log's words for the ends that a bomb may have: a limit of the pool, or one of the engine's own."""


def assert_says_nothing(
    failure: BaseException, capfd: pytest.CaptureFixture[str], logs: Sequence[Any], *, hidden: Sequence[str] = ()
) -> None:
    """A failure has no cause or context; neither it nor what was written or logged has a text of rows or engine."""
    assert failure.__cause__ is None
    assert failure.__context__ is None
    written = capfd.readouterr()
    shown = (repr(failure), str(failure.args), "".join(traceback.format_exception(failure)), written.out, written.err)
    for text in (*shown, repr(logs)):
        for word in (CANARY, "Error:", *hidden):
            assert word not in text


def gone(process: int) -> bool:
    """Whether the process has ended (a zombie has, once all its threads have: until then its parent is not told)."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:
        return True
    return state == "Z" and len(threads) <= 1


def eventually(condition: Callable[[], bool], *, seconds: float = 60.0) -> bool:
    """Whether the condition comes true. The time is for a test that hangs, and long."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
