"""Set operations on rows about people: what is known of their columns, bounds that add up, one identity."""

from __future__ import annotations

from fractions import Fraction

import pytest

from privacy.policy import ColumnType, Dataset
from privacy.refusal import Refused
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.contribution import Contribution, NormedContribution
from sql_rewrite.cost import check_work, work_of
from sql_rewrite.expressions import ColumnRef, Interval
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import core_key
from sql_rewrite.references import reference
from sql_rewrite.unit_facts import rows_of_unit
from tests.sql_rewrite.datasets import AUTOMATIC, CLINIC


def core(sql: str, dataset: Dataset = CLINIC) -> BoundedCore:
    """The only bounded core of a text."""
    (only,) = bound(lift(sql, dataset))
    return only


def column(first: str, second: str, tables: tuple[str, str] = ("people", "visits")) -> ColumnRef:
    """What is known of a column of the rows of two branches."""
    union = f"SELECT {first} AS x FROM {tables[0]} UNION ALL SELECT {second} FROM {tables[1]}"
    found = core(f"SELECT COUNT(*) FROM ({union}) AS t")
    (source,) = found.core.sources
    return reference(source, source.table.columns[0], CLINIC)


def test_bounds_and_rows_add_up() -> None:
    """Shows it of counts and norms, and that two branches of one row each are two rows."""
    union = "SELECT COUNT(*) FROM (SELECT person_id FROM people UNION ALL SELECT person_id FROM {}) AS t"
    counted = core(union.format("visits")).contribution
    assert isinstance(counted, Contribution)
    assert (counted.total, counted.one_row) == (41, False)
    twice = core(union.format("people"))
    assert isinstance(twice.contribution, Contribution)
    assert (twice.contribution.total, twice.contribution.one_row) == (2, False)
    assert rows_of_unit(twice.core.sources) == 2
    normed = core(union.format("visits"), AUTOMATIC).contribution
    assert isinstance(normed, NormedContribution)
    assert normed.rows == 1_001


def test_the_unit_is_there_whether_or_not_it_is_selected() -> None:
    """Shows that a branch that leads to the unit over another table keeps it."""
    found = core(
        "SELECT x, COUNT(*) FROM (SELECT 'visit' AS x FROM visits UNION ALL SELECT 'test' FROM tests) GROUP BY 1"
    )
    assert found.described.keys.domain == (("test",), ("visit",))
    assert isinstance(found.contribution, Contribution)
    assert found.contribution.total == 60


def test_facts_hold_in_every_branch() -> None:
    """Shows hulls of ranges and bounds, and values of keys."""
    both = column("age", "cost")
    assert both.type is ColumnType.NUMBER
    assert both.declared == Interval(Fraction(0), Fraction(5_000))
    assert both.nullable
    assert not column("age", "visit_id % 7").nullable
    assert column("age", "1").declared == Interval(Fraction(0), Fraction(100))
    assert column("age", "NULL").declared == Interval(Fraction(0), Fraction(100))
    assert column("age", "NULL").nullable
    assert column("age", "hospital_id").declared is None
    assert column("sex", "'none'").domain == ("female", "male", "none")
    assert column("sex", "ward").domain is None
    assert column("sex", "CASE WHEN cost > 3 THEN 'dear' END").domain == ("female", "male", "dear", None)


def test_only_the_units_key_in_every_branch_is_the_units_key() -> None:
    """Shows that another number in one branch makes it values."""
    assert column("person_id", "person_id").is_unit
    assert not column("person_id", "visit_id").is_unit
    assert not column("person_id", "NULL").is_unit
    assert column("person_id", "visit_id").identifies
    assert not column("person_id", "hospital_id").identifies


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "SELECT SUM(y) FROM (SELECT age AS y FROM people UNION ALL SELECT cost FROM visits) AS t",
            "WITH a AS (SELECT cost AS y FROM visits UNION ALL SELECT age FROM people) SELECT SUM(y) FROM a",
        ),
        (
            "SELECT SUM(y) FROM (SELECT age AS y, sex FROM people UNION ALL BY NAME SELECT cost AS y FROM visits) AS t",
            "SELECT SUM(y) FROM (SELECT NULL AS sex, cost AS y FROM visits UNION ALL SELECT sex, age FROM people) AS t",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT 1 FROM people UNION ALL (SELECT 1 FROM tests "
            " UNION ALL SELECT 1 FROM visits))",
            "SELECT COUNT(*) FROM (SELECT 1 FROM people UNION ALL SELECT 1 FROM tests UNION ALL SELECT 1 FROM visits)",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT person_id FROM people UNION SELECT person_id FROM visits) AS t",
            "SELECT COUNT(*) FROM (SELECT DISTINCT person_id FROM (SELECT person_id FROM visits UNION ALL SELECT "
            "person_id FROM people) AS a) AS t",
        ),
    ],
)
def test_spellings_are_one_question(one: str, other: str) -> None:
    """Shows that neither the order of branches and columns nor brackets matter."""
    assert core_key(core(one), CLINIC) == core_key(core(other), CLINIC)


def test_other_rows_are_another_question() -> None:
    """Shows that conditions and values of branches are in the identity."""
    texts = [
        f"SELECT {a} AS x FROM people WHERE age > {b} UNION ALL SELECT {c} FROM visits"
        for a, b, c in [("age", 3, "cost"), ("age", 4, "cost"), ("hours", 3, "cost"), ("age", 3, "cost + 1")]
    ]
    assert len({core_key(core(f"SELECT SUM(x) FROM ({text}) AS t"), CLINIC) for text in texts}) == len(texts)


def test_different_rows_of_a_unit() -> None:
    """Shows how many there are at most, and that a marked side is not one of the columns."""
    assert core("SELECT COUNT(*) FROM (SELECT person_id FROM people EXCEPT SELECT person_id FROM visits) t").one_row
    several = core(
        "SELECT COUNT(*) FROM (SELECT person_id, ward FROM visits INTERSECT SELECT person_id, sex FROM people)"
    )
    assert rows_of_unit(several.core.sources) == 1_001
    assert not several.one_row
    with pytest.raises(Refused):
        lift('SELECT MAX("side$") FROM (SELECT person_id FROM people EXCEPT SELECT person_id FROM visits) t', CLINIC)


def test_branches_cost() -> None:
    """Shows that each branch is counted, in time and in what is planned."""
    branch = "SELECT cost AS x FROM visits WHERE ward LIKE '%a%'"
    texts = [" UNION ALL ".join([branch] * number) for number in (1, 2, 4)]
    work = [work_of([core(f"SELECT SUM(x) FROM ({text}) AS t")]) for text in texts]
    assert work[1].unit_nanoseconds > 1.5 * work[0].unit_nanoseconds
    assert work[2].unit_nanoseconds > 1.8 * work[1].unit_nanoseconds
    assert work[2].operators > work[1].operators
    check_work([core(f"SELECT SUM(x) FROM ({texts[2]}) AS t")])


def test_brackets_without_end_are_read_once() -> None:
    """Shows that nested set operations take a time that grows with their number, not with its power."""
    text = "SELECT 1 AS x FROM people"
    for _ in range(14):
        text = f"({text}) UNION ALL SELECT 1 FROM people"
    assert len(core(f"SELECT COUNT(*) FROM ({text}) AS t").core.sources) == 1


def test_released_values_stand_in_every_branch() -> None:
    """Shows that a value of an earlier stage, selected above a union that another union reads, is no column of it."""
    both = "SELECT age AS x FROM people UNION ALL SELECT cost FROM visits"
    one = f"SELECT x, (SELECT AVG(age) FROM people) AS m FROM ({both})"
    plan = lift(f"SELECT COUNT(*) FROM ({one} UNION ALL SELECT cost, 0.5 FROM visits) AS t WHERE x > m", CLINIC)
    assert len(plan.cores) == 2
    (source,) = plan.cores[1].sources
    assert source.union is not None
    assert len(source.union.branches) == 3
