"""A paid answer that a format could not carry: it is stored before it is written, and can be had again."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow.ipc
import pyarrow.parquet
import pytest

from server import formats
from server.app import create_app
from server.services import Services
from tests.server.fakes import Api

AWKWARD = 'a "quoted", text\nof two lines\r\n=1+1;\u2028 é \U0001f600'
QUESTIONS = {
    "texts": "SELECT $t AS t, CAST(NULL AS VARCHAR) AS nothing, '' AS nil, COUNT(*) AS n FROM people WHERE age < 43",
    "wide": "SELECT COUNT(*) * 100000000000000000000000000000 AS h, "
    "-CAST(COUNT(*) AS HUGEINT) * 9223372036854775807 AS m, "
    "COUNT(*) / 0 AS z, CAST(COUNT(*) AS DECIMAL(18, 3)) / 7 AS d FROM people WHERE age < 44",
    "moments": "SELECT DATE '0001-01-01' AS a, DATE '9999-12-31' AS b, TIMESTAMP '2020-02-29 23:59:59.999999' AS c, "
    "COUNT(*) > 5 AS yes, CAST(NULL AS DATE) AS never, COUNT(*) AS n FROM people WHERE age < 45",
    "empty": "SELECT sex, COUNT(*) AS n, AVG(age) * 2 AS a FROM people GROUP BY sex HAVING COUNT(*) < -1000000",
    "names": 'SELECT COUNT(*) AS "n,""x""", COUNT(*) + 1 AS "N", COUNT(*) + 2 AS "ü\u00a0 b" '
    "FROM people WHERE age < 46",
}
CSV, ARROW, PARQUET = "text/csv", "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"


@pytest.fixture
def api(services: Services, attacker: Callable[..., str]) -> Iterator[Api]:
    """A client with a key of a fresh analyst, called "analyst"."""
    name = attacker()
    services.registry.create_principal(name, role="analyst", actor="test")
    key = services.registry.create_key(name, label="", days=1, actor="test").text
    with asyncio.Runner() as runner:
        made = Api(create_app(services.settings, services=services), runner, {"analyst": key})
        yield made
        made.close()


def body(sql: str) -> dict[str, Any]:
    """A query of the clinic."""
    return {"dataset": "clinic", "sql": sql, "spend": {"epsilon": "1"}, "parameters": {"t": AWKWARD}}


def read(media_type: str, content: bytes) -> list[dict[str, Any]]:
    """The rows of a result, by the library of its format."""
    if media_type == CSV:
        return list(csv.DictReader(io.StringIO(content.decode("utf-8"), newline="")))
    if media_type == ARROW:
        rows: list[dict[str, Any]] = pyarrow.ipc.open_stream(content).read_all().to_pylist()
        return rows
    return pyarrow.parquet.read_table(io.BytesIO(content)).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", QUESTIONS)
def test_awkward_answers_are_carried_by_every_format(api: Api, name: str) -> None:
    """NULL, empty texts, line ends, numbers beyond 64 bits, the edges of the calendar, no rows at all: one charge."""
    answer = api.post("/v1/queries", json=body(QUESTIONS[name]), headers={"Idempotency-Key": name})
    assert answer.status_code == 200, answer.text
    document = answer.json()
    names = [column["name"] for column in document["columns"]]
    for media_type in (CSV, ARROW, PARQUET):
        headers = {"Idempotency-Key": name, "Accept": media_type}
        sent = api.post("/v1/queries", json=body(QUESTIONS[name]), headers=headers)
        again = api.get(f"/v1/queries/{document['id']}", headers={"Accept": media_type})
        assert (sent.status_code, again.status_code) == (200, 200), sent.text
        rows = read(media_type, sent.content)
        assert len(rows) == len(document["rows"])
        assert read(media_type, again.content) == rows
        for row, expected in zip(rows, document["rows"], strict=True):
            for column, value in zip(names, expected, strict=True):
                assert _same(row[column], value, text=media_type == CSV), (media_type, column)
    assert len(api.get("/v1/queries").json()["queries"]) == 1


def _same(sent: Any, stored: Any, *, text: bool) -> bool:
    """Whether a value is the stored one: as text in CSV, where formulas are guarded; as itself elsewhere."""
    if stored is None:
        return sent in ("", None)
    if isinstance(stored, str):
        return formats.unguarded(sent) == stored if text else str(sent).replace(" ", "T") == stored.replace(" ", "T")
    if isinstance(stored, bool):
        return str(sent).lower() == str(stored).lower()
    return float(sent) == pytest.approx(float(stored), rel=1e-12)


@pytest.mark.parametrize("accept", [CSV, ARROW, PARQUET])
def test_a_format_that_fails_loses_nothing(
    api: Api, services: Services, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    """The writer of a format breaks after the charge: the answer is stored, and both ways to it give the same bytes."""
    question = body("SELECT COUNT(*) AS n FROM people WHERE age < 47")
    headers = {"Idempotency-Key": accept, "Accept": accept}
    with monkeypatch.context() as patch:
        patch.setattr("server.routes.common.represent", _broken)
        failed = api.post("/v1/queries", json=question, headers=headers)
    assert failed.status_code == 500
    assert failed.json()["charged"] is not False
    assert "salary" not in failed.text
    (listed,) = api.get("/v1/queries").json()["queries"]
    assert listed["status"] == "settled"
    stored = api.get(f"/v1/queries/{listed['id']}")
    assert stored.status_code == 200
    assert stored.json()["rows"][0][0] is not None
    retried = api.post("/v1/queries", json=question, headers=headers)
    assert retried.status_code == 200
    assert retried.content == api.get(f"/v1/queries/{listed['id']}", headers={"Accept": accept}).content
    plain = api.post("/v1/queries", json=question, headers={"Idempotency-Key": accept})
    assert json.loads(plain.content) == stored.json()
    assert len(api.get("/v1/queries").json()["queries"]) == 1


def _broken(*_: object, **__: object) -> formats.Representation:
    raise OverflowError("salary 12345 does not fit")
