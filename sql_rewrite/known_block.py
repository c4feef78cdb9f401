"""One SELECT over rows that everybody knows: its rows, as the engine would list them, whatever the order of rows is.

    SELECT region, COUNT(*) AS n FROM hospitals WHERE beds > 9 GROUP BY region HAVING COUNT(*) > 2

Claim. The rows are those of the engine, in every order of the rows that are read. Proof: conditions and columns are
evaluated as on public keys (evaluate.py), where the result is the engine's bit for bit; groups are sets of rows, and
aggregates do not depend on their order (known_aggregates.py); LIMIT takes the first rows of an order that leaves no
choice, and ROW_NUMBER numbers them so: where two different rows tie, it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cmp_to_key, partial

from sqlglot import exp

from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.aggregate_calls import AggregateReader, aggregate_calls
from sql_rewrite.constant_rows import facts_of
from sql_rewrite.evaluate import evaluate, is_exact_on, is_quick
from sql_rewrite.expressions import BIGINT, TEXT_LITERAL_MAX, ColumnRef, Expression, Value, walk
from sql_rewrite.known_aggregates import known_aggregate
from sql_rewrite.known_rows import KnownRows, KnownTable, Meter, Row
from sql_rewrite.lift_expression import ExpressionLift, Member
from sql_rewrite.lifter import ParameterValue
from sql_rewrite.refuse import did_you_mean, refuse
from sql_rewrite.select_list import grouped_by
from sql_rewrite.shell import output_name
from sql_rewrite.syntax import consume, populated, select_place, whole_number
from sql_rewrite.text import Text

__all__ = ["KnownBlock", "is_rank", "joined"]

_GROUPED = "groups$"
_WINDOWS = "windows$"
_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)


def is_rank(window: exp.Expr) -> bool:
    """Whether a window numbers rows by an order, which is all that is read here of them."""
    plain = not populated(window) - {"this", "partition_by", "order", "over"}
    return plain and type(window.this) in _RANKS and window.args.get("order") is not None and not populated(window.this)


def joined(left: KnownRows, right: KnownRows, join: exp.Join, block: KnownBlock) -> KnownRows:
    """The rows of an inner or left join, which tries all pairs. Errors: Refused."""
    both = KnownRows((*left.columns, *right.columns), (), left.merged)
    block.meter.take(len(left.rows) * len(right.rows), partial(block.too_much, join))
    equal: list[tuple[ColumnRef, ColumnRef]] = []
    for using in join.args.get("using") or ():
        sides = left.named(using.name), right.named(using.name)
        if len(sides[0]) != 1 or len(sides[1]) != 1 or sides[0][0].type is not sides[1][0].type:
            raise block.unknown(using, using.name)
        equal.append((sides[0][0], sides[1][0]))
    merged = left.merged | {using.name.lower() for using in join.args.get("using") or ()}
    pairs = [[{**own, **other} for other in right.rows if _agree(own, other, equal)] for own in left.rows]
    every = replace(both, rows=tuple(pair for some in pairs for pair in some))
    kept: Sequence[bool] = [True] * len(every.rows)
    if join.args.get("on") is not None:
        kept = [value is True for value in block.over(every).condition(join.args["on"], "ON")]
    flags = iter(kept)
    rows: list[Row] = []
    nothing = {(ref.relation, ref.name): None for _, _, ref in right.columns}
    for own, some in zip(left.rows, pairs, strict=True):
        met = [pair for pair in some if next(flags)]
        rows += met or ([{**own, **nothing}] if join.side == "LEFT" else [])
    columns = both.columns
    if join.side == "LEFT":
        columns = (*left.columns, *((alias, name, replace(ref, nullable=True)) for alias, name, ref in right.columns))
    return KnownRows(columns, tuple(rows), merged)


def _agree(own: Row, other: Row, equal: Sequence[tuple[ColumnRef, ColumnRef]]) -> bool:
    for left, right in equal:
        value = own[left.relation, left.name]
        if value is None or value != other[right.relation, right.name]:
            return False
    return True


class KnownBlock:
    """Evaluates the clauses of one SELECT over rows. `member` reads nested queries in its expressions."""

    def __init__(
        self,
        node: exp.Select,
        known: KnownRows,
        text: Text,
        parameters: Mapping[str, ParameterValue],
        member: Member,
        meter: Meter,
    ) -> None:
        self._node = node
        self._known = known
        self._text = text
        self._parameters = parameters
        self._member = member
        self.meter = meter
        self._values: dict[exp.Expr, ColumnRef] = {}
        self._keys: dict[Expression, ColumnRef] | None = None
        self._aliases = {p.alias.lower(): p.this for p in reversed(node.expressions) if isinstance(p, exp.Alias)}

    def over(self, known: KnownRows) -> KnownBlock:
        """The same clauses over other rows."""
        return KnownBlock(self._node, known, self._text, self._parameters, self._member, self.meter)

    def table(self) -> KnownTable:
        """Its rows. Errors: Refused."""
        node = self._node
        if node.args.get("where") is not None:
            consume(node.args["where"], "this", text=self._text, what="WHERE")
            self._keep(self.condition(node.args["where"].this, "WHERE"))
        ordered = node.args["order"].expressions if node.args.get("order") is not None else []
        having = [node.args["having"]] if node.args.get("having") is not None else []
        calls = aggregate_calls([*node.expressions, *having, *ordered])
        if calls or having or node.args.get("group") is not None:
            self._group(calls)
        for clause in having:
            consume(clause, "this", text=self._text, what="HAVING")
            self._keep(self.condition(clause.this, "HAVING"))
        qualify = [node.args["qualify"]] if node.args.get("qualify") is not None else []
        clauses = (*node.expressions, *qualify, *ordered)
        self._number_rows(list(dict.fromkeys(w for clause in clauses for w in clause.find_all(exp.Window))))
        for clause in qualify:
            consume(clause, "this", text=self._text, what="QUALIFY")
            self._keep(self.condition(clause.this, "QUALIFY"))
        names, expressions = self._selected()
        columns = [self._computed(expression, written) for expression, written in expressions]
        rows = [tuple(column[at] for column in columns) for at in range(len(self._known.rows))]
        order = [self._sorted(term, expressions, columns) for term in ordered]
        places = list(range(len(rows)))
        if node.args.get("distinct") is not None:
            places = self._different(rows, order)
        places = self._cut(places, rows, order)
        for column in columns:
            self._held(column, node)
        kinds = tuple(expression.type for expression, _ in expressions)
        return KnownTable(tuple(names), kinds, tuple(rows[place] for place in places))

    def condition(self, node: exp.Expr, clause: str) -> list[Value]:
        """What a condition is of each row. Errors: Refused."""
        return self._computed(AggregateReader(self._text, self._lifter()).condition(node, clause), node)

    def _keep(self, flags: Iterable[Value]) -> None:
        rows = tuple(row for row, flag in zip(self._known.rows, flags, strict=True) if flag is True)
        self._known = replace(self._known, rows=rows)

    def _lifter(self) -> ExpressionLift:
        return _Lift(self._text, self._resolve, self._parameters, self._member, self._values)

    def _resolve(self, column: exp.Column) -> Expression:
        found = self._known.named(column.name, column.table)
        if not found and not column.table and column.name.lower() in self._aliases:
            return self._lifter().lift(self._aliases[column.name.lower()])
        if len(found) > 1:
            raise refuse(
                "ambiguous_column",
                f'column "{column.name[:63]}" is refused',
                "Several relations that the nested query reads have a column of that name.",
                "write the relation before it",
                position=self._text.position(column),
            )
        if not found:
            raise self.unknown(column, column.name)
        if self._keys is None:
            return found[0]
        key = self._keys.get(found[0])
        if key is None:
            raise refuse(
                "unsupported_sql",
                f'column "{column.name[:63]}" is refused',
                "It is no key of the nested query's GROUP BY, and a group may have several values of it.",
                f"MIN({column.name[:63]})",
                "write it in GROUP BY",
                position=self._text.position(column),
            )
        return key

    def unknown(self, node: exp.Expr, name: str) -> Refused:
        """The refusal of a name that no relation has."""
        return refuse(
            "unknown_column",
            f'column "{name[:63]}" is refused',
            "No relation that the nested query reads has a column of that name.",
            *did_you_mean(name, [known for _, known, _ in self._known.columns]),
            position=self._text.position(node),
        )

    def too_much(self, node: exp.Expr) -> Refused:
        """The refusal of a query that takes too long to be computed beforehand."""
        return refuse(
            "too_large",
            "a nested query of public tables is refused",
            "It is computed before anything runs, and would take too many steps.",
            "ask it by itself, which is free, and write its values (or $name, a parameter) in its place",
            position=self._text.position(node),
        )

    def _computed(self, expression: Expression, node: exp.Expr, rows: Sequence[Row] | None = None) -> list[Value]:
        """What an expression is of each row. Errors: Refused."""
        rows = self._known.rows if rows is None else rows
        self._check(expression, node, rows)
        return [evaluate(expression, row) for row in rows]

    def _held(self, values: list[Value], node: exp.Expr) -> list[Value]:
        """The values, which a constant can hold. Errors: Refused."""
        for value in values:
            if isinstance(value, int) and not BIGINT.contains(value):
                raise self._too_large(node, "a whole number beyond 64 bits", "compute it as a DOUBLE")
            if isinstance(value, str) and len(value) > TEXT_LITERAL_MAX:
                raise self._too_large(node, f"a text of more than {TEXT_LITERAL_MAX:,} characters", "make it shorter")
        return values

    def _too_large(self, node: exp.Expr, what: str, instead: str) -> Refused:
        return refuse(
            "too_large",
            "a nested query of public tables is refused",
            f"One of its values is {what}.",
            instead,
            position=self._text.position(node),
        )

    def _check(self, expression: Expression, node: exp.Expr, rows: Sequence[Row]) -> None:
        self.meter.take(len(rows) * sum(1 for _ in walk(expression)), partial(self.too_much, node))
        if not is_quick(expression) or not is_exact_on(expression, rows):
            raise refuse(
                "unsupported_sql",
                "a nested query of public tables is refused",
                "It is computed before anything runs, and one of its functions is the engine's own in the last digits "
                "or letters.",
                "ask it by itself, which is free, and write its values (or $name, a parameter) in its place",
                position=self._text.position(node),
            )

    # GROUP BY

    def _group(self, calls: Sequence[exp.Expr]) -> None:
        """Puts groups in place of the rows: each key and each aggregate is a column of them."""
        keys = self._read_keys()
        values = [self._computed(expression, node) for node, expression in keys]
        groups: dict[tuple[Value, ...], list[Row]] = {}
        for at, row in enumerate(self._known.rows):
            groups.setdefault(tuple(map(_plain, (column[at] for column in values))), []).append(row)
        if not keys and self._node.args.get("group") is None:
            groups = {(): list(self._known.rows)}
        parts = sorted(groups.items(), key=lambda item: [_place(value) for value in item[0]])
        columns: list[tuple[str, ColumnType, list[Value]]] = []
        for at, (_, expression) in enumerate(keys):
            columns.append((f"k{at}", expression.type, [key[at] for key, _ in parts]))
        different = list(dict.fromkeys(calls))
        for at, call in enumerate(different):
            aggregate = known_aggregate(call, self._lifter(), self._text)
            for part in aggregate.read:
                self._check(part, call, self._known.rows)
            columns.append((f"a{at}", aggregate.kind, self._held([aggregate.of(rows) for _, rows in parts], call)))
        refs = [replace(facts_of(name, name, kind, held), relation=_GROUPED) for name, kind, held in columns]
        rows = tuple({(_GROUPED, name): held[at] for name, _, held in columns} for at in range(len(parts)))
        self._keys = {expression: ref for (_, expression), ref in zip(keys, refs, strict=False)}
        self._values = dict(zip([*(node for node, _ in keys), *different], refs, strict=True))
        self._known = replace(self._known, rows=rows)

    def _read_keys(self) -> list[tuple[exp.Expr, Expression]]:
        group = self._node.args.get("group")
        if group is None:
            return []
        consume(group, "expressions", "all", text=self._text, what="GROUP BY")
        selected = [written.unalias() for written in self._node.expressions]
        found: list[tuple[exp.Expr, Expression]] = []
        for item, node in grouped_by(group, selected, self._alias, lambda node: node):
            if node is None or isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Star):
                raise refuse(
                    "unsupported_sql",
                    "a key of GROUP BY is refused",
                    "Keys are columns, expressions, and positions in the select list.",
                    position=self._text.position(item),
                )
            found.append((node, self._lifter().lift(node)))
        return found

    def _alias(self, name: str) -> exp.Expr | None:
        return None if self._known.named(name) else self._aliases.get(name.lower())

    # Windows

    def _number_rows(self, windows: Sequence[exp.Expr]) -> None:
        """Puts the numbers that windows give beside the rows."""
        found: list[dict[tuple[str, str], Value]] = [dict(row) for row in self._known.rows]
        refs = {}
        for at, window in enumerate(windows):
            numbers = self._numbered(window)
            kept: list[Value] = [numbers[place] for place in range(len(found))]
            ref = replace(facts_of(f"w{at}", f"w{at}", ColumnType.INTEGER, kept), relation=_WINDOWS)
            refs[window] = ref
            for row, number in zip(found, kept, strict=True):
                row[ref.relation, ref.name] = number
        self._values = {**self._values, **refs}
        self._known = replace(self._known, rows=tuple(found))

    def _numbered(self, window: exp.Expr) -> dict[int, int]:
        """The number of each row among those of its part. Errors: Refused where equal places would decide it."""
        rows = self._known.rows
        keys = [self._computed(self._lifter().lift(key), key) for key in window.args.get("partition_by") or []]
        order = [self._sorted(term, (), ()) for term in window.args["order"].expressions]
        parts: dict[tuple[Value, ...], list[int]] = {}
        for place in range(len(rows)):
            parts.setdefault(tuple(_plain(key[place]) for key in keys), []).append(place)
        numbers: dict[int, int] = {}
        for part in parts.values():
            ordered, rank = sorted(part, key=cmp_to_key(partial(_compared, order))), 1
            for at, place in enumerate(ordered):
                before = ordered[at - 1] if at else place
                tied = at > 0 and _compared(order, before, place) == 0
                if isinstance(window.this, exp.RowNumber):
                    if tied and rows[before] != rows[place]:
                        raise self._tied(window)
                    rank = at + 1
                elif at and not tied:
                    rank = rank + 1 if isinstance(window.this, exp.DenseRank) else at + 1
                numbers[place] = rank
        return numbers

    # The select list and its order

    def _selected(self) -> tuple[list[str], list[tuple[Expression, exp.Expr]]]:
        names: list[str] = []
        found: list[tuple[Expression, exp.Expr]] = []
        for written in self._node.expressions:
            star = written.this if isinstance(written, exp.Column) else written
            if isinstance(star, exp.Star):
                consume(star, text=self._text, what="*")
                relation = written.table if isinstance(written, exp.Column) else ""
                shown = self._known.star(relation) if self._keys is None else []
                if not shown:
                    raise self.unknown(written, relation or "*")
                names += [name for name, _ in shown]
                found += [(ref, written) for _, ref in shown]
                continue
            names.append(written.alias if isinstance(written, exp.Alias) else output_name(self._text, written))
            found.append((self._lifter().lift(written.unalias()), written))
        return names, found

    def _sorted(
        self, term: exp.Expr, selected: Sequence[tuple[Expression, exp.Expr]], columns: Sequence[list[Value]]
    ) -> tuple[list[Value], bool, bool]:
        """What a term of ORDER BY is of each row, and whether it descends and has NULL first."""
        consume(term, "this", "desc", "nulls_first", text=self._text, what="ORDER BY")
        place = select_place(term.this)
        if place is None and isinstance(term.this, exp.Column) and not term.this.table:
            names = [written.alias_or_name.lower() for _, written in selected]
            if names.count(term.this.name.lower()) == 1:
                place = names.index(term.this.name.lower())
        if place is not None and not 0 <= place < len(columns):
            raise self.unknown(term, term.this.name)
        values = columns[place] if place is not None else self._computed(self._lifter().lift(term.this), term)
        return values, bool(term.args.get("desc")), bool(term.args.get("nulls_first"))

    def _different(
        self, rows: Sequence[tuple[Value, ...]], order: Sequence[tuple[list[Value], bool, bool]]
    ) -> list[int]:
        """Each different row once; none of them may have two places in the order."""
        first: dict[tuple[Value, ...], int] = {}
        for at, row in enumerate(rows):
            before = first.setdefault(tuple(map(_plain, row)), at)
            if any(values[before] != values[at] for values, _, _ in order):
                raise self._tied()
        keys = sorted(first, key=lambda row: [_place(value) for value in row])
        return [first[key] for key in keys]

    def _cut(
        self,
        places: list[int],
        rows: Sequence[tuple[Value, ...]],
        order: Sequence[tuple[list[Value], bool, bool]],
    ) -> list[int]:
        """The rows that LIMIT and OFFSET leave; sorted, where there is an order."""
        compare = partial(_compared, order)
        places = sorted(places, key=cmp_to_key(compare))
        skipped, kept = self._number("offset"), self._number("limit")
        first = skipped or 0
        last = len(places) if kept is None else first + kept
        for cut in (first, last):
            if 0 < cut < len(places) and compare(places[cut - 1], places[cut]) == 0:
                tied = [rows[place] for place in places if compare(place, places[cut]) == 0]
                if len(set(tied)) > 1:
                    raise self._tied()
        return places[first:last]

    def _number(self, clause: str) -> int | None:
        node = self._node.args.get(clause)
        if node is None:
            return None
        consume(node, "expression", text=self._text, what=clause.upper())
        found = whole_number(node.expression)
        if found is None:
            raise refuse(
                "unsupported_sql",
                f"{clause.upper()} is refused",
                "In a nested query of public tables it is a whole number.",
                f"write it out: {clause.upper()} 10",
                position=self._text.position(node),
            )
        return found

    def _tied(self, window: exp.Expr | None = None) -> Refused:
        clause = "LIMIT" if window is None else "ROW_NUMBER()"
        return refuse(
            "unsupported_sql",
            f"{clause} in a nested query of public tables is refused",
            "Different rows tie, so the order of the table's rows would choose among them.",
            "write more columns into ORDER BY, until no two rows tie: the key of the table as the last one",
            position=self._text.position(window or self._node.args.get("limit") or self._node),
        )


class _Lift(ExpressionLift):
    """Reads expressions of known rows, where keys and aggregates are columns of their groups."""

    def __init__(
        self,
        text: Text,
        resolve: Callable[[exp.Column], Expression],
        parameters: Mapping[str, ParameterValue],
        member: Member,
        values: Mapping[exp.Expr, ColumnRef],
    ) -> None:
        super().__init__(text, resolve, parameters, member=member)
        self._values = values

    def lift(self, node: exp.Expr, *, like: Expression | None = None) -> Expression:
        """A key, an aggregate, or what is made of them. Errors: Refused."""
        known = self._values.get(node) if self._values else None
        return super().lift(node, like=like) if known is None else known


Ordered = tuple[list[Value], bool, bool]
"""What a term of ORDER BY is of each row, whether it descends, and whether NULL comes first."""


def _compared(order: Sequence[Ordered], one: int, other: int) -> int:
    """Whether one row comes before another one (-1), after it (1), or at the same place."""
    for values, descending, nulls_first in order:
        left, right = values[one], values[other]
        if left == right:
            continue
        if left is None or right is None:
            return -1 if (left is None) == nulls_first else 1
        return -1 if (left < right) != descending else 1  # type: ignore[operator]
    return 0


def _plain(value: Value) -> Value:
    """A value as the key of a group: of the two zeros the one without a sign."""
    return value + 0.0 if isinstance(value, float) else value


def _place(value: Value) -> tuple[bool, Value]:
    """Where a value is among those of its type, NULL last."""
    return (value is None, 0 if value is None else value)
