"""The error of one cell of an answer: its interval and where that comes from, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

__all__ = ["CellError", "Errors", "Identity", "IntervalMethod", "NoInterval", "Way", "finite_number", "none"]


class IntervalMethod(StrEnum):
    """Where an interval comes from (docs/api.md). The values are sent and stored."""

    NOISE = "noise"
    SIMULTANEOUS = "simultaneous"
    MAPPED = "mapped"
    LINEAR = "linear"
    BOUNDS = "bounds"
    EXACT = "exact"
    SIMULATED = "simulated"


class NoInterval(StrEnum):
    """Why a cell has no interval: the codes of `interval_reasons`, and what each says."""

    said: str

    def __new__(cls, code: str, said: str) -> NoInterval:
        """A code with its sentence."""
        member = str.__new__(cls, code)
        member._value_, member.said = code, said
        return member

    GROUPS_NOT_SHOWN = (
        "groups_not_shown",
        "It is computed over groups of which only those above a threshold are shown; how many others there are, "
        "and their numbers, are not known.",
    )
    CHOSEN_BY_NOISE = (
        "chosen_by_noise",
        "It is computed over rows that noisy numbers chose (a condition on them, LIMIT, or a rank), and others "
        "might have been the right ones.",
    )
    NOT_LINEAR = (
        "not_linear",
        "Noise moves it to one side (an absolute value, a square, a spread of noisy numbers), by how much is not "
        "known.",
    )
    NO_ROW_IDENTITY = (
        "no_row_identity",
        "Rows that are merged (DISTINCT, UNION, INTERSECT, EXCEPT, groups made of noisy numbers) cannot be "
        "followed through the noise.",
    )
    NOT_FOLLOWED = (
        "not_followed",
        "The query has a part through which noise is not followed (EXISTS, IN with a query, a RIGHT or FULL JOIN).",
    )
    NOT_A_NUMBER = "not_a_number", "Only numbers have an interval."
    TOO_FEW_DRAWS = "too_few_draws", "A simulation as long as an answer may take does not reach this confidence."
    TOO_MANY_CELLS = "too_many_cells", "There are more cells than a simulation may have."
    UNDEFINED = "undefined", "Its value is undefined for some of the numbers that the noise leaves possible."
    GIVEN_SHOWN = (
        "given_shown",
        "It is computed from the count by which its group was selected, in a way through which that choice is not "
        "followed.",
    )
    CELLS_NOT_KNOWN = (
        "cells_not_known",
        "Noisy numbers choose the rows, so intervals hold for all groups at once, and how many groups are shown is not "
        "known before the answer.",
    )
    BOUNDS_NOT_CHOSEN = (
        "bounds_not_chosen",
        "The question itself chooses the value bounds of a column, and the width of the noise follows from them.",
    )
    NORM_NOT_CHOSEN = (
        "norm_not_chosen",
        "The question itself chooses the norm to which units are scaled, and the width of the noise follows from it.",
    )
    STORED_WITHOUT_SUMS = (
        "stored_without_sums",
        "The stored release is of a version that did not keep what the interval needs.",
    )


Identity = tuple[object, ...]
"""The hidden columns of an answer's row, which name the rows of released tables that it comes from."""


@dataclass(frozen=True, slots=True)
class CellError:
    """Standard error and interval of a cell; `method` says where they come from, `reason` why there is no interval."""

    error: float | None = None
    low: float | int | None = None
    high: float | int | None = None
    method: IntervalMethod | None = None
    reason: NoInterval | None = None


Errors = list[list[CellError]]
"""Errors of an answer, row by row."""

Way = Callable[[int, Identity], CellError]
"""What gives the errors of a column: of the cell in that column of the row of that identity."""


def none(reason: NoInterval) -> Way:
    """No interval in any cell."""
    return lambda _place, _identity: CellError(reason=reason)


def finite_number(value: object) -> int | float | None:
    """A finite number as int or float, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value if math.isfinite(value) else None
