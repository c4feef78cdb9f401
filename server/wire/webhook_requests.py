"""Models of requests about webhooks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from server.webhooks.destinations import URL_LENGTH_MAX
from server.webhooks.events import EventType
from server.wire.requests import ACCOUNT_PATTERN, RequestModel
from server.wire.words import EventWord

__all__ = ["WebhookBody"]

_SUBJECTS_MAX = 100


class WebhookBody(RequestModel):
    """A webhook: where events of the caller's own resources are sent."""

    url: Annotated[
        str,
        Field(
            min_length=1,
            max_length=URL_LENGTH_MAX,
            description="Within the destinations that an administrator allows. Shown to its owner alone.",
        ),
    ]
    events: Annotated[
        list[EventWord],
        Field(
            min_length=1,
            max_length=10,
            default_factory=lambda: [EventType.MONITOR_PASSED],
            description="The kinds of events that are sent; without it `monitor.passed`.",
        ),
    ]
    subjects: Annotated[
        list[Annotated[str, Field(pattern=ACCOUNT_PATTERN)]] | None,
        Field(
            min_length=1,
            max_length=_SUBJECTS_MAX,
            description="Identifiers of what the events are about, such as monitors. Without it: everything of yours.",
        ),
    ] = None
