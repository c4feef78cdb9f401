"""`noisegate model fit`, `list` and `show`, against a server that answers what the test says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.support import refused
from tests.cli.test_asking import Stand, stand

__all__ = ["stand"]

WEIGHT: dict[str, Any] = {"feature": None, "key": None, "kind": "intercept"}
NUMBERS = {"weight": -0.5, "standard_error": 0.1, "low": -0.7, "high": -0.3}
MODEL: dict[str, Any] = {
    "id": "t_1",
    "status": "settled",
    "dataset": "d",
    "method": "input_clipping",
    "charged": [{"budget": "b_1", "epsilon": "0.25", "delta": "0"}],
    "model": {
        "intercept": {**WEIGHT, **NUMBERS},
        "weights": [
            {**WEIGHT, **NUMBERS, "feature": "city", "key": "A\x1b[31m", "kind": "key"},
            {**WEIGHT, **NUMBERS, "feature": "city", "kind": "key"},
        ],
        "held_out": {"accuracy": 0.8123, "explained_variance": None, "value_standard_error": 0.002},
        "bounds": [{"column": "pay", "lower": "107", "upper": "725", "source": "chosen"}],
        "warnings": [{"code": "clipped", "text": "Rows were scaled."}],
    },
}
RUNNING = {**MODEL, "status": "running", "model": None}
SQL = "SELECT age, x AS label FROM people"


def test_a_model_is_waited_for_and_shown(stand: Stand) -> None:
    """Weights with their ends, what the held-out units say, warnings and the price; no control character is printed."""
    stand.replies = [(202, RUNNING), (200, RUNNING), (200, MODEL)]
    ran = stand.ask("model", "fit", SQL, "--dataset", "d", "--own-epsilon", "0.5", "--iterations", "20")
    assert ran.code == 0, ran.err
    for text in ("-0.500  [-0.700, -0.300]", "city = A", "city = NULL", "accuracy of held-out units 0.8123",
                 "Rows were scaled.",
                 "bounds of pay: 107 to 725, by a noisy histogram", "charged 0.25"):  # fmt: skip
        assert text in ran.out
    assert "\x1b" not in ran.out
    method, path, headers, body = stand.requests[0]
    assert (method, path) == ("POST", "/v1/models")
    assert len(headers["Idempotency-Key"]) >= 16
    assert body == {"dataset": "d", "sql": SQL, "spend": {"own_epsilon": "0.5"}, "iterations": 20}
    assert [request[:2] for request in stand.requests[1:]] == [("GET", "/v1/models/t_1")] * 2


def test_an_estimate_fits_nothing(stand: Stand) -> None:
    """The same body at another address, and what it says."""
    answer = {
        "verdict": "affordable",
        "price": {"epsilon": "0.1", "own": {"epsilon": "0.5", "delta": "0.000001"}},
        "columns": 7,
        "measurements": 102,
        "first_moment_seconds": 1.5,
        "bounds": [{"column": "pay", "lower": None, "upper": None, "source": "stored"}],
    }
    stand.replies = [(200, answer)]
    ran = stand.ask("model", "fit", SQL, "--dataset", "d", "--epsilon", "1", "--estimate")
    assert "affordable: epsilon 0.1 of the account" in ran.out
    assert "bounds of pay are chosen by a histogram that is there" in ran.out
    assert [request[1] for request in stand.requests] == ["/v1/models:estimate"]


def test_a_model_that_failed_is_a_failure(stand: Stand) -> None:
    """Exit code and words for what was charged and is not there."""
    stand.replies = [(202, RUNNING), (200, {**RUNNING, "status": "failed_charged"})]
    ran = stand.ask("model", "fit", SQL, "--dataset", "d", "--epsilon", "1")
    assert ran.code == 1
    assert "failed_charged" in ran.err


@pytest.mark.parametrize(
    "options",
    [[], ["--epsilon", "1", "--own-epsilon", "1"], ["--epsilon", "-1"], ["--epsilon", "1", "--held-out", "0.7"]],
)
def test_prices_and_shares_are_checked_before_anything_is_sent(stand: Stand, options: list[str]) -> None:
    """No request for a price that is missing, named twice or no amount, nor for a share that is too large."""
    ran = stand.ask("model", "fit", SQL, "--dataset", "d", *options)
    refused(ran, code=2)
    assert stand.requests == []


def test_models_are_listed_and_read(stand: Stand) -> None:
    """A line for each; a model that runs has no weights yet."""
    stand.replies = [(200, {"models": [RUNNING], "next": None}), (200, RUNNING), (200, {"models": [], "next": None})]
    assert "t_1  running  d" in stand.ask("model", "list").out
    assert "t_1  running  d" in stand.ask("model", "show", "t_1").out
    assert "no models" in stand.ask("model", "list").out
