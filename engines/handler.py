"""What a worker asks of its handler, and the one error of a handler that may be distinguished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from engines.frames import Frame
from privacy.values import Json

__all__ = ["Answer", "Handler", "Invalid"]

Answer = tuple[Mapping[str, Json], Sequence[bytes]]
"""Header and buffers of an answer."""


class Invalid(Exception):
    """The request's SQL does not bind. Known from names and types alone, so it may be distinguished from a failure."""


class Handler(Protocol):
    """One kind of worker: answers requests, then tidies up while nothing waits."""

    def handle(self, frame: Frame) -> Answer:
        """Answers a request."""
        ...

    def between(self) -> None:
        """Work that may be done after the answer was sent."""
        ...
