"""The order of what FROM lists: the relation whose rows are counted first, then those that its rows meet.

Every entry is joined to one before it, so what the entries are to the first one follows from one pass over them. Joins
on the unit multiply the rows of a unit, and so are refused where these would be too many for a worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from privacy.policy import Dataset
from sql_rewrite.entries import Entry, View, tables_of
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal
from sql_rewrite.functions import build
from sql_rewrite.join_advice import declared
from sql_rewrite.join_constants import of_constants
from sql_rewrite.join_links import Place
from sql_rewrite.plan import Join, Source
from sql_rewrite.references import reference
from sql_rewrite.refuse import refuse
from sql_rewrite.rows import Rows
from sql_rewrite.sources import both
from sql_rewrite.stage_values import is_released
from sql_rewrite.unit_facts import rows_of_unit

__all__ = ["ordered"]

PAIRS_MAX = 2**20
"""Most rows of one unit after joins on the unit: as many as two tables of a thousand rows each make."""


def ordered(
    drafts: Sequence[Entry], joins: Mapping[str, Join], dataset: Dataset, place: Place, *, public: bool = False
) -> tuple[Entry, ...]:
    """The entries with their joins, from the one whose rows are counted to its parents.

    With `public` it is a nested block whose rows are those of a public table: a block around it joins them.
    """
    constants = [entry for entry in drafts if of_constants(entry)]
    drafts = [entry for entry in drafts if not of_constants(entry)]
    roots = [entry for entry in drafts if entry.relation not in joins]
    if len(roots) != 1:
        raise refuse(
            "join_multiplies",
            "FROM is refused",
            "It does not start from one table whose rows are counted.",
            *declared(dataset),
            position=place(),
        )
    root = tables_of(roots[0])[0]
    if not root.table.protected and not public:
        raise refuse(
            "unsupported_sql",
            "a join that starts from a public table is refused",
            "Rows of people are counted, each once: the join starts from their table and follows its references.",
            *(line for line in declared(dataset) if f" JOIN {root.table.name} ON " in line),
            position=place(),
        )
    result: list[Entry] = [roots[0]]
    placed = {source.relation for source in tables_of(roots[0])}
    while len(result) < len(drafts):
        # Parents whose child is already there.
        ready = [
            entry
            for entry in drafts
            if tables_of(entry)[0].relation not in placed and joins[entry.relation].child.relation in placed
        ]
        if not ready:
            raise refuse("join_multiplies", "FROM is refused", "Its joins form a ring.", position=place())
        for entry in ready:
            result.append(_joined(entry, joins[entry.relation], dataset))
            placed.update(source.relation for source in tables_of(entry))
    result += constants
    _check_pairs([source for entry in result for source in tables_of(entry)], place)
    return tuple(result)


def _check_pairs(sources: Sequence[Source], place: Place) -> None:
    """Refuses joins on the unit in which the rows of one person multiply beyond what a worker may hold."""
    if not any(source.join is not None and source.join.on_unit for source in sources):
        return
    pairs = rows_of_unit(sources)
    if pairs > PAIRS_MAX:
        raise refuse(
            "join_multiplies",
            "a join on the privacy unit is refused",
            f"Up to {pairs:,} pairs of one person's rows could meet, and {PAIRS_MAX:,} are allowed: "
            f"rows_stored_per_unit "
            "of the tables multiply.",
            "aggregate one of the tables first, in a nested query that groups by the privacy unit",
            "ask an administrator to declare a smaller rows_stored_per_unit",
            position=place(),
        )


def _joined(entry: Entry, join: Join, dataset: Dataset) -> Entry:
    """The entry with its join. Columns of an outer join's parent may be NULL."""
    first, *others = tables_of(entry)
    source = replace(first, join=join)
    if isinstance(entry, Source):
        return source
    columns, where = entry.rows.columns, entry.rows.where
    if join.outer:
        assert entry.rows.plain
        # Rows that the nested query leaves out are missing before the join, not after it.
        source, where = replace(source, only=both(first.only, where)), None
        columns = tuple((name, _outer(source, found, dataset)) for name, found in columns)
    return View(entry.relation, Rows((source, *others), where, columns))


def _outer(source: Source, found: Expression, dataset: Dataset) -> Expression:
    """A column of rows that an outer join may leave out: where they are missing it is NULL.

    A row of the joined side is there exactly where the column that the join compares is no NULL, for NULL equals
    nothing. So what is computed of it is NULL elsewhere, as the engine's own nested query has it.
    """
    if isinstance(found, ColumnRef) and not is_released(found):
        return _missing(source, found, dataset)
    assert source.join is not None
    there = build("is_not_null", (_missing(source, source.join.parent, dataset),))
    return build("case", (there, _among(source, found, dataset), Literal(None, found.type)))


def _among(source: Source, node: Expression, dataset: Dataset) -> Expression:
    """An expression over rows that may be missing."""
    if isinstance(node, ColumnRef):
        return node if is_released(node) else _missing(source, node, dataset)
    if isinstance(node, Call):
        return build(node.operator, tuple(_among(source, argument, dataset) for argument in node.arguments))
    return node


def _missing(source: Source, found: ColumnRef, dataset: Dataset) -> ColumnRef:
    column = source.table.column(found.name)
    assert column is not None
    return reference(source, column, dataset)
