"""Models of answers about registered statistics."""

from __future__ import annotations

from pydantic import Field

from server.wire.answers import AnswerModel
from server.wire.resources import ResourceEstimate
from server.wire.words import StateWord

__all__ = [
    "RegisteredStatisticAnswer",
    "StatisticAnswer",
    "StatisticEstimateAnswer",
    "StatisticList",
    "StatisticTestAnswer",
]


class RegisteredStatisticAnswer(AnswerModel):
    """A statistic that the owner registered."""

    name: str
    description: str
    sql: str
    analysts: bool = Field(description="Whether analysts may ask it, or owners and administrators alone.")
    kind: str | None = Field(
        description="`quantiles` or `mode`; null where this version of the server does not answer it."
    )
    step: float | None = Field(description="The least proposal: the width of a place of its counts.")
    low: float | None = Field(description="Least answer, by declared bounds.")
    high: float | None


class StatisticList(AnswerModel):
    """The registered statistics that the caller may ask."""

    statistics: list[RegisteredStatisticAnswer]


class StatisticTestAnswer(AnswerModel):
    """The test: how many people would have to come or go before the answer were unstable, with noise."""

    epsilon: str = Field(description="The part of its own epsilon that the test takes; what is left is noise.")
    threshold: float = Field(description="The noisy number of people has to be above it.")
    passes_rarely_below: int = Field(
        description="With fewer people than that it passes in one of twenty cases at most."
    )
    passes_mostly_from: int = Field(description="From that many people on it passes in nineteen of twenty cases.")
    lead_rarely_to: int | None = Field(
        description="Of a most frequent value: up to that lead over the second one, in rows that count, it passes in "
        "one of twenty cases at most. Null for quantiles."
    )
    lead_mostly_from: int | None = Field(
        description="Of a most frequent value: from that lead on it passes in nineteen of twenty cases."
    )


class _Promised(AnswerModel):
    """What follows from declarations and the price."""

    kind: str
    width: str | None = Field(description="The proposal that is tested: whole places, rounded down.")
    step: str | None
    low: float | None
    high: float | None
    standard_error: float | None = Field(description="Of an answer, by its noise. Null for a most frequent value.")
    half_width: float | None = Field(description="Of the interval of an answer.")
    confidence: str
    test: StatisticTestAnswer


class StatisticEstimateAnswer(_Promised, ResourceEstimate):
    """What a statistic would cost, test and promise. Nothing was read or charged."""

    first_moment_seconds: float = Field(description="When it is there at the earliest.")
    tick_seconds: float


class StatisticAnswer(_Promised):
    """The outcome of a statistic."""

    id: str
    status: StateWord
    dataset: str
    statistic: str
    outcome: str = Field(
        description="`answered`, or `no_answer` where the test did not pass: a released value like any other, which "
        "does not say that the statistic is unstable, only that the test with its noise did not show otherwise."
    )
    value: float | int | bool | str | None = Field(description="Null with `no_answer`; a most frequent value as it is.")
    interval: list[float] | None = Field(description="Of the noise and of places; held to the range of answers.")
    mechanism: str
    accounting: dict[str, object] = Field(
        description="What was `charged`, and what the outcome promises by itself (`own`). `reused` says that the same "
        "question was asked before without a key: this is its stored outcome, and nothing was charged."
    )
    policy_version: int
    data_version: str
    links: dict[str, str]
