"""Rows of constants beside rows about people: VALUES, UNNEST of constants, series, joined by any condition, or by none.

    SELECT b.name, COUNT(*) FROM people JOIN (VALUES ('young', 0, 30), ('old', 30, 99)) AS b(name, low, high)
    ON age >= b.low AND age < b.high GROUP BY b.name
    core:  people times two rows, where age >= low and age < high, k0 = name, a0 = rows

Claim. The join is unit-local. Proof: each of its rows is one row about people, whose unit it has, beside constants that
everybody knows; so the rows of unit u are the pairs of u's own rows with constants for which the condition is
true, whatever other units have.

Claim. A row about people meets at most `most` constants (`most_met`). Proof: it meets none whose own condition
is not true, and those that it meets have one value in each column that is compared for equality with something that
the row determines, which parts them; among these, where the same expression of the row is compared with two ends, its
one value lies in the intervals of all that it meets. So the greatest number of intervals that overlap, in any one of
these parts, bounds them. With age bands that leave no gap for two, a person is in one, and has one row still.

The rows of a unit, and its bounds, multiply by `most`. Where rows meet is tried for all pairs, which is what they cost.
"""

from __future__ import annotations

import calendar
import datetime
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from fractions import Fraction

from sqlglot import exp

from privacy.policy import Column, ColumnType, Dataset, Table
from privacy.refusal import Refused
from sql_rewrite.declared_groups import constant
from sql_rewrite.evaluate import closed_domain, evaluate, is_exact, is_exact_on
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, Literal, Value, columns_of
from sql_rewrite.functions import TypeRefused
from sql_rewrite.functions.harmony import as_literal, harmonise
from sql_rewrite.plan import GROUPS, Constants, Source
from sql_rewrite.public_values import public_literals
from sql_rewrite.references import reference
from sql_rewrite.refuse import refuse
from sql_rewrite.rows import Rows
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text

__all__ = ["ROWS_MAX", "constants_in", "facts_of", "keeps_all", "most_met", "rows_of_constants"]

ROWS_MAX = 1_000
"""Most rows of constants beside rows about people: each of these is tried with all of them."""

CELLS_MAX = 2_000
"""Most constants in them, which are planned one by one."""

_NUMBERS = (ColumnType.INTEGER, ColumnType.NUMBER)
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}

Lift = Callable[[exp.Expr], Expression]


def constants_in(node: exp.Expr, public: Callable[[exp.Table], bool]) -> exp.Expr | None:
    """The VALUES, UNNEST, series or SELECT of constants that an item of FROM or a query is; None for anything else.

    A query of a small `public` table is one where it computes columns or leaves out rows: its rows are known as well.
    """
    if isinstance(node, exp.Values | exp.Unnest) or (
        isinstance(node, exp.Table) and isinstance(node.this, exp.GenerateSeries)
    ):
        return node
    if isinstance(node, exp.Subquery) and not populated(node) - {"this", "alias"}:
        return constants_in(node.this, public)
    if isinstance(node, exp.Union) and not populated(node) - {"this", "expression", "distinct"}:
        sides = constants_in(node.this, public), constants_in(node.expression, public)
        return node if None not in sides and node.args.get("distinct") is False else None
    if not isinstance(node, exp.Select):
        return None
    if node.args.get("from_") is None:
        return node if node.expressions and not populated(node) - {"expressions"} else None
    if populated(node) - {"expressions", "from_", "where"} or not all(map(_computes, node.expressions)):
        return None
    below, where = node.args["from_"].this, node.args.get("where")
    if isinstance(below, exp.Table) and isinstance(below.this, exp.Identifier):
        return node if public(below) and (where is None or where.find(exp.Query, exp.AggFunc) is None) else None
    return constants_in(below, public) and node


def _computes(node: exp.Expr) -> bool:
    """Whether what a query of constants selects has one value for each of its rows, or is all of their columns."""
    several = exp.Query, exp.Subquery, exp.Window, exp.AggFunc, exp.Explode, exp.Unnest, exp.Star
    return node.find(*several) is None or (isinstance(node, exp.Star) and not populated(node))


def rows_of_constants(item: exp.Expr, relation: str, lift: Lift, dataset: Dataset, text: Text) -> Rows:
    """The rows under that name of their source. `lift` reads a constant. Errors: Refused."""
    names, cells = _Reader(lift, text, dataset).read(item)
    if len(cells) > ROWS_MAX or len(cells) * len(names) > CELLS_MAX:
        raise refuse(
            "too_large",
            "a list of constants is refused",
            f"It has {len(cells):,} rows of {len(names)} columns; {ROWS_MAX:,} rows and {CELLS_MAX:,} constants may "
            "stand beside rows about people.",
            "use fewer rows, or ask the owner for a public table",
            position=text.position(item),
        )
    if not cells:
        raise _refusal(text, item, "It has no rows: a series ends before its first value, or no row fulfils WHERE.")
    columns = []
    typed: list[tuple[Expression, ...]] = []
    for place, name in enumerate(names):
        try:
            found, kind = harmonise("VALUES", [row[place] for row in cells])
        except TypeRefused:
            found, kind = (), ColumnType.TEXT
        if not found or not all(isinstance(one, Literal) for one in found):
            raise _refusal(text, item, f'Its column "{name[:63]}" has values of several types.')
        typed.append(found)
        columns.append(facts_of(f"v{place}", name, kind, [one.value for one in found if isinstance(one, Literal)]))
    rows = [tuple(one.value for one in row if isinstance(one, Literal)) for row in zip(*typed, strict=True)]
    constants = Constants(tuple(columns), tuple(rows), len(rows))
    table = Table(
        "constants",
        tuple(Column(ref.name, ref.type, nullable=ref.nullable, description=ref.shown or "") for ref in columns),
        protected=False,
    )
    source = Source(relation, table, constants=constants)
    shown = [(name, reference(source, own, dataset)) for name, own in zip(names, table.columns, strict=True)]
    return Rows((source,), None, tuple(shown))


def facts_of(name: str, shown: str, kind: ColumnType, values: Sequence[Value]) -> ColumnRef:
    """What is known of a column of constants: everything."""
    known = [value for value in values if value is not None]
    numbers = [Fraction(value) for value in known if isinstance(value, int | float)]
    range_ = Interval(min(numbers, default=Fraction(0)), max(numbers, default=Fraction(0)))
    domain = (*dict.fromkeys(known), *((None,) if len(known) < len(values) else ()))
    return ColumnRef(
        GROUPS,
        name,
        kind,
        nullable=len(known) < len(values),
        interval=range_ if kind in _NUMBERS else None,
        declared=range_ if kind in _NUMBERS else None,
        domain=None if kind is ColumnType.NUMBER else tuple(v for v in domain if not isinstance(v, float)),
        length_max=max([1, *(len(v) for v in known if isinstance(v, str))]) if kind is ColumnType.TEXT else None,
        shown=shown,
    )


class _Reader:
    """Reads rows of constants as the engine would list them."""

    def __init__(self, lift: Lift, text: Text, dataset: Dataset) -> None:
        self._lift = lift
        self._text = text
        self._dataset = dataset

    def read(self, node: exp.Expr) -> tuple[list[str], list[tuple[Expression, ...]]]:
        """The names of columns, and the rows."""
        names, rows = self._read(node)
        alias = node.args.get("alias")
        if isinstance(alias, exp.TableAlias) and alias.name and len(names) == 1 and names[0] in _CALLED:
            names = [alias.name]  # the one column is called like the relation, as DuckDB calls it
        return names, rows

    def _read(self, node: exp.Expr) -> tuple[list[str], list[tuple[Expression, ...]]]:
        if isinstance(node, exp.Subquery):
            return self.read(node.this)
        if isinstance(node, exp.Values):
            consume(node, "expressions", "alias", text=self._text, what="VALUES")
            rows = [self._row(row) for row in node.expressions]
            if not rows or len({len(row) for row in rows}) > 1:
                raise self._refusal(node, "Its rows have different numbers of values.")
            return self._named(node, [f"col{place}" for place in range(len(rows[0]))]), rows
        if isinstance(node, exp.Union):
            (names, first), (_, second) = self.read(node.this), self.read(node.expression)
            if len({len(row) for row in (*first, *second)}) > 1:
                raise self._refusal(node, "Its sides have different numbers of columns.")
            return names, [*first, *second]
        if isinstance(node, exp.Select):
            if node.args.get("from_") is not None:
                return self._computed(node)
            return self._selected(node)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            consume(node, "this", "alias", text=self._text, what="a public table")
            names, known = public_literals(node.name, self._dataset)
            return self._named(node, names), known
        consume(node, "this", "expressions", "alias", text=self._text, what="a relation of constants")
        written = node.this if isinstance(node, exp.Table) else node.expressions[0] if node.expressions else None
        if isinstance(node, exp.Unnest) and len(node.expressions) != 1:
            raise self._refusal(node, "Only one list of constants, as UNNEST([1, 2, 3]), is read there.")
        name = "unnest"
        if isinstance(node, exp.Table):
            name = "range" if node.this.args.get("is_end_exclusive") else "generate_series"
        return self._named(node, [name]), [(value,) for value in self._listed(written, node)]

    def _named(self, node: exp.Expr, names: list[str]) -> list[str]:
        """The names that the relation's own alias gives, which stands inside another one."""
        alias = node.args.get("alias")
        given = [one.name for one in (alias.args.get("columns") or [])] if isinstance(alias, exp.TableAlias) else []
        return [*given, *names[len(given) :]] if len(given) <= len(names) else names

    def _selected(self, node: exp.Select) -> tuple[list[str], list[tuple[Expression, ...]]]:
        names: list[str] = []
        cells: list[Expression] = []
        for written in node.expressions:
            value = written.unalias()
            name = written.alias if isinstance(written, exp.Alias) else None
            several = value.find(exp.Explode, exp.Unnest)
            if several is not None:
                if len(node.expressions) > 1:
                    raise self._refusal(node, "UNNEST stands alone in its select list there.")
                inner = several.this if isinstance(several, exp.Explode) else several.expressions[0]
                found = self._listed(inner, node)
                return [name or "unnest"], [
                    (one if several is value else self._with(value, several, one),) for one in found
                ]
            names.append(name or f"col{len(names)}")
            cells.append(self._constant(value))
        return names, [tuple(cells)]

    def _computed(self, node: exp.Select) -> tuple[list[str], list[tuple[Expression, ...]]]:
        """The columns that a query computes of each row of the constants that it reads, and which its WHERE keeps."""
        item, where = node.args["from_"].this, node.args.get("where")
        held, rows = self.read(item)
        names: list[str] = []
        wanted: list[exp.Expr | int] = []
        for written in node.expressions:
            if isinstance(written, exp.Star):
                names += held
                wanted += range(len(held))
            else:
                names.append(written.alias_or_name or f"col{len(names)}")
                wanted.append(written.unalias())
        if len(rows) * len(wanted) > CELLS_MAX:
            raise self._refusal(node, f"It computes more than {CELLS_MAX:,} values.")
        places = {name.lower(): place for place, name in enumerate(held)}
        found = []
        for row in rows:

            def cell(part: exp.Expr, row: tuple[Expression, ...] = row) -> exp.Expr:
                known = isinstance(part, exp.Column) and part.table.lower() in ("", item.alias_or_name.lower())
                if not known or part.name.lower() not in places:
                    return part
                value = row[places[part.name.lower()]]
                assert isinstance(value, Literal)
                return constant(value.value, value.type)  # type: ignore[arg-type]

            if where is not None:
                kept = self._constant(where.this.transform(cell))
                if not isinstance(kept, Literal) or kept.value is not True:
                    continue
            values = [row[one] if isinstance(one, int) else self._constant(one.transform(cell), one) for one in wanted]
            found.append(tuple(values))
        return names, found

    def _with(self, whole: exp.Expr, part: exp.Expr, value: Expression) -> Expression:
        """What is computed of one element of a list, as CAST(UNNEST([...]) AS DATE)."""
        assert isinstance(value, Literal)
        written = constant(value.value, value.type)  # type: ignore[arg-type]
        return self._constant(whole.transform(lambda node: written if node == part else node), whole)

    def _row(self, row: exp.Expr) -> tuple[Expression, ...]:
        if isinstance(row, exp.Tuple):
            consume(row, "expressions", text=self._text, what="a row of VALUES")
            return tuple(map(self._constant, row.expressions))
        return (self._constant(row.this if isinstance(row, exp.Paren) else row),)

    def _listed(self, written: exp.Expr | None, node: exp.Expr) -> list[Expression]:
        if isinstance(written, exp.GenerateSeries):
            return list(self._series(written))
        if not isinstance(written, exp.Array) or not written.expressions:
            raise self._refusal(node, "Only a list of constants, as UNNEST([1, 2, 3]), is read there.")
        if populated(written) - {"expressions", "value_constructor", "bracket_notation"}:
            raise self._refusal(node, "Only a list of constants, as UNNEST([1, 2, 3]), is read there.")
        return [self._constant(cell) for cell in written.expressions]

    def _constant(self, node: exp.Expr, place: exp.Expr | None = None) -> Expression:
        inner = node.find(exp.Column, exp.Query, exp.Subquery, exp.Window, exp.AggFunc, exp.Star)
        if inner is not None:
            raise self._refusal(place or inner, "Constants stand there, and neither columns nor queries.")
        found = self._lift(node)
        if isinstance(found, Call) and not columns_of(found) and is_exact(found):
            return Literal(evaluate(found, {}), found.type)
        if not isinstance(found, Literal):
            raise self._refusal(place or node, "What it holds is not a constant that is known beforehand.")
        return found

    def _series(self, node: exp.GenerateSeries) -> Iterator[Expression]:
        consume(node, "start", "end", "step", "is_end_exclusive", text=self._text, what="a series")
        start, end = (self._constant(node.args[slot]) for slot in ("start", "end"))
        step, exclusive = node.args.get("step"), bool(node.args.get("is_end_exclusive"))
        assert isinstance(start, Literal)
        assert isinstance(end, Literal)
        if isinstance(start.value, int) and isinstance(end.value, int) and not isinstance(start.value, bool):
            width = Literal(1, ColumnType.INTEGER) if step is None else self._constant(step)
            if isinstance(width, Literal) and isinstance(width.value, int) and width.value:
                last = end.value if exclusive else end.value + (1 if width.value > 0 else -1)
                for place, whole in enumerate(range(start.value, last, width.value)):
                    self._check_rows(place, node)
                    yield Literal(whole, ColumnType.INTEGER)
                return
        width_of = _step(step)
        begin, until = (as_literal(one, ColumnType.TIMESTAMP) for one in (start, end))
        dates = start.type in _DATES and end.type in _DATES and begin is not None and until is not None
        if not dates or width_of is None or begin is None or until is None:
            raise self._refusal(
                node,
                "Its ends are whole numbers, or dates with a positive INTERVAL of one unit, from seconds to years, "
                "between them.",
            )
        moment, last_moment = begin.value, until.value
        assert isinstance(moment, datetime.datetime)
        assert isinstance(last_moment, datetime.datetime)
        for place, one in enumerate(_moments(moment, *width_of)):
            if one > last_moment or (one == last_moment and exclusive):
                return
            self._check_rows(place, node)
            yield Literal(one, ColumnType.TIMESTAMP)

    def _check_rows(self, place: int, node: exp.Expr) -> None:
        if place >= ROWS_MAX:
            raise refuse(
                "too_large",
                "a series is refused",
                f"It has more than {ROWS_MAX:,} rows, and each row about people is tried with all of them.",
                "make it shorter",
                position=self._text.position(node),
            )

    def _refusal(self, node: exp.Expr, why: str) -> Refused:
        return _refusal(self._text, node, why)


_DATES = (ColumnType.DATE, ColumnType.TIMESTAMP)
_CALLED = ("unnest", "range", "generate_series")


_UNITS = {
    "YEAR": (12, 0),
    "QUARTER": (3, 0),
    "MONTH": (1, 0),
    "WEEK": (0, 7 * 86_400),
    "DAY": (0, 86_400),
    "HOUR": (0, 3_600),
    "MINUTE": (0, 60),
    "SECOND": (0, 1),
}
"""The months and seconds of each."""


def _step(step: exp.Expr | None) -> tuple[int, int] | None:
    """The months and seconds of an INTERVAL that is written out; None for any other."""
    if not isinstance(step, exp.Interval) or not isinstance(step.this, exp.Literal) or step.args.get("unit") is None:
        return None
    number, unit = step.this.name, _UNITS.get(step.args["unit"].name.upper().removesuffix("S"))
    if not number.isdecimal() or len(number) > 4 or unit is None or not int(number):
        return None
    return unit[0] * int(number), unit[1] * int(number)


def _moments(moment: datetime.datetime, months: int, seconds: int) -> Iterator[datetime.datetime]:
    """The moments from one on, each so much after the one before: a month after the 31st may be the 29th, for good."""
    while True:
        yield moment
        year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
        if year > datetime.MAXYEAR:
            return
        day = min(moment.day, calendar.monthrange(year, month + 1)[1])
        try:
            moment = moment.replace(year=year, month=month + 1, day=day) + datetime.timedelta(seconds=seconds)
        except OverflowError:
            return


def _refusal(text: Text, node: exp.Expr, why: str) -> Refused:
    return refuse(
        "unsupported_sql",
        "a relation of constants is refused",
        why,
        "(VALUES (1, 'a'), (2, 'b')) AS t(id, name)",
        "SELECT x FROM UNNEST([1, 2, 3]) AS t(x)",
        "generate_series(1, 10) AS t(x)",
        position=text.position(node),
    )


# How many of the rows one row about people may meet


def most_met(constants: Constants, relation: str, conditions: Iterable[Expression], later: Collection[str] = ()) -> int:
    """The most of these rows for which all conditions can be true of one row about people.

    Of several relations of constants each is counted beside one row of those before it, so that the products bound how
    many meet together; what compares it with those that are `later` says nothing of it.
    """
    rows = [{(relation, ref.name): v for ref, v in zip(constants.columns, row, strict=True)} for row in constants.rows]
    # A table's values may be others than are declared, and the engine may know letters of theirs that Python does not.
    every = rows
    equal: dict[Expression, ColumnRef | Call] = {}
    ends: dict[Expression, list[tuple[str, Expression]]] = defaultdict(list)
    for condition in conditions:
        read = {column.relation for column in columns_of(condition)}
        if relation not in read or not read.isdisjoint(later):
            continue
        if read == {relation}:
            if is_exact_on(condition, every):
                rows = [row for row in rows if evaluate(condition, row) is True]
            continue
        compared = _compared(condition, relation, every if constants.stored else None)
        if compared is None:
            continue
        operator, other, own = compared
        if operator == "=":
            equal[own] = own
        else:
            ends[other].append((operator, own))
    parts: dict[tuple[Value, ...], list[dict[tuple[str, str], Value]]] = defaultdict(list)
    for row in rows:
        key = tuple(evaluate(own, row) for own in equal)
        if None not in key:
            parts[key].append(row)
    return max((min([len(p), *(_overlapping(p, some) for some in ends.values())]) for p in parts.values()), default=0)


def keeps_all(constants: Constants, relation: str, condition: Expression) -> bool:
    """Whether for all that is declared a row about people may meet each of these rows by this condition.

    Then no group of theirs is ruled out, and an outer join that keeps them shows what an inner one shows.
    """
    others = [column for column in columns_of(condition) if column.relation != relation]
    if not others:
        return False
    own = [ref.name for ref in constants.columns if any(c.name == ref.name for c in columns_of(condition))]
    names = [ref.name for ref in constants.columns]
    if any(value is None for row in constants.rows for name, value in zip(names, row, strict=True) if name in own):
        return False
    domains = [closed_domain(column) for column in others]
    if not all(domains) or not is_exact(condition):
        return True  # nothing is ruled out where values are not known (reachable.py)
    if len(others) > 1:
        return False
    values = [{(others[0].relation, others[0].name): value} for value in domains[0] or ()]
    return all(
        any(evaluate(condition, {**row, **value}) is True for value in values)
        for row in ({(relation, n): v for n, v in zip(names, row, strict=True)} for row in constants.rows)
    )


def _compared(
    condition: Expression, relation: str, rows: Sequence[dict[tuple[str, str], Value]] | None
) -> tuple[str, Expression, ColumnRef | Call] | None:
    """The operator, what is compared of the row about people, and the column of constants beside it.

    With `rows`, those of constants, that may be what is computed of them alone, which is as well known.
    """
    if not isinstance(condition, Call) or condition.operator not in _MIRRORED:
        return None
    left, right = condition.arguments
    for own, other, operator in ((right, left, condition.operator), (left, right, _MIRRORED[condition.operator])):
        bare = own.arguments[0] if isinstance(own, Call) and own.operator in ("as_number", "as_timestamp") else own
        if rows is not None and isinstance(own, Call) and {column.relation for column in columns_of(own)} == {relation}:
            bare = columns_of(own)[0] if is_exact_on(own, rows) else own
        if not isinstance(bare, ColumnRef) or bare.relation != relation or isinstance(own, Literal):
            continue
        if all(column.relation != relation for column in columns_of(other)):
            return operator, other, own
    return None


def _overlapping(rows: Sequence[dict[tuple[str, str], Value]], ends: Sequence[tuple[str, Expression]]) -> int:
    """The most rows whose intervals have a value in common: of `other > own` the row's value is the lower end.

    An interval begins or ends at a value, or just after it: the second part of a place says which.
    """
    starts: list[tuple[Value, int]] = []
    stops: list[tuple[Value, int]] = []
    for row in rows:
        places: list[tuple[str, Value, int]] = [(o[0], evaluate(own, row), int(o in (">", "<="))) for o, own in ends]
        lows = [(value, after) for side, value, after in places if side == ">"]
        highs = [(value, after) for side, value, after in places if side == "<"]
        if any(value is None for value, _ in (*lows, *highs)):
            continue
        if lows and highs and max(lows) >= min(highs):
            continue
        starts += [max(lows)] if lows else []
        stops += [min(highs)] if highs else []
    if len({operator[0] for operator, _ in ends}) == 1:
        return max(len(starts), len(stops))  # with one end alone all of them may meet
    most = now = 0
    for _, change in sorted([*((one, 1) for one in starts), *((one, -1) for one in stops)]):
        now += change
        most = max(most, now)
    return most
