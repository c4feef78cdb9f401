"""Typed row expressions: what a query may compute from one row, with type, NULL behaviour and value range.

Nodes are made by `sql_rewrite.functions.build`, which checks types and proves ranges; only `ColumnRef` and
`Literal` are constructed directly. Nodes are immutable and hashable. They hold no sensitivity and no budget.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import assert_never

from privacy.by_slots import by_slots
from privacy.policy import ColumnType, KeyValue, Other

__all__ = [
    "ANY",
    "BIGINT",
    "DEPTH_MAX",
    "TEXT_LITERAL_MAX",
    "WEIGHT_MAX",
    "WIDE",
    "Call",
    "Canonical",
    "ColumnRef",
    "Expression",
    "Interval",
    "Literal",
    "Value",
    "canonical",
    "columns_of",
    "describe",
    "form_of",
    "interval_of",
    "needs_wide",
    "number_text",
    "walk",
    "works_wide",
]

Value = str | int | float | bool | datetime.date | datetime.datetime | None
"""A value of one of the six types, or NULL. Floats are finite. INTEGER values are Python ints of any size."""

WEIGHT_MAX = 5_000
"""Largest number of operators in the SQL that one expression is lowered to (guards repeat their operand)."""

DEPTH_MAX = 100
"""Deepest nesting of one expression: keeps every recursive walk far from the interpreter's limit."""

TEXT_LITERAL_MAX = 10_000
"""Longest text literal, in characters."""


@by_slots
@dataclass(frozen=True, slots=True)
class Interval:
    """A closed range of exact values that contains every non-NULL value; None is an unknown side."""

    lower: Fraction | None
    upper: Fraction | None

    def __post_init__(self) -> None:
        lower, upper = self.lower, self.upper
        assert lower is None or upper is None or lower is upper or lower <= upper, "interval is reversed"

    @property
    def bounded(self) -> bool:
        """Whether both sides are known."""
        return self.lower is not None and self.upper is not None

    def contains(self, value: Fraction | int | float) -> bool:
        """Whether the value lies in the interval."""
        return (self.lower is None or self.lower <= value) and (self.upper is None or value <= self.upper)

    def inside(self, other: Interval) -> bool:
        """Whether every value of this interval lies in the other one."""
        low = other.lower is None or (self.lower is not None and self.lower >= other.lower)
        high = other.upper is None or (self.upper is not None and self.upper <= other.upper)
        return low and high


ANY = Interval(None, None)
"""The interval of unknown values."""

BIGINT = Interval(Fraction(-(2**63)), Fraction(2**63 - 1))
"""What a stored INTEGER may hold."""

_WIDE = 2**126
WIDE = Interval(Fraction(-_WIDE), Fraction(_WIDE))
"""What an INTEGER expression may reach: the product of two stored integers just does.

Beyond BIGINT it is computed in HUGEINT (whose range is twice as large as this one); beyond WIDE it is refused.
"""


@by_slots
@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of a relation that is in scope, as it is read, not clipped.

    `interval` is what the stored type may hold (BIGINT when left out for an INTEGER), `declared` are the value
    bounds of the policy, which stored values may violate until `clip_columns` enforces them. `domain` is every value
    that the column can have, NULL included where it can be NULL; with `other` it is every value that the column has
    once it is gathered (`sql_rewrite.group_keys`), and a stored value may lie outside. `identifies` says that a value
    belongs to one privacy unit. `length_max` is the most characters of a stored text. `shown` is what people call a
    column whose name is ours. `calendar` says that its range is that of differences of dates without bounds.
    """

    relation: str
    name: str
    type: ColumnType
    nullable: bool = True
    interval: Interval | None = None
    declared: Interval | None = None
    domain: tuple[KeyValue, ...] | None = None
    other: Other | None = None
    is_unit: bool = False
    length_max: int | None = None
    identifies: bool = False
    shown: str | None = field(default=None, repr=False, compare=False)
    calendar: bool = field(default=False, repr=False, compare=False)

    def __hash__(self) -> int:
        # Columns stand in many sets; those of one name are rarely different ones.
        return hash((self.relation, self.name))

    def __post_init__(self) -> None:
        if self.type is ColumnType.INTEGER:
            assert self.interval is None or (self.interval.bounded and self.interval.inside(WIDE))
        elif self.type is not ColumnType.NUMBER:
            assert self.interval is None
            assert self.declared is None or self.type in (ColumnType.DATE, ColumnType.TIMESTAMP)


@by_slots
@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of the query, already parsed to a value of its type. NULL has a type too."""

    value: Value
    type: ColumnType

    def __post_init__(self) -> None:
        value = self.value
        if value is None:
            return
        match self.type:
            case ColumnType.INTEGER:
                assert isinstance(value, int)
                assert not isinstance(value, bool)
                assert abs(value) <= _WIDE, "integer literal is too large"
            case ColumnType.NUMBER:
                assert isinstance(value, float)
                assert math.isfinite(value)
            case ColumnType.TEXT:
                assert isinstance(value, str)
                assert len(value) <= TEXT_LITERAL_MAX
                value.encode("utf-8")  # a lone surrogate is not text: UnicodeEncodeError is a ValueError
            case ColumnType.BOOLEAN:
                assert isinstance(value, bool)
            case ColumnType.DATE:
                assert isinstance(value, datetime.date)
                assert not isinstance(value, datetime.datetime)
            case ColumnType.TIMESTAMP:
                assert isinstance(value, datetime.datetime)
                assert value.tzinfo is None
            case _:
                assert_never(self.type)

    @property
    def nullable(self) -> bool:
        """Whether the literal is NULL."""
        return self.value is None

    @property
    def interval(self) -> Interval | None:
        """The literal's own value; zero for a NULL number, which has no value to contain."""
        if self.type not in (ColumnType.INTEGER, ColumnType.NUMBER):
            return None
        if self.value is None:
            return Interval(Fraction(0), Fraction(0))
        assert isinstance(self.value, int | float)
        exact = Fraction(self.value)
        return Interval(exact, exact)

    # True == 1 == 1.0 in Python: without the type's own comparison two different literals would be equal. The
    # dataclass compares `type` too, which separates them; -0.0 and 0.0 stay equal, as they are in SQL.


@by_slots
@dataclass(frozen=True, slots=True)
class Call:
    """An operator of the allow-list applied to arguments. Constructed by `sql_rewrite.functions.build` only.

    `interval` bounds the non-NULL values for every value that the columns' types can hold. `finite` is False
    when the engine's plain result may be an infinity or NaN, which lowering then turns into NULL. `weight` is the
    number of operators in the lowered SQL without that guard, `depth` the height of the tree.
    """

    operator: str
    arguments: tuple[Expression, ...]
    type: ColumnType
    nullable: bool
    interval: Interval | None
    finite: bool = True
    weight: int = 1
    depth: int = 1
    form: Canonical | None = field(default=None, init=False, repr=False, compare=False)
    """What `canonical` says of it, once it was asked: plans are compared by it many times."""

    @property
    def is_cast(self) -> bool:
        """Whether it reads its argument as another type."""
        return self.operator == f"cast_{self.type.value}"


Expression = ColumnRef | Literal | Call


def interval_of(expression: Expression) -> Interval:
    """What is proved about the values of any expression: `ANY` for everything that is not a number."""
    if expression.interval is not None:
        return expression.interval
    return BIGINT if expression.type is ColumnType.INTEGER else ANY


def needs_wide(expression: Expression) -> bool:
    """Whether an INTEGER expression may leave 64 bits, so that its SQL has the type HUGEINT instead of BIGINT."""
    if expression.type is not ColumnType.INTEGER:
        return False
    if isinstance(expression, Literal):
        # Asked for every constant of every query: without making an interval of exact fractions.
        return isinstance(expression.value, int) and not -(2**63) <= expression.value < 2**63
    return expression.interval is not None and not expression.interval.inside(BIGINT)


def works_wide(call: Call) -> bool:
    """Whether the operator is computed on HUGEINT: where its result or one of its arguments is one."""
    return needs_wide(call) or any(map(needs_wide, call.arguments))


def walk(expression: Expression) -> list[Expression]:
    """The expression and everything below it, parents first, arguments in order."""
    if type(expression) is not Call:
        return [expression]
    # A list, and no generator: nearly every reader looks at all of it, and a step of a generator costs as a call does.
    found: list[Expression] = []
    stack: list[Expression] = [expression]
    while stack:
        node = stack.pop()
        found.append(node)
        if type(node) is Call:
            stack += node.arguments[::-1]
    return found


def columns_of(expression: Expression) -> tuple[ColumnRef, ...]:
    """The distinct columns that the expression reads, in order of first appearance."""
    if isinstance(expression, ColumnRef):
        return (expression,)
    # As `walk`, without a step of a generator for each node: asked of every expression several times.
    if type(expression) is not Call:
        return ()
    found: dict[ColumnRef, None] = {}
    stack: list[Expression] = [*expression.arguments[::-1]]
    while stack:
        node = stack.pop()
        if type(node) is ColumnRef:
            found[node] = None
        elif type(node) is Call:
            stack += node.arguments[::-1]
    return tuple(found)


# --- equal plans and text for people -----------------------------------------------------------------------------

Canonical = tuple["Canonical | str | None", ...]
"""A nested tuple of strings: hashable, ordered, and a list of lists in JSON."""

_COMMUTATIVE = frozenset({"=", "<>", "add", "multiply", "is_distinct_from", "is_not_distinct_from"})
_SETS = frozenset({"and", "or", "least", "greatest"})
_NEUTRAL: Mapping[str, Canonical] = {
    "and": ("literal", ColumnType.BOOLEAN.value, "true"),
    "or": ("literal", ColumnType.BOOLEAN.value, "false"),
}
_MIRRORED = {">": "<", ">=": "<="}


def canonical(expression: Expression) -> Canonical:
    """A form that is equal for expressions that are the same up to order and spelling; for plan keys.

    Sides of commutative operators are sorted, AND, OR, LEAST, GREATEST and IN lists lose repeats, AND loses TRUE, OR
    loses FALSE and NOT another NOT (all three are so for NULL too), `a > b` is `b < a`, names are folded. Constants
    keep their type. Expressions with equal forms have equal values.
    """
    if type(expression) is ColumnRef:
        return ("column", expression.relation.lower(), expression.name.lower(), expression.type.value)
    if type(expression) is Literal:
        return ("literal", expression.type.value, _constant_text(expression.value))
    assert type(expression) is Call
    known = expression.form
    if known is None:
        known = _canonical_call(expression)
        object.__setattr__(expression, "form", known)
    return known


def _canonical_call(expression: Call) -> Canonical:
    name = _MIRRORED.get(expression.operator, expression.operator)
    parts = [canonical(argument) for argument in expression.arguments]
    if name != expression.operator:
        parts.reverse()
    if name in _COMMUTATIVE:
        parts.sort(key=repr)
    elif name in _SETS:
        different = set(parts)
        if name in _NEUTRAL and all(argument.type is ColumnType.BOOLEAN for argument in expression.arguments):
            different = different - {_NEUTRAL[name]} or {_NEUTRAL[name]}
        parts = sorted(different, key=repr)
        if len(parts) == 1:
            return parts[0]
    elif name == "not" and isinstance(parts[0], tuple) and parts[0][0] == "not":
        # Of the form that was made already: looked at anew, each NOT would double the work.
        (_, _, inner) = parts[0]
        assert isinstance(inner, tuple)
        return inner
    elif name == "in":
        parts = [parts[0], *sorted(set(parts[1:]), key=repr)]
    return (name, expression.type.value, *parts)


def form_of(expression: Expression | None) -> Canonical | None:
    """The canonical form of an expression that may be left out."""
    return None if expression is None else canonical(expression)


def _constant_text(value: Value) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return value.hex()
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


_INFIX = {
    "and": "AND",
    "or": "OR",
    "=": "=",
    "<>": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "is_distinct_from": "IS DISTINCT FROM",
    "is_not_distinct_from": "IS NOT DISTINCT FROM",
    "add": "+",
    "add_days": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "integer_divide": "//",
    "modulo": "%",
    "concat": "||",
    "like": "LIKE",
    "not_like": "NOT LIKE",
    "ilike": "ILIKE",
    "not_ilike": "NOT ILIKE",
}
_NAMES = {"day_of_week": "DAYOFWEEK", "day_of_week_iso": "ISODOW", "day_of_year": "DAYOFYEAR", "iso_year": "ISOYEAR"}


def number_text(value: Fraction) -> str:
    """A bound as text for people."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.12g}"


def describe(expression: Expression) -> str:
    """The expression as text for the analyst who wrote it: close to SQL, constants included."""
    return _described(expression, outermost=True)


def _described(expression: Expression, *, outermost: bool = False) -> str:
    if isinstance(expression, ColumnRef):
        return expression.shown or expression.name
    if isinstance(expression, Literal):
        return _described_constant(expression.value)
    name, arguments = expression.operator, expression.arguments
    if name in ("as_number", "as_timestamp"):
        return _described(arguments[0], outermost=outermost)
    if name in ("date_trunc", "date_diff", "date_sub"):
        return f"{name}({', '.join(_described(argument, outermost=True) for argument in arguments)})"
    if name == "time_bucket":
        return f"time_bucket({_described_interval(arguments[:3])}, {_described(arguments[3], outermost=True)})"
    if name == "age_part":
        moments = ", ".join(_described(argument, outermost=True) for argument in arguments[1:])
        return f"date_part({_described(arguments[0])}, AGE({moments}))"
    text: str
    if name in _INFIX and name.endswith("like") and len(arguments) == 3:
        text = f"{_described(arguments[0])} {_INFIX[name]} {_described(arguments[1])} ESCAPE {_described(arguments[2])}"
    elif name in _INFIX:
        text = f" {_INFIX[name]} ".join(_described(argument) for argument in arguments)
    elif name == "add_interval":
        text = f"{_described(arguments[0])} + {_described_interval(arguments[1:])}"
    elif name == "not":
        text = f"NOT {_described(arguments[0])}"
    elif name == "negate":
        text = f"-{_described(arguments[0])}"
    elif name in ("is_null", "is_not_null"):
        text = f"{_described(arguments[0])} {'IS NULL' if name == 'is_null' else 'IS NOT NULL'}"
    elif name == "in":
        listed = ", ".join(_described(argument) for argument in arguments[1:])
        text = f"{_described(arguments[0])} IN ({listed})"
    elif name == "case":
        pairs = zip(arguments[:-1:2], arguments[1::2], strict=True)
        whens = " ".join(f"WHEN {_described(c, outermost=True)} THEN {_described(v, outermost=True)}" for c, v in pairs)
        return f"CASE {whens} ELSE {_described(arguments[-1], outermost=True)} END"
    elif expression.is_cast:
        return f"CAST({_described(arguments[0], outermost=True)} AS {expression.type.sql})"
    elif name in ("gather", "gather_range"):
        text = _described(arguments[0])
    elif name == "clip":
        value, lower, upper = (_described(argument, outermost=True) for argument in arguments)
        return f"clip({value}, {lower} to {upper})"
    else:
        shown = (arguments[2], arguments[1]) if name == "nullif" else arguments
        listed = ", ".join(_described(argument, outermost=True) for argument in shown)
        return f"{_NAMES.get(name, name.upper())}({listed})"
    return text if outermost else f"({text})"


def _described_interval(parts: Sequence[Expression]) -> str:
    numbers = [part.value for part in parts if isinstance(part, Literal)]
    named = [
        f"{number} {unit}" for number, unit in zip(numbers, ("months", "days", "microseconds"), strict=True) if number
    ]
    return f"INTERVAL '{' '.join(named) or '0 days'}'"


def _described_constant(value: Value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"'{value}'"
