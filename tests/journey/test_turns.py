"""What several callers ask of one session at the same moment: they follow one another, and nothing is used up twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from server.resources.resources import Resources
from server.routes import streams as routes
from server.streams.streams import Streams
from tests.journey.clinic import clinic_in
from tests.journey.watched import Clinic


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic whose data stay as they are, for tests with analysts of their own."""
    home = tmp_path_factory.mktemp("turns")
    with clinic_in(home) as (services, path):
        yield Clinic(home, services, path)


@contextmanager
def held(kind: type, step: str, patch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """The first call of a step, which has the turn, waits for the second event; the first event says that it began."""
    running, go = threading.Event(), threading.Event()
    genuine = getattr(kind, step)

    def first(*given: Any, **named: Any) -> Any:
        if not running.is_set():
            running.set()
            assert go.wait(30)
        return genuine(*given, **named)

    with patch.context() as planted:
        planted.setattr(kind, step, first)
        try:
            yield running, go
        finally:
            go.set()


def test_evaluations_of_a_stream_follow_one_another(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that of two at the same moment one without time to wait is refused, counts nothing and can be sent again;
    that one with time waits for its turn; that another monitor is not held up; and that none of them fails."""
    ann, account = shared.somebody()
    bob, _ = shared.somebody()
    monitor = shared.open(ann, stream=True).json()["id"]
    other = shared.open(bob, stream=True).json()["id"]
    charged = shared.spent(account)
    with ThreadPoolExecutor(2) as pool, held(Resources, "read", monkeypatch) as (running, go):
        first = pool.submit(shared.evaluate, ann, monitor)
        assert running.wait(20)
        refused = shared.evaluate(ann, monitor)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        assert (refused.headers["retry-after"], refused.json()["charged"]) == ("1", False)
        assert "follow one another" in refused.json()["why"]
        waiting = pool.submit(shared.evaluate, ann, monitor, wait_ms=20_000)
        assert shared.evaluate(bob, other).json()["number"] == 1
        assert not waiting.done()
        go.set()
        said = [first.result().json(), waiting.result().json()]
    assert [(one["number"], one["outcome"], one["repeated"]) for one in said] == [
        (1, "not_passed", False),
        (2, "not_passed", False),
    ]
    made = shared.services.registry.evaluations(monitor, count=9)
    assert [(one.number, one.outcome) for one in made] == [(2, "not_passed"), (1, "not_passed")]
    assert shared.spent(account) == charged


def test_queries_of_a_stream_of_ranges_follow_one_another(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows two requests at the same moment: the second waits for its turn, without a thread that another stream would
    need, and each query is counted and answered once; without time to wait it is refused and counts nothing. What is
    compared while its stream is closed is thrown away."""
    ann, _ = shared.somebody()
    bob, _ = shared.somebody()
    body = {
        "dataset": "clinic",
        "table": "people",
        "columns": [{"name": "age", "low": 18, "high": 89}],
        "epsilon": "100",
        "updates": 2,
        "queries": 20,
    }
    stream, other = (f"/v1/streams/{shared.call(who, 'POST', '/v1/streams', body).json()['id']}" for who in (ann, bob))

    def ask(who: str, path: str, low: int) -> httpx.Response:
        where = [{"key": "age", "low": low, "high": 60}]
        return shared.call(who, "POST", f"{path}/queries", {"queries": [{"where": where}]})

    with ThreadPoolExecutor(2) as pool, held(Streams, "_answered", monkeypatch) as (running, go):
        first = pool.submit(ask, ann, stream, 20)
        assert running.wait(20)
        with monkeypatch.context() as patch:
            patch.setattr(routes, "_TURN_SECONDS", 0.0)
            refused = ask(ann, stream, 30)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        assert (refused.headers["retry-after"], refused.json()["charged"]) == ("1", False)
        waiting = pool.submit(ask, ann, stream, 40)
        assert ask(bob, other, 20).status_code == 200
        assert not waiting.done()
        go.set()
        told = [one.result() for one in (first, waiting)]
    assert [one.status_code for one in told] == [200, 200]
    assert [one.json()["answers"][0]["found"] for one in told] == ["synopsis", "synopsis"]
    assert shared.call(ann, "GET", stream).json()["compared"] == 2
    with ThreadPoolExecutor(1) as pool, held(Streams, "_answered", monkeypatch) as (running, go):
        last = pool.submit(ask, ann, stream, 50)
        assert running.wait(20)
        assert shared.call(ann, "DELETE", stream).json()["status"] == "closed"
        go.set()
    assert (last.result().status_code, last.result().json()["code"]) == (409, "conflict")
    assert "overtaken" in last.result().json()["what"]
