"""What a spend is charged over HTTP: never more than it says, and what the estimate said."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from server.services import Services
from tests.journey.test_http import Api

COUNT = "SELECT COUNT(*) AS n FROM people"
SUM = "SELECT SUM(age) AS s FROM people"


@pytest.fixture
def call(services: Services, analyst: Callable[..., str]) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Requests of an analyst with an account of (10, 0.000001): (path, SQL, fields) to (status, JSON)."""
    name, api = analyst(epsilon="10"), Api(services)
    api.key(name, "analyst")

    def send(path: str, sql: str, **fields: Any) -> tuple[int, dict[str, Any]]:
        answer = api.call(name, "POST", path, {"dataset": "clinic", "sql": sql, **fields})
        return answer.status_code, answer.json()

    return send


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_an_estimate_is_what_is_charged_and_no_spend_is_exceeded(call: Callable[..., Any], seed: int) -> None:
    """Both families, spends and widths, in any order: price, curve and families say what the answer costs then."""
    source = random.Random(seed)
    for number in range(14):
        sql = f"{source.choice([COUNT, SUM])} WHERE age > {number}"
        spend = source.choice(["0.02", "0.1", "0.5", "1"])
        wish: dict[str, Any] = {"spend": {"epsilon": spend}, "accept_noise": True}
        if sql.startswith(COUNT) and source.random() < 0.3:
            wish = {"accuracy": {"half_width": source.choice(["3", "10", "40"])}}
        noise = source.choice(["auto", "auto", "laplace", "gaussian"])
        status, estimate = call("/v1/estimates", sql, noise=noise, **wish)
        asked, answer = call("/v1/queries", sql, noise=noise, **wish)
        if status != 200 or estimate["verdict"] != "affordable":
            assert asked != 200
            continue
        assert asked == 200, answer
        (charged,) = answer["accounting"]["charged"]
        assert charged["epsilon"] == estimate["price"]["epsilon"]
        assert estimate["families"][0]["price"]["epsilon"] == charged["epsilon"]
        assert answer["accounting"]["remaining"] == estimate["remaining_after"]
        if "spend" in wish:
            prices = {Fraction(family["price"]["epsilon"]) for family in estimate["families"]}
            assert max(prices) <= Fraction(spend)
            assert charged["epsilon"] in {point["epsilon"] for point in estimate["curve"]} or noise == "auto"


def test_after_a_laplace_answer_a_spend_is_gaussian_and_paid_once(call: Callable[..., Any]) -> None:
    """The new user's path: the same noise as before, no more than was asked, and another spelling of it is free."""
    body = {"spend": {"epsilon": "0.1"}}
    fresh = call("/v1/estimates", COUNT, **body)[1]["columns"][0]["standard_error"]
    assert call("/v1/queries", SUM, noise="laplace", **body)[0] == 200
    _, first = call("/v1/queries", COUNT, **body)
    assert first["provenance"]["noise"] == "gaussian"
    assert first["standard_errors"][0][0] < fresh * 1.1
    assert Fraction(first["accounting"]["charged"][0]["epsilon"]) <= Fraction(1, 10)
    assert call("/v1/estimates", COUNT.lower(), **body)[1]["verdict"] == "free"
    _, again = call("/v1/queries", COUNT.lower(), **body)
    assert (again["accounting"]["charged"], again["rows"]) == ([], first["rows"])
