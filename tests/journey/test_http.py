"""HTTP with real parts: the examples of the API document run, and one question's whole life over HTTP."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet
import pytest

from server.app import create_app
from server.demo import write_demo
from server.services import Services
from tests.journey.clinic import services_of

OPENAPI = json.loads((Path(__file__).resolve().parents[2] / "docs" / "openapi.json").read_text())


class Api:
    """Calls to the real application as one principal."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._keys: dict[str, str] = {}

    def key(self, name: str, role: str) -> None:
        """Makes a principal with a key."""
        registry = self._services.registry
        if registry.principal(name) is None:
            registry.create_principal(name, role, actor="test")
        self._keys[name] = registry.create_key(name, label="test", days=1, actor="test").text

    def call(self, who: str, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """One request."""

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=create_app(self._services.settings, services=self._services))
            async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60) as client:
                return await client.request(
                    method, path, json=body, headers={"Authorization": f"Bearer {self._keys[who]}", **headers}
                )

        return asyncio.run(send())


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The application on a home of its own whose folder of datasets holds the demo's files."""
    home = tmp_path_factory.mktemp("demo")
    write_demo(home / "datasets")
    with services_of(home) as services:
        made = Api(services)
        made.key("admin", "admin")
        yield made


def examples(method: str, path: str) -> list[tuple[str, Any]]:
    """The examples of an operation's body in the committed API document."""
    content = OPENAPI["paths"][path][method]["requestBody"]["content"]["application/json"]
    return [(name, example["value"]) for name, example in content["examples"].items()]


@pytest.fixture(scope="module")
def ready(api: Api) -> Api:
    """The application after every example of the document ran in order, from nothing to an answer."""
    for _, body in examples("post", "/v1/datasets"):
        answer = api.call("admin", "POST", "/v1/datasets", body)
        assert answer.status_code == 201, answer.text
    for _, body in examples("post", "/v1/principals"):
        assert api.call("admin", "POST", "/v1/principals", body).status_code == 201
    for _, body in examples("post", "/v1/keys"):
        made = api.call("admin", "POST", "/v1/keys", body)
        assert made.status_code == 201
        assert "ngk_" in made.text
    budget = ""
    for _, body in examples("post", "/v1/budgets"):
        answer = api.call("admin", "POST", "/v1/budgets", body)
        assert answer.status_code == 201, answer.text
        budget = answer.json()["id"]
    for _, body in examples("patch", "/v1/budgets/{budget_id}"):
        answer = api.call("admin", "PATCH", f"/v1/budgets/{budget}", body)
        assert answer.status_code == 200, answer.text
    api.key("analyst", "analyst")
    for path in ("/v1/estimates", "/v1/queries"):
        for name, body in examples("post", path):
            answer = api.call("analyst", "POST", path, body)
            assert answer.status_code == 200, (path, name, answer.text)
    return api


@pytest.mark.slow
def test_the_examples_of_the_document_run(ready: Api) -> None:
    """Shows that every example body of the API document works against the demo data."""
    assert ready.call("analyst", "GET", "/v1/datasets").status_code == 200
    for path, status in (("/v1/batches:estimate", 200), ("/v1/batches", 201)):
        for _, body in examples("post", path):
            answered = ready.call("analyst", "POST", path, body)
            assert answered.status_code == status, answered.text
    for _, body in examples("post", "/v1/monitors"):
        # The demo lets questions choose how much of one patient counts.
        chosen = ready.call("analyst", "POST", "/v1/monitors", {**body, "contribution": None})
        assert (chosen.status_code, chosen.json()["code"]) == (422, "contribution_not_named")
        made = ready.call("analyst", "POST", "/v1/monitors", body)
        assert made.status_code == 201, made.text
        address = made.json()["links"]["evaluations"]
        standing = dict(examples("post", "/v1/monitors/{monitor_id}/evaluations"))["standing"]
        said = ready.call("analyst", "POST", address, standing)
        assert said.json()["outcome"] in ("passed", "not_passed"), said.text
    for path, status in (("/v1/streams:estimate", 200), ("/v1/streams", 201)):
        for name, body in examples("post", path):
            made = ready.call("analyst", "POST", path, body)
            assert made.status_code == status, made.text
            if status == 201 and name == "years":
                asked = dict(examples("post", "/v1/streams/{stream_id}/queries"))["years"]
                told = ready.call("analyst", "POST", made.json()["links"]["queries"], asked)
                assert [one["found"] for one in told.json()["answers"]] == ["synopsis"] * 2, told.text


@pytest.mark.slow
def test_the_life_of_a_question(ready: Api) -> None:
    """Shows estimate, query, poll, release with ETag, repeat for nothing, and the ledger's entries."""
    api = ready
    sql = "SELECT region, COUNT(*) AS n FROM patients WHERE age > 21 GROUP BY region"
    body = {"dataset": "demo", "sql": sql, "spend": {"epsilon": "0.2"}}
    estimate = api.call("analyst", "POST", "/v1/estimates", body).json()
    assert estimate["price"]["epsilon"] == "0.2"
    accepted = api.call("analyst", "POST", "/v1/queries", {**body, "wait_ms": 0}, **{"Idempotency-Key": "life-1"})
    assert accepted.status_code in (200, 202)
    location = accepted.headers.get("location", f"/v1/queries/{accepted.json()['id']}")
    until = time.monotonic() + 60
    while (polled := api.call("analyst", "GET", location)).status_code == 202 and time.monotonic() < until:
        time.sleep(0.02)
    answer = polled.json()
    assert answer["accounting"]["charged"][0]["epsilon"] == "0.2"
    again = api.call("analyst", "POST", "/v1/queries", {**body, "wait_ms": 0}, **{"Idempotency-Key": "life-1"})
    assert again.content == polled.content
    release = api.call("analyst", "GET", answer["links"]["releases"][0])
    assert release.status_code == 200
    cached = api.call("analyst", "GET", answer["links"]["releases"][0], **{"If-None-Match": release.headers["etag"]})
    assert cached.status_code == 304
    repeat = api.call("analyst", "POST", "/v1/queries", {**body, "sql": sql + " ORDER BY n"}).json()
    assert repeat["accounting"]["reused"]
    entries = api.call("admin", "GET", f"/v1/budgets/{answer['accounting']['charged'][0]['budget']}/entries").json()
    assert any(entry["kind"] == "reserve" for entry in entries["entries"])


@pytest.mark.slow
def test_a_real_answer_in_every_format(ready: Api) -> None:
    """Shows that an answer and its release tell the same numbers as JSON, CSV and Parquet, for one charge."""
    sql = "SELECT region, COUNT(*) AS n, COUNT(*) * 2 AS twice FROM patients GROUP BY region"
    body = {"dataset": "demo", "sql": sql, "spend": {"epsilon": "0.3"}}
    sent = ready.call("analyst", "POST", "/v1/queries", body, Accept="text/csv")
    assert sent.headers["noisegate-charged-epsilon"] == "0.3"
    address = f"/v1/queries/{sent.headers['noisegate-query']}"
    answer = ready.call("analyst", "GET", address).json()
    header, *rows = csv.reader(io.StringIO(sent.text, newline=""))
    assert header[:4] == ["region", "n", "twice", "n_standard_error"]
    assert [[row[0], int(row[1]), int(row[2])] for row in rows] == answer["rows"]
    stored = pyarrow.parquet.read_table(
        io.BytesIO(ready.call("analyst", "GET", address, Accept="application/vnd.apache.parquet").content)
    )
    assert stored.column("n").to_pylist() == [row[1] for row in answer["rows"]]
    assert stored.column("twice_high").to_pylist() == [row[2] for row in answer["highs"]]
    release = sent.headers["noisegate-releases"]
    table = ready.call("analyst", "GET", f"/v1/releases/{release}", Accept="text/csv")
    assert table.headers["noisegate-release"] == release
    _, *released = csv.reader(io.StringIO(table.text, newline=""))
    assert {(row[0], int(row[1])) for row in released} == {(row[0], row[1]) for row in answer["rows"]}


@pytest.mark.slow
def test_refusals_over_http_are_problems_and_free(ready: Api) -> None:
    """Shows a refusal as problem+json with code, place and advice, and that it is not charged."""
    refused = ready.call("analyst", "POST", "/v1/queries", {"dataset": "demo", "sql": "SELECT * FROM patients"})
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    problem = refused.json()
    assert problem["code"] == "raw_rows"
    assert problem["charged"] is False
    assert problem["instead"]
