"""Rows that are computed within each unit, as a layer: rows -> group by unit and key -> the groups that are kept.

Rows of several branches are a layer too: those of each branch, one after another. A layer has the unit's number, its
draw where it is asked for, and those of the columns that are read. Keys that are not public are grouped with a salt
beside them, and so are different values: lower.py says why.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from privacy.policy import ColumnType
from sql_rewrite.evaluate import map_domain
from sql_rewrite.expressions import ColumnRef, Expression, Literal, Value, columns_of, needs_wide
from sql_rewrite.functions import build
from sql_rewrite.join_tree import Branch, branches_of, turned, unit_source
from sql_rewrite.layer_values import EndOf, OneZero
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.lower_expression import lower as lower_expression
from sql_rewrite.lower_unit_values import lowered_value, row_columns
from sql_rewrite.lower_unit_windows import read_windows, window_layers
from sql_rewrite.nobody import asked_by, beside_nobody, kept_apart, met_within, needs_nobody, nobody_within
from sql_rewrite.plan import GROUPS, Constants, Join, Source, UnitFunction, UnitGroups, UnitRows, UnitUnion
from sql_rewrite.reachable import conjuncts
from sql_rewrite.relations import (
    Appended,
    ConstantRows,
    Grouped,
    HiddenKey,
    JoinedSources,
    JoinOn,
    Kept,
    LoweredSource,
    Output,
    Relation,
    RowsSource,
    Salted,
    TableRows,
    TableSource,
)
from sql_rewrite.scalars import Case, Cast, Column, EngineType, Named, Scalar, Whole

__all__ = ["DRAW", "UNIT", "lowered_sources", "read_columns"]

UNIT, DRAW = "unit$id", "unit$draw"
"""The columns of rows about people: the unit's number, and its secret draw."""


def read_columns(sources: tuple[Source, ...], *expressions: Expression | None) -> set[tuple[str, str]]:
    """The columns that expressions and the joins of these sources read."""
    read = {(ref.relation, ref.name) for item in expressions if item is not None for ref in columns_of(item)}
    for source in sources:
        if source.join is None:
            continue
        keyed = () if source.join.on_unit else ((source.join.child, source.join.parent),)
        read |= {(end.relation, end.name) for pair in (*keyed, *source.join.also) for end in pair}
        if source.join.when is not None:
            read |= {(ref.relation, ref.name) for ref in columns_of(source.join.when)}
    return read


def lowered_sources(
    sources: tuple[Source, ...], read: Collection[tuple[str, str]], parameters: ParameterList, *, draw: bool
) -> tuple[LoweredSource, ...]:
    """The sources of a layer of rows, joined in the order of join_tree.py. With `draw` one has units' draws.

    What is hashed has a row of nobody, where it could be empty (nobody.py).
    """
    drawn = unit_source(sources, draw=draw).relation if draw else None
    lowering = _Sources({source.relation: source for source in sources}, read, parameters, drawn)
    before: list[Branch] = [Branch(sources[0])]
    result: list[LoweredSource] = [lowering.source(sources[0], None)]
    for branch in branches_of(sources):
        if turned([source for one in before for source in one.sources], branch):
            assert branch.source.join is not None
            on = asked_by(_join_on(branch.source, parameters), branch.source.join)
            hashed = lowering.hashed(before, on, None)
            result = [lowering.branch(branch, None), hashed]
        else:
            result.append(lowering.joined(branch))
        before.append(branch)
    return tuple(result)


@dataclass(frozen=True, slots=True)
class _Sources:
    """The sources of one layer of rows, and what is read of them."""

    known: Mapping[str, Source]
    read: Collection[tuple[str, str]]
    parameters: ParameterList
    drawn: str | None

    def joined(self, branch: Branch) -> LoweredSource:
        """A source that is joined to those before it, with those that are joined to it first."""
        join = branch.source.join
        if join is None:
            return self.branch(branch, None)
        on = _join_on(branch.source, self.parameters)
        if not needs_nobody(branch.sources):
            return self.branch(branch, on)
        return self.hashed([branch], kept_apart(on, join), join)

    def branch(self, branch: Branch, join: JoinOn | None) -> LoweredSource:
        """A source with those that are joined to it first."""
        if not branch.first:
            return self.source(branch.source, join)
        parts = [self.branch(one, _join_on(one.source, self.parameters)) for one in branch.first]
        return JoinedSources((self.source(branch.source, None), *parts), join)

    def hashed(self, branches: Sequence[Branch], on: JoinOn, join: Join | None) -> LoweredSource:
        """The first source with nobody in it, and all others of these branches, of which each has one too."""
        first, *others = branches
        alone = not others and not first.first
        root = self.source(first.source, on if alone else None, (join, not alone))
        if alone:
            return root
        return JoinedSources((root, *[self._within(one) for one in (*first.first, *others)]), on)

    def _within(self, branch: Branch) -> LoweredSource:
        """A part of what is hashed: where nobody cannot meet the others, as it is."""
        source, join = branch.source, branch.source.join
        if join is None:
            return self.branch(branch, None)
        on, beside = _join_on(source, self.parameters), self.known[join.child.relation]
        if not nobody_within(join, beside):
            return self.branch(branch, on)
        on = met_within(on, join, beside, UNIT)
        if not branch.first:
            return self.source(source, on, (join, True))
        parts = [self._within(one) for one in branch.first]
        return JoinedSources((self.source(source, None, (join, True)), *parts), on)

    def source(
        self, source: Source, join: JoinOn | None, nobody: tuple[Join | None, bool] | None = None
    ) -> TableSource | RowsSource:
        """A source; with its units' draws where it is the one that is `drawn`, and with a row of nobody."""
        draw = source.relation == self.drawn
        kept = source.constants is not None and source.constants.stored  # all rows of a public table
        if (source.stored or kept) and source.only is None and nobody is None:
            return TableSource(source.table.name, source.relation, join)
        names = {name for relation, name in self.read if relation == source.relation}
        if source.only is not None or source.stored or kept:
            rows = _kept(source, names, self.parameters, draw=draw)
        elif source.constants is not None:
            rows = _constants(source.constants, names, self.parameters)
        elif source.union is not None:
            rows = _union(source.union, names, self.parameters, draw=draw)
        elif source.windows is not None:
            rows = _windows(source.windows, names, self.parameters, draw=draw)
        else:
            assert source.groups is not None
            rows = _groups(source.groups, names, self.parameters, draw=draw)
        if nobody is not None:
            by, within = nobody
            rows = beside_nobody(rows, source, by, UNIT, within=within)
        return RowsSource(rows, source.relation, join)


def _join_on(source: Source, parameters: ParameterList) -> JoinOn:
    """The join of a source, whose columns alone stand for its rows.

    Rows for which a condition on earlier sources is not true have NULL in place of the key: it equals nothing, and the
    join is still one of equal values, which an engine hashes.
    """
    join = source.join
    assert join is not None
    child, parent = join.child, join.parent
    ends = (UNIT, UNIT) if join.on_unit else (child.name, parent.name)
    on: tuple[Scalar, Column] = Column(child.relation, ends[0]), Column(parent.relation, ends[1])
    also = tuple((Column(a.relation, a.name), Column(b.relation, b.name)) for a, b in join.also)
    parts = [] if join.when is None else list(conjuncts(join.when))
    before = [part for part in parts if all(ref.relation != source.relation for ref in columns_of(part))]
    if before:
        met = lower_expression(before[0] if len(before) == 1 else build("and", before), parameters)
        on = Case(((met, on[0]),)), on[1]
    beside = tuple([lower_expression(part, parameters) for part in parts if part not in before])
    return JoinOn(*on, outer=join.outer, also=also, beside=beside)


def _kept(source: Source, names: Collection[str], parameters: ParameterList, *, draw: bool) -> Relation:
    """The rows of a source for which its own condition is true, or all, with the columns that are read."""
    own = [name for name, there in ((UNIT, source.table.protected), (DRAW, draw)) if there]
    outputs = [Output(Column(source.relation, name), name) for name in (*own, *sorted(names))]
    inner = lowered_sources(
        (replace(source, join=None, only=None),), read_columns((), source.only) | {(source.relation, n) for n in names},
        parameters, draw=draw,
    )  # fmt: skip
    return TableRows(tuple(outputs), inner, None if source.only is None else lower_expression(source.only, parameters))


def _constants(constants: Constants, names: Collection[str], parameters: ParameterList) -> Relation:
    """The rows of constants with the columns that are read; where none is, with a number in each."""
    shown = [(place, ref) for place, ref in enumerate(constants.columns) if ref.name in names]
    if not shown:
        return ConstantRows(("n$",), tuple([(Whole(1),)] * len(constants.rows)))

    def constant(value: Value, ref: ColumnRef) -> Scalar:
        found = lower_expression(Literal(value, ref.type), parameters)
        return Cast(found, EngineType.WIDE) if needs_wide(ref) else found

    rows = [tuple([constant(row[place], ref) for place, ref in shown]) for row in constants.rows]
    return ConstantRows(tuple(ref.name for _, ref in shown), tuple(rows))


def _type(ref: ColumnRef) -> EngineType:
    return EngineType.WIDE if needs_wide(ref) else EngineType(ref.type.value)


def _union(union: UnitUnion, names: Collection[str], parameters: ParameterList, *, draw: bool) -> Relation:
    """The rows of all branches with the columns that are read. Each is cast: the branches agree on types, as stored."""
    shown = [(place, ref) for place, (name, ref) in enumerate(union.columns) if name in names]
    parts = []
    for branch in union.branches:
        root = unit_source(branch.sources, draw=draw).relation
        outputs = [Output(Column(root, name), name) for name in ((UNIT, DRAW) if draw else (UNIT,))]
        for place, ref in shown:
            value = lower_expression(branch.columns[place], parameters)
            outputs.append(Output(Cast(value, _type(ref)), ref.name))
        read = read_columns(branch.sources, branch.where, *(branch.columns[place] for place, _ in shown))
        inner = lowered_sources(branch.sources, read, parameters, draw=draw)
        where = None if branch.where is None else lower_expression(branch.where, parameters)
        parts.append(TableRows(tuple(outputs), inner, where))
    return Appended(tuple(parts))


def _groups(groups: UnitGroups, names: Collection[str], parameters: ParameterList, *, draw: bool) -> Relation:
    shown = [(name, column) for name, column in groups.columns if name in names]
    used = {ref.name for _, column in shown for ref in columns_of(column)}
    used |= set() if groups.having is None else {ref.name for ref in columns_of(groups.having)}
    values = [value for value in groups.values if value.name in used]
    root = unit_source(groups.sources, draw=draw).relation
    columns = [Output(Column(root, UNIT), "u")]
    if draw:
        columns.append(Output(Column(root, DRAW), "d"))
    keys = [(name, key) for name, key in groups.keys if name in used or not _of_unit(key)]
    for name, key in keys:
        columns.append(Output(_key(key, parameters), name))
    for value in values:
        columns += row_columns(value, parameters)
    expressions = [groups.where, *(key for _, key in keys)]
    expressions += [part for value in values for part in value.read]
    read = read_columns(groups.sources, *expressions)
    where = None if groups.where is None else lower_expression(groups.where, parameters)
    rows: Relation = TableRows(tuple(columns), lowered_sources(groups.sources, read, parameters, draw=draw), where)
    by = ["u", *(name for name, _ in keys)]
    hidden = [
        HiddenKey(name, key.type is ColumnType.TEXT)
        for name, key in keys
        if not _of_unit(key) and map_domain(key, 10_000) is None
    ]
    if any(value.function is UnitFunction.DISTINCT for value in values):
        hidden.insert(0, HiddenKey("u", text=False))
    if hidden:
        rows = Salted(rows, tuple(hidden))
        by.append("s")
    outputs = [Output(EndOf("least", Named("d")), "d")] if draw else []
    wide = {
        ref.name
        for item in (groups.having, *(c for _, c in shown))
        if item is not None
        for ref in columns_of(item)
        if needs_wide(ref)
    }
    outputs += [Output(lowered_value(value, wide=value.name in wide), value.name) for value in values]
    layer = Grouped(rows, "b", tuple(name for name in by if name != "s"), tuple(by), tuple(outputs))
    made = [Output(Named("u"), UNIT)]
    if draw:
        made.append(Output(Named("d"), DRAW))
    made += [Output(lower_expression(column, parameters), name) for name, column in shown]
    having = None if groups.having is None else lower_expression(groups.having, parameters)
    return Kept(layer, GROUPS, having, tuple(made))


def _windows(computed: UnitRows, names: Collection[str], parameters: ParameterList, *, draw: bool) -> Relation:
    read, windows = read_windows(computed, names)
    root = unit_source(computed.sources, draw=draw).relation
    columns = [Output(Column(root, UNIT), "u")]
    if draw:
        columns.append(Output(Column(root, DRAW), "d"))
    columns += [Output(_key(cell, parameters), name) for name, cell in computed.cells if name in read]
    below = read_columns(computed.sources, computed.where, *(cell for name, cell in computed.cells if name in read))
    where = None if computed.where is None else lower_expression(computed.where, parameters)
    rows = TableRows(tuple(columns), lowered_sources(computed.sources, below, parameters, draw=draw), where)
    made = [Output(Named("u"), UNIT)]
    if draw:
        made.append(Output(Named("d"), DRAW))
    made += [Output(lower_expression(column, parameters), name) for name, column in computed.columns if name in names]
    return Kept(window_layers(computed, rows, read, windows, parameters, draw=draw), GROUPS, None, tuple(made))


def _of_unit(key: Expression) -> bool:
    """Whether a key is the unit's own, which is one in each group anyway."""
    return isinstance(key, ColumnRef) and key.is_unit and not key.nullable


def _key(key: Expression, parameters: ParameterList) -> Scalar:
    value = lower_expression(key, parameters)
    return OneZero(value) if key.type is ColumnType.NUMBER else value
