"""Models of answers about monitors."""

from __future__ import annotations

from pydantic import Field

from server.wire.answers import AnswerModel
from server.wire.resources import ResourceAnswer, ResourceEstimate
from server.wire.words import DirectionWord, EvaluationWord

__all__ = ["EvaluationAnswer", "MonitorAnswer", "MonitorEstimateAnswer", "MonitorHitPrice", "MonitorList"]


class EvaluationAnswer(AnswerModel):
    """What an evaluation said."""

    number: int
    data_version: str = Field(description="Versions of policy and data that were compared.")
    at: str
    outcome: EvaluationWord = Field(description="`failed`: it is counted, and says nothing.")
    repeated: bool = Field(description="Whether it was made before, for the same version of the data.")
    gap: float | None = Field(description="Of a hit: noisy distance beyond the threshold, at no cost.")
    beyond: float | None = Field(description="Of a hit that is answered: a fresh noisy distance beyond the threshold.")
    beyond_standard_error: float | None
    combined: float | None = Field(description="Gap and answer together, weighted by their variances.")
    answer_refused: str | None = Field(description="Why a hit has no answer, such as `budget_exhausted`.")
    query: str | None = Field(description="The charge of the answer: GET /v1/queries/{query_id}.")
    hits_left: int


class MonitorAnswer(ResourceAnswer):
    """A monitor: its terms, what is left of it, and its hits. Its last hit or evaluation closes it, too."""

    sql: str | None = Field(description="For its owner; null for others, and where its state cannot be read.")
    threshold: str | None = Field(description="As `sql`.")
    direction: DirectionWord
    stream: bool
    background: bool = Field(description="Whether the server evaluates it by itself on each version of the data.")
    epsilon: str = Field(description="What all comparisons promise together, charged when it was opened.")
    answer_epsilon: str | None
    rows_per_unit: int | None = Field(description="Rows of one unit that count, where the monitor names its own bound.")
    hits: int
    hits_left: int
    evaluations: int
    evaluations_made: int
    within: float = Field(
        description="With a chance of 95 % no outcome of all evaluations is wrong by more than this, in the unit of "
        "the count or the sum: passed means at least the threshold less it, not passed at most the threshold plus it."
    )
    passed: list[EvaluationAnswer] = Field(description="Its hits, the first one first.")
    last: EvaluationAnswer | None = Field(description="The last evaluation.")


class MonitorHitPrice(AnswerModel):
    """What each answer to a hit would cost when it is released, and how exact it would be."""

    epsilon: str = Field(description="What it would take of the caller's account.")
    standard_error: float = Field(description="In the unit of the count or the sum.")


class MonitorEstimateAnswer(ResourceEstimate):
    """What a monitor would cost, and how exact all of its outcomes would be."""

    answer: MonitorHitPrice | None = Field(description="With `answer_epsilon`: of each answer. Not in `price`.")
    comparison_standard_error: float = Field(
        description="Of the noise of one comparison, and of a `gap`, in the unit of the count or the sum."
    )
    within: float = Field(description="As a monitor's: with a chance of 95 % no outcome is wrong by more than this.")
    textbook_within: float = Field(
        description="The same by the bounds in print, for the algorithms in print at this epsilon: Dwork and Roth "
        "2014, Theorem 3.24 for one hit, 3.26 for several, 3.28 with answers."
    )
    first_moment_seconds: float = Field(description="Each evaluation shows after this time, or twice, four times, ...")
    tick_seconds: float


class MonitorList(AnswerModel):
    """A page of monitors, newest first."""

    monitors: list[MonitorAnswer]
    next: str | None
