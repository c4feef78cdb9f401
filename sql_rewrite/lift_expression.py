"""Scalar expressions of the core: syntax tree to typed nodes, completely or not at all.

Each class of syntax node has one reader that names every slot it understands (`consume`); a node without a reader
is refused by name. Readers return nodes of `expressions`, whose operators are all total.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from sqlglot import exp

from privacy.policy import ColumnType
from privacy.refusal import Finding, Position, Refused
from sql_rewrite.declared_literals import outside_declaration
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, walk
from sql_rewrite.functions import TypeRefused, build, clip_columns
from sql_rewrite.hints import AGGREGATES, FUNCTIONS, About, instead_of
from sql_rewrite.spelling import named
from sql_rewrite.syntax import IN_LIST_MAX, Text, consume, refuse, rendered

__all__ = ["ExpressionLift", "ParameterValue", "check_parameter", "literal_value", "missing_parameter"]

ParameterValue = str | int | float | bool | None | Fraction
Resolver = Callable[[exp.Column], ColumnRef]

_BINARY: dict[type[exp.Expr], str] = {
    exp.And: "and",
    exp.Or: "or",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "is_not_distinct_from",
    exp.NullSafeNEQ: "is_distinct_from",
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Mod: "modulo",
    exp.IntDiv: "integer_divide",
}
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "is_not_distinct_from", "is_distinct_from"})

_UNARY: dict[type[exp.Expr], str] = {
    exp.Not: "not",
    exp.Neg: "negate",
    exp.Abs: "abs",
    exp.Sign: "sign",
    exp.Sqrt: "sqrt",
    exp.Ln: "ln",
    exp.Exp: "exp",
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Length: "length",
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfWeek: "day_of_week",
    exp.DayOfWeekIso: "day_of_week_iso",
    exp.DayOfYear: "day_of_year",
    exp.Week: "week",
    exp.WeekOfYear: "week",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.Dayname: "dayname",
    exp.Monthname: "monthname",
    exp.TimeToUnix: "epoch",
}

_DATE_PARTS = {
    "YEAR": "year",
    "YEARS": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "MONTHS": "month",
    "DAY": "day",
    "DAYS": "day",
    "DOW": "day_of_week",
    "DAYOFWEEK": "day_of_week",
    "ISODOW": "day_of_week_iso",
    "DOY": "day_of_year",
    "DAYOFYEAR": "day_of_year",
    "WEEK": "week",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
    "EPOCH": "epoch",
}

_TYPES: dict[Any, ColumnType] = {
    exp.DataType.Type.TINYINT: ColumnType.INTEGER,
    exp.DataType.Type.SMALLINT: ColumnType.INTEGER,
    exp.DataType.Type.INT: ColumnType.INTEGER,
    exp.DataType.Type.BIGINT: ColumnType.INTEGER,
    exp.DataType.Type.FLOAT: ColumnType.NUMBER,
    exp.DataType.Type.DOUBLE: ColumnType.NUMBER,
    exp.DataType.Type.VARCHAR: ColumnType.TEXT,
    exp.DataType.Type.TEXT: ColumnType.TEXT,
    exp.DataType.Type.BOOLEAN: ColumnType.BOOLEAN,
    exp.DataType.Type.DATE: ColumnType.DATE,
    exp.DataType.Type.TIMESTAMP: ColumnType.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPNTZ: ColumnType.TIMESTAMP,
}

_VOLATILE = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.Rand, exp.Uuid)
_VOLATILE_NAMES = frozenset(
    [
        "now",
        "today",
        "random",
        "rand",
        "setseed",
        "uuid",
        "gen_random_uuid",
        "nextval",
        "currval",
        "current_setting",
        "getvariable",
        "txid_current",
        "current_query",
        "current_user",
        "current_schema",
        "current_schemas",
        "current_database",
        "get_current_time",
        "get_current_timestamp",
        "transaction_timestamp",
        "localtime",
        "localtimestamp",
        "current_localtimestamp",
        "version",
    ]
)


class ExpressionLift:
    """Reads scalar expressions of one SELECT block against its sources.

    `resolve` turns a column node into a typed reference or refuses; `parameters` are the named parameters of the
    request. `tables` are the names of the relations' tables, for what a refusal says instead. Depends on the text and
    the public metadata only. `warnings` grows with what was lifted.
    """

    def __init__(
        self,
        text: Text,
        resolve: Resolver,
        parameters: Mapping[str, ParameterValue],
        tables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._text = text
        self._resolve = resolve
        self._parameters = parameters
        self._tables = tables
        self.warnings: list[Finding] = []

    def lift(self, node: exp.Expr, *, like: Expression | None = None) -> Expression:
        """The typed form of a node. `like` is a sibling whose type an untyped NULL takes.

        Errors: Refused (unsupported_sql, unsupported_function, unsupported_type, volatile_function, ...).
        """
        if isinstance(node, exp.Null):
            return Literal(None, like.type if like is not None else ColumnType.INTEGER)
        if isinstance(node, exp.Func) and node.args.get("this") is None and node.arg_types.get("this"):
            raise refuse(
                "unsupported_function",
                f"{self._text.spelled(node) or _named(node)} is refused",
                "An argument is missing.",
                position=self._text.position(node),
            )
        reader = _READERS.get(type(node))
        if reader is not None:
            return reader(self, node)
        if type(node) in _BINARY:
            return self._binary(node, _BINARY[type(node)])
        if type(node) in _UNARY:
            consume(node, "this", "big_int", text=self._text, what=_named(node))
            return self.make(node, _UNARY[type(node)], self.lift(node.this))
        raise self._unknown(node)

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
                        instead=_compared(operator, arguments) or refusal.finding.instead,
                        position=self._text.position(node),
                    )
                ]
            ) from None
        self.warnings.extend(outside_declaration(operator, arguments, self._text.position(node)))
        return made

    def _build(self, operator: str, arguments: Sequence[Expression]) -> Expression:
        return build(operator, arguments)

    def _as_written(self, node: exp.Expr, what: str) -> str:
        """What was refused, with the name that the analyst wrote when the operator's own forms do not have it."""
        written = self._text.spelled(node)
        if written is None or written.removesuffix("()").lower() in what.lower():
            return what
        form, quote, rest = what.removeprefix('"').partition('"')
        if what.startswith('"') and quote:
            return f'{written}, which is "{form}",{rest}'
        return f"{written}: {what}"

    def knows(self, node: exp.Func) -> bool:
        """Whether a function is read here, whatever its arguments are."""
        if isinstance(node, exp.Anonymous):
            return str(node.this).lower() in _ANONYMOUS
        return type(node) in _READERS or type(node) in _BINARY or type(node) in _UNARY

    def refusal(self, node: exp.Expr) -> Refused:
        """The refusal of a construct that is not read here, by the name that the analyst wrote."""
        return self._unknown(node)

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
            clipping = _Clipping(self._text, self._resolve, self._parameters, self._tables)
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
            column = self._resolve(operand)
        except Refused:
            return None
        table = self._tables.get(column.relation)
        if table is None or column.is_unit:
            return None
        return About(named(column.name), column.type, named(table))

    def siblings(self, nodes: list[exp.Expr]) -> list[Expression]:
        """Lifts operands that must share a type: NULLs and text literals take the type of the others."""
        typed: list[Expression | None] = [
            None if isinstance(_bare(node), exp.Null) else self.lift(node) for node in nodes
        ]
        pattern = next((e for e in typed if e is not None and not _is_text_literal(e)), None)
        pattern = pattern or next((e for e in typed if e is not None), None)
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
            return self._moment(node, expression.value, pattern.type)
        return expression

    def _moment(self, node: exp.Expr, value: str, type_: ColumnType) -> Literal:
        """A date or timestamp literal. A text with a time beside a date column becomes a timestamp."""
        try:
            if type_ is ColumnType.DATE:
                return Literal(datetime.date.fromisoformat(value.strip()), ColumnType.DATE)
        except ValueError:
            type_ = ColumnType.TIMESTAMP
        try:
            moment = datetime.datetime.fromisoformat(value.strip())
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is not None:
            raise refuse(
                "unsupported_type",
                "a text beside a date is refused",
                "It is not a date like 2024-12-31 or a time like 2024-12-31 23:59:59 without a zone.",
                "DATE '2024-12-31'",
                position=self._text.position(node),
            )
        return Literal(moment, ColumnType.TIMESTAMP)

    def _binary(self, node: exp.Expr, operator: str) -> Expression:
        consume(node, "this", "expression", text=self._text, what=_named(node))
        if operator in ("and", "or"):
            parts = _flatten(node)
            return self.make(node, operator, *[self.lift(part) for part in parts])
        left, right = self.siblings([node.this, node.expression])
        return self.make(node, operator, left, right)

    def _unknown(self, node: exp.Expr) -> Refused:
        if isinstance(node, exp.IgnoreNulls | exp.RespectNulls) and isinstance(node.this, exp.Func):
            node = node.this
        position = self._text.position(node)
        name = self._text.spelled(node) or self._text.operator(node) or _named(node)
        if isinstance(node, _VOLATILE) or name.removesuffix("()").lower() in _VOLATILE_NAMES:
            return self._volatile(name, node)
        if isinstance(node, exp.Query | exp.Subquery | exp.Exists):
            return refuse(
                "correlated_subquery",
                "a subquery inside the private part is refused",
                "Only aggregates, columns and scalar functions are answered there.",
                "ask for its number in a query of its own, and write it (or $name, a parameter) in its place",
                "to count people with such rows, count different units (COUNT(DISTINCT unit)) in the table of the rows",
                position=position,
            )
        if isinstance(node, exp.Window):
            return refuse(
                "private_row_limit",
                "a window function on private rows is refused",
                "It couples rows of different people.",
                "use the window on released numbers, in a query around the aggregation",
                position=position,
            )
        if isinstance(node, exp.AggFunc):
            return refuse(
                "unsupported_function",
                f"{name} is refused here",
                "An aggregate stands where a value of one row is expected, or is not answered.",
                *instead_of(name, f"{AGGREGATES}, outside WHERE and GROUP BY", self.about(node)),
                position=position,
            )
        if isinstance(node, exp.Func):
            return refuse(
                "unsupported_function",
                f"{name} is refused",
                "It is not in the list of functions that are proved to give a value for every row.",
                *instead_of(name, FUNCTIONS, self.about(node)),
                position=position,
            )
        if isinstance(node, exp.Interval):
            return refuse(
                "unsupported_sql",
                "INTERVAL is refused",
                "Adding to dates is not answered yet.",
                "write the date itself, for instance DATE '2024-12-31'",
                "date_diff('day', a, b) < 30",
                position=position or self._text.position(node.parent),
            )
        return refuse(
            "unsupported_sql",
            f"{name} is refused",
            "This construct has no proved meaning in the private part of a query.",
            "see docs/sql.md for what is answered",
            position=position,
        )

    def _volatile(self, name: str, node: exp.Expr) -> Refused:
        return refuse(
            "volatile_function",
            f"{name} is refused",
            "Its value depends on the moment or the session, so equal queries would not be equal.",
            "write the value itself, for instance DATE '2024-12-31'",
            position=self._text.position(node),
        )

    # One reader per class of node. Each names the slots it reads.

    def _column(self, node: exp.Expr) -> Expression:
        assert isinstance(node, exp.Column)
        consume(node, "this", "table", text=self._text, what="a column reference")
        return self._resolve(node)

    def _paren(self, node: exp.Expr) -> Expression:
        consume(node, "this", text=self._text, what="a bracket")
        return self.lift(node.this)

    def _literal(self, node: exp.Expr) -> Expression:
        assert isinstance(node, exp.Literal)
        return self._typed(node, literal_value(node, self._text))

    def _boolean(self, node: exp.Expr) -> Expression:
        return Literal(bool(node.this), ColumnType.BOOLEAN)

    def _placeholder(self, node: exp.Expr) -> Expression:
        consume(node, "this", text=self._text, what="a parameter")
        name = node.this
        if not isinstance(name, str) or name not in self._parameters:
            raise missing_parameter(name, self._text)
        check_parameter(self._parameters[name], self._text.position(node))
        return self._typed(node, self._parameters[name])

    def _typed(self, node: exp.Expr, value: ParameterValue) -> Literal:
        if value is None:
            return Literal(None, ColumnType.INTEGER)
        if isinstance(value, bool):
            return Literal(value, ColumnType.BOOLEAN)
        if isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                raise self._number_too_large(node)
            return Literal(value, ColumnType.INTEGER)
        if isinstance(value, float | Fraction):
            number = float(value)
            if not -1e300 <= number <= 1e300:
                raise self._number_too_large(node)
            return Literal(number, ColumnType.NUMBER)
        if len(value) > 1_000:
            raise self._number_too_large(node)
        return Literal(value, ColumnType.TEXT)

    def _number_too_large(self, node: exp.Expr) -> Refused:
        return refuse(
            "too_large",
            "a literal is refused",
            "Numbers must fit 64 bits (or 1e300 with a fraction), texts 1,000 characters.",
            position=self._text.position(node),
        )

    def _negate(self, node: exp.Expr) -> Expression:
        consume(node, "this", text=self._text, what="a minus sign")
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            value = literal_value(node.this, self._text)
            assert isinstance(value, int | float)
            return self._typed(node, -value)
        return self.make(node, "negate", self.lift(node.this))

    def _divide(self, node: exp.Expr) -> Expression:
        consume(node, "this", "expression", "typed", "safe", text=self._text, what="a division")
        left, right = self.siblings([node.this, node.expression])
        return self.make(node, "divide", left, right)

    def _is(self, node: exp.Expr) -> Expression:
        consume(node, "this", "expression", "negate", text=self._text, what="IS")
        value = self.lift(node.this)
        right = node.expression
        if isinstance(right, exp.Null):
            return self.make(node, "is_not_null" if node.args.get("negate") else "is_null", value)
        if isinstance(right, exp.Boolean):
            operator = "is_distinct_from" if node.args.get("negate") else "is_not_distinct_from"
            return self.make(node, operator, value, Literal(bool(right.this), ColumnType.BOOLEAN))
        raise refuse(
            "unsupported_sql",
            "IS is refused",
            "It stands before NULL, TRUE and FALSE only.",
            "x = 'value', or x IS NOT DISTINCT FROM y where NULL equals NULL",
            position=self._text.position(node),
        )

    def _between(self, node: exp.Expr) -> Expression:
        consume(node, "this", "low", "high", text=self._text, what="BETWEEN")
        value, low, high = self.siblings([node.this, node.args["low"], node.args["high"]])
        return self.make(node, "and", self.make(node, ">=", value, low), self.make(node, "<=", value, high))

    def _in(self, node: exp.Expr) -> Expression:
        if node.args.get("query") is not None:
            raise self._unknown(node.args["query"])
        consume(node, "this", "expressions", text=self._text, what="IN")
        if not node.expressions:
            raise refuse("parse_error", "IN is refused", "Its list is empty.", position=self._text.position(node.this))
        if len(node.expressions) > IN_LIST_MAX:
            raise refuse(
                "too_large",
                "an IN list is refused",
                f"It has more than {IN_LIST_MAX} values.",
                position=self._text.position(node.this),
            )
        value, *members = self.siblings([node.this, *node.expressions])
        return self.make(node, "in", value, *members)

    def _like(self, node: exp.Expr, escape: exp.Expr | None = None) -> Expression:
        consume(node, "this", "expression", "negate", text=self._text, what="LIKE")
        arguments = [self.lift(node.this), self.lift(node.expression)]
        if escape is not None:
            arguments.append(self.lift(escape))
        matched = self.make(node, "ilike" if isinstance(node, exp.ILike) else "like", *arguments)
        return self.make(node, "not", matched) if node.args.get("negate") else matched

    def _escape(self, node: exp.Expr) -> Expression:
        consume(node, "this", "expression", text=self._text, what="ESCAPE")
        if isinstance(node.this, exp.Not) and isinstance(node.this.this, exp.Like | exp.ILike):
            return self.make(node, "not", self._like(node.this.this, node.expression))
        if not isinstance(node.this, exp.Like | exp.ILike):
            raise self._unknown(node)
        return self._like(node.this, node.expression)

    def _case(self, node: exp.Expr) -> Expression:
        consume(node, "this", "ifs", "default", text=self._text, what="CASE")
        branches = node.args["ifs"]
        for branch in branches:
            consume(branch, "this", "true", text=self._text, what="WHEN")
        conditions = []
        if node.this is not None:
            for branch in branches:
                left, right = self.siblings([node.this, branch.this])
                conditions.append(self.make(branch, "=", left, right))
        else:
            conditions = [self.lift(branch.this) for branch in branches]
        default = node.args.get("default") or exp.Null()
        results = self.siblings([branch.args["true"] for branch in branches] + [default])
        arguments: list[Expression] = []
        for condition, result in zip(conditions, results, strict=False):
            arguments += [condition, result]
        return self.make(node, "case", *arguments, results[-1])

    def _if(self, node: exp.Expr) -> Expression:
        consume(node, "this", "true", "false", text=self._text, what="IF")
        yes, no = self.siblings([node.args["true"], node.args.get("false") or exp.Null()])
        return self.make(node, "case", self.lift(node.this), yes, no)

    def _cast(self, node: exp.Expr) -> Expression:
        consume(node, "this", "to", "safe", text=self._text, what="CAST")
        to = node.args["to"]
        type_ = _TYPES.get(to.this) if isinstance(to, exp.DataType) and not to.expressions else None
        if type_ is None:
            written = rendered(to)[:60] if isinstance(to, exp.Expr) else "this type"
            raise refuse(
                "unsupported_type",
                f"a cast to {written} is refused",
                "Only BIGINT, DOUBLE, VARCHAR, BOOLEAN, DATE and TIMESTAMP are types of this language.",
                "cast to one of these",
                position=self._text.position(node),
            )
        source = _bare(node.this)
        if isinstance(source, exp.Literal) and source.is_string and type_ in (ColumnType.DATE, ColumnType.TIMESTAMP):
            literal = self._moment(node, source.this, type_)
            if literal.type is type_:
                return literal
            return self.make(node, f"cast_{type_.value}", literal)
        if isinstance(source, exp.Null):
            return Literal(None, type_)
        return self.make(node, f"cast_{type_.value}", self.lift(node.this))

    def _variadic(self, node: exp.Expr) -> Expression:
        kinds: dict[type[exp.Expr], str] = {exp.Coalesce: "coalesce", exp.Least: "least", exp.Greatest: "greatest"}
        operator = kinds[type(node)]
        consume(node, "this", "expressions", "ignore_nulls", text=self._text, what=_named(node))
        return self.make(node, operator, *self.siblings([node.this, *node.expressions]))

    def _nullif(self, node: exp.Expr) -> Expression:
        consume(node, "this", "expression", text=self._text, what="NULLIF")
        return self.make(node, "nullif", *self.siblings([node.this, node.expression]))

    def _rounding(self, node: exp.Expr) -> Expression:
        consume(node, "this", "decimals", text=self._text, what=_named(node))
        kinds: dict[type[exp.Expr], str] = {
            exp.Floor: "floor",
            exp.Ceil: "ceil",
            exp.Round: "round",
            exp.Trunc: "trunc",
        }
        operator = kinds[type(node)]
        arguments = [self.lift(node.this)]
        if node.args.get("decimals") is not None:
            arguments.append(self.lift(node.args["decimals"]))
        return self.make(node, operator, *arguments)

    def _power(self, node: exp.Expr) -> Expression:
        consume(node, "this", "expression", text=self._text, what="POWER")
        position = self._text.position(node)
        if position is not None and not position.text.lower().startswith(("pow", "(pow")):
            raise refuse(
                "unsupported_sql",
                "the operators ^ and ** are refused",
                "Their precedence differs between parsers.",
                "POWER(a, b)",
                position=position,
            )
        return self.make(node, "power", self.lift(node.this), self.lift(node.expression))

    def _log(self, node: exp.Expr) -> Expression:
        consume(node, "this", "expression", text=self._text, what="LOG")
        argument = node.expression
        if argument is None:
            return self.make(node, "log10", self.lift(node.this))
        base = node.this
        if isinstance(base, exp.Literal) and base.this in ("2", "10"):
            return self.make(node, f"log{base.this}", self.lift(argument))
        raise self._unknown(node)

    def _substring(self, node: exp.Expr) -> Expression:
        consume(node, "this", "start", "length", text=self._text, what="SUBSTR")
        arguments = [self.lift(node.this)]
        given = [node.args[slot] for slot in ("start", "length") if node.args.get(slot) is not None]
        arguments += [self.lift(part) for part in given]
        return self.make(node, "substr", *arguments)

    def _trim(self, node: exp.Expr) -> Expression:
        consume(node, "this", "position", text=self._text, what="TRIM")
        where = str(node.args.get("position") or "BOTH").upper()
        operator = {"LEADING": "ltrim", "TRAILING": "rtrim", "BOTH": "trim"}.get(where)
        if operator is None:
            raise self._unknown(node)
        return self.make(node, operator, self.lift(node.this))

    def _text_pair(self, node: exp.Expr) -> Expression:
        operators: dict[type[exp.Expr], str] = {
            exp.Left: "left",
            exp.Right: "right",
            exp.StartsWith: "starts_with",
            exp.EndsWith: "ends_with",
            exp.Contains: "contains",
        }
        consume(node, "this", "expression", text=self._text, what=_named(node))
        return self.make(node, operators[type(node)], self.lift(node.this), self.lift(node.expression))

    def _position(self, node: exp.Expr) -> Expression:
        consume(node, "this", "substr", text=self._text, what="POSITION")
        return self.make(node, "position", self.lift(node.this), self.lift(node.args["substr"]))

    def _concat(self, node: exp.Expr) -> Expression:
        """CONCAT skips NULLs in the dialect, the operator || does not: each argument of CONCAT is coalesced."""
        consume(node, "expressions", "coalesce", "safe", text=self._text, what="CONCAT")
        empty = Literal("", ColumnType.TEXT)
        parts = [self.make(node, "coalesce", self.lift(part), empty) for part in node.expressions]
        return self.make(node, "concat", *parts)

    def _pipe(self, node: exp.Expr) -> Expression:
        consume(node, "this", "expression", "safe", text=self._text, what="||")
        return self.make(node, "concat", self.lift(node.this), self.lift(node.expression))

    def _replace(self, node: exp.Expr) -> Expression:
        consume(node, "this", "expression", "replacement", text=self._text, what="REPLACE")
        parts = [node.this, node.expression, node.args.get("replacement")]
        return self.make(node, "replace", *[self.lift(part) for part in parts if part is not None])

    def _extract(self, node: exp.Expr) -> Expression:
        consume(node, "this", "expression", text=self._text, what="EXTRACT")
        return self._date_part(node, self._unit(node, node.this), node.expression)

    def _unit(self, node: exp.Expr, unit: object) -> str:
        """The unit of a date function: a word or a text, never a computed value."""
        if isinstance(unit, exp.Var | exp.Literal):
            return str(unit.name)
        raise refuse(
            "unsupported_function",
            f"{self._text.spelled(node) or 'a part of a date'} is refused",
            "The part of the date is not one word, like year or 'year'.",
            position=self._text.position(node),
        )

    def _date_part(self, node: exp.Expr, unit: str, value: exp.Expr) -> Expression:
        operator = _DATE_PARTS.get(unit.upper())
        if operator is None:
            raise refuse(
                "unsupported_function",
                f"{self._text.spelled(node) or 'a part of a date'} is refused",
                f'"{unit[:40]}" is not one of: ' + ", ".join(sorted({name.lower() for name in _DATE_PARTS})) + ".",
                position=self._text.position(node),
            )
        return self.make(node, operator, self.lift(value))

    def _date_trunc(self, node: exp.Expr) -> Expression:
        consume(node, "this", "unit", text=self._text, what="DATE_TRUNC")
        unit = node.args["unit"]
        name = self._unit(node, unit).lower()
        return self.make(node, "date_trunc", Literal(name, ColumnType.TEXT), self.lift(node.this))

    def _date_diff(self, node: exp.Expr) -> Expression:
        consume(node, "this", "expression", "unit", "date_part_boundary", text=self._text, what="DATE_DIFF")
        unit = node.args.get("unit")
        name = self._unit(node, unit).lower()
        start, end = self.siblings([node.expression, node.this])
        return self.make(node, "date_diff", Literal(name, ColumnType.TEXT), start, end)

    def _anonymous(self, node: exp.Expr) -> Expression:
        consume(node, "this", "expressions", text=self._text, what="a function call")
        name = str(node.this).lower()
        arguments = node.expressions
        if name in _VOLATILE_NAMES:
            raise self._volatile(f"{name}()", node)
        if name in ("date_part", "datepart") and len(arguments) == 2 and isinstance(arguments[0], exp.Literal):
            return self._date_part(node, str(arguments[0].this), arguments[1])
        if name in ("dow", "isodow", "doy") and len(arguments) == 1:
            return self._date_part(node, name, arguments[0])
        if name == "isoyear" and len(arguments) == 1:
            return self.make(node, "iso_year", self.lift(arguments[0]))
        if name in ("suffix", "prefix") and len(arguments) == 2:
            operator = "ends_with" if name == "suffix" else "starts_with"
            return self.make(node, operator, self.lift(arguments[0]), self.lift(arguments[1]))
        raise refuse(
            "unsupported_function",
            f"{self._text.spelled(node) or name[:60] + '()'} is refused",
            "It is not in the list of functions that are proved to give a value for every row.",
            *instead_of(name, FUNCTIONS, self.about(node)),
            position=self._text.position(node),
        )


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


_ANONYMOUS = frozenset(("date_part", "datepart", "dow", "isodow", "doy", "isoyear", "suffix", "prefix"))
"""Functions that the parser has no class for."""

_Reader = Callable[[ExpressionLift, exp.Expr], Expression]

_READERS: dict[type[exp.Expr], _Reader] = {
    exp.Column: ExpressionLift._column,
    exp.Paren: ExpressionLift._paren,
    exp.Literal: ExpressionLift._literal,
    exp.Boolean: ExpressionLift._boolean,
    exp.Placeholder: ExpressionLift._placeholder,
    exp.Neg: ExpressionLift._negate,
    exp.Div: ExpressionLift._divide,
    exp.Is: ExpressionLift._is,
    exp.Between: ExpressionLift._between,
    exp.In: ExpressionLift._in,
    exp.Like: ExpressionLift._like,
    exp.ILike: ExpressionLift._like,
    exp.Escape: ExpressionLift._escape,
    exp.Case: ExpressionLift._case,
    exp.If: ExpressionLift._if,
    exp.Cast: ExpressionLift._cast,
    exp.TryCast: ExpressionLift._cast,
    exp.Coalesce: ExpressionLift._variadic,
    exp.Least: ExpressionLift._variadic,
    exp.Greatest: ExpressionLift._variadic,
    exp.Nullif: ExpressionLift._nullif,
    exp.Floor: ExpressionLift._rounding,
    exp.Ceil: ExpressionLift._rounding,
    exp.Round: ExpressionLift._rounding,
    exp.Trunc: ExpressionLift._rounding,
    exp.Pow: ExpressionLift._power,
    exp.Log: ExpressionLift._log,
    exp.Substring: ExpressionLift._substring,
    exp.Trim: ExpressionLift._trim,
    exp.Left: ExpressionLift._text_pair,
    exp.Right: ExpressionLift._text_pair,
    exp.StartsWith: ExpressionLift._text_pair,
    exp.EndsWith: ExpressionLift._text_pair,
    exp.Contains: ExpressionLift._text_pair,
    exp.StrPosition: ExpressionLift._position,
    exp.Concat: ExpressionLift._concat,
    exp.DPipe: ExpressionLift._pipe,
    exp.Replace: ExpressionLift._replace,
    exp.Extract: ExpressionLift._extract,
    exp.TimestampTrunc: ExpressionLift._date_trunc,
    exp.DateTrunc: ExpressionLift._date_trunc,
    exp.DateDiff: ExpressionLift._date_diff,
    exp.Anonymous: ExpressionLift._anonymous,
}


def missing_parameter(name: object, text: Text) -> Refused:
    """The refusal of a parameter that the request gives no value."""
    known = str(name)[:63] if isinstance(name, str) and name else "name"
    return refuse(
        "unsupported_sql",
        f"the parameter ${known} is refused" if known == name else "a parameter is refused",
        'Parameters are named ("$name") and get their value in "parameters" of the request.',
        f'"parameters": {{"{known}": 65}} beside "sql" in the request, or -p {known}=65',
        position=text.parameter(known),
    )


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


def check_parameter(value: ParameterValue, position: Position | None) -> None:
    """Refuses the value of a parameter that no literal could have. Errors: Refused (too_large, parse_error)."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, str):
        if any(0xD800 <= ord(c) <= 0xDFFF or c == "\x00" for c in value):
            raise refuse("parse_error", "a parameter is refused", "It is not a proper text.", position=position)
        fits = len(value) <= 1_000
    elif isinstance(value, int):
        fits = -(2**63) <= value < 2**63
    else:
        fits = -1e300 <= value <= 1e300  # false for NaN
    if not fits:
        raise refuse(
            "too_large",
            "a parameter is refused",
            "Numbers must fit 64 bits (or 1e300 with a fraction), texts 1,000 characters.",
            position=position,
        )


def literal_value(node: exp.Literal, text: Text) -> str | int | float:
    """The value of a literal: text as it is, whole numbers exactly, other numbers as the nearest double."""
    if node.is_string:
        return str(node.this)
    digits = str(node.this).replace("_", "")
    try:
        if digits.isascii() and digits.isdigit():
            return int(digits) if len(digits) <= 40 else 2**63
        return float(digits)
    except ValueError:
        raise refuse(
            "parse_error", "a number could not be read", "It is not a decimal number.", position=text.position(node)
        ) from None


def _flatten(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a chain of the same connector, left to right, without recursion."""
    kind = type(node)
    parts: list[exp.Expr] = []
    stack = [node]
    while stack:
        current = stack.pop()
        if type(current) is kind:
            stack.append(current.expression)
            stack.append(current.this)
        else:
            parts.append(current)
    return parts


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_text_literal(expression: Expression) -> bool:
    return isinstance(expression, Literal) and isinstance(expression.value, str)


_WORDS: dict[type[exp.Expr], str] = {
    exp.Bracket: "a subscript in square brackets",
    exp.Dot: "a field behind a dot",
    exp.Lambda: "a lambda function",
    exp.Tuple: "a list in brackets",
    exp.Star: "a star",
    exp.Array: "a list",
    exp.Struct: "a struct",
}


def _named(node: exp.Expr) -> str:
    """A node's name for people: the SQL name of a function, else the words of its class."""
    if isinstance(node, exp.Func) and type(node) not in _WORDS:
        names = node.sql_names() if hasattr(node, "sql_names") else []
        if names:
            return str(names[0])
    words = _WORDS.get(type(node)) or type(node).__name__
    return words if " " in words else "".join((" " + c.lower()) if c.isupper() else c for c in words).strip()
