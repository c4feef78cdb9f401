"""Second moments of units with several rows: the line that they give, and what held-out rows say of it."""

from __future__ import annotations

import contextlib
import tracemalloc

import duckdb
import numpy as np
import pytest

from engines import design
from engines.design import Design, DesignColumn, Gathered
from engines.handlers.training import _Rows, gathered_rows
from engines.memory import design_row_bytes
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


@pytest.mark.parametrize("clipping", Clipping)
@pytest.mark.parametrize(("numbers", "keys"), [(1, 0), (20, 0), (2, 60)])
def test_rows_take_the_memory_that_is_counted_for_them(
    monkeypatch: pytest.MonkeyPatch, clipping: Clipping, numbers: int, keys: int
) -> None:
    """Shows that reading, encoding and adding up hold no more bytes of a row than `design_row_bytes`, by which models
    are refused before they are charged, and not less than a half of that; whether rows are many of a unit or one."""
    monkeypatch.setattr(design, "_CHUNK_CELLS", 1 << 12)
    rows, names = 16_000, [f"n{place}" for place in range(numbers)]
    names += ["k"] if keys else []
    columns = [DesignColumn(999, keys=False)] * numbers + ([DesignColumn(keys, keys=True)] if keys else [])
    missing = "CASE WHEN i % 7 = 0 THEN NULL ELSE i % 50 END"
    width = 1 + numbers + keys
    for each in (1, 4):
        listed = [f"CAST(i // {each} AS INTEGER) AS u", "CAST(i % 1024 AS INTEGER) AS p"]
        listed += [*(f"{missing} AS {name}" for name in names), "i % 2 AS l"]
        sql = f"SELECT {', '.join(listed)} FROM range({rows}) r(i)"
        kinds = tuple((name, "integer") for name in ("u", "p", *names, "l"))
        asked = _Rows(sql, (), kinds, tuple(columns), DesignColumn(1, False), len(names), 200, clipping, ROW_UNITS)
        with contextlib.closing(duckdb.connect()) as connection:
            gathered_rows(connection, asked)  # what only the first one needs
            tracemalloc.start()
            made = Design(gathered_rows(connection, asked), columns, asked.label, held=200, clipping=clipping, clip=1)
        made.sums(Wanted.GRADIENT, [1] * width)
        made.sums(Wanted.ERRORS, [1] * width)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        counted = rows * design_row_bytes(columns=len(kinds), width=width)
        assert counted / 2 < peak < counted
