"""What a stream was opened with, what is asked of it, and what it answers: values, without the transport."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from fractions import Fraction

from mechanisms.streams.asking import Found
from mechanisms.streams.price import StreamNoise
from privacy.bounds import AskedContribution
from privacy.events.event import fraction_from_text, fraction_to_text
from sql_rewrite.stream_text import StreamColumn

__all__ = ["AskStream", "Given", "OpenStream", "Terms", "Told", "Within"]

Given = str | int | bool | None
"""The value of a key, as JSON has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStream:
    """A stream to open: of the cells that a text counts, or else of those of some columns of a table.

    `epsilon` is what all of it promises together: cells, comparisons and updates.
    """

    principal: str
    dataset: str
    sql: str | None = field(default=None, repr=False)
    table: str | None = None
    columns: tuple[StreamColumn, ...] = field(default=(), repr=False)
    epsilon: Fraction
    updates: int
    queries: int
    tolerance: Fraction | None
    account: str | None
    contribution: AskedContribution | None = None
    shared: bool = False
    """Whether others of the dataset may ask it."""

    administers: bool = False
    """Whether an administrator opens it, who pays for others from accounts that are nobody's own."""

    idempotency_key: str | None = None
    body_hash: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """That a key is between two values, both included, or one of some values."""

    key: str
    low: Given = field(default=None, repr=False)
    high: Given = field(default=None, repr=False)
    values: tuple[Given, ...] | None = field(default=None, repr=False)


AskStream = tuple[tuple[Within, ...], ...]
"""Queries: each asks for the cells that satisfy all of its conditions; one without conditions for all cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for all queries of a stream, as its owner and overseers may read it.

    `tolerance` is in steps of the cells. `restores`: how often the ledger had been restored when the stream was opened:
    a state from before a restore may have forgotten updates.
    """

    epsilon: Fraction
    queries: int
    tolerance: int
    step: Fraction
    cells: int
    noise: StreamNoise
    restores: int
    contribution: AskedContribution | None = None

    @property
    def within(self) -> float:
        """With a chance of 95 % every answer that passed a comparison is off by at most this, in the unit of sums."""
        return self.noise.within(tolerance=self.tolerance, beta=0.05) * float(self.step)

    @property
    def of_updates(self) -> float:
        """With a chance of 95 % the answer that one update measures is off by at most this."""
        return self.noise.of_one_update(beta=0.05) * float(self.step)

    @property
    def wrong_updates(self) -> float:
        """Updates that all queries would use up on average if the synopsis had no error at all."""
        return self.noise.wrong_updates(tolerance=self.tolerance, queries=self.queries)

    def to_json(self) -> str:
        """As it is stored: fractions are exact texts."""
        return json.dumps(_plain(asdict(self)))

    @classmethod
    def from_json(cls, text: str) -> Terms:
        """Reads `to_json` back."""
        plain = json.loads(text)
        noise = dict(plain["noise"])
        updates = int(noise.pop("updates"))
        scales = {name: fraction_from_text(value) for name, value in noise.items()}
        bounds = plain["contribution"]
        return cls(
            epsilon=fraction_from_text(plain["epsilon"]),
            queries=plain["queries"],
            tolerance=plain["tolerance"],
            step=fraction_from_text(plain["step"]),
            cells=plain["cells"],
            noise=StreamNoise(updates=updates, **scales),
            restores=plain["restores"],
            contribution=None if bounds is None else AskedContribution(**bounds),
        )


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return fraction_to_text(value) if isinstance(value, Fraction) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The answer to one query. `repeated`: it was given before, for the same version of the data."""

    found: Found
    value: int
    standard_error: float | None
    version: str
    repeated: bool
