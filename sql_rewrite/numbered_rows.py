"""Conditions on the number of a row among those of its unit: ROW_NUMBER() OVER (PARTITION BY unit ...) <= k.

Claim. At most k rows of a unit satisfy it, whatever the rows are. Proof: the engine numbers the rows of a partition
from 1 without a repeat, and the partition is the unit: what else is in it has one value in all rows of the unit.
Such a condition is one on the rows that are computed within the unit, before any join, and is read as that wherever it
is written: in QUALIFY, or in WHERE of a block around it, as long as no outer join leaves these rows out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, floor
from typing import assert_never

from privacy.bounds import AutomaticContribution, ContributionBound
from privacy.policy import Table
from sql_rewrite.expressions import ColumnRef, Expression, Literal, columns_of
from sql_rewrite.plan import Placement, Source, UnitPlace
from sql_rewrite.sources import both
from sql_rewrite.unit_facts import constant_per_unit

__all__ = ["limited", "most_rows"]

_MIRRORED = {">": "<", ">=": "<=", "=": "="}
_PLAIN = ("<", "<=", "=", "in")


def most_rows(part: Expression, sources: Sequence[Source]) -> tuple[str, int] | None:
    """The relation and the most rows of a unit in it for which a condition is true; None for any other condition."""
    if isinstance(part, ColumnRef | Literal) or not part.arguments:
        return None
    operator, (first, *others) = part.operator, part.arguments
    if isinstance(first, Literal) and len(others) == 1 and operator in _MIRRORED:
        operator, first, others = _MIRRORED[operator], others[0], [first]
    values = [other.value for other in others if isinstance(other, Literal)]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if operator not in _PLAIN or not isinstance(first, ColumnRef) or len(numbers) < len(others) or not numbers:
        return None
    source = next((one for one in sources if one.relation == first.relation), None)
    if source is None or not _numbers(source, first):
        return None
    match operator:
        case "<=":
            most = floor(numbers[0])
        case "<":
            most = ceil(numbers[0]) - 1
        case _:
            most = len(set(numbers))
    return source.relation, max(most, 1)


def _numbers(source: Source, column: ColumnRef) -> bool:
    """Whether a column numbers the rows of each unit, where no join leaves them out."""
    computed = source.windows
    if computed is None or (source.join is not None and source.join.outer):
        return False
    found = dict(computed.columns).get(column.name)
    window = next((w for w in computed.windows if isinstance(found, ColumnRef) and w.name == found.name), None)
    if window is None or not isinstance(window.value, UnitPlace):
        return False
    if window.value.function is not Placement.ROW_NUMBER:
        return False
    cells = dict(computed.cells)
    return all(
        constant_per_unit(cells[ref.name], computed.sources) for key in window.partition for ref in columns_of(key)
    )


def limited(source: Source, condition: Expression, most: int) -> Source:
    """The rows of a source that satisfy a condition, which at most so many of each unit do."""
    return replace(source, only=both(source.only, condition), table=_fewer(source.table, most))


def _fewer(table: Table, most: int) -> Table:
    if table.one_row:
        return table
    if most == 1:
        # Rows without the unit's key are units themselves, as of a table in which each row is one.
        unit = table.unit_column or None
        return replace(table, key=unit, unit_column=unit, rows_stored_per_unit=None)
    return replace(
        table,
        rows_stored_per_unit=min(most, table.rows_stored),
        contribution=_held(table.contribution, most),
    )


def _held(
    bound: ContributionBound | AutomaticContribution | None, most: int
) -> ContributionBound | AutomaticContribution | None:
    match bound:
        case ContributionBound():
            return ContributionBound(
                min(bound.rows_per_unit, most), min(bound.groups_per_unit, most),
                min(bound.rows_per_unit_and_group, most),
            )  # fmt: skip
        case AutomaticContribution():
            held = _held(bound.counted, most)
            assert isinstance(held, ContributionBound)
            return AutomaticContribution(held)
        case None:
            return None
        case _:
            assert_never(bound)
