"""When tiles are due, and until when an envelope lasts: pure functions."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest

from server.dashboards.projection import Rate, exhausted_on, versions_per_day
from server.dashboards.schedule import EACH_VERSION, Due, Schedule, due_of, read_schedule

MONDAY = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)
WEEKDAYS = Schedule((360, 1_080), (0, 1, 2, 3, 4))


def at(day: int, hour: int, minute: int = 0) -> datetime.datetime:
    """A moment of that week; day 0 is Monday."""
    return MONDAY + datetime.timedelta(days=day, hours=hour, minutes=minute)


@pytest.mark.parametrize(
    ("now", "latest", "coming"),
    [
        (at(0, 5, 59), at(-3, 18), at(0, 6)),
        (at(0, 6), at(0, 6), at(0, 18)),
        (at(4, 23), at(4, 18), at(7, 6)),
        (at(6, 12), at(4, 18), at(7, 6)),
    ],
)
def test_moments_around_a_moment(now: datetime.datetime, latest: datetime.datetime, coming: datetime.datetime) -> None:
    """The latest moment that has come and the next one, across nights and weekends."""
    assert (WEEKDAYS.latest(now), WEEKDAYS.next(now)) == (latest, coming)


def test_one_day_of_the_week() -> None:
    """A week away on both sides, and not further."""
    sunday = Schedule((0,), (6,))
    assert (sunday.latest(at(6, 0)), sunday.next(at(6, 0))) == (at(6, 0), at(13, 0))
    assert (sunday.per_day, WEEKDAYS.per_day) == (1 / 7, 10 / 7)
    assert EACH_VERSION.latest(MONDAY) is EACH_VERSION.next(MONDAY) is None


@pytest.mark.parametrize("schedule", [WEEKDAYS, EACH_VERSION, Schedule((0, 1_439))])
def test_a_schedule_is_read_back(schedule: Schedule) -> None:
    """What is stored is the schedule."""
    assert read_schedule(schedule.text()) == schedule


@pytest.mark.parametrize(
    ("schedule", "values", "due"),
    [
        (WEEKDAYS, {"handled": "2026-03-02T05:00:00Z"}, Due("at 2026-03-02T06:00:00Z", "2026-03-02T06:00:00Z")),
        (WEEKDAYS, {"handled": "2026-03-02T06:00:00Z"}, None),
        (WEEKDAYS, {"handled": "2026-03-09T06:00:00Z"}, None),
        (WEEKDAYS, {"handled": "2020-01-01T00:00:00Z"}, Due("at 2026-03-02T06:00:00Z", "2026-03-02T06:00:00Z")),
        (WEEKDAYS, {"handled": "2026-03-02T06:00:00Z", "wanted": "T"}, Due("asked T", "T")),
        (EACH_VERSION, {"handled_version": "1:b"}, None),
        (EACH_VERSION, {"handled_version": "1:a"}, Due("version 1:b", "2026-03-02T12:00:00Z")),
    ],
)
def test_what_is_due(schedule: Schedule, values: dict[str, str], due: Due | None) -> None:
    """The latest moment after the handled one, the version that was not handled, and what was asked for first."""
    facts = {"wanted": None, "handled": "", "handled_version": None, "version": "1:b", **values}
    assert due_of(schedule, now=at(0, 12), **facts) == due  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rates", "remaining", "days"),
    [
        ([("0.5", "1")], "1.5", 3),
        ([("0.5", "1")], "0.4", 0),
        ([("0.5", "1/7")], "1", 8),
        ([("0.5", "1"), ("0.1", "2")], "2", 3),
        ([("0.5", "0")], "0.1", None),
        ([], "1", None),
        ([("0.000001", "0.01")], "10", None),
    ],
)
def test_until_when_an_envelope_lasts(rates: list[tuple[str, str]], remaining: str, days: int | None) -> None:
    """No refresh before that day is refused at these rates; where one is refused already it is today."""
    today = MONDAY.date()
    known = [Rate(Fraction(cost), Fraction(per_day)) for cost, per_day in rates]
    found = exhausted_on(known, Fraction(remaining), today)
    assert found == (None if days is None else today + datetime.timedelta(days=days))


def test_how_often_data_come() -> None:
    """The first version, and those of long ago, are no refreshes."""
    attached = [MONDAY - datetime.timedelta(days=days) for days in (90, 40, 29, 10, 0)]
    assert versions_per_day(attached, MONDAY) == Fraction(3, 30)
    assert versions_per_day(attached[-1:], MONDAY) == 0
