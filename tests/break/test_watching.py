"""What anybody can watch beside the answer: moments, refunds, readiness, other people's accounts."""

from __future__ import annotations

import asyncio
import datetime
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from types import NoneType
from typing import Any, NoReturn

import pytest

from accountant.account import FilterKind
from privacy.refusal import ExecutionFailed
from server.app import create_app
from server.services import Services
from tests.journey.clinic import question
from tests.server.fakes import Api

DERIVED = "SELECT COUNT(*) * 2 AS n FROM people WHERE age < {}"


class Held:
    """The journey's sleep until a visible moment: says that it began, and ends when it is told."""

    def __init__(self, journey: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self._began, self._over = threading.Event(), threading.Event()
        self._seconds: list[float] = []
        monkeypatch.setattr(journey.pace, "sleep", self._sleep)
        # Longer than any query of these tests, so that there always is a wait.
        monkeypatch.setattr(journey.pace, "tick_seconds", 60.0)

    def _sleep(self, seconds: float) -> None:
        self._seconds.append(seconds)
        self._began.set()
        assert self._over.wait(60)

    def wait(self) -> None:
        """Until everything is computed and only the visible moment is waited for."""
        assert self._began.wait(60)
        assert self._seconds[0] > 0

    def end(self) -> None:
        """The visible moment."""
        self._over.set()


@pytest.mark.parametrize("sql", ["SELECT COUNT(*) AS n FROM people WHERE age < 31", DERIVED.format(31)])
def test_a_poll_does_not_see_an_answer_before_its_visible_moment(
    services: Services, attacker: Callable[..., str], monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    """The answer was stored when it was ready: GET told the running time to the millisecond."""
    name = attacker()
    held = Held(services.journey, monkeypatch)
    admitted = services.journey.admit(question(sql, name, reuse="none"))  # type: ignore[attr-defined]
    runner = threading.Thread(target=services.journey.complete, args=(admitted,))
    runner.start()
    try:
        held.wait()
        record = services.ledger.query(admitted.query_id)
        assert record is not None
        assert record.state == "reserved"
    finally:
        held.end()
        runner.join()
    record = services.ledger.query(admitted.query_id)
    assert record is not None
    assert record.state == "settled"


@pytest.mark.parametrize("fails", [False, True])
def test_the_entries_of_an_account_do_not_tell_how_long_a_query_ran(
    services: Services, attacker: Callable[..., str], monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """An analyst reads the moments of the reserve and of the end: the end is written at a visible moment."""
    name = attacker()
    if fails:
        monkeypatch.setattr(services.journey.running._private, "run", _failed)  # type: ignore[attr-defined]
    held = Held(services.journey, monkeypatch)
    admitted = services.journey.admit(question(DERIVED.format(32), name, reuse="none"))  # type: ignore[attr-defined]
    (account,) = services.ledger.accounts(dataset="clinic", principal=name)

    def kinds() -> set[str]:
        return {entry.kind for entry in services.ledger.entries(account.id)}

    with ThreadPoolExecutor(1) as threads:
        completed = threads.submit(services.journey.complete, admitted)
        try:
            held.wait()
            assert not {"fail", "post"} & kinds()
            at = datetime.datetime.now(datetime.UTC)
        finally:
            held.end()
        assert isinstance(completed.exception(timeout=60), ExecutionFailed if fails else NoneType)
    (ended,) = [entry for entry in services.ledger.entries(account.id) if entry.kind in ("fail", "post")]
    assert ended.kind == ("fail" if fails else "post")
    assert ended.moment >= at


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


def _nobody_waits(*_: object) -> NoReturn:
    raise AssertionError("a check of readiness waits")


def test_readiness_does_not_depend_on_what_runs(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """/readyz needs no key: it waited for an idle worker, and so told anybody when a query ended."""
    checks = {check.name: check.run for check in services.checks}
    for engine, name in ((services.journey.running._private, "engine"), (services.journey.running._shell, "shell")):  # type: ignore[attr-defined]
        assert engine.wait_ready()
        pool = engine._pool
        taken = []
        while pool._idle:
            taken.append(pool._take(time.monotonic() + 60))
        try:
            # One that waited for a worker would wait in vain.
            with monkeypatch.context() as patch:
                for waiting in ("wait_ready", "lease", "call", "_take"):
                    patch.setattr(pool, waiting, _nobody_waits)
                checks[name]()
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
