"""Connections that ask for nothing, on real sockets: they kept everybody else out, health checks included."""

from __future__ import annotations

import contextlib
import resource
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.cli.support import Serving, cli, serving_url

IDLE = 1_020


@pytest.fixture
def files() -> Iterator[None]:
    """As many open files as the test needs, for its own ends of the connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = IDLE + 500
    if soft != resource.RLIM_INFINITY and soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            pytest.skip(f"needs {wanted} open files, and {hard} are allowed (ulimit -n)")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def ask(url: str, path: str, key: str | None = None) -> httpx.Response:
    """One request on a connection of its own."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.get(url + path, headers=headers, timeout=20, trust_env=False)


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed its end."""
    connection.settimeout(0.05)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def closed_within(connection: socket.socket, seconds: float) -> bool:
    """Whether the server closes its end in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if is_closed(connection):
            return True
    return False


def use(connection: socket.socket) -> None:
    """One request on a connection that is kept, and its answer."""
    connection.settimeout(5)
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = b""
    while not answer.endswith(b'"ok"}'):
        part = connection.recv(65536)
        assert part
        answer += part
    assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_idle_connections_do_not_turn_requests_into_503(home: Path, files: None) -> None:
    """1,020 connections without a key and without a request were enough; neither slow heads nor endless ones are."""
    key = cli("key", "create", "ann", "--json", "--home", str(home)).json["key"]
    variables = {"NOISEGATE_HEADER_TIMEOUT_SECONDS": "4"}
    with Serving("serve", "--home", str(home), "--port", "0", **variables) as serving, contextlib.ExitStack() as held:
        url = serving_url(serving, home)
        address = (url.removeprefix("http://").partition(":")[0], int(url.rpartition(":")[2]))

        def connect(first: bytes = b"") -> socket.socket:
            connection = held.enter_context(socket.create_connection(address, timeout=20))
            connection.sendall(first)
            return connection

        idle = [connect(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" if number % 2 else b"") for number in range(IDLE)]
        for _ in range(3):
            for path, who, status in (("/healthz", None, 200), ("/readyz", None, 200), ("/v1/me", key, 200)):
                assert ask(url, path, who).status_code == status, path
        # The oldest gave way to the newer ones; these get their time for a head, and no more.
        assert is_closed(idle[0])
        assert not is_closed(idle[-1])
        head = httpx.head(f"{url}/openapi.json", timeout=20, trust_env=False)
        assert (head.status_code, head.content, int(head.headers["content-length"]) > 10_000) == (200, b"", True)
        # A head that drips in for ever is given up, but not at once; a connection that is used stays, and longer.
        slow, sent, kept, used, begun = connect(b"GET /healthz HTTP/1.1\r\n"), 0, connect(), 0, time.monotonic()
        while used < 6 or not is_closed(slow):
            with contextlib.suppress(OSError):
                sent += slow.send(b"a")
            time.sleep(0.05)
            if time.monotonic() > begun + used:
                use(kept)
                used += 1
        assert sent > 0
        assert closed_within(idle[-1], 60)
        assert serving.stop().code == 0


@pytest.mark.slow
def test_an_endless_head_is_not_read_to_its_end(home: Path) -> None:
    """A connection whose head is too long is closed for its length, long before the time for heads is over."""
    variables = {"NOISEGATE_HEADER_TIMEOUT_SECONDS": "120"}
    with Serving("serve", "--home", str(home), "--port", "0", **variables) as serving:
        url = serving_url(serving, home)
        address = (url.removeprefix("http://").partition(":")[0], int(url.rpartition(":")[2]))
        with socket.create_connection(address, timeout=20) as endless:
            endless.sendall(b"GET /healthz HTTP/1.1\r\nX-Long: ")
            with contextlib.suppress(OSError):
                endless.sendall(b"a" * 500_000)
            assert closed_within(endless, 60)
        assert serving.stop().code == 0


@pytest.mark.slow
def test_busy_connections_do_not_keep_health_checks_out(home: Path) -> None:
    """With every connection waiting for an answer, probes are answered and others are told in our words."""
    at = ("--home", str(home))
    key = cli("key", "create", "ann", "--json", *at).json["key"]
    budget = ("budget", "set", "--dataset", "people", "--epsilon", "5", "--delta", "0.000001", *at)
    assert cli(*budget).code == cli(*budget, "--principal", "ann").code == 0
    variables = {
        "NOISEGATE_CONNECTIONS_MAX": "16",
        "NOISEGATE_ANSWER_TICK_MS": "60000",
        "NOISEGATE_SHUTDOWN_SECONDS": "1",
    }
    with Serving("serve", *at, "--port", "0", **variables) as serving, ThreadPoolExecutor(16) as threads:
        url = serving_url(serving, home)

        def wait(number: int) -> int:
            body = {
                "dataset": "people",
                "sql": f"SELECT COUNT(*) AS n FROM people WHERE age < {20 + number}",
                "spend": {"epsilon": "0.01"},
                "wait_ms": 30_000,
            }
            headers = {"Authorization": f"Bearer {key}"}
            while True:  # again where what asks whether all are busy was the sixteenth for a moment
                answer = httpx.post(f"{url}/v1/queries", json=body, headers=headers, timeout=60, trust_env=False)
                if answer.status_code != 503 or time.monotonic() > until:
                    return answer.status_code

        until = time.monotonic() + 30
        waiting = [threads.submit(wait, number) for number in range(16)]
        while ask(url, "/v1/me", key).status_code != 503 and time.monotonic() < until:
            time.sleep(0.05)
        assert not any(one.done() for one in waiting)
        for _ in range(3):
            assert ask(url, "/healthz").status_code == 200
            assert ask(url, "/readyz").status_code == 200
        refused = ask(url, "/v1/me", key)
        assert (refused.status_code, refused.json()["code"], refused.json()["charged"]) == (503, "unavailable", False)
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.headers["retry-after"] == "5"
        assert serving.stop().code == 0
        assert {one.result(timeout=30) for one in waiting} == {202}
