"""Aggregate calls over the rows of one unit: in blocks that group by it, and in windows within it."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.aggregate_calls import AggregateReader
from sql_rewrite.expressions import Expression
from sql_rewrite.functions import cast
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.narrowed_values import Narrowing
from sql_rewrite.plan import UnitFunction, UnitValue
from sql_rewrite.quantile_calls import QuantileReader
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import consume
from sql_rewrite.text import Text
from sql_rewrite.tuples import as_one
from sql_rewrite.unit_modes import mode_operand
from sql_rewrite.unit_values import made, too_wide

__all__ = ["UnitCalls", "written"]

_SIMPLE: Mapping[type[exp.Expr], UnitFunction] = {
    exp.Sum: UnitFunction.SUM,
    exp.Avg: UnitFunction.AVERAGE,
    exp.Min: UnitFunction.LEAST,
    exp.Max: UnitFunction.GREATEST,
    exp.LogicalOr: UnitFunction.ANY_TRUE,
    exp.LogicalAnd: UnitFunction.ALL_TRUE,
    exp.AnyValue: UnitFunction.LEAST,
    exp.First: UnitFunction.LEAST,
    exp.Last: UnitFunction.LEAST,
}
"""Aggregates of one argument. Of any value that DuckDB may take the least one is taken."""

_BY: Mapping[type[exp.Expr], UnitFunction] = {
    exp.ArgMin: UnitFunction.AT_LEAST,
    exp.ArgMax: UnitFunction.AT_GREATEST,
}

_QUANTILES = (exp.Median, exp.PercentileCont, exp.PercentileDisc, exp.Quantile)
_NUMBERS = (ColumnType.INTEGER, ColumnType.NUMBER)
_MOMENTS = (*_NUMBERS, ColumnType.DATE, ColumnType.TIMESTAMP)

_OF_ROWS = (exp.AnyValue, exp.First, exp.Last)

_OTHER: Mapping[type[exp.Expr], str] = {
    exp.Mode: "write MODE(x): DISTINCT or a descending order would leave no value that is there most often",
    exp.Stddev: "use the greatest value less the least one for the spread",
    exp.Variance: "use the greatest value less the least one for the spread",
}
"""What to write instead of others."""

_KINDS: Mapping[UnitFunction, tuple[tuple[ColumnType, ...], str]] = {
    UnitFunction.SUM: ((ColumnType.INTEGER, ColumnType.NUMBER), "a number"),
    UnitFunction.AVERAGE: ((ColumnType.INTEGER, ColumnType.NUMBER), "a number"),
    UnitFunction.ANY_TRUE: ((ColumnType.BOOLEAN,), "true or false"),
    UnitFunction.ALL_TRUE: ((ColumnType.BOOLEAN,), "true or false"),
}

_KNOWN = (
    "COUNT, SUM, AVG, MIN, MAX, COUNT(DISTINCT x), MEDIAN, QUANTILE, MAD, MODE, BOOL_OR, BOOL_AND, ARG_MAX, ARG_MIN, "
    "ANY_VALUE and FIRST"
)


def written(text: Text, call: exp.Expr, function: enum.Enum) -> str:
    """What people call the value of a call."""
    place = text.position(call)
    return " ".join(place.text.split())[:60] if place is not None else str(function.value)


class UnitCalls:
    """Reads such calls of one block, whose `lifter` reads what is in them."""

    def __init__(self, text: Text, lifter: ExpressionLift, reader: AggregateReader) -> None:
        self._text = text
        self._plain = lifter
        self._reader = reader
        self._quantiles = QuantileReader(text, lifter)

    def value(self, call: exp.Expr, rows: int, given: Sequence[Expression] = ()) -> UnitValue:
        """What a call, with its FILTER, computes of at most so many rows that satisfy conditions. Errors: Refused."""
        condition: Expression | None = None
        node = call
        if isinstance(call, exp.Filter):
            consume(call, "this", "expression", text=self._text, what="FILTER")
            node, clause = call.this, call.expression
            consume(clause, "this", text=self._text, what="FILTER")
            condition = self._reader.condition(clause.this, "FILTER")
        if isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue):
            node = node.this  # the parser puts it there
        pair = self._pair(node)
        if pair is not None:
            return made(pair[0], pair[1], condition, pair[2])
        moded = mode_operand(node)
        if moded is not None:
            return made(UnitFunction.MODE, self._plain.lift(moded), condition)
        ranked = self._ranked(node, condition)
        if ranked is not None:
            return ranked
        function, argument, counted = self._function(node)
        if counted is not None:
            condition = counted if condition is None else self._plain.make(node, "and", condition, counted)
        if argument is not None:
            conditions = [*given, *([] if condition is None else [condition])]
            # What is summed is clipped anyway; the least value and others are as they are stored.
            summed = function in (UnitFunction.SUM, UnitFunction.AVERAGE)
            argument = Narrowing((argument,), conditions, whole=summed).value(argument)
        value = made(function, argument, condition)
        if too_wide(value, rows):
            raise refuse(
                "too_large",
                f"{self._text.spelled(node) or 'a sum'} is refused",
                "The sum of one person's rows may leave the range of exact integers (126 bits).",
                "clip its argument: GREATEST(0, LEAST(x, 1000000))",
                position=self._text.position(call),
            )
        return value

    def _function(self, node: exp.Expr) -> tuple[UnitFunction, Expression | None, Expression | None]:
        """The function, its argument, and a condition under which it counts. Errors: Refused."""
        text = self._text
        if isinstance(node, exp.CountIf):
            consume(node, "this", text=text, what="COUNT_IF")
            return UnitFunction.ROWS, None, self._reader.condition(node.this, "COUNT_IF")
        if isinstance(node, exp.Count):
            consume(node, "this", "big_int", text=text, what="COUNT")
            operand = node.this
            if operand is None or isinstance(operand, exp.Star):
                if isinstance(operand, exp.Star):
                    consume(operand, text=text, what="COUNT(*)")
                return UnitFunction.ROWS, None, None
            if isinstance(operand, exp.Distinct):
                consume(operand, "expressions", text=text, what="COUNT(DISTINCT)")
                if len(operand.expressions) == 1:
                    return UnitFunction.DISTINCT, self._plain.lift(as_one(operand.expressions[0], self._plain)), None
                raise self._unknown(node)
            argument = self._plain.lift(operand)
            return (UnitFunction.VALUES, argument, None) if argument.nullable else (UnitFunction.ROWS, None, None)
        function = _SIMPLE.get(type(node))
        if function is None or isinstance(node.this, exp.Distinct):
            raise self._unknown(node)
        consume(node, "this", text=text, what=text.spelled(node) or "an aggregate")
        summed = function in (UnitFunction.SUM, UnitFunction.AVERAGE)
        argument = self._plain.value(node.this) if summed else self._plain.lift(node.this)
        if argument.type is ColumnType.BOOLEAN and function is UnitFunction.SUM:
            argument = cast(argument, ColumnType.INTEGER)
        kinds, wanted = _KINDS.get(function, ((), ""))
        if kinds and argument.type not in kinds:
            raise refuse(
                "unsupported_type",
                f"{text.spelled(node) or 'an aggregate'} is refused",
                f"Its argument is of type {argument.type.value}, not {wanted}.",
                position=text.position(node),
            )
        return function, argument, None

    def _ranked(self, node: exp.Expr, condition: Expression | None) -> UnitValue | None:
        """A median, a quantile or a median distance from the median; None for any other call. Errors: Refused."""
        text = self._text
        called = node.this if isinstance(node, exp.WithinGroup) else node
        if isinstance(node, exp.Anonymous) and str(node.this).lower() == "mad" and len(node.expressions) == 1:
            consume(node, "this", "expressions", text=text, what="MAD")
            operand, fraction, function = node.expressions[0], None, UnitFunction.DEVIATION
        elif isinstance(called, _QUANTILES):
            asked, operand, fraction = self._quantiles.read(node)
            discrete = asked is AggregateFunction.QUANTILE_DISCRETE
            function = UnitFunction.QUANTILE_DISCRETE if discrete else UnitFunction.QUANTILE
        else:
            return None
        argument = self._plain.lift(operand)
        kinds = _MOMENTS if function is UnitFunction.QUANTILE_DISCRETE else _NUMBERS
        if argument.type not in kinds:
            dated, place = argument.type in _MOMENTS, text.position(operand)
            raise refuse(
                "unsupported_type",
                f"{text.spelled(node) or 'a quantile'} is refused",
                f"Its argument is of type {argument.type.value}, not a number.",
                *((f"use QUANTILE_DISC({place.text if place else 'x'}, 0.5), which is one of them",) if dated else ()),
                position=text.position(node),
            )
        return made(function, argument, condition, fraction=fraction)

    def _pair(self, node: exp.Expr) -> tuple[UnitFunction, Expression, Expression] | None:
        """The function, the value and what it is chosen by; None for a call of one value. Errors: Refused."""
        text, function = self._text, _BY.get(type(node))
        if function is not None:
            consume(node, "this", "expression", text=text, what=text.spelled(node) or "an aggregate")
            return function, self._plain.lift(node.this), self._plain.lift(node.expression)
        if not isinstance(node, _OF_ROWS) or not isinstance(node.this, exp.Order):
            return None
        consume(node, "this", text=text, what=text.spelled(node) or "an aggregate")
        order = node.this
        consume(order, "this", "expressions", text=text, what="ORDER BY")
        (item, *others) = order.expressions
        if others or not isinstance(item, exp.Ordered):
            raise self._unknown(node)
        consume(item, "this", "desc", "nulls_first", text=text, what="ORDER BY")
        value, by = self._plain.lift(order.this), self._plain.lift(item.this)
        # DuckDB sorts NULL behind the others, and takes such a row where there is no other.
        if by.nullable or (value.nullable and not isinstance(node, exp.AnyValue)):
            raise refuse(
                "unsupported_sql",
                f"{text.spelled(node) or 'an aggregate'} with ORDER BY is refused",
                "A value in it may be NULL, which is first or last among the others by rules of its own.",
                "use ARG_MIN(x, y) or ARG_MAX(x, y): the value where y is least or greatest, rows with NULL left out",
                position=text.position(node),
            )
        last = isinstance(node, exp.Last) != bool(item.args.get("desc"))
        return UnitFunction.AT_GREATEST if last else UnitFunction.AT_LEAST, value, by

    def _unknown(self, node: exp.Expr) -> Refused:
        return refuse(
            "unsupported_function",
            f"{self._text.spelled(node) or 'an aggregate'} within a unit is refused",
            f"Of the rows of one person {_KNOWN} are computed; others depend on the order in which rows are added up, "
            "or are not answered yet.",
            *([] if type(node) not in _OTHER else [_OTHER[type(node)]]),
            position=self._text.position(node),
        )
