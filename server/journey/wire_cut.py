"""Intervals with the cut, for those who ask: that of the noise, widened by the part that a histogram says is cut.

Empirical: a histogram sees no unit that is too rare, and says of the whole what may differ from group to group. It is
a function of released numbers, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from mechanisms.released_table import ReleasedTable
from privacy.refusal import Finding
from privacy.release import ColumnKind
from privacy.statistic import Estimate
from server.answer_rows import AnswerRows
from server.estimands import rows_are_cut
from server.journey.wire_norms import INSTEAD, warns
from sql_rewrite.bound import BoundedCore
from sql_rewrite.contribution import Contribution, NormedContribution
from sql_rewrite.plan import ShellOutput

__all__ = ["beyond_noise", "with_cut_json"]

_WORDS = (
    "Empirical, without a promise: the interval of the noise, widened by the part of the whole that the histogram says "
    "is cut and twice its error. A cut that is uneven over the groups, and units too rare to be seen, are not in it."
)

_COMPUTED = "The column is computed from released numbers."
_DECLARED = "Bounds that were declared or asked for may cut rows, and no histogram says how many."
_NOT_KNOWN = "What the norm cuts is not known: too few units are seen, or the histogram is of older data."
_RATIO = "What scaling units to the norm does to an average or a spread is not known."
_BEYOND = "How far values lie beyond the chosen bounds is not known."


def with_cut_json(
    cores: Sequence[BoundedCore], tables: Sequence[ReleasedTable], outputs: Sequence[ShellOutput], rows: AnswerRows
) -> dict[str, object]:
    """The ends of all cells, of the shape of `rows`, and why columns have none."""
    known = {core.described.name: (core, table) for core, table in zip(cores, tables, strict=True)}
    widened = [_of_output(output, known) for output in outputs]
    ends = [
        [_ends(low, high, how) for low, high, how in zip(lows, highs, widened, strict=True)]
        for lows, highs in zip(rows.lows, rows.highs, strict=True)
    ]
    return {
        "lows": [[low for low, _ in row] for row in ends],
        "highs": [[high for _, high in row] for row in ends],
        "reasons": [
            {"column": place, "why": how}
            for place, (output, how) in enumerate(zip(outputs, widened, strict=True))
            if isinstance(how, str) and output.kind != ColumnKind.KEY
        ],
        "words": _WORDS,
    }


def beyond_noise(
    cores: Sequence[BoundedCore], tables: Sequence[ReleasedTable], outputs: Sequence[ShellOutput], rows: AnswerRows
) -> Iterator[Finding]:
    """One warning for each column of which more may be cut than the half width of a cell, as far as a histogram says.

    A small part of a large number is more than its noise: then what is cut decides, and no interval of noise has it.
    Norms that cut more than a small part are warned of anyway (`cut_warnings`).
    """
    known = {core.described.name: (core, table) for core, table in zip(cores, tables, strict=True)}
    for place, output in enumerate(outputs):
        how = _of_output(output, known, values=False)
        if isinstance(how, str) or not how[0] or output.core is None or _warned(output, known[output.core]):
            continue
        part = how[0] / (1 - how[0])
        ends = [(lows[place], highs[place]) for lows, highs in zip(rows.lows, rows.highs, strict=True)]
        cells = [(low, high) for low, high in ends if low is not None and high is not None]
        more = [part * max(abs(low), abs(high)) > (high - low) / 2 for low, high in cells]
        if any(more):
            yield _cut_beyond_noise(output.name, how[0], sum(more), len(more))


def _warned(output: ShellOutput, of_core: tuple[BoundedCore, ReleasedTable]) -> bool:
    return any(output.column in note.estimates and warns(note) for note in of_core[1].norms)


def _cut_beyond_noise(name: str, part: float, cells: int, every: int) -> Finding:
    of_cells = "the cell" if every == 1 else f"{cells:,} of {every:,} cells"
    return Finding(
        code="contribution_cut",
        what=f'of "{name}" more may be missing than its noise, in {of_cells}',
        why=f"Scaling units to the chosen norm may cut up to {part:.1%} of the whole, as far as a noisy histogram "
        "says: more than the half width of an interval, which covers the noise alone.",
        instead=('ask "with_cut": true for intervals that have the cut too', *INSTEAD),
    )


_Widening = tuple[float, bool]
"""The part that may be cut, and whether what is cut may have either sign."""


def _ends(low: float | None, high: float | None, how: _Widening | str) -> tuple[float | None, float | None]:
    if isinstance(how, str) or low is None or high is None:
        return None, None
    part, either = how
    more = part / (1 - part) * max(abs(low), abs(high)) if part else 0
    if not more:
        return low, high
    return low - more if either else low, high + more


def _of_output(
    output: ShellOutput, known: dict[str, tuple[BoundedCore, ReleasedTable]], *, values: bool = True
) -> _Widening | str:
    """How the ends of a column are widened, or why not; without `values` by what norms cut alone."""
    if output.kind != ColumnKind.RELEASED or output.core is None:
        return _COMPUTED
    core, table = known[output.core]
    estimate = next(one for one in core.described.estimates if one.name == output.column)
    if values and table.bounds and estimate.kind.statistic.described.of_values:
        return _BEYOND
    contribution = core.contribution
    match contribution:
        case Contribution():
            return _DECLARED if rows_are_cut(core, contribution) else (0.0, False)
        case NormedContribution():
            return _normed(core, estimate, table)
        case _:
            assert_never(contribution)


def _normed(core: BoundedCore, estimate: Estimate, table: ReleasedTable) -> _Widening | str:
    statistic = next(one.statistic for one in core.statistics if one.statistic.name == estimate.statistic)
    note = next((one for one in table.norms if estimate.name in one.estimates), None)
    if note is None:
        return (0.0, False) if statistic.norm is None else _NOT_KNOWN
    if note.share is None or note.error is None:
        return _NOT_KNOWN
    part = min(note.share + 2 * note.error, 0.99)
    sums = table.sums_of(estimate.name)
    if part and (sums is None or not sums.linear(estimate.name)):
        return _RATIO
    return part, estimate.kind.statistic.described.of_values
