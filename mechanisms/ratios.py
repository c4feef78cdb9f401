"""Intervals for ratios of noisy sums, from the quantile of their noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats

__all__ = ["ratio_bounds"]


def ratio_bounds(
    noisy: Floats, top: Floats, bottom: Floats, quantile: Callable[[Floats], Floats]
) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Low and high ends for the ratio of two linear forms of the same exact sums, and where there are any.

    A ratio r is in the set when |top - r bottom|, applied to the noisy sums, is within the quantile of its own noise
    (Fieller 1954): exact at every sample size, no approximation of a ratio by a normal. The quantile q(w) of
    the noise of weights w, of any sign, is homogeneous and convex along lines, so with D the noisy denominator the set
    ends within q(top - r0 bottom) / (D - q(bottom)) of r0, and a second step narrows it by interpolating q from above.

    Shape: `noisy` cells x coordinates; `top` broadcasts against it; `bottom` one weight per coordinate.
    Ensures: the ends enclose the set. Where D is within its own noise there is no bound: the flag is False there.
    """
    spread = quantile(np.broadcast_to(bottom, noisy.shape))
    denominator = noisy @ bottom
    known = denominator > spread * (1 + 1e-9)
    safe = np.where(known, denominator, 1.0)
    room = np.where(known, denominator - spread, 1.0)
    ratio = (noisy * top).sum(axis=-1) / safe
    first = quantile(top - ratio[:, None] * bottom)
    ends = []
    for sign in (-1.0, 1.0):
        reach = first / room
        beyond = quantile(top - (ratio + sign * reach)[:, None] * bottom)
        slope = (beyond - first) / np.maximum(reach, np.finfo(float).tiny)
        # The slope of a convex q is at most q(bottom); a larger one is a rounding error of the difference.
        slope = np.clip(slope, -spread, spread)
        ends.append(ratio + sign * np.minimum(reach, first / np.where(known, denominator - slope, 1.0)))
    return ends[0], ends[1], known
