"""The export over HTTP: the whole ledger for overseers, in pieces, and no half of one under a good status."""

from __future__ import annotations

import pytest

from accountant.errors import LedgerUnavailable
from server.routes import audit
from tests.accountant.exported import Program
from tests.server.conftest import World
from tests.server.fakes import query


def test_an_auditor_gets_an_export_that_agrees(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """NDJSON in several pieces, with the head that the audit names, and without the texts of questions."""
    monkeypatch.setattr(audit, "_CHUNK", 500)
    asked = query()
    assert world.api.post("/v1/queries", json=asked).status_code == 200
    response = world.api.get("/v1/audit-exports", who="auditor")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/x-ndjson"
    assert response.headers["cache-control"] == "no-store"
    assert "ledger.ndjson" in response.headers["content-disposition"]
    verifier = Program.Verifier()
    verifier.read(iter(response.content.splitlines(keepends=True)), {})
    assert verifier.findings == []
    assert (verifier.sequence, verifier.hash) == (world.ledger.audit().sequence, world.ledger.audit().hash)
    assert asked["sql"] not in response.text
    assert world.api.get("/v1/audit-exports").status_code == 403


def test_what_cannot_be_read_is_a_problem(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that is away, and more exports than may run at once: 503, and the next one is answered."""

    def away(**_: object) -> object:
        raise LedgerUnavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(world.ledger, "export", away)
        assert world.api.get("/v1/audit-exports", who="auditor").json()["code"] == "unavailable"
    running = [audit._chunks(world.ledger) for _ in range(2)]
    assert all(next(one).startswith(b'{"created"') for one in running)
    third = world.api.get("/v1/audit-exports", who="admin")
    assert (third.status_code, third.headers["retry-after"]) == (503, "5")
    running.clear()
    assert world.api.get("/v1/audit-exports", who="admin").status_code == 200
