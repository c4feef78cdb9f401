"""Models of requests for budgets, and of their answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from server.administration.budgets import REASON_MAX
from server.wire.answers import Amount, AnswerModel
from server.wire.requests import DATASET_PATTERN, AccountId, LimitBody, QueryBody, RequestModel
from server.wire.words import DecisionWord, RequestStateWord

__all__ = ["BudgetRequestAnswer", "BudgetRequestBody", "BudgetRequestChangeBody", "BudgetRequestList"]

Reason = Annotated[str, Field(min_length=1, max_length=REASON_MAX, pattern=r"^[^\x00-\x1f\x7f]+$")]


class BudgetRequestBody(RequestModel):
    """A limit that somebody asks for, and for which question."""

    dataset: Annotated[str, Field(pattern=DATASET_PATTERN, description="Name of the dataset.")]
    reason: Annotated[Reason, Field(description="What it is for. Whoever decides reads it.")]
    budget: Annotated[AccountId | None, Field(description="Which budget of yours, if you have several.")] = None
    question: Annotated[
        QueryBody | None,
        Field(
            description="The question that it is for, as for an estimate, of the same dataset. It is kept, with its "
            "price and what is missing, for those who decide."
        ),
    ] = None
    limit: Annotated[
        LimitBody | None,
        Field(description="The whole limit that is asked for. Without it: the present one and what is missing."),
    ] = None

    @model_validator(mode="after")
    def _of_one_dataset(self) -> BudgetRequestBody:
        if self.question is not None and self.question.dataset != self.dataset:
            raise ValueError("question.dataset must be the dataset of the request")
        return self


class BudgetRequestChangeBody(RequestModel):
    """A decision. Approval and rejection are for administrators and owners, withdrawal for whoever asked."""

    state: Annotated[DecisionWord, Field(description="What the request shall be.")]
    reason: Annotated[
        Reason | None,
        Field(description="Why: needed for a rejection, which the asker reads. The ledger keeps that of an approval."),
    ] = None
    limit: Annotated[
        LimitBody | None, Field(description="With an approval: another whole limit than the one that was asked for.")
    ] = None


class RequestDecisionAnswer(AnswerModel):
    """What came of a request."""

    at: str
    by: str
    reason: str | None


class BudgetRequestAnswer(AnswerModel):
    """A request for a limit. It holds what its author may know, and no true value."""

    id: str
    dataset: str
    principal: str
    budget: str | None = Field(description="Whose limit is asked for; null for one that is not open yet.")
    state: RequestStateWord
    limit: Amount = Field(description="The whole limit that is asked for; once it is approved, the one that was given.")
    reason: str | None = Field(description="Why it is asked for; null where it cannot be read.")
    question: dict[str, object] | None
    estimate: dict[str, object] | None = Field(
        description="What the question would have cost when it was asked for: verdict, price, what remained, and what "
        "was `missing` of the author's own budget."
    )
    created: str
    decision: RequestDecisionAnswer | None
    links: dict[str, str | None]


class BudgetRequestList(AnswerModel):
    """A page of requests, newest first."""

    requests: list[BudgetRequestAnswer]
    next: str | None
