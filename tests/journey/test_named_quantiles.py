"""Quantiles by a mechanism that the question names: answers, provenance, price, refusals, identities."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from privacy.bounds import AskedContribution
from privacy.rank_tree import QuantileMechanism
from privacy.refusal import Refused
from server.services import Services
from tests.journey.clinic import answer_to, clinic_in, open_account, question

SMOOTH, BLOCKS, EXPONENTIAL = (
    QuantileMechanism.SMOOTH,
    QuantileMechanism.SAMPLE_AND_AGGREGATE,
    QuantileMechanism.EXPONENTIAL,
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the clinic is."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def services(home: Path) -> Iterator[Services]:
    """The clinic with an account that may spend much."""
    with clinic_in(home) as (started, _):
        open_account(started.ledger, "anna")
        yield started


def column(home: Path, table: str, name: str) -> np.ndarray:
    """The true values."""
    with (home / "sources" / f"{table}.csv").open(newline="") as file:
        return np.array([float(row[name]) for row in csv.DictReader(file)])


@pytest.mark.parametrize(
    ("mechanism", "name"), [(EXPONENTIAL, "gaussian_ranks"), (SMOOTH, "gaussian_smooth"), (BLOCKS, "gaussian_blocks")]
)
def test_the_answer_says_by_which_mechanism(
    services: Services, home: Path, mechanism: QuantileMechanism, name: str
) -> None:
    """At a large spend the value is near the true one, and its mechanism is in the provenance."""
    text = "SELECT MEDIAN(salary) AS m, QUANTILE_DISC(salary, 0.9) AS q FROM people"
    answer = answer_to(services, question(text, "anna", epsilon="40", mechanism=mechanism))
    assert [one["mechanism"] for one in answer["provenance"]["mechanisms"]] == [name]
    values = column(home, "people", "salary")
    for place, part in enumerate((0.5, 0.9)):
        low, high = np.quantile(values, [part - 0.1, part + 0.09])
        assert low <= answer["rows"][0][place] <= high


def test_blocks_answer_for_units_with_several_rows(services: Services, home: Path) -> None:
    """A unit's rows are in one block, whatever their number; with groups it might be in several, and is refused."""
    text = "SELECT MEDIAN(cost) AS m, COUNT(*) AS n FROM visits"
    answer = answer_to(services, question(text, "anna", epsilon="50", mechanism=BLOCKS))
    costs = column(home, "visits", "cost")
    assert abs(answer["rows"][0][0] - np.median(costs)) < 60
    assert answer["lows"][0][0] <= np.median(costs) <= answer["highs"][0][0]


def test_blocks_of_groups_of_people(services: Services) -> None:
    """Each unit has one row, so one group: every group has blocks of its own, at one price."""
    text = "SELECT sex, MEDIAN(salary) AS m, COUNT(*) AS n FROM people GROUP BY sex"
    answer = answer_to(services, question(text, "anna", epsilon="60", mechanism=BLOCKS))
    assert [row[0] for row in answer["rows"]][:2] == ["female", "male"]
    assert all(20_000 < row[1] < 80_000 for row in answer["rows"][:2])


@pytest.mark.parametrize(
    ("text", "mechanism", "why"),
    [
        ("SELECT COUNT(*) FROM people", SMOOTH, "no quantile"),
        ("SELECT MEDIAN(cost) FROM visits", SMOOTH, "several rows"),
        ("SELECT MIN(salary) FROM people", EXPONENTIAL, "extreme value"),
        ("SELECT town, MEDIAN(salary) FROM people GROUP BY town", BLOCKS, "not declared"),
        ("SELECT QUANTILE_CONT(salary, [0.2, 0.4, 0.6, 0.8]) FROM people", BLOCKS, "At most 3"),
    ],
)
def test_what_no_mechanism_of_that_name_answers(
    services: Services, text: str, mechanism: QuantileMechanism, why: str
) -> None:
    """Before anything is charged, with the reason."""
    with pytest.raises(Refused) as refused:
        answer_to(services, question(text, "anna", epsilon="1", mechanism=mechanism))
    assert any(why in f"{finding.what} {finding.why}" for finding in refused.value.findings)


def test_a_name_changes_the_identity_only_where_it_changes_the_numbers(services: Services) -> None:
    """The draw that the server chooses anyway answers again for free; another mechanism does not."""
    plain = "SELECT QUANTILE_CONT(salary, 0.3) AS m FROM people"
    first = answer_to(services, question(plain, "anna", epsilon="2"))
    again = answer_to(services, question(plain, "anna", epsilon="2", mechanism=EXPONENTIAL))
    assert again["accounting"]["reused"]
    assert again["rows"] == first["rows"]
    other = answer_to(services, question(plain, "anna", epsilon="2", mechanism=SMOOTH))
    assert not other["accounting"]["reused"]
    assert answer_to(services, question(plain, "anna", epsilon="2", mechanism=SMOOTH))["rows"] == other["rows"]


def test_a_report_compares_the_mechanisms(services: Services) -> None:
    """At the question's own price the exponential draw is nearest; what is refused says why."""
    asked = question("SELECT MEDIAN(salary) AS m, COUNT(*) AS n FROM people", "anna", epsilon="1", report=True)
    plan = services.journey.estimate(asked)["plan"]
    errors = {
        one["mechanism"]: {size["rows"]: size["standard_error"] for size in one["columns"][0]["by_rows"]}
        for one in plan["quantiles"]
    }
    assert set(errors) == set(QuantileMechanism)
    assert all(errors[EXPONENTIAL][rows] <= min(errors[SMOOTH][rows], errors[BLOCKS][rows]) for rows in errors[SMOOTH])
    assert "Quantiles by name" in plan["text"]
    visits = question("SELECT MEDIAN(cost) AS m FROM visits", "anna", epsilon="1", report=True)
    refused = {one["mechanism"]: one["refused"] for one in services.journey.estimate(visits)["plan"]["quantiles"]}
    assert "several rows" in refused[SMOOTH]
    assert refused[EXPONENTIAL] is refused[BLOCKS] is None


def test_blocks_where_the_question_chooses_a_norm(services: Services, home: Path) -> None:
    """The tree is scaled to the norm; what blocks answer is not cut, values beyond the bounds count as these."""
    automatic = AskedContribution(automatic=True)
    text = "SELECT MEDIAN(cost * 3 - 1000) AS m FROM visits"
    costs = np.clip(column(home, "visits", "cost") * 3 - 1000, -1000, 2000)
    asked = question(text, "anna", epsilon="50", mechanism=BLOCKS, contribution=automatic)
    assert abs(answer_to(services, asked)["rows"][0][0] - np.median(costs)) < 200
    low = question("SELECT MEDIAN(LEAST(cost, 100)) AS m FROM visits", "anna", epsilon="50", mechanism=BLOCKS)
    assert 60 < answer_to(services, low)["rows"][0][0] <= 100
