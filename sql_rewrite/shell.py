"""The public shell: which SQL may stand above released tables, and how its error is propagated.

Everything here is post-processing of released numbers (Dwork and Roth 2014, Proposition 2.1), so the rules are
wide; they are still an allow-list, because the text that runs is made from the analyst's tree.

A relation of the shell (`Released`) carries its syntax tree in up to three forms: `plain` (the answer's columns),
`identified` (plus hidden columns that name the row) and `simulated` (plus `replicate$`, over replicates).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from privacy.refusal import Refused
from privacy.release import ColumnKind
from sql_rewrite.lift_expression import ParameterValue, check_parameter, missing_parameter
from sql_rewrite.plan import ShellOutput
from sql_rewrite.refuse import did_you_mean, refuse
from sql_rewrite.syntax import DIALECT, UNFORESEEN, consume, rendered
from sql_rewrite.text import Text
from sql_rewrite.trace import FOLLOWED, Shape, Trace

__all__ = [
    "REPLICATE",
    "ROW",
    "Names",
    "Released",
    "Scope",
    "ShellNodes",
    "check_name",
    "column",
    "core_relation",
    "generate",
    "has_aggregate",
    "has_window",
    "output_name",
    "partition_windows",
    "quoted",
    "unknown_column",
]

ROW = "row$"
REPLICATE = "replicate$"
INSTANCES_MAX = 32
_HIDDEN = re.compile(r"id\$\d+\Z|(?:derived|nested)\d+\$\Z|(?:row|replicate|renamed|driver)\$\Z", re.IGNORECASE)

_SCALAR_NODES: tuple[type[exp.Expr], ...] = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Alias, exp.Star, exp.Var,
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Pow,
    exp.Is, exp.Between, exp.In, exp.Like, exp.ILike, exp.Escape, exp.Case, exp.If,
    exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Interval,
    exp.Coalesce, exp.Nullif, exp.Least, exp.Greatest, exp.Abs, exp.Sign, exp.Sqrt, exp.Cbrt, exp.Ln, exp.Log,
    exp.Exp, exp.Round, exp.Floor, exp.Ceil, exp.Trunc,
    exp.Lower, exp.Upper, exp.Length, exp.Trim, exp.Left, exp.Right, exp.Substring, exp.Concat, exp.DPipe,
    exp.Replace, exp.StartsWith, exp.EndsWith, exp.Contains, exp.SplitPart,
    exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfYear, exp.Week,
    exp.WeekOfYear, exp.Hour, exp.Minute, exp.Second, exp.Extract, exp.TimestampTrunc, exp.DateTrunc, exp.DateDiff,
    exp.Window, exp.WindowSpec, exp.Order, exp.Ordered, exp.Filter, exp.Where, exp.Distinct, exp.IgnoreNulls,
    exp.RespectNulls,
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag, exp.Lead,
    exp.FirstValue, exp.LastValue, exp.NthValue,
    exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Quantile, exp.PercentileCont,
    exp.PercentileDisc, exp.WithinGroup, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance,
    exp.VariancePop, exp.ArgMax, exp.ArgMin, exp.AnyValue, exp.LogicalAnd, exp.LogicalOr,
    exp.Corr, exp.CovarPop, exp.CovarSamp,
)  # fmt: skip
_ALLOWED = frozenset(_SCALAR_NODES)
if not _ALLOWED <= FOLLOWED:
    # An interval would be told for a function through which nobody said how noise goes.
    raise ImportError(f"no trace of {', '.join(sorted(kind.__name__ for kind in _ALLOWED - FOLLOWED))}")
_TYPES = frozenset(
    exp.DataType.Type[name]
    for name in (
        "TINYINT SMALLINT INT BIGINT INT128 UTINYINT USMALLINT UINT UBIGINT UINT128 FLOAT DOUBLE DECIMAL TEXT VARCHAR "
        "BOOLEAN DATE TIMESTAMP TIMESTAMPNTZ"
    ).split()
)
"""Types that a released number may be cast to."""
_OVER_ROWS = (exp.Window, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_WINDOWED = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag, exp.Lead)


class Released:
    """A relation of released numbers: its columns, and its forms (see the module's text), built when asked for.

    `identities` counts the hidden columns `id$0`..; None when rows have no identity, so that only `plain` exists.
    `bare` names the core when the relation is that core's table as it is. `instances` counts the relations that the
    forms read once everything is written out. `rows` are the cores whose rows make its own; `chosen` says that noisy
    numbers decide which of them are there, `ordered` that they decide their order.
    """

    __slots__ = ("_build", "_forms", "bare", "chosen", "identities", "instances", "ordered", "outputs", "rows")

    def __init__(
        self,
        outputs: tuple[ShellOutput, ...],
        *,
        identities: int | None,
        build: Callable[[str], exp.Query | None],
        instances: int = 1,
        bare: str | None = None,
        rows: frozenset[str] = frozenset(),
        chosen: bool = False,
        ordered: bool = False,
    ) -> None:
        self.rows = rows
        self.chosen = chosen
        self.ordered = ordered
        self.outputs = outputs
        self.instances = instances
        self.identities = identities
        self.bare = bare
        self._build = build
        self._forms: dict[str, exp.Query | None] = {}

    def form(self, name: str) -> exp.Query | None:
        """The tree of a form, "plain", "identified" or "simulated"; None when it does not exist. Copy before use."""
        if name != "plain" and self.identities is None:
            return None
        if name not in self._forms:
            self._forms[name] = self._build(name)
        return self._forms[name]


def quoted(name: str) -> exp.Identifier:
    """A quoted identifier."""
    return exp.Identifier(this=name, quoted=True)


def column(name: str, relation: str | None = None) -> exp.Column:
    """A quoted column reference."""
    return exp.Column(this=quoted(name), table=quoted(relation) if relation else None)


def generate(tree: exp.Expr) -> str:
    """The SQL text of a shell tree. Errors: Refused, for arguments that the generator does not foresee."""
    try:
        return tree.sql(dialect=DIALECT, comments=False)
    except UNFORESEEN:
        raise refuse(
            "unsupported_sql",
            "the part above the aggregates is refused",
            "A function in it has arguments of a form that is not answered.",
            "see docs/sql.md for what is answered",
        ) from None


def core_relation(core: str, outputs: Sequence[ShellOutput], numbers: Mapping[str, str] | None = None) -> Released:
    """The relation of a core's released table: hidden columns are named `id$0` (= row$) and `replicate$`.

    `numbers` are keys that stand in the relation once more, by another name and as the doubles that they were.
    """
    doubles = numbers or {}

    def build(form: str) -> exp.Query:
        columns: list[exp.Expr] = [column(output.name) for output in outputs]
        columns += [
            exp.alias_(exp.Cast(this=column(name), to=exp.DataType.build("double")), double, quoted=True)
            for name, double in doubles.items()
        ]
        if form == "simulated":
            columns.append(column(REPLICATE))
        if form != "plain":
            columns.append(exp.alias_(column(ROW), "id$0", quoted=True))
        tree = exp.Select(expressions=columns)
        tree.set("from_", exp.From(this=exp.Table(this=quoted(core))))
        return tree

    return Released(
        (
            *(_traced(output) if output.kind == ColumnKind.RELEASED else output for output in outputs),
            *(ShellOutput(name=double, kind=ColumnKind.KEY) for double in doubles.values()),
        ),
        identities=1,
        build=build,
        bare=core,
        rows=frozenset([core]),
    )


def _traced(output: ShellOutput) -> ShellOutput:
    """A released column of a core's own table."""
    assert output.core is not None
    assert output.column is not None
    reads = frozenset([(output.core, output.column, 0)])
    return replace(output, identity=0, trace=Trace(reads=reads, shape=Shape.AFFINE, rises=1))


class ShellNodes:
    """Checks the shell's parts and builds their forms. One per query."""

    def __init__(self, text: Text, parameters: Mapping[str, ParameterValue]) -> None:
        self._text = text
        self._parameters = parameters

    def instances(self, count: int, node: exp.Expr) -> int:
        """The count, within the limit: a chain of doubling CTEs ends here and not in the engine's planner."""
        if count > INSTANCES_MAX:
            raise refuse(
                "too_large",
                "the query is refused",
                f"It reads more than {INSTANCES_MAX} relations once its CTEs are written out.",
                "read each of them once",
                position=self._text.position(node),
            )
        return count

    def allows(self, node: exp.Expr) -> bool:
        """Whether a node of this class may stand in the shell."""
        return type(node) in _ALLOWED

    def check_node(self, node: exp.Expr) -> None:
        """Refuses a node whose class may not stand in the shell."""
        if isinstance(node, exp.Placeholder):
            return
        if type(node) not in _ALLOWED:
            raise self.refusal(node)
        if isinstance(node, exp.DataType):
            self._check_type(node)
        if isinstance(node, exp.Star):
            consume(node, text=self._text, what="*")
            if not isinstance(node.parent, exp.Count):
                raise self.refusal(node)
        if isinstance(node, exp.IgnoreNulls | exp.RespectNulls) and not (
            isinstance(node.parent, _OVER_ROWS) or isinstance(node.this, exp.AnyValue)
        ):
            raise self.refusal(node)

    def _check_type(self, node: exp.DataType) -> None:
        """Refuses types that no answer has: texts of other systems, bits, lists and whatever a type can be made of."""
        parts = node.expressions if node.this is exp.DataType.Type.DECIMAL else []
        plain = all(isinstance(part, exp.DataTypeParam) for part in parts)
        if node.this not in _TYPES or not plain or len(parts) != len(node.expressions):
            raise refuse(
                "unsupported_type",
                f"the type {rendered(node)[:60]} is refused",
                "Released numbers become numbers, texts, booleans, dates and timestamps.",
                "cast to BIGINT, DOUBLE, DECIMAL(10, 2), VARCHAR, BOOLEAN, DATE or TIMESTAMP",
                position=self._text.position(node),
            )

    def refusal(self, node: exp.Expr) -> Refused:
        """The refusal of a construct that is not part of the shell's language."""
        name = str(node.this) if isinstance(node, exp.Anonymous) else type(node).__name__
        if isinstance(node, exp.Func | exp.Anonymous):
            volatile = isinstance(node, exp.Rand | exp.CurrentDate | exp.CurrentTimestamp | exp.CurrentTime | exp.Uuid)
            volatile = volatile or name.lower() in ("now", "random", "today", "uuid", "nextval", "current_setting")
            return refuse(
                "volatile_function" if volatile else "unsupported_function",
                f"{self._text.spelled(node) or name.lower()[:60] + '()'} is refused",
                "Its value depends on the moment."
                if volatile
                else "It is not in the list of functions that may be used on released numbers.",
                "see the list of functions under /v1/capabilities",
                position=self._text.position(node),
            )
        words = "".join((" " + c.lower()) if c.isupper() else c for c in name).strip()
        return refuse(
            "unsupported_sql",
            f"{words} is refused",
            "This construct is not part of the language for released numbers.",
            "see docs/sql.md for what is answered",
            position=self._text.position(node),
        )

    def literal(self, node: exp.Placeholder) -> exp.Expr:
        """The literal of a named parameter."""
        name = node.this
        if not isinstance(name, str) or name not in self._parameters:
            raise missing_parameter(name, self._text)
        value = self._parameters[name]
        check_parameter(value, self._text.position(node))
        if value is None:
            return exp.Null()
        if isinstance(value, bool):
            return exp.Boolean(this=value)
        if isinstance(value, str):
            return exp.Literal.string(value)
        return exp.Paren(this=exp.Literal.number(float(value) if not isinstance(value, int) else value))


def unknown_column(node: exp.Column, known: Sequence[str], text: Text) -> Refused:
    """The refusal of a name that no relation in scope has."""
    name = node.name
    return refuse(
        "unknown_column",
        f'column "{name[:63]}" is refused',
        "No table that the query reads has a column of that name.",
        *did_you_mean(name, known),
        position=text.position(node),
    )


def check_name(name: str, text: Text, node: exp.Expr) -> None:
    """Refuses a name that the shell itself gives to hidden columns and relations."""
    if _HIDDEN.match(name):
        raise refuse(
            "unsupported_sql",
            f'the name "{name[:63]}" is refused',
            "The server gives names of this form to columns of its own.",
            "choose another name",
            position=text.position(node),
        )


def has_window(nodes: Sequence[exp.Expr]) -> bool:
    """Whether a window function stands in any of the nodes (outside nested queries)."""
    return any(isinstance(part, exp.Window) for node in nodes for part in _own_nodes(node))


def has_aggregate(nodes: Sequence[exp.Expr]) -> bool:
    """Whether an aggregate that is not a window function stands in any of the nodes (outside nested queries)."""
    for node in nodes:
        for part in _own_nodes(node):
            if isinstance(part, exp.AggFunc) and not isinstance(part, _WINDOWED):
                parent = part.parent
                while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
                    part, parent = parent, parent.parent
                if not (isinstance(parent, exp.Window) and parent.this is part):
                    return True
    return False


def _own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if not isinstance(current, exp.Query):
            stack.extend(current.iter_expressions())


def partition_windows(nodes: Sequence[exp.Expr], relation: str) -> None:
    """Adds the replicate to every window's partition, in place."""
    for node in nodes:
        for part in list(_own_nodes(node)):
            if isinstance(part, exp.Window) and not part.args.get("alias"):
                part.set("partition_by", [column(REPLICATE, relation), *(part.args.get("partition_by") or [])])


def output_name(text: Text, node: exp.Expr) -> str:
    """The name of an answer's column that has no alias: the column's own, or the text of its expression."""
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return "count_star()"
    place = text.position(node)
    whole = place is not None and (not isinstance(node, exp.Func) or "(" in place.text)
    return " ".join((place.text if whole and place else rendered(node)).split())[:63]


@dataclass(frozen=True, slots=True)
class Scope:
    """What a block can see: CTEs by folded name, and the columns of the blocks around it."""

    ctes: Mapping[str, Any]
    outer: tuple[str, ...] = ()


class Names:
    """Names that a shell block can see, folded."""

    def __init__(
        self, relations: Mapping[str, Sequence[str]], outer: Sequence[str], aliases: Sequence[str] = ()
    ) -> None:
        self.relations = {alias.lower(): [name.lower() for name in columns] for alias, columns in relations.items()}
        self.outer = tuple(outer)
        self.aliases = tuple(alias.lower() for alias in aliases)

    def with_aliases(self, aliases: Sequence[str]) -> Names:
        """The same names and the aliases of a select list."""
        return Names(self.relations, self.outer, aliases)

    def unqualified(self) -> set[str]:
        """Columns of all relations, without their relations."""
        return {name for columns in self.relations.values() for name in columns}

    def all(self) -> list[str]:
        """Every visible name, for suggestions and for the blocks inside this one."""
        qualified = [f"{alias}.{name}" for alias, columns in self.relations.items() for name in columns]
        return [*sorted(self.unqualified()), *qualified]
