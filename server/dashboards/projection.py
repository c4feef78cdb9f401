"""The day on which a dashboard's envelope will not cover a refresh, if data go on coming as they did."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Rate", "exhausted_on", "versions_per_day"]

_DAYS = 30
_FAR = 3_650


@dataclass(frozen=True, slots=True)
class Rate:
    """How often a tile is refreshed at a price: epsilon of the envelope for each, and charged refreshes in a day."""

    cost: Fraction
    per_day: Fraction


def versions_per_day(attached: Iterable[datetime.datetime], now: datetime.datetime) -> Fraction:
    """How many versions of the data came in a day, over the last 30 days. The first one is no refresh."""
    later = sorted(attached)[1:]
    return Fraction(sum(now - datetime.timedelta(days=_DAYS) < one <= now for one in later), _DAYS)


def exhausted_on(rates: Iterable[Rate], remaining: Fraction, today: datetime.date) -> datetime.date | None:
    """The first day on which a refresh may not be covered; today where one is not covered already.

    None where nothing is charged at these rates, or for ten years.
    """
    known = [rate for rate in rates if rate.cost > 0 and rate.per_day > 0]
    if not known:
        return None
    spare = remaining - max(rate.cost for rate in known)
    if spare < 0:
        return today
    days = spare // sum(rate.cost * rate.per_day for rate in known) + 1
    return None if days > _FAR else today + datetime.timedelta(days=int(days))
