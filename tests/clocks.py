"""The one clock that tests move, instead of waiting for the machine's."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Clock"]

Moment = TypeVar("Moment", float, datetime.datetime)


@dataclass
class Clock(Generic[Moment]):
    """A clock that stands until it is moved: seconds where code measures, dates where it stores them."""

    now: Moment

    def __call__(self) -> Moment:
        """The moment at which it stands."""
        return self.now
