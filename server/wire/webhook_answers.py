"""Models of answers about webhooks."""

from __future__ import annotations

from pydantic import Field

from server.wire.answers import AnswerModel
from server.wire.words import DeliveryWord

__all__ = ["DeliveryAnswer", "DeliveryList", "NewWebhookAnswer", "WebhookAnswer", "WebhookList"]


class DeliveryAnswer(AnswerModel):
    """One event on its way to a webhook, or at its end."""

    id: str = Field(description="The header `webhook-id`: the same in every attempt.")
    event: str
    subject: str = Field(description="What the event is about.")
    created: str
    state: DeliveryWord
    attempts: int
    status: int | None = Field(description="What the receiver answered last.")
    failure: str | None = Field(
        description="Why the last attempt did not arrive: `status`, `redirected`, `timed_out`, `unreachable`, "
        "`name_unknown`, `not_allowed`, `address_refused`, `unreadable`; or `removed`, `too_many_waiting`."
    )
    next_attempt: str | None = Field(description="Not before this moment, while it waits.")


class WebhookAnswer(AnswerModel):
    """A webhook. Its secret is never shown again."""

    id: str
    principal: str
    url: str | None = Field(
        description="For its owner; null for others, in a repeated request, and where it cannot be read."
    )
    host: str
    events: list[str]
    subjects: list[str] | None
    created: str
    removed: str | None
    waiting: int = Field(description="Events that are not received yet.")
    last: DeliveryAnswer | None = Field(description="The newest event.")
    links: dict[str, str]


class NewWebhookAnswer(WebhookAnswer):
    """A webhook that was added, with the secret under which its bodies are signed."""

    secret: str | None = Field(description="Shown once; null in a repeated request under the same Idempotency-Key.")


class WebhookList(AnswerModel):
    """A page of webhooks, newest first."""

    webhooks: list[WebhookAnswer]
    next: str | None


class DeliveryList(AnswerModel):
    """A page of events for a webhook, newest first. They are kept for 30 days."""

    deliveries: list[DeliveryAnswer]
    next: str | None
