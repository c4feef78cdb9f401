"""What is true of geometric noise where docs/recipes/mechanism.md was followed; run by test_mechanism.py in a copy.

The name keeps it out of a run over this checkout, which has no such noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import mechanisms.families
from mechanisms.calibrate import calibrate
from mechanisms.families import FAMILIES, MEASUREMENTS, NoiseFamily, Price
from mechanisms.measurement import Measurement
from privacy.conversions import gaussian_delta
from privacy.norms import NormPower
from privacy.refusal import Refused
from server.journey.charges import power_of
from server.services import Services
from tests.journey.clinic import PEOPLE, answer_to, attach, open_account, question, services_of, write_files
from tests.journey.fixtures import own_noise
from tests.mechanisms.support import SeededBits, count, plain_sum, scalar_core

__all__ = ["own_noise"]

GEOMETRIC = NoiseFamily("geometric")
DRAWS = 200_000
ALARM = 1e-6
"""The chance that a right sampler fails one of these tests."""


def measurement_of(epsilon: Fraction, *, rows: int = 1) -> Measurement:
    """Noise on one count."""
    core = scalar_core([count(rows=rows)], [])
    (measurement,) = calibrate([core], Price(GEOMETRIC, epsilon, Fraction(0))).measurements
    return measurement


def law(scale: float, reach: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """P(X = k) for k = -reach..reach."""
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1)).astype(float)


def test_the_copy_is_what_is_tested() -> None:
    """The rooms are those of the copy, in which the recipe was followed."""
    assert Path(mechanisms.families.__file__).is_relative_to(Path.cwd())


@pytest.mark.parametrize("epsilon", ["4", "1", "1/3", "1/40"])
def test_the_noise_has_the_law_of_the_proof(epsilon: str) -> None:
    """A chi-squared test of many draws with the exact probabilities; the rounded Laplace noise beside it fails."""
    measurement = measurement_of(Fraction(epsilon))
    scale = float(measurement.scale_of_sums)
    reach = math.ceil(4 * scale)
    expected = law(scale, reach)
    twin = calibrate(
        [scalar_core([count()], [])], Price(NoiseFamily.LAPLACE, Fraction(epsilon), Fraction(0))
    ).measurements[0]
    for drawn, holds in ((measurement.noise(DRAWS, SeededBits(11)), True), (twin.noise(DRAWS, SeededBits(12)), False)):
        inside = drawn[np.abs(drawn) <= reach] + reach
        observed = np.append(np.bincount(inside, minlength=2 * reach + 1), DRAWS - inside.size)
        shares = np.append(expected, 1 - expected.sum()) * DRAWS
        p_value = stats.chisquare(observed, shares).pvalue
        assert p_value > ALARM if holds else p_value < ALARM or scale > 10


@pytest.mark.parametrize("epsilon", ["4", "1", "1/3"])
@pytest.mark.parametrize("change", [1, 3])
def test_the_event_bounds_the_law(epsilon: str, change: int) -> None:
    """For one number that changes by the whole sensitivity: pure epsilon exactly, rho and mu not below the truth."""
    measurement = measurement_of(Fraction(epsilon), rows=change)
    loss = measurement.event().loss()
    scale = float(measurement.scale_of_sums)
    assert loss.pure == change / measurement.scale_of_sums
    assert loss.pure <= Fraction(epsilon)
    assert loss.rho is not None
    assert loss.mu_squared is not None
    reach = math.ceil(60 * scale)
    whole = law(scale, reach + change)
    p, q = whole[: -change or None], whole[change:]
    assert np.log(p / q).max() == pytest.approx(float(loss.pure), rel=1e-9)
    for order in (1.001, 1.5, 2, 8, 64):
        terms = order * np.log(p) + (1 - order) * np.log(q)
        divergence = float(np.logaddexp.reduce(terms)) / (order - 1)
        assert divergence <= order * float(loss.rho) * (1 + 1e-6)
    mu = Fraction(math.sqrt(float(loss.mu_squared))) * (1 + Fraction(1, 10**12))
    for part in (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)):
        level = part * loss.pure
        true = float(np.maximum(p - math.exp(level) * q, 0).sum())
        assert true <= float(gaussian_delta(mu=mu, epsilon=Fraction(str(float(level))))) * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", ["2", "1/5"])
def test_errors_and_intervals_hold(epsilon: str) -> None:
    """The variance is that of the draws; intervals of one number, and of sums, miss no more often than they say."""
    measurement = measurement_of(Fraction(epsilon))
    drawn = measurement.noise(DRAWS, SeededBits(13))
    assert float(drawn.var()) == pytest.approx(measurement.variance(), rel=0.03)
    room = 6 * math.sqrt(0.05 * 0.95 * DRAWS)
    narrow = measurement.quantile_single(0.05)
    assert (np.abs(drawn) > narrow).sum() <= 0.05 * DRAWS + room
    assert (np.abs(drawn) > narrow - 1).sum() > 0.05 * DRAWS - room
    pairs, weights = drawn.reshape(-1, 2), np.array([[1.0, 0.5]])
    (reach,) = measurement.quantile(weights, 0.05)
    assert (np.abs(pairs @ weights[0]) > reach).sum() <= 0.05 * len(pairs) + room


def test_a_large_price_is_charged_as_what_is_drawn() -> None:
    """An epsilon beyond four for each unit of sensitivity is answered with the noise of four, and costs that."""
    for statistic, most in ((count(), 4), (plain_sum(highest=100), 400)):
        core = scalar_core([statistic], [])
        for epsilon in (3, 1000):
            (event,) = calibrate([core], Price(GEOMETRIC, Fraction(epsilon), Fraction(0))).events()
            assert event.loss().pure == pytest.approx(min(epsilon, most), rel=1e-12)
    assert FAMILIES[GEOMETRIC].loss(Fraction(1000)).pure == 4


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """The clinic with an account that may spend much."""
    home = tmp_path_factory.mktemp("home")
    path = write_files(home / "sources")
    with services_of(home) as started:
        attach(started, path)
        open_account(started.ledger, "anna")
        yield started


@pytest.mark.usefixtures("own_noise")
def test_a_question_is_answered_with_it(services: Services) -> None:
    """It is named in a question, answers it near the truth with less noise than Laplace, and says what it was."""
    sql = "SELECT COUNT(*) AS n FROM people"
    answer = answer_to(services, question(sql, "anna", noise=GEOMETRIC, epsilon="2"))
    beside = answer_to(services, question(sql, "anna", noise=NoiseFamily.LAPLACE, epsilon="2"))
    assert answer["provenance"]["noise"] == "geometric"
    assert [note["mechanism"] for note in answer["provenance"]["mechanisms"]] == ["geometric"]
    ((low,),), ((value,),), ((high,),) = answer["lows"], answer["rows"], answer["highs"]
    assert low <= value <= high
    assert abs(value - PEOPLE) < 20
    assert answer["standard_errors"][0][0] <= beside["standard_errors"][0][0]
    assert "geometric" in MEASUREMENTS


def test_units_are_scaled_to_the_norm_that_it_pays_for(services: Services) -> None:
    """Where a question chooses norms, noise that is paid in pure epsilon asks for L1, whatever its name is."""
    (account,) = [one for one in services.ledger.accounts(dataset="clinic") if one.principal == "anna"]
    sql = "SELECT COUNT(*) AS n FROM visits"
    assert power_of(question(sql, "anna", noise=GEOMETRIC), account) is NormPower.L1
    assert power_of(question(sql, "anna", noise=NoiseFamily.GAUSSIAN), account) is NormPower.L2


def test_groups_that_must_be_selected_are_refused(services: Services) -> None:
    """The refusal says which noise cannot, and that other noise can."""
    with pytest.raises(Refused) as refused:
        services.journey.estimate(
            question("SELECT town, COUNT(*) AS n FROM people GROUP BY town", "anna", noise=GEOMETRIC)
        )
    (finding,) = refused.value.findings
    assert finding.why == "Geometric noise selects no groups."
    assert finding.instead[0].startswith('leave "noise" (--noise) out')
