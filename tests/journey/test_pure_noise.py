"""Pure noise is not sold in silence: averages and sums of too few rows are refused before the charge, where that is
known."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from mechanisms.families import NoiseFamily
from privacy.refusal import Refused
from server.services import Services
from tests.journey.clinic import question
from tests.journey.test_journey import Analyst, ask, remaining

FEW = "FROM people WHERE age = 17 AND salary % 7 = 9"


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


NOISE_ALONE = [
    (f"SELECT AVG(salary) {FEW}", {}),
    (f"SELECT SUM(salary), COUNT(*) {FEW}", {}),
    (f"SELECT STDDEV(salary) {FEW}", {"confidence": Fraction(999, 1000)}),
    (f"SELECT AVG(salary) {FEW}", {"noise": NoiseFamily.LAPLACE}),
]


@pytest.mark.parametrize(("sql", "more"), NOISE_ALONE)
def test_the_spend_that_is_named_is_not_more_than_is_needed(
    services: Services, analyst: Analyst, sql: str, more: dict[str, Any]
) -> None:
    """With the spend that the refusal names the question is answered; with a thousandth less it is refused again."""
    who = analyst()
    ask(services, f"SELECT COUNT(*) {FEW}", who, epsilon="5")
    small = replace(question(sql, who, epsilon="0.05"), **more)
    with pytest.raises(Refused) as caught:
        services.journey.estimate(small)
    spend = named_spend(caught.value)
    assert services.journey.estimate(replace(small, epsilon=spend))["verdict"] == "affordable"
    with pytest.raises(Refused) as caught:
        services.journey.estimate(replace(small, epsilon=spend * Fraction(999, 1000)))
    assert caught.value.findings[0].code == "accuracy_unreachable"
    assert named_spend(caught.value) == spend, "the least spend is one number, whatever was asked before"


def test_columns_whose_rows_are_chosen_by_noise_are_not_judged_by_narrower_ends(
    services: Services, analyst: Analyst
) -> None:
    """Where noisy numbers choose the rows, intervals hold for all groups at once: that needs a larger spend."""
    who = analyst()
    few = "FROM people WHERE age = 17 AND salary < 0 GROUP BY sex"
    ask(services, f"SELECT sex, COUNT(*) {few}", who, epsilon="5")
    spends = []
    for sql in (f"SELECT sex, AVG(salary) {few}", f"SELECT sex, AVG(salary) AS s {few} ORDER BY s LIMIT 1"):
        with pytest.raises(Refused) as caught:
            services.journey.estimate(question(sql, who, epsilon="0.05"))
        spends.append(named_spend(caught.value))
    one, both = spends
    assert both > one * Fraction(105, 100)
    chosen = question(sql, who, epsilon=str(float((one + both) / 2)))
    with pytest.raises(Refused):
        services.journey.estimate(chosen)
    assert services.journey.estimate(replace(chosen, epsilon=both))["verdict"] == "affordable"


def named_spend(refused: Refused) -> Fraction:
    """The spend that a refusal names."""
    return Fraction(refused.findings[0].instead[0].split('"')[5])
