"""From a tally of reports to shares with error bars. Reads reports only: it costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from mechanisms.local.draws import Places
from mechanisms.local.encoder import Floats, LocalEncoder
from mechanisms.local.postprocess import Postprocess, postprocess

__all__ = ["REPORTS_MIN", "Estimates", "estimate"]

REPORTS_MIN = 100
"""Fewer reports get no interval: its normal approximation is not good enough."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Shares of the values among the reports, one of each array for each value.

    `shares` are after post-processing by `way`; `raw` unbiased; `standard_errors`, `lows` and `highs` those of the
    raw ones, the interval held to [0, 1]. All of them are of noise alone: who answers is not sampled here.
    """

    shares: Floats
    raw: Floats
    standard_errors: Floats
    lows: Floats | None
    highs: Floats | None
    way: Postprocess
    risks: dict[Postprocess, float]
    reports: int
    confidence: float


def estimate(
    encoder: LocalEncoder, tally: Places, reports: int, *, way: Postprocess, confidence: float = 0.95
) -> Estimates:
    """Reads a tally. Requires: at least one report; tally of that encoder.

    The interval of a share is the set of shares f that a two-sided test does not reject with the variance that f
    implies (Wilson's score interval: the variance is a line in f).
    """
    assert reports >= 1
    assert tally.shape == (encoder.tally_size,)
    raw = encoder.shares(tally, reports)
    processed = postprocess(raw, way)
    lows = highs = None
    if reports >= REPORTS_MIN:
        width = NormalDist().inv_cdf((1 + confidence) / 2) ** 2 / reports
        middle = raw.values + width * raw.slope / 2
        inner = width * (raw.level + raw.slope * raw.values) + (width * raw.slope / 2) ** 2
        half = np.sqrt(np.maximum(inner, 0))
        lows, highs = np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)
    return Estimates(
        shares=processed.values,
        raw=raw.values,
        standard_errors=np.sqrt(np.maximum(raw.variances(), 0)),
        lows=lows,
        highs=highs,
        way=processed.way,
        risks=processed.risks,
        reports=reports,
        confidence=confidence,
    )
