"""Processes that die, and many processes at once: nothing is told uncharged, and nothing is charged twice."""

from __future__ import annotations

import datetime
import json
import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, insert, select

from accountant import faults
from accountant.account import Account
from accountant.errors import BudgetExhausted, LedgerBehind
from accountant.highwater import HighWater, Mark
from accountant.ledger import Ledger, utc_now
from accountant.request import QueryRecord
from server.store.tables import told
from tests.accountant.making import analyst, core, laplace, limit, releases_for, request, root

LEASE_SECONDS = 30.0


def later() -> datetime.datetime:
    """A clock by which every lease of the processes before is over."""
    return utc_now() + datetime.timedelta(seconds=10 * LEASE_SECONDS)


CHILDREN = multiprocessing.get_context("forkserver")
"""Forked from a process without threads: a copy of this one waits for ever on a lock that a thread of it held."""

CHILDREN.set_forkserver_preload([__name__])


def started(work: Callable[..., None], *arguments: object) -> BaseProcess:
    """A process that does the work. Its exit code is 0, or minus the signal that ended it."""
    child = CHILDREN.Process(target=work, args=arguments)
    child.start()
    return child


def ended(child: BaseProcess) -> int | None:
    """The exit code of a process, None of one that does not end within a minute."""
    child.join(60)
    code = child.exitcode
    child.kill()
    return code


class Diary:
    """What a process was told, written so that it survives the process: the outside world of these tests."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def tell(self, **fact: str) -> None:
        """Notes a fact; a killed process keeps what it wrote before."""
        with self._path.open("a") as file:
            file.write(json.dumps(fact) + "\n")

    def read(self) -> list[dict[str, str]]:
        """All facts."""
        return [json.loads(line) for line in self._path.read_text().splitlines()] if self._path.exists() else []


def journey(url: str, mark: Path, diary: Diary) -> None:
    """Every step of the ledger once: queries that are answered, fail, are voided or left open, and a restore."""
    ledger = Ledger(url, instance="child", high_water=mark, lease_seconds=LEASE_SECONDS)
    top = root(ledger, epsilon=10)
    leaf = analyst(ledger, top)
    diary.tell(leaf=leaf.id)
    for key, last in (("answered", "post"), ("failed", "fail"), ("voided", "void")):
        asked = request(leaf, core(key), idempotency_key=key)
        reserved = ledger.reserve(asked)
        diary.tell(key=key, reserved=reserved.query_id)
        if last == "post":
            answer = os.urandom(20)
            ledger.post(reserved.query_id, releases_for(ledger, reserved, asked.cores, os.urandom(20)), answer)
            diary.tell(key=key, answer=answer.hex())
            again, answer = request(leaf, core(key), idempotency_key="repeated", reuse="own"), os.urandom(20)
            stored = {release.core_key: release.id for release in ledger.releases_of(reserved.query_id)}
            assert ledger.repeat(again, stored, answer) is not None
            diary.tell(key="repeated", answer=answer.hex())
        else:
            getattr(ledger, last)(reserved.query_id)
            diary.tell(key=key, ended=last)
    ledger.change_limit(leaf.id, limit(2), actor="admin", reason="more")
    frozen = ledger.freeze("analyst", actor="admin", reason="stop", beside=note)
    ledger.unfreeze("analyst", frozen, actor="admin", reason="go on", beside=note)
    diary.tell(reserved=ledger.reserve(request(leaf, core("left open"), idempotency_key="left open")).query_id)
    sequence, identity = ledger.audit().sequence, ledger.identity
    ledger.close()
    HighWater(mark).write(Mark(ledger=identity, sequence=sequence + 10, hash="f" * 64), lower=True)
    ledger = Ledger(url, instance="restored", high_water=mark)
    ledger.acknowledge_restore(actor="admin", reason="drill")
    ledger.close()


def note(_: Sequence[str], connection: Connection) -> None:
    """What the registry writes beside an act."""
    connection.execute(insert(told).values(subject="act", occasion=os.urandom(8).hex(), at="now"))


def acts_of(ledger: Ledger, leaf: str) -> tuple[int, int]:
    """How often an account was frozen or paid again, and what was written beside that."""
    kinds = [json.loads(entry.details).get("action") for entry in ledger.entries(leaf, count=1000)]
    acts = [kind for kind in kinds if kind in ("freeze", "unfreeze")]
    with ledger._read() as connection:
        return len(acts), connection.execute(select(func.count()).select_from(told)).scalar_one()


def check_after_crash(url: str, mark: Path, diary: Diary) -> None:
    """What must hold after any crash, in a new process."""
    facts = diary.read()
    ledger = Ledger(url, instance="after", high_water=mark, clock=later, lease_seconds=LEASE_SECONDS)
    try:
        if ledger.behind:
            with pytest.raises(LedgerBehind):
                ledger.recover()
            ledger.acknowledge_restore(actor="admin", reason="drill")
        report = ledger.audit()
        assert report.ok, report.findings
        queries = {query.id: query for query in ledger.queries(None)}
        assert not [query for query in queries.values() if query.state == "reserved"]
        for fact in facts:
            if "reserved" in fact:
                assert fact["reserved"] in queries, "a reservation that was confirmed is gone"
            if "answer" in fact:
                (told,) = [query for query in queries.values() if query.idempotency_key == fact["key"]]
                record = ledger.query(told.id)
                assert record is not None
                assert record.answer == bytes.fromhex(fact["answer"]), "an answer that was told is not what is stored"
        leaves = [fact["leaf"] for fact in facts if "leaf" in fact]
        if not leaves:
            return
        acts, beside = acts_of(ledger, leaves[0])
        assert acts == beside, "one side of an act is there without the other"
        charged = [query for query in queries.values() if query.state in ("settled", "failed_charged")]
        repeated = [query for query in charged if query.idempotency_key == "repeated"]
        assert all((query.state, query.charged) == ("settled", ()) for query in repeated)
        charged = [query for query in charged if query not in repeated]
        spent = ledger.account(leaves[0]).spent.pure
        assert spent == len(charged) * 10**11, "what is spent is not one tenth for each charged query"
        for key in ("answered", "failed", "voided"):
            first = ledger.reserve(request(leaves[0], core(key), idempotency_key=key))
            again = ledger.reserve(request(leaves[0], core(key), idempotency_key=key))
            assert (first.query_id, first.answer) == (again.query_id, again.answer)
            known = [query for query in queries.values() if query.idempotency_key == key]
            assert first.fresh == (not known), "a retry runs again exactly when it was never reserved"
            assert not known or known[0].id == first.query_id
    finally:
        ledger.close()


def killer(point: str) -> Callable[[str], None]:
    """A fault handler that ends the process the hard way."""

    def reached(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    return reached


def killed_journey(point: str, url: str, mark: Path, diary: Diary) -> None:
    """The journey until the point."""
    faults.install(killer(point))
    journey(url, mark, diary)


def kill_at(point: str, url: str, folder: Path) -> None:
    """Runs the journey in a process that is killed at the point, then checks what is left."""
    diary, mark = Diary(folder / "diary"), folder / "mark"

    assert ended(started(killed_journey, point, url, mark, diary)) == -signal.SIGKILL, (
        "the process did not pass this point"
    )
    check_after_crash(url, mark, diary)


@pytest.mark.sparse(4)
@pytest.mark.parametrize("point", faults.POINTS)
def test_kill_at_every_point_sqlite(point: str, sqlite_url: str, tmp_path: Path) -> None:
    """Killed with SIGKILL at any named point: released is a subset of charged, and retries return the same bytes."""
    kill_at(point, sqlite_url, tmp_path)


@pytest.mark.sparse(4)
@pytest.mark.postgresql
@pytest.mark.parametrize("point", [point for point in faults.POINTS if point.endswith("_commit")])
def test_kill_at_every_point_postgresql(point: str, postgresql_url: str, tmp_path: Path) -> None:
    """The same on PostgreSQL, around the commits."""
    kill_at(point, postgresql_url, tmp_path)


def test_the_journey_without_a_crash(url: str, tmp_path: Path) -> None:
    """The twin without a fault ends well, so the tests above fail for the crash and for nothing else."""
    diary, mark = Diary(tmp_path / "diary"), tmp_path / "mark"
    assert ended(started(journey, url, mark, diary)) == 0
    assert [fact.get("ended", "answer") for fact in diary.read() if "ended" in fact or "answer" in fact] == [
        "answer",
        "answer",
        "fail",
        "void",
    ]
    check_after_crash(url, mark, diary)


def spend_for_ever(url: str, leaf: Account, diary: Diary) -> None:
    """Four threads that are answered one query after another, and tell it."""
    ledger = Ledger(url, instance="child")

    def spender() -> None:
        for _ in range(1000):
            asked = request(leaf)
            reserved = ledger.reserve(asked)
            answer = os.urandom(8)
            ledger.post(reserved.query_id, releases_for(ledger, reserved, asked.cores), answer)
            diary.tell(query=reserved.query_id, answer=answer.hex())

    for _ in range(4):
        threading.Thread(target=spender, daemon=True).start()
    time.sleep(60)


@pytest.mark.slow
@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.nightly)])
def test_kill_at_any_moment(url: str, tmp_path: Path, kills: int) -> None:
    """Killed at random moments under load: every answer that was told is stored and charged, again and again."""
    chance = random.Random(20)
    diary = Diary(tmp_path / "diary")
    with Ledger(url, instance="setup") as ledger:
        leaf = analyst(ledger, root(ledger, epsilon=100_000), epsilon=100_000)
    for _ in range(kills):
        child = started(spend_for_ever, url, leaf, diary)
        time.sleep(chance.uniform(0.15, 0.6))
        child.kill()
        assert ended(child) == -signal.SIGKILL
    with Ledger(url, instance="after", clock=later) as ledger:
        assert ledger.audit().ok
        records = {query.id: query for page in _pages(ledger) for query in page}
        assert not [record for record in records.values() if record.state == "reserved"]
        told = diary.read()
        assert told, "no process got far enough to tell anything"
        for fact in told:
            record = ledger.query(fact["query"])
            assert record is not None
            assert (record.state, record.answer) == ("settled", bytes.fromhex(fact["answer"]))
        assert ledger.account(leaf.id).spent.pure == len(records) * 10**11


def _pages(ledger: Ledger) -> list[list[QueryRecord]]:
    pages = []
    after = None
    while page := ledger.queries(None, after=after, count=500):
        pages.append(page)
        after = page[-1].id
    return pages


def spend_in_threads(url: str, leaf: Account, threads: int, diary: Diary, wishes: int = 20) -> None:
    """So many wishes, and how many of them were admitted."""
    ledger = Ledger(url, instance="child")
    counts = []
    errors: list[BaseException] = []

    def spender() -> None:
        try:
            admitted = 0
            for _ in range(wishes // threads):
                try:
                    ledger.reserve(request(leaf))
                    admitted += 1
                except BudgetExhausted:
                    pass
            counts.append(admitted)
        except BaseException as error:
            errors.append(error)
            raise

    running = [threading.Thread(target=spender) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    ledger.close()
    assert not errors
    diary.tell(admitted=str(sum(counts)))


@pytest.mark.sparse(2)
@pytest.mark.parametrize("threads", [1, 4])
def test_eight_processes_on_one_account(url: str, tmp_path: Path, threads: int) -> None:
    """Eight processes with more wishes than budget: exactly the limit is spent, and nobody gets any other error."""
    diary = Diary(tmp_path / "diary")
    with Ledger(url, instance="setup") as ledger:
        top = root(ledger, epsilon=10)
        leaf = analyst(ledger, top, epsilon=100)

    children = [started(spend_in_threads, url, leaf, threads, diary) for _ in range(8)]
    assert [ended(child) for child in children] == [0] * 8
    assert sum(int(fact["admitted"]) for fact in diary.read()) == 100
    with Ledger(url, instance="after") as ledger:
        assert ledger.account(top.id).spent.pure == 10 * 10**12
        assert ledger.account(leaf.id).spent.pure == 10 * 10**12
        with pytest.raises(BudgetExhausted):
            ledger.reserve(request(leaf, core("tiny", laplace("0.000000000001"))))
        assert ledger.audit().ok


@pytest.mark.slow
def test_sixty_four_clients_of_two_processes(url: str, tmp_path: Path) -> None:
    """Each of 64 clients asks three times for a budget of a hundred: a hundred get it, the others are told why not."""
    diary = Diary(tmp_path / "diary")
    with Ledger(url, instance="setup") as ledger:
        top = root(ledger, epsilon=10)
        leaf = analyst(ledger, top, epsilon=100)
    children = [started(spend_in_threads, url, leaf, 32, diary, 96) for _ in range(2)]
    assert [ended(child) for child in children] == [0, 0]
    assert sum(int(fact["admitted"]) for fact in diary.read()) == 100
    with Ledger(url, instance="after") as ledger:
        assert {ledger.account(one).spent.pure for one in (top.id, leaf.id)} == {10 * 10**12}
        assert len({entry.query_id for entry in ledger.entries(leaf.id, count=1000)}) == 101
        assert ledger.audit().ok
