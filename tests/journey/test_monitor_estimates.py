"""What a monitor would cost and how exact it would be, before it is opened; and polls after what was seen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from tests.journey.clinic import clinic_in
from tests.journey.watched import COUNT, Clinic


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic whose data stay as they are, for tests with analysts of their own."""
    home = tmp_path_factory.mktemp("estimated")
    with clinic_in(home) as (services, path):
        yield Clinic(home, services, path)


def _estimate(clinic: Clinic, who: str, **options: Any) -> Any:
    body = {"dataset": "clinic", "sql": COUNT, "threshold": "3500", "epsilon": "2", "evaluations": 50, **options}
    return clinic.call(who, "POST", "/v1/monitors:estimate", body)


@pytest.mark.parametrize("options", [{}, {"hits": 3, "answer_epsilon": "1"}])
def test_an_estimate_is_what_is_charged(shared: Clinic, options: dict[str, Any]) -> None:
    """Shows that the price is that of opening, that `within` is the monitor's, and that nothing was charged for it."""
    ann, account = shared.somebody()
    estimate = _estimate(shared, ann, **options).json()
    assert (estimate["verdict"], estimate["price"]["own"]) == ("affordable", {"epsilon": "2", "delta": "0.000001"})
    assert shared.spent(account) == 0
    opened = shared.open(ann, **options).json()
    assert estimate["within"] == opened["within"]
    charged = shared.spent(account)
    assert abs(Fraction(estimate["price"]["epsilon"]) - charged) < Fraction(1, 10**6)
    assert (estimate["answer"] is None) == ("answer_epsilon" not in options)
    if estimate["answer"]:
        shared.evaluate(ann, opened["id"])
        hit = shared.evaluate(ann, shared.open(ann, threshold="100", **options).json()["id"]).json()
        assert hit["beyond_standard_error"] == pytest.approx(estimate["answer"]["standard_error"])


def test_it_is_more_exact_than_the_textbook(shared: Clinic) -> None:
    """Shows the bounds of Theorems 3.24 and 3.26 beside ours, at several sizes: ours is several times less."""
    ann, _ = shared.somebody()
    for hits, evaluations in ((1, 1), (1, 100), (10, 100)):
        estimate = _estimate(shared, ann, hits=hits, evaluations=evaluations).json()
        expected = 8 * hits * (math.log(evaluations) + math.log(2 * hits / 0.05)) / 2
        assert estimate["textbook_within"] == pytest.approx(expected)
        assert estimate["within"] < estimate["textbook_within"] / 2


def test_an_estimate_refuses_what_opening_refuses(shared: Clinic) -> None:
    """Shows the same refusals, and the verdict on a session that the account cannot pay."""
    ann, _ = shared.somebody(epsilon="1")
    assert _estimate(shared, ann).json()["verdict"] == "rejected_budget"
    refused = _estimate(shared, ann, sql="SELECT AVG(age) FROM people")
    assert (refused.status_code, refused.json()["code"]) == (422, "unsupported_sql")
    assert _estimate(shared, ann, dataset="nowhere").json()["code"] == "unknown_dataset"


def test_a_poll_names_what_it_has_seen(shared: Clinic) -> None:
    """Shows that `after` returns at once what the caller has not seen, and waits for what it has."""
    ann, _ = shared.somebody()
    monitor = shared.open(ann, threshold="100", hits=2).json()["id"]
    first = shared.evaluate(ann, monitor).json()
    assert first["outcome"] == "passed"
    assert shared.evaluate(ann, monitor, after=0, wait_ms=30_000).json() == {**first, "repeated": True}
    assert shared.evaluate(ann, monitor, after=1, wait_ms=300).json() == {**first, "repeated": True}
