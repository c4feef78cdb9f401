"""Requests that lend a part of a budget, and take it back."""

from __future__ import annotations

import datetime
from typing import Annotated

from pydantic import Field

from server.administration.budgets import REASON_MAX
from server.wire.requests import LimitBody, Name, RequestModel

__all__ = ["LendBody", "ReasonBody"]


class LendBody(RequestModel):
    """A part of a budget for somebody else, until a day."""

    principal: Annotated[
        Name, Field(description="Who may spend it. Nothing is said about whether there is such a one.")
    ]
    limit: LimitBody
    expires: Annotated[
        str,
        Field(
            pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
            description="The first day on which it pays for nothing more, in UTC: YYYY-MM-DD.",
        ),
    ]
    name: Annotated[str | None, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")] = None

    @property
    def end(self) -> datetime.datetime:
        """The first moment of that day. Errors: ValueError for a day that no calendar has."""
        day = datetime.date.fromisoformat(self.expires)
        return datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC)


class ReasonBody(RequestModel):
    """Why something is done; the ledger keeps it."""

    reason: Annotated[str, Field(min_length=1, max_length=REASON_MAX, pattern=r"^[^\x00-\x1f\x7f]+$")]
