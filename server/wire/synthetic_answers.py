"""Models of answers about synthetic tables."""

from __future__ import annotations

from pydantic import Field

from server.wire.answers import AnswerModel
from server.wire.resources import ResourceAnswer, ResourceEstimate

__all__ = [
    "LeftOut",
    "MeasuredGroup",
    "MeasuredMarginal",
    "ModelColumn",
    "SyntheticAnswer",
    "SyntheticColumn",
    "SyntheticEstimate",
    "SyntheticList",
]


class LeftOut(AnswerModel):
    """A column that the table does not have."""

    name: str
    why: str


class SyntheticColumn(AnswerModel):
    """A column of a synthetic table."""

    name: str
    type: str
    nullable: bool
    bins: int = Field(description="Places that its values are counted in, that of NULL included.")
    bounds: str = Field(description="`keys`, `declared`, or `chosen` from noisy counts.")


class MeasuredMarginal(AnswerModel):
    """A marginal that was measured."""

    columns: list[str]
    cells: int
    standard_error: float = Field(description="Of the noise of each cell, in rows.")
    expected_error: float = Field(
        description="The part of all rows that noise alone is expected to put into a wrong cell. Consistency lowers it."
    )


class ModelColumn(AnswerModel):
    """What the values of a column were drawn by."""

    column: str
    depends_on: list[str]


class MeasuredGroup(AnswerModel):
    """How many marginals of a kind are measured at most, and with how much noise."""

    of: str = Field(description="`columns`, `pairs` or `triples`.")
    marginals: int
    standard_error: float = Field(description="Of the noise of each cell, in rows; less where fewer are measured.")


class SyntheticAnswer(ResourceAnswer):
    """A synthetic table: what was asked for, and, once it is settled, its report."""

    name: str = Field(description="What queries call it.")
    table: str = Field(description="The table whose rows it stands for.")
    data_version: str = Field(description="The version of the data that it was made of; later ones leave it as it is.")
    epsilon: str
    rows_per_unit: int
    left_out: list[LeftOut]
    columns: list[SyntheticColumn] | None = Field(description="Null until it is settled, as all that follows.")
    rows: int | None
    rows_estimated: int | None = Field(description="About how many rows the table of people has, by noisy counts.")
    measured: list[MeasuredMarginal] | None
    model: list[ModelColumn] | None = Field(description="In the order in which columns were drawn.")
    warnings: list[str] | None


class SyntheticEstimate(ResourceEstimate):
    """What is known of a synthetic table before it is made."""

    table: str
    epsilon: str
    rows_per_unit: int
    columns: list[SyntheticColumn]
    left_out: list[LeftOut]
    selected: bool = Field(description="Whether pairs and triples are chosen; of few columns all are measured.")
    measured_at_most: list[MeasuredGroup]


class SyntheticList(AnswerModel):
    """A page of synthetic tables, newest first."""

    synthetic: list[SyntheticAnswer]
    next: str | None
