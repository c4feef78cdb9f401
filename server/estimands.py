"""What each column of an answer estimates where units are beyond their contribution bounds, in plain sentences.

Functions of declarations and the request alone. mechanisms/bounding.md has the definitions.
"""

from __future__ import annotations

from typing import assert_never

from privacy.statistic import Estimate, StatisticKind
from sql_rewrite.bound import BoundedCore

__all__ = ["estimand", "what_is_cut"]

UNITS = "privacy units"
"""What the statistics of units say that they are about."""


def estimand(core: BoundedCore, estimate: Estimate) -> str:
    """What a column estimates, by itself: the same whatever stands beside it."""
    contribution = core.contribution
    asked = estimate.kind.statistic
    if asked is StatisticKind.UNITS:
        return "units" if contribution.one_row or not core.core.keys else "units, each in the groups where it counts"
    if contribution.one_row:
        return "plain: each unit has one row"
    bound = f"{contribution.rows:,} {_rows(contribution.rows)}"
    place = " and group" if core.core.keys else ""
    total = f", {contribution.total:,} over all groups" if contribution.scaled else ""
    match asked:
        case StatisticKind.COUNT:
            return f"rows, at most {bound} per unit{place}{total}"
        case StatisticKind.SUM:
            return f"each unit's sum{place and ' in a group'}, clipped to what {bound} can be worth{total}"
        case StatisticKind.MOMENTS:
            return f"over rows, each unit weighing as its rows, at most {bound} per unit{place}{total}"
        case _:
            assert_never(asked)


def what_is_cut(core: BoundedCore) -> str | None:
    """Which contribution bound may have cut how, and which values are clipped; None where nothing can be cut."""
    return " ".join(said for said in (_rows_cut(core), _values_clipped(core)) if said) or None


def _values_clipped(core: BoundedCore) -> str | None:
    """The columns of which values beyond the declared bounds count as the bound, with these bounds."""
    clipped = {column: f"{column} {_end(lower)} to {_end(upper)}" for column, lower, upper in core.clipped()}
    return f"Values beyond the declared bounds count as the bound: {', '.join(clipped.values())}." if clipped else None


def _end(value: object) -> str:
    return f"{value:,.12g}" if isinstance(value, int | float) else str(value)


def _rows_cut(core: BoundedCore) -> str | None:
    """One sentence on which contribution bound may have cut how; None where each unit has one row."""
    contribution = core.contribution
    if contribution.one_row:
        return None
    cells = core.described.keys.domain
    # Units that are counted as such are all there, however many rows they have.
    rows = any(bounded.statistic.argument != UNITS for bounded in core.statistics)
    parts: list[str] = []
    if contribution.choose_groups:
        of = ("group" if contribution.groups == 1 else "groups") if cells is None else f"of the {len(cells):,} groups"
        parts.append(f"counts in at most {contribution.groups:,} {of} (groups_per_unit)")
    verb = "" if parts else "counts "
    if not rows:
        pass
    elif contribution.scaled or contribution.groups > 1:
        each = "each" if parts else "each group"
        parts.append(
            f"{verb}with at most {contribution.rows:,} {_rows(contribution.rows)} in {each} (rows_per_unit_and_group)"
        )
        if contribution.scaled:
            parts.append(f"scaled down beyond {contribution.total:,} rows over all of them (rows_per_unit)")
    else:
        name = "rows_per_unit" if contribution.rows == contribution.total else "rows_per_unit_and_group"
        parts.append(f"{verb}with at most {contribution.rows:,} {_rows(contribution.rows)} ({name})")
    if not parts:
        return None
    text = f"A unit {', '.join(parts)}: where units have more, counts and sums are too low."
    if contribution.choose_groups and cells is not None:
        text += f" {len(cells):,} groups: groups_per_unit {len(cells)} covers them."
    elif contribution.choose_groups:
        text += " A larger groups_per_unit covers groupings in which units have more groups."
    return text


def _rows(number: int) -> str:
    return "row" if number == 1 else "rows"
