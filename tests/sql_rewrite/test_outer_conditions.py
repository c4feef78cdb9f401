"""Conditions of a LEFT JOIN on the tables before it: what is known of its rows, its statement, refusals."""

from __future__ import annotations

import pytest

from privacy.policy import ColumnType
from sql_rewrite.apart_sides import CLAUSES_MAX, clauses
from sql_rewrite.contribution import Contribution
from sql_rewrite.cost import check_work
from sql_rewrite.expressions import ColumnRef, Literal, columns_of
from sql_rewrite.functions import build
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.lower_unit_groups import read_columns
from sql_rewrite.memory import text_bytes
from sql_rewrite.plan_key import core_key
from sql_rewrite.reachable import conjuncts
from tests.sql_rewrite.datasets import CLINIC
from tests.sql_rewrite.test_unit_groups import core, refused

JOINED = "FROM visits AS v LEFT JOIN people AS p ON p.person_id = v.person_id"


def test_a_partner_that_some_rows_meet_is_not_the_same_in_all() -> None:
    """Shows that a unit is in one group of its person's sex, and in that of NULL as well under such a condition."""
    found = [core(f"SELECT p.sex, COUNT(*) {JOINED}{more} GROUP BY p.sex") for more in ("", " AND v.cost > 3")]
    groups = [one.contribution.groups for one in found if isinstance(one.contribution, Contribution)]
    assert groups[0] == 1
    assert groups[1] > 1


@pytest.mark.parametrize("joined", ["people", "(SELECT person_id, age FROM people)"])
@pytest.mark.parametrize("more", ["v.cost > 3", "p.age > 30", "p.age > v.cost"])
def test_the_key_of_the_joined_side_counts_as_values(joined: str, more: str) -> None:
    """Shows that rows without a partner are no rows of its unit: whoever meets none is not counted."""
    asked = f"SELECT COUNT(DISTINCT p.person_id) FROM visits AS v LEFT JOIN {joined} AS p ON p.person_id = v.person_id"
    assert core(asked).statistics[0].distinct is None
    assert core(f"{asked} AND {more}").statistics[0].distinct is not None


def test_the_statement_joins_by_equal_values() -> None:
    """Shows a NULL in place of the key for rows that fail, and a comparison beside the equality of units."""
    alone = lower(core(f"SELECT COUNT(p.age) {JOINED} AND v.cost > 3")).sql
    assert alone.partition(" ON (")[2].lstrip("(").startswith("CASE WHEN")
    both = lower(core(f"SELECT COUNT(p.age) {JOINED} AND p.age > v.cost")).sql
    assert both.partition(" ON (")[2].count(" AND ") == 1


@pytest.mark.parametrize(
    ("more", "comparisons"),
    [
        ("(v.cost > 3 OR p.age > 3)", 1),
        ("NOT (v.cost > 3 AND p.age > 3)", 1),
        ("((v.cost > 3 AND p.age > 3) OR (v.cost < 1 AND p.age < 1))", 2),
    ],
)
def test_an_or_of_both_sides_is_a_comparison(more: str, comparisons: int) -> None:
    """Shows that such a condition is divided into the sides, and the source stays a join of the two tables."""
    (_, joined) = core(f"SELECT COUNT(*) {JOINED} AND {more}").core.sources
    assert joined.join is not None
    parts = [] if joined.join.when is None else conjuncts(joined.join.when)
    assert sum(joined.relation in {ref.relation for ref in columns_of(part)} for part in parts) == comparisons


@pytest.mark.parametrize(
    "more",
    ["p.age + v.cost > 3", "(v.cost > 3) = (v.cost > p.age)", "p.age + v.cost > v.cost"],
)
def test_what_compares_no_side_with_the_other_is_written_out(more: str) -> None:
    """Shows a union in place of conditions that an engine could only try on every pair of rows of all people."""
    (source,) = core(f"SELECT COUNT(*) {JOINED} AND {more}").core.sources
    assert source.union is not None
    assert len(source.union.branches) == 2
    third = " JOIN hospitals AS h ON h.hospital_id = v.hospital_id"
    assert refused(f"SELECT COUNT(*) {JOINED} AND {more}{third}").code == "join_not_on_key"


@pytest.mark.parametrize(
    ("before", "more", "after"),
    [
        ("JOIN (VALUES (3), (4)) AS c(x) ON v.cost > c.x ", "c.x > 3", ""),
        ("JOIN (VALUES (3), (4)) AS c(x) ON v.cost > c.x ", "p.age > c.x", ""),
        ("", "v.cost > h.beds", " LEFT JOIN hospitals AS h ON h.hospital_id = v.hospital_id"),
        ("", "p.age > h.beds", " LEFT JOIN hospitals AS h ON h.hospital_id = v.hospital_id"),
    ],
)
def test_a_condition_reads_tables_that_are_joined_by_then(before: str, more: str, after: str) -> None:
    """Shows that rows of constants, which are joined after all tables, and later tables are no earlier side."""
    people = "LEFT JOIN people AS p ON p.person_id = v.person_id"
    found = refused(f"SELECT COUNT(*) FROM visits AS v {before}{people} AND {more}{after}")
    assert found.code == "join_not_on_key"
    assert "LEFT JOIN is refused" in found.what


def test_too_many_clauses_are_none() -> None:
    """Shows that a form which is cut at its most clauses is never taken for the whole."""
    ref = ColumnRef("r0", "age", ColumnType.INTEGER)
    parts = [build("<", (ref, Literal(one, ColumnType.INTEGER))) for one in range(10)]
    pairs = [build("and", (parts[place], parts[place + 1])) for place in range(0, 10, 2)]
    assert len(clauses(build("or", tuple(pairs[:4]))) or ()) == CLAUSES_MAX
    assert clauses(build("or", tuple(pairs))) is None
    assert clauses(build("not", (build("and", tuple(build("or", (one, one)) for one in parts)),))) is None


def test_what_a_comparison_reads_is_there() -> None:
    """Shows that the columns which ON alone compares are read, also that of a nested query."""
    nested = "(SELECT person_id, MAX(cost) AS top FROM visits GROUP BY person_id)"
    only = core(
        f"SELECT COUNT(*) FROM visits AS v LEFT JOIN {nested} AS t ON t.person_id = v.person_id AND t.top > v.cost"
    )
    assert {relation for relation, _ in read_columns(only.core.sources)} == {"r0", "r1"}


def test_another_condition_is_another_question() -> None:
    """Shows that a stored release of one text is not that of a text with another condition beside its equality."""
    conditions = ("", " AND v.cost > 3", " AND v.cost > 4", " AND p.age > v.cost", " AND p.age < v.cost")
    keys = {core_key(core(f"SELECT COUNT(p.age) {JOINED}{more}"), CLINIC) for more in conditions}
    assert len(keys) == len(conditions)
    nested = (f"SELECT COUNT(*) FROM (SELECT v.person_id, COUNT(p.age) AS n {JOINED}{more} GROUP BY v.person_id) AS t "
              "WHERE n > 1" for more in conditions)  # fmt: skip
    assert len({core_key(core(sql), CLINIC) for sql in nested}) == len(conditions)
    both = ", ".join(f"(SELECT COUNT(p.age) {JOINED}{more})" for more in conditions)
    assert len(lift(f"SELECT {both}", CLINIC).cores) == len(conditions)


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT COUNT(p.age) {}",
        "SELECT COUNT(*) FROM (SELECT v.person_id, COUNT(p.age) AS n {} GROUP BY v.person_id) AS t",
        "SELECT SUM(n) FROM (SELECT v.person_id, COUNT(p.age) OVER (PARTITION BY v.person_id) AS n {}) AS t",
        "SELECT COUNT(*) FROM (SELECT v.person_id, p.age {} UNION ALL SELECT person_id, age FROM people) AS t",
    ],
)
def test_what_a_condition_takes_is_counted(asked: str) -> None:
    """Shows that time, and text in memory, grow with a condition beside the equality: in each layer that has joins."""
    plain, dear = (
        core(asked.format(f"{JOINED} AND {one} AND p.age > v.cost"))
        for one in ("v.ward > 'a'", "UPPER(LOWER(UPPER(v.ward))) > 'a'")
    )
    assert check_work([dear]).unit_nanoseconds > check_work([plain]).unit_nanoseconds
    assert check_work([dear]).row_nanoseconds > check_work([plain]).row_nanoseconds
    assert text_bytes([dear]) > text_bytes([plain])
