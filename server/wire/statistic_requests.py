"""Models of requests about registered statistics."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import Field, PlainValidator

from privacy.numbers import PICO
from server.wire.requests import (
    ACCOUNT_PATTERN,
    CONFIDENCE_DEFAULT,
    DATASET_PATTERN,
    WAIT_MS_DEFAULT,
    WAIT_MS_MAX,
    Confidence,
    RequestModel,
    SpendBody,
    decimal_schema,
    read_amount,
)

__all__ = ["StatisticBody"]

Width = Annotated[
    Fraction,
    PlainValidator(read_amount("width", maximum=Fraction(10**15), unit=PICO)),
    decimal_schema("Exact decimal text above 0, in the unit of the column.", "2"),
]


class StatisticBody(RequestModel):
    """A question for a registered statistic: its name, what is proposed, and for what."""

    dataset: Annotated[str, Field(pattern=DATASET_PATTERN, description="Name of the dataset.")]
    statistic: Annotated[
        str,
        Field(min_length=1, max_length=63, description="Its name, as GET /v1/datasets/{dataset}/statistics has it."),
    ]
    width: Annotated[
        Width | None,
        Field(
            description="The proposal: by how much one person moves the statistic at most. Named before looking. "
            "Needed by quantiles; a most frequent value takes none."
        ),
    ] = None
    spend: Annotated[SpendBody, Field(description="What it may cost, whichever way the test ends.")]
    confidence: Annotated[Confidence, Field(description="Of the interval.")] = CONFIDENCE_DEFAULT
    budget: Annotated[str | None, Field(pattern=ACCOUNT_PATTERN, description="The account that pays.")] = None
    wait_ms: Annotated[int, Field(ge=0, le=WAIT_MS_MAX, description="How long to wait for it; past it 202.")] = (
        WAIT_MS_DEFAULT
    )
