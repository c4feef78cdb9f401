"""What nested blocks over rows of people have in common: their names, their select list, and what none of them has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from sqlglot import exp

from privacy.policy import Dataset
from sql_rewrite.expressions import Expression
from sql_rewrite.join_advice import INNER
from sql_rewrite.lift_expression import ExpressionLift, Member
from sql_rewrite.lifter import ParameterValue
from sql_rewrite.refuse import refuse, rows_chosen
from sql_rewrite.select_list import SelectList
from sql_rewrite.sources import SourceNames
from sql_rewrite.text import Text
from sql_rewrite.unit_facts import leaves

__all__ = ["LEAVES_MAX", "Around", "NestedBlock", "Scalar"]

_CHOOSING = {
    "distinct": "DISTINCT",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
}
"""Clauses that choose rows, or put them together or in order, by name in the tree and in SQL."""


COLUMNS_MAX = 1_000
"""Most columns of a nested block: each star may stand for all columns of the block below, several times."""

LEAVES_MAX = 16
"""Most stored tables that rows computed within units read, each as often as it is written."""

Scalar = Callable[[exp.Subquery], Expression | None]
"""Reads the number that an earlier stage releases (sql_rewrite/stages.py); None for other nested queries."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a nested block has around it.

    `member` reads nested queries in its private expressions, `scalar` numbers of earlier stages among its values; None
    where it has none.
    """

    dataset: Dataset
    text: Text
    parameters: Mapping[str, ParameterValue]
    member: Member | None = None
    scalar: Scalar | None = None


class NestedBlock:
    """One nested block over tables, or over rows of blocks inside it."""

    def __init__(self, node: exp.Select, names: SourceNames, around: Around) -> None:
        text = around.text
        self._node = node
        self._dataset = around.dataset
        self._names = names
        self._text = text
        self._parameters = around.parameters
        self._select = SelectList(node, names, text)
        self._tables = {source.relation: source.table.name for source in names.sources}
        self._plain = ExpressionLift(
            text, names.resolve, around.parameters, self._tables, names.joins_to, around.member
        )

    def _refuse_clauses(self, *instead: str, but: Collection[str] = ()) -> None:
        """Errors: Refused for a clause that chooses rows of several people, or puts them together or in order."""
        for clause, word in _CHOOSING.items():
            if clause not in but and self._node.args.get(clause):
                raise rows_chosen(word, *instead, position=self._text.position(self._node))

    def _check_columns(self, count: int) -> None:
        """Errors: Refused for more columns than a nested query may have."""
        if count > COLUMNS_MAX:
            raise refuse(
                "too_large",
                "a nested query is refused",
                f"It has more than {COLUMNS_MAX} columns.",
                "name the columns that are needed, instead of *",
                position=self._text.position(self._node),
            )

    def _check_sources(self, why: str) -> None:
        """Refuses sources over which nothing is computed within a unit; `why` says what rows of nobody are not in."""
        if self._names.preserved:
            raise refuse(
                "unsupported_sql",
                "an outer join that keeps a public table's rows is refused within a unit",
                f"Rows without a partner belong to nobody, so {why}.",
                INNER,
                position=self._text.position(self._node),
            )
        if leaves(self._names.sources) > LEAVES_MAX:
            raise refuse(
                "too_large",
                "a nested query is refused",
                f"Written out it reads more than {LEAVES_MAX} tables.",
                "compute fewer steps within each unit",
                position=self._text.position(self._node),
            )
