"""The kinds of integer sums that noise is added to.

Code that distinguishes them names all and ends in `assert_never`: mypy then finds each place that a new kind needs.
"""

from __future__ import annotations

import enum

__all__ = ["StatisticKind"]


class StatisticKind(enum.Enum):
    """What the integer sums of a statistic are."""

    UNITS = "units"
    """One coordinate: privacy units present in the cell."""

    COUNT = "count"
    """One coordinate: rows, bounded per unit."""

    SUM = "sum"
    """One coordinate: sum of T, bounded per unit."""

    MOMENTS = "moments"
    """Bernstein sums of T in [0, W]: degree 1 has (W-T, T), degree 2 has ((W-T)^2, 2T(W-T), T^2); with
    `counts_nulls` one more coordinate W^degree for each row whose argument is NULL. Each row adds a vector of
    non-negative integers whose sum is exactly W^degree. With `raised` or `lowered` the sum and the average of T are
    bounded in two ways: those coordinates say how far the clipped sum lies above or below the scaled one."""
