"""What is asked for every question takes the same work in a ledger of any length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import event

from accountant.account import Account
from accountant.ledger import Ledger
from accountant.operations import Post
from accountant.reserving import Reserve
from accountant.writer import _Job
from tests.accountant.making import analyst, core, laplace, releases_for, request, root, spend


def grow(ledger: Ledger, leaf: Account, charges: int) -> None:
    """That many queries more, answered, in two batches."""
    writer = ledger._writer
    assert writer is not None
    asked = [request(leaf, core(f"many {n}", laplace("0.001"))) for n in range(charges)]
    reserving = [_Job(Reserve(request=one)) for one in asked]
    writer._run(reserving)
    writer._run([_Job(Post(one.query_id, (), b"answer")) for one in asked])
    assert [job.error for job in reserving] == [None] * charges


def test_reads_do_not_grow_with_the_ledger(sqlite_url: str) -> None:
    """Steps of SQLite's machine for balances, paths, pages and charges: with 12 entries, and with 4,000 more."""
    with Ledger(sqlite_url, instance="test") as ledger:
        steps = [0]

        def count() -> None:
            steps[0] += 1

        def counted(connection: Any, _: object) -> None:
            connection.set_progress_handler(count, 1)

        event.listen(ledger._engine, "connect", counted)
        ledger._engine.dispose()
        leaf = analyst(ledger, root(ledger, epsilon=1000), epsilon=1000)
        for _ in range(60):
            told = spend(ledger, request(leaf, reuse="own"))
        left = ledger.reserve(request(leaf))

        def charge() -> None:
            asked = request(leaf, reuse="own", idempotency_key=str(steps[0]))
            reserved = ledger.reserve(asked)
            ledger.post(reserved.query_id, releases_for(ledger, reserved, asked.cores), b"answer")

        reads: dict[str, Callable[[], object]] = {
            "account": lambda: ledger.account(leaf.id),
            "accounts": lambda: ledger.accounts(principal="analyst"),
            "path": lambda: ledger.path(leaf.id),
            "spendable": lambda: ledger.spendable("people", "analyst"),
            "standing": lambda: ledger.standing(leaf.id),
            "entries": lambda: ledger.entries(leaf.id, count=50),
            "queries": lambda: ledger.queries("analyst", count=50),
            "query": lambda: ledger.query(told.query_id),
            "earlier": lambda: ledger.earlier("analyst", "unknown", "0" * 64),
            "charge": charge,
            "recover": ledger.recover,
        }

        def work() -> dict[str, int]:
            found = {}
            for name, read in reads.items():
                before = steps[0]
                read()
                found[name] = steps[0] - before
            return found

        few = work()
        grow(ledger, leaf, 1000)
        many = work()
        assert ledger.account(leaf.id).reserved.pure == 10**11
        assert ledger.query(left.query_id) is not None
        # An index that is one level deeper takes a few steps more.
        assert {name: many[name] for name in reads if many[name] > 1.5 * few[name] + 50} == {}, few
