"""What is computed of the rows of a unit: columns of each row, and the aggregate over them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import assert_never

from privacy.policy import ColumnType
from sql_rewrite.expressions import Expression
from sql_rewrite.layer_values import (
    AllTrue,
    AnyTrue,
    Beside,
    Count,
    DifferentValues,
    EndOf,
    FineSteps,
    MostOften,
    NumberOf,
    OfPair,
    OneZero,
    Ranked,
    Sum,
)
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.lower_expression import lower as lower_expression
from sql_rewrite.plan import UnitFunction, UnitValue
from sql_rewrite.relations import Output
from sql_rewrite.scalars import Case, Cast, EngineType, Finite, Holds, Named, Scalar, TotalDivision, Whole, engine_type

__all__ = ["lowered_value", "row_columns"]

_NUMBER = EngineType.NUMBER


def row_columns(value: UnitValue, parameters: ParameterList) -> list[Output]:
    """Per row of one value: what is summed or compared, `t`, and whether the row is under the filter, `f`."""
    columns = []
    if value.argument is not None:
        columns.append(Output(_argument(value, value.argument, parameters), f"{value.name}t"))
    if value.by is not None:
        columns.append(Output(_argument(value, value.by, parameters), f"{value.name}b"))
    if value.filter is not None:
        columns.append(Output(Holds(lower_expression(value.filter, parameters)), f"{value.name}f"))
    return columns


def _argument(value: UnitValue, argument: Expression, parameters: ParameterList) -> Scalar:
    found, encoding = lower_expression(argument, parameters), value.encoding
    if encoding is not None:
        return FineSteps(found, encoding.step, encoding.highest)
    if argument.type is ColumnType.NUMBER:
        return OneZero(found)
    # Stored keys sort otherwise than text.
    return Cast(found, EngineType.TEXT) if argument.type is ColumnType.TEXT else found


def lowered_value(value: UnitValue, *, wide: bool, over: Callable[[Scalar], Scalar] = lambda made: made) -> Scalar:
    """The aggregate over the columns of the rows; a sum of whole numbers that may leave 64 bits is `wide`.

    `over` says over which rows each aggregate in it is made, where they are not those of a group.
    """
    one = Whole(1)
    row: Scalar = one if value.argument is None else Named(f"{value.name}t")
    if value.by is not None:
        row = Beside(Named(f"{value.name}b"), row)
    if value.filter is not None:
        row = Case(((Named(f"{value.name}f"), row),), closed=False)
    match value.function:
        case UnitFunction.ROWS | UnitFunction.VALUES:
            return over(Count() if row is one else Count(row))
        case UnitFunction.DISTINCT:
            assert value.argument is not None
            return over(DifferentValues(row, engine_type(value.argument)))
        case UnitFunction.SUM:
            total = over(Sum(row))
            if value.encoding is None:
                return total if wide else Cast(total, EngineType.INTEGER)
            return _number(value, total)
        case UnitFunction.AVERAGE:
            total = _number(value, over(Sum(row)))
            return TotalDivision("/", total, Cast(over(Count(row)), _NUMBER), _NUMBER, zero=True)
        case UnitFunction.LEAST:
            return over(EndOf("least", row))
        case UnitFunction.GREATEST:
            return over(EndOf("greatest", row))
        case UnitFunction.ANY_TRUE:
            return over(AnyTrue(row))
        case UnitFunction.ALL_TRUE:
            return over(AllTrue(row))
        case UnitFunction.QUANTILE:
            return Finite(over(Ranked("continuous", row, _part(value))))
        case UnitFunction.QUANTILE_DISCRETE:
            return over(Ranked("discrete", row, _part(value)))
        case UnitFunction.MODE:
            return over(MostOften(row))
        case UnitFunction.DEVIATION:
            return Finite(over(Ranked("deviation", row, Decimal("0.5"))))
        case UnitFunction.AT_LEAST:
            return OfPair(over(EndOf("least", row)))
        case UnitFunction.AT_GREATEST:
            return OfPair(over(EndOf("greatest", row)))
        case _:
            assert_never(value.function)


def _part(value: UnitValue) -> Decimal:
    """The part of the values, which has few digits: it was written so, or is one minus such a number."""
    assert value.fraction is not None
    return Decimal(value.fraction.numerator) / Decimal(value.fraction.denominator)


def _number(value: UnitValue, total: Scalar) -> Scalar:
    """The sum of integers as a number: of steps, where the values are numbers themselves."""
    return Cast(total, _NUMBER) if value.encoding is None else NumberOf(total, value.encoding.step)
