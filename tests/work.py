"""Work counted in calls instead of seconds: the same on every machine, however busy it is."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

__all__ = ["counting_calls"]

T = TypeVar("T")


def counting_calls(function: Callable[[], T]) -> tuple[T, int]:
    """The function's result, and how many calls of Python and compiled functions it made on this thread.

    Loops of compiled code count as the one call that they are. No garbage is collected meanwhile: Hypothesis has a
    function that is called at each collection, which falls where it falls.
    """
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before, collecting = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(count)
    try:
        result = function()
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()
    return result, calls
