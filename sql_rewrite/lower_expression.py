"""Expressions to DuckDB SQL: everything in parentheses, names quoted and qualified, constants as bound parameters."""

from __future__ import annotations

import datetime

from privacy.policy import ColumnType
from privacy.statement import Parameter
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, needs_wide
from sql_rewrite.functions import REGISTRY

__all__ = ["ParameterList", "lower", "quote", "sql_type"]

_SQL_TYPES = {
    ColumnType.INTEGER: "BIGINT",
    ColumnType.NUMBER: "DOUBLE",
    ColumnType.TEXT: "VARCHAR",
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.DATE: "DATE",
    ColumnType.TIMESTAMP: "TIMESTAMP",
}


class ParameterList:
    """The bound values of one statement, numbered from $1. Equal values of one type share a number."""

    def __init__(self) -> None:
        self._values: list[Parameter] = []
        self._numbers: dict[tuple[type, str], int] = {}

    def add(self, value: Parameter) -> str:
        """The placeholder of the value; callers cast it to an SQL type."""
        # repr tells 0.0 from -0.0 and the type tells True from 1; plain equality would not.
        key = (type(value), repr(value))
        number = self._numbers.get(key)
        if number is None:
            self._values.append(value)
            number = self._numbers[key] = len(self._values)
        return f"${number}"

    @property
    def values(self) -> tuple[Parameter, ...]:
        """The values in order of their numbers."""
        return tuple(self._values)


def quote(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def sql_type(expression: Expression) -> str:
    """The SQL type of the lowered expression; a wide INTEGER is a HUGEINT."""
    return "HUGEINT" if needs_wide(expression) else _SQL_TYPES[expression.type]


def lower(expression: Expression, parameters: ParameterList) -> str:
    """The expression as SQL of type `sql_type(expression)`; constants are added to `parameters`.

    Ensures: no stored value makes the SQL raise; a NUMBER is finite or NULL. A text column with public keys that
    is the whole expression is left as it is stored (an ENUM); inside of expressions it is read as VARCHAR.
    """
    if isinstance(expression, ColumnRef):
        return _column(expression)
    return _Lowering(parameters).sql(expression)


def _column(column: ColumnRef) -> str:
    return f"{quote(column.relation)}.{quote(column.name)}"


class _Lowering:
    """The `Lowerer` that operators write their SQL with."""

    def __init__(self, parameters: ParameterList) -> None:
        self._parameters = parameters

    def sql(self, expression: Expression) -> str:
        value = self.loose(expression)
        if isinstance(expression, Call) and not expression.finite:
            return f"(CASE WHEN isfinite({value}) THEN {value} END)"
        return value

    def loose(self, expression: Expression) -> str:
        if isinstance(expression, ColumnRef):
            name = _column(expression)
            # Snapshots store texts with public keys as ENUM, whose order and conversions are not those of text.
            stored_as_enum = (
                expression.type is ColumnType.TEXT and expression.domain is not None and expression.other is None
            )
            return f"CAST({name} AS VARCHAR)" if stored_as_enum else name
        if isinstance(expression, Literal):
            return self._literal(expression)
        return REGISTRY[expression.operator].lower(expression, self)

    def integer(self, expression: Expression, *, wide: bool) -> str:
        value = self.sql(expression)
        if needs_wide(expression):
            assert wide, "a wide operand needs a wide operation"
            return value
        return f"CAST({value} AS HUGEINT)" if wide else value

    def _literal(self, literal: Literal) -> str:
        value = literal.value
        name = sql_type(literal)
        if value is None:
            return f"CAST(NULL AS {name})"
        assert isinstance(value, str | int | float | bool | datetime.date)
        return f"CAST({self._parameters.add(value)} AS {name})"
