"""The key of a FULL JOIN of people with a public table: that of either side, as USING and COALESCE name it.

    SELECT hospital_id, COUNT(v.visit_id) FROM visits v FULL JOIN hospitals h USING (hospital_id) GROUP BY hospital_id
    hospital_id is COALESCE(v.hospital_id, h.hospital_id): of a visit its own, of a hospital without any the hospital's

Claim. Where every value of the public column is among the declared values of people's column, the groups are those of
the full join, and each has its value. Proof: a row about people has the key of its own side, because the other one is
equal or missing. Rows of nobody have the public key, which is a declared value: its group is shown like every public
one, and what they would add to it is nothing (preserved.py). Conditions of WHERE are true of a row of nobody where they
are true of a row that has its key on both sides, for they read this key and the public side alone; so a group that one
of nobody is in is not ruled out, as long as conditions on people before the join rule out none (`met`).
"""

from __future__ import annotations

from collections.abc import Sequence

from privacy.policy import Dataset
from sql_rewrite.constant_lists import ROWS_MAX
from sql_rewrite.expressions import Call, ColumnRef, Expression, columns_of
from sql_rewrite.functions import build
from sql_rewrite.plan import Source
from sql_rewrite.reachable import conjuncts

__all__ = ["Merged", "before_the_join", "covered", "merged", "of_nobody"]

Merged = tuple[ColumnRef, ColumnRef]
"""The columns that a FULL JOIN compares: that of people, and the public one."""


def merged(node: Expression, pairs: Sequence[Merged]) -> Merged | None:
    """The pair that COALESCE of a row's two keys is of, in whatever order; None for any other expression."""
    if not isinstance(node, Call) or node.operator != "coalesce":
        return None
    read = {(one.relation, one.name) for one in node.arguments[:2] if isinstance(one, ColumnRef)}
    return next((pair for pair in pairs if read == {(one.relation, one.name) for one in pair}), None)


def of_nobody(node: Expression, pairs: Sequence[Merged]) -> Expression:
    """What an expression is in a row of nobody, as far as it reads such keys: the public one stands for both."""
    found = merged(node, pairs)
    if not isinstance(node, Call):
        return node
    arguments = tuple(of_nobody(argument, pairs) for argument in node.arguments[0 if found is None else 2 :])
    if found is not None:
        return build("coalesce", (found[1], *arguments)) if arguments else found[1]
    if all(one is other for one, other in zip(arguments, node.arguments, strict=True)):
        return node
    return build(node.operator, arguments)


def covered(pair: Merged, source: Source, dataset: Dataset) -> bool:
    """Whether every value of the public column is a declared one of people's column."""
    people, public = pair
    column = source.table.column(public.name)
    if people.domain is None or column is None:
        return False
    listed = set() if public.domain is None else set(public.domain)
    if not column.nullable:
        listed.discard(None)
    if listed and listed <= set(people.domain):
        return True
    rows = None
    if dataset.public is not None and source.stored:
        rows = dataset.public.rows(source.table.name, [column.name], ROWS_MAX)
    return rows is not None and {row[0] for row in rows} <= set(people.domain)


def before_the_join(where: Expression | None, own: Sequence[Expression], pair: Merged) -> tuple[Expression, ...]:
    """The conditions on people's key that are not the block's own: they drop no row of nobody."""
    parts = () if where is None else conjuncts(where)
    said = [part for whole in own for part in conjuncts(whole)]
    key = (pair[0].relation, pair[0].name)
    return tuple(
        part
        for part in parts
        if part not in said and key in {(column.relation, column.name) for column in columns_of(part)}
    )
