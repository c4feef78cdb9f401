"""First dataset files from names and types."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from privacy.bounds import ContributionBound
from privacy.policy import ColumnType
from server.datasets import check_text, load_text, propose


@dataclass(frozen=True)
class Column:
    name: str
    type: ColumnType | None


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]


PEOPLE = Table(
    "",
    (
        Column("person_id", ColumnType.INTEGER),
        Column("age", ColumnType.INTEGER),
        Column("city", ColumnType.TEXT),
        Column("born", ColumnType.DATE),
        Column("hours per week", ColumnType.NUMBER),
        Column("photo", None),
        Column("AGE", ColumnType.NUMBER),
        Column("no", ColumnType.BOOLEAN),
    ),
)


def test_a_proposal_is_a_sound_file_at_once() -> None:
    """With the unit named, a person file can be attached as proposed: bounds are asked for, never invented."""
    text = propose([PEOPLE], unit="person_id", file="data/people 2024.csv")
    file = load_text(text)
    assert (file.dataset, file.unit.table, file.unit.key) == ("people_2024", "people_2024", "person_id")
    (table,) = file.tables.values()
    assert list(table.columns) == ["person_id", "age", "city", "born", "no"]
    assert [column.bounds for column in table.columns.values()] == [None] * 5
    assert [column.keys for column in table.columns.values()] == [None] * 5
    assert table.key == "person_id"
    assert [problem.severity for problem in check_text(text)] == ["warning"]
    assert text.count("# bounds: [LOWEST, HIGHEST]") == 1
    assert text.count("# keys: [A, B, C]") == 1
    assert "left out: hours per week" in text
    assert "left out: photo" in text
    assert "left out: AGE" in text


def test_many_rows_per_unit_are_said() -> None:
    """With a contribution the unit's column is no key."""
    bound = ContributionBound(rows_per_unit=8, groups_per_unit=2, rows_per_unit_and_group=4)
    (table,) = load_text(propose([PEOPLE], unit="person_id", file="x.csv", contribution=bound)).tables.values()
    assert table.key is None
    assert table.contribution is not None
    assert table.contribution.rows_per_unit == 8


def test_several_tables_refer_to_the_first_with_the_unit() -> None:
    """Tables with the unit's column get a reference; the others are left as questions that the check repeats."""
    visits = Table("visits", (Column("person_id", ColumnType.INTEGER), Column("cost", ColumnType.NUMBER)))
    shops = Table("shops", (Column("shop", ColumnType.TEXT),))
    people = Table("people", PEOPLE.columns)
    text = propose([people, visits, shops], unit="person_id", file="all.duckdb")
    assert {
        'table "visits" has no contribution bounds',
        'table "shops" does not reach the privacy unit',
    } == {problem.what for problem in check_text(text) if problem.severity == "error"}
    assert "references: {person_id: people.person_id}" in text
    assert 'source: {file: "all.duckdb", table: "visits"}' in text


def test_without_a_unit_the_question_stays_open() -> None:
    """Nobody is protected until somebody says who, so the proposal cannot be attached as it is."""
    text = propose([PEOPLE], unit=None, file="people.csv")
    assert "asked: whose presence is protected?" in text
    assert any(problem.place.startswith("unit") for problem in check_text(text))


def test_an_unknown_unit_names_the_columns() -> None:
    """The message lists what there is."""
    with pytest.raises(ValueError, match='no column "id"; its columns are person_id, age'):
        propose([PEOPLE], unit="id", file="people.csv")


@pytest.mark.parametrize(
    "name", ['a"b\\c.csv', "line\nbreak: x.csv", "tab\t.csv", "# comment.csv", "ü.csv", "\u2028.csv"]
)
def test_file_names_cannot_break_out(name: str) -> None:
    """Whatever a file is called, the proposal reads back as that name."""
    (table,) = load_text(propose([PEOPLE], unit="person_id", file=name)).tables.values()
    assert name == table.source.file


@pytest.mark.parametrize("name", ["x\ninjected: 1", "a: b", "- c", "{", "'"])
def test_column_names_cannot_break_out(name: str) -> None:
    """A hostile header is left out in a comment of one line."""
    table = Table("t", (Column("id", ColumnType.INTEGER), Column(name, ColumnType.TEXT)))
    (found,) = load_text(propose([table], unit="id", file="t.csv")).tables.values()
    assert list(found.columns) == ["id"]
