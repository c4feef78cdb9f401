"""What is the same of every resource, with real parts over HTTP: each rule is tried on all kinds of one table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant.filter import Branch, alive_branches
from privacy.events import GaussianEvent
from server.journey.running import Running
from server.monitors.monitors import Monitors
from server.resources.kinds import ResourceKind
from server.resources.resources import Resources
from server.synthetic import making
from tests.journey.clinic import clinic_in, services_of
from tests.journey.watched import COUNT, Clinic, restarted

BODIES: dict[ResourceKind, dict[str, Any]] = {
    ResourceKind.MONITOR: {"sql": COUNT, "threshold": "3500", "epsilon": "2", "evaluations": 50},
    ResourceKind.STREAM: {
        "table": "people",
        "columns": [{"name": "age", "low": 18, "high": 89}],
        "epsilon": "2",
        "queries": 50,
    },
    ResourceKind.BATCH: {
        "queries": [f"{COUNT} WHERE age < {age}" for age in (30, 50)],
        "spend": {"epsilon": "2"},
        "wait_ms": 30_000,
    },
    ResourceKind.MODEL: {
        "sql": "SELECT age, sex, age >= 54 AS label FROM people",
        "spend": {"epsilon": "2"},
        "iterations": 5,
        "wait_ms": 30_000,
    },
    ResourceKind.SYNTHETIC: {"table": "people", "name": "drawn_people", "epsilon": "2", "wait_ms": 30_000},
}
KINDS = [pytest.param(kind, id=kind.value) for kind in BODIES]
CANCELLED = [pytest.param(kind, id=kind.value) for kind in BODIES if not kind.session]
CLOSED = (ResourceKind.MONITOR, ResourceKind.STREAM, ResourceKind.SYNTHETIC)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic for tests with analysts of their own."""
    home = tmp_path_factory.mktemp("resources")
    with clinic_in(home) as (services, path):
        yield Clinic(home, services, path)


def make(clinic: Clinic, who: str, kind: ResourceKind, key: str = "", **options: Any) -> Any:
    """Asks for one."""
    body = {"dataset": "clinic", **BODIES[kind], **options}
    return clinic.call(who, "POST", kind.path, body, **({"Idempotency-Key": key} if key else {}))


def left_running(patch: pytest.MonkeyPatch) -> None:
    """From here on what was charged never gets its turn, as in a process that dies."""
    patch.setattr(Resources, "make", lambda *_, **__: b"")
    patch.setattr(Resources, "settle", lambda *_, **__: b"")
    patch.setattr(Running, "complete", lambda *_, **__: b"")


@pytest.mark.sparse(4)
@pytest.mark.parametrize("kind", KINDS)
def test_one_life_of_every_kind(shared: Clinic, kind: ResourceKind) -> None:
    """Shows estimate, creation, retry, lists, strangers, a restart: the same fields, at the price that was agreed."""
    who, account = shared.somebody(epsilon="10")
    stranger, _ = shared.somebody(epsilon="10")
    estimate = shared.call(who, "POST", f"{kind.path}:estimate", {"dataset": "clinic", **BODIES[kind]}).json()
    assert shared.spent(account) == 0
    first = make(shared, who, kind, key="once")
    assert first.status_code == 201, first.text
    shown = first.json()
    address = shown["links"]["self"]
    assert first.headers["location"] == address == f"{kind.path}/{shown['id']}"
    assert (shown["status"], shown["error"], shown["closed"]) == ("settled", None, None)
    assert (shown["dataset"], shown["principal"], shown["budget"]) == ("clinic", who, account)
    assert shown["created"] <= shown["finished"]
    (charged,) = shown["charged"]
    assert charged["epsilon"] == shown["price"]["epsilon"]
    # Decimal texts are rounded up: an estimate of an approximate account to millionths.
    spent = shared.spent(account)
    assert 0 <= Fraction(charged["epsilon"]) - spent < Fraction(1, 10**11)
    assert 0 <= Fraction(estimate["price"]["epsilon"]) - spent < Fraction(2, 10**6)
    assert estimate["price"]["own"] == shown["price"]["own"]
    # Under its key it is found again, and nothing is charged; another body is refused.
    again = make(shared, who, kind, key="once")
    assert (again.status_code, again.json()) == (201, shown)
    other = make(shared, who, kind, key="once", budget=account)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
    assert spent == shared.spent(account)

    def listed(by: str, **query: str) -> list[str]:
        asked = "&".join(f"{name}={value}" for name, value in query.items())
        return [one["id"] for one in shared.call(by, "GET", f"{kind.path}?{asked}").json()[kind.plural]]

    assert listed(who) == listed(who, dataset="clinic") == [shown["id"]]
    assert listed(who, dataset="other") == []
    assert listed(stranger) == []
    for method, path in (("GET", address), ("GET", f"{kind.path}?after={shown['id']}"), ("DELETE", address)):
        told = shared.call(stranger, method, path).status_code
        assert told == 404 or (method == "DELETE" and kind not in CLOSED and told == 405)
    with restarted(shared):
        assert shared.call(who, "GET", address).json() == shown
        assert make(shared, who, kind, key="once").json() == shown


@pytest.mark.parametrize("kind", KINDS)
def test_the_charge_is_there_before_the_first_row(
    shared: Clinic, kind: ResourceKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that whatever statement reads rows finds the whole charge made; a session reads none to be opened."""
    who, account = shared.somebody(epsilon="10")
    assert isinstance(shared.services.resources, Resources)
    private, seen = shared.services.resources.private, list[Fraction]()
    for step in ("run", "read_rows", "add_up"):
        genuine = getattr(private, step)

        def read(*given: Any, _step: Any = genuine, **named: Any) -> Any:
            seen.append(shared.spent(account))
            return _step(*given, **named)

        monkeypatch.setattr(private, step, read)
    assert make(shared, who, kind).status_code == 201
    assert set(seen) == (set() if kind.session else {shared.spent(account)})


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_charge_reads_nothing(shared: Clinic, kind: ResourceKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows an account that cannot pay: 403, nothing charged or listed, and no slot of the engine taken."""
    who, account = shared.somebody(epsilon="1")
    assert isinstance(shared.services.resources, Resources)
    monkeypatch.setattr(shared.services.resources.private, "lease", None)
    refused = make(shared, who, kind)
    assert (refused.status_code, refused.json()["code"]) == (403, "budget_exhausted"), refused.text
    assert refused.json()["charged"] is False
    assert shared.spent(account) == 0
    assert shared.call(who, "GET", kind.path).json()[kind.plural] == []


@pytest.mark.parametrize("kind", CANCELLED)
def test_what_waits_is_cancelled_for_nothing(
    shared: Clinic, kind: ResourceKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows 202 while it waits, a cancel that gives the charge back, and one that comes too late."""
    who, account = shared.somebody(epsilon="10")
    with monkeypatch.context() as patch:
        left_running(patch)
        waiting = make(shared, who, kind, key="once")
    assert (waiting.status_code, waiting.headers["retry-after"]) == (202, "1")
    shown = waiting.json()
    assert (shown["status"], shown["finished"]) == ("running", None)
    assert shared.spent(account) > 0
    cancelled = shared.call(who, "POST", shown["links"]["cancel"]).json()
    assert cancelled == {"id": shown["id"], "status": "failed_void", "charged": False}
    assert shared.spent(account) == 0
    void = shared.call(who, "GET", shown["links"]["self"]).json()
    assert (void["status"], void["error"]["code"], void["error"]["charged"]) == ("failed_void", "query_void", False)
    assert make(shared, who, kind, key="once").json()["code"] == "query_void"
    done = make(shared, who, kind).json()
    late = shared.call(who, "POST", done["links"]["cancel"]).json()
    assert (late["status"], late["charged"]) == ("settled", True)


def test_what_is_used_on_is_closed(shared: Clinic) -> None:
    """Shows that closing ends the use, keeps the charge, and changes nothing twice."""
    for kind in CLOSED:
        who, account = shared.somebody(epsilon="10")
        shown = make(shared, who, kind).json()
        spent = shared.spent(account)
        gone = shared.call(who, "DELETE", shown["links"]["self"])
        assert (gone.status_code, gone.json()["status"]) == (200, "closed")
        assert gone.json()["closed"] is not None
        assert shared.call(who, "DELETE", shown["links"]["self"]).json() == gone.json()
        assert shared.spent(account) == spent
        if kind is ResourceKind.MONITOR:
            assert shared.evaluate(who, shown["id"]).status_code == 409
        if kind is ResourceKind.STREAM:
            queries = {"queries": [{"where": []}]}
            assert shared.call(who, "POST", shown["links"]["queries"], queries).status_code == 409


def test_what_runs_when_a_process_dies_fails_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows each kind under way, then after the next start one opaque outcome, and the charge that stays."""
    with clinic_in(tmp_path) as (services, path):
        clinic = Clinic(tmp_path, services, path)
        accounts = {kind: clinic.person(kind.value, epsilon="10") for kind in BODIES}
        with monkeypatch.context() as patch:
            left_running(patch)
            left = {kind: make(clinic, kind.value, kind, key="once").json() for kind in BODIES}
        assert {shown["status"] for shown in left.values()} == {"running"}
        for kind in CLOSED:
            assert clinic.call(kind.value, "DELETE", left[kind]["links"]["self"]).status_code == 409
        spent = {kind: clinic.spent(account) for kind, account in accounts.items()}
    with services_of(tmp_path) as services:
        clinic.services = services
        for kind, shown in left.items():
            assert clinic.spent(accounts[kind]) == spent[kind] > 0
            told = clinic.call(kind.value, "GET", shown["links"]["self"]).json()
            assert (told["status"], told["error"]["code"]) == ("failed_charged", "execution_failed"), kind
            assert told["error"]["charged"] is True
            assert told["finished"] is not None
            assert make(clinic, kind.value, kind, key="once").json()["code"] == "execution_failed"


@pytest.mark.sparse(4)
@pytest.mark.parametrize("kind", KINDS)
def test_beside_an_open_session_rho_admits_nothing(shared: Clinic, kind: ResourceKind) -> None:
    """Shows that beside a monitor the concentrated branch admits nothing of any kind, on any account of the path."""
    who, account = shared.somebody(epsilon="40")
    names = (f"drawn_{number}" for number in range(99))

    def more() -> Any:
        return make(shared, who, kind, **({"name": next(names)} if kind is ResourceKind.SYNTHETIC else {}))

    assert more().status_code == 201
    assert make(shared, who, ResourceKind.MONITOR).status_code == 201
    assert more().status_code == 201
    for one in shared.services.ledger.path(account):
        assert Branch.CONCENTRATED not in alive_branches(one.spent, one.branches)
        assert alive_branches(one.spent, one.branches) != ()


def test_a_session_with_rho_is_not_charged(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the guard at the one place that charges: a kind that stays open, with an event that has a rho."""
    who, account = shared.somebody(epsilon="10")
    genuine = Monitors._planned

    def planted(self: Monitors, request: Any) -> Any:
        opening = genuine(self, request)
        event = GaussianEvent(l2_squared=Fraction(1, 100), variance=Fraction(1))
        return replace(opening, offer=replace(opening.offer, events=(event,)))

    monkeypatch.setattr(Monitors, "_planned", planted)
    assert make(shared, who, ResourceKind.MONITOR).status_code == 500
    assert shared.spent(account) == 0


def test_a_table_whose_units_take_long_is_refused(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the rows of one person may not take long enough to be seen, before anything is charged."""
    who, account = shared.somebody(epsilon="10")
    monkeypatch.setattr(making, "UNIT_NANOSECONDS_MAX", 1.0)
    refused = make(shared, who, ResourceKind.SYNTHETIC)
    assert (refused.status_code, refused.json()["code"], refused.json()["charged"]) == (422, "too_large", False)
    assert shared.spent(account) == 0
