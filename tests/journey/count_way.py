"""Counts the files of ours on the way of one query over HTTP, and the calls between them.

    python -m tests.journey.count_way

The server is warm: it has answered other queries, so that what happens once is not counted. Two files that call each
other are a mutual pair. What the ledger does on its own thread is not seen.
"""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from collections import Counter
from pathlib import Path

from fastapi import FastAPI

from server.app import create_app
from server.jobs import JobPool
from server.services import Services
from tests.journey.clinic import clinic_in, open_account
from tests.journey.test_trace import SQL, ask, mutual_pairs, traced

WARMING = ("SELECT COUNT(*) FROM visits", "SELECT AVG(salary) AS m FROM people WHERE age > 30")


def answered(app: FastAPI, key: str, *texts: str) -> None:
    """Asks the server, whose threads are fresh: those that are there already cannot be followed."""
    services: Services = app.state.services
    services.jobs = JobPool(threads=1, queue=1)
    try:
        for sql in texts:
            response = asyncio.run(ask(app, key, sql))
            assert response.status_code == 200, response.text
    finally:
        services.jobs.close(seconds=5)


def counted(home: Path) -> tuple[Counter[tuple[str, str]], set[str]]:
    """The calls from file to file of one query to a warm server, and the files that were entered."""
    with clinic_in(home) as (services, _):
        open_account(services.ledger, "anna")
        services.registry.create_principal("anna", "analyst", actor="test")
        key = services.registry.create_key("anna", label="test", days=1, actor="test").text
        app = create_app(services.settings, services=dataclasses.replace(services))
        answered(app, key, *WARMING)
        _, calls, entered = traced(lambda: answered(app, key, SQL))
    return calls, entered


def main() -> None:
    """Prints the counts, and the mutual pairs by name."""
    with tempfile.TemporaryDirectory() as home:
        calls, entered = counted(Path(home))
    mutual = sorted(mutual_pairs(calls))
    print(f"files {len(entered)}, pairs of files {len(calls)}, calls {calls.total()}, mutual pairs {len(mutual)}")
    print("files by room:", dict(sorted(Counter(name.split("/")[0] for name in entered).items())))
    for one, other in mutual:
        print(f"  {one} <-> {other}")


if __name__ == "__main__":
    main()
