"""Expressions to the tree that a dialect writes: columns, constants as bound parameters, a guard where one is due."""

from __future__ import annotations

from privacy.policy import ColumnType
from privacy.statement import Parameter as Value
from privacy.statement import StageValue
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, needs_wide
from sql_rewrite.functions import REGISTRY
from sql_rewrite.scalars import Cast, Column, Decoded, EngineType, Finite, Null, Parameter, Scalar, engine_type
from sql_rewrite.stage_values import is_released, released_of

__all__ = ["ParameterList", "lower"]


class ParameterList:
    """The bound values of one statement, numbered from 1. Equal values of one type share a number."""

    def __init__(self) -> None:
        self._values: list[Value] = []
        self._numbers: dict[tuple[type, str], int] = {}

    def add(self, value: Value) -> int:
        """The number of the value."""
        # repr distinguishes 0.0 from -0.0, and the type distinguishes True from 1; plain equality does not.
        key = (type(value), repr(value))
        number = self._numbers.get(key)
        if number is None:
            self._values.append(value)
            number = self._numbers[key] = len(self._values)
        return number

    @property
    def values(self) -> tuple[Value, ...]:
        """The values in order of their numbers."""
        return tuple(self._values)


def lower(expression: Expression, parameters: ParameterList) -> Scalar:
    """The expression as a tree of type `engine_type(expression)`; constants are added to `parameters`.

    Ensures: no stored value makes it raise; a NUMBER is finite or NULL. A text column with public keys that
    is the whole expression is left as it is stored (as a key); inside expressions it is read as text.
    """
    if isinstance(expression, ColumnRef) and not is_released(expression):
        return Column(expression.relation, expression.name)
    return _Lowering(parameters).value(expression)


class _Lowering:
    """The `Lowerer` that operators make their nodes with."""

    def __init__(self, parameters: ParameterList) -> None:
        self._parameters = parameters
        self._guarded = _Guarded(self)

    def value(self, expression: Expression) -> Scalar:
        node = self.loose(expression)
        if isinstance(expression, Call) and not expression.finite:
            return Finite(node)
        return node

    def loose(self, expression: Expression) -> Scalar:
        if isinstance(expression, ColumnRef):
            if is_released(expression):
                value = StageValue(released_of(expression), expression.name, expression.type)
                return Parameter(self._parameters.add(value), engine_type(expression))
            column = Column(expression.relation, expression.name)
            # Snapshots store texts with public keys as keys, whose order and conversions are not those of text.
            stored_as_key = (
                expression.type is ColumnType.TEXT and expression.domain is not None and expression.other is None
            )
            return Decoded(column) if stored_as_key else column
        if isinstance(expression, Literal):
            return self._literal(expression)
        entry = REGISTRY[expression.operator]
        return entry.lower(expression, self if entry.loose else self._guarded)

    def integer(self, expression: Expression, *, wide: bool) -> Scalar:
        node = self.value(expression)
        if needs_wide(expression):
            assert wide, "a wide operand needs a wide operation"
            return node
        return Cast(node, EngineType.WIDE) if wide else node

    def _literal(self, literal: Literal) -> Scalar:
        kind = engine_type(literal)
        return Null(kind) if literal.value is None else Parameter(self._parameters.add(literal.value), kind)


class _Guarded:
    """The `Lowerer` of operators that do not claim to be `loose`: no infinity or NaN reaches them."""

    def __init__(self, lowering: _Lowering) -> None:
        self._lowering = lowering
        self.value = self.loose = lowering.value
        self.integer = lowering.integer
