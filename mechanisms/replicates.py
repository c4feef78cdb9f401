"""Simulated answers: released sums with fresh noise on top, for the error of what is computed from several of them.

No true value is near: the noise lies around numbers that were released already, so this module alone has a bit source
of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechanisms.estimates import simulate_column
from mechanisms.interval import Floats
from mechanisms.noisy_sums import NoisySums
from mechanisms.randomness import BitSource, SystemBits
from privacy.release import ReleasedColumn

__all__ = ["NUMBERS_MAX", "SPREAD_MAX", "approximate_replicates", "simulate"]

NUMBERS_MAX = 2_000_000
"""Most simulated numbers of one table, over all draws: 16 MB, and a few hundredths of a second."""

_CELLS_MAX = 200_000

SPREAD_MAX = 2.0**36
"""Widest noise (in units of its grid) that is simulated. Wider noise is drawn in exact arithmetic, a thousand times
slower: at the smallest price one query would keep the server busy for minutes with error bars."""

_BITS = SystemBits()


def simulate(sums: Sequence[NoisySums], draws: int, *, bits: BitSource = _BITS) -> dict[str, Floats]:
    """Simulated values of each estimate (draws x cells, NaN where undefined); those of one statistic share its noise.

    There are fewer draws than asked where more than `NUMBERS_MAX` numbers would be needed, and none for estimates of
    very wide noise or of very many cells.
    """
    cells = max((len(one.values) for one in sums), default=0)
    if not cells or cells > _CELLS_MAX:
        return {}
    draws = min(draws, NUMBERS_MAX // (cells * sum(one.values.shape[1] for one in sums)))
    columns: dict[str, Floats] = {}
    for one in sums:
        if draws < 1 or not one.estimates or one.measurement.variance() > SPREAD_MAX**2:
            continue
        noisy = one.measurement.replicated(one.values, draws, bits)
        for estimate in one.estimates:
            columns[estimate.name] = simulate_column(one.measurement, estimate, noisy)
    return columns


def approximate_replicates(column: ReleasedColumn, draws: int, *, bits: BitSource = _BITS) -> Floats:
    """Draws of the column's values with normal errors of its standard errors (draws x rows, NaN where unknown).

    For releases that were stored without their sums (version 1). Errors of different columns are independent here,
    which overstates or understates the spread of their ratio.
    """
    values = np.array([np.nan if v is None else float(v) for v in column.numbers])
    errors = np.array([np.nan if e is None else float(e) for e in column.standard_errors])
    draws = max(1, min(draws, NUMBERS_MAX // max(1, len(values))))
    # Sum of twelve uniform numbers: normal enough for an error bar, and cheap.
    words = bits.words(12 * draws * len(values)).reshape(12, draws, len(values))
    normal = (words >> np.uint64(11)).astype(np.float64).sum(axis=0) / 2.0**53 - 6.0
    result: Floats = values + errors * normal
    return result
