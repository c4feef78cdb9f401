"""Aggregates that are releases of their own, beside others: a block each, which are joined on the keys.

    SELECT ward, MODE(sex), COUNT(*) FROM visits GROUP BY ward
    a:  SELECT ward, COUNT(*) FROM visits GROUP BY ward
    b:  SELECT ward, MODE(sex) FROM visits GROUP BY ward
    SELECT a.ward, b.mode, a.count FROM a LEFT JOIN b ON a.ward IS NOT DISTINCT FROM b.ward

    HISTOGRAM(x)          the counts of GROUP BY x, as one text {"1": 20, "2": 31}
    HISTOGRAM(x, [5, 9])  the same of up to 5, up to 9 and "other"
    MODE(x)               the first value by the counts of GROUP BY x, where the values of x are not public
    APPROX_TOP_K(x, 2)    the two first values by the counts of GROUP BY x, a column each

What is written out is lifted, judged and bounded like any other text: each block is a core, or a part of one that is
there anyway, they share the price, and what joins them is computed from released numbers (Dwork and Roth 2014,
Proposition 2.1). So nothing here decides what may be answered. What is not exactly of these forms stays as it is
written, and is refused where it is met.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce

from sqlglot import exp

from sql_rewrite.aggregate_calls import NESTED, aggregate_calls, is_mode
from sql_rewrite.apart_calls import adds_up, bins_of, is_apart, makes_histogram, name_of_call
from sql_rewrite.apart_levels import ApartLevels, apart_levels
from sql_rewrite.histogram_text import TEXT, quoted, shown_end
from sql_rewrite.levels import LEVELS
from sql_rewrite.refuse import refuse
from sql_rewrite.select_list import grouped_by, meant_by
from sql_rewrite.syntax import placed_like, populated, rebuilt, select_place
from sql_rewrite.text import Text

__all__ = ["TOP_MAX", "set_apart"]

TOP_MAX = 20
"""Most values of one APPROX_TOP_K beside others: each is a column."""

_NAMED = ("histogram", "approx_top_k", "mode")
_SLOTS = {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "qualify", "with_"}

Name = Callable[[exp.Expr], str]
"""The name that a column of the select list has in the answer."""


def set_apart(
    node: exp.Select, text: Text, name: Name, *, people: bool, counted: bool = False, levels: bool = False
) -> exp.Select | None:
    """What a block with such aggregates stands for; None for any other block. Errors: Refused.

    `people` says whether it aggregates rows about people: MODE of others is the engine's own. With `counted` MODE is
    the first one by the counts of the values that are shown, as values are which are not public. With `levels` all are
    set apart that do not add up over levels of groups.
    """
    named = levels or [word for word in _NAMED if word in text.folded]
    if not named or populated(node) - _SLOTS:
        return None
    block = _Block(node, text, people=people, counted=counted, levels=levels)
    if not block.special:
        return None
    group = node.args.get("group")
    several = group is not None and group.find(*LEVELS) is not None
    if not (counted or several) and all(is_mode(call) and call == block.special[0] for call in block.calls):
        return None  # one choice, which needs nothing beside it
    return block.written(name)


@dataclass(slots=True)
class _Part:
    """One block of the join: what it selects beside the keys."""

    alias: str
    query: exp.Query
    values: list[exp.Expr] = field(default_factory=list)


class _Block:
    """A block whose aggregates are set apart."""

    def __init__(self, node: exp.Select, text: Text, *, people: bool, counted: bool, levels: bool) -> None:
        self._counts_modes = counted
        self._node = node
        self._text = text
        clauses = [node.args[slot] for slot in ("having", "qualify", "order") if node.args.get(slot) is not None]
        self.calls = aggregate_calls([*node.expressions, *clauses])
        self.special = [call for call in self.calls if is_apart(call, people=people) or (levels and not adds_up(call))]
        self._keys: list[exp.Expr] = []
        self._parts: list[_Part] = []
        self._columns: list[tuple[exp.Expr, exp.Expr]] = []
        """What calls, keys and other columns are in the block above."""
        self._plain: _Part | None = None
        self._top: dict[int, list[exp.Expr]] = {}
        self._levels: ApartLevels | None = None

    def written(self, name: Name) -> exp.Select:
        """The block over the join. Errors: Refused."""
        node, text = self._node, self._text
        group = node.args.get("group")
        if group is not None and populated(group) - {"expressions", "all"}:
            raise refuse(
                "unsupported_sql",
                f"{name_of_call(self.special[0])} is refused beside such a GROUP BY",
                "It is read with keys and levels of them alone.",
                "write the keys, or ROLLUP, CUBE or GROUPING SETS of them",
                position=text.position(self.special[0]),
            )
        if group is not None and group.find(*LEVELS) is not None:
            self._levels = apart_levels(node, self.special[0], text, self._key)
            self._keys = [*self._levels.keys, self._levels.which()]
        else:
            self._keys = self._read_keys(group)
        if len(self.calls) > len(self.special):
            self._plain = self._part()
            for call in self.calls:
                if not any(call is one for one in self.special):
                    self._held(self._plain, call)
        one_by_one = [] if self._levels is None else [call for call in self.special if not is_apart(call, people=True)]
        if self._levels is not None and one_by_one:
            self._each_level(self._levels, one_by_one)
        for call in self.special:
            if not any(call == known for known, _ in self._columns):
                self._apart(call)
        tree = exp.Select()
        projections = [part for one in node.expressions for part in self._projections(one, name)]
        tree.set("expressions", projections)
        if node.args.get("having") is not None:
            tree.set("where", exp.Where(this=self._above(self._without_aliases(node.args["having"].this))))
        if node.args.get("qualify") is not None:
            tree.set("qualify", exp.Qualify(this=self._above(node.args["qualify"].this)))
        if node.args.get("order") is not None:
            tree.set("order", exp.Order(expressions=[self._ordered(item) for item in node.args["order"].expressions]))
        for slot in ("limit", "offset"):
            if node.args.get(slot) is not None:
                tree.set(slot, node.args[slot].copy())
        self._join(tree)
        placed_like(tree, node)
        return tree

    # The keys, and the blocks below

    def _read_keys(self, group: exp.Expr | None) -> list[exp.Expr]:
        if group is None:
            return []
        values = [one.unalias() for one in self._node.expressions]
        found = grouped_by(group, values, self._named, lambda item: item)
        return [item if meant is None else meant for item, meant in found]

    def _key(self, item: exp.Expr) -> exp.Expr:
        """The key that an item of GROUP BY stands for: a place or a name of the select list, or the item itself."""
        values = [one.unalias() for one in self._node.expressions]
        return meant_by(item, values, self._named, lambda other: other.unnest()) or item.unnest()

    def _named(self, name: str) -> exp.Expr | None:
        return self._aliases().get(name.lower())

    def _aliases(self) -> dict[str, exp.Expr]:
        """What names of the select list stand for; one that is made of a column of that name hides it nowhere."""
        return {
            one.alias.lower(): one.this
            for one in self._node.expressions
            if isinstance(one, exp.Alias)
            and all(column.name.lower() != one.alias.lower() for column in one.this.find_all(exp.Column))
        }

    def _part(self, rows: exp.Select | None = None) -> _Part:
        """One more block, which groups the rows by the keys."""
        alias = f"apart{len(self._parts)}"
        query = self._rows() if rows is None else rows
        shown = [exp.column(f"key_{place}") for place in range(len(self._keys))] if rows is not None else self._keys
        query.set("expressions", [_alias(key.copy(), f"key_{place}") for place, key in enumerate(shown)])
        if self._levels is not None and rows is None:
            query.set("group", self._levels.group())
        elif self._keys:
            query.set("group", exp.Group(expressions=[_number(place + 1) for place in range(len(self._keys))]))
        part = _Part(alias, query)
        self._parts.append(part)
        return part

    def _rows(self, *conditions: exp.Expr) -> exp.Select:
        """The rows of the block for which the conditions hold too, with an empty select list."""
        rows = exp.Select()
        if self._node.args.get("from_") is not None:
            rows.set("from_", self._node.args["from_"].copy())
        rows.set("joins", [join.copy() for join in self._node.args.get("joins") or []])
        where = self._node.args.get("where")
        both = [*([] if where is None else [where.this.copy()]), *(one.copy() for one in conditions)]
        if both:
            rows.set("where", exp.Where(this=both[0] if len(both) == 1 else exp.and_(*both, copy=False)))
        return rows

    def _held(self, part: _Part, value: exp.Expr) -> exp.Expr:
        """The column in which a block holds a value."""
        known = next((column for held, column in self._columns if held == value), None)
        if known is not None:
            return known
        name = f"value_{len(part.values)}"
        part.values.append(value)
        part.query.append("expressions", _alias(value.copy(), name))
        found = exp.column(name, table=part.alias)
        self._columns.append((value, found))
        return found

    def _apart(self, call: exp.Expr) -> None:
        """The block of one aggregate that is released apart. Errors: Refused."""
        inner = call.this if isinstance(call, exp.Filter) else call
        conditions = [call.expression.this] if isinstance(call, exp.Filter) else []
        if is_mode(call):
            if self._counts_modes:
                self._best(call, inner, conditions)
            elif self._levels is not None:
                self._each_level(self._levels, [call])
            else:
                self._held(self._part(), call)
            return
        if isinstance(inner, exp.ApproxTopK):
            self._first(call, inner, conditions)
            return
        assert isinstance(inner, exp.Anonymous)
        value = inner.expressions[0]
        bins = None if len(inner.expressions) == 1 else bins_of(inner, self._text)
        cell: exp.Expr = value
        label: exp.Expr = exp.Cast(this=exp.column("cell"), to=exp.DataType.build("text"))
        if bins is not None:
            cell = exp.Case(
                ifs=[
                    exp.If(this=exp.LTE(this=exp.Paren(this=value.copy()), expression=end.copy()), true=_number(place))
                    for place, end in enumerate(bins)
                ],
                default=_number(len(bins)),
            )
            named = [*(shown_end(end) for end in bins), "other"]
            ifs = [exp.If(this=_number(place), true=exp.Literal.string(one)) for place, one in enumerate(named)]
            label = exp.Case(this=exp.column("cell"), ifs=ifs)
        part = self._part(self._counted(value, cell, conditions))
        made = TEXT.copy()
        for place in list(made.find_all(exp.Column)):
            if place.name == "label":
                place.replace(quoted(label.copy()))
        part.query.append("expressions", _alias(placed_like(made, call), "value_0"))
        self._columns.append((call, exp.column("value_0", table=part.alias)))

    def _each_level(self, levels: ApartLevels, calls: Sequence[exp.Expr]) -> None:
        """A block of these aggregates for each level, one after another."""
        different = [call for place, call in enumerate(calls) if call not in calls[:place]]

        def shown(place: int, value: exp.Expr) -> exp.Expr:
            return _alias(value, f"key_{place}")

        blocks: list[exp.Query] = list(levels.one_by_one(self._rows, shown))
        for block in blocks:
            for place, call in enumerate(different):
                block.append("expressions", _alias(call.copy(), f"value_{place}"))
        whole = reduce(lambda left, right: exp.Union(this=left, expression=right, distinct=False), blocks)
        part = _Part(f"apart{len(self._parts)}", whole)
        self._parts.append(part)
        for place, call in enumerate(different):
            self._columns.append((call, exp.column(f"value_{place}", table=part.alias)))

    def _best(self, call: exp.Expr, inner: exp.Expr, conditions: Sequence[exp.Expr]) -> None:
        """The block of the value with the greatest count."""
        value = inner.expression.expressions[0].this if isinstance(inner, exp.WithinGroup) else inner.this
        part = self._part(self._counted(value, value, conditions))
        best = exp.ArgMax(this=exp.column("cell"), expression=exp.column("rows_of"))
        part.query.append("expressions", _alias(placed_like(best, call), "value_0"))
        self._columns.append((call, exp.column("value_0", table=part.alias)))

    def _counted(self, value: exp.Expr, cell: exp.Expr, conditions: Sequence[exp.Expr]) -> exp.Select:
        """A query whose rows are the cells of each group and their noisy counts."""
        there = exp.Not(this=exp.Is(this=exp.Paren(this=value.copy()), expression=exp.Null()))
        counts = self._rows(*conditions, there)
        shown = [_alias(key.copy(), f"key_{place}") for place, key in enumerate(self._keys)]
        number = _alias(exp.Count(this=exp.Star(), big_int=True), "rows_of")
        counts.set("expressions", [*shown, _alias(cell.copy(), "cell"), number])
        places = [_number(place + 1) for place in range(len(self._keys) + 1)]
        levels = self._levels
        counts.set("group", exp.Group(expressions=places) if levels is None else levels.group(cell))
        return exp.Select(from_=exp.From(this=_nested(placed_like(counts, value), "cells")))

    def _first(self, call: exp.Expr, inner: exp.ApproxTopK, conditions: Sequence[exp.Expr]) -> None:
        """The first values of each group, as a column each. Errors: Refused."""
        asked = inner.args.get("expression")
        number = None if asked is None else select_place(asked)
        if number is None or not 0 <= number < TOP_MAX or inner.args.get("counters") is not None:
            raise refuse(
                "unsupported_sql",
                "APPROX_TOP_K is refused in this form",
                f"Each of its values is a column, so their number is a constant from 1 to {TOP_MAX}.",
                "write the value, and behind it a constant number",
                position=self._text.position(call),
            )
        counts = self._counted(inner.this, inner.this, conditions)
        keys = [exp.column(f"key_{place}") for place in range(len(self._keys))]
        order = exp.Order(expressions=[exp.Ordered(this=exp.column("rows_of"), desc=True, nulls_first=False)])
        window = exp.Window(this=exp.RowNumber(), order=order, over="OVER")
        if keys:
            window.set("partition_by", [key.copy() for key in keys])
        counts.set("expressions", [*keys, exp.column("cell"), _alias(window, "place")])
        part = self._part(exp.Select(from_=exp.From(this=_nested(placed_like(counts, call), "places"))))
        columns = []
        for place in range(number + 1):
            same = exp.EQ(this=exp.column("place"), expression=_number(place + 1))
            value = exp.Filter(this=exp.Max(this=exp.column("cell")), expression=exp.Where(this=same))
            part.query.append("expressions", _alias(placed_like(value, call), f"value_{place}"))
            columns.append(exp.column(f"value_{place}", table=part.alias))
        self._top[len(self._columns)] = list(columns)
        self._columns.append((call, columns[0]))

    # The block above

    def _projections(self, projection: exp.Expr, name: Name) -> list[exp.Expr]:
        shown = projection.alias if isinstance(projection, exp.Alias) else name(projection)
        value = projection.unalias()
        for call, column in self._columns:
            if call == value and makes_histogram(value):
                return [_alias(placed_like(column.copy(), value), shown)]
        several = self._several(value.unnest())
        if several is None:
            return [_alias(self._above(value), shown)]
        return [_alias(column.copy(), f"{shown}_{place}") for place, column in enumerate(several, 1)]

    def _several(self, node: exp.Expr) -> list[exp.Expr] | None:
        """The columns of a list of first values."""
        for place, columns in self._top.items():
            if self._columns[place][0] == node:
                return columns
        return None

    def _above(self, node: exp.Expr) -> exp.Expr:
        """An expression of the block over the columns of the join. Errors: Refused."""
        if isinstance(node, NESTED):
            return node.copy()
        for place, key in enumerate(self._keys):
            if node == key:
                return placed_like(exp.column(f"key_{place}", table=self._parts[0].alias), node)
        if self._levels is not None:
            number = exp.column(f"key_{len(self._keys) - 1}", table=self._parts[0].alias)
            grouping = self._levels.grouping(node, number)
            if grouping is not None:
                return placed_like(grouping, node)
        if isinstance(node, exp.Bracket):
            found = self._element(node)
            if found is not None:
                return placed_like(found, node)
        for call, column in self._columns:
            if node == call:
                if makes_histogram(node):
                    raise refuse(
                        "unsupported_sql",
                        "HISTOGRAM inside an expression or a clause is refused",
                        "It is one text, not a MAP: nothing can be read out of it.",
                        "write it alone, or group by its value: counts have intervals too",
                        position=self._text.position(node),
                    )
                if self._several(node) is not None:
                    raise refuse(
                        "unsupported_sql",
                        "a list of values is refused here",
                        "An answer has no column of lists: in the select list each of its values is a column.",
                        "name one of its values by its place, [1] for the first one",
                        position=self._text.position(node),
                    )
                return placed_like(column.copy(), node)
        if isinstance(node, exp.Column):
            # Neither a key nor in an aggregate: the block below says what is wrong with it.
            if self._plain is None:
                self._plain = self._part()
            return self._held(self._plain, node).copy()
        result = rebuilt(node, self._above)
        result.meta.update(node.meta)
        return result

    def _element(self, node: exp.Bracket) -> exp.Expr | None:
        """One of the first values; None for other brackets. The parser counts from zero what it does not know."""
        columns = self._several(node.this.unnest())
        place = select_place(node.expressions[0]) if columns is not None and len(node.expressions) == 1 else None
        if columns is None or place is None:
            return None
        return columns[place + 1].copy() if 0 <= place + 1 < len(columns) else None

    def _ordered(self, item: exp.Expr) -> exp.Expr:
        """A sort key: a place or an alias of the select list stays as it is."""
        copy, inner = item.copy(), item.this.unnest() if isinstance(item, exp.Ordered) else item
        aliases = {one.alias.lower() for one in self._node.expressions if isinstance(one, exp.Alias)}
        alias = isinstance(inner, exp.Column) and not inner.table and inner.name.lower() in aliases
        if isinstance(item, exp.Ordered) and not alias and not isinstance(inner, exp.Literal | exp.Var):
            copy.set("this", self._above(inner))
        return copy

    def _without_aliases(self, node: exp.Expr) -> exp.Expr:
        """A condition in which names of the select list are what they stand for."""
        aliases = self._aliases()

        def written(part: exp.Expr) -> exp.Expr:
            if isinstance(part, NESTED) or any(part == key for key in self._keys):
                return part.copy()
            if isinstance(part, exp.Column) and not part.table and part.name.lower() in aliases:
                return exp.Paren(this=aliases[part.name.lower()].copy())
            if any(part == call for call in self.calls):
                return part.copy()
            result = rebuilt(part, written)
            result.meta.update(part.meta)
            return result

        return written(node)

    def _join(self, tree: exp.Select) -> None:
        """The blocks beside one another: by their keys, where there are some."""
        first, *others = self._parts
        tree.set("from_", exp.From(this=_nested(first.query, first.alias)))
        for part in others:
            join = exp.Join(this=_nested(part.query, part.alias))
            same = [
                exp.NullSafeEQ(
                    this=exp.column(f"key_{place}", table=first.alias),
                    expression=exp.column(f"key_{place}", table=part.alias),
                )
                for place in range(len(self._keys))
            ]
            if same:
                join.set("side", "LEFT")
                join.set("on", exp.and_(*same, copy=False))
            else:
                join.set("kind", "CROSS")
            tree.append("joins", join)


def _alias(value: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _number(number: int) -> exp.Expr:
    return exp.Literal.number(number)


def _nested(query: exp.Expr, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias)))
