"""The hostile corpus over HTTP, with the real application, ledger, journey and shell: nothing reaches an engine.

The engine that holds rows is the real one, with a `run` that notes every statement before it goes on. A control shows
that it notes an honest question, so that its silence means something.
"""

from __future__ import annotations

import asyncio
import csv
import datetime
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest

from accountant.account import FilterKind, Limit
from accountant.ledger import Ledger, utc_now
from engines.private import PrivateEngine, PrivateLease
from engines.shell import ShellEngine
from engines.snapshot import build_snapshot
from engines.table_source import TableSource
from mechanisms.randomness import SystemBits
from migrations.upgrade import upgrade
from privacy.exact import Exact
from privacy.policy import Dataset
from privacy.statement import Statement
from server.administration.budget_requests import BudgetRequests
from server.administration.budgets import Budgets
from server.answer import Journey
from server.app import create_app
from server.jobs import JobPool
from server.problem_kinds import PROBLEMS
from server.sealing import REQUESTS, Seal
from server.services import Services
from server.settings import load_settings
from server.store.registry import Registry
from sql_rewrite.lift_clock import started
from tests.hostile import duck
from tests.hostile.corpus import Entry, answered, large, refused
from tests.hostile.good import GOOD
from tests.server.fakes import (
    FakeBatches,
    FakeModels,
    FakeMonitors,
    FakeProfiles,
    FakeRegistrar,
    FakeResources,
    FakeStatistics,
    FakeStreams,
    FakeSynthetic,
    FakeWebhooks,
)
from tests.sql_rewrite.datasets import CLINIC
from tests.thinned import thinned

SECRET = b"0123456789abcdef0123456789abcdef"
CANARY = "quetzal7731"
"""A text that stands in one person's row, and that no reply may hold."""

MACHINERY = (
    "Traceback", "sqlglot", "duckdb", "Binder Error", "Parser Error", "Catalog Error", "Conversion Error", ".py",
    "site-packages", "<class", "unit$id", "unit$draw", '"r0"', "sql_rewrite", "Exception", "0x7f",
)  # fmt: skip
"""Pieces of texts that only the program itself, its libraries or its rows could have written."""

BODY_CODES = {"invalid_request", "invalid_json", "body_too_large"}
"""Texts that no SQL can be (control characters, too long) may end at the body already."""


class WatchedEngine(PrivateEngine):
    """The private engine, noting what it is asked to run."""

    def __init__(self) -> None:
        super().__init__(workers=1, threads=1, memory_limit_mb=512)
        self.seen: list[str] = []

    def run(
        self,
        snapshot: Path,
        statement: Statement,
        *,
        timeout_seconds: float,
        owner: str = "",
        lease: PrivateLease | None = None,
    ) -> Exact:
        self.seen.append(statement.sql)
        return super().run(snapshot, statement, timeout_seconds=timeout_seconds, owner=owner, lease=lease)


@dataclass
class OneDataset:
    """A catalogue that serves the clinic."""

    dataset: Dataset
    path: Path
    datasets: dict[str, Dataset] = field(default_factory=dict)

    def get(self, name: str) -> Dataset | None:
        return self.dataset if name == self.dataset.name else None

    def all(self) -> list[Dataset]:
        return [self.dataset]

    def unavailable(self) -> list[str]:
        return []

    def snapshot(self, dataset: Dataset) -> Path:
        return self.path


@dataclass
class Served:
    """The running application."""

    services: Services
    ledger: Ledger
    engine: WatchedEngine
    account: str
    key: str

    def post(self, bodies: list[bytes], *, path: str = "/v1/queries") -> list[httpx.Response]:
        """The responses to some bodies, one after the other."""

        async def send() -> list[httpx.Response]:
            transport = httpx.ASGITransport(app=create_app(self.services.settings, services=self.services))
            headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
            async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
                return [await client.post(path, content=body, timeout=60) for body in bodies]

        return asyncio.run(send())

    def spent(self) -> Fraction:
        """Epsilon that the account has spent, reservations included."""
        account = self.ledger.account(self.account)
        return account.limit.epsilon - account.remaining_epsilon()


def _body(text: str, **more: Any) -> bytes:
    return json.dumps({"dataset": "clinic", "sql": text, "spend": {"epsilon": "1"}, **more}).encode()


def _snapshot(folder: Path) -> tuple[Dataset, Path]:
    """The clinic's rows as a snapshot, with the canary as one person's education."""
    sources = []
    rows: dict[str, tuple[duck.Row, ...]] = {
        "people": tuple((*row[:5], CANARY if row[0] == 7 else row[5], *row[6:]) for row in duck.PEOPLE),
        "visits": duck.VISITS,
        "tests": duck.TESTS,
        "hospitals": duck.HOSPITALS,
    }
    for table in CLINIC.tables:
        path = folder / f"{table.name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([column.name for column in table.columns])
            writer.writerows(rows[table.name])
        sources.append(TableSource(table=table.name, path=path, format="csv"))
    snapshot = build_snapshot(CLINIC, sources, directory=folder / "snapshots", draw_key=SECRET)
    return replace(CLINIC, data_version=snapshot.data_version), snapshot.path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The application over the clinic, with one analyst who has a budget."""
    home = tmp_path_factory.mktemp("hostile")
    dataset, path = _snapshot(home)
    settings = load_settings(home=home, requests_burst=100_000, requests_per_minute=1_000_000)
    url = f"sqlite:///{home / 'ledger.sqlite'}"
    upgrade(url)
    ledger = Ledger(url, instance="test")
    registry = Registry(url, secret=SECRET, clock=utc_now)
    engine, shell = WatchedEngine(), ShellEngine(workers=1)
    limit = Limit(Fraction(100), Fraction(1, 10**6))
    root = ledger.create_account(
        dataset="clinic", parent=None, principal=None, name="root", limit=limit, filter=FilterKind.APPROXIMATE,
        actor="test",
    )  # fmt: skip
    account = ledger.create_account(
        dataset="clinic", parent=root.id, principal="analyst", name="analyst", limit=limit,
        filter=FilterKind.APPROXIMATE, actor="test",
    )  # fmt: skip
    registry.create_principal("analyst", "analyst", actor="test")
    key = registry.create_key("analyst", label="test", days=1, actor="test").text
    catalogue = OneDataset(dataset, path)
    jobs = JobPool(threads=2, queue=64)
    services = Services(
        settings=settings,
        registry=registry,
        ledger=ledger,
        catalogue=catalogue,
        journey=Journey(ledger=ledger, private=engine, shell=shell, served=catalogue, bits=SystemBits()),
        registrar=FakeRegistrar(catalogue),  # type: ignore[arg-type]
        jobs=jobs,
        profiles=FakeProfiles(),
        resources=FakeResources(),
        monitors=FakeMonitors(),
        webhooks=FakeWebhooks(),
        dashboards=Mock(),
        streams=FakeStreams(),
        synthetic=FakeSynthetic(),
        models=FakeModels(),
        batches=FakeBatches(),
        requests=BudgetRequests(ledger, registry, Budgets(ledger, registry, tuple), Seal(bytes(32), REQUESTS)),
        statistics=FakeStatistics(),
    )
    yield Served(services, ledger, engine, account.id, key)
    jobs.close(seconds=5)
    engine.close()
    shell.close()
    registry.close()
    ledger.close()


def _own_words(problem: dict[str, Any], text: str) -> str:
    """What a reply says without the fragments that it quotes from the analyst's own text."""
    said = json.dumps(problem, ensure_ascii=False)
    for word in sorted({*re.findall(r"[\w$.]{3,}", text), *text.split(), text}, key=len, reverse=True):
        said = said.replace(json.dumps(word, ensure_ascii=False)[1:-1], "")
    return said


def _check(entry: Entry, response: httpx.Response) -> list[str]:
    """What is wrong with a reply to a hostile text."""
    wrong = []
    if response.headers.get("content-type") != "application/problem+json":
        return [f"{entry.place}: {response.status_code} {response.headers.get('content-type')}"]
    problem = response.json()
    if problem["code"] != entry.expected and problem["code"] not in BODY_CODES:
        wrong.append(f"{entry.place}: code {problem['code']} instead of {entry.expected}")
    if not 400 <= response.status_code < 500 or response.status_code in (429, 402):
        wrong.append(f"{entry.place}: status {response.status_code}")
    if problem["charged"] is not False:
        wrong.append(f"{entry.place}: charged {problem['charged']}")
    said = _own_words(problem, entry.text)
    wrong += [f"{entry.place}: the reply holds {piece}" for piece in (*MACHINERY, CANARY) if piece in said]
    return wrong


CROSSED_EVERY = 7
"""Of fragments in many places, of which all are read by test_corpus.py, one in so many comes over HTTP."""


def _reads_clock(entry: Entry) -> bool:
    return entry.expected == "volatile_function" and started(entry.text, datetime.datetime(2026, 1, 1)) is not None


@thinned(10)
def test_no_hostile_text_reaches_an_engine_or_the_ledger(served: Served, every: int) -> None:
    """Shows problem+json with the code and nothing charged for every text, as a query and as an estimate.

    Texts that read the clock are refused only where nobody said when the question began; the server does.
    """
    texts = [e for e in [*refused(), *large()] if not _reads_clock(e)]
    crossed = [e for e in texts if e.place.startswith("crossed")]
    entries = [e for e in texts if not e.place.startswith("crossed")][::every] + crossed[:: CROSSED_EVERY * every]
    before, seen = served.ledger.entries(served.account), len(served.engine.seen)
    wrong = []
    for path in ("/v1/queries", "/v1/estimates"):
        for entry, response in zip(entries, served.post([_body(e.text) for e in entries], path=path), strict=True):
            wrong += [f"{path} {finding}" for finding in _check(entry, response)]
    assert not wrong
    assert served.engine.seen[seen:] == []
    assert served.ledger.entries(served.account) == before


def test_lone_surrogates_and_broken_bytes_end_at_the_body(served: Served) -> None:
    """Shows that texts which are no Unicode are refused before anything reads them."""
    seen = len(served.engine.seen)
    bodies = [
        b'{"dataset": "clinic", "sql": "SELECT \\ud800"}',
        b'{"dataset": "clinic", "sql": "SELECT COUNT(*) FROM people WHERE sex = \'\\udfff\'"}',
        b'{"dataset": "clinic", "sql": "SELECT \xff"}',
        b'{"dataset": "clinic", "sql": "SELECT \xed\xa0\x80"}',
        b'{"dataset": "clinic", "sql": "SELECT 1", "sql": "SELECT 2"}',
        b'{"dataset": "clinic", "sql": ["SELECT 1"]}',
        b'{"dataset": "clinic", "sql": {"toString": "SELECT 1"}}',
        b'{"dataset": "clinic", "sql": null}',
        b'{"dataset": "clinic", "sql": "SELECT 1", "parameters": {"x": NaN}}',
        b'{"dataset": "clinic", "sql": "SELECT $x", "parameters": {"x": 1e999}}',
    ]
    for body, response in zip(bodies, served.post(bodies), strict=True):
        assert response.status_code in (400, 422), body
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json()["charged"] is False
    assert served.engine.seen[seen:] == []


def test_an_honest_question_reaches_the_engine(served: Served) -> None:
    """Shows the control: a question is run, charged and answered, so silence above is no accident."""
    seen = len(served.engine.seen)
    (response,) = served.post([_body("SELECT COUNT(*) AS n FROM people WHERE education = 'x'' OR 1=1 --'")])
    assert response.status_code == 200, response.text
    assert len(served.engine.seen) == seen + 1
    assert "OR 1=1" not in served.engine.seen[-1]
    assert served.ledger.entries(served.account)
    assert served.spent() > 0


def test_the_key_of_one_person_stays_hidden(served: Served) -> None:
    """Shows that a value of one person passes no selection (it would in one of ten million runs)."""
    (response,) = served.post([_body("SELECT education, COUNT(*) FROM people GROUP BY education")])
    assert response.status_code == 200, response.text
    assert CANARY not in response.text


@pytest.mark.slow
def test_texts_that_only_look_hostile_are_estimated(served: Served) -> None:
    """Shows that each text of the other list passes the shell engine's check too: it would be answered."""
    entries = answered()
    seen = len(served.engine.seen)
    for entry, response in zip(
        entries, served.post([_body(e.text) for e in entries], path="/v1/estimates"), strict=True
    ):
        # Rows that meet on the unit twice are too many at the snapshot's own limits, for the time that they could take.
        found = response.json()
        assert response.status_code == 200 or found["code"] == "join_multiplies", (entry.place, response.text)
    assert served.engine.seen[seen:] == []


@pytest.mark.slow
@thinned(5)
def test_no_text_of_the_corpus_cannot_be_planned(served: Served, every: int) -> None:
    """Shows the place of `cannot_be_planned`: before the charge, by the text alone, and no text of ours earns it.

    The seeds of mutations are one text of every construct; an estimate plans their statements on the empty twin.
    """
    texts = [*(entry.text for entry in answered()), *GOOD][::every]
    found = [response.json() for response in served.post([_body(text) for text in texts], path="/v1/estimates")]
    codes = {text: body["code"] for text, body in zip(texts, found, strict=True) if "code" in body}
    assert {text: code for text, code in codes.items() if code == "cannot_be_planned"} == {}
    assert len(codes) < len(texts) / 4, "most are estimated, and so planned"
    assert PROBLEMS["cannot_be_planned"].status == 422


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT sex + n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)",
        "SELECT n FROM (SELECT COUNT(*) AS n FROM people) x, (SELECT COUNT(*) AS n FROM visits) y",
        "SELECT SUM(n) OVER w FROM (SELECT COUNT(*) AS n FROM people)",
        "SELECT sex, n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) GROUP BY sex",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) LIKE 5",
        "SELECT CAST(n AS sometype) FROM (SELECT COUNT(*) AS n FROM people)",
        "SELECT INTERVAL 1 DAY * n FROM (SELECT sex AS n, COUNT(*) FROM people GROUP BY sex)",
    ],
)
def test_a_shell_that_does_not_bind_is_refused_before_the_charge(served: Served, text: str) -> None:
    """Shows that reasons of the outer query which are known before are refusals, free and without engine text."""
    before, seen = served.ledger.entries(served.account), len(served.engine.seen)
    (response,) = served.post([_body(text)])
    expected = "unsupported_type" if "sometype" in text else "unsupported_sql"
    if text.startswith("SELECT n FROM (SELECT"):
        expected = "ambiguous_column"
    assert _check(Entry("shell", text, expected), response) == []
    assert served.engine.seen[seen:] == []
    assert served.ledger.entries(served.account) == before
