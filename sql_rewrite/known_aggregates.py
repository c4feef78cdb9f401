"""Aggregates of rows that everybody knows, computed before anything runs.

    (SELECT AVG(beds) FROM hospitals WHERE region = 'North')        412.5

Claim. The value does not depend on the order of rows. Proof: each of these is a function of the numbers of equal
values. Counts and extremes are exact; sums, means, spreads and quantiles are computed in fractions and rounded once, to
the nearest double. (The engine rounds after each row, so that its last digits follow from the order.)

What depends on the order (FIRST, LIST, STRING_AGG), and where several values are as frequent (MODE), is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.described import ResultType
from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.aggregate_calls import AggregateReader
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import Expression, Value
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.quantile_calls import is_quantile
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import consume
from sql_rewrite.text import Text

__all__ = ["KnownAggregate", "known_aggregate"]

Row = Mapping[tuple[str, str], Value]
"""The values of a row, by relation and name of their columns."""

Number = int | float


@dataclass(frozen=True, slots=True)
class KnownAggregate:
    """A call of an aggregate: what it reads of a row, and what it makes of that. Without an argument it counts rows."""

    argument: Expression | None
    condition: Expression | None
    distinct: bool
    kind: ColumnType
    made: Callable[[list[Value]], Value]
    """What it is of the values that are not NULL."""

    @property
    def read(self) -> tuple[Expression, ...]:
        """What is computed of each row."""
        return tuple(part for part in (self.argument, self.condition) if part is not None)

    def of(self, rows: Iterable[Row]) -> Value:
        """Its value, NULL where there is none. The expressions are exact on these rows."""
        kept = [row for row in rows if self.condition is None or evaluate(self.condition, row) is True]
        if self.argument is None:
            return len(kept)
        values: list[Value] = [value for row in kept if (value := evaluate(self.argument, row)) is not None]
        try:
            found = self.made(list(dict.fromkeys(values)) if self.distinct else values)
        except OverflowError:  # beyond the greatest double: infinities are NULL here as everywhere
            return None
        if isinstance(found, float):
            return found + 0.0 if math.isfinite(found) else None  # of two zeros the one without a sign
        return found


def known_aggregate(call: exp.Expr, lifter: ExpressionLift, text: Text) -> KnownAggregate:
    """What a call is computed from. Errors: Refused."""
    reader = AggregateReader(text, lifter)
    node = call.this if isinstance(call, exp.Filter) else call
    if isinstance(node, exp.Min | exp.Max | exp.LogicalOr | exp.LogicalAnd):
        condition = None
        if isinstance(call, exp.Filter):
            consume(call, "this", "expression", text=text, what="FILTER")
            consume(call.expression, "this", text=text, what="FILTER")
            condition = reader.condition(call.expression.this, "FILTER")
        consume(node, "this", text=text, what=text.spelled(node) or type(node).__name__.upper())
        operand = node.this
        if isinstance(operand, exp.Distinct) and len(operand.expressions) == 1:
            operand = operand.expressions[0]  # the extreme of different values is that of all of them
        if isinstance(node, exp.Min | exp.Max):
            argument = lifter.lift(operand)
            return KnownAggregate(argument, condition, distinct=False, kind=argument.type, made=_EXTREMES[type(node)])
        argument = reader.condition(operand, text.spelled(node) or "BOOL_OR")
        return KnownAggregate(argument, condition, distinct=False, kind=ColumnType.BOOLEAN, made=_TRUTHS[type(node)])
    if not (isinstance(node, exp.Count | exp.CountIf | exp.WithinGroup) or type(node) in _READ or is_quantile(node)):
        raise _refused(call, text)
    aggregate = reader.read(call)
    made = _MADE.get(aggregate.function)
    if made is None or reader.moments or aggregate.second is not None:
        raise _refused(call, text)
    whole = aggregate.function.described.result is ResultType.WHOLE
    kept = aggregate.function.described.result is ResultType.ARGUMENT and aggregate.argument is not None
    kind = ColumnType.INTEGER if whole else ColumnType.NUMBER
    if kept and aggregate.argument is not None:
        kind = aggregate.argument.type
    fraction = aggregate.fraction or Fraction(0)
    return KnownAggregate(
        aggregate.argument, aggregate.filter, aggregate.distinct, kind, lambda values: made(values, fraction)
    )


def _refused(call: exp.Expr, text: Text) -> Refused:
    node = call.this if isinstance(call, exp.Filter) else call
    return refuse(
        "unsupported_function",
        f"{text.spelled(node) or 'an aggregate'} of public rows is refused here",
        "Beside rows about people it is computed beforehand, whatever the order of the rows is: counts, sums, "
        "averages, variances, quantiles, extremes and BOOL_OR are.",
        "ask the query of public tables by itself, which is free, and write its value (or $name, a parameter) here",
        position=text.position(call),
    )


def _numbers(values: Sequence[Value]) -> list[Number]:
    return [value for value in values if isinstance(value, int | float)]


def _total(values: Sequence[Number]) -> Fraction | int:
    whole = [value for value in values if isinstance(value, int)]
    return sum(whole) if len(whole) == len(values) else sum(map(Fraction, values), Fraction())


def _count(values: list[Value], _: Fraction) -> Value:
    return len(values)


def _sum(values: list[Value], _: Fraction) -> Value:
    if not values:
        return None
    total = _total(_numbers(values))
    return total if isinstance(total, int) else float(total)


def _average(values: list[Value], _: Fraction) -> Value:
    return float(Fraction(_total(_numbers(values))) / len(values)) if values else None


def _variance(values: list[Value], fewer: int) -> Fraction | None:
    numbers = list(map(Fraction, _numbers(values)))
    if len(numbers) <= fewer:
        return None
    mean = sum(numbers, Fraction()) / len(numbers)
    return sum(((number - mean) ** 2 for number in numbers), Fraction()) / (len(numbers) - fewer)


def _spread(fewer: int, *, root: bool) -> Callable[[list[Value], Fraction], Value]:
    def made(values: list[Value], _: Fraction) -> Value:
        found = _variance(values, fewer)
        if found is None:
            return None
        return math.sqrt(found) if root else float(found)

    return made


def _quantile(values: list[Value], part: Fraction) -> Value:
    """Between the two values around the place, as far as that lies between them."""
    if not values:
        return None
    ordered = sorted(map(Fraction, _numbers(values)))
    place = (len(ordered) - 1) * part
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return float(low + (high - low) * (place - math.floor(place)))


def _quantile_discrete(values: list[Value], part: Fraction) -> Value:
    """The least value that this part of the rows does not exceed."""
    if not values:
        return None
    return sorted(_numbers(values))[max(1, math.ceil(len(values) * part)) - 1]


_MADE: Mapping[AggregateFunction, Callable[[list[Value], Fraction], Value]] = {
    AggregateFunction.VALUES: _count,
    AggregateFunction.ROWS: _count,
    AggregateFunction.SUM: _sum,
    AggregateFunction.AVERAGE: _average,
    AggregateFunction.VARIANCE_POPULATION: _spread(0, root=False),
    AggregateFunction.VARIANCE_SAMPLE: _spread(1, root=False),
    AggregateFunction.DEVIATION_POPULATION: _spread(0, root=True),
    AggregateFunction.DEVIATION_SAMPLE: _spread(1, root=True),
    AggregateFunction.QUANTILE: _quantile,
    AggregateFunction.QUANTILE_DISCRETE: _quantile_discrete,
}

_READ = (exp.Sum, exp.Avg, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop, exp.StddevSamp)

_EXTREMES: Mapping[type[exp.Expr], Callable[[list[Value]], Value]] = {
    exp.Min: lambda values: min(values, default=None),  # type: ignore[type-var]
    exp.Max: lambda values: max(values, default=None),  # type: ignore[type-var]
}

_TRUTHS: Mapping[type[exp.Expr], Callable[[list[Value]], Value]] = {
    exp.LogicalOr: lambda values: True in values if values else None,
    exp.LogicalAnd: lambda values: False not in values if values else None,
}
