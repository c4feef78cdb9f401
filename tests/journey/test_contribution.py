"""Contribution bounds on the whole path: a request names its own, the answer says what was cut and what it means."""

from __future__ import annotations

import json
from dataclasses import replace

from privacy.bounds import AskedContribution
from server.services import Services
from tests.journey.clinic import question, stored
from tests.journey.test_journey import Analyst, ask

COUNT = "SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits"


def test_a_request_may_name_its_own_bounds(services: Services, analyst: Analyst) -> None:
    """One row per unit gives a smaller count with less noise, as a release of its own."""
    who = analyst()
    plain = ask(services, COUNT, who, epsilon="1")
    asked = replace(question(COUNT, who, epsilon="1"), contribution=AskedContribution(rows_per_unit=1))
    estimate = services.journey.estimate(asked)
    assert estimate["contribution"][0]["rows_per_unit"] == 1
    assert estimate["contribution"][0]["estimands"]["COUNT(*)"] == "rows, at most 1 row per unit"
    answer = json.loads(services.journey.complete(services.journey.admit(asked)))
    assert not answer["accounting"]["reused"]
    assert answer["rows"][0][0] < plain["rows"][0][0]
    assert answer["standard_errors"][0][0] < plain["standard_errors"][0][0] / 5
    assert "at most 1 row (rows_per_unit)" in answer["provenance"]["cut"][0]
    assert ask(services, COUNT, who, epsilon="1")["accounting"]["reused"]
    again = replace(question(COUNT, who, epsilon="1"), contribution=AskedContribution(rows_per_unit=20))
    assert stored(services.journey.admit(again)) is not None or services.journey.estimate(again)["verdict"] == "free"


def test_the_answer_names_the_estimand_of_each_column(services: Services, analyst: Analyst) -> None:
    """A SUM means the same beside a COUNT and an AVG, and the answer says so."""
    who = analyst()
    found = [
        estimand
        for mechanism in ask(services, COUNT, who, epsilon="1")["provenance"]["mechanisms"]
        for estimand in mechanism["estimands"]
    ]
    assert sorted(found) == ["each unit's sum, clipped to what 20 rows can be worth", "rows, at most 20 rows per unit"]
