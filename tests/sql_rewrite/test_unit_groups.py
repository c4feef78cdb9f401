"""Aggregation within each unit, and joins on the unit: what is known of the rows, one identity, refusals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from privacy.bounds import ContributionBound
from privacy.policy import Dataset
from privacy.refusal import Finding, Refused
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.contribution import Contribution, NormedContribution
from sql_rewrite.cost import check_work
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


def column(listed: str, dataset: Dataset = CLINIC) -> ColumnRef:
    """What is known of a column of rows of visits that are grouped by their person."""
    found = core(f"SELECT COUNT(*) FROM (SELECT person_id, {listed} AS x FROM visits GROUP BY person_id) AS t", dataset)
    source = found.core.sources[0]
    shown = next(c for c in source.table.columns if c.description == "x")
    return reference(source, shown, dataset)


def refused(sql: str, dataset: Dataset = CLINIC) -> Finding:
    """The first finding of a text that must be refused."""
    with pytest.raises(Refused) as caught:
        check_work(bound(lift(sql, dataset)))
    return caught.value.findings[0]


def between(lower: int, upper: int) -> Interval:
    """A range of whole numbers."""
    return Interval(Fraction(lower), Fraction(upper))


def test_ranges_follow_from_rows_and_bounds() -> None:
    """Shows that a thousand stored rows bound a count, and forty declared ones what a sum is clipped to."""
    assert column("COUNT(*)").interval == between(1, 1_000)
    assert column("COUNT(*)").declared == between(1, 40)
    assert column("COUNT(*)", AUTOMATIC).declared == between(1, 1_000)
    assert column("COUNT(*) FILTER (WHERE cost > 5)").interval == between(0, 1_000)
    assert column("COUNT(ward)").interval == between(0, 1_000)
    assert column("SUM(cost)").declared == between(0, 200_000)
    assert column("AVG(cost)").declared == between(0, 5_000)
    assert column("MAX(cost)").declared == between(0, 5_000)
    assert column("SUM(hospital_id)").interval == between(-(2**63) * 1_000, (2**63 - 1) * 1_000)
    assert column("SUM(hospital_id)").declared is None
    assert column("COUNT(DISTINCT person_id)").interval == between(1, 1_000)
    assert column("COUNT(DISTINCT cost > 5)").interval == between(0, 2)


def test_null_is_known() -> None:
    """Shows that only what may be NULL is nullable: a value of nothing, a column with NULL, a row under a filter."""
    assert not column("COUNT(ward)").nullable
    assert not column("MIN(visit_id)").nullable
    assert column("MIN(visit_id) FILTER (WHERE cost > 5)").nullable
    assert column("SUM(cost)").nullable
    assert not column("SUM(visit_id % 7)").nullable
    assert column("BOOL_OR(cost > 5)").nullable


def test_a_value_of_one_person_stays_one() -> None:
    """Shows that the first visit's id names one person, and is no key."""
    assert column("MIN(visit_id)").identifies
    assert not column("COUNT(*)").identifies
    text = "SELECT x, COUNT(*) FROM (SELECT MIN(visit_id) AS x FROM visits GROUP BY person_id) AS t GROUP BY x"
    assert refused(text).code == "group_by_unit"


@pytest.mark.parametrize(
    ("listed", "rows"),
    [
        ("GROUP BY person_id", 1),
        ("GROUP BY person_id, person_id + 1", 1),
        ("GROUP BY person_id, ward", 1_000),
        ("GROUP BY ALL", 1),
    ],
)
def test_rows_of_a_unit(listed: str, rows: int) -> None:
    """Shows that a unit has one row where its keys are constant, and else as many as are stored."""
    found = core(f"SELECT SUM(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits {listed}) AS t")
    assert rows_of_unit(found.core.sources) == rows
    assert isinstance(found.contribution, Contribution)
    assert found.contribution.one_row == (rows == 1)
    joined = core(
        "SELECT AVG(n) FROM (SELECT p.person_id, p.sex, COUNT(*) AS n FROM visits AS v JOIN people AS p USING "
        "(person_id) "
        "GROUP BY 1, 2) AS t"
    )
    assert joined.one_row


def test_bounds_multiply_in_a_join_on_the_unit() -> None:
    """Shows that pairs of a unit's rows count with the product of the bounds, and norms see all stored pairs."""
    text = "SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.person_id = b.person_id AND a.visit_id < b.visit_id"
    counted = core(text).contribution
    assert isinstance(counted, Contribution)
    assert counted.total == 1_600
    normed = core(text, AUTOMATIC).contribution
    assert isinstance(normed, NormedContribution)
    assert normed.rows == 1_000_000
    left = core("SELECT COUNT(*) FROM people AS p LEFT JOIN visits AS v USING (person_id)").contribution
    assert isinstance(left, Contribution)
    assert not left.one_row
    assert left.total == 40


def test_names_and_unread_columns_are_no_matter() -> None:
    """Shows one identity for other names, order, brackets and CTEs; bounds and conditions are part of it."""
    texts = [
        "SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits WHERE cost > 5 GROUP BY person_id) AS t",
        "SELECT AVG(m) AS x FROM (SELECT COUNT(*) AS m, person_id AS p FROM visits AS v WHERE 5 < v.cost GROUP BY 2) "
        "AS u",
        "WITH c(a, b) AS (SELECT person_id, COUNT(*) FROM visits WHERE cost > 5 GROUP BY ALL) SELECT AVG(b) FROM c",
    ]
    keys = {core_key(core(text), CLINIC) for text in texts}
    assert len(keys) == 1
    assert core_key(core(texts[0].replace("> 5", "> 6")), CLINIC) not in keys
    tables = [
        replace(table, contribution=ContributionBound(30, 4, 15)) if table.name == "visits" else table
        for table in CLINIC.tables
    ]
    changed = replace(CLINIC, tables=tuple(tables))
    assert core_key(core(texts[0], changed), changed) not in keys


def test_keys_of_the_unit_are_what_they_were() -> None:
    """Shows that a table's own column of the unit decides nothing about groups: stored releases of such keys serve."""
    found = core("SELECT person_id % 1000 AS k, COUNT(*) FROM visits GROUP BY k").contribution
    assert isinstance(found, Contribution)
    assert (found.groups, found.choose_groups) == (4, True)


def test_membership_adds_no_rows_and_is_there_once() -> None:
    """Shows that a unit's rows elsewhere are one row at most, joined once, however they are asked for."""
    inside = "(SELECT person_id FROM visits WHERE cost > 5)"
    asked = core(f"SELECT COUNT(*) FROM people WHERE person_id IN {inside} OR age > 3 AND person_id NOT IN {inside}")
    assert asked.one_row
    assert [source.relation for source in asked.core.sources] == ["r0", "r1"]
    exists = "EXISTS (SELECT 1 FROM visits AS v WHERE p.person_id = v.person_id AND v.cost > 5)"
    one, two = (
        core(f"SELECT COUNT(*) FROM people WHERE person_id IN {inside}"),
        core(f"SELECT COUNT(*) FROM people AS p WHERE {exists}"),
    )
    assert core_key(one, CLINIC) == core_key(two, CLINIC)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT person_id, COUNT(*) FROM visits GROUP BY person_id", "group_by_unit"),
        ("SELECT n FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY 1) AS t", "raw_rows"),
        (
            "SELECT AVG(s) FROM (SELECT person_id, SUM(hospital_id) AS s FROM visits GROUP BY 1) AS t",
            "column_without_bounds",
        ),
        ("SELECT AVG(n) FROM (SELECT person_id, ward, COUNT(*) AS n FROM visits GROUP BY 1) AS t", "unsupported_sql"),
        (
            "SELECT AVG(n) FROM (SELECT person_id, VARIANCE(cost) AS n FROM visits GROUP BY 1) AS t",
            "unsupported_function",
        ),
        (
            "SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY 1 LIMIT 3) AS t",
            "private_row_limit",
        ),
        ("SELECT AVG(n) FROM (SELECT person_id, SUM(ward) AS n FROM visits GROUP BY 1) AS t", "unsupported_type"),
        (
            "SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY 1 HAVING SUM(cost)) AS t",
            "unsupported_type",
        ),
        (
            "SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY 1, ROLLUP (ward)) AS t",
            "unsupported_sql",
        ),
        ("SELECT COUNT(*) FROM people WHERE person_id IN (SELECT visit_id FROM visits)", "correlated_subquery"),
        ("SELECT COUNT(*) FROM people WHERE age IN (SELECT hospital_id FROM visits)", "correlated_subquery"),
        ("SELECT COUNT(*) FROM visits WHERE hospital_id IN (SELECT beds FROM hospitals)", "correlated_subquery"),
        (
            "SELECT COUNT(*) FROM visits WHERE hospital_id NOT IN (SELECT hospital_id FROM hospitals WHERE beds > 3)",
            "correlated_subquery",
        ),
        ("SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM visits WHERE cost > 5)", "correlated_subquery"),
        (
            "SELECT COUNT(*) FROM people AS p LEFT JOIN visits AS v USING (person_id) WHERE v.person_id IN "
            "(SELECT person_id FROM visits)",
            "correlated_subquery",
        ),
        (
            "SELECT AVG(n) FROM (SELECT v.person_id, COUNT(*) AS n FROM hospitals AS h LEFT JOIN visits AS v ON "
            "v.hospital_id = h.hospital_id GROUP BY v.person_id) AS t",
            "unsupported_sql",
        ),
        ("SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.visit_id = b.person_id", "join_not_on_key"),
        ("SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.hospital_id = b.person_id", "join_not_on_key"),
        (
            "SELECT COUNT(*) FROM visits AS a JOIN visits AS b USING (person_id) JOIN visits AS c USING (person_id)",
            "join_multiplies",
        ),
        (
            "SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.person_id = b.person_id AND a.ward = b.ward",
            "join_multiplies",
        ),
    ],
)
def test_what_is_refused(sql: str, code: str) -> None:
    """Shows the refusals: rows of people as an answer, values without bounds, and pairs that take too long."""
    assert refused(sql).code == code


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id) AS t",
        "SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM visits WHERE cost > 3)",
        "SELECT COUNT(*) FROM people AS p WHERE NOT EXISTS (SELECT 1 FROM visits AS v WHERE v.person_id = p.person_id)",
        "SELECT COUNT(*) FROM (SELECT DISTINCT person_id, ward FROM visits) AS t",
    ],
)
def test_the_units_key_needs_no_declaration(sql: str) -> None:
    """Shows that columns are nullable unless declared, and the unit's key is not: snapshots keep no row without it."""
    tables = tuple(
        replace(table, columns=tuple(replace(column, nullable=True) for column in table.columns))
        for table in CLINIC.tables
    )
    assert bound(lift(sql, replace(CLINIC, tables=tables)))
    outer = (
        "SELECT AVG(n) FROM (SELECT p.person_id, COUNT(*) AS n FROM visits AS v LEFT JOIN people AS p "
        "ON v.person_id = p.person_id GROUP BY p.person_id) AS t"
    )
    with pytest.raises(Refused):
        lift(outer, CLINIC)
