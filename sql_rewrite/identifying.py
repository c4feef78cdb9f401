"""Keys whose every value belongs to one privacy unit: a paid answer grouped by them would have no group to show.

A column identifies when a value of it that is not NULL belongs to one row of a protected table: the unit's key, a key
of a table, a column declared unique, the reference that leads to the unit. Each row has one owner, so each group is
(rows of) one unit. A function of such a column identifies when different values stay different. Privacy does
not rest on this, but on the noise; but an answer that is known to be empty should not be charged.
"""

from __future__ import annotations

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal
from sql_rewrite.keys import whole

__all__ = ["identifying_column"]

_ONE_TO_ONE = frozenset({"as_number", "as_timestamp", "negate"})
_ROUNDINGS = frozenset({"floor", "ceil", "round", "trunc"})
_NUMBERS = (ColumnType.INTEGER, ColumnType.NUMBER)
_CASTS = frozenset({"cast_text", "cast_number", "cast_integer", "cast_timestamp"})


def identifying_column(key: Expression) -> ColumnRef | None:
    """The column that makes every value of a key belong to one unit, or None.

    Doubles hold whole numbers up to 2^53 exactly; larger ones may fall into one group, which is then of a few units at
    most. So may strings that are concatenated.
    """
    if isinstance(key, ColumnRef):
        return key if key.identifies else None
    if isinstance(key, Literal):
        return None
    passed = _passed(key)
    return None if passed is None else identifying_column(passed)


def _passed(call: Call) -> Expression | None:
    """The argument whose different values give different results, or None."""
    arguments, name = call.arguments, call.operator
    if name in _ONE_TO_ONE:
        return arguments[0]
    if name in _CASTS and _keeps_apart(arguments[0], call):
        return arguments[0]
    if name in _ROUNDINGS and whole(arguments[0]) and not _rounds_tens(call):
        return arguments[0]
    if name in ("add", "subtract"):
        return _only_variable(arguments)
    if name == "multiply":
        factor = next((a.value for a in arguments if isinstance(a, Literal)), None)
        return _only_variable(arguments) if isinstance(factor, int | float) and factor != 0 else None
    if name == "concat":
        return next((part for part in arguments if identifying_column(part) is not None), None)
    if name == "coalesce" and all(isinstance(argument, Literal) for argument in arguments[1:]):
        return arguments[0]
    if name == "nullif" and isinstance(arguments[1], Literal):
        return arguments[2]
    return None


def _keeps_apart(argument: Expression, call: Call) -> bool:
    """Whether a cast keeps different values different: of text, which may be read alike, that is not known."""
    if call.type in _NUMBERS:
        return argument.type in (*_NUMBERS, ColumnType.BOOLEAN) and whole(argument)
    return argument.type is call.type or argument.type is not ColumnType.TEXT


def _rounds_tens(call: Call) -> bool:
    digits = call.arguments[1] if len(call.arguments) > 1 else None
    return isinstance(digits, Literal) and isinstance(digits.value, int) and digits.value < 0


def _only_variable(arguments: tuple[Expression, ...]) -> Expression | None:
    """The only argument that is not a constant, if there is exactly one."""
    variables = [argument for argument in arguments if not isinstance(argument, Literal)]
    return variables[0] if len(variables) == 1 else None
