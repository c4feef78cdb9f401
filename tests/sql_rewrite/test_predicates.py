"""The canonical form of conditions: one for all spellings of a question, and never one for two questions."""

from __future__ import annotations

import datetime
import itertools
import random
from collections.abc import Iterator

import pytest

from privacy.policy import ColumnType
from sql_rewrite import predicates, value_sets
from sql_rewrite.bound import bound
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import ColumnRef, Expression, Literal, Value, form_of
from sql_rewrite.functions import build
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import core_key
from sql_rewrite.predicates import Joined, formula_of, is_never, normal_predicate
from tests.sql_rewrite.datasets import CLINIC
from tests.sql_rewrite.function_cases import run

T = ColumnType
I = ColumnRef("t", "i", T.INTEGER)  # noqa: E741
KEY = ColumnRef("t", "key", T.INTEGER, domain=(0, 1, 2, 3, None))
X, S, B, D = (ColumnRef("t", k.value, k) for k in (T.NUMBER, T.TEXT, T.BOOLEAN, T.DATE))
DAY = datetime.date(2024, 2, 28)

VALUES: dict[ColumnRef, tuple[Value, ...]] = {
    I: (-1, 0, 1, 2, 3, 4, 5, 9, 10, 11, None),
    KEY: (0, 1, 2, 3, None),
    X: (-1.5, 0.0, 1.0, 2.5, 3.0, None),
    S: ("", "a", "ab", "b", None),
    B: (True, False, None),
    D: (*(DAY + datetime.timedelta(days) for days in range(5)), None),
}
CONSTANTS: dict[ColumnRef, tuple[Value, ...]] = {
    I: (0, 1, 2, 3, 4, 10, None),
    KEY: (0, 1, 2, 3),
    X: (0.0, 1.0, 2.5, -0.0),
    S: ("a", "b", ""),
    B: (True, False, None),
    D: (DAY, DAY + datetime.timedelta(1), DAY + datetime.timedelta(2), None),
}
SYMBOLS = ("=", "<>", "<", "<=", ">", ">=", "is_distinct_from", "is_not_distinct_from")


def condition(draw: random.Random, depth: int, columns: tuple[ColumnRef, ...]) -> Expression:
    """A random condition on some columns."""
    choice = draw.randrange(9 if depth else 4)
    column = draw.choice(columns)
    constants = [Literal(value, column.type) for value in CONSTANTS[column]]
    match choice:
        case 0:
            missing = build("is_null", (column,))
            return missing if draw.random() < 0.5 else build("not", (missing,))
        case 1:
            return build("in", (column, *draw.sample(constants, draw.randint(1, 3))))
        case 2 | 3:
            sides: list[Expression] = [column, draw.choice(constants)]
            if column is I and draw.random() < 0.3:
                sides[1] = Literal(draw.choice((0.5, 1.0, 2.0, -0.0)), T.NUMBER)
            if draw.random() < 0.3:
                sides.reverse()
            return B if column is B and draw.random() < 0.3 else build(draw.choice(SYMBOLS), sides)
        case 4:
            return build("not", (condition(draw, depth - 1, columns),))
        case 5:
            found = condition(draw, depth - 1, columns)
            return build(
                draw.choice(SYMBOLS[-2:]),
                (found, Literal(draw.choice((True, False, None)[: len(columns) + 1]), T.BOOLEAN)),
            )
    parts = [condition(draw, depth - 1, columns) for _ in range(draw.randint(2, 3))]
    return build("and" if choice < 7 else "or", parts)


def kept(said: Expression | None, columns: tuple[ColumnRef, ...]) -> list[bool]:
    """Of which rows a condition is TRUE."""
    rows = itertools.product(*(VALUES[column] for column in columns))
    named = [(column.relation, column.name) for column in columns]
    return [said is None or evaluate(said, dict(zip(named, row, strict=True))) is True for row in rows]


def cases(seed: int, count: int) -> Iterator[tuple[tuple[ColumnRef, ...], Expression]]:
    """Random conditions with the columns that they read."""
    draw = random.Random(seed)
    for _ in range(count):
        columns = tuple(draw.sample(list(VALUES), draw.choice((1, 1, 2))))
        yield columns, condition(draw, 3, columns)


@pytest.mark.parametrize("value", [2.0**53, -(2.0**53), 1e300])
@pytest.mark.parametrize("symbol", SYMBOLS)
def test_doubles_that_are_several_whole_numbers_stay_doubles(symbol: str, value: float) -> None:
    """Shows that a whole number beyond 2^53 is compared as the double that it is read as, like its neighbours."""
    asked = build(symbol, (I, Literal(value, T.NUMBER)))
    found = normal_predicate(asked)
    assert found is not None
    for number in (2**53 - 1, 2**53, 2**53 + 1, -(2**53), -(2**53) - 1, 0):
        row: dict[tuple[str, str], Value] = {("t", "i"): number}
        assert evaluate(found, row) is evaluate(asked, row)


def broken(count: int) -> list[str]:
    """What is wrong in random conditions: other rows, another form the second time, or one form for two meanings."""
    found: list[str] = []
    forms: dict[tuple[object, object], list[bool]] = {}
    for columns, said in cases(7, count):
        normal = normal_predicate(said)
        rows = kept(normal, columns)
        if rows != kept(said, columns):
            found.append(f"other rows: {said}")
        if form_of(normal_predicate(normal)) != form_of(normal):
            found.append(f"not its own form: {said}")
        if forms.setdefault((columns, form_of(normal)), rows) != rows:
            found.append(f"one form for two conditions: {said}")
    return found


def test_the_canonical_form_keeps_the_same_rows() -> None:
    """Shows over every row of small columns, NULL among them, what a form keeps, and that it is its own form."""
    assert broken(1_500) == []


def test_the_engine_keeps_the_same_rows_too() -> None:
    """Shows some of it by the statements that DuckDB runs, in place of the reference."""
    for columns, said in cases(23, 25):
        normal = normal_predicate(said)
        named = [(column.relation, column.name) for column in columns]
        rows = [dict(zip(named, row, strict=True)) for row in itertools.product(*map(VALUES.get, columns))]  # type: ignore[arg-type]
        found = [True] * len(rows) if normal is None else [value is True for value in run(normal, rows)]
        assert found == [value is True for value in run(said, rows)], said


def test_conditions_on_one_column_have_one_form_for_one_meaning() -> None:
    """Shows the other direction where it is exact: of one column, equal rows are equal forms."""
    forms: dict[tuple[bool, ...], set[object]] = {}
    draw = random.Random(3)
    for _ in range(400):
        said = condition(draw, 2, (B,))
        rows = tuple(kept(said, (B,)))
        if any(rows):
            forms.setdefault(rows, set()).add(form_of(normal_predicate(said)))
    assert len(forms) == 7
    assert {rows: found for rows, found in forms.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    ("place", "name", "planted"),
    [
        (predicates, "otherwise", lambda formula: formula),
        (predicates, "_OPPOSITE", predicates._MIRRORED),
        (predicates, "_equal", lambda values, *, equal: values if equal else values.other()),
        (value_sets, "_counted", lambda sets, least: sets[0]),
    ],
)
def test_a_form_that_keeps_other_rows_is_noticed(
    place: object, name: str, planted: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: NULL counted among what is not there, a wrong opposite, and parts that are forgotten."""
    monkeypatch.setattr(place, name, planted)
    assert broken(300)


def test_what_cannot_be_together_is_proved() -> None:
    """Shows that two conditions that are said to be disjoint are TRUE together in no row."""
    draw = random.Random(11)
    proved = 0
    for _ in range(400):
        columns = tuple(draw.sample(list(VALUES), 2))
        first, second = (condition(draw, 1, columns) for _ in range(2))
        if is_never(Joined(every=True, parts=(formula_of(first), formula_of(second)))):
            proved += 1
            both = zip(kept(first, columns), kept(second, columns), strict=True)
            assert not any(one and other for one, other in both)
    assert proved > 20


SAME = [
    [f"SELECT COUNT(*) FROM people WHERE {said}" for said in told]
    for told in [
        ("age > 50", "age >= 51", "NOT age <= 50", "50 < age", "NOT (NOT age > 50)", "age > 50.5", "age > 25 * 2",
         "age > 50 AND TRUE", "age > 50 AND age > 40", "age > 50 OR age = 51", "(age > 50) IS TRUE",
         "age > 50 AND 1 = 1", "NOT COALESCE(FALSE, FALSE) AND age > 50", "age >= 51 AND age IS NOT NULL"),
        ("age BETWEEN 20 AND 29", "age >= 20 AND age < 30", "age > 19 AND 30 > age", "NOT (age < 20 OR age > 29)"),
        ("age NOT BETWEEN 20 AND 29", "age < 20 OR age >= 30", "NOT (age >= 20 AND age <= 29)"),
        ("education IN ('a', 'b')", "education = 'b' OR education = 'a'",
         "education = ANY (SELECT * FROM (VALUES ('a'), ('b')) v(x))",
         "education IN ('b', 'a', 'b', NULL)", "NOT education NOT IN ('a', 'b')"),
        ("education = 'a'", "education IN ('a')", "'a' = education", "education IS NOT DISTINCT FROM 'a'"),
        ("education <> 'a'", "NOT education = 'a'", "education NOT IN ('a')"),
        ("education NOT IN ('a', 'b')", "education <> 'a' AND education <> 'b'"),
        ("smoker", "smoker = TRUE", "smoker IS TRUE", "NOT NOT smoker", "smoker <> FALSE", "smoker IN (TRUE)"),
        ("NOT smoker", "smoker = FALSE", "smoker IS FALSE", "smoker <> TRUE"),
        ("born >= DATE '1950-01-01' AND born < '2000-01-01'", "born BETWEEN '1950-01-01' AND '1999-12-31'",
         "born > '1949-12-31' AND NOT born >= DATE '2000-01-01'"),
        ("income IS NOT NULL", "NOT income IS NULL", "NOT (income IS NULL AND TRUE)", "income > 5 OR income <= 5"),
        ("TRUE", "1 = 1", "age IS NULL OR age IS NOT NULL", "NOT FALSE"),
        ("salary > 5 AND (smoker OR age > 3)", "(age >= 4 OR smoker = TRUE) AND NOT salary <= 5.0"),
    ]
] + [
    ["SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people WHERE TRUE",
     "SELECT COUNT(*) FILTER (WHERE TRUE) FROM people"],
    ["SELECT COUNT(*) FROM visits WHERE cost > 100", "SELECT COUNT_IF(cost > 100) FROM visits",
     "SELECT COUNT(*) FILTER (WHERE NOT cost <= 100) FROM visits"],
    ["SELECT COUNT(DISTINCT person_id) FROM visits WHERE cost > 10",
     "SELECT COUNT(DISTINCT person_id) FILTER (WHERE cost > 10) FROM visits"],
    ["SELECT sex, AVG(age) FROM people WHERE hours >= 10 AND hours < 40 GROUP BY sex",
     "SELECT sex, AVG(age) FILTER (WHERE hours BETWEEN 10 AND 39) FROM people GROUP BY sex"],
    ["SELECT COUNT(*), SUM(cost) FROM visits WHERE ward = 'a' AND cost > 5",
     "SELECT COUNT(*) FILTER (WHERE ward = 'a'), SUM(cost) FILTER (WHERE ward IN ('a')) FROM visits WHERE cost > 5"],
]  # fmt: skip
"""Texts that ask for the same, one list for each question."""

APART = [
    "SELECT COUNT(*) FROM people WHERE salary > 50",
    "SELECT COUNT(*) FROM people WHERE salary >= 51",
    "SELECT COUNT(*) FROM people WHERE education <> 'a' OR education IS NULL",
    "SELECT COUNT(*) FROM people WHERE education NOT IN ('a', NULL)",
    "SELECT sex, COUNT(*) FROM people WHERE sex = 'male' GROUP BY sex",
    "SELECT sex, COUNT(*) FILTER (WHERE sex = 'male') FROM people GROUP BY sex",
    "SELECT education, COUNT(*) FROM people WHERE smoker GROUP BY education",
    "SELECT education, COUNT(*) FILTER (WHERE smoker) FROM people GROUP BY education",
    "SELECT COUNT(*) FILTER (WHERE smoker), COUNT(*) FROM people",
]
"""Texts of which no two ask for the same: a group that WHERE leaves out, and hidden groups, tell FILTER from WHERE."""


def key(sql: str) -> str:
    """The identity of a text."""
    (core,) = bound(lift(sql, CLINIC))
    return core_key(core, CLINIC)


@pytest.mark.parametrize("texts", SAME, ids=lambda texts: texts[0][21:])
def test_what_asks_for_the_same_has_one_identity(texts: list[str]) -> None:
    """Shows that the second spelling of a question is answered from the first one's release."""
    assert {text: key(text) for text in texts} == dict.fromkeys(texts, key(texts[0]))


def test_what_asks_for_something_else_has_another_identity() -> None:
    """Shows it across all questions, and of those that are nearly the same."""
    texts = [*(texts[0] for texts in SAME), *APART]
    assert len({key(text) for text in texts}) == len(texts) - 1  # WHERE TRUE, and no condition


def test_conditions_nested_without_end_are_read_once() -> None:
    """Shows that truth values of truth values of a condition are no work that doubles with each."""
    said: Expression = build(">", (I, Literal(3, T.INTEGER)))
    for _ in range(80):
        said = build("<=", (build("is_not_distinct_from", (said, Literal(True, T.BOOLEAN))), Literal(True, T.BOOLEAN)))
        said = build("not", (said,)) if said.depth < 90 else said
        if said.depth > 90:
            break
    assert kept(normal_predicate(said), (I,)) == kept(said, (I,))
