"""What ON of a LEFT JOIN says beside its equality: which rows of both sides meet.

    FROM people AS p LEFT JOIN visits AS v ON v.person_id = p.person_id AND v.cost > 9 AND p.age > 60 AND v.day > p.born

A condition on the joined table alone leaves out rows before the join. One on the tables before it, or a comparison of
both sides, is a part of the join: a row for which no partner fulfils it is there, with NULL beside it. So is what can
be written as such ones: an OR of conditions, each on one side (apart_sides.py).

Claim. The join is unit-local. Proof. Without these conditions it is: every pair is of one unit's rows, and of public
ones (joins.py). Whether a pair meets is a function of its two rows, so the pairs of a unit are some of those that it
had before; a row that is kept without a partner is one of its own. There are no more rows than without the conditions:
a row that meets no row any more is there once, in place of the pairs that it was in.

What is the same in all rows of a unit need not be so behind such a join (`steady_relations`), and a key of the joined
table is NULL in some of them (`reference`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sqlglot import exp

from sql_rewrite.apart_sides import apart_sides
from sql_rewrite.expressions import Call, Expression, columns_of
from sql_rewrite.join_advice import INNER
from sql_rewrite.plan import Source
from sql_rewrite.refuse import refuse
from sql_rewrite.sources import SourceNames, both
from sql_rewrite.stage_values import is_released
from sql_rewrite.text import Text

__all__ = ["beside_outer"]

_COMPARED = frozenset({"=", "<>", "<", "<=", ">", ">="})


def beside_outer(names: SourceNames, relation: str, condition: Expression, part: exp.Expr, text: Text) -> None:
    """Notes a condition beside the equality of a LEFT JOIN, whose joined relation is given.

    Errors: Refused (join_not_on_key) for one that is of both sides, and no comparison of them.
    """
    place, source = next((place, one) for place, one in enumerate(names.sources) if one.relation == relation)
    read = _relations(condition)
    if read <= {relation}:
        names.change(relation, lambda one: replace(one, only=both(one.only, condition)), missing=True)
        return
    before = {one.relation for one in names.sources[:place] if one.constants is None}
    known = source.join is not None and read <= {relation, *before}
    if known and relation in read and not _compares(condition, relation):
        parts = apart_sides(condition, partial(_side, relation), partial(_compares, relation=relation))
        for one in parts or ():
            beside_outer(names, relation, one, part, text)
        if parts is not None:
            return
        known = False
    if not known:
        raise refuse(
            "join_not_on_key",
            "a condition of a LEFT JOIN is refused",
            "Beside its equality conditions on one side are answered, comparisons of one side with the other, and what "
            "AND, OR and NOT make of conditions on one side.",
            "leave it out of ON, and write CASE WHEN it holds THEN x END for each column x of the joined table: "
            "the same where a row meets one row at most",
            INNER,
            position=text.position(part),
        )

    def joined(one: Source) -> Source:
        assert one.join is not None
        return replace(one, join=replace(one.join, when=both(one.join.when, condition)))

    names.change(relation, joined, missing=True)


def _relations(expression: Expression) -> set[str]:
    """The relations that an expression reads columns of; numbers that an earlier stage released are constants."""
    return {column.relation for column in columns_of(expression) if not is_released(column)}


def _compares(condition: Expression, relation: str) -> bool:
    """Whether a condition compares columns of the joined relation with what has none of them."""
    sides = [_relations(side) for side in _sides(condition)]
    return any(side == {relation} for side in sides) and not all(relation in side for side in sides)


def _side(relation: str, expression: Expression) -> bool | None:
    """Whether an expression reads the joined relation alone, or the tables before it alone; None of both."""
    read = _relations(expression)
    return None if relation in read and len(read) > 1 else relation in read


def _sides(condition: Expression) -> tuple[Expression, ...]:
    """What a comparison compares; nothing of other conditions."""
    compared = isinstance(condition, Call) and condition.operator in _COMPARED
    return condition.arguments if isinstance(condition, Call) and compared else ()
