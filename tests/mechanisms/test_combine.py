"""Linear forms of noisy sums: exact whatever their factors are, also over no cell and over zeros alone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mechanisms.estimators.forms import combine


@pytest.mark.parametrize("rows", [[], [[0, 0]], [[1, -1]], [[3, 5]]])
@pytest.mark.parametrize("factor", [1, 2**40, 2**62, 2**90])
def test_large_factors_are_exact(rows: list[list[int]], factor: int) -> None:
    """Shows that a question of which no group is shown does not fail because its sums have a wide range."""
    noisy = np.array(rows, dtype=np.int64).reshape(len(rows), 2)
    tops, bottom = combine(noisy, (Fraction(factor), Fraction(-factor, 3)))
    assert [Fraction(int(top), bottom) for top in tops] == [factor * (3 * a - b) * Fraction(1, 3) for a, b in rows]
