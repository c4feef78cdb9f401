"""Every operator by its name, and `build`: the only way to make a `Call`, with its type, NULL behaviour and range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from privacy.policy import ColumnType
from sql_rewrite.dialects import DIALECTS
from sql_rewrite.expressions import (
    DEPTH_MAX,
    WEIGHT_MAX,
    WIDE,
    Call,
    Expression,
    Interval,
    interval_of,
)
from sql_rewrite.functions import (
    angles,
    arithmetic,
    casts,
    choices,
    comparisons,
    date_parts,
    dates,
    gathering,
    patterns,
    powers,
    ranges,
    regular,
    rounding,
    spans,
    text_pieces,
    text_size,
    texts,
    truth,
    written_dates,
)
from sql_rewrite.functions.operator import Operator, TypeRefused

__all__ = ["INTERNAL", "REGISTRY", "build", "cast"]

INTEGER, NUMBER = ColumnType.INTEGER, ColumnType.NUMBER

REGISTRY: Mapping[str, Operator] = MappingProxyType(
    {
        operator.name: operator
        for operator in (
            *truth.OPERATORS,
            *comparisons.OPERATORS,
            *choices.OPERATORS,
            *arithmetic.OPERATORS,
            *rounding.OPERATORS,
            *powers.OPERATORS,
            *angles.OPERATORS,
            *patterns.OPERATORS,
            *regular.OPERATORS,
            *texts.OPERATORS,
            *text_pieces.OPERATORS,
            *date_parts.OPERATORS,
            *dates.OPERATORS,
            *spans.OPERATORS,
            *written_dates.OPERATORS,
            *casts.OPERATORS,
            *gathering.OPERATORS,
        )
    }
)
"""Every operator by its name."""

INTERNAL = frozenset({"clip", "as_number", "as_timestamp", "gather", "gather_range"})
"""Operators that the server adds; no SQL is mapped to them."""


def build(operator: str, arguments: Sequence[Expression]) -> Expression:
    """The operator applied to the arguments, typed, with NULL behaviour and range.

    Constants such as patterns, units and digits are `Literal` arguments.
    Errors: TypeRefused with unsupported_function, unsupported_type or too_large. Never depends on rows.
    """
    entry = REGISTRY.get(operator)
    if entry is None:
        raise TypeRefused(
            "unsupported_function",
            f'the function "{operator}" is refused',
            "It is not in the list of functions whose behaviour is proved for every stored value.",
        )
    resolved = entry.resolve(tuple(arguments))
    arguments, kind = resolved.arguments, resolved.type
    interval = _type_interval(entry, arguments, kind) if kind is NUMBER or kind is INTEGER else None
    finite = kind is not NUMBER or _is_finite(entry, arguments)
    weight, depth = 1 + text_size.work(arguments), 0
    for index, argument in enumerate(arguments):
        copies = _copies(operator, arguments, index) if operator in _REPEATED else 1
        if isinstance(argument, Call):
            depth = max(depth, argument.depth)
            guarded = not argument.finite and not entry.loose
            weight += copies * (2 * argument.weight + 1 if guarded else argument.weight)
        else:
            depth = max(depth, 1)
            weight += copies
    # A number that overflows becomes NULL.
    nullable = not finite or entry.nullable(arguments)
    call = Call(operator, arguments, kind, nullable, interval, finite=finite, weight=weight, depth=1 + depth)
    if weight > WEIGHT_MAX or call.depth > DEPTH_MAX:
        raise TypeRefused(
            "too_large",
            "the expression is refused",
            "It is nested too deeply, or repeats itself too often when its guards are added.",
            ("compute parts of it in a derived table",),
        )
    return call


_REPEATED = frozenset(name for dialect in DIALECTS.values() for name in dialect.costs.copies)


def _copies(operator: str, arguments: Sequence[Expression], index: int) -> int:
    """How often the argument is written in the dialect that repeats it most: no engine's limit is another's."""
    always = _ALWAYS.get(operator)
    if always is not None:
        return always[min(index, len(always) - 1)]
    return max([dialect.costs.copies_of(operator, arguments, index) for dialect in DIALECTS.values()])


def _always(operator: str) -> tuple[int, ...] | None:
    """How often each argument is written at most, the last for all that follow; None where that depends on them."""
    tables = [dialect.costs.copies.get(operator, (1,)) for dialect in DIALECTS.values()]
    fixed = [table for table in tables if isinstance(table, tuple)]
    if len(fixed) < len(tables):
        return None
    return tuple(max(table[min(place, len(table) - 1)] for table in fixed) for place in range(max(map(len, fixed))))


_ALWAYS = {name: _always(name) for name in _REPEATED}


def _ranged(entry: Operator, arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    result = entry.range(arguments, intervals)
    return result if entry.ceiling is None else ranges.intersect(result, entry.ceiling)


def _type_interval(entry: Operator, arguments: Sequence[Expression], kind: ColumnType) -> Interval:
    """The range of a number when columns hold anything that their type can."""
    result = _ranged(entry, arguments, [interval_of(argument) for argument in arguments])
    if kind is NUMBER:
        return ranges.outward(result)
    assert result.bounded, f"the range of an INTEGER is always known ({entry.name})"
    if not result.inside(WIDE):
        raise TypeRefused(
            "too_large",
            f'the result of "{entry.forms}" may leave the range of exact integers (126 bits)',
            "A value that large would overflow in the engine, and an overflow would reveal something about rows.",
            (
                "clip the columns first, for example GREATEST(0, LEAST(x, 1000000))",
                "CAST one side to DOUBLE",
                "ask an administrator to declare value bounds",
            ),
        )
    return result


def _is_finite(entry: Operator, arguments: Sequence[Expression]) -> bool:
    """Whether the engine's plain number is a finite double or NULL for every stored value."""
    if entry.loose and any(isinstance(a, Call) and not a.finite for a in arguments):
        return False
    if entry.finite:
        return True
    filled = [ranges.filled(interval_of(a)) if a.type is NUMBER else interval_of(a) for a in arguments]
    return _ranged(entry, arguments, filled).inside(Interval(-ranges.NUMBER_MAX, ranges.NUMBER_MAX))


def cast(expression: Expression, target: ColumnType) -> Expression:
    """CAST and TRY_CAST to one of the six types; NULL where a value cannot be converted."""
    return build(f"cast_{target.value}", (expression,))
