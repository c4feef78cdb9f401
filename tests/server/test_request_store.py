"""Requests, stops and notices as they are stored, on both databases: what races ends once, and nothing deadlocks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest

from accountant.account import Account, FilterKind, Limit
from accountant.entry import Amounts
from accountant.errors import LedgerError
from accountant.ledger import Ledger
from server.store.budget_requests import BudgetRequestRow, RequestState
from server.store.errors import RequestDecided
from server.store.outbox import Notice
from server.store.registry import Registry
from server.store.webhooks import WebhookRow
from tests.clocks import Clock
from tests.server.conftest import NOW, SECRET

NOTICE = Notice(principal="ann", event="budget.running_out", subject="b_1", body="{}")


@dataclass
class Stores:
    """Ledger and registry of one database, with an administrator, an analyst and her account."""

    ledger: Ledger
    registry: Registry
    account: Account

    def row(self, name: str) -> BudgetRequestRow:
        """A request that was made."""
        wanted = BudgetRequestRow(
            id=name,
            principal="ann",
            dataset="clinic",
            account=self.account.id,
            epsilon="2",
            delta="0",
            sealed=b"s",
        )
        stored = self.registry.add_request(wanted, NOTICE, most=99)
        assert stored is not None
        return stored


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    """Both stores on a fresh, migrated database: every test runs on both."""
    url = request.getfixturevalue(f"{request.param}_url")
    ledger, registry = Ledger(url, instance="test"), Registry(url, secret=SECRET, clock=Clock(NOW))
    for name, role in (("adm", "admin"), ("ann", "analyst")):
        registry.create_principal(name, role, actor="test")
        row = WebhookRow(
            id=f"w_{name}", principal=name, host="h", events='["budget.running_out"]', subjects=None, sealed=b"s"
        )
        assert registry.add_webhook(row, most=9) is not None
    made: Account | None = None
    for name in (None, "ann"):
        made = ledger.create_account(
            dataset="clinic",
            parent=None if made is None else made.id,
            principal=name,
            name=name or "root",
            limit=Limit(Fraction(1), Fraction(0)),
            filter=FilterKind.PURE,
            actor="test",
        )
    assert made is not None
    yield Stores(ledger, registry, made)
    registry.close()
    ledger.close()


def together(works: list[Callable[[], object]]) -> list[object]:
    """What each of them returned or raised, begun at the same time."""
    done: list[object] = [None] * len(works)
    begin = threading.Barrier(len(works))

    def run(place: int, work: Callable[[], object]) -> None:
        begin.wait()
        try:
            done[place] = work()
        except LedgerError as error:
            done[place] = type(error)

    threads = [threading.Thread(target=run, args=one) for one in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    return done


def test_approvals_and_rejections_at_once_leave_one_decision(stores: Stores) -> None:
    """One through the ledger's writer, one through a transaction of the registry: each request is decided once."""
    for number in range(4):
        row = stores.row(f"br_{number}")
        approved = replace(row, state=RequestState.APPROVED, decider="adm")
        rejected = replace(row, state=RequestState.REJECTED, decider="adm", reason="no")

        def approve(approved: BudgetRequestRow = approved) -> object:
            return stores.ledger.change_limit(
                stores.account.id,
                Limit(Fraction(2), Fraction(0)),
                actor="adm",
                reason="more",
                request=approved.id,
                beside=stores.registry.decision(approved, NOTICE),
            )

        def reject(rejected: BudgetRequestRow = rejected) -> object:
            return stores.registry.decide_request(rejected, NOTICE)

        before = stores.ledger.account(stores.account.id).revision
        done = together([approve, reject, approve])
        assert done.count(RequestDecided) == 2
        decided = stores.registry.request(row.id)
        assert decided is not None
        changed = stores.ledger.account(stores.account.id).revision - before
        assert changed == (decided.state is RequestState.APPROVED)
    assert stores.registry.open_requests() == 0
    assert stores.ledger.audit().ok


def test_somebody_is_stopped_by_two_at_once(stores: Stores) -> None:
    """Both acts are there, one froze the account, and one resumption takes all of it back."""
    stop = stores.registry.stop

    def act() -> object:
        return stores.ledger.freeze("ann", actor="adm", reason="so", beside=stop("ann", actor="adm", reason="so"))

    assert sorted(map(str, together([act, act]))) == sorted(map(str, [(), (stores.account.id,)]))
    (row,) = stores.registry.stopped("ann")
    assert (row.accounts, row.disabled) == ((stores.account.id,), True)

    def resume() -> object:
        beside = stores.registry.resume(row, actor="adm", reason="so")
        return stores.ledger.unfreeze("ann", row.accounts, actor="adm", reason="so", beside=beside)

    done = together([resume, resume])
    assert done.count((stores.account.id,)) == 1
    assert stores.registry.stopped() == ()
    known = stores.registry.principal("ann")
    assert known is not None
    assert known.disabled is None
    assert stores.ledger.audit().ok


def test_what_is_told_by_two_at_once_is_told_once(stores: Stores) -> None:
    """To the principal and to administrators; what a first occasion covers is told with it."""
    done = together([lambda: stores.registry.tell_once(NOTICE, ["1/75", "1/50"])] * 3)
    assert sorted(map(str, done)) == ["False", "False", "True"]
    assert [len(stores.registry.deliveries(f"w_{name}", after=None, count=9)) for name in ("ann", "adm")] == [1, 1]
    assert not stores.registry.tell_once(NOTICE, ["1/50"])
    assert stores.registry.tell_once(NOTICE, ["2/75", "1/75"])


def test_a_day_is_remembered_once(stores: Stores) -> None:
    """The first one stays; later days answer for earlier ones that are not known."""
    for amount in (1, 2):
        stores.registry.add_account_day("b_1", "2026-03-02", Amounts(pure=amount))
    assert stores.registry.account_day("b_1", "2026-03-01") == ("2026-03-02", Amounts(pure=1))
    assert stores.registry.account_day("b_1", "2026-03-03") is None
