"""The counting queries of a batch, read as conditions on columns: what ranges and values of which column they count.

    SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 29 AND sex = 'female'
    source: people;  age: [20, 30);  sex: 'female'

Nothing is decided here about people: the conditions are put together again as one text (batch_forms.py), which goes
the way of every question. A condition that is not read, because it is no comparison of one column with constants, is
kept as it is written. The queries of a batch count rows of the same source, which is compared as text.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from sqlglot import exp

from privacy.bounds import number_of_date
from privacy.policy import Column, ColumnType, Dataset
from privacy.refusal import Finding, Refused
from sql_rewrite.syntax import DIALECT, parse, populated

__all__ = ["Counted", "Cut", "Listed", "Other", "Part", "ReadBatch", "Span", "Spans", "numbered", "read_batch"]

Cut = tuple[Fraction, int]
"""A place between numbers: just below the number for 0, just above it for 1. Whole numbers have places below only."""


@dataclass(frozen=True, slots=True)
class Span:
    """The numbers between two places; None for no end."""

    low: Cut | None
    high: Cut | None

    @property
    def empty(self) -> bool:
        """Whether no number lies between them."""
        return self.low is not None and self.high is not None and self.low >= self.high

    def within(self, other: Span) -> Span:
        """What both have in common."""
        lows = [one for one in (self.low, other.low) if one is not None]
        highs = [one for one in (self.high, other.high) if one is not None]
        return Span(max(lows, default=None), min(highs, default=None))


@dataclass(frozen=True, slots=True)
class Spans:
    """That an ordered column lies in one of some spans. Dates are numbers of days."""

    column: str
    type: ColumnType
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """That a text or a truth value is one of some, each as SQL."""

    column: str
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class Other:
    """A condition that is kept as it is written."""

    condition: str


Part = Spans | Listed | Other


@dataclass(frozen=True, slots=True)
class Counted:
    """One query: the conditions, all of which hold, one for each column and each other condition."""

    parts: tuple[Part, ...]
    written: tuple[str, ...]
    """The same conditions as they were written."""


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """The queries of a batch over one source."""

    source: str
    queries: tuple[Counted, ...]


def read_batch(texts: Sequence[str], dataset: Dataset) -> ReadBatch:
    """Reads the texts. Depends on them and on declarations alone. Errors: Refused, with the number of the query."""
    sources: list[str] = []
    queries: list[Counted] = []
    for number, text in enumerate(texts):
        try:
            source, counted = _read(text, dataset)
        except Refused as refused:
            raise Refused([numbered(finding, number) for finding in refused.findings]) from None
        sources.append(source)
        queries.append(counted)
        if source != sources[0]:
            raise Refused([numbered(_OTHER_SOURCE, number)])
    return ReadBatch(sources[0], tuple(queries))


def _listed_item(item: exp.Expr) -> bool:
    """Whether a table of FROM stands behind a comma."""
    return isinstance(item, exp.Join) and not populated(item) - {"this"}


def numbered(finding: Finding, number: int) -> Finding:
    """A finding with the number of the query, from 0, that it is about."""
    return replace(finding, what=f"query {number + 1} of the batch: {finding.what}", field="queries")


def _read(text: str, dataset: Dataset) -> tuple[str, Counted]:
    tree, _ = parse(text)
    if not isinstance(tree, exp.Select) or populated(tree) - {"expressions", "from_", "joins", "where"}:
        raise Refused([_NOT_A_COUNT])
    (*others, counted) = tree.expressions
    counted = counted.this if isinstance(counted, exp.Alias) else counted
    plain = isinstance(counted, exp.Count) and isinstance(counted.this, exp.Star) and not populated(counted.this)
    if others or not plain or tree.args.get("from_") is None:
        raise Refused([_NOT_A_COUNT])
    items = (tree.args["from_"].this, *tree.args.get("joins", ()))
    written = [item.sql(dialect=DIALECT, comments=False).lstrip(", ") for item in items]
    between = ["", *(", " if _listed_item(item) else " " for item in items[1:])]
    source = "".join(mark + item for mark, item in zip(between, written, strict=True))
    where = tree.args.get("where")
    conjuncts = [] if where is None else [_unwrapped(one) for one in _conjuncts(where.this)]
    if any(one.find(exp.Parameter, exp.Placeholder) for one in conjuncts):
        raise Refused([_PARAMETER])
    return source, _counted(conjuncts, _Columns.of(tree, dataset))


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    node = _unwrapped(node)
    if isinstance(node, exp.And):
        return [*_conjuncts(node.left), *_conjuncts(node.right)]
    return [node]


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of the one table that a query reads; none where it reads several, whose columns are not looked up."""

    table: tuple[Column, ...]
    names: frozenset[str]

    @classmethod
    def of(cls, tree: exp.Select, dataset: Dataset) -> _Columns:
        source = tree.args["from_"].this
        table = dataset.table(source.name) if isinstance(source, exp.Table) else None
        if table is None or populated(source) - {"this", "alias"} or tree.args.get("joins"):
            return cls((), frozenset())
        return cls(table.columns, frozenset({source.name.lower(), source.alias_or_name.lower()}))

    def find(self, node: exp.Expr) -> Column | None:
        """The column that a node names; None for anything else."""
        if not isinstance(node, exp.Column) or populated(node) - {"this", "table"}:
            return None
        if node.table and node.table.lower() not in self.names:
            return None
        return next((column for column in self.table if column.name.lower() == node.name.lower()), None)


def _counted(conjuncts: Sequence[exp.Expr], columns: _Columns) -> Counted:
    spans: dict[str, Spans] = {}
    listed: dict[str, Listed] = {}
    others: dict[Other, None] = {}
    for node in conjuncts:
        part = _part(node, columns)
        match part:
            case Spans():
                known = spans.get(part.column)
                spans[part.column] = part if known is None else _both(known, part)
                if not spans[part.column].spans:
                    raise Refused([_EMPTY])
            case Listed():
                values = part.values if part.column not in listed else part.values & listed[part.column].values
                listed[part.column] = Listed(part.column, values)
                if not values:
                    raise Refused([_EMPTY])
            case Other():
                others[part] = None
            case _:
                assert_never(part)
    written = dict.fromkeys(node.sql(dialect=DIALECT, comments=False) for node in conjuncts)
    return Counted((*spans.values(), *listed.values(), *others), tuple(written))


def _both(one: Spans, other: Spans) -> Spans:
    common = [a.within(b) for a in one.spans for b in other.spans]
    return replace(one, spans=tuple(sorted({span for span in common if not span.empty}, key=_order)))


def _order(span: Span) -> tuple[bool, Cut]:
    return span.low is not None, span.low or (Fraction(0), 0)


_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
}
_ORDERED = (ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.DATE)


def _part(node: exp.Expr, columns: _Columns) -> Part:
    """A condition as it is understood; kept as it is written where it is not. Errors: Refused where it is empty."""
    other = Other(node.sql(dialect=DIALECT, comments=False))
    compared = _compared(node, columns)
    if compared is None:
        return other
    column, kind, values = compared
    name = exp.column(column.name, quoted=True).sql(dialect=DIALECT)
    if column.type in _ORDERED:
        numbers = [_number(value, column.type) for value in values]
        if any(number is None for number in numbers):
            return other
        known = [number for number in numbers if number is not None]
        spans = tuple(_whole(span, column.type) for span in _spans(kind, known))
        kept = tuple(sorted({span for span in spans if not span.empty}, key=_order))
        if not kept:
            raise Refused([_EMPTY])
        _require_declared(column, kept)
        return Spans(name, column.type, kept)
    texts = [value for value in values if _is_listed(value, column.type)]
    if kind is not exp.EQ or len(texts) != len(values):
        return other
    if column.keys is not None and column.keys.other is None:
        declared = {value for value in column.keys.values if isinstance(value, str)}
        if column.type is ColumnType.TEXT and not any(value.name in declared for value in texts):
            raise Refused([_outside(column)])
    return Listed(name, frozenset(value.sql(dialect=DIALECT) for value in texts))


def _compared(node: exp.Expr, columns: _Columns) -> tuple[Column, type[exp.Expr], list[exp.Expr]] | None:
    """The column that a condition compares with constants, how, and the constants."""
    if isinstance(node, exp.Between) and not populated(node) - {"this", "low", "high"}:
        column = columns.find(node.this)
        return None if column is None else (column, exp.Between, [node.args["low"], node.args["high"]])
    if isinstance(node, exp.In) and not populated(node) - {"this", "expressions"}:
        column = columns.find(node.this)
        return None if column is None else (column, exp.EQ, list(node.expressions))
    if type(node) in _FLIPPED:
        for this, that, kind in ((node.this, node.expression, type(node)),
                                 (node.expression, node.this, _FLIPPED[type(node)])):  # fmt: skip
            column = columns.find(this)
            if column is not None:
                return column, kind, [that]
    return None


def _is_listed(node: exp.Expr, kind: ColumnType) -> bool:
    if kind is ColumnType.TEXT:
        return isinstance(node, exp.Literal) and bool(node.is_string)
    return kind is ColumnType.BOOLEAN and isinstance(node, exp.Boolean)


def _number(node: exp.Expr, kind: ColumnType) -> Fraction | None:
    """The number of a constant, of a date its day; None for anything else."""
    if kind is ColumnType.DATE:
        inner = node.this if isinstance(node, exp.Cast) and node.to.is_type("date") else node
        if not isinstance(inner, exp.Literal) or not inner.is_string:
            return None
        try:
            return Fraction(number_of_date(datetime.date.fromisoformat(inner.name)))
        except ValueError:
            return None
    sign = 1
    if isinstance(node, exp.Neg):
        node, sign = node.this, -1
    if not isinstance(node, exp.Literal) or node.is_string or len(node.name) > _DIGITS:
        return None
    try:
        return sign * Fraction(node.name)
    except ValueError:
        return None


_DIGITS = 18
"""A number of more digits is not read: the engine's arithmetic is not ours there."""


def _spans(kind: type[exp.Expr], numbers: Sequence[Fraction]) -> list[Span]:
    first = numbers[0]
    if kind is exp.Between:
        return [Span((first, 0), (numbers[1], 1))]
    if kind is exp.LT:
        return [Span(None, (first, 0))]
    if kind is exp.LTE:
        return [Span(None, (first, 1))]
    if kind is exp.GT:
        return [Span((first, 1), None)]
    if kind is exp.GTE:
        return [Span((first, 0), None)]
    return [Span((number, 0), (number, 1)) for number in numbers]


def _whole(span: Span, kind: ColumnType) -> Span:
    """A span of whole numbers with its ends just below whole numbers."""
    if kind is ColumnType.NUMBER:
        return span

    def end(cut: Cut | None) -> Cut | None:
        if cut is None:
            return None
        number, above = cut
        whole = number.denominator == 1
        return Fraction(number.__floor__() + (1 if above or not whole else 0)), 0

    return Span(end(span.low), end(span.high))


def _require_declared(column: Column, spans: Sequence[Span]) -> None:
    """Refuses ranges in which no declared value of the column lies. Errors: Refused."""
    if column.keys is not None and column.keys.other is None:
        places = [_place(value) for value in column.keys.values]
        known = [place for place in places if place is not None]
        if known and not any(_holds(span, place) for span in spans for place in known):
            raise Refused([_outside(column)])
    elif column.bounds is not None:
        declared = Span((Fraction(column.bounds.lower), 0), (Fraction(column.bounds.upper), 1))
        if all(span.within(declared).empty for span in spans):
            raise Refused([_outside(column)])


def _place(value: object) -> Fraction | None:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return Fraction(number_of_date(value))
    return Fraction(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _holds(span: Span, number: Fraction) -> bool:
    low, high = span.low, span.high
    return (low is None or low <= (number, 0)) and (high is None or (number, 0) < high)


_NOT_A_COUNT = Finding(
    code="unsupported_sql",
    what="it is refused",
    why="A batch counts rows: each of its queries is SELECT COUNT(*) FROM ... WHERE ..., and nothing beside it.",
    instead=("write SELECT COUNT(*) FROM a_table WHERE ...", "ask other questions with POST /v1/queries"),
)
_PARAMETER = Finding(
    code="unsupported_sql",
    what="it is refused",
    why="The queries of a batch have no parameters.",
    instead=("write the value in its place",),
)
_OTHER_SOURCE = Finding(
    code="unsupported_sql",
    what="it is refused",
    why="It counts rows of another FROM than the first one: the queries of a batch are answered from the same rows.",
    instead=("send a batch for each table or join", "write FROM in the same words in every query"),
)
_EMPTY = Finding(
    code="no_groups",
    what="it is refused",
    why="No value satisfies its conditions: the ends of a range are the wrong way round, or two conditions exclude "
    "each other.",
    instead=("write BETWEEN the lower AND the upper end",),
)


def _outside(column: Column) -> Finding:
    return Finding(
        code="no_groups",
        what="it is refused",
        why=f'No declared value of column "{column.name}" satisfies its conditions.',
        instead=("compare it with the declared bounds or keys: GET /v1/datasets/{dataset}",),
    )
