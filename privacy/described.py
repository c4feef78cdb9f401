"""What is known of one aggregate without its mathematics: the form of each member of `privacy/aggregate.py`."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from privacy.policy import ColumnType
from privacy.statistic_kind import MOMENT_DEGREES, PRODUCT_DEGREES, StatisticKind

__all__ = ["Described", "ResultType"]


class ResultType(enum.Enum):
    """The type of an aggregate's column."""

    WHOLE = "whole"
    """A whole number, whatever the argument."""

    ARGUMENT = "argument"
    """A whole number when the argument's type is INTEGER, otherwise a double."""

    NUMBER = "number"
    """A double."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What is known of one aggregate without its mathematics."""

    stored: str
    """Its identity in stored releases and keys: never changed, and never given to another aggregate."""

    names: tuple[str, ...]
    """Its names in DuckDB's SQL, in lower case, the usual one first."""

    arguments: tuple[ColumnType, ...]
    """Types that its argument may have; none when it reads no value."""

    statistic: StatisticKind
    """The sums that it is computed from, unless another aggregate's sums hold it too."""

    degree: int = 0
    """Of moments the least degree that holds it, of products that of the first value; zero for others."""

    second_degree: int = 0
    """Of products, the least degree of the second value that holds it; zero for other statistics."""

    symmetric: bool = False
    """Of products, whether its two arguments may be exchanged."""

    result: ResultType

    meaning: str
    """What docs/sql.md says of it."""

    written: tuple[str, ...] = ()
    """How it is written, where that is not NAME(x) for each name."""

    distinct: tuple[str, ...] = ()
    """How it is written of the different values of x, each once (mechanisms/distinct.md); empty where it cannot be."""

    elsewhere: tuple[str, ...] = ()
    """Names of other systems that are refused with `hint`."""

    hint: str = ""
    """What to write instead of the names of `elsewhere`."""

    short: str = ""
    """Its name in one-line lists of aggregates; empty for those that do not come first to mind."""

    def __post_init__(self) -> None:
        assert self.names
        assert all(name == name.lower() for name in (*self.names, *self.elsewhere))
        degrees = {StatisticKind.MOMENTS: MOMENT_DEGREES, StatisticKind.PRODUCTS: PRODUCT_DEGREES}
        assert self.degree in degrees.get(self.statistic, (0,))
        assert self.second_degree in (PRODUCT_DEGREES if self.of_pairs else (0,))
        assert self.of_pairs or not self.symmetric
        assert bool(self.elsewhere) == bool(self.hint)
        assert not set(self.names) & set(self.elsewhere)

    @property
    def forms(self) -> tuple[str, ...]:
        """Every way to write it."""
        return self.written or tuple(f"{name.upper()}({'y, x' if self.of_pairs else 'x'})" for name in self.names)

    @property
    def of_pairs(self) -> bool:
        """Whether it reads two values of a row: it is called as NAME(y, x), in the order of DuckDB."""
        return self.statistic is StatisticKind.PRODUCTS

    @property
    def beyond(self) -> str:
        """What docs/sql.md says it does with a unit of more rows than are allotted to it in a group."""
        return self.statistic.described.beyond
