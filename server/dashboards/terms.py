"""What a dashboard is made of, as it leaves HTTP: checked values, nothing of the transport."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from privacy.bounds import AskedContribution
from server.dashboards.schedule import Schedule

__all__ = ["Envelope", "MakeDashboard", "TileText", "TileWish"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TileText:
    """What a tile asks, and what each refresh may cost: what of it is another tile's, once it changes."""

    sql: str = field(repr=False)
    epsilon: Fraction | None
    own_epsilon: Fraction | None
    contribution: AskedContribution | None

    def stored(self) -> dict[str, object]:
        """As JSON."""
        return {
            "sql": self.sql,
            "epsilon": _text(self.epsilon),
            "own_epsilon": _text(self.own_epsilon),
            "contribution": None if self.contribution is None else asdict(self.contribution),
        }

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> TileText:
        """What `stored` wrote."""
        bounds = stored["contribution"]
        return cls(
            sql=stored["sql"],
            epsilon=_amount(stored["epsilon"]),
            own_epsilon=_amount(stored["own_epsilon"]),
            contribution=None if bounds is None else AskedContribution(**bounds),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TileWish:
    """One tile."""

    name: str
    title: str = field(repr=False)
    text: TileText
    schedule: Schedule

    def sealed(self) -> bytes:
        """What is encrypted of it."""
        return json.dumps({"title": self.title, **self.text.stored()}, sort_keys=True).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The limit of a dashboard's own account. Without `delta` that of the account above it."""

    epsilon: Fraction
    delta: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeDashboard:
    """A dashboard to make, or what one shall be from now on."""

    principal: str
    dataset: str
    title: str = field(repr=False)
    envelope: Envelope
    tiles: Sequence[TileWish]
    readers: Sequence[str]


def _amount(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)


def _text(amount: Fraction | None) -> str | None:
    return None if amount is None else str(amount)
