"""What documents and the cells of tables hold, as types: for values that are read before their meaning is known."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal

__all__ = ["Cell", "Json"]

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""A JSON document. Lists and objects are read-only here, so that narrower ones are documents too."""

Cell = None | bool | int | float | str | datetime.date | datetime.datetime | Decimal
"""A value of a column, None for NULL."""
