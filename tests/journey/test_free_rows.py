"""What one key can have stored for nothing: repeats store references or nothing, and the rest has an allowance."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from accountant.connection import open_engine
from server.answer import Journey
from server.errors import Problem
from server.free_answers import ROW_BYTES, FreeAnswers
from server.services import Services
from tests.clocks import Clock
from tests.journey.clinic import attach, open_account, question, services_of, told, write_files

WIDE = "SELECT age, sex, COUNT(*) AS n, COUNT(*) FILTER (WHERE salary > 1) AS m FROM people GROUP BY age, sex"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Services of a home of its own, because its ledger is measured."""
    folder: Path = tmp_path_factory.mktemp("free")
    path = write_files(folder / "sources")
    file = path.read_text().replace(
        "age: {type: integer, bounds: [0, 100]", "age: {type: integer, bounds: [0, 100], keys: {range: [0, 100]}"
    )
    path.write_text(file)
    with services_of(folder) as services:
        attach(services, path)
        yield services


def asked(services: Services, who: str, sql: str = WIDE, **options: Any) -> bytes:
    """The bytes of an answer."""
    return told(services.journey, question(sql, who, **options))


def stored(services: Services, who: str) -> tuple[int, int]:
    """Rows and bytes of answers that the ledger keeps for a principal."""
    engine = open_engine(services.settings.database())
    with engine.connect() as connection:
        chosen = text("SELECT COUNT(*), COALESCE(SUM(LENGTH(answer)), 0) FROM queries WHERE principal = :who")
        rows, size = connection.execute(chosen, {"who": who}).one()
    engine.dispose()
    return rows, int(size)


@pytest.mark.slow
def test_a_repeat_without_a_key_of_its_own_stores_nothing_more(home: Services) -> None:
    """The second repeat and all later ones are the first, to the letter, until the budget moves."""
    open_account(home.ledger, "anna")
    first = asked(home, "anna")
    repeat = asked(home, "anna")
    assert json.loads(repeat)["id"] != json.loads(first)["id"]
    rows, size = stored(home, "anna")
    for _ in range(20):
        assert asked(home, "anna") == repeat
    assert stored(home, "anna") == (rows, size)
    asked(home, "anna", "SELECT COUNT(*) FROM people")
    later = json.loads(asked(home, "anna"))
    assert later["id"] != json.loads(repeat)["id"]
    assert later["accounting"]["remaining"] != json.loads(repeat)["accounting"]["remaining"]


@pytest.mark.slow
def test_a_repeat_with_a_key_stores_a_reference(home: Services) -> None:
    """Each has its row and its bytes; the rows and intervals are stored once: 20 repeats are no 20 copies."""
    open_account(home.ledger, "berta")
    first = asked(home, "berta")
    _, before = stored(home, "berta")
    answers = {f"key-{number}": asked(home, "berta", idempotency_key=f"key-{number}") for number in range(20)}
    rows, after = stored(home, "berta")
    assert rows == 21
    assert before == len(first) > 20_000
    assert after - before < 20 * 2_000
    for key, answer in answers.items():
        assert asked(home, "berta", idempotency_key=key) == answer
        record = home.ledger.query(json.loads(answer)["id"])
        assert record is not None
        assert record.answer == answer
        for name in ("rows", "lows", "highs", "standard_errors", "columns"):
            assert json.loads(answer)[name] == json.loads(first)[name]
    assert home.ledger.audit().ok


@pytest.mark.slow
def test_free_answers_of_other_texts_have_an_allowance(home: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """New texts over one release, texts over no rows and keyed repeats end in 429; paying and rereading go on."""
    open_account(home.ledger, "carla")
    clock = Clock(0.0)
    journey = home.journey
    assert isinstance(journey, Journey)
    allowance = FreeAnswers(burst_bytes=200_000, bytes_per_second=1_000, clock=clock)
    for part in (journey.admission, journey.running):
        monkeypatch.setattr(part, "_free", allowance)
    answer = asked(home, "carla")
    refused = 0
    for number in range(30):
        try:
            asked(home, "carla", f"SELECT age, sex, n + {number} AS n FROM ({WIDE}) AS t")
        except Problem as problem:
            assert problem.code == "rate_limited"
            refused += 1
    assert refused > 15
    _, size = stored(home, "carla")
    assert size < len(answer) + 200_000 + 2 * len(answer)
    for sql, key in (("SELECT 1 AS one", None), (WIDE, "key-new")):
        with pytest.raises(Problem):
            asked(home, "carla", sql, idempotency_key=key)
    record = home.ledger.query(json.loads(answer)["id"])
    assert record is not None
    assert record.answer == answer
    asked(home, "carla", "SELECT COUNT(*) FROM visits")
    clock.now += allowance.wait_seconds("carla")
    asked(home, "carla", "SELECT 1 AS one")


def test_the_allowance_fills_up_and_is_ones_own() -> None:
    """It is overdrawn by at most one answer, comes back with time up to the burst, and is counted by principal."""
    clock = Clock(0.0)
    free = FreeAnswers(burst_bytes=10_000, bytes_per_second=100, clock=clock)
    assert free.wait_seconds("anna") == 0
    free.take("anna", 12_000 - ROW_BYTES)
    assert free.wait_seconds("anna") == 21
    assert free.wait_seconds("berta") == 0
    clock.now += 20
    assert free.wait_seconds("anna") == 1
    clock.now += 1
    assert free.wait_seconds("anna") == 0
    clock.now += 10_000
    free.take("anna", 10_001 - ROW_BYTES)
    assert free.wait_seconds("anna") == 1
