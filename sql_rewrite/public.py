"""Relations that everybody knows: public tables, VALUES, UNNEST of constants and series, as the outer query reads them.

    SELECT region, COUNT(*) AS n FROM hospitals GROUP BY region
    p0:    hospitals
    shell: SELECT region, COUNT(*) AS n FROM (SELECT hospital_id, region, beds FROM p0) AS hospitals GROUP BY region

Nothing of them is about a privacy unit, so a function of them and of released numbers is one of released numbers:
post-processing (Dwork and Roth 2014, Proposition 2.1), which costs nothing. They are relations of the shell and of
nothing else; a block that reads a protected table is a core, whatever else it reads.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence

from sqlglot import exp

from privacy.policy import Table
from privacy.refusal import Refused
from privacy.release import ColumnKind
from sql_rewrite.plan import Core, PublicRelation, ShellOutput
from sql_rewrite.refuse import refuse
from sql_rewrite.released import REPLICATE, ROW, Form, Released, aliased, column, hidden_columns, quoted
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text

__all__ = ["CONSTANT_ROWS_MAX", "PublicRelations", "is_constant_relation"]

CONSTANT_ROWS_MAX = 10_000
"""Most rows of a series."""

_CONSTANTS = "constants$"
_VALUES = "values$"
_DRIVER = "driver$"

Copy = Callable[[exp.Expr], exp.Expr]
"""Makes a checked copy of an expression without columns."""


def is_constant_relation(item: exp.Expr) -> bool:
    """Whether an item of FROM is VALUES, UNNEST or a series."""
    return isinstance(item, exp.Values | exp.Unnest) or (
        isinstance(item, exp.Table) and isinstance(item.this, exp.GenerateSeries)
    )


class PublicRelations:
    """The public relations of one query. `read` are the public tables, each once; `cores` are the query's so far."""

    def __init__(self, text: Text, cores: Sequence[Core]) -> None:
        self._text = text
        self._cores = cores
        self.read: list[PublicRelation] = []

    def table(self, table: Table) -> Released:
        """The relation of a public table."""
        assert not table.protected
        known = next((relation for relation in self.read if relation.table is table), None)
        if known is None:
            known = PublicRelation(f"p{len(self.read)}", table)
            self.read.append(known)
        name, columns = known.name, [declared.name for declared in table.columns]

        def build(form: Form) -> exp.Query | None:
            return self._form(exp.Table(this=quoted(name)), name, columns, form)

        return _relation(columns, build)

    def constants(self, item: exp.Expr, copy: Copy) -> Released:
        """The relation of VALUES, UNNEST or a series; `copy` writes its constants. Errors: Refused."""
        if isinstance(item, exp.Values):
            return self._values(item, copy)
        written = item.this
        if isinstance(item, exp.Unnest):
            consume(item, "expressions", "alias", text=self._text, what="UNNEST")
            written = item.expressions[0] if len(item.expressions) == 1 else None
        else:
            consume(item, "this", "alias", text=self._text, what="a series")
        name = "unnest"
        if isinstance(written, exp.GenerateSeries):
            inner = self._series(written, copy)
            if not isinstance(item, exp.Unnest):
                name = "range" if written.args.get("is_end_exclusive") else "generate_series"
        elif isinstance(written, exp.Array) and written.expressions:
            inner = self._array(written, copy)
        else:
            raise self._refusal(item, "Only a list of constants, as UNNEST([1, 2, 3]), is read there.")
        alias = item.args.get("alias")
        # The one column is called like the relation, as DuckDB calls it.
        name = alias.name if alias is not None and alias.name else name
        return self._constant(inner, [name])

    def rows(self, names: Sequence[str], rows: Sequence[Sequence[exp.Expr]]) -> Released:
        """The relation of rows of constants that this program wrote."""
        numbered = [[*row, exp.Literal.number(place)] for place, row in enumerate(rows)]
        return self._rows(names, [exp.Tuple(expressions=row) for row in numbered])

    def _values(self, item: exp.Values, copy: Copy) -> Released:
        consume(item, "expressions", "alias", text=self._text, what="VALUES")
        rows: list[exp.Expr] = []
        width = 0
        for place, row in enumerate(item.expressions):
            cells = row.expressions if isinstance(row, exp.Tuple) else [row.this if isinstance(row, exp.Paren) else row]
            if isinstance(row, exp.Tuple) and populated(row) - {"expressions"}:
                raise self._refusal(row, "One of its rows is not a list of constants.")
            width = width or len(cells)
            if not cells or len(cells) != width:
                raise self._refusal(row, "Its rows have different numbers of values.")
            numbered = [*(self._cell(cell, copy) for cell in cells), exp.Literal.number(place)]
            rows.append(exp.Tuple(expressions=numbered))
        return self._rows([f"col{place}" for place in range(width)], rows)

    def _rows(self, names: Sequence[str], rows: list[exp.Expr]) -> Released:
        """Rows of constants, each with its number as the last."""
        inner = exp.Values(
            expressions=rows,
            alias=exp.TableAlias(this=quoted(_VALUES), columns=[quoted(name) for name in (*names, ROW)]),
        )
        tree = exp.Select(expressions=[column(name) for name in (*names, ROW)])
        tree.set("from_", exp.From(this=inner))
        return self._constant(tree, names, len(rows))

    def _array(self, array: exp.Array, copy: Copy) -> exp.Select:
        if populated(array) - {"expressions", "value_constructor", "bracket_notation"}:
            raise self._refusal(array, "Only a list of constants, as UNNEST([1, 2, 3]), is read there.")
        cells = [self._cell(cell, copy) for cell in array.expressions]
        places = exp.GenerateSeries(
            start=exp.Literal.number(0), end=exp.Literal.number(len(cells)), is_end_exclusive=True
        )
        return exp.Select(
            expressions=[
                aliased(exp.Explode(this=exp.Array(expressions=cells)), "unnest"),
                aliased(exp.Explode(this=places), ROW),
            ]
        )

    def _series(self, series: exp.GenerateSeries, copy: Copy) -> exp.Select:
        consume(series, "start", "end", "step", "is_end_exclusive", text=self._text, what="a series")
        slots = [series.args.get(slot) for slot in ("start", "end", "step")]
        start, end, step = (None if part is None else self._cell(part, copy) for part in slots)
        inclusive = not series.args.get("is_end_exclusive")
        rows = None if start is None or end is None else _series_rows(start, end, step, inclusive=inclusive)
        if start is None or end is None or rows is None:
            raise self._refusal(
                series,
                "Its ends and its step have to be whole numbers, or dates and an INTERVAL, that are written out.",
            )
        if rows > CONSTANT_ROWS_MAX:
            raise refuse(
                "too_large",
                "a series is refused",
                f"It has more than {CONSTANT_ROWS_MAX:,} rows.",
                "make it shorter",
                position=self._text.position(series),
            )
        twice: list[exp.Expr] = [
            exp.GenerateSeries(
                start=start.copy(),
                end=end.copy(),
                step=None if step is None else step.copy(),
                is_end_exclusive=series.args.get("is_end_exclusive"),
            )
            for _ in range(2)
        ]
        # Every value is there once, so it names its row.
        return exp.Select(
            expressions=[
                aliased(exp.Explode(this=part), name) for part, name in zip(twice, ("unnest", ROW), strict=True)
            ]
        )

    def _cell(self, cell: exp.Expr, copy: Copy) -> exp.Expr:
        inner = cell.find(exp.Column, exp.Query, exp.Subquery, exp.Window, exp.AggFunc, exp.Star)
        if inner is not None:
            raise self._refusal(inner, "Constants stand there, and neither columns nor queries.")
        return copy(cell)

    def _constant(self, tree: exp.Select, names: Sequence[str], rows: int | None = None) -> Released:
        written = [projection.alias_or_name for projection in tree.expressions]

        def build(form: Form) -> exp.Query | None:
            inner = exp.Subquery(
                this=tree.copy(),
                alias=exp.TableAlias(this=quoted(_CONSTANTS), columns=[quoted(name) for name in (*names, ROW)]),
            )
            return self._form(inner, _CONSTANTS, names, form)

        assert len(written) == len(names) + 1
        return _relation(names, build, rows)

    def _form(self, source: exp.Expr, relation: str, names: Sequence[str], form: Form) -> exp.Query | None:
        """A source with the hidden columns of a form; None for the simulated form of a query without cores."""
        columns: list[exp.Expr] = [column(name, relation) for name in names]
        columns += [
            column(REPLICATE, _DRIVER) if name == REPLICATE else aliased(column(ROW, relation), name)
            for name in hidden_columns(form, 1)
        ]
        tree = exp.Select(expressions=columns)
        tree.set("from_", exp.From(this=source))
        if form is Form.SIMULATED:
            if not self._cores:
                return None
            # The same rows beside every replicate of the released numbers.
            first = exp.Select(expressions=[column(REPLICATE)], distinct=exp.Distinct())
            first.set("from_", exp.From(this=exp.Table(this=quoted(self._cores[0].name))))
            driver = exp.Subquery(this=first, alias=exp.TableAlias(this=quoted(_DRIVER)))
            tree.append("joins", exp.Join(this=driver, kind="CROSS"))
        return tree

    def _refusal(self, node: exp.Expr, why: str) -> Refused:
        return refuse(
            "unsupported_sql",
            "a relation in FROM is refused",
            why,
            "(VALUES (1, 'a'), (2, 'b')) AS t(id, name)",
            "SELECT x FROM UNNEST([1, 2, 3]) AS t(x)",
            "generate_series(1, 10) AS t(x)",
            position=self._text.position(node),
        )


def _relation(names: Sequence[str], build: Callable[[Form], exp.Query | None], rows: int | None = None) -> Released:
    outputs = tuple(ShellOutput(name=name, kind=ColumnKind.KEY) for name in names)
    return Released(outputs, identities=1, build=build, rows_most=lambda: rows)


_UNIT_SECONDS = {
    "SECOND": 1.0, "MINUTE": 60.0, "HOUR": 3_600.0, "DAY": 86_400.0, "WEEK": 604_800.0, "MONTH": 28 * 86_400.0,
    "QUARTER": 89 * 86_400.0, "YEAR": 365 * 86_400.0,
}  # fmt: skip
"""The shortest that each unit of an interval can be."""


def _series_rows(start: exp.Expr, end: exp.Expr, step: exp.Expr | None, *, inclusive: bool) -> int | None:
    """The most rows of a series between constants; None where its ends and step are not written out as such."""
    first, last = _number(start), _number(end)
    if first is not None and last is not None:
        width = 1 if step is None else _number(step)
        return None if not width else max(0, (last - first) // width + (inclusive or (last - first) % width != 0))
    begin, until, seconds = _moment(start), _moment(end), None if step is None else _seconds(step)
    if begin is None or until is None or not seconds:
        return None
    return max(0, math.floor((until - begin).total_seconds() / seconds) + 1)


def _number(node: exp.Expr) -> int | None:
    if isinstance(node, exp.Paren):
        return _number(node.this)
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string and len(node.name) <= 18 and node.name.isdecimal():
        return int(node.name)
    return None


def _moment(node: exp.Expr) -> datetime.datetime | None:
    if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Literal) or not node.this.is_string:
        return None
    if node.args["to"].this not in (
        exp.DataType.Type.DATE,
        exp.DataType.Type.TIMESTAMP,
        exp.DataType.Type.TIMESTAMPNTZ,
    ):
        return None
    try:
        moment = datetime.datetime.fromisoformat(node.this.name)
    except ValueError:
        return None
    return None if moment.tzinfo is not None else moment


def _seconds(node: exp.Expr) -> float | None:
    if isinstance(node, exp.Neg | exp.Paren):
        inner = _seconds(node.this)
        return inner if inner is None or isinstance(node, exp.Paren) else -inner
    if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal) or node.args.get("unit") is None:
        return None
    number = node.this.name
    unit = _UNIT_SECONDS.get(node.args["unit"].name.upper().removesuffix("S"))
    return float(number) * unit if unit is not None and number.isdecimal() and len(number) < 10 else None
