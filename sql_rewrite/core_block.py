"""Core blocks: a SELECT over tables becomes a typed core, and a shell block that replaces it.

SELECT sex, AVG(age) / 2 AS half FROM people WHERE smoker GROUP BY sex HAVING COUNT(*) > 10
core:         people where smoker, k0 = sex, a0 = average(age), a1 = rows
shell block:  SELECT k0 AS sex, a0 / 2 AS half FROM c0 WHERE a1 > 10
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType, Dataset
from privacy.refusal import Collector, Refused
from sql_rewrite.aggregate_calls import (
    NESTED,
    AggregateReader,
    aggregate_calls,
    aggregate_form,
    counts_rows,
    is_mode,
)
from sql_rewrite.common_filter import filtered_first
from sql_rewrite.core_shell import CoreShell, KeyNames
from sql_rewrite.entries import tables_of
from sql_rewrite.expressions import Expression, canonical
from sql_rewrite.functions import build
from sql_rewrite.group_keys import GroupKey, GroupKeyReader
from sql_rewrite.hints import SHORT, counted
from sql_rewrite.levels import Levels
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.merged_keys import before_the_join, covered, of_nobody
from sql_rewrite.modes import Mode, ModeReader
from sql_rewrite.narrowed_values import narrowed_core
from sql_rewrite.plan import Aggregate, Chosen, Core
from sql_rewrite.preserved import check_preserved, drops_nobody
from sql_rewrite.public_ranges import with_public_ranges
from sql_rewrite.quantile_moments import Shown
from sql_rewrite.refuse import refuse
from sql_rewrite.row_condition import RowCondition
from sql_rewrite.select_list import SelectList
from sql_rewrite.shell import ShellNodes
from sql_rewrite.sources import SourceNames
from sql_rewrite.spelling import named
from sql_rewrite.syntax import clauses

__all__ = ["CoreBlock"]

KEYS_MAX = 16
"""Most keys of one GROUP BY."""


class CoreBlock:
    """One SELECT block over tables: its core, and the shell block that replaces it."""

    def __init__(
        self,
        node: exp.Select,
        *,
        dataset: Dataset,
        names: SourceNames,
        lifter: ExpressionLift,
        nodes: ShellNodes,
        count_rows: bool = False,
        levels: Levels | None = None,
    ) -> None:
        self.count_rows = count_rows
        self.levels = levels
        self.text = nodes.text
        self.dataset = dataset
        self.nodes = nodes
        self.node = node
        self.names = names
        self.lifter = lifter
        self.select = SelectList(node, names, self.text)
        self.reader = AggregateReader(self.text, lifter)
        self.keys = KeyNames()
        self.numbers: dict[str, str] = {}
        """Keys that are whole numbers: their names in the core, and in the shell, where they are doubles."""
        self.aggregates: dict[exp.Expr, Aggregate] = {}
        self.moments: dict[exp.Expr, Shown] = {}
        """The calls of aggregates that are dates or timestamps."""

    def core(self) -> Core:
        """The block's core, without a name. Collects findings of independent parts and refuses with all of them."""
        node = self.node
        for projection in node.expressions:
            star = projection.this if isinstance(projection, exp.Column) else projection
            if isinstance(star, exp.Star):
                raise self._raw_rows(projection)
        findings = Collector()
        where: Expression | None = None
        condition = RowCondition(self.text, self.names, self.select, self.reader)
        with findings:
            where = condition.read(node.args.get("where"))
        keys: list[GroupKey] = []
        key_reader = GroupKeyReader(self.text, self.select, self.names, self.lifter, self.dataset)
        if node.args.get("group") is not None:
            with findings:
                keys = key_reader.read(node.args["group"])
        shown = aggregate_calls(self.select.projections)
        for reference in self._references(shown):
            with findings:
                if not self.names.holds_interval(reference):
                    self.names.resolve(reference)
        calls = [*shown, *aggregate_calls(self._clauses())]
        found: list[tuple[exp.Expr, Aggregate]] = []
        mode: Mode | None = None
        if any(map(is_mode, calls)):
            with findings:
                mode = self._mode(calls, key_reader)
        for call in calls:
            if is_mode(call):
                continue
            with findings:
                found.append((call, self.reader.read(call)))
                kind = self.reader.moments.get(id(call.this if isinstance(call, exp.Filter) else call))
                if kind is not None:
                    self.moments[call] = kind
        if not calls and not keys:
            self._check_rows(findings)
        findings.refuse()
        if mode is not None:
            return self._most_frequent(mode, keys, where, condition)
        met = self._check_preserved(condition, where, keys, found)
        self._check_number(keys)
        named_keys = self._name_keys(keys)
        named = self._name_aggregates(found, grouped=bool(named_keys))
        core = Core("", self.names.sources, where, named_keys, named, met=met)
        filtered = named and named[0].filter is not None
        if filtered and not (self.names.preserved or self.levels or self.count_rows):
            core = filtered_first(core, self.dataset)
        core = narrowed_core(core)
        return with_public_ranges(core, self.names.dataset)

    def _mode(self, calls: list[exp.Expr], keys: GroupKeyReader) -> Mode:
        """What the calls of MODE ask for. Errors: Refused."""
        if self.count_rows:
            raise refuse(
                "unsupported_sql",
                "MODE is refused where empty groups are left out",
                "It counts nothing that is released, so no group is known to be empty.",
                "ask without nonempty",
                position=self.text.position(next(call for call in calls if is_mode(call))),
            )
        return ModeReader(self.text, self.reader, keys).read(calls)

    def _most_frequent(
        self, mode: Mode, keys: list[GroupKey], where: Expression | None, condition: RowCondition
    ) -> Core:
        """The core of a block that asks for MODE: its value is a key more, chosen within the groups of the others."""
        every = [*keys, mode.key]
        met = self._check_preserved(condition, where, every, [(mode.key.node, mode.score)])
        self._check_number(every)
        named_keys = self._name_keys(every)
        forms = {repr(canonical(key.expression)) for key in keys}
        within = tuple(name for name, key in named_keys if repr(canonical(key)) in forms)
        if mode.present is not None:
            where = mode.present if where is None else build("and", (where, mode.present))
        choice = Chosen(score=mode.score, count=1, within=within, least=False)
        return Core("", self.names.sources, where, named_keys, aggregates=(), choice=choice, met=met)

    def _check_number(self, keys: list[GroupKey]) -> None:
        if len(keys) > KEYS_MAX:
            raise refuse("too_large", "GROUP BY is refused", f"It has more than {KEYS_MAX} keys.")

    def _check_preserved(
        self,
        condition: RowCondition,
        where: Expression | None,
        keys: list[GroupKey],
        found: list[tuple[exp.Expr, Aggregate]],
    ) -> tuple[Expression, ...]:
        """Refuses what would see rows of nobody. Returns the conditions that rule out no group. Errors: Refused."""
        if not self.names.preserved:
            return condition.met
        aggregates = []
        for call, aggregate in found:
            inner = call.this if isinstance(call, exp.Filter) else call
            aggregates.append((aggregate, self.reader.counted.get(id(inner), aggregate.argument)))
        written = [key.written for key in keys]
        place = self.text.position(self.node)
        sources = {source.relation: source for source in self.names.sources}
        pairs = [one for one in self.names.merged if covered(one, sources[one[1].relation], self.dataset)]
        preserved, own = self.names.preserved, condition.own
        check_preserved(
            preserved, own, written, aggregates, place,
            counted=self._counted_column(), merged=pairs, public=self._public_keys(),
        )  # fmt: skip
        if drops_nobody(preserved, own) or all(of_nobody(key, pairs) is key for key in written):
            return condition.met
        before = [part for pair in pairs for part in before_the_join(where, own, pair)]
        return tuple(dict.fromkeys((*condition.met, *before)))

    def _public_keys(self) -> list[str]:
        """The public columns that FULL JOINs compare, as the text may call them."""
        return [
            f"{named(item.alias_or_name)}.{named(column.name)}"
            for item in self._items()
            for _, column in self.names.merged
            if self.names.relation_of(item.alias_or_name) == column.relation
        ]

    def _items(self) -> list[exp.Expr]:
        """What FROM lists."""
        return [self.node.args["from_"].this, *(join.this for join in self.node.args.get("joins") or [])]

    def _counted_column(self) -> str:
        """A column of people's rows that is never NULL, as the text may call it; x where there is none."""
        for item in self._items():
            relation = self.names.relation_of(item.alias_or_name)
            entry = next((one for one in self.names.entries if one.relation == relation), None)
            if entry is None or not any(source.table.protected for source in tables_of(entry)):
                continue
            for name, column in self.names.star(relation):
                if not column.nullable:
                    return f"{named(item.alias_or_name)}.{named(name)}"
        return "x"

    def shell_block(self, core: str) -> exp.Select:
        """The block over the released table of that core. Requires: `core` was called."""
        return CoreShell(
            self.node,
            core=core,
            select=self.select,
            keys=self.keys,
            aggregates=self.aggregates,
            moments=self.moments,
            names=self.names,
            lifter=self.lifter,
            nodes=self.nodes,
            levels=self.levels,
        ).block()

    def _clauses(self) -> list[exp.Expr]:
        """The clauses that may aggregate, with columns by their declared names."""
        found = [*clauses(self.node, "having", "qualify", "order"), *(self.node.args.get("windows") or [])]
        return [self.names.qualified(clause) for clause in found]

    def _check_rows(self, findings: Collector) -> None:
        """Refuses a block that aggregates nothing: collects what else is wrong, or says that it asks for rows."""
        for value in self.select.values:
            with findings:
                self.lifter.lift(value)
        if findings:
            return
        expressions = self.node.expressions
        if self.node.args.get("distinct") is not None:
            raise refuse(
                "private_row_limit",
                "DISTINCT on private rows is refused",
                "It would list which values exist.",
                self._counted(),
                position=self.text.position(expressions[0] if expressions else self.node),
            )
        raise self._raw_rows(expressions[0] if expressions else self.node)

    def _name_keys(self, keys: list[GroupKey]) -> tuple[tuple[str, Expression], ...]:
        """The keys of the core in canonical order, each once."""
        forms = [repr(canonical(key.expression)) for key in keys]
        distinct = {form: key.expression for form, key in zip(reversed(forms), reversed(keys), strict=True)}
        names = {form: f"k{i}" for i, form in enumerate(sorted(distinct))}
        for form, key in zip(forms, keys, strict=True):
            name = names[form]
            if key.written.type is ColumnType.NUMBER:
                name = self.numbers.setdefault(name, f"{name}_number")
            self.keys.trees.append((key.node, name))
            if key.divisor != 1:
                self.keys.divisors.append((key.node, key.divisor))
            elif key.interval:
                self.keys.intervals.append(key.node)
            elif key.by_form:
                self.keys.forms[repr(canonical(key.written))] = name
        return tuple((name, distinct[form]) for form, name in names.items())

    def _name_aggregates(self, found: list[tuple[exp.Expr, Aggregate]], *, grouped: bool) -> tuple[Aggregate, ...]:
        """The aggregates of the core in canonical order, each once."""
        forms = [aggregate_form(aggregate) for _, aggregate in found]
        distinct: dict[str, Aggregate] = {}
        for form, (_, aggregate) in zip(forms, found, strict=True):
            distinct.setdefault(form, aggregate)
        if self.count_rows and grouped and not any(map(counts_rows, distinct.values())):
            every = Aggregate("", AggregateFunction.ROWS, argument=None, filter=None, position=None, text="COUNT(*)")
            distinct[aggregate_form(every)] = every
        if self.levels is not None:
            # The weights of averages at coarser levels: one noise with them, so they are free.
            for average in [one for one in distinct.values() if one.function is AggregateFunction.AVERAGE]:
                counted = None if average.argument is None or not average.argument.nullable else average.argument
                function = AggregateFunction.ROWS if counted is None else AggregateFunction.VALUES
                count = replace(average, function=function, argument=counted)
                distinct.setdefault(aggregate_form(count), count)
        named = {form: replace(distinct[form], name=f"a{i}") for i, form in enumerate(sorted(distinct))}
        self.aggregates = {call: named[form] for form, (call, _) in zip(forms, found, strict=True)}
        if len(named) > self.dataset.limits.statistics_max:
            raise refuse(
                "too_large",
                "the query is refused",
                f"It has more than {self.dataset.limits.statistics_max} different aggregates.",
                "ask them in several queries",
                position=self.text.position(self.node),
            )
        return tuple(named.values())

    def _references(self, calls: list[exp.Expr]) -> list[exp.Column]:
        """The columns of the select list outside its aggregate calls and nested queries, aliases apart."""
        found: list[exp.Column] = []
        inside = set(map(id, calls))
        stack: list[exp.Expr] = [*reversed(self.select.projections)]
        while stack:
            node = stack.pop()
            if id(node) in inside or isinstance(node, NESTED):
                continue
            if isinstance(node, exp.Column):
                if node.table or self.select.alias(node.name) is None:
                    found.append(node)
            else:
                stack.extend(reversed(list(node.iter_expressions())))
        return found

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

    def _counted(self) -> str:
        """A query that is answered in place of rows: it counts them, by the columns of the select list if it can."""
        source = self.names.sources[0]
        while not source.stored:
            inner = source.union.branches[0] if source.union is not None else source.windows or source.groups
            assert inner is not None
            source = inner.sources[0]
        table = named(source.table.name)
        columns = []
        for value in self.select.values:
            about = self.lifter.about(exp.Max(this=value)) if isinstance(value, exp.Column) else None
            if about is None or about.table != table or about.type is ColumnType.NUMBER:
                return counted(table)
            columns.append(about.column)
        keys = ", ".join(dict.fromkeys(columns))
        return f"SELECT {keys}, COUNT(*) AS n FROM {table} GROUP BY {keys}" if columns else counted(table)
