"""The end of a serving process: one deadline, and an answer for everybody who waits."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from server.jobs import JobPool
from server.shutdown import Closing, Deadline, Pause
from tests.cli.support import Serving, cli, serving_url
from tests.clocks import Clock

SECONDS = 4.0


@dataclass(frozen=True)
class Admitted:
    """An admitted query."""

    query_id: str


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.nightly)])
def test_a_shutdown_does_not_answer_500(home: Path, number: signal.Signals) -> None:
    """A bare 500 for each request that waited; now 202 with the query, and everything in order afterwards."""
    _shut_down(home, number)


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_shutdown_does_not_take_its_time_twice(home: Path, number: signal.Signals) -> None:
    """Twice the setting, measured; test_a_shutdown_that_was_announced_has_one_deadline counts without measuring."""
    begun, ended, answered = _shut_down(home, number)
    assert ended - begun < SECONDS + 1.5
    assert max(answered) - begun < SECONDS


def _shut_down(home: Path, number: signal.Signals) -> tuple[float, float, list[float]]:
    """Six waiting requests and half a one, then the signal; checks all but times, and returns these.

    When the signal was sent, when the process had ended, and when the requests were answered.
    """
    at = ("--home", str(home))
    key = cli("key", "create", "ann", "--json", *at).json["key"]
    budget = ("budget", "set", "--dataset", "people", "--epsilon", "5", "--delta", "0.000001", *at)
    assert cli(*budget).code == cli(*budget, "--principal", "ann").code == 0
    # An answer is visible after a minute: no query ends before the deadline.
    variables = {"NOISEGATE_SHUTDOWN_SECONDS": str(SECONDS), "NOISEGATE_ANSWER_TICK_MS": "60000"}
    with Serving("serve", *at, "--port", "0", **variables) as serving, ThreadPoolExecutor(8) as threads:
        url = serving_url(serving, home)

        def ask(number: int) -> tuple[httpx.Response, float]:
            response = httpx.post(
                f"{url}/v1/queries",
                json={
                    "dataset": "people",
                    "sql": f"SELECT COUNT(*) AS n FROM people WHERE age < {30 + number}",
                    "spend": {"epsilon": "0.1"},
                    "wait_ms": 30_000,
                },
                headers={"Authorization": f"Bearer {key}"},
                timeout=60,
                trust_env=False,
            )
            return response, time.monotonic()

        # Four run (query_threads), two of them in the engine; the others wait for a thread.
        asked: list[Future[tuple[httpx.Response, float]]] = [threads.submit(ask, number) for number in range(6)]
        half = threads.submit(_half_a_body, url, key)
        time.sleep(2.0)
        begun = time.monotonic()
        stopped = serving.stop(number, seconds=60)
        ended = time.monotonic()
        answers = [one.result(timeout=30) for one in asked]
        assert stopped.code == 0
        for response, _ in answers:
            assert response.status_code == 202, response.text
            assert response.json()["status"] == "running"
            assert response.headers["location"] == f"/v1/queries/{response.json()['id']}"
        status, document = half.result(timeout=30)
        assert (status, document["code"], document["charged"]) == (503, "unavailable", False)
    assert all(json.loads(line) for line in stopped.err.splitlines()), "logs are JSON lines"
    # Those whose turn never came cost nothing, the others are charged; after a restart their queries say so.
    with Serving("serve", *at, "--port", "0") as serving:
        url = serving_url(serving, home)
        states = []
        for response, _ in answers:
            address = response.headers["location"]
            again = httpx.get(url + address, headers={"Authorization": f"Bearer {key}"}, trust_env=False, timeout=30)
            states.append((again.status_code, again.json()["code"], again.json()["charged"]))
        assert set(states) == {(409, "query_void", False), (500, "execution_failed", True)}
        assert serving.stop().code == 0
    return begun, ended, [when for _, when in answers]


def _half_a_body(url: str, key: str) -> tuple[int, dict[str, object]]:
    """Sends a request whose body never comes whole; its answer."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        head = f"POST /v1/estimates HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        connection.sendall(
            head.encode() + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n" + b'{"dataset": '
        )
        answer = b""
        while part := connection.recv(65536):
            answer += part
    head_bytes, _, body = answer.partition(b"\r\n\r\n")
    return int(head_bytes.split()[1]), json.loads(body)


def test_a_shutdown_that_was_announced_has_one_deadline() -> None:
    """`stop` when the signal comes, `close` when the connections have ended: the second one starts no new time."""
    clock = Clock(100.0)
    deadline = Deadline(clock=clock)
    assert not deadline.begun
    assert deadline.begin(20)
    clock.now = 110.0
    assert not deadline.begin(20)
    assert (deadline.left(), deadline.left_to_wait()) == (10.0, 9.0)
    clock.now = 130.0
    assert (deadline.left(), deadline.left_to_wait()) == (0.0, 0.0)

    pool = JobPool(threads=1, queue=2)
    gate = threading.Event()

    pool._deadline = clocked = Deadline(clock=clock)
    ended: list[str] = []

    async def run() -> None:
        started = await pool.start(lambda: Admitted("a"), lambda _: b"x" * gate.wait(600), lambda _: None)
        assert started.answer is not None
        waiting = asyncio.create_task(pool.wait(started.answer, seconds=600))
        waiting.add_done_callback(lambda _: ended.append("waiting"))
        while not pool._leaving:
            await asyncio.sleep(0.01)
        pool.stop(seconds=0.8)
        ended.append("stopped")
        assert pool.stopping
        assert clocked.left_to_wait() == pytest.approx(0.6)
        # By itself it would wait for ten minutes more.
        assert await waiting is None
        clock.now += 0.7
        # A request that comes to wait now does not wait at all.
        assert await pool.wait(started.answer, seconds=600) is None

    asyncio.run(run())
    # The end has the time that is left, and not thirty seconds of its own.
    assert ended == ["stopped", "waiting"]
    assert clocked.left() == pytest.approx(0.1)
    assert pool.close(seconds=600) == 1
    assert clocked.left() == pytest.approx(0.1)
    gate.set()


def test_admissions_that_wait_at_the_shutdown_are_not_charged() -> None:
    """A question whose admission had not begun is refused, so that nothing new is charged at the end."""
    pool = JobPool(threads=1, queue=20)
    gate, begun, admitted = threading.Event(), threading.Event(), []

    def admit(number: int) -> Admitted:
        begun.set()
        gate.wait(30)
        admitted.append(number)
        return Admitted(f"q{number}")

    async def run() -> list[str]:
        tasks = [
            asyncio.create_task(pool.start(lambda n=n: admit(n), lambda _: b"", lambda _: None))  # type: ignore[misc]
            for n in range(8)
        ]
        assert await asyncio.to_thread(begun.wait, 30)
        pool.stop(seconds=60)
        gate.set()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        return [getattr(one, "code", "admitted") for one in done]

    outcomes = asyncio.run(run())
    assert outcomes.count("admitted") == len(admitted) <= 4
    assert set(outcomes) == {"admitted", "unavailable"}
    pool.close(seconds=60)
    assert pool.in_flight == 0


def test_a_pause_that_ends_early_does_not_return() -> None:
    """An answer that waits for its visible moment when the server closes is not shown before it."""
    pause = Pause()
    pause.sleep(0.0)
    threading.Timer(0.1, pause.close).start()
    with pytest.raises(Closing):
        pause.sleep(600)
    with pytest.raises(Closing):
        pause.sleep(1)
