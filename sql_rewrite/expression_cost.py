"""What the expressions of a statement cost in time: worst-case nanoseconds of each operator for one row.

`cost.py` says what is claimed, and adds what statements do around their expressions.
"""

from __future__ import annotations

from dataclasses import dataclass

from privacy.policy import LENGTH_MAX_DEFAULT, ColumnType
from sql_rewrite.dialects.costs import EngineCosts
from sql_rewrite.dialects.duckdb_costs import DUCKDB_COSTS
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, works_wide
from sql_rewrite.functions import REGISTRY
from sql_rewrite.stage_values import is_released

__all__ = ["ExpressionMeter", "Took", "characters"]


@dataclass(frozen=True, slots=True)
class Took:
    """What something takes: nanoseconds of a row, those of a vector that it is in, and operators that are planned."""

    row: float = 0.0
    vector: float = 0.0
    operators: int = 0

    def plus(self, other: Took, times: int = 1) -> Took:
        """Both together, the other one so often."""
        return Took(
            self.row + times * other.row,
            self.vector + times * other.vector,
            self.operators + times * other.operators,
        )


class ExpressionMeter:
    """Adds up expressions. Shared parts are looked at once."""

    def __init__(self, costs: EngineCosts, *, typical: int | None = None) -> None:
        self._costs = costs
        self._known: dict[int, Took] = {}
        self._lengths: dict[int, int] = {}
        self._typical = typical

    def lowered(self, expression: Expression) -> Took:
        """The expression as it is lowered: with its guard, for which it is written twice."""
        own = self.bare(expression)
        if isinstance(expression, Call) and not expression.finite:
            return Took(self._costs.guard.row, self._costs.guard.vector, 2).plus(own, 2)
        return own

    def bare(self, expression: Expression) -> Took:
        """The expression without a guard of its own."""
        if not isinstance(expression, Call):
            return Took(operators=1)
        known = self._known.get(id(expression))
        if known is None:
            known = self._known[id(expression)] = self._call(expression)
        return known

    def _call(self, call: Call) -> Took:
        entry = REGISTRY[call.operator]
        total = self.own(call)
        for index, argument in enumerate(call.arguments):
            copies = self._costs.copies_of(call.operator, call.arguments, index)
            total = total.plus(self.bare(argument) if entry.loose else self.lowered(argument), copies)
        return total

    def own(self, call: Call) -> Took:
        """One operator, once."""
        entry = REGISTRY[call.operator]
        cost = self._costs.cost_of(call.operator, entry.cost)
        times = max(1, len(call.arguments) - 1) if entry.chained else 1
        if call.operator == "case":
            times = len(call.arguments) // 2
        row = (max(cost.row, cost.wide) if works_wide(call) else cost.row) * times
        read = [a for a in call.arguments if a.type is ColumnType.TEXT and not isinstance(a, Literal)]
        if read and (cost.character or cost.pattern):
            needles = [a.value for a in call.arguments if isinstance(a, Literal) and isinstance(a.value, str)]
            longest = max((len(needle) for needle in needles), default=0)
            # A pattern without _ is searched piece by piece; one with it is tried at every character.
            plain = call.operator.endswith("like") and not any("_" in needle for needle in needles)
            rate = cost.character + (min(cost.pattern, self._costs.piece) if plain else cost.pattern) * longest
            compared = times if call.operator in ("in", "gather") else 1
            lengths = [self.characters(argument) for argument in read]
            if call.operator == "=" and any(isinstance(a, ColumnRef) and is_released(a) for a in read):
                lengths = [min(lengths)]  # texts of different lengths are not equal, whatever they hold
            row += sum(lengths) * rate * compared
        operators = times
        if call.is_cast and read and call.type is not ColumnType.TEXT:
            operators = self._costs.plan_reading
        return Took(row, cost.vector * times, operators)

    def characters(self, expression: Expression) -> int:
        """The most characters that a text of the expression may have."""
        known = self._lengths.get(id(expression))
        if known is None:
            known = self._lengths[id(expression)] = self._characters(expression)
        return known

    def _characters(self, expression: Expression) -> int:
        if isinstance(expression, Literal):
            return len(expression.value) if isinstance(expression.value, str) else 0
        if isinstance(expression, ColumnRef):
            if expression.domain is not None and expression.other is None:
                return max((len(value) for value in expression.domain if isinstance(value, str)), default=0)
            longest = LENGTH_MAX_DEFAULT if expression.length_max is None else expression.length_max
            return longest if self._typical is None else min(longest, self._typical)
        made = REGISTRY[expression.operator].characters
        assert made is not None, f"{expression.operator} gives text of any length"
        arguments = expression.arguments
        return made(arguments, [self.characters(a) if a.type is ColumnType.TEXT else 0 for a in arguments])


def characters(expression: Expression) -> int:
    """The most characters that a text of the expression may have."""
    return ExpressionMeter(DUCKDB_COSTS).characters(expression)
