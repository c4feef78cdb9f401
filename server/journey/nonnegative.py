"""Counts without negative ones: `nonnegative` of a request. What is shown, and what its intervals are those of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from mechanisms.nonnegative import nonnegative
from mechanisms.released_table import ReleasedTable
from privacy.aggregate import AggregateFunction
from privacy.refusal import Finding, Refused
from privacy.release import ColumnKind
from server.answer_rows import AnswerRows, IntervalReason
from server.derived.cells import NoInterval
from server.journey.query import Prepared
from server.question import Question

__all__ = ["adjusted_json", "assembled", "check_nonnegative", "counted"]

_COUNTS = (AggregateFunction.ROWS, AggregateFunction.UNITS, AggregateFunction.VALUES)

Number = TypeVar("Number", bound=float | None)


def check_nonnegative(question: Question, prepared: Prepared) -> None:
    """Errors: Refused where no number of the answer would be made so, or a later part reads numbers as they are."""
    if prepared.plan.stages or question.with_cut or question.merge is not None or not any(counted(prepared).values()):
        raise Refused(
            [
                Finding(
                    code="accuracy_unreachable",
                    what="counts that are not negative are refused",
                    why="Counts of public groups are made so, in questions without stages, with_cut and merge.",
                    instead=("leave nonnegative out", "write GREATEST(0, n) for single numbers"),
                    field="nonnegative",
                )
            ]
        )


def counted(prepared: Prepared) -> dict[str, tuple[str, ...]]:
    """The columns of counts of public groups, by core."""
    return {
        core.described.name: tuple(one.name for one in core.described.estimates if one.kind in _COUNTS)
        for core in prepared.cores
        if core.described.keys.domain is not None and core.described.choice is None
    }


def assembled(
    tables: Sequence[ReleasedTable], prepared: Prepared, assemble: Callable[[Sequence[ReleasedTable]], AnswerRows]
) -> AnswerRows:
    """The rows of an answer whose counts are not negative, with the intervals of the numbers before.

    Errors: as `assemble`.
    """
    names = counted(prepared)
    before, shown = assemble(tables), assemble([_adjusted(table, names.get(table.name, ())) for table in tables])
    cut = {
        place
        for place, output in enumerate(prepared.plan.shell.outputs)
        if output.kind == ColumnKind.RELEASED and output.column in names.get(output.core or "", ())
    }
    return _with_intervals(shown, before, cut, chosen=prepared.plan.shell.chosen)


def _adjusted(table: ReleasedTable, names: Sequence[str]) -> ReleasedTable:
    columns = []
    for column in table.columns:
        if column.name in names and None not in column.values:
            known = [number for number in column.numbers if number is not None]
            columns.append(replace(column, values=nonnegative(known)))
        else:
            columns.append(column)
    return replace(table, columns=tuple(columns))


def _with_intervals(shown: AnswerRows, before: AnswerRows, cut: set[int], *, chosen: bool) -> AnswerRows:
    """The rows that are shown with the errors of the same rows before: nonnegative.md, Proposition 5."""
    keys = [place for place, (_, _, kind) in enumerate(shown.columns) if kind == ColumnKind.KEY]
    names = [tuple(row[place] for place in keys) for row in before.rows]
    places = {name: place for place, name in enumerate(names)}
    own = [tuple(row[place] for place in keys) for row in shown.rows]
    lost = chosen or len(places) < len(names) or len(set(own)) < len(own) or not set(own) <= places.keys()
    if lost:
        return _without(shown, NoInterval.CHOSEN_BY_NOISE if chosen else NoInterval.NO_ROW_IDENTITY)
    back = [places[name] for name in own]
    ends = [
        [
            _ends(value, before.lows[at][place], before.highs[at][place], cut=place in cut)
            for place, value in enumerate(row)
        ]
        for at, row in zip(back, shown.rows, strict=True)
    ]
    again = {at: place for place, at in enumerate(back)}
    reasons = tuple(
        replace(one, rows=None if one.rows is None else tuple(sorted(again[row] for row in one.rows if row in again)))
        for one in before.reasons
    )
    return replace(
        shown,
        standard_errors=[before.standard_errors[at] for at in back],
        lows=[[low for low, _ in row] for row in ends],
        highs=[[high for _, high in row] for row in ends],
        methods=before.methods,
        reasons=reasons,
    )


def _ends(
    value: object, low: float | None, high: float | None, *, cut: bool
) -> tuple[float | int | None, float | int | None]:
    """An interval, cut at zero, that contains what is shown."""
    if low is None or high is None or isinstance(value, bool) or not isinstance(value, int | float):
        return low, high
    if cut:
        low, high = max(low, 0), max(high, 0)
    return min(low, value), max(high, value)


def _without(shown: AnswerRows, reason: NoInterval) -> AnswerRows:
    """Without intervals, where it is not known of which rows they are."""
    nothing: list[list[float | int | None]] = [[None] * len(shown.columns) for _ in shown.rows]
    numbers = [place for place, (_, _, kind) in enumerate(shown.columns) if kind != ColumnKind.KEY]
    return replace(
        shown,
        standard_errors=[[None] * len(shown.columns) for _ in shown.rows],
        lows=nothing,
        highs=[list(row) for row in nothing],
        methods=(None,) * len(shown.columns),
        reasons=tuple(IntervalReason(place, reason, None) for place in numbers),
    )


def adjusted_json(prepared: Prepared) -> dict[str, object]:
    """The member `adjusted` of an answer."""
    texts = {core.described.name: {one.name: one.text for one in core.core.aggregates} for core in prepared.cores}
    columns = [texts[core][name] for core, names in counted(prepared).items() for name in names if name in texts[core]]
    return {
        "by": "nonnegative",
        "columns": columns,
        "consistent": True,
        "words": "Counts are the nearest ones that are not negative and have the same sum over all groups of their "
        "release; all other numbers follow from them. Intervals and standard errors are those of the numbers "
        "before, cut at zero, and contain what is shown.",
    }
