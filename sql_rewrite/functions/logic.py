"""Truth values, comparisons, NULL tests, CASE and its relatives."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, Expression, Interval, Literal, needs_wide
from sql_rewrite.functions import ranges
from sql_rewrite.functions.harmony import harmonise, harmonised_sides
from sql_rewrite.functions.operator import (
    Lower,
    Lowerer,
    Operator,
    Resolved,
    TypeRefused,
    any_nullable,
    arity,
    expect,
    integer_operands,
    narrow,
    never,
)
from sql_rewrite.functions.reading import to_number
from sql_rewrite.scalars import (
    Case,
    Cast,
    Clip,
    Coalesce,
    Comparison,
    ComparisonSymbol,
    EngineType,
    Extreme,
    ExtremeName,
    IsNull,
    Junction,
    JunctionWord,
    Member,
    Not,
    Null,
    Scalar,
)

__all__ = ["OPERATORS"]

IN_LIST_MAX = 1_000

INTEGER, NUMBER, TEXT = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.TEXT
BOOLEAN, DATE, TIMESTAMP = ColumnType.BOOLEAN, ColumnType.DATE, ColumnType.TIMESTAMP


# --- three-valued logic ------------------------------------------------------------------------------------------


def _booleans(forms: str, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    return tuple(expect(forms, argument, BOOLEAN) for argument in arguments)


def _resolve_junction(name: str, forms: str) -> Callable[[tuple[Expression, ...]], Resolved]:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 1, 10_000)
        flat: list[Expression] = []
        for argument in _booleans(forms, arguments):
            if isinstance(argument, Call) and argument.operator == name:
                flat.extend(argument.arguments)  # AND and OR are associative; keeps long chains shallow
            else:
                flat.append(argument)
        return Resolved(tuple(flat), BOOLEAN)

    return resolve


def _and(call: Call, values: Sequence[Any]) -> Any:
    if any(value is False for value in values):
        return False
    return None if any(value is None for value in values) else True


def _or(call: Call, values: Sequence[Any]) -> Any:
    if any(value is True for value in values):
        return True
    return None if any(value is None for value in values) else False


def _junction(name: str, word: JunctionWord, meaning: str, reference: Callable[[Call, Sequence[Any]], Any]) -> Operator:
    return Operator(
        name=name,
        forms=f"a {word} b",
        signature="BOOLEAN, ... -> BOOLEAN",
        meaning=meaning,
        totality="Three-valued logic has a result for each of the nine pairs.",
        resolve=_resolve_junction(name, word),
        lower=lambda call, lowerer: Junction(word, tuple([lowerer.value(argument) for argument in call.arguments])),
        reference=reference,
        strict=False,
        section="Truth values",
    )


def _resolve_not(arguments: tuple[Expression, ...]) -> Resolved:
    arity("NOT", arguments, 1)
    return Resolved(_booleans("NOT", arguments), BOOLEAN)


# --- comparisons -------------------------------------------------------------------------------------------------


def _resolve_comparison(forms: str) -> Callable[[tuple[Expression, ...]], Resolved]:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 2)
        return Resolved(harmonise(forms, arguments)[0], BOOLEAN)

    return resolve


def _compared(symbol: ComparisonSymbol) -> Lower:
    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        (left, right), _ = harmonised_sides(call, call.arguments, lowerer)
        return Comparison(symbol, left, right)

    return lower


def _comparison(name: str, symbol: ComparisonSymbol, meaning: str, reference: Callable[[Any, Any], bool]) -> Operator:
    return Operator(
        name=name,
        forms=f"a {symbol} b",
        signature="two values of one kind -> BOOLEAN",
        meaning=meaning,
        totality="Comparing two values of one SQL type is defined for every pair and raises nothing.",
        resolve=_resolve_comparison(f"a {symbol} b"),
        lower=_compared(symbol),
        reference=lambda call, values: reference(values[0], values[1]),
        section="Comparison",
    )


def _distinction(name: str, symbol: ComparisonSymbol, meaning: str) -> Operator:
    forms = "IS DISTINCT FROM" if symbol == "distinct" else "IS NOT DISTINCT FROM"

    def reference(call: Call, values: Sequence[Any]) -> bool:
        first, second = values
        differ = (first is None) != (second is None) if first is None or second is None else bool(first != second)
        return differ is (symbol == "distinct")

    return Operator(
        name=name,
        forms=f"a {forms} b",
        signature="two values of one kind -> BOOLEAN",
        meaning=meaning,
        totality="Comparing two values of one SQL type, or NULL, is defined for every pair.",
        resolve=_resolve_comparison(forms),
        lower=_compared(symbol),
        reference=reference,
        nullable=never,
        strict=False,
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


def _in(call: Call, values: Sequence[Any]) -> Any:
    first, rest = values[0], values[1:]
    if first is None:
        return None
    if any(value is not None and value == first for value in rest):
        return True
    return None if any(value is None for value in rest) else False


def _in_lower(call: Call, lowerer: Lowerer) -> Scalar:
    (value, *listed), _ = harmonised_sides(call, call.arguments, lowerer)
    return Member(value, tuple(listed))


# --- CASE, COALESCE, NULLIF --------------------------------------------------------------------------------------


def _resolve_case(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "CASE WHEN c THEN x ELSE y END"
    arity(forms, arguments, 2, 2_000)
    if len(arguments) % 2 == 0:
        arguments = (*arguments, Literal(None, arguments[1].type))
    conditions = _booleans(forms, arguments[:-1:2])
    branches, kind = harmonise(forms, (*arguments[1::2], arguments[-1]))
    mixed = [part for pair in zip(conditions, branches[:-1], strict=True) for part in pair]
    return Resolved((*mixed, branches[-1]), kind)


def _branches(arguments: Sequence[Expression]) -> list[Expression]:
    return [*arguments[1::2], arguments[-1]]


def _hull_of(pairs: Sequence[tuple[Expression, Interval]]) -> Interval:
    # A NULL constant adds no value, so it must not widen the range to zero.
    live = [interval for argument, interval in pairs if not (isinstance(argument, Literal) and argument.value is None)]
    return ranges.hull(live) if live else ranges.ZERO


def _case_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    return _hull_of(list(zip(_branches(arguments), [*intervals[1::2], intervals[-1]], strict=True)))


def _case_nullable(arguments: Sequence[Expression]) -> bool:
    return any_nullable(_branches(arguments))


def _case(call: Call, values: Sequence[Any]) -> Any:
    for condition, value in zip(values[:-1:2], values[1::2], strict=True):
        if condition is True:
            return value
    return values[-1]


def _case_lower(call: Call, lowerer: Lowerer) -> Scalar:
    branches, wide = harmonised_sides(call, _branches(call.arguments), lowerer)
    conditions = [lowerer.value(condition) for condition in call.arguments[:-1:2]]
    pairs = tuple(zip(conditions, branches[:-1], strict=True))
    return narrow(Case(pairs, branches[-1]), call, wide=wide)


def _resolve_coalesce(arguments: tuple[Expression, ...]) -> Resolved:
    arity("COALESCE", arguments, 1, 100)
    converted, kind = harmonise("COALESCE", arguments)
    return Resolved(converted, kind)


def _coalesce_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    reached = []
    for argument, interval in zip(arguments, intervals, strict=True):
        reached.append((argument, interval))
        if not argument.nullable:
            break
    return _hull_of(reached)


def _coalesce_lower(call: Call, lowerer: Lowerer) -> Scalar:
    sides, wide = harmonised_sides(call, call.arguments, lowerer)
    return narrow(Coalesce(tuple(sides)), call, wide=wide)


def _resolve_nullif(arguments: tuple[Expression, ...]) -> Resolved:
    """NULLIF(a, b) keeps three arguments: compared value, b, and the value that is returned.

    They are the same until `clip_columns` clips the returned one only: a marker such as 99999 beyond the bounds
    must still be recognised.
    """
    arity("NULLIF", arguments, 2, 3)
    returned = arguments[2] if len(arguments) == 3 else arguments[0]
    (compared, marker), _ = harmonise("NULLIF", arguments[:2])
    if len(arguments) == 2 and isinstance(returned, Literal):
        returned = compared
    return Resolved((compared, marker, returned), returned.type)


def _nullif_lower(call: Call, lowerer: Lowerer) -> Scalar:
    compared, marker, returned = call.arguments
    # Two engine types may take part: the comparison's and the result's.
    if compared.type is INTEGER:
        (left, right), _ = integer_operands(lowerer, (compared, marker), wide=False)
    else:
        left, right = lowerer.value(compared), lowerer.value(marker)
    (value,), wide = harmonised_sides(call, (returned,), lowerer)
    return narrow(Case(((Comparison("=", left, right), Null()),), value), call, wide=wide)


# --- LEAST, GREATEST, clipping -----------------------------------------------------------------------------------


def _extreme(
    name: ExtremeName,
    meaning: str,
    reference: Callable[[Sequence[Any]], Any],
    interval: Callable[[Sequence[Interval]], Interval],
) -> Operator:
    word = name.upper()

    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(word, arguments, 1, 100)
        converted, kind = harmonise(word, arguments)
        return Resolved(converted, kind)

    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        sides, wide = harmonised_sides(call, call.arguments, lowerer)
        nullable = tuple([argument.nullable for argument in call.arguments])
        return narrow(Extreme(name, tuple(sides), nullable), call, wide=wide)

    return Operator(
        name=name,
        forms=f"{word}(a, b, ...)",
        signature="values of one kind -> that kind",
        meaning=f"{meaning}; NULL when any argument is NULL (DuckDB skips NULL, see below).",
        totality="Comparing values of one SQL type is defined for every pair.",
        resolve=resolve,
        lower=lower,
        reference=lambda call, values: reference(values),
        range=lambda arguments, intervals: interval(intervals),
        copies=(2,),
        section="Arithmetic",
    )


def _resolve_clip(arguments: tuple[Expression, ...]) -> Resolved:
    arity("clip", arguments, 3)
    value, lower, upper = arguments
    expect("clip", value, INTEGER, NUMBER, DATE, TIMESTAMP)
    for bound in (lower, upper):
        assert isinstance(bound, Literal)
        assert bound.value is not None
        assert bound.type is value.type
    return Resolved(arguments, value.type)


def _clip_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    value, lower, upper = intervals
    return ranges.largest((lower, ranges.smallest((value, upper))))


def _clip_lower(call: Call, lowerer: Lowerer) -> Scalar:
    (value, low, high), wide = harmonised_sides(call, call.arguments, lowerer)
    return narrow(Clip(value, low, high), call, wide=wide)


# --- conversions that SQL makes by itself ------------------------------------------------------------------------


def _resolve_as(kind: ColumnType, source: ColumnType) -> Callable[[tuple[Expression, ...]], Resolved]:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity("conversion", arguments, 1)
        expect("conversion", arguments[0], source)
        return Resolved(arguments, kind)

    return resolve


def _as_number_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    return ranges.converted(intervals[0], wide=needs_wide(arguments[0]))


def _midnight(call: Call, values: Sequence[Any]) -> datetime.datetime:
    value = values[0]
    return datetime.datetime(value.year, value.month, value.day)


OPERATORS: tuple[Operator, ...] = (
    _junction("and", "AND", "False when one side is false, else NULL when one side is NULL, else true.", _and),
    _junction("or", "OR", "True when one side is true, else NULL when one side is NULL, else false.", _or),
    Operator(
        name="not",
        forms="NOT a",
        signature="BOOLEAN -> BOOLEAN",
        meaning="The opposite; NULL for NULL.",
        totality="Three-valued logic has a result for true, false and NULL.",
        resolve=_resolve_not,
        lower=lambda call, lowerer: Not(lowerer.value(call.arguments[0])),
        reference=lambda call, values: not values[0],
        section="Truth values",
    ),
    _comparison("=", "=", "Whether both are equal; NULL when one is NULL.", lambda a, b: bool(a == b)),
    _comparison("<>", "<>", "Whether both differ; NULL when one is NULL.", lambda a, b: bool(a != b)),
    _comparison("<", "<", "Whether a sorts before b; text by code point.", lambda a, b: bool(a < b)),
    _comparison("<=", "<=", "Whether a sorts before b or is equal.", lambda a, b: bool(a <= b)),
    _comparison(">", ">", "Whether a sorts after b.", lambda a, b: bool(a > b)),
    _comparison(">=", ">=", "Whether a sorts after b or is equal.", lambda a, b: bool(a >= b)),
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
        section="Comparison",
    ),
    Operator(
        name="case",
        forms="CASE WHEN c THEN x ELSE y END",
        signature="BOOLEAN, value, ..., value -> the values' kind",
        meaning="The value of the first true condition, else the ELSE value, NULL without ELSE.",
        totality="All branches are total, so it does not matter which of them the engine evaluates.",
        resolve=_resolve_case,
        lower=_case_lower,
        reference=_case,
        range=_case_range,
        nullable=_case_nullable,
        strict=False,
        section="NULL",
    ),
    Operator(
        name="coalesce",
        forms="COALESCE(a, b, ...)",
        signature="values of one kind -> that kind",
        meaning="The first value that is not NULL.",
        totality="All arguments are total and of one SQL type.",
        resolve=_resolve_coalesce,
        lower=_coalesce_lower,
        reference=lambda call, values: next((value for value in values if value is not None), None),
        range=_coalesce_range,
        nullable=lambda arguments: all(argument.nullable for argument in arguments),
        strict=False,
        section="NULL",
    ),
    Operator(
        name="nullif",
        forms="NULLIF(a, b)",
        signature="two values of one kind -> the kind of a",
        meaning="NULL when both are equal, else a. The comparison sees the stored value of a, not the clipped one.",
        totality="It is a CASE over a comparison of one SQL type.",
        resolve=_resolve_nullif,
        lower=_nullif_lower,
        reference=lambda call, values: (
            None if values[0] is not None and values[1] is not None and values[0] == values[1] else values[2]
        ),
        range=lambda arguments, intervals: intervals[2],
        nullable=lambda arguments: True,
        strict=False,
        section="NULL",
    ),
    _extreme("least", "The smallest argument", min, ranges.smallest),
    _extreme("greatest", "The largest argument", max, ranges.largest),
    Operator(
        name="clip",
        forms="(made by the server from declared value bounds)",
        signature="number, date or timestamp, constant, constant -> that type",
        meaning="The value moved to the nearest bound when it lies outside; NULL stays NULL.",
        totality="It is a CASE over comparisons of one SQL type; NULL fails both tests and stays NULL.",
        resolve=_resolve_clip,
        lower=_clip_lower,
        reference=lambda call, values: min(max(values[0], values[1]), values[2]),
        range=_clip_range,
        copies=(3, 1),
        section="Arithmetic",
    ),
    Operator(
        name="as_number",
        forms="(an INTEGER beside a NUMBER)",
        signature="INTEGER -> NUMBER",
        meaning="The nearest double; made by the server where SQL converts by itself.",
        totality="Every integer within 2^126 has finite doubles beside it.",
        resolve=_resolve_as(NUMBER, INTEGER),
        lower=lambda call, lowerer: Cast(lowerer.value(call.arguments[0]), EngineType.NUMBER),
        reference=lambda call, values: to_number(values[0], call.arguments[0]),
        range=_as_number_range,
        section="Conversion",
    ),
    Operator(
        name="as_timestamp",
        forms="(a DATE beside a TIMESTAMP)",
        signature="DATE -> TIMESTAMP",
        meaning="Midnight of the day; made by the server where SQL converts by itself.",
        totality="Every date of the years 1 to 9999 has a midnight within the range of timestamps.",
        resolve=_resolve_as(TIMESTAMP, DATE),
        lower=lambda call, lowerer: Cast(lowerer.value(call.arguments[0]), EngineType.TIMESTAMP),
        reference=_midnight,
        section="Conversion",
    ),
)
"""Entries of the allow-list."""
