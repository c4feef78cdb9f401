"""A plan as a tree of nodes for people: what each node does, and what is known of its rows before any is read.

Every fact follows from declarations and the text. A promise about rows (how many a unit has, which columns are unique)
is one that the snapshot enforces; `tests/sql_rewrite/test_explained.py` compares them with the rows themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from privacy.policy import ColumnType, Dataset, Table
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.expressions import ColumnRef, Expression, columns_of, describe, interval_of, number_text
from sql_rewrite.plan import Plan, Source, UnitGroups, UnitRows, UnitUnion
from sql_rewrite.unit_facts import names_unit, rows_of_unit

__all__ = ["Facts", "Node", "Range", "explain_core", "explain_outer"]

_NUMBERS = (ColumnType.INTEGER, ColumnType.NUMBER)


@dataclass(frozen=True, slots=True)
class Range:
    """The values of a column or expression as far as they are declared or proved; None is an end that nobody knows."""

    of: str
    lower: str | None
    upper: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the rows of a node.

    `unit` says whose rows they are, None for public or released ones; `rows_per_unit` is the most rows of one unit.
    No two rows have the same values in the columns `unique`, of which "unit" is the privacy unit itself; there are none
    where that is not known. `ranges` are those of the columns that the query reads here.
    """

    unit: str | None
    rows_per_unit: int | None
    unique: tuple[str, ...] = ()
    ranges: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """One node: its kind, its own part of the question, the facts of its rows, and the nodes that it reads."""

    kind: str
    text: str
    facts: Facts
    inputs: tuple[Node, ...] = ()


def explain_outer(plan: Plan, cores: tuple[Node, ...]) -> Node:
    """The whole question: the outer query over released numbers, or the only core where there is no outer query."""
    if plan.shell.trivial and len(cores) == 1:
        return cores[0]
    public = (
        Node("scan", one.table.name, Facts(None, None, () if one.table.key is None else (one.table.key,)))
        for one in plan.public
    )
    shown = ", ".join(output.name for output in plan.shell.outputs)
    return Node("outer query", f"{shown} from released numbers", Facts(None, None), (*cores, *public))


def explain_core(bounded: BoundedCore, dataset: Dataset) -> Node:
    """The tree of one private block, the aggregation first."""
    core = bounded.core
    read = [*([] if core.where is None else [core.where]), *(key for _, key in core.keys)]
    for aggregate in core.aggregates if core.choice is None else (core.choice.score,):
        read += [*aggregate.values, *([] if aggregate.filter is None else [aggregate.filter])]
    rows = _joined(core.sources, core.where, read, dataset)
    cells = bounded.described.keys.domain
    groups = "hidden groups" if cells is None else f"{len(cells):,} public groups"
    by = f" by {', '.join(describe(key) for _, key in core.keys)} ({groups})" if core.keys else ""
    aggregates = ", ".join(aggregate.text for aggregate in core.aggregates)
    if core.choice is not None:
        side = "least" if core.choice.least else "greatest"
        aggregates = f"keys of the {side} {core.choice.count} by {core.choice.score.text}, chosen by noise"
    return Node("aggregate", f"{aggregates}{by}", Facts(None, None), (rows,))


def _unit(dataset: Dataset) -> str:
    return dataset.unit.table if dataset.unit.key is None else f"{dataset.unit.table}.{dataset.unit.key}"


def _joined(sources: tuple[Source, ...], where: Expression | None, read: list[Expression], dataset: Dataset) -> Node:
    """The sources joined one after another, and the condition over them."""
    first, *others = sources
    node = _source(first, read, dataset)
    for place, source in enumerate(others, 2):
        join, right = source.join, _source(source, read, dataset)
        if source.constants is not None:
            unique = node.facts.unique if source.constants.most == 1 else ()
            facts = Facts(node.facts.unit, rows_of_unit(sources[:place]), unique)
            what = "the public table" if source.constants.stored else "constants"
            node = Node("cross join", f"with {len(source.constants.rows):,} rows of {what}", facts, (node, right))
            continue
        assert join is not None
        kind = "left join" if join.outer else "join"
        on = "the privacy unit" if join.on_unit else f"{_named(join.child, sources)} = {_named(join.parent, sources)}"
        on = on if join.when is None else f"{on}, where {describe(join.when)}"
        unique = node.facts.unique
        if join.on_unit:
            one = rows_of_unit(sources[: place - 1]) == source.table.rows_stored == 1
            unique = ("unit",) if one else ()
        elif join.most > 1:
            unique = ()
        facts = Facts(node.facts.unit, rows_of_unit(sources[:place]), unique)
        node = Node(kind, f"on {on}", facts, (node, right))
    if where is not None:
        facts = Facts(node.facts.unit, node.facts.rows_per_unit, node.facts.unique)
        node = Node("filter", describe(where), facts, (node,))
    return node


def _source(source: Source, read: list[Expression], dataset: Dataset) -> Node:
    """A table that is read, or rows that are computed within each unit; with the condition on them alone."""
    ranges = tuple(_ranges(source, read))
    if source.groups is not None:
        node = _groups(source.groups, source, ranges, dataset)
    elif source.windows is not None:
        node = _windows(source.windows, ranges, dataset)
    elif source.union is not None:
        node = _union(source.union, source, ranges, dataset)
    else:
        node = Node("scan", source.table.name, _scanned(source.table, ranges, dataset))
    if source.only is None:
        return node
    rows = source.table.rows_stored if source.windows is not None else node.facts.rows_per_unit
    return Node("filter", describe(source.only), Facts(node.facts.unit, rows, node.facts.unique), (node,))


def _scanned(table: Table, ranges: tuple[Range, ...], dataset: Dataset) -> Facts:
    if not table.protected:
        return Facts(None, None, () if table.key is None else (table.key,), ranges)
    unique = ("unit",) if table.one_row else () if table.key is None else (table.key,)
    return Facts(_unit(dataset), table.rows_stored, unique, ranges)


def _groups(groups: UnitGroups, source: Source, ranges: tuple[Range, ...], dataset: Dataset) -> Node:
    read = [key for _, key in groups.keys]
    for value in groups.values:
        read += value.read
    below = _joined(groups.sources, groups.where, read, dataset)
    keys = [describe(key) for _, key in groups.keys if not names_unit(key, groups.sources)]
    by = ", ".join(["the privacy unit", *keys])
    shown = ", ".join(describe(column) for _, column in groups.columns)
    having = "" if groups.having is None else f" having {describe(groups.having)}"
    unique = ("unit", *keys)
    rows = source.table.rows_stored
    return Node("group within the unit", f"{shown} by {by}{having}", Facts(_unit(dataset), rows, unique, ranges),
                (below,))  # fmt: skip


def _windows(computed: UnitRows, ranges: tuple[Range, ...], dataset: Dataset) -> Node:
    below = _joined(computed.sources, computed.where, [cell for _, cell in computed.cells], dataset)
    shown = ", ".join(describe(column) for _, column in computed.columns)
    rows = rows_of_unit(computed.sources)
    return Node("windows within the unit", shown, Facts(_unit(dataset), rows, (), ranges), (below,))


def _union(union: UnitUnion, source: Source, ranges: tuple[Range, ...], dataset: Dataset) -> Node:
    below = tuple(_joined(one.sources, one.where, list(one.columns), dataset) for one in union.branches)
    shown = ", ".join(describe(column) for _, column in union.columns)
    return Node("union all", shown, Facts(_unit(dataset), source.table.rows_stored, (), ranges), below)


def _ranges(source: Source, read: list[Expression]) -> Iterator[Range]:
    """The ranges of a source's columns that are read as numbers."""
    seen: dict[str, ColumnRef] = {}
    for expression in read:
        for ref in columns_of(expression):
            if ref.relation == source.relation and ref.type in _NUMBERS and not ref.is_unit:
                seen.setdefault(ref.name, ref)
    for ref in seen.values():
        known = interval_of(ref) if ref.declared is None else ref.declared
        # What the stored type may hold is not known of the data: nobody declared it.
        told = ref.declared is not None or not source.stored
        ends = [None if end is None or not told else number_text(end) for end in (known.lower, known.upper)]
        yield Range(describe(ref), *ends)


def _named(ref: ColumnRef, sources: tuple[Source, ...]) -> str:
    table = next((one.table.name for one in sources if one.relation == ref.relation), ref.relation)
    return f"{table}.{describe(ref)}"
