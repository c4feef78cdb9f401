"""Connections that break: before, during and after a commit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import create_engine, event, make_url, text

from accountant import faults
from accountant.errors import LedgerUnavailable
from accountant.ledger import Ledger
from accountant.states import QueryStatus
from tests.accountant.making import analyst, releases_for, request, root

TENTH = 10**11


class BrokenCommit:
    """Lets the next commits fail for the caller: after they happened, or instead of them."""

    def __init__(self, ledger: Ledger, *, happens: bool, times: int = 1) -> None:
        self._dialect: Any = ledger._engine.dialect
        self._original = self._dialect.do_commit
        self._happens = happens
        self.left = times

    def __enter__(self) -> BrokenCommit:
        self._dialect.do_commit = self._commit
        return self

    def __exit__(self, *_: object) -> None:
        self._dialect.do_commit = self._original

    def _commit(self, connection: Any) -> None:
        if self.left == 0:
            self._original(connection)
            return
        self.left -= 1
        if self._happens:
            self._original(connection)
        else:
            connection.rollback()
        raise self._dialect.loaded_dbapi.OperationalError("the connection is gone")


@pytest.mark.parametrize("happens", [True, False])
@pytest.mark.parametrize("times", [1, 3])
def test_a_commit_whose_outcome_is_unknown(ledger: Ledger, happens: bool, times: int) -> None:
    """The writer reads back whether the batch is in: the caller is served, and charged once."""
    leaf = analyst(ledger, root(ledger))
    asked = request(leaf)
    with BrokenCommit(ledger, happens=happens, times=times) as broken:
        reserved = ledger.reserve(asked)
        assert broken.left == 0, "reading back is a transaction too, so it met the same fault"
    assert reserved.fresh
    assert ledger.account(leaf.id).spent.pure == TENTH
    with BrokenCommit(ledger, happens=happens):
        ledger.post(reserved.query_id, releases_for(ledger, reserved, asked.cores), b"answer")
    record = ledger.query(reserved.query_id)
    assert record is not None
    assert (record.state, record.answer) == ("settled", b"answer")
    assert ledger.audit().ok


def test_many_callers_and_broken_commits(ledger: Ledger) -> None:
    """Every caller of a batch with an unknown outcome is served once."""
    leaf = analyst(ledger, root(ledger, epsilon=100), epsilon=100)
    outcomes = []

    def spender() -> None:
        for _ in range(5):
            outcomes.append(ledger.reserve(request(leaf)))

    with BrokenCommit(ledger, happens=True, times=3) as broken:
        threads = [threading.Thread(target=spender) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert broken.left == 0
    assert len(outcomes) == 40
    assert ledger.account(leaf.id).spent.pure == 40 * TENTH
    assert ledger.audit().ok


@pytest.mark.parametrize("happens", [True, False])
def test_a_database_that_stays_away(open_ledger: Callable[..., Ledger], happens: bool) -> None:
    """Callers are told after the patience is over; when the database is back, what they left is failed and charged."""
    ledger = open_ledger(patience_seconds=0.3)
    leaf = analyst(ledger, root(ledger))
    away = [False]

    def refuse(dialect: Any, *_: object) -> None:
        if away[0]:
            raise dialect.loaded_dbapi.OperationalError("no route to the database")

    event.listen(ledger._engine, "do_connect", refuse)
    asked = request(leaf, idempotency_key="k")
    with BrokenCommit(ledger, happens=happens):
        away[0] = True
        with pytest.raises(LedgerUnavailable):
            ledger.reserve(asked)
    away[0] = False
    other = ledger.reserve(request(leaf))
    assert other.fresh
    record = ledger.query(asked.query_id)
    if happens:
        assert record is not None
        assert record.state == "failed_charged"
        assert ledger.account(leaf.id).spent.pure == 2 * TENTH
        assert ledger.reserve(request(leaf, idempotency_key="k")).state == "failed_charged"
    else:
        assert record is None
        assert ledger.account(leaf.id).spent.pure == TENTH
    assert ledger.audit().ok


def test_an_answer_that_could_not_be_stored(open_ledger: Callable[..., Ledger]) -> None:
    """When post is told that the database is away, the query ends failed and charged, and no answer exists."""
    ledger = open_ledger(patience_seconds=0.3)
    leaf = analyst(ledger, root(ledger))
    asked = request(leaf)
    reserved = ledger.reserve(asked)
    releases = releases_for(ledger, reserved, asked.cores)
    with BrokenCommit(ledger, happens=False, times=10_000), pytest.raises(LedgerUnavailable):
        ledger.post(reserved.query_id, releases, b"answer")
    ledger.check_writable()
    record = ledger.query(reserved.query_id)
    assert record is not None
    assert (record.state, record.answer) == ("failed_charged", None)
    assert ledger.releases_of(reserved.query_id) == []
    assert ledger.audit().ok


def test_a_full_disk(sqlite_url: str) -> None:
    """Steps that do not fit are refused and change nothing; once there is room the ledger goes on by itself."""
    pages = [0]

    def set_up(connection: Any, _: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages[0] or 1_000_000}")

    with Ledger(sqlite_url, instance="test", patience_seconds=0.2) as ledger:
        leaf = analyst(ledger, root(ledger, epsilon=100), epsilon=100)
        answered = ledger.reserve(request(leaf))
        event.listen(ledger._engine, "connect", set_up)
        assert ledger._writer is not None
        # What a file has already it may keep: full from here on.
        pages[0] = 1
        ledger._writer._disconnect()
        ledger._engine.dispose()
        told, full = 0, False
        while not full:
            try:
                ledger.reserve(request(leaf, description={"note": "x" * 2000}))
                told += 1
            except LedgerUnavailable:
                full = True
        with pytest.raises(LedgerUnavailable):
            ledger.post(answered.query_id, (), b"answer" * 10_000)
        assert ledger.audit().ok
        assert ledger.account(leaf.id).spent.pure == (told + 1) * TENTH
        pages[0] = 0
        ledger._writer._disconnect()
        ledger._engine.dispose()
        assert ledger.reserve(request(leaf)).fresh
        # Its caller was told that it was not stored, so it never will be.
        record = ledger.query(answered.query_id)
        assert record is not None
        assert (record.state, record.answer) == (QueryStatus.FAILED_CHARGED, None)
        assert ledger.account(leaf.id).spent.pure == (told + 2) * TENTH
        assert ledger.audit().ok


@pytest.mark.postgresql
class TestBackends:
    """Connections that PostgreSQL ends."""

    @staticmethod
    def terminate(url: str) -> int:
        """Ends every other connection to the database."""
        engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
        with engine.connect() as connection:
            ended = connection.execute(
                text(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            ).scalar_one()
        engine.dispose()
        return int(ended)

    def test_between_two_steps(self, postgresql_url: str) -> None:
        """A connection that was ended while idle is replaced, for writing and for reading."""
        with Ledger(postgresql_url, instance="test") as ledger:
            leaf = analyst(ledger, root(ledger))
            for _ in range(3):
                assert self.terminate(postgresql_url) > 0
                ledger.reserve(request(leaf))
            assert self.terminate(postgresql_url) > 0
            assert ledger.account(leaf.id).spent.pure == 3 * TENTH

    @pytest.mark.parametrize("stage", ["decided", "written", "before_commit"])
    def test_inside_a_transaction(self, postgresql_url: str, stage: str) -> None:
        """A connection that is ended in the middle of a transaction has done nothing, and the step is made again."""
        with Ledger(postgresql_url, instance="test") as ledger:
            leaf = analyst(ledger, root(ledger))
            reached: list[str] = []

            def end(point: str) -> None:
                if point == f"reserve.{stage}" and not reached:
                    reached.append(point)
                    self.terminate(postgresql_url)

            faults.install(end)
            assert ledger.reserve(request(leaf)).fresh
            assert reached
            assert ledger.account(leaf.id).spent.pure == TENTH
            assert ledger.audit().ok
