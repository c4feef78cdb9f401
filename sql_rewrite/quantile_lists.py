"""Several quantiles in one call: one column for each of them, or one element of the list.

    SELECT QUANTILE_CONT(x, [0.25, 0.75]) AS q   SELECT QUANTILE_CONT(x, 0.25) AS q_1, QUANTILE_CONT(x, 0.75) AS q_2
    QUANTILE_CONT(x, [0.25, 0.75])[2]            QUANTILE_CONT(x, 0.75)

Answers have no column of lists.
"""

from __future__ import annotations

from sqlglot import exp

from sql_rewrite.aggregate_calls import NESTED
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import clauses, rebuilt, rendered, select_place
from sql_rewrite.text import Text

__all__ = ["spread"]

_LISTS = (exp.Array, exp.List, exp.Tuple)
_SLOTS: dict[type[exp.Expr], str] = {
    exp.PercentileCont: "expression",
    exp.PercentileDisc: "expression",
    exp.Quantile: "quantile",
    exp.ApproxQuantile: "quantile",
}
_CLAUSES = ("having", "qualify", "order")

_Calls = list[exp.Expr]


def spread(node: exp.Select, text: Text) -> None:
    """Writes out a block in place, with a call for each quantile. Errors: Refused."""
    named = "quantile" in text.folded or "percentile" in text.folded
    if not named or not any(_asks_for_several(part) for part in _own(node)):
        return
    _check_places(node, text)
    node.set("expressions", [part for projection in node.expressions for part in _projections(projection, text)])
    for slot in _CLAUSES:
        if node.args.get(slot) is not None:
            node.set(slot, _elements(node.args[slot], text))


def _own(node: exp.Expr) -> list[exp.Expr]:
    """A block's nodes, nested queries apart."""
    found, stack = [], [*node.iter_expressions()]
    while stack:
        part = stack.pop()
        if not isinstance(part, NESTED):
            found.append(part)
            stack.extend(part.iter_expressions())
    return found


def _asks_for_several(node: exp.Expr) -> bool:
    slot = _SLOTS.get(type(node))
    return slot is not None and (isinstance(node.args.get(slot), _LISTS) or isinstance(node.this, _LISTS))


def _projections(projection: exp.Expr, text: Text) -> list[exp.Expr]:
    inner = projection.this if isinstance(projection, exp.Alias) else projection
    calls = _calls(inner.unnest())
    if calls is None:
        return [_elements(projection, text)]
    named = projection.alias if isinstance(projection, exp.Alias) else ""
    columns: list[exp.Expr] = []
    for number, call in enumerate(calls, 1):
        name = f"{named}_{number}" if named else rendered(call)[:63]
        columns.append(exp.Alias(this=call, alias=exp.to_identifier(name, quoted=True)))
    return columns


def _elements(node: exp.Expr, text: Text) -> exp.Expr:
    """The node in which an element of a list of quantiles is one quantile."""
    if isinstance(node, NESTED):
        return node
    if isinstance(node, exp.Bracket):
        calls = _calls(node.this.unnest())
        if calls is not None:
            return _element(node, calls, text)
    changed = rebuilt(node, lambda part: _elements(part, text))
    changed.meta.update(node.meta)
    return changed


def _element(node: exp.Bracket, calls: _Calls, text: Text) -> exp.Expr:
    number = _whole(node.expressions[0]) if len(node.expressions) == 1 else None
    # The parser counts the elements of what it takes for a list, or does not know, from zero.
    kind = node.this.type
    moved = kind is None or kind.this in (exp.DataType.Type.UNKNOWN, exp.DataType.Type.ARRAY)
    place = None if number is None else number - (not moved)
    if place is None or not 0 <= place < len(calls):
        raise refuse(
            "unsupported_sql",
            "an element of a list of quantiles is refused",
            f"Its number is not a constant between the first and the last of {len(calls)}.",
            "write QUANTILE_CONT(x, p) with the part of the rows that lies below it",
            position=text.position(node),
        )
    return calls[place]


def _whole(node: exp.Expr) -> int | None:
    return int(node.this) if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit() else None


def _calls(node: exp.Expr) -> _Calls | None:
    """A call for each quantile of a list, with the clauses around it; None for anything else."""
    if isinstance(node, exp.Filter):
        inner = _calls(node.this)
        return None if inner is None else [_like(node, this=call) for call in inner]
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.PercentileCont | exp.PercentileDisc):
        listed = node.this.this
        if not isinstance(listed, _LISTS) or not listed.expressions:
            return None
        return [_like(node, this=_like(node.this, this=part)) for part in listed.expressions]
    slot = _SLOTS.get(type(node))
    listed = None if slot is None else node.args.get(slot)
    if slot is None or not isinstance(listed, _LISTS) or not listed.expressions:
        return None
    return [_like(node, **{slot: part}) for part in listed.expressions]


def _like(node: exp.Expr, **changed: exp.Expr) -> exp.Expr:
    """A copy of a node with other parts, in the same place of the text."""
    made = node.copy()
    for slot, part in changed.items():
        made.set(slot, part.copy())
    made.meta.update(node.meta)
    return made


def _check_places(node: exp.Select, text: Text) -> None:
    """Refuses places of the select list behind a list: the columns there have other numbers."""

    def several(projection: exp.Expr) -> bool:
        inner = projection.this if isinstance(projection, exp.Alias) else projection
        return _calls(inner.unnest()) is not None

    first = next((place for place, part in enumerate(node.expressions) if several(part)), None)
    for item in (part for clause in clauses(node, "group", "order") for part in clause.expressions):
        place = select_place(item.this if isinstance(item, exp.Ordered) else item)
        if first is not None and place is not None and place >= first:
            raise refuse(
                "unsupported_sql",
                "a place in the select list is refused",
                "A list of quantiles before it is several columns.",
                "write the name of the column in its place",
                position=text.position(item),
            )
