"""Windows: what is unlocked when, what an account admits then, on both databases; clocks that go back and forth."""

from __future__ import annotations

import contextlib
import datetime
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from accountant import rows
from accountant.account import Account
from accountant.calendar import ACKNOWLEDGEMENT, WindowKind, WindowMode, begin_of, number_at
from accountant.checkpoint import CheckpointFile
from accountant.entry import Amounts, from_micros, to_micros
from accountant.errors import AccountChanged, AccountFrozen, BudgetExhausted
from accountant.filter import DEFAULT_SHARES, FilterKind, fits, split_limit
from accountant.ledger import Ledger
from accountant.window import Turn, View, WindowWish
from tests.accountant.exported import Program
from tests.accountant.making import analyst, core, gaussian, laplace, limit, request, root, spend
from tests.clocks import Clock

START = datetime.datetime(2026, 1, 15, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
QUARTERS = WindowWish(kind=WindowKind.MONTHLY, slices=4)


def daily(epsilon: object, delta: object = 0) -> WindowWish:
    """An amount for each day."""
    return WindowWish(
        kind=WindowKind.DAILY, mode=WindowMode.RESET, limit=limit(epsilon, delta), acknowledge=ACKNOWLEDGEMENT
    )


def asked(account: Account, epsilon: object) -> Any:
    """One question with Laplace noise."""
    return request(account, core(str(random.random()), laplace(epsilon)), principal=account.principal or "owner")


def agrees(ledger: Ledger) -> None:
    """Neither the audit nor the auditor's program finds anything."""
    assert ledger.audit().findings == ()
    verifier = Program.Verifier()
    verifier.read(ledger.export(now=1), {})
    assert verifier.findings == []


@pytest.mark.parametrize("kind", list(WindowKind))
def test_windows_are_of_the_calendar(kind: WindowKind) -> None:
    """Each begins where the one before it ends, weeks on Mondays, and the auditor's program numbers them alike."""
    day = datetime.datetime(2023, 12, 28, tzinfo=datetime.UTC)
    for _ in range(440):
        moment = to_micros(day)
        number = number_at(kind, moment)
        begin, end = begin_of(kind, number), begin_of(kind, number + 1)
        assert begin <= moment < end
        assert number_at(kind, end - 1) == number == Program.window_of(kind.value, moment)
        first = from_micros(begin)
        assert kind is not WindowKind.WEEKLY or first.weekday() == 0
        assert kind is not WindowKind.MONTHLY or first.day == 1
        assert kind is not WindowKind.YEARLY or (first.month, first.day) == (1, 1)
        day += DAY


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (WindowWish(kind=WindowKind.DAILY), "either a number of slices or an end"),
        (WindowWish(kind=WindowKind.DAILY, slices=1), "from 2 to"),
        (WindowWish(kind=WindowKind.DAILY, slices=0), "from 2 to"),
        (WindowWish(kind=WindowKind.DAILY, slices=3, ends=START.date()), "either"),
        (WindowWish(kind=WindowKind.DAILY, starts=START.date(), ends=START.date()), "not after"),
        (WindowWish(kind=WindowKind.DAILY, starts=START.date(), ends=START.date() - DAY), "not after"),
        (WindowWish(kind=WindowKind.YEARLY, starts=START.date(), ends=START.date() + DAY), "1 would be none"),
        (WindowWish(kind=WindowKind.YEARLY, slices=9000), "after the year 9999"),
        (WindowWish(kind=WindowKind.DAILY, slices=3, limit=limit(1)), "none of its own"),
        (replace(daily("0.1"), acknowledge=None), "add up"),
        (replace(daily("0.1"), slices=2), "neither slices"),
        (replace(daily("0.1"), limit=None), "the limit of one window"),
        (daily(2), "more than the account's limit"),
        (daily("0.1", "1e-9"), "more than the account's limit"),
        (None, "has no window"),
    ],
)
@pytest.mark.sparse(3)
def test_windows_that_are_none(ledger: Ledger, wish: WindowWish | None, why: str) -> None:
    """Reversed, empty, unclear or unacknowledged ones are refused, and nothing is changed."""
    account = root(ledger)
    with pytest.raises(ValueError, match=why):
        ledger.change_window(account.id, wish, actor="admin", reason="try")
    assert ledger.account(account.id) == account
    assert len(ledger.entries(account.id)) == 1


def test_a_slice_is_at_least_a_unit(ledger: Ledger) -> None:
    """A limit of three picos has no four slices, and a limit that has four is not lowered to it."""
    account = root(ledger)
    ledger.change_window(account.id, QUARTERS, actor="admin", reason="quarters")
    with pytest.raises(ValueError, match="less than a pico"):
        ledger.change_limit(account.id, limit("0.000000000003"), actor="admin", reason="small")
    assert ledger.account(account.id).limit == limit(1)


def test_slices_unlock(open_ledger: Callable[..., Ledger]) -> None:
    """A quarter of the limit each month; what was not spent stays; a refusal says when the charge would fit."""
    clock = Clock(START)
    ledger = open_ledger(clock=clock)
    account = analyst(ledger, root(ledger))
    ledger.change_window(account.id, QUARTERS, actor="admin", reason="quarters")
    spend(ledger, asked(account, "0.2"))
    with pytest.raises(BudgetExhausted) as refused:
        ledger.reserve(asked(account, "0.3"))
    assert refused.value.available_at == datetime.datetime(2026, 2, 1, tzinfo=datetime.UTC)
    assert [short.remaining for short in refused.value.shortages] == [Fraction(1, 20)]
    assert ledger.account(account.id).remaining_epsilon() == Fraction(1, 20)
    with pytest.raises(BudgetExhausted) as refused:
        ledger.reserve(asked(account, "0.8"))
    assert refused.value.available_at == datetime.datetime(2026, 4, 1, tzinfo=datetime.UTC)
    with pytest.raises(BudgetExhausted) as refused:
        ledger.reserve(asked(account, "0.81"))
    assert refused.value.available_at is None
    clock.now = datetime.datetime(2026, 2, 1, tzinfo=datetime.UTC)
    spend(ledger, asked(account, "0.3"))
    clock.now = START
    assert ledger.account(account.id).remaining_epsilon() == 0
    with pytest.raises(BudgetExhausted):
        ledger.reserve(asked(account, "0.01"))
    clock.now += 300 * DAY
    spend(ledger, asked(account, "0.5"))
    with pytest.raises(BudgetExhausted):
        ledger.reserve(asked(account, "0.000000000001"))
    agrees(ledger)


def test_each_day_has_its_amount(open_ledger: Callable[..., Ledger]) -> None:
    """Two days' amounts add up, the limit bounds them; a void gives back to its own window only."""
    clock = Clock(START)
    ledger = open_ledger(clock=clock)
    account = root(ledger)
    ledger.change_window(account.id, daily("0.4"), actor="admin", reason="daily")
    held = ledger.reserve(asked(account, "0.3"))
    with pytest.raises(BudgetExhausted) as refused:
        ledger.reserve(asked(account, "0.2"))
    assert refused.value.available_at == datetime.datetime(2026, 1, 16, tzinfo=datetime.UTC)
    with pytest.raises(BudgetExhausted) as refused:
        ledger.reserve(asked(account, "0.5"))
    assert refused.value.available_at is None
    same = ledger.reserve(asked(account, "0.1"))
    ledger.void(same.query_id)
    assert ledger.account(account.id).remaining_epsilon() == Fraction(1, 10)
    clock.now += DAY
    spend(ledger, asked(account, "0.4"))
    ledger.void(held.query_id)
    assert ledger.account(account.id).remaining_epsilon() == 0
    agrees(ledger)
    clock.now += DAY
    spend(ledger, asked(account, "0.4"))
    clock.now += DAY
    with pytest.raises(BudgetExhausted) as refused:
        ledger.reserve(asked(account, "0.3"))
    assert refused.value.available_at is None
    with pytest.raises(ValueError, match="more than the account's limit"):
        ledger.change_limit(account.id, limit("0.3"), actor="admin", reason="less than a day")
    ledger.change_window(account.id, None, actor="admin", reason="no window")
    assert ledger.account(account.id).revision == 3
    spend(ledger, asked(account, "0.2"))
    agrees(ledger)


@pytest.mark.parametrize("wish", [QUARTERS, daily("0.4")], ids=["slices", "reset"])
def test_nothing_is_spent_before_the_first_window(open_ledger: Callable[..., Ledger], wish: WindowWish) -> None:
    """A window that begins tomorrow or next month admits nothing until then, and says when it does."""
    clock = Clock(START)
    ledger = open_ledger(clock=clock)
    account = root(ledger)
    first = datetime.datetime(2026, 2, 1, tzinfo=datetime.UTC)
    ledger.change_window(account.id, replace(wish, starts=first.date()), actor="admin", reason="later")
    with pytest.raises(BudgetExhausted) as refused:
        ledger.reserve(asked(account, "0.1"))
    assert refused.value.available_at == first
    shown = ledger.account(account.id)
    assert (shown.remaining_epsilon(), shown.charges_left(laplace("0.1").loss())) == (0, 0)
    clock.now = first
    spend(ledger, asked(account, "0.1"))
    agrees(ledger)


def test_a_window_is_set_on_what_was_read_and_on_accounts_that_pay(ledger: Ledger) -> None:
    """A revision that is over, a frozen account, and a new one that it does not suit: refused."""
    top = root(ledger)
    with pytest.raises(ValueError, match="more than the account's limit"):
        ledger.create_account(
            dataset="days", parent=None, principal=None, name="days", limit=limit(1), filter=top.filter, actor="admin",
            window=daily(2),
        )  # fmt: skip
    account = analyst(ledger, top)
    with pytest.raises(AccountChanged):
        ledger.change_window(account.id, QUARTERS, actor="admin", reason="try", expected=account.revision + 1)
    ledger.freeze("analyst", actor="admin", reason="stop", beside=lambda *_: None)
    with pytest.raises(AccountFrozen):
        ledger.change_window(account.id, QUARTERS, actor="admin", reason="try")
    assert ledger.account(account.id).window is None


def test_slices_are_of_delta_too() -> None:
    """A charge with a delta waits for its slice, however little else it costs."""
    whole = limit(1, "1e-6")
    branches = split_limit(whole, FilterKind.APPROXIMATE, DEFAULT_SHARES)
    rule = QUARTERS.at(to_micros(START))
    turn = Turn(rule.first, 1)
    view = View.of(rule, turn, to_micros(START), FilterKind.APPROXIMATE, DEFAULT_SHARES)
    fitting, above = (Amounts(pure=1, delta=branches.delta // 4 + one).sums() for one in (0, 1))
    assert view.admits(fitting, fitting, branches)
    assert not view.admits(above, above, branches)


def test_a_turn_never_goes_back() -> None:
    """An earlier window takes nothing of what was counted; the next one begins with its entry."""
    turn = Turn(5, 2, Amounts(pure=7))
    assert (turn.at(4, 9), turn.at(5, 9), turn.at(6, 9)) == (turn, turn, Turn(6, 9))


def test_a_change_of_the_window_does_not_begin_it_anew(open_ledger: Callable[..., Ledger]) -> None:
    """What the day has lost counts under its next rule too."""
    ledger = open_ledger(clock=Clock(START))
    account = root(ledger)
    for epsilon in ("0.4", "0.5"):
        ledger.change_window(account.id, daily(epsilon), actor="admin", reason="daily")
        spend(ledger, asked(account, "0.2"))
    with pytest.raises(BudgetExhausted):
        ledger.reserve(asked(account, "0.2"))
    agrees(ledger)


def test_an_audit_goes_on_from_a_checkpoint(open_ledger: Callable[..., Ledger]) -> None:
    """A checkpoint keeps windows: a void of a charge before it is taken from the right one, and nothing is found."""
    clock = Clock(START)
    ledger = open_ledger(clock=clock)
    account = root(ledger)
    ledger.change_window(account.id, daily("0.4"), actor="admin", reason="daily")
    old, same = (ledger.reserve(asked(account, "0.1")).query_id for _ in range(2))
    point = CheckpointFile.read(CheckpointFile(checkpoint=ledger.audit().checkpoint).text()).checkpoint
    assert point is not None
    ledger.void(same)
    clock.now += DAY
    spend(ledger, asked(account, "0.4"))
    ledger.void(old)
    report = ledger.audit_since(point)
    assert report is not None
    assert report.findings == ledger.audit().findings == ()


def test_a_turn_is_of_the_own_clock(open_ledger: Callable[..., Ledger]) -> None:
    """Another one's entry through a server that is a day ahead moves nothing that is read or refused with here."""
    slow, fast = (open_ledger(clock=Clock(START + ahead * DAY)) for ahead in (0, 1))
    top = root(slow)
    mine, theirs = (analyst(slow, top, principal=name) for name in ("mine", "theirs"))
    for account in (top, mine):
        slow.change_window(account.id, daily("0.3"), actor="admin", reason="daily")
    shown = slow.account(mine.id).window
    before = _refusal(slow, mine)
    spend(fast, asked(theirs, "0.1"))
    assert slow.account(mine.id).window == shown
    assert _refusal(slow, mine) == before == START.replace(hour=0) + DAY


def _refusal(ledger: Ledger, account: Account) -> datetime.datetime | None:
    with pytest.raises(BudgetExhausted) as refused:
        ledger.reserve(asked(account, "0.5"))
    return refused.value.turns_at


def _walk(ledger: Ledger, clock: Clock[datetime.datetime], seed: int, steps: int) -> None:
    """Any steps while the clock goes forward and back and windows turn and change; after each, what must hold holds."""
    draw = random.Random(seed)
    top = root(ledger, epsilon=2, delta="1e-6", pure=False)
    tree = [top, *(analyst(ledger, top, principal=f"p{n}", epsilon=2, delta="1e-6", pure=False) for n in range(2))]
    held: list[str] = []
    wishes = (None, QUARTERS, daily("0.3", "1e-7"), WindowWish(kind=WindowKind.DAILY, slices=40))
    for _ in range(steps):
        clock.now += draw.choice((-40, -2, -1, 0, 0, 1, 1, 3, 35)) * DAY
        account = draw.choice(tree)
        chance = draw.random()
        if chance < 0.15:
            with contextlib.suppress(ValueError):
                ledger.change_window(account.id, draw.choice(wishes), actor="admin", reason="random")
        elif chance < 0.3 and held:
            ledger.void(held.pop(draw.randrange(len(held))))
        else:
            event = draw.choice((laplace(f"0.{draw.randint(1, 300):03}"), gaussian(f"0.{draw.randint(1, 900):05}")))
            made = request(account, core(str(draw.random()), event), principal=account.principal or "owner")
            try:
                held.append(ledger.reserve(made).query_id)
            except BudgetExhausted as refused:
                assert refused.available_at is None or refused.available_at > clock.now
            else:
                _holds(ledger, account)
    every = [entry for one in tree for entry in ledger.entries(one.id, count=500)]
    moments = [entry.moment for entry in sorted(every, key=lambda entry: entry.sequence)]
    assert moments == sorted(moments)


def _holds(ledger: Ledger, charged: Account) -> None:
    """Every account that was just charged is within its limit, and within what its window had open."""
    for account in ledger.path(charged.id):
        assert fits(account.spent, account.branches)
        window = account.window
        if window is not None and window.branches is not None:
            assert fits(window.spent, window.branches)
        elif window is not None:
            open_now = window.budgets(account.branches)
            assert open_now is not None
            assert fits(account.spent, open_now)


@pytest.mark.parametrize("seed", range(2))
def test_clocks_that_go_back_and_forth(open_ledger: Callable[..., Ledger], seed: int) -> None:
    """Random steps of the clock, of windows and of charges: the audit and the auditor's program agree with each."""
    clock = Clock(START)
    ledger = open_ledger(clock=clock)
    _walk(ledger, clock, seed, 60)
    agrees(ledger)


def _void_without_window(state: rows.AccountState, amounts: Any, entry: int) -> None:
    state.add(amounts)
    if state.turn is not None:
        state.turn = state.turn.plus(amounts) if min(state.turn.plus(amounts).spent) >= 0 else state.turn


def _one_slice_early(view: View, after: Any, charge: Any, branches: Any) -> bool:
    return _ADMITS(replace(view, number=view.number + 1), after, charge, branches)


def _fresh_each_time(state: rows.AccountState, amounts: Any, now: int) -> None:
    _COUNT(state, amounts, now)
    if state.turn is not None:
        state.turn = replace(state.turn, spent=amounts)


_ADMITS, _COUNT = View.admits, rows.AccountState.count


@pytest.mark.parametrize(
    ("where", "name", "planted", "codes"),
    [
        (rows.AccountState, "take_back", _void_without_window, {"wrong_window", "over_window"}),
        (View, "admits", _one_slice_early, {"over_window"}),
        (rows.AccountState, "count", _fresh_each_time, {"wrong_window", "over_window"}),
    ],
)
def test_planted_bugs_are_caught(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, planted: Any, codes: set[str]
) -> None:
    """A void into another window, a slice too early, a window that forgets: the audit names each, and so does the
    auditor's program."""
    clock = Clock(START)
    with Ledger(sqlite_url, instance="test", clock=clock) as ledger:
        account = root(ledger)
        ledger.change_window(account.id, daily("0.3"), actor="admin", reason="daily")
        quarters = root(ledger, dataset="visits")
        ledger.change_window(quarters.id, QUARTERS, actor="admin", reason="quarters")
        with monkeypatch.context() as patched:
            patched.setattr(where, name, planted)
            held = [ledger.reserve(asked(account, "0.1")).query_id for _ in range(2)]
            with contextlib.suppress(BudgetExhausted):
                spend(ledger, asked(account, "0.2"))
            clock.now += DAY
            spend(ledger, asked(account, "0.3"))
            ledger.void(held.pop())
            for other, epsilon in ((account, "0.2"), (quarters, "0.3")):
                with contextlib.suppress(BudgetExhausted):
                    spend(ledger, asked(other, epsilon))
        found = {finding.code for finding in ledger.audit().findings}
        assert found & codes
        verifier = Program.Verifier()
        verifier.read(ledger.export(now=1), {})
        assert {code for code, _, _ in verifier.findings} & codes
