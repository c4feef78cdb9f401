"""What nested blocks over rows of people have in common: their names, their select list, and what none of them has."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from privacy.policy import Dataset
from sql_rewrite.lift_expression import ExpressionLift, Member
from sql_rewrite.lifter import ParameterValue
from sql_rewrite.refuse import rows_chosen
from sql_rewrite.select_list import SelectList
from sql_rewrite.sources import SourceNames
from sql_rewrite.text import Text

__all__ = ["NestedBlock"]

_CHOOSING = {
    "distinct": "DISTINCT",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
}
"""Clauses that choose rows, or put them together or in order, by name in the tree and in SQL."""


class NestedBlock:
    """One nested block over tables, or over rows of blocks inside it."""

    def __init__(
        self,
        node: exp.Select,
        *,
        dataset: Dataset,
        names: SourceNames,
        text: Text,
        parameters: Mapping[str, ParameterValue],
        member: Member | None = None,
    ) -> None:
        self._node = node
        self._dataset = dataset
        self._names = names
        self._text = text
        self._parameters = parameters
        self._select = SelectList(node, names, text)
        self._tables = {source.relation: source.table.name for source in names.sources}
        self._plain = ExpressionLift(text, names.resolve, parameters, self._tables, names.joins_to, member)

    def _refuse_clauses(self, *instead: str, but: Collection[str] = ()) -> None:
        """Errors: Refused for a clause that chooses rows of several people, or puts them together or in order."""
        for clause, word in _CHOOSING.items():
            if clause not in but and self._node.args.get(clause):
                raise rows_chosen(word, *instead, position=self._text.position(self._node))
