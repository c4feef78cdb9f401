"""The identity of a release holds the declarations that its plan read, and nothing else of the policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from privacy.bounds import ContributionBound
from privacy.policy import Column, ColumnType, Dataset, PublicKeys, Table
from privacy.unit import Neighbouring
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import core_key
from tests.sql_rewrite.datasets import CLINIC, bounds

JOINED = (
    "SELECT p.sex, AVG(v.cost) AS c, COUNT(*) FILTER (WHERE p.age > 40) FROM visits v "
    "JOIN people p ON v.person_id = p.person_id WHERE v.day IS NOT NULL GROUP BY p.sex"
)
HIDDEN = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
PLAIN = "SELECT SUM(salary) AS s FROM people WHERE sex = 'female'"


def key(sql: str, dataset: Dataset) -> str:
    """The identity of a text's only core."""
    (only,) = bound(lift(sql, dataset))
    return core_key(only, dataset)


def table(name: str, **changes: Any) -> Callable[[Dataset], Dataset]:
    """The dataset with one table changed."""

    def change(dataset: Dataset) -> Dataset:
        return replace(dataset, tables=tuple(replace(t, **changes) if t.name == name else t for t in dataset.tables))

    return change


def column(of: str, name: str, **changes: Any) -> Callable[[Dataset], Dataset]:
    """The dataset with one column changed."""

    def change(dataset: Dataset) -> Dataset:
        def columns(one: Table) -> tuple[Column, ...]:
            return tuple(replace(c, **changes) if c.name == name else c for c in one.columns)

        return replace(
            dataset, tables=tuple(replace(t, columns=columns(t)) if t.name == of else t for t in dataset.tables)
        )

    return change


def limits(**changes: Any) -> Callable[[Dataset], Dataset]:
    """The dataset with other limits of one query."""
    return lambda dataset: replace(dataset, limits=replace(dataset.limits, **changes))


UNRELATED = [
    lambda dataset: replace(dataset, description="Another text", policy_version=2),
    table("visits", description="Another text"),
    column("visits", "cost", description="Another text"),
    column("people", "income", bounds=bounds(0, 10)),
    column("people", "hours", keys=None),
    column("people", "education", nullable=False),
    table("tests", contribution=ContributionBound(5, 5, 5)),
    column("tests", "result", bounds=bounds(-1, 1)),
    column("hospitals", "region", keys=PublicKeys(("north",))),
    limits(epsilon_max=Fraction(2), epsilon_default=Fraction(1, 5), timeout_seconds=5, cells_max=500),
]


@pytest.mark.parametrize("change", UNRELATED)
@pytest.mark.parametrize("sql", [JOINED, HIDDEN, PLAIN])
def test_an_edit_that_the_plan_did_not_read_does_not_sell_the_answer_again(
    sql: str, change: Callable[[Dataset], Dataset]
) -> None:
    """Descriptions, other tables and columns, limits of one query and the policy's number are outside."""
    assert key(sql, CLINIC) == key(sql, change(CLINIC))


READ = [
    (JOINED, column("visits", "cost", bounds=bounds(0, 4_999))),
    (JOINED, column("visits", "cost", nullable=False)),
    (JOINED, column("visits", "day", nullable=False)),
    (JOINED, column("people", "sex", keys=PublicKeys(("female", "male", "other")))),
    (JOINED, column("people", "sex", keys=PublicKeys(("male", "female")))),
    (JOINED, column("people", "age", nullable=True)),
    (JOINED, column("people", "age", bounds=bounds(0, 90))),
    (JOINED, table("visits", contribution=ContributionBound(40, 4, 14))),
    (JOINED, table("visits", contribution=ContributionBound(40, 3, 15))),
    (JOINED, table("people", contribution=ContributionBound(2, 1, 2))),
    (HIDDEN, table("visits", contribution=ContributionBound(40, 5, 15))),
    (HIDDEN, column("visits", "ward", keys=PublicKeys(("a", "b")))),
    (HIDDEN, column("visits", "ward", type=ColumnType.INTEGER)),
    (PLAIN, column("people", "salary", bounds=bounds(0, 199_999))),
    (PLAIN, column("people", "salary", nullable=False)),
    (PLAIN, table("people", contribution=ContributionBound(3, 1, 3))),
    (PLAIN, lambda dataset: replace(dataset, data_version="v2")),
    (PLAIN, lambda dataset: replace(dataset, name="surgery")),
    (PLAIN, lambda dataset: replace(dataset, neighbouring=Neighbouring.REPLACE_ONE)),
]


@pytest.mark.parametrize(("sql", "change"), READ)
def test_what_the_plan_read_is_inside(sql: str, change: Callable[[Dataset], Dataset]) -> None:
    """Each declaration that gives the numbers their meaning makes another release."""
    changed = change(CLINIC)
    if changed.neighbouring is not CLINIC.neighbouring:
        (only,) = bound(lift(sql, CLINIC))
        assert core_key(only, CLINIC) != core_key(only, changed)
        return
    assert key(sql, CLINIC) != key(sql, changed)


def test_what_was_bounded_otherwise_is_another_release() -> None:
    """Contribution bounds, filters and encodings are inside wherever they came from, also from the request."""
    (only,) = bound(lift(JOINED, CLINIC))
    mine = core_key(only, CLINIC)
    (statistic, *others) = only.statistics
    variants = [
        replace(only, contribution=replace(only.contribution, rows=only.contribution.rows - 1)),
        replace(only, contribution=replace(only.contribution, groups=only.contribution.groups + 1)),
        replace(only, statistics=(replace(statistic, rows=statistic.rows + 1), *others)),
        replace(only, statistics=(replace(statistic, filter=None, argument=None), *others)),
        replace(only, domains=(("female",),)),
        replace(only, described=replace(only.described, keys=replace(only.described.keys, domain=(("female",),)))),
    ]
    keys = [core_key(variant, CLINIC) for variant in variants]
    assert len({mine, *keys}) == 1 + len(variants)
    shown = replace(
        only,
        core=replace(only.core, name="c9"),
        described=replace(
            only.described,
            name="c9",
            statistics=tuple(replace(s, argument="another text") for s in only.described.statistics),
        ),
    )
    assert mine == core_key(shown, CLINIC)


@pytest.mark.parametrize(
    "condition",
    [
        "age > 40 AND TRUE",
        "TRUE AND age > 40",
        "age > 40 AND TRUE AND TRUE",
        "age > 40 OR FALSE",
        "(age > 40 OR FALSE) AND (TRUE OR FALSE AND FALSE OR TRUE)",
        "NOT NOT age > 40",
        "NOT (NOT (age > 40 AND TRUE))",
    ],
)
def test_a_condition_beside_one_that_says_nothing_is_not_sold_again(condition: str) -> None:
    """TRUE in AND, FALSE in OR and double negation change no value, nor NULL: the stored answer is the answer."""
    plain = "SELECT COUNT(*) AS n FROM people WHERE age > 40"
    assert key(f"SELECT COUNT(*) AS n FROM people WHERE {condition}", CLINIC) == key(plain, CLINIC)
    filtered = f"SELECT COUNT(*) FILTER (WHERE {condition}) AS n FROM people"
    assert key(filtered, CLINIC) == key("SELECT COUNT(*) FILTER (WHERE age > 40) AS n FROM people", CLINIC)


@pytest.mark.parametrize("condition", ["age > 40 AND FALSE", "age > 40 OR TRUE", "NOT age > 40", "age > 40 AND NULL"])
def test_a_condition_beside_one_that_decides_keeps_its_identity(condition: str) -> None:
    """The other constants change the value."""
    plain = "SELECT COUNT(*) AS n FROM people WHERE age > 40"
    assert key(f"SELECT COUNT(*) AS n FROM people WHERE {condition}", CLINIC) != key(plain, CLINIC)
