"""Rows about people beside public tables by columns that are no key: how many a row meets, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from privacy.policy import Dataset, Other, PublicKeys
from privacy.refusal import Refused
from privacy.values import Cell
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.contribution import Contribution
from sql_rewrite.cost import check_work
from sql_rewrite.evaluate import evaluate
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.plan_key import core_key
from sql_rewrite.unit_facts import rows_of_unit, rows_tried
from tests.sql_rewrite.datasets import CLINIC

NAMES = ("hospital_id", "region", "beds")
ROWS = ((1, "north", 10), (2, "north", 30), (3, "south", 30), (4, "south", 60), (5, "west", None))


@dataclass(frozen=True)
class Rows:
    """Public rows in memory; of a `large` table not all may be looked at."""

    held: tuple[tuple[Cell, ...], ...] = ROWS
    large: bool = False

    def rows(self, table: str, columns: Sequence[str], most: int) -> tuple[tuple[Cell, ...], ...] | None:
        """As `PublicRows.rows`."""
        places = [NAMES.index(name) for name in columns]
        return None if self.large else tuple(tuple(row[place] for place in places) for row in self.held)

    def agreeing(self, table: str, columns: Sequence[str]) -> int | None:
        """As `PublicRows.agreeing`."""
        groups = Counter(tuple(row[NAMES.index(name)] for name in columns) for row in self.held)
        return max((number for group, number in groups.items() if None not in group), default=0)


KNOWN = replace(CLINIC, public=Rows())
LARGE = replace(CLINIC, public=Rows(large=True))


def core(sql: str, dataset: Dataset = KNOWN) -> BoundedCore:
    """The only bounded core of a text."""
    (only,) = bound(lift(sql, dataset))
    return only


@pytest.mark.parametrize(
    ("source", "small", "large"),
    [
        ("people JOIN hospitals ON age = beds", 2, 2),
        ("people JOIN hospitals ON age = beds AND sex = region", 1, 1),
        ("people, hospitals WHERE age = beds AND sex = region", 1, 1),
        ("people, hospitals WHERE age = beds AND region <> 'north'", 1, 2),
        ("people JOIN hospitals ON age = beds AND hours >= hospital_id AND hours < hospital_id + 1", 1, 2),
        ("people LEFT JOIN hospitals ON age = beds", 2, 2),
        ("people LEFT JOIN hospitals ON age = beds AND sex = region", 1, 1),
        ("people LEFT JOIN hospitals ON age = beds AND hospital_id > 2", 1, 2),
        ("people LEFT JOIN hospitals ON age = beds WHERE region IS NULL", 1, 2),
        ("hospitals JOIN people ON age = beds", 2, 2),
        ("people JOIN hospitals ON age >= beds", 4, 0),
        ("people JOIN hospitals ON age >= beds AND age < beds + 20", 2, 0),
        ("people JOIN hospitals ON age >= beds AND age < beds + 5", 2, 0),
        ("people LEFT JOIN hospitals ON age >= beds AND age < hospital_id", 1, 0),
        ("people JOIN hospitals ON age BETWEEN beds * 2 AND beds * 3", 2, 0),
        ("people, hospitals WHERE age > beds", 4, 0),
        ("people CROSS JOIN hospitals", 5, 0),
        ("hospitals JOIN people ON age >= beds AND age < beds + 20", 2, 0),
    ],
)
def test_a_row_meets_so_many_rows(source: str, small: int, large: int) -> None:
    """Shows the greatest number of partners, by all rows and by how many agree (0: refused), and the bounds with it."""
    found = core(f"SELECT COUNT(*) FROM {source}")
    assert rows_of_unit(found.core.sources) == small <= rows_tried(found.core.sources)
    assert isinstance(found.contribution, Contribution)
    assert found.contribution.total == small
    assert found.contribution.one_row == (small == 1)
    if not large:
        with pytest.raises(Refused) as refused:
            core(f"SELECT COUNT(*) FROM {source}", LARGE)
        assert refused.value.findings[0].code in ("join_not_on_key", "join_multiplies", "unsupported_sql")
        return
    assert rows_of_unit(core(f"SELECT COUNT(*) FROM {source}", LARGE).core.sources) == large


@pytest.mark.parametrize("keys", [True, False], ids=["keys are declared", "none are"])
def test_texts_that_python_does_not_know_prove_nothing(keys: bool) -> None:
    """Shows that rows stay whose condition the engine may see as true: it may know characters that Python does not.

    Whatever values are declared: those of the table count.
    """
    declared = PublicKeys(("north",), Other("else")) if keys else None
    tables = [
        replace(
            table,
            columns=tuple(replace(one, keys=declared) if one.name == "region" else one for one in table.columns),
        )
        if table.name == "hospitals"
        else table
        for table in CLINIC.tables
    ]
    for condition, texts, most in (
        ("UPPER(region) = 'T'", "\u0378\u0378", 2),
        ("UPPER(region) = 'T'", "ss", 1),
        ("sex = LOWER(region)", "\u0378\u0379", 2),
        ("sex = LOWER(region)", "IJ", 1),
    ):
        held = tuple((place, text, 30) for place, text in enumerate(texts))
        dataset = replace(CLINIC, tables=tuple(tables), public=Rows(held=held))
        found = core(f"SELECT COUNT(*) FROM people JOIN hospitals ON age = beds AND {condition}", dataset)
        assert rows_of_unit(found.core.sources) == most


def test_an_outer_join_that_keeps_public_rows_shows_their_groups() -> None:
    """Shows RIGHT JOIN, in which only what sees rows of people may be counted."""
    found = core("SELECT region, COUNT(age) FROM people RIGHT JOIN hospitals ON age = beds GROUP BY region")
    assert rows_of_unit(found.core.sources) == 2
    with pytest.raises(Refused):
        core("SELECT region, COUNT(*) FROM people RIGHT JOIN hospitals ON age = beds GROUP BY region")


def test_bounds_multiply_by_the_partners() -> None:
    """Shows the bounds of a table whose units own several rows, and of a chain of public tables."""
    found = core("SELECT COUNT(*) FROM visits JOIN people USING (person_id) JOIN hospitals AS h ON age = h.beds")
    assert isinstance(found.contribution, Contribution)
    assert found.contribution.total == 80
    chained = core(
        "SELECT COUNT(*) FROM visits AS v JOIN hospitals AS h ON v.hospital_id = h.hospital_id "
        "JOIN hospitals AS g ON h.region = g.region JOIN hospitals AS f ON f.beds = g.beds"
    )
    assert isinstance(chained.contribution, Contribution)
    assert chained.contribution.total == 40 * 2 * 2


def test_both_columns_are_compared_by_the_join() -> None:
    """Shows that the second equality is part of the join, so that no more rows are made than meet."""
    found = core("SELECT COUNT(*) FROM people, hospitals WHERE age = beds AND sex = region AND smoker")
    (joined,) = found.core.sources[1:]
    assert joined.join is not None
    assert len(joined.join.also) == 1
    assert '"r1"."region"' in lower(found).sql
    assert found.core.where is not None


def test_what_is_not_known_is_refused() -> None:
    """Shows that without the rows of public tables, and of tables that cannot be read, such joins are refused."""
    for text in ("people JOIN hospitals ON age = beds", "people JOIN hospitals ON age > beds"):
        with pytest.raises(Refused):
            core(f"SELECT COUNT(*) FROM {text}", CLINIC)
    with pytest.raises(Refused) as refused:
        core("SELECT COUNT(*) FROM people JOIN hospitals ON age > beds", LARGE)
    assert "too large" in refused.value.findings[0].why


@pytest.mark.parametrize(
    "source",
    [
        "people AS a JOIN hospitals AS h ON a.age = h.beds JOIN people AS b ON b.age = h.beds",
        "people AS a JOIN hospitals AS h ON a.age > h.beds JOIN people AS b ON b.age > h.beds",
        "people AS a, people AS b, hospitals AS h WHERE a.age = h.beds AND b.age = h.beds",
        "people AS a, people AS b, hospitals AS h WHERE a.age > h.beds AND b.age > h.beds",
        "hospitals AS h JOIN people AS a ON a.age = h.beds JOIN people AS b ON b.age = h.beds",
    ],
)
def test_two_people_never_meet_over_a_public_table(source: str) -> None:
    """Shows the refusal of joins in which a public row would stand between rows of two people."""
    with pytest.raises(Refused) as refused:
        core(f"SELECT COUNT(*) FROM {source}")
    assert refused.value.findings[0].code in ("join_multiplies", "join_not_on_key")


def test_other_public_rows_are_another_question_where_bounds_change() -> None:
    """Shows that what bounds a row is in the identity, beside the version of the data."""
    sql = "SELECT COUNT(*) FROM people JOIN hospitals ON age = beds"
    other = replace(CLINIC, public=Rows(held=(*ROWS, (6, "west", 30))))
    assert core_key(core(sql), KNOWN) != core_key(core(sql, other), other)


def test_questions_along_references_are_as_they_were() -> None:
    """Shows that statements and keys of joins by keys do not depend on what is known of public rows."""
    for source in (
        "visits JOIN hospitals USING (hospital_id)",
        "visits v, hospitals h WHERE v.hospital_id = h.hospital_id",
    ):
        sql = f"SELECT region, COUNT(*) FROM {source} GROUP BY region"
        plain, known = core(sql, CLINIC), core(sql)
        assert lower(plain) == lower(known)
        assert core_key(plain, CLINIC) == core_key(known, KNOWN)


@pytest.mark.parametrize(
    ("condition", "written"),
    [
        ("EXISTS (SELECT 1 FROM hospitals AS h WHERE h.beds = p.age)", "IN"),
        ("p.age IN (SELECT beds FROM hospitals WHERE region = 'north')", "IN"),
        ("EXISTS (SELECT 1 FROM hospitals AS h WHERE p.age > h.beds AND p.hours < h.beds)", "OR"),
    ],
)
def test_membership_is_written_out(condition: str, written: str) -> None:
    """Shows that EXISTS and IN over a small public table become conditions on the row alone."""
    found = core(f"SELECT COUNT(*) FROM people AS p WHERE {condition}")
    assert len(found.core.sources) == 1
    assert found.one_row
    assert f" {written} " in lower(found).sql


def test_not_in_over_a_column_with_null_is_never_true() -> None:
    """Shows that NOT IN over a column that has NULL keeps SQL's meaning, however it is written: no row meets it."""
    for text in ("WHERE NOT (age IN (SELECT beds FROM hospitals))", "WHERE age NOT IN (SELECT beds FROM hospitals)"):
        found = core(f"SELECT COUNT(*) FROM people {text}").core.where
        assert found is not None
        met = {evaluate(found, {("r0", "age"): age}) for age in range(101)}
        assert met == {False, None}


def test_a_reference_that_can_be_null_is_not_among_keys_as_not_in_a_list() -> None:
    """Shows that NOT IN over some keys of a small public table is that of their list; of a large one it is refused."""
    keys = "SELECT hospital_id FROM hospitals WHERE region = 'north'"
    asked = f"SELECT COUNT(*) FROM visits WHERE hospital_id NOT IN ({keys})"
    north = ", ".join(str(row[NAMES.index("hospital_id")]) for row in ROWS if row[NAMES.index("region")] == "north")
    listed = core(f"SELECT COUNT(*) FROM visits WHERE hospital_id NOT IN ({north})")
    assert core_key(core(asked), KNOWN) == core_key(listed, KNOWN)
    with pytest.raises(Refused) as refused:
        core(asked, LARGE)
    assert refused.value.findings[0].what == "IN over a public table is refused here"


def test_public_rows_that_multiply_without_end_are_refused() -> None:
    """Shows that joins whose rows of one person would take too long are refused, and nothing is asked of an engine."""
    source = "visits AS v JOIN hospitals AS h0 ON v.hospital_id = h0.hospital_id"
    for place in range(1, 6):
        source += f" JOIN hospitals AS h{place} ON h{place - 1}.beds >= h{place}.beds"
    with pytest.raises(Refused) as refused:
        check_work([core(f"SELECT COUNT(*) FROM {source}")])
    assert refused.value.findings[0].code == "too_large"


def test_in_of_several_columns_is_answered() -> None:
    """Shows it, and that EXISTS by both columns is answered, too."""
    assert core("SELECT COUNT(*) FROM people WHERE (age, hours) IN (SELECT beds, hospital_id FROM hospitals)")
    inside = "SELECT 1 FROM hospitals AS h WHERE h.beds = p.age AND h.hospital_id = p.hours"
    assert core(f"SELECT COUNT(*) FROM people AS p WHERE EXISTS ({inside})")


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("side", ["", "LEFT "])
def test_several_columns_of_using_join_as_their_equalities_do(side: str, large: bool) -> None:
    """Shows that USING of two columns is the plan that ON is: found by value, not tried with all rows of the table."""
    key, region, beds = (column for column in CLINIC.tables[3].columns)
    books = replace(
        CLINIC.tables[3],
        name="books",
        key=None,
        columns=(replace(key, name="genre"), replace(region, name="sex", keys=None), replace(beds, name="age")),
    )

    class Books(Rows):
        def rows(self, table: str, columns: Sequence[str], most: int) -> tuple[tuple[Cell, ...], ...] | None:
            return super().rows(table, [_OF[name] for name in columns], most)

        def agreeing(self, table: str, columns: Sequence[str]) -> int | None:
            return super().agreeing(table, [_OF[name] for name in columns])

    dataset = replace(CLINIC, tables=(*CLINIC.tables, books), public=Books(large=large))
    wanted = "SELECT b.genre, COUNT(*) FROM people AS p"
    using = core(f"{wanted} {side}JOIN books AS b USING (age, sex) GROUP BY b.genre", dataset)
    on = core(f"{wanted} {side}JOIN books AS b ON p.age = b.age AND p.sex = b.sex GROUP BY b.genre", dataset)
    assert using.core == on.core
    assert check_work([using]).unit_nanoseconds == check_work([on]).unit_nanoseconds
    joined = using.core.sources[1].join
    assert joined is not None
    assert len(joined.also) == 1


_OF = {"genre": "hospital_id", "sex": "region", "age": "beds"}


def test_using_with_a_column_of_one_side_is_refused() -> None:
    """Shows that a second name of USING which one side lacks is no part of a join that is answered without it."""
    for using in ("person_id, cost", "cost, person_id"):
        with pytest.raises(Refused):
            lift(f"SELECT COUNT(*) FROM people JOIN visits USING ({using})", CLINIC)
