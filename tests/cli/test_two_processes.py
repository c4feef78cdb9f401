"""Two servers of one home and one PostgreSQL, each a process of its own: what one of them does holds for both."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from accountant.ledger import Ledger
from tests.cli.support import Serving, cli

LEASE = {"NOISEGATE_LEASE_SECONDS": "2"}
SLOW = {"NOISEGATE_QUERY_THREADS": "1", "NOISEGATE_ANSWER_TICK_MS": "60000"}
"""A server whose queries show after a minute, one after the other."""


class Client:
    """An analyst at one of the servers."""

    def __init__(self, url: str, key: str) -> None:
        self._http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, trust_env=False, timeout=60)

    def ask(self, age: int, *, wait_ms: int = 0, key: str | None = None) -> httpx.Response:
        """A count for 0.5."""
        body = {
            "dataset": "people",
            "sql": f"SELECT COUNT(*) AS n FROM people WHERE age < {age}",
            "spend": {"epsilon": "0.5"},
            "wait_ms": wait_ms,
        }
        return self._http.post("/v1/queries", json=body, headers={} if key is None else {"Idempotency-Key": key})

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def cancel(self, query: str) -> dict[str, Any]:
        """What is said of a query that is to be cancelled."""
        answer: dict[str, Any] = self._http.post(f"/v1/queries/{query}:cancel").json()
        return answer

    def ended(self, query: str) -> httpx.Response:
        """Its answer or failure, as soon as there is one."""
        deadline = time.monotonic() + 60
        while (response := self._http.get(f"/v1/queries/{query}")).status_code == 202:
            assert time.monotonic() < deadline, "nobody ended what a dead process left"
            time.sleep(0.05)
        return response


@pytest.mark.slow
@pytest.mark.postgresql
def test_two_processes(people: Path, postgresql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One key runs once; a query that waits in one process is cancelled by the other, one that runs is not; what a
    killed process ran is failed and charged by the other, within its lease, and a retry does not run it again."""
    monkeypatch.setenv("NOISEGATE_DATABASE_URL", postgresql_url)
    at = ("--home", str(tmp_path / "home"))
    described = tmp_path / "people.yaml"
    assert cli("init", str(people), "--unit", "person_id", "-o", str(described)).code == 0
    assert cli("dataset", "add", str(described), *at).code == 0
    key = cli("key", "create", "ann", "--json", *at).json["key"]
    budget = ("budget", "set", "--dataset", "people", "--epsilon", "5", "--delta", "0.000001", *at)
    assert cli(*budget).code == cli(*budget, "--principal", "ann").code == 0

    common = {"NOISEGATE_DATABASE_URL": postgresql_url, **LEASE}
    command = ("serve", *at, "--port", "0", "--json")
    with Serving(*command, **common, **SLOW) as first, Serving(*command, **common) as second, ExitStack() as started:
        urls = [json.loads(one.until("url"))["url"] for one in (first, second)]
        slow, quick = (started.enter_context(Client(url, key)) for url in urls)
        running = slow.ask(30, key="once")
        again = quick.ask(30, key="once")
        assert (running.status_code, again.status_code) == (202, 202)
        identifier = running.json()["id"]
        assert again.json()["id"] == identifier
        waiting = slow.ask(31).json()["id"]
        assert quick.cancel(waiting) == {"id": waiting, "status": "failed_void", "charged": False}
        assert quick.cancel(identifier) == {"id": identifier, "status": "running", "charged": True}
        answered = quick.ask(40, key="told", wait_ms=30_000)
        assert answered.status_code == 200
        assert slow.ask(40, key="told").content == answered.content

        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        ended = quick.ended(identifier)
        assert (ended.status_code, ended.json()["code"], ended.json()["charged"]) == (500, "execution_failed", True)
        retried = quick.ask(30, key="once", wait_ms=30_000)
        assert (retried.status_code, retried.json()["code"]) == (500, "execution_failed")
        assert second.stop().code == 0
    with Ledger(postgresql_url, instance="after") as ledger:
        (account,) = ledger.accounts(principal="ann")
        kinds = Counter(entry.kind.value for entry in ledger.entries(account.id))
        assert kinds == {"grant": 1, "reserve": 3, "void": 1, "post": 1, "fail": 1}
        assert ledger.audit().findings == ()
