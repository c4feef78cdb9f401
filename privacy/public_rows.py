"""What everybody may know of the rows of public tables, as far as questions about people depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from privacy.values import Cell

__all__ = ["PublicRows"]


class PublicRows(Protocol):
    """The rows of the public tables of one version of the data: never of a table of people."""

    def rows(self, table: str, columns: Sequence[str], most: int) -> tuple[tuple[Cell, ...], ...] | None:
        """These columns of all rows of a table; None where there are more than that, or none can be read."""
        ...

    def agreeing(self, table: str, columns: Sequence[str]) -> int | None:
        """The most rows of a table that agree in all these columns, NULL apart; None where they cannot be read."""
        ...
