"""Notices of budgets that run out and of incidents: each once, to those who may know; and mail as files."""

from __future__ import annotations

import asyncio
import datetime
import email
import email.policy
import json
from dataclasses import replace
from email.message import EmailMessage
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant.account import Limit
from engines.incidents import Incidents
from server.errors import Problem
from server.noticing import Noticing
from server.sealing import WEBHOOKS, Seal
from server.webhooks.delivering import Deliveries
from server.webhooks.events import EventType
from server.webhooks.mail import NO_MAIL, Mailbox, read_mail_entry
from server.webhooks.sending import Sender, system_resolver
from server.webhooks.webhooks import AddWebhook, Webhooks
from tests.server.conftest import SECRET, World
from tests.server.fakes import query
from tests.server.test_budget_requests import hook, sent


def looking(world: World) -> Noticing:
    """What a server process looks with."""
    return Noticing(world.ledger, world.registry, world.services.incidents, lambda: world.clock.now)


def spend(world: World, epsilon: str, who: str = "analyst") -> None:
    """Somebody asks."""
    body = {**query(), "spend": {"epsilon": epsilon}, "reuse": "none"}
    assert world.api.post("/v1/queries", json=body, who=who).status_code == 200


def told(world: World, principal: str) -> list[tuple[str, str]]:
    """Budgets and shares that somebody was told of."""
    return [(one["data"]["budget"], one["data"]["share"]) for one in sent(world, principal)]


def test_a_share_is_told_once_to_the_owner_and_to_administrators(world: World) -> None:
    """By whichever process; the greatest of several; anew for another limit; of the root to administrators alone."""
    other = world.ledger.create_account(
        dataset="clinic",
        parent=world.root.id,
        principal="other",
        name="other",
        limit=world.account.limit,
        filter=world.account.filter,
        actor="test",
    )
    for who in ("admin", "analyst", "other"):
        hook(world, who, "budget.running_out")
    one, two = looking(world), looking(world)
    spend(world, "4")
    one.look()
    assert told(world, "admin") == []
    spend(world, "4")
    for process in (one, two, one):
        process.look()
    own, root = (world.account.id, "0.75"), (world.root.id, "0.75")
    assert told(world, "analyst") == [own]
    assert set(told(world, "admin")) == {own, root}
    spend(world, "1.5", "other")
    two.look()
    assert told(world, "analyst") == [own], "what others spend is told to nobody else"
    assert (told(world, "other"), told(world, "admin")[-1]) == ([], (world.root.id, "0.9"))
    # Half of it is used again, by the same spends.
    more = Limit(world.account.limit.epsilon * Fraction(3, 2), world.account.limit.delta)
    world.ledger.change_limit(world.account.id, more, actor="admin", reason="more")
    looking(world).look()
    assert Fraction(1, 2) < world.ledger.account(world.account.id).used_share() < Fraction(3, 4)
    assert told(world, "analyst") == [own, (world.account.id, "0.5")]
    assert other.id not in {budget for budget, _ in told(world, "admin")}


def test_incidents_are_told_to_administrators(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once in an hour of each kind, with the kind alone."""
    hook(world, "admin", "incident")
    hook(world, "analyst", "incident")
    incidents: Incidents = world.services.incidents
    process = looking(world)
    process.look()
    incidents.note("engine_error", "other")
    process.look()
    incidents.note("engine_error", "other")
    process.look()
    monkeypatch.setattr(world.ledger, "_rejected", "a balance")
    looking(world).look()
    kinds = [one["data"] for one in sent(world, "admin")]
    assert kinds == [{"kind": "engine_error"}, {"kind": "ledger_rejected"}]
    assert sent(world, "analyst") == []


def test_a_message_is_sent_once_whatever_stops_the_server(world: World, tmp_path: Path) -> None:
    """Claimed, written, and its end lost: the next attempt finds the file. What is not allowed any more is not sent."""
    seal, box = Seal(SECRET, WEBHOOKS), mailbox(tmp_path / "mail", "*@example.com")
    (tmp_path / "mail").mkdir()
    sender = Sender(destinations=(), networks=(), resolve=system_resolver())
    hooks = Webhooks(world.registry, seal, sender, box)
    wanted = AddWebhook(
        principal="analyst", url="mailto:ann@example.com", events=[EventType.BUDGET_RUNNING_OUT], subjects=None
    )
    row, _ = hooks.add(wanted)
    assert (row.host, hooks.url_of(row)) == ("example.com", "mailto:ann@example.com")
    with pytest.raises(Problem, match="policy_forbids"):
        hooks.add(replace(wanted, url="mailto:ann@example.org"))
    hooks.test(row, at="2026-03-01T12:00:00Z")

    def attempt(mail: Mailbox) -> None:
        process = Deliveries(world.registry, seal, sender, lambda: world.clock.now, mail)

        async def run() -> None:
            await process.look()
            await process.rounds.finished()

        asyncio.run(run())

    stored, lost = world.registry.end_attempt, []
    world.registry.end_attempt = lambda *given, **_: lost.append(given) or False  # type: ignore[method-assign,assignment]
    attempt(box)
    world.registry.end_attempt = stored  # type: ignore[method-assign]
    (path,) = (tmp_path / "mail").iterdir()
    written = path.stat().st_mtime_ns
    world.clock.now += datetime.timedelta(minutes=2)
    attempt(box)
    (delivery,) = world.registry.deliveries(row.id, after=None, count=9)
    assert (len(lost), delivery.state, delivery.attempts) == (1, "delivered", 2)
    assert (path.stat().st_mtime_ns, len(list(path.parent.iterdir()))) == (written, 1)
    hooks.test(row, at="2026-03-01T12:00:00Z")
    attempt(NO_MAIL)
    assert world.registry.deliveries(row.id, after=None, count=1)[0].failure == "not_allowed"


HEADERS = {"webhook-id": "d_1", "webhook-timestamp": "1", "webhook-signature": "v1,x"}
BODY = json.dumps(
    {
        "type": "budget.running_out",
        "timestamp": "2026-03-01T12:00:00Z",
        "data": {"budget": "b_1", "limit": {"epsilon": "1"}, "reason": "späte Änderung"},
    }
).encode()


def mailbox(folder: Path, *entries: str) -> Mailbox:
    """A folder with whom its messages may go to."""
    return Mailbox(folder, "noisegate@example.com", tuple(map(read_mail_entry, entries)))


def read(path: Path) -> EmailMessage:
    """A message as a mailer reads it."""
    message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def test_a_notice_is_one_message(tmp_path: Path) -> None:
    """Whole under its name, in lines that end as RFC 5322 says, with the bytes that are signed; never written twice."""
    box = mailbox(tmp_path, "*@example.com")
    (tmp_path / ".d_1.part").write_text("left by a process that died")
    box.put("ann@example.com", BODY, HEADERS)
    (path,) = tmp_path.iterdir()
    raw = path.read_bytes()
    assert raw.count(b"\n") == raw.count(b"\r\n")
    message = read(path)
    assert (path.name, message["To"], message["Message-ID"]) == ("d_1.eml", "ann@example.com", "<d_1@example.com>")
    assert message["webhook-signature"] == "v1,x"
    (part,) = message.iter_attachments()
    assert part.get_content() == BODY
    text: Any = message.get_body(("plain",))
    assert "limit epsilon: 1" in text.get_content()
    assert "reason: späte Änderung" in text.get_content()
    box.put("ann@example.com", BODY.replace(b"b_1", b"b_2"), HEADERS)
    assert path.read_bytes() == raw


@pytest.mark.parametrize(
    ("entry", "address", "allowed"),
    [
        ("*@example.com", "ann@EXAMPLE.com", True),
        ("ann@example.com", "bob@example.com", False),
        ("*@example.com", "ann@sub.example.com", False),
        ("*@example.com", "ann@example.com.org", False),
    ],
)
def test_mail_goes_where_an_administrator_allows(tmp_path: Path, entry: str, address: str, *, allowed: bool) -> None:
    """The domain is compared as a whole; without a folder there is no mail."""
    assert mailbox(tmp_path, entry).allows(address) is allowed
    assert not Mailbox(None, "a@b", (("*", "example.com"),)).allows(address)


@pytest.mark.parametrize("address", ["ann", "a@b\r\nBcc: c@d", "a b@c", "*@c", "a..b@c", ".a@c", "a@-c", "a@c,d@e", ""])
def test_addresses_that_would_be_something_else_are_refused(tmp_path: Path, address: str) -> None:
    """No second header, no list, no option of a mailer."""
    with pytest.raises(ValueError, match="it is no address"):
        mailbox(tmp_path, "*@c").allows(address)
