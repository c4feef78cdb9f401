"""The table of errors beside other libraries: its errors, its first places, and that ours are asked as everybody is."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from benchmarks import utility_law, utility_peers
from benchmarks.utility import ACCOUNTS, REASONS, Error, Ours, error_of, line_of
from benchmarks.utility_tables import QUESTIONS, RANGES, Query, Question, Table, groups_of, heavy, truth_of
from mechanisms.calibrate import Price, calibrate
from mechanisms.families import NoiseFamily
from tests.journey.clinic import services_of
from tests.mechanisms.support import selected_core

COUNT, AVERAGE = QUESTIONS[0], QUESTIONS[2]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The made-up table, of few people."""
    return heavy(tmp_path_factory.mktemp("utility"), 40)


def test_a_group_that_is_not_shown_is_an_error(table: Table) -> None:
    """Errors are taken over all groups: what an answer leaves out counts as nothing, an average as the middle."""
    truth = {(0, "count", "a"): 3.0, (0, "count", "b"): 4.0}
    left_out = [{(0, "count", "a"): 3.0}, {(0, "count", "a"): 3.0, (0, "count", "b"): 4.0}]
    assert error_of(table, truth, left_out).value == pytest.approx(2.0)  # sixteen, once in four numbers
    assert error_of(table, {(0, "avg", ""): 400.0}, [{}, {}]).value == pytest.approx(100.0)


def test_of_several_statistics_the_error_is_their_geometric_mean(table: Table) -> None:
    """One statistic with large numbers does not hide the others."""
    truth = {(0, "count", ""): 0.0, (0, "sum", ""): 0.0}
    draws = [{(0, "count", ""): sign * 2.0, (0, "sum", ""): sign * 800.0} for sign in (1, -1)]
    assert error_of(table, truth, draws).value == pytest.approx(40.0)


def test_the_first_place_is_that_with_the_least_error() -> None:
    """Whoever nobody beats by two standard errors is first; a question that ours lose has a reason."""
    found: dict[str, Error | str] = {"ours": Error(2.0, 0.02), "a": Error(1.0, 0.02)}
    line = line_of(COUNT, ACCOUNTS[0], {**found, "b": "refused"}, "laplace")
    assert line == f"| COUNT(*) | alone | 2 | laplace | **0.50 ± 0.01** | - | {REASONS[('COUNT(*)', 'alone')]} |"
    near = line_of(COUNT, ACCOUNTS[0], {**found, "a": Error(1.96, 0.02)}, "gaussian")
    assert near == "| COUNT(*) | alone | **2** | gaussian | **0.98 ± 0.03** |  |"


@pytest.mark.slow
def test_people_with_several_rows_are_asked_here_and_no_average_of_nobody_ends_it(tmp_path: Path) -> None:
    """The dataset file is attached, and an average that is NULL counts as the middle of the bounds."""
    (tmp_path / "sources").mkdir()
    with services_of(tmp_path) as services:
        of_groups = next(asked for asked in QUESTIONS if asked.name == "AVG by public keys")
        ours = Ours(services, heavy(tmp_path / "sources", 40))
        assert isinstance(ours.errors(of_groups, ACCOUNTS[1], NoiseFamily.LAPLACE, 0.0, 5), Error)


def test_everybody_is_asked_the_same(table: Table) -> None:
    """What is true of a table is found for every question, public groups without rows included."""
    histogram = Question("", (Query(("count",), "r"),))
    assert len(truth_of(table, histogram)) == 100
    of_ranges = truth_of(table, next(asked for asked in QUESTIONS if asked.together))
    by_place = truth_of(table, histogram)
    for place, (low, high) in enumerate(RANGES):
        counted = sum(by_place[(0, "count", str(one))] for one in range(low, high + 1))
        assert of_ranges[(place, "count", "")] == counted
    assert groups_of(table, Query(("count",), "h")) is None


def test_concentrated_loss_is_the_known_one() -> None:
    """Of (1, 1e-6) it lies above the simple bound rho + 2 sqrt(rho ln(1 / delta)) and below that of an exact curve."""
    rho = utility_peers.rho_of(1.0, 1e-6)
    assert 0.0175 < rho < 1 / (2 * 4.22**2)  # 4.22 is the exact Gaussian's deviation at (1, 1e-6)


def test_an_interpreter_without_peers_says_so() -> None:
    """The script of the peers runs in an environment that has nothing, and refuses what it does not have."""
    script = Path(utility_peers.__file__)
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(script)],
        input='{}\n{"peer": "opendp"}\n',
        capture_output=True,
        text=True,
        check=True,
    )
    none, refused = map(json.loads, done.stdout.splitlines())
    assert none == {}
    assert "ModuleNotFoundError" in refused["refused"]


def test_the_laws_of_the_page_are_those_of_what_is_drawn() -> None:
    """Thresholds of ten groups of each unit, 75 at best, are those of measurements; errors those of their noise."""
    units = []
    for shares in utility_law.SHARES:
        branches = utility_law.branches_of(shares)
        assert branches.mu_squared is not None
        whole, delta = Fraction(branches.mu_squared, 10**12), Fraction(shares.groups, 10**8)
        core = selected_core(groups=10)
        (measurement,) = calibrate([core], Price(NoiseFamily.GAUSSIAN, whole, delta)).measurements
        needed = measurement.half_shown(10)
        assert needed is not None
        units.append(needed)
        sigma = float(measurement.scale_of_sums)
        assert needed == math.ceil(utility_law.threshold(sigma=sigma, delta=float(delta) / 10))
        drawn = np.random.default_rng(3).normal(0, sigma, (20_000, len(utility_law.EDUCATION)))
        noisy = np.array(utility_law.EDUCATION) + drawn
        errors = np.where(noisy >= needed, drawn, utility_law.EDUCATION)
        assert utility_law.hidden_error(sigma, float(delta) / 10) == pytest.approx(
            np.sqrt((errors**2).mean()), rel=0.01
        )
    assert units == [77, 75, 78]
