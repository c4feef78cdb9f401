"""What is asked of a registered statistic."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["AskStatistic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskStatistic:
    """A question for a statistic by its name.

    `width` is the proposal: by how much one unit moves it at most, in the unit of its column; None for a most frequent
    value, of which nothing is proposed. One of `epsilon`, a part of the paying account, and `own_epsilon`, what the
    answer promises by itself. `trusted` says that the caller is an owner or an administrator.
    """

    principal: str
    trusted: bool
    dataset: str
    statistic: str
    width: Fraction | None
    epsilon: Fraction | None
    own_epsilon: Fraction | None
    confidence: Fraction
    account: str | None
    idempotency_key: str | None
    body_hash: str

    def __post_init__(self) -> None:
        assert (self.epsilon is None) != (self.own_epsilon is None), "one price, asked for in one way"
        assert self.width is None or self.width > 0
