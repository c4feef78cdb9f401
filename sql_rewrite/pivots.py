"""PIVOT and UNPIVOT of rows, as statements and behind a relation in FROM: written out before anything is lifted.

    PIVOT visits ON ward IN ('a', 'b') USING COUNT(*) GROUP BY region
    SELECT region, SUM(value_0) FILTER (WHERE ward = 'a') AS a, SUM(value_0) FILTER (WHERE ward = 'b') AS b
    FROM (SELECT region, ward, COUNT(*) AS value_0 FROM visits WHERE ward IN ('a', 'b') GROUP BY region, ward)
    GROUP BY region

    FROM people UNPIVOT (value FOR name IN (height, weight))
    FROM (SELECT ..., name, CASE name WHEN 'height' THEN height WHEN 'weight' THEN weight END AS value
          FROM people, (VALUES ('height'), ('weight')) AS labels(name) WHERE ... IS NOT NULL)

A pivot of rows is one release of disjoint groups, which the outer query arranges: a cell is the sum of one number. The
columns of its answer are the values that the text lists; never those of rows.
An unpivot repeats each row beside constants (constant_rows.py): unit-local, and a unit has as many rows more. What is
written out is lifted, judged and bounded like any other text.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from privacy.policy import Column, ColumnType, Dataset
from privacy.refusal import Refused
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import placed_like, populated, rendered
from sql_rewrite.text import Text

__all__ = ["write_pivots"]

COLUMNS_MAX = 200
"""Most columns that a pivot makes."""

_PIVOT = {"this", "expressions", "using", "group", "with_"}
_UNPIVOT = {"this", "expressions", "unpivot", "into", "with_"}
_CLAUSE = {"expressions", "fields", "alias", "columns", "pivot_column_naming", "unpivot", "group", "include_nulls"}
_SUMMED = (
    exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop,
    exp.ApproxDistinct,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Key:
    """A column whose values become columns, each with the name that it gives them."""

    column: exp.Column
    values: tuple[tuple[exp.Expr, str], ...]


def write_pivots(tree: exp.Expr, dataset: Dataset, text: Text) -> exp.Expr:
    """The tree with these written out: in place, except where the whole text is one. Errors: Refused."""
    if "pivot" not in text.folded:
        return tree
    writer = _Writer(tree, dataset, text)
    for node in reversed(list(tree.find_all(exp.Pivot))):
        if node.arg_key == "pivots":
            writer.clause(node)
            continue
        written = placed_like(writer.statement(node), node)
        if node.args.get("with_") is not None:
            written.set("with_", node.args["with_"])
        if node.parent is None:
            return written
        node.replace(written)
    return tree


class _Writer:
    def __init__(self, tree: exp.Expr, dataset: Dataset, text: Text) -> None:
        self._dataset = dataset
        self._text = text
        self._ctes = {cte.alias.lower(): cte.this for cte in tree.find_all(exp.CTE)}

    def statement(self, node: exp.Pivot) -> exp.Select:
        """PIVOT ... ON ... USING, or UNPIVOT ... ON ... INTO, as a query."""
        item = node.this
        if node.args.get("unpivot"):
            if populated(node) - _UNPIVOT:
                raise self._refused(node, "It says more than ON and INTO.")
            into = node.args.get("into")
            values = [] if into is None else into.expressions
            if len(values) > 1:
                raise self._refused(node, "It makes more than one column of values.")
            name = exp.to_identifier("name") if into is None else exp.to_identifier(into.this.name)
            value = exp.to_identifier(values[0].name if values else "value")
            return self._unpivoted(node, item, name, value, node.expressions, nulls=False)
        if populated(node) - _PIVOT:
            raise self._refused(node, "It says more than ON, USING and GROUP BY.")
        keys = [self._key(node, one, item) for one in node.expressions]
        using = node.args.get("using") or [exp.Count(this=exp.Star(), big_int=True)]
        return self._pivoted(node, item, keys, using)

    def clause(self, node: exp.Pivot) -> None:
        """A relation with PIVOT (...) or UNPIVOT (...) behind it, as a nested query; released ones are written out by
        plain_spelling.py."""
        item = node.parent
        if not isinstance(item, exp.Table | exp.Subquery) or len(item.args.get("pivots") or []) != 1:
            raise self._refused(node, "Several of them stand behind one relation.")
        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Select) and _aggregates(item.this):
            return
        if populated(node) - _CLAUSE:
            raise self._refused(node, "A part of it has no meaning here.")
        fields = node.args.get("fields") or []
        bare = item.copy()
        bare.set("pivots", None)
        if node.args.get("unpivot"):
            plain = len(fields) == 1 and isinstance(fields[0], exp.In) and len(node.expressions) == 1
            if not plain or not isinstance(node.expressions[0], exp.Identifier):
                raise self._refused(node, "It makes more than one column of values.")
            key, value = fields[0].this, node.expressions[0]
            nulls = bool(node.args.get("include_nulls"))
            written = self._unpivoted(
                node, bare, exp.to_identifier(key.name), value, fields[0].expressions, nulls=nulls
            )
        else:
            written = self._pivoted(node, bare, [self._key(node, one, bare) for one in fields], node.expressions)
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(item.alias_or_name or "pivoted"))
        item.replace(placed_like(exp.Subquery(this=placed_like(written, node), alias=alias.copy()), node))

    def _pivoted(self, node: exp.Pivot, item: exp.Expr, keys: Sequence[_Key], using: Sequence[exp.Expr]) -> exp.Select:
        if not keys:
            raise self._refused(node, "It names no column whose values become columns.")
        group = node.args.get("group")
        if group is None:
            left = self._left(node, item, keys, using)
        elif populated(group) - {"expressions"} or not all(isinstance(one, exp.Column) for one in group.expressions):
            raise self._refused(node, "Its GROUP BY lists something other than columns.")
        else:
            left = list(group.expressions)
        calls = [one.unalias() for one in using]
        if not all(isinstance(call, exp.AggFunc) for call in calls):
            raise self._refused(node, "What it computes is not one aggregate of rows for each column.")
        names = [*(one.name for one in left), *(key.column.name for key in keys)]
        values = [f"value_{place}" for place in range(len(calls))]
        if len({name.lower() for name in [*names, *values]}) < len(names) + len(values):
            raise self._refused(node, "Two of its columns have one name.")
        named = len(calls) > 1 or isinstance(using[0], exp.Alias)
        shown: list[exp.Expr] = [exp.column(one.name) for one in left]
        cells = list(itertools.product(*(key.values for key in keys)))
        if len(cells) * len(calls) > COLUMNS_MAX:
            raise self._refused(node, f"It makes more than {COLUMNS_MAX} columns.")
        released = self._is_released(item)
        for cell in cells:
            pairs = zip(keys, cell, strict=True)
            same = [exp.EQ(this=exp.column(key.column.name), expression=value.copy()) for key, (value, _) in pairs]
            for one, call, value in zip(using, calls, values, strict=True):
                name = "_".join([label for _, label in cell] + ([_called(one)] if named else []))
                outer: exp.Expr = call.copy()
                if not released:
                    outer = (exp.Sum if isinstance(call, _SUMMED) else exp.Max)(this=exp.column(value))
                found = exp.Filter(this=outer, expression=exp.Where(this=exp.and_(*same, copy=True)))
                shown.append(exp.Alias(this=found, alias=exp.to_identifier(name, quoted=True)))
        inner = item.copy() if released else self._cells(item, left, keys, calls, values)
        written = exp.Select(expressions=shown, from_=exp.From(this=inner))
        if left:
            written.set("group", exp.Group(expressions=[exp.column(one.name) for one in left]))
        return written

    def _cells(
        self, item: exp.Expr, left: Sequence[exp.Expr], keys: Sequence[_Key], calls: Sequence[exp.Expr],
        values: Sequence[str],
    ) -> exp.Subquery:  # fmt: skip
        """The groups of rows, one for each cell."""
        columns = [*left, *(key.column for key in keys)]
        computed = [exp.alias_(call.copy(), name) for call, name in zip(calls, values, strict=True)]
        listed = [exp.In(this=key.column.copy(), expressions=[value.copy() for value, _ in key.values]) for key in keys]
        inner = exp.Select(
            expressions=[*(column.copy() for column in columns), *computed],
            from_=exp.From(this=item.copy()),
            where=exp.Where(this=exp.and_(*listed, copy=True)),
            group=exp.Group(expressions=[column.copy() for column in columns]),
        )
        return exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("pivoted")))

    def _unpivoted(
        self,
        node: exp.Pivot,
        item: exp.Expr,
        key: exp.Identifier,
        value: exp.Identifier,
        listed: Sequence[exp.Expr],
        *,
        nulls: bool,
    ) -> exp.Select:
        held = self._names(item)
        if held is None:
            raise self._refused(node, "The columns that it leaves are not known.")
        own = {name.lower(): name for name in held}
        labels: list[tuple[str, str]] = []
        for one in listed:
            column = one.this if isinstance(one, exp.PivotAlias) else one
            if not isinstance(column, exp.Column) or column.name.lower() not in own:
                raise self._refused(node, "It lists something other than columns of the relation.")
            name = own[column.name.lower()]
            labels.append((one.args["alias"].name if isinstance(one, exp.PivotAlias) else name, name))
        taken = {name for _, name in labels}
        left = [name for name in held if name not in taken]
        if {key.name.lower(), value.name.lower()} & {name.lower() for name in left} or not labels:
            raise self._refused(node, "A column that it makes has the name of another one.")
        branches = [exp.If(this=exp.Literal.string(label), true=_column(name)) for label, name in labels]
        case = exp.Case(this=exp.column(key.name, table="labels"), ifs=branches)
        rows = [exp.Tuple(expressions=[exp.Literal.string(label)]) for label, _ in labels]
        alias = exp.TableAlias(this=exp.to_identifier("labels"), columns=[key.copy()])
        shown = [*map(_column, left), exp.column(key.name, table="labels"), exp.alias_(case, value.copy())]
        written = exp.Select(expressions=shown, from_=exp.From(this=item.copy()))
        written.set("joins", [exp.Join(this=exp.Values(expressions=rows, alias=alias))])
        if not nulls:
            there = exp.Not(this=exp.Is(this=exp.Paren(this=case.copy()), expression=exp.Null()))
            written.set("where", exp.Where(this=there))
        return written

    def _key(self, node: exp.Pivot, one: exp.Expr, item: exp.Expr) -> _Key:
        """A column with its values: those that are listed, or declared."""
        column = one.this if isinstance(one, exp.In) else one
        if not isinstance(column, exp.Column):
            raise self._refused(node, "What becomes columns is not a column.")
        if isinstance(one, exp.In):
            values = []
            for listed in one.expressions:
                value = listed.this if isinstance(listed, exp.PivotAlias) else listed
                if populated(one) - {"this", "expressions"} or not isinstance(value, exp.Literal | exp.Boolean):
                    raise self._refused(node, "Its IN lists something other than constants.")
                label = listed.args["alias"].name if isinstance(listed, exp.PivotAlias) else _label(value)
                values.append((value, label))
            return _Key(column, tuple(values))
        known = self._column_of(item, column)
        found = None if known is None else _declared(known)
        if known is not None and found and not known.nullable:
            return _Key(column, tuple((value, _label(value)) for value in found))
        declared = (found or [exp.Literal.string("a"), exp.Literal.string("b")])[:COLUMNS_MAX]
        raise refuse(
            "unsupported_sql",
            "PIVOT without a list of values is refused",
            "The columns of its answer would depend on rows, unless all values are declared and none is NULL.",
            f"write the values: ON {rendered(column)} IN ({', '.join(map(rendered, declared))})",
            position=self._text.position(column),
        )

    def _column_of(self, item: exp.Expr, name: exp.Column) -> Column | None:
        """The stored column that a column of a relation is, in each of its rows; None where it is not known."""
        query = item.this if isinstance(item, exp.Subquery) else None
        if isinstance(item, exp.Table):
            query = self._ctes.get(item.name.lower())
            if query is None:
                table = self._dataset.table(item.name)
                return None if table is None else table.column(name.name)
        read = query.args.get("from_") if isinstance(query, exp.Select) else None
        if not isinstance(query, exp.Select) or read is None or any(j.side for j in query.args.get("joins") or []):
            return None
        shown = [one for one in query.expressions if one.alias_or_name.lower() == name.name.lower()]
        column = shown[0].unalias() if len(shown) == 1 else None
        if not isinstance(column, exp.Column) or any(one.is_star for one in query.expressions):
            return None
        below = [read.this, *(join.this for join in query.args.get("joins") or [])]
        below = [one for one in below if not column.table or one.alias_or_name.lower() == column.table.lower()]
        found = [known for known in (self._column_of(one, column) for one in below) if known is not None]
        return found[0] if len(found) == 1 else None

    def _left(self, node: exp.Pivot, item: exp.Expr, keys: Sequence[_Key], using: Sequence[exp.Expr]) -> list[exp.Expr]:
        """The columns that a pivot without GROUP BY groups by: all that it does not read."""
        held = self._names(item)
        table = self._dataset.table(item.name) if isinstance(item, exp.Table) else None
        if held is None or (table is not None and table.protected):
            raise refuse(
                "group_by_unit" if held is not None else "unsupported_sql",
                "PIVOT without GROUP BY is refused",
                "It would group by all other columns, and so by what belongs to one person.",
                "name the columns that are wanted in front, with GROUP BY at its end",
                position=self._text.position(node),
            )
        read = {key.column.name.lower() for key in keys}
        read |= {column.name.lower() for one in using for column in one.find_all(exp.Column)}
        return [_column(name) for name in held if name.lower() not in read]

    def _names(self, item: exp.Expr) -> list[str] | None:
        """The columns of a relation, None where they are not known without reading it."""
        if isinstance(item, exp.Subquery):
            return _selected(item.this)
        if not isinstance(item, exp.Table):
            return None
        cte = self._ctes.get(item.name.lower())
        if cte is not None:
            return _selected(cte)
        table = self._dataset.table(item.name)
        return None if table is None else [column.name for column in table.columns]

    def _is_released(self, item: exp.Expr) -> bool:
        """Whether a relation aggregates by itself, so that its numbers are pivoted as they are."""
        query = item.this if isinstance(item, exp.Subquery) else self._ctes.get(item.name.lower())
        return isinstance(query, exp.Select) and _aggregates(query)

    def _refused(self, node: exp.Pivot, why: str) -> Refused:
        unpivot = bool(node.args.get("unpivot"))
        return refuse(
            "unsupported_sql",
            "UNPIVOT is refused" if unpivot else "PIVOT is refused",
            why,
            "write a branch of UNION ALL for each column, which selects 'a' AS name and a AS value"
            if unpivot
            else "write each column of the answer as COUNT(*) FILTER (WHERE key = 'value') AS value",
            position=self._text.position(node),
        )


def _declared(column: Column) -> list[exp.Expr] | None:
    """The declared values of a column, in order."""
    if column.type is ColumnType.BOOLEAN:
        return [exp.Boolean(this=False), exp.Boolean(this=True)]
    if column.type not in (ColumnType.TEXT, ColumnType.INTEGER) or column.keys is None or column.keys.other is not None:
        return None
    known = [value for value in column.keys.values if isinstance(value, str | int)]
    if column.type is ColumnType.TEXT:
        return [exp.Literal.string(value) for value in sorted(str(value) for value in known)]
    return [exp.Literal.number(value) for value in sorted(int(value) for value in known)]


def _column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))


def _selected(query: exp.Expr) -> list[str] | None:
    """The names that a query gives its columns, None where it does not name each of them."""
    if not isinstance(query, exp.Select):
        return None
    names = [one.alias_or_name for one in query.expressions if isinstance(one, exp.Alias | exp.Column)]
    whole = len(names) == len(query.expressions) and not any(one.is_star for one in query.expressions)
    return names if whole and all(names) else None


def _label(value: exp.Expr) -> str:
    return str(value.this).lower() if isinstance(value, exp.Boolean) else str(value.name)


def _called(one: exp.Expr) -> str:
    """What a column of several aggregates is called after its value."""
    if isinstance(one, exp.Alias):
        return str(one.alias)
    whole = isinstance(one, exp.Count) and isinstance(one.this, exp.Star)
    return "count_star()" if whole else rendered(one).lower()


def _aggregates(query: exp.Select) -> bool:
    return any(one.find(exp.AggFunc) is not None for one in query.expressions)
