"""The expected errors of the columns of an answer, before it exists: of stored releases, and of fresh ones."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mechanisms.estimates import ExpectedError
from mechanisms.interval import two_sided_alpha
from mechanisms.released_table import ReleasedTable
from privacy.release import ColumnKind
from server.derived.at_once import why_none
from server.derived.cells import NoInterval
from server.journey.norms import Foreseen
from server.journey.query import Prepared
from server.pricing import Priced
from server.question import Question
from sql_rewrite.plan import Shell, ShellOutput

__all__ = ["by_rows_json", "errors_by_rows", "expected_columns", "unbounded_columns"]


@dataclass(frozen=True, slots=True)
class _ColumnError:
    """What is known before the answer of the errors of a column: None where it depends on the answer.

    `reason` says why there is no half-width although the column is released as it is.
    """

    standard_error: float | None = None
    half_width: float | None = None
    by_rows: tuple[ExpectedError, ...] = ()
    stored: bool = False
    reason: NoInterval | None = None


def expected_columns(
    prepared: Prepared, seen: Foreseen | None, question: Question, stored: Mapping[str, ReleasedTable]
) -> list[dict[str, object]]:
    """The error of each column: that of the stored release where one serves, otherwise the expected one.

    There is none where the question chooses a norm that no stored histogram tells.

    The expected one of a ratio, which depends on how many rows a group has, is given for some numbers.
    """
    shell = prepared.plan.shell
    cells = prepared.at_once({name: table.rows for name, table in stored.items()})
    selected = {core.described.name for core in prepared.cores if core.described.keys.selection is not None}
    errors: dict[tuple[str, str], _ColumnError] = {}
    for name in (core.described.name for core in prepared.cores):
        table = stored.get(name)
        if table is not None:
            errors |= {(name, column): error for column, error in _stored_errors(table, question, cells).items()}
        elif seen is not None:
            errors |= {(name, column): error for column, error in _fresh_errors(seen, name, question, cells).items()}
    result: list[dict[str, object]] = []
    for output in shell.outputs:
        error = _of_output(shell, output, errors, selected)
        result.append(
            {
                "name": output.name,
                "kind": output.kind,
                "standard_error": error.standard_error,
                "half_width": error.half_width,
                "half_width_reason": None if error.reason is None else {"code": error.reason, "why": error.reason.said},
                "by_rows": by_rows_json(error.by_rows),
                "stored": error.stored,
            }
        )
    return result


def _of_output(
    shell: Shell, output: ShellOutput, errors: Mapping[tuple[str, str], _ColumnError], selected: Collection[str]
) -> _ColumnError:
    """The error of a column that is released as it is: in a UNION ALL the widest of its branches.

    Of the total of some numbers of a column it is sqrt of how many there are times theirs, the width at most.
    """
    if output.total is not None:
        core, column, number = output.total
        one, times = errors.get((core, column), _ColumnError()), math.sqrt(number)
        reason = why_none(shell, output.trace, selected)
        return _ColumnError(
            None if one.standard_error is None else times * one.standard_error,
            None if one.half_width is None or reason is not None else times * one.half_width,
            stored=one.stored,
            reason=one.reason if reason is None else reason,
        )
    if output.kind != ColumnKind.RELEASED:
        return _ColumnError()
    if output.branches:
        branches = [_of_output(shell, branch, errors, selected) for branch in output.branches]
        return _ColumnError(
            _greatest([branch.standard_error for branch in branches]),
            _greatest([branch.half_width for branch in branches]),
            stored=all(branch.stored for branch in branches),
            reason=next((branch.reason for branch in branches if branch.reason is not None), None),
        )
    error = errors.get((output.core or "", output.column or ""), _ColumnError())
    reason = why_none(shell, output.trace, selected)
    if reason is None:
        return error
    return dataclasses.replace(error, half_width=None, by_rows=_without_widths(error.by_rows), reason=reason)


def _stored_errors(table: ReleasedTable, question: Question, cells: int | None) -> dict[str, _ColumnError]:
    """The greatest error and half-width of each column of a stored release, None where a cell's is not known."""
    found: dict[str, _ColumnError] = {}
    for column in (column for column in table.columns if column.role == ColumnKind.RELEASED):
        ends: tuple[Sequence[float | int | None], Sequence[float | int | None]] | None = (column.lows, column.highs)
        if cells is not None and cells > 1:
            ends = table.ends(column.name, two_sided_alpha(question.confidence, cells))
        widths: list[float | None] = [None]
        if ends is not None and cells is not None:
            widths = [
                None if low is None or high is None else (float(high) - float(low)) / 2
                for low, high in zip(*ends, strict=True)
            ]
        reason = NoInterval.CELLS_NOT_KNOWN if cells is None else NoInterval.STORED_WITHOUT_SUMS
        found[column.name] = _ColumnError(
            _greatest(column.standard_errors),
            _greatest(widths),
            stored=True,
            reason=reason if cells is None or ends is None else None,
        )
    return found


def _fresh_errors(seen: Foreseen, core: str, question: Question, cells: int | None) -> dict[str, _ColumnError]:
    """The errors that a fresh release of a core would have, by column."""
    priced = seen.priced
    if core in seen.open:
        return {
            column: _ColumnError(reason=NoInterval.NORM_NOT_CHOSEN)
            for column in priced.calibration.predicted_errors(core)
        }
    widths: Mapping[str, float | None] = {}
    if cells is not None:
        widths = priced.calibration.predicted_half_widths(core, question.confidence, cells=cells)
    ratios = errors_by_rows(priced, core, question, cells)
    reason = NoInterval.CELLS_NOT_KNOWN if cells is None else None
    found = {
        column: _ColumnError(error, widths.get(column), ratios.get(column, ()), reason=reason)
        for column, error in priced.calibration.predicted_errors(core).items()
    }
    # The noise of counts does not follow from value bounds.
    return found | dict.fromkeys(unbounded_columns(seen, core), _ColumnError(reason=NoInterval.BOUNDS_NOT_CHOSEN))


def unbounded_columns(seen: Foreseen, core: str) -> list[str]:
    """The columns of a core whose noise follows from bounds that the question will choose."""
    if core not in seen.unbounded:
        return []
    described = next(one for one in seen.priced.calibration.cores if one.name == core)
    return [estimate.name for estimate in described.estimates if estimate.kind.statistic.described.of_values]


def errors_by_rows(
    priced: Priced, core: str, question: Question, cells: int | None
) -> dict[str, tuple[ExpectedError, ...]]:
    """The errors of each ratio in groups of some sizes, without half-widths where it is not known how many hold."""
    expected = priced.calibration.expected_errors(core, question.confidence, cells=cells or 1)
    return expected if cells is not None else {name: _without_widths(sizes) for name, sizes in expected.items()}


def _without_widths(sizes: Sequence[ExpectedError]) -> tuple[ExpectedError, ...]:
    return tuple(dataclasses.replace(size, half_width=None) for size in sizes)


def by_rows_json(expected: Sequence[ExpectedError]) -> list[dict[str, object]]:
    """The expected errors in groups of some sizes, as the estimate states them."""
    return [dataclasses.asdict(error) for error in expected]


def _greatest(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None
