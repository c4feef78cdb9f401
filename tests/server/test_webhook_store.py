"""Webhooks and their outbox as they are stored: who gets an event, in which order, and whose an attempt is."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

from server.store.errors import NotThere
from server.store.outbox import Notice
from server.store.registry import Registry
from server.store.webhooks import WebhookRow
from tests.clocks import Clock
from tests.server.conftest import NOW, SECRET

EVENT = "monitor.passed"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def registry(request: pytest.FixtureRequest) -> Iterator[Registry]:
    """A registry on a fresh, migrated database, with two analysts: every test runs on both."""
    made = Registry(request.getfixturevalue(f"{request.param}_url"), secret=SECRET, clock=Clock(NOW))
    for name in ("ann", "bob"):
        made.create_principal(name, "analyst", actor="test")
    yield made
    made.close()


def hook(registry: Registry, webhook: str, *, principal: str = "ann", subjects: str | None = None) -> WebhookRow:
    """A webhook for what passed."""
    row = WebhookRow(
        id=webhook, principal=principal, host="h.test", events=f'["{EVENT}"]', subjects=subjects, sealed=b"\x00s"
    )
    stored = registry.add_webhook(row, most=3)
    assert stored is not None
    return stored


def happen(registry: Registry, *, event: str = EVENT, subject: str = "m_1", body: str = "{}") -> None:
    """Something of ann's happens."""
    with registry._writing() as connection:
        registry._send(connection, Notice(principal="ann", event=event, subject=subject, body=body))
        connection.commit()


def later(registry: Registry, seconds: int) -> None:
    """Moves the clock."""
    clock = registry._clock
    assert isinstance(clock, Clock)
    clock.now += datetime.timedelta(seconds=seconds)


def test_an_event_goes_to_those_who_want_it(registry: Registry) -> None:
    """Shows principals, kinds and subjects, and that what was removed gets nothing."""
    hook(registry, "w_all")
    hook(registry, "w_one", subjects='["m_2"]')
    hook(registry, "w_bob", principal="bob")
    hook(registry, "w_gone")
    registry.remove_webhook("w_gone", actor="ann")
    with pytest.raises(NotThere):
        registry.remove_webhook("w_gone", actor="ann")
    happen(registry)
    happen(registry, subject="m_2")
    happen(registry, event="monitor.failed")
    assert [registry.waiting(name) for name in ("w_all", "w_one", "w_bob", "w_gone")] == [2, 1, 0, 0]
    assert [row.id for row in registry.webhooks("ann", after=None, count=9)] == ["w_one", "w_all"]
    assert [row.id for row in registry.webhooks("ann", after="w_one", count=9)] == ["w_all"]


def test_of_one_webhook_the_first_event_is_tried_first(registry: Registry) -> None:
    """Shows order, a lease for each attempt, and that an attempt which another one overtook changes nothing."""
    hook(registry, "w_1")
    hook(registry, "w_2")
    for number in range(3):
        happen(registry, body=f"{number}")
    first = registry.claim_deliveries(count=9, lease_seconds=60)
    assert sorted((one.webhook, one.body, one.attempts) for one in first) == [("w_1", "0", 1), ("w_2", "0", 1)]
    assert registry.claim_deliveries(count=9, lease_seconds=60) == ()
    one, two = sorted(first, key=lambda claimed: claimed.webhook)
    assert registry.end_attempt(one, state="delivered", status=200, failure=None)
    assert registry.end_attempt(two, state="waiting", status=500, failure="status", wait_seconds=30)
    (next_one,) = registry.claim_deliveries(count=9, lease_seconds=60)
    assert (next_one.webhook, next_one.body) == ("w_1", "1")
    later(registry, 61)
    again = {claimed.webhook: claimed for claimed in registry.claim_deliveries(count=9, lease_seconds=60)}
    assert {(name, claimed.body, claimed.attempts) for name, claimed in again.items()} == {
        ("w_1", "1", 2),
        ("w_2", "0", 2),
    }
    assert not registry.end_attempt(next_one, state="delivered", status=200, failure=None)
    assert registry.end_attempt(again["w_1"], state="delivered", status=200, failure=None)
    states = [(row.state, row.attempts) for row in registry.deliveries("w_1", after=None, count=9)]
    assert states == [("waiting", 0), ("delivered", 2), ("delivered", 1)]


def test_what_ended_is_forgotten_and_what_waits_is_not(registry: Registry) -> None:
    """Shows that only deliveries that ended are removed, and pages of those that are left."""
    hook(registry, "w_1")
    for number in range(4):
        happen(registry, body=f"{number}")
    (first,) = registry.claim_deliveries(count=1, lease_seconds=60)
    registry.end_attempt(first, state="failed", status=None, failure="timed_out")
    later(registry, 100)
    assert registry.forget_deliveries(before="2026-03-01T12:00:01Z") == 1
    page = registry.deliveries("w_1", after=None, count=2)
    rest = registry.deliveries("w_1", after=page[-1].id, count=9)
    assert (len(page), len(rest), registry.waiting("w_1")) == (2, 1, 3)
