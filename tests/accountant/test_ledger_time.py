"""The ledger's time never falls, whatever clocks do; the audit finds an entry that says otherwise."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

from accountant.ledger import Ledger
from accountant.operations import Touch
from tests.accountant.making import analyst, request, root, spend
from tests.accountant.test_ledger_audit import tamper
from tests.clocks import Clock

START = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)


def moments(ledger: Ledger) -> list[datetime.datetime]:
    """The moments of all entries of every account, in the ledger's order."""
    every = [entry for account in ledger.accounts() for entry in ledger.entries(account.id)]
    return [entry.moment for entry in sorted(every, key=lambda entry: entry.sequence)]


def test_a_clock_that_is_set_back(open_ledger: Callable[..., Ledger]) -> None:
    """Entries stay at the latest moment until the clock has caught up, and so does the time that is told."""
    clock = Clock(START)
    ledger = open_ledger(clock=clock)
    account = root(ledger)
    told = []
    for step in (1, -30, 0, 40, -1):
        clock.now += step * HOUR
        spend(ledger, request(account, principal="owner"))
        told.append(ledger.time())
    first, later = START + HOUR, START + 11 * HOUR
    assert told == [first, first, first, later, later]
    assert sorted(set(moments(ledger))) == [START, first, later]
    assert moments(ledger) == sorted(moments(ledger))
    assert ledger.audit().ok


def test_two_servers_with_different_clocks(open_ledger: Callable[..., Ledger]) -> None:
    """Whoever is slow writes at the time of the fast one; and the lease of the fast one is not over for that."""
    fast, slow = (open_ledger(clock=Clock(START + ahead)) for ahead in (8 * HOUR, 0 * HOUR))
    account = root(fast)
    held = fast.reserve(request(account, principal="owner"))
    spend(slow, request(account, principal="owner"))
    assert set(moments(slow)) == {START + 8 * HOUR} == {slow.time()}
    slow.recover()
    assert slow.gone([fast.instance]) == set()
    fast.fail(held.query_id)
    assert slow.audit().ok


def test_leases_are_of_the_machine(open_ledger: Callable[..., Ledger]) -> None:
    """After a clock was far ahead for a while, no process that lives counts as dead."""
    clock, other = Clock(START + 9000 * HOUR), Clock(START)
    ledger, second = open_ledger(clock=clock), open_ledger(clock=other)
    account = root(ledger)
    clock.now = START
    ledger._write(Touch())
    held = ledger.reserve(request(account, principal="owner"))
    assert second.recover() == 0
    ledger.fail(held.query_id)


def test_an_older_copy_goes_on_from_the_time_of_its_mark(sqlite_url: str, tmp_path: Path) -> None:
    """A copy is put back while the clock is behind: what is written after the acknowledgement is not earlier."""
    clock, mark = Clock(START), tmp_path / "mark"
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with Ledger(sqlite_url, instance="test", clock=clock, high_water=mark) as ledger:
        account = analyst(ledger, root(ledger))
    copy = path.read_bytes()
    with Ledger(sqlite_url, instance="test", clock=clock, high_water=mark) as ledger:
        clock.now += 5 * HOUR
        spend(ledger, request(account))
    path.write_bytes(copy)
    clock.now = START - HOUR
    with Ledger(sqlite_url, instance="test", clock=clock, high_water=mark) as ledger:
        assert ledger.behind
        ledger.acknowledge_restore(actor="admin", reason="restored")
        assert ledger.time() == START + 5 * HOUR == moments(ledger)[-1]
        assert ledger.audit().ok


def test_the_audit_finds_times_that_fall(ledger: Ledger, url: str) -> None:
    """A time set back by hand is named, and so is an entry before the one before it; not where the ledger did not keep
    its time yet."""
    account = root(ledger)
    for _ in range(2):
        spend(ledger, request(account, principal="owner"))
    tamper(url, "UPDATE ledger_meta SET epoch = epoch - 1")
    assert {finding.code for finding in ledger.audit().findings} == {"wrong_time"}
    earlier = "UPDATE entries SET created = created - 3600000000 WHERE sequence = 3"
    tamper(url, "UPDATE ledger_meta SET epoch = epoch + 1", earlier)
    found = [finding for finding in ledger.audit().findings if finding.code == "wrong_time"]
    assert [finding.subject for finding in found] == ["3"]
    tamper(url, "UPDATE ledger_meta SET timed_from = 3")
    assert "wrong_time" not in {finding.code for finding in ledger.audit().findings}
