"""What a model is fitted to and how, as it is asked for and as it is kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction

from mechanisms.private_descent import Method

__all__ = ["HELD_OUT_MAX", "TrainModel", "model_terms"]

HELD_OUT_MAX = Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainModel:
    """A model that is to be fitted.

    One of `epsilon`, a part of the paying account, and `own_epsilon`, what the model promises by itself. `held_out` is
    the part of the units that it is tested on. `clip` is the norm to which rows (or gradients) of a unit are held, as a
    part of the greatest norm that declarations allow a row.
    """

    principal: str
    dataset: str
    sql: str = field(repr=False)
    method: Method
    iterations: int
    held_out: Fraction
    clip: Fraction
    epsilon: Fraction | None
    own_epsilon: Fraction | None
    confidence: Fraction
    account: str | None
    idempotency_key: str | None
    body_hash: str

    def __post_init__(self) -> None:
        assert (self.epsilon is None) != (self.own_epsilon is None), "one price, asked for in one way"
        assert 0 <= self.held_out <= HELD_OUT_MAX
        assert 0 < self.clip <= 1


def model_terms(request: TrainModel) -> str:
    """What is kept of a request: nothing of its text."""
    return json.dumps(
        {
            "method": request.method.value,
            "iterations": request.iterations if request.method.logistic else 1,
            "held_out": float(request.held_out),
        }
    )
