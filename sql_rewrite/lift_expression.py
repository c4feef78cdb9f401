"""Scalar expressions of the core: syntax tree to typed nodes, completely or not at all.

Each class of syntax node has one reader that names every slot it understands (`consume`); a node without a reader
is refused by name. Readers return nodes of `expressions`, whose operators are all total.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from sqlglot import exp

from privacy.policy import ColumnType
from privacy.refusal import Finding, Refused
from sql_rewrite import lift_call, lift_clock, lift_constant, lift_interval, lift_operator, width_buckets
from sql_rewrite.declared_literals import COMPARED, outside_declaration
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, describe, walk
from sql_rewrite.filled import fill
from sql_rewrite.functions import TypeRefused, build, clip_columns
from sql_rewrite.hints import About
from sql_rewrite.lift_call import NAMES
from sql_rewrite.lift_constant import moment
from sql_rewrite.lift_refusal import unread, worded
from sql_rewrite.lifter import Lifter, ParameterValue, Reader, bare
from sql_rewrite.null_extremes import EXTREMES, null_extremes
from sql_rewrite.operands import operands_of
from sql_rewrite.refuse import refuse
from sql_rewrite.spelling import named
from sql_rewrite.syntax import consume
from sql_rewrite.text import Text

__all__ = ["ExpressionLift", "Member"]

Resolver = Callable[[exp.Column], Expression]

Member = Callable[["ExpressionLift", exp.Expr], Expression | None]
"""Reads nested queries in expressions (sql_rewrite/membership.py); None for what it does not read."""

_DATES = (ColumnType.DATE, ColumnType.TIMESTAMP)
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "is_not_distinct_from", "is_distinct_from"})


def _column(lifter: Lifter, node: exp.Expr) -> Expression:
    assert isinstance(node, exp.Column)
    consume(node, "this", "table", text=lifter.text, what="a column reference")
    return lifter.column(node)


def _paren(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", text=lifter.text, what="a bracket")
    return lifter.lift(node.this)


_READERS: Mapping[type[exp.Expr], Reader] = {
    exp.Column: _column,
    exp.Paren: _paren,
    **lift_constant.READERS,
    **width_buckets.READERS,
    **lift_operator.READERS,
    **lift_interval.READERS,
    **lift_call.READERS,
    **lift_clock.READERS,
}


_AS_THEY_ARE = frozenset(
    kind for kind in _READERS if not issubclass(kind, (exp.Null, exp.Func, exp.In, exp.Exists, exp.Subquery))
)
"""What is read without another look: no call, and nothing with a query."""


class ExpressionLift:
    """Reads scalar expressions of one SELECT block against its sources.

    `resolve` turns a column node into what it stands for or refuses; `parameters` are the named parameters of the
    request. `tables` are the names of the relations' tables, and `joins_to` how a public table is joined to them, for
    what a refusal says instead. Depends on the text and
    the public metadata only. `warnings` grows with what was lifted.
    """

    def __init__(
        self,
        text: Text,
        resolve: Resolver,
        parameters: Mapping[str, ParameterValue],
        tables: Mapping[str, str] = MappingProxyType({}),
        joins_to: Callable[[str], tuple[str, ...] | None] = lambda table: None,
        member: Member | None = None,
    ) -> None:
        self.text = text
        self.column = resolve
        self.parameters = parameters
        self._tables = tables
        self.joins_to = joins_to
        self._member = member
        self.warnings: list[Finding] = []

    def lift(self, node: exp.Expr, *, like: Expression | None = None) -> Expression:
        """The typed form of a node. `like` is a sibling whose type an untyped NULL takes.

        Errors: Refused (unsupported_sql, unsupported_function, unsupported_type, volatile_function, ...).
        """
        kind = type(node)
        if kind in _AS_THEY_ARE:
            return _READERS[kind](self, node)
        if isinstance(node, exp.Null):
            return Literal(None, like.type if like is not None else ColumnType.INTEGER)
        if isinstance(node, exp.Func) and node.args.get("this") is None and node.arg_types.get("this"):
            raise refuse(
                "unsupported_function",
                f"{self.text.spelled(node) or worded(node)} is refused",
                "An argument is missing.",
                position=self.text.position(node),
            )
        if self._member is not None and isinstance(node, exp.In | exp.Exists | exp.Subquery):
            nested = not isinstance(node, exp.In) or node.args.get("query") is not None
            found = self._member(self, node) if nested else None
            if found is not None:
                return found
        reader = _READERS.get(kind)
        if reader is None:
            raise unread(self, node)
        return reader(self, node)

    def nested(self, node: exp.Expr) -> Expression | None:
        """What a node with a nested query in it stands for, None where it is not read as one. Errors: Refused."""
        return None if self._member is None else self._member(self, node)

    def make(self, node: exp.Expr, operator: str, *arguments: Expression) -> Expression:
        """Builds an operator and gives its refusal a place in the text."""
        try:
            made = self._build(operator, arguments)
        except TypeRefused as refusal:
            raise Refused(
                [
                    replace(
                        refusal.finding,
                        what=self._as_written(node, refusal.finding.what),
                        instead=self._compared(node, operator, arguments) or self._filled(node, refusal.finding),
                        position=self.text.position(node),
                    )
                ]
            ) from None
        if operator in COMPARED:
            self.warnings.extend(outside_declaration(operator, arguments, partial(self.text.position, node)))
        elif operator in EXTREMES:
            place = partial(self.text.position, node)
            around = node.parent
            while isinstance(around, exp.Paren):
                around = around.parent
            clips = isinstance(around, exp.Least | exp.Greatest | exp.Coalesce)
            self.warnings.extend(
                null_extremes(operator, arguments, partial(operands_of, self, node), place, clips=clips)
            )
        return made

    def _build(self, operator: str, arguments: Sequence[Expression]) -> Expression:
        return build(operator, arguments)

    def _filled(self, node: exp.Expr, finding: Finding) -> tuple[str, ...]:
        """The advice of an operator, with the operands that the analyst wrote."""
        if not any("{" in line for line in finding.instead):
            return finding.instead
        given = operands_of(self, node)
        return tuple(fill(line, given) for line in finding.instead)

    def _compared(self, node: exp.Expr, operator: str, arguments: Sequence[Expression]) -> tuple[str, ...]:
        """What to write instead of a comparison of two kinds of values, where one of them shows what was meant."""
        years = _years(operator, arguments)
        if not years:
            return _compared(operator, arguments)
        dated = [self._named(node, part) if part.type in _DATES else describe(part) for part in arguments]
        kinds = [part.type in _DATES for part in arguments]
        numbers = iter(years)
        pairs = list(zip(kinds, dated, strict=True))
        return tuple(
            f"{written[0]} IN ({', '.join(written[1:])})" if operator == "in" else f" {operator} ".join(written)
            for written in (
                [f"YEAR({name})" if date else name for date, name in pairs],
                [name if date else f"DATE '{next(numbers):04}-12-31'" for date, name in pairs],
            )
        )

    def _named(self, node: exp.Expr, date: Expression) -> str:
        """A date as the text names it, if it is a column."""
        for column in node.find_all(exp.Column):
            place = self.text.position(column)
            if place is not None and self.column(column) == date:
                return place.text
        return describe(date)

    def _as_written(self, node: exp.Expr, what: str) -> str:
        """What was refused, with the name that the analyst wrote when the operator's own forms do not have it."""
        written = self.text.spelled(node)
        if written is None or written.removesuffix("()").lower() in what.lower():
            return what
        form, quote, rest = what.removeprefix('"').partition('"')
        if what.startswith('"') and quote:
            return f'{written}, which is "{form}",{rest}'
        return f"{written}: {what}"

    def knows(self, node: exp.Func) -> bool:
        """Whether a function is read here, whatever its arguments are."""
        if isinstance(node, exp.Anonymous):
            return str(node.this).lower() in NAMES
        return type(node) in _READERS

    def refusal(self, node: exp.Expr) -> Refused:
        """The refusal of a construct that is not read here, by the name that the analyst wrote."""
        return unread(self, node)

    def value(self, node: exp.Expr) -> Expression:
        """An aggregate's argument: as `lift`, and with its columns clipped to their declared bounds where it must be.

        A sum clips every column that reaches its value anyway (`clip_columns`), so the range of a product is that of
        clipped columns: `age * age * age` stays small although a stored integer has 64 bits. What else is read, such
        as the condition of a CASE, sees stored values; where only clipping would keep that in range it is refused.
        """
        warned = len(self.warnings)
        try:
            return self.lift(node)
        except Refused as refused:
            if any(finding.code != "too_large" for finding in refused.findings):
                raise
            clipping = _Clipping(self.text, self.column, self.parameters, self._tables, self.joins_to, self._member)
            argument = clipping.lift(node)
            if _reads_clipped(argument):
                raise
            self.warnings[warned:] = clipping.warnings
            return argument

    def about(self, node: exp.Expr) -> About | None:
        """The column that a call was asked about, when it is one column (DISTINCT and ORDER BY apart)."""
        operand = node.this if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous) else None
        if isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
            operand = node.expressions[0]
        if isinstance(operand, exp.Distinct) and len(operand.expressions) == 1:
            operand = operand.expressions[0]
        if isinstance(operand, exp.Order):
            operand = operand.this
        if not isinstance(operand, exp.Column) or isinstance(operand.this, exp.Star):
            return None
        try:
            column = self.column(operand)
        except Refused:
            return None
        table = self._tables.get(column.relation) if isinstance(column, ColumnRef) else None
        if table is None or not isinstance(column, ColumnRef) or column.is_unit or column.shown:
            return None
        return About(named(column.name), column.type, named(table), column.declared)

    def siblings(self, nodes: Sequence[exp.Expr]) -> list[Expression]:
        """Lifts operands that must share a type: NULLs and text literals take the type of the others."""
        typed: list[Expression | None] = [
            None if isinstance(bare(node), exp.Null) else self.lift(node) for node in nodes
        ]
        pattern = next((e for e in typed if e is not None and not _is_text_literal(e)), None)
        pattern = pattern or next((e for e in typed if e is not None), None)
        known = [e for e in typed if e is not None]
        if len(known) == len(typed) and (pattern is None or pattern.type not in _DATES):
            return known
        result: list[Expression] = []
        for node, expression in zip(nodes, typed, strict=True):
            if expression is None:
                result.append(Literal(None, pattern.type if pattern is not None else ColumnType.INTEGER))
            else:
                result.append(self._adapt(node, expression, pattern))
        return result

    def _adapt(self, node: exp.Expr, expression: Expression, pattern: Expression | None) -> Expression:
        """Reads a text literal beside a date or a timestamp as that type, as the engine does."""
        if (
            pattern is not None
            and pattern.type in (ColumnType.DATE, ColumnType.TIMESTAMP)
            and isinstance(expression, Literal)
            and isinstance(expression.value, str)
        ):
            return moment(self, node, expression.value, pattern.type)
        return expression


class _Clipping(ExpressionLift):
    """Reads an argument of an aggregate with its columns clipped wherever the range of an operator needs it."""

    def _build(self, operator: str, arguments: Sequence[Expression]) -> Expression:
        try:
            return build(operator, arguments)
        except TypeRefused as refused:
            if refused.finding.code != "too_large":
                raise
            return build(operator, [clip_columns(argument) for argument in arguments])


def _reads_clipped(expression: Expression) -> bool:
    """Whether a condition, a text or a date in the expression is made of clipped columns."""
    values = (ColumnType.INTEGER, ColumnType.NUMBER)
    return any(
        isinstance(part, Call) and part.operator == "clip"
        for outer in walk(expression)
        if outer.type not in values
        for part in walk(outer)
    )


def _years(operator: str, arguments: Sequence[Expression]) -> list[int]:
    """The constants beside a date in a comparison, when all of them can be years."""
    numbers = [part for part in arguments if part.type not in _DATES]
    found = [part.value for part in numbers if isinstance(part, Literal) and isinstance(part.value, int)]
    plain = operator in ("=", "<>", "<", "<=", ">", ">=", "in") and len(found) == len(numbers) < len(arguments)
    return found if plain and all(0 < year < 10_000 for year in found) else []


def _compared(operator: str, arguments: Sequence[Expression]) -> tuple[str, ...]:
    """What to write instead of a comparison of two kinds of values, where one of them shows what was meant."""
    if operator not in (*_COMPARISONS, "in"):
        return ()
    types = {argument.type for argument in arguments}
    if ColumnType.BOOLEAN in types and len(types) > 1:
        return ("a truth value is a condition by itself: WHERE x, or WHERE NOT x",)
    texts = [a.value for a in arguments if isinstance(a, Literal) and isinstance(a.value, str)]
    if types & {ColumnType.INTEGER, ColumnType.NUMBER} and any(_reads_as_number(text) for text in texts):
        return ("write the number without quotes",)
    return ()


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_text_literal(expression: Expression) -> bool:
    return isinstance(expression, Literal) and isinstance(expression.value, str)
