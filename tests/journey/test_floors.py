"""Refusals below the floor name numbers, and each of their suggestions is executed and accepted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from server.above_floor import LARGER
from tests.journey.clinic import attach, services_of, write_files
from tests.journey.test_own_statistics import with_statistics
from tests.journey.test_streams import AGES
from tests.journey.watched import COUNT, Clinic

_MODEL = {"sql": "SELECT age, sex, age >= 54 AS label FROM people", "iterations": 5}
_CHOSEN = {"sql": "SELECT income, sex, age >= 54 AS label FROM people", "iterations": 5}
_STATISTIC = {"statistic": "typical_age", "width": "3"}
_BATCH = [f"{COUNT} WHERE age < {age}" for age in (30, 50)]

BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "stream": ("/v1/streams", {**AGES, "epsilon": "5", "updates": 2, "queries": 90_000}),
    "stream of one unit's rows": (
        "/v1/streams",
        {"sql": "SELECT sex, COUNT(*) FROM people GROUP BY sex", "epsilon": "0.000000001"},
    ),
    "monitor": ("/v1/monitors", {"sql": COUNT, "threshold": "9", "epsilon": "2", "evaluations": 90_000}),
    "answers of a monitor": (
        "/v1/monitors",
        {"sql": COUNT, "threshold": "9", "epsilon": "2", "evaluations": 5, "answer_epsilon": "0.0000001"},
    ),
    "batch": ("/v1/batches", {"queries": _BATCH, "spend": {"epsilon": "0.000001"}}),
    "batch by itself": ("/v1/batches", {"queries": _BATCH, "spend": {"own_epsilon": "0.000001"}}),
    "model": ("/v1/models", {**_MODEL, "spend": {"epsilon": "0.00001"}}),
    "model by itself": ("/v1/models", {**_MODEL, "spend": {"own_epsilon": "0.00001"}}),
    "model that chooses bounds": ("/v1/models", {**_CHOSEN, "spend": {"epsilon": "0.00001"}}),
    "synthetic table": ("/v1/synthetic", {"table": "people", "name": "drawn", "epsilon": "0.001"}),
    "statistic": ("/v1/statistics", {**_STATISTIC, "spend": {"epsilon": "0.00001"}}),
    "statistic by itself": ("/v1/statistics", {**_STATISTIC, "spend": {"own_epsilon": "0.00001"}}),
}
ADVICE = re.compile(
    r'"(?P<name>\w+)": (?P<value>\{[^}]*\}|"[^"]*"|[0-9]+), or (?P<option>--[a-z-]+) (?P<given>[0-9.]+)'
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic with a registered statistic."""
    home = tmp_path_factory.mktemp("floors")
    path = write_files(home / "sources")
    with_statistics(path)
    with services_of(home) as services:
        attach(services, path)
        yield Clinic(home, services, path)


@pytest.mark.parametrize("case", BODIES)
def test_each_suggestion_below_the_floor_is_accepted(shared: Clinic, case: str) -> None:
    """Shows the floor in the reason; every number that is advised accepted and affordable; a hair less, or one more,
    refused; and the command's option with the same number."""
    path, options = BODIES[case]
    who, account = shared.somebody()
    body = {"dataset": "clinic", **options}
    refused = shared.call(who, "POST", f"{path}:estimate", body)
    assert (refused.status_code, refused.json()["code"]) == (403, "policy_forbids"), refused.text
    found = [advice for line in refused.json()["instead"] if (advice := ADVICE.match(line))]
    assert found, refused.json()["instead"]
    assert case.startswith("batch") or "0.001 of the whole budget" in refused.json()["why"]
    for advice in found:
        value = json.loads(advice["value"])
        (number,) = value.values() if isinstance(value, dict) else (value,)
        assert str(number) == advice["given"]
        accepted = shared.call(who, "POST", f"{path}:estimate", {**body, advice["name"]: value})
        assert accepted.status_code == 200, (advice[0], accepted.text)
        assert accepted.json().get("verdict", "affordable") == "affordable"
        less = Fraction(number) * Fraction(9_980, 10_000)
        worse: Any = number + 1 if isinstance(number, int) else f"{float(less):.12f}"
        if isinstance(value, dict):
            worse = dict.fromkeys(value, worse)
        again = shared.call(who, "POST", f"{path}:estimate", {**body, advice["name"]: worse})
        assert again.status_code == 403, (advice[0], worse)
    assert shared.spent(account) == 0


def test_no_number_is_named_that_the_account_cannot_pay(shared: Clinic) -> None:
    """Shows that a small account is told whom to ask, since no epsilon of it would do."""
    who, _ = shared.somebody(epsilon="0.01")
    body = {"dataset": "clinic", **AGES, "epsilon": "0.001", "queries": 100_000}
    refused = shared.call(who, "POST", "/v1/streams:estimate", body).json()
    assert refused["code"] == "policy_forbids"
    assert LARGER in refused["instead"]
    assert not any('"epsilon"' in line for line in refused["instead"])
