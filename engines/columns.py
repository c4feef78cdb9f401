"""Which column of a source a declared column is read from."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["column_fault", "matching_columns"]


def matching_columns(present: Sequence[str], declared: str, source_name: str | None) -> list[int]:
    """The places of the source's columns that a declared column may mean: one of them when all is well.

    A `source_name` means the column of exactly that name where there is one, so that it can choose between names that
    differ only in case. Otherwise case and spaces around a name do not matter, as in SQL.
    """
    if source_name is not None:
        exact = [place for place, name in enumerate(present) if name == source_name]
        if exact:
            return exact
    folded = (declared if source_name is None else source_name).strip().lower()
    return [place for place, name in enumerate(present) if name.strip().lower() == folded]


def column_fault(places: Sequence[int]) -> str | None:
    """The code of the finding unless there is exactly one column."""
    if len(places) == 1:
        return None
    return "duplicate_columns" if places else "column_missing"
