"""Joins of rows about people to a released table by its public keys (stage_tables.py has the claim)."""

from __future__ import annotations

from sqlglot import exp

from privacy.refusal import Refused
from sql_rewrite.entries import View
from sql_rewrite.expressions import Expression
from sql_rewrite.join_links import conjuncts
from sql_rewrite.refuse import refuse
from sql_rewrite.rows import Rows
from sql_rewrite.sources import SourceNames
from sql_rewrite.stage_tables import StageTable
from sql_rewrite.syntax import populated
from sql_rewrite.text import Text

__all__ = ["beside", "join_released", "keeps_left_out"]


def join_released(
    node: exp.Select,
    place: int,
    alias: str,
    relation: str,
    table: StageTable,
    names: SourceNames,
    conditions: list[exp.Expr],
    text: Text,
) -> View:
    """The released table that stands at a place of FROM, joined by the equalities of its keys with columns.

    `names` are what else FROM lists. What ON says beside the equalities of an inner join is added to `conditions`.
    Errors: Refused.
    """
    item = node.args["from_"].this if place == 0 else node.args["joins"][place - 1].this
    join = None if place == 0 else node.args["joins"][place - 1]
    kind = "" if join is None else str(join.args.get("kind") or "").upper()
    side = "" if join is None else str(join.args.get("side") or "").upper()
    extra = set() if join is None else populated(join) - {"this", "on", "using", "kind", "side"}
    if extra or kind not in ("", "CROSS", "INNER", "OUTER") or side not in ("", "LEFT") or place == 0:
        raise _refused(text, item)
    assert join is not None
    using = [identifier.name for identifier in join.args.get("using") or ()]
    on = join.args.get("on")
    where = node.args.get("where")
    parts = list(conjuncts(on)) if on is not None else []
    if on is None and not using and where is not None and not side:
        parts = list(conjuncts(where.this))
    found: dict[str, Expression] = {}
    rest: list[exp.Expr] = []
    columns = {name.lower(): name for name, _ in table.keys}
    for name in using:
        if name.lower() not in columns:
            raise _refused(text, item)
        found[columns[name.lower()]] = names.resolve(exp.column(exp.to_identifier(name)))
    for part in parts:
        compared = _compared(part, alias, columns, names)
        if compared is None or compared[0] in found:
            rest.append(part)
        else:
            found[compared[0]] = names.resolve(compared[1])
    by_place = {key: found[name] for name, key in table.keys if name in found}
    if len(by_place) < len(table.kinds) or (side and rest):
        raise _refused(text, item)
    outside = [by_place[key] for key in range(len(table.kinds))]
    if any(one.type is not kind_of for one, kind_of in zip(outside, table.kinds, strict=True)):
        raise refuse(
            "unsupported_type",
            "a join with a released table is refused",
            "Its keys are compared with columns of other types.",
            "group the nested query by the column itself",
            position=text.position(item),
        )
    if on is not None:
        conditions += rest
    condition, listed = table.joined(outside, outer=bool(side))
    merged = {name.lower() for name in using}
    return View(relation, Rows((), condition, tuple(one for one in listed if one[0].lower() not in merged)))


def _compared(part: exp.Expr, alias: str, keys: dict[str, str], names: SourceNames) -> tuple[str, exp.Column] | None:
    """The key of the released table that an equality compares, and the column of another relation."""
    if not isinstance(part, exp.EQ):
        return None
    for own, other in ((part.this, part.expression), (part.expression, part.this)):
        if not isinstance(own, exp.Column) or not isinstance(other, exp.Column):
            continue
        if own.table.lower() != alias and (own.table or names.knows(own.name)):
            continue
        if own.name.lower() in keys and other.table.lower() != alias and names.is_source(other):
            return keys[own.name.lower()], other
    return None


def _refused(text: Text, item: exp.Expr) -> Refused:
    return refuse(
        "join_not_on_key",
        "a join with a released table is refused",
        "Each key by which it is grouped has to equal a column of the tables before it, in JOIN or LEFT JOIN.",
        "write the equality of each key into ON, and other conditions into WHERE",
        position=text.position(item),
    )


def beside(join: exp.Join, text: Text) -> list[exp.Expr]:
    """The conditions of a join with one released row: of all rows that meet it. Errors: Refused."""
    kind, side = str(join.args.get("kind") or "").upper(), str(join.args.get("side") or "").upper()
    if populated(join) - {"this", "on", "kind", "side"} or kind not in ("", "CROSS", "INNER") or side:
        raise refuse(
            "unsupported_sql",
            "a join with released numbers is refused",
            "Every row meets the one released row: it is joined with CROSS JOIN, a comma, or JOIN ... ON a condition.",
            "write it last, as CROSS JOIN, and its conditions into WHERE",
            position=text.position(join.this),
        )
    on = join.args.get("on")
    return [] if on is None else [part for part in conjuncts(on) if not _is_true(part)]


def keeps_left_out(join: exp.Join, text: Text) -> Refused:
    """The refusal of a join that would keep rows behind one with released numbers."""
    return refuse(
        "unsupported_sql",
        f"a {str(join.args.get('side')).upper()} JOIN after a join with released numbers is refused",
        "It would keep rows that the join before it leaves out. It is not answered yet.",
        "join the released numbers last, or write their condition into WHERE",
        position=text.position(join.this),
    )


def _is_true(part: exp.Expr) -> bool:
    return isinstance(part, exp.Boolean) and part.this is True
