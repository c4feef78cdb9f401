"""Ways in which systems of this kind have lost count, each as a test (numbers as in the catalogue of lessons)."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.account import FilterKind, Limit
from accountant.errors import BudgetExhausted, IllegalTransition, LedgerBehind
from accountant.ledger import Ledger
from accountant.request import CoreCharge
from privacy.events import LaplaceEvent
from tests.accountant.making import analyst, core, laplace, limit, releases_for, request, root, sha256, spend


def test_lesson_24_charged_before_anything_is_computed(open_ledger: Callable[..., Ledger]) -> None:
    """When `reserve` returns, another process already sees the charge; there is no free core and no uncharged post."""
    one, two = open_ledger("one"), open_ledger("two")
    leaf = analyst(one, root(one))
    asked = request(leaf, core("a"))
    reserved = one.reserve(asked)
    assert two.account(leaf.id).spent.pure == 10**11
    with pytest.raises(ValueError, match="without privacy events"):
        CoreCharge(core_key=sha256("free"), quality=Fraction(1), events=())
    served = one.reserve(request(leaf, reuse="own"))
    one.void(served.query_id)
    with pytest.raises(IllegalTransition):
        one.post(served.query_id, [], b"after the charge was given back")
    one.post(reserved.query_id, releases_for(one, reserved, asked.cores), b"")
    assert two.account(leaf.id).spent.pure == 10**11


def test_lesson_26_exact_amounts_in_any_order(ledger: Ledger) -> None:
    """0.1 and 0.9 are 1, the smallest charges are not lost, and an ask beyond the limit changes nothing."""
    top = root(ledger, epsilon=100)
    one = analyst(ledger, top, principal="one")
    two = analyst(ledger, top, principal="two")
    amounts = ["0.1", "0.000000000001", "0.2", "0.3", "0.399999999999"]
    for account, order in ((one, amounts), (two, amounts[::-1])):
        for amount in order:
            ledger.reserve(request(account, core("x", laplace(amount)), principal=account.name))
        assert ledger.account(account.id).spent.pure == 10**12
        assert ledger.account(account.id).remaining_epsilon() == 0
    third = analyst(ledger, top, principal="three")
    for _ in range(3):
        with pytest.raises(BudgetExhausted):
            ledger.reserve(request(third, core("x", laplace(1000)), principal="three"))
    assert ledger.account(third.id) == third
    tiny = LaplaceEvent(l1_sensitivity=Fraction(1), scale=Fraction(10**25))
    ledger.reserve(request(third, core("x", tiny), principal="three"))
    assert ledger.account(third.id).spent.pure == 1, "a charge below the smallest unit counts as one unit"


def test_lesson_27_sixteen_parallel_requests_are_all_served(ledger: Ledger) -> None:
    """No per-user lock turns parallel requests away, and no debit is lost between a read and a write."""
    leaf = analyst(ledger, root(ledger, epsilon=2), epsilon=2)
    outcomes: list[bool] = []
    barrier = threading.Barrier(16)

    def one() -> None:
        barrier.wait()
        outcomes.append(ledger.reserve(request(leaf)).fresh)

    threads = [threading.Thread(target=one) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [True] * 16
    assert ledger.account(leaf.id).spent.pure == 16 * 10**11


def test_lesson_27_a_crash_leaves_no_lock(open_ledger: Callable[..., Ledger]) -> None:
    """A process that vanishes with reservations open (tests of crashes kill it) blocks nobody: others spend on."""
    gone = open_ledger("gone")
    leaf = analyst(gone, root(gone))
    gone.reserve(request(leaf, idempotency_key="k"))
    other = open_ledger("other")
    assert other.reserve(request(leaf)).fresh
    assert other.reserve(request(leaf, idempotency_key="k")).state == "reserved"


def test_lesson_28_a_restart_does_not_refill(url: str) -> None:
    """What was spent is spent after any number of restarts; open reservations too."""
    with Ledger(url, instance="first") as ledger:
        leaf = analyst(ledger, root(ledger))
        ledger.reserve(request(leaf, core("a", laplace("0.6"))))
    for _ in range(3):
        with Ledger(url, instance="next") as ledger, pytest.raises(BudgetExhausted):
            ledger.reserve(request(leaf, core("b", laplace("0.5"))))


def test_lesson_28_a_restored_backup_is_noticed(sqlite_url: str, tmp_path: Path) -> None:
    """An older copy of the file does not give the budget back by itself."""
    mark, path = tmp_path / "mark", Path(sqlite_url.removeprefix("sqlite:///"))
    with Ledger(sqlite_url, instance="test", high_water=mark) as ledger:
        leaf = analyst(ledger, root(ledger))
    shutil.copyfile(path, tmp_path / "backup")
    with Ledger(sqlite_url, instance="test", high_water=mark) as ledger:
        spend(ledger, request(leaf, core("a", laplace(1))))
    shutil.copyfile(tmp_path / "backup", path)
    with Ledger(sqlite_url, instance="test", high_water=mark) as ledger, pytest.raises(LedgerBehind):
        ledger.reserve(request(leaf, core("b", laplace(1))))


def test_lesson_28_a_changed_limit_erases_no_debit(ledger: Ledger) -> None:
    """Limits that change while others spend: every debit survives and the entries agree."""
    leaf = analyst(ledger, root(ledger, epsilon=100), epsilon=50)
    done = threading.Event()

    def editor() -> None:
        while not done.is_set():
            for epsilon in (60, 50):
                ledger.change_limit(leaf.id, limit(epsilon), actor="admin", reason="back and forth")

    thread = threading.Thread(target=editor)
    thread.start()
    for _ in range(40):
        ledger.reserve(request(leaf))
    done.set()
    thread.join()
    assert ledger.account(leaf.id).spent.pure == 40 * 10**11
    assert ledger.audit().ok


def test_lesson_28_no_second_budget_for_a_dataset(ledger: Ledger) -> None:
    """A dataset has one root, whatever the new account is called."""
    root(ledger)
    with pytest.raises(ValueError, match="root account"):
        ledger.create_account(
            dataset="people",
            parent=None,
            principal=None,
            name="a view of the people",
            limit=limit(5),
            filter=FilterKind.PURE,
            actor="admin",
        )


def test_lesson_29_a_refused_query_leaves_nothing_to_read(ledger: Ledger) -> None:
    """Of a query beyond the budget there is no row, so no answer of it can be stored or read."""
    leaf = analyst(ledger, root(ledger))
    asked = request(leaf, core("a", laplace(2)))
    with pytest.raises(BudgetExhausted):
        ledger.reserve(asked)
    assert ledger.query(asked.query_id) is None
    assert ledger.queries("analyst") == []


def test_lesson_30_every_repetition_counts(ledger: Ledger) -> None:
    """Ten equal events in one charge cost ten times one."""
    leaf = analyst(ledger, root(ledger))
    ledger.reserve(request(leaf, core("a", *[laplace("0.1")] * 10)))
    assert ledger.account(leaf.id).remaining_epsilon() == 0


def test_lesson_31_colluding_analysts_share_the_root(ledger: Ledger) -> None:
    """Ten analysts with a full budget each learn together no more than the root allows."""
    top = root(ledger, epsilon=1)
    analysts = [analyst(ledger, top, principal=f"analyst{number}") for number in range(10)]
    for account in analysts[:6]:
        ledger.reserve(request(account, core("x", laplace("0.15")), principal=account.name))
    for account in analysts:
        with pytest.raises(BudgetExhausted) as refused:
            ledger.reserve(request(account, core("x", laplace("0.15")), principal=account.name))
        assert refused.value.root
    assert ledger.account(top.id).spent.pure == 9 * 10**11


@pytest.mark.parametrize("epsilon", ["-1", "0", "1000001", "0.0000000000001"])
def test_lesson_32_limits_that_are_none(epsilon: str) -> None:
    """A limit that is not positive, absurdly large or finer than the unit cannot be written down."""
    with pytest.raises(ValueError, match=r"epsilon|whole number"):
        Limit(epsilon=Fraction(epsilon), delta=Fraction(0))
