"""Starting a ledger: what it refuses, what it recovers, and a backup that was put back."""

from __future__ import annotations

import datetime
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from accountant import connection
from accountant.connection import open_engine
from accountant.errors import (
    IllegalTransition,
    LedgerBehind,
    NotMigrated,
    SchemaTooNew,
    WeakDurability,
)
from accountant.highwater import HighWater, Mark
from accountant.ledger import Ledger, utc_now
from accountant.tables import SCHEMA
from tests.accountant.making import analyst, core, limit, releases_for, request, root, spend


def execute(url: str, statement: str) -> None:
    """Runs one statement and commits."""
    engine = open_engine(url)
    with engine.connect() as opened:
        opened.execute(text(statement))
        opened.commit()
    engine.dispose()


class TestRefusals:
    """A ledger that must not be used."""

    def test_not_migrated(self, tmp_path: Path) -> None:
        """A missing file and an empty file are told apart from a ledger, and no file is made."""
        path = tmp_path / "ledger.db"
        with pytest.raises(NotMigrated, match="no ledger at this address"):
            Ledger(f"sqlite:///{path}", instance="test")
        assert not path.exists()
        path.touch()
        with pytest.raises(NotMigrated, match="run the migrations"):
            Ledger(f"sqlite:///{path}", instance="test")

    @pytest.mark.postgresql
    def test_not_migrated_postgresql(self, empty_postgresql_url: str) -> None:
        """An empty database is no ledger."""
        with pytest.raises(NotMigrated, match="run the migrations"):
            Ledger(empty_postgresql_url, instance="test")

    def test_a_newer_schema(self, url: str) -> None:
        """A ledger that newer code wrote is refused with both versions, and nothing is changed."""
        execute(url, f"UPDATE ledger_meta SET schema = {SCHEMA + 1}")
        with pytest.raises(SchemaTooNew, match=f"schema {SCHEMA + 1} and this program knows {SCHEMA}"):
            Ledger(url, instance="test")
        execute(url, "UPDATE ledger_meta SET schema = 0")
        with pytest.raises(NotMigrated, match="schema 0"):
            Ledger(url, instance="test")

    @pytest.mark.parametrize(
        "address",
        ["sqlite://", "sqlite:///:memory:", "sqlite:///file?mode=memory&uri=true", "mysql://host/x", "nothing", ""],
    )
    def test_no_ledger_there(self, address: str) -> None:
        """Memory forgets what was spent, and other databases are not supported."""
        with pytest.raises(ValueError, match=r"ledger"):
            Ledger(address, instance="test")

    def test_sqlite_settings_are_read_back(self, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A setting that SQLite does not grant refuses the start: here one that it cannot grant."""
        monkeypatch.setattr(connection, "_SYNCHRONOUS_FULL", 3)
        with pytest.raises(WeakDurability):
            Ledger(sqlite_url, instance="test")

    def test_sqlite_settings(self, sqlite_url: str) -> None:
        """Every connection has the write-ahead log, synchronous FULL and foreign keys."""
        engine = open_engine(sqlite_url)
        with engine.connect() as one, engine.connect() as two:
            for opened in (one, two):
                assert opened.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
                assert opened.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
                assert opened.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 1
        engine.dispose()

    def test_a_new_file_that_another_just_sets_up(self, tmp_path: Path) -> None:
        """SQLite waits for no write lock while it turns a file to its log; who comes second waits here."""
        path = tmp_path / "new.db"
        first = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        first.execute("BEGIN IMMEDIATE")
        second = sqlite3.connect(path, isolation_level=None)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            second.execute("PRAGMA journal_mode=WAL")
        second.close()
        timer = threading.Timer(0.1, first.execute, ["COMMIT"])
        timer.start()
        engine = open_engine(f"sqlite:///{path}")
        with engine.connect() as opened:
            assert opened.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        engine.dispose()
        timer.join()
        first.close()

    @pytest.mark.postgresql
    def test_weak_postgresql(self, postgresql_url: str) -> None:
        """A database or role that does not wait for the disk is refused."""
        name = make_url(postgresql_url).database
        execute(postgresql_url, f"ALTER DATABASE {name} SET synchronous_commit = off")
        with pytest.raises(WeakDurability, match="synchronous_commit off"):
            Ledger(postgresql_url, instance="test")
        engine = create_engine(make_url(postgresql_url))
        with engine.connect() as opened:
            opened.execute(text(f"ALTER DATABASE {name} RESET synchronous_commit"))
            opened.commit()
        engine.dispose()
        Ledger(postgresql_url, instance="test").close()


class TestRecover:
    """Reservations of processes that are gone."""

    def test_a_lease_that_is_over(self, open_ledger: Callable[..., Ledger]) -> None:
        """Open queries of a process without a sign of life are failed and stay charged; its own are not."""
        moment = [utc_now()]
        one = open_ledger("one", clock=lambda: moment[0], lease_seconds=30)
        two = open_ledger("two", clock=lambda: moment[0], lease_seconds=30)
        leaf = analyst(one, root(one))
        asked = request(leaf)
        reserved = one.reserve(asked)
        second = one.reserve(request(leaf))
        mine = two.reserve(request(leaf))
        assert two.recover() == 0
        moment[0] += datetime.timedelta(seconds=31)
        assert two.recover() == 2
        assert two.recover() == 0
        for query_id in (reserved.query_id, second.query_id):
            record = two.query(query_id)
            assert record is not None
            assert record.state == "failed_charged"
        own = two.query(mine.query_id)
        assert own is not None
        assert own.state == "reserved"
        assert two.account(leaf.id).spent.pure == 3 * 10**11
        # The process was only slow: it must not tell its answer.
        with pytest.raises(IllegalTransition):
            one.post(reserved.query_id, releases_for(one, reserved, asked.cores), b"late")
        assert two.audit().ok

    def test_work_renews_the_lease(self, open_ledger: Callable[..., Ledger]) -> None:
        """A process that commits anything is alive."""
        moment = [utc_now()]
        one = open_ledger("one", clock=lambda: moment[0], lease_seconds=30)
        two = open_ledger("two", clock=lambda: moment[0], lease_seconds=30)
        leaf = analyst(one, root(one))
        one.reserve(request(leaf))
        for _ in range(3):
            moment[0] += datetime.timedelta(seconds=20)
            one.check_writable()
            assert two.recover() == 0

    def test_idling_renews_the_lease(self, open_ledger: Callable[..., Ledger], url: str) -> None:
        """A process with nothing to write still gives signs of life by itself."""
        ledger = open_ledger(lease_seconds=0.6)
        engine = open_engine(url)

        def expires() -> int:
            with engine.connect() as opened:
                found = opened.execute(text("SELECT expires FROM instances WHERE id = :id"), {"id": ledger.instance})
                return int(found.scalar_one())

        first = expires()
        deadline = time.monotonic() + 30
        while expires() == first:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert expires() > first
        engine.dispose()

    def test_an_open_ledger_recovers_by_itself(self, open_ledger: Callable[..., Ledger]) -> None:
        """Nobody has to ask: once in a lease a running process fails what a dead one left open."""
        one = open_ledger("one")
        asked = request(analyst(one, root(one)))
        one.reserve(asked)
        two = open_ledger("two", lease_seconds=0.5)
        one.close()
        deadline = time.monotonic() + 30
        while (record := two.query(asked.query_id)) is not None and record.state == "reserved":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert record is not None
        assert record.state == "failed_charged"

    def test_closing_ends_the_lease(self, open_ledger: Callable[..., Ledger]) -> None:
        """What a process left open when it stopped is failed at once."""
        one = open_ledger("one")
        one.reserve(request(analyst(one, root(one))))
        two = open_ledger("two")
        one.close()
        assert two.recover() == 1

    def test_alone_on_sqlite(self, sqlite_url: str) -> None:
        """The only process of a SQLite ledger waits for no lease; a second one does not take the first for dead."""
        one = Ledger(sqlite_url, instance="one")
        leaf = analyst(one, root(one))
        one.reserve(request(leaf))
        two = Ledger(sqlite_url, instance="two")
        assert two.recovered_at_start == 0
        two.close()
        execute(sqlite_url, "UPDATE instances SET expires = 9000000000000000")
        assert one._owner is not None
        one._owner.close()  # what the kernel does when the process dies
        three = Ledger(sqlite_url, instance="three")
        assert three.recovered_at_start == 1
        assert three.gone({one.instance, three.instance}) == {one.instance}
        three.close()
        one.close()

    def test_who_is_gone(self, open_ledger: Callable[..., Ledger]) -> None:
        """A process that lives is not gone, one that closed is, and so is one that nobody knows."""
        one, two = open_ledger("one"), open_ledger("two")
        assert two.gone({one.instance, two.instance}) == frozenset()
        one.close()
        assert two.gone({one.instance, two.instance, "nobody"}) == {one.instance, "nobody"}


class TestRestore:
    """A backup that was put back."""

    @staticmethod
    def used(url: str, mark: Path) -> str:
        """A ledger with some spending; the account's identifier."""
        with Ledger(url, instance="test", high_water=mark) as ledger:
            leaf = analyst(ledger, root(ledger))
            spend(ledger, request(leaf, core("before")))
            return leaf.id

    def test_an_older_copy_spends_nothing(self, sqlite_url: str, tmp_path: Path) -> None:
        """A ledger with fewer entries than its mark refuses every step that writes, and answers questions."""
        mark, backup, path = tmp_path / "mark", tmp_path / "backup.db", Path(sqlite_url.removeprefix("sqlite:///"))
        leaf = self.used(sqlite_url, mark)
        shutil.copyfile(path, backup)
        with Ledger(sqlite_url, instance="test", high_water=mark) as ledger:
            spend(ledger, request(leaf, core("after")))
        shutil.copyfile(backup, path)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        before = mark.read_text()
        with Ledger(sqlite_url, instance="test", high_water=mark) as ledger:
            assert ledger.behind
            assert ledger.account(leaf).spent.pure == 10**11
            for step in (
                lambda: ledger.reserve(request(leaf)),
                lambda: root(ledger, dataset="other"),
                ledger.recover,
                ledger.check_writable,
            ):
                with pytest.raises(LedgerBehind):
                    step()
            assert mark.read_text() == before
        with Ledger(sqlite_url, instance="test", high_water=mark) as ledger:
            assert ledger.behind, "starting again does not make the loss go away"
            with pytest.raises(ValueError, match="characters"):
                ledger.acknowledge_restore(actor="admin", reason="")
            ledger.acknowledge_restore(actor="admin", reason="disk was lost")
            assert not ledger.behind
            ledger.reserve(request(leaf))
            entry = ledger.entries(ledger.path(leaf)[-1].id)[-2]
            assert entry.kind == "adjust"
            assert '"action":"acknowledge_restore","actor":"admin"' in entry.details
            assert ledger.audit().ok
            with pytest.raises(ValueError, match="not behind"):
                ledger.acknowledge_restore(actor="admin", reason="again")
        with Ledger(sqlite_url, instance="test", high_water=mark) as ledger:
            assert not ledger.behind

    def test_another_history_of_the_same_length(self, url: str, tmp_path: Path) -> None:
        """As many entries are not enough: the entry at the mark must be the same one."""
        mark = tmp_path / "mark"
        self.used(url, mark)
        stored = HighWater(mark).read()
        assert stored is not None
        HighWater(mark).write(Mark(ledger=stored.ledger, sequence=stored.sequence, hash="0" * 64), lower=True)
        with Ledger(url, instance="test", high_water=mark) as ledger:
            assert ledger.behind

    def test_others_may_spend_while_a_ledger_opens(self, url: str, tmp_path: Path) -> None:
        """A process that opens the ledger while another one commits does not take it for an older copy."""
        mark = tmp_path / "mark"
        leaf = self.used(url, mark)
        done = threading.Event()
        with Ledger(url, instance="busy", high_water=mark) as busy:
            busy.change_limit(busy.path(leaf)[-1].id, limit(1000), actor="admin", reason="more")
            busy.change_limit(leaf, limit(1000), actor="admin", reason="more")

            def spender() -> None:
                while not done.is_set():
                    busy.reserve(request(leaf))

            thread = threading.Thread(target=spender)
            thread.start()
            try:
                for _ in range(15):
                    with Ledger(url, instance="opening", high_water=mark) as ledger:
                        assert not ledger.behind
            finally:
                done.set()
                thread.join()

    def test_another_ledger(self, url: str, tmp_path: Path) -> None:
        """A new, empty ledger in the place of the old one has forgotten everything."""
        mark = tmp_path / "mark"
        HighWater(mark).write(Mark(ledger="f" * 32, sequence=0, hash="0" * 64), lower=True)
        with Ledger(url, instance="test", high_water=mark) as ledger:
            assert ledger.behind

    @pytest.mark.parametrize("content", ["", "{}", "[]", '{"ledger":1,"sequence":"x","hash":0}', "\xff"])
    def test_a_mark_that_cannot_be_read(self, sqlite_url: str, tmp_path: Path, content: str) -> None:
        """A damaged mark proves nothing, so it counts as a loss."""
        mark = tmp_path / "mark"
        mark.write_text(content, encoding="latin-1")
        with Ledger(sqlite_url, instance="test", high_water=mark) as ledger:
            assert ledger.behind

    def test_a_mark_that_cannot_be_written(self, sqlite_url: str, tmp_path: Path) -> None:
        """Spending goes on, because the commit is what counts, and the ledger says that the mark failed."""
        with Ledger(sqlite_url, instance="test", high_water=tmp_path / "no such folder" / "mark") as ledger:
            spend(ledger, request(analyst(ledger, root(ledger))))
            assert ledger.high_water_failed

    def test_the_mark_follows(self, url: str, tmp_path: Path) -> None:
        """After every commit the mark is the head."""
        mark = tmp_path / "mark"
        leaf = self.used(url, mark)
        with Ledger(url, instance="test", high_water=mark) as ledger:
            assert not ledger.behind
            for _ in range(3):
                spend(ledger, request(leaf))
                report = ledger.audit()
                stored = HighWater(mark).read()
                assert stored == Mark(ledger=ledger.identity, sequence=report.sequence, hash=report.hash)
            assert not ledger.high_water_failed
