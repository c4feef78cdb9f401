"""Error bounds of noisy numbers: quantiles and variances of weighted noise.

An interval covers the noise alone, not what clipping and contribution bounds cut off. Arrays of weights have
one row per cell and one column per coordinate of the statistic; the noise of the coordinates is independent.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from privacy.conversions import gaussian_quantile
from privacy.numbers import float_up

__all__ = [
    "MOST_FRACTIONS",
    "Floats",
    "gaussian_two_sided",
    "laplace_sum_quantile",
    "laplace_sum_quantiles",
    "laplace_sum_tail",
    "laplace_sum_tail_inverted",
    "rounded_gaussian_variance",
    "rounded_laplace_variance",
]

Floats = npt.NDArray[np.float64]

_APART = 1e-3
_GRID = 33


@lru_cache(maxsize=256)
def gaussian_two_sided(alpha: float) -> float:
    """The z for which a standard normal leaves [-z, z] with probability alpha, rounded up."""
    return float_up(gaussian_quantile(1 - Fraction(alpha) / 2))


def laplace_sum_quantile(weights: Floats, alpha: float) -> Floats:
    """The t for which |sum of weights * Z| is above t with probability at most alpha; Z standard Laplace, independent.

    Shape: weights are rows of coordinates, not negative, the greatest of each row positive; one t per row.
    Ensures: at most a few per mille too large, never too small: equal weights are moved apart upwards, because the
    closed form (partial fractions of the characteristic function) divides by their differences.
    """
    scaled, shares, greatest = _partial_fractions(weights)
    low = np.zeros(scaled.shape[:-1])
    # Beyond this the tail of a sum of that many exponentials is below alpha (Chernoff's bound at one half).
    high = scaled[..., -1] * (2 * math.log(1 / alpha) + 4 * scaled.shape[-1])
    for _ in range(60):
        middle = (low + high) / 2
        above = (shares * np.exp(-middle[..., None] / scaled)).sum(axis=-1) > alpha
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    result: Floats = high * greatest[..., 0]
    return result


def laplace_sum_tail(weights: Floats, reach: float) -> Floats:
    """P(|sum of weights * Z| > reach), Z standard Laplace, independent: at most a few per mille too large.

    Shape: as in `laplace_sum_quantile`.
    """
    scaled, shares, greatest = _partial_fractions(weights)
    result: Floats = np.clip((shares * np.exp(-reach / (scaled * greatest))).sum(axis=-1), 0.0, 1.0)
    return result


def _partial_fractions(weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Weights over the greatest and moved apart, their shares of the tail, and the greatest of each row."""
    greatest = weights.max(axis=-1, keepdims=True)
    scaled = np.maximum(np.sort(weights / greatest, axis=-1), 1e-6)
    for i in range(1, scaled.shape[-1]):
        scaled[..., i] = np.maximum(scaled[..., i], scaled[..., i - 1] * (1 + _APART))
    squares = scaled**2
    shares = np.ones_like(scaled)
    for i in range(scaled.shape[-1]):
        for j in range(scaled.shape[-1]):
            if j != i:
                shares[..., i] *= squares[..., i] / (squares[..., i] - squares[..., j])
    return scaled, shares, greatest


@lru_cache(maxsize=16)
def _three_weights(alpha: float) -> Floats:
    """`laplace_sum_quantile` of (1, x, y) for x and y on a grid of [0, 1]."""
    steps = np.linspace(0, 1, _GRID)
    x, y = np.meshgrid(steps, steps, indexing="ij")
    return laplace_sum_quantile(np.stack([np.ones_like(x), x, y], axis=-1), alpha)


MOST_FRACTIONS = 5
"""Most weights of which partial fractions are taken: of more, and nearly equal ones, floats would cancel."""


def laplace_sum_tail_inverted(weights: Floats, reach: float) -> Floats:
    """P(|sum of weights * Z| > reach) of any number of weights, at least three of them positive.

    The characteristic function is the product of 1 / (1 + w^2 u^2), so that the probability within reach is 2/pi times
    the integral of sin(reach u) / u times it (Gil-Pelaez 1951); on a grid, whose error is far below 1e-6.
    """
    greatest = weights.max(axis=-1, keepdims=True)
    scaled, far = weights / greatest, reach / greatest
    points = (np.arange(_POINTS) + 0.5) * _STEP
    law = 1 / (1 + (scaled[..., None, :] * points[:, None]) ** 2).prod(axis=-1)
    within = 2 / math.pi * (np.sin(far * points) / points * law).sum(axis=-1) * _STEP
    result: Floats = np.clip(1 - within, 0.0, 1.0)
    return result


_POINTS, _STEP = 8_192, 2.0**-7


def laplace_sum_quantiles(weights: Floats, alpha: float) -> Floats:
    """As `laplace_sum_quantile`, fast for very many rows of at most three positive weights.

    Ensures: at most about one per cent too large; interpolated from above in a table that is kept, since the quantile
    is convex in each weight.
    """
    count = weights.shape[-1]
    if count == 1:
        single: Floats = weights[..., 0] * math.log(1 / alpha)
        return single
    ordered = np.sort(weights, axis=-1)
    if count > 3:
        # Weights that are always zero (the NULL rows of an average) come first and do not count.
        if ordered[..., : count - 3].any():
            return laplace_sum_quantile(weights, alpha)
        ordered = ordered[..., count - 3 :]
    greatest = np.maximum(ordered[..., -1], np.finfo(float).tiny)
    x = ordered[..., -2] / greatest * (_GRID - 1)
    y = (ordered[..., 0] / greatest if ordered.shape[-1] == 3 else np.zeros_like(greatest)) * (_GRID - 1)
    table = _three_weights(alpha)
    i, j = np.minimum(x.astype(np.intp), _GRID - 2), np.minimum(y.astype(np.intp), _GRID - 2)
    p, q = x - i, y - j
    value = (1 - p) * ((1 - q) * table[i, j] + q * table[i, j + 1])
    value += p * ((1 - q) * table[i + 1, j] + q * table[i + 1, j + 1])
    result: Floats = value * ordered[..., -1]
    return result


def rounded_laplace_variance(scale: float) -> float:
    """The variance of round(scale * Z), Z standard Laplace: cosh(x/2) / (2 sinh(x/2)^2) at x = 1/scale."""
    half = 0.5 / scale
    if half > 300:
        return 0.0
    return math.cosh(half) / (2 * math.sinh(half) ** 2)


def rounded_gaussian_variance(sigma: float) -> float:
    """The variance of round(sigma * Z), Z standard normal."""
    if sigma > 4:
        return sigma**2 + 1 / 12  # the next term is below e^(-300)
    # E R^2 = sum over j >= 1 of (2j - 1) P(|R| >= j), and |R| >= j when sigma |Z| > j - 1/2.
    return math.fsum((2 * j - 1) * math.erfc((j - 0.5) / (sigma * math.sqrt(2))) for j in range(1, 80))


def two_sided_alpha(confidence: Fraction, cells: int = 1) -> float:
    """The probability that each of `cells` intervals may miss, so that all hold with that confidence (Bonferroni)."""
    if not Fraction(1, 2) <= confidence <= Fraction(9999, 10000):
        raise ValueError("confidence must lie between 0.5 and 0.9999")
    return float(1 - confidence) / cells
