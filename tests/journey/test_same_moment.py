"""The same request twice at one moment, under one Idempotency-Key: one charge, and both read the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import httpx
import pytest

from accountant.ledger import Ledger
from server.resources.kinds import ResourceKind
from server.routes import resources
from tests.journey.clinic import attach, services_of, write_files
from tests.journey.test_own_statistics import body, with_statistics
from tests.journey.test_resources import BODIES
from tests.journey.watched import COUNT, Clinic

WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "query": ("/v1/queries", {"sql": COUNT, "spend": {"epsilon": "1"}, "reuse": "none", "wait_ms": 30_000}),
    "statistic": ("/v1/statistics", body()),
    **{kind.value: (kind.path, options) for kind, options in BODIES.items()},
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic with a registered statistic."""
    home = tmp_path_factory.mktemp("moment")
    path = write_files(home / "sources")
    with_statistics(path)
    with services_of(home) as services:
        attach(services, path)
        yield Clinic(home, services, path)


def twice(clinic: Clinic, who: str, way: str, first: threading.Event | None) -> list[httpx.Response]:
    """The request from two threads; the second one goes when `first` is set."""
    path, options = WAYS[way]
    named = {"name": f"drawn_{who}"} if "name" in options else {}

    def send(number: int) -> httpx.Response:
        if number and first is not None:
            assert first.wait(60)
        return clinic.call(
            who, "POST", path, {"dataset": "clinic", **options, **named}, **{"Idempotency-Key": f"{way}-{who}"}
        )

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(send, (0, 1)))


def charged(told: Any) -> Fraction:
    """What an answer says that it took of its account."""
    parts = told["charged"] if "charged" in told else told["accounting"]["charged"]
    return sum((Fraction(part["epsilon"]) for part in parts), Fraction(0))


@pytest.mark.parametrize("way", WAYS)
def test_a_request_that_is_being_admitted_is_waited_for(
    shared: Clinic, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows one charge and the same answer twice, where the second request comes between charge and row of the
    first."""
    who, account = shared.somebody()
    there, reserve = threading.Event(), Ledger.reserve

    def slowly(ledger: Ledger, *args: Any, **options: Any) -> Any:
        reserved = reserve(ledger, *args, **options)
        if reserved.fresh:
            there.set()
            time.sleep(0.2)
        return reserved

    monkeypatch.setattr(Ledger, "reserve", slowly)
    first, second = twice(shared, who, way, there)
    assert first.status_code in (200, 201), first.text
    assert (second.status_code, second.json()) == (first.status_code, first.json())
    assert shared.spent(account) == pytest.approx(charged(first.json()), rel=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_requests_that_know_nothing_of_each_other_are_charged_once(
    shared: Clinic, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows the same where both have looked for an earlier request, and found none, before either is charged."""
    who, account = shared.somebody()
    both, earlier, met = threading.Barrier(2), Ledger.earlier, threading.local()

    def together(ledger: Ledger, *args: Any, **options: Any) -> Any:
        found = earlier(ledger, *args, **options)
        if found is None and not getattr(met, "once", False):
            met.once = True
            both.wait(20)
        return found

    monkeypatch.setattr(Ledger, "earlier", together)
    first, second = twice(shared, who, way, None)
    assert first.status_code in (200, 201), first.text
    assert (second.status_code, second.json()) == (first.status_code, first.json())
    assert shared.spent(account) == pytest.approx(charged(first.json()), rel=1e-6)


def test_a_row_that_does_not_come_is_retryable(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows 409 with Retry-After, and retryable, where the other request's row is not there by the end of the wait."""
    who, _ = shared.somebody()
    there, gone, reserve = threading.Event(), threading.Event(), Ledger.reserve

    def stuck(ledger: Ledger, *args: Any, **options: Any) -> Any:
        reserved = reserve(ledger, *args, **options)
        if reserved.fresh:
            there.set()
            assert gone.wait(20)
        return reserved

    monkeypatch.setattr(Ledger, "reserve", stuck)
    monkeypatch.setattr(resources, "ADMITTED_SECONDS", 0.1)
    path, options = WAYS[ResourceKind.MODEL.value]
    asked = {"dataset": "clinic", **options, "wait_ms": 0}

    def send() -> httpx.Response:
        return shared.call(who, "POST", path, asked, **{"Idempotency-Key": "stuck"})

    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(send)
        assert there.wait(20)
        second = send()
        gone.set()
        assert first.result().status_code == 202
    assert (second.status_code, second.json()["code"], second.json()["retryable"]) == (409, "conflict", True)
    assert second.headers["retry-after"] == "1"


def test_a_statistic_that_is_asked_twice_at_one_moment_is_drawn_once(
    shared: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows one draw and one charge without a key too; the second answer says that it cost nothing."""
    who, account = shared.somebody()
    there, reserve = threading.Event(), Ledger.reserve

    def slowly(ledger: Ledger, *args: Any, **options: Any) -> Any:
        reserved = reserve(ledger, *args, **options)
        if reserved.fresh:
            there.set()
            time.sleep(0.2)
        return reserved

    monkeypatch.setattr(Ledger, "reserve", slowly)
    path, options = WAYS["statistic"]

    def send(number: int) -> httpx.Response:
        assert not number or there.wait(60)
        return shared.call(who, "POST", path, options)

    with ThreadPoolExecutor(2) as threads:
        first, second = (one.json() for one in threads.map(send, (0, 1)))
    assert (first["accounting"]["reused"], second["accounting"]["reused"]) == (False, True)
    assert (second["id"], second["value"], second["accounting"]["charged"]) == (first["id"], first["value"], [])
    assert shared.spent(account) == pytest.approx(charged(first), rel=1e-6)
