"""Models of what two administrators agree on."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from server.administration.budgets import REASON_MAX
from server.wire.answers import Amount, AnswerModel
from server.wire.requests import Delta, MaxCost, RequestModel
from server.wire.words import ProposalDecisionWord, ProposalKindWord, ProposalStateWord

__all__ = ["AcknowledgeBody", "AdjustBody", "ProposalAnswer", "ProposalChangeBody", "ProposalList"]

Reason = Annotated[str, Field(min_length=1, max_length=REASON_MAX, pattern=r"^[^\x00-\x1f\x7f]+$")]


class AdjustBody(RequestModel):
    """By how much a limit is raised or lowered; what was spent stays spent."""

    direction: Annotated[Literal["raise", "lower"], Field(description="Whether the limit grows or shrinks.")]
    epsilon: Annotated[MaxCost, Field(description="By how much; 0 leaves it.")]
    delta: Annotated[Delta, Field(description="By how much; 0 leaves it.")]
    reason: Annotated[Reason, Field(description="Why; the ledger keeps it.")]


class AcknowledgeBody(RequestModel):
    """That the ledger has forgotten charges, and spends again nevertheless."""

    reason: Annotated[Reason, Field(description="Why; the ledger keeps it in every root budget.")]


class ProposalChangeBody(RequestModel):
    """What a proposal shall be."""

    state: Annotated[ProposalDecisionWord, Field(description="Another administrator confirms or rejects.")]


class ProposalAnswer(AnswerModel):
    """What one administrator proposes, and another one confirms."""

    id: str
    kind: ProposalKindWord
    budget: str | None = Field(description="Whose limit it is about; null for the whole ledger.")
    from_: Amount | None = Field(alias="from", description="The limit as it was when this was proposed.")
    to: Amount | None = Field(description="The limit that is proposed.")
    reason: str
    proposed_by: str
    created: str
    expires: str
    state: ProposalStateWord
    decided: str | None
    decided_by: str | None
    links: dict[str, str]


class ProposalList(AnswerModel):
    """A page of proposals, newest first."""

    proposals: list[ProposalAnswer]
    next: str | None


"""Position of the next page, null at the end."""
