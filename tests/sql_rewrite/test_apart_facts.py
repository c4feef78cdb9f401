"""What comparisons say of differences: true of every row, and used where a difference is summed in any spelling."""

from __future__ import annotations

import datetime
import random
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from privacy.bounds import ValueBounds, number_of_date
from privacy.policy import ColumnType
from sql_rewrite import apart_facts, known_ranges
from sql_rewrite.automatic_bounds import bound_with, unbounded_columns
from sql_rewrite.bound import bound
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import ColumnRef, Expression, Interval, Literal, Value, canonical, interval_of
from sql_rewrite.functions import build
from sql_rewrite.known_ranges import NOTHING, Reader, State, Subjects
from sql_rewrite.lift import lift
from tests.battery.worlds import WORLDS
from tests.sql_rewrite.datasets import CLINIC, clinic
from tests.sql_rewrite.test_narrowed_values import HOLDS

T = ColumnType
OPEN = clinic(automatic_bounds=True)
X, Y, Z = ColumnRef("t", "x", T.INTEGER), ColumnRef("t", "y", T.INTEGER), ColumnRef("t", "z", T.NUMBER)
D, E = ColumnRef("t", "d", T.DATE), ColumnRef("t", "e", T.DATE)
M, N = ColumnRef("t", "m", T.TIMESTAMP), ColumnRef("t", "n", T.TIMESTAMP)
FIRST = datetime.datetime(2024, 1, 28)
DAYS: list[Value] = [None, *((FIRST + datetime.timedelta(days=n)).date() for n in (0, 1, 2, 3, 31, 32, 60, 400))]
HOURS: list[Value] = [None, *(FIRST + datetime.timedelta(hours=n) for n in (0, 5, 24, 30, 800, 9_000))]
SMALL: list[Value] = [None, *range(-3, 4), 2**62, -(2**62)]
VALUES = {X: SMALL, Y: SMALL, Z: [None, -1.5, 0.0, 0.5, 2.0, 1e300, -1e300], D: DAYS, E: DAYS, M: HOURS, N: HOURS}
_MOVED, _CLOCK = apart_facts._moved, apart_facts._moved_clock
ENDS: list[Value] = [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]


def word(unit: str) -> Literal:
    """A unit of time."""
    return Literal(unit, T.TEXT)


def differences() -> list[Expression]:
    """Every pair of one kind, in both orders, by every function."""
    found: list[Expression] = []
    for one, other in ((X, Y), (Y, X), (X, Z), (Z, X), (D, E), (E, D)):
        found.append(build("subtract", (one, other)))
    for one, other in ((D, E), (E, D), (M, N), (N, M), (D, M), (M, D)):
        for name, units in (("date_diff", "day month year week"), ("date_sub", "day month"), ("age_part", "year")):
            found += [build(name, (word(unit), one, other)) for unit in units.split()]
    for one, other in ((M, N), (N, M), (D, M), (M, D)):
        found.append(build("subtract", (build("epoch", (one,)), build("epoch", (other,)))))
        for name in ("date_diff", "date_sub"):
            found += [build(name, (word(unit), one, other)) for unit in ("hour", "minute", "second")]
    return found


def moved(rng: random.Random, column: Expression) -> Expression:
    """A moment, often so many days or months later."""
    if rng.random() < 0.5:
        return column
    if column.type is T.DATE and rng.random() < 0.5:
        return build("add_days", (column, Literal(rng.choice([-40, -1, 0, 2, 31]), T.INTEGER)))
    parts = (rng.choice([0, 0, 1, -1, 12]), rng.choice([0, 1, -3]), rng.choice([0, 0, 3_600_000_000]))
    return build("add_interval", (column, *(Literal(part, T.INTEGER) for part in parts)))


def condition(rng: random.Random, depth: int = 2) -> Expression:
    """AND, OR and NOT of comparisons of two values, and of differences with constants."""
    if depth and rng.random() < 0.5:
        if rng.random() < 0.3:
            return build("not", (condition(rng, depth - 1),))
        return build(rng.choice(["and", "or"]), (condition(rng, depth - 1), condition(rng, depth - 1)))
    symbol = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    if rng.random() < 0.4:
        number = rng.choice([-31, -1, 0, 1, 2, 32]) * rng.choice([1, 1, 60, 3_600])
        return build(symbol, (rng.choice(differences()), Literal(number, T.INTEGER)))
    if rng.random() < 0.3:
        return build(symbol, tuple(rng.sample([X, Y, Z], 2)))
    return build(symbol, tuple(moved(rng, one) for one in rng.sample([D, E, M, N], 2)))


def broken(seed: int, trees: int) -> list[tuple[Expression, State]]:
    """The first condition of which something is said of a difference that is not true of a row."""
    rng = random.Random(seed)
    subjects, wrong = differences(), []
    about = Subjects.of([*VALUES, *subjects])
    for _ in range(trees):
        if wrong:
            break
        said, state = condition(rng), rng.choice(list(State))
        facts = Reader(about, declared=False).read(said, state, NOTHING)
        asked = [subject for subject in subjects if facts.of(subject) != Interval(None, None)]
        for _ in range(20 if asked else 0):
            row: dict[tuple[str, str], Value] = {("t", column.name): rng.choice(VALUES[column]) for column in VALUES}
            if rng.random() < 0.5:
                row["t", rng.choice("de")] = rng.choice(ENDS)
            if HOLDS[state](evaluate(said, row)):
                values: list[tuple[Interval, Any]] = [(facts.of(one), evaluate(one, row)) for one in asked]
                if facts.none or any(v is not None and not known.contains(Fraction(v)) for known, v in values):
                    wrong.append((said, state))
                    break
    return wrong


def test_what_is_said_of_differences_is_true_of_them() -> None:
    """Shows no row in which a condition has a state, and a difference lies outside what is said of it."""
    assert not broken(5, 400)


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    ("module", "name", "wrong"),
    [
        (apart_facts, "_ordered", lambda a, b: (("apart", *sorted((canonical(a), canonical(b)), key=repr)), 1)),
        (apart_facts, "_moved", lambda node: (_MOVED(node)[0], 0, 0)),
        (apart_facts, "_WHOLE", (T.INTEGER, T.DATE, T.NUMBER)),
        (apart_facts, "_moved_clock", lambda node: (_CLOCK(node)[0], 0, 0)),
        (apart_facts, "sign_of", lambda interval: interval),
        (apart_facts, "math", SimpleNamespace(floor=round, ceil=round)),
        (apart_facts, "_SECOND", Fraction(10**9)),
        (apart_facts, "_CLOCKED", {**apart_facts._CLOCKED, "hour": 1}),
        (known_ranges, "_CERTAIN", tuple(State)),
    ],
)
def test_a_wrong_rule_of_differences_is_found(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, wrong: object
) -> None:
    """Shows that the conditions and rows above see each rule."""
    monkeypatch.setattr(module, name, wrong)
    assert broken(5, 2_000)


JOINED = "SELECT AVG({}) FROM visits AS v JOIN people AS p ON v.person_id = p.person_id WHERE {}"


@pytest.mark.parametrize("argument", ["v.day - p.born", "DATE_DIFF('day', p.born, v.day)", "p.born - v.day"])
@pytest.mark.parametrize(
    "where",
    [
        "v.day - p.born BETWEEN 0 AND 100",
        "p.born - v.day BETWEEN -100 AND 0",
        "DATE_DIFF('day', p.born, v.day) >= 0 AND DATE_DIFF('day', v.day, p.born) > -101",
        "v.day >= p.born AND v.day <= p.born + INTERVAL 100 DAY",
        "p.born <= v.day AND v.day - 100 <= p.born",
    ],
)
def test_each_spelling_narrows_each(argument: str, where: str) -> None:
    """Shows the range of a difference, whichever way the difference and its condition are written."""
    (core,) = bound(lift(JOINED.format(argument, where), CLINIC))
    found = core.statistics[0].argument
    assert found is not None
    low, high = (-100, 0) if argument.startswith("p.born") else (0, 100)
    assert interval_of(found) == Interval(Fraction(low), Fraction(high))


SINCE = ValueBounds(number_of_date(datetime.date(2010, 1, 1)), number_of_date(datetime.date(2024, 12, 31)))


@pytest.mark.parametrize(
    ("argument", "where", "low", "high"),
    [
        ("YEAR(day)", "TRUE", 2010, 2024),
        ("YEAR(day)", "day >= DATE '2020-01-01'", 2020, 2024),
        ("YEAR(day)", "YEAR(day) >= 2020", 2020, 2024),
        ("ISOYEAR(day)", "day < DATE '2012-06-01'", 2009, 2013),
        ("DECADE(day)", "day >= DATE '2020-01-01'", 202, 202),
        ("day - DATE '2020-01-01'", "day >= DATE '2020-01-01'", 0, 1826),
        ("EPOCH(day) / 86400", "day >= DATE '2020-01-01'", 18262 - 1, 20089),
        ("YEAR(day)", "day >= DATE '2030-01-01'", 2010, 2024),
    ],
)
def test_a_condition_on_one_side_meets_chosen_bounds(argument: str, where: str, low: int, high: int) -> None:
    """Shows that bounds are chosen for the date of a year, and that a condition narrows them where rows meet both."""
    (core,) = lift(f"SELECT AVG({argument}) FROM visits WHERE {where}", OPEN, {}).cores
    assert unbounded_columns(core, OPEN) == (("visits", "day"),)
    bounded, used = bound_with(core, OPEN, {("visits", "day"): SINCE})
    assert used == {("visits", "day"): SINCE}
    found = bounded.statistics[0].argument
    assert found is not None
    known = interval_of(found)
    assert known.lower is not None
    assert known.upper is not None
    assert low <= known.lower <= low + 1
    assert high - 1 <= known.upper <= high


PAIRS = (
    "SELECT AVG({}) FROM readings AS a JOIN readings AS b ON a.home = b.home "
    "WHERE a.moment > '2023-01-01' AND a.moment < '2024-01-01' AND b.moment > '2023-01-01' AND b.moment < '2024-01-01' "
)


@pytest.mark.parametrize(
    ("argument", "low", "high"),
    [
        ("date_diff('minute', a.moment, b.moment)", 0, 90),
        ("date_diff('hour', b.moment, a.moment)", -2, 0),
        ("date_sub('second', a.moment, b.moment)", 0, 5_400),
        ("epoch(b.moment - a.moment)", 0, 5_400),
        ("b.moment - a.moment", 0, 5_400),
    ],
)
@pytest.mark.parametrize(
    "where",
    [
        "b.moment - a.moment BETWEEN INTERVAL 0 HOUR AND INTERVAL 90 MINUTE",
        "b.moment >= a.moment AND b.moment <= a.moment + INTERVAL 90 MINUTE",
        "epoch(b.moment - a.moment) BETWEEN 0 AND 5400",
        "b.moment >= a.moment AND epoch(a.moment) - epoch(b.moment) >= -5400",
    ],
)
def test_differences_of_timestamps_are_narrowed_in_every_unit(argument: str, low: int, high: int, where: str) -> None:
    """Shows that what is said of moments, of their difference or of its seconds is known in each unit."""
    (core,) = bound(lift(f"{PAIRS.format(argument)} AND {where}", WORLDS["sensors"]))
    found = core.statistics[0].argument
    assert found is not None
    assert interval_of(found) == Interval(Fraction(low), Fraction(high))


def test_days_moved_by_hours_are_not_whole_days_apart() -> None:
    """Shows that a day before another one and an hour may be that other one."""
    later = build("add_interval", (E, *(Literal(part, T.INTEGER) for part in (0, 0, 3_600_000_000))))
    facts = Reader(Subjects.of([D, E, build("subtract", (D, E))]), declared=False).read(
        build("<", (build("as_timestamp", (D,)), later)), State.TRUE, NOTHING
    )
    assert facts.of(build("subtract", (D, E))) == Interval(None, Fraction(1, 24))
