"""The whole request over HTTP against DuckDB's own time for the plain query, in one run.

    python -m benchmarks.end_to_end [--csv FILE] [--rounds 100]

Starts a server of its own on 127.0.0.1 with the demo data (or, with --csv, the UCI Adult table), asks each question
with fresh noise and again from the release store, and times the plain query on DuckDB with the same number of threads
in the same run, in turn. The client is one open socket. Prints one JSON object: medians
in milliseconds, what the request took beyond DuckDB, the fastest tenth of the repeats, and repeats one after another,
as dashboards send them: after other work the processor has forgotten the way.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path
from typing import Any

import duckdb
import httpx

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)\r\n")

DEMO = [
    ("COUNT", "SELECT COUNT(*) FROM patients"),
    ("groups", "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM patients GROUP BY region"),
    ("visits", "SELECT department, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY department"),
    ("shell", "SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY n DESC LIMIT 3"),
]
ADULT = [
    ("COUNT", "SELECT COUNT(*) FROM people WHERE age >= 40"),
    ("groups", "SELECT education, COUNT(*) AS n FROM people GROUP BY education"),
    ("moments", "SELECT sex, COUNT(*) AS n, AVG(age) AS age, STDDEV(age) AS sd FROM people GROUP BY sex"),
    ("shell", "SELECT education, COUNT(*) AS n FROM people GROUP BY education ORDER BY n DESC LIMIT 5"),
]
ADULT_FILE = """\
dataset: adult
unit: {table: people, key: person_id}
tables:
  people:
    source: {file: "%s"}
    key: person_id
    columns:
      person_id: {type: integer, nullable: false}
      age: {type: integer, bounds: [0, 100], nullable: false}
      education: {type: text}
      sex: {type: text, keys: [Female, Male]}
policy: {epsilon_default: "0.002", epsilon_max: "1", epsilon_min: "0.0001", delta_per_query: "1e-12"}
"""


def run(arguments: list[str]) -> None:
    """One command of the command line; its output only when it fails."""
    done = subprocess.run([sys.executable, "-m", "server.cli", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        start = time.perf_counter()
        server = subprocess.Popen(
            [sys.executable, "-m", "server.cli", "up", "--home", str(home), "--port", "0", "--json", "--no-sample"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert server.stdout is not None
            ready = json.loads(server.stdout.readline())
            ready["up_seconds"] = round(time.perf_counter() - start, 2)
            print(json.dumps(measure(ready, home, options), indent=2))
        finally:
            server.terminate()
            server.wait(timeout=30)


def measure(ready: dict[str, Any], home: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Medians for every question."""
    dataset, questions = "demo", DEMO
    admin = httpx.Client(base_url=ready["url"], headers={"Authorization": f"Bearer {ready['admin_key']}"}, timeout=60)
    if options.csv is not None:
        dataset, questions = "adult", ADULT
        path = home / "adult.yaml"
        path.write_text(ADULT_FILE % options.csv.resolve())
        run(["dataset", "add", str(path), "--home", str(home)])
    root = admin.post(
        "/v1/budgets",
        json={"dataset": dataset, "limit": {"epsilon": "1000", "delta": "0.00001"}, "filter": "approximate"},
    )
    principal = admin.get("/v1/principals").json()
    analyst = next(p["name"] for p in _items(principal) if p["role"] == "analyst")
    if dataset != "demo":
        parent = root.json()["id"]
        admin.post(
            "/v1/budgets",
            json={
                "dataset": dataset, "principal": analyst, "parent": parent,
                "limit": {"epsilon": "1000", "delta": "0.000001"}, "filter": "approximate",
            },
        ).raise_for_status()  # fmt: skip
    snapshot = next((home / "snapshots" / dataset).glob("*.duckdb"))
    plain = duckdb.connect(str(snapshot), read_only=True, config={"threads": 2})
    client = Client(ready["url"], ready["analyst_key"])
    figures: dict[str, Any] = {"up_seconds_first_time": ready["up_seconds"]}
    for name, sql in questions:
        figures[name] = question(client, plain, dataset, sql, options.rounds)
    return figures


def _items(body: Any) -> list[dict[str, Any]]:
    return body if isinstance(body, list) else next(value for value in body.values() if isinstance(value, list))


class Client:
    """One connection to the server, read as bytes: a library that parses every header would be timed as well."""

    def __init__(self, url: str, key: str) -> None:
        address = urllib.parse.urlsplit(url)
        self._socket = socket.create_connection((str(address.hostname), address.port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = (
            f"POST /v1/queries HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {key}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        ).encode()

    def seconds(self, body: bytes) -> float:
        """How long one query takes, from the first byte sent to the last one read."""
        request = self._head + str(len(body)).encode() + b"\r\n\r\n" + body
        start = time.perf_counter()
        self._socket.sendall(request)
        received = bytearray()
        end = -1
        while end < 0 or len(received) < end:
            received += self._socket.recv(1 << 20) or _closed()
            if end < 0 and (blank := received.find(b"\r\n\r\n")) >= 0:
                (length,) = _LENGTH.findall(received[: blank + 2])
                end = blank + 4 + int(length)
        took = time.perf_counter() - start
        if not received.startswith(b"HTTP/1.1 200 "):
            raise SystemExit(received.decode())
        return took


def _closed() -> bytes:
    raise SystemExit("the server closed the connection")


def question(client: Client, plain: Any, dataset: str, sql: str, rounds: int) -> dict[str, float]:
    """One question: DuckDB alone, the request with fresh noise, and the request from the store, in turn."""
    engine, fresh, stored = [], [], []
    body = {"dataset": dataset, "sql": sql, "spend": {"epsilon": "0.002"}, "wait_ms": 30_000}
    bodies = {reuse: json.dumps({**body, "reuse": reuse}).encode() for reuse in ("none", "own")}
    for _ in range(rounds):
        start = time.perf_counter()
        plain.execute(sql).fetchall()
        engine.append(time.perf_counter() - start)
        fresh.append(client.seconds(bodies["none"]))
        stored.append(client.seconds(bodies["own"]))
    in_a_row = [client.seconds(bodies["own"]) for _ in range(rounds)]
    figures = {
        "duckdb_ms": statistics.median(engine) * 1e3,
        "request_ms": statistics.median(fresh) * 1e3,
        "repeat_ms": statistics.median(stored) * 1e3,
        "repeat_fastest_tenth_ms": sorted(stored)[rounds // 10] * 1e3,
        "repeat_in_a_row_ms": statistics.median(in_a_row) * 1e3,
    }
    figures["beyond_duckdb_ms"] = figures["request_ms"] - figures["duckdb_ms"]
    return {name: round(value, 2) for name, value in figures.items()}


if __name__ == "__main__":
    main()
