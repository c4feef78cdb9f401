"""Makes `home-VERSION.tar.gz`: a small home as that version leaves it behind, for the tests that upgrade it.

An archive is made once, with the program of its version, and never again with a newer one; this script says how. It
runs that program's own command line and HTTP interface, as its users did:

    git worktree add --detach ../noisegate-0.1.0 aa1f533
    python -m tests.upgrade.make_home ../noisegate-0.1.0 0.1.0 tests/upgrade/home-0.1.0.tar.gz
    git worktree add --detach ../noisegate-0.2.0 fbfd7e7
    python -m tests.upgrade.make_home ../noisegate-0.2.0 0.2.0 tests/upgrade/home-0.2.0.tar.gz
    git worktree add --detach ../noisegate-0.2.1 8d12600
    python -m tests.upgrade.make_home ../noisegate-0.2.1 0.2.1 tests/upgrade/home-0.2.1.tar.gz
    git worktree add --detach ../noisegate-0.3.0 e4fbeda
    python -m tests.upgrade.make_home ../noisegate-0.3.0 0.3.0 tests/upgrade/home-0.3.0.tar.gz
    git worktree add --detach ../noisegate-0.4.0 e6350b2
    python -m tests.upgrade.make_home ../noisegate-0.4.0 0.4.0 tests/upgrade/home-0.4.0.tar.gz
    git worktree add --detach ../noisegate-0.5.0 c758317
    python -m tests.upgrade.make_home ../noisegate-0.5.0 0.5.0 tests/upgrade/home-0.5.0.tar.gz
    git worktree add --detach ../noisegate-0.6.0 1f49e7e
    python -m tests.upgrade.make_home ../noisegate-0.6.0 0.6.0 tests/upgrade/home-0.6.0.tar.gz
    git worktree add --detach ../noisegate-0.7.0 973ab72
    python -m tests.upgrade.make_home ../noisegate-0.7.0 0.7.0 tests/upgrade/home-0.7.0.tar.gz
    git worktree add --detach ../noisegate-0.8.0 a18a9fb
    python -m tests.upgrade.make_home ../noisegate-0.8.0 0.8.0 tests/upgrade/home-0.8.0.tar.gz
    git worktree add --detach ../noisegate-0.9.0 f59f4ab
    python -m tests.upgrade.make_home ../noisegate-0.9.0 0.9.0 tests/upgrade/home-0.9.0.tar.gz
    git worktree add --detach ../noisegate-0.10.0 789661f
    python -m tests.upgrade.make_home ../noisegate-0.10.0 0.10.0 tests/upgrade/home-0.10.0.tar.gz
    git worktree add --detach ../noisegate-0.11.0 20c7d9d
    python -m tests.upgrade.make_home ../noisegate-0.11.0 0.11.0 tests/upgrade/home-0.11.0.tar.gz
    git worktree add --detach ../noisegate-0.12.0 fcbdf98
    python -m tests.upgrade.make_home ../noisegate-0.12.0 0.12.0 tests/upgrade/home-0.12.0.tar.gz
    git worktree add --detach ../noisegate-0.13.0 003445c5
    python -m tests.upgrade.make_home ../noisegate-0.13.0 0.13.0 tests/upgrade/home-0.13.0.tar.gz
    git worktree add --detach ../noisegate-0.14.0 ac2ed65a
    python -m tests.upgrade.make_home ../noisegate-0.14.0 0.14.0 tests/upgrade/home-0.14.0.tar.gz

What is in each: a dataset of two tables (invented by arithmetic, 300 patients), whose policy shares releases; keys of
an administrator and two analysts; a root and accounts of anna and ben; answers with public and with hidden keys, an
AVG, a repeat, one with an Idempotency-Key; and one voided and one failed query, made through the ledger, since no
client can make an engine fail. That of 0.1.0 has a second account of anna, side by side with the first, which paid too.
Those since 0.2 have a release that ben was charged for reading, and a query that was left open: in the ledger's
state "running" by 0.2.0, reserved by the later ones, which have no such state. Those since 0.4.0 have a third table,
of which nothing is declared but its keys: norms and value bounds are chosen, and hidden groups selected by weights.
Those since 0.5.0 have a width that was bought in two charges: a histogram, and then sums at the price that follows.
Those since 0.6.0 have a median, a count of different values, an average of what each patient has, and several levels.
Those since 0.7.0 have a question in two stages, a choice of groups, several quantiles, first visits, and rows of two
tables. Those since 0.8.0 have levels of columns measured together, a HISTOGRAM, a BOOL_OR, and a list of released
groups. Those since 0.9.0 have a median within a patient, months that a series adds, and pairs in a list; a monitor of
anna that compared once, and a collector with reports. Those since 0.10.0 have a pivot, a median by a mechanism that was
named, and a column that asks for membership in a list of released groups; a batch, a model and a synthetic table. Those
since 0.11.0 have a stream that was asked, a registered statistic, and a model that chose bounds. Those since 0.12.0
have a public table beside people, other rows of the same patient, and an account that named how its delta is divided.
Those since 0.13.0 have Laplace and Gaussian answers in one account with a mixed branch, a sharpened answer, one
derived from the release of another question, conditions measured as atoms, and groups that moments selected. That of
0.14.0 has running sums, merged groups, two averages with one count, and counts that are not negative; its entries hold
the hashes of answers and releases.
`asked.json` keeps what was asked and answered. The keys open nothing but these archives.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.upgrade.recipes import (
    BATCH,
    CLOSED,
    COLLECTOR,
    MODEL,
    MONITOR,
    NOBODY,
    PAYING,
    RANGES,
    RECIPES,
    SHARPER,
    STATISTIC,
    STREAM,
    SYNTHETIC,
    Recipe,
)


def write_sources(folder: Path, dataset: str) -> Path:
    """Writes the tables and the dataset file; returns the latter."""
    folder.mkdir(parents=True)
    with (folder / "patients.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["patient_id", "age", "region", "town"])
        for person in range(300):
            region = ["coast", "hills", "plain"][person * 7 % 3]
            rows.writerow([person, 18 + person * 13 % 70, region, f"town{person % 3}" if person % 50 else "hamlet"])
    with (folder / "visits.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["visit_id", "patient_id", "month", "cost", "paid"])
        for visit in range(900):
            rows.writerow([visit, visit % 300, 1 + visit % 12, 20 + visit * 17 % 400, 20 + visit * 17 % 400 // 10])
    with (folder / "stays.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["patient_id", "month", "ward", "days"])
        for stay in range(1500):
            rows.writerow([stay % (300 if stay % 3 else 40), 1 + stay % 12, f"ward{stay % 4}", 1 + stay * 17 % 40])
    with (folder / "tariffs.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["month", "price"])
        rows.writerows([month, 100 + month * 20] for month in range(1, 13))
    path = folder / "surgery.yaml"
    path.write_text(dataset)
    return path


class Program:
    """The program of one checkout, on one home."""

    def __init__(self, checkout: Path, home: Path) -> None:
        self._checkout = checkout
        self._home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NOISEGATE_")}
        self._environment = {**kept, "PYTHONPATH": str(checkout)}

    def command(self, *arguments: str) -> Any:
        """Runs one command and returns its line of JSON."""
        line = [sys.executable, "-m", "server.cli", *arguments, "--home", str(self._home), "--json"]
        done = subprocess.run(line, cwd=self._checkout, env=self._environment, check=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout)

    def run(self, script: str, *arguments: str) -> None:
        """Runs a script with the program's modules."""
        line = [sys.executable, "-c", script, *arguments]
        subprocess.run(line, cwd=self._checkout, env=self._environment, check=True)

    @contextlib.contextmanager
    def serving(self) -> Any:
        """A server on the home; gives its address."""
        line = [sys.executable, "-m", "server.cli", "serve", "--home", str(self._home), "--port", "0"]
        lock = self._home / "serving.lock"
        lock.unlink(missing_ok=True)
        with subprocess.Popen(line, cwd=self._checkout, env=self._environment, stderr=subprocess.DEVNULL) as server:
            try:
                yield self._ready(server, lock)
            finally:
                server.terminate()

    def _ready(self, server: subprocess.Popen[bytes], lock: Path) -> str:
        """Waits until the server is ready; its address."""
        while server.poll() is None:
            with contextlib.suppress(OSError, ValueError):
                url: str = json.loads(lock.read_text())["url"]
                urllib.request.urlopen(f"{url}/readyz").close()
                return url
            time.sleep(0.1)
        raise RuntimeError("the server ended before it was ready")


def ask(url: str, path: str, key: str, body: dict[str, Any], retry: str | None = None) -> Any:
    """One POST."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    if retry is not None:
        headers["Idempotency-Key"] = retry
    request = urllib.request.Request(url + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{path}: {error.read().decode()}") from None


def make(checkout: Path, home: Path, recipe: Recipe) -> None:
    """Does on `home` what the text above says."""
    program = Program(checkout, home)
    program.command("migrate")
    program.command("dataset", "add", str(write_sources(home / "datasets", recipe.dataset)))
    keys = {"admin": program.command("key", "create", "admin", "--role", "admin", "--days", "3650")["key"]}
    for name in ("anna", "ben"):
        keys[name] = program.command("key", "create", name, "--days", "3650")["key"]
    asked: dict[str, Any] = {"keys": keys, "questions": {}}
    with program.serving() as url:
        root = {"dataset": "surgery", "limit": {"epsilon": "20", "delta": "0.00001"}}
        ask(url, "/v1/budgets", keys["admin"], root)
        for name, epsilon in (*(("anna", epsilon) for epsilon in recipe.limits_of_anna), ("ben", "3")):
            limit = {"epsilon": epsilon, "delta": "0.000001"}
            opened = {"dataset": "surgery", "principal": name, "limit": limit, "filter": "approximate"}
            if name == "ben" and recipe.shares_of_ben is not None:
                opened["delta_shares"] = recipe.shares_of_ben
            ask(url, "/v1/budgets", keys["admin"], opened)
        own = ask_budgets(url, keys["anna"])
        for name, title, body, retry in recipe.questions:
            whole = {"dataset": "surgery", **body}
            asked["questions"][title] = {
                "principal": name,
                "body": whole,
                "idempotency_key": retry,
                "answer": ask(url, "/v1/queries", keys[name], whole, retry),
            }
        # A second account of anna pays too: in version 0.1.0 both are spendable.
        for account in own[1:]:
            second = {"dataset": "surgery", "sql": "SELECT AVG(age) AS age FROM patients", "budget": account["id"]}
            asked["questions"]["second_account"] = {
                "principal": "anna",
                "body": second,
                "idempotency_key": None,
                "answer": ask(url, "/v1/queries", keys["anna"], second),
            }
        if recipe.sharpened is not None:
            asked["sharpened"] = sharpen(url, keys, asked["questions"][recipe.sharpened])
        if recipe.sessions:
            asked.update(open_sessions(url, keys))
        if recipe.resources:
            asked.update(make_resources(url, keys))
        if recipe.streams:
            asked.update(open_streams(url, keys))
    ledger = f"sqlite:///{home / 'ledger.sqlite'}", str(home / "ledger.highwater")
    program.run(CLOSED, *ledger)
    with program.serving() as url:
        # While the server runs, which fails only what its own start finds open.
        if recipe.left_open is not None:
            program.run(recipe.left_open, *ledger)
        asked["budgets"] = ask_budgets(url, keys["admin"])
    (home / "asked.json").write_text(json.dumps(asked, indent=1))


def sharpen(url: str, keys: dict[str, str], first: dict[str, Any]) -> dict[str, Any]:
    """Makes an answer more precise by its identifier."""
    query, who = first["answer"]["id"], first["principal"]
    return {"of": query, "answer": ask(url, f"/v1/queries/{query}:sharpen", keys[who], SHARPER, "sharper-1")}


def open_sessions(url: str, keys: dict[str, str]) -> dict[str, Any]:
    """A monitor that compared once, and a collector with three reports and a token that is left."""
    monitor = ask(url, "/v1/monitors", keys["anna"], MONITOR, "watch-1")
    compared = ask(url, f"/v1/monitors/{monitor['id']}/evaluations", keys["anna"], {})
    collector = ask(url, "/v1/collectors", keys["admin"], COLLECTOR, "collect-1")
    address = f"/v1/collectors/{collector['id']}"
    tokens = ask(url, f"{address}/tokens", keys["admin"], {"count": 4})["tokens"]
    reports = [{"token": token, "report": [value]} for token, value in zip(tokens, (0, 1, 1), strict=False)]
    ask(url, f"{address}/reports", keys["admin"], {"reports": reports})
    return {
        "monitor": {"opened": monitor, "compared": compared},
        "collector": {
            "opened": collector,
            "tokens": tokens,
            "estimates": get(url, f"{address}/estimates", keys["anna"]),
        },
    }


def make_resources(url: str, keys: dict[str, str]) -> dict[str, Any]:
    """A batch, a model and a synthetic table of anna, and what a query reads of the table."""
    batch = ask(url, "/v1/batches", keys["anna"], {**BATCH, "wait_ms": 30_000}, "batch-1")
    model = ask(url, "/v1/models", keys["anna"], {**MODEL, "wait_ms": 30_000}, "model-1")
    made = ask(url, "/v1/synthetic", keys["anna"], SYNTHETIC, "table-1")
    read = ask(url, "/v1/queries", keys["anna"], NOBODY)
    return {"batch": batch, "model": model, "synthetic": made, "nobody": read["rows"]}


def open_streams(url: str, keys: dict[str, str]) -> dict[str, Any]:
    """A stream of anna that answered twice, what a registered statistic gave, and a model that chose bounds."""
    stream = ask(url, "/v1/streams", keys["anna"], STREAM, "stream-1")
    answered = ask(url, f"/v1/streams/{stream['id']}/queries", keys["anna"], RANGES)
    statistic = ask(url, "/v1/statistics", keys["anna"], {**STATISTIC, "wait_ms": 30_000}, "statistic-1")
    paying = ask(url, "/v1/models", keys["anna"], {**PAYING, "wait_ms": 30_000}, "model-2")
    return {"stream": {"opened": stream, "answered": answered}, "statistic": statistic, "paying": paying}


def get(url: str, path: str, key: str) -> Any:
    """One GET."""
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def ask_budgets(url: str, key: str) -> list[dict[str, Any]]:
    """The budgets that a key sees."""
    budgets: list[dict[str, Any]] = get(url, "/v1/budgets", key)["budgets"]
    return budgets


def pack(home: Path, archive: Path) -> None:
    """One archive of the home, without times, owners and absolute paths."""
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w") as tar:
        for path in sorted(home.rglob("*")):
            if path.is_file() and not path.name.endswith(("-wal", "-shm", "-owner", ".lock")):
                info = tarfile.TarInfo(path.relative_to(home).as_posix())
                info.size = path.stat().st_size
                info.mode = path.stat().st_mode & 0o777
                with path.open("rb") as file:
                    tar.addfile(info, file)
    archive.write_bytes(gzip.compress(kept.getvalue(), 9, mtime=0))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        make(Path(sys.argv[1]).resolve(), Path(folder) / "home", RECIPES[sys.argv[2]])
        pack(Path(folder) / "home", Path(sys.argv[3]))
