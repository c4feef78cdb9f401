"""First dataset files from names and types."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb
import pytest

from engines.inspected import InspectedColumn, InspectedTable
from privacy.bounds import ContributionBound
from privacy.policy import ColumnType
from server.datasets import check_text, is_error, load_text, propose, severity
from server.datasets.identifiers import MISREAD, RESERVED, is_identifier
from server.datasets.naming import named_columns
from server.datasets.unit_tables import table_of_units, tables_of_units, tables_with_unit


def Column(name: str, type: ColumnType | None, source_type: str = "", required: bool = False) -> InspectedColumn:
    """A column of a data file."""
    return InspectedColumn(name, type, source_type, required)


def Table(name: str, columns: tuple[InspectedColumn, ...], **more: Any) -> InspectedTable:
    """A table of a data file."""
    return InspectedTable(name, columns, **{"rows": 3_210, **more})


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
    assert [(name, column.source_name) for name, column in table.columns.items()] == [
        ("person_id", None),
        ("age", None),
        ("city", None),
        ("born", None),
        ("hours_per_week", "hours per week"),
        ("AGE_2", "AGE"),
        ("no", None),
    ]
    assert [column.bounds for column in table.columns.values()] == [None] * 7
    assert [column.keys for column in table.columns.values()] == [None] * 7
    assert table.key == "person_id"
    assert [severity(problem) for problem in check_text(text)] == ["warning"] * 3
    assert text.count("# bounds: [LOWEST, HIGHEST]") == 3
    assert text.count("# keys: [A, B, C]") == 1
    assert 'source_name: "hours per week"   # its name in the file; SQL says hours_per_week' in text
    assert "left out: photo (its type is not supported)" in text


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
        'table "shops" does not reach the privacy unit',
    } == {problem.what for problem in check_text(text) if is_error(problem)}
    assert "references: {person_id: people.person_id}" in text
    assert 'source: {file: "all.duckdb", table: "visits"}' in text


def test_without_a_unit_the_question_stays_open() -> None:
    """Nobody is protected until somebody says who, so the proposal cannot be attached as it is."""
    text = propose([PEOPLE], unit=None, file="people.csv")
    assert "asked: whose presence is protected?" in text
    assert any((problem.field or "").startswith("unit") for problem in check_text(text))


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
    """A hostile header is one quoted text, and reads back as it was; as a column without a type it stays a comment."""
    table = Table("t", (Column("id", ColumnType.INTEGER), Column(name, ColumnType.TEXT), Column(name + "!", None)))
    (found,) = load_text(propose([table], unit="id", file="t.csv")).tables.values()
    _, given = found.columns
    assert found.columns[given].source_name == name
    assert is_identifier(given)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (["Person ID", "age (years)"], ["Person_ID", "age_years"]),
        (["Größe (cm)", "Übergröße", "Straße"], ["Grosse_cm", "Ubergrosse", "Strasse"]),
        (["a b", "a_b", "A-B"], ["a_b_2", "a_b", "A_B_3"]),
        (["2024", "100 %", "€"], ["_2024", "_100_percent", "EUR"]),
        (["年齢", "名前"], ["field", "field_2"]),
        (["order", "Group", "select"], ["order_", "Group_", "select_"]),
        (["at", "left", "year"], ["at_", "left_", "year"]),
        (["x" * 80, "x" * 81], ["x" * 63, "x" * 58 + "_2"]),
        (["id", "ID"], ["id", "ID_2"]),
    ],
)
def test_headers_become_names_that_sql_reads_without_quotes(header: list[str], expected: list[str]) -> None:
    """Marks leave their letters, words of SQL get an underscore, and no two names are alike; plain names stay."""
    columns = named_columns(Table("", tuple(Column(name, ColumnType.TEXT) for name in header)))
    assert [item.name for item in columns] == expected
    assert all(is_identifier(item.name) and item.name.lower() not in RESERVED for item in columns)
    assert len({item.name.lower() for item in columns}) == len(columns)


def test_columns_that_cannot_be_named_are_left_out_with_the_reason() -> None:
    """No name, the same name twice, no type: each says why."""
    table = Table("", tuple(Column(name, ColumnType.TEXT) for name in ("id", "", " ", "x", "x")))
    text = propose([table], unit="id", file="t.csv")
    assert list(load_text(text).tables["t"].columns) == ["id"]
    assert text.count("it has no name in the header") == 2
    assert text.count("the file has several columns of this name") == 2


def test_words_of_sql_are_those_of_the_engine_and_the_parser() -> None:
    """Every word that the engine reserves is known, so that no proposed name needs quotes."""
    with duckdb.connect(":memory:") as connection:
        found = connection.execute(
            "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
        ).fetchall()
    assert {word for (word,) in found} <= RESERVED


def test_no_proposed_name_is_misread_without_quotes() -> None:
    """The engine reads every keyword that a proposal keeps as a name, wherever a column may stand."""
    places = (
        "SELECT {0}, SUM({0}), HOUR({0}), AVG({0} * 2) FROM t GROUP BY {0} ORDER BY {0}",
        "SELECT COUNT(*) FROM t WHERE {0} > 1 AND {0} BETWEEN 1 AND 2 AND {0} IN (1, 2)",
        "SELECT COUNT(*) FROM t WHERE {0} IS NULL",
    )
    with duckdb.connect(":memory:") as connection:
        words = {word for (word,) in connection.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()}
        for word in sorted(words - RESERVED - MISREAD):
            for place in places:
                assert connection.extract_statements(place.format(word)), word


def test_a_guess_of_the_table_of_the_units_is_said() -> None:
    """Two tables have the column and nothing decides: the line asks. Where the caller names the table it does not."""
    tables = [Table(name, (Column("id", ColumnType.INTEGER),)) for name in ("loans", "members")]
    asks = "several tables have the column"
    assert asks in propose(tables, unit="id", file="library")
    assert asks not in propose(tables, unit="id", unit_table="members", file="library")


@pytest.mark.parametrize("unit", ["Person ID", "Person_ID", "person id", "PERSON_ID"])
def test_the_unit_is_found_by_either_name(unit: str) -> None:
    """The file's name and the SQL name mean the same column, in any case."""
    table = Table("t", (Column("Person ID", ColumnType.INTEGER), Column("x", ColumnType.TEXT)))
    file = load_text(propose([table], unit=unit, file="t.csv"))
    assert (file.unit.key, file.tables["t"].key) == ("Person_ID", "Person_ID")
    assert tables_with_unit([table], unit) == (table,)


def test_rows_as_units() -> None:
    """Without a column of persons each row is a unit, which is said, and the warning stays in the check."""
    text = propose([PEOPLE], unit=None, file="people.csv", rows_are_units=True)
    file = load_text(text)
    assert (file.unit.key, file.unit.rows) == (None, True)
    assert file.tables["people"].key is None
    assert "a person with several rows is several units" in text
    assert "unit.rows" in [problem.field for problem in check_text(text)]


def test_a_contribution_goes_to_the_tables_that_refer() -> None:
    """Where other tables refer to the table of the units, that one keeps its key and the others get the bound."""
    bound = ContributionBound(rows_per_unit=8, groups_per_unit=2, rows_per_unit_and_group=4)
    visits = Table("visits", (Column("person_id", ColumnType.INTEGER), Column("cost", ColumnType.NUMBER)))
    people = Table("people", PEOPLE.columns)
    text = propose([visits, people], unit="person_id", file="all.duckdb", unit_table="people", contribution=bound)
    file = load_text(text)
    assert (file.tables["people"].key, file.tables["people"].contribution) == ("person_id", None)
    assert file.tables["visits"].contribution is not None
    assert [severity(problem) for problem in check_text(text) if is_error(problem)] == []


def test_conventions_of_the_file_are_written_down() -> None:
    """A decimal comma and an order of days become part of the source; a doubtful column says why it is text."""
    column = Column("when", ColumnType.TEXT, "DATE")
    table = Table("", (Column("id", ColumnType.INTEGER), column), decimal=",", dates="DD.MM.YYYY")
    text = propose([table], unit="id", file="t.csv")
    source = load_text(text).tables["t"].source
    assert (source.decimal, source.dates) == (",", "DD.MM.YYYY")
    assert "most values look like DATE" in text


def test_keys_and_references_of_a_database_are_proposed() -> None:
    """PRIMARY KEY and FOREIGN KEY become key and references; ways to the unit may be long; the owner is the key's."""
    visits = Table(
        "visits",
        (
            Column("visit id", ColumnType.INTEGER),
            Column("patient", ColumnType.INTEGER),
            Column("ward", ColumnType.INTEGER),
        ),
        key="visit id",
        references=(("patient", "patients", "id"), ("ward", "wards", "id"), ("ward", "elsewhere", "id")),
    )
    bills = Table(
        "bills",
        (Column("visit", ColumnType.INTEGER), Column("sum", ColumnType.NUMBER)),
        references=(("visit", "visits", "visit id"),),
    )
    patients = Table("patients", (Column("id", ColumnType.INTEGER), Column("age", ColumnType.INTEGER)), key="id")
    wards = Table("wards", (Column("id", ColumnType.INTEGER),), key="id")
    text = propose([bills, visits, wards, patients], unit="id", unit_table="patients", file="clinic.duckdb")
    assert "unit: {table: patients, key: id}" in text
    assert "references: {visit: visits.visit_id}" in text
    assert "references: {patient: patients.id, ward: wards.id}" in text
    assert "key: visit_id   # says" in text
    own = text.index("  bills:")
    assert "contribution: auto   # each question chooses" in text[own : text.index("  visits:")]
    assert "asked: how do its rows belong" not in text[own : text.index("  wards:")]


def test_unique_columns_of_a_database_are_proposed() -> None:
    """A column that is UNIQUE gets `unique: true`; the key of the units' table is unique anyway."""
    columns = (Column("id", ColumnType.INTEGER), Column("e mail", ColumnType.TEXT), Column("age", ColumnType.INTEGER))
    text = propose([Table("people", columns, unique=("id", "e mail"))], unit="id", file="people.duckdb")
    columns_read = load_text(text).tables["people"].columns
    assert [name for name, column in columns_read.items() if column.unique] == ["e_mail"]
    assert "# keys:" not in text


def test_the_owner_is_the_table_whose_key_the_unit_is() -> None:
    """Where several tables have the unit's column, the one whose declared key it is holds the units."""
    visits = Table("a_visits", (Column("patient_id", ColumnType.INTEGER),))
    patients = Table("patients", (Column("patient_id", ColumnType.INTEGER),), key="patient_id")
    text = propose([visits, patients], unit="patient_id", file="clinic.duckdb")
    assert "unit: {table: patients, key: patient_id}" in text
    assert "references: {patient_id: patients.patient_id}" in text


def id_tables(*tables: tuple[str, str | None, tuple[tuple[str, str, str], ...]]) -> list[InspectedTable]:
    """Tables with a column `id` and one that refers to others, by name, key and references."""
    columns = (Column("id", ColumnType.INTEGER), Column("of", ColumnType.INTEGER))
    return [Table(name, columns, key=key, references=references) for name, key, references in tables]


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ([("a", None, ()), ("b", "id", ())], "b"),
        ([("a", None, (("id", "b", "id"),)), ("b", None, ())], "b"),  # UNIQUE: a foreign key points to it
        ([("a", "id", (("id", "b", "id"),)), ("b", "id", ())], "b"),  # more about the same units
        ([("a", "id", ()), ("b", "id", ())], None),  # two kinds of things, each called id
        ([("a", None, ()), ("b", None, ())], None),
        ([("a", "id", (("id", "b", "id"),)), ("b", "id", (("id", "a", "id"),))], None),
    ],
)
def test_the_table_of_units_is_not_guessed(tables: list[Any], expected: str | None) -> None:
    """The keys of a database decide, where exactly one table has the unit's column as a key of its own."""
    found = table_of_units(id_tables(*tables), "id")
    assert (None if found is None else found.name) == expected


def test_tables_that_lead_to_the_units_in_several_ways_are_not_taken() -> None:
    """A chain of references counts where it is the only one: of two, only the owner can say whose row it is."""
    people = Table("people", (Column("person", ColumnType.INTEGER),), key="person")
    visits = Table("visits", (Column("no", ColumnType.INTEGER), Column("person", ColumnType.INTEGER)), key="no")
    columns = (Column("a", ColumnType.INTEGER), Column("b", ColumnType.INTEGER))
    bills = Table("bills", columns, references=(("a", "visits", "no"),))
    moves = Table("moves", columns, references=(("a", "visits", "no"), ("b", "people", "person")))
    parts = Table("parts", columns, references=(("a", "moves", "a"),))
    wards = Table("wards", columns)
    tables = tables_of_units([wards, parts, moves, bills, visits, people], "person")
    assert [table.name for table in tables] == ["bills", "visits", "people"]


def test_no_declaration_of_the_file_is_lost() -> None:
    """Marks of thousands, words for missing values and columns that are never NULL stand in the proposal."""
    columns = (
        Column("id", ColumnType.INTEGER, required=True),
        Column("cost", ColumnType.NUMBER, required=True),
        Column("note", ColumnType.TEXT),
    )
    text = propose([Table("", columns, thousands=",", nulls=("NA", "\\N"))], unit="id", file="t.csv")
    table = load_text(text).tables["t"]
    assert (table.source.thousands, table.source.nulls) == (",", ["NA", "\\N"])
    assert [column.nullable for column in table.columns.values()] == [False, False, True]
    assert "nulls says: these words stand for missing values" in text


def test_a_length_is_asked_for_and_never_read_from_the_rows() -> None:
    """The longest text is one person's: the line that asks has the same number whatever the data is."""
    columns = (Column("id", ColumnType.INTEGER), Column("note", ColumnType.TEXT))
    bound = ContributionBound(rows_per_unit=8, groups_per_unit=2, rows_per_unit_and_group=4)
    many = propose([Table("", columns)], unit="id", file="t.csv", contribution=bound)
    assert "# length_max: 50   # asked:" in many
    assert load_text(many).tables["t"].columns["note"].length_max is None
    for one in (propose([Table("", columns)], unit="id", file="t.csv"),
                propose([Table("", columns)], unit=None, file="t.csv", rows_are_units=True)):  # fmt: skip
        assert "length_max" not in one, "one row of a unit makes nobody wait"


def test_a_key_that_is_the_units_is_not_given_a_contribution() -> None:
    """A second table with one row per unit was proposed with bounds that its key contradicts."""
    people = Table("people", (Column("person", ColumnType.INTEGER),), key="person")
    consents = Table("consents", (Column("person", ColumnType.INTEGER),), key="person")
    bound = ContributionBound(rows_per_unit=8, groups_per_unit=2, rows_per_unit_and_group=4)
    text = propose([people, consents], unit="person", unit_table="people", file="all.duckdb", contribution=bound)
    assert [problem.what for problem in check_text(text) if is_error(problem)] == []
    assert [table.contribution for table in load_text(text).tables.values()] == [None, None]


def test_several_ways_to_the_unit_are_not_left_open_where_the_unit_decides() -> None:
    """A row that names its unit belongs to it, whatever else it refers to; without that the owner is asked."""
    people = Table("people", (Column("person", ColumnType.INTEGER),), key="person")
    visits = Table(
        "visits", (Column("no", ColumnType.INTEGER), Column("person", ColumnType.INTEGER)), key="no",
        references=(("person", "people", "person"),),
    )  # fmt: skip
    both = (("visit", "visits", "no"), ("person", "people", "person"))
    bills = Table("bills", (Column("visit", ColumnType.INTEGER), Column("person", ColumnType.INTEGER)), references=both)
    of = (("visit", "visits", "no"), ("payer", "people", "person"))
    gifts = Table("gifts", (Column("visit", ColumnType.INTEGER), Column("payer", ColumnType.INTEGER)), references=of)
    text = propose([people, visits, bills, gifts], unit="person", unit_table="people", file="all.duckdb")
    assert "    unit_via: person   # says" in text
    assert "    # asked: which reference says whose row it is? unit_via: visit or payer" in text


def test_a_zone_and_an_encoding_are_proposed_and_asked() -> None:
    """Moments with a zone get UTC and the question; letters get the encoding that the file shows."""
    seen = Table("", (Column("id", ColumnType.INTEGER), Column("t", ColumnType.TIMESTAMP, "TIMESTAMP WITH TIME ZONE")))
    text = propose([seen], unit="id", file="people.parquet")
    assert "zone: UTC}" in text
    assert "asked: whose days and clock" in text
    assert load_text(text).tables["people"].source.zone == "UTC"
    old = Table("", (Column("id", ColumnType.INTEGER),), encoding="windows-1252")
    assert load_text(propose([old], unit="id", file="people.csv")).tables["people"].source.encoding == "windows-1252"


def test_words_and_marks_of_a_source_are_read() -> None:
    """The words of truth values are called true and false in the file, as in YAML they are no truth values there."""
    text = propose([Table("", (Column("id", ColumnType.INTEGER),))], unit="id", file="people.csv").replace(
        '"people.csv"', '"people.csv", true: [ja, on], false: [nein], nulls: [NA, "-"], thousands: "."'
    )
    source = load_text(text).tables["people"].source
    assert (source.true_words, source.false_words, source.nulls) == (["ja", "on"], ["nein"], ["NA", "-"])
    assert source.thousands == "."


@pytest.mark.parametrize(
    ("rows", "proposed"), [(0, 1), (1, 1), (3, 5), (3_210, 5_000), (5_001, 10_000), (10_000, 10_000)]
)
def test_a_size_is_asked_for_and_never_declared_from_the_rows(rows: int, proposed: int) -> None:
    """A number that follows from rows is public only once the owner has said so."""
    text = propose([replace(PEOPLE, rows=rows)], file="people.csv", unit="person_id")
    assert f"# rows_expected: {proposed}   # asked" in text
    assert "rows_expected" not in load_text(text).model_dump_json(exclude_unset=True)
