"""INTERSECT ALL and EXCEPT ALL of rows about people: the rows of each side by their number among equal ones.

    SELECT person_id, ward FROM visits INTERSECT ALL SELECT person_id, ward FROM stays
    each side:  SELECT person_id, ward, ROW_NUMBER() OVER (PARTITION BY person_id, ward ORDER BY person_id) FROM ...
    whole:      INTERSECT of both, without the number

Claim. It has the meaning of the text. Proof: equal rows of a side have the numbers from 1 to how many they are, so the
pairs of a row and a number that both sides have are as many as the lesser of both, and those that the first side has
alone as many as it has more: what INTERSECT ALL and EXCEPT ALL keep. Pairs are different, so INTERSECT and EXCEPT keep
each. NULL is equal to NULL in both. Among equal rows it is no matter which has which number. Both sides stay
unit-local, because the unit's key is among what is compared (row_unions.py, unit_windows.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sql_rewrite.syntax import populated

__all__ = ["Side", "by_numbers", "repeats"]

_NUMBER = "number_among_equal"
_SIDES = ("left_rows", "right_rows")


@dataclass(frozen=True, slots=True)
class Side:
    """The names of a side's columns, and which of them is the unit's key."""

    columns: tuple[str, ...]
    unit: str | None


def repeats(node: exp.Expr) -> bool:
    """Whether a set operation keeps rows as often as both sides, or one of them, have them."""
    return isinstance(node, exp.Intersect | exp.Except) and node.args.get("distinct") is False


def by_numbers(node: exp.SetOperation, left: Side, right: Side) -> exp.Select | None:
    """The query that it stands for. None where a side has no column that is the unit's key, or two of one name."""
    if populated(node) - {"this", "expression", "distinct", "with_"}:
        return None
    numbered = []
    for side, of, alias in zip((node.this, node.expression), (left, right), _SIDES, strict=True):
        names, unit = of.columns, of.unit
        if unit is None or len({name.lower() for name in names}) < len(names) or _NUMBER in names:
            return None
        order = exp.Order(expressions=[exp.Ordered(this=_column(unit), nulls_first=False)])
        window = exp.Window(
            this=exp.RowNumber(), partition_by=[_column(name) for name in names], order=order, over="OVER"
        )
        select = exp.Select(expressions=[*map(_column, names), exp.alias_(window, _NUMBER)])
        bracket = side.unnest() if isinstance(side, exp.Subquery) and not side.args.get("alias") else side
        inner = exp.Subquery(this=bracket.copy(), alias=exp.TableAlias(this=exp.to_identifier(alias)))
        select.set("from_", exp.From(this=inner))
        numbered.append(select)
    whole = type(node)(this=numbered[0], expression=numbered[1], distinct=True)
    found = exp.Select(expressions=[_column(name) for name in left.columns])
    found.set("from_", exp.From(this=exp.Subquery(this=whole, alias=exp.TableAlias(this=exp.to_identifier("both")))))
    return found


def _column(name: str) -> exp.Column:
    return exp.Column(this=exp.Identifier(this=name, quoted=True))
