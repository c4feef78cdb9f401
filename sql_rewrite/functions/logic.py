"""Truth values, comparisons, NULL tests, CASE and its relatives."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, Expression, Interval, Literal, interval_of, needs_wide
from sql_rewrite.functions import ranges
from sql_rewrite.functions.operator import (
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
    refuse_types,
)
from sql_rewrite.functions.reading import read_text, to_number

__all__ = ["OPERATORS", "as_literal", "harmonise", "harmonised_sql"]

IN_LIST_MAX = 1_000

INTEGER, NUMBER, TEXT = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.TEXT
BOOLEAN, DATE, TIMESTAMP = ColumnType.BOOLEAN, ColumnType.DATE, ColumnType.TIMESTAMP


# --- one type for several arguments ------------------------------------------------------------------------------


def as_literal(literal: Literal, kind: ColumnType) -> Literal | None:
    """The constant as one of another type of its family, or a text constant as a date; None when it is not one."""
    value = literal.value
    if value is None or literal.type is kind:
        return Literal(value, kind)
    if kind is NUMBER and isinstance(value, int) and literal.type is INTEGER:
        return Literal(float(value), NUMBER)
    if kind is TIMESTAMP and literal.type is DATE and isinstance(value, datetime.date):
        return Literal(datetime.datetime(value.year, value.month, value.day), TIMESTAMP)
    if literal.type is TEXT and isinstance(value, str) and kind in (DATE, TIMESTAMP):
        moment = read_text(value, kind)
        return None if moment is None else Literal(moment, kind)
    return None


def _convert(argument: Expression, kind: ColumnType) -> Expression | None:
    """The argument as `kind` by an implicit conversion that SQL makes too, or None."""
    if argument.type is kind:
        return argument
    if isinstance(argument, Literal):
        return as_literal(argument, kind)
    if kind is NUMBER and argument.type is INTEGER:
        return Call(
            "as_number",
            (argument,),
            NUMBER,
            argument.nullable,
            ranges.converted(interval_of(argument), wide=needs_wide(argument)),
            weight=_weight(argument) + 1,
            depth=_depth(argument) + 1,
        )
    if kind is TIMESTAMP and argument.type is DATE:
        return Call(
            "as_timestamp",
            (argument,),
            TIMESTAMP,
            argument.nullable,
            None,
            weight=_weight(argument) + 1,
            depth=_depth(argument) + 1,
        )
    return None


def _weight(expression: Expression) -> int:
    return expression.weight if isinstance(expression, Call) else 1


def _depth(expression: Expression) -> int:
    return expression.depth if isinstance(expression, Call) else 1


def harmonise(forms: str, arguments: Sequence[Expression]) -> tuple[tuple[Expression, ...], ColumnType]:
    """The arguments in one common type.

    INTEGER beside NUMBER becomes NUMBER, DATE beside TIMESTAMP becomes TIMESTAMP, a text constant beside dates
    becomes a date, a NULL constant becomes anything. Errors: TypeRefused for every other mixture.
    """
    typed = [a.type for a in arguments if not (isinstance(a, Literal) and a.value is None)]
    kinds = set(typed)
    constants = {a.type for a in arguments if not isinstance(a, Literal)}
    if kinds & {DATE, TIMESTAMP} and TEXT in kinds and TEXT not in constants:
        kinds.discard(TEXT)
    if not kinds:
        kind = arguments[0].type
    elif len(kinds) == 1:
        kind = next(iter(kinds))
    elif kinds == {INTEGER, NUMBER}:
        kind = NUMBER
    elif kinds == {DATE, TIMESTAMP}:
        kind = TIMESTAMP
    else:
        raise refuse_types(forms, arguments, "values of one kind", "CAST one side to the type of the other")
    converted = [_convert(argument, kind) for argument in arguments]
    if any(argument is None for argument in converted):
        raise TypeRefused(
            "unsupported_type",
            f'"{forms}" is refused for a text constant that is not a {kind.value}',
            "Dates and timestamps are written as '2024-02-29' and '2024-02-29 12:00:00'.",
        )
    return tuple(argument for argument in converted if argument is not None), kind


def harmonised_sql(call: Call, arguments: Sequence[Expression], lowerer: Lowerer) -> tuple[list[str], bool]:
    """Arguments of one language type in one SQL type (INTEGER may be BIGINT or HUGEINT). Says whether it is wide."""
    if arguments and arguments[0].type is INTEGER:
        return integer_operands(lowerer, arguments, wide=needs_wide(call))
    return [lowerer.sql(argument) for argument in arguments], False


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


def _junction_lower(word: str) -> Callable[[Call, Lowerer], str]:
    def lower(call: Call, lowerer: Lowerer) -> str:
        return "(" + f" {word} ".join(lowerer.sql(argument) for argument in call.arguments) + ")"

    return lower


def _resolve_not(arguments: tuple[Expression, ...]) -> Resolved:
    arity("NOT", arguments, 1)
    return Resolved(_booleans("NOT", arguments), BOOLEAN)


# --- comparisons -------------------------------------------------------------------------------------------------


def _resolve_comparison(forms: str) -> Callable[[tuple[Expression, ...]], Resolved]:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 2)
        return Resolved(harmonise(forms, arguments)[0], BOOLEAN)

    return resolve


def _infix(symbol: str) -> Callable[[Call, Lowerer], str]:
    def lower(call: Call, lowerer: Lowerer) -> str:
        sides, _ = harmonised_sql(call, call.arguments, lowerer)
        return f"({sides[0]} {symbol} {sides[1]})"

    return lower


def _comparison(name: str, symbol: str, meaning: str, reference: Callable[[Any, Any], bool]) -> Operator:
    return Operator(
        name=name,
        forms=f"a {symbol} b",
        signature="two values of one kind -> BOOLEAN",
        meaning=meaning,
        totality="Comparing two values of one SQL type is defined for every pair and raises nothing.",
        resolve=_resolve_comparison(f"a {symbol} b"),
        lower=_infix(symbol),
        reference=lambda call, values: reference(values[0], values[1]),
        section="Comparison",
    )


def _distinct(call: Call, values: Sequence[Any]) -> bool:
    first, second = values
    if first is None or second is None:
        return (first is None) != (second is None)
    return bool(first != second)


def _resolve_is_null(forms: str) -> Callable[[tuple[Expression, ...]], Resolved]:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 1)
        return Resolved(arguments, BOOLEAN)

    return resolve


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


def _in_lower(call: Call, lowerer: Lowerer) -> str:
    sides, _ = harmonised_sql(call, call.arguments, lowerer)
    return f"({sides[0]} IN ({', '.join(sides[1:])}))"


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


def _case_lower(call: Call, lowerer: Lowerer) -> str:
    branches, wide = harmonised_sql(call, _branches(call.arguments), lowerer)
    conditions = [lowerer.sql(condition) for condition in call.arguments[:-1:2]]
    pairs = " ".join(f"WHEN {c} THEN {b}" for c, b in zip(conditions, branches[:-1], strict=True))
    return narrow(f"(CASE {pairs} ELSE {branches[-1]} END)", call, wide=wide)


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


def _coalesce_lower(call: Call, lowerer: Lowerer) -> str:
    sides, wide = harmonised_sql(call, call.arguments, lowerer)
    return narrow(f"COALESCE({', '.join(sides)})", call, wide=wide)


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


def _nullif_lower(call: Call, lowerer: Lowerer) -> str:
    compared, marker, returned = call.arguments
    # Two SQL types may take part: the comparison's and the result's.
    if compared.type is INTEGER:
        (left, right), _ = integer_operands(lowerer, (compared, marker), wide=False)
    else:
        left, right = lowerer.sql(compared), lowerer.sql(marker)
    value, wide = harmonised_sql(call, (returned,), lowerer)
    return narrow(f"(CASE WHEN ({left} = {right}) THEN NULL ELSE {value[0]} END)", call, wide=wide)


# --- LEAST, GREATEST, clipping -----------------------------------------------------------------------------------


def _resolve_extreme(forms: str) -> Callable[[tuple[Expression, ...]], Resolved]:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 1, 100)
        converted, kind = harmonise(forms, arguments)
        return Resolved(converted, kind)

    return resolve


def _extreme_lower(word: str) -> Callable[[Call, Lowerer], str]:
    def lower(call: Call, lowerer: Lowerer) -> str:
        sides, wide = harmonised_sql(call, call.arguments, lowerer)
        value = f"{word}({', '.join(sides)})"
        tests = [f"({side} IS NULL)" for side, argument in zip(sides, call.arguments, strict=True) if argument.nullable]
        if tests:
            # The engine's own function skips NULL: a missing value would silently become the bound.
            value = f"(CASE WHEN {' OR '.join(tests)} THEN NULL ELSE {value} END)"
        return narrow(value, call, wide=wide)

    return lower


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


def _clip_lower(call: Call, lowerer: Lowerer) -> str:
    (value, low, high), wide = harmonised_sql(call, call.arguments, lowerer)
    return narrow(
        f"(CASE WHEN ({value} < {low}) THEN {low} WHEN ({value} > {high}) THEN {high} ELSE {value} END)",
        call,
        wide=wide,
    )


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
    Operator(
        name="and",
        forms="a AND b",
        signature="BOOLEAN, ... -> BOOLEAN",
        meaning="False when one side is false, else NULL when one side is NULL, else true.",
        totality="Three-valued logic has a result for each of the nine pairs.",
        resolve=_resolve_junction("and", "AND"),
        lower=_junction_lower("AND"),
        reference=_and,
        strict=False,
        section="Truth values",
    ),
    Operator(
        name="or",
        forms="a OR b",
        signature="BOOLEAN, ... -> BOOLEAN",
        meaning="True when one side is true, else NULL when one side is NULL, else false.",
        totality="Three-valued logic has a result for each of the nine pairs.",
        resolve=_resolve_junction("or", "OR"),
        lower=_junction_lower("OR"),
        reference=_or,
        strict=False,
        section="Truth values",
    ),
    Operator(
        name="not",
        forms="NOT a",
        signature="BOOLEAN -> BOOLEAN",
        meaning="The opposite; NULL for NULL.",
        totality="Three-valued logic has a result for true, false and NULL.",
        resolve=_resolve_not,
        lower=lambda call, lowerer: f"(NOT {lowerer.sql(call.arguments[0])})",
        reference=lambda call, values: not values[0],
        section="Truth values",
    ),
    _comparison("=", "=", "Whether both are equal; NULL when one is NULL.", lambda a, b: bool(a == b)),
    _comparison("<>", "<>", "Whether both differ; NULL when one is NULL.", lambda a, b: bool(a != b)),
    _comparison("<", "<", "Whether a sorts before b; text by code point.", lambda a, b: bool(a < b)),
    _comparison("<=", "<=", "Whether a sorts before b or is equal.", lambda a, b: bool(a <= b)),
    _comparison(">", ">", "Whether a sorts after b.", lambda a, b: bool(a > b)),
    _comparison(">=", ">=", "Whether a sorts after b or is equal.", lambda a, b: bool(a >= b)),
    Operator(
        name="is_null",
        forms="a IS NULL",
        signature="any -> BOOLEAN",
        meaning="Whether the value is missing; never NULL.",
        totality="A test for NULL reads no value.",
        resolve=_resolve_is_null("IS NULL"),
        lower=lambda call, lowerer: f"({lowerer.sql(call.arguments[0])} IS NULL)",
        reference=lambda call, values: values[0] is None,
        nullable=never,
        strict=False,
        section="NULL",
    ),
    Operator(
        name="is_not_null",
        forms="a IS NOT NULL",
        signature="any -> BOOLEAN",
        meaning="Whether the value is present; never NULL.",
        totality="A test for NULL reads no value.",
        resolve=_resolve_is_null("IS NOT NULL"),
        lower=lambda call, lowerer: f"({lowerer.sql(call.arguments[0])} IS NOT NULL)",
        reference=lambda call, values: values[0] is not None,
        nullable=never,
        strict=False,
        section="NULL",
    ),
    Operator(
        name="is_distinct_from",
        forms="a IS DISTINCT FROM b",
        signature="two values of one kind -> BOOLEAN",
        meaning="Whether both differ, where NULL equals NULL; never NULL.",
        totality="Comparing two values of one SQL type, or NULL, is defined for every pair.",
        resolve=_resolve_comparison("IS DISTINCT FROM"),
        lower=_infix("IS DISTINCT FROM"),
        reference=_distinct,
        nullable=never,
        strict=False,
        section="NULL",
    ),
    Operator(
        name="is_not_distinct_from",
        forms="a IS NOT DISTINCT FROM b",
        signature="two values of one kind -> BOOLEAN",
        meaning="Whether both are equal, where NULL equals NULL; never NULL.",
        totality="Comparing two values of one SQL type, or NULL, is defined for every pair.",
        resolve=_resolve_comparison("IS NOT DISTINCT FROM"),
        lower=_infix("IS NOT DISTINCT FROM"),
        reference=lambda call, values: not _distinct(call, values),
        nullable=never,
        strict=False,
        section="NULL",
    ),
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
    Operator(
        name="least",
        forms="LEAST(a, b, ...)",
        signature="values of one kind -> that kind",
        meaning="The smallest argument; NULL when any argument is NULL (DuckDB skips NULL, see below).",
        totality="Comparing values of one SQL type is defined for every pair.",
        resolve=_resolve_extreme("LEAST"),
        lower=_extreme_lower("LEAST"),
        reference=lambda call, values: min(values),
        range=lambda arguments, intervals: ranges.smallest(intervals),
        copies=(2,),
        section="Arithmetic",
    ),
    Operator(
        name="greatest",
        forms="GREATEST(a, b, ...)",
        signature="values of one kind -> that kind",
        meaning="The largest argument; NULL when any argument is NULL (DuckDB skips NULL, see below).",
        totality="Comparing values of one SQL type is defined for every pair.",
        resolve=_resolve_extreme("GREATEST"),
        lower=_extreme_lower("GREATEST"),
        reference=lambda call, values: max(values),
        range=lambda arguments, intervals: ranges.largest(intervals),
        copies=(2,),
        section="Arithmetic",
    ),
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
        lower=lambda call, lowerer: f"CAST({lowerer.sql(call.arguments[0])} AS DOUBLE)",
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
        lower=lambda call, lowerer: f"CAST({lowerer.sql(call.arguments[0])} AS TIMESTAMP)",
        reference=_midnight,
        section="Conversion",
    ),
)
"""Entries of the allow-list."""
