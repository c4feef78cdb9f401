"""Models of requests and answers about streams."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, PlainValidator, StrictBool, StrictInt, model_validator

from mechanisms.streams.price import UPDATES_MAX
from privacy.numbers import PICO
from server.streams.terms import Within
from server.wire.answers import AnswerModel
from server.wire.requests import (
    DATASET_PATTERN,
    SQL_LENGTH_MAX,
    AccountId,
    ContributionBody,
    Epsilon,
    RequestModel,
    decimal_schema,
    read_amount,
)
from server.wire.resources import ResourceAnswer, ResourceEstimate
from server.wire.words import FoundWord
from sql_rewrite.stream_text import StreamColumn

__all__ = [
    "SharedStreamAnswer",
    "StreamAnswer",
    "StreamBody",
    "StreamColumnBody",
    "StreamEstimate",
    "StreamKey",
    "StreamList",
    "StreamQueriesAnswer",
    "StreamQueriesBody",
    "StreamQueryAnswer",
    "StreamQueryBody",
    "WithinBody",
]

QUERIES_MAX = 100_000
AT_ONCE_MAX = 100
_KEYS_MAX = 16
_VALUES_MAX = 1_000
_TOLERANCE_MAX = Fraction(10**15)

_Value = StrictBool | StrictInt | Annotated[str, Field(max_length=4_000)] | None
_End = StrictInt | Annotated[str, Field(max_length=40)]

Tolerance = Annotated[
    Fraction,
    PlainValidator(read_amount("tolerance", maximum=_TOLERANCE_MAX, unit=PICO)),
    decimal_schema("Exact decimal text above 0, at most 10^15, in the unit of the count or the sum.", "500"),
]


class StreamColumnBody(RequestModel):
    """A column of the cells: by its declared keys, or a range of whole numbers or days in steps."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    low: Annotated[_End | None, Field(description="Default: the declared lower bound.")] = None
    high: Annotated[_End | None, Field(description="Included. Default: the declared upper bound.")] = None
    step: Annotated[StrictInt | None, Field(ge=1, description="Numbers or days in one place; 1 without it.")] = None

    def asked(self) -> StreamColumn:
        """As streams read it."""
        return StreamColumn(name=self.name, low=self.low, high=self.high, step=self.step)


class StreamBody(RequestModel):
    """A stream: the cells that its queries are sums of, and its envelope."""

    dataset: Annotated[str, Field(pattern=DATASET_PATTERN, description="Name of the dataset.")]
    table: Annotated[
        str | None, Field(min_length=1, max_length=200, description="The table whose rows are counted, with `columns`.")
    ] = None
    columns: Annotated[
        list[StreamColumnBody] | None,
        Field(min_length=1, max_length=_KEYS_MAX, description="The columns that queries will name, with their places."),
    ] = None
    sql: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=SQL_LENGTH_MAX,
            description="In place of `table` and `columns`: one SELECT of public keys and one COUNT(*) or SUM, grouped "
            "by these keys.",
        ),
    ] = None
    epsilon: Annotated[Epsilon, Field(description="What all of it promises together. Charged now, in whole.")]
    updates: Annotated[
        int,
        Field(ge=1, le=UPDATES_MAX, description="How often the synopsis may be corrected. Noise grows with it."),
    ] = 10
    queries: Annotated[
        int,
        Field(ge=1, le=QUERIES_MAX, description="Most queries that are compared; others are answered without."),
    ] = 1_000
    tolerance: Annotated[
        Tolerance | None,
        Field(description="How far the synopsis may be off before it is corrected. Default: as noise allows."),
    ] = None
    contribution: Annotated[
        ContributionBody | None,
        Field(description="How much of one unit counts, where the dataset declares no bound or another one."),
    ] = None
    budget: Annotated[
        AccountId | None,
        Field(description="The account that pays: with `shared` and of an administrator the root, or a group's."),
    ] = None
    shared: Annotated[
        StrictBool,
        Field(
            description="Whether everybody with a budget for the dataset may ask it, for nothing. Owners and "
            "administrators open such streams."
        ),
    ] = False

    @model_validator(mode="after")
    def _one_text(self) -> StreamBody:
        if (self.sql is None) != (self.table is not None and self.columns is not None) or (
            self.sql is not None and (self.table is not None or self.columns is not None)
        ):
            raise ValueError("name either table and columns, or sql")
        return self


class WithinBody(RequestModel):
    """A condition on one key: between two values, both included, or one of some values."""

    key: Annotated[str, Field(min_length=1, max_length=200, description="Name of a key of the stream.")]
    low: _Value = None
    high: _Value = None
    values: Annotated[list[_Value], Field(min_length=1, max_length=_VALUES_MAX)] | None = None

    def asked(self) -> Within:
        """As streams read it."""
        values = None if self.values is None else tuple(self.values)
        return Within(key=self.key, low=self.low, high=self.high, values=values)


class StreamQueryBody(RequestModel):
    """One query: the sum of all cells that satisfy all conditions."""

    where: Annotated[list[WithinBody], Field(max_length=_KEYS_MAX, description="None of them: all cells.")]


class StreamQueriesBody(RequestModel):
    """Queries of a stream, answered in their order from one look at rows."""

    queries: Annotated[list[StreamQueryBody], Field(min_length=1, max_length=AT_ONCE_MAX)]


class StreamQueryAnswer(AnswerModel):
    """The answer to one query of a stream."""

    value: int | float
    found: FoundWord = Field(
        description="`synopsis`: it passed a comparison with the data. `measured`: it did not, and was measured anew. "
        "`not_compared`: what the synopsis knows, and nothing is promised of how far the data are from it."
    )
    within: float | None = Field(
        description="With a chance of 95 % all answers `synopsis` of this stream together are off by at most this, "
        "however many there are; of an answer `measured`, it by itself. Null where nothing was compared."
    )
    standard_error: float | None = Field(
        description="By the law of the noise alone; null once the data are newer than those measured cell by cell."
    )
    data_version: str = Field(description="Versions of policy and data that it is about.")
    repeated: bool = Field(
        description="Whether the caller was given it before, for the same version of the data. What others asked of a "
        "shared stream is not said."
    )


class StreamQueriesAnswer(AnswerModel):
    """The answers to some queries, in their order, and what is left of the stream."""

    answers: list[StreamQueryAnswer]
    comparing: bool = Field(description="Whether further queries are compared with the data.")
    updates_left: int
    compared: int
    cut: list[str] = Field(description="As of the stream: what its bounds may leave out of every answer.")


class StreamKey(AnswerModel):
    """A key of a stream's cells."""

    name: str
    type: str
    values: int = Field(description="How many different values it has in the cells.")
    first: str | int | bool | None
    last: str | int | bool | None


class StreamContribution(AnswerModel):
    """How much of one unit counts, where units may have several rows; rows beyond it are scaled down."""

    rows_per_unit: int
    groups_per_unit: int = Field(description="Groups are cells.")
    rows_per_unit_and_group: int
    source: Literal["request", "dataset"] = Field(description="Who named it: the request, or the dataset file.")
    larger: int | None = Field(
        description="A bound for all three that leaves out less, and makes noise greater in proportion; null where the "
        "data keep no more rows of one unit."
    )


_CONTRIBUTION = Field(description="Null where each unit has one row, and where `sql` is.")
_CUT = Field(
    description="What the bounds may leave out of every answer: neither `within` nor `standard_error` has it. With a "
    "published profile it says about how many units have more. Empty where nothing can be left out, and where `sql` is "
    "null."
)


class StreamEstimate(ResourceEstimate):
    """What a stream would promise, and what it would cost."""

    cells: int
    tolerance: float = Field(description="How far the synopsis may be off, but for noise, before it is corrected.")
    within: float = Field(description="As of the answers `synopsis`.")
    within_measured: float = Field(description="As of an answer `measured`.")
    wrong_updates: float = Field(
        description="Updates that all queries would use up on average if the synopsis had no error at all."
    )
    error_of_half: float = Field(description="Standard error of the sum of half of the cells, before any update.")
    contribution: StreamContribution | None = Field(description="Null where each unit has one row.")
    cut: list[str] = _CUT


class SharedStreamAnswer(AnswerModel):
    """A stream that the caller may ask for nothing."""

    id: str
    principal: str = Field(description="Who opened it.")
    keys: list[StreamKey] | None
    sql: str | None
    cells: int
    within: float = Field(description="As of the answers `synopsis`.")
    contribution: StreamContribution | None = _CONTRIBUTION
    cut: list[str] = _CUT
    comparing: bool
    links: dict[str, str]


class StreamAnswer(ResourceAnswer):
    """A stream: its terms, and what is left of it. It is settled until it is closed, comparing or not."""

    comparing: bool = Field(description="Whether queries are compared with the data; without, the synopsis answers.")
    why: str | None = Field(description="Why it compares nothing any more.")
    shared: bool = Field(description="Whether everybody with a budget for the dataset may ask it.")
    sql: str | None = Field(description="For those who may ask it; null for others, and where it cannot be read.")
    keys: list[StreamKey] | None = Field(description="As `sql`.")
    epsilon: str = Field(description="What all of it promises together, charged when it was opened.")
    cells: int
    tolerance: float
    within: float
    within_measured: float
    wrong_updates: float
    updates: int
    updates_left: int
    queries: int = Field(description="Most queries that are compared.")
    compared: int
    contribution: StreamContribution | None = _CONTRIBUTION
    cut: list[str] = _CUT


class StreamList(AnswerModel):
    """A page of streams, newest first."""

    streams: list[StreamAnswer]
    next: str | None
