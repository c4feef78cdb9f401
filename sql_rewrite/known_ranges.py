"""What conditions say about the numbers, dates and timestamps of the rows that satisfy them.

    WHERE cost > 10 AND cost <= 500          cost lies within [10, 500] in every row that is read
    CASE WHEN age > 80 THEN 80 ELSE age END  age lies within [.., 80] where the ELSE is reached

Facts are about values that are not NULL. Of a condition four things may be known: that it is TRUE, that it is FALSE,
that it is not TRUE (a CASE went past it) and that it is not FALSE. `not` turns them into each other, AND of TRUE parts
gives all their facts, OR the hull of them. A comparison that is not TRUE may be NULL, so that nothing is known of x in
`x <= y` unless y is never NULL. Conditions see stored values, and a number that is NaN or infinite is NULL there as
everywhere. mechanisms/bounding.md, "Ranges that conditions prove", has the argument.

No privacy rests on this: a value is clipped to its range in the statement, whatever is true of it.
"""

from __future__ import annotations

import datetime
import enum
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import Self

from privacy.bounds import number_of_date, number_of_timestamp
from privacy.policy import ColumnType
from sql_rewrite.apart_facts import DIFFERENCES, apart_by, negated, pair_of
from sql_rewrite.expressions import (
    ANY,
    Call,
    Canonical,
    ColumnRef,
    Expression,
    Interval,
    Literal,
    Value,
    canonical,
    columns_of,
    interval_of,
)
from sql_rewrite.stage_values import is_released

__all__ = ["NOTHING", "Facts", "Reader", "State", "Subjects", "facts_of"]

INTEGER, NUMBER = ColumnType.INTEGER, ColumnType.NUMBER
DATE, TIMESTAMP = ColumnType.DATE, ColumnType.TIMESTAMP

_ORDERED = (INTEGER, NUMBER, DATE, TIMESTAMP)
_DAY = 86_400 * 10**6
_EXACT = Fraction(2**53)

Form = Canonical | tuple[str, str]


def _form(expression: Expression) -> Form:
    """What is equal for equal expressions; quickly, for a column."""
    return (expression.relation, expression.name) if isinstance(expression, ColumnRef) else canonical(expression)


class State(enum.Enum):
    """What is known of a condition."""

    TRUE = "true"
    FALSE = "false"
    NOT_TRUE = "not true"
    NOT_FALSE = "not false"


_NEGATED = {
    State.TRUE: State.FALSE,
    State.FALSE: State.TRUE,
    State.NOT_TRUE: State.NOT_FALSE,
    State.NOT_FALSE: State.NOT_TRUE,
}
_HOLDS = (State.TRUE, State.NOT_FALSE)
_CERTAIN = (State.TRUE, State.FALSE)
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_TURNED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Facts:
    """Ranges of expressions by their forms; `none` where no row can be so, `composed` where not all are columns."""

    ranges: Mapping[Form, Interval] = field(default_factory=dict)
    none: bool = False
    composed: bool = False

    def of(self, expression: Expression) -> Interval:
        """What is known of an expression's values that are not NULL."""
        if not self.ranges or (isinstance(expression, Call) and not self.composed):
            return ANY
        if isinstance(expression, Call) and expression.operator in DIFFERENCES:
            return self._apart(expression)
        return self.ranges.get(_form(expression), ANY)

    def _apart(self, call: Call) -> Interval:
        """What is known of a difference, in whichever order and by whichever function it is written."""
        pair = pair_of(call)
        found = self.ranges.get(pair.own, ANY)
        if not pair.exact:
            apart = pair.of_clock(self.ranges.get(pair.apart, ANY))
            found = _meet(found, apart) or found
        return found if pair.sign > 0 else negated(found)

    def both(self, other: Facts) -> Facts:
        """What is known where both hold."""
        if self.none or not other.ranges:
            return other if other.none else self
        ranges = dict(self.ranges)
        for form, interval in other.ranges.items():
            # Where both cannot be, no value is but NULL: then either is true.
            ranges[form] = _meet(ranges.get(form, ANY), interval) or interval
        return Facts(ranges, other.none, self.composed or other.composed)

    def either(self, other: Facts) -> Facts:
        """What is known where one of them holds."""
        if self.none or other.none:
            return other if self.none else self
        hulls = {form: _hull(one, other.ranges[form]) for form, one in self.ranges.items() if form in other.ranges}
        known = {form: interval for form, interval in hulls.items() if interval != ANY}
        return Facts(known, composed=self.composed and other.composed)


NOTHING = Facts()
_NEVER = Facts(none=True)


def facts_of(conditions: Sequence[Expression], about: Subjects, *, declared: bool = False) -> Facts:
    """What is known of some subjects in rows of which all these conditions are TRUE.

    With `declared` a column compared with another one is held to the bounds that are declared of that one.
    """
    reader = Reader(about, declared=declared)
    found = reader.all(conditions, NOTHING)
    if not reader.crossed:
        return found
    # Again, so that x <= y knows of y what other conditions say.
    wider = Reader(Subjects(about.columns | reader.crossed, about.composed), declared=declared)
    return wider.all(conditions, wider.all(conditions, NOTHING))


@dataclass(frozen=True, slots=True)
class Subjects:
    """What is asked about: columns, and where `composed` whatever is computed of them."""

    columns: frozenset[tuple[str, str]]
    composed: bool

    @classmethod
    def of(cls, expressions: Iterable[Expression]) -> Self:
        """The columns that some expressions read."""
        columns: set[tuple[str, str]] = set()
        composed = False
        for expression in expressions:
            if isinstance(expression, ColumnRef):
                columns.add((expression.relation, expression.name))
            else:
                composed = composed or isinstance(expression, Call)
                columns.update((column.relation, column.name) for column in columns_of(expression))
        return cls(frozenset(columns), composed)


class Reader:
    """Reads conditions for what they say of some subjects."""

    def __init__(self, about: Subjects, *, declared: bool) -> None:
        self._about = about
        self._declared = declared
        self._known = NOTHING
        self.crossed: frozenset[tuple[str, str]] = frozenset()
        """The columns that subjects were compared with."""

    def all(self, conditions: Sequence[Expression], known: Facts) -> Facts:
        """What is known where all of them are TRUE, beside what is known anyway."""
        for condition in conditions:
            known = known.both(self.read(condition, State.TRUE, known))
        return known

    def read(self, condition: Expression, state: State, known: Facts) -> Facts:
        """What is known where a condition has that state, told by what is known anyway."""
        self._known = known
        return self._read(condition, state)

    def _read(self, node: Expression, state: State) -> Facts:
        if not isinstance(node, Call):
            return _NEVER if isinstance(node, Literal) and not _may_be(node.value, state) else NOTHING
        match node.operator:
            case "not":
                return self._read(node.arguments[0], _NEGATED[state])
            case "and" | "or":
                return self._joined(node, state)
            case "in":
                return self._listed(node, state)
            case "=" | "<>" | "<" | "<=" | ">" | ">=":
                return self._compared(node, state)
            case "is_not_distinct_from" | "is_distinct_from":
                return self._same(node, state)
        return NOTHING

    def _asked(self, expression: Expression) -> bool:
        """Whether something about an expression can be of use."""
        while isinstance(expression, Call) and expression.operator in _CONVERTED:
            expression = expression.arguments[0]
        if isinstance(expression, ColumnRef):
            return (expression.relation, expression.name) in self._about.columns
        return isinstance(expression, Call) and self._about.composed

    def _joined(self, node: Call, state: State) -> Facts:
        found = [self._read(part, state) for part in node.arguments]
        together = (state in _HOLDS) == (node.operator == "and")
        return reduce(Facts.both if together else Facts.either, found)

    def _listed(self, node: Call, state: State) -> Facts:
        """x IN (...) with constants: NULL among them makes it NULL and never TRUE."""
        column, *listed = node.arguments
        values = [one for one in listed if not (isinstance(one, Literal) and one.value is None)]
        if state not in _HOLDS or (state is State.NOT_FALSE and len(values) < len(listed)):
            return NOTHING
        if not values:
            return _NEVER
        if column.type not in _ORDERED or not self._asked(column):
            return NOTHING
        given = [one for one in values if isinstance(one, Literal) and one.value is not None]
        assert len(given) == len(values)
        ends = [_literal(end(given, key=lambda one: (one.value,))) for end in (min, max)]
        return _said(column, reduce(_hull, [end for end in ends if end is not None]))

    def _same(self, node: Call, state: State) -> Facts:
        """IS [NOT] DISTINCT FROM a constant, which is never NULL."""
        equal = (state in _HOLDS) == (node.operator == "is_not_distinct_from")
        first, second = node.arguments
        if not equal:
            return NOTHING
        found = NOTHING
        for one, other in ((first, second), (second, first)):
            end = _literal(other)
            found = found if end is None or not self._asked(one) else found.both(_said(one, end))
        return found

    def _compared(self, node: Call, state: State) -> Facts:
        first, second = node.arguments
        if first.type not in _ORDERED or second.type not in _ORDERED:
            return NOTHING
        symbol = node.operator if state in _HOLDS else _OPPOSITE[node.operator]
        found = NOTHING
        for one, sign, other in ((first, symbol, second), (second, _TURNED[symbol], first)):
            # Of a comparison that may be NULL something is known only where that can be due to the value itself.
            if not (state in _CERTAIN or not other.nullable) or not self._asked(one):
                continue
            if not isinstance(other, Literal):
                self.crossed |= Subjects.of((other,)).columns
            found = found.both(self._beside(one, sign, other))
        if self._about.composed:
            said = apart_by(first, symbol, second, certain=state in _CERTAIN)
            found = found if said is None else found.both(Facts(dict((said,)), composed=True))
        return found

    def _beside(self, one: Expression, sign: str, other: Expression) -> Facts:
        """What `one sign other` says of one."""
        if isinstance(other, Literal) and other.value is None:
            return _NEVER
        limit = self._range(other)
        whole = one.type in (INTEGER, DATE, TIMESTAMP) or (isinstance(one, Call) and one.operator == "as_number")
        match sign:
            case "=":
                return _said(one, limit)
            case "<" | "<=":
                upper = limit.upper
                if upper is not None and whole and sign == "<":
                    upper = Fraction(math.ceil(upper) - 1)
                return _said(one, Interval(None, upper))
            case ">" | ">=":
                lower = limit.lower
                if lower is not None and whole and sign == ">":
                    lower = Fraction(math.floor(lower) + 1)
                return _said(one, Interval(lower, None))
        return NOTHING

    def _range(self, expression: Expression) -> Interval:
        end = _literal(expression)
        if end is not None:
            return end
        if isinstance(expression, Call) and expression.operator in _CONVERTED:
            inner = self._range(expression.arguments[0])
            if expression.operator == "as_number":
                return _as_number(inner)
            return Interval(*(None if end is None else end * _DAY for end in (inner.lower, inner.upper)))
        stored = expression.interval or ANY
        met = _meet(stored, self._known.of(expression)) or stored
        if self._declared and isinstance(expression, ColumnRef) and _bounds_rows(expression):
            met = _meet(met, expression.declared or ANY) or met
        return met


def _bounds_rows(column: ColumnRef) -> bool:
    """Whether declared bounds are those of stored values: noise may carry a released number beyond any."""
    return column.declared is not None and not is_released(column)


def _may_be(value: Value, state: State) -> bool:
    """Whether a condition of that value has that state."""
    return {
        State.TRUE: value is True,
        State.FALSE: value is False,
        State.NOT_TRUE: value is not True,
        State.NOT_FALSE: value is not False,
    }[state]


def _literal(expression: Expression) -> Interval | None:
    """The number that a constant is, as bounds count it."""
    if not isinstance(expression, Literal) or expression.value is None:
        return None
    value = expression.value
    if expression.type in (INTEGER, NUMBER):
        return interval_of(expression)
    if isinstance(value, datetime.datetime):
        number = number_of_timestamp(value)
    elif isinstance(value, datetime.date):
        number = number_of_date(value)
    else:
        return None
    return Interval(number, number)


def _said(expression: Expression, interval: Interval) -> Facts:
    """That an expression lies within an interval, and what follows for what it is converted from."""
    if interval == ANY or expression.type not in _ORDERED or isinstance(expression, Literal):
        return NOTHING
    found: dict[Form, Interval] = {}
    composed = False
    while True:
        if expression.type in (INTEGER, DATE, TIMESTAMP):
            whole = _whole(interval)
            if whole is None:
                return NOTHING
            interval = whole
        if isinstance(expression, Call) and expression.operator in DIFFERENCES:
            pair = pair_of(expression)
            found[pair.own] = interval if pair.sign > 0 else negated(interval)
            if pair.unit is not None:
                found[pair.apart] = pair.clock(found[pair.own])
        else:
            found[_form(expression)] = interval
        composed = composed or isinstance(expression, Call)
        step = _CONVERTED.get(expression.operator) if isinstance(expression, Call) else None
        if step is None:
            return Facts(found, composed=composed)
        assert isinstance(expression, Call)
        within = step(interval)
        if within == ANY:
            return Facts(found, composed=composed)
        expression, interval = expression.arguments[0], within


def _whole(interval: Interval) -> Interval | None:
    lower = None if interval.lower is None else Fraction(math.ceil(interval.lower))
    upper = None if interval.upper is None else Fraction(math.floor(interval.upper))
    return None if lower is not None and upper is not None and lower > upper else Interval(lower, upper)


def _as_number(interval: Interval) -> Interval:
    """Of an integer that becomes a double: exact up to 2^53, and beyond it no smaller in size."""
    lower, upper = interval.lower, interval.upper
    return Interval(
        None if lower is None or abs(lower) >= _EXACT else lower,
        None if upper is None or abs(upper) >= _EXACT else upper,
    )


def _as_timestamp(interval: Interval) -> Interval:
    """Of a date that becomes its midnight."""
    return Interval(
        None if interval.lower is None else interval.lower / _DAY,
        None if interval.upper is None else interval.upper / _DAY,
    )


_CONVERTED: Mapping[str, Callable[[Interval], Interval]] = {"as_number": _as_number, "as_timestamp": _as_timestamp}
"""Conversions that keep the order: what the range of the result says of the argument."""


def _meet(first: Interval, second: Interval) -> Interval | None:
    """The values in both; None when there is none."""
    lowers = [end for end in (first.lower, second.lower) if end is not None]
    uppers = [end for end in (first.upper, second.upper) if end is not None]
    lower, upper = max(lowers, default=None), min(uppers, default=None)
    return None if lower is not None and upper is not None and lower > upper else Interval(lower, upper)


def _hull(first: Interval, second: Interval) -> Interval:
    """The values in one of them, and between them."""
    lower = None if first.lower is None or second.lower is None else min(first.lower, second.lower)
    upper = None if first.upper is None or second.upper is None else max(first.upper, second.upper)
    return Interval(lower, upper)
