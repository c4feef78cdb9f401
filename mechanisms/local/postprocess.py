"""What raw estimates of shares become once it is known that shares are not negative and add up to one.

All of it reads released reports only, so it costs no privacy. Proof of the risks: local_encoders.md, section 5.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np

from mechanisms.local.encoder import Floats, Shares

__all__ = ["Postprocess", "Processed", "postprocess"]

_ROUNDS = 200
_GRID = 256
_CELLS = 64
"""Raw estimates within this part of a standard error are treated alike by empirical Bayes."""

FITTED_MIN = 32
"""Fewest values to which `auto` fits a prior."""

_PROBES = tuple(range(1, 9))
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""Scatters the bits of places, so that each probe has signs of its own."""


class Postprocess(enum.Enum):
    """How raw estimates are changed."""

    NONE = "none"
    """As they are: unbiased, some negative."""

    NORMALISED = "normalised"
    """Negative ones set to zero, then divided by their sum, as Acharya, Sun and Zhang 2019 do."""

    PROJECTION = "projection"
    """The nearest point of the simplex in Euclidean distance: best where few values have nearly all."""

    EMPIRICAL_BAYES = "empirical_bayes"
    """Posterior means under the prior that fits the raw estimates best: best where many shares are alike."""

    AUTO = "auto"
    """Whichever of none, projection and (from 32 values on) empirical Bayes has the least estimated risk."""


@dataclass(frozen=True, slots=True)
class Processed:
    """Shares, the way that made them, and the estimated risk of each way that was compared: summed squared errors."""

    values: Floats
    way: Postprocess
    risks: dict[Postprocess, float]


def postprocess(raw: Shares, way: Postprocess) -> Processed:
    """The shares by that way. Deterministic; the raw ones stay as they are."""
    match way:
        case Postprocess.NONE:
            return Processed(raw.values, way, {})
        case Postprocess.NORMALISED:
            return Processed(_normalised(raw.values), way, {})
        case Postprocess.PROJECTION:
            return Processed(_projected(raw.values), way, {})
        case Postprocess.EMPIRICAL_BAYES:
            return Processed(_shrunk(raw), way, {})
        case Postprocess.AUTO:
            return _best(raw)
        case _:
            assert_never(way)


def _best(raw: Shares) -> Processed:
    """Stein's unbiased risk estimate of each way: |change|^2 + sum of variances (2 slope of the result - 1)."""
    variances = raw.variances()
    projected = _projected(raw.values)
    # Within its face the projection takes the mean of m numbers away from each of them.
    free = projected > 0
    kept = np.where(free, 1 - 1 / max(int(free.sum()), 1), 0.0)
    found = {
        Postprocess.NONE: (raw.values, np.ones(raw.values.size)),
        Postprocess.PROJECTION: (projected, kept),
    }
    if raw.values.size >= FITTED_MIN:
        shrunk = _shrunk(raw)
        found[Postprocess.EMPIRICAL_BAYES] = (shrunk, _slopes(raw, shrunk))
    risks = {
        way: float(np.sum((values - raw.values) ** 2) + np.sum(variances * (2 * slope - 1)))
        for way, (values, slope) in found.items()
    }
    best = min(risks, key=lambda way: risks[way])
    return Processed(found[best][0], best, risks)


def _normalised(values: Floats) -> Floats:
    clipped = np.maximum(values, 0)
    total = float(clipped.sum())
    return clipped / total if total > 0 else np.full(values.size, 1 / values.size)


def _projected(values: Floats) -> Floats:
    """Source: Duchi, Shalev-Shwartz, Singer and Chandra 2008, figure 1."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, values.size + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    projected: Floats = np.maximum(values - excess[last], 0)
    return projected


def _slopes(raw: Shares, shrunk: Floats) -> Floats:
    """How fast each posterior mean grows with its own raw estimate, the fitted prior moving too.

    Along signs that differ from value to value, the change of the result times the sign is the slope and a sum of
    other entries' effects with signs that cancel (Ramani, Blu and Unser 2008, Theorem 2); a few such ways are averaged.
    """
    step = 0.25 * float(np.sqrt(np.mean(raw.variances())))
    places = np.arange(raw.values.size, dtype=np.uint64)
    total = np.zeros(raw.values.size)
    for way in _PROBES:
        mixed = ((places << np.uint64(8)) + np.uint64(way)) * _ODD
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _ODD
        signs = 1.0 - 2.0 * (mixed >> np.uint64(63)).astype(np.float64)
        moved = replace(raw, values=raw.values + step * signs)
        total += signs * (_shrunk(moved, raw.variances()) - shrunk) / step
    return total / len(_PROBES)


def _shrunk(raw: Shares, variances: Floats | None = None) -> Floats:
    """Posterior means, normalised.

    Raw estimates are taken as normal around the shares with one variance, the mean of theirs; the prior is on a grid,
    fitted by expectation and maximisation. Source: Robbins 1956; Kiefer and Wolfowitz 1956.
    """
    deviation = float(np.sqrt(np.mean(raw.variances() if variances is None else variances)))
    top = min(max(float(raw.values.max()), 0.0) + deviation, 1.0)
    # Finer near zero, where most shares of a large domain are.
    grid = top * np.linspace(0, 1, _GRID) ** 2
    step = deviation / _CELLS
    held = np.clip(raw.values, -6 * deviation, top + 6 * deviation)
    cells, where, counts = np.unique(np.round(held / step), return_inverse=True, return_counts=True)
    likelihood = np.exp(-0.5 * ((cells[:, None] * step - grid[None, :]) / deviation) ** 2)
    likelihood = np.maximum(likelihood, 1e-300)
    prior = np.full(grid.size, 1 / grid.size)
    for _ in range(_ROUNDS):
        weights = counts / (likelihood @ prior)
        prior = prior * (weights @ likelihood) / raw.values.size
    mean = (likelihood @ (prior * grid)) / (likelihood @ prior)
    total = float(np.sum(counts * mean))
    scaled: Floats = (mean / total)[where] if total > 0 else np.full(raw.values.size, 1 / raw.values.size)
    return scaled
