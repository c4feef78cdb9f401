"""A server audits its own ledger: what it rejects is not spent from, also after the next start."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from accountant.auditor import Auditor
from accountant.checkpoint import CheckpointFile
from accountant.errors import LedgerRejected
from accountant.ledger import Ledger
from accountant.reader import LedgerReader
from server import self_audit
from server.self_audit import SelfAudit
from tests.accountant.making import analyst, core, gaussian, laplace, limit, request, root, spend
from tests.accountant.test_ledger_audit import tamper
from tests.databases import sqlite_template, sqlite_url  # noqa: F401 - fixtures are found by their names


class Server:
    """One start of a server on a ledger: what `build_services` and `attended` do of it."""

    def __init__(self, url: str, file: Path) -> None:
        self.ledger = Ledger(url, instance="test")
        first = SelfAudit(self.ledger, lambda: LedgerReader(url), file)
        first.at_start()
        self.audit = SelfAudit(self.ledger, lambda: LedgerReader(url), file, found_before=self.ledger.rejected)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.audit.close()
        self.ledger.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the checkpoint is kept."""
    return tmp_path / "ledger.checkpoint"


@pytest.fixture
def url(sqlite_url: str, file: Path) -> str:  # noqa: F811
    """A ledger that was audited wholly, and went on after that: charges, a void of an earlier one, a limit."""
    with Server(sqlite_url, file) as server:
        ledger = server.ledger
        top = root(ledger, epsilon=10, delta="1e-6", pure=False)
        leaf = analyst(ledger, top, delta="1e-6", pure=False)
        spend(ledger, request(leaf, core("a", laplace("0.01"))))
        early = ledger.reserve(request(leaf, core("early", gaussian("0.002"))))
        assert server.audit.whole().ok
        spend(ledger, request(leaf, core("b", gaussian("0.001"))))
        ledger.void(early.query_id)
        ledger.change_limit(leaf.id, limit(2, "1e-6"), actor="admin", reason="more")
        spend(ledger, request(leaf, core("c", laplace("0.3"))))
    return sqlite_url


def test_what_came_after_the_checkpoint_agrees(url: str, file: Path) -> None:
    """The audit at the start reads what is new and finds nothing; its own checkpoint is that of a whole audit."""
    kept = CheckpointFile.read(file.read_text())
    assert kept.checkpoint is not None
    assert file.stat().st_mode & 0o077 == 0
    assert CheckpointFile.read(kept.text()) == kept
    marks = kept.checkpoint.accounts.items()
    frozen = replace(kept.checkpoint, accounts={name: replace(mark, frozen=True) for name, mark in marks})
    auditor = Auditor()
    auditor.resume(frozen)
    assert auditor.checkpoint(frozen.ledger) == frozen
    with Server(url, file) as server:
        assert server.ledger.rejected is None
        since, whole = server.ledger.audit_since(kept.checkpoint), server.ledger.audit()
        assert since is not None
        assert since.findings == whole.findings == ()
        assert 0 < since.entries < whole.entries
        assert since.checkpoint == whole.checkpoint


NEW = [
    "UPDATE accounts SET spent_mu_squared = spent_mu_squared - 1",
    "UPDATE accounts SET limit_epsilon = limit_epsilon * 2",
    "UPDATE entries SET pure = pure - 1 WHERE sequence = (SELECT MAX(sequence) - 2 FROM entries)",
    "UPDATE entries SET mu_squared = mu_squared - 5 WHERE kind = 'void'",
    "UPDATE queries SET answer = CAST('forged' AS BLOB) WHERE state = 'settled'",
    "UPDATE releases SET body = CAST('forged' AS BLOB)",
]
OLD = ["UPDATE entries SET created = created + 1 WHERE sequence = 2"]


@pytest.mark.parametrize("statement", [*NEW, *OLD])
def test_what_is_rejected_is_not_spent_from(url: str, file: Path, statement: str) -> None:
    """Found at the start where it is new, and by the whole audit wherever it is; then every start refuses, until a
    whole audit finds nothing again."""
    copy = Path(url.removeprefix("sqlite:///"))
    before = copy.read_bytes()
    tamper(url, statement)
    with Server(url, file) as server:
        assert (server.ledger.rejected is not None) is (statement in NEW)
        assert not server.audit.whole().ok
        with pytest.raises(LedgerRejected):
            server.ledger.check_writable()
    for name in ("", "-wal", "-shm"):
        copy.with_name(copy.name + name).unlink(missing_ok=True)
    copy.write_bytes(before)
    with Server(url, file) as server:
        assert server.ledger.rejected is not None, "the last whole audit had found something"
        assert server.audit.whole().ok
        server.ledger.check_writable()
    with Server(url, file) as server:
        assert server.ledger.rejected is None


def test_what_was_found_while_it_is_served_stays(url: str, file: Path) -> None:
    """An audit that read an older moment takes nothing back that a reader found since."""
    with Server(url, file) as server:
        server.ledger.reject("found by a reader")
        assert server.audit.whole().ok
        assert server.ledger.rejected == "found by a reader"


@pytest.mark.parametrize("text", ["", "{}", '{"checkpoint":{"accounts":{"b":{}}},"rejected":null}', "[]"])
def test_a_checkpoint_of_another_history_is_left(url: str, file: Path, text: str) -> None:
    """A file that cannot be read, and a checkpoint of an entry that is not there, start nothing and stop nothing: the
    high-water mark says whether the ledger went back, and the whole audit reads everything."""
    kept = CheckpointFile.read(file.read_text())
    assert kept.checkpoint is not None
    file.write_text(kept.text().replace(kept.checkpoint.hash, "0" * 64))
    with Server(url, file) as server:
        assert server.ledger.rejected is None
    file.write_text(text)
    with Server(url, file) as server:
        assert server.ledger.rejected is None
        assert server.audit.whole().ok
    assert CheckpointFile.read(file.read_text()).checkpoint is not None


def test_it_runs_by_itself_and_ends_with_the_server(url: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread audits at once, is ended in the middle of an audit, and survives a database that is away."""
    file.unlink()
    done = threading.Event()
    real = self_audit.write_whole

    def written(path: Path, text: str, *, mode: int | None = None) -> None:
        real(path, text, mode=mode)
        done.set()

    monkeypatch.setattr(self_audit, "write_whole", written)
    with Server(url, file) as server:
        server.audit.start()
        assert done.wait(20)
        assert CheckpointFile.read(file.read_text()).rejected is None
    resting = self_audit._Rest(server.audit._stopping)
    with pytest.raises(self_audit._Stopped):
        resting()
