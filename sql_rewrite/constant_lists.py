"""Lists of constants as an item of FROM: VALUES, UNNEST, series, and queries that compute columns of them row by row.

    SELECT CAST(m AS DATE) AS month FROM generate_series(DATE '2024-01-01', DATE '2024-06-01', INTERVAL 1 MONTH) AS g(m)

A query of one small public table is one where it computes columns or leaves out rows: everybody knows what it holds.
"""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from privacy.policy import ColumnType, Dataset
from privacy.refusal import Refused
from sql_rewrite.declared_groups import constant
from sql_rewrite.evaluate import evaluate, is_exact
from sql_rewrite.expressions import Call, Expression, Literal, columns_of
from sql_rewrite.functions import TypeRefused
from sql_rewrite.functions.harmony import as_literal, harmonise
from sql_rewrite.public import is_constant_relation
from sql_rewrite.public_values import public_literals
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text

__all__ = ["CELLS_MAX", "ROWS_MAX", "Cells", "constants_in", "no_constants", "read_constants", "typed"]

ROWS_MAX = 1_000
"""Most rows of constants beside rows about people: each of these is tried with all of them."""

CELLS_MAX = 2_000
"""Most constants in them, which are planned one by one."""

Lift = Callable[[exp.Expr], Expression]


Cells = tuple[list[str], list[tuple[Expression, ...]]]
"""The names of columns, and the rows."""


def constants_in(node: exp.Expr, public: Callable[[exp.Table], bool]) -> exp.Expr | None:
    """The VALUES, UNNEST, series or SELECT of constants that an item of FROM or a query is; None for anything else.

    A query of a small `public` table is one where it computes columns or leaves out rows: its rows are known as well.
    """
    if is_constant_relation(node):
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


def read_constants(item: exp.Expr, lift: Lift, dataset: Dataset, text: Text) -> Cells:
    """What `constants_in` found, as the engine would list it. `lift` reads a constant. Errors: Refused."""
    return _Reader(lift, text, dataset).read(item)


def typed(item: exp.Expr, name: str, cells: Sequence[Expression], text: Text) -> tuple[list[Literal], ColumnType]:
    """The constants of one column in one type. Errors: Refused."""
    try:
        found, kind = harmonise("VALUES", cells) if cells else ((), ColumnType.TEXT)
    except TypeRefused:
        found, kind = (), ColumnType.TEXT
    constants = [one for one in found if isinstance(one, Literal)]
    if len(constants) < len(cells):
        raise no_constants(text, item, f'Its column "{name[:63]}" has values of several types.')
    return constants, kind


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
        return no_constants(self._text, node, why)


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


def no_constants(text: Text, node: exp.Expr, why: str) -> Refused:
    """The refusal of what is no list of constants."""
    return refuse(
        "unsupported_sql",
        "a relation of constants is refused",
        why,
        "(VALUES (1, 'a'), (2, 'b')) AS t(id, name)",
        "SELECT x FROM UNNEST([1, 2, 3]) AS t(x)",
        "generate_series(1, 10) AS t(x)",
        position=text.position(node),
    )
