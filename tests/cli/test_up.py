"""`noisegate up` and `noisegate serve`: from nothing to answers, again, and every way in which it cannot start."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import sqlite3
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest

from server.cli.up import _asked_before
from server.home import Home
from server.serving import ServingLock
from tests.cli.support import ROOT, Serving, cli, gone, misused, refused, serving_url


def test_a_dataset_that_was_added_since_is_not_opened_unasked() -> None:
    """The analyst's own dataset is the one that is asked again, and the first one where there is none."""
    datasets = [Mock(), Mock()]
    datasets[0].name, datasets[1].name = "city", "trips"
    owners = {"city": [None, "maria"], "trips": [None, "analyst"]}
    budgets = Mock(accounts_of=lambda name: [Mock(principal=owner) for owner in owners[name]])
    assert _asked_before(datasets, budgets).name == "trips"
    owners["trips"] = []
    assert _asked_before(datasets, budgets).name == "city"


def get(record: dict[str, Any], path: str, key: str = "analyst_key") -> httpx.Response:
    headers = {"Authorization": f"Bearer {record[key]}"}
    return httpx.get(record["url"] + path, headers=headers, trust_env=False, timeout=30)


@pytest.mark.slow
def test_up_from_nothing_and_again(tmp_path: Path) -> None:
    """One line of JSON with keys that work, a clean stop, and a second run that keeps keys, data and budget."""
    home = tmp_path / "home"
    arguments = ("up", "--home", str(home), "--port", "0", "--json")
    with Serving(*arguments) as serving:
        first = json.loads(serving.until("}\n"))
        assert set(first) == {"url", "admin_key", "analyst_key", "datasets"}
        assert first["datasets"] == ["demo"]
        assert get(first, "/readyz").status_code == 200
        assert get(first, "/v1/me").json()["role"] == "analyst"
        assert get(first, "/v1/me", "admin_key").json()["role"] == "admin"
        budgets = get(first, "/v1/budgets").json()["budgets"]
        assert [(item["limit"]["epsilon"], item["limit"]["delta"]) for item in budgets] == [("10", "0.000001")]
        assert budgets[0]["used_share"] == "0", "no sample question is asked for scripts"

        # The same home while it is served; commands that share the ledger with the server.
        refused(cli("up", "--home", str(home), "--port", "0"), "is served already at " + first["url"])
        refused(cli("serve", "--home", str(home), "--port", "0"), "is served already")
        asked = cli("query", "SELECT COUNT(*) AS n FROM patients", "--home", str(home), "--epsilon", "0.5", "--json")
        assert asked.code == 0, asked.err
        answer = asked.json
        assert answer["columns"][0]["name"] == "n"
        assert abs(answer["rows"][0][0] - 25_000) < 200
        assert answer["accounting"]["remaining"]["epsilon"] == "9.5"
        shown = cli("query", "SELECT COUNT(*) AS n FROM patients", "--home", str(home), "--epsilon", "0.5")
        assert "±" in shown.out
        assert "Price: nothing" in shown.out, "the stored release serves again"
        assert "Remains: epsilon 9.5" in shown.out
        estimated = cli("estimate", "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex", "--home", str(home))
        assert "It would be answered." in estimated.out
        made = cli("key", "create", "second", "--json", "--home", str(home)).json
        assert get({**first, "second": made["key"]}, "/v1/me", "second").json()["name"] == "second"
        assert cli("budget", "show", "--principal", "analyst", "--json", "--home", str(home)).json[0]["used_share"] == (
            "0.05"
        )

        # A dataset that is added while it runs is served at once.
        data = tmp_path / "people.csv"
        data.write_text("person_id,city\n1,A\n2,B\n")
        described = tmp_path / "people.yaml"
        assert cli("init", str(data), "--unit", "person_id", "-o", str(described)).code == 0
        added = cli("dataset", "add", str(described), "--home", str(home), "--json")
        assert added.code == 0, added.err
        assert added.json["served"] is True
        assert get(first, "/v1/datasets/people", "admin_key").status_code == 200
        assert cli("dataset", "remove", "people", "--home", str(home)).code == 0
        assert get(first, "/v1/datasets/people", "admin_key").status_code == 404
        assert cli("audit", "--home", str(home)).code == 0

        children = serving.children()
        assert children, "engines run in processes of their own"
        stopped = serving.stop()
    assert stopped.code == 0
    assert stopped.out == "", "one line of JSON and nothing else"
    assert "Traceback" not in stopped.err
    assert all(gone(child) for child in children)
    for name in ("admin", "analyst"):
        assert (home / "secrets" / f"{name}.apikey").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o077 == 0

    entries = cli("audit", "--json", "--home", str(home)).json["entries"]
    with Serving(*arguments) as serving:
        second = json.loads(serving.until("}\n"))
        assert {name: second[name] for name in ("admin_key", "analyst_key", "datasets")} == {
            name: first[name] for name in ("admin_key", "analyst_key", "datasets")
        }
        stopped = serving.stop(signal.SIGINT)
    assert stopped.code == 0
    assert cli("audit", "--json", "--home", str(home)).json["entries"] == entries, "no second budget"

    # A key that was revoked is replaced, and a lost snapshot of the demo is made again.
    assert cli("key", "revoke", first["analyst_key"], "--home", str(home)).code == 0
    shutil.rmtree(home / "snapshots" / "demo")
    with Serving(*arguments) as serving:
        third = json.loads(serving.until("}\n"))
        assert third["admin_key"] == first["admin_key"]
        assert third["analyst_key"] != first["analyst_key"]
        assert get(third, "/v1/me").status_code == 200
        answer = get(third, "/v1/datasets/demo").json()
        assert answer["policy_version"] == 1
        assert serving.stop().code == 0


@pytest.mark.slow
def test_own_data_reaches_a_first_answer(people: Path, tmp_path: Path) -> None:
    """`up --data FILE --unit COLUMN` says what it makes before it does, asks and shows the answer and what is next."""
    home = tmp_path / "home"
    arguments = ("up", "--home", str(home), "--port", "0", "--data", str(people), "--unit", "person_id")
    with Serving(*arguments) as serving:
        told = serving.until("Ctrl-C")
        assert serving.stop(signal.SIGINT).code == 0
    order = [
        f"Noisegate will create in {home}\n",
        "ledger.sqlite",
        "snapshots/",
        "reading people.csv",
        "Ready: http://127.0.0.1:",
    ]
    order += ["SELECT COUNT(*)", "±", "Price: epsilon 0.1", "Remains: epsilon 9.9", "query", "curl", "httpx", "/docs"]
    places = [told.index(text) for text in order]
    assert places == sorted(places)
    assert (home / "datasets" / "people.yaml").is_file()
    assert sorted(item.name for item in (home / "datasets").iterdir()) == ["people.yaml"], "no demo beside it"

    # Again with several rows per person: the unit repeats, so its bound is chosen by questions, which is said.
    visits = tmp_path / "visits.csv"
    visits.write_text("person_id,city\n" + "".join(f"{number // 3},A\n" for number in range(90)))
    changed = ("up", "--home", str(home), "--port", "0", "--data", str(visits), "--unit", "person_id", "--no-sample")
    with Serving(*changed) as serving:
        told = serving.until("Ctrl-C")
        assert "each question chooses how much of one unit counts" in " ".join(told.split())
        assert "Price:" not in told
        assert serving.stop().code == 0
    assert "contribution: auto" in (home / "datasets" / "visits.yaml").read_text()
    refused(
        cli(*arguments[:5], "--data", str(visits), "--unit", "person_id", "--dataset", "people"),
        'a dataset "people" already, of other data',
    )


@pytest.mark.slow
def test_rows_that_are_not_kept_are_told(tmp_path: Path) -> None:
    """The owner hears that no answer counts them, and which values are read as missing."""
    visits = tmp_path / "visits.csv"
    visits.write_text("person_id,cost\n" + "1,2.5\n" * 1_010 + "2,inf\n2,1.5\n")
    arguments = ("up", "--home", str(tmp_path / "home"), "--port", "0", "--data", str(visits), "--unit", "person_id")
    with Serving(*arguments, "--no-sample") as serving:
        told = " ".join(serving.until("Ctrl-C").split())
        assert serving.stop().code == 0
    assert "In table visits, 10 of 1,012 rows were left out, and no answer counts them" in told
    assert "infinite or NaN values of column cost are read as NULL: 1." in told


@pytest.mark.slow
def test_interrupted_setup_is_resumed(tmp_path: Path) -> None:
    """SIGTERM in the middle of the first set-up ends with 130 and no process left; the next run completes."""
    arguments = ("up", "--home", str(tmp_path / "home"), "--port", "0", "--json")
    with Serving(*arguments) as serving:
        serving.until("making the snapshot", error=True)
        children = serving.children()
        stopped = serving.stop()
    assert stopped.code == 130
    assert "interrupted" in stopped.err
    assert "Traceback" not in stopped.err
    assert all(gone(child) for child in children)
    with Serving(*arguments) as serving:
        assert json.loads(serving.until("}\n"))["datasets"] == ["demo"]
        assert serving.stop().code == 0


@pytest.mark.slow
def test_serve_refuses_what_is_not_migrated_then_migrates(tmp_path: Path) -> None:
    """A start without a ledger is refused with the way out; with --migrate it serves, and SIGTERM ends it with 0."""
    home = tmp_path / "home"
    ran = cli("serve", "--home", str(home), "--port", "0")
    refused(ran, "the ledger is missing", "serve --home", "--migrate")
    assert not (home / "ledger.sqlite").exists()
    with Serving("serve", "--migrate", "--home", str(home), "--port", "0") as serving:
        url = serving_url(serving, home)
        assert httpx.get(f"{url}/healthz", trust_env=False, timeout=30).status_code == 200
        stopped = serving.stop()
    assert stopped.code == 0
    assert all(json.loads(line) for line in stopped.err.splitlines()), "logs are JSON lines"
    assert Home(home).serving() is None, "the next start is not kept out"


# What keeps it from starting. Nothing is made, or everything that was there stays.


def test_port_in_use(tmp_path: Path) -> None:
    """A port that another program listens on is told before anything is made."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        for command in (["up"], ["serve", "--migrate"]):
            ran = cli(*command, "--home", str(tmp_path / command[0]), "--port", str(port))
            assert ran.code == 1
            assert f"port {port} is in use" in ran.err
            assert "--port 0 takes a free one" in ran.err
    assert not (tmp_path / "up").exists()


@pytest.mark.parametrize("port", ["-1", "65536", "nan", "http", "8e3", ""])
def test_bad_ports(tmp_path: Path, port: str) -> None:
    """A port is a whole number up to 65535."""
    misused(cli("up", "--port", port, "--home", str(tmp_path / "home")), "--port")
    assert not (tmp_path / "home").exists()


def test_home_below_a_file(tmp_path: Path) -> None:
    """A home that cannot be a folder is told as such."""
    (tmp_path / "file").write_text("")
    ran = cli("up", "--home", str(tmp_path / "file" / "home"), "--port", "0")
    assert ran.code == 1
    assert "a file stands where a folder is needed" in ran.err


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs Linux: /sys is a folder that nobody can write")
def test_home_that_nobody_can_write() -> None:
    """A read-only folder is told with what to choose instead."""
    for command in (["up"], ["serve", "--migrate"], ["migrate"]):
        port = [] if command == ["migrate"] else ["--port", "0"]
        ran = cli(*command, "--home", "/sys/noisegate", *port)
        assert ran.code == 1
        assert "could not use" in ran.err
        assert "--home DIR" in ran.err


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "permission was denied"),
        (errno.EIO, "The system says"),
    ],
)
def test_disk_troubles(home: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str) -> None:
    """A full or faulty disk at the first write is told; what was stored stays."""

    def fail(self: Path, content: bytes) -> int:
        raise OSError(number, os.strerror(number), str(self))

    before = (home / "ledger.sqlite").read_bytes()
    monkeypatch.setattr(Path, "write_bytes", fail)
    ran = cli("up", "--home", str(home), "--port", "0")
    assert ran.code == 1
    assert words in ran.err
    assert (home / "ledger.sqlite").read_bytes() == before


@pytest.mark.parametrize("statement", ["UPDATE alembic_version SET version_num = '9999'"])
@pytest.mark.slow
def test_newer_ledger(home: Path, statement: str) -> None:
    """A ledger of a newer version is not touched by any command."""
    with sqlite3.connect(home / "ledger.sqlite") as connection:
        connection.execute(statement)
    connection.close()
    at = ("--home", str(home))
    before = dump(home)
    commands: list[tuple[str, ...]] = [
        ("up", "--port", "0"),
        ("serve", "--port", "0"),
        ("serve", "--port", "0", "--migrate"),
        ("migrate",),
        ("audit",),
        ("key", "create", "research"),
        ("budget", "set", "--dataset", "people", "--epsilon", "1", "--delta", "0.001"),
        ("budget", "show"),
        ("dataset", "list"),
        ("dataset", "remove", "people"),
    ]
    for command in commands:
        ran = cli(*command, *at)
        assert ran.code == 1, command
        assert "written by a newer version" in ran.err, command
    assert dump(home) == before


def dump(home: Path) -> list[str]:
    connection = sqlite3.connect(home / "ledger.sqlite")
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def test_damaged_ledger(home: Path) -> None:
    """A file that is no database is told as such and not changed."""
    for name in ("ledger.sqlite-wal", "ledger.sqlite-shm"):
        (home / name).unlink(missing_ok=True)
    (home / "ledger.sqlite").write_bytes(b"this is no database, but long enough to look like one" * 100)
    before = (home / "ledger.sqlite").read_bytes()
    for command in (["up", "--port", "0"], ["audit"], ["key", "list"], ["migrate"], ["budget", "show"]):
        ran = cli(*command, "--home", str(home))
        assert ran.code == 1, command
        assert "the file is damaged, or is no ledger" in ran.err, command
    assert (home / "ledger.sqlite").read_bytes() == before


def test_lost_snapshot_of_own_data(home: Path) -> None:
    """The snapshot of the owner's data cannot be guessed: a start with nothing else is refused with how to fix it."""
    shutil.rmtree(home / "snapshots" / "people")
    ran = cli("up", "--home", str(home), "--port", "0")
    assert ran.code == 1
    assert "people: Its snapshot is missing or is not what was stored." in ran.err
    assert "dataset remove --home" in ran.err


@pytest.mark.slow
def test_a_lost_snapshot_does_not_stop_other_datasets(home: Path, tmp_path: Path) -> None:
    """Another dataset is attached and served; the lost one says why it is not, and comes back when it is attached."""
    second = tmp_path / "second.yaml"
    (tmp_path / "second.csv").write_text("id,age\n" + "".join(f"{n},{n % 90}\n" for n in range(1, 50)))
    second.write_text(
        "version: 2\ndataset: second\nunit: {table: t, key: id}\n"
        "tables: {t: {source: {file: second.csv}, key: id, columns: {id: {type: integer}, age: {type: integer}}}}\n"
    )
    # Moved away as a whole: the manifest and the data.
    (home / "snapshots" / "people").rename(tmp_path / "lost")
    added = cli("dataset", "add", str(second), "--home", str(home))
    assert added.code == 0, added.err
    with Serving("up", "--home", str(home), "--port", "0", "--json") as serving:
        ready = json.loads(serving.until("}\n"))
        assert ready["datasets"] == ["second"]
        listed = get(ready, "/v1/datasets", "admin_key").json()
        assert listed["unavailable"] == ["people"]
        (tmp_path / "lost").rename(home / "snapshots" / "people")
        deadline = time.monotonic() + 60
        while get(ready, "/v1/datasets", "admin_key").json()["unavailable"] and time.monotonic() < deadline:
            time.sleep(0.2)
        assert get(ready, "/v1/datasets", "admin_key").json()["unavailable"] == []
        assert serving.stop().code == 0


def test_home_that_is_served(home: Path) -> None:
    """While another process holds the home, a start is refused with its address and process."""
    lock = ServingLock(home / "serving.lock")
    try:
        assert lock.take()
        lock.report(url="http://127.0.0.1:9", pid=4_000_000)
        refused(cli("up", "--home", str(home), "--port", "0"), "http://127.0.0.1:9", "kill 4000000")
        assert Home(home).url() == "http://127.0.0.1:9"
    finally:
        lock.close()
    assert Home(home).url() is None


def test_options_that_do_not_fit(people: Path, tmp_path: Path) -> None:
    """Words about own data need the data, and the data needs its unit; nothing is made."""
    at = ("--home", str(tmp_path / "home"), "--port", "0")
    refused(cli("up", "--unit", "person_id", *at), "--unit needs --data", code=2)
    refused(cli("up", "--rows-per-unit", "3", *at), "--rows-per-unit needs --data", code=2)
    refused(cli("up", "--data", str(people), *at), "--unit is missing", "person_id, age, city, score", code=2)
    refused(cli("up", "--data", str(people), "--unit", "nobody", *at), 'no column "nobody"', code=2)
    own = ("--data", str(people), "--unit", "person_id")
    refused(cli("up", *own, "--dataset", "no name", *at), "--dataset is not accepted", "--dataset no_name", code=2)
    refused(cli("up", *own, "--dataset", "demo", *at), 'cannot be named "demo"', code=2)
    misused(cli("up", *own, "--rows-per-unit", "0", *at), "--rows-per-unit")
    assert not (tmp_path / "home").exists()


def test_unsafe_settings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address beyond this machine needs the word that a proxy speaks TLS; several processes need PostgreSQL."""
    at = ("--home", str(tmp_path / "home"), "--port", "0")
    refused(cli("serve", "--host", "0.0.0.0", *at), "tls_terminated")
    monkeypatch.setenv("NOISEGATE_WORKERS", "4")
    refused(cli("serve", *at), "PostgreSQL")
    monkeypatch.setenv("NOISEGATE_WORKERS", "many")
    ran = cli("serve", *at)
    refused(ran, "workers")
    assert not (tmp_path / "home").exists()


def test_default_home_is_the_checkout() -> None:
    """Without option and variable the home is in the checkout, wherever the caller stands."""
    from server.cli.options import Here

    assert Here(None, as_json=False).place().path == ROOT / ".noisegate"
    assert Here(Path("somewhere"), as_json=False).place().path == Path.cwd() / "somewhere"


@pytest.mark.slow
def test_up_is_not_stopped_by_a_broken_dataset(home: Path, people: Path, tmp_path: Path) -> None:
    """With one snapshot lost `up` names it and serves the other; with nothing left to serve it says so."""
    described = tmp_path / "other.yaml"
    made = cli("init", str(people), "--unit", "person_id", "--dataset", "other", "-o", str(described))
    assert made.code == 0
    assert cli("dataset", "add", str(described), "--home", str(home)).code == 0

    shutil.rmtree(home / "snapshots" / "people")
    with Serving("up", "--home", str(home), "--port", "0", "--json") as serving:
        ready = json.loads(serving.until('"url"'))
        assert ready["datasets"] == ["other"]
        told = serving.stop()
        assert told.code == 0
        assert "dataset people is not served" in told.err
    shutil.rmtree(home / "snapshots" / "other")
    with Serving("up", "--home", str(home), "--port", "0", "--json") as serving:
        serving.process.wait(timeout=60)
        refused(serving.stop(), "no dataset can be served", "other: ", "people: ", "dataset add")
