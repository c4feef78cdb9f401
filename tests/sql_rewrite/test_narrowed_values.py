"""What conditions prove of values: true of every row for every state of a condition, and used where they are summed."""

from __future__ import annotations

import datetime
import random
from fractions import Fraction
from typing import Any

import pytest

from privacy.bounds import number_of_date, number_of_timestamp
from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite import known_ranges
from sql_rewrite.automatic_bounds import unbounded_columns
from sql_rewrite.bound import bound
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, Literal, Value, interval_of, walk
from sql_rewrite.functions import build, clip_columns
from sql_rewrite.known_ranges import NOTHING, Reader, State, Subjects, facts_of
from sql_rewrite.lift import lift
from sql_rewrite.narrowed_values import Narrowing
from sql_rewrite.plan_key import core_key
from tests.sql_rewrite.datasets import CLINIC, clinic

T = ColumnType
OPEN = clinic(automatic_bounds=True)
X = ColumnRef("t", "x", T.INTEGER)
Y = ColumnRef("t", "y", T.INTEGER, nullable=False, declared=Interval(Fraction(-4), Fraction(4)))
Z = ColumnRef("t", "z", T.NUMBER)
D = ColumnRef("t", "d", T.DATE)
M = ColumnRef("t", "m", T.TIMESTAMP)
COLUMNS = (X, Y, Z, D, M)
DAYS = [datetime.date(2024, 2, 27) + datetime.timedelta(days=n) for n in range(5)]
HOURS = [datetime.datetime(2024, 2, 27, 12) + datetime.timedelta(hours=n * 6) for n in range(12)]
VALUES: dict[ColumnRef, list[Value]] = {
    X: [None, *range(-5, 6), 2**62, -(2**62)],
    Y: [*range(-4, 5)],
    Z: [None, -4.5, -1.0, -0.0, 0.0, 0.5, 1.0, 3.75, 1e300, -1e300],
    D: [None, *DAYS],
    M: [None, *HOURS, *(datetime.datetime.combine(day, datetime.time()) for day in DAYS)],
}


def atom(rng: random.Random) -> Expression:
    """A comparison of columns, what is made of them, and constants, NULL among them."""
    column = rng.choice(COLUMNS)
    numeric = column in (X, Y, Z)

    def constant() -> Expression:
        return Literal(
            rng.choice([None, *VALUES[column][1:]] if rng.random() < 0.1 else VALUES[column][1:]), column.type
        )

    left: Expression = column
    if numeric and rng.random() < 0.2:
        left = build(rng.choice(["add", "multiply", "subtract"]), (column, rng.choice([X, Y, Z])))
    kind = rng.random()
    if kind < 0.55:
        others = [c for c in COLUMNS if (c in (X, Y, Z)) == numeric]
        right = rng.choice(others) if rng.random() < 0.35 else constant()
        if numeric and rng.random() < 0.3:
            right = Literal(rng.choice([-2.5, 0.0, 1.0, 4.0, 2.0**53]), T.NUMBER)
        sides = [left, right]
        rng.shuffle(sides)
        return build(rng.choice(["=", "<>", "<", "<=", ">", ">="]), sides)
    if kind < 0.75:
        return build("in", (column, *(constant() for _ in range(rng.randint(1, 3)))))
    if kind < 0.85:
        return build(rng.choice(["is_distinct_from", "is_not_distinct_from"]), (column, constant()))
    return build(rng.choice(["is_null", "is_not_null"]), (left,))


def condition(rng: random.Random, depth: int) -> Expression:
    """A tree of AND, OR and NOT over comparisons and truth values."""
    if depth == 0 or rng.random() < 0.2:
        return Literal(rng.choice([True, False, None]), T.BOOLEAN) if rng.random() < 0.04 else atom(rng)
    if rng.random() < 0.3:
        return build("not", (condition(rng, depth - 1),))
    return build(rng.choice(["and", "or"]), [condition(rng, depth - 1) for _ in range(rng.randint(2, 3))])


def rows(rng: random.Random, count: int) -> list[dict[tuple[str, str], Value]]:
    """Rows with values from everywhere in what the columns may hold."""
    return [{("t", column.name): rng.choice(VALUES[column]) for column in COLUMNS} for _ in range(count)]


def number(value: Any) -> Any:
    """A value as bounds count it."""
    if isinstance(value, datetime.datetime):
        return number_of_timestamp(value)
    return number_of_date(value) if isinstance(value, datetime.date) else Fraction(value)


HOLDS = {
    State.TRUE: lambda value: value is True,
    State.FALSE: lambda value: value is False,
    State.NOT_TRUE: lambda value: value is not True,
    State.NOT_FALSE: lambda value: value is not False,
}


def broken(seed: int, trees: int) -> list[tuple[Expression, State]]:
    """The conditions of which something is said that is not true of a row."""
    rng = random.Random(seed)
    wrong = []
    for _ in range(trees):
        said, state = condition(rng, 3), rng.choice(list(State))
        subjects = [*COLUMNS, *(node for node in walk(said) if isinstance(node, Call) and node.type is T.INTEGER)]
        about = Subjects.of(subjects)
        reader = Reader(about, declared=False)
        facts = reader.read(said, state, reader.read(said, state, NOTHING))
        for row in rows(rng, 12):
            if not HOLDS[state](evaluate(said, row)):
                continue
            values = [(facts.of(subject), evaluate(subject, row)) for subject in subjects]
            if facts.none or any(v is not None and not known.contains(number(v)) for known, v in values):
                wrong.append((said, state))
    return wrong


def test_what_is_said_of_rows_is_true_of_them() -> None:
    """Shows no row in which a condition has a state, and a value that is not NULL lies outside what is said of it."""
    assert not broken(seed=9, trees=1_000)


@pytest.mark.sparse(2)
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_OPPOSITE", {**known_ranges._OPPOSITE, "<": ">"}),
        ("_TURNED", {**known_ranges._TURNED, "<": "<"}),
        ("_CERTAIN", tuple(State)),
        ("_HOLDS", (State.TRUE, State.NOT_FALSE, State.NOT_TRUE)),
    ],
)
def test_a_wrong_rule_is_found(monkeypatch: pytest.MonkeyPatch, name: str, wrong: object) -> None:
    """Shows that the trees and rows above see each rule."""
    monkeypatch.setattr(known_ranges, name, wrong)
    assert broken(seed=9, trees=400)


def test_narrowed_values_are_the_values() -> None:
    """Shows equal values in rows that satisfy the conditions, for CASE along its paths too."""
    rng = random.Random(4)
    narrower = 0
    for _ in range(220):
        given = [condition(rng, 2) for _ in range(rng.randint(0, 2))]
        left, right = rng.choice([X, Y, Z]), rng.choice([X, Y, Literal(1, T.INTEGER), Literal(None, T.INTEGER)])
        value = build("case", (condition(rng, 1), left, condition(rng, 1), right, rng.choice([Y, X])))
        if rng.random() < 0.4:
            value = build(rng.choice(["add", "coalesce", "least"]), (value, Y))
        found = Narrowing((value,), given).value(value)
        narrower += found != value
        for row in rows(rng, 12):
            if all(evaluate(one, row) is True for one in given):
                assert evaluate(clip_columns(found), row) == evaluate(clip_columns(value), row)
    assert narrower > 40


def differing(given: Expression, seed: int) -> int:
    """In how many rows of which a condition is TRUE a value differs, narrowed as where x is present."""
    rng = random.Random(seed)
    found = 0
    for _ in range(80):
        test = build(rng.choice(["is_null", "is_not_null"]), (rng.choice([X, Z]),))
        test = build("not", (test,)) if rng.random() < 0.5 else test
        value = build("case", (test, rng.choice([X, Y]), condition(rng, 1), rng.choice([Y, X]), rng.choice([Y, X])))
        if rng.random() < 0.6:
            value = build("coalesce", (rng.choice([X, value]), rng.choice([X, Y]), Y))
        narrowed = Narrowing((value,), [given], present=frozenset({X})).value(value)
        for row in rows(rng, 12):
            if evaluate(given, row) is True:
                found += evaluate(clip_columns(narrowed), row) != evaluate(clip_columns(value), row)
    return found


def test_what_no_row_reads_is_left_out() -> None:
    """Shows equal values without the branches for a missing x where x is present, and that elsewhere they differ."""
    for given in (build("not", (build("is_null", (X,)),)), build(">", (X, Literal(-9, T.INTEGER)))):
        assert differing(given, 1) == 0
    assert differing(build("is_null", (build("add", (X, Y)),)), 1) > 0


def ranges(sql: str) -> list[tuple[float, float]]:
    """The ranges of what a question sums."""
    found = []
    for core in bound(lift(sql, CLINIC)):
        for argument in (argument for bounded in core.statistics for argument in bounded.arguments):
            interval = interval_of(argument)
            assert interval.lower is not None
            assert interval.upper is not None
            found.append((float(interval.lower), float(interval.upper)))
    return found


NARROWED = {
    "SELECT AVG(age) FROM people WHERE age BETWEEN 18 AND 30": (18, 30),
    "SELECT AVG(age) FROM people WHERE age > 17 AND age < 31": (18, 30),
    "SELECT AVG(age) FROM people WHERE age > 17.5": (18, 100),
    "SELECT SUM(income) FROM people WHERE income > 0 AND income <= 1000": (0, 1000),
    "SELECT SUM(income) FROM people WHERE NOT (income < 0 OR income > 1000)": (0, 1000),
    "SELECT SUM(income) FILTER (WHERE income BETWEEN 0 AND 1000) FROM people": (0, 1000),
    "SELECT SUM(CASE WHEN income < 0 THEN 0 WHEN income > 1000 THEN 1000 ELSE income END) FROM people": (0, 1000),
    "SELECT SUM(COALESCE(IF(income BETWEEN 1 AND 9, income, NULL), 0)) FROM people": (0, 9),
    "SELECT SUM(income * 2 + age) FROM people WHERE income * 2 + age BETWEEN 0 AND 1000": (0, 1000),
    "SELECT SUM(cost) FROM visits WHERE cost IN (1, 2, 3)": (1, 3),
    "SELECT SUM(cost) FROM visits WHERE cost < 10 OR cost BETWEEN 20 AND 30": (0, 30),
    "SELECT SUM(salary) FROM people WHERE salary <= income AND income < 1000": (0, 1000),
    "SELECT SUM(income) FROM people WHERE income <= salary AND income >= 0": (0, 200_000),
    "SELECT SUM(cost) FROM visits JOIN people USING (person_id) WHERE cost <= age AND age BETWEEN 1 AND 20": (0, 20),
    "SELECT SUM(t.income) FROM (SELECT income FROM people WHERE income >= 0) AS t WHERE t.income <= 5": (0, 5),
    "SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY 1) AS t WHERE n <= 3": (1, 3),
    "SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY 1 HAVING COUNT(*) <= 3) AS t": (1, 3),
    "SELECT AVG(s) FROM (SELECT person_id, SUM(cost) AS s FROM visits WHERE cost < 10 GROUP BY 1) AS t": (0, 400),
    "SELECT AVG(s) FROM (SELECT person_id, MAX(cost) AS s FROM visits WHERE cost < 10 GROUP BY 1) AS t": (0, 10),
    "SELECT AVG(c) FROM (SELECT cost AS c FROM visits WHERE cost < 10 UNION ALL SELECT result FROM tests "
    "WHERE result > 0) AS t": (0, 10),
    "SELECT SUM(cost) FROM visits WHERE cost < (SELECT AVG(cost) FROM visits)": (0, 5_000),
    "SELECT AVG(age) FROM people WHERE age > 200": (100, 100),
    "SELECT SUM(COALESCE(cost, 100000)) FROM visits WHERE cost IS NOT NULL": (0, 5_000),
    "SELECT SUM(COALESCE(cost, 100000)) FROM visits WHERE cost > 3": (3, 5_000),
    "SELECT SUM(COALESCE(cost, 100000)) FILTER (WHERE cost IS NOT NULL) FROM visits": (0, 5_000),
    "SELECT SUM(CASE WHEN cost IS NULL THEN 100000 ELSE cost END) FROM visits WHERE cost IS NOT NULL": (0, 5_000),
    "SELECT SUM(CASE WHEN cost IS NOT NULL THEN cost ELSE 100000 END) FROM visits WHERE cost < 7": (0, 7),
    "SELECT SUM(COALESCE(cost, 100000)) FROM visits WHERE cost IS NOT NULL OR day IS NULL": (0, 100_000),
}


@pytest.mark.parametrize("sql", NARROWED)
def test_conditions_narrow_what_is_summed(sql: str) -> None:
    """Shows the range of a sum under conditions of each kind; of a number that is released nothing is known."""
    assert set(ranges(sql)[-1:]) == {NARROWED[sql]}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(income) FROM people WHERE income > 0",
        "SELECT SUM(income) FROM people WHERE income <= 5 OR income IS NULL",
        "SELECT SUM(income) FROM people WHERE age BETWEEN 0 AND 5",
        "SELECT SUM(person_id) FROM people WHERE person_id BETWEEN 0 AND 5",
        "SELECT SUM(CASE WHEN NOT (income > 5) THEN 0 ELSE income END) FROM people",
    ],
)
def test_one_side_is_not_enough(sql: str) -> None:
    """Shows the refusal where a side is open, and of identifiers."""
    with pytest.raises(Refused) as refused:
        bound(lift(sql, CLINIC))
    assert refused.value.findings[0].code == "column_without_bounds"


def test_no_histogram_is_bought_for_what_conditions_bound() -> None:
    """Shows that bounds are chosen for the column that has none, and for no other."""
    (core,) = lift("SELECT SUM(income), SUM(salary) FROM people WHERE income BETWEEN 0 AND 9", OPEN).cores
    assert unbounded_columns(core, OPEN) == ()
    (core,) = lift("SELECT SUM(income) FROM people WHERE income > 0", OPEN).cores
    assert unbounded_columns(core, OPEN) == (("people", "income"),)


def test_only_what_a_condition_changes_has_another_identity() -> None:
    """Shows that a narrower range is another release, and one that is not narrower is the same."""

    def key(sql: str) -> str:
        (core,) = bound(lift(sql, CLINIC))
        return core_key(core, CLINIC)

    narrow, other = (f"SELECT SUM(cost) FROM visits WHERE cost < {limit}" for limit in (10, 11))
    assert key(narrow) != key(other)
    assert key(narrow) == key("SELECT SUM(v.cost) AS s FROM visits AS v WHERE 10 > v.cost")


def test_what_conditions_cut_is_not_called_clipped() -> None:
    """Shows that an answer names bounds that cut values, and not those that no value of its rows is beyond."""

    def clipped(sql: str) -> tuple[tuple[str, Value, Value], ...]:
        (core,) = bound(lift(sql, CLINIC))
        return core.clipped()

    assert clipped("SELECT AVG(age) FROM people WHERE age BETWEEN 18 AND 30") == ()
    assert clipped("SELECT AVG(age) FROM people WHERE age > 17") == (("age", 18, 100),)
    assert clipped("SELECT SUM(income) FROM people WHERE income BETWEEN 0 AND 9") == ()
    assert facts_of([], Subjects.of([X])) == NOTHING
