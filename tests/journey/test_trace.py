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
DOORS_MAX = 22
"""The ledger is two of them since its reading has a file of its own, and so is the making of its connections."""
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
    assert len(doors) <= DOORS_MAX, doors
    assert len(entered) > len(doors), "the profile saw the insides of rooms too"
