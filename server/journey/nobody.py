"""Values that may be those of nobody: an average whose noisy number of rows may be zero, a sum within guessed bounds.

Where the histogram of a column's values shows nobody for certain (mechanisms/value_bounds.md), its bounds are a guess,
and what noise makes within them looks like an answer: an average of a column that is all NULL was -92,617. There

- an average or a spread is NULL in each cell whose interval of the number of rows with a value reaches zero, as it is
  where that number is not positive;
- a sum is NULL in all cells where the intervals of all of them, that hold at once, reach zero. One cell alone is not
  left out: what is computed over the cells would miss it.

Elsewhere values stand where that number is positive, and a warning counts these averages and spreads. Standard errors
are those of values, so NULL has none; the intervals stay, as they would hold whatever is shown beside them.

Claim: it costs nothing. Whether bounds are certain, and each interval, is a function of released numbers
(post-processing: Dwork and Roth 2014, Proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from mechanisms.interval import two_sided_alpha
from mechanisms.noisy_sums import NoisySums
from mechanisms.released_table import ReleasedTable
from privacy.refusal import Finding
from privacy.release import ReleasedColumn
from privacy.statistic import Estimate
from sql_rewrite.bound import BoundedCore
from sql_rewrite.expressions import columns_of

__all__ = ["nobody_warnings", "of_nobody", "without_guesses"]

T = TypeVar("T")


def without_guesses(core: BoundedCore, table: ReleasedTable) -> ReleasedTable:
    """The table with NULL for values that may be those of nobody, within bounds that are a guess."""
    guessed = _guessed(core, table)
    if not guessed:
        return table
    gone: dict[str, tuple[bool, ...]] = {}
    for sums, estimate in _estimates(table):
        if estimate.statistic not in guessed or not estimate.kind.statistic.described.of_values:
            continue
        if sums.held_to(estimate) is None:
            alpha = two_sided_alpha(Fraction(table.confidence), max(1, table.rows))
            gone[estimate.name] = (all(sums.of_nobody(estimate, alpha)),) * table.rows
        else:
            gone[estimate.name] = of_nobody(table, sums, estimate)
    return replace(table, columns=tuple(_without(column, gone.get(column.name)) for column in table.columns))


def of_nobody(table: ReleasedTable, sums: NoisySums, estimate: Estimate) -> tuple[bool, ...]:
    """Of each cell of an average or a spread, whether the interval of its number of rows reaches zero."""
    return sums.of_nobody(estimate, two_sided_alpha(Fraction(table.confidence)))


def nobody_warnings(cores: Sequence[BoundedCore], tables: Sequence[ReleasedTable]) -> tuple[Finding, ...]:
    """One warning for each column of which some values may be those of nobody, and whether they are shown."""
    return tuple(finding for core, table in zip(cores, tables, strict=True) for finding in _of_core(core, table))


def _of_core(core: BoundedCore, table: ReleasedTable) -> Iterator[Finding]:
    texts = {aggregate.name: aggregate.text for aggregate in core.core.aggregates}
    columns = {column.name: column for column in table.columns}
    guessed = _guessed(core, table)
    for sums, estimate in _estimates(table):
        text = texts.get(estimate.name)
        if text is None:
            continue
        values = columns[estimate.name].values
        ratio = sums.held_to(estimate) is not None
        if estimate.statistic in guessed and estimate.kind.statistic.described.of_values:
            found = sum(value is None for value in values)
            if found:
                yield _null(text, found, len(values), ratio=ratio)
        elif ratio:
            found = sum(of_nobody(table, sums, estimate))
            if found:
                yield _doubtful(text, found, len(values))


def _guessed(core: BoundedCore, table: ReleasedTable) -> Set[str]:
    """The statistics that are computed within bounds of which nothing is known."""
    guessed = {(note.table, note.column) for note in table.bounds if not note.certain}
    if not guessed:
        return set()
    names = {source.relation: source.table.name for source in core.core.sources}
    return {
        bounded.statistic.name
        for bounded in core.statistics
        if any(
            (names[column.relation], column.name) in guessed
            for argument in bounded.arguments
            for column in columns_of(argument)
        )
    }


def _estimates(table: ReleasedTable) -> Iterator[tuple[NoisySums, Estimate]]:
    for sums in table.sums or ():
        for estimate in sums.estimates:
            yield sums, estimate


def _without(column: ReleasedColumn, gone: Sequence[bool] | None) -> ReleasedColumn:
    if gone is None or not any(gone):
        return column
    return replace(
        column, values=_null_where(column.values, gone), standard_errors=_null_where(column.standard_errors, gone)
    )


def _null_where(values: Sequence[T], gone: Sequence[bool]) -> tuple[T | None, ...]:
    return tuple(None if no else value for value, no in zip(values, gone, strict=True))


def _some(text: str, found: int, cells: int) -> tuple[str, str]:
    if cells == 1:
        return f"the value of {text}", "is"
    return f"{found:,} of {cells:,} values of {text}", "is" if found == 1 else "are"


def _null(text: str, found: int, cells: int, *, ratio: bool) -> Finding:
    some, verb = _some(text, found, cells)
    what = "its noisy number of rows with a value" if ratio else "its noisy sum, in every group,"
    return Finding(
        code="nobody_seen",
        what=f"{some} {verb} null",
        why=f"Nobody may have a value: {what} cannot be told from zero, and the histogram that chose the value bounds "
        "shows nobody for certain. What noise makes within guessed bounds is not an answer.",
        instead=(
            "spend more, or ask for larger groups",
            "ask COUNT(<column>) for how many rows have a value",
            "ask an administrator to declare bounds for the column",
        ),
    )


def _doubtful(text: str, found: int, cells: int) -> Finding:
    some, verb = _some(text, found, cells)
    return Finding(
        code="nobody_seen",
        what=f"{some} may be {'that' if verb == 'is' else 'those'} of nobody",
        why="The noisy number of rows with a value cannot be told from zero. Where it is not positive the value is "
        "null; a value that is shown may be noise alone.",
        instead=("spend more, or ask for larger groups", "read the interval, and not the value"),
    )
