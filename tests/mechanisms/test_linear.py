"""Quantiles of weighted sums of noise: compared with numerical inversion of their characteristic functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mechanisms.linear import weighted_quantiles

ALPHAS = (0.5, 0.1, 0.05, 0.01, 0.001, 0.0001)


def tail(scales: np.ndarray[Any, Any], variance: float, reach: float) -> float:
    """P(|sum| > reach) = 1 - 2/pi integral of phi(u) sin(reach u) / u (Gil-Pelaez 1951)."""
    size = math.sqrt(variance + 2 * float((scales**2).sum()))
    scales, variance, reach = scales / size, variance / size**2, reach / size
    u = np.linspace(1e-9, min(4000.0, 12 / math.sqrt(variance) if variance else 4000.0), 2_000_001)
    phi = np.exp(-variance * u**2 / 2)
    for scale in scales:
        phi = phi / (1 + (scale * u) ** 2)
    return float(1 - 2 / math.pi * np.trapezoid(phi * np.sin(reach * u) / u, u))


@pytest.mark.parametrize(
    ("scales", "variance"),
    [
        ([1.0], 0.0),
        ([1.0, 1.0], 0.0),
        ([1.0, 0.3, 2.0], 0.0),
        ([1.0] * 4, 0.0),
        ([1.0, 1.0, 1.0, 3.0], 0.0),
        ([1.0, 0.01, 0.01, 0.01], 0.0),
        ([1.0] * 30, 0.0),
        ([1.0], 2.0),
        ([1.0], 0.1),
        ([1.0, 2.0], 0.01),
        ([1.0, 1.0], 5.0),
    ],
)
@pytest.mark.sparse(8)
def test_a_sum_of_noise_exceeds_its_quantile_no_more_often_than_said(scales: list[float], variance: float) -> None:
    """The tail at the quantile is at most alpha, and not below 0.9 alpha: neither too narrow nor much too wide."""
    one = np.array([scales])
    for alpha in ALPHAS:
        reach = float(weighted_quantiles(one, np.array([variance]), np.zeros((1, 0)), alpha)[0])
        assert 0.9 * alpha - 1e-6 <= tail(np.array(scales), variance, reach) <= alpha * 1.0005 + 1e-6


def test_normal_sums_are_exact_and_rows_are_independent() -> None:
    """No Laplace part: the normal quantile. Rows of one call are what each is by itself, whatever their size."""
    assert weighted_quantiles(np.zeros((1, 0)), np.array([4.0]), np.zeros((1, 0)), 0.05)[0] == pytest.approx(3.919928)
    rows = np.array([[1.0, 2, 3, 4, 5], [2.0, 4, 6, 8, 10], [1.0, 1, 1, 1, 0]])
    together = weighted_quantiles(rows, np.zeros(3), np.zeros((3, 0)), 0.01)
    alone = [float(weighted_quantiles(row[None, :], np.zeros(1), np.zeros((1, 0)), 0.01)[0]) for row in rows]
    assert together.tolist() == pytest.approx(alone, rel=1e-6)
    assert together[1] == pytest.approx(2 * together[0], rel=1e-6)


def test_rounding_errors_are_contained() -> None:
    """At their greatest when there are few, as a normal part when there are many; never left out."""
    zero = np.zeros((1, 0))
    plain = weighted_quantiles(zero, np.array([100.0]), zero, 0.05)[0]
    few = weighted_quantiles(zero, np.array([100.0]), np.array([[0.5]]), 0.05)[0]
    many = weighted_quantiles(zero, np.array([100.0]), np.full((1, 1000), 0.5), 0.05)[0]
    assert plain < few <= plain + 0.5
    assert few < many == pytest.approx(1.959964 * math.sqrt(100 + 250), rel=1e-6)


def test_single_rows_have_the_quantiles_of_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that few numbers, which are taken one by one, have the same quantiles as in arrays, to 14 digits."""
    random = np.random.default_rng(7)
    for columns in (1, 2, 5, 20):
        for alpha in ALPHAS:
            scales = np.where(random.random((1, columns)) < 0.2, 0.0, random.uniform(0, 10, (1, columns)))
            variance = np.where(random.random(1) < 0.5, 0.0, random.uniform(0, 5, 1))
            times, errors = random.integers(1, 50, columns).astype(float), random.uniform(0, 1, (1, columns))
            alone = weighted_quantiles(scales, variance, errors, alpha, times=times)
            with monkeypatch.context() as patch:
                patch.setattr("mechanisms.linear._ALONE", -1)
                arrays = weighted_quantiles(scales, variance, errors, alpha, times=times)
            assert alone == pytest.approx(arrays, rel=1e-14)
