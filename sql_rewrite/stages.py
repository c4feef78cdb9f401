"""Stages: a number that one part of a question releases, in the private part of a later one.

    SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)
    core c0:  visits, a0 = average(cost)
    core c1:  visits where cost > a0 of c0, a0 = rows

A nested query whose block aggregates all rows releases exactly one row, wherever it is: in an expression, or in FROM
beside people, where every row meets it. Its aggregates are a core of their own; what it computes of them is computed
again in each row of the later core, where an aggregate is a column of unknown value (stage_values.py). So nothing runs
between the stages but the binding of parameters, and no text is made of a number. mechanisms/stages.md has the claim.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType, Dataset
from privacy.refusal import Finding, Refused
from sql_rewrite.aggregate_calls import aggregate_calls
from sql_rewrite.core_block import CoreBlock
from sql_rewrite.expressions import ColumnRef, Expression, Interval, Literal
from sql_rewrite.functions import build, clip_columns
from sql_rewrite.known_queries import KnownQueries
from sql_rewrite.lift_expression import ExpressionLift, Member
from sql_rewrite.lifter import ParameterValue
from sql_rewrite.narrowed_values import Narrowing, conditions_of
from sql_rewrite.plan import Aggregate, Arrangement, Core
from sql_rewrite.quantile_moments import Shown
from sql_rewrite.refuse import refuse
from sql_rewrite.rows_block import RowsSeeker, listed
from sql_rewrite.scope import Scope
from sql_rewrite.shell import output_name
from sql_rewrite.sources import SourceNames
from sql_rewrite.stage_groups import CellReader, StageGroups
from sql_rewrite.stage_tables import CELLS_MAX, cell_name
from sql_rewrite.stage_values import released_value, stages_of
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text

__all__ = ["STAGES_MAX", "Row", "RowLift", "Stages", "kept_cores", "reads_outside"]

STAGES_MAX = 3
"""Most stages of one question, the last one included: each begins when the one before it has ended."""

CORES_MAX = 16
"""Most cores of a question of several stages: its price is divided among them."""

_ONE_ROW = frozenset({"expressions", "from_", "joins", "where", "with_"})
"""Clauses of a block that has one row whatever the rows of its tables are, where each column aggregates."""

_NUMBERS = (ColumnType.INTEGER, ColumnType.NUMBER)

Row = tuple[tuple[str, Expression], ...]
"""The columns of one released row, in order, as expressions over released values."""


class Stages:
    """Reads nested queries that release one row.

    `core` lifts an aggregating block over rows about people: its core, and its block, which knows its calls. `arranged`
    lifts one whole: its core, and what else is done to its table, where that is sorting and limits alone. `with_` gives
    what a query with a WITH of its own can see; `known` are queries that read no people.
    """

    def __init__(
        self,
        text: Text,
        parameters: Mapping[str, ParameterValue],
        seeker: RowsSeeker,
        *,
        core: Callable[[exp.Select, Scope], tuple[Core, CoreBlock]],
        arranged: Callable[[exp.Select, Scope], tuple[Core | None, Arrangement | None]],
        dataset: Dataset,
        with_: Callable[[exp.Expr, Scope], Scope],
        known: KnownQueries,
    ) -> None:
        self._text = text
        self._known = known
        self._parameters = parameters
        self._seeker = seeker
        self._core = core
        self._with = with_
        self.warnings: list[Finding] = []
        self.groups = StageGroups(text, seeker, self, core=core, arranged=arranged, dataset=dataset, with_=with_)

    def scalar(self, node: exp.Subquery, scope: Scope, outside: SourceNames) -> Expression | None:
        """The one value of a nested query in brackets, None for one that is not of this kind. Errors: Refused."""
        try:
            known = self._known.scalar(node, scope)
            row = self.row(node, scope) if known is None else (("", known),)
        except Refused as refused:
            if reads_outside(node, refused, outside):
                return None  # that is refused by its own name
            raise
        if row is None:
            return None
        if len(row) != 1:
            raise refuse(
                "unsupported_sql",
                "a nested query is refused",
                f"It has {len(row)} columns where one value is needed.",
                "select one aggregate",
                position=self._text.position(node),
            )
        if known is None:
            self.warn(node)
        return row[0][1]

    def row(self, node: exp.Expr, scope: Scope) -> Row | None:
        """The columns of a query that releases one row, None for any other one. Errors: Refused."""
        if isinstance(node, exp.Subquery):
            consume(node, "this", "alias", "with_", text=self._text, what="a bracketed query")
            return self.row(node.this, self._with(node, scope))
        if not isinstance(node, exp.Select) or populated(node) - _ONE_ROW or not node.args.get("from_"):
            return None
        scope = self._with(node, scope)
        items = listed(node)
        if any(self._seeker.reads_people(item, scope) for item in items):
            return self._aggregated(node, scope)
        if len(items) != 1 or node.args.get("where") is not None:
            return None
        below = self.item(items[0], scope)
        return None if below is None else self._selected(node, items[0].alias_or_name, below, scope)

    def item(self, item: exp.Expr, scope: Scope) -> Row | None:
        """The columns of an item of FROM that is one released row, None for any other one. Errors: Refused."""
        if isinstance(item, exp.Subquery):
            return self.row(item.this, self._with(item, Scope(scope.ctes)))
        if not isinstance(item, exp.Table) or item.args.get("db"):
            return None
        cte = scope.ctes.get(item.name.lower())
        if cte is None or cte.of_rows:
            return None
        row = self.row(cte.node.this, cte.scope)
        names = cte.node.args["alias"].args.get("columns") or []
        if row is None or len(names) > len(row) or not all(isinstance(name, exp.Identifier) for name in names):
            return None
        cte.read()
        return (*((name.name, found) for name, (_, found) in zip(names, row, strict=False)), *row[len(names) :])

    def of_cells(self, core: Core, block: CoreBlock, scope: Scope, *, of: str = "") -> CellReader:
        """What reads what a block computes of one group of its core, that of a place, in the list `of` of hidden ones.

        `scope` is what the block can see. The reader is called with the place, and with what other trees stand for.
        Errors: Refused.
        """
        of_one = [(call, aggregate, self._value(core, aggregate, call)) for call, aggregate in block.aggregates.items()]

        def reader(place: int, known: Mapping[exp.Expr, Expression]) -> RowLift:
            values = dict(known)
            for call, aggregate, value in of_one:
                own = replace(value, name=cell_name(aggregate.name, place, of))
                values[call] = self._moment(own, aggregate, block.moments.get(call), call)
            return RowLift(self._text, self._outside, self._parameters, values, self._public(scope))

        return reader

    def over(self, columns: Mapping[str, Expression], alias: str, scope: Scope) -> ExpressionLift:
        """Reads what a block computes of the columns of one released row, which is called `alias`."""

        def resolve(column: exp.Column) -> Expression:
            found = columns.get(column.name.lower()) if column.table.lower() in ("", alias.lower()) else None
            return found if found is not None else self._outside(column)

        return ExpressionLift(self._text, resolve, self._parameters, member=self._public(scope))

    def _aggregated(self, node: exp.Select, scope: Scope) -> Row | None:
        if not all(aggregate_calls([written]) for written in node.expressions):
            return None
        core, block = self._core(node, scope)
        values = {
            call: self._moment(self._value(core, aggregate, call), aggregate, block.moments.get(call), call)
            for call, aggregate in block.aggregates.items()
        }
        lifter = RowLift(self._text, self._outside, self._parameters, values, self._public(scope))
        return self._columns(node, block.select.values, lifter)

    def _selected(self, node: exp.Select, alias: str, below: Row, scope: Scope) -> Row | None:
        """The columns of a block over one released row, which aggregates nothing."""
        if aggregate_calls(node.expressions) or any(written.is_star for written in node.expressions):
            return None
        names = {name.lower(): found for name, found in reversed(below)}
        return self._columns(node, [written.unalias() for written in node.expressions], self.over(names, alias, scope))

    def _columns(self, node: exp.Select, values: Sequence[exp.Expr], lifter: ExpressionLift) -> Row:
        result = []
        for written, value in zip(node.expressions, values, strict=True):
            name = written.alias if isinstance(written, exp.Alias) else output_name(self._text, written)
            result.append((name, lifter.lift(value)))
        return tuple(result)

    def _public(self, scope: Scope) -> Member:
        """What reads the values of nested queries of public tables."""

        def member(_: ExpressionLift, node: exp.Expr) -> Expression | None:
            return self._known.scalar(node, Scope(scope.ctes)) if isinstance(node, exp.Subquery) else None

        return member

    def _value(self, core: Core, aggregate: Aggregate, call: exp.Expr) -> ColumnRef:
        """An aggregate of a core as a value of rows. Errors: Refused."""
        if any(argument.type not in _NUMBERS for argument in aggregate.values if _is_shown(aggregate)):
            raise refuse(
                "unsupported_type",
                "a released value inside the private part is refused",
                "Only released numbers are compared with columns of people; it is not answered yet for other types.",
                "ask for it in a query of its own, and write the value (or $name, a parameter) in its place",
                position=self._text.position(call),
            )
        if aggregate.function is AggregateFunction.PRESENT:
            raise refuse(
                "unsupported_type",
                "a released truth value inside the private part is refused",
                "Released numbers are compared with columns of people.",
                "compare the number of rows: write COUNT_IF(condition) in its place",
                position=self._text.position(call),
            )
        place = self._text.position(call)
        shown = " ".join(place.text.split())[:60] if place is not None else aggregate.text
        return released_value(core.name, aggregate.name, declared=_declared(aggregate, core), shown=shown)

    def _moment(self, value: Expression, aggregate: Aggregate, kind: Shown | None, call: exp.Expr) -> Expression:
        """The date that a released number of days stands for, or the number itself. Errors: Refused."""
        if kind == "interval":
            raise refuse(
                "unsupported_type",
                "a released interval inside the private part is refused",
                "Released numbers are compared with numbers of people.",
                "take the seconds on both sides: epoch(a - b) > (SELECT AVG(epoch(a - b)) ...)",
                position=self._text.position(call),
            )
        if kind is None:
            return value
        if kind is ColumnType.DATE and aggregate.function.whole(ColumnType.INTEGER):
            days = build("cast_integer", (value,))
            return build("add_days", (Literal(datetime.date(1970, 1, 1), ColumnType.DATE), days))
        raise refuse(
            "unsupported_type",
            "a released timestamp inside the private part is refused",
            "Released numbers and dates are compared with columns of people.",
            *(["MAX(x), MIN(x) and QUANTILE_DISC(x, 0.5) of dates are dates"] if kind is ColumnType.DATE else []),
            "ask for it in a query of its own, and write the value (or $name, a parameter) in its place",
            position=self._text.position(call),
        )

    def _outside(self, column: exp.Column) -> Expression:
        raise refuse(
            "raw_rows",
            f'column "{column.name[:63]}" outside an aggregate is refused',
            "A nested query that gives one number aggregates all rows that it reads.",
            f"aggregate it: MAX({column.name[:63]})",
            position=self._text.position(column),
        )

    def warn(self, node: exp.Expr) -> None:
        """Notes that the private part reads what a nested query releases."""
        if any(warning.code == "conditional_on_release" for warning in self.warnings):
            return  # said once, of the first one
        self.warnings.append(
            Finding(
                code="conditional_on_release",
                what="a nested query stands for the number that it releases",
                why="The answer and its intervals are conditional on that number, noise included: they are those of "
                "the question with the number written in its place, not of the question with its true value.",
                instead=("ask the nested query by itself to see the number with its interval: it is stored, and free",),
                position=self._text.position(node),
            )
        )

    def warn_hidden(self, node: exp.Expr) -> None:
        """Notes that the groups which the private part reads are those that a selection shows."""
        if any(warning.code == "hidden_groups_read" for warning in self.warnings):
            return
        self.warnings.append(
            Finding(
                code="hidden_groups_read",
                what="a later part of the question reads a released list of groups that are not public",
                why="The list has the groups that enough people share, and no others: what is not in it may still "
                f"occur. A later part has room for {CELLS_MAX} groups; where more are released, the question ends "
                "there, charged, and what was released is stored.",
                instead=("write ORDER BY COUNT(*) DESC LIMIT 100, or HAVING, into the nested query",),
                position=self._text.position(node),
            )
        )


class RowLift(ExpressionLift):
    """Reads what a block computes of its aggregates."""

    def __init__(
        self,
        text: Text,
        resolve: Callable[[exp.Column], Expression],
        parameters: Mapping[str, ParameterValue],
        values: Mapping[exp.Expr, Expression],
        member: Member | None = None,
    ) -> None:
        super().__init__(text, resolve, parameters, member=member)
        self._values = values

    def lift(self, node: exp.Expr, *, like: Expression | None = None) -> Expression:
        """An aggregate's released value, or what is made of such values. Errors: Refused."""
        known = self._values.get(node)
        return super().lift(node, like=like) if known is None else known


def reads_outside(node: exp.Expr, refused: Refused, outside: SourceNames) -> bool:
    """Whether a nested query names columns of the rows around it: by their relation, or where nothing else has them."""
    own = {item.alias_or_name.lower() for item in node.find_all(exp.Table, exp.Subquery)}
    columns = list(node.find_all(exp.Column))
    if any(column.table and column.table.lower() not in own and outside.is_source(column) for column in columns):
        return True
    unknown = [finding.what for finding in refused.findings if finding.code in ("unknown_column", "unknown_table")]
    return any(
        f'"{name}"' in what and outside.is_source(column)
        for column in columns
        for name in (column.name, column.table)
        for what in unknown
    )


_WITHIN = frozenset(
    {
        AggregateFunction.AVERAGE,
        AggregateFunction.QUANTILE,
        AggregateFunction.QUANTILE_DISCRETE,
        AggregateFunction.LEAST,
        AggregateFunction.GREATEST,
    }
)
"""Aggregates whose value lies between the least and the greatest value of their argument."""


def _is_shown(aggregate: Aggregate) -> bool:
    """Whether an aggregate shows values of its argument, and does not count them."""
    return aggregate.function.statistic.described.of_values


def _declared(aggregate: Aggregate, core: Core) -> Interval | None:
    """Where the values of an aggregate belong: an average, a median or an extreme lies within its argument's bounds."""
    argument = aggregate.argument
    if argument is None or aggregate.function not in _WITHIN:
        return None
    found = clip_columns(argument).interval
    if found is None or not found.bounded:
        # Without declared bounds conditions on the rows may say them. A sum around the number clips it there.
        given = [*conditions_of(core.sources, core.where), *([] if aggregate.filter is None else [aggregate.filter])]
        found = clip_columns(Narrowing((argument,), given).value(argument)).interval
    return found if found is not None and found.bounded else None


def kept_cores(cores: Sequence[Core], shown: set[str]) -> tuple[list[Core], dict[str, tuple[str, ...]]]:
    """The cores that the outer query reads, `shown`, and those that they need, in order; and who needs which.

    Others were lifted in an attempt to read a block, and are asked for by nobody. Errors: Refused (too_large).
    """
    needs = {core.name: stages_of(core) for core in cores}
    stage: dict[str, int] = {}
    for core in cores:  # what a core reads was lifted before it
        stage[core.name] = 1 + max((stage[name] for name in needs[core.name]), default=0)
    wanted, left = set(shown), [*shown]
    while left:
        found = needs[left.pop()] - wanted
        wanted |= found
        left += found
    kept = [core for core in cores if core.name in wanted]
    deepest = max((stage[core.name] for core in kept), default=1)
    if deepest > STAGES_MAX or (deepest > 1 and len(kept) > CORES_MAX):
        raise refuse(
            "too_large",
            "the query is refused",
            f"It has {deepest} stages and {len(kept)} private parts; {STAGES_MAX} stages and {CORES_MAX} parts are "
            "answered, because each takes a part of the price.",
            "ask for an inner number in a query of its own, and write it (or $name, a parameter) in its place",
        )
    return kept, {core.name: tuple(sorted(needs[core.name])) for core in kept if needs[core.name]}
