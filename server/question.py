"""A question as it leaves HTTP: checked values, exact amounts, nothing of the transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

__all__ = ["Question", "QuestionParameter"]

QuestionParameter = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What an analyst asks, and what it may cost or how exact it shall be (at most one of the two).

    `body_hash` is the SHA-256 (hex) of the request in canonical form without `wait_ms`.
    """

    principal: str
    dataset: str
    sql: str = field(repr=False)
    parameters: Mapping[str, QuestionParameter] = field(repr=False)
    epsilon: Fraction | None
    half_width: Fraction | None
    confidence: Fraction
    reuse: Literal["any", "own", "none"] | None
    max_staleness_s: int | None
    account: str | None
    idempotency_key: str | None
    body_hash: str

    def __post_init__(self) -> None:
        assert self.epsilon is None or self.half_width is None, "one price, asked for in one way"
