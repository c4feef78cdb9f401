"""Models of answers about datasets: what they declare, and their profiles."""

from __future__ import annotations

from pydantic import Field

from server.wire.answers import AnswerModel
from server.wire.streams import SharedStreamAnswer

__all__ = [
    "DatasetAnswer",
    "DatasetList",
    "KeySizeAnswer",
    "ProfileAnswer",
    "ProfiledColumnAnswer",
    "ProfiledTableAnswer",
    "QuantileAnswer",
    "RangeAnswer",
    "TableAnswer",
]


class TableAnswer(AnswerModel):
    """Public metadata of a table: what was declared, nothing that was counted."""

    name: str
    description: str
    protected: bool
    key: str | None
    unit_column: str | None
    references: list[dict[str, str]]
    contribution: dict[str, int | bool] | None = Field(
        description="Counts that bound one unit; with `automatic`, questions about public groups choose a norm instead."
    )
    columns: list[dict[str, object]]


class RangeAnswer(AnswerModel):
    """A noisy figure with the interval of its noise."""

    value: float
    low: float
    high: float


class QuantileAnswer(AnswerModel):
    """A noisy quantile: a number, or a date as text."""

    level: float
    value: float | str
    low: float | str
    high: float | str


class KeySizeAnswer(AnswerModel):
    """How many units have this key, one value of each unit."""

    key: str | int | bool | None
    units: RangeAnswer


class ProfiledColumnAnswer(AnswerModel):
    """What the profile says about a column; null for what it does not, or cannot because of its noise."""

    name: str
    null: RangeAnswer | None = Field(description="The share of NULL, each unit weighing one.")
    quantiles: list[QuantileAnswer] | None
    keys: list[KeySizeAnswer] | None
    groups_per_unit: list[QuantileAnswer] | None = Field(description="Different keys of a unit.")
    months_per_unit: list[QuantileAnswer] | None = Field(description="Different calendar months of a unit.")


class ProfiledTableAnswer(AnswerModel):
    """What the profile says about a table."""

    name: str
    units: RangeAnswer
    rows: RangeAnswer | None
    rows_per_unit: list[QuantileAnswer] | None
    columns: list[ProfiledColumnAnswer]


class ProfileAnswer(AnswerModel):
    """Noisy figures about the data, made once for this version of it and charged on the root."""

    query: str = Field(description="The ledger's name of the charge.")
    data_version: str
    created: str
    epsilon: str = Field(description="What the root was charged.")
    noise: str
    confidence: str = Field(description="Of each interval by itself; it covers the noise.")
    tables: list[ProfiledTableAnswer]


class DatasetAnswer(AnswerModel):
    """Public metadata of a dataset. Never its source; of its rows only the profile, which is noisy and was paid for."""

    name: str
    description: str
    privacy_unit: dict[str, str | None] = Field(
        description="`table` and `key`: whose presence is protected. Without a key each row of the table is a unit."
    )
    unit_space: str = Field(description="What its units are: datasets of one unit space share one root budget.")
    neighbouring: str
    policy_version: int
    data_version: str
    limits: dict[str, object]
    tables: list[TableAnswer]
    profile: ProfileAnswer | None = Field(description="Null where the owner made none of this version of the data.")
    streams: list[SharedStreamAnswer] = Field(description="Streams that everybody with a budget asks for nothing.")
    links: dict[str, str]


class DatasetList(AnswerModel):
    """Datasets that the caller may ask."""

    datasets: list[dict[str, object]]
    unavailable: list[str] = Field(
        description="Names of attached datasets of the caller that cannot be served: the operator has to mend them."
    )
