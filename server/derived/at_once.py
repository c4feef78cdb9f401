"""How many intervals of released numbers hold at once, and which columns have none: for answers and for estimates.

Where noisy numbers choose the rows of an answer, its intervals hold for every row that might have been chosen: for all
cells of all released tables together. That number is public where the groups are, so an estimate knows the widths.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from server.derived.cells import NoInterval
from sql_rewrite.plan import Shell
from sql_rewrite.trace import Trace

__all__ = ["cells_at_once", "why_none"]


def cells_at_once(plan: Shell, tables: Iterable[int]) -> int:
    """How many intervals hold at once, where the released tables have that many cells.

    Cells that were left out after the release count too: they might have been the right ones.
    """
    return max(1, sum(tables)) if plan.chosen else 1


def why_none(plan: Shell, trace: Trace, selected: Collection[str]) -> NoInterval | None:
    """Why a column of that trace has no interval, whatever it is computed by; None where it may have one.

    `selected` are the cores of which some groups are not shown.
    """
    if not plan.identified:
        return NoInterval.NO_ROW_IDENTITY
    if not trace.across.isdisjoint(selected):
        return NoInterval.GROUPS_NOT_SHOWN
    return NoInterval.CHOSEN_BY_NOISE if trace.chosen else None
