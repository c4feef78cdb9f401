"""Columns whose value says whose row it is: the unit's own key, and keys of rows about people on the way to it.

    orders.o_orderkey, lineitem.l_orderkey        one key space: an order belongs to one customer, and its items too
    lineitem.l_partkey, part.p_partkey            none: items of many customers have one part

Claim. Rows with equal values in columns of one key space belong to one unit. Proof: a key space is a column of one
table of people that is declared unique, which every snapshot verifies, so each of its values is in one row, which has
one unit. A column that refers to it, and whose table finds its unit along that reference, belongs to the unit of the
row that it names: that is how the snapshot says whose it is, and no row is stored whose reference leads nowhere.

Privacy does not rest on this claim: what is grouped or joined by such columns is grouped and joined by the unit beside
them (lower_unit_groups.py). It says when that changes nothing, so that the answer means what the text says.
"""

from __future__ import annotations

from collections.abc import Sequence

from sql_rewrite.expressions import ColumnRef, Expression
from sql_rewrite.plan import GROUPS, Source, UnitRows
from sql_rewrite.unit_facts import names_unit

__all__ = ["KeySpace", "column_space", "key_space"]

KeySpace = tuple[str, str]
"""A table and its unique column, in lower case; that of the unit's keys is empty."""


def key_space(expression: Expression, sources: Sequence[Source]) -> KeySpace | None:
    """The key space of a column of these sources that is in every joined row; None for any other expression."""
    if not isinstance(expression, ColumnRef):
        return None
    if names_unit(expression, sources):
        return ("", "")
    source = next((one for one in sources if one.relation == expression.relation), None)
    if source is None or (source.join is not None and source.join.outer):
        return None
    return column_space(source, expression.name)


def column_space(source: Source, column: str) -> KeySpace | None:
    """The same of a source's column beside that of the unit's own key, whatever the source is joined to."""
    table, name = source.table, column.lower()
    if not table.protected:
        return None
    computed = source.windows or source.groups
    if computed is not None:
        made = dict(computed.columns).get(column)
        if not isinstance(made, ColumnRef) or made.relation != GROUPS:
            return None
        keys = computed.cells if isinstance(computed, UnitRows) else computed.keys
        key = dict(keys).get(made.name)
        return None if key is None else key_space(key, computed.sources)
    if source.union is not None and len(source.union.branches) == 1:
        (branch,) = source.union.branches
        place = [name for name, _ in source.union.columns].index(column)
        return key_space(branch.columns[place], branch.sources)
    if not source.stored:
        return None
    if table.unit_path and table.unit_path[0].column.lower() == name:
        return (table.unit_path[0].table.lower(), table.unit_path[0].key.lower())
    known = table.column(name)
    unique = known is not None and (known.unique or (table.key or "").lower() == name)
    return (table.name.lower(), name) if unique else None
