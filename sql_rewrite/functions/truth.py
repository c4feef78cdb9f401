"""Truth values: AND, OR and NOT in three-valued logic."""

from __future__ import annotations

from collections.abc import Sequence

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, Expression, Value
from sql_rewrite.functions.operator import (
    Operator,
    Reference,
    Resolve,
    Resolved,
    any_nullable,
    arity,
    expect,
    one_argument,
)
from sql_rewrite.scalars import Junction, JunctionWord, Not

__all__ = ["OPERATORS", "booleans"]

BOOLEAN = ColumnType.BOOLEAN


def booleans(forms: str, arguments: Sequence[Expression]) -> tuple[Expression, ...]:
    """The arguments, which must be conditions."""
    return tuple([argument if argument.type is BOOLEAN else expect(forms, argument, BOOLEAN) for argument in arguments])


def _resolve_junction(name: str, forms: str) -> Resolve:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 1, 10_000)
        flat: list[Expression] = []
        for argument in booleans(forms, arguments):
            if isinstance(argument, Call) and argument.operator == name:
                flat.extend(argument.arguments)  # AND and OR are associative; keeps long chains shallow
            else:
                flat.append(argument)
        return Resolved(tuple(flat), BOOLEAN)

    return resolve


def _and(call: Call, values: Sequence[Value]) -> Value:
    if any(value is False for value in values):
        return False
    return None if any(value is None for value in values) else True


def _or(call: Call, values: Sequence[Value]) -> Value:
    if any(value is True for value in values):
        return True
    return None if any(value is None for value in values) else False


def _junction(name: str, word: JunctionWord, meaning: str, reference: Reference) -> Operator:
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
        chained=True,
        nullable=any_nullable,
        exact=True,
        section="Truth values",
    )


OPERATORS: tuple[Operator, ...] = (
    _junction("and", "AND", "False when one side is false, else NULL when one side is NULL, else true.", _and),
    _junction("or", "OR", "True when one side is true, else NULL when one side is NULL, else false.", _or),
    Operator(
        name="not",
        forms="NOT a",
        signature="BOOLEAN -> BOOLEAN",
        meaning="The opposite; NULL for NULL.",
        totality="Three-valued logic has a result for true, false and NULL.",
        resolve=one_argument("NOT", BOOLEAN),
        lower=lambda call, lowerer: Not(lowerer.value(call.arguments[0])),
        reference=lambda call, values: not values[0],
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Truth values",
    ),
)
"""Entries of the allow-list."""
