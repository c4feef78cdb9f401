"""Models of requests about models that are fitted."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import Field, PlainValidator

from mechanisms.private_descent import ITERATIONS_MAX, Method
from privacy.numbers import PICO
from server.models.terms import HELD_OUT_MAX
from server.wire.requests import (
    ACCOUNT_PATTERN,
    CONFIDENCE_DEFAULT,
    DATASET_PATTERN,
    SQL_LENGTH_MAX,
    WAIT_MS_DEFAULT,
    WAIT_MS_MAX,
    Confidence,
    RequestModel,
    SpendBody,
    decimal_schema,
    read_amount,
)
from server.wire.words import MethodWord

__all__ = ["ModelBody"]

_HELD_OUT_DEFAULT = Fraction(1, 10)

Share = Annotated[
    Fraction,
    PlainValidator(read_amount("held_out", maximum=HELD_OUT_MAX, unit=PICO, zero_allowed=True)),
    decimal_schema("Exact decimal text from 0 to 0.5.", "0.1"),
]
Clip = Annotated[
    Fraction,
    PlainValidator(read_amount("clip", maximum=Fraction(1), unit=PICO)),
    decimal_schema("Exact decimal text above 0, at most 1.", "0.5"),
]


class ModelBody(RequestModel):
    """A model to fit: rows of features with a label, how, and for what."""

    dataset: Annotated[str, Field(pattern=DATASET_PATTERN, description="Name of the dataset.")]
    sql: Annotated[
        str,
        Field(
            min_length=1,
            max_length=SQL_LENGTH_MAX,
            description="One SELECT of features, and of one column named label. Texts have keys; of numbers without "
            "bounds the model chooses them from noisy histograms, for a quarter of its price.",
        ),
    ]
    method: Annotated[MethodWord, Field(description="How it is fitted.")] = Method.INPUT_CLIPPING
    iterations: Annotated[
        int, Field(ge=1, le=ITERATIONS_MAX, description="Steps of gradient descent, fixed beforehand.")
    ] = 100
    held_out: Annotated[Share, Field(description="The part of the units that it is tested on, at no price.")] = (
        _HELD_OUT_DEFAULT
    )
    clip: Annotated[
        Clip | None,
        Field(
            description="The norm to which the rows of a unit are held, or with gradient_clipping its gradient, as a "
            "part of the greatest norm of a row; by default 1, and 0.5 of gradients."
        ),
    ] = None
    spend: Annotated[SpendBody, Field(description="What it may cost. Charged before a row is read, in whole.")]
    confidence: Annotated[Confidence, Field(description="Of the intervals.")] = CONFIDENCE_DEFAULT
    budget: Annotated[str | None, Field(pattern=ACCOUNT_PATTERN, description="The account that pays.")] = None
    wait_ms: Annotated[int, Field(ge=0, le=WAIT_MS_MAX, description="How long to wait for it; past it 202.")] = (
        WAIT_MS_DEFAULT
    )
