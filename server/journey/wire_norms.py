"""What answers and estimates say of contribution bounds: the counts that were named, or the norms that were chosen."""

from __future__ import annotations

from collections.abc import Sequence

from privacy.refusal import Finding
from privacy.release import NormNote
from server.journey.norms import estimates_of, noise_per_norm
from server.pricing import Priced
from sql_rewrite.bound import BoundedCore

__all__ = ["CUT_SMALL", "INSTEAD", "cut_warnings", "norm_json", "open_norms_json", "warns"]

CUT_SMALL = 0.05
"""A warning is given from this part of the sum over all cells on that is cut."""


def norm_json(core: BoundedCore, note: NormNote) -> dict[str, object]:
    """A norm that was chosen, where it comes from, and what scaling to it cuts: estimates without a promise."""
    texts = {aggregate.name: aggregate.text for aggregate in core.core.aggregates}
    known = note.share is not None and note.error is not None
    return {
        "columns": [texts.get(name, name) for name in note.estimates],
        "norm": note.norm,
        "power": note.power,
        "of": note.of,
        "argument": note.text,
        "source": note.source,
        "cut": {"share": note.share, "error": note.error} if known else None,
        "standard_error_per_norm": None,
    }


def open_norms_json(core: BoundedCore, priced: Priced | None) -> list[dict[str, object]]:
    """The norms that a question will choose: `standard_error_per_norm` is the noise for each unit of the norm."""
    if priced is None:
        return []
    name = core.described.name
    return [
        {
            "columns": [
                aggregate.text
                for aggregate, estimate in zip(core.core.aggregates, core.described.estimates, strict=True)
                if estimate.name in estimates_of(core, item.norm)
            ],
            "norm": None,
            "power": item.norm.power.value,
            "of": item.norm.of.value,
            "argument": item.norm.text,
            "source": None,
            "cut": None,
            "standard_error_per_norm": noise_per_norm(core, item.norm, priced.calibration),
        }
        for item in core.norms
        if any(measurement.core == name for measurement in priced.calibration.measurements)
    ]


CUT_POSSIBLE = 0.1
"""A warning is given from this part on that may be cut, as far as a histogram can say."""


def cut_warnings(norms: Sequence[Sequence[NormNote]]) -> tuple[Finding, ...]:
    """Warnings of norms that cut a part which is not small, or of which that is not known."""
    return (*_not_small(norms), *(_not_known(note) for of_core in norms for note in of_core if _is_open(note)))


def warns(note: NormNote) -> bool:
    """Whether a norm is warned of by what it cuts of the whole, whatever the cells are."""
    return _is_open(note) or (note.share is not None and note.share >= CUT_SMALL)


def _is_open(note: NormNote) -> bool:
    """Whether a part may be cut that is not small, although the estimate of it is small, or is missing."""
    if note.share is None or note.error is None:
        return True
    return note.share < CUT_SMALL and note.share + 2 * note.error >= CUT_POSSIBLE


def _not_known(note: NormNote) -> Finding:
    most = None if note.share is None or note.error is None else note.share + 2 * note.error
    why = (
        "few units are seen, or the histogram is of older data" if most is None else f"perhaps {most:.0%} of the whole"
    )
    return Finding(
        code="contribution_cut",
        what=f"how much of the {note.text or note.of} is missing is not known",
        why=f"Units with more than the norm {float(note.norm):,.4g} are scaled down to it, and a noisy histogram does "
        f"not say how much that cuts: {why}. The intervals cover the noise alone.",
        instead=INSTEAD,
    )


INSTEAD = (
    "spend more: the norm grows with the spend",
    'name bounds of your own: "contribution": {"rows_per_unit": ...} (or --rows-per-unit N)',
)


def _not_small(norms: Sequence[Sequence[NormNote]]) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            code="contribution_cut",
            what=f"about {note.share:.0%} of the {note.text or note.of} may be missing",
            why=f"Units with more than the norm {float(note.norm):,.4g} are scaled down to it, which cuts about "
            f"{note.share:.1%} (± {2 * (note.error or 0):.1%}) of the whole; a greater norm would add more noise than "
            "that. The intervals cover the noise alone.",
            instead=INSTEAD,
        )
        for of_core in norms
        for note in of_core
        if note.share is not None and note.share >= CUT_SMALL
    )
