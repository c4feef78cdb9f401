"""The aggregate calls of a private block: where they are in its tree, and the typed aggregates that they mean."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType
from privacy.statistic_kind import StatisticKind
from sql_rewrite.aggregates import BY_NAME, called
from sql_rewrite.expressions import ColumnRef, Expression, form_of
from sql_rewrite.filled import fill
from sql_rewrite.functions import cast
from sql_rewrite.hints import AGGREGATES, REASONS, instead_of, listed
from sql_rewrite.levels import GROUPINGS
from sql_rewrite.lift_difference import difference, microseconds_of
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.operands import operands_of
from sql_rewrite.plan import Aggregate
from sql_rewrite.predicates import normal_predicate
from sql_rewrite.quantile_calls import QuantileReader, is_quantile
from sql_rewrite.quantile_moments import MOMENTS, Shown, seconds_of, since_start
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import consume, kinds_of, rendered
from sql_rewrite.text import Text
from sql_rewrite.tuples import as_one

__all__ = ["NESTED", "AggregateReader", "aggregate_calls", "aggregate_form", "counts_rows", "is_histogram", "is_mode"]

_NO_NUMBER: dict[ColumnType, tuple[str, ...]] = {
    ColumnType.BOOLEAN: ("COUNT(*) FILTER (WHERE {p}) counts", "AVG(CASE WHEN {p} THEN 1 ELSE 0 END) is the share"),
    ColumnType.DATE: ("AVG(GREATEST(<lowest>, LEAST(date_diff('day', DATE '2024-01-01', {d}), <highest>)))",),
    ColumnType.TIMESTAMP: (
        "AVG(GREATEST(<lowest>, LEAST(date_diff('day', TIMESTAMP '2024-01-01 00:00:00', {d}), <highest>)))",
    ),
}
"""What to write instead of summing what is non-numeric."""


NESTED = (exp.Query, exp.Subquery)
"""Queries inside a block's expressions, which are not part of it."""

_APPROXIMATE = "approx_count_distinct"
"""What counts different values about, and here as exactly as noise lets it."""

_WITHOUT_CALLS = kinds_of(*NESTED, exp.Column, exp.Literal, exp.Identifier)
_MAY_BE_CALLS = (exp.AggFunc, exp.Anonymous)
_AROUND_CALLS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
_AROUND = kinds_of(*_AROUND_CALLS, exp.WithinGroup, exp.Window)


def counts_rows(aggregate: Aggregate) -> bool:
    """Whether an aggregate is zero exactly in groups without a row."""
    of_values = aggregate.function.statistic.described.of_values
    return not of_values and aggregate.argument is None and aggregate.filter is None


def aggregate_calls(nodes: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The aggregate calls of the core in some nodes, except window functions and nested queries."""
    calls: list[exp.Expr] = []
    if not [node for node in nodes if node.find(*_MAY_BE_CALLS) is not None]:
        return calls
    stack = [(node, False) for node in reversed(nodes)]
    while stack:
        node, own_of_window = stack.pop()
        kind = type(node)
        if kind in _WITHOUT_CALLS:
            continue
        if kind not in _AROUND:
            if not own_of_window and _is_aggregate(node):
                calls.append(node)
            else:
                stack += [(child, False) for child in node.iter_expressions()][::-1]
            continue
        inner = node.this if isinstance(node, exp.Filter) else node
        within = isinstance(inner, exp.WithinGroup) and (is_quantile(inner) or is_mode(inner))
        inner = inner.this if within else inner
        if not own_of_window and _is_aggregate(inner):
            calls.append(node)
            continue
        window_function = node.this if isinstance(node, exp.Window) else None
        if own_of_window and isinstance(node, _AROUND_CALLS):
            window_function = node.this
        stack += [(child, child is window_function) for child in node.iter_expressions()][::-1]
    return calls


def is_mode(call: exp.Expr) -> bool:
    """Whether a call, with its FILTER, asks for the most frequent value (modes.py)."""
    node = call.this if isinstance(call, exp.Filter) else call
    return isinstance(node.this if isinstance(node, exp.WithinGroup) else node, exp.Mode)


def is_histogram(node: exp.Expr) -> bool:
    """Whether a call asks for the counts of all values, or of bins of them (apart.py)."""
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == "histogram" and bool(node.expressions)


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in BY_NAME or is_histogram(node)
    return isinstance(node, exp.AggFunc) and not isinstance(node, GROUPINGS)


def aggregate_form(aggregate: Aggregate) -> str:
    """A string that is equal for equal aggregates."""
    form: tuple[object, ...] = aggregate.function.value, form_of(aggregate.argument), form_of(aggregate.filter)
    if aggregate.second is not None:
        return repr((*form, form_of(aggregate.second)))
    form = (*form, "distinct") if aggregate.distinct else form
    return repr(form if aggregate.fraction is None else (*form, str(aggregate.fraction)))


def _spelled_so(text: Text, node: exp.ApproxDistinct) -> bool:
    """Whether it is written as in DuckDB: the parser reads names of other systems as the same node."""
    return (text.spelled(node) or "").removesuffix("()").lower() in ("", _APPROXIMATE)


class AggregateReader:
    """Reads the aggregate calls of one block."""

    def __init__(self, text: Text, lifter: ExpressionLift) -> None:
        self._text = text
        self._lifter = lifter
        self.counted: dict[int, Expression] = {}
        """What COUNT(x) counts, by the identity of its node: where x is never NULL the aggregate counts rows."""
        self.moments: dict[int, Shown] = {}
        """What the numbers of calls are shown as, where they are of moments or intervals, by the call's identity."""
        self._quantiles = QuantileReader(text, lifter)

    def condition(self, node: exp.Expr, clause: str) -> Expression:
        """A condition of a clause, which must be true or false. Errors: Refused."""
        condition = self._lifter.lift(node)
        if condition.type is not ColumnType.BOOLEAN:
            raise refuse(
                "unsupported_type",
                f"{clause} is refused",
                "Its condition is not true or false.",
                "write a comparison",
                position=self._text.position(node),
            )
        return condition

    def _listed(self, node: exp.Expr) -> tuple[str, ...]:
        about = self._lifter.about(node)
        return ("group by it, and COUNT(*) counts each value",) if about is None else (listed(about),)

    def read(self, call: exp.Expr) -> Aggregate:
        """The aggregate of a call, with its FILTER. Errors: Refused."""
        text, position = self._text, self._text.position(call)
        condition: Expression | None = None
        node = call
        if isinstance(call, exp.Filter):
            consume(call, "this", "expression", text=text, what="FILTER")
            node = call.this
            clause = call.expression
            consume(clause, "this", text=text, what="FILTER")
            condition = self.condition(clause.this, "FILTER")
        described = position.text if position else rendered(node)
        fraction: Fraction | None = None
        second: Expression | None = None
        distinct = False
        if is_quantile(node):
            function, operand, fraction = self._quantiles.read(node)
            argument: Expression | None = self._value(node, function, operand)
            if argument is not None and argument.type in MOMENTS:
                self.moments[id(node)] = argument.type
                argument = self._lifter.value(since_start(operand, argument.type))
        else:
            function, argument, distinct, second = self._function(node)
        if isinstance(node, exp.CountIf):
            count_if = self.condition(node.this, text.spelled(node) or "COUNT_IF")
            condition = count_if if condition is None else self._lifter.make(node, "and", condition, count_if)
        if function is AggregateFunction.PRESENT:
            wanted = self.condition(node.this, text.spelled(node) or "BOOL_OR")
            if isinstance(node, exp.LogicalAnd):
                wanted = self._lifter.make(node, "not", wanted)
            condition = wanted if condition is None else self._lifter.make(node, "and", condition, wanted)
        return Aggregate(
            name="", function=function, argument=argument, filter=normal_predicate(condition), position=position,
            text=described[:120], distinct=distinct, second=second, fraction=fraction,
        )  # fmt: skip

    def _function(self, node: exp.Expr) -> tuple[AggregateFunction, Expression | None, bool, Expression | None]:
        """The function of a call, its argument, whether each different value of that counts once, and a second one."""
        text = self._text
        if isinstance(node, exp.CountIf):
            consume(node, "this", text=text, what="COUNT_IF")
            return AggregateFunction.ROWS, None, False, None
        if isinstance(node, exp.LogicalOr | exp.LogicalAnd):
            consume(node, "this", text=text, what=text.spelled(node) or "BOOL_OR")
            return AggregateFunction.PRESENT, None, False, None
        if isinstance(node, exp.ApproxDistinct) and _spelled_so(text, node):
            consume(node, "this", text=text, what=_APPROXIMATE.upper())
            return *self._counted_once(node.this), None
        if isinstance(node, exp.Count):
            consume(node, "this", "big_int", text=text, what="COUNT")
            return *self._count(node), None
        found = called(node)
        if found is None:
            name = text.spelled(node) or f"{rendered(node).partition('(')[0].lower()[:60]}()"
            raise refuse(
                "unsupported_function",
                f"{name} of private rows is refused",
                REASONS.get(name.removesuffix("()").lower(), "It is not answered yet, or has no proved bound."),
                *instead_of(name, AGGREGATES, self._lifter.about(node), operands_of(self._lifter, node)),
                position=text.position(node),
            )
        function, operands = found
        if not isinstance(node, exp.Anonymous):
            slots = ("this", "expression") if function.described.of_pairs else ("this",)
            consume(node, *slots, text=text, what=type(node).__name__.upper())
        distinct = isinstance(operands[0], exp.Distinct)
        arguments = [self._number(node, function, operand) for operand in operands]
        if function.described.symmetric:
            arguments.sort(key=lambda argument: repr(form_of(argument)))
        return function, arguments[0], distinct, arguments[1] if len(arguments) > 1 else None

    def _number(self, node: exp.Expr, function: AggregateFunction, operand: exp.Expr) -> Expression:
        text = self._text
        if isinstance(operand, exp.Distinct):
            operand = self._different(node, operand)
            if not function.described.distinct:
                raise refuse(
                    "unsupported_sql",
                    f"DISTINCT inside {text.spelled(node) or 'an aggregate'} is refused",
                    "It is answered in counts, sums, averages and variances only.",
                    "leave DISTINCT out",
                    position=text.position(node),
                )
        return self._value(node, function, operand)

    def _of_no_number(self, node: exp.Expr, function: AggregateFunction, kind: ColumnType) -> tuple[str, ...]:
        """What to write instead of an aggregate of what is non-numeric."""
        if kind is ColumnType.TEXT:
            return self._listed(node)
        given = operands_of(self._lifter, node)
        return tuple(fill(line, given) for line in _NO_NUMBER.get(kind, ()))

    def _value(self, node: exp.Expr, function: AggregateFunction, operand: exp.Expr) -> Expression:
        """The argument of an aggregate of values. Errors: Refused."""
        text = self._text
        ranked = function.statistic is StatisticKind.RANKS
        if (ranked or function is AggregateFunction.AVERAGE) and difference(self._lifter, operand) is not None:
            self.moments[id(node)] = "interval"
            operand = seconds_of(operand)
        argument = self._lifter.value(operand)
        if function is AggregateFunction.AVERAGE and argument.type in MOMENTS:
            self.moments[id(node)] = argument.type
            argument = self._lifter.value(since_start(operand, argument.type))
        if argument.type is ColumnType.BOOLEAN and function is AggregateFunction.SUM:
            argument = cast(argument, ColumnType.INTEGER)
        if argument.type not in function.arguments:
            raise refuse(
                "unsupported_type",
                f"{text.spelled(node) or 'an aggregate'} is refused",
                f"Its argument is of type {argument.type.value}, not a number.",
                *self._of_no_number(node, function, argument.type),
                position=text.position(node),
            )
        return argument

    def _different(self, node: exp.Expr, operand: exp.Distinct) -> exp.Expr:
        """The one expression whose different values are meant. Errors: Refused."""
        consume(operand, "expressions", text=self._text, what="DISTINCT")
        if len(operand.expressions) == 1:
            found: exp.Expr = operand.expressions[0]
            return found
        raise refuse(
            "unsupported_sql",
            f"DISTINCT of several expressions inside {self._text.spelled(node) or 'an aggregate'} is refused",
            "Different values of one expression are counted.",
            *self._one_text(node),
            position=self._text.position(node),
        )

    def _one_text(self, node: exp.Expr) -> tuple[str, ...]:
        """The different values of several expressions as those of one text."""
        given = operands_of(self._lifter, node)
        if not isinstance(node, exp.Count):
            return ("write one expression",)
        if len(given) < 2 or any(one.type is ColumnType.NUMBER for one in given):
            return ("write them in brackets, numbers with a fraction rounded: different combinations are then counted",)
        return (f"COUNT(DISTINCT ({', '.join(one.sql for one in given)})) counts different combinations",)

    def _counted_once(self, operand: exp.Expr) -> tuple[AggregateFunction, Expression | None, bool]:
        """A count of different values; of the key of the privacy unit a count of units."""
        moments = difference(self._lifter, operand)
        if moments is not None:
            return AggregateFunction.VALUES, microseconds_of(self._lifter, operand, moments), True
        argument = self._lifter.lift(as_one(operand, self._lifter))
        if isinstance(argument, ColumnRef) and argument.is_unit:
            return AggregateFunction.UNITS, None, False
        return AggregateFunction.VALUES, argument, True

    def _count(self, node: exp.Count) -> tuple[AggregateFunction, Expression | None, bool]:
        operand = node.this
        if operand is None or isinstance(operand, exp.Star):
            if isinstance(operand, exp.Star):
                consume(operand, text=self._text, what="COUNT(*)")
            return AggregateFunction.ROWS, None, False
        if isinstance(operand, exp.Distinct):
            return self._counted_once(self._different(node, operand))
        if difference(self._lifter, operand) is not None:
            operand = seconds_of(operand)
        argument = self.counted[id(node)] = self._lifter.lift(operand)
        if argument.nullable:
            return AggregateFunction.VALUES, argument, False
        return AggregateFunction.ROWS, None, False
