"""Adding and removing webhooks: an address that is allowed, which events it gets, and a secret that is shown once."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from server.sealing import Seal, SealBroken
from server.store.outbox import Notice
from server.store.registry import Registry
from server.store.webhooks import WebhookRow
from server.webhooks import refusals
from server.webhooks.addresses import may_be_reached
from server.webhooks.destinations import Target, read_target
from server.webhooks.events import EventType, event_body
from server.webhooks.mail import NO_MAIL, SCHEME, Mailbox, read_mail_address
from server.webhooks.sending import Sender
from server.webhooks.signing import new_secret

__all__ = ["WEBHOOKS_MAX", "AddWebhook", "Webhooks"]

WEBHOOKS_MAX = 20
"""Most webhooks of a principal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddWebhook:
    """A webhook to add. `subjects` are identifiers, of monitors for instance; None stands for all of the principal."""

    principal: str
    url: str = field(repr=False)
    events: Sequence[EventType]
    subjects: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The webhooks of a server. Safe to use from many threads."""

    registry: Registry
    seal: Seal
    sender: Sender
    mailbox: Mailbox = NO_MAIL

    def add(self, request: AddWebhook) -> tuple[WebhookRow, str]:
        """Stores a webhook and returns it with its secret, which is shown nowhere else. Errors: Problem."""
        host = self._host(request.url)
        webhook, secret = f"w_{secrets.token_hex(12)}", new_secret()
        plain = json.dumps({"url": request.url, "secret": secret}).encode()
        stored = self.registry.add_webhook(
            WebhookRow(
                id=webhook,
                principal=request.principal,
                host=host,
                events=json.dumps(sorted(request.events)),
                subjects=None if request.subjects is None else json.dumps(sorted(set(request.subjects))),
                sealed=self.seal.encrypted(plain, bound_to=webhook),
            ),
            most=WEBHOOKS_MAX,
        )
        if stored is None:
            raise refusals.too_many(WEBHOOKS_MAX)
        return stored, secret

    def _host(self, url: str) -> str:
        """The host of an address that may be used, or the domain of one that mail goes to. Errors: Problem."""
        try:
            if url.startswith(SCHEME):
                address = url.removeprefix(SCHEME)
                _, domain = read_mail_address(address)
                if not self.mailbox.allows(address):
                    raise refusals.mail_not_allowed(none=self.mailbox.folder is None or not self.mailbox.allowed)
                return domain
            target = read_target(url)
        except ValueError as error:
            raise refusals.not_an_address(str(error)) from None
        if not self.sender.allows(target):
            raise refusals.not_allowed(none=not self.sender.destinations)
        if _is_number(target) and not may_be_reached(target.name, self.sender.networks):
            raise refusals.private_address()
        return target.authority

    def url_of(self, row: WebhookRow) -> str | None:
        """Its address, for its owner: whoever knows it may be able to write there. None where it cannot be read."""
        try:
            return str(json.loads(self.seal.decrypted(row.sealed, bound_to=row.id))["url"])
        except SealBroken:
            return None

    def test(self, row: WebhookRow, *, at: str) -> None:
        """Sends an event without content. Errors: Problem while one is on its way."""
        notice = Notice(
            principal=row.principal,
            event=EventType.WEBHOOK_TEST,
            subject=row.id,
            body=event_body(EventType.WEBHOOK_TEST, at=at, data={"webhook": row.id}),
        )
        if not self.registry.send_to(row.id, notice):
            raise refusals.test_waits()


def _is_number(target: Target) -> bool:
    try:
        ip_address(target.name)
    except ValueError:
        return False
    return True
