"""Comparisons of two values, with a list, and with NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, Expression, Literal, Value
from sql_rewrite.functions.harmony import harmonise, harmonised_sides, of_one_kind
from sql_rewrite.functions.operator import Lower, Lowerer, Operator, Resolved, TypeRefused, any_nullable, arity, never
from sql_rewrite.functions.values import order
from sql_rewrite.scalars import Comparison, ComparisonSymbol, IsNull, Member, Scalar

__all__ = ["OPERATORS"]

IN_LIST_MAX = 1_000

BOOLEAN = ColumnType.BOOLEAN


def _compared(symbol: ComparisonSymbol) -> Lower:
    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        (left, right), _ = harmonised_sides(call, call.arguments, lowerer)
        return Comparison(symbol, left, right)

    return lower


def _comparison(symbol: ComparisonSymbol, meaning: str, holds: Callable[[int], bool]) -> Operator:
    """A comparison that holds for some ways in which two values are ordered (see `order`)."""
    return Operator(
        name=symbol,
        forms=f"a {symbol} b",
        signature="two values of one kind -> BOOLEAN",
        meaning=meaning,
        totality="Comparing two values of one SQL type is defined for every pair and raises nothing.",
        resolve=of_one_kind(f"a {symbol} b", 2, to=BOOLEAN),
        lower=_compared(symbol),
        reference=lambda call, values: holds(order(values[0], values[1])),
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Comparison",
    )


def _distinction(name: str, symbol: ComparisonSymbol, meaning: str) -> Operator:
    forms = "IS DISTINCT FROM" if symbol == "distinct" else "IS NOT DISTINCT FROM"

    def reference(call: Call, values: Sequence[Value]) -> bool:
        first, second = values
        differ = first is not second if first is None or second is None else order(first, second) != 0
        return differ is (symbol == "distinct")

    return Operator(
        name=name,
        forms=f"a {forms} b",
        signature="two values of one kind -> BOOLEAN",
        meaning=meaning,
        totality="Comparing two values of one SQL type, or NULL, is defined for every pair.",
        resolve=of_one_kind(forms, 2, to=BOOLEAN),
        lower=_compared(symbol),
        reference=reference,
        nullable=never,
        strict=False,
        exact=True,
        section="NULL",
    )


def _null_test(name: str, forms: str, meaning: str, *, present: bool) -> Operator:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 1)
        return Resolved(arguments, BOOLEAN)

    return Operator(
        name=name,
        forms=f"a {forms}",
        signature="any -> BOOLEAN",
        meaning=meaning,
        totality="A test for NULL reads no value.",
        resolve=resolve,
        lower=lambda call, lowerer: IsNull(lowerer.value(call.arguments[0]), negated=present),
        reference=lambda call, values: (values[0] is not None) is present,
        nullable=never,
        strict=False,
        exact=True,
        section="NULL",
    )


def _resolve_in(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "x IN (...)"
    if len(arguments) > IN_LIST_MAX + 1:
        raise TypeRefused("too_large", "an IN list is refused", f"It has more than {IN_LIST_MAX:,} values.")
    arity(forms, arguments, 2, IN_LIST_MAX + 1)
    if not all(isinstance(argument, Literal) for argument in arguments[1:]):
        raise TypeRefused(
            "unsupported_function",
            "an IN list is refused",
            "Its values must be constants.",
            ("x = a OR x = b",),
        )
    return Resolved(harmonise(forms, arguments)[0], BOOLEAN)


def _in(call: Call, values: Sequence[Value]) -> Value:
    first, listed = values[0], values[1:]
    if first is None:
        return None
    if any(value is not None and value == first for value in listed):
        return True
    return None if any(value is None for value in listed) else False


def _in_lower(call: Call, lowerer: Lowerer) -> Scalar:
    (value, *listed), _ = harmonised_sides(call, call.arguments, lowerer)
    return Member(value, tuple(listed))


OPERATORS: tuple[Operator, ...] = (
    _comparison("=", "Whether both are equal; NULL when one is NULL.", lambda ordered: ordered == 0),
    _comparison("<>", "Whether both differ; NULL when one is NULL.", lambda ordered: ordered != 0),
    _comparison("<", "Whether a sorts before b; text by code point.", lambda ordered: ordered < 0),
    _comparison("<=", "Whether a sorts before b or is equal.", lambda ordered: ordered <= 0),
    _comparison(">", "Whether a sorts after b.", lambda ordered: ordered > 0),
    _comparison(">=", "Whether a sorts after b or is equal.", lambda ordered: ordered >= 0),
    _null_test("is_null", "IS NULL", "Whether the value is missing; never NULL.", present=False),
    _null_test("is_not_null", "IS NOT NULL", "Whether the value is present; never NULL.", present=True),
    _distinction("is_distinct_from", "distinct", "Whether both differ, where NULL equals NULL; never NULL."),
    _distinction("is_not_distinct_from", "not distinct", "Whether both are equal, where NULL equals NULL; never NULL."),
    Operator(
        name="in",
        forms="a IN (1, 2, 3)",
        signature="a value and up to 1,000 constants of its kind -> BOOLEAN",
        meaning="Whether the value is in the list; NULL when it is not and the list holds NULL, or when it is NULL.",
        totality="It is a chain of comparisons with constants.",
        resolve=_resolve_in,
        lower=_in_lower,
        reference=_in,
        strict=False,
        chained=True,
        nullable=any_nullable,
        exact=True,
        section="Comparison",
    ),
)
"""Entries of the allow-list."""
