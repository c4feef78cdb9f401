"""Core blocks: a SELECT over tables becomes a typed core, and a shell block that stands in its place.

SELECT sex, AVG(age) / 2 AS half FROM people WHERE smoker GROUP BY sex HAVING COUNT(*) > 10
core:         people where smoker, k0 = sex, a0 = average(age), a1 = rows
shell block:  SELECT k0 AS sex, a0 / 2 AS half FROM c0 WHERE a1 > 10
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType, Dataset
from privacy.refusal import Collector, Refused
from privacy.statistic_kind import StatisticKind
from sql_rewrite.aggregates import BY_NAME, called
from sql_rewrite.expressions import Call, ColumnRef, Expression, canonical, describe
from sql_rewrite.functions import TypeRefused
from sql_rewrite.gather import gathered
from sql_rewrite.hints import AGGREGATES, SHORT, counted, instead_of, listed
from sql_rewrite.identifying import identifying_column
from sql_rewrite.keys import fits, whole
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.plan import Aggregate, Core
from sql_rewrite.refuse import refuse
from sql_rewrite.released import column
from sql_rewrite.shell import ShellNodes, output_name
from sql_rewrite.sources import SourceNames
from sql_rewrite.spelling import named
from sql_rewrite.syntax import NODES_MAX, consume, populated, rebuilt, rendered
from sql_rewrite.text import Text

__all__ = ["CoreBlock", "counts_rows"]

KEYS_MAX = 16
"""Most keys of one GROUP BY."""

_NO_NUMBER: dict[ColumnType, tuple[str, ...]] = {
    ColumnType.BOOLEAN: ("COUNT(*) FILTER (WHERE x) counts", "AVG(CASE WHEN x THEN 1 ELSE 0 END) is the share"),
    ColumnType.DATE: ("AVG(GREATEST(<lowest>, LEAST(date_diff('day', DATE '2024-01-01', x), <highest>)))",),
    ColumnType.TIMESTAMP: (
        "AVG(GREATEST(<lowest>, LEAST(date_diff('day', TIMESTAMP '2024-01-01 00:00:00', x), <highest>)))",
    ),
}
"""What to write instead of a sum of what is no number."""

_NESTED = (exp.Query, exp.Subquery)
_AROUND_CALLS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of GROUP BY: its tree, what was written, and what the core groups by: `written`, gathered and whole."""

    node: exp.Expr
    written: Expression
    expression: Expression


def counts_rows(aggregate: Aggregate) -> bool:
    """Whether an aggregate is zero exactly in groups without a row."""
    match aggregate.function.statistic:
        case StatisticKind.UNITS | StatisticKind.COUNT:
            return aggregate.argument is None and aggregate.filter is None
        case StatisticKind.SUM | StatisticKind.MOMENTS:
            return False
        case _:
            assert_never(aggregate.function.statistic)


class CoreBlock:
    """One SELECT block over tables: its core, and the shell block that stands in its place."""

    def __init__(
        self,
        node: exp.Select,
        *,
        text: Text,
        dataset: Dataset,
        names: SourceNames,
        lifter: ExpressionLift,
        nodes: ShellNodes,
        count_rows: bool = False,
    ) -> None:
        self.count_rows = count_rows
        self.text = text
        self.dataset = dataset
        self.nodes = nodes
        self.node = node
        self.names = names
        self.lifter = lifter
        self.projections: list[exp.Expr] = []
        self.keys: dict[str, str] = {}
        self.key_nodes: list[tuple[exp.Expr, str]] = []
        self.numbers: dict[str, str] = {}
        """Keys that are whole numbers: their names in the core, and in the shell, where they are doubles."""
        self.aggregates: dict[exp.Expr, Aggregate] = {}
        self._written = 0

    def core(self, number: int) -> Core:
        """The block's core. Collects findings of independent parts and refuses with all of them."""
        node, text = self.node, self.text
        findings = Collector()
        for projection in node.expressions:
            star = projection.this if isinstance(projection, exp.Column) else projection
            if isinstance(star, exp.Star):
                raise self._raw_rows(projection)
        self.projections = [self.names.qualified(projection) for projection in node.expressions]
        where: list[Expression] = []
        if node.args.get("where") is not None:
            with findings:
                where.append(self._where(node.args["where"]))
        lifted_keys: list[_Key] = []
        if node.args.get("group") is not None:
            with findings:
                lifted_keys.extend(self._group(node.args["group"]))
        calls = [
            *self._calls(self.projections),
            *self._calls(
                [
                    self.names.qualified(node.args[slot])
                    for slot in ("having", "qualify", "order")
                    if node.args.get(slot) is not None
                ]
            ),
            *self._calls([self.names.qualified(w) for w in node.args.get("windows") or []]),
        ]
        for reference in self._references():
            with findings:
                self.names.resolve(reference)
        found: list[tuple[exp.Expr, Aggregate]] = []
        for call in calls:
            with findings:
                found.append((call, self._aggregate(call)))
        if not calls and not lifted_keys:
            for projection in self.projections:
                inner = projection.this if isinstance(projection, exp.Alias) else projection
                with findings:
                    self.lifter.lift(inner)
            if not findings and node.args.get("distinct") is not None:
                raise refuse(
                    "private_row_limit",
                    "DISTINCT on private rows is refused",
                    "It would list which values exist.",
                    self._counted(),
                    position=text.position(node.expressions[0]),
                )
            if not findings:
                raise self._raw_rows(node.expressions[0] if node.expressions else node)
        findings.refuse()
        if len(lifted_keys) > KEYS_MAX:
            raise refuse("too_large", "GROUP BY is refused", f"It has more than {KEYS_MAX} keys.")
        ordered = {repr(canonical(key.expression)): key.expression for key in reversed(lifted_keys)}
        keys = tuple((f"k{i}", ordered[form]) for i, form in enumerate(sorted(ordered)))
        names = {repr(canonical(key)): name for name, key in keys}
        for key in lifted_keys:
            name = names[repr(canonical(key.expression))]
            if key.written.type is ColumnType.NUMBER:
                name = self.numbers.setdefault(name, f"{name}_number")
            self.key_nodes.append((key.node, name))
            self.keys[repr(canonical(key.written))] = name
        distinct: dict[str, Aggregate] = {}
        for _, aggregate in found:
            distinct.setdefault(_aggregate_form(aggregate), aggregate)
        if self.count_rows and keys and not any(counts_rows(aggregate) for aggregate in distinct.values()):
            every = Aggregate("", AggregateFunction.ROWS, argument=None, filter=None, position=None, text="COUNT(*)")
            distinct[_aggregate_form(every)] = every
        named = {form: replace(distinct[form], name=f"a{i}") for i, form in enumerate(sorted(distinct))}
        self.aggregates = {call: named[_aggregate_form(aggregate)] for call, aggregate in found}
        if len(named) > self.dataset.limits.statistics_max:
            raise refuse(
                "too_large",
                "the query is refused",
                f"It has more than {self.dataset.limits.statistics_max} different aggregates.",
                "ask them in several queries",
                position=text.position(node),
            )
        return Core(
            name=f"c{number}",
            sources=self.names.sources,
            where=where[0] if where else None,
            keys=keys,
            aggregates=tuple(named.values()),
        )

    def shell_block(self, core: str) -> exp.Select:
        """The block over the core's released table: keys and aggregates become columns, HAVING becomes WHERE."""
        tree = exp.Select()
        projections: list[exp.Expr] = []
        for original, projection in zip(self.node.expressions, self.projections, strict=True):
            inner = projection.this if isinstance(projection, exp.Alias) else projection
            # The output's name comes from the analyst's text, so it is taken before the rewrite.
            bare = original.this if isinstance(original, exp.Alias) else original
            name = original.alias if isinstance(original, exp.Alias) else output_name(self.text, bare)
            projections.append(exp.alias_(self._rewrite(inner, core, ()), name, quoted=True))
        tree.set("expressions", projections)
        if self.node.args.get("having") is not None:
            consume(self.node.args["having"], "this", text=self.text, what="HAVING")
            having = self.names.qualified(self.node.args["having"].this)
            tree.set("where", exp.Where(this=self._rewrite(having, core, ())))
        if self.node.args.get("qualify") is not None:
            consume(self.node.args["qualify"], "this", text=self.text, what="QUALIFY")
            qualify = self.names.qualified(self.node.args["qualify"].this)
            tree.set("qualify", exp.Qualify(this=self._rewrite(qualify, core, ())))
        if self.node.args.get("order") is not None:
            order = self.node.args["order"]
            consume(order, "expressions", text=self.text, what="ORDER BY")
            tree.set("order", exp.Order(expressions=[self._ordered(item, core) for item in order.expressions]))
        if self.node.args.get("windows"):
            tree.set("windows", [self._rewrite(self.names.qualified(w), core, ()) for w in self.node.args["windows"]])
        for slot in ("limit", "offset", "distinct"):
            if self.node.args.get(slot) is not None:
                tree.set(slot, self.node.args[slot].copy())
        return tree

    def _ordered(self, item: exp.Expr, core: str) -> exp.Expr:
        if not isinstance(item, exp.Ordered):
            raise self.nodes.refusal(item)
        inner = item.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
        copy = item.copy()
        alias = isinstance(inner, exp.Column) and not inner.table and self._alias(inner.name) is not None
        if (
            not alias
            and not (isinstance(inner, exp.Literal) and not inner.is_string)
            and not isinstance(inner, exp.Var)
        ):
            copy.set("this", self._rewrite(self.names.qualified(inner), core, ()))
        return copy

    def _where(self, node: exp.Expr) -> Expression:
        consume(node, "this", text=self.text, what="WHERE")
        calls = self._calls([node.this])
        if calls:
            called = calls[0].this if isinstance(calls[0], exp.Filter) else calls[0]
            name = self.text.spelled(called)
            raise refuse(
                "unsupported_sql",
                "an aggregate in WHERE is refused" if name is None else f"{name} in WHERE is refused",
                "It is an aggregate, and WHERE filters rows before they are aggregated.",
                "use HAVING",
                position=self.text.position(calls[0]),
            )
        for reference in node.this.find_all(exp.Column):
            alias = None if reference.table or self.names.knows(reference.name) else self._alias(reference.name)
            if alias is not None:
                raise refuse(
                    "unsupported_sql",
                    f'the alias "{reference.name[:63]}" in WHERE is refused',
                    "WHERE filters rows, before the select list is computed.",
                    "use HAVING" if self._calls([alias]) else "repeat the expression, or use HAVING",
                    position=self.text.position(reference),
                )
        condition = self.lifter.lift(node.this)
        return self._boolean(node.this, condition, "WHERE")

    def _boolean(self, node: exp.Expr, condition: Expression, clause: str) -> Expression:
        if condition.type is not ColumnType.BOOLEAN:
            raise refuse(
                "unsupported_type",
                f"{clause} is refused",
                "Its condition is not true or false.",
                "write a comparison",
                position=self.text.position(node),
            )
        return condition

    def _group(self, group: exp.Expr) -> list[_Key]:
        levels = (exp.Rollup, exp.Cube, exp.GroupingSets)
        if populated(group) - {"expressions", "all"} or any(isinstance(item, levels) for item in group.expressions):
            raise refuse(
                "unsupported_sql",
                "ROLLUP, CUBE and GROUPING SETS are refused",
                "They are not answered yet.",
                "ask each level in its own query",
                position=self.text.position(group),
            )
        nodes: list[exp.Expr] = []
        if group.args.get("all"):
            for projection in self.projections:
                inner = projection.this if isinstance(projection, exp.Alias) else projection
                if not self._calls([inner]):
                    nodes.append(inner)
        nodes += [self._group_item(part) for item in group.expressions for part in _unbracketed(item)]
        result = []
        for node in nodes:
            written = self.lifter.lift(node)
            key = self._gathered(node, written)
            self._check_key(node, written, key)
            if key.type is ColumnType.NUMBER:
                key = self.lifter.make(node, "cast_integer", key)
            result.append(_Key(node, written, key))
        return result

    def _gathered(self, node: exp.Expr, key: Expression) -> Expression:
        try:
            return gathered(key, self.dataset.limits.cells_max)
        except TypeRefused as refusal:
            raise refuse(
                refusal.finding.code,
                "a key of GROUP BY is refused",
                "The declared keys of its column are too many to compare each row with.",
                "group by a condition on the column: CASE WHEN ... THEN ... END",
                position=self.text.position(node),
            ) from None

    def _group_item(self, item: exp.Expr) -> exp.Expr:
        if isinstance(item, exp.Literal) and not item.is_string:
            place = int(item.this) - 1 if str(item.this).isdigit() else -1
            if not 0 <= place < len(self.projections):
                raise refuse(
                    "unknown_column",
                    "a position in GROUP BY is refused",
                    f"The select list has {len(self.projections)} columns.",
                    position=self.text.position(item),
                )
            chosen = self.projections[place]
            return chosen.this if isinstance(chosen, exp.Alias) else chosen
        if isinstance(item, exp.Column) and not item.table and not self.names.knows(item.name):
            alias = self._alias(item.name)
            if alias is not None:
                return alias
        return self.names.qualified(item)

    def _alias(self, name: str) -> exp.Expr | None:
        """What the select list calls so. Errors: Refused when two of its columns have the name."""
        named = [p for p in self.projections if isinstance(p, exp.Alias) and p.alias.lower() == name.lower()]
        if len(named) > 1:
            raise refuse(
                "ambiguous_column",
                f'the alias "{name[:63]}" is refused',
                "Two columns of the select list have that name, and this text could mean either.",
                "give each column its own alias",
                position=self.text.position(named[1]),
            )
        inner: exp.Expr | None = named[0].this if named else None
        return inner

    def _check_key(self, node: exp.Expr, key: Expression, counted_as: Expression) -> None:
        column = identifying_column(key)
        if column is not None:
            raise self._group_by_unit(node, key, column)
        if not (whole(key) or key.type is not ColumnType.NUMBER):
            floor = self.lifter.make(node, "floor", key)
            clipped = describe(key) if fits(floor, self.dataset.limits.cells_max) else _clipped(describe(key))
            ways = [f"FLOOR({clipped})", f"CASE WHEN {describe(key)} < 10 THEN 'low' ELSE 'high' END"]
            if isinstance(key, Call) and key.operator == "divide" and all(whole(part) for part in key.arguments):
                ways.insert(0, " // ".join(describe(part).removesuffix(".0") for part in key.arguments))
            raise refuse(
                "unsupported_type",
                "grouping by a number with a fraction is refused",
                "Almost every group would be one row.",
                *(f"GROUP BY {way}" for way in ways),
                position=self.text.position(node),
            )
        if not fits(counted_as, self.dataset.limits.cells_max):
            raise refuse(
                "too_large",
                "a key of GROUP BY is refused",
                "Its values may leave the range of 64-bit integers: its columns have no bounds, or too wide ones.",
                f"clip them in the query: {_clipped('x')}",
                "ask an administrator to declare bounds for the column",
                position=self.text.position(node),
            )

    def _group_by_unit(self, node: exp.Expr, key: Expression, column: ColumnRef) -> Refused:
        if column.is_unit:
            what = "grouping by the privacy unit is refused"
            why = "Each group would be one person."
            mean: tuple[str, ...] = (f"COUNT(*) / COUNT(DISTINCT {column.name}) is the mean number of rows per person",)
        else:
            what = f'grouping by "{column.name}" is refused'
            why = f'A value of "{column.name}" belongs to one person, so each group would be (of) one person.'
            mean = ()
        if not isinstance(key, ColumnRef):
            why += f" {describe(key)} has another value for each value of it."
        return refuse(
            "group_by_unit",
            what,
            why,
            "group by an attribute that many people share",
            *mean,
            position=self.text.position(node),
        )

    def _raw_rows(self, node: exp.Expr) -> Refused:
        place = self.text.position(node)
        if isinstance(node, exp.Star) and (place is None or place.text != "*") and self.node.args.get("from_"):
            place = self.text.position(self.node.args["from_"].this)  # FROM people: its star is not written
        inner = "put its conditions into the query that aggregates: it reads the table itself, not its rows"
        return refuse(
            "raw_rows",
            "a query for rows is refused",
            "Its answer would contain rows about people; only statistics are answered.",
            *((inner,) if self.node.parent is not None else ()),
            self._counted(),
            f"aggregate: {', '.join(SHORT)}",
            position=place,
        )

    def _listed(self, node: exp.Expr) -> tuple[str, ...]:
        about = self.lifter.about(node)
        return ("group by it, and COUNT(*) counts each value",) if about is None else (listed(about),)

    def _counted(self) -> str:
        """A query that is answered in place of rows: it counts them, by the columns of the select list if it can."""
        table = named(self.names.sources[0].table.name)
        columns = []
        for projection in self.projections:
            inner = projection.this if isinstance(projection, exp.Alias) else projection
            about = self.lifter.about(exp.Max(this=inner)) if isinstance(inner, exp.Column) else None
            if about is None or about.table != table or about.type is ColumnType.NUMBER:
                return counted(table)
            columns.append(about.column)
        keys = ", ".join(dict.fromkeys(columns))
        return f"SELECT {keys}, COUNT(*) AS n FROM {table} GROUP BY {keys}" if columns else counted(table)

    # Aggregate calls

    def _calls(self, nodes: Sequence[exp.Expr]) -> list[exp.Expr]:
        """The aggregate calls of the core in some nodes: not windows' own functions, not nested queries."""
        calls: list[exp.Expr] = []
        stack = [(node, False) for node in reversed(nodes)]
        while stack:
            node, own_of_window = stack.pop()
            if isinstance(node, _NESTED):
                continue
            inner = node.this if isinstance(node, exp.Filter) else node
            if not own_of_window and _is_aggregate(inner):
                calls.append(node)
                continue
            window_function = node.this if isinstance(node, exp.Window) else None
            if own_of_window and isinstance(node, _AROUND_CALLS):
                window_function = node.this
            children = reversed(list(node.iter_expressions()))
            stack.extend((child, child is window_function) for child in children)
        return calls

    def _references(self) -> list[exp.Column]:
        """The columns of the select list outside aggregates and nested queries, aliases apart."""
        found: list[exp.Column] = []
        calls = {id(call) for call in self._calls(self.projections)}
        stack: list[exp.Expr] = [*reversed(self.projections)]
        while stack:
            node = stack.pop()
            if id(node) in calls or isinstance(node, _NESTED):
                continue
            if isinstance(node, exp.Column):
                if node.table or self._alias(node.name) is None:
                    found.append(node)
            else:
                stack.extend(reversed(list(node.iter_expressions())))
        return found

    def _aggregate(self, call: exp.Expr) -> Aggregate:
        text, position = self.text, self.text.position(call)
        condition: Expression | None = None
        node = call
        if isinstance(call, exp.Filter):
            consume(call, "this", "expression", text=text, what="FILTER")
            node = call.this
            clause = call.expression
            consume(clause, "this", text=text, what="FILTER")
            condition = self._boolean(clause.this, self.lifter.lift(clause.this), "FILTER")
        described = position.text if position else rendered(node)
        function, argument = self._function(node)
        if isinstance(node, exp.CountIf):
            assert argument is not None
            count_if = self._boolean(node.this, argument, self.text.spelled(node) or "COUNT_IF")
            condition = count_if if condition is None else self.lifter.make(node, "and", condition, count_if)
            argument = None
        return Aggregate(
            name="", function=function, argument=argument, filter=condition, position=position, text=described[:120]
        )

    def _function(self, node: exp.Expr) -> tuple[AggregateFunction, Expression | None]:
        text = self.text
        if isinstance(node, exp.CountIf):
            consume(node, "this", text=text, what="COUNT_IF")
            return AggregateFunction.ROWS, self.lifter.lift(node.this)
        if isinstance(node, exp.Count):
            consume(node, "this", "big_int", text=text, what="COUNT")
            return self._count(node)
        found = called(node)
        if found is None:
            name = text.spelled(node) or f"{rendered(node).partition('(')[0].lower()[:60]}()"
            raise refuse(
                "unsupported_function",
                f"{name} of private rows is refused",
                "It is not answered yet, or has no proved bound.",
                *instead_of(name, AGGREGATES, self.lifter.about(node)),
                position=text.position(node),
            )
        function, operand = found
        if not isinstance(node, exp.Anonymous):
            consume(node, "this", text=text, what=type(node).__name__.upper())
        if isinstance(operand, exp.Distinct):
            raise refuse(
                "unsupported_sql",
                f"DISTINCT inside {text.spelled(node) or 'an aggregate'} is refused",
                "Only COUNT(DISTINCT ...) of the privacy unit is answered.",
                "leave DISTINCT out",
                position=text.position(node),
            )
        argument = self.lifter.value(operand)
        if argument.type not in function.arguments:
            raise refuse(
                "unsupported_type",
                f"{text.spelled(node) or 'an aggregate'} is refused",
                f"Its argument is of type {argument.type.value}, not a number.",
                *(self._listed(node) if argument.type is ColumnType.TEXT else _NO_NUMBER.get(argument.type, ())),
                position=text.position(node),
            )
        return function, argument

    def _count(self, node: exp.Count) -> tuple[AggregateFunction, Expression | None]:
        operand = node.this
        if operand is None or isinstance(operand, exp.Star):
            if isinstance(operand, exp.Star):
                consume(operand, text=self.text, what="COUNT(*)")
            return AggregateFunction.ROWS, None
        if isinstance(operand, exp.Distinct):
            consume(operand, "expressions", text=self.text, what="COUNT(DISTINCT)")
            if len(operand.expressions) == 1:
                argument = self.lifter.lift(operand.expressions[0])
                if isinstance(argument, ColumnRef) and argument.is_unit:
                    return AggregateFunction.UNITS, None
            unit = self.dataset.unit
            raise refuse(
                "unsupported_sql",
                "COUNT(DISTINCT ...) is refused",
                "Only different privacy units are counted so far; values may be shared between people.",
                "COUNT(*): each row is a unit" if unit.key is None else f"COUNT(DISTINCT {unit.key})",
                position=self.text.position(node),
            )
        argument = self.lifter.lift(operand)
        return (AggregateFunction.VALUES, argument) if argument.nullable else (AggregateFunction.ROWS, None)

    # The shell in place of the block

    def _rewrite(self, node: exp.Expr, core: str, inlined: tuple[str, ...]) -> exp.Expr:
        """A copy of a node in which keys and aggregates are columns of the core's released table."""
        # Each alias that is written out may hold others twice: without a limit their number doubles each time.
        self._written += 1
        if self._written > NODES_MAX:
            raise refuse(
                "too_large",
                "the query is refused",
                "Its aliases stand for each other so often that it is too large once they are written out.",
                "compute such columns in a query around this one",
                position=self.text.position(self.node),
            )
        if isinstance(node, _NESTED):
            return node
        aggregate = self.aggregates.get(node)
        if aggregate is not None:
            return column(aggregate.name, core)
        key = self._key(node)
        if key is not None:
            return column(key, core)
        if isinstance(node, exp.Column):
            alias = self._alias(node.name) if not node.table else None
            if alias is not None and node.name.lower() not in inlined:
                return exp.Paren(this=self._rewrite(alias, core, (*inlined, node.name.lower())))
            self.names.resolve(node)  # an unknown column says so first
            self._check_functions(node)  # and then an unknown function
            raise refuse(
                "raw_rows",
                f'column "{node.name[:63]}" outside an aggregate is refused',
                "It is not a key of GROUP BY, so it would show values of people.",
                f"add {node.name[:63]} to GROUP BY, or aggregate it",
                position=self.text.position(node),
            )
        result = rebuilt(node, lambda part: self._rewrite(part, core, inlined))
        result.meta.update(node.meta)
        return result

    def _check_functions(self, node: exp.Expr) -> None:
        """Refuses the function around a column that is answered nowhere: GROUP BY would not help it."""
        around = node.parent
        while around is not None and not isinstance(around, _NESTED):
            if isinstance(around, exp.Func) and not self.lifter.knows(around) and not self.nodes.allows(around):
                raise self.lifter.refusal(around)
            around = around.parent

    def _key(self, node: exp.Expr) -> str | None:
        for tree, name in self.key_nodes:
            if tree == node:
                return name
        if not self.keys or isinstance(node, exp.Column | exp.Literal | exp.Identifier):
            return None
        if not isinstance(node, exp.Condition) or self._calls([node]) or node.find(exp.Query, exp.Window):
            return None
        if not any(self.names.is_source(c) for c in node.find_all(exp.Column)):
            return None
        try:
            return self.keys.get(repr(canonical(self.lifter.lift(node))))
        except Refused:
            return None


def _clipped(text: str) -> str:
    return f"GREATEST(0, LEAST({text}, 1000000))"


def _unbracketed(item: exp.Expr) -> list[exp.Expr]:
    """The keys that a part of GROUP BY stands for: brackets around one key or a list of keys mean nothing."""
    if isinstance(item, exp.Paren):
        return _unbracketed(item.this)
    if isinstance(item, exp.Tuple):
        return [key for part in item.expressions for key in _unbracketed(part)]
    return [item]


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in BY_NAME
    return isinstance(node, exp.AggFunc)


def _aggregate_form(aggregate: Aggregate) -> str:
    """A text that is equal for equal aggregates."""
    argument = None if aggregate.argument is None else canonical(aggregate.argument)
    condition = None if aggregate.filter is None else canonical(aggregate.filter)
    return repr((aggregate.function.value, argument, condition))
