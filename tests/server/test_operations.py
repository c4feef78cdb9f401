"""Health, readiness, metrics, documentation, headers, problems of the framework, and the end of the process."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml

from accountant.errors import LedgerUnavailable
from privacy.refusal import CODES
from server import log
from server.app import create_app
from server.jobs import JobPool
from server.problem_kinds import PROBLEMS
from server.services import Check, Services
from server.settings import Settings, load_settings
from tests.server.conftest import World
from tests.server.fakes import (
    SECRET_LITERAL,
    Api,
    FakeBatches,
    FakeModels,
    FakeMonitors,
    FakeProfiles,
    FakeResources,
    FakeStatistics,
    FakeStreams,
    FakeSynthetic,
    FakeWebhooks,
    query,
)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """The program's log at its most talkative."""
    stream = io.StringIO()
    monkeypatch.setattr(log, "_logger", log.Log(level=10, stream=stream))
    return stream


def test_readiness_tells_what_works_and_nothing_else(world: World) -> None:
    """200 while every check passes; 503 with the name of the failed check and no cause."""
    assert world.api.get("/readyz", who=None).json() == {"status": "ready", "checks": {"ledger": "ok"}}

    def fail() -> None:
        raise LedgerUnavailable(SECRET_LITERAL)

    world.services.checks = (Check("ledger", fail),)
    assert world.api.get("/readyz", who=None).status_code == 200  # remembered
    world.api.app.state.readiness = (-1e9, {})
    failed = world.api.get("/readyz", who=None)
    assert failed.status_code == 503
    assert failed.json() == {"status": "not_ready", "checks": {"ledger": "failed"}}


def test_metrics_count_and_name_nobody(world: World) -> None:
    """Metrics have routes and outcomes, and no principal, dataset or text of a query."""
    world.api.post("/v1/queries", json=query(f"SELECT '{SECRET_LITERAL}' FROM patients"))
    world.api.get(f"/v1/queries/{SECRET_LITERAL}")
    world.api.get(f"/{SECRET_LITERAL}")
    text = world.api.get("/metrics", who="auditor").text
    assert 'noisegate_check{check="ledger"} 1.0' in text
    assert "noisegate_ledger_behind 0.0" in text
    free = next(line for line in text.splitlines() if line.startswith("noisegate_home_free_gibibytes "))
    assert float(free.split()[1]).is_integer()
    assert 'noisegate_queries_total{outcome="settled"} 1.0' in text
    assert 'route="/v1/queries/{query_id}",status="404"' in text
    assert 'route="unmatched",status="404"' in text
    for word in (SECRET_LITERAL, "clinic", "analyst", "patients"):
        assert word not in text


def test_every_metric_of_the_page_is_there_and_every_one_is_on_it(world: World) -> None:
    """Table and alert rules name what /metrics has, and nothing else; the rules are YAML with an expression each."""
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text("utf-8")
    text = world.api.get("/metrics", who="auditor").text
    there = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    there = {name for name in there if not name.endswith("_created")}
    assert set(re.findall(r"\bnoisegate_\w+", page)) == there
    rules = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    (group,) = rules["groups"]
    assert all(re.search(r"\bnoisegate_\w+", rule["expr"]) for rule in group["rules"])


def test_queries_are_counted_whoever_fetches_them(world: World) -> None:
    """Each once, whether somebody waits or polls or not; with their process where there are several."""
    for _ in range(2):
        assert world.api.post("/v1/queries", json={**query(), "wait_ms": 0, "reuse": "none"}).status_code in (200, 202)
    world.services.jobs.close(seconds=5)
    for listed in world.api.get("/v1/queries").json()["queries"]:
        world.api.get(f"/v1/queries/{listed['id']}")
    text = world.api.get("/metrics", who="auditor").text
    assert 'noisegate_queries_total{outcome="settled"} 2.0' in text
    assert 'noisegate_budgets_used{at_least="0.5"} 0.0' in text
    assert f"noisegate_ledger_head {float(world.ledger.length())}" in text
    assert "noisegate_high_water_mark -1.0" in text, "this ledger has no mark"
    world.services.settings = world.settings.model_copy(update={"workers": 2})
    shown = world.api.get("/metrics", who="auditor").text
    assert f'noisegate_queries_total{{outcome="settled",process="{os.getpid()}"}} 2.0' in shown


def test_metrics_may_be_open_on_loopback_only(world: World) -> None:
    """Without a key 401; with the setting, which needs loopback, 200."""
    assert world.api.get("/metrics", who=None).status_code == 401
    world.services.settings = load_settings(home=world.settings.home, metrics_open=True)
    assert world.api.get("/metrics", who=None).status_code == 200


def test_logs_hold_no_text_literal_value_or_key(world: World, lines: io.StringIO) -> None:
    """Lines have allowed fields only; no SQL, literal, key, address or message of an exception."""
    world.api.post("/v1/queries", json=query(f"SELECT '{SECRET_LITERAL}' FROM patients"))
    world.api.post("/v1/queries", json=query(f"SELECT crash '{SECRET_LITERAL}'"))
    world.api.post("/v1/queries", content=f"{{{SECRET_LITERAL}", headers={"Content-Type": "application/json"})
    world.api.get(f"/v1/queries/{SECRET_LITERAL}?x={SECRET_LITERAL}")
    world.api.get(f"/{SECRET_LITERAL}", headers={"X-Request-Id": "abc.1"})
    log.logger().info("request", sql=SECRET_LITERAL, route="/x")
    text = lines.getvalue()
    for word in (SECRET_LITERAL, "SELECT", "patients", "Traceback", *world.api.keys.values()):
        assert word not in text
    written = [json.loads(line) for line in text.splitlines()]
    assert all(set(line) <= log.ALLOWED_FIELDS for line in written)
    crash = next(line for line in written if line["event"] == "request_failed")
    assert crash["exception"] == "RuntimeError"
    assert "server/routes/queries.py:" in crash["where"]
    assert any(line.get("request_id") == "abc.1" and line["route"] == "unmatched" for line in written)
    assert {line["duration"] for line in written if "duration" in line} <= {"<10ms", "<100ms", "<1s", "<10s", ">=10s"}


def test_every_response_has_an_id_and_safe_headers(world: World) -> None:
    """Request id, no sniffing, no frames, no storing, no CORS; on problems too."""
    for response in (
        world.api.get("/v1/me"),
        world.api.get("/v1/me", who=None),
        world.api.get("/absent"),
        world.api.get("/docs", who=None),
        world.api.post("/v1/queries", json=query("SELECT crash")),
    ):
        headers = response.headers
        assert len(headers["x-request-id"]) == 24
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["cache-control"] in ("no-store", "no-cache")
        assert not any(name.startswith("access-control") for name in headers)
    given = world.api.get("/v1/me", headers={"X-Request-Id": "trace-1"})
    assert given.headers["x-request-id"] == "trace-1"
    forged = world.api.get("/absent", headers={"X-Request-Id": "a b<script>"})
    assert forged.json()["request_id"] == forged.headers["x-request-id"] != "a b<script>"


def test_a_proxy_with_tls_gets_strict_transport(world: World, tmp_path: Path) -> None:
    """With tls_terminated every response asks for TLS from now on."""
    settings = load_settings(home=tmp_path, tls_terminated=True)
    with asyncio.Runner() as runner:
        api = Api(create_app(settings, services=world.services), runner, world.api.keys)
        assert api.get("/healthz", who=None).headers["strict-transport-security"] == "max-age=31536000"
        api.close()


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/absent", 404, "not_found"),
        ("GET", "/v1/queries/", 404, "not_found"),
        ("DELETE", "/v1/queries", 405, "method_not_allowed"),
        ("OPTIONS", "/v1/queries", 405, "method_not_allowed"),
        ("GET", "/v1/queries?count=x", 422, "invalid_request"),
        ("GET", "/v1/queries?count=0", 422, "invalid_request"),
        ("GET", f"/v1/queries?after={SECRET_LITERAL}%20", 422, "invalid_request"),
    ],
)
def test_the_frameworks_own_errors_are_problems(world: World, method: str, path: str, status: int, code: str) -> None:
    """404, 405 and 422 of the framework are problem documents, with charged, and repeat no input."""
    response = world.api.call(method, path)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] == code
    assert response.json()["charged"] is False
    assert SECRET_LITERAL not in response.text
    if status == 405:
        assert response.headers["allow"]


def test_capabilities_list_every_code(world: World) -> None:
    """Every refusal and problem code with its status, and the limits that clients need."""
    body = world.api.get("/v1/capabilities").json()
    listed = {item["code"]: item for item in body["problems"]}
    assert set(listed) == set(PROBLEMS) >= set(CODES)
    assert {listed[code]["status"] for code in ("budget_exhausted", "no_budget", "policy_forbids")} == {403}
    assert not any(listed[code]["retryable"] for code in CODES)
    assert body["limits"]["body_bytes"] == 65_536


def test_every_problem_code_has_its_page(world: World) -> None:
    """The `type` of every problem leads to a page."""
    for code in PROBLEMS:
        page = world.api.get(f"/problems/{code}", who=None)
        assert page.status_code == 200
        assert code in page.text
    assert world.api.get("/problems/absent", who=None).status_code == 404


def test_the_documentation_loads_nothing_from_elsewhere(world: World) -> None:
    """The pages name no other host, have no inline script or style, and can be switched off."""
    for path in ("/docs", "/docs/docs.js", "/docs/docs.css"):
        page = world.api.get(path, who=None)
        assert page.status_code == 200
        for word in ("http://", "https://", "//cdn", "innerHTML", "eval(", "@import", " style="):
            assert word not in page.text, (path, word)
    html = world.api.get("/docs", who=None).text
    assert html.count("<script") == 1
    assert '<script src="/docs/docs.js" defer></script>' in html
    assert world.api.get("/", who=None).headers["location"] == "/docs"
    world.services.settings = load_settings(home=world.settings.home, docs_enabled=False)
    assert world.api.get("/docs", who=None).status_code == 404


def test_native_telemetry_is_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The framework's own telemetry stays off, also when its environment variable asks for it."""
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    app = create_app(world.settings, services=world.services)
    wanted = ("tracing", "metrics", "logs", "operation_spans", "auto_configure")
    assert {name: app._telemetry[name] for name in wanted} == dict.fromkeys(wanted, False)  # type: ignore[literal-required]


class Stopped:
    """Remembers the order in which things were closed."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def close(self, name: str) -> Any:
        return lambda: self.order.append(name)


def test_services_are_built_and_closed_with_the_server(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lifespan builds the services, and at the end closes the intake first and then everything in order."""
    monkeypatch.setattr("server.app.configure_logs", lambda **_: None)
    stopped = Stopped()
    jobs = JobPool(threads=1, queue=1)

    def build(settings: Settings) -> Services:
        return Services(
            settings=settings,
            registry=world.registry,
            ledger=world.ledger,
            catalogue=world.catalogue,
            journey=world.journey,
            registrar=world.registrar,
            jobs=jobs,
            profiles=FakeProfiles(),
            resources=FakeResources(),
            monitors=FakeMonitors(),
            streams=FakeStreams(),
            webhooks=FakeWebhooks(),
            dashboards=Mock(),
            synthetic=FakeSynthetic(),
            models=FakeModels(),
            statistics=FakeStatistics(),
            batches=FakeBatches(),
            requests=world.services.requests,
            closing=(stopped.close("engines"), lambda: stopped.order.append(str(jobs.stopping))),
        )

    app = create_app(world.settings, build=build)

    async def run() -> None:
        async with app.router.lifespan_context(app):
            assert app.state.services.jobs is jobs

    asyncio.run(run())
    assert stopped.order == ["engines", "True"]


def test_during_a_shutdown_nothing_new_is_taken(world: World) -> None:
    """With the intake closed a query is 503, not charged, and readiness says so."""
    world.services.jobs.close(seconds=1)
    response = world.api.post("/v1/queries", json=query())
    assert (response.status_code, response.json()["code"], response.json()["charged"]) == (503, "unavailable", False)
    assert world.api.get("/readyz", who=None).status_code == 503
    assert world.spent() == 0
