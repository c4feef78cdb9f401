"""Rows of constants beside rows about people: how many a row meets, what is known of them, what they cost."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import duckdb
import pytest

from privacy.policy import Column, ColumnType, Table
from privacy.refusal import Refused
from privacy.values import Cell
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.constant_rows import most_met
from sql_rewrite.contribution import Contribution
from sql_rewrite.cost import check_work, work_of
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import Interval, Literal
from sql_rewrite.lift import lift
from sql_rewrite.plan import Constants, Source
from sql_rewrite.plan_key import core_key
from sql_rewrite.public_values import is_known, public_literals
from sql_rewrite.reachable import conjuncts
from sql_rewrite.references import reference
from sql_rewrite.unit_facts import rows_of_unit
from tests.sql_rewrite.datasets import CLINIC


def core(sql: str) -> BoundedCore:
    """The only bounded core of a text."""
    (only,) = bound(lift(sql, CLINIC))
    return only


def constants(sql: str) -> tuple[Source, Constants]:
    """The rows of constants of a text, with their source."""
    source = next(one for one in core(sql).core.sources if one.constants is not None)
    assert source.constants is not None
    return source, source.constants


BANDS = "(VALUES ('a', 0, 30), ('b', 30, 60), ('c', 60, 99)) AS b(name, low, high)"


@pytest.mark.parametrize(
    ("rows", "condition", "most"),
    [
        (BANDS, "age >= low AND age < high", 1),
        (BANDS, "age BETWEEN low AND high", 2),
        (BANDS, "age > low AND age <= high", 1),
        (BANDS, "low <= age AND high > age", 1),
        (BANDS, "age >= low", 3),
        (BANDS, "age >= low AND hours < high", 3),
        (BANDS, "age >= low AND age + 0 < high", 3),
        (BANDS, "age / 2 >= low AND age / 2 < high", 1),
        (BANDS, "age >= low AND age < high OR smoker", 3),
        (BANDS, "smoker", 3),
        (BANDS, "name <> 'a'", 2),
        (BANDS, "name = sex", 1),
        (BANDS, "age BETWEEN low AND high AND name <> 'b'", 1),
        ("(VALUES (1, 0), (1, 9), (2, 0)) AS b(x, y)", "hours = x", 2),
        ("(VALUES (1, 0), (1, 9), (2, 0)) AS b(x, y)", "hours = x AND age = y", 1),
        ("(VALUES (1, 0), (1, 9), (2, 0)) AS b(x, y)", "hours = x AND age >= y AND age < y + 5", 2),
        ("(VALUES (1, NULL), (1, NULL), (1, 5)) AS b(x, y)", "age < y AND age >= x", 1),
        ("(VALUES (5, 1), (9, 2)) AS b(x, y)", "age >= x AND age < y", 1),
        ("(VALUES (DATE '2020-01-01', DATE '2020-02-01'), (DATE '2020-02-01', NULL)) AS b(x, y)", "born >= x", 2),
        ("(VALUES ('a', 'b'), ('b', 'd'), ('c', 'x')) AS b(x, y)", "education >= x AND education < y", 2),
        ("(VALUES (0.0, 0.5), (0.5, 1.0)) AS b(x, y)", "age >= x AND age < y", 1),
    ],
)
def test_a_row_meets_so_many(rows: str, condition: str, most: int) -> None:
    """Shows it, and that a person's bounds are as many where a person has one row."""
    text = f"SELECT COUNT(*) FROM people JOIN {rows} ON {condition}"
    assert constants(text)[1].most == most
    contribution = core(text).contribution
    assert isinstance(contribution, Contribution)
    assert (contribution.one_row, contribution.total) == (most == 1, most)


def test_no_row_meets_more() -> None:
    """Shows the claim for random rows and conditions, on every value that decides about them."""
    r = random.Random(20)
    for _ in range(150):
        rows = ", ".join(f"({r.randint(0, 4)}, {r.randint(0, 4)}, {r.randint(0, 6)})" for _ in range(r.randint(1, 5)))
        parts = r.sample(
            ["age >= b.x", "age > b.x", "age < b.y", "age <= b.z", "hours = b.x", "b.z < 5", "age + hours > b.y"], 3
        )
        plan = lift(f"SELECT COUNT(*) FROM people JOIN (VALUES {rows}) AS b(x, y, z) ON {' AND '.join(parts)}", CLINIC)
        (found,) = plan.cores
        source = found.sources[1]
        assert source.constants is not None
        assert found.where is not None
        names = [ref.name for ref in source.constants.columns]
        beside = [{(source.relation, n): v for n, v in zip(names, row, strict=True)} for row in source.constants.rows]
        met = max(
            sum(evaluate(found.where, {("r0", "age"): age, ("r0", "hours"): hours, **row}) is True for row in beside)
            for age in range(-1, 8)
            for hours in range(5)
        )
        assert met <= source.constants.most
        assert source.constants.most == max(1, most_met(source.constants, source.relation, conjuncts(found.where)))


@pytest.mark.parametrize(
    ("condition", "most"),
    [("a.x = b.x", 3), ("a.x = b.x AND age = a.x", 1), ("age = b.x AND a.x = b.x", 3), ("age = a.x AND age = b.x", 1)],
)
def test_two_relations_of_constants_meet_each_other(condition: str, most: int) -> None:
    """Shows that what compares constants with constants leaves all pairs of them that a person may meet."""
    three = "(VALUES (1), (2), (3))"
    found = core(f"SELECT COUNT(*) FROM people, {three} AS a(x), {three} AS b(x) WHERE {condition}")
    assert rows_of_unit(found.core.sources) == most


def test_bounds_multiply_where_a_row_meets_several() -> None:
    """Shows it of rows, groups and rows in a group, and of rows within units."""
    found = core("SELECT x, COUNT(*) FROM visits CROSS JOIN generate_series(1, 3) AS g(x) GROUP BY x")
    assert isinstance(found.contribution, Contribution)
    assert (found.contribution.total, found.contribution.groups, found.contribution.rows) == (120, 3, 45)
    assert rows_of_unit(found.core.sources) == 3_000
    inside = "SELECT person_id, COUNT(*) AS n FROM visits, (VALUES (1), (2)) AS v(x) GROUP BY person_id"
    counted = core(f"SELECT AVG(n) FROM ({inside}) AS t")
    assert counted.one_row
    column = counted.core.sources[0].table.columns[0]
    assert reference(counted.core.sources[0], column, CLINIC).interval == Interval(Fraction(1), Fraction(2_000))


def test_everything_is_known_of_constants() -> None:
    """Shows types, ranges, keys and NULL."""
    source, found = constants(
        "SELECT COUNT(*) FROM people JOIN (VALUES ('a', 1, 0.5, NULL), (NULL, 2, 3, DATE '2020-01-01')) "
        "AS v(w, x, y, z) ON age > x"
    )
    words, whole, number, day = (reference(source, column, CLINIC) for column in source.table.columns)
    assert words.domain == ("a", None)
    assert whole.interval == Interval(Fraction(1), Fraction(2))
    assert whole.declared == whole.interval
    assert not whole.nullable
    assert number.declared == Interval(Fraction(1, 2), Fraction(3))
    assert number.domain is None
    assert day.domain == (datetime.date(2020, 1, 1), None)
    assert len(found.rows) == 2


@pytest.mark.parametrize(
    "rows",
    [
        "(VALUES (1), (2), (3)) AS v(x)",
        "UNNEST([1, 2, 3]) AS v(x)",
        "UNNEST([1, 2, 3]) AS x",
        "generate_series(1, 3) AS v(x)",
        "range(1, 4) AS v(x)",
        "(SELECT unnest([1, 2, 3]) AS x) AS v",
        "(SELECT 1 AS x UNION ALL SELECT 2 UNION ALL SELECT 3) AS v",
        "(SELECT * FROM (VALUES (1), (2), (3)) AS w(x)) AS v",
        "(VALUES (1), (1 + 1), ($three)) AS v(x)",
    ],
)
def test_spellings_are_one_question(rows: str) -> None:
    """Shows one identity for every way to write rows."""
    plan = lift(f"SELECT x, COUNT(*) FROM people, {rows} WHERE age > x GROUP BY x", CLINIC, {"three": 3})
    (found,) = bound(plan)
    assert core_key(found, CLINIC) == core_key(
        core("WITH v(x) AS (VALUES (1), (2), (3)) SELECT x, COUNT(*) FROM people JOIN v ON age > x GROUP BY x"), CLINIC
    )


def test_all_pairs_cost() -> None:
    """Shows that rows that are tried count, whether or not they meet."""
    text = "SELECT COUNT(*) FROM visits JOIN generate_series(1, {}) AS g(x) ON hospital_id = x"
    few, many = (work_of([core(text.format(number))]) for number in (4, 40))
    assert many.unit_nanoseconds > 8 * few.unit_nanoseconds
    assert many.row_nanoseconds > 8 * few.row_nanoseconds
    assert many.operators > few.operators + 30
    series = ", ".join(f"generate_series(1, 900) AS {name}(x)" for name in "ab")
    with pytest.raises(Refused):
        check_work([core(f"SELECT COUNT(*) FROM people, {series}")])


def test_the_units_table_stays_one_row_beside_bands() -> None:
    """Shows that a key of the person is still one group of each person, and that of a constant is not."""
    visits = f"FROM visits JOIN people USING (person_id), {BANDS} WHERE cost >= low AND cost < high"
    by_sex, by_band = (core(f"SELECT {key}, COUNT(*) {visits} GROUP BY {key}") for key in ("sex", "name"))
    assert isinstance(by_sex.contribution, Contribution)
    assert isinstance(by_band.contribution, Contribution)
    assert (by_sex.contribution.groups, by_band.contribution.groups) == (1, 3)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT region, COUNT(*) FROM people JOIN hospitals ON hours = hospital_id GROUP BY region",
        "SELECT region, COUNT(*) FROM hospitals h JOIN people p ON h.hospital_id = p.hours GROUP BY region",
        "SELECT region, COUNT(*) FROM people, hospitals WHERE hospital_id = hours GROUP BY region",
        "SELECT region, COUNT(*) FROM people p LEFT JOIN hospitals h ON p.hours = h.hospital_id GROUP BY region",
    ],
)
def test_a_public_key_is_met_once(text: str) -> None:
    """Shows that a join by a unique column of a public table repeats nobody, with a reference or without one."""
    assert core(text).one_row


@pytest.mark.parametrize(
    ("condition", "most"),
    [("age >= low AND age < high", 1), ("age BETWEEN low AND high", 2), ("name = sex", 1), ("smoker", 3)],
)
def test_a_left_join_keeps_everybody_once(condition: str, most: int) -> None:
    """Shows that the row of NULL is met by those alone who meet no other, whatever the condition is."""
    text = f"SELECT COUNT(*) FROM people LEFT JOIN {BANDS} ON {condition}"
    source, found = constants(text)
    assert found.most == most
    where = core(text).core.where
    assert where is not None
    names = [ref.name for ref in found.columns]
    rows = [{(source.relation, n): v for n, v in zip(names, row, strict=True)} for row in found.rows]
    for age in (-1, 0, 29, 30, 45, 60, 98, 99, None):
        for smoker in (True, False, None):
            person = {("r0", "age"): age, ("r0", "smoker"): smoker, ("r0", "sex"): "female"}
            met = [row for row in rows if evaluate(where, {**person, **row}) is True]
            assert 1 <= len(met) <= most
            nobody = [row for row in met if row[source.relation, "there$"] == 0]
            assert not nobody or len(met) == 1


def test_a_mark_is_no_column() -> None:
    """Shows that no text reads what tells the row of NULL from others."""
    with pytest.raises(Refused):
        lift(f'SELECT SUM("there$") FROM people LEFT JOIN {BANDS} ON age >= low', CLINIC)


@pytest.mark.parametrize("called", ["generate_series", "range"])
@pytest.mark.parametrize("unit", ["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR"])
def test_series_of_moments_are_the_engines_own(called: str, unit: str) -> None:
    """Shows the rows of series from days at the ends of months on, each step from the one before."""
    draw = random.Random(unit)
    for _ in range(6):
        first = datetime.date(2020, 1, 1) + datetime.timedelta(draw.randrange(800))
        last = first + datetime.timedelta(draw.randrange(30 if unit == "HOUR" else 600))
        series = f"{called}(DATE '{first}', DATE '{last}', INTERVAL '{draw.randint(1, 4)}' {unit})"
        expected = duckdb.sql(f"SELECT UNNEST({series})").fetchall()
        if not expected:
            continue
        found = core(f"SELECT m, COUNT(*) FROM visits JOIN {series} AS g(m) ON date_trunc('day', day) = m GROUP BY m")
        (constants,) = (source.constants for source in found.core.sources if source.constants is not None)
        assert [row[0] for row in constants.rows] == [row[0] for row in expected]


@pytest.mark.parametrize("step", ["'-1' MONTH", "'0' MONTH", "'1' CENTURY", "'99999' DAY"])
def test_other_steps_are_refused(step: str) -> None:
    """Shows no series that never ends, or whose step nobody has proved."""
    with pytest.raises(Refused):
        core(
            f"SELECT COUNT(*) FROM visits, generate_series(DATE '2024-01-01', DATE '2024-06-01', INTERVAL {step}) g(m)"
        )


class _Hospitals:
    """The rows of the public table, as a snapshot gives them."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def rows(self, table: str, columns: Sequence[str], most: int) -> tuple[tuple[Cell, ...], ...] | None:
        """Numbers from zero, also as texts."""
        kinds = {column.name: column.type for column in table_of(table).columns}
        texts = [kinds[name] is ColumnType.TEXT for name in columns]
        made = tuple([tuple([f"h{n}" if text else n for text in texts]) for n in range(self._rows)])
        return None if self._rows > most else made

    def agreeing(self, table: str, columns: Sequence[str]) -> int | None:
        """One: every row is different."""
        return 1


def table_of(name: str) -> Table:
    """A table of the clinic."""
    found = CLINIC.table(name)
    assert found is not None
    return found


def test_queries_of_a_small_public_table_are_constants() -> None:
    """Shows the rows that WHERE keeps as constants, each met once, and a table that is too large, which is none."""
    asked = (
        "SELECT COUNT(*) FROM visits AS v JOIN (SELECT hospital_id FROM hospitals WHERE {}) AS h USING (hospital_id)"
    )
    few = replace(CLINIC, public=_Hospitals(9))
    (core,) = bound(lift(asked.format("hospital_id > 6"), few))
    constants = core.core.sources[-1].constants
    assert constants is not None
    assert (constants.rows, constants.most) == (((7,), (8,)), 1)
    with pytest.raises(Refused):
        lift(asked.format("hospital_id > 9"), few)
    (scanned,) = bound(lift(asked.format("TRUE"), replace(CLINIC, public=_Hospitals(1_001))))
    assert scanned.core.sources[-1].stored


@pytest.mark.parametrize(
    "sql",
    [
        "WITH hospitals AS (SELECT 3 AS number) SELECT COUNT(*) FROM visits AS v JOIN {} AS h USING (hospital_id) "
        "WHERE v.hospital_id IN (SELECT number FROM hospitals)",
        "SELECT COUNT(*) FROM visits WHERE cost > (SELECT MAX(beds) FROM main.hospitals)",
    ],
)
def test_only_the_table_itself_is_known(sql: str) -> None:
    """Shows that a CTE of the name of a public table, and a table of a schema, are not read as its rows."""
    with pytest.raises(Refused):
        lift(
            sql.format("(SELECT hospital_id FROM hospitals WHERE hospital_id > 1)"),
            replace(CLINIC, public=_Hospitals(9)),
        )


def test_rows_about_people_are_no_constants() -> None:
    """Shows it of a table of people, whatever would read its rows; numbers that are not finite are NULL as anywhere."""
    few = replace(CLINIC, public=_Hospitals(9))
    assert [is_known(name, few) for name in ("hospitals", "people", "nothing")] == [True, False, False]
    (core,) = bound(
        lift(
            "SELECT COUNT(*) FROM visits JOIN (SELECT person_id FROM people WHERE age > 6) AS h USING (person_id)", few
        )
    )
    assert all(source.constants is None for source in core.core.sources)
    number = replace(CLINIC.tables[0], name="numbers", columns=(Column("x", ColumnType.NUMBER),), protected=False)
    known = replace(few, tables=(*few.tables, number), public=_Numbers())
    names, rows = public_literals("numbers", known)
    assert names == ["x"]
    assert [cell.value for (cell,) in rows if isinstance(cell, Literal)] == [2.0, None, None]


class _Numbers(_Hospitals):
    """Numbers, two of which are not finite."""

    def __init__(self) -> None:
        super().__init__(3)

    def rows(self, table: str, columns: Sequence[str], most: int) -> tuple[tuple[Cell, ...], ...] | None:
        """The rows."""
        return (2,), (float("nan"),), (float("inf"),)
