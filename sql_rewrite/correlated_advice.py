"""What to write instead of a subquery that compares its rows with those of the query around it."""

from __future__ import annotations

from sqlglot import exp

from sql_rewrite.lifter import Lifter
from sql_rewrite.spelling import named

__all__ = ["correlated"]


def correlated(lifter: Lifter, node: exp.Expr) -> tuple[str, ...]:
    """Advice for a subquery that reads columns of the query around it; nothing for another one.

    Where it computes one number of the rows of one person, these numbers can be joined; elsewhere each outer row would
    have a number of its own, of other people.
    """
    query = node.this if isinstance(node, exp.Subquery | exp.Exists) else node
    if not isinstance(query, exp.Select):
        return ()
    own = {table.alias_or_name.lower() for table in query.find_all(exp.Table)}
    outer = [column for column in query.find_all(exp.Column) if column.table and column.table.lower() not in own]
    if not outer:
        return ()
    return _of_one_person(lifter, query, outer) or (
        "ask for its numbers in a query of its own, with GROUP BY what it compares, and write them as a CASE",
    )


def _of_one_person(lifter: Lifter, query: exp.Select, outer: list[exp.Column]) -> tuple[str, ...]:
    """The join of a number that is computed of each person, where the only condition is that it is the same person."""
    from_, where = query.args.get("from_"), query.args.get("where")
    if from_ is None or where is None or query.args.get("joins") or query.args.get("group") or len(outer) != 1:
        return ()
    if len(query.expressions) != 1:
        return ()
    equal, (value,) = where.this, query.expressions
    if not isinstance(equal, exp.EQ) or not isinstance(value, exp.AggFunc):
        return ()
    inner = equal.this if equal.expression is outer[0] else equal.expression
    written = lifter.text.position(value)
    if not isinstance(inner, exp.Column) or inner.name.lower() != outer[0].name.lower() or written is None:
        return ()
    if not isinstance(from_.this, exp.Table) or not getattr(lifter.column(outer[0]), "is_unit", False):
        return ()
    key, alias = named(inner.name), from_.this.alias
    table = named(from_.this.name) + (f" {named(alias)}" if alias else "")
    numbers = f"SELECT {key}, {' '.join(written.text.split())} AS value FROM {table} GROUP BY {key}"
    on = f"{named(outer[0].table)}.{named(outer[0].name)} = each_person.{key}"
    return (f"JOIN ({numbers}) each_person ON {on}, and write each_person.value in its place",)
