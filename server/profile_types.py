"""A published profile as JSON, by its types: written by `server/profile_body.py`, and read for advice."""

from __future__ import annotations

from typing import TypedDict

__all__ = ["ColumnProfile", "CountQuantile", "Figure", "NoisyNumber", "Profile", "Quantile", "TableProfile"]

Figure = int | float | str
"""A number, or a day as ISO text."""


class NoisyNumber(TypedDict):
    """A noisy number with the interval of its noise."""

    value: float
    low: float
    high: float


class Quantile(TypedDict):
    """A quantile of a column's values."""

    level: float
    value: Figure
    low: Figure
    high: Figure


class CountQuantile(TypedDict):
    """A quantile of a number of rows, groups or months of a unit."""

    level: float
    value: int
    low: int
    high: int


class KeySize(TypedDict):
    """How many units have a key."""

    key: str | int | bool | None
    units: NoisyNumber


class ColumnProfile(TypedDict):
    """What is said about a column; None for what is not, or cannot be because of the noise."""

    name: str
    null: NoisyNumber | None
    quantiles: list[Quantile] | None
    keys: list[KeySize] | None
    groups_per_unit: list[CountQuantile] | None
    months_per_unit: list[CountQuantile] | None


class TableProfile(TypedDict):
    """What is said about a table."""

    name: str
    units: NoisyNumber
    rows: NoisyNumber | None
    rows_per_unit: list[CountQuantile] | None
    columns: list[ColumnProfile]


class Profile(TypedDict):
    """The profile of one version of the data, as far as the program itself reads it."""

    data_version: str
    tables: list[TableProfile]
