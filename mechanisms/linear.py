"""Quantiles of sums of independent noise with known weights: the error of what is linear in released numbers.

Few Laplace variables have a closed form, normal ones any number. Sums of more Laplace variables, or of both, have the
saddlepoint approximation of Lugannani and Rice 1980, which is within four per cent of the tail for these laws
(a test compares it with numerical inversion); the tail that is asked for is lowered by five per cent.
"""

from __future__ import annotations

import math

import numpy as np

from mechanisms.interval import Floats, gaussian_two_sided, laplace_sum_quantiles

__all__ = ["upper_normal", "weighted_quantiles"]

_FEW = 3
_STEPS = 30
_ROOM = 0.95
_ALONE = 64
"""Up to so many numbers they are taken one by one: to begin with arrays takes longer than the work itself."""

_ERFC = (
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
    0.17087277,
)  # fmt: skip
"""Chebyshev's fit of the complementary error function (Press et al. 1992, 6.2): within 1.2e-7 of it, relatively."""


def _erfc(x: Floats) -> Floats:
    """The complementary error function of numbers that are not negative."""
    t = 1 / (1 + x / 2)
    result: Floats = t * np.exp(np.polynomial.polynomial.polyval(t, _ERFC) - x**2)
    return result


def upper_normal(x: Floats) -> Floats:
    """P(a standard normal > x), within 1.2e-7 of it, relatively."""
    beyond = _erfc(np.abs(x) / math.sqrt(2)) / 2
    return np.where(x >= 0, beyond, 1 - beyond)


def weighted_quantiles(
    laplace: Floats,
    variance: Floats,
    bounded: Floats,
    alpha: float,
    *,
    times: Floats | None = None,
    wider: float = 1.0,
) -> Floats:
    """The t that |sum| exceeds with probability at most alpha, one per row.

    `times` says how many variables each column of `laplace` and of `bounded` stands for; None for one each. `wider` is
    by how much the part without bounded errors has to reach further than one look at it does (`Measurement.widening`).

    Shape: `laplace` has the scales (weight times b) of independent Laplace variables, rows x variables, not negative;
    `variance` that of a normal part of each row; `bounded` the greatest absolute values of rounding errors, rows x
    errors.
    Ensures: the bounded errors are contained, either at their greatest or as if normal with the variance of their
    greatest (a bounded variable has no heavier tails: Hoeffding 1963), whichever is narrower.
    """
    if wider > 1:
        # At every one of many looks nothing is known of bounded errors but their greatest.
        assert times is None
        many: Floats = _quantiles(laplace, variance, alpha) * wider + bounded.sum(axis=-1)
        return many
    counted = 1.0 if times is None else times
    squares = (bounded**2 * counted).sum(axis=-1)
    if times is not None:
        repeated: Floats = np.minimum(
            _repeated(laplace, variance, times, alpha) + (bounded * counted).sum(axis=-1),
            _repeated(laplace, variance + squares, times, alpha),
        )
        return repeated
    narrow: Floats = np.minimum(
        _quantiles(laplace, variance, alpha) + bounded.sum(axis=-1), _quantiles(laplace, variance + squares, alpha)
    )
    return narrow


def _repeated(laplace: Floats, variance: Floats, times: Floats, alpha: float) -> Floats:
    """`_quantiles` of variables of which so many have each scale: rows of the same weights up to a factor once."""
    if not laplace.shape[1]:
        normal: Floats = gaussian_two_sided(alpha) * np.sqrt(variance)
        return normal
    size = np.sqrt(variance + 2 * (laplace**2 * times).sum(axis=-1))
    safe = np.where(size > 0, size, 1.0)
    both = np.round(np.concatenate([laplace, np.sqrt(variance)[:, None]], axis=-1) / safe[:, None], 12)
    distinct, place = np.unique(both, axis=0, return_inverse=True)
    found = _saddlepoint(distinct[:, :-1], distinct[:, -1] ** 2, alpha * _ROOM, times)
    result: Floats = found[place.reshape(-1)] * size
    return result


def _quantiles(laplace: Floats, variance: Floats, alpha: float) -> Floats:
    normal: Floats = gaussian_two_sided(alpha) * np.sqrt(variance)
    busy = laplace.any(axis=0)
    scales = laplace[:, busy]
    if not scales.shape[1]:
        return normal
    if scales.shape[1] <= _FEW and not variance.any():
        few: Floats = laplace_sum_quantiles(scales, alpha)
        return few
    # Rows with the same weights, up to a factor, have the same law, up to that factor.
    size = np.sqrt(variance + 2 * (scales**2).sum(axis=-1))
    safe = np.where(size > 0, size, 1.0)
    both = np.round(np.concatenate([np.sort(scales, axis=-1), np.sqrt(variance)[:, None]], axis=-1) / safe[:, None], 12)
    distinct, place = np.unique(both, axis=0, return_inverse=True)
    result: Floats = _saddlepoint(distinct[:, :-1], distinct[:, -1] ** 2, alpha * _ROOM)[place.reshape(-1)] * size
    return result


def _saddlepoint(scales: Floats, variance: Floats, alpha: float, times: Floats | float = 1.0) -> Floats:
    """By bisection over the tilt: K(s) = v s^2 / 2 - sum of log(1 - b^2 s^2), and the tail at K'(s) falls with s."""
    if scales.size <= _ALONE:
        counts = np.broadcast_to(times, scales.shape[1:]).tolist()
        rows = zip(scales.tolist(), variance.tolist(), strict=True)
        return np.array([_saddlepoint_of_one(row, counts, normal, alpha) for row, normal in rows])
    greatest = scales.max(axis=-1)
    # Beyond this tilt even Chernoff's bound exp(K(s) - s K'(s)) is far below alpha.
    most = np.minimum(np.where(greatest > 0, (1 - 1e-9) / np.where(greatest > 0, greatest, 1), np.inf), 60.0)
    low, high = np.zeros_like(most), most
    point = np.zeros_like(most)
    for _ in range(_STEPS):
        tilt = (low + high) / 2
        squared = (scales * tilt[:, None]) ** 2
        cumulant = variance * tilt**2 / 2 - (times * np.log1p(-squared)).sum(axis=-1)
        point = variance * tilt + (times * 2 * scales * (scales * tilt[:, None]) / (1 - squared)).sum(axis=-1)
        curvature = variance + (times * 2 * scales**2 * (1 + squared) / (1 - squared) ** 2).sum(axis=-1)
        r = np.sqrt(np.maximum(2 * (tilt * point - cumulant), 1e-300))
        u = tilt * np.sqrt(curvature)
        density = np.exp(-(r**2) / 2) / math.sqrt(2 * math.pi)
        tail = _erfc(r / math.sqrt(2)) / 2 + density * (1 / u - 1 / r)
        above = 2 * tail > alpha
        low, high = np.where(above, tilt, low), np.where(above, high, tilt)
    return point


def _saddlepoint_of_one(scales: list[float], times: list[float], variance: float, alpha: float) -> float:
    """`_saddlepoint` of one row, number by number: a search for a price asks for hundreds of single rows."""
    greatest = max(scales)
    low, high, point = 0.0, min((1 - 1e-9) / greatest, 60.0) if greatest > 0 else 60.0, 0.0
    terms = [(scale, 2 * count * scale**2, count) for scale, count in zip(scales, times, strict=True) if scale > 0]
    if not terms and variance <= 0:
        return point
    for _ in range(_STEPS):
        tilt = (low + high) / 2
        cumulant, slope, curvature = variance * tilt**2 / 2, variance, variance
        for scale, double, count in terms:
            squared = (scale * tilt) ** 2
            rest = 1 - squared
            cumulant -= count * math.log1p(-squared)
            slope += double / rest
            curvature += double * (1 + squared) / rest**2
        point = slope * tilt
        r = math.sqrt(max(2 * (tilt * point - cumulant), 1e-300))
        density = math.exp(-(r**2) / 2) / math.sqrt(2 * math.pi)
        tail = _erfc_of(r / math.sqrt(2)) / 2 + density * (1 / (tilt * math.sqrt(curvature)) - 1 / r)
        if 2 * tail > alpha:
            low = tilt
        else:
            high = tilt
    return point


def _erfc_of(x: float) -> float:
    """`_erfc` of one number."""
    t = 1 / (1 + x / 2)
    value = 0.0
    for part in reversed(_ERFC):
        value = part + value * t
    return t * math.exp(value - x**2)
