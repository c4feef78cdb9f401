"""What a snapshot keeps of units takes the place of grouping rows by unit, and every integer stays what it was."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from engines.handlers.connection import private_settings
from privacy.bounds import AutomaticContribution, ContributionBound, ValueBounds
from privacy.norms import NormPower
from privacy.policy import Column, ColumnType, Dataset, PrivacyUnit, PublicKeys, Reference, Table
from sql_rewrite import kept_units, light_units, lower
from sql_rewrite.bound import bound
from sql_rewrite.cost import work_of
from sql_rewrite.kept_totals import kept_totals, values_of
from sql_rewrite.lift import lift
from sql_rewrite.lower_ranks import weighed_by_unit

T = ColumnType
STORED = 12
BOUND = ContributionBound(4, 2, 3)
_ZERO = Fraction(0)

PEOPLE = Table(
    "people", (Column("id", T.INTEGER, nullable=False), Column("age", T.INTEGER, ValueBounds(_ZERO, Fraction(99)))),
    protected=True, key="id", rows_stored_per_unit=1, contribution=ContributionBound(1, 1, 1), unit_column="id",
)  # fmt: skip
VISITS = Table(
    "visits",
    (
        Column("person", T.INTEGER, nullable=False),
        Column("cost", T.NUMBER, ValueBounds(_ZERO, Fraction(50))),
        Column("paid", T.NUMBER, ValueBounds(_ZERO, Fraction(50)), nullable=False),
        Column("rare", T.INTEGER, ValueBounds(Fraction(-3), Fraction(50))),
        Column("due", T.NUMBER, ValueBounds(Fraction(-5), Fraction(50)), nullable=False),
        Column("kind", T.TEXT, keys=PublicKeys(("a", "b")), nullable=False),
    ),
    protected=True, unit_column="person", references=(Reference("person", "people", "id"),),
    rows_stored_per_unit=STORED, contribution=BOUND,
)  # fmt: skip


def _dataset(visits: Table, *, kept: bool) -> Dataset:
    dataset = Dataset("d", PrivacyUnit("people", "id"), (PEOPLE, visits), 1, "v")
    if not kept:
        return dataset
    known = replace(visits, stored_norms=("kind",), stored_totals=kept_totals(dataset)["visits"])
    return replace(dataset, tables=(PEOPLE, known))


SHAPES = {
    "counts": VISITS,
    "all stored rows count": replace(VISITS, contribution=ContributionBound(STORED, 2, STORED)),
    "norms": replace(VISITS, contribution=AutomaticContribution(BOUND)),
    "tables of units": replace(VISITS, stored_units=True),
}

MEDIANS = (
    "SELECT MEDIAN(cost) FROM visits",
    "SELECT MEDIAN(paid) FROM visits",
    "SELECT kind, MEDIAN(cost) FROM visits GROUP BY kind",
    "SELECT MEDIAN(paid) FROM visits WHERE due > 20",
    "SELECT MEDIAN(paid) FILTER (WHERE due > 20), COUNT(*) FROM visits",
    "SELECT MEDIAN(paid) FROM visits JOIN people ON person = id WHERE age > 40 AND cost > 3",
    "SELECT MEDIAN(a.paid) FROM visits AS a JOIN visits AS b ON a.person = b.person WHERE b.kind = 'a'",
    "SELECT MEDIAN(cost + paid) FROM visits",
    "SELECT MEDIAN(rare), QUANTILE_CONT(cost, 0.9) FROM visits",
)
SUMS = (
    "SELECT SUM(cost) FROM visits",
    "SELECT SUM(paid), COUNT(*) FROM visits",
    "SELECT AVG(paid) FROM visits",
    "SELECT AVG(cost), COUNT(DISTINCT person) FROM visits",
    "SELECT SUM(due) FROM visits",
    "SELECT SUM(cost) FROM visits JOIN people ON person = id WHERE age > 40",
    "SELECT SUM(cost), COUNT(cost) FROM visits WHERE kind = 'a'",
    "SELECT SUM(cost) FILTER (WHERE due > 20) FROM visits",
    "SELECT kind, SUM(cost) FROM visits GROUP BY kind",
)


@pytest.fixture(scope="module")
def rows() -> Iterator[duckdb.DuckDBPyConnection]:
    """Units with 0, 1, 2, 3, 4, 5 and all rows that are stored, with NULL, and with values beyond the bounds."""
    r = random.Random(11)
    with closing(duckdb.connect(":memory:", config=private_settings(threads=1, memory_limit_mb=512))) as connection:
        connection.execute('CREATE TABLE people (id INTEGER, age INTEGER, "unit$id" INTEGER, "unit$draw" UBIGINT)')
        connection.execute(
            "CREATE TABLE raw (person INTEGER, cost DOUBLE, paid DOUBLE, due DOUBLE, kind VARCHAR, rare INTEGER, "
            '"unit$id" INTEGER, "unit$draw" UBIGINT)'
        )
        for person in range(40):
            age = r.choice([None, *range(99)])
            connection.execute("INSERT INTO people VALUES (?, ?, ?, hash(?))", [person, age, person, person])
            for _ in range(r.choice([0, 1, 2, 3, 4, 5, STORED])):
                cost, *values = [r.uniform(-9, 70) for _ in range(3)]
                values = [r.choice([None, *[cost] * 5]), *values, r.choice("ab"), r.choice([None, 7, 70])]
                connection.execute(
                    "INSERT INTO raw VALUES (?, ?, ?, ?, ?, ?, ?, hash(?))", [person, *values, person, person]
                )
        totals = []
        for total in _dataset(VISITS, kept=True).tables[1].stored_totals:
            held = total.held.replace(f'"{total.placed}"', f"({total.nearest})")
            totals.append(f'CAST(COALESCE(SUM({held}) OVER w, 0) AS BIGINT) AS "{total.name}"')
        connection.execute(
            'CREATE TABLE visits AS SELECT *, COUNT(*) OVER w AS "unit$rows", row_number() OVER w = 1 AS "unit$first", '
            'CAST(sum_of ** 2 + other ** 2 AS BIGINT) AS "unit$squares$kind" FROM (SELECT *, '
            "COUNT(*) FILTER (WHERE kind = 'a') OVER (PARTITION BY person) AS sum_of, "
            "COUNT(*) FILTER (WHERE kind = 'b') OVER (PARTITION BY person) AS other, "
            f"{', '.join(totals)} FROM raw AS t WINDOW w AS (PARTITION BY person)) WINDOW w AS (PARTITION BY person)"
        )
        connection.execute(
            "CREATE TABLE \"visits$units\" AS SELECT COLUMNS('unit.(rows|squares|total|values).*') FROM visits "
            'WHERE "unit$first"'
        )
        yield connection


def _found(connection: duckdb.DuckDBPyConnection, text: str, visits: Table, *, kept: bool) -> tuple[list[Any], str]:
    """What all statements of a question find, places in their order, and their text."""
    found: list[Any] = []
    sql = ""
    for core in bound(lift(text, _dataset(visits, kept=kept), {}), power=NormPower.L2):
        statement = lower.lower(core)
        sql += statement.sql
        for row in connection.execute(statement.sql, list(statement.parameters)).fetchall():
            plain = row[: len(row) - 2 * len(statement.by_place)]
            lists = [
                sorted(zip(places, numbers, strict=True))
                for places, numbers in zip(row[len(plain) :: 2], row[len(plain) + 1 :: 2], strict=True)
            ]
            found.append((plain, lists))
    return sorted(found, key=repr), sql


def _differs(connection: duckdb.DuckDBPyConnection, text: str, shape: str) -> bool:
    return (
        _found(connection, text, SHAPES[shape], kept=True)[0] != _found(connection, text, SHAPES[shape], kept=False)[0]
    )


@pytest.mark.sparse(5)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("text", [*MEDIANS, *SUMS])
def test_what_is_kept_gives_the_integers_of_grouping(rows: duckdb.DuckDBPyConnection, text: str, shape: str) -> None:
    """Shows it of medians and sums, with conditions, filters, groups and joins, for bounds of each kind."""
    assert not _differs(rows, text, shape)


def test_what_is_kept_is_used_where_it_may_be(rows: duckdb.DuckDBPyConnection) -> None:
    """Shows by the columns and groupings that statements have that the shapes above are not all one."""
    counts = {text: _found(rows, text, VISITS, kept=True)[1] for text in (*MEDIANS, *SUMS)}
    assert [text for text, sql in counts.items() if '"unit$rows" > ' in sql] == [
        *MEDIANS[1:6], MEDIANS[7],
    ]  # fmt: skip
    assert [text for text, sql in counts.items() if '"unit$rows" <= ' in sql] == [MEDIANS[2]]
    assert "unit$values$cost" in counts[MEDIANS[0]]
    assert "unit$values$rare" in counts[MEDIANS[8]]
    assert not any('GROUP BY "u"' in counts[MEDIANS[which]] for which in (0, 1, 8))
    every = _found(rows, MEDIANS[0], SHAPES["all stored rows count"], kept=True)[1]
    assert "unit$rows" not in every
    assert 'GROUP BY "u"' not in every
    norms = _found(rows, MEDIANS[2], SHAPES["norms"], kept=True)[1]
    assert "unit$squares$kind" in norms
    assert 'GROUP BY "u"' not in norms
    kept = [text for text, sql in counts.items() if "unit$first" in sql]
    assert "visits$units" in _found(rows, SUMS[1], SHAPES["tables of units"], kept=True)[1]
    assert kept == [MEDIANS[4], *SUMS[:3], SUMS[5]]


def test_a_unit_on_the_wrong_side_is_found(rows: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants a limit of one row more, rows that count twice, filters overlooked, and NULL that counts."""
    genuine = light_units.split

    def wider(core: Any, contribution: Any, *column: str) -> Any:
        more = replace(contribution, rows=contribution.rows + 1, total=contribution.total + 1)
        return genuine(core, more, *column)

    with monkeypatch.context() as patch:
        patch.setattr(lower, "split", wider)
        assert any(_differs(rows, text, "counts") for text in MEDIANS)
    with monkeypatch.context() as patch:
        patch.setattr(lower, "weighed_by_unit", lambda *given, counted=False, **rest: weighed_by_unit(*given, **rest))
        assert _differs(rows, MEDIANS[3], "counts")
    with monkeypatch.context() as patch:
        patch.setattr(lower, "number_kept", lambda bounded, item: None if bounded.core.keys else "unit$rows")
        assert _differs(rows, MEDIANS[0], "counts")
        assert _differs(rows, MEDIANS[3], "counts")
    with monkeypatch.context() as patch:
        patch.setattr(light_units, "values_of", lambda column: values_of("cost" if column == "rare" else "rare"))
        assert _differs(rows, MEDIANS[0], "counts")
    with monkeypatch.context() as patch:
        patch.setattr(lower, "keeps_rows", lambda bounded: bounded.core.sources[0].table.stored_norms is not None)
        assert _differs(rows, MEDIANS[6], "counts")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda core: replace(core, where=None), "SELECT SUM(cost) FROM visits WHERE kind = 'a'"),
        (lambda core: replace(core, keys=()), SUMS[8]),
    ],
)
def test_a_total_of_other_rows_is_found(
    rows: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, change: Any, text: str
) -> None:
    """Plants totals of all rows where a condition leaves some out, and beside keys."""
    genuine = kept_units.kept_sums
    monkeypatch.setattr(lower, "kept_sums", lambda b, partial: genuine(replace(b, core=change(b.core)), partial))
    try:
        assert _differs(rows, text, "counts")
    except duckdb.BinderException:
        assert text == SUMS[8]


def test_groups_that_are_chosen_leave_no_unit_whole(rows: duckdb.DuckDBPyConnection) -> None:
    """Shows that a unit with few rows is still in one group alone, where one counts: claim 1 is not about these."""
    one = replace(VISITS, contribution=ContributionBound(4, 1, 3))
    assert _found(rows, MEDIANS[2], one, kept=True)[0] == _found(rows, MEDIANS[2], one, kept=False)[0]


def test_all_rows_of_a_unit_are_those_of_its_table_alone() -> None:
    """Shows claim 2 where its table is read whole, and not where a join or a condition may leave rows out."""
    joined = "SELECT MEDIAN(paid) FROM visits JOIN people ON person = id"
    alone, beside = [
        bound(lift(sql, _dataset(VISITS, kept=True), {}), power=NormPower.L2)[0] for sql in (MEDIANS[1], joined)
    ]
    assert light_units.number_kept(alone, alone.statistics[0]) == "unit$rows"
    assert light_units.number_kept(beside, beside.statistics[0]) is None
    (source,) = alone.core.sources
    fewer = replace(alone.core, sources=(replace(source, only=alone.statistics[0].arguments[0]),))
    assert light_units.number_kept(replace(alone, core=fewer), alone.statistics[0]) is None


def test_a_shorter_statement_is_predicted_and_nothing_of_one_unit() -> None:
    """Shows that what a snapshot keeps makes an answer show earlier, with the tick that hides a unit as it was."""
    works = []
    for kept in (True, False):
        dataset = _dataset(VISITS, kept=kept)
        large = tuple(replace(table, rows_expected=3_000_000) for table in dataset.tables)
        works.append(work_of(bound(lift(MEDIANS[0], replace(dataset, tables=large), {}), power=NormPower.L2)))
    assert works[0].row_nanoseconds < works[1].row_nanoseconds / 2
    assert works[0].unit_nanoseconds == works[1].unit_nanoseconds
