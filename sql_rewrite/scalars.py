"""What an engine is asked to compute for one row or one group: a tree of typed nodes, which a dialect writes as text.

The operators of `sql_rewrite/functions` and the statements of `lower` and `lower_units` make these nodes; none of them
knows how an engine spells anything. A node says what its value is, for every value of its parts, and that nothing may
raise; how that is reached in an engine (which function skips NULL, which cast raises, which division) is for its
dialect (sql_rewrite/dialects), and a dialect that forgets a kind of node cannot be made.

Integers are exact and of 64 bits, or of 128 bits where the type is WIDE; range analysis has proved that they fit.
Numbers are IEEE doubles: arithmetic beyond the largest double gives an infinity, and what is not finite becomes NULL at
the next `Finite` above. NULL in any part gives NULL, where a node does not say otherwise.

`closed` nodes bring their own parentheses or need none. The others are written without, and whoever writes a node above
them adds parentheses where its own operator binds tighter.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal, TypeVar, dataclass_transform

from privacy.policy import ColumnType
from sql_rewrite.expressions import Expression, needs_wide

__all__ = [
    "Arithmetic",
    "ArithmeticSymbol",
    "Case",
    "Cast",
    "Clip",
    "Coalesce",
    "Column",
    "Comparison",
    "ComparisonSymbol",
    "Concatenation",
    "Decoded",
    "DivisionSymbol",
    "EngineType",
    "Extreme",
    "ExtremeName",
    "Finite",
    "Function",
    "Gather",
    "Guarded",
    "GuardedName",
    "Held",
    "Holds",
    "IsNull",
    "Junction",
    "JunctionWord",
    "KeyPlace",
    "Like",
    "Member",
    "Named",
    "Negate",
    "Node",
    "Not",
    "Null",
    "Parameter",
    "Power",
    "PowerDomain",
    "ReadText",
    "RegularExpression",
    "RegularUse",
    "RoundDigits",
    "RoundUnits",
    "Scalar",
    "SplitPart",
    "TotalDivision",
    "Whole",
    "engine_type",
    "node",
]


class EngineType(enum.Enum):
    """The types that an engine must have: those of columns, and integers of 128 bits."""

    INTEGER = "integer"
    WIDE = "wide"
    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"


_ENGINE_TYPES = {kind: EngineType(kind.value) for kind in ColumnType}


def engine_type(expression: Expression) -> EngineType:
    """The type that the expression has in an engine."""
    return EngineType.WIDE if needs_wide(expression) else _ENGINE_TYPES[expression.type]


ComparisonSymbol = Literal["=", "<>", "<", "<=", ">", ">=", "distinct", "not distinct"]
"""How two values of one type compare, text by code point. The last two are never NULL, and NULL equals NULL."""

JunctionWord = Literal["AND", "OR"]

ExtremeName = Literal["least", "greatest"]

ArithmeticSymbol = Literal["+", "-", "*", "//"]

DivisionSymbol = Literal["/", "//", "%"]

GuardedName = Literal["sqrt", "ln", "log10", "log2", "asin", "acos"]
"""Functions of a number that are defined on a half-line, or from -1 to 1."""


RegularUse = Literal["search", "full", "extract", "replace"]


class PowerDomain(enum.Enum):
    """For which bases a power is a real number, with the exponent that it has."""

    EVERYWHERE = "everywhere"
    NOT_ZERO = "not zero"
    POSITIVE = "positive"
    NOT_NEGATIVE = "not negative"
    BY_EXPONENT = "depends on the exponent"


Kind = TypeVar("Kind")


@dataclass_transform(eq_default=False, frozen_default=True)
def node(kind: type[Kind]) -> type[Kind]:
    """Makes a class a part of trees: a dataclass that nothing may change, which the type checker sees to.

    At run time it is not frozen. A statement has hundreds of nodes, and frozen ones take three times as long to make:
    2 % of the planning of a query.
    """
    return dataclass(slots=True, eq=False)(kind)


class Node:
    """A part of a tree: a value, or a layer of rows."""

    __slots__ = ()
    closed = True


class Scalar(Node):
    """A value of one row or one group."""

    __slots__ = ()


# --- what is there ---------------------------------------------------------------------------------------------------


@node
class Column(Scalar):
    """A column of a relation in scope, as it is stored."""

    relation: str
    name: str


@node
class Decoded(Scalar):
    """The text of a column that the snapshot stores as one of its declared keys, which sort otherwise than text."""

    value: Scalar


@node
class KeyPlace(Scalar):
    """The place, from 0, of a column that the snapshot stores as one of its declared keys; NULL for NULL."""

    value: Scalar


@node
class Named(Scalar):
    """A column that the layer below has given a name of ours."""

    name: str


@node
class Whole(Scalar):
    """An integer that the statement itself holds: a bound or a factor, of 64 bits unless it is cast."""

    value: int


@node
class Parameter(Scalar):
    """A constant of the query as a bound parameter, numbered from 1."""

    number: int
    type: EngineType


@node
class Null(Scalar):
    """NULL, of a type unless its place gives it one."""

    type: EngineType | None = None


# --- conversions -----------------------------------------------------------------------------------------------------


@node
class Cast(Scalar):
    """The value as another type. `safe` gives NULL for a value that the type does not hold; without it none is there.

    From numbers to integers halves go to even. From integers to numbers the nearest double, from WIDE one nearby.
    """

    value: Scalar
    type: EngineType
    safe: bool = False


@node
class ReadText(Scalar):
    """A text, spaces at its ends apart, read as the type; NULL unless the pattern fits all of it and it is a value.

    The pattern is regular, linear in time and without captures. `characters_max` is for patterns that fit longer texts.
    """

    value: Scalar
    type: EngineType
    pattern: str
    characters_max: int | None


@node
class Finite(Scalar):
    """The number, NULL where it is an infinity or NaN."""

    value: Scalar


# --- truth -----------------------------------------------------------------------------------------------------------


@node
class Holds(Scalar):
    """Whether a condition is true; false where it is NULL."""

    value: Scalar


@node
class IsNull(Scalar):
    """Whether the value is NULL, or is not."""

    value: Scalar
    negated: bool = False
    closed: bool = True


@node
class Not(Scalar):
    """The opposite truth value."""

    value: Scalar


@node
class Junction(Scalar):
    """AND or OR of several conditions, in three-valued logic."""

    word: JunctionWord
    parts: tuple[Scalar, ...]
    closed: bool = True


@node
class Comparison(Scalar):
    """Two values of one type compared."""

    symbol: ComparisonSymbol
    left: Scalar
    right: Scalar
    closed: bool = True


@node
class Member(Scalar):
    """Whether the value is one of a list; NULL when it is not and the list holds NULL."""

    value: Scalar
    listed: tuple[Scalar, ...]


# --- choices ---------------------------------------------------------------------------------------------------------


@node
class Case(Scalar):
    """The value of the first condition that is true, else `otherwise` (NULL without one). All parts are total."""

    pairs: tuple[tuple[Scalar, Scalar], ...]
    otherwise: Scalar | None = None
    closed: bool = True


@node
class Coalesce(Scalar):
    """The first value that is not NULL."""

    parts: tuple[Scalar, ...]


@node
class Extreme(Scalar):
    """The least or the greatest value. NULL as soon as one part is NULL, which `nullable` says of each part."""

    which: ExtremeName
    parts: tuple[Scalar, ...]
    nullable: tuple[bool, ...]


@node
class Clip(Scalar):
    """The value moved to the nearest bound when it lies outside."""

    value: Scalar
    lower: Scalar
    upper: Scalar
    closed: bool = True


@node
class Held(Scalar):
    """An integer moved to the nearest end of [-below, above] when it lies outside; neither end is negative."""

    value: Scalar
    below: Scalar
    above: Scalar
    closed: bool = True


@node
class Gather(Scalar):
    """The value where it is NULL or one of the keys, else `other`. With `between`, the keys are the ends of a range."""

    value: Scalar
    other: Scalar
    keys: tuple[Scalar, ...]
    between: bool
    nullable: bool


# --- arithmetic ------------------------------------------------------------------------------------------------------


@node
class Arithmetic(Scalar):
    """A sum, a difference, a product, or a quotient rounded towards zero by a divisor that is positive.

    `type` is that of the result: exact for INTEGER and WIDE, which also hold every operand; rounded once for NUMBER.
    """

    symbol: ArithmeticSymbol
    left: Scalar
    right: Scalar
    type: EngineType
    closed: bool = True


@node
class TotalDivision(Scalar):
    """A quotient or a remainder, NULL where the divisor is zero (which can be where `zero` says so).

    / is of numbers. // cuts the fraction off towards zero, and % has the sign of the dividend; `type` is that of both
    operands: INTEGER, WIDE or, for %, NUMBER. The type holds the result.
    """

    symbol: DivisionSymbol
    left: Scalar
    right: Scalar
    type: EngineType
    zero: bool


@node
class Negate(Scalar):
    """The number with the other sign."""

    value: Scalar


@node
class RoundDigits(Scalar):
    """A number rounded to that many decimals, halves away from zero; an infinity and NaN stay what they are."""

    value: Scalar
    digits: int


@node
class RoundUnits(Scalar):
    """A WIDE integer rounded to the nearest multiple of an even unit, halves away from zero."""

    value: Scalar
    unit: int


@node
class Guarded(Scalar):
    """A root, logarithm or angle of a finite number, NULL where it is not defined (`guarded` says that this can be)."""

    function: GuardedName
    value: Scalar
    guarded: bool


@node
class Power(Scalar):
    """A power of two finite numbers, NULL where it is not a real number, an infinity or NULL where it is too large."""

    base: Scalar
    exponent: Scalar
    domain: PowerDomain


@node
class Function(Scalar):
    """A function that is defined for every value, with the meaning that docs/functions.md gives the operator.

    The name is that of the operator; a dialect knows those that its engine calls otherwise. `cast` is the type of the
    result where engines give it another one.
    """

    name: str
    arguments: tuple[Scalar, ...]
    cast: EngineType | None = None


# --- text ------------------------------------------------------------------------------------------------------------


@node
class Like(Scalar):
    """Whether a text fits a pattern, both turned to lower case first with `fold`."""

    value: Scalar
    pattern: Scalar
    escape: Scalar | None
    fold: bool
    negated: bool


@node
class Concatenation(Scalar):
    """Texts one after another."""

    parts: tuple[Scalar, ...]


@node
class SplitPart(Scalar):
    """The part of a text between separators, counted from 1, or from -1 for the last one; empty where there is none.

    The separator is not empty, and one character where parts are counted from the end.
    """

    value: Scalar
    separator: str
    place: int


@node
class RegularExpression(Scalar):
    """A regular expression of RE2's syntax in a text: whether it fits a part or all of it, what fits, or that replaced.

    `extract` is the group, or all for 0, of the first part that fits, empty where there is none. `replacement` has no
    backslash, and takes the place of the first part, or of each with `every`.
    """

    use: RegularUse
    value: Scalar
    pattern: str
    group: int
    replacement: Scalar | None
    every: bool
