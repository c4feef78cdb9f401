"""Models of requests about monitors."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import Field, PlainValidator

from privacy.numbers import PICO
from server.monitors.terms import Direction
from server.wire.requests import (
    ACCOUNT_PATTERN,
    DATASET_PATTERN,
    SQL_LENGTH_MAX,
    WAIT_MS_MAX,
    ContributionBody,
    Epsilon,
    RequestModel,
    decimal_schema,
    read_amount,
)
from server.wire.words import DirectionWord

__all__ = ["EVALUATIONS_MAX", "HITS_MAX", "EvaluationBody", "MonitorBody"]

HITS_MAX = 1_000
EVALUATIONS_MAX = 100_000
_THRESHOLD_MAX = Fraction(10**15)

Threshold = Annotated[
    Fraction,
    PlainValidator(read_amount("threshold", maximum=_THRESHOLD_MAX, unit=PICO, zero_allowed=True)),
    decimal_schema("Exact decimal text from 0 to 10^15, in the unit of the count or the sum.", "1000"),
]
Sql = Annotated[str, Field(min_length=1, max_length=SQL_LENGTH_MAX, description="One SELECT of one COUNT or SUM.")]


class MonitorBody(RequestModel):
    """A monitor: one count or sum and a threshold, compared with noise until so many hits."""

    dataset: Annotated[str, Field(pattern=DATASET_PATTERN, description="Name of the dataset.")]
    sql: Annotated[Sql, Field(description="The standing question; of a stream, the one that bounds all others.")]
    threshold: Threshold
    direction: Annotated[DirectionWord, Field(description="Whether to pass is to be at least, or at most, that.")] = (
        Direction.ABOVE
    )
    epsilon: Annotated[Epsilon, Field(description="What all comparisons promise together. Charged now, in whole.")]
    hits: Annotated[int, Field(ge=1, le=HITS_MAX, description="Outcomes `passed` after which it is over.")] = 1
    evaluations: Annotated[
        int,
        Field(ge=1, le=EVALUATIONS_MAX, description="Most evaluations; each has to be worth the dataset's floor."),
    ]
    stream: Annotated[bool, Field(description="Whether evaluations may name other questions and thresholds.")] = False
    background: Annotated[
        bool | None,
        Field(
            description="Whether the server evaluates it by itself, once on each version of the data, beginning with "
            "the present one. Without a value: yes, but for a stream, which is evaluated when somebody asks."
        ),
    ] = None
    answer_epsilon: Annotated[
        Epsilon | None,
        Field(description="With it each hit is answered with a number, charged when it is released."),
    ] = None
    contribution: Annotated[
        ContributionBody | None,
        Field(description="How much of one unit counts, where the dataset declares no bound or another one."),
    ] = None
    budget: Annotated[str | None, Field(pattern=ACCOUNT_PATTERN, description="The account that pays.")] = None


class EvaluationBody(RequestModel):
    """An evaluation of a monitor: of its own question, or, of a stream, of another one."""

    sql: Sql | None = None
    threshold: Threshold | None = None
    wait_ms: Annotated[
        int,
        Field(
            ge=0,
            le=WAIT_MS_MAX,
            description="How long to wait for another version of the data, if this was seen; on a stream, for the turn "
            "while another evaluation of it is under way.",
        ),
    ] = 0
    after: Annotated[
        int | None,
        Field(
            ge=0,
            le=EVALUATIONS_MAX,
            description="Number of the last evaluation that was seen: a later one is returned at once, and `wait_ms` "
            "waits for one. Without it, what was said before counts as seen.",
        ),
    ] = None
