"""Standing monitors that the server evaluates by itself: once for each version, whoever polls, and within its queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from privacy.refusal import ExecutionFailed
from server.attending import attended
from server.errors import Problem
from server.jobs import JobPool
from server.monitors.background import StandingMonitors
from tests.journey.clinic import clinic_in
from tests.journey.watched import Clinic


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    """A clinic of its own."""
    with clinic_in(tmp_path) as (services, path):
        yield Clinic(tmp_path, services, path)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic whose data stay as they are."""
    home = tmp_path_factory.mktemp("standing")
    with clinic_in(home) as (services, path):
        yield Clinic(home, services, path)


@pytest.fixture
def shared(lasting: Clinic) -> Iterator[Clinic]:
    """The same, in which nobody else's monitors are evaluated."""
    yield lasting
    for principal in lasting.services.registry.principals():
        lasting.services.registry.change_principal(principal.name, disabled=True, actor="test")


def standing(clinic: Clinic) -> StandingMonitors:
    """What a server process evaluates by itself."""
    return StandingMonitors(clinic.monitors, clinic.services.catalogue, clinic.services.jobs)


def turn(*processes: StandingMonitors) -> int:
    """One look of each process, all at the same time, and the ends of what they began. Returns how many those were."""

    async def run() -> int:
        begun = await asyncio.gather(*(one.look() for one in processes))
        for one in processes:
            await one.rounds.finished()
        return sum(begun)

    return asyncio.run(run())


def made(clinic: Clinic, who: str, monitor: str) -> list[tuple[int, str]]:
    """The evaluations of a monitor: how many were made, and what the last one said."""
    shown = clinic.call(who, "GET", f"/v1/monitors/{monitor}").json()
    return [(shown["evaluations_made"], shown["last"]["outcome"])] if shown["last"] else []


def test_each_version_is_evaluated_once_without_anybody_polling(clinic: Clinic) -> None:
    """Shows the present version, a new one that passes, and nothing more after the last hit; polls say the same."""
    clinic.person("ann")
    monitor = clinic.open("ann").json()["id"]
    process = standing(clinic)
    assert turn(process) == 1
    assert made(clinic, "ann", monitor) == [(1, "not_passed")]
    assert turn(process) == 0
    clinic.grow(1_000)
    assert turn(process) == 1
    assert made(clinic, "ann", monitor) == [(2, "passed")]
    said = clinic.evaluate("ann", monitor).json()
    assert (said["number"], said["repeated"]) == (2, True)
    clinic.grow(1)
    assert turn(process) == 0


def test_a_poll_waits_for_what_the_server_evaluates(clinic: Clinic) -> None:
    """Shows a long poll that ends with the outcome of another version, which the server compared, and counts once."""
    clinic.person("ann")
    monitor = clinic.open("ann").json()["id"]
    services = attended(clinic.services)
    deadline = time.monotonic() + 20
    while not made(clinic, "ann", monitor):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    clinic.grow(1_000)
    said = clinic.evaluate("ann", monitor, after=1, wait_ms=20_000).json()
    assert (said["number"], said["outcome"]) == (2, "passed")
    assert len(services.closing) > 6


def test_streams_and_those_that_were_not_asked_for_are_left_alone(shared: Clinic) -> None:
    """Shows that a stream has no question without its owner, that `background` can be declined, and that those of a
    disabled principal rest."""
    ann, _ = shared.somebody()
    bob, _ = shared.somebody()
    stream = shared.open(ann, stream=True).json()
    asked = shared.open(ann, background=False).json()
    assert (stream["background"], asked["background"]) == (False, False)
    refused = shared.open(ann, stream=True, background=True)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    assert shared.open(bob).json()["background"] is True
    shared.services.registry.change_principal(bob, disabled=True, actor="test")
    assert turn(standing(shared)) == 0
    shared.services.registry.change_principal(bob, disabled=False, actor="test")
    assert turn(standing(shared)) == 1


def test_several_processes_share_the_work(shared: Clinic) -> None:
    """Shows that two processes that look at the same moment count one evaluation."""
    ann, _ = shared.somebody()
    monitor = shared.open(ann).json()["id"]
    turn(standing(shared), standing(shared))
    assert made(shared, ann, monitor) == [(1, "not_passed")]


def test_what_failed_is_not_made_again_by_itself(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a failure is counted once for a version, and that its owner may evaluate it again."""
    ann, _ = shared.somebody()
    monitor = shared.open(ann).json()["id"]

    def fail(*_: object, **__: object) -> None:
        raise ExecutionFailed

    process = standing(shared)
    with monkeypatch.context() as patch:
        patch.setattr(shared.monitors.resources.private, "run", fail)
        assert turn(process) == 1
    assert made(shared, ann, monitor) == [(1, "failed")]
    assert turn(process) == 0
    assert shared.evaluate(ann, monitor).json()["number"] == 2


def test_a_full_queue_is_waited_for_and_a_refusal_is_not(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a version is tried again when the queue was full, and once where declarations refuse it."""
    ann, _ = shared.somebody()
    monitor = shared.open(ann).json()["id"]
    process = standing(shared)

    async def full(*_: object, **__: object) -> Any:
        raise Problem("rate_limited", what="too many queries are waiting")

    with monkeypatch.context() as patch:
        patch.setattr(JobPool, "run", full)
        assert (turn(process), turn(process)) == (1, 1)
    assert made(shared, ann, monitor) == []
    with monkeypatch.context() as patch:
        patch.setattr(shared.services.ledger, "restores", lambda _: 9)
        assert (turn(process), turn(process)) == (1, 0)
    assert made(shared, ann, monitor) == []


def test_no_principal_takes_all_turns(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that of one principal one evaluation is under way at a time, and of all a few."""
    ann, _ = shared.somebody(epsilon="40")
    bob, _ = shared.somebody()
    for who in (ann, ann, ann, bob):
        assert shared.open(who).status_code == 201
    process = standing(shared)
    begun = []
    while (count := turn(process)) > 0:
        begun.append(count)
    assert begun == [2, 1, 1]
