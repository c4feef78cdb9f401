"""Public groups that no row can be in are left out, and none that a row can be in."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from privacy.policy import Column, ColumnType, KeyValue, Other, PublicKeys
from privacy.refusal import Refused
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import ColumnRef, walk
from sql_rewrite.lift import lift
from tests.sql_rewrite.datasets import CLINIC, PEOPLE

MORE = replace(
    CLINIC,
    tables=tuple(
        replace(
            table,
            columns=(
                *table.columns,
                Column("region", ColumnType.TEXT, keys=PublicKeys(("coast", "hills", "lakes", "south"))),
                Column("level", ColumnType.INTEGER, keys=PublicKeys((0, 1, 2, 3), Other(-1))),
                Column("ward", ColumnType.TEXT, keys=PublicKeys(("a", "b"), Other(None)), nullable=False),
            ),
        )
        if table is PEOPLE
        else table
        for table in CLINIC.tables
    ),
)


def core(key: str, where: str) -> BoundedCore:
    """The core of a count by some keys under a condition."""
    (only,) = bound(lift(f"SELECT COUNT(*) FROM people WHERE {where} GROUP BY {key}", MORE))
    return only


def cells(key: str, where: str) -> list[Any]:
    """Its cells; of one key without their brackets."""
    found = core(key, where).described.keys.domain
    assert found is not None
    return [cell[0] if len(cell) == 1 else cell for cell in found]


R = ["coast", "hills", "lakes", "south"]


@pytest.mark.parametrize(
    ("key", "where", "expected"),
    [
        ("region", "region IN ('coast', 'south')", ["coast", "south"]),
        ("region", "region <> 'coast'", ["hills", "lakes", "south"]),
        ("region", "region IS NULL", [None]),
        ("region", "region IS NOT NULL", R),
        ("region", "region IS NULL OR region > 'hills'", ["lakes", "south", None]),
        ("region", "region LIKE '%s'", ["hills", "lakes"]),
        ("region", "age > 30", [*R, None]),
        ("region", "region = 'coast' OR age > 30", [*R, None]),
        ("region", "region = 'coast' AND age > 30", ["coast"]),
        ("UPPER(region)", "region IN ('coast', 'hills')", ["COAST", "HILLS"]),
        ("region IS NULL", "region = 'coast'", [False]),
        ("COALESCE(region, 'none')", "region IS NULL OR region = 'lakes'", ["lakes", "none"]),
        ("region", "NOT (region = 'coast')", ["hills", "lakes", "south"]),
        ("region", "region IS DISTINCT FROM 'coast'", ["hills", "lakes", "south", None]),
        ("hours", "hours BETWEEN 3 AND 5", [3, 4, 5]),
        ("FLOOR(hours / 10)", "hours < 25", [0, 1, 2]),
        ("hours // 40", "hours > 39 AND hours <= 50", [1]),
        ("age > 50", "age > 50", [True]),
        ("age > 50", "age > 20", [False, True]),
        ("MONTH(born)", "MONTH(born) IN (1, 2)", [1, 2]),
        ("MONTH(born)", "born >= '2024-01-01'", list(range(1, 13))),
        ("MONTH(born)", "LENGTH(education) > 3", [*range(1, 13), None]),
        ("sex, region", "sex = 'male' AND region IN ('coast')", [("coast", "male")]),
        ("sex, smoker", "sex = 'male' OR smoker", [("female", True), ("male", False), ("male", True)]),
        ("level", "level = 2", [2]),
        ("level", "level > 1", [2, 3, -1]),
        ("level", "level = 9", [-1]),
        ("level", "level IS NULL", [-1, None]),
        ("level", "level IS NOT NULL", [0, 1, 2, 3, -1]),
        ("ward", "ward = 'a'", ["a"]),
        ("ward", "ward IS NOT NULL", ["a", "b", None]),
    ],
)
def test_groups_that_cannot_occur_are_not_shown(key: str, where: str, expected: list[Any]) -> None:
    """Shows the cells of keys under conditions on them; a group of other values stays where it might hold a row."""
    assert set(cells(key, where)) == set(expected)
    assert len(cells(key, where)) == len(expected)


def test_two_keys_of_one_column_have_the_cells_that_go_together() -> None:
    """Shows that a value and its decade make one cell for each value, not all pairs."""
    found = cells("hours, hours // 10", "hours IS NOT NULL")
    assert sorted(found) == [(hours, hours // 10) for hours in range(81)]


@pytest.mark.parametrize("where", ["region = 'Coast'", "region = 'coast' AND region = 'hills'", "hours < 0"])
def test_an_answer_without_groups_is_not_sold(where: str) -> None:
    """Shows the refusal of conditions that rule out every group, before anything is charged."""
    with pytest.raises(Refused) as caught:
        core("region, hours", where)
    assert [finding.code for finding in caught.value.findings] == ["no_groups"]


KEYS = [
    "region",
    "sex, region",
    "COALESCE(region, sex)",
    "region || sex",
    "level, region",
    "hours // 30, level",
    "level % 2",
]
CONDITIONS = [
    "region = 'coast' OR sex = 'male'",
    "region IS NULL AND sex = 'female'",
    "NOT (region = sex)",
    "level < 2 OR level > 7",
    "CASE WHEN sex = 'male' THEN region IS NULL ELSE region = 'hills' END",
    "level = 2 AND hours > 50 AND region <> sex",
    "COALESCE(level, 9) = 9 OR hours IN (1, 40, 70)",
    "smoker AND level IS NOT NULL",
    "(level > 1) IS NULL",
    "region IN ('coast', NULL)",
    "region NOT IN ('coast', 'hills')",
    "sex = 'male' AND age > 3 AND level * 2 = 4",
]  # fmt: skip


@pytest.mark.parametrize("where", CONDITIONS)
@pytest.mark.parametrize("key", KEYS)
def test_no_row_is_outside_of_the_cells(key: str, where: str) -> None:
    """Shows on all rows of small values, outside ones included, that each row which stays is in a cell."""
    try:
        bounded = core(key, where)
    except Refused as refused:
        assert refused.findings[0].code == "no_groups"
        bounded = core(key, "TRUE")
        cells_: set[Any] = set()
        bounded = replace(bounded, core=core(key, where + " OR age IS NULL").core)
    else:
        assert bounded.described.keys.domain is not None
        cells_ = set(bounded.described.keys.domain)
    values: dict[str, list[KeyValue]] = {
        "region": [*R, None], "sex": ["female", "male"], "level": [0, 1, 2, 3, 9, -1, -7, None],
        "hours": [0, 1, 30, 40, 70, 80, None], "smoker": [True, False], "age": [0, 50],
    }  # fmt: skip
    assert bounded.core.where is not None
    expressions = [bounded.core.where, *(expression for _, expression in bounded.core.keys)]
    names = sorted({node.name for e in expressions for node in walk(e) if isinstance(node, ColumnRef)})
    reached = set()
    for chosen in itertools.product(*(values[name] for name in names)):
        row = {("r0", name): value for name, value in zip(names, chosen, strict=True)}
        if evaluate(bounded.core.where, row) is True:
            reached.add(tuple(evaluate(expression, row) for _, expression in bounded.core.keys))
    assert reached <= cells_
