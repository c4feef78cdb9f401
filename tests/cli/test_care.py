"""`noisegate migrate`, `noisegate audit` and `noisegate doctor`."""

from __future__ import annotations

import datetime
import shutil
import socket
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from accountant.highwater import HighWater, Mark
from migrations.upgrade import head
from server.cli import doctor
from server.home import Home
from tests.accountant.making import core, laplace, request
from tests.cli.support import cli, refused


def test_migrate_twice(tmp_path: Path) -> None:
    """The first run makes the ledger, the second finds nothing to do."""
    home = tmp_path / "home"
    assert cli("migrate", "--home", str(home), "--json").json == {"before": None, "after": head()}
    assert "nothing to do" in cli("migrate", "--home", str(home)).out
    assert home.stat().st_mode & 0o077 == 0


def test_revisions_are_numbered_in_the_order_of_their_chain() -> None:
    """Whether a schema is older or newer is told by its number, without Alembic: numbers agree with its chain."""
    from alembic.script import ScriptDirectory

    from migrations.upgrade import configuration

    script = ScriptDirectory.from_config(configuration())
    chain = [item.revision for item in script.walk_revisions()]
    assert chain == sorted(chain, reverse=True)
    assert {len(revision) for revision in chain} == {4}
    assert chain[0] == head()


def test_older_schema_is_not_used(empty_home: Path) -> None:
    """A ledger that was not migrated is refused with the command that does it."""
    with sqlite3.connect(empty_home / "ledger.sqlite") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
    connection.close()
    for command in (["serve", "--port", "0"], ["key", "list"], ["audit"]):
        refused(cli(*command, "--home", str(empty_home)), "has an older schema", "migrate")


def open_accounts(home: Path) -> None:
    at = ("--dataset", "people", "--delta", "0.00001", "--home", str(home))
    assert cli("budget", "set", "--epsilon", "20", *at).code == 0


def test_audit_agrees(home: Path) -> None:
    """An untouched ledger agrees, and the head of the chain is told."""
    open_accounts(home)
    ran = cli("audit", "--json", "--home", str(home))
    assert ran.code == 0
    assert (ran.json["ok"], ran.json["accounts"], ran.json["findings"]) == (True, 1, [])
    assert "everything agrees" in cli("audit", "--home", str(home)).out


def test_audit_finds_an_edited_balance(home: Path) -> None:
    """A balance that was changed by hand is found, with exit code 1."""
    open_accounts(home)
    with sqlite3.connect(home / "ledger.sqlite") as connection:
        connection.execute("UPDATE accounts SET spent_pure = spent_pure + 7")
    connection.close()
    ran = cli("audit", "--json", "--home", str(home))
    assert ran.code == 1
    assert ran.json["ok"] is False
    assert "wrong_balance" in [finding["code"] for finding in ran.json["findings"]]
    assert "wrong_balance" in cli("audit", "--home", str(home)).out


def test_the_ledger_is_exported_and_verified(home: Path, tmp_path: Path) -> None:
    """An export is written once, for its owner only, agrees, and is said in plain words; a changed one is not agreed
    with, and what is no export is refused."""
    open_accounts(home)
    file, at = tmp_path / "ledger.ndjson", ("--home", str(home))
    ran = cli("ledger", "export", str(file), "--json", *at)
    assert (ran.code, ran.json["entry"], ran.json["account"]) == (0, 1, 1)
    assert ran.json["head"] == cli("audit", "--json", *at).json["head"]
    assert file.stat().st_mode & 0o077 == 0
    refused(cli("ledger", "export", str(file), *at), "there is a file", code=2)
    head = f"{ran.json['head']['sequence']}:{ran.json['head']['hash']}"
    checked = cli("verify", str(file), "--earlier", str(file), "--head", head)
    assert checked.code == 0
    assert "Dataset people: worst-case loss per person (epsilon 20, delta 0.00001)." in checked.out
    assert cli("verify", str(file), "--json").json["ok"] is True
    file.write_text(file.read_text().replace('"epsilon\\":\\"20', '"epsilon\\":\\"40'))
    changed = cli("verify", str(file), "--json")
    assert changed.code == 1
    assert {"changed_file", "changed_entry"} <= {finding["code"] for finding in changed.json["findings"]}
    refused(cli("verify", str(home / "ledger.sqlite")), "no export of a ledger")
    refused(cli("verify", str(file), "--head", "7"), "could not compare", "SEQUENCE:HASH")
    refused(cli("verify", str(tmp_path / "none")), "could not read the export")


def test_audits_and_exports_change_nothing(home: Path, tmp_path: Path) -> None:
    """Reading ends no open query of a process that is gone, announces nobody and writes no mark; opening to write
    does. The database itself refuses to write on such a connection."""
    open_accounts(home)
    with Home(home).opened() as (_, ledger, _):
        (account,) = ledger.accounts()
        ledger.reserve(request(account, core("a", laplace("0.01")), principal="anna"))
    (home / "ledger.highwater").unlink()

    def state() -> list[object]:
        with sqlite3.connect(home / "ledger.sqlite") as connection:
            rows = [connection.execute(f"SELECT * FROM {name}").fetchall() for name in ("queries", "instances")]
        connection.close()
        return [*rows, (home / "ledger.highwater").exists()]

    before = state()
    assert cli("audit", "--home", str(home)).code == 0
    assert cli("ledger", "export", str(tmp_path / "ledger.ndjson"), "--home", str(home)).code == 0
    assert state() == before
    written = text("UPDATE accounts SET spent_pure = 0")
    refusal = pytest.raises(OperationalError, match="readonly")
    with Home(home).read() as reader, reader._engine.connect() as connection, refusal:
        connection.execute(written)
    with Home(home).opened():
        assert state() != before


@pytest.mark.slow
def test_restored_backup_spends_nothing_until_acknowledged(home: Path, tmp_path: Path) -> None:
    """An older ledger is told by audit and doctor, writes are refused, and who accepts it is recorded."""
    open_accounts(home)
    backup = tmp_path / "backup.sqlite"
    with sqlite3.connect(home / "ledger.sqlite") as source, sqlite3.connect(backup) as target:
        source.backup(target)
    source.close()
    target.close()
    at = ("--home", str(home))
    assert cli("key", "create", "research", *at).code == 0
    limit = ("--dataset", "people", "--epsilon", "5", "--delta", "0.000001", *at)
    assert cli("budget", "set", "--principal", "research", *limit).code == 0
    for name in ("ledger.sqlite-wal", "ledger.sqlite-shm"):
        (home / name).unlink(missing_ok=True)
    shutil.copy(backup, home / "ledger.sqlite")

    ran = cli("audit", *at)
    assert ran.code == 1
    assert "older than its high-water mark" in ran.out
    assert "older than its high-water mark" in cli("doctor", *at).out
    refused(cli("budget", "set", "--dataset", "people", "--epsilon", "9", "--delta", "0.1e-5", "--reason", "x", *at),
            "older than its high-water mark", "--acknowledge-restore")  # fmt: skip
    refused(cli("audit", "--acknowledge-restore", *at), "--actor and --reason are missing", code=2)
    refused(cli("audit", "--actor", "research", *at), "need --acknowledge-restore", code=2)
    accepted = cli("audit", "--acknowledge-restore", "--actor", "research", "--reason", "disk failed", "--json", *at)
    assert accepted.code == 0
    assert accepted.json["acknowledged"] is True
    with Home(home).opened() as (_, ledger, _):
        root = ledger.accounts()[0]
        assert any("disk failed" in entry.details for entry in ledger.entries(root.id))
    refused(
        cli("audit", "--acknowledge-restore", "--actor", "research", "--reason", "again", *at), "nothing to acknowledge"
    )


# doctor


def outcomes(home: Path, *arguments: str) -> dict[str, str]:
    ran = cli("doctor", "--json", "--home", str(home), *arguments)
    found = {check["check"]: check["outcome"] for check in ran.json["checks"]}
    assert ran.json["ok"] is ("fail" not in found.values())
    assert ran.code == (1 if "fail" in found.values() else 0)
    for check in ran.json["checks"]:
        assert check["outcome"] == "ok" or check["instead"], check
    return found


CHECKS = {"python", "packages", "environment", "settings", "home", "ledger", "datasets", "port", "tokens", "engine"}


def test_doctor_on_a_home_in_order(home: Path) -> None:
    """Every check has a line, and none fails."""
    home.chmod(0o700)
    found = outcomes(home, "--port", "0")
    assert set(found) == CHECKS | {"sandbox", "clock"}
    assert {found[name] for name in CHECKS - {"packages"}} == {"ok"}


def test_doctor_finds_what_is_wrong(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost snapshot, a port in use, an open home, a misspelt variable and a newer ledger, all at once."""
    shutil.rmtree(home / "snapshots")
    home.chmod(0o755)
    monkeypatch.setenv("NOISEGATE_PROT", "1")
    with sqlite3.connect(home / "ledger.sqlite") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        found = outcomes(home, "--port", str(other.getsockname()[1]))
    wrong = {name: outcome for name, outcome in found.items() if name in CHECKS and outcome != "ok"}
    expected = {"environment": "warn", "home": "warn", "ledger": "fail", "datasets": "fail", "port": "fail"}
    assert {name: wrong.get(name) for name in expected} == expected


def test_doctor_without_a_home(tmp_path: Path) -> None:
    """Nothing is made by looking; what is missing is a warning, because `up` makes it."""
    found = outcomes(tmp_path / "none", "--port", "0")
    assert (found["home"], found["ledger"]) == ("warn", "warn")
    assert not (tmp_path / "none").exists()


def test_doctor_sees_a_broken_engine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that does not start fails the check; the other checks still run."""
    monkeypatch.setattr("engines.private.PrivateEngine.wait_ready", lambda self, timeout_seconds: False)
    assert outcomes(home, "--port", "0")["engine"] == "fail"


def test_doctor_survives_a_check_that_fails_itself(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error in one check is one line, without its text."""

    def explode() -> doctor.Result:
        raise RuntimeError("secret value")

    monkeypatch.setattr(doctor, "_sandbox", explode)
    ran = cli("doctor", "--home", str(home), "--port", "0")
    assert ran.code == 1
    assert "the check itself failed (RuntimeError)" in ran.out
    assert "secret value" not in ran.out


def test_doctor_sees_a_time_that_is_ahead(tmp_path: Path) -> None:
    """A mark whose time the clock has not reached is named, with how far it is ahead."""
    assert doctor._clock(tmp_path).outcome is doctor.OK
    later = int((datetime.datetime.now(datetime.UTC).timestamp() + 3700) * 1e6)
    HighWater(tmp_path / "ledger.highwater").write(Mark("l" * 32, 1, "0" * 64, later))
    found = doctor._clock(tmp_path)
    assert found.outcome is doctor.WARN
    assert "1:01:" in found.seen
