"""Questions to begin with: from declarations, never from rows, and all of them answerable."""

from __future__ import annotations

from fractions import Fraction

import pytest

from privacy.bounds import ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, Dataset, PublicKeys, Table
from privacy.unit import PrivacyUnit
from server.datasets.questions import first_question, next_question
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift

ID = Column("id", ColumnType.INTEGER)
NOTE = Column("note", ColumnType.TEXT)
CODE = Column("code", ColumnType.INTEGER, bounds=ValueBounds(Fraction(0), Fraction(10_000)))
KEYED = Column("sex", ColumnType.TEXT, keys=PublicKeys(("f", "m")))
FLAG = Column("smoker", ColumnType.BOOLEAN)
SMALL = Column("children", ColumnType.INTEGER, bounds=ValueBounds(Fraction(0), Fraction(12)))
WORD = Column("order", ColumnType.BOOLEAN)
MANY = Column("area", ColumnType.INTEGER, keys=PublicKeys(tuple(range(1000))))
ONLY = Column("country", ColumnType.TEXT, keys=PublicKeys(("x",)))


def dataset(*columns: Column, rows: int = 1, key: str | None = "id") -> Dataset:
    bound = ContributionBound(rows_per_unit=rows, groups_per_unit=min(rows, 2), rows_per_unit_and_group=rows)
    table = Table("people", (ID, *columns), protected=True, key=key if rows == 1 else None, unit_column=key,
                  contribution=bound)  # fmt: skip
    return Dataset("own", PrivacyUnit("people", key), (table,), 1, "d")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ((NOTE, FLAG, KEYED), "SELECT sex, COUNT(*) AS number FROM people GROUP BY sex"),
        ((NOTE, FLAG), "SELECT smoker, COUNT(*) AS number FROM people GROUP BY smoker"),
        ((NOTE, SMALL), "SELECT children, COUNT(*) AS number FROM people GROUP BY children"),
        ((CODE, KEYED), "SELECT sex, COUNT(*) AS number, AVG(code) AS mean_code FROM people GROUP BY sex"),
        ((NOTE, CODE), "SELECT AVG(code) AS mean_code FROM people"),
        ((NOTE,), "SELECT COUNT(note) AS given FROM people"),
        ((WORD, NOTE), "SELECT COUNT(note) AS given FROM people"),
        ((MANY, ONLY), "SELECT COUNT(area) AS given FROM people"),
        ((), "SELECT COUNT(*) AS number FROM people"),
    ],
)
def test_the_next_question_groups_by_what_is_declared(columns: tuple[Column, ...], expected: str) -> None:
    """Declared keys first, then true and false, then small numbers; free text is never a group."""
    assert next_question(dataset(*columns)) == expected


def test_the_first_question_counts_units() -> None:
    """Rows where each unit has one, different units where it may have several."""
    assert first_question(dataset()) == "SELECT COUNT(*) AS number\nFROM people"
    assert first_question(dataset(key=None)) == "SELECT COUNT(*) AS number\nFROM people"
    assert first_question(dataset(rows=5)) == "SELECT COUNT(DISTINCT id) AS number\nFROM people"
    assert next_question(dataset(NOTE, rows=5)) == "SELECT COUNT(*) AS number FROM people"


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("columns", [(), (NOTE,), (FLAG,), (KEYED, CODE), (SMALL,), (CODE,)])
def test_every_proposed_question_is_answered(columns: tuple[Column, ...], rows: int) -> None:
    """What is proposed passes the lift and the bounds of the dataset it was proposed for."""
    declared = dataset(*columns, rows=rows)
    for sql in (first_question(declared), next_question(declared)):
        assert bound(lift(sql, declared)), sql
