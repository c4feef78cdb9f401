"""Evaluations whose process died: ended at the next start, counted, silent; and twins that draw again are caught."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from server.errors import Problem
from server.monitors.monitors import Monitors
from server.monitors.notices import notice_of
from server.monitors.recovery import Recovery
from server.monitors.refusals import UnderWay
from server.monitors.terms import EvaluateMonitor
from server.store.monitors import EvaluationRow, NotBegun
from server.store.registry import Registry
from server.store.resources import MONITORS, MonitorRow
from tests.journey.clinic import clinic_in, services_of
from tests.journey.watched import Clinic


class Killed(BaseException):
    """What ends a process between two lines of it: nothing in it handles this."""


def killed_after(at: str, clinic: Clinic, patch: pytest.MonkeyPatch) -> None:
    """Ends the process once a step has been made."""
    place: Any = clinic.monitors.resources.private if at == "run" else clinic.services.ledger
    genuine = getattr(place, at)

    def die(*given: Any, **named: Any) -> None:
        genuine(*given, **named)
        raise Killed

    patch.setattr(place, at, die)


def crashed(home: Path, patch: pytest.MonkeyPatch, *, at: str, **options: Any) -> tuple[Path, str]:
    """A home whose process ended in an evaluation of a monitor. Returns the dataset's file and the monitor."""
    with clinic_in(home) as (services, path):
        clinic = Clinic(home, services, path)
        clinic.person("ann", epsilon="40")
        monitor = clinic.open("ann", **options).json()["id"]
        row = services.registry.resource(MONITORS, monitor)
        assert row is not None
        with patch.context() as planted:
            killed_after(at, clinic, planted)
            with pytest.raises(Killed):
                clinic.monitors.evaluate(row, EvaluateMonitor())
        assert services.registry.evaluating() == {services.ledger.instance}
    return path, monitor


def require_silence(home: Path, monitor: str, *, state: object) -> None:
    """After a restart: one evaluation that failed and is counted, the state of before, and the next one goes on."""
    with services_of(home) as services:
        found = services.registry.evaluations(monitor, count=9)
        assert [(one.number, one.outcome, one.detail) for one in found] == [(1, "failed", None)]
        assert services.registry.resource(MONITORS, monitor) == state
        assert services.registry.evaluating() == frozenset()
        assert isinstance(services.monitors, Monitors)
        row = services.registry.resource(MONITORS, monitor)
        assert row is not None
        said = services.monitors.evaluate(row, EvaluateMonitor())
        assert (said.number, said.outcome) == (2, "passed")
        assert services.ledger.audit().findings == ()


def stored(home: Path, monitor: str) -> object:
    """The state of a monitor, read by a process that recovers nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recovery, "recover", lambda _: 0)
        with services_of(home) as services:
            return services.registry.resource(MONITORS, monitor)


@dataclass(frozen=True)
class Left:
    """A home whose process died in an evaluation, its monitor, and the state that this has."""

    home: Path
    monitor: str
    state: object


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Such a home, to be copied."""
    home = tmp_path_factory.mktemp("left")
    with pytest.MonkeyPatch.context() as patch:
        _, monitor = crashed(home, patch, at="run", threshold="100")
    return Left(home, monitor, stored(home, monitor))


def test_an_evaluation_whose_process_died_failed(left: Left, tmp_path: Path) -> None:
    """Shows that it is ended at the next start: counted, without an outcome, with the state that it had."""
    shutil.copytree(left.home, tmp_path, dirs_exist_ok=True)
    require_silence(tmp_path, left.monitor, state=left.state)


def note(
    registry: Registry, row: MonitorRow, found: EvaluationRow, *, outcome: str = "failed", detail: str | None = None
) -> bool:
    """Ends an evaluation as though its process had."""
    notice = notice_of(row, found, outcome=outcome, detail=detail)
    return registry.note_evaluation(row.id, found.number, outcome=outcome, detail=detail, notice=notice)


def draws_again(recovery: Recovery) -> int:
    """A twin that compares again in place of what died, under its number."""
    for found in recovery.registry.evaluations_of(recovery.registry.evaluating()):
        row = recovery.registry.resource(MONITORS, found.monitor)
        assert row is not None
        note(recovery.registry, row, found, outcome="passed", detail='{"gap": 2900.0}')
    return 1


def forgets(recovery: Recovery) -> int:
    """A twin that takes the evaluation back as though it had read nothing."""
    with recovery.registry._engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM monitor_evaluations WHERE outcome IS NULL")
    return 1


@pytest.mark.slow
@pytest.mark.parametrize("bug", [draws_again, forgets, lambda _: 0])
def test_wrong_recoveries_are_caught(
    bug: Callable[[Recovery], int], left: Left, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that drawing again, not counting, and leaving it as it is break what is required."""
    shutil.copytree(left.home, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(Recovery, "recover", bug)
    with pytest.raises((AssertionError, Problem)):
        require_silence(tmp_path, left.monitor, state=left.state)


@pytest.mark.slow
@pytest.mark.parametrize(("at", "answered"), [("reserve", False), ("post", True)])
def test_a_hit_whose_process_died_is_answered_by_what_the_ledger_has(
    at: str, answered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that a stored hit stays one, that its answer is said where it was stored, and is refused where it was not:
    charged in both cases, and never drawn again."""
    options = {"threshold": "100", "answer_epsilon": "1", "hits": 2, "stream": True}
    _, monitor = crashed(tmp_path, monkeypatch, at=at, **options)
    with services_of(tmp_path) as services:
        (hit,) = services.registry.hits(monitor)
        said = json.loads(hit.detail or "")
        record = services.ledger.query(f"{monitor}.1")
        assert record is not None
        assert record.charged
        assert (hit.instance, "gap" in said, "beyond" in said) == (None, True, answered)
        assert said.get("answer_refused") == (None if answered else "unavailable")
        row = services.registry.resource(MONITORS, monitor)
        assert row is not None
        assert row.left == 1
        assert services.ledger.audit().findings == ()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic whose data stay as they are, for tests with analysts of their own."""
    home = tmp_path_factory.mktemp("alive")
    with clinic_in(home) as (services, path):
        yield Clinic(home, services, path)


@pytest.mark.slow
def test_a_process_that_was_only_slow_throws_its_outcome_away(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that an evaluation that was ended meanwhile says nothing of what it found, and uses no hit."""
    clinic = shared
    services = clinic.services
    ann, _ = clinic.somebody()
    monitor = clinic.open(ann, threshold="100").json()["id"]
    row = services.registry.resource(MONITORS, monitor)
    assert row is not None
    genuine = clinic.monitors.resources.private.run

    def slow(*given: Any, **named: Any) -> Any:
        found = genuine(*given, **named)
        assert note(services.registry, row, services.registry.evaluation(monitor, 1))
        return found

    monkeypatch.setattr(clinic.monitors.resources.private, "run", slow)
    with pytest.raises(Problem) as caught:
        clinic.monitors.evaluate(row, EvaluateMonitor())
    assert "overtaken" in caught.value.finding.what
    assert services.registry.resource(MONITORS, monitor) == row
    assert services.registry.hits(monitor) == ()


def test_an_evaluation_waits_for_another_one_of_the_same_version(shared: Clinic) -> None:
    """Shows that a version that is being compared is not compared again, and counts nothing."""
    clinic = shared
    services = clinic.services
    ann, _ = clinic.somebody()
    monitor = clinic.open(ann, threshold="100").json()["id"]
    row = services.registry.resource(MONITORS, monitor)
    assert row is not None
    begun = clinic.monitors.begin(row, EvaluateMonitor())
    version = begun.version
    other = services.registry.begin_evaluation(
        monitor, revision=0, version=version, most=9, instance=services.ledger.instance, standing=True
    )
    assert not isinstance(other, NotBegun)
    assert other.number == 1
    with pytest.raises(UnderWay):
        clinic.monitors.begin(row, EvaluateMonitor())
    again = services.registry.begin_evaluation(
        monitor, revision=0, version=version, most=9, instance="i", standing=True
    )
    assert again is NotBegun.UNDER_WAY
    assert note(services.registry, row, other)
    assert clinic.evaluate(ann, monitor).json()["number"] == 2
