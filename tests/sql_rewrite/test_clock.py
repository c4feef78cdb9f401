"""CURRENT_DATE and NOW(): constants of the moment at which a question began, in its plan and in its identity."""

from __future__ import annotations

import datetime

import pytest

from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.expressions import Expression, Literal, walk
from sql_rewrite.lift import lift
from sql_rewrite.lift_clock import CLOCKS, started
from sql_rewrite.plan_key import core_key
from tests.sql_rewrite.datasets import CLINIC

NOW = datetime.datetime(2026, 2, 28, 23, 59, 59, 123_456, tzinfo=datetime.UTC)
MIDNIGHT = datetime.datetime(2026, 2, 28)
SPELLED = ("CURRENT_DATE", "today()", "now()", "CURRENT_TIMESTAMP", "get_current_timestamp()", "LOCALTIMESTAMP")


def where(sql: str, moment: datetime.datetime | None) -> Expression:
    """The condition of a text's only core."""
    (core,) = lift(sql, CLINIC, started=moment).cores
    assert core.where is not None
    return core.where


def constants(condition: Expression) -> list[object]:
    """The dates and timestamps of a condition."""
    values = [part.value for part in walk(condition) if isinstance(part, Literal)]
    return [value for value in values if isinstance(value, datetime.date)]


@pytest.mark.parametrize("spelled", SPELLED)
def test_a_clock_says_when_the_question_began(spelled: str) -> None:
    """Days are days and times whole seconds, and the plan holds them as constants."""
    sql = f"SELECT COUNT(*) FROM people WHERE born < {spelled}"
    moment = started(sql, NOW)
    assert moment is not None
    day = CLOCKS[spelled.lower().removesuffix("()")].value == "date"
    assert moment == (MIDNIGHT if day else NOW.replace(microsecond=0, tzinfo=None))
    assert constants(where(sql, moment)) == [moment.date() if day else moment]


def test_texts_without_a_clock_do_not_know_the_time() -> None:
    """Their plans are kept, and serve, on every day."""
    assert started("SELECT COUNT(*) AS snow FROM people WHERE born < DATE '2020-01-01'", NOW) is None


@pytest.mark.parametrize("spelled", SPELLED)
def test_a_clock_is_refused_where_nobody_says_the_time(spelled: str) -> None:
    """The engine's own clock is never asked."""
    with pytest.raises(Refused) as refused:
        lift(f"SELECT COUNT(*) FROM people WHERE born < {spelled}", CLINIC)
    assert {finding.code for finding in refused.value.findings} == {"volatile_function"}


def test_a_release_of_yesterday_is_not_one_of_today() -> None:
    """The identity of a release differs from day to day, and is the same all day."""
    sql = "SELECT COUNT(*) FROM people WHERE born > CURRENT_DATE - INTERVAL 18 YEAR"

    def key(now: datetime.datetime) -> str:
        (core,) = bound(lift(sql, CLINIC, started=started(sql, now)))
        return core_key(core, CLINIC)

    assert key(NOW) == key(NOW.replace(hour=0)) != key(NOW + datetime.timedelta(seconds=1))


def test_what_is_computed_from_the_clock_is_a_constant() -> None:
    """CURRENT_DATE - INTERVAL 1 MONTH is one moment, which bounds and public keys see, the last day too."""
    sql = "SELECT COUNT(*) FROM people WHERE born BETWEEN CURRENT_DATE - INTERVAL 1 MONTH AND CURRENT_DATE - 1"
    assert constants(where(sql, MIDNIGHT)) == [datetime.datetime(2026, 1, 28), datetime.date(2026, 2, 28)]
