"""Nested blocks that group rows about people by their unit: aggregation within each unit, and DISTINCT rows of one.

    SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id HAVING COUNT(*) > 2) AS t
    source:  visits, grouped by unit, a = rows, of groups with a > 2
    core:    that source, a0 = average(a)

Claim. The result is unit-local: the rows of unit u are a deterministic function of the multiset of u's own rows below,
and each row has exactly one unit. Proof: the unit is among the keys, so every group lies within one unit's rows; each
value is a function of the multiset of the group's rows (unit_values.py), and having and columns are total functions of
keys and values. What is below is unit-local by the same argument, or a join of stored tables along the way to the unit.

So bounding per unit above needs to know nothing of it. By the unit alone, or with keys that are constant per unit, a
unit has one row; otherwise at most as many as it has rows below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from privacy.policy import ROWS_STORED_MOST, Column, ColumnType, Dataset, Reference, Table
from privacy.refusal import Finding, Refused
from sql_rewrite.aggregate_calls import NESTED, AggregateReader
from sql_rewrite.expressions import ColumnRef, Expression, Interval, describe, form_of
from sql_rewrite.interval_columns import named_moments
from sql_rewrite.lift_difference import difference
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.narrowed_values import Narrowing, conditions_of
from sql_rewrite.nested_block import Around, NestedBlock
from sql_rewrite.plan import Source, UnitGroups, UnitValue
from sql_rewrite.references import reference
from sql_rewrite.refuse import refuse
from sql_rewrite.row_condition import RowCondition
from sql_rewrite.rows import Rows
from sql_rewrite.shell import output_name
from sql_rewrite.sources import SourceNames
from sql_rewrite.spelling import named
from sql_rewrite.syntax import consume, populated, rebuilt
from sql_rewrite.unit_calls import UnitCalls, written
from sql_rewrite.unit_facts import constant_per_unit, contribution_bound, names_unit, rows_bound, rows_of_unit
from sql_rewrite.unit_keys import key_space
from sql_rewrite.unit_plan import RANKED, UnitFunction
from sql_rewrite.unit_values import content_name, facts_of, renamed, summed_range

__all__ = ["UnitBlock", "described"]

_NUMBERS = (ColumnType.INTEGER, ColumnType.NUMBER)
_AMONG = (UnitFunction.LEAST, UnitFunction.GREATEST, *RANKED)
"""Functions whose value lies within every range that has the values; that of a deviation within its width."""


class UnitBlock(NestedBlock):
    """One that may group by the unit."""

    def __init__(self, node: exp.Select, names: SourceNames, around: Around) -> None:
        super().__init__(node, names, around)
        self._reader = AggregateReader(self._text, self._plain)
        self._calls = UnitCalls(self._text, self._plain, self._reader)
        self._lifter = _GroupLift(self, around, self._tables)
        self._keys: list[tuple[exp.Expr, Expression, str]] = []
        self._values: dict[str, UnitValue] = {}
        self._given: list[Expression] = []
        """What is true of every row of the block."""

    def knows(self, name: str) -> bool:
        """Whether a table of the block has a column of that name."""
        return self._names.knows(name)

    def by_unit(self) -> bool:
        """Whether the unit is among the keys, or a column that says whose the rows are. Never refuses."""
        return any(map(self._is_unit, self.key_nodes()))

    def _is_unit(self, node: exp.Expr) -> bool:
        if not isinstance(node, exp.Column):
            return False
        try:
            found = self._names.resolve(node)
        except Refused:
            return False
        return key_space(found, self._names.sources) is not None

    def rows(self, relation: str) -> Rows:
        """What the block stands for, under that name of its source. Errors: Refused. Requires: `by_unit`."""
        self._refuse_clauses(but=("distinct",))
        self._check()
        self._check_sources("they are in no group of a unit")
        self._keys, self._values = [], {}
        where = RowCondition(self._text, self._names, self._select, self._reader).read(self._node.args.get("where"))
        self._given = conditions_of(self._names.sources, where)
        for node in self.key_nodes():
            lifted = self._plain.lift(node)
            self._keys.append((node, lifted, content_name("k", form_of(lifted))))
        having = self._having()
        columns: dict[str, tuple[Expression, str]] = {}
        outputs: list[tuple[str, str]] = []
        for projection, value in zip(self._select.written, self._select.values, strict=True):
            shown = projection.alias if isinstance(projection, exp.Alias) else output_name(self._text, projection)
            moments = difference(self._lifter, value)
            made = [(shown, self._lifter.lift(value))] if moments is None else named_moments(shown, moments, self._text)
            for called, lifted in made:
                if having is not None:
                    lifted = Narrowing((lifted,), (having,), whole=False).value(lifted)
                name = content_name("c", form_of(lifted))
                columns.setdefault(name, (lifted, shown))
                outputs.append((called, name))
        groups = UnitGroups(
            sources=self._names.sources,
            where=where,
            keys=tuple(sorted({name: key for _, key, name in self._keys}.items())),
            values=tuple(self._values[name] for name in sorted(self._values)),
            having=having,
            columns=tuple((name, columns[name][0]) for name in sorted(columns)),
        )
        shown_as = {name: shown for name, (_, shown) in columns.items()}
        source = Source(relation, described(groups, shown_as, self._dataset), None, groups)
        refs = {column.name: reference(source, column, self._dataset) for column in source.table.columns}
        return Rows((source,), None, tuple((shown, refs[name]) for shown, name in outputs))

    @property
    def warnings(self) -> list[Finding]:
        """What conditions and columns warn of."""
        return [*self._plain.warnings, *self._lifter.warnings]

    # Keys

    def key_nodes(self) -> list[exp.Expr]:
        """The keys as they are written, places and aliases replaced; those of DISTINCT are the select list."""
        group = self._node.args.get("group")
        if group is None:
            return list(self._select.values) if self._node.args.get("distinct") is not None else []
        return [self._names.qualified(item) if node is None else node for item, node in self._select.grouped_by(group)]

    def _check(self) -> None:
        """Refuses what a block that groups by the unit may not have. Errors: Refused."""
        group = self._node.args.get("group")
        distinct = self._node.args.get("distinct")
        if distinct is not None:
            consume(distinct, text=self._text, what="DISTINCT")
        if group is not None and distinct is not None:
            raise refuse(
                "unsupported_sql",
                "DISTINCT beside GROUP BY is refused",
                "The groups are different anyway.",
                "leave DISTINCT out",
                position=self._text.position(self._node),
            )
        levels = (exp.Rollup, exp.Cube, exp.GroupingSets)
        if group is not None and (
            populated(group) - {"expressions", "all"} or any(isinstance(item, levels) for item in group.expressions)
        ):
            raise refuse(
                "unsupported_sql",
                "ROLLUP, CUBE and GROUPING SETS within a unit are refused",
                "Groups without the unit would hold rows of many people.",
                "group by the unit and other keys in one list",
                position=self._text.position(group),
            )

    # What groups are made of

    def _having(self) -> Expression | None:
        having = self._node.args.get("having")
        if having is None:
            return None
        consume(having, "this", text=self._text, what="HAVING")
        condition = self._lifter.lift(self.with_aliases(self._names.qualified(having.this)))
        if condition.type is not ColumnType.BOOLEAN:
            raise refuse(
                "unsupported_type",
                "HAVING is refused",
                "Its condition is not true or false.",
                "write a comparison",
                position=self._text.position(having),
            )
        return condition

    def with_aliases(self, node: exp.Expr) -> exp.Expr:
        """The node with aliases of the select list replaced by what they stand for."""

        if isinstance(node, NESTED):
            return node  # its names are its own
        if isinstance(node, exp.Column):
            known = node.table or self._names.knows(node.name)
            alias = None if known else self._select.alias(node.name)
            return node.copy() if alias is None else alias.copy()
        result = rebuilt(node, self.with_aliases)
        result.meta.update(node.meta)
        return result

    def known(self, node: exp.Expr) -> ColumnRef | None:
        """The key or value of groups that a node is, None for what is made of others. Errors: Refused."""
        for tree, key, name in self._keys:
            if node == tree:
                shown = describe(key)
                nullable = key.nullable and not names_unit(key, self._names.sources)
                key = Narrowing((key,), self._given, whole=False).value(key)
                return renamed(key, name, shown, nullable=nullable)
        called = node.this if isinstance(node, exp.Filter) else node
        called = called.this if isinstance(called, exp.IgnoreNulls) else called
        if isinstance(called, exp.AggFunc | exp.WithinGroup) or _is_mad(called):
            return self._value(node)
        return None

    def _value(self, call: exp.Expr) -> ColumnRef:
        rows = rows_of_unit(self._names.sources)
        value = self._calls.value(call, rows, self._given)
        self._values[value.name] = value
        shown = written(self._text, call, value.function)
        column = facts_of(value, rows=rows, bound=rows_bound(self._names.sources), shown=shown)
        return replace(column, declared=self._proven(value, column.declared))

    def _proven(self, value: UnitValue, declared: Interval | None) -> Interval | None:
        """The range in which a value lies that is among its argument's, where conditions say more than `declared`.

        What is summed has it already. The value itself stays as it is stored: a sum around it clips to the range.
        """
        if value.function not in _AMONG or value.argument is None or value.argument.type not in _NUMBERS:
            return declared
        conditions = [*self._given, *([] if value.filter is None else [value.filter])]
        held = summed_range(Narrowing((value.argument,), conditions).value(value.argument))
        if held is None or held.lower is None or held.upper is None:
            return declared
        if value.function is UnitFunction.DEVIATION:
            held = Interval(Fraction(0), held.upper - held.lower)
        return held if declared is None or held.inside(declared) else declared

    def column(self, node: exp.Column) -> Expression:
        """A column that is no key. Errors: Refused."""
        if not node.table and not self._names.knows(node.name):
            alias = self._select.alias(node.name)
            if alias is not None:
                return self._lifter.lift(alias)
        self._names.resolve(node)
        raise refuse(
            "unsupported_sql",
            f'column "{node.name[:63]}" is refused',
            "It is neither in GROUP BY nor in an aggregate, so a group may have several values of it.",
            f"add {named(node.name[:63])} to GROUP BY, or write MIN({named(node.name[:63])})",
            position=self._text.position(node),
        )


def _is_mad(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == "mad"


def described(groups: UnitGroups, shown: Mapping[str, str], dataset: Dataset) -> Table:
    """The rows as a table, with what is known of it; `shown` is what people call its columns."""
    root = groups.sources[0].table
    columns = []
    unit: str | None = None
    for name, expression in groups.columns:
        column = Column(name, expression.type, nullable=expression.nullable, description=shown[name])
        columns.append(column)
        if isinstance(expression, ColumnRef) and expression.is_unit and not expression.nullable:
            unit = name
    one_row = all(constant_per_unit(key, groups.sources) for _, key in groups.keys)
    known = dataset.unit
    references = () if unit is None or known.key is None else (Reference(unit, known.table, known.key),)
    if one_row:
        # Rows without the unit's key are units themselves, as of a table in which each row is one.
        return replace(
            root, columns=tuple(columns), key=unit, references=references, unit_column=unit, unit_path=(),
            rows_stored_per_unit=None,
        )  # fmt: skip
    return replace(
        root, columns=tuple(columns), key=None, references=references, unit_column=unit or "", unit_path=(),
        rows_stored_per_unit=min(rows_of_unit(groups.sources), ROWS_STORED_MOST),
        contribution=contribution_bound(groups.sources) or root.contribution,
    )  # fmt: skip


class _GroupLift(ExpressionLift):
    """Reads expressions over the keys and values of groups."""

    def __init__(self, block: UnitBlock, around: Around, tables: Mapping[str, str]) -> None:
        scalar = around.scalar

        def member(_: ExpressionLift, node: exp.Expr) -> Expression | None:
            # Of a group nothing else can be asked: it has no rows any more.
            return scalar(node) if scalar is not None and isinstance(node, exp.Subquery) else None

        super().__init__(around.text, block.column, around.parameters, tables, member=member)
        self._block = block

    def lift(self, node: exp.Expr, *, like: Expression | None = None) -> Expression:
        """A key, a value of the group, or what is made of them. Errors: Refused."""
        known = self._block.known(node)
        return super().lift(node, like=like) if known is None else known
