"""Counts that are not negative: the projection against a search, sums that stay, and whole numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mechanisms.nonnegative import nonnegative


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_nearest_with_the_same_sum(seed: int) -> None:
    """Compares with the conditions of the projection on a simplex, and shows sums and whole numbers that stay."""
    numbers = np.random.default_rng(seed).integers(-9, 12, 30)
    total = int(numbers.sum())
    nearest = np.array(nonnegative([float(number) for number in numbers]))
    whole = nonnegative([int(number) for number in numbers])
    assert min(*nearest, *whole) >= 0
    assert sum(whole) == max(0, total)
    assert all(isinstance(number, int) for number in whole)
    if total > 0:
        assert nearest.sum() == pytest.approx(total)
        gone = numbers - nearest
        # All that stay above zero lose one amount, and nothing at zero would have stayed above it.
        assert np.ptp(gone[nearest > 0]) == pytest.approx(0)
        assert (numbers[nearest == 0] <= gone[nearest > 0].max() + 1e-9).all()
    assert np.abs(np.array(whole) - nearest).max() < 1


def test_what_needs_no_change_has_none() -> None:
    """Shows numbers that stay, a sum that is negative, and one number alone."""
    assert nonnegative([3, 0, 7]) == (3, 0, 7)
    assert nonnegative([-3, 1]) == (0, 0)
    assert nonnegative([-3]) == (0,)
    assert nonnegative([5, -2]) == (3, 0)
    assert sum(map(Fraction, nonnegative([5, 4, 4, -2]))) == 11
    assert nonnegative([]) == ()
