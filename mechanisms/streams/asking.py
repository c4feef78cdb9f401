"""Queries of a stream against true cells: compared with the synopsis, and measured where it is too far off.

True cells stay in here: they are compared, and where that is a hit their pieces meet the noise that was charged.
Proof: ../stream_synopsis.md.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms import gateway
from mechanisms.measurement import Integers, integers
from mechanisms.randomness import BitSource
from mechanisms.release import counts_by_place
from mechanisms.samplers.threshold import NoisyThreshold
from mechanisms.sparse_vector import SparseRun
from mechanisms.streams.price import StreamNoise
from mechanisms.streams.synopsis import Cells, Measured, Synopsis, labels_of, runs_of
from privacy.aggregate import AggregateFunction
from privacy.exact import Exact
from privacy.statistic import CoreStatistics, Statistic
from privacy.statistic_kind import StatisticKind

__all__ = ["Answer", "Found", "StreamState", "answer_queries", "not_compared", "summed_cells"]

_KINDS = (StatisticKind.UNITS, StatisticKind.COUNT, StatisticKind.SUM)
_ADDING = (AggregateFunction.ROWS, AggregateFunction.SUM)


class Found(enum.StrEnum):
    """How a query of a stream was answered."""

    SYNOPSIS = "synopsis"
    """The synopsis passed a comparison with the data, and answers."""

    MEASURED = "measured"
    """It did not: the answer was measured, and is in the synopsis from now on."""

    NOT_COMPARED = "not_compared"
    """The synopsis answers, and nothing was compared: all updates or all comparisons are used up."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one query, in integer units of the cells, and its standard error by the law of the noise."""

    found: Found
    value: int
    standard_error: float | None


@dataclass(slots=True, repr=False)
class StreamState:
    """A stream between two requests: the secret noise of its threshold, updates that are left, and its synopsis.

    The synopsis is None before the cells are measured. No readable repr.
    """

    threshold: NoisyThreshold
    left: int
    synopsis: Synopsis | None


def not_compared(synopsis: Synopsis, cells: Cells) -> Answer:
    """What a synopsis says of a query, without a look at rows."""
    return Answer(Found.NOT_COMPARED, round(synopsis.total(cells)), synopsis.standard_error(cells))


def summed_cells(core: CoreStatistics) -> Statistic | None:
    """The one sum of each public cell of a core, of which any cells add up; None for a core that is anything else.

    Units that are counted once in each of several cells do not add up, and neither do values that are counted once.
    """
    if core.keys.domain is None or core.choice is not None or core.levels or core.norms:
        return None
    if len(core.statistics) != 1 or len(core.estimates) != 1 or core.estimates[0].kind not in _ADDING:
        return None
    (statistic,) = core.statistics
    if statistic.kind not in _KINDS or statistic.coordinates != 1 or statistic.norm is not None:
        return None
    return None if statistic.distinct else statistic


def answer_queries(
    core: CoreStatistics,
    noise: StreamNoise,
    state: StreamState,
    exact: Exact,
    queries: Sequence[Cells],
    *,
    tolerance: int,
    version: str,
    bits: BitSource,
) -> tuple[list[Answer], StreamState]:
    """The answers to queries in their order, and the state after them.

    Requires: one unit changes all cells of the core together by `noise.change` at most in L1; everything is charged.
    Errors: ExecutionFailed for sums that the plan rules out.
    """
    statistic = summed_cells(core)
    assert statistic is not None
    assert statistic.sensitivity.l1 <= noise.change
    true = counts_by_place(core, exact)
    synopsis = state.synopsis
    if synopsis is None:
        sums = gateway.perturb(noise.cells(core.name, statistic), true.reshape(-1, 1), bits).sums[:, 0]
        synopsis = Synopsis(version, sums.astype(np.float64), noise.cell_variance, noise.piece_variance)
    run = SparseRun(noise.gate, state.threshold, state.left)
    said = []
    for cells in queries:
        if run.left < 1:
            said.append(not_compared(synopsis, cells))
            continue
        told, truth = round(synopsis.total(cells)), int(true[cells].sum())
        if not _is_off(truth - told, run, tolerance, bits):
            said.append(Answer(Found.SYNOPSIS, told, synopsis.standard_error(cells)))
            continue
        labels = labels_of(cells)
        pieces = integers([int(true[labels == piece].sum()) for piece in range(int(labels.max()) + 1)])
        values = _measured(noise, core, statistic, pieces, bits)
        said.append(Answer(Found.MEASURED, values[0], noise.piece_variance**0.5))
        update = Measured(runs_of(cells), tuple(values))
        synopsis = synopsis.updated(update, version=version, size=max(abs(values[0] - told), tolerance, 1))
    return said, StreamState(run.threshold, run.left, synopsis)


def _is_off(distance: int, run: SparseRun, tolerance: int, bits: BitSource) -> bool:
    """Whether the synopsis is too low, and else whether it is too high: two comparisons of one session.

    The correction that a run adds to thresholds is taken off again: what it tolerates is `tolerance` and noise.
    """
    limit = tolerance - run.mechanism.correction
    return any(gateway.compare(run, integers([side * distance - limit]), bits) for side in (1, -1))


def _measured(
    noise: StreamNoise, core: CoreStatistics, statistic: Statistic, pieces: Integers, bits: BitSource
) -> list[int]:
    """The noisy sums of the pieces of an update."""
    sums = gateway.perturb(noise.pieces(core.name, statistic), pieces.reshape(-1, 1), bits).sums[:, 0]
    return [int(value) for value in sums.tolist()]
