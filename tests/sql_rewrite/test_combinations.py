"""IN over combinations of known values: true, false and NULL as SQL says, and what is refused."""

from __future__ import annotations

import itertools
import random

import pytest

from privacy.refusal import Refused
from sql_rewrite.evaluate import evaluate
from sql_rewrite.lift import lift
from tests.sql_rewrite.datasets import CLINIC


def _sql(value: int | None) -> str:
    return "NULL" if value is None else str(value)


def _truth(row: tuple[int | None, ...], listed: list[tuple[int | None, ...]]) -> bool | None:
    """IN as an OR of ANDs of equalities, in logic of three values."""
    found: bool | None = False
    for one in listed:
        same = [None if a is None or b is None else a == b for a, b in zip(row, one, strict=True)]
        term = False if False in same else None if None in same else True
        found = True if found or term else None if found is None or term is None else False
    return found


def test_it_is_true_where_sql_says_so() -> None:
    """Shows it for random lists of two and three columns, on values that may be NULL."""
    r = random.Random(4)
    columns = ["hours", "COALESCE(hours, 3) % 4", "age"]
    for width in (2, 3) * 20:
        listed = [tuple(r.randint(0, 3) for _ in range(width)) for _ in range(r.randint(1, 8))]
        written = ", ".join(f"({', '.join(map(_sql, row))})" for row in listed)
        text = f"SELECT COUNT(*) FROM people WHERE ({', '.join(columns[:width])}) IN (VALUES {written})"
        (core,) = lift(text, CLINIC).cores
        assert core.where is not None
        for hours, age in itertools.product([None, 0, 1, 2, 3], range(4)):
            row = (hours, (3 if hours is None else hours) % 4, age)[:width]
            values = {("r0", "hours"): hours, ("r0", "age"): age}
            assert evaluate(core.where, values) == _truth(row, list(listed)), (text, values)


def test_a_null_among_them_counts_as_false_where_that_is_as_good() -> None:
    """Shows that rows with NULL are left out in WHERE, and elsewhere are the NULL that they are in SQL."""
    listed = [(1, 2), (3, None), (None, 1)]
    written = f"(VALUES {', '.join(f'({_sql(a)}, {_sql(b)})' for a, b in listed)})"
    (core,) = lift(f"SELECT COUNT(*) FROM people WHERE (hours, age) IN {written}", CLINIC).cores
    (alone,) = lift("SELECT COUNT(*) FROM people WHERE (hours, age) IN (VALUES (1, 2))", CLINIC).cores
    assert core.where == alone.where
    (other,) = lift(f"SELECT COUNT(*) FROM people WHERE (hours, age) NOT IN {written}", CLINIC).cores
    (one,) = lift("SELECT COUNT(*) FROM people WHERE hours NOT IN (VALUES (1), (NULL))", CLINIC).cores
    assert other.where is not None
    assert one.where is not None
    for hours, age in itertools.product([None, 0, 1, 2, 3], range(4)):
        values = {("r0", "hours"): hours, ("r0", "age"): age}
        assert (evaluate(other.where, values) is True) == (_truth((hours, age), list(listed)) is False)
        assert evaluate(one.where, values) is not True, "DuckDB: of no row"


def test_nested_forms_of_one_list_are_one_question() -> None:
    """Shows VALUES, a derived table, a CTE and computed constants."""
    texts = (
        "SELECT COUNT(*) FROM people WHERE (sex, age) IN (VALUES ('female', 30), ('male', 40))",
        "SELECT COUNT(*) FROM people WHERE (sex, age) IN "
        "(SELECT s, a FROM (VALUES ('female', 30), ('male', 40)) t(s, a))",
        "WITH w(s, a) AS (VALUES ('female', 30), ('male', 40)) "
        "SELECT COUNT(*) FROM people WHERE (sex, age) IN (SELECT s, a FROM w)",
        "SELECT COUNT(*) FROM people WHERE (sex, age) IN "
        "(SELECT s, a * 10 FROM (VALUES ('female', 3), ('male', 4), ('male', 5)) t(s, a) WHERE a < 5)",
    )
    assert len({repr(lift(text, CLINIC).cores[0].where) for text in texts}) == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("(sex, age) IN (SELECT s FROM (VALUES ('female')) t(s))", "unsupported_sql"),
        ("(hours, age) IN (SELECT x, x * x % 211 FROM range(1000) g(x))", "too_large"),
        ("(sex, age) IN (SELECT sex, MAX(age) FROM people GROUP BY sex)", "correlated_subquery"),
        ("(sex, age) IN (SELECT s, people.age FROM (VALUES ('female')) t(s))", "correlated_subquery"),
    ],
)
def test_others_are_refused(text: str, code: str) -> None:
    """Shows other numbers of columns, too many combinations, rows of people, and columns of the row outside."""
    with pytest.raises(Refused) as refused:
        lift(f"SELECT COUNT(*) FROM people WHERE {text}", CLINIC)
    assert refused.value.findings[0].code == code
