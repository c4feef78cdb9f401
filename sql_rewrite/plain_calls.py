"""Joins and calls that mean what the language says in other words: written out in the tree before anything is lifted.

    FROM a SEMI JOIN b USING (k)              FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)
    FROM a ANTI JOIN b ON a.k = b.k           FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k)
    x = ANY (SELECT ...)                      x IN (SELECT ...)
    x <> ALL (SELECT ...)                     x NOT IN (SELECT ...)
    x = ANY (['a', 'b']), <> ALL              x IN ('a', 'b'), NOT IN
    SELECT ENTROPY(k) FROM t                  the entropy of the numbers of SELECT k, COUNT(*) FROM t GROUP BY k
    SELECT MAD(x) FROM t WHERE p              SELECT MEDIAN(ABS(x - (SELECT MEDIAN(x) FROM t WHERE p))) FROM t WHERE p
    SELECT k, MAD(x) FROM t GROUP BY k        ... (SELECT MEDIAN(r.x) FROM t AS r WHERE r.k = t.k) ... GROUP BY k
    REPEAT(x, n)                              REPEAT(x, NULLIF(LEAST(n, 1001), 1001)), so that no text gets too long
    FORMAT('{:.1f}', x)                       FORMAT('{:.1f}', TRY_CAST(x AS DOUBLE))

As in plain_spelling.py, what is written out is lifted, judged and bounded like any other text.
"""

from __future__ import annotations

import re

from sqlglot import exp

from privacy.policy import ColumnType, Dataset
from privacy.refusal import Finding, Position
from sql_rewrite.refuse import refuse
from sql_rewrite.shell_names import PLACE
from sql_rewrite.syntax import placed_like, populated, rendered
from sql_rewrite.text import Text

__all__ = ["REPEATED_MAX", "spell_calls"]

REPEATED_MAX = 1_000
"""How often REPEAT writes a text at most; more often, it is NULL."""

_NUMBERS = (ColumnType.INTEGER, ColumnType.NUMBER)

_QUANTIFIED = re.compile(r"(=|<>)\s*(any|some|all)\b")
_SPELLED = ("semi", "anti", "entropy", "repeat", "format", "mad")


def spell_calls(tree: exp.Expr, text: Text, dataset: Dataset) -> list[Finding]:
    """Writes such joins and calls of a text out in its tree, in place.

    Returns what an answer about people has to say of them. Errors: Refused.
    """
    found: list[Finding] = []
    if _QUANTIFIED.search(text.folded) is not None:
        for compared in list(tree.find_all(exp.EQ, exp.NEQ)):
            _membership(compared)
    if not [word for word in _SPELLED if word in text.folded]:
        return found
    for node in list(tree.find_all(exp.Select, exp.Repeat, exp.Format)):
        if isinstance(node, exp.Repeat):
            _repeat(node, text)
        elif isinstance(node, exp.Format):
            _format(node)
        elif isinstance(node, exp.Select):
            _half_join(node)
            _deviations(node, dataset)
            position = text.position(node.expressions[0]) if node.expressions else None
            if _entropy(node):
                found.append(_of_noisy_counts(position))
    return found


def _deviations(node: exp.Select, dataset: Dataset) -> None:
    """The median distance from the median, of all rows of a block: the median is released first, as a stage.

    For each group it is that of the rows with its keys. Of what is non-numeric, and of keys that are no columns or may
    be NULL, which equals nothing, it is left as it stands, and refused.
    """
    grouped = node.args.get("group") is not None
    keys = _same_keys(node, dataset) if grouped else []
    if node.args.get("from_") is None or keys is None:
        return
    for call in [one for value in node.expressions for one in value.find_all(exp.Anonymous)]:
        if str(call.this).lower() != "mad" or len(call.expressions) != 1 or call.find_ancestor(exp.Select) is not node:
            continue
        value = call.expressions[0]
        if (
            call.find_ancestor(exp.Window, exp.Filter, exp.AggFunc, exp.Select) is not node
            or value.find(exp.AggFunc, exp.Query) is not None
        ):
            continue
        first = exp.Select(expressions=[exp.Median(this=value.copy())], from_=node.args["from_"].copy())
        for slot in ("joins", "where"):
            if node.args.get(slot):
                kept = node.args[slot]
                first.set(slot, [one.copy() for one in kept] if isinstance(kept, list) else kept.copy())
        for part in first.walk():
            if part.find_ancestor(exp.Median) is None:
                part.meta.clear()  # else the call would reach to the end of the text
        declared = [table.column(one.name) for one in value.find_all(exp.Column) for table in dataset.tables]
        if any(one is not None and one.type not in _NUMBERS for one in declared):
            continue
        if keys:
            _of_group(node, first, keys)
        for part in first.walk():
            part.meta.clear()  # it stands nowhere in the text
        distance = exp.Abs(this=exp.Sub(this=exp.Paren(this=value.copy()), expression=exp.Subquery(this=first)))
        call.replace(placed_like(exp.Median(this=distance), call))


_ROWS = "rows_of_mad"
"""The name of a table of which the median is released first."""


def _same_keys(node: exp.Select, dataset: Dataset) -> list[exp.Column] | None:
    """The keys of a block over one table, where they are columns that are never NULL; None of any other block."""
    read, group, where = node.args.get("from_"), node.args["group"], node.args.get("where")
    source = None if read is None else read.this
    if not isinstance(source, exp.Table) or node.args.get("joins") or (where is not None and where.find(exp.Query)):
        return None
    table = next((one for one in dataset.tables if one.name.lower() == source.name.lower()), None)
    if table is None or populated(group) != {"expressions"} or populated(source) - {"this", "alias"}:
        return None
    if source.alias_or_name.lower() == _ROWS:
        return None
    # Of keys that belong to one unit it is computed within the unit, or refused with them.
    owned = {table.key, table.unit_column, *(reference.column for reference in table.references)}
    for key in group.expressions:
        column = table.column(key.name.lower()) if isinstance(key, exp.Column) else None
        if column is None or column.nullable or column.unique or column.name in owned:
            return None
    return list(group.expressions)


def _of_group(node: exp.Select, first: exp.Select, keys: list[exp.Column]) -> None:
    """Makes `first` read the rows whose keys are those of the row around it."""
    source = node.args["from_"].this
    called = source.args["alias"].this if source.args.get("alias") else source.this
    for column in first.find_all(exp.Column):
        column.set("table", exp.to_identifier(_ROWS, quoted=True))
    first.args["from_"].this.set("alias", exp.TableAlias(this=exp.to_identifier(_ROWS, quoted=True)))
    for key in keys:
        inner, outer = (
            exp.Column(this=key.this.copy(), table=name)
            for name in (exp.to_identifier(_ROWS, quoted=True), called.copy())
        )
        same = exp.EQ(this=inner, expression=outer)
        where = first.args.get("where")
        both = same if where is None else exp.And(this=exp.Paren(this=where.this), expression=same)
        first.set("where", exp.Where(this=both))


def _of_noisy_counts(position: Position | None) -> Finding:
    return Finding(
        code="entropy_of_counts",
        what="ENTROPY is that of noisy counts",
        why="Groups that are not shown are not in it, which makes it too low, and noise on groups of few makes it too "
        "high. Its interval is that of the noise alone.",
        instead=("ask for the counts of the groups, and look at them",),
        position=position,
    )


def _repeat(node: exp.Repeat, text: Text) -> None:
    """LEAST leaves NULL out, and NULLIF then gives it back. Errors: Refused, of a constant that is too large."""
    times = node.args["times"]
    if isinstance(times, exp.Literal) and not times.is_string and float(times.this) > REPEATED_MAX:
        raise refuse(
            "unsupported_function",
            f"{text.spelled(node) or 'REPEAT'} is refused",
            f"A text is written at most {REPEATED_MAX:,} times.",
            "write a smaller number",
            position=text.position(node),
        )
    number = str(REPEATED_MAX + 1)
    held = exp.Least(this=times.copy(), expressions=[exp.Literal.number(number)], ignore_nulls=True)
    node.set("times", placed_like(exp.Nullif(this=held, expression=exp.Literal.number(number)), node))


def _format(node: exp.Format) -> None:
    """Digits of a fraction are those of a double: the engine would fail where a value is something else."""
    places = PLACE.findall(str(node.this.name))
    for place, value in zip(places, list(node.expressions), strict=False):
        if place.endswith("f}"):
            double = exp.DataType(this=exp.DataType.Type.DOUBLE)
            value.replace(placed_like(exp.TryCast(this=value.copy(), to=double), value))


def _membership(node: exp.Expr) -> None:
    """An equality with any row of a nested query or any of some constants, or an inequality with all of them."""
    several = _quantified(node.expression, equal=isinstance(node, exp.EQ))
    if several is None or populated(node) - {"this", "expression"}:
        return
    among = exp.In(this=node.this.copy())
    if isinstance(several, exp.Query):
        among.set("query", exp.Subquery(this=several.copy()))
    elif isinstance(several, exp.Array) and _alike(several.expressions):
        among.set("expressions", [value.copy() for value in several.expressions])
    else:
        return
    node.replace(placed_like(among if isinstance(node, exp.EQ) else exp.Not(this=among), node))


def _quantified(node: exp.Expr, *, equal: bool) -> exp.Expr | None:
    """The brackets behind ANY, or ALL: the parser reads ALL of a list as a call."""
    if isinstance(node, exp.Anonymous) and not equal and node.name.lower() == "all" and len(node.expressions) == 1:
        several: exp.Expr = node.expressions[0]
        return several
    quantified = isinstance(node, exp.Any if equal else exp.All) and not populated(node) - {"this"}
    return node.this.unnest() if quantified else None


def _alike(values: list[exp.Expr]) -> bool:
    """Whether these are constants of one kind, which a list compares as IN does, whatever is NULL beside them."""
    kinds = {_kind(value) for value in values}
    return len(kinds) == 1 and None not in kinds


def _kind(value: exp.Expr) -> str | None:
    """The kind of a constant: a text, a number, or the type that a text is cast to; None of anything else."""
    if isinstance(value, exp.Cast) and isinstance(value.this, exp.Literal):
        return value.to.sql()
    value = value.this if isinstance(value, exp.Neg) else value
    return None if not isinstance(value, exp.Literal) else "text" if value.is_string else "number"


# --- joins that add no column ----------------------------------------------------------------------------------------


def _half_join(node: exp.Select) -> None:
    """The one join of a query, of two relations with different names. Its condition reads each as EXISTS does."""
    joins, from_ = node.args.get("joins") or [], node.args.get("from_")
    if len(joins) != 1 or from_ is None:
        return
    join, left = joins[0], from_.this
    kind = str(join.args.get("kind") or "").upper()
    if kind not in ("SEMI", "ANTI") or populated(join) - {"this", "kind", "using", "on"}:
        return
    right = join.this
    if any(not isinstance(side, exp.Table | exp.Subquery) or not side.alias_or_name for side in (left, right)):
        return
    if left.alias_or_name.lower() == right.alias_or_name.lower():
        return
    condition = join.args.get("on")
    if join.args.get("using"):
        same = [
            exp.EQ(
                this=exp.column(key.copy(), table=right.alias_or_name, quoted=None),
                expression=exp.column(key.copy(), table=left.alias_or_name, quoted=None),
            )
            for key in join.args["using"]
        ]
        condition = exp.and_(*same, copy=False)
    if condition is None:
        return
    nested = exp.Select(
        expressions=[exp.Literal.number(1)], from_=exp.From(this=right.copy()), where=exp.Where(this=condition.copy())
    )
    there: exp.Expr = exp.Exists(this=nested)
    if kind == "ANTI":
        there = exp.Not(this=there)
    where = node.args.get("where")
    if where is not None:
        there = exp.And(this=exp.Paren(this=where.this.copy()), expression=there)
    node.set("joins", None)
    node.set("where", placed_like(exp.Where(this=there), join))


# --- aggregates ------------------------------------------------------------------------------------------------------


def _rows_of(node: exp.Select) -> exp.Select | None:
    """The rows that a query without groups aggregates, with an empty select list; None for other queries."""
    if populated(node) - {"expressions", "from_", "joins", "where", "with_"} or node.args.get("from_") is None:
        return None
    rows = exp.Select()
    for slot in ("from_", "where"):
        if node.args.get(slot) is not None:
            rows.set(slot, node.args[slot].copy())
    rows.set("joins", [join.copy() for join in node.args.get("joins") or []])
    return rows


def _called(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == name and len(node.expressions) == 1


def _entropy(node: exp.Select) -> bool:
    """In bits, of a query that selects nothing else: of n rows, log2(n) less the mean of the logarithm of a group."""
    if len(node.expressions) != 1:
        return False
    projection = node.expressions[0]
    call = projection.unalias()
    rows = _rows_of(node) if _called(call, "entropy") else None
    if rows is None or call.expressions[0].find(exp.Query, exp.AggFunc) is not None:
        return False
    key = exp.Alias(this=call.expressions[0].copy(), alias=exp.to_identifier("entropy_key"))
    number = exp.Alias(this=exp.Count(this=exp.Star(), big_int=True), alias=exp.to_identifier("entropy_rows"))
    rows.set("expressions", [key, number])
    rows.set("group", exp.Group(expressions=[exp.Literal.number(1)]))
    written = _ENTROPY.copy()
    value = exp.Alias(
        this=written.expressions[0], alias=exp.to_identifier(projection.alias or rendered(call)[:60], quoted=True)
    )
    node.set("expressions", [value])
    node.set("joins", None)
    node.set("from_", exp.From(this=_named(rows)))
    node.set("where", written.args["where"])
    return True


def _named(query: exp.Select) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("entropy_groups")))


def _written() -> exp.Select:
    rows, key = exp.column("entropy_rows"), exp.column("entropy_key")
    all_rows = exp.Sum(this=rows.copy())
    weighted = exp.Sum(this=exp.Mul(this=rows.copy(), expression=exp.Ln(this=rows.copy())))
    mean = exp.Div(this=weighted, expression=all_rows.copy(), typed=False, safe=False)
    nats = exp.Paren(this=exp.Sub(this=exp.Ln(this=all_rows), expression=mean))
    two = exp.Ln(this=exp.Literal.number(2))
    bits = exp.Coalesce(this=exp.Div(this=nats, expression=two, typed=False, safe=False), expressions=[_zero()])
    there = exp.Not(this=exp.Is(this=key, expression=exp.Null()))
    some = exp.GT(this=rows.copy(), expression=_zero())
    return exp.Select(expressions=[bits], where=exp.Where(this=exp.And(this=some, expression=there)))


def _zero() -> exp.Expr:
    return exp.Literal.number(0)


_ENTROPY = _written()
"""Over the released numbers of the groups: a number of rows that noise takes below zero counts as none."""
