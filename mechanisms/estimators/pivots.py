"""Intervals of what is not a ratio of linear forms: pure noise with nearly known weights. See products.md.

A quantity theta of exact sums m is written so that h(theta, nu) . m = 0 at its true value, with weights h = h0 - theta
h1 that depend on nuisances nu (means, variances) to second order only. The same weights on the noisy sums are then
pure noise, whatever the sums are; the true nuisances lie in a box of known probability around the noisy ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from mechanisms.estimators.forms import per_row
from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Measurement
from mechanisms.ratios import ratio_bounds

__all__ = ["Box", "Change", "Pivot", "Rows", "mean_within", "rows_of", "solved"]

Change = tuple[Floats, Floats]
"""By how much nuisances move weights: the greatest absolute factor of each cell, and the weights that it multiplies."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Noisy sums of each cell, in rows, and their measurement: cells x coordinates."""

    measurement: Measurement
    values: Floats
    scale: float
    """Rows that one step of the measurement's grid is worth."""

    def total(self, weights: Floats) -> Floats:
        """A weighted sum of each cell."""
        result: Floats = (self.values * weights).sum(axis=-1)
        return result

    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """What the noise of a weighted sum exceeds with probability at most alpha, in rows.

        A norm of the weights: symmetric log-concave noise (Meyer and Reisner 1991), with its rounding on top.
        """
        signed = np.broadcast_to(weights, self.values.shape)
        if self.measurement.mixed:
            together: Floats = self.measurement.signed_quantile(signed, alpha) * self.scale
            return together
        sizes = np.abs(signed)
        greatest = sizes.max(axis=-1, keepdims=True)
        shapes = np.maximum(np.where(greatest > 0, sizes / np.where(greatest > 0, greatest, 1.0), 1.0), 1e-12)
        result: Floats = self.measurement.quantile(shapes, alpha) * greatest[:, 0] * self.scale
        return result

    def deviation(self, weights: Floats) -> Floats:
        """The standard deviation of the noise of a weighted sum, in rows."""
        result: Floats = np.sqrt(self.measurement.variances(np.broadcast_to(weights, self.values.shape)))
        return result * self.scale


def rows_of(measurement: Measurement, noisy: Integers) -> Rows:
    """Noisy sums in rows."""
    scale = float(measurement.grid * per_row(measurement.statistic))
    return Rows(measurement, noisy.astype(np.float64) * scale, scale)


@dataclass(frozen=True, slots=True)
class Box:
    """An estimate of each cell with an interval that holds the true value; `reach` is the greater distance."""

    value: Floats
    low: Floats
    high: Floats

    @property
    def reach(self) -> Floats:
        """How far the true value is away at most."""
        result: Floats = np.maximum(self.high - self.value, self.value - self.low)
        return result


@dataclass(frozen=True, slots=True)
class Pivot:
    """Weights of each cell (h0 - theta h1), `slope` = h1 . noisy sums, and what the box of nuisances changes of both.

    Where theta is a sum of its own, not a ratio, h1 is zero and `slope` one.
    """

    top: Floats
    bottom: Floats
    slope: Floats
    top_changes: Sequence[Change] = field(default=())
    bottom_changes: Sequence[Change] = field(default=())


def mean_within(rows: Rows, top: Floats, bottom: Floats, alpha: float) -> Box:
    """A ratio of linear forms that lies in [0, 1]: Fieller's set."""
    found = rows.values / rows.scale
    low, high, known = ratio_bounds(found, top, bottom, partial(rows.measurement.signed_quantile, alpha=alpha))
    low = np.where(known, np.clip(low, 0, 1), 0.0)
    high = np.where(known, np.clip(high, 0, 1), 1.0)
    count = np.maximum(rows.total(bottom), 1e-100)
    return Box(np.clip(rows.total(top) / count, low, high), low, high)


def solved(rows: Rows, pivot: Pivot, alpha: float) -> tuple[Floats, Floats, Floats, Floats, npt.NDArray[np.bool_]]:
    """The value of theta, the ends of its interval, its standard error, and where there are ends at all.

    With x = theta - value, |x| slope <= q(h0 - theta h1) + changes, all of which grow with |x| at most as fast as q(h1)
    and the changes of h1 do; a second step narrows that by interpolating q, which is convex, from above.
    """
    there = pivot.slope > 0
    slope = np.where(there, pivot.slope, 1.0)
    value = rows.total(pivot.top) / slope
    weights = pivot.top - value[:, None] * pivot.bottom
    first, spread = rows.quantile(weights, alpha), rows.quantile(pivot.bottom, alpha)
    top, bottom = _changed(rows, pivot.top_changes, alpha), _changed(rows, pivot.bottom_changes, alpha)
    fixed = top + np.abs(value) * bottom
    room = slope - spread - bottom
    known = there & (room > 1e-9 * slope)
    room = np.where(known, room, 1.0)
    reach = (first + fixed) / room
    ends = []
    for sign in (-1.0, 1.0):
        at = pivot.top - (value + sign * reach)[:, None] * pivot.bottom
        rise = (rows.quantile(at, alpha) - first) / np.maximum(reach, np.finfo(float).tiny)
        rise = np.clip(rise, -spread, spread)
        ends.append(value + sign * np.minimum(reach, (first + fixed) / np.where(known, slope - rise - bottom, 1.0)))
    return value, ends[0], ends[1], rows.deviation(weights) / slope, known


def _changed(rows: Rows, changes: Sequence[Change], alpha: float) -> Floats:
    """The most that the changes move a weighted sum: its value, and its noise."""
    if not changes:
        return np.zeros(len(rows.values))
    moved = np.zeros(len(rows.values))
    spread = np.zeros_like(rows.values)
    for factor, weights in changes:
        moved += factor * np.abs(rows.total(weights))
        if rows.measurement.mixed:
            # Signs matter there: a quantile is a norm, so that those of the parts are enough.
            moved += factor * rows.quantile(weights, alpha)
        else:
            spread += factor[:, None] * np.abs(weights)
    result: Floats = moved + (0.0 if rows.measurement.mixed else rows.quantile(spread, alpha))
    return result
