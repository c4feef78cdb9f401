"""Frames of windows in DuckDB's SQL."""

from __future__ import annotations

from sql_rewrite.relations import RowFrame

__all__ = ["frame_text"]


def frame_text(frame: RowFrame) -> str:
    """The frame behind the order of a window."""
    ends = []
    for end, unbounded in ((frame.start, "UNBOUNDED PRECEDING"), (frame.end, "UNBOUNDED FOLLOWING")):
        if end:
            far = f"INTERVAL '{abs(end)} microseconds'" if frame.by == "clock" else abs(end)
            ends.append(f"{far} {'PRECEDING' if end < 0 else 'FOLLOWING'}")
        else:
            ends.append(unbounded if end is None else "CURRENT ROW")
    kind = "ROWS" if frame.rows else "GROUPS" if frame.by == "groups" else "RANGE"
    without = f" EXCLUDE {frame.exclude.upper()}" if frame.exclude else ""
    return f"{kind} BETWEEN {ends[0]} AND {ends[1]}{without}"
