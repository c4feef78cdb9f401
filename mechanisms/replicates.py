"""Simulated errors for releases whose replicates are gone: a stored release keeps its standard errors only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.randomness import BitSource, SystemBits
from privacy.release import ReleasedColumn

__all__ = ["approximate_replicates"]

_DRAWS = 400
_NUMBERS_MAX = 2_000_000
_BITS = SystemBits()


def approximate_replicates(column: ReleasedColumn, *, bits: BitSource = _BITS) -> npt.NDArray[Any]:
    """Draws of the column's values with normal errors of its standard errors (draws x rows, NaN where unknown).

    Post-processing of released numbers: it serves error bars of derived cells and has no part in privacy. Errors of
    different columns are independent here, which overstates or understates the spread of their ratio.
    """
    values = np.array([np.nan if v is None else float(v) for v in column.values])
    errors = np.array([np.nan if e is None else float(e) for e in column.standard_errors])
    draws = max(1, min(_DRAWS, _NUMBERS_MAX // max(1, len(values))))
    # Sum of twelve uniform numbers: normal enough for an error bar, and cheap.
    words = bits.words(12 * draws * len(values)).reshape(12, draws, len(values))
    normal = (words >> np.uint64(11)).astype(np.float64).sum(axis=0) / 2.0**53 - 6.0
    result: npt.NDArray[Any] = values + errors * normal
    return result
