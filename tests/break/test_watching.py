"""What anybody can watch beside the answer: moments, refunds, readiness, other people's accounts."""

from __future__ import annotations

import asyncio
import datetime
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

import pytest

from accountant.account import FilterKind
from privacy.refusal import ExecutionFailed
from server.app import create_app
from server.services import Services
from tests.journey.clinic import question
from tests.server.fakes import Api

TICK = 0.6
DERIVED = "SELECT COUNT(*) * 2 AS n FROM people WHERE age < {}"


class SlowClock:
    """A tick that is longer than any query of these tests."""

    def __init__(self, journey: Any) -> None:
        self.journey, self.before = journey, journey.pace.tick_seconds

    def __enter__(self) -> None:
        self.journey.pace.tick_seconds = TICK

    def __exit__(self, *_: object) -> None:
        self.journey.pace.tick_seconds = self.before


@pytest.mark.parametrize("sql", ["SELECT COUNT(*) AS n FROM people WHERE age < 31", DERIVED.format(31)])
def test_a_poll_does_not_see_an_answer_before_its_visible_moment(
    services: Services, attacker: Callable[..., str], sql: str
) -> None:
    """The answer was stored when it was ready: GET told the running time to the millisecond."""
    name = attacker()
    with SlowClock(services.journey):
        begun = time.monotonic()
        admitted = services.journey.admit(question(sql, name, reuse="none"))  # type: ignore[attr-defined]
        runner = threading.Thread(target=services.journey.complete, args=(admitted,))
        runner.start()
        while time.monotonic() < begun + TICK * 0.8:
            record = services.ledger.query(admitted.query_id)
            assert record is not None
            assert record.state in ("reserved", "running")
            time.sleep(0.02)
        runner.join()
    record = services.ledger.query(admitted.query_id)
    assert record is not None
    assert record.state == "settled"


@pytest.mark.parametrize("fails", [False, True])
def test_the_entries_of_an_account_do_not_tell_how_long_a_query_ran(
    services: Services, attacker: Callable[..., str], monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """An analyst reads the moments of the reserve and of the end: they lie a visible moment apart."""
    name = attacker()
    if fails:
        monkeypatch.setattr(services.journey.running._private, "run", _failed)  # type: ignore[attr-defined]
    with SlowClock(services.journey):
        admitted = services.journey.admit(question(DERIVED.format(32), name, reuse="none"))  # type: ignore[attr-defined]
        if fails:
            with pytest.raises(ExecutionFailed):
                services.journey.complete(admitted)
        else:
            services.journey.complete(admitted)
    (account,) = services.ledger.accounts(dataset="clinic", principal=name)
    moments = {entry.kind: entry.moment for entry in services.ledger.entries(account.id)}
    ended = moments["fail" if fails else "post"]
    assert ended - moments["reserve"] > datetime.timedelta(seconds=TICK * 0.8)


def _failed(*_: object, **__: object) -> NoReturn:
    raise ExecutionFailed


def _spent(services: Services, principal: str) -> Fraction:
    """Nominal epsilon that is gone from the principal's account."""
    (account,) = services.ledger.accounts(dataset="clinic", principal=principal)
    return account.limit.epsilon - account.remaining_epsilon()


def _unavailable(*_: object, **__: object) -> NoReturn:
    raise ExecutionFailed(started=False)


def test_a_shell_without_a_free_worker_gives_no_refund(
    services: Services, attacker: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keeping the shell busy voided queries whose rows had been read: free, and only if the private part succeeded."""
    name = attacker()
    admitted = services.journey.admit(question(DERIVED.format(33), name))  # type: ignore[attr-defined]
    monkeypatch.setattr(services.journey.running._shell, "run", _unavailable)  # type: ignore[attr-defined]
    with pytest.raises(ExecutionFailed) as failed:
        services.journey.complete(admitted)
    assert failed.value.started
    record = services.ledger.query(admitted.query_id)
    assert record is not None
    assert record.state == "failed_charged"
    assert _spent(services, name) > Fraction(99, 100)


def test_a_private_engine_that_never_started_does(
    services: Services, attacker: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other side of the rule above: nothing was read, nothing is spent."""
    name = attacker()
    admitted = services.journey.admit(question(DERIVED.format(34), name))  # type: ignore[attr-defined]
    monkeypatch.setattr(services.journey.running._private, "run", _unavailable)  # type: ignore[attr-defined]
    with pytest.raises(ExecutionFailed) as failed:
        services.journey.complete(admitted)
    assert not failed.value.started
    assert _spent(services, name) == 0


def test_readiness_does_not_depend_on_what_runs(services: Services) -> None:
    """/readyz needs no key: it waited for an idle worker, and so told anybody when a query ended."""
    checks = {check.name: check.run for check in services.checks}
    for engine, name in ((services.journey.running._private, "engine"), (services.journey.running._shell, "shell")):  # type: ignore[attr-defined]
        assert engine.wait_ready()
        pool = engine._pool
        taken = []
        while pool._idle:
            taken.append(pool._take(time.monotonic() + 5))
        try:
            begun = time.monotonic()
            checks[name]()
            # One that waited for a worker would wait for all ten seconds of `wait_ready`.
            assert time.monotonic() - begun < 5
        finally:
            for worker in taken:
                pool._finish(worker, healthy=True)


def test_the_list_of_queries_shows_no_account_above_the_own(services: Services, attacker: Callable[..., str]) -> None:
    """The root's share of a charge moves with what others have spent."""
    name = attacker(kind=FilterKind.APPROXIMATE)
    services.registry.create_principal(name, role="analyst", actor="test")
    key = services.registry.create_key(name, label="", days=1, actor="test").text
    services.journey.complete(services.journey.admit(question("SELECT COUNT(*) AS n FROM people WHERE age < 35", name)))
    (account,) = services.ledger.accounts(dataset="clinic", principal=name)
    with asyncio.Runner() as runner:
        api = Api(create_app(services.settings, services=services), runner, {name: key})
        listed = api.call("GET", "/v1/queries", who=name).json()["queries"]
        api.close()
    assert [[part["budget"] for part in query["charged"]] for query in listed] == [[account.id]]
