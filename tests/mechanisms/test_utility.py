"""Errors of averages and variances on the Adult table against the reference values of the vectors."""

from __future__ import annotations

import csv
import json
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from benchmarks.value_bounds import measure
from mechanisms.calibrate import Price, calibrate
from mechanisms.families import NoiseFamily
from mechanisms.release import release
from privacy.aggregate import AggregateFunction
from privacy.statistic import Estimate
from tests.mechanisms.support import SeededBits, bernstein, cells_core, moments, same_cells

FOLDER = Path(__file__).parents[1] / "vectors"
VECTORS = json.loads((FOLDER / "avg_variance_error.json").read_text())["vectors"]
SEEDS = json.loads((FOLDER / "auto_avg_error.json").read_text())["vectors"]
RELEASES = 4_000


def column(name: str) -> np.ndarray:
    """A column of the Adult table. Skips where the file is not given."""
    path = os.environ.get("NOISEGATE_ADULT_CSV")
    if not path:
        pytest.skip("NOISEGATE_ADULT_CSV is not set")
    with Path(path).open(newline="") as file:
        rows = csv.DictReader(file)
        names = {"".join(filter(str.isalnum, field)).lower(): field for field in rows.fieldnames or []}
        field = names["".join(filter(str.isalnum, name)).lower()]
        return np.array([int(float(row[field])) for row in rows])


@pytest.mark.sparse(4)
@pytest.mark.adult
@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['col']}-{v['width']}-{v['eps']}")
def test_errors_reach_the_vectors(vector: dict) -> None:
    """Rows 9 and 30: over 4,000 releases the root mean square error of average and variance is the reference's, within
    10 per cent, and below those of the textbook constructions: at epsilon 1 a 2.5th and a 5th of the textbook's own.

    Of capital gain, whose mean is near the lower end of bounds up to 100,000, half and a third: the noisy sum alone
    has that error at the whole price, and the textbook gives it half.
    """
    x = np.clip(column(vector["col"]), 0, vector["width"])
    width = int(vector["width"])
    price = Price(NoiseFamily.LAPLACE, Fraction(str(vector["eps"])), Fraction(0))
    average, variance = (
        Estimate("a", AggregateFunction.AVERAGE, "m"),
        Estimate("v", AggregateFunction.VARIANCE_POPULATION, "m"),
    )
    for degree, kind, estimate, truth in (
        (1, "avg", average, x.mean()),
        (2, "avg", average, x.mean()),
        (2, "variance", variance, x.var()),
    ):
        core = cells_core([moments(degree=degree, width=width)], [estimate], RELEASES)
        sums = {f"m_{i}": part for i, part in enumerate(bernstein(x, width=width, degree=degree))}
        exact = same_cells(core, sums, RELEASES)
        table = release(core, calibrate([core], price), exact, bits=SeededBits(81), confidence=Fraction(95, 100))
        errors = np.array(table.columns[1].values, dtype=float) - truth
        reached = float(np.sqrt((errors**2).mean()))
        reference = vector[kind]["barycentric" if degree == 1 else "bernstein2"][0]
        assert reached == pytest.approx(reference, rel=0.1)
        others = [rmse for name, (rmse, _) in vector[kind].items() if name.startswith(("seed", "centred"))]
        assert reached < min(others)
        if vector["eps"] == 1 and (kind, degree) != ("avg", 2):
            (textbook,) = [rmse for name, (rmse, _) in vector[kind].items() if name.startswith("seed")]
            average_part, variance_part = (1.9, 3) if vector["col"] == "capital-gain" else (2.5, 5)
            assert textbook / reached >= (average_part if kind == "avg" else variance_part)


@pytest.mark.slow
@pytest.mark.adult
@pytest.mark.parametrize("vector", SEEDS, ids=lambda v: f"{v['col']}-{v['eps']}")
def test_chosen_value_bounds_are_no_worse_than_trying_one_after_another(vector: dict) -> None:
    """Averages within bounds that a histogram chose: root mean square and median error are at most the reference's."""
    x = column(vector["col"]).astype(np.float64)
    assert x.mean() == pytest.approx(vector["true_mean"], rel=1e-9)
    reference = tuple(vector["rmse_median"]["seed_auto_avg"])
    found = measure(x, vector["col"].replace("-", "_"), vector["eps"], 200, reference)["chosen"]
    assert found["rmse"] <= reference[0]
    assert found["median"] <= reference[1]
