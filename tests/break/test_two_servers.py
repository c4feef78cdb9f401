"""Two server processes on one ledger: what one of them does must hold for the other, whatever the clocks say."""

from __future__ import annotations

import datetime
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from accountant.account import FilterKind
from accountant.errors import BudgetExhausted, IllegalTransition
from accountant.ledger import Ledger
from accountant.request import CoreCharge, ReserveRequest
from migrations.upgrade import upgrade
from privacy.events import LaplaceEvent
from server.admitted import InFlight
from server.build import build_services
from server.services import Services
from server.settings import Settings
from tests.clocks import Clock
from tests.journey.clinic import attach, open_account, question, stored, write_files
from tests.kept_workers import kept_workers

Pair = tuple[Services, Services]
KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)]


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a migrated ledger."""
    if request.param == "postgresql":
        given: str = request.getfixturevalue("postgresql_url")
        return given
    address = f"sqlite:///{tmp_path / 'ledger.db'}"
    upgrade(address)
    return address


@pytest.fixture
def pair(url: str, tmp_path: Path) -> Iterator[Pair]:
    """Two servers with the same home and ledger."""
    path = write_files(tmp_path / "home" / "sources")
    settings = Settings(home=tmp_path / "home", database_url=url, engine_workers=1)  # type: ignore[arg-type]
    with ExitStack() as stack:
        servers = []
        for _ in range(2):
            with kept_workers():
                services = build_services(settings)
            for close in reversed(services.closing):
                stack.callback(close)
            stack.callback(services.jobs.close, seconds=5)
            if not servers:
                attach(services, path)
            servers.append(services)
        yield servers[0], servers[1]


def ask(services: Services, *arguments: Any, **options: Any) -> bytes:
    """The answer of one server, which waits for the other one's when that runs the same request."""
    journey = services.journey
    admitted: Any = journey.admit(question(*arguments, **options))
    while isinstance(admitted, InFlight):
        threading.Event().wait(0.02)
        admitted = journey.admit(question(*arguments, **options))
    return stored(admitted) or journey.complete(admitted)


def at_once(*work: Callable[[], Any]) -> list[Any]:
    """The results of calls that begin at the same moment; exceptions are results."""
    start = threading.Barrier(len(work))

    def call(function: Callable[[], Any]) -> Any:
        start.wait()
        try:
            return function()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(work)) as threads:
        return list(threads.map(call, work))


@pytest.mark.slow
@pytest.mark.sparse(2)
def test_two_servers_do_not_overspend_and_answer_a_key_once(pair: Pair) -> None:
    """Sixteen questions for a budget of five go to both at once; then one key goes to both, six times."""
    first, second = pair
    open_account(first.ledger, "poor", epsilon="5", kind=FilterKind.PURE)
    asked = [
        partial(ask, pair[i % 2], f"SELECT COUNT(*) AS n FROM people WHERE age < {i + 20}", "poor") for i in range(16)
    ]
    results = at_once(*asked)
    answered = [result for result in results if isinstance(result, bytes)]
    refused = [result for result in results if isinstance(result, BudgetExhausted)]
    (account,) = second.ledger.accounts(dataset="clinic", principal="poor")
    spent = account.limit.epsilon - account.remaining_epsilon()
    assert (len(answered), len(refused), spent) == (5, 11, 5)
    assert len({json.loads(answer)["id"] for answer in answered}) == len(answered)

    open_account(first.ledger, "rich", epsilon="100")
    for turn in range(6):
        sql = f"SELECT AVG(age) AS a FROM people WHERE age < {turn + 50}"
        results = at_once(*(partial(ask, s, sql, "rich", idempotency_key=f"k{turn}") for s in pair))
        assert results[0] == results[1]
        assert isinstance(results[0], bytes)
    (account,) = first.ledger.accounts(dataset="clinic", principal="rich")
    assert sum(entry.kind == "reserve" for entry in first.ledger.entries(account.id)) == 6
    for services in pair:
        assert services.ledger.audit().findings == ()


@pytest.mark.slow
@pytest.mark.sparse(2)
def test_a_recovery_leaves_the_living_alone(pair: Pair) -> None:
    """One server recovers, and one starts anew, while the other one works: its query is answered."""
    first, second = pair
    name = "patient"
    open_account(first.ledger, name)
    admitted = first.journey.admit(question("SELECT COUNT(*) AS n FROM people WHERE age < 77", name))
    assert second.ledger.recover() == 0
    with Ledger(second.settings.database(), instance="third") as third:
        assert third.recovered_at_start == 0
        assert third.recover() == 0
    assert json.loads(first.journey.complete(admitted))["status"] == "settled"
    assert first.ledger.audit().findings == ()


def reserve(ledger: Ledger, account: str, query_id: str) -> None:
    """Charges epsilon 1."""
    event = LaplaceEvent(l1_sensitivity=Fraction(1), scale=Fraction(1))
    core = CoreCharge(core_key=hashlib.sha256(query_id.encode()).hexdigest(), quality=Fraction(1), events=(event,))
    ledger.reserve(
        ReserveRequest(
            query_id=query_id, principal="ana", account=account, body_hash="0" * 64, cores=(core,), reuse="none"
        )
    )


@pytest.mark.parametrize("hours", [2, -2, 24 * 400])
@pytest.mark.sparse(3)
def test_a_clock_that_jumps_costs_answers_and_never_budget(url: str, hours: int) -> None:
    """One server's clock jumps while the other's query is open: it may be taken for dead, but nothing is given back."""
    clock, jumping = (Clock(datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)) for _ in range(2))
    with (
        Ledger(url, instance="a", clock=clock, lease_seconds=5) as first,
        Ledger(url, instance="b", clock=jumping, lease_seconds=5) as second,
    ):
        account = open_account(first, "ana", epsilon="3", kind=FilterKind.PURE)
        reserve(first, account, "q1")
        jumping.now += datetime.timedelta(hours=hours)
        recovered = second.recover()
        assert recovered == (1 if hours > 0 else 0)
        if recovered:
            # The slow one is told nothing and tells nothing.
            with pytest.raises(IllegalTransition):
                first.post("q1", (), b"answer")
            with pytest.raises(IllegalTransition):
                first.void("q1")
            record = second.query("q1")
            assert record is not None
            assert (record.state, record.answer) == ("failed_charged", None)
        else:
            first.fail("q1")
        reserve(second, account, "q2")
        clock.now -= datetime.timedelta(hours=3)
        reserve(first, account, "q3")
        for ledger, name in ((first, "q4"), (second, "q5")):
            with pytest.raises(BudgetExhausted):
                reserve(ledger, account, name)
        assert first.audit().findings == ()
