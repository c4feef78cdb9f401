"""Rows become the same integers in two layers as in one, and groups chosen among cells are those chosen among rows."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction

import duckdb
import pytest

from engines.handlers.connection import private_settings
from privacy.bounds import ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, Dataset, PublicKeys, Table
from privacy.statistic import Encoding
from privacy.unit import PrivacyUnit
from sql_rewrite.bound import bound
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.encodings import moment_encoding, normed_sum_encoding, stepped_encoding, sum_encoding
from sql_rewrite.expressions import ColumnRef, Literal
from sql_rewrite.functions import build
from sql_rewrite.layer_values import Steps
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.lower_steps import in_two_layers, steps_of
from sql_rewrite.relations import Output, TableRows, TableSource

NUMBER = ColumnType.NUMBER
ENDS = [("0", "1"), ("0.3", "0.7"), ("-17.05", "3.999"), ("-1e9", "1e-9"), ("0", "1e300"), ("5", "5"), ("-1e-300", "0")]


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection as rows have."""
    with duckdb.connect(config=private_settings(threads=1, memory_limit_mb=500)) as connection:
        yield connection


def values(low: float, high: float) -> list[float | None]:
    """Ends, their neighbours, halves of steps, extremes, and what is not finite at the upper end."""
    found: list[float | None] = [None, 0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, math.inf, math.nan]
    for end in (low, high, (low + high) / 2):
        found += [end, math.nextafter(end, math.inf), math.nextafter(end, -math.inf), end * 2, end / 2, -end]
    chance = random.Random(5)
    return found + [low + (high - low) * chance.randrange(2**20) / 2**20 for _ in range(200)]


def encodings(low: Fraction, high: Fraction) -> list[Encoding]:
    """All ways of numbers to become whole."""
    return [
        sum_encoding(low, high, integer=False, fine=False),
        sum_encoding(low, high, integer=False, fine=True),
        moment_encoding(low, high, integer=False),
        stepped_encoding(low, high, integer=False),
        normed_sum_encoding(low, high, integer=False, rows=10_000),
        Encoding(low, (high - low) / 7 or Fraction(1), 0, 7),
    ]


@pytest.mark.parametrize(("lower_end", "upper_end"), ENDS)
def test_two_layers_are_one(engine: duckdb.DuckDBPyConnection, lower_end: str, upper_end: str) -> None:
    """The clip may follow the steps, whatever the value is."""
    low, high = float(lower_end), float(upper_end)
    engine.execute("CREATE OR REPLACE TABLE t (i INTEGER, x DOUBLE)")
    given = values(low, high)
    engine.execute("INSERT INTO t SELECT unnest($1), unnest($2)", [list(range(len(given))), given])
    clipped = build("clip", (ColumnRef("r", "x", NUMBER), Literal(low, NUMBER), Literal(high, NUMBER)))
    for encoding in encodings(Fraction(low), Fraction(high)):
        found = []
        for layered in (False, True):
            parameters = ParameterList()
            steps = steps_of(clipped, encoding, parameters, layered=layered)
            rows = TableRows((Output(steps, "s"),), (TableSource("t", "r", None),), None)
            text = DUCKDB.write(in_two_layers(rows) if layered else rows)
            assert layered == (' AS "e"' in text)
            found.append(engine.execute(text, list(parameters.values)).fetchall())
        assert found[0] == found[1]
        assert all(value is None or encoding.lowest <= value <= encoding.highest for (value,) in found[1])


def test_steps_beyond_doubles_stay_in_one_layer() -> None:
    """Ends that a double cannot hold are compared as integers."""
    wide = Encoding(Fraction(0), Fraction(1, 2**20), -(2**54), 2**54)
    steps = steps_of(ColumnRef("r", "x", NUMBER), wide, ParameterList(), layered=True)
    assert isinstance(steps, Steps)
    rows = TableRows((Output(steps, "s"),), (TableSource("t", "r", None),), None)
    assert in_two_layers(rows) is rows


def visits(groups: int) -> BoundedCore:
    """A sum and a mean by two public keys, of which a unit keeps some."""
    text = ColumnType.TEXT
    people = Table(
        "people", (Column("id", ColumnType.INTEGER, nullable=False),), protected=True, key="id", unit_column="id",
        contribution=ContributionBound(1, 1, 1),
    )  # fmt: skip
    rows = Table(
        "visits",
        (
            Column("id", ColumnType.INTEGER, nullable=False),
            Column("x", NUMBER, ValueBounds(Fraction(0), Fraction(10))),
            Column("k", text, keys=PublicKeys(("a", "b", "c"))),
            Column("l", text, keys=PublicKeys(("d", "e"))),
        ),
        protected=True,
        unit_column="id",
        contribution=ContributionBound(rows_per_unit=6, groups_per_unit=groups, rows_per_unit_and_group=2),
    )
    dataset = Dataset("d", PrivacyUnit("people", "id"), (people, rows), policy_version=1, data_version="v")
    (core,) = bound(lift("SELECT k, l, SUM(x) AS s, AVG(x) AS a, COUNT(*) AS n FROM visits GROUP BY k, l", dataset, {}))
    return core


@pytest.mark.parametrize("stored", ["ENUM", "VARCHAR"])
def test_cells_and_rows_have_one_choice(
    engine: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, stored: str
) -> None:
    """What is kept is the same, however keys are stored; and the choice is one of groups."""
    first, second = ("ENUM ('a', 'b', 'c')", "ENUM ('d', 'e')") if stored == "ENUM" else ("VARCHAR", "VARCHAR")
    engine.execute(
        f'CREATE OR REPLACE TABLE visits (x DOUBLE, k {first}, l {second}, "unit$id" INTEGER, "unit$draw" UBIGINT)'
    )
    chance = random.Random(7)
    rows: list[tuple[object, ...]] = []
    for unit in range(60):
        draw = chance.randrange(2**64)
        for _ in range(chance.choice([0, 1, 5, 50])):
            value = chance.choice([None, 1.5, 40.0, chance.random() * 10])
            rows.append((value, chance.choice("abc"), chance.choice("de"), unit, draw))
    columns = [list(column) for column in zip(*rows, strict=True)]
    engine.execute(f"INSERT INTO visits SELECT {', '.join(f'unnest(${i})' for i in range(1, 6))}", columns)
    core = visits(2)
    assert core.chosen_by_cell
    found = []
    for by_cell in (True, False):
        monkeypatch.setattr(BoundedCore, "chosen_by_cell", by_cell)
        statement = lower(core)
        assert "dense_rank" in statement.sql
        assert ('GROUP BY "u", "d"' in statement.sql) == by_cell
        found.append(sorted(engine.execute(statement.sql, list(statement.parameters)).fetchall()))
    assert found[0] == found[1]
    assert len(found[0]) == 6
    monkeypatch.undo()
    every = lower(visits(12))
    assert "dense_rank" not in every.sql
    assert sorted(engine.execute(every.sql, list(every.parameters)).fetchall()) != found[0]
