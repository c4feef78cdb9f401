"""What is computed within a unit and lies among the values of its rows: its range is theirs.

    AVG(m) over (SELECT person_id, MEDIAN(day - born) AS m ... GROUP BY person_id)     m lies where day - born does

Of a least or greatest value, one at a place, a quantile or a mean. Bounds that a question chooses for the columns below
are bounds of it then, and enforced where it is summed, so that no privacy rests on this.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from privacy.bounds import number_of_date, number_of_timestamp
from privacy.policy import ColumnType
from sql_rewrite.calendar_ranges import without_calendar
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, interval_of
from sql_rewrite.functions import build, clip_columns
from sql_rewrite.functions.moments import moments_of
from sql_rewrite.functions.operator import TypeRefused
from sql_rewrite.functions.values import midnight
from sql_rewrite.plan import GROUPS, UnitFunction, UnitGroups, UnitRows, UnitValue
from sql_rewrite.unit_plan import UnitPlace

__all__ = ["range_within", "value_within"]

_HULL = (
    UnitFunction.AVERAGE,
    UnitFunction.LEAST,
    UnitFunction.GREATEST,
    UnitFunction.AT_LEAST,
    UnitFunction.AT_GREATEST,
    UnitFunction.QUANTILE,
    UnitFunction.QUANTILE_DISCRETE,
    UnitFunction.MODE,
)
_FARTHEST = 10**15


def value_within(name: str, computed: UnitGroups | UnitRows) -> Expression | None:
    """An expression of the rows below among whose values a column of what is computed lies; None where none is known.

    It is for ranges only: a quantile is replaced by what it is a quantile of.
    """
    return _below(dict(computed.columns)[name], _parts(computed))


def range_within(
    name: str, computed: UnitGroups | UnitRows, bounded: Callable[[Expression], Expression]
) -> Interval | None:
    """The range of such a column, once the columns below are `bounded`; None where a side is open or too far away."""
    value = value_within(name, computed)
    if value is None:
        return None
    try:
        clipped = clip_columns(bounded(value))
    except TypeRefused:
        return None
    if clipped.type in (ColumnType.DATE, ColumnType.TIMESTAMP):
        ends = moments_of(clipped)
        if ends is None:
            return None
        if clipped.type is ColumnType.DATE:
            return Interval(*map(number_of_date, ends))
        return Interval(*(number_of_timestamp(midnight(end)) for end in ends))
    found = interval_of(without_calendar(clipped))
    lower, upper = found.lower, found.upper
    if lower is None or upper is None or max(abs(lower), abs(upper)) > Fraction(_FARTHEST):
        return None
    return found


def _parts(computed: UnitGroups | UnitRows) -> dict[str, Expression | None]:
    """What the keys, values, cells and windows lie among, by their names; None of what grows with the rows."""
    if isinstance(computed, UnitGroups):
        found: dict[str, Expression | None] = dict(computed.keys)
        found.update((value.name, _of_value(value)) for value in computed.values)
        return found
    found = dict(computed.cells)
    for window in computed.windows:
        one = window.value
        if isinstance(one, UnitPlace):
            found[window.name] = one.argument if one.otherwise is None else None
        else:
            found[window.name] = _of_value(one)
    return found


def _of_value(value: UnitValue) -> Expression | None:
    """What a value lies among; the distances between two values, for a median of some."""
    if value.function in _HULL:
        return value.argument
    if value.function is not UnitFunction.DEVIATION or value.argument is None:
        return None
    try:
        return build("abs", (build("subtract", (value.argument, value.argument)),))
    except TypeRefused:
        return None


def _below(node: Expression, parts: dict[str, Expression | None], depth: int = 0) -> Expression | None:
    if isinstance(node, ColumnRef):
        if node.relation != GROUPS or node.declared is not None:
            return node
        part = parts.get(node.name)
        return None if part is None or depth > 2 else _below(part, parts, depth + 1)
    if not isinstance(node, Call):
        return node
    arguments = [_below(argument, parts, depth) for argument in node.arguments]
    made = [argument for argument in arguments if argument is not None]
    if len(made) < len(arguments):
        return None
    try:
        return build(node.operator, made)
    except TypeRefused:
        return None
