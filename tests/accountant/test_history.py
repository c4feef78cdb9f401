"""What accounts had spent at earlier moments: as the entries say, and found without reading them all."""

from __future__ import annotations

import datetime
from collections.abc import Callable

from sqlalchemy import event

from accountant.entry import Amounts, to_micros
from accountant.ledger import Ledger
from tests.accountant.making import analyst, request, root, spend
from tests.clocks import Clock

BEGIN = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)


def test_what_was_spent_before_is_what_the_entries_before_add_up_to(open_ledger: Callable[..., Ledger]) -> None:
    """At every moment, before the first entry and after the last one, with charges that were given back later."""
    clock = Clock(BEGIN)
    ledger = open_ledger(clock=clock, lease_seconds=10_000_000.0)
    one = analyst(ledger, root(ledger, epsilon=10), epsilon=10)
    waiting = []
    for step in range(12):
        clock.now += datetime.timedelta(hours=5)
        if step % 3 == 2:
            waiting.append(ledger.reserve(request(one)).query_id)
        else:
            spend(ledger, request(one))
        if step == 8:
            ledger.void(waiting.pop(0))
    entries = ledger.entries(one.id, count=1000)
    assert len(entries) == 1 + 8 * 2 + 4 + 1
    for hours in range(-1, 70, 4):
        moment = to_micros(BEGIN + datetime.timedelta(hours=hours))
        expected = Amounts()
        for entry in entries:
            if entry.created < moment:
                expected = expected.plus(entry.amounts)
        assert ledger.spent_before(one.id, moment) == expected
        later = moment + 20 * 3_600_000_000
        moved = ledger.moved(one.id, moment, later)
        assert expected.plus(moved) == ledger.spent_before(one.id, later)


def test_few_entries_are_read_however_many_there_are(ledger: Ledger) -> None:
    """A search by halves: one read more for twice as many entries."""
    one = analyst(ledger, root(ledger, epsilon=100), epsilon=100)
    read: list[int] = []
    event.listen(ledger._engine, "before_cursor_execute", lambda *_: read.append(1))
    counts = []
    moment = to_micros(ledger.time()) + 10**12
    for number in (15, 32):
        while ledger.entries(one.id, count=1000)[-1].account_sequence < number:
            ledger.void(ledger.reserve(request(one)).query_id)
        read.clear()
        ledger.spent_before(one.id, moment)
        counts.append(len(read))
    assert counts[1] - counts[0] in (1, 2)
    assert counts[1] < 12
