"""Models of local collection: bodies, which are enforced, and answers, which are documentation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from server.wire.answers import AnswerModel
from server.wire.requests import Epsilon, RequestModel
from server.wire.words import ResourceStateWord

__all__ = [
    "CollectorAnswer",
    "CollectorBody",
    "CollectorEstimateRow",
    "CollectorEstimatesAnswer",
    "CollectorLaw",
    "CollectorList",
    "CollectorQuestionAnswer",
    "ReportBody",
    "ReportsAnswer",
    "ReportsBody",
    "TokensAnswer",
    "TokensBody",
]

REPORTS_MAX = 1000
TOKENS_AT_ONCE = 10_000


class CollectorBody(RequestModel):
    """A question of local collection."""

    question: Annotated[str, Field(max_length=1000, description="What people are asked, in plain text.")]
    domain: Annotated[list[str], Field(description="Every possible answer, once: public, and fixed from now on.")]
    epsilon: Epsilon
    missing: Annotated[
        bool, Field(description='Adds the value "(no answer)", for those who give none; else everybody has an answer.')
    ] = True
    encoding: Annotated[
        Literal["randomised_response", "hadamard", "subset_selection", "optimised_unary", "rappor"] | None,
        Field(description="How reports are randomised; if absent, the encoding of least variance."),
    ] = None


class TokensBody(RequestModel):
    """How many tokens to make."""

    count: Annotated[int, Field(ge=1, le=TOKENS_AT_ONCE, description="One for each person.")]


class ReportBody(RequestModel):
    """One report."""

    token: Annotated[str, Field(pattern=r"^ngt_[A-Za-z0-9_-]{32}$", description="A token that was not used.")]
    report: Annotated[
        list[Annotated[int, Field(ge=0, le=2**31)]],
        Field(max_length=4096, description="What the client's encoder returned."),
    ]


class ReportsBody(RequestModel):
    """Reports that are counted together, or not at all."""

    reports: Annotated[list[ReportBody], Field(min_length=1, max_length=REPORTS_MAX)]


class CollectorLaw(AnswerModel):
    """What a client's encoder needs."""

    encoding: str
    size: int = Field(description="How many values the domain has.")
    ratio: str = Field(description='e^epsilon (of "rappor" e^(epsilon/2)) in units of 2^-32, rounded down.')


class CollectorAnswer(AnswerModel):
    """A collector."""

    id: str
    question: str
    status: ResourceStateWord = Field(description="`settled` while it takes reports, then `closed`.")
    size: int
    missing: str | None = Field(description="The value for no answer; null where there is none.")
    encoding: str
    epsilon: str = Field(description="What one report costs its owner.")
    report_bits: int = Field(description="Bits of one report.")
    variance_of_one_report: float = Field(
        description="Variance of a share, times the number of reports: mean over values that are equally frequent."
    )
    expected_standard_error: float | None = Field(
        description="Of the share of a value among the reports so far, by the law alone; null without reports."
    )
    tokens: int
    reports: int
    budget: str = Field(description="The root account that was charged.")
    created: str
    closed: str | None
    links: dict[str, str]


class CollectorList(AnswerModel):
    """A page of collectors."""

    collectors: list[CollectorAnswer]
    next: str | None


class CollectorQuestionAnswer(AnswerModel):
    """What a person's client needs: the question, its domain in the order of its places, and the law."""

    id: str
    question: str
    status: ResourceStateWord
    domain: list[str]
    missing: str | None
    epsilon: str
    law: CollectorLaw


class TokensAnswer(AnswerModel):
    """New tokens, shown in this answer and never again."""

    collector: str
    tokens: list[str] | None = Field(description="One for each person; null in a retry, because they are not kept.")


class ReportsAnswer(AnswerModel):
    """The reports were counted."""

    accepted: int


class CollectorEstimateRow(AnswerModel):
    """What the reports say about one value."""

    value: str
    share: float = Field(description="Its share among the reports, after post-processing.")
    raw_share: float = Field(description="The unbiased estimate; may be negative.")
    standard_error: float = Field(description="Of the raw share.")
    low: float | None = Field(description="Interval of the share; null with fewer than 100 reports.")
    high: float | None


class CollectorEstimatesAnswer(AnswerModel):
    """Estimates of a collector."""

    collector: str
    status: ResourceStateWord
    reports: int
    confidence: str
    postprocess: str = Field(description="The way that was taken; of auto the one with the least estimated risk.")
    risks: dict[str, float] = Field(description="Estimated sum of squared errors of each way that auto compared.")
    rows: list[CollectorEstimateRow]
