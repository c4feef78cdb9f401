"""Models of what the answers about all resources share (docs/api.md, "Resources")."""

from __future__ import annotations

from pydantic import Field

from server.wire.answers import Amount, AnswerModel, ChargeAnswer
from server.wire.words import ResourceStateWord, VerdictWord

__all__ = ["ResourceAnswer", "ResourceErrorAnswer", "ResourceEstimate", "ResourcePriceAnswer"]


class ResourcePriceAnswer(AnswerModel):
    """The price that is agreed to before anything is charged."""

    budget: str = Field(description="The account that pays.")
    epsilon: str = Field(description="How much less of that account remains: what is charged, and not more.")
    delta: str
    share: str = Field(description="The same, as a part of the account's limit.")
    own: Amount = Field(description="What it promises by itself.")


class ResourceEstimate(AnswerModel):
    """What a resource would cost. Nothing was read or charged."""

    verdict: VerdictWord
    price: ResourcePriceAnswer


class ResourceErrorAnswer(AnswerModel):
    """Why a resource is not there: one of two outcomes, whatever went wrong."""

    code: str = Field(description="`execution_failed` or `query_void`.")
    why: str
    charged: bool


class ResourceAnswer(AnswerModel):
    """What every resource says."""

    id: str = Field(description="That of its query in the ledger, too.")
    dataset: str
    principal: str
    budget: str | None = Field(description="The account that pays; null where the ledger has forgotten it.")
    created: str
    finished: str | None = Field(description="When its charge was settled or ended; null while it is running.")
    closed: str | None = Field(description="When it was closed; null while it may be used.")
    status: ResourceStateWord
    error: ResourceErrorAnswer | None = Field(description="Null but for `failed_charged` and `failed_void`.")
    price: ResourcePriceAnswer | None = Field(
        description="What was agreed; null of those that version 0.10.0 made, and of those of others."
    )
    charged: list[ChargeAnswer] = Field(description="What was charged; empty of those of others.")
    links: dict[str, str]
