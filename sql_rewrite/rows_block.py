"""Nested blocks that select rows about people: SELECT without an aggregate, in FROM or as a CTE."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from privacy.policy import Dataset
from privacy.refusal import Finding
from sql_rewrite.aggregate_calls import AggregateReader, aggregate_calls
from sql_rewrite.expressions import Expression
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.lifter import ParameterValue
from sql_rewrite.refuse import refuse
from sql_rewrite.row_condition import RowCondition
from sql_rewrite.rows import Rows
from sql_rewrite.select_list import SelectList
from sql_rewrite.shell import output_name
from sql_rewrite.sources import SourceNames
from sql_rewrite.syntax import consume
from sql_rewrite.text import Text

__all__ = ["RowsBlock", "selects_rows"]

_NO_ROWS = ("group", "having")
"""Clauses of a block that aggregates."""

_REFUSED = {
    "distinct": "DISTINCT",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
}


def selects_rows(node: exp.Select) -> bool:
    """Whether a block selects rows of what it reads, and aggregates nothing."""
    return (
        node.args.get("from_") is not None
        and not any(node.args.get(clause) for clause in _NO_ROWS)
        and not aggregate_calls(node.expressions)
    )


class RowsBlock:
    """One nested block over tables, and over rows of blocks inside it."""

    def __init__(
        self,
        node: exp.Select,
        *,
        dataset: Dataset,
        names: SourceNames,
        text: Text,
        parameters: Mapping[str, ParameterValue],
    ) -> None:
        self._node = node
        self._names = names
        self._text = text
        self._select = SelectList(node, names, text)
        self._aliases: dict[str, Expression] = {}
        tables = {source.relation: source.table.name for source in names.sources}
        self.lifter = ExpressionLift(text, self._resolve, parameters, tables, names.joins_to)
        self._plain = ExpressionLift(text, names.resolve, parameters, tables, names.joins_to)
        self._reader = AggregateReader(text, self._plain, dataset.unit)

    def rows(self) -> Rows:
        """What the block stands for. Errors: Refused."""
        for clause, word in _REFUSED.items():
            if self._node.args.get(clause):
                raise refuse(
                    "private_row_limit",
                    f"{word} on private rows is refused",
                    "The rows that it chooses, or puts together, would belong to more than one person.",
                    "leave it out, or write it in the query that aggregates",
                    position=self._text.position(self._node),
                )
        where = RowCondition(self._text, self._names, self._select, self._reader).read(self._node.args.get("where"))
        columns: list[tuple[str, Expression]] = []
        for written in self._node.expressions:
            columns += self._columns(written)
        return Rows(self._names.sources, where, tuple(columns))

    @property
    def warnings(self) -> list[Finding]:
        """What the conditions and columns warn of."""
        return [*self._plain.warnings, *self.lifter.warnings]

    def _columns(self, written: exp.Expr) -> list[tuple[str, Expression]]:
        star = written.this if isinstance(written, exp.Column) else written
        if isinstance(star, exp.Star):
            consume(star, text=self._text, what="*")
            return self._names.star(self._qualifier(written))
        name = written.alias if isinstance(written, exp.Alias) else output_name(self._text, written)
        if isinstance(written, exp.Alias):
            consume(written, "this", "alias", text=self._text, what="an alias")
        found = self.lifter.lift(written.unalias())
        if isinstance(written, exp.Alias):
            self._aliases.setdefault(name.lower(), found)
        return [(name, found)]

    def _qualifier(self, written: exp.Expr) -> str | None:
        if not isinstance(written, exp.Column):
            return None
        consume(written, "this", "table", text=self._text, what="a column reference")
        relation = self._names.relation_of(written.table)
        if relation is None:
            raise refuse(
                "unknown_table",
                f'relation "{written.table[:63]}" is refused',
                "No table of that name is read here.",
                position=self._text.position(written),
            )
        return relation

    def _resolve(self, node: exp.Column) -> Expression:
        """A column of what is read, or of the select list before this one."""
        if not node.table and not self._names.knows(node.name):
            alias = self._aliases.get(node.name.lower())
            if alias is not None:
                return alias
        return self._names.resolve(node)
