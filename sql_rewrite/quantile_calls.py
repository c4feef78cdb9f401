"""The calls of quantiles: their forms, and the part of the rows that they ask for."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType
from privacy.refusal import Refused
from privacy.statistic_kind import StatisticKind
from sql_rewrite.aggregates import called
from sql_rewrite.expressions import Literal
from sql_rewrite.filled import fill
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.operands import operands_of
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import consume
from sql_rewrite.text import Text

__all__ = ["QuantileReader", "is_quantile"]

_HALF = Fraction(1, 2)

_FRACTION_SLOTS: dict[type[exp.Expr], str] = {
    exp.PercentileCont: "expression",
    exp.PercentileDisc: "expression",
    exp.Quantile: "quantile",
    exp.ApproxQuantile: "quantile",
}
"""Where the parser keeps the part of the rows, by the class of the call's node."""

_FRACTION_CHARACTERS = 20
_EXTREMES = (AggregateFunction.LEAST, AggregateFunction.GREATEST)


def is_quantile(node: exp.Expr) -> bool:
    """Whether the node calls an aggregate that is computed from ranks."""
    found = called(node.this if isinstance(node, exp.WithinGroup) else node)
    return found is not None and found[0].statistic is StatisticKind.RANKS


class QuantileReader:
    """Reads the calls of quantiles of one block."""

    def __init__(self, text: Text, lifter: ExpressionLift) -> None:
        self._text = text
        self._lifter = lifter

    def read(self, node: exp.Expr) -> tuple[AggregateFunction, exp.Expr, Fraction | None]:
        """The aggregate that a call asks for, its operand, and the part of the rows below it. Errors: Refused."""
        within = isinstance(node, exp.WithinGroup)
        call = node.this if within else node
        found = called(call)
        if found is None:
            raise self._refused(call, "It does not say of which value.")
        function, (operand, *_) = found
        slot = _FRACTION_SLOTS.get(type(call))
        consume(call, "this", *(() if slot is None else (slot,)), text=self._text, what=type(call).__name__.upper())
        if within:
            return self._within(node, function)
        if function in _EXTREMES and isinstance(operand, exp.Distinct) and len(operand.expressions) == 1:
            operand = operand.expressions[0]  # the extreme of different values is that of all of them
        self._plain(operand)
        if slot is None:
            return function, operand, _HALF if isinstance(call, exp.Median) else None
        given = call.args.get(slot)
        if given is None:
            raise self._refused(call, "It does not say which part of the rows lies below it.")
        return function, operand, self._fraction(call, given)

    def _within(
        self, node: exp.Expr, function: AggregateFunction
    ) -> tuple[AggregateFunction, exp.Expr, Fraction | None]:
        """A call with WITHIN GROUP (ORDER BY x)."""
        call = node.this
        consume(node, "this", "expression", text=self._text, what="WITHIN GROUP")
        slot = _FRACTION_SLOTS.get(type(call))
        if slot != "expression" or call.args.get(slot) is not None:
            raise self._refused(node, "WITHIN GROUP belongs to PERCENTILE_CONT(p) and PERCENTILE_DISC(p).")
        order = node.expression
        consume(order, "expressions", text=self._text, what="WITHIN GROUP")
        if len(order.expressions) != 1 or not isinstance(order.expressions[0], exp.Ordered):
            raise self._refused(node, "WITHIN GROUP sorts by one value.")
        ordered = order.expressions[0]
        consume(ordered, "this", "desc", "nulls_first", text=self._text, what="WITHIN GROUP")
        self._plain(ordered.this)
        if call.this is None:
            raise self._refused(node, "It does not say which part of the rows lies below it.")
        fraction = self._fraction(call, call.this)
        if ordered.args.get("desc"):
            if function is not AggregateFunction.QUANTILE:
                raise self._refused(node, "Its values are sorted from the greatest to the least.")
            fraction = 1 - fraction
        return function, ordered.this, fraction

    def _plain(self, operand: exp.Expr) -> None:
        if isinstance(operand, exp.Distinct):
            raise self._refused(
                operand.parent or operand, "Quantiles are of rows, not of different values: leave DISTINCT out."
            )
        if isinstance(operand, exp.Order):
            raise self._refused(operand.parent or operand, "Its values are sorted in a way of their own.")

    def _fraction(self, call: exp.Expr, node: exp.Expr) -> Fraction:
        """The part of the rows, a constant from 0 to 1. Errors: Refused."""
        if isinstance(node, exp.Array | exp.List | exp.Tuple):
            raise refuse(
                "unsupported_sql",
                f"{self._text.spelled(call) or 'a quantile'} is refused",
                "It asks for several quantiles in one list, inside another expression.",
                "write the list alone in the select list, or one call for each of them",
                position=self._text.position(call),
            )
        value = self._lifter.lift(node)
        if not isinstance(value, Literal) or value.type not in (ColumnType.INTEGER, ColumnType.NUMBER):
            raise self._refused(call, "The part of the rows that lies below it is not a constant.")
        if not isinstance(value.value, int | float):
            raise self._refused(call, "The part of the rows that lies below it is NULL.")
        if not 0 <= value.value <= 1:
            raise self._refused(call, "The part of the rows that lies below it is not between 0 and 1.")
        fraction = Fraction(str(value.value))
        if len(str(value.value)) > _FRACTION_CHARACTERS:
            raise self._refused(call, "The part of the rows that lies below it has too many digits.")
        return fraction

    def _refused(self, node: exp.Expr, why: str, *instead: str) -> Refused:
        name = self._text.spelled(node) or "a quantile"
        return refuse(
            "unsupported_sql",
            f"{name} is refused",
            why,
            *instead,
            fill("QUANTILE_CONT({x}, 0.5) or QUANTILE_DISC({x}, 0.5)", operands_of(self._lifter, node), summed=True),
            position=self._text.position(node),
        )
