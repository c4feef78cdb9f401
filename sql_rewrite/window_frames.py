"""The frames of windows within a unit: ROWS, RANGE and GROUPS, with what EXCLUDE leaves out.

    RANGE BETWEEN INTERVAL 30 DAY PRECEDING AND CURRENT ROW       rows of the last 30 days
    RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING                     rows whose value differs by 5 at most
    GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW                    rows of this day and of the day before it in the order
    ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW  its neighbours

Claim. What a frame of RANGE or GROUPS holds does not depend on which of equal rows comes first. Proof: its ends are
distances in the value of the order, or counts of groups of equal rows, so rows that are equal in it are all inside or
all outside; EXCLUDE leaves out the row itself, its equals, or both, of which none depends on a place among these.

No end is computed beyond a type: whole numbers are compared in 128 bits, and moments stay ten thousand years around the
calendar, which engines hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.plan import WindowFrame, WindowTerm
from sql_rewrite.refuse import refuse
from sql_rewrite.spans import DAY, constant_span
from sql_rewrite.syntax import consume, whole_number
from sql_rewrite.unit_plan import FrameExclusion, FrameMeasure

__all__ = ["read_frame"]

NUMBER_MAX = 1_000_000
"""Most rows or groups that a frame reaches: no unit has more rows."""

DISTANCE_MAX = 10**15
CLOCK_MAX = 3_660_000 * DAY
"""Farthest that a frame reaches in the value of its order: ten thousand years of moments."""

_PRECEDING, _FOLLOWING = "preceding", "following"
"""The ends of a frame that has none on that side."""

_EXCLUDED: dict[str, FrameExclusion] = {"NO OTHERS": "", "CURRENT ROW": "current row", "GROUP": "group", "TIES": "ties"}
_NUMBERS = (ColumnType.INTEGER, ColumnType.NUMBER)
_MOMENTS = (ColumnType.DATE, ColumnType.TIMESTAMP)


def read_frame(written: exp.Expr, order: Sequence[WindowTerm], lifter: ExpressionLift, node: exp.Expr) -> WindowFrame:
    """The frame as it is written. Errors: Refused (unsupported_sql)."""
    text = lifter.text
    consume(written, "kind", "start", "start_side", "end", "end_side", "exclude", text=text, what="a frame")
    kind = str(written.args.get("kind") or "").upper()
    excluded = written.args.get("exclude")
    exclude = _EXCLUDED.get("NO OTHERS" if excluded is None else str(getattr(excluded, "name", excluded)).upper())
    ends = [written.args.get("start"), written.args.get("end")]
    sides = [written.args.get("start_side"), written.args.get("end_side")]
    if ends[1] is None:
        ends[1], sides[1] = "CURRENT ROW", None
    by: FrameMeasure = "groups" if kind == "GROUPS" else ""
    found: list[int | str | None] = []
    for end, side in zip(ends, sides, strict=True):
        place = _end(end, side)
        if (place is None and kind == "RANGE") or (kind == "RANGE" and place not in (_PRECEDING, _FOLLOWING, 0)):
            by, place = _distance(end, side, order, lifter)
        found.append(place)
    start, end_ = found
    low = -(2**62) if start == _PRECEDING else start
    high = 2**62 if end_ == _FOLLOWING else end_
    reaches = by in ("whole", "clock")
    known = kind in ("ROWS", "RANGE", "GROUPS") and exclude is not None and (not by or bool(order))
    if not (known and isinstance(low, int) and isinstance(high, int) and low <= high) or (
        not reaches and kind == "RANGE" and not {start, end_} <= {_PRECEDING, 0, _FOLLOWING}
    ):
        raise _refused(lifter, node)
    assert exclude is not None
    return WindowFrame(
        rows=kind == "ROWS",
        start=None if start == _PRECEDING else low,
        end=None if end_ == _FOLLOWING else high,
        by=by,
        exclude=exclude,
    )


def _refused(lifter: ExpressionLift, node: exp.Expr) -> Refused:
    return refuse(
        "unsupported_sql",
        "a frame is refused",
        "Frames of so many ROWS or GROUPS are answered, and RANGE of a whole distance in one number, or of an INTERVAL "
        "of days and less in one date; its start is not after its end.",
        "write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW after ORDER BY",
        "write RANGE BETWEEN INTERVAL 30 DAY PRECEDING AND CURRENT ROW after ORDER BY one date",
        position=lifter.text.position(node),
    )


def _end(value: object, side: object) -> int | str | None:
    """A row's distance, before it below zero; the side of an end that is unbounded; None for anything else."""
    if isinstance(value, str):
        if value.upper() == "CURRENT ROW":
            return 0
        return str(side).lower() if value.upper() == "UNBOUNDED" else None
    number = whole_number(value)
    if number is None or number > NUMBER_MAX:
        return None
    return -number if str(side).upper() == "PRECEDING" else number


def _distance(
    value: object, side: object, order: Sequence[WindowTerm], lifter: ExpressionLift
) -> tuple[FrameMeasure, int | None]:
    """A distance in the one value of the order, below zero before it; None for anything else."""
    if len(order) != 1 or not isinstance(value, exp.Expr):
        return "", None
    kind, sign = order[0].expression.type, -1 if str(side).upper() == "PRECEDING" else 1
    if kind in _NUMBERS:
        number = whole_number(value)
        return "whole", None if number is None or number > DISTANCE_MAX else sign * number
    span = constant_span(lifter, value) if kind in _MOMENTS else None
    if span is None or span.months or span.days < 0 or span.microseconds < 0:
        return "", None
    clock = span.days * DAY + span.microseconds
    return "clock", None if clock > CLOCK_MAX else sign * clock
