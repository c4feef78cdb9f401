"""What SEM says: its value over the whole way, its error and interval, and its error in advance."""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mechanisms.calibrate import Price, calibrate
from mechanisms.estimates import estimate_column, expected_errors, simulate_column
from mechanisms.families import NoiseFamily
from privacy.aggregate import AggregateFunction
from privacy.refusal import Refused
from privacy.statistic import Estimate
from server.services import Services
from sql_rewrite.lift import lift
from tests.journey.clinic import answer_to, attach, open_account, question, services_of, write_files
from tests.journey.fixtures import own_noise
from tests.mechanisms.support import SeededBits, bernstein, moments, scalar_core
from tests.sql_rewrite.datasets import CLINIC

__all__ = ["own_noise"]

SEM = AggregateFunction("standard_error")
ESTIMATE = Estimate("e", SEM, "m")
DRAWS = 4_000
ROWS = 2_000
WIDTH = 100
PRICES = (
    Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(0)),
    Price(NoiseFamily.GAUSSIAN, Fraction(1, 2), Fraction(0)),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def services(home: Path) -> Iterator[Services]:
    """The clinic with an account that may spend much."""
    path = write_files(home / "sources")
    with services_of(home) as started:
        attach(started, path)
        open_account(started.ledger, "anna")
        yield started


def ages(home: Path) -> list[float]:
    with (home / "sources" / "people.csv").open(newline="") as file:
        return [float(row["age"]) for row in csv.DictReader(file)]


@pytest.mark.slow
@pytest.mark.usefixtures("own_noise")
def test_a_question_is_answered_with_the_truth(services: Services, home: Path) -> None:
    """At the largest spend the answer is the standard error of the mean, to a hundredth of itself, and no variance."""
    values = ages(home)
    truth = statistics.pstdev(values) / math.sqrt(len(values))
    asked = question("SELECT SEM(age) AS e, AVG(age) AS a FROM people", "anna", epsilon="100")
    answer = answer_to(services, asked)
    ((value, _),), ((error, _),) = answer["rows"], answer["standard_errors"]
    ((low, _),), ((high, _),) = answer["lows"], answer["highs"]
    assert abs(value - truth) < truth / 100
    assert 0 < error < truth / 100
    assert low <= truth <= high
    assert high - low < truth / 10
    # One statistic holds both, so that SEM beside AVG costs what AVG costs.
    assert len(answer["provenance"]["mechanisms"]) == 1


def test_an_estimate_tells_its_error_in_advance(services: Services) -> None:
    """The dry run lists the error of groups of some sizes."""
    # Rows that no other test asks about: of a stored release the error itself is told.
    told = services.journey.estimate(question("SELECT SEM(age) AS e FROM people WHERE age > 30", "anna"))
    by_rows = next(column["by_rows"] for column in told["columns"] if column["name"] == "e")
    assert [entry["rows"] for entry in by_rows] == [100, 1_000, 10_000]
    assert all(0 < entry["standard_error"] <= entry["standard_error_at_most"] for entry in by_rows)


@pytest.mark.slow
@pytest.mark.parametrize("price", PRICES, ids=lambda price: type(price).__name__)
@pytest.mark.parametrize("shape", ["spread", "narrow"])
def test_error_and_interval_hold(price: Price, shape: str) -> None:
    """Over draws of the noise: intervals cover the truth as often as they say, errors are the spread of the values."""
    source = np.random.default_rng(5)
    t = source.integers(0, WIDTH + 1, ROWS) if shape == "spread" else source.integers(40, 61, ROWS)
    truth = float(np.std(t)) / math.sqrt(ROWS)
    statistic = moments(width=WIDTH)
    (measurement,) = calibrate([scalar_core([statistic], [ESTIMATE])], price).measurements
    exact = np.array(bernstein(t, width=WIDTH, degree=2), dtype=np.int64)
    noise = measurement.noise(3 * DRAWS, SeededBits(7)).reshape(DRAWS, 3)
    noisy = exact // measurement.grid + noise
    column = estimate_column(measurement, ESTIMATE, noisy, alpha=0.05)
    covered = sum(low <= truth <= high for low, high in zip(column.lows, column.highs, strict=True))
    assert covered >= 0.95 * DRAWS - 6 * math.sqrt(0.05 * 0.95 * DRAWS)
    spread = float(np.std(np.array(column.values, dtype=float)))
    told = statistics.median(column.standard_errors)
    assert 0.9 < told / spread < 1.6
    simulated = simulate_column(measurement, ESTIMATE, noisy.astype(np.float64))
    assert np.allclose(simulated, np.array(column.values, dtype=float), rtol=1e-6)
    for expected in expected_errors(measurement, ESTIMATE, alpha=0.05):
        assert 0 < expected.standard_error <= expected.standard_error_at_most


def test_other_names_are_refused_with_the_hint() -> None:
    """`STDERR(age)` of another system leads to SEM(age)."""
    with pytest.raises(Refused) as refused:
        lift("SELECT STDERR(age) FROM people", CLINIC)
    assert any("SEM(age)" in instead for finding in refused.value.findings for instead in finding.instead)
