"""Polls of a tile: time of a 304 and of a tile, polls a second, and what they do to the questions of others.

    python -m benchmarks.dashboards [--seconds 10] [--pollers 16] [--rate 1000]

Starts a server of its own on 127.0.0.1 with the demo data, makes a dashboard of one tile (SELECT region, COUNT(*), of
20 groups), and waits for its first refresh. One open socket asks for it a thousand times, with its ETag and without;
the processor time of the server for each is read from the system, because a shared machine says little by the clock.
Then `pollers` sockets of another process poll with a link, `rate` times a second together and then as fast as they are
answered, while a third one asks repeated questions, before and meanwhile. Prints one JSON object; times are
milliseconds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any

import httpx

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)\r\n")
_TAG = re.compile(rb"(?i)\r\netag: *([^\r]+)\r\n")
_ROUNDS = 1_000
_SQL = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"


class Wire:
    """One open socket that sends the same bytes again and again."""

    def __init__(self, url: str, head: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self._socket = socket.create_connection((parts.hostname, parts.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._bytes = head.encode()

    def ask(self) -> tuple[int, bytes]:
        """Status and head of one answer, whose body is read."""
        self._socket.sendall(self._bytes)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._socket.recv(65_536)
        head, _, body = data.partition(b"\r\n\r\n")
        status, found = int(head[9:12]), _LENGTH.search(head + b"\r\n")
        left = (0 if found is None or status == 304 else int(found[1])) - len(body)
        while left > 0:
            left -= len(self._socket.recv(65_536))
        return status, head + b"\r\n"

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()


def get(path: str, *headers: str) -> str:
    """The bytes of a GET."""
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""])


def processor_seconds(process: int) -> float:
    """User and system time of a process and its children that run."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_seconds(int(child)) for child in children)


def one_after_another(url: str, server: int, head: str, status: int) -> dict[str, float]:
    """A thousand requests of one socket: medians by the clock, and processor time of the server for each."""
    wire, times = Wire(url, head), []
    for _ in range(50):
        wire.ask()
    before = processor_seconds(server)
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        found, _ = wire.ask()
        assert found == status, found
        times.append(1_000 * (time.perf_counter() - begun))
    spent = 1_000 * (processor_seconds(server) - before) / _ROUNDS
    wire.close()
    return {
        "median": round(statistics.median(times), 3),
        "p99": round(statistics.quantiles(times, n=100)[98], 3),
        "processor": round(spent, 3),
    }


def poll(url: str, head: str, sockets: int, seconds: float, rate: float, counted: Any) -> None:
    """Polls on some sockets, so often a second together, or as fast as they are answered. A process of its own."""

    def loop() -> None:
        wire, count, begun = Wire(url, head), 0, time.monotonic()
        while time.monotonic() < begun + seconds:
            wire.ask()
            count += 1
            time.sleep(max(0.0, begun + count * sockets / rate - time.monotonic()))
        with counted.get_lock():
            counted.value += count
        wire.close()

    threads = [threading.Thread(target=loop) for _ in range(sockets)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def asked(url: str, key: str, seconds: float) -> dict[str, float]:
    """The time of a repeated question, again and again."""
    body, times = {"dataset": "demo", "sql": "SELECT COUNT(*) AS n FROM patients", "wait_ms": 30_000}, []
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            begun = time.perf_counter()
            client.post("/v1/queries", json=body).raise_for_status()
            times.append(1_000 * (time.perf_counter() - begun))
            time.sleep(0.02)
    return {"median": round(statistics.median(times), 2), "p95": round(statistics.quantiles(times, n=20)[18], 2)}


def made(url: str, key: str) -> tuple[str, str]:
    """A dashboard whose tile has an answer: the tile's address, and a link's token."""
    tile = {"name": "regions", "title": "Regions", "sql": _SQL, "spend": {"epsilon": "0.5"}}
    body = {
        "dataset": "demo",
        "title": "Bench",
        "envelope": {"epsilon": "1"},
        "tiles": [{**tile, "schedule": {"each": "data_version"}}],
    }
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
        dashboard = client.post("/v1/dashboards", json=body).raise_for_status().json()["id"]
        address = f"/v1/dashboards/{dashboard}/tiles/regions"
        for _ in range(600):
            if client.get(address).json()["state"] == "current":
                break
            time.sleep(0.1)
        else:
            raise SystemExit("the tile was not refreshed")
        link = client.post(f"/v1/dashboards/{dashboard}/links", json={"label": "bench"}).raise_for_status().json()
    return address, str(link["token"])


def measured(url: str, server: int, key: str, *, seconds: float, pollers: int, rate: float) -> dict[str, Any]:
    """All figures."""
    address, token = made(url, key)
    bearer = f"Authorization: Bearer {key}"
    tags = {}
    for kind in ("json", "csv"):
        wire = Wire(url, get(f"{address}.{kind}", bearer))
        found = _TAG.search(wire.ask()[1])
        assert found is not None
        tags[kind] = found[1].decode()
        wire.close()
    linked, match = f"{address}.csv?link={token}", f"If-None-Match: {tags['csv']}"
    figures: dict[str, Any] = {
        "304_with_key": one_after_another(url, server, get(f"{address}.csv", bearer, match), 304),
        "304_with_link": one_after_another(url, server, get(linked, match), 304),
        "tile_json": one_after_another(url, server, get(f"{address}.json", bearer), 200),
        "tile_csv": one_after_another(url, server, get(linked), 200),
        "question_alone": asked(url, key, seconds),
    }
    for name, pace in (("at_rate", rate), ("unpaced", 1e9)):
        counted = multiprocessing.Value("q", 0)
        crowd = multiprocessing.Process(target=poll, args=(url, get(linked, match), pollers, seconds, pace, counted))
        before = processor_seconds(server)
        crowd.start()
        question = asked(url, key, seconds)
        crowd.join()
        share = (processor_seconds(server) - before) / seconds / 2
        figures[name] = {
            "polls_per_second": round(counted.value / seconds),
            "question": question,
            "processor_share_of_two_cores": round(share, 2),
        }
    return figures


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--pollers", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1_000.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        # Polls of one link and one key come from one place here; the limit of a principal is not what is measured.
        environment = {
            **os.environ,
            "NOISEGATE_REQUESTS_PER_MINUTE": "1000000",
            "NOISEGATE_REQUESTS_BURST": "1000000",
            "NOISEGATE_LOG_LEVEL": "warning",
        }
        server = subprocess.Popen(
            [sys.executable, "-m", "server.cli", "up", "--home", str(home), "--port", "0", "--json", "--no-sample"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        try:
            assert server.stdout is not None
            url = json.loads(server.stdout.readline())["url"]
            key = (home / "secrets" / "analyst.apikey").read_text().strip()
            figures = measured(
                url, server.pid, key, seconds=options.seconds, pollers=options.pollers, rate=options.rate
            )
        finally:
            server.terminate()
            server.wait(timeout=60)
    json.dump(figures, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
