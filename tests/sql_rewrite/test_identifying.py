"""Keys of which every value belongs to one person are refused before anything is charged, and no others are."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from sqlglot import exp

from privacy.policy import Dataset
from privacy.refusal import Finding, Refused
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import ColumnRef, Expression, columns_of
from sql_rewrite.identifying import identifying_column
from sql_rewrite.joins import resolve_sources
from sql_rewrite.lift import lift
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.references import reference
from sql_rewrite.syntax import parse
from tests.sql_rewrite.datasets import CLINIC, PEOPLE

WITH_EMAIL = replace(
    CLINIC,
    tables=tuple(
        replace(
            table, columns=tuple(replace(c, unique=c.name in ("education", "born")) for c in table.columns)
        ) if table is PEOPLE else table
        for table in CLINIC.tables
    ),
)  # fmt: skip
"""The clinic with two unique columns of people: a text and a day."""


def refused(sql: str, dataset: Dataset = CLINIC) -> Finding:
    """The first finding of a text that must be refused."""
    with pytest.raises(Refused) as caught:
        lift(sql, dataset)
    return caught.value.findings[0]


ONE_TO_ONE = [
    "person_id", "person_id + 0", "person_id - 5", "5 - person_id", "person_id * 3",
    "-person_id", "-(person_id + 1) * 2",
    "CAST(person_id AS VARCHAR)", "person_id || ''", "'p' || person_id", "CAST(person_id AS DOUBLE) + 0.0",
    "FLOOR(CAST(person_id AS DOUBLE))", "ROUND(person_id)", "COALESCE(person_id, -1)", "NULLIF(person_id, 3)",
]  # fmt: skip
SHARED = [
    "person_id % 10", "person_id // 10", "FLOOR(person_id / 10)", "ROUND(person_id, -1)", "person_id > 5",
    "person_id IS NULL", "ABS(person_id)", "SIGN(person_id)", "person_id * 0", "LENGTH('p' || person_id)",
    "GREATEST(person_id, 100)", "CASE WHEN smoker THEN person_id ELSE 0 END",
    "SUBSTR(CAST(person_id AS VARCHAR), 1, 1)",
]  # fmt: skip


def lifted(text: str) -> Expression:
    """The typed form of an expression over people; `x || y` of numbers is written as a cast."""
    for side in ("|| person_id", "person_id ||"):
        text = text.replace(side, side.replace("person_id", "CAST(person_id AS VARCHAR)"))
    tree, parsed = parse(f"SELECT {text} FROM people")
    assert isinstance(tree, exp.Select)
    names = resolve_sources(tree, [(tree.args["from_"].this, PEOPLE)], CLINIC, parsed)
    return ExpressionLift(parsed, names.resolve, {}).lift(tree.expressions[0])


@pytest.mark.parametrize("key", ONE_TO_ONE)
def test_a_one_to_one_key_of_the_unit_is_not_sold(key: str) -> None:
    """Shows that functions which keep people apart are seen, and that they do keep them apart."""
    expression = lifted(key)
    assert identifying_column(expression) is not None
    (column,) = columns_of(expression)
    people = random.Random(3).sample(range(-10_000, 10_000), 500)
    people = [person for person in people if person not in (3, -1)]
    values = {evaluate(expression, {(column.relation, column.name): person}) for person in people}
    assert len(values) == len(people)


@pytest.mark.parametrize("key", SHARED)
def test_a_key_that_people_share_is_answered(key: str) -> None:
    """Shows that a function of the unit's key of which many people have one value is a key like any other."""
    assert identifying_column(lifted(key)) is None


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT person_id + 0 AS k, COUNT(*) FROM people GROUP BY k", "the privacy unit"),
        ("SELECT sex, person_id * 2 AS k, COUNT(*) FROM people GROUP BY ALL", "the privacy unit"),
        ("SELECT visit_id, COUNT(*) FROM visits GROUP BY 1", '"visit_id"'),
        ("SELECT visit_id + 1, COUNT(*) FROM visits GROUP BY 1", '"visit_id"'),
        ("SELECT visit_id, AVG(result) FROM tests GROUP BY 1", '"visit_id"'),
        ("SELECT education, COUNT(*) FROM people GROUP BY 1", '"education"'),
        ("SELECT born, sex, COUNT(*) FROM people GROUP BY ALL", '"born"'),
        ("SELECT education, COUNT(*) FROM visits JOIN people USING (person_id) GROUP BY 1", '"education"'),
    ],
)  # fmt: skip
def test_answers_that_are_empty_beforehand_are_refused(sql: str, named: str) -> None:
    """Shows the refusal before the charge, with the column that makes it so and a way out."""
    finding = refused(sql, WITH_EMAIL)
    assert finding.code == "group_by_unit"
    assert named in finding.what
    assert finding.position is not None
    assert finding.instead


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT hospital_id, COUNT(*) FROM visits GROUP BY 1",
        "SELECT h.hospital_id, COUNT(*) FROM visits v JOIN hospitals h ON v.hospital_id = h.hospital_id GROUP BY 1",
        "SELECT education, COUNT(*) FROM people GROUP BY 1",
        "SELECT COUNT(DISTINCT person_id) FROM visits",
    ],
)
def test_keys_of_public_tables_are_shared(sql: str) -> None:
    """Shows that the key of a public table, and a column that is not declared unique, are keys like any other."""
    lift(sql, CLINIC)


def test_only_columns_of_people_identify() -> None:
    """Shows which columns of the clinic belong to one person, by their declarations."""
    found = set()
    for table in CLINIC.tables:
        tree, parsed = parse(f"SELECT 1 FROM {table.name}")
        assert isinstance(tree, exp.Select)
        if table.protected:
            (source,) = resolve_sources(tree, [(tree.args["from_"].this, table)], CLINIC, parsed).sources
            columns: list[ColumnRef] = [reference(source, column, CLINIC) for column in table.columns]
            found |= {(table.name, column.name) for column in columns if column.identifies}
    assert found == {
        ("people", "person_id"), ("visits", "visit_id"), ("visits", "person_id"), ("tests", "test_id"),
        ("tests", "visit_id"),
    }  # fmt: skip
