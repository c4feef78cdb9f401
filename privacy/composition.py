"""The loss of many events: the one rule by which it adds up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from privacy.loss import ZERO_LOSS, Loss

__all__ = ["compose"]


class _Costing(Protocol):
    """Whatever has a loss: every event."""

    def loss(self) -> Loss: ...


def compose(events: Sequence[_Costing]) -> Loss:
    """The loss of running all events, in any order and chosen adaptively.

    A sequence, not an iterator: an iterator would call back into the caller's package.
    """
    total = ZERO_LOSS
    for event in events:
        total = total + event.loss()
    return total
