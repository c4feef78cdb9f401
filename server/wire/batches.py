"""Models of requests and answers about batches."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from server.wire.answers import AnswerModel, FindingAnswer
from server.wire.requests import (
    CONFIDENCE_DEFAULT,
    DATASET_PATTERN,
    WAIT_MS_DEFAULT,
    WAIT_MS_MAX,
    AccountId,
    Confidence,
    ContributionBody,
    RequestModel,
    SpendBody,
)
from server.wire.resources import ResourceAnswer
from server.wire.words import NoiseWord, ReuseWord, StrategyWord

__all__ = [
    "BatchAnswer",
    "BatchBody",
    "BatchEstimate",
    "BatchList",
    "BatchRowAnswer",
    "BatchState",
    "StrategyAnswer",
]

QUERIES_MAX = 1_000
_TEXT_MAX = 10_000


class BatchBody(RequestModel):
    """Counting queries over the same rows, answered together at one price."""

    dataset: Annotated[str, Field(pattern=DATASET_PATTERN, description="Name of the dataset.")]
    queries: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=_TEXT_MAX)]],
        Field(
            min_length=1,
            max_length=QUERIES_MAX,
            description="Each SELECT COUNT(*) FROM ... WHERE ..., with the same FROM. Repeated ones have one answer.",
        ),
    ]
    spend: Annotated[SpendBody | None, Field(description="What all of them together cost; else the policy's.")] = None
    confidence: Confidence = CONFIDENCE_DEFAULT
    contribution: Annotated[
        ContributionBody | None,
        Field(description="How much of one unit counts, where the dataset declares no bound or another one."),
    ] = None
    noise: Annotated[
        NoiseWord,
        Field(description="The only family of noise that may answer.", json_schema_extra={"default": "auto"}),
    ] = None
    reuse: Annotated[
        ReuseWord | None,
        Field(description="Which stored releases may answer: everybody's, the caller's, none. Default: the policy's."),
    ] = None
    budget: Annotated[AccountId | None, Field(description="The account that pays.")] = None
    wait_ms: Annotated[int, Field(ge=0, le=WAIT_MS_MAX, description="How long to wait for the answer before 202.")] = (
        WAIT_MS_DEFAULT
    )


class StrategyAnswer(AnswerModel):
    """One way to answer a batch."""

    strategy: StrategyWord
    chosen: bool
    sums: int | None = Field(description="Sums that noise is drawn for; null where it is refused.")
    error: float | None = Field(
        description="Root mean square of the standard errors of all different queries, at the price; null where it is "
        "refused."
    )
    greatest_error: float | None = Field(description="The greatest of them.")
    price_ratio: float | None = Field(
        description="How many times the price, in what the account counts in, it would take for the error of the "
        "chosen one."
    )
    refused: list[FindingAnswer] = Field(description="Why it cannot be taken.")


class BatchEstimate(AnswerModel):
    """How a batch would be answered, and for what."""

    queries: int
    different: int = Field(description="How many of the queries are different.")
    strategy: StrategyWord
    strategies: list[StrategyAnswer]
    price: dict[str, object] = Field(description="As of an estimate of one query: there is one charge.")
    noise: str | None
    warnings: list[FindingAnswer]
    cut: list[str] = Field(description="What the bounds would leave out of every count; no standard error has it.")
    remaining_after: dict[str, str]


class BatchRowAnswer(AnswerModel):
    """The answer to one query of a batch."""

    number: int = Field(description="Its place in the request, from 1.")
    sql: str | None = Field(description="For the owner; null for others, and where the texts cannot be read.")
    value: int | float = Field(description="A whole number, but where units are scaled to parts of a row.")
    standard_error: float
    low: int | float
    high: int | float


class BatchState(ResourceAnswer):
    """A batch without its answers."""

    strategy: StrategyWord
    queries: int
    confidence: float = Field(description="Of each interval by itself.")


class BatchAnswer(BatchState):
    """A batch, with its answers once it is settled."""

    rows: list[BatchRowAnswer] | None = Field(description="In the order of the request; null until it is settled.")
    accounting: dict[str, object] | None = Field(description="As of a query: what all of them together cost.")
    warnings: list[FindingAnswer] = Field(description="Those of the query that the batch is.")
    cut: list[str] = Field(
        description="What the bounds may leave out of every count, as in `provenance` of a query; no interval has it. "
        "Groups in it are cells. Empty where nothing can be left out, and until it is settled."
    )
    releases: list[str] = Field(description="The releases from which all of it was computed.")


class BatchList(AnswerModel):
    """A page of batches, newest first."""

    batches: list[BatchState]
    next: str | None
