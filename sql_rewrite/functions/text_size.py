"""How much of a text comes from rows and how much from the query, and what reading long constants costs."""

from __future__ import annotations

from collections.abc import Sequence

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal

__all__ = ["FORMATTED_MAX", "fixed", "growth", "longest", "work"]

FORMATTED_MAX = 5
"""Most characters of a date as text for each character of the format: two of them may be the name of a day."""

TEXT = ColumnType.TEXT


def growth(expression: Expression) -> int:
    """How many times a stored text may be repeated in a value of the expression; constants count as nothing."""
    if isinstance(expression, ColumnRef):
        return 1
    if isinstance(expression, Literal) or expression.type is not TEXT:
        return 0
    texts = [growth(argument) for argument in expression.arguments if argument.type is TEXT]
    if expression.operator == "concat":
        return sum(texts)
    if expression.operator in ("left", "right") or (expression.operator == "substr" and len(expression.arguments) == 3):
        return 0
    return max(texts, default=0)


def fixed(expression: Expression) -> int:
    """How many characters of a value of the expression may come from the query: constants and pieces."""
    if isinstance(expression, ColumnRef):
        return 0
    characters = longest(expression)
    if characters is not None:
        return characters
    if not isinstance(expression, Call):
        return 0
    texts = [fixed(argument) for argument in expression.arguments if argument.type is TEXT]
    if not texts:
        return 40  # a number, a truth value, a date or the name of a day as text
    return sum(texts) if expression.operator == "concat" else max(texts)


WORK_UNIT = 50
"""Steps over characters that count as much as one operator."""


def work(arguments: Sequence[Expression]) -> int:
    """What reading long constants costs beside the operator itself, in operators.

    A constant behind a condition on one person's row is read for that row alone: without a limit, the time of a
    query would reveal whether the row is there. Patterns are matched in text times pattern steps at worst.
    """
    long = sum(fixed(argument) for argument in arguments if argument.type is TEXT and not isinstance(argument, Literal))
    if not long:
        return 0
    needles = [len(a.value) for a in arguments if isinstance(a, Literal) and isinstance(a.value, str)]
    return long * (1 + max(needles, default=0)) // WORK_UNIT


def longest(expression: Expression) -> int | None:
    """The most characters that the text can have, where the expression itself says so."""
    if isinstance(expression, Literal):
        return len(expression.value) if isinstance(expression.value, str) else 0
    if isinstance(expression, Call):
        if expression.operator in ("lpad", "rpad", "strftime"):
            constant = expression.arguments[1]
            assert isinstance(constant, Literal)
            value = constant.value
            return FORMATTED_MAX * len(value) if isinstance(value, str) else value if isinstance(value, int) else 0
        last = expression.arguments[-1]
        cut = expression.operator in ("left", "right") or (
            expression.operator == "substr" and len(expression.arguments) == 3
        )
        if cut and isinstance(last, Literal) and isinstance(last.value, int):
            return last.value
    return None
