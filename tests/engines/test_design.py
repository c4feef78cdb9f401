"""Second moments of units with several rows: the line that they give, and what held-out rows say of it."""

from __future__ import annotations

import numpy as np
import pytest

from engines.design import Design, DesignColumn, Gathered
from privacy.training import ROW_UNITS, UNIT_WEIGHT, WEIGHT_UNITS, Clipping, Wanted


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_line_is_that_of_the_rows_however_many_a_unit_has(share: float) -> None:
    """Shows that second moments of scaled rows, of one to forty of a unit, have the line on which all rows lie; and
    that held-out rows, each scaled by itself, lie on it too."""
    random = np.random.Generator(np.random.Philox(5))
    counts = random.integers(1, 41, 600)
    x = random.integers(0, 1001, counts.sum())
    gathered = Gathered(
        units=np.repeat(np.arange(600), counts),
        parts=np.repeat(random.integers(0, 1024, 600), counts),
        columns=[x],
        nulls=[np.zeros(len(x), dtype=np.bool_)],
        # In [-1, 1] it is 0.3 x - 0.5.
        label=250 + 300 * (x - 500) // 1000,
        label_null=np.zeros(len(x), dtype=np.bool_),
    )
    number, clip = DesignColumn(1000, keys=False), int(share * ROW_UNITS * 2**0.5) + 1
    made = Design(gathered, [number], number, held=512, clipping=Clipping.INPUTS, clip=clip)
    first, cross, second, *along = made.sums(Wanted.PRODUCTS, [])
    scaled = np.linalg.solve([[first, cross], [cross, second]], along)
    # Rows are whole parts of their unit: of forty rows some hundreds of units each, cut toward zero.
    intercept, slope = scaled * ROW_UNITS / clip
    assert (intercept, slope) == (pytest.approx(-0.5, abs=0.02), pytest.approx(0.3, abs=0.02))
    if share == 1:
        weights = [int(value * WEIGHT_UNITS) for value in (-0.5 * clip / ROW_UNITS, 0.3 * clip / ROW_UNITS)]
        whole, _, _, wrong = made.sums(Wanted.ERRORS, weights)
        assert whole > 200 * UNIT_WEIGHT // 2
        assert wrong < whole / 10_000
