"""The way of one query through our files, over HTTP: few doors, and never back upward.

A door is a file of a room that is entered from another room. The words in `privacy` are not counted: everybody
uses them. What a room does behind its doors is its own business.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
from fastapi import FastAPI

from server.app import create_app
from server.jobs import JobPool
from server.services import Services

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("server", "sql_rewrite", "mechanisms", "engines", "accountant", "privacy", "migrations")
LAYER = {"server": 2, "sql_rewrite": 1, "mechanisms": 1, "engines": 1, "accountant": 1, "migrations": 1, "privacy": 0}
DOORS = {
    "accountant/account.py": "what an account has left, and what a loss costs it",
    "accountant/connection.py": "connections for the tables beside the ledger",
    "accountant/direct.py": "the short statements of every request: the key and its principal",
    "accountant/filter.py": "the budgets of the branches, for the floor",
    "accountant/ledger.py": "what is written",
    "accountant/reads.py": "what is only read",
    "accountant/request.py": "what the ledger is asked, and what it answers",
    "engines/private.py": "a statement on true rows",
    "engines/shell.py": "the text bound, statements planned, the public rest run",
    "engines/stored.py": "where a snapshot is",
    "engines/turns.py": "whose turn it is, on threads as in the engine",
    "mechanisms/calibrate.py": "noise for a price",
    "mechanisms/families.py": "the families of noise",
    "mechanisms/interval.py": "how often an interval may miss, for a confidence",
    "mechanisms/noisy_sums.py": "what is stored of a release",
    "mechanisms/randomness.py": "the bits",
    "mechanisms/release.py": "the noisy table",
    "sql_rewrite/bound.py": "step 3",
    "sql_rewrite/bounded.py": "which columns a core clips",
    "sql_rewrite/boxes.py": "of which cells a core's sums are, as those of other cores of the same rows",
    "sql_rewrite/cost.py": "what the engine will do at worst, refused where that is too much",
    "sql_rewrite/cut_groups.py": "the warning of bounds that a request leaves out",
    "sql_rewrite/drawn.py": "whether a text joins people with a table that was drawn",
    "sql_rewrite/finer_groups.py": "which finer groups of the same rows a core's groups are sums of",
    "sql_rewrite/frames.py": "of which rows a core's sums are, and what they say",
    "sql_rewrite/google_clause.py": "options that a text has in GoogleSQL's spelling, before step 2",
    "sql_rewrite/lift.py": "step 2",
    "sql_rewrite/lift_clock.py": "whether a text reads the clock",
    "sql_rewrite/lower.py": "statements",
    "sql_rewrite/memory.py": "what rows may grow to",
    "sql_rewrite/named_ranks.py": "the cores that a named mechanism answers",
    "sql_rewrite/norms.py": "which norms a question chooses",
    "sql_rewrite/plan_key.py": "the identity of a core's release",
    "sql_rewrite/plan_warnings.py": "what is said beside the answer",
}
"""Every door and what is asked there. A door more is a line more, and says what no other door could be asked.

There were twenty. The ledger has three where it had one, because reading takes no turn of the writer, and the shortest
reads take no layer above the driver either. The passes of sql_rewrite are doors of their own because their order is
part of the journey: one door that calls them all would only hide that from whoever reads `server/journey/preparing.py`.
"""

HANDED_DOWN = {
    (
        "mechanisms/measurement.py",
        "mechanisms/measurements/gaussian.py",
    ): "an abstract class calls the noise of its kind, which asks for what all kinds share",
    (
        "server/app.py",
        "server/cross_origin.py",
    ): "the layer around the application calls it, and is called when its answer begins",
    (
        "server/journey/admission.py",
        "server/journey/agreed_price.py",
    ): "an attempt to price and reserve is made again while the price moves",
    (
        "sql_rewrite/dialects/dialect.py",
        "sql_rewrite/dialects/duckdb.py",
    ): "a tree is written node by node: the writer of a kind of node asks for its children",
    (
        "sql_rewrite/dialects/dialect.py",
        "sql_rewrite/dialects/duckdb_scalars.py",
    ): "the same: operators on one row are written in a file of their own",
    ("sql_rewrite/shell_trace.py", "sql_rewrite/trace.py"): "a tracer of expressions asks its block what a column is",
    (
        "sql_rewrite/sources.py",
        "sql_rewrite/syntax.py",
    ): "a tree is rebuilt node by node, by the function that is given",
    ("sql_rewrite/bound.py", "sql_rewrite/builder.py"): "an abstract class asks its kind for the sums of an argument",
}
"""Files that call each other on the way, and why: the second call is of a function that the first one handed down.

No file imports another one back (tests/test_tidy.py).
"""
SQL = "SELECT sex, AVG(age) FROM people GROUP BY sex"


def place(frame: FrameType) -> str | None:
    """The file of a frame below the root, when it is one of ours."""
    path = frame.f_code.co_filename
    if not path.startswith(str(ROOT)):
        return None
    relative = path[len(str(ROOT)) + 1 :]
    return relative if relative.split("/", 1)[0] in ROOMS else None


def traced(work: Callable[[], Any]) -> tuple[Any, Counter[tuple[str, str]], set[str]]:
    """Runs `work`; returns its result, the calls from file to file of ours, and the files that were entered."""
    calls: Counter[tuple[str, str]] = Counter()
    entered: set[str] = set()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        here = place(frame)
        if here is None:
            return
        entered.add(here)
        caller = frame.f_back
        while caller is not None and place(caller) is None:
            caller = caller.f_back
        there = None if caller is None else place(caller)
        if there is not None and there != here:
            calls[there, here] += 1

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        result = work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return result, calls, entered


def mutual_pairs(calls: Counter[tuple[str, str]]) -> set[tuple[str, ...]]:
    """Files of which each calls the other."""
    return {tuple(sorted(pair)) for pair in calls if pair[::-1] in calls}


def room(path: str) -> str:
    """The room of a file."""
    return path.split("/", 1)[0]


async def ask(app: FastAPI, key: str, sql: str) -> httpx.Response:
    """The answer to one query over HTTP."""
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await client.post(
            "/v1/queries",
            json={"dataset": "clinic", "sql": sql, "spend": {"epsilon": "1"}},
            headers={"Authorization": f"Bearer {key}"},
        )


def test_one_query_takes_few_doors_and_never_goes_up(services: Services, analyst: Callable[..., str]) -> None:
    """Shows the journey of one query over HTTP: each room is entered through few files, and no call goes back up."""
    who = analyst()
    services.registry.create_principal(who, "analyst", actor="test")
    key = services.registry.create_key(who, label="test", days=1, actor="test").text

    def work() -> httpx.Response:
        # Threads made before the profile was set are not seen, so the query gets a pool of its own.
        fresh = dataclasses.replace(services, jobs=JobPool(threads=1, queue=1))
        try:
            return asyncio.run(ask(create_app(fresh.settings, services=fresh), key, SQL))
        finally:
            fresh.jobs.close(seconds=5)

    response, calls, entered = traced(work)
    assert response.status_code == 200, response.text
    between = {(there, here) for there, here in calls if room(there) != room(here)}
    up = sorted((there, here) for there, here in between if LAYER[room(here)] > LAYER[room(there)])
    aside = sorted((there, here) for there, here in between if LAYER[room(here)] == LAYER[room(there)])
    assert up == []
    assert aside == []
    doors = sorted({here for _, here in between if room(here) != "privacy"})
    assert [door for door in doors if door not in DOORS] == []
    assert mutual_pairs(calls) - HANDED_DOWN.keys() == set()
    assert len(entered) > len(doors), "the profile saw the insides of rooms too"


def test_every_door_is_there() -> None:
    """A door that was closed is no line of the table, and no pair that was parted."""
    named = {*DOORS, *(name for pair in HANDED_DOWN for name in pair)}
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
