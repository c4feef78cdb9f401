"""Differences of moments: compared with intervals and read as numbers, as the engine does; refusals."""

from __future__ import annotations

import datetime
import random

import duckdb
import pytest

from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import Expression
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import core_key
from tests.battery.worlds import WORLDS
from tests.sql_rewrite.datasets import CLINIC

EPOCH = datetime.datetime(2020, 1, 1)


def condition(text: str) -> Expression:
    """What a condition on people means."""
    (core,) = lift(f"SELECT COUNT(*) FROM people WHERE {text}", CLINIC).cores
    assert core.where is not None
    return core.where


def moments(seed: int, *, clock: bool) -> list[datetime.datetime]:
    """Days around a few ends of months and years, some with a time of the day."""
    r = random.Random(seed)
    days = [
        EPOCH + datetime.timedelta(days=r.choice([0, 29, 30, 31, 58, 59, 60, 365, 366, 6574, 6575])) for _ in "abcd"
    ]
    days += [EPOCH - datetime.timedelta(days=r.randrange(7000)) for _ in "abcd"]
    return [day + datetime.timedelta(seconds=r.choice([0, 1, 86_399]) if clock else 0) for day in days]


@pytest.mark.sparse(5)
@pytest.mark.parametrize(
    "interval", ["30 DAY", "1 MONTH", "'1 month 2 days'", "18 YEAR", "-1 MONTH", "0 DAY", "36 HOUR"]
)
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "=", "<>"])
def test_a_difference_is_compared_as_the_engine_compares_it(operator: str, interval: str) -> None:
    """Shows it of timestamps and of AGE of dates, months of other lengths than 30 days included."""
    number, _, unit = interval.partition(" ")
    span = f"INTERVAL {interval}" if not number.startswith("-") else f"-INTERVAL {number[1:]} {unit}"
    with duckdb.connect() as connection:
        for form, clock in (("CAST(born AS TIMESTAMP) - TIMESTAMP '{}'", True), ("AGE(born, DATE '{}')", False)):
            if not clock and "HOUR" in interval:
                continue
            for base in moments(len(interval), clock=clock)[:4]:
                text = f"{form.format(base if clock else base.date())} {operator} {span}"
                meant = condition(text)
                for born in {moment.date() for moment in moments(7, clock=False)}:
                    asked = text.replace("born", f"DATE '{born}'")
                    (theirs,) = connection.execute(f"SELECT {asked}").fetchall()[0]
                    assert evaluate(meant, {("r0", "born"): born}) is theirs, asked


@pytest.mark.sparse(3)
@pytest.mark.parametrize("part", ["epoch", "day", "hour", "minute", "second"])
def test_parts_of_a_difference_are_the_engines(part: str) -> None:
    """Shows it of both signs."""
    with duckdb.connect() as connection:
        for base in moments(3, clock=True):
            for born in [moment.date() for moment in moments(5, clock=False)]:
                call = f"EXTRACT({part} FROM CAST(born AS TIMESTAMP) - TIMESTAMP '{base}')"
                (theirs,) = connection.execute(f"SELECT {call.replace('born', f'''DATE '{born}' ''')}").fetchall()[0]
                meant = condition(f"{call} = {theirs}" if theirs >= 0 else f"{call} = -({-theirs})")
                assert evaluate(meant, {("r0", "born"): born}) is True


def test_several_spellings_are_one_question() -> None:
    """Shows both sides of a comparison, brackets, and BETWEEN as two comparisons."""
    later = "CAST(born AS TIMESTAMP) - TIMESTAMP '2020-01-01 10:00:00'"
    assert condition(f"{later} > INTERVAL 3 DAY") == condition(f"INTERVAL 3 DAY < ({later})")
    assert condition(f"{later} BETWEEN INTERVAL 1 DAY AND INTERVAL 9 DAY") == condition(
        f"{later} >= INTERVAL 1 DAY AND {later} <= INTERVAL 9 DAY"
    )


@pytest.mark.parametrize(
    ("text", "code", "advice"),
    [
        ("SUM(CAST(born AS TIMESTAMP) - TIMESTAMP '2020-01-01')", "unsupported_type", "epoch(a - b) / 86400"),
        ("COUNT_IF(AGE(CAST(born AS TIMESTAMP), born) > INTERVAL 1 DAY)", "unsupported_type", "AGE(CAST(a AS DATE)"),
        ("COUNT_IF(AGE(born, DATE '2020-01-01') > INTERVAL 1 HOUR)", "unsupported_type", "AGE(CAST(a AS DATE)"),
        (
            "COUNT_IF(EXTRACT(month FROM CAST(born AS TIMESTAMP) - TIMESTAMP '2020-01-01') > 1)",
            "unsupported_function", "EXTRACT(year FROM AGE(a, b))",
        ),
    ],
)  # fmt: skip
def test_others_are_refused(text: str, code: str, advice: str) -> None:
    """Shows intervals as values, clocks beside AGE, and parts that a difference of timestamps has not."""
    with pytest.raises(Refused) as refused:
        lift(f"SELECT {text} FROM people", CLINIC)
    finding = refused.value.findings[0]
    assert (finding.code, advice in "; ".join(finding.instead)) == (code, True)


def test_a_mean_of_intervals_is_that_of_their_seconds() -> None:
    """Shows that it is one release with the mean of seconds, and that a column of intervals is their difference."""
    away = "moment - TIMESTAMP '2020-01-01'"
    there = "WHERE moment > '2020-01-01' AND moment < '2021-01-01'"
    texts = (
        f"SELECT AVG({away}) FROM readings {there}",
        f"SELECT AVG(epoch({away})) FROM readings {there}",
        f"WITH r(moment, x) AS (SELECT moment, {away} FROM readings), s AS (SELECT * FROM r) "
        f"SELECT AVG(t.x) FROM s AS t {there}",
    )
    sensors = WORLDS["sensors"]
    assert len({core_key(one, sensors) for text in texts for one in bound(lift(text, sensors))}) == 1


def test_an_interval_is_named_in_the_refusal_of_what_it_cannot_be() -> None:
    """Shows the column's own name, and a number of it that can be written."""
    text = "SELECT {} FROM (SELECT CAST(born AS TIMESTAMP) - TIMESTAMP '2020-01-01' AS x FROM people) AS t"
    with pytest.raises(Refused) as refused:
        lift(text.format("COUNT_IF(x > 3)"), CLINIC)
    (finding,) = refused.value.findings
    assert (finding.code, finding.what) == ("unsupported_type", 'column "x" is refused here')
    assert finding.instead == ("write epoch(x), which are its seconds",)
    assert lift(text.format("COUNT_IF(epoch(x) > 3)"), CLINIC)
