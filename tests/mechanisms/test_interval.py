"""Quantiles of weighted noise against drawn noise and known values."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms.interval import (
    gaussian_two_sided,
    laplace_sum_quantile,
    laplace_sum_quantiles,
    rounded_gaussian_variance,
    rounded_laplace_variance,
    two_sided_alpha,
)
from mechanisms.ratios import ratio_bounds
from mechanisms.samplers import rounded_gaussian, rounded_laplace
from tests.mechanisms.support import SeededBits

WEIGHTS = [(1.0,), (1.0, 1.0), (3.0, 1.0), (1.0, 0.0), (1.0, 1.0, 1.0), (1.0, 0.5, 0.25), (7.0, 7.0, 1.0), (1.0,) * 4]


@pytest.mark.sparse(5)
@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
@pytest.mark.parametrize("alpha", [0.5, 0.05, 0.001])
def test_quantile_of_weighted_laplace(weights: tuple[float, ...], alpha: float) -> None:
    """Of 400,000 drawn sums a share alpha lies outside: never 6 sigma more, and not for a width three per cent
    smaller."""
    scale, count = 2**16, 400_000
    drawn = rounded_laplace(scale=Fraction(scale), count=count * len(weights), bits=SeededBits(51)) / scale
    sums = np.abs(drawn.reshape(count, -1) @ np.array(weights))
    for solve in (laplace_sum_quantile, laplace_sum_quantiles):
        t = float(solve(np.array([weights]), alpha)[0])
        noise = 6 * math.sqrt(alpha / count)
        assert (sums > t).mean() < alpha + noise
        assert (sums > t * 0.97).mean() > alpha - noise


def test_table_is_close_to_the_closed_form() -> None:
    """The table of three weights is never below the closed form by more than its own rounding, nor 2 per cent above."""
    weights = (SeededBits(52).words(6_000).reshape(-1, 3) >> np.uint64(11)) * 2.0**-53
    for alpha in (0.2, 0.05, 0.005):
        exact, quick = laplace_sum_quantile(weights, alpha), laplace_sum_quantiles(weights, alpha)
        assert (quick >= exact * (1 - 1e-9) - 2e-3 * exact).all()
        assert (quick <= exact * 1.02).all()


def test_normal_quantile() -> None:
    """1.96 and its kin, rounded up."""
    for alpha in (0.05, 0.5, 0.0001):
        assert gaussian_two_sided(alpha) == pytest.approx(stats.norm.isf(alpha / 2), rel=1e-12)
        assert gaussian_two_sided(alpha) >= stats.norm.isf(alpha / 2) * (1 - 1e-14)


@pytest.mark.parametrize("scale", [Fraction(1, 64), Fraction(1, 4), Fraction(1), Fraction(5), Fraction(2**20)], ids=str)
def test_variances_of_rounded_noise(scale: Fraction) -> None:
    """The formulas for rounded noise match 400,000 draws within 2.5 per cent, also far below one."""
    for draw, formula in (
        (rounded_laplace(scale=scale, count=400_000, bits=SeededBits(53)), rounded_laplace_variance),
        (rounded_gaussian(sigma=scale, count=400_000, bits=SeededBits(54)), rounded_gaussian_variance),
    ):
        assert formula(float(scale)) == pytest.approx((draw.astype(float) ** 2).mean(), rel=0.025, abs=1e-12)


def test_a_ratio_without_a_denominator_has_no_bounds() -> None:
    """Where the noisy denominator is within its noise the flag is down; elsewhere the ends enclose the ratio."""
    noisy = np.array([[50.0, 50.0], [1.0, 2.0], [-5.0, 3.0], [1000.0, 1.0]])
    low, high, known = ratio_bounds(noisy, np.array([0.0, 1.0]), np.ones(2), lambda w: 5 * np.abs(w).sum(axis=-1))
    assert known.tolist() == [True, False, False, True]
    ratio = noisy[:, 1] / noisy.sum(axis=1)
    assert (low[known] < ratio[known]).all()
    assert (high[known] > ratio[known]).all()


@pytest.mark.parametrize("confidence", [Fraction(0), Fraction(1), Fraction(2, 5), Fraction(99999, 100000)], ids=str)
def test_other_confidences_are_refused(confidence: Fraction) -> None:
    """A confidence is between 0.5 and 0.9999."""
    with pytest.raises(ValueError, match="confidence"):
        two_sided_alpha(confidence)
