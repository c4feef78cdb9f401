"""A condition of both sides of an outer join, written as conditions on one side and comparisons of the two.

    a.x > 1 OR b.y > 1                      CASE WHEN a.x > 1 THEN 0 ELSE 1 END <= CASE WHEN b.y > 1 THEN 1 ELSE 0 END
    (a.x > 1 AND b.y > 1) OR b.z = 2        (a.x > 1 OR b.z = 2) AND (b.y > 1 OR b.z = 2)

An engine joins by comparisons of one side with the other; what it cannot divide so, it tries on every pair of rows of
all people.

Claim. The conditions that are returned are all true exactly where the given one is. Proof: AND, OR and NOT follow De
Morgan and distributivity also where parts are NULL, so that the condition is true exactly where in each clause of its
conjunctive form some part is true. A clause is put into a part of each side: it is true exactly where the part of the
left is true, or that of the right. CASE takes a NULL as what is not true, so the comparison 0 <= 0, 0 <= 1, 1 <= 1 or
1 <= 0 is false exactly where neither is, and it is never NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, Expression, Literal
from sql_rewrite.functions import build

__all__ = ["CLAUSES_MAX", "apart_sides", "clauses"]

CLAUSES_MAX = 16
"""Most conditions that one condition is written as."""

Sides = Callable[[Expression], bool | None]
"""Of which side the columns of an expression are: True where they are of the joined one; None of both."""

_Clause = tuple[Expression, ...]

_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""What is true exactly where a comparison is false."""


def apart_sides(condition: Expression, sides: Sides, compares: Callable[[Expression], bool]) -> list[Expression] | None:
    """Conditions that are all true where this one is, each on one side or a comparison; None where there are none.

    `compares` says of a part of both sides whether it compares one with the other.
    """
    parts = clauses(condition)
    if parts is None:
        return None
    found = []
    for clause in parts:
        written = _written(clause, sides, compares)
        if written is None:
            return None
        found.append(written)
    return found


def clauses(node: Expression, *, negated: bool = False) -> list[_Clause] | None:
    """The conjunctive form: in each of the clauses some part has to be true. None where they are too many."""
    if isinstance(node, Call) and node.operator == "not":
        return clauses(node.arguments[0], negated=not negated)
    if not isinstance(node, Call) or node.operator not in ("and", "or"):
        if not negated:
            return [(node,)]
        opposite = _NEGATED.get(node.operator) if isinstance(node, Call) else None
        arguments = node.arguments if isinstance(node, Call) else ()
        return [(build("not", (node,)) if opposite is None else build(opposite, arguments),)]
    parts = [clauses(part, negated=negated) for part in node.arguments]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    all_of = (node.operator == "and") is not negated
    found = [clause for part in known for clause in part] if all_of else _crossed(known)
    return found if len(found) <= CLAUSES_MAX else None


def _crossed(parts: Sequence[Sequence[_Clause]]) -> list[_Clause]:
    """The clauses of an OR: one of each part put together, in all ways, or more of them than are allowed."""
    found: list[_Clause] = [()]
    for part in parts:
        found = [(*before, *clause) for before in found for clause in part]
        if len(found) > CLAUSES_MAX:
            break
    return found


def _written(clause: _Clause, sides: Sides, compares: Callable[[Expression], bool]) -> Expression | None:
    """One clause as a condition on one side, or as a comparison; None where its parts are of both."""
    by_side: dict[bool | None, list[Expression]] = {}
    for part in clause:
        by_side.setdefault(sides(part), []).append(part)
    if None in by_side:
        (part, *more) = clause
        return part if not more and compares(part) else None
    if len(by_side) == 1:
        return _any(clause)
    yes, no = Literal(1, ColumnType.INTEGER), Literal(0, ColumnType.INTEGER)
    before = build("case", (_any(by_side[False]), no, yes))
    joined = build("case", (_any(by_side[True]), yes, no))
    return build("<=", (before, joined))


def _any(parts: Iterable[Expression]) -> Expression:
    first, *more = parts
    return build("or", (first, *more)) if more else first
