"""Where a curve with one valley is least."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["least_place"]

_POINTS = 480
_RATIO = (math.sqrt(5) - 1) / 2


def least_place(curve: Callable[[float], float], low: float, high: float) -> float:
    """The place in [low, high] where the curve is least, to about ten digits: a grid, then golden section around its
    best point.

    Requires: low below high, one valley between them. It proposes; a caller whose result must hold decides by itself.
    """
    step = (high - low) / _POINTS
    best = min((low + step * index for index in range(_POINTS + 1)), key=curve)
    low, high = best - step, best + step
    left, right = high - _RATIO * (high - low), low + _RATIO * (high - low)
    at_left, at_right = curve(left), curve(right)
    for _ in range(60):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _RATIO * (high - low)
            at_left = curve(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _RATIO * (high - low)
            at_right = curve(right)
    return (low + high) / 2
