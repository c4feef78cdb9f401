"""Models of requests about synthetic tables."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import Field, PlainValidator

from privacy.numbers import PICO
from server.synthetic.planning import BINS_MAX
from server.wire.requests import (
    ACCOUNT_PATTERN,
    DATASET_PATTERN,
    WAIT_MS_DEFAULT,
    WAIT_MS_MAX,
    Epsilon,
    RequestModel,
    decimal_schema,
    read_amount,
)

__all__ = ["SyntheticBody", "SyntheticColumnBody"]

_BOUND_MAX = Fraction(10**15)
_COLUMNS_MOST = 10_000


def _read_bound(value: object) -> Fraction:
    """A bound, which may be negative: exact decimal text."""
    negative = isinstance(value, str) and value.startswith("-")
    text = value[1:] if isinstance(value, str) and negative else value
    amount = read_amount("bound", maximum=_BOUND_MAX, unit=PICO, zero_allowed=True)(text)
    return -amount if negative else amount


Bound = Annotated[
    Fraction,
    PlainValidator(_read_bound),
    decimal_schema("Exact decimal text, a minus before it or not, up to 10^15 in size.", "100"),
]
ColumnName = Annotated[str, Field(min_length=1, max_length=256, description="Name of a column of the table.")]


class SyntheticColumnBody(RequestModel):
    """A column of a synthetic table."""

    name: ColumnName
    bins: Annotated[
        int | None, Field(ge=2, le=BINS_MAX, description="About how many bins a number or a date with bounds gets.")
    ] = None
    low: Annotated[Bound | None, Field(description="Least value of a number, where that is public knowledge.")] = None
    high: Annotated[Bound | None, Field(description="Greatest value of a number, as `low`.")] = None


class SyntheticBody(RequestModel):
    """A synthetic table in place of the rows of one table about people."""

    dataset: Annotated[str, Field(pattern=DATASET_PATTERN, description="Name of the dataset.")]
    table: Annotated[str, Field(min_length=1, max_length=256, description="The table whose rows it stands for.")]
    name: Annotated[
        str, Field(min_length=1, max_length=256, description="What queries call it, such as synthetic_people.")
    ]
    columns: Annotated[
        list[SyntheticColumnBody] | None,
        Field(max_length=_COLUMNS_MOST, description="Its columns; without them every one that can be had."),
    ] = None
    epsilon: Annotated[Epsilon, Field(description="Epsilon of the account that it may cost, all of it together.")]
    rows_per_unit: Annotated[
        int | None, Field(ge=1, le=2**30, description="Rows of one unit that count; without it the table's own bound.")
    ] = None
    budget: Annotated[str | None, Field(pattern=ACCOUNT_PATTERN, description="The account that pays.")] = None
    wait_ms: Annotated[int, Field(ge=0, le=WAIT_MS_MAX, description="How long to wait for it; past it 202.")] = (
        WAIT_MS_DEFAULT
    )
