"""What comparisons of two values say of their difference, however it is written.

    WHERE returned - due BETWEEN 0 AND 30     of DATE_DIFF('day', due, returned), and of due - returned with its sign
    WHERE returned >= due                     returned - due is 0 or more, and so are its months, weeks and hours
    WHERE returned <= due + INTERVAL 30 DAY   returned - due is 30 at most
    WHERE ended - began < INTERVAL 2 HOUR     DATE_DIFF('minute', began, ended) is 120 at most, and epoch of it 7,200

Claim. With d = a - b of two dates in days, or of two numbers: b - a, DATE_DIFF('day', b, a), DATE_SUB('day', b, a)
of dates are -d, d and d; differences of the same two moments in any unit, whose size does not depend on the order, have
the sign of d or are 0. Rounding to doubles keeps order, and the sign of a - b. A date moved by n days is n days later,
by m months between 28 m and 31 m of them. Where a comparison of a and b is NULL, one of them is, and so is their
difference; a moved date may be NULL besides, so that a comparison with one is read only where it is TRUE or FALSE.

Where one of the two is a timestamp, d is in microseconds, and what is said of it in one unit is known in the others:
epoch(a) - epoch(b) is d / 10^6 but for the rounding of doubles; DATE_DIFF counts the ends of units between the two, so
with d in [l, u] it lies from floor(l / s) to ceil(u / s) for a unit of s, and is n only where d lies between (n - 1) s
and (n + 1) s; DATE_SUB counts whole units, which are d / s towards zero, within the same. What rounding carries beyond
is clipped to the end that conditions name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from privacy.policy import ColumnType
from sql_rewrite.expressions import ANY, Call, Canonical, Expression, Interval, Literal, canonical

__all__ = ["DIFFERENCES", "Pair", "apart_by", "negated", "pair_of", "sign_of"]

DATE = ColumnType.DATE
_WHOLE = (ColumnType.INTEGER, ColumnType.DATE)
_DAY = 86_400 * 10**6

_SECOND = Fraction(10**6)
_CLOCKED = {
    "microsecond": 1, "millisecond": 1_000, "second": 10**6, "minute": 60 * 10**6, "hour": 3_600 * 10**6,
    "day": _DAY, "week": 7 * _DAY,
}  # fmt: skip
"""Microseconds of units that are all of one length."""

DIFFERENCES = ("subtract", "date_diff", "date_sub", "age_part")
"""Operators whose value is how far two others are apart."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two values in one order, whatever order a text names them in: `own` is of the operator, `apart` of all of them.

    `sign` is -1 where the text has the other order; `exact` where the difference in days, or of numbers, is the value.
    """

    own: Canonical
    apart: Canonical
    sign: int
    exact: bool
    unit: Fraction | None = None
    """Microseconds for each one of the value, of timestamps."""
    counted: bool = False
    """Whether the value counts units, and is not a part of one."""

    def of_clock(self, clock: Interval) -> Interval:
        """The range of the value, given that of the microseconds."""
        if self.unit is None:
            return sign_of(clock)
        lower = None if clock.lower is None else clock.lower / self.unit
        upper = None if clock.upper is None else clock.upper / self.unit
        if not self.counted:
            return Interval(lower, upper)
        return Interval(
            None if lower is None else Fraction(math.floor(lower)),
            None if upper is None else Fraction(math.ceil(upper)),
        )

    def clock(self, value: Interval) -> Interval:
        """The range of the microseconds, given that of the value. Requires: `unit`."""
        assert self.unit is not None
        more = 1 if self.counted else 0
        return Interval(
            None if value.lower is None else (value.lower - more) * self.unit,
            None if value.upper is None else (value.upper + more) * self.unit,
        )


def pair_of(call: Call) -> Pair:
    """The two values whose difference a call of `DIFFERENCES` is."""
    if call.operator == "subtract":
        unit, (later, earlier) = "day", call.arguments
    else:
        first, second = call.arguments[1:]
        later, earlier = (first, second) if call.operator == "age_part" else (second, first)
        unit = str(call.arguments[0].value) if isinstance(call.arguments[0], Literal) else ""
    later, earlier = _unconverted(later), _unconverted(earlier)
    apart, sign = _ordered(later, earlier)
    seconds = _of_seconds(call)
    if seconds is not None:
        clock, turned = _ordered(*map(_unconverted, seconds))
        if turned == sign:
            return Pair(apart, clock, sign, exact=False, unit=_SECOND)
    if ColumnType.TIMESTAMP in (later.type, earlier.type) and unit in _CLOCKED and call.operator != "age_part":
        own = (call.operator, unit, *apart)
        return Pair(own, apart, sign, exact=False, unit=Fraction(_CLOCKED[unit]), counted=True)
    days = unit == "day" and call.operator != "age_part" and (later.type, earlier.type) == (DATE, DATE)
    exact = call.operator == "subtract" or days
    return Pair(apart if exact else (call.operator, unit, *apart), apart, sign, exact)


def apart_by(first: Expression, symbol: str, second: Expression, *, certain: bool) -> tuple[Canonical, Interval] | None:
    """What `first symbol second` says of the difference of the two: of which one, and its range; None of nothing."""
    (one, low, high), (other, least, most) = _moved(first), _moved(second)
    timed = ColumnType.TIMESTAMP in (one.type, other.type)
    if timed:
        (one, low, high), (other, least, most) = _moved_clock(first), _moved_clock(second)
    size = _DAY if timed and (one.type, other.type) == (DATE, DATE) else 1
    if isinstance(one, Literal) or isinstance(other, Literal) or one.type is ColumnType.BOOLEAN:
        return None
    shifted = (low, high, least, most) != (0, 0, 0, 0)
    if shifted and not (certain and (timed or (one.type is DATE and other.type is DATE))):
        return None
    step = 1 if not timed and one.type in _WHOLE and other.type in _WHOLE else 0
    upper, lower = Fraction(most - low, size), Fraction(least - high, size)
    match symbol:
        case "=":
            found = Interval(lower, upper)
        case "<" | "<=":
            found = Interval(None, upper - (step if symbol == "<" else 0))
        case ">" | ">=":
            found = Interval(lower + (step if symbol == ">" else 0), None)
        case _:
            return None
    form, sign = _ordered(one, other)
    return form, found if sign > 0 else negated(found)


def negated(interval: Interval) -> Interval:
    """The negatives of its values."""
    lower, upper = interval.lower, interval.upper
    return Interval(None if upper is None else -upper, None if lower is None else -lower)


def sign_of(interval: Interval) -> Interval:
    """The range of what has the sign of a value, or is 0."""
    lower, upper = interval.lower, interval.upper
    if lower is not None and lower >= 0:
        return Interval(Fraction(0), None)
    return Interval(None, Fraction(0)) if upper is not None and upper <= 0 else ANY


def _ordered(later: Expression, earlier: Expression) -> tuple[Canonical, int]:
    one, other = canonical(later), canonical(earlier)
    return (("apart", one, other), 1) if repr(one) <= repr(other) else (("apart", other, one), -1)


def _of_seconds(call: Call) -> tuple[Expression, Expression] | None:
    """The moments whose seconds are subtracted, where one of them is a timestamp."""
    ends = [part.arguments[0] for part in call.arguments if isinstance(part, Call) and part.operator == "epoch"]
    if call.operator != "subtract" or len(ends) != 2:
        return None
    return (ends[0], ends[1]) if any(_unconverted(end).type is ColumnType.TIMESTAMP for end in ends) else None


def _moved_clock(expression: Expression) -> tuple[Expression, int, int]:
    """What a moment is moved from, and by how many microseconds at least and at most."""
    node = _unconverted(expression)
    if not isinstance(node, Call) or node.operator not in ("add_days", "add_interval"):
        return node, 0, 0
    constants = [part.value for part in node.arguments[1:] if isinstance(part, Literal)]
    numbers = [value for value in constants if isinstance(value, int)]
    if len(numbers) + 1 < len(node.arguments):
        return node, 0, 0
    months, days, clock = (0, *numbers, 0) if node.operator == "add_days" else numbers
    inner, low, high = _moved_clock(node.arguments[0])
    if inner.type not in (DATE, ColumnType.TIMESTAMP):
        return node, 0, 0
    ends = sorted((28 * months, 31 * months))
    shift = days * _DAY + clock
    return inner, low + ends[0] * _DAY + shift, high + ends[1] * _DAY + shift


def _unconverted(expression: Expression) -> Expression:
    """A date before it became its midnight."""
    converted = isinstance(expression, Call) and expression.operator == "as_timestamp"
    return expression.arguments[0] if converted and isinstance(expression, Call) else expression


def _moved(expression: Expression) -> tuple[Expression, int, int]:
    """What an expression is moved from, and by how many days at least and at most; itself where they are not known."""
    node = _unconverted(expression)
    if not isinstance(node, Call) or node.operator not in ("add_days", "add_interval"):
        return node, 0, 0
    constants = [part.value for part in node.arguments[1:] if isinstance(part, Literal)]
    numbers = [value for value in constants if isinstance(value, int)]
    if len(numbers) + 1 < len(node.arguments):
        return node, 0, 0
    months, days, clock = (0, *numbers, 0) if node.operator == "add_days" else numbers
    inner, low, high = _moved(node.arguments[0])
    if inner.type is not DATE or clock % _DAY:
        return node, 0, 0
    days += clock // _DAY
    ends = sorted((28 * months, 31 * months))
    return inner, low + days + ends[0], high + days + ends[1]
