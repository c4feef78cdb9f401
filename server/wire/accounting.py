"""Models of answers about adding up privacy loss."""

from __future__ import annotations

from pydantic import Field

from server.wire.answers import Amount, AnswerModel
from server.wire.words import KindWord, StandingWord

__all__ = ["SimulatedQuestion", "SimulationAnswer", "WayAnswer"]


class SimulatedQuestion(AnswerModel):
    """One kind of question, asked again and again."""

    kind: KindWord
    epsilon: float | None = Field(description="Pure epsilon of one; null for Gaussian noise, which has none.")
    mu: float | None = Field(description="Of Gaussian noise: sensitivity over standard deviation; null for others.")
    standard_deviation: float | None = Field(description="Of the noise of a count with one row per unit.")


class WayAnswer(AnswerModel):
    """What one way of adding up says."""

    name: str
    means: str
    source: str
    standing: StandingWord = Field(
        description="filter: holds when each question is chosen after the answers before; fixed: only for numbers and "
        "sizes fixed beforehand; wrong: printed in books."
    )
    here: bool = Field(description="Whether accounts of this server use it.")
    questions: int = Field(description="How many such questions fit into the limit; counting stops at 10,000,000.")
    epsilon: list[float | None] = Field(
        description="What as many questions as `counts` says promise together at the limit's delta; null where the way "
        "only counts, or says nothing."
    )


class SimulationAnswer(AnswerModel):
    """How many questions of one kind a limit affords, under each way of adding up. Figures for planning."""

    limit: Amount
    question: SimulatedQuestion
    counts: list[int]
    ways: list[WayAnswer]
