"""What rows cost that are computed within each unit, below the rows of a core: for one unit, and for each row.

As in cost.py each of the unit's rows takes every branch, and its groups are apart. A row is scanned, joined, grouped by
its unit and keys (hashed, with the salt of hidden keys), and added to each value; different values are hashed once
more. Each group is one row above, for which columns and the condition are computed.

Rows with windows are scanned, joined and sorted within their unit, once for each partition and order, and once more
where they are numbered first; then each window is computed for each of them, and the columns above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from privacy.policy import ColumnType
from sql_rewrite.dialects.costs import EngineCosts
from sql_rewrite.expression_cost import characters
from sql_rewrite.expressions import Expression
from sql_rewrite.join_tree import asked
from sql_rewrite.plan import (
    Source,
    UnitBranch,
    UnitFunction,
    UnitGroups,
    UnitPlace,
    UnitRows,
    UnitValue,
    joined_when,
)
from sql_rewrite.unit_facts import (
    constant_per_unit,
    content_keys,
    paired_rows,
    pieces,
    rows_of_unit,
    rows_tried,
    times_tried,
)
from sql_rewrite.unit_plan import RANKED

__all__ = ["Below", "work_below"]

Lowered = Callable[[Expression], tuple[float, float, int]]
"""Row and vector time of an expression, and its operators."""

_TEXT = ColumnType.TEXT
_CHARACTER_SHARE = 0.1
"""What each character of a text costs that is sorted, of `unit`: measured up to 7 nanoseconds."""

_DISTINCT_SHARE = 8
"""Times that a value of COUNT(DISTINCT) is hashed, compared and added up more than a value of a sum."""

_PASSED = 3.0
"""Nanoseconds of passing over a row whose value is NULL: each row may pass over all the others of its unit."""

_BESIDE_SHARE = 8
"""What comparing two values side by side takes, in units of grouping by the unit (500 ns measured at most)."""


@dataclass(frozen=True, slots=True)
class Below:
    """`unit` nanoseconds of one unit's rows; `row` of each row of the first table below; operators that are planned."""

    unit: float = 0.0
    row: float = 0.0
    operators: int = 0


def work_below(
    sources: Sequence[Source], costs: EngineCosts, worst: Lowered, usual: Lowered, expected: Callable[[Source], int]
) -> Below:
    """Everything that is computed below the rows of these sources."""
    unit = rows = 0.0
    operators = 0
    for source in sources:
        if source.only is not None:
            row, vector, planned = worst(source.only)
            computed = source.windows or source.groups
            below = source.table.rows_stored if computed is None else rows_of_unit(computed.sources)
            stored = below if source.table.protected else 0
            unit += stored * (costs.scan + row) + (1 + stored // costs.vector_rows) * vector
            rows += expected(source) * (costs.scan + usual(source.only)[0])
            operators += planned + costs.plan_reading
        if source.constants is not None and not source.constants.stored:
            operators += len(source.constants.rows) * len(source.constants.columns)
        for branch in () if source.union is None else source.union.branches:
            inner = work_below(branch.sources, costs, worst, usual, expected)
            row, vector, planned = _branch(branch, costs, worst)
            stored = rows_tried(branch.sources)
            unit += inner.unit + stored * row
            unit += (pieces(branch.sources) + stored // costs.vector_rows) * (vector + costs.core_vector)
            unit += asked(branch.sources) * costs.join + paired_rows(branch.sources) * (costs.scan + costs.join)
            tried = expected(branch.sources[0]) * times_tried(branch.sources)
            rows += inner.row + tried * _branch(branch, costs, usual)[0]
            operators += inner.operators + planned + costs.plan_core
        computed = source.windows or source.groups
        if computed is None:
            continue
        inner = work_below(computed.sources, costs, worst, usual, expected)
        unit += inner.unit + _unit(computed, costs, worst)
        tried = expected(computed.sources[0]) * times_tried(computed.sources)
        rows += inner.row + tried * _row(computed, costs, usual)[0]
        operators += inner.operators + costs.plan_core + _row(computed, costs, worst)[2]
        operators += sum(worst(part)[2] for part in _above(computed))
    return Below(unit, rows, operators)


def _branch(branch: UnitBranch, costs: EngineCosts, lowered: Lowered) -> tuple[float, float, int]:
    """One row of a branch: scanned, joined, and its columns computed and cast, whether or not they are read."""
    parts = [*branch.columns, *([] if branch.where is None else [branch.where]), *joined_when(branch.sources)]
    costed = [lowered(part) for part in parts]
    row = costs.scan + costs.join * (len(branch.sources) - 1) + costs.sum * (1 + len(branch.columns))
    return row + sum(one[0] for one in costed), sum(one[1] for one in costed), sum(one[2] + 1 for one in costed)


def _unit(groups: UnitGroups | UnitRows, costs: EngineCosts, worst: Lowered) -> float:
    stored = rows_tried(groups.sources)
    vectors = pieces(groups.sources) + -(-(stored - 1) // costs.vector_rows)
    row, vector, _ = _row(groups, costs, worst)
    above = [worst(part) for part in _above(groups)]
    keys = groups.keys if isinstance(groups, UnitGroups) else None
    most = 1 if keys is not None and all(constant_per_unit(key, groups.sources) for _, key in keys) else stored
    total = stored * row + vectors * (vector + costs.core_vector)
    total += most * (costs.clipped + sum(one[0] for one in above)) + sum(one[1] for one in above) * min(most, vectors)
    # Rows of joined tables are hashed whether or not a row finds them.
    return total + asked(groups.sources) * costs.join


def _row(groups: UnitGroups | UnitRows, costs: EngineCosts, lowered: Lowered) -> tuple[float, float, int]:
    if isinstance(groups, UnitRows):
        return _windows_row(groups, costs, lowered)
    parts = [part for value in groups.values for part in value.read]
    parts += [part for value in groups.values if (part := value.argument) is not None]  # steps write it twice
    parts += [key for _, key in groups.keys]
    parts += [*([] if groups.where is None else [groups.where]), *joined_when(groups.sources)]
    costed = [lowered(part) for part in parts]
    distinct = [value for value in groups.values if value.function is UnitFunction.DISTINCT]
    compared = sum(1 + len(source.join.also) for source in groups.sources if source.join is not None)
    own = costs.scan + costs.join * compared + costs.unit
    own += sum(costs.key + (costs.salt_text if key.type is ColumnType.TEXT else costs.salt) for _, key in groups.keys)
    # Values in their order are kept and sorted: not measured, taken as expensive as different values.
    own += _DISTINCT_SHARE * costs.unit * sum(value.function in RANKED for value in groups.values)
    own += 2 * costs.sum * len(groups.values) + len(distinct) * (_DISTINCT_SHARE * costs.unit + costs.salt_text)
    # The values of a mode are sorted whole: of texts with one beginning each character is compared again and again.
    sorted_texts = [value.argument for value in groups.values if value.function is UnitFunction.MODE]
    own += _CHARACTER_SHARE * costs.unit * sum(characters(one) for one in sorted_texts if one and one.type is _TEXT)
    # A number becomes steps, and they an integer of 128 bits: three operators, and their sum twice that of another.
    own += 5 * costs.sum * sum(value.encoding is not None for value in groups.values)
    # Two values side by side are compared as texts.
    own += (_BESIDE_SHARE * costs.unit + costs.salt_text) * sum(value.by is not None for value in groups.values)
    row = own + sum(one[0] for one in costed)
    return row, sum(one[1] for one in costed), sum(one[2] for one in costed) + 2 * len(groups.values)


def _windows_row(rows: UnitRows, costs: EngineCosts, lowered: Lowered) -> tuple[float, float, int]:
    parts = [cell for _, cell in rows.cells] + ([] if rows.where is None else [rows.where])
    parts += joined_when(rows.sources)
    compared = sum(1 + len(source.join.also) for source in rows.sources if source.join is not None)
    own = costs.scan + costs.join * compared
    orders = {(window.partition, window.order, window.by_place) for window in rows.windows}
    numbered = sum(window.by_place for window in rows.windows)
    content = [cell for name, cell in rows.cells if name in content_keys(rows)] if numbered else []
    for partition, order, by_place in orders:
        keys = [*partition, *(term.expression for term in order)]
        own += costs.sorted + costs.sorted_key * (len(keys) + (len(content) if by_place else 0))
        # What is compared is written apart, and as a key once more.
        parts += [*keys, *keys, *(content if by_place else [])]
    own += (costs.sorted + costs.sorted_key * len(content)) if numbered > 1 else 0.0
    for window in rows.windows:
        value = window.value
        # A frame that moves is added up from a tree over the rows; what it leaves out parts it in two.
        own += costs.window * (1 if window.frame is None else 3 if window.frame.exclude else 2)
        if isinstance(value, UnitPlace) and value.ignores_null:
            own += _PASSED * rows_tried(rows.sources)
        if isinstance(value, UnitValue):
            parts += [part for part in (value.argument, value.argument, value.filter) if part is not None]
            # Two aggregates for an average, and sums of 128 bits.
            own += costs.window * ((value.function is UnitFunction.AVERAGE) + 2 * (value.encoding is not None))
        elif value.argument is not None:
            parts.append(value.argument)
    costed = [lowered(part) for part in parts]
    operators = sum(one[2] for one in costed) + 2 * len(rows.windows) + 2 * len(orders)
    return own + sum(one[0] for one in costed), sum(one[1] for one in costed), operators


def _above(groups: UnitGroups | UnitRows) -> list[Expression]:
    having = [] if isinstance(groups, UnitRows) or groups.having is None else [groups.having]
    return [*having, *(column for _, column in groups.columns)]
