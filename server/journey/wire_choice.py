"""What estimates and answers say of keys that were chosen by noisy scores: how far the best may be better.

No number of the choice is released, so there is nothing to put an interval around. What is said follows from the price,
the declarations and the text: it is known before a row is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mechanisms.measurements.choices import distance, kept_within
from mechanisms.released_table import ReleasedTable
from privacy.refusal import Finding
from server.pricing import Priced
from sql_rewrite.bound import BoundedCore

__all__ = ["choice_warnings", "chosen_json", "expected_choices_json"]

_UP = 1 + 1e-6
"""Scales are written in nine digits; what is promised is rounded up by more than that."""


def expected_choices_json(
    cores: Sequence[BoundedCore], priced: Priced | None, confidence: Fraction
) -> list[dict[str, object]]:
    """Of each core that chooses keys, what its choice will be worth at this price."""
    found = []
    for core in cores:
        name = core.described.name
        if core.described.choice is None or priced is None or name not in {c.name for c in priced.calibration.cores}:
            continue
        (statistic,) = core.described.statistics
        measurement = priced.calibration.measurement(name, statistic.name)
        found.append(_choice(core, float(measurement.scale_of_sums * measurement.unit), confidence))
    return found


def chosen_json(
    cores: Sequence[BoundedCore], tables: Sequence[ReleasedTable], confidence: Fraction
) -> list[dict[str, object]]:
    """Of each core that chose keys, what its choice was worth."""
    return [
        _choice(core, float(table.notes[0].scale), confidence)
        for core, table in zip(cores, tables, strict=True)
        if core.described.choice is not None
    ]


def choice_warnings(choices: Sequence[dict[str, object]]) -> tuple[Finding, ...]:
    """The same in words, and that groups of nobody are among the candidates."""
    return tuple(
        Finding(
            code="groups_chosen",
            what=f"noise chose {one['shown']} of {one['candidates']:,} by {one['score']}, which is not released",
            why=f"{one['meaning']} Groups of nobody are candidates too: their keys are public.",
            instead=(f"select {one['score']} beside the keys for its numbers: the price is that of counts",),
        )
        for one in choices
    )


def _choice(core: BoundedCore, scale: float, confidence: Fraction) -> dict[str, object]:
    described, asked = core.described, core.core.choice
    assert described.choice is not None
    assert asked is not None
    candidates, draws = kept_within(described.choice, described.keys)
    within = _rounded_up(distance(scale=scale * _UP, candidates=candidates, draws=draws, alpha=1 - float(confidence)))
    count, side = described.choice.count, "least" if described.choice.least else "greatest"
    of = "rows" if described.statistics[0].argument == "rows" else described.statistics[0].argument
    return {
        "score": asked.score.text if not described.choice.within else f"the frequency in {asked.score.text}",
        "side": side,
        "shown": min(count, candidates),
        "candidates": candidates,
        "draws": draws,
        "within": within,
        "of": of,
        "confidence": float(confidence),
        "meaning": f"With probability {float(confidence):.4g} every shown group's score is within {within:,} of the "
        f"{side} among the groups that were left to choose from ({of}).",
    }


def _rounded_up(value: float) -> float:
    """Three significant digits, not less than the value; whole numbers from 100 on."""
    step = 10.0 ** max(-9, len(str(int(value))) - 3) if value >= 1 else 0.001
    return float(round(-(-value // step) * step, 9))
