"""Joins of rows about people with public tables by columns that are no key: many rows may meet one.

    SELECT SUM(ps_supplycost) FROM lineitem, partsupp WHERE ps_partkey = l_partkey AND ps_suppkey = l_suppkey
    source:  partsupp by both columns, of which a line meets as many rows as agree in both: one

    SELECT b.name, COUNT(*) FROM people JOIN bands AS b ON age BETWEEN b.low AND b.high GROUP BY b.name
    source:  the rows of bands as rows of constants (constant_rows.py)

Claim. The join is unit-local. Proof: each of its rows is one row about people, whose unit it has, beside a row that
everybody knows; so the rows of unit u are the pairs of u's own rows with public rows for which the condition is true,
whatever other units have. A row that a LEFT JOIN keeps, because no public row meets it, is its unit's alone.

Claim. A row about people meets at most `most` of them. Proof: rows that meet one row have one value, which is not
NULL, in each column that is compared for equality with something that the row determines; so no more meet than agree in
these columns, which is counted over all rows of the public table. Where these are few enough to be looked at,
`most_met` bounds them as it does constants, by every condition of the block.

How many agree is a fact of the public table in this version of the data, which the snapshot holds; the identity of a
release has both. The rows of a unit, and its bounds, multiply by `most` (unit_facts.py): any bound is safe, because the
sensitivity follows from it, and what is stored of a unit is bounded by it in truth.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from privacy.policy import Column, ColumnType, Dataset
from privacy.values import Cell
from sql_rewrite.constant_lists import ROWS_MAX
from sql_rewrite.constant_rows import facts_of, most_met
from sql_rewrite.entries import Entry, View
from sql_rewrite.expressions import Call, ColumnRef, Expression, Value
from sql_rewrite.functions import build
from sql_rewrite.plan import Constants, Join, Source
from sql_rewrite.references import reference
from sql_rewrite.rows import Rows
from sql_rewrite.sources import SourceNames

__all__ = ["KNOWN_CELLS_MAX", "as_constants", "compares", "partners", "shares"]

KNOWN_CELLS_MAX = 20_000
"""Most values of a public table that are looked at one by one."""


def shares(child: Column, parent: Source, column: Column, dataset: Dataset) -> int | None:
    """How many rows of a public table a value can meet by that column; None where it is not such a table, or unknown.

    Numbers with a fraction are compared as conditions are, and not hashed.
    """
    if parent.table.protected or not parent.stored or child.type is not column.type:
        return None
    if column.type is ColumnType.NUMBER or dataset.public is None:
        return None
    found = dataset.public.agreeing(parent.table.name, (column.name,))
    return None if found is None else max(1, found)


def as_constants(entry: Entry, dataset: Dataset) -> View | None:
    """A public table as rows of constants, None for anything else, and for a table that is too large.

    What is known of its columns is what their values are.
    """
    if not isinstance(entry, Source) or entry.table.protected or not entry.stored or entry.only is not None:
        return None
    rows = _rows(entry, dataset)
    if not rows:
        return None
    columns = [
        facts_of(column.name, column.description or column.name, column.type, [row[place] for row in rows])
        for place, column in enumerate(entry.table.columns)
    ]
    known = tuple(replace(ref, domain=_in_order(ref.domain)) for ref in columns)
    constants = Constants(known, rows, len(rows), stored=True)
    source = Source(entry.relation, entry.table, constants=constants)
    shown = [(column.name, reference(source, column, dataset)) for column in entry.table.columns]
    return View(f"p{entry.relation}", Rows((source,), None, tuple(shown)))


def _rows(source: Source, dataset: Dataset) -> tuple[tuple[Value, ...], ...] | None:
    names = [column.name for column in source.table.columns]
    if dataset.public is None:
        return None
    found = dataset.public.rows(source.table.name, names, min(ROWS_MAX, KNOWN_CELLS_MAX // len(names)))
    return None if found is None else tuple(tuple(map(_value, row)) for row in found)


def _value(cell: Cell) -> Value:
    assert cell is None or isinstance(cell, bool | int | float | str | datetime.date)
    return cell


def _in_order(domain: tuple[object, ...] | None) -> tuple | None:  # type: ignore[type-arg]
    """Group values in order, NULL last: the order of a table's rows says nothing."""
    if domain is None:
        return None
    return (*sorted(value for value in domain if value is not None), *([None] if None in domain else []))  # type: ignore[type-var]


def compares(names: SourceNames, relation: str, condition: Expression) -> bool:
    """Makes an equality of columns part of the LEFT JOIN of a public table where it stands; False for others."""
    place, source = next((place, one) for place, one in enumerate(names.sources) if one.relation == relation)
    ends = _ends(condition, source, {one.relation for one in names.sources[:place]})
    if source.table.protected or source.join is None or ends is None:
        return False
    names.change(relation, partial(_met, replace(source.join, also=(*source.join.also, ends))))
    return True


def partners(names: SourceNames, parts: Iterable[Expression]) -> list[Expression]:
    """Bounds what a row meets of each public table that no key joins. Returns the conditions that its join is not yet.

    An equality of columns becomes part of an inner join, which then finds its rows by both.
    """
    left = list(parts)
    for place, source in enumerate(names.sources):
        join = source.join
        if join is None or join.tried == 1:
            continue
        before = {one.relation for one in names.sources[:place]}
        later = {one.relation for one in names.sources[place + 1 :]}
        pairs = [] if join.outer else [(part, ends) for part in left if (ends := _ends(part, source, before))]
        joined = replace(join, also=tuple(dict.fromkeys((*join.also, *(ends for _, ends in pairs)))))
        moved = [part for part, _ in pairs]
        left = [part for part in left if not any(part is one for one in moved)]
        found = [*_equalities(joined), *left, *([] if source.only is None else [source.only])]
        names.change(source.relation, partial(_met, _bounded(source, joined, found, later, names.dataset)))
    return left


def _ends(part: Expression, source: Source, before: set[str]) -> tuple[ColumnRef, ColumnRef] | None:
    """The column of an earlier source and that of the joined one, which a condition compares for equality."""
    if not isinstance(part, Call) or part.operator != "=":
        return None
    for child, parent in (part.arguments, part.arguments[::-1]):
        if not isinstance(child, ColumnRef) or not isinstance(parent, ColumnRef) or child.type is not parent.type:
            continue
        if child.type is not ColumnType.NUMBER and child.relation in before and parent.relation == source.relation:
            return child, parent
    return None


def _equalities(join: Join) -> list[Expression]:
    return [build("=", pair) for pair in ((join.child, join.parent), *join.also)]


def _met(join: Join, source: Source) -> Source:
    return replace(source, join=join)


def _bounded(source: Source, join: Join, conditions: Sequence[Expression], later: set[str], dataset: Dataset) -> Join:
    """The join with the most rows of the source that one row of those before it can meet."""
    assert dataset.public is not None
    columns = tuple(dict.fromkeys(parent.name for _, parent in ((join.child, join.parent), *join.also)))
    agreeing = dataset.public.agreeing(source.table.name, columns)
    tried = join.tried if agreeing is None else min(join.tried, max(1, agreeing))
    rows = _rows(source, dataset)
    if rows is None:
        return replace(join, most=min(join.most, tried), tried=tried)
    constants = Constants(
        tuple(reference(source, column, dataset) for column in source.table.columns), rows, len(rows), stored=True
    )
    met = max(1, min(tried, most_met(constants, source.relation, conditions, later)))
    return replace(join, most=min(join.most, met), tried=tried)
