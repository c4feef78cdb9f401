"""When a tile is refreshed: at times of the day (UTC), or once for each version of the data. Pure functions.

A refresh is due when the latest moment of the schedule that has come lies after the last one that was handled. Moments
that passed while no server ran are made up for by one refresh, the latest. A clock that is set back makes nothing due,
since the last handled moment is then ahead of it; one that is set forward makes one refresh due early, and that moment
is not due a second time (`refreshing.py` says what a clock that was ahead for long does).
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass

__all__ = ["DAYS", "EACH_VERSION", "Due", "Schedule", "due_of", "read_schedule"]

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Times of the day as minutes after midnight, in order, and the days of the week, 0 to 6; no times stand for each
    version of the data."""

    minutes: tuple[int, ...] = ()
    days: tuple[int, ...] = tuple(range(7))

    def __post_init__(self) -> None:
        assert all(0 <= minute < 24 * 60 for minute in self.minutes)
        assert list(self.minutes) == sorted(set(self.minutes))
        assert self.days == tuple(sorted(set(self.days)))
        assert set(self.days) <= set(range(7))
        assert self.days

    @property
    def each_version(self) -> bool:
        """Whether it follows versions of the data."""
        return not self.minutes

    @property
    def per_day(self) -> float:
        """How many moments a day has, on average over a week; 0 where it follows versions."""
        return len(self.minutes) * len(self.days) / 7

    def latest(self, now: datetime.datetime) -> datetime.datetime | None:
        """The latest moment that is not after `now`; None where it follows versions."""
        return max((one for one in self._near(now, -1) if one <= now), default=None)

    def next(self, now: datetime.datetime) -> datetime.datetime | None:
        """The first moment after `now`; None where it follows versions."""
        return min((one for one in self._near(now, 1) if one > now), default=None)

    def text(self) -> str:
        """As it is stored."""
        return json.dumps({"days": list(self.days), "minutes": list(self.minutes)})

    def body(self) -> dict[str, object]:
        """As it is asked for and shown."""
        if self.each_version:
            return {"each": "data_version"}
        days = {} if len(self.days) == 7 else {"days": [DAYS[day] for day in self.days]}
        return {"times": [f"{minute // 60:02}:{minute % 60:02}" for minute in self.minutes], **days}

    def _near(self, now: datetime.datetime, side: int) -> list[datetime.datetime]:
        """The moments of the eight days that begin or end with this one."""
        midnight = now.astimezone(datetime.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        found = []
        for step in range(8):
            day = midnight + side * datetime.timedelta(days=step)
            if day.weekday() in self.days:
                found += [day + datetime.timedelta(minutes=minute) for minute in self.minutes]
        return found


EACH_VERSION = Schedule()


def read_schedule(text: str) -> Schedule:
    """A schedule as `Schedule.text` wrote it."""
    stored = json.loads(text)
    return Schedule(tuple(stored["minutes"]), tuple(stored["days"]))


@dataclass(frozen=True, slots=True)
class Due:
    """A refresh that is due: its key, the same in every process and after every crash, and its moment."""

    key: str
    at: str


def due_of(
    schedule: Schedule,
    *,
    now: datetime.datetime,
    wanted: str | None,
    handled: str,
    handled_version: str | None,
    version: str,
) -> Due | None:
    """The refresh that is due at a moment, None where there is none.

    `wanted` is the moment at which somebody asked for one, `handled` the last moment that was handled, `version` the
    version of the data that is served. Moments are texts in UTC to the second.
    """
    if wanted is not None:
        return Due(f"asked {wanted}", wanted)
    if schedule.each_version:
        return None if version == handled_version else Due(f"version {version}", _text(now))
    latest = schedule.latest(now)
    if latest is None or _text(latest) <= handled:
        return None
    return Due(f"at {_text(latest)}", _text(latest))


def _text(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
