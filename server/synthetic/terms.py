"""What a synthetic table is asked for with, and what follows from that: values, without the transport."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction

from accountant.account import Account
from mechanisms.synthetic.price import Synthesis
from privacy.binned import BinnedColumn
from privacy.numbers import decimal_text
from privacy.policy import Column, Dataset, Table
from privacy.values import Json
from server.resources.offer import Offer

__all__ = ["ColumnWish", "MakeSynthetic", "Planned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnWish:
    """A column that the table is to have. `bins`, and bounds that are public knowledge, are for numbers and dates."""

    name: str
    bins: int | None = None
    low: Fraction | None = None
    high: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeSynthetic:
    """A synthetic table to make of a table's rows; without `columns` with every column that can have places."""

    principal: str
    dataset: str
    table: str
    name: str
    columns: tuple[ColumnWish, ...] | None
    epsilon: Fraction
    rows_per_unit: int | None
    account: str | None
    idempotency_key: str | None = None
    body_hash: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A synthetic table that may be made: its columns, its price, and who pays.

    `left_out` are columns that were not asked for and cannot have places, with the reason.
    """

    request: MakeSynthetic
    dataset: Dataset
    table: Table
    columns: tuple[Column, ...]
    binned: tuple[BinnedColumn, ...]
    left_out: tuple[tuple[str, str], ...]
    synthesis: Synthesis
    path: tuple[Account, ...]

    @property
    def offer(self) -> Offer:
        """Its charge: one event, for every measurement."""
        return Offer(dataset=self.dataset, path=self.path, events=(self.synthesis.event(),), noise="gaussian")

    @property
    def terms(self) -> str:
        """What was asked for, as it is stored and shown."""
        return json.dumps(self.shown())

    def shown(self) -> dict[str, Json]:
        """The same, as an object."""
        return {
            "table": self.table.name,
            "epsilon": decimal_text(self.request.epsilon),
            "rows_per_unit": self.synthesis.rows,
            "columns": [column.name for column in self.columns],
            "left_out": [{"name": name, "why": why} for name, why in self.left_out],
        }
