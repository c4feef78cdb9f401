"""How long the way of one query is: the figures of `python -m tests.journey.count_way`, which may not grow unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journey.count_way import counted
from tests.journey.test_trace import HANDED_DOWN, mutual_pairs

FILES_MAX = 160
"""154 when this was written. The issue that asked for it aimed at 55, and counted 79: every file that was cut since
where it changes subject counts once more, so the number of files says how finely the rooms are cut."""

CALLS_MAX = 930
"""886 when this was written, of an aim of 350: the same cuts, and a call for each node of a tree that is written."""


@pytest.mark.slow
def test_the_way_of_a_warm_query_does_not_grow(tmp_path: Path) -> None:
    """Shows the files and calls of one POST /v1/queries, and that no files call each other but those that are named."""
    calls, entered = counted(tmp_path)
    assert mutual_pairs(calls) == HANDED_DOWN.keys()
    assert len(entered) <= FILES_MAX, sorted(entered)
    assert calls.total() <= CALLS_MAX
