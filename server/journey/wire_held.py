"""Values that are ends of their range because noise carried them beyond it, or whose interval is all of the range.

An average of 0.0 of values in [0, 100] looks like an answer. It says no more than the declaration did.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mechanisms.released_table import ReleasedTable
from privacy.aggregate import AggregateFunction
from privacy.refusal import Finding
from privacy.statistic_kind import StatisticKind
from server.journey.nobody import of_nobody
from sql_rewrite.bound import BoundedCore

__all__ = ["held_warnings"]

_NEARLY = 0.9
"""Part of the range from which on an interval says about nothing."""


def held_warnings(cores: Sequence[BoundedCore], tables: Sequence[ReleasedTable]) -> tuple[Finding, ...]:
    """One warning for each column of which some values say nothing."""
    return tuple(finding for core, table in zip(cores, tables, strict=True) for finding in _of_core(core, table))


def _of_core(core: BoundedCore, table: ReleasedTable) -> Iterator[Finding]:
    texts = {aggregate.name: aggregate.text for aggregate in core.core.aggregates}
    columns = {column.name: column for column in table.columns}
    for sums in table.sums or ():
        for estimate in sums.estimates:
            ends = sums.held_to(estimate)
            if ends is None or estimate.name not in texts or estimate.kind is AggregateFunction.PRESENT:
                continue  # what a presence does not tell is said of each of them (`presence_by_count`)
            column = columns[estimate.name]
            cells = zip(column.numbers, column.lows, column.highs, strict=True)
            ranked = estimate.kind.statistic is StatisticKind.RANKS
            rows = [row for row, cell in enumerate(cells) if _says_nothing(*cell, ends, ranked=ranked)]
            nobody = of_nobody(table, sums, estimate) if rows else ()
            held = sum(not nobody[row] for row in rows)  # another warning counts groups of nobody
            if held:
                yield _finding(texts[estimate.name], held, len(column.values), ends)


def _says_nothing(
    value: float | None, low: float | None, high: float | None, ends: tuple[float, float], *, ranked: bool
) -> bool:
    """Whether a value is no more than an end, or its interval all of the range.

    No noise carries a quantile to an end: it is one where the rows are there, and its interval tells.
    """
    least, most = ends
    if value is None:  # a correlation of noise: no value follows from the noisy sums, and all are possible
        return low is not None and high is not None and high - low >= (most - least) * _NEARLY
    at_end = math.isclose(value, least, abs_tol=1e-12 * (most - least)) or math.isclose(value, most)
    if at_end and not ranked:
        return True
    return low is not None and high is not None and high - low >= (most - least) * _NEARLY


def _finding(text: str, held: int, cells: int, ends: tuple[float, float]) -> Finding:
    some = "the value" if cells == 1 else f"{held:,} of {cells:,} values"
    return Finding(
        code="held_to_range",
        what=f"{some} of {text} may be noise alone",
        why=f"It is known to lie between {ends[0]:,.6g} and {ends[1]:,.6g}. A noisy value beyond that was held to the "
        "nearer end or has no value (NULL), or its interval is about as wide as the range.",
        instead=("spend more, or ask for larger groups", "read the interval, and not the value"),
    )
