"""The forms of pairs of values: number, two distances from the middles and their product. See gaussian_pairs.md.

With the sums m_ij of b_i(s) b_j(t), in their order, the forms are F m: u0 the number of rows, u1 and u2 the sums of
2s - 1 and 2t - 1, u3 that of their product. F is symmetric but for order and sign, and F'F is four times the identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from mechanisms.interval import Floats
from mechanisms.measurement import root_up

__all__ = ["FORMS", "forms_of", "own_sigmas"]

FORMS = np.array([[1, 1, 1, 1], [-1, -1, 1, 1], [-1, 1, -1, 1], [1, -1, -1, 1]], dtype=np.int64)


def forms_of(weights: Floats) -> Floats:
    """Weights of the sums (rows x coordinates) as weights of the forms, in quarters: sums are F'u / 4."""
    result: Floats = weights @ FORMS.T.astype(np.float64)
    return result


@lru_cache(maxsize=256)
def _own(sigma: Fraction, squares: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    return tuple(root_up(sigma**2 / 16 / square) for square in squares)


def own_sigmas(sigma: Fraction, squares: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """The deviation of each form in steps of four units of the sums' grid, rounded up."""
    return _own(sigma, tuple(squares))
