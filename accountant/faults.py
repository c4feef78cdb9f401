"""Named points at which a test may stop the process: between deciding, committing and answering.

Nothing happens at a point unless a handler was installed by a call from the same process. There is no setting and
no environment variable, so a running server cannot be made to fail from outside.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["POINTS", "install", "reach"]

_OPERATIONS = (
    "create_account",
    "change_limit",
    "freeze",
    "reserve",
    "repeat",
    "post",
    "void",
    "fail",
    "recover",
    "acknowledge",
)
_STAGES = ("decided", "written", "before_commit", "after_commit", "answered")

POINTS: tuple[str, ...] = tuple(f"{operation}.{stage}" for operation in _OPERATIONS for stage in _STAGES)
"""Every point, in the order in which one operation passes its five stages.

`decided`: in memory only. `written`: rows are in the open transaction, the head is not. `before_commit`: all rows
are written. `after_commit`: durable, the caller does not know. `answered`: the caller is about to get the result.
"""

_handler: Callable[[str], None] | None = None


def install(handler: Callable[[str], None] | None) -> None:
    """Calls `handler` with the name of every point from now on; None removes it. For tests only."""
    global _handler
    _handler = handler


def reach(point: str) -> None:
    """Passes a point."""
    if _handler is not None:
        _handler(point)
