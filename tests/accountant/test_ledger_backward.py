"""A ledger that goes back to an older state while a process has it open: it spends nothing more."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from accountant.errors import LedgerBehind
from accountant.highwater import HighWater, Mark
from accountant.ledger import Ledger
from tests.accountant.making import analyst, core, request, root, sha256, spend

TENTH = 10**11


class OlderState:
    """The state of a database at one moment, which a failover puts back under the processes that have it open."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = make_url(url)
        self._copy = folder / "older.db"
        self._name = self._url.database or ""

    def _server(self, *statements: str) -> None:
        engine = create_engine(
            self._url.set(drivername="postgresql+psycopg", database="postgres"), isolation_level="AUTOCOMMIT"
        )
        with engine.connect() as connection:
            for statement in statements:
                for attempt in range(20):
                    connection.execute(
                        text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE :name"),
                        {"name": f"{self._name}%"},
                    )
                    try:
                        connection.execute(text(statement))
                        break
                    except Exception:
                        if attempt == 19:
                            raise
                        time.sleep(0.05)
        engine.dispose()

    def keep(self) -> None:
        """Remembers the state of now."""
        if self._url.get_backend_name() == "sqlite":
            with sqlite3.connect(self._name) as live, sqlite3.connect(self._copy) as copy:
                live.backup(copy)
        else:
            self._server(f"CREATE DATABASE {self._name}_older TEMPLATE {self._name}")

    def put_back(self) -> None:
        """The state that was kept is the database now, at the same address and, on SQLite, in the same file."""
        if self._url.get_backend_name() == "sqlite":
            with sqlite3.connect(self._copy) as copy, sqlite3.connect(self._name) as live:
                copy.backup(live)
        else:
            self._server(
                f"DROP DATABASE {self._name} WITH (FORCE)",
                f"ALTER DATABASE {self._name}_older RENAME TO {self._name}",
            )


@pytest.fixture
def older(url: str, tmp_path: Path) -> OlderState:
    """A state of the tested ledger that can be put back."""
    return OlderState(url, tmp_path)


def refuses_to_spend(ledger: Ledger, account: str) -> None:
    """Every step that writes is refused, and so is readiness; reading goes on."""
    for step in (
        lambda: ledger.reserve(request(account)),
        lambda: root(ledger, dataset="other"),
        ledger.recover,
        ledger.check_writable,
    ):
        with pytest.raises(LedgerBehind):
            step()
    assert ledger.behind
    assert ledger.account(account).id == account


@pytest.mark.parametrize("marked", [True, False])
def test_a_failover_does_not_let_the_same_keys_run_afresh(
    open_ledger: Callable[..., Ledger], older: OlderState, tmp_path: Path, *, marked: bool
) -> None:
    """Five told answers that the database lost are not charged and run again: the ledger stops, its mark stays."""
    mark = tmp_path / "mark"
    ledger = open_ledger(high_water=mark if marked else None)
    leaf = analyst(ledger, root(ledger))
    older.keep()
    for number in range(5):
        spend(ledger, request(leaf, core(f"core {number}"), idempotency_key=f"key {number}"))
    before = mark.read_text() if marked else ""
    older.put_back()
    for number in range(5):
        with pytest.raises(LedgerBehind):
            ledger.reserve(request(leaf, core(f"core {number}"), idempotency_key=f"key {number}"))
    refuses_to_spend(ledger, leaf.id)
    if marked:
        assert before == mark.read_text(), "the mark is never lowered"


def test_another_history_is_not_taken_for_this_one(open_ledger: Callable[..., Ledger], older: OlderState) -> None:
    """A ledger that went back and grew as long again by other hands is not the one that was open."""
    ledger = open_ledger("stays")
    leaf = analyst(ledger, root(ledger))
    older.keep()
    for _ in range(2):
        spend(ledger, request(leaf))
    older.put_back()
    with_other = open_ledger("came later")
    for _ in range(4):
        spend(with_other, request(leaf))
    refuses_to_spend(ledger, leaf.id)
    with_other.check_writable()


def test_lost_transactions_without_entries_count_too(open_ledger: Callable[..., Ledger], older: OlderState) -> None:
    """A process whose own row went back, or is gone, has lost something, though the head is where it was."""
    early = open_ledger("early")
    leaf = analyst(early, root(early))
    older.keep()
    late = open_ledger("late")
    early.check_writable()
    older.put_back()
    refuses_to_spend(early, leaf.id)
    refuses_to_spend(late, leaf.id)


def test_others_may_write_in_between(open_ledger: Callable[..., Ledger]) -> None:
    """The head that moved on by another process's entries is no loss."""
    one, two = open_ledger("one"), open_ledger("two")
    leaf = analyst(one, root(one))
    for _ in range(3):
        spend(one, request(leaf))
        spend(two, request(leaf))
    assert not one.behind
    assert not two.behind
    assert one.account(leaf.id).spent.pure == 6 * TENTH


def test_an_idle_process_notices(open_ledger: Callable[..., Ledger], older: OlderState) -> None:
    """Without a question the sign of life notices it: readiness is false before anybody asks."""
    ledger = open_ledger(lease_seconds=0.6)
    leaf = analyst(ledger, root(ledger))
    older.keep()
    spend(ledger, request(leaf))
    older.put_back()
    deadline = time.monotonic() + 60
    while not ledger.behind and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ledger.behind


def test_acknowledged_it_goes_on_and_says_so(
    open_ledger: Callable[..., Ledger], older: OlderState, tmp_path: Path
) -> None:
    """An administrator's word is kept in every root; only then is the mark lowered and spending possible."""
    mark = tmp_path / "mark"
    first = open_ledger("first", high_water=mark)
    leaf = analyst(first, root(first))
    older.keep()
    ledger = open_ledger("second", high_water=mark)
    spend(ledger, request(leaf))
    older.put_back()
    refuses_to_spend(ledger, leaf.id)
    ledger.acknowledge_restore(actor="admin", reason="failover")
    spend(ledger, request(leaf))
    assert ledger.account(leaf.id).spent.pure == TENTH
    kept = json.loads(mark.read_text())
    assert kept["sequence"] == ledger.audit().sequence
    adjusted = [entry for entry in ledger.entries(leaf.parent or "") if entry.kind == "adjust"]
    assert '"actor":"admin"' in adjusted[0].details
    assert '"durable"' in adjusted[0].details
    assert ledger.audit().ok


@pytest.mark.parametrize("removed", [("",), ("", "-wal", "-shm"), ("-wal",)])
def test_a_removed_file_is_not_spent_from(sqlite_url: str, removed: tuple[str, ...]) -> None:
    """`rm ledger.sqlite*` under a serving process: its open file takes commits that nobody finds again."""
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    ledger = Ledger(sqlite_url, instance="test")
    leaf = analyst(ledger, root(ledger))
    spend(ledger, request(leaf))
    for suffix in removed:
        path.with_name(path.name + suffix).unlink()
    with pytest.raises(LedgerBehind):
        ledger.reserve(request(leaf))
    with pytest.raises(LedgerBehind):
        ledger.check_writable()
    assert ledger.behind
    with pytest.raises(ValueError, match="start again"):
        ledger.acknowledge_restore(actor="admin", reason="gone")
    ledger.close()


def test_an_exchanged_file_is_not_spent_from(sqlite_url: str, tmp_path: Path) -> None:
    """Another file at the same path, even an equal copy, is not the ledger that was opened."""
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with Ledger(sqlite_url, instance="test") as ledger:
        leaf = analyst(ledger, root(ledger))
        with sqlite3.connect(path) as live, sqlite3.connect(tmp_path / "copy.db") as copy:
            live.backup(copy)
        (tmp_path / "copy.db").replace(path)
        with pytest.raises(LedgerBehind):
            ledger.reserve(request(leaf))


def test_the_mark_is_never_lowered(tmp_path: Path) -> None:
    """Of two processes with one mark the late one leaves the higher mark; only an acknowledgement lowers it."""
    path = tmp_path / "mark"
    one, two = HighWater(path), HighWater(path)
    high, low = Mark("l" * 32, 9, sha256("nine")), Mark("l" * 32, 8, sha256("eight"))
    one.write(high)
    two.write(low)
    assert high == one.read()
    two.write(Mark("m" * 32, 10, sha256("another ledger")))
    assert high == one.read()
    two.write(low, lower=True)
    assert low == one.read()
    assert not one.failed
    path.write_text("no mark")
    two.write(high)
    assert two.failed
    assert path.read_text() == "no mark"
    one.close()
    two.close()
