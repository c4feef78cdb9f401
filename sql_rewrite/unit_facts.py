"""How many rows of a unit the sources of a core may have, and what is the same in all of them.

What a unit may add to a sum rests on these facts (contribution.py); each follows from what the tables declare and
from how the sources are joined, never from rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from privacy.bounds import BOUND_MAX, AutomaticContribution, ContributionBound
from sql_rewrite.expressions import ColumnRef, Expression, columns_of
from sql_rewrite.plan import GROUPS, Source, UnitRows

__all__ = [
    "constant_per_unit",
    "content_keys",
    "contribution_bound",
    "leaves",
    "names_unit",
    "paired_rows",
    "pieces",
    "rows_bound",
    "rows_of_unit",
    "rows_tried",
    "steady_relations",
    "times_tried",
]


def rows_of_unit(sources: Sequence[Source]) -> int:
    """The most rows of one unit in the join of these sources.

    Joins on the unit, rows of constants, and public tables that no key joins multiply them; no others do.
    """
    return prod([source.table.rows_stored for source in _multiplied(sources)]) * _times_met(sources)


def _times_met(sources: Sequence[Source]) -> int:
    met = prod([source.constants.most for source in sources if source.constants is not None])
    return met * prod([source.join.most for source in sources if source.join is not None])


def times_tried(sources: Sequence[Source]) -> int:
    """With how many rows of constants, and of public tables, each row is tried, whether or not they meet."""
    tried = prod([len(source.constants.rows) for source in sources if source.constants is not None])
    return tried * prod([source.join.tried for source in sources if source.join is not None])


def rows_tried(sources: Sequence[Source]) -> int:
    """The most rows of one unit that are made before conditions: each beside all rows of constants."""
    return prod([source.table.rows_stored for source in _multiplied(sources)]) * times_tried(sources)


def leaves(sources: Sequence[Source]) -> int:
    """The stored tables that these sources read, each as often as it is written."""
    return sum(map(_leaves, sources))


def _leaves(source: Source) -> int:
    if source.union is not None:
        return sum(leaves(branch.sources) for branch in source.union.branches)
    computed = source.windows or source.groups
    return 1 if computed is None else leaves(computed.sources)


def pieces(sources: Sequence[Source]) -> int:
    """In how many places the rows of a unit may lie: those of each branch of a union are apart from the others."""
    union = sources[0].union
    return 1 if union is None else sum(pieces(branch.sources) for branch in union.branches)


def paired_rows(sources: Sequence[Source]) -> int:
    """The rows of one unit that go into pairs of joins on the unit, all tables together; zero where none multiplies."""
    multiplied = _multiplied(sources)
    if len(multiplied) == 1:
        return 0
    several = [source.table.rows_stored for source in multiplied if source.table.rows_stored > 1]
    return sum(several) if len(several) > 1 else 0


def contribution_bound(sources: Sequence[Source]) -> ContributionBound | AutomaticContribution | None:
    """How much a unit may take part with the rows of these sources; None where it has one row at most.

    Joins on the unit and rows of constants multiply rows, and so the bounds: any bound is safe, because the
    sensitivity follows from it.
    """
    tables = [source.table for source in _multiplied(sources)]
    bounds = [table.contribution for table in tables if table.contribution is not None and not table.one_row]
    met = min(BOUND_MAX, _times_met(sources))
    bounds += [ContributionBound(met, met, met)] if met > 1 else []
    if len(bounds) <= 1:
        return bounds[0] if bounds else None
    counted = [bound.counted if isinstance(bound, AutomaticContribution) else bound for bound in bounds]
    product = ContributionBound(
        min(BOUND_MAX, prod(bound.rows_per_unit for bound in counted)),
        min(BOUND_MAX, prod(bound.groups_per_unit for bound in counted)),
        min(BOUND_MAX, prod(bound.rows_per_unit_and_group for bound in counted)),
    )
    automatic = any(isinstance(bound, AutomaticContribution) for bound in bounds)
    return AutomaticContribution(product) if automatic else product


def rows_bound(sources: Sequence[Source]) -> int:
    """The rows of a unit within the declared bounds; all that are stored where questions choose the bounds."""
    bound, stored = contribution_bound(sources), rows_of_unit(sources)
    return min(bound.rows_per_unit, stored) if isinstance(bound, ContributionBound) else stored


def constant_per_unit(expression: Expression, sources: Sequence[Source]) -> bool:
    """Whether all rows of a unit have one value: it reads only what is the same in each of them, or the unit's key."""
    steady = steady_relations(sources)
    return all(
        ref.relation in steady or names_unit(ref, sources) or _over_all_rows(ref, sources)
        for ref in columns_of(expression)
    )


def _over_all_rows(ref: ColumnRef, sources: Sequence[Source]) -> bool:
    """Whether a column is made of windows that have one value in all rows of a unit, and of what is constant anyway."""
    source = next((one for one in sources if one.relation == ref.relation), None)
    if source is None or source.windows is None or (source.join is not None and source.join.outer):
        return False
    computed = source.windows
    windows, cells = {window.name: window for window in computed.windows}, dict(computed.cells)

    def constant(read: ColumnRef) -> bool:
        window = windows.get(read.name)
        if window is None:
            return constant_per_unit(cells[read.name], computed.sources)
        return window.of_all_rows and all(constant(key) for part in window.partition for key in columns_of(part))

    return all(map(constant, columns_of(dict(computed.columns)[ref.name])))


def names_unit(expression: Expression, sources: Sequence[Source]) -> bool:
    """Whether an expression is the unit's key in every joined row.

    A snapshot keeps no row without its unit, whatever is declared of the column; so only an outer join makes it NULL.
    """
    if not isinstance(expression, ColumnRef) or not expression.is_unit:
        return False
    source = next((one for one in sources if one.relation == expression.relation), None)
    return not expression.nullable if source is None else source.join is None or not source.join.outer


def steady_relations(sources: Sequence[Source]) -> set[str]:
    """The relations that are one row, or missing, in all joined rows of a unit alike.

    Claim. A unit has one row at most of such a table. Where it is the first source or joined by an inner join, every
    joined row has that one. An outer join leaves it out of all or of none where what it compares is the same in all:
    columns of a steady relation, or the unit itself of a relation that is in every joined row; a further equality of
    any other column finds it in some rows of the unit and not in others, and so does a condition on one. Behind
    another outer join it need not be: a visit that is missing in some of a unit's rows leaves its person out of these
    alone.
    """
    steady: set[str] = set()
    present: set[str] = set()
    for source in sources:
        join = source.join
        if join is None or not join.outer:
            present.add(source.relation)
            alike = True
        else:
            child = join.child
            alike = child.relation in steady or (child.relation in present and (join.on_unit or child.is_unit))
            read = [c for c, _ in join.also]
            read += [] if join.when is None else [c for c in columns_of(join.when) if c.relation != source.relation]
            alike = alike and all(c.relation in steady or names_unit(c, sources) for c in read)
        if alike and source.table.one_row:
            steady.add(source.relation)
    return steady


def _multiplied(sources: Sequence[Source]) -> list[Source]:
    return [source for source in sources if source.join is None or (source.join.on_unit and not _one_each(source))]


def _one_each(source: Source) -> bool:
    """Whether a row meets one of these at most: the join compares a unique key, or the unit and every key of groups."""
    join, groups = source.join, source.groups
    if join is None or not join.also:
        return False
    compared = {parent.name for _, parent in join.also}
    if groups is None:
        return source.stored and source.table.key in compared
    same = {
        expression.name
        for name, expression in groups.columns
        if name in compared and isinstance(expression, ColumnRef) and expression.relation == GROUPS
    }
    return all(name in same or names_unit(key, groups.sources) for name, key in groups.keys)


def content_keys(computed: UnitRows) -> tuple[str, ...]:
    """The cells that distinguish the rows of a unit: their table's key where that is one of them, else all of them."""
    root = computed.sources[0]
    if rows_of_unit(computed.sources) == root.table.rows_stored and root.table.key is not None:
        key = (root.relation, root.table.key)
        for name, cell in computed.cells:
            if isinstance(cell, ColumnRef) and (cell.relation, cell.name) == key and not cell.nullable:
                return (name,)
    return tuple([name for name, cell in computed.cells if not names_unit(cell, computed.sources)])
