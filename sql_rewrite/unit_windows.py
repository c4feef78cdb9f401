"""Nested blocks of rows about people with windows within their unit, QUALIFY, and DISTINCT ON the unit.

    SELECT AVG(gap) FROM (SELECT date_diff('day', LAG(day) OVER (PARTITION BY person_id ORDER BY day), day) AS gap
                          FROM visits) AS t
    source:  visits, with w = the day of the row before, of the same person; gap = days from w to day
    core:    that source, a0 = average(gap)

Claim. The result is unit-local: the rows of unit u are a deterministic multiset function of the multiset of u's own
rows below, and each row has exactly one unit. Proof: every window is partitioned by the unit, whatever else is beside
it, so it reads u's rows alone. Ranks, and sums over all rows that are equal in an order, do not distinguish rows that
are equal in it. What does (row numbers, LAG, frames of so many rows) orders equal rows by all their cells, which is all
that the block reads of them; so the sequence of cells is a function of the multiset, and rows with equal cells are one
as good as the other. Where several windows distinguish rows they order by one number, that of a row in the order of
its cells: two rows with equal cells then change places in all windows at once. Sums are exact (unit_values.py).

Windows repeat and leave out no row: a unit has as many as below. Of rows whose ROW_NUMBER within the unit is at most k
a unit has k, whatever the rows are (numbered_rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from privacy.policy import ROWS_STORED_MOST, Column, ColumnType, Dataset, Reference, Table
from privacy.refusal import Finding
from sql_rewrite.aggregate_calls import NESTED, AggregateReader
from sql_rewrite.expressions import ColumnRef, Expression, Literal, columns_of, describe, form_of
from sql_rewrite.interval_columns import named_moments, shown_name
from sql_rewrite.lift_difference import difference
from sql_rewrite.lift_expression import ExpressionLift, Member
from sql_rewrite.lifter import ParameterValue
from sql_rewrite.nested_block import Around, NestedBlock, Scalar
from sql_rewrite.numbered_rows import limited, most_rows
from sql_rewrite.plan import Source, UnitPlace, UnitRows, UnitValue, UnitWindow
from sql_rewrite.reachable import conjuncts
from sql_rewrite.references import reference
from sql_rewrite.refuse import refuse
from sql_rewrite.row_condition import RowCondition
from sql_rewrite.rows import Rows
from sql_rewrite.rows_block import star_relation
from sql_rewrite.shell import output_name
from sql_rewrite.sources import SourceNames, both
from sql_rewrite.spelling import named
from sql_rewrite.syntax import consume, select_place
from sql_rewrite.text import Text
from sql_rewrite.unit_calls import written
from sql_rewrite.unit_facts import contribution_bound, names_unit, rows_bound, rows_of_unit
from sql_rewrite.unit_keys import key_space
from sql_rewrite.unit_values import content_name, facts_of_place, facts_of_window, renamed
from sql_rewrite.window_calls import WindowReader, frame_of, includes_row, row_number

__all__ = ["WindowBlock", "windowed"]

WINDOWS_MAX = 32
"""Most windows of one block: each is computed for every row."""


def windowed(node: exp.Select) -> bool:
    """Whether a block that selects rows has windows of its own, or chooses rows by them."""
    distinct = node.args.get("distinct")
    if node.args.get("qualify") is not None or (distinct is not None and distinct.args.get("on") is not None):
        return True
    stack: list[exp.Expr] = list(node.expressions)
    while stack:
        part = stack.pop()
        if isinstance(part, exp.Window):
            return True
        if not isinstance(part, NESTED):
            stack += part.iter_expressions()
    return False


class WindowBlock(NestedBlock):
    """One with windows."""

    def __init__(self, node: exp.Select, names: SourceNames, around: Around) -> None:
        super().__init__(node, names, around)
        text, parameters, tables, scalar = around.text, around.parameters, self._tables, around.scalar
        # Beside cells and windows nothing is read but what an earlier stage releases: it is the same in every row.
        released = None if scalar is None else partial(_released, scalar)
        self._of_row = ExpressionLift(text, self._cell_named, parameters, tables, member=released)
        self._lifter = _WindowLift(self._window, text, self._named, parameters, tables, released)
        self._of_output = _WindowLift(self._window_output, text, self._output_named, parameters, tables, released)
        self._reader = WindowReader(text, self._of_row, node.args.get("windows") or [])
        self._aliases: dict[str, Expression] = {}
        self._cells: dict[str, Expression] = {}
        self._windows: dict[str, UnitWindow] = {}
        self._columns: dict[str, tuple[Expression, str]] = {}
        self._relation = ""

    def rows(self, relation: str) -> Rows:
        """What the block stands for, under that name of its source. Errors: Refused."""
        self._relation = relation
        on = self._check()
        where = RowCondition(self._text, self._names, self._select, AggregateReader(self._text, self._plain)).read(
            self._node.args.get("where")
        )
        outputs = [(name, self._output(found, shown_name(name))) for name, found in self._listed()]
        condition = self._first_of(on) if on is not None else self._qualified()
        self._reader.check_used()
        computed = UnitRows(
            sources=self._names.sources,
            where=where,
            cells=tuple(sorted(self._cells.items())),
            windows=tuple(self._windows[name] for name in sorted(self._windows)),
            columns=tuple((name, self._columns[name][0]) for name in sorted(self._columns)),
        )
        shown_as = {name: shown for name, (_, shown) in self._columns.items()}
        source = Source(relation, described(computed, shown_as, self._dataset), windows=computed)
        kept: Expression | None = None
        for part in [] if condition is None else conjuncts(condition):
            most = most_rows(part, (source,))
            if most is None:
                kept = both(kept, part)
            else:
                source = limited(source, part, most[1])
        return Rows((source,), kept, tuple(outputs))

    @property
    def warnings(self) -> list[Finding]:
        """What conditions and columns warn of."""
        return [w for lift in (self._plain, self._of_row, self._lifter, self._of_output) for w in lift.warnings]

    def _check(self) -> list[exp.Expr] | None:
        """Refuses what the block may not have; the keys of DISTINCT ON. Errors: Refused."""
        distinct = self._node.args.get("distinct")
        on = None if distinct is None else distinct.args.get("on")
        if distinct is not None:
            consume(distinct, "on", text=self._text, what="DISTINCT")
        place = self._text.position(self._node)
        self._refuse_clauses(
            "of each person's rows: QUALIFY ROW_NUMBER() OVER (PARTITION BY <key of the unit> ORDER BY x) <= 3",
            but=("distinct", "qualify", "windows") if on is None else ("distinct", "qualify", "windows", "order"),
        )
        if on is not None and self._node.args.get("qualify") is not None:
            raise refuse(
                "unsupported_sql",
                "QUALIFY beside DISTINCT ON is refused",
                "Both choose rows, and it is easily missed which of them comes first.",
                "write one of them in a nested query",
                position=place,
            )
        self._check_sources("no window is over them")
        if on is None:
            return None
        consume(on, "expressions", text=self._text, what="DISTINCT ON")
        return list(on.expressions)

    # Names

    def _cell(self, found: Expression) -> ColumnRef:
        """What a column stands for, as a cell of the row."""
        name = content_name("k", form_of(found))
        self._cells[name] = found
        nullable = found.nullable and not names_unit(found, self._names.sources)
        return renamed(found, name, describe(found), nullable=nullable)

    def _named(self, node: exp.Column) -> Expression:
        """A column of what is read, or of the select list before this one."""
        if not node.table and not self._names.knows(node.name):
            alias = self._aliases.get(node.name.lower())
            if alias is not None:
                return alias
        return self._cell(self._names.resolve(node))

    def _cell_named(self, node: exp.Column) -> Expression:
        """The same inside a window, where no other window may be."""
        found = self._named(node)
        if {ref.name for ref in columns_of(found)} & self._windows.keys():
            raise refuse(
                "unsupported_sql",
                "a window inside a window is refused",
                "Windows of one block are computed side by side.",
                "compute the inner one in a nested query",
                position=self._text.position(node),
            )
        return found

    def _output_named(self, node: exp.Column) -> Expression:
        found = self._named(node)
        return self._output(found, describe(found))

    def _output(self, found: Expression, shown: str) -> ColumnRef:
        """A column of the block, as the block around it reads it."""
        name = content_name("c", form_of(found))
        self._columns.setdefault(name, (found, shown))
        made = renamed(found, name, self._columns[name][1], nullable=found.nullable)
        return replace(made, relation=self._relation)

    # What is selected

    def _listed(self) -> list[tuple[str, Expression]]:
        listed: list[tuple[str, Expression]] = []
        for projection in self._node.expressions:
            star = projection.this if isinstance(projection, exp.Column) else projection
            if isinstance(star, exp.Star):
                consume(star, text=self._text, what="*")
                relation = star_relation(self._names, projection, self._text)
                listed += [(name, self._cell(found)) for name, found in self._names.star(relation)]
            else:
                listed += self._projected(projection)
            self._check_columns(len(listed))
        return listed

    def _projected(self, projection: exp.Expr) -> list[tuple[str, Expression]]:
        aliased = isinstance(projection, exp.Alias)
        name = projection.alias if aliased else output_name(self._text, projection)
        if aliased:
            consume(projection, "this", "alias", text=self._text, what="an alias")
        written = projection.unalias()
        moments = difference(self._lifter, written)
        made = [(name, self._lifter.lift(written))] if moments is None else named_moments(name, moments, self._text)
        for column, found in made if aliased else ():
            self._aliases.setdefault(column.lower(), found)
        return made

    # Which rows are kept

    def _qualified(self) -> Expression | None:
        """The condition of QUALIFY, over the columns of the block. Errors: Refused."""
        clause = self._node.args.get("qualify")
        if clause is None:
            return None
        consume(clause, "this", text=self._text, what="QUALIFY")
        return AggregateReader(self._text, self._of_output).condition(clause.this, "QUALIFY")

    def _first_of(self, on: Sequence[exp.Expr]) -> Expression:
        """That a row is the first of those with one value of each key of DISTINCT ON. Errors: Refused."""
        partition = [self._of_row.lift(self._meant(key)) for key in on]
        self._check_unit(partition, self._node.args["distinct"], "DISTINCT ON", "its keys do")
        order = self._node.args.get("order")
        terms: Sequence[exp.Expr] = ()
        if order is not None:
            consume(order, "expressions", text=self._text, what="ORDER BY")
            terms = order.expressions
        window = row_number(self._partition(partition), self._reader.terms(terms, self._meant))
        number = self._output(self._made(window, "the place of a row"), "the place of a row")
        return self._of_row.make(self._node, "=", number, Literal(1, ColumnType.INTEGER))

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """What a place or an alias in ORDER BY or DISTINCT ON stands for."""
        place = select_place(node)
        if place is not None and 0 <= place < len(self._select.values):
            return self._select.values[place]
        if isinstance(node, exp.Column) and not node.table:
            return self._select.alias(node.name) or node
        return node

    # Windows

    def _window_output(self, node: exp.Window) -> ColumnRef:
        found = self._window(node)
        return self._output(found, found.shown or found.name)

    def _window(self, node: exp.Window) -> ColumnRef:
        """The value of a window function, as a column beside the cells. Errors: Refused."""
        rows = rows_of_unit(self._names.sources)
        spec = self._reader.spec(node)
        partition = [self._of_row.lift(key) for key in spec.partition]
        self._check_unit(partition, node, "a window function on private rows", "PARTITION BY does")
        value = self._reader.value(node, rows)
        order = self._reader.terms(spec.order)
        frame = frame_of(value, spec.frame, order=order, lifter=self._of_row, node=node)
        window = UnitWindow("", value, self._partition(partition), order, frame)
        return self._made(window, written(self._text, node, value.function))

    def _made(self, window: UnitWindow, shown: str) -> ColumnRef:
        """The column of a window, by a name that follows from its content."""
        name = content_name("w", *forms_of(window))
        if name not in self._windows and len(self._windows) >= WINDOWS_MAX:
            raise refuse(
                "too_large",
                "a nested query is refused",
                f"It has more than {WINDOWS_MAX} windows.",
                position=self._text.position(self._node),
            )
        self._windows[name] = replace(window, name=name)
        rows, bound = rows_of_unit(self._names.sources), rows_bound(self._names.sources)
        value, framed = window.value, includes_row(window.frame)
        if isinstance(value, UnitPlace):
            return facts_of_place(value, name, rows=rows, bound=bound, shown=shown, framed=framed)
        return facts_of_window(value, name, rows=rows, bound=bound, shown=shown, framed=framed)

    def _partition(self, keys: Sequence[Expression]) -> tuple[Expression, ...]:
        """What distinguishes rows of one unit: the unit's own key is there in any case."""
        apart = {repr(form_of(key)): key for key in keys if not self._is_unit(key)}
        return tuple([apart[form] for form in sorted(apart)])

    def _is_unit(self, key: Expression) -> bool:
        cell = self._cells.get(key.name) if isinstance(key, ColumnRef) else None
        return cell is not None and names_unit(cell, self._names.sources)

    def _check_unit(self, keys: Sequence[Expression], node: exp.Expr, what: str, who: str) -> None:
        """Refuses keys among whose rows those of different units could be.

        Rows with equal values in a column of a key space belong to one unit (unit_keys.py): visit_id.
        """
        cells = [self._cells.get(key.name) for key in keys if isinstance(key, ColumnRef)]
        if any(cell is not None and key_space(cell, self._names.sources) is not None for cell in cells):
            return
        raise refuse(
            "private_row_limit",
            f"{what} is refused",
            f"It puts rows beside each other, perhaps of different people: {who} not hold the key of the privacy unit.",
            *self._with_unit(),
            "use the window on released numbers, in a query around the aggregation",
            position=self._text.position(node),
        )

    def _with_unit(self) -> tuple[str, ...]:
        """What to write where the unit is missing: a query over the same table, if that has the unit's key."""
        for source in self._names.sources:
            for column in source.table.columns if source.stored else ():
                if names_unit(reference(source, column, self._dataset), (source,)):
                    unit, table = named(column.name), named(source.table.name)
                    numbered = f"SELECT {unit}, ROW_NUMBER() OVER (PARTITION BY {unit}) AS place FROM {table}"
                    return (f"SELECT COUNT(*) AS n FROM ({numbered}) AS t WHERE place = 1",)
        return ("join the table that holds the key of the privacy unit, and write it in PARTITION BY",)


def forms_of(window: UnitWindow) -> tuple[object, ...]:
    """What makes two windows one."""
    value = window.value
    if isinstance(value, UnitValue):
        own: tuple[object, ...] = (value.name,)
    else:
        own = (value.function.value, form_of(value.argument), value.number, form_of(value.otherwise))
        own = (*own, "ignores null") if value.ignores_null else own
    frame: tuple[object, ...] | None = None
    if window.frame is not None:
        frame = (window.frame.rows, window.frame.start, window.frame.end)
        more = (window.frame.by, window.frame.exclude)
        frame = frame if more == ("", "") else (*frame, *more)
    order = tuple((form_of(term.expression), term.descending, term.nulls_first) for term in window.order)
    return *own, tuple(map(form_of, window.partition)), order, frame


def described(computed: UnitRows, shown: Mapping[str, str], dataset: Dataset) -> Table:
    """The rows as a table, with what is known of it; `shown` is what people call its columns."""
    root, known = computed.sources[0].table, dataset.unit
    columns = []
    unit: str | None = None
    for name, expression in computed.columns:
        columns.append(Column(name, expression.type, nullable=expression.nullable, description=shown[name]))
        if isinstance(expression, ColumnRef) and expression.is_unit and not expression.nullable:
            unit = name
    references = () if unit is None or known.key is None else (Reference(unit, known.table, known.key),)
    one_row = rows_of_unit(computed.sources) == 1
    return replace(
        root, columns=tuple(columns), key=unit if one_row else None, references=references,
        unit_column=unit if one_row else unit or "", unit_path=(),
        rows_stored_per_unit=None if one_row else min(rows_of_unit(computed.sources), ROWS_STORED_MOST),
        contribution=contribution_bound(computed.sources) or root.contribution,
    )  # fmt: skip


def _released(scalar: Scalar, _: ExpressionLift, node: exp.Expr) -> Expression | None:
    """The number that a nested query releases in an earlier stage, None for anything else."""
    return scalar(node) if isinstance(node, exp.Subquery) else None


class _WindowLift(ExpressionLift):
    """Reads expressions that windows may be in."""

    def __init__(
        self,
        window: Callable[[exp.Window], ColumnRef],
        text: Text,
        resolve: Callable[[exp.Column], Expression],
        parameters: Mapping[str, ParameterValue],
        tables: Mapping[str, str],
        member: Member | None,
    ) -> None:
        super().__init__(text, resolve, parameters, tables, member=member)
        self._window = window

    def lift(self, node: exp.Expr, *, like: Expression | None = None) -> Expression:
        """A window, or what is made of them and of cells. Errors: Refused."""
        return self._window(node) if isinstance(node, exp.Window) else super().lift(node, like=like)
