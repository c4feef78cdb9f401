"""Numbers as arguments: INTEGER where all are, else all as NUMBER."""

from __future__ import annotations

from privacy.policy import ColumnType
from sql_rewrite.expressions import Expression, Literal
from sql_rewrite.functions.harmony import harmonise
from sql_rewrite.functions.operator import Resolve, Resolved, arity, refuse_types

__all__ = ["numbers", "resolve_numbers", "resolve_to_number"]

INTEGER, NUMBER = ColumnType.INTEGER, ColumnType.NUMBER


def numbers(forms: str, arguments: tuple[Expression, ...], count: int) -> tuple[tuple[Expression, ...], ColumnType]:
    """That many arguments of type INTEGER, or all as NUMBER."""
    arity(forms, arguments, count)
    arguments = tuple(Literal(None, INTEGER) if isinstance(a, Literal) and a.value is None else a for a in arguments)
    if not all(argument.type in (INTEGER, NUMBER) for argument in arguments):
        raise refuse_types(forms, arguments, "numbers")
    return harmonise(forms, arguments)


def resolve_numbers(forms: str, count: int) -> Resolve:
    """Accepts that many numbers, and returns one of their common type."""
    return lambda arguments: Resolved(*numbers(forms, arguments, count))


def resolve_to_number(forms: str, count: int) -> Resolve:
    """Accepts that many numbers of any type, as NUMBER, and returns one."""

    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        converted, _ = numbers(forms, arguments, count)
        return Resolved(harmonise(forms, (*converted, Literal(0.0, NUMBER)))[0][:-1], NUMBER)

    return resolve
