"""EXISTS with two comparisons: one orders the rows of a unit, the other asks for the extreme of those before.

    SELECT COUNT(*) FROM visits AS v WHERE EXISTS (SELECT 1 FROM visits AS w
        WHERE w.patient_id = v.patient_id AND w.day > v.day AND w.cost > v.cost)
    source:  the days of both sides in one list, and beside each day of v the greatest cost of w on a later one;
             grouped by the unit and the day, joined to the left on both
    where:   that cost is greater than v.cost

It takes the time of a sort, where pairs of rows (correlated_pairs.py) take that of all of them.

Claim. The source is unit-local, and a row meets one of its groups at most. Proof: it is a union of rows of people
(row_unions.py), a window within the unit (unit_windows.py) and groups within the unit (unit_groups.py); the row outside
compares the unit and every other key of the groups.

Claim. It has the meaning of the nested query. Proof: EXISTS holds where among the inner rows of the unit that agree in
the equalities, and whose first value compares as it should with that of the row outside, one has a second value that
compares as it should: where the greatest of them does, or the least, or for <> one of both. In the order of the first
values those rows are the groups of peers before the one of the row outside, with its own group for >= and <=, and for
<> all others. A NULL compares with nothing: such inner rows are left out by FILTER, and a row outside with NULL meets
no group.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sql_rewrite.join_links import conjunction

__all__ = ["FIRST", "ordered_groups"]

FIRST: dict[type[exp.Expr], tuple[bool, str]] = {
    exp.GT: (True, "1"), exp.GTE: (True, "CURRENT ROW"), exp.LT: (False, "1"), exp.LTE: (False, "CURRENT ROW"),
    exp.NEQ: (False, "UNBOUNDED"),
}  # fmt: skip
"""Whether the order is from the greatest on, and where the frame ends."""


def ordered_groups(
    inner: exp.Select,
    outer: exp.Select,
    *,
    keys: int,
    kind: type[exp.Expr],
    ends: Sequence[type[exp.Expr]],
) -> exp.Select:
    """The groups: as many keys, then the first value outside, then the extremes of the second values.

    `inner` selects the keys, the first and the second value of inner rows, `outer` the keys and the first value of rows
    outside; `kind` is the first comparison. Changes both.
    """
    names = [f"key{place}" for place in range(keys)]
    _name(inner, [*names, "first", "second"])
    inner.append("expressions", exp.alias_(exp.Literal.number(0), "side"))
    _name(outer, [*names, "first"])
    outer.append("expressions", exp.alias_(exp.Null(), "second"))
    outer.append("expressions", exp.alias_(exp.Literal.number(1), "side"))
    both = exp.Subquery(this=exp.Union(this=inner, expression=outer, distinct=False), alias=_alias("both$"))
    shown = [*names, "first", "side"]
    windows = [exp.alias_(_window(end, kind, names), f"extreme{place}") for place, end in enumerate(ends)]
    rows = exp.Select(expressions=[*map(exp.column, shown), *windows], from_=exp.From(this=both))
    found = [exp.Max(this=exp.column(f"extreme{place}")) for place in range(len(ends))]
    listed = [*map(exp.column, [*names, "first"]), *found]
    side = exp.EQ(this=exp.column("side"), expression=exp.Literal.number(1))
    return exp.Select(
        expressions=[exp.alias_(one, f"correlated{place}") for place, one in enumerate(listed)],
        from_=exp.From(this=exp.Subquery(this=rows, alias=_alias("ordered$"))),
        where=exp.Where(this=side),
        group=exp.Group(expressions=list(map(exp.column, [*names, "first"]))),
    )


def _window(end: type[exp.Expr], kind: type[exp.Expr], names: Sequence[str]) -> exp.Expr:
    """The extreme of the second values of inner rows whose first value compares so with that of the row."""
    descending, last = FIRST[kind]
    inside = exp.EQ(this=exp.column("side"), expression=exp.Literal.number(0))
    there = exp.Not(this=exp.Is(this=exp.column("first"), expression=exp.Null()))
    filtered = exp.Filter(this=end(this=exp.column("second")), expression=exp.Where(this=conjunction([inside, there])))
    order = exp.Ordered(this=exp.column("first"), desc=descending, nulls_first=False)
    spec = exp.WindowSpec(kind="GROUPS", start="UNBOUNDED", start_side="PRECEDING")
    if last == "1":
        spec.set("end", exp.Literal.number(1))
        spec.set("end_side", "PRECEDING")
    elif last == "UNBOUNDED":
        spec.set("end", last)
        spec.set("end_side", "FOLLOWING")
        spec.set("exclude", exp.var("GROUP"))
    else:
        spec.set("end", last)
    return exp.Window(
        this=filtered,
        partition_by=list(map(exp.column, names)),
        order=exp.Order(expressions=[order]),
        spec=spec,
        over="OVER",
    )


def _name(select: exp.Select, names: Sequence[str]) -> None:
    select.set("expressions", [exp.alias_(one, name) for one, name in zip(select.expressions, names, strict=True)])


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.Identifier(this=name, quoted=True))
