"""The privacy unit and the neighbouring relation."""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["Neighbouring", "PrivacyUnit"]


class Neighbouring(enum.Enum):
    """Which two databases must look alike. Losses under different relations are never added."""

    ADD_REMOVE = "add_remove"
    """One database has one privacy unit more, with all its rows in all protected tables."""

    REPLACE_ONE = "replace_one"
    """One privacy unit has other rows. Carried as a word; nothing is calibrated to it yet."""


@dataclass(frozen=True, slots=True)
class PrivacyUnit:
    """Whose presence is protected: the rows of `table` are the units, `key` names them.

    Without a `key` each row of `table` is a unit of its own: nothing in the data says which rows belong together.
    """

    table: str
    key: str | None
