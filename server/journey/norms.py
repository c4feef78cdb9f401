"""Norms that a question chooses: from a histogram of its units' norms, released by itself or by an earlier question.

Whatever is chosen here is a function of released numbers (mechanisms/norm_choice.md). What it costs was reserved
before: at the chosen norm each statistic has the loss that it was priced with (`at_chosen_norms`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mechanisms.calibrate import Calibration, at_chosen_norms
from mechanisms.families import NoiseFamily
from mechanisms.measurement import plain_text
from mechanisms.measurements.drawn_ranks import rank_error
from mechanisms.norm_choice import NormChoice, choose
from mechanisms.released_table import ReleasedTable
from privacy.composition import compose
from privacy.events import Event
from privacy.norms import BINS, BINS_PER_OCTAVE, Norm
from privacy.refusal import ExecutionFailed
from privacy.release import NormNote, NormSource
from server.journey.query import Prepared
from server.pricing import Priced
from sql_rewrite.bound import BoundedCore
from sql_rewrite.contribution import NormedContribution
from sql_rewrite.norms import at_norms

__all__ = [
    "Chosen",
    "Foreseen",
    "choose_norms",
    "estimates_of",
    "foresee",
    "key_at_norms",
    "noise_per_norm",
    "norm_choice",
    "require_reserved",
]

UNSEEN = Fraction(16)
"""The norm where a histogram shows no unit: there are few, and whatever they add drowns in the noise."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The norms of a core, what an answer says of them, and the core at these norms."""

    core: BoundedCore
    calibration: Calibration
    norms: Mapping[str, Fraction]
    notes: tuple[NormNote, ...]


def choose_norms(
    core: BoundedCore, calibration: Calibration, histogram: ReleasedTable, *, source: NormSource, same_data: bool = True
) -> Chosen:
    """The norms of a core from the histogram of them, and its noise at these norms, at the loss of `calibration`.

    `same_data` says that the histogram is of the data that the sums are made from; otherwise nothing is known of what
    is cut. Errors: ValueError for noise out of range; ExecutionFailed for a histogram that is not of these norms.
    """
    choices = {item.norm.name: norm_choice(core, item.norm, calibration, histogram) for item in core.norms}
    at = at_norms(core, {name: UNSEEN if choice is None else Fraction(choice.norm) for name, choice in choices.items()})
    assert isinstance(at.contribution, NormedContribution)
    notes = []
    for item in at.norms:
        norm, value, choice = item.norm, at.contribution.norm(item.norm.name), choices[item.norm.name]
        share, error = (None, None) if choice is None or not same_data else (choice.share, choice.share_error)
        if value >= item.most:
            share, error = 0.0, 0.0  # no unit can have more
        notes.append(
            NormNote(
                estimates=estimates_of(core, norm),
                norm=plain_text(value * norm.step),
                power=norm.power.value,
                of=norm.of.value,
                text=norm.text,
                source=source,
                share=_rounded(share),
                error=_rounded(error),
            )
        )
    return Chosen(at, at_chosen_norms(calibration, at.described), dict(at.contribution.norms), tuple(notes))


def require_reserved(reserved: Sequence[Event], drawn: Sequence[Event]) -> None:
    """Errors: ExecutionFailed when noise at chosen norms would lose more than was reserved before they were known."""
    before, after = compose(reserved), compose(drawn)
    for most, loss in ((before.pure, after.pure), (before.rho, after.rho), (before.mu_squared, after.mu_squared)):
        if most is not None and (loss is None or loss > most):
            raise ExecutionFailed
    if after.delta > before.delta:
        raise ExecutionFailed


def key_at_norms(key: str, norms: Mapping[str, Fraction]) -> str:
    """The identity of a core's release at norms that were known before its price, which promises a width at them."""
    body = {"core": key, "norms": {name: str(value) for name, value in norms.items()}, "version": 1}
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What an estimate knows of norms: the price with the noise at norms that are known, and notes on them, by core.

    `open` are the cores whose norm the question itself will choose, `unbounded` those whose value bounds it will.
    """

    priced: Priced
    notes: Mapping[str, tuple[NormNote, ...]]
    open: frozenset[str]
    unbounded: frozenset[str]


def foresee(prepared: Prepared, priced: Priced, histograms: Mapping[str, ReleasedTable]) -> Foreseen:
    """The price at the norms that stored histograms choose, by the name of their core."""
    calibration, notes, unknown = priced.calibration, dict(prepared.notes), set()
    for core, histogram in zip(prepared.cores, prepared.histograms, strict=True):
        if histogram is None:
            continue
        name = core.described.name
        table = histograms.get(name)
        if table is None:
            unknown.add(name)
            continue
        chosen = choose_norms(core, calibration, table, source=NormSource.STORED)
        notes[name] = chosen.notes
        calibration = calibration.with_core(chosen.calibration)
    unbounded = frozenset(() if prepared.values is None else prepared.values.places)
    return Foreseen(replace(priced, calibration=calibration), notes, frozenset(unknown), unbounded)


def norm_choice(core: BoundedCore, norm: Norm, calibration: Calibration, histogram: ReleasedTable) -> NormChoice | None:
    """The choice of one norm of a core. None where the histogram shows no unit."""
    found = next((one for one in histogram.sums or () if one.measurement.statistic.name == norm.name), None)
    if found is None or found.values.shape != (BINS, 1):
        raise ExecutionFailed
    grid = found.measurement.grid
    then = dict(histogram.steps).get(norm.name, norm.step)
    counts = _moved([float(count) * grid for count in found.values[:, 0].tolist()], then / norm.step)
    return choose(
        counts,
        deviation=math.sqrt(found.measurement.variance()) * grid,
        cells=_cells(core, calibration, counts),
        noise_per_norm=noise_per_norm(core, norm, calibration),
        most=next(float(one.most) for one in core.norms if one.norm.name == norm.name),
        power=norm.power,
        of=norm.of,
        laplace=histogram.family is NoiseFamily.LAPLACE,
    )


def _moved(counts: list[float], steps: Fraction) -> list[float]:
    """A histogram of norms in other steps: one of its own is worth so many of these, a power of two.

    A step follows from the value bounds of the sum, and a question may have chosen others than the one that released
    the histogram. What would lie beyond an end is left out: its noise would add up in one bin.
    """
    moved = [0.0] * BINS
    by = round(BINS_PER_OCTAVE * math.log2(steps))
    for place, count in enumerate(counts):
        if 0 <= place + by < BINS:
            moved[place + by] = count
    return moved


def _cells(core: BoundedCore, calibration: Calibration, counts: Sequence[float]) -> int:
    """Over how many groups what is cut is spread.

    Hidden ones are between one and as many as all units could show, one group each: their geometric mean.
    """
    keys = core.described.keys
    if keys.domain is not None:
        return max(1, len(keys.domain))
    assert keys.selection is not None
    selection = calibration.measurement(core.described.name, keys.selection)
    needed = math.sqrt(selection.variance()) * selection.grid * float(selection.unit)
    return max(1, round(math.sqrt(max(0.0, sum(counts)) / max(1.0, needed))))


def noise_per_norm(core: BoundedCore, norm: Norm, calibration: Calibration) -> float:
    """The standard deviation of a sum for each unit of the norm: the greatest of the statistics that have the norm."""
    found = []
    for statistic in core.described.statistics:
        if statistic.norm != norm.name:
            continue
        measurement = calibration.measurement(core.described.name, statistic.name)
        held = statistic.sensitivity
        if statistic.tree is not None:
            # Of a rank in the middle, in rows.
            found.append(rank_error(measurement) * statistic.tree.worth / float(held.linf))
            continue
        length = norm.power.choose(l1=float(held.l1), l2=math.sqrt(held.l2_squared))
        found.append(math.sqrt(measurement.variance()) * measurement.grid / length)
    return max(found)


def estimates_of(core: BoundedCore, norm: Norm) -> tuple[str, ...]:
    """The names of the estimates whose units are scaled to a norm."""
    held = {statistic.name for statistic in core.described.statistics if statistic.norm == norm.name}
    return tuple(estimate.name for estimate in core.described.estimates if estimate.statistic in held)


def _rounded(part: float | None) -> float | None:
    return None if part is None else round(part, 6)
