"""Intervals with the cut, for those who ask: that of the noise, widened by the part that a histogram says is cut.

Empirical: a histogram sees no unit that is too rare, and says of the whole what may differ from group to group. It is
a function of released numbers, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from mechanisms.released_table import ReleasedTable
from privacy.release import ColumnKind
from privacy.statistic import Estimate
from server.answer_rows import AnswerRows
from server.estimands import rows_are_cut
from server.journey.column_cut import Cut, Known, cut_of, of_partners
from sql_rewrite.bound import BoundedCore
from sql_rewrite.contribution import Contribution, NormedContribution
from sql_rewrite.plan import ShellOutput

__all__ = ["with_cut_json"]

_WORDS = (
    "Empirical, without a promise: the interval of the noise, widened by the part of the whole that the histogram says "
    "is cut and twice its error. A cut that is uneven over the groups, and units too rare to be seen, are not in it."
)

_COMPUTED = "The column is computed from released numbers."
_DECLARED = "Bounds that were declared or asked for may cut rows, and no histogram says how many."
_NOT_KNOWN = "What the norm cuts is not known: too few units are seen, or the histogram is of older data."
_RATIO = "What scaling units to the norm does to a spread, or to a number without a range, is not known."
_PARTNERS = "The norm is of all rows of a LEFT JOIN: what it cuts of those with a partner is not known."
_MOST = 1 / 2
_TOO_MUCH = (
    "As far as the histogram says, more than half of the whole may be cut, so that an interval with it would say "
    "nothing: a larger spend, coarser groups or rows of fewer units make it narrower."
)
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


def _ends(low: float | None, high: float | None, how: Cut | str) -> tuple[float | None, float | None]:
    return (None, None) if isinstance(how, str) or low is None or high is None else how.widened(low, high)


def _of_output(output: ShellOutput, known: Known) -> Cut | str:
    """How the ends of a column are widened, or why not."""
    if output.kind != ColumnKind.RELEASED or output.core is None or output.column is None:
        return _COMPUTED
    core, table = known[output.core]
    estimate = next(one for one in core.described.estimates if one.name == output.column)
    if table.bounds and estimate.kind.statistic.described.of_values:
        return _BEYOND
    contribution = core.contribution
    match contribution:
        case Contribution():
            return _DECLARED if rows_are_cut(core, contribution) else Cut(0.0, either=False)
        case NormedContribution():
            return _normed(core, estimate, table)
        case _:
            assert_never(contribution)


def _normed(core: BoundedCore, estimate: Estimate, table: ReleasedTable) -> Cut | str:
    statistic = next(one.statistic for one in core.statistics if one.statistic.name == estimate.statistic)
    note = next((one for one in table.norms if estimate.name in one.estimates), None)
    if note is None:
        return Cut(0.0, either=False) if statistic.norm is None else _NOT_KNOWN
    if note.share is None or note.error is None:
        return _NOT_KNOWN
    if note.share and of_partners(core, estimate):
        return _PARTNERS
    cut = cut_of(core, table, estimate.name)
    if cut is not None and cut.held is None and cut.part > _MOST:
        return _TOO_MUCH
    return cut or _RATIO
