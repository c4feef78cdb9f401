"""Pure noise is not sold in silence: averages and sums of too few rows are refused before the charge, where that is
known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from privacy.refusal import Refused
from server.services import Services
from tests.journey.clinic import question
from tests.journey.test_journey import Analyst, ask, remaining

FEW = "FROM people WHERE age = 17 AND salary < 0"


@pytest.mark.parametrize("function", ["AVG", "SUM", "STDDEV"])
def test_an_aggregate_of_counted_few_is_refused_before_the_charge(
    services: Services, analyst: Analyst, function: str
) -> None:
    """With a stored count of the same rows a refusal names a spend that is answered; noise that is wished is too."""
    who = analyst()
    small = question(f"SELECT {function}(salary) {FEW}", who, epsilon="0.05")
    assert services.journey.estimate(small)["verdict"] == "affordable", "nobody knows how few rows there are"
    ask(services, f"SELECT COUNT(*) {FEW}", who, epsilon="5")
    before = remaining(services, who)
    for ask_for in (services.journey.estimate, services.journey.admit):
        with pytest.raises(Refused) as caught:
            ask_for(small)
        (finding,) = caught.value.findings
        assert finding.code == "accuracy_unreachable"
        assert "noise alone" in finding.what
        assert "stored count" in finding.why
        assert '"spend": {"epsilon": "' in finding.instead[0]
    assert remaining(services, who) == before
    spend = finding.instead[0].split('"')[5]
    assert services.journey.estimate(replace(small, epsilon=type(small.epsilon)(spend)))["verdict"] == "affordable"
    assert services.journey.estimate(replace(small, accept_noise=True))["verdict"] == "affordable"


def test_useful_and_unknown_averages_are_not_refused(services: Services, analyst: Analyst) -> None:
    """A stored count of many rows, other rows, other groups, or no count at all: answered."""
    who = analyst()
    ask(services, f"SELECT COUNT(*) {FEW}", who, epsilon="5")
    ask(services, "SELECT COUNT(*) FROM people", who, epsilon="1")
    for sql in (
        "SELECT AVG(salary) FROM people",
        "SELECT AVG(salary) FROM people WHERE age < 18",
        "SELECT sex, AVG(salary) FROM people GROUP BY sex",
        "SELECT town, AVG(salary) FROM people GROUP BY town",
        "SELECT SUM(salary) FROM people",
        "SELECT SUM(salary) FROM people WHERE age < 18",
        f"SELECT COUNT(*), COUNT(salary) {FEW}",
    ):
        assert services.journey.estimate(question(sql, who, epsilon="0.2"))["verdict"] == "affordable", sql


def test_a_stored_answer_is_free_however_noisy(services: Services, analyst: Analyst) -> None:
    """What was paid for once is answered again: a refusal is about a charge."""
    who = analyst()
    noisy = replace(question(f"SELECT AVG(salary) {FEW}", who, epsilon="0.05"), accept_noise=True)
    services.journey.complete(services.journey.admit(noisy))
    ask(services, f"SELECT COUNT(*) {FEW}", who, epsilon="5")
    assert services.journey.estimate(replace(noisy, accept_noise=False))["verdict"] == "free"
