"""What answers and estimates say of value bounds: those that are declared, and those that questions choose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mechanisms.calibrate import VALUES_SHARE
from privacy.numbers import decimal_text
from privacy.refusal import Finding
from privacy.release import BoundsNote, BoundsSource
from server.journey.query import Prepared
from sql_rewrite.bound import BoundedCore

__all__ = ["bounds_before", "bounds_warnings", "chosen_bounds_json", "open_argument", "open_bounds_json"]


def chosen_bounds_json(cores: Sequence[BoundedCore], notes: Sequence[Sequence[BoundsNote]]) -> list[dict[str, object]]:
    """The bounds to which the values of each core were clipped, with its notes."""
    bought = _bought(notes)
    return [shown for core, own in zip(cores, notes, strict=True) for shown in _listed(core, own, bought)]


def open_bounds_json(core: BoundedCore, prepared: Prepared) -> list[dict[str, object]]:
    """The bounds of a core before it is released: those that the question will choose have no ends yet."""
    notes, is_open = bounds_before(core, prepared)
    listed = _listed(core, notes, 0 if prepared.values is None else len(prepared.values.histograms))
    if not is_open:
        return listed
    return [
        {**shown, "lower": None, "upper": None, "certain": None, "cut_reason": _NOT_CHOSEN}
        if shown["source"] is BoundsSource.CHOSEN
        else shown
        for shown in listed
    ]


def bounds_before(core: BoundedCore, prepared: Prepared) -> tuple[Sequence[BoundsNote], bool]:
    """What is known of a core's chosen bounds before it is released, and whether the question will choose them."""
    name, stage = core.described.name, prepared.values
    if stage is None or name not in stage.places:
        return prepared.bounds.get(name, ()), False
    return [BoundsNote(table, column, "", "", BoundsSource.CHOSEN) for table, column in stage.places[name]], True


def open_argument(text: str, *, is_open: bool) -> str:
    """What a statistic is of, without the nominal bounds of columns whose bounds the question will choose."""
    argument, clipped, _ = text.partition(" clipped to ")
    return f"{argument} clipped to bounds that the question chooses" if is_open and clipped else text


def bounds_warnings(notes: Iterable[Sequence[BoundsNote]]) -> tuple[Finding, ...]:
    """Warnings of columns of which a histogram shows nobody."""
    found = {note for of_core in notes for note in of_core if not note.certain}
    return tuple(
        Finding(
            code="bounds_uncertain",
            what=f'the bounds of "{note.column}", {note.lower} to {note.upper}, are a guess',
            why="The noisy histogram of its values shows nobody for certain: there are few values, or the spend is "
            "small. Values beyond the bounds count as the bound.",
            instead=(
                "ask with a larger spend: a better histogram is bought",
                f"name bounds in the text: GREATEST(<lowest>, LEAST({note.column}, <highest>))",
                "ask an administrator to declare bounds for the column, which costs nothing",
            ),
        )
        for note in sorted(found, key=lambda note: (note.table, note.column))
    )


def _listed(core: BoundedCore, notes: Sequence[BoundsNote], bought: int) -> list[dict[str, object]]:
    """The bounds of one core; `bought` is the number of histograms that its question paid for."""
    chosen = {note.column for note in notes}
    declared: list[dict[str, object]] = [
        {
            "table": None,
            "column": column,
            "lower": None if lower is None else str(lower),
            "upper": None if upper is None else str(upper),
            "source": BoundsSource.DECLARED,
            "certain": True,
            "share": "0",
            "cut": None,
            "cut_reason": _DECLARED,
        }
        for column, lower, upper in dict.fromkeys(core.clipped())
        if column not in chosen
    ]
    share = decimal_text(VALUES_SHARE / max(1, bought), places=6)
    own: list[dict[str, object]] = [
        {
            "table": note.table,
            "column": note.column,
            "lower": note.lower,
            "upper": note.upper,
            "source": note.source,
            "certain": note.certain,
            "share": share if note.source is BoundsSource.CHOSEN else "0",
            "cut": _cut(note),
            "cut_reason": None if _cut(note) else _NOBODY_SEEN if not note.certain else _NOT_KEPT,
        }
        for note in notes
    ]
    return [*declared, *own]


_DECLARED = "No histogram was made of a column whose bounds are declared."
_NOT_CHOSEN = "The bounds are chosen by the question."
_NOBODY_SEEN = "The histogram shows nobody for certain."
_NOT_KEPT = "The release is of a version that did not keep it."


def _cut(note: BoundsNote) -> dict[str, float] | None:
    """About which part of the units has values beyond the bounds, as the histogram says it."""
    if note.share is None or note.error is None:
        return None
    return {"share": note.share, "error": note.error}


def _bought(notes: Sequence[Sequence[BoundsNote]]) -> int:
    """How many histograms the question paid for."""
    return len({(note.table, note.column) for own in notes for note in own if note.source is BoundsSource.CHOSEN})
