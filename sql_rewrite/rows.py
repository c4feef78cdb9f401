"""Rows about people that a nested block selects: a derived table or a CTE without an aggregate.

Such a block has no node of its own. It is read into the block around it: its tables become tables of the core, its
condition a condition of the core, and each of its columns the expression that it stands for.

    SELECT half, COUNT(*) FROM (SELECT age // 2 AS half FROM people WHERE smoker) AS t GROUP BY half
    core:  people where smoker, k0 = age // 2, a0 = rows

Claim. The rows of the block around it are the same as if the nested block had been computed first. Proof: a selection
and a projection of rows, one by one, commute with the many-to-one joins and with the conditions above them; no row
raises, because every operator is total, so it does not matter on which rows an expression is computed. Hence whatever
holds of a core over tables holds here: each row is one row of the first table, and has its unit.
"""

from __future__ import annotations

from dataclasses import dataclass

from sql_rewrite.expressions import Expression, columns_of
from sql_rewrite.plan import Source
from sql_rewrite.stage_tables import StageTable
from sql_rewrite.stage_values import is_released

__all__ = ["Rows"]


@dataclass(frozen=True, slots=True)
class Rows:
    """What a nested block stands for: tables (the first one's rows are selected), a condition, and named columns.

    Where two columns have one name it means the first of them, as in the engine. Without tables it is one row of
    released numbers (stages.py), which every row around it meets.
    """

    sources: tuple[Source, ...]
    where: Expression | None
    columns: tuple[tuple[str, Expression], ...]
    released: StageTable | None = None
    """The rows by public keys that an earlier stage releases, until they are joined."""

    @property
    def plain(self) -> bool:
        """Whether these are rows of one table, with what is computed of each, so that an outer join may leave them out.

        What is computed of a row that is missing is NULL (join_order.py), whatever its expression makes of NULL.
        """
        if len(self.sources) != 1:
            return False
        own = self.sources[0].relation
        read = [ref for _, found in self.columns for ref in columns_of(found)]
        return all(ref.relation == own or is_released(ref) for ref in read)
