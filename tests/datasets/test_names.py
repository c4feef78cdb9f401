"""Columns that the data file calls otherwise, and rows as units: what the check finds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jsonschema
import pytest
import yaml

from engines.snapshot_findings import SNAPSHOT_CODES, SnapshotFinding
from engines.table_source import TableSource
from privacy.refusal import Finding
from server.datasets import (
    check,
    check_text,
    is_error,
    json_schema,
    load_text,
    severity,
    sources,
    to_dataset,
)
from server.datasets.advice import CONTRIBUTION_EXAMPLE, advice
from server.datasets.model import DatasetFile
from tests.datasets.example import EXAMPLE, errors, findings

NAMED = ("income: {type: number", 'income: {source_name: "Income (EUR)", type: number')


def test_a_source_name_travels_to_the_snapshot() -> None:
    """The SQL name is the declared one everywhere; only the source of the snapshot has the file's."""
    file = load_text(EXAMPLE.replace(*NAMED))
    assert file.tables["patients"].columns["income"].source_name == "Income (EUR)"
    patients = next(source for source in sources(file, Path()) if source.table == "patients")
    assert patients.source_names == (("income", "Income (EUR)"),)
    declared = to_dataset(file, policy_version=1, data_version="d", public_values={("hospitals", "region"): ["north"]})
    assert "Income (EUR)" not in repr(declared)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("sex: {type: text", 'sex: {source_name: "", type: text', '"source_name" of column "patients.sex" must not'),
        ("sex: {type: text", "sex: {source_name: 7, type: text", '"source_name" of column "patients.sex" must be'),
        ("sex: {type: text", "sex: {source_name: income, type: text", "are read from one column of the data file"),
        ("unit: {table: patients, key: patient_id}", "unit: {table: patients}", '"key" is missing in "unit"'),
        (
            "unit: {table: patients, key: patient_id}",
            "unit: {table: patients, rows: false}",
            '"key" is missing in "unit"',
        ),
        (
            "unit: {table: patients, key: patient_id}",
            "unit: {table: patients, key: patient_id, rows: true}",
            '"unit" has both key and rows: true',
        ),
        (
            "unit: {table: patients, key: patient_id}",
            "unit: {table: patients, rows: sometimes}",
            '"unit.rows" must be true or false',
        ),
        ("source: {file: patients.csv}", 'source: {file: patients.csv, decimal: ";"}', "cannot be"),
        ("source: {file: patients.csv}", "source: {file: patients.csv, dates: DD.MM.YY}", "cannot be"),
    ],
)
def test_one_mistake_is_one_error(old: str, new: str, expected: str) -> None:
    """Each mistake about names, units and conventions is told once, with its way out."""
    found = [item for item in findings((old, new)) if is_error(item)]
    assert len(found) == 1, found
    assert expected in found[0].what
    assert found[0].instead


def test_names_that_sql_cannot_use_say_how_to_keep_the_data() -> None:
    """A declared name with spaces is told with the entry that keeps the file as it is."""
    (found,) = [item for item in findings(("      sex: {", '      "Sex at birth": {')) if is_error(item)]
    assert 'Sex_at_birth: {source_name: "Sex at birth", type: ...}' in found.instead[0]


def test_a_word_of_sql_as_a_name_is_a_warning() -> None:
    """It can be asked about in quotes, so it does not stop anything."""
    (found,) = findings(("      visit_date: {type", "      order: {type"))
    assert (severity(found), found.field) == ("warning", "tables.visits.columns.order")
    assert 'order_: {source_name: "order", ...}' in found.instead[0]


ROWS = """\
version: 2
dataset: survey
unit: {table: survey, rows: true}
tables:
  survey:
    source: {file: survey.csv}
    columns:
      age: {type: integer, bounds: [0, 110]}
  places:
    public: true
    source: {file: places.csv}
    columns:
      name: {type: text}
"""


def test_rows_as_units_are_sound_and_warned_about() -> None:
    """One warning says what is not protected; the table has one row per unit and no column of the unit."""
    (warning,) = check_text(ROWS)
    assert (severity(warning), warning.field) == ("warning", "unit.rows")
    assert "one row at a time" in warning.why
    declared = to_dataset(load_text(ROWS), policy_version=1, data_version="d", public_values={})
    assert declared.unit.key is None
    survey = declared.table("survey")
    assert survey is not None
    assert (survey.unit_column, survey.unit_path) == (None, ())
    assert survey.one_row


def test_no_other_table_belongs_to_rows() -> None:
    """A second protected table is refused with the three ways out; a contribution of the rows is, too."""
    (found,) = [item for item in check_text(ROWS.replace("    public: true\n", "")) if is_error(item)]
    assert found.what == 'table "places" does not reach the privacy unit'
    assert all(word in found.instead[0] for word in ("public: true", "of its own", "unit: key"))
    wide = ROWS.replace("    columns:\n      age", f"    {CONTRIBUTION_EXAMPLE}\n    columns:\n      age")
    (found,) = [item for item in check_text(wide) if is_error(item)]
    assert found.instead == ("Remove contribution.",)


def test_the_schema_knows_the_two_kinds_of_units() -> None:
    """An editor accepts a key or rows: true, and neither none nor both."""
    validator = jsonschema.Draft202012Validator(json_schema())

    def accepted(unit: str) -> bool:
        return validator.is_valid(yaml.safe_load(ROWS.replace("{table: survey, rows: true}", unit)))

    assert accepted("{table: survey, rows: true}")
    assert accepted("{table: survey, key: age}")
    assert not accepted("{table: survey}")
    assert not accepted("{table: survey, rows: false}")
    assert not accepted("{table: survey, key: age, rows: true}")


# Names in the header of the data file

HEADED = """\
version: 2
dataset: people
unit: {table: people, key: id}
tables:
  people:
    source: {file: people.csv}
    key: id
    columns:
      id: {type: integer}
      age: {type: integer, bounds: [0, 110]}
      city: {source_name: "City of birth", type: text}
      job: {type: text}
"""


def checked(folder: Path, header: tuple[str, ...] | SnapshotFinding) -> list[Finding]:
    (folder / "people.csv").write_text("x\n1\n")
    path = folder / "people.yaml"
    path.write_text(HEADED)
    asked: list[TableSource] = []

    def headers(places: Sequence[TableSource]) -> list[tuple[str, ...] | SnapshotFinding]:
        asked.extend(places)
        return [header]

    found = check(path, headers=headers)
    assert [source.path for source in asked] == [folder / "people.csv"]
    return found


def test_a_header_that_has_everything_is_in_order(tmp_path: Path) -> None:
    """Other columns, other case and spaces around names do not matter."""
    assert checked(tmp_path, ("ID", " Age", "more", "City of birth", "job")) == []


def test_every_missing_name_is_found_at_once(tmp_path: Path) -> None:
    """A missing source_name, a name that only sounds alike and one that is ambiguous: three findings with places."""
    found = checked(tmp_path, ("id", "age (years)", "City of  birth", "Job", "JOB"))
    assert [(severity(item), item.field) for item in found] == [
        ("error", "tables.people.columns.age"),
        ("error", "tables.people.columns.city.source_name"),
        ("error", "tables.people.columns.job"),
    ]
    assert 'Did you mean source_name: "City of  birth"?' in found[1].instead[0]
    assert 'source_name: "Job"' in found[2].instead[0]
    assert all(item.position is not None for item in found)


def test_a_name_that_became_another_is_suggested(tmp_path: Path) -> None:
    """The column whose header gives this SQL name is the one that was meant."""
    (tmp_path / "people.csv").write_text("x\n")
    text = HEADED.replace("      age: ", "      age_years: ")
    path = tmp_path / "people.yaml"
    path.write_text(text)
    (found,) = check(path, headers=lambda _: [("id", "Age / years", "City of birth", "job")])
    assert 'source_name: "Age / years"' in found.instead[0]


def test_two_columns_of_exactly_one_name_cannot_be_told_apart(tmp_path: Path) -> None:
    """The advice is then to rename in the data, as no source_name could choose."""
    (found,) = checked(tmp_path, ("id", "age", "age", "City of birth", "job"))
    assert found.instead == ("Rename one of them in the data file.",)


def test_a_file_that_cannot_be_read_is_one_finding(tmp_path: Path) -> None:
    """The cause stands for all of its columns."""
    (found,) = checked(tmp_path, SnapshotFinding("malformed_csv", "people"))
    assert found.field == "tables.people.source"
    assert found.why == SNAPSHOT_CODES["malformed_csv"]


def test_the_text_alone_is_checked_without_files() -> None:
    """Without a folder no header is looked for."""
    assert check_text(HEADED) == []
    assert errors() == []


# What to do about findings in the data


@pytest.mark.parametrize("code", sorted(SNAPSHOT_CODES))
def test_every_finding_in_the_data_has_advice(code: str) -> None:
    """Whatever is wrong with the data, something is said about what to do, with and without a table."""
    file = load_text(EXAMPLE)
    lines = [
        advice(SnapshotFinding(code), None, None),
        advice(SnapshotFinding(code, "patients", "age", 3), file.tables["patients"], file.unit),
        advice(SnapshotFinding(code, "patients", "patient_id", 3), file.tables["patients"], file.unit),
    ]
    assert all(given and all(given) for given in lines)


def test_thousands_beside_a_decimal_point_are_not_left_without_advice() -> None:
    """Numbers such as 1,250.5 need `thousands` alone, which the advice for 1.250,5 does not say."""
    file = load_text(EXAMPLE)
    income = SnapshotFinding("value_not_of_type", "patients", "income", 3)
    assert 'for 1,250.5: thousands: ","' in advice(income, file.tables["patients"], file.unit)[0]


def test_what_a_source_declares_is_not_advised_again() -> None:
    """Dates that are declared are repeated as they stand, and the mark for missing values is still advised."""
    born = SnapshotFinding("value_not_of_type", "patients", "admitted", 3)
    source, declared = "source: {file: patients.csv}", "source: {file: patients.csv, dates: DD.MM.YYYY}"
    text = EXAMPLE.replace("age: {type: integer", "admitted: {type: date}\n      age: {type: integer", 1)
    assert source in text
    assert "admitted" in text
    plain, told = (load_text(text.replace(source, said)) for said in (source, declared))
    assert "add to the source of the table: dates: DD.MM.YYYY" in advice(born, plain.tables["patients"], plain.unit)[0]
    first, marks, _ = advice(born, told.tables["patients"], told.unit)
    assert 'says dates: "DD.MM.YYYY"' in first
    assert "add" not in first
    assert 'nulls: ["NA"]' in marks


def test_a_unit_with_several_rows_is_told_the_lines_to_write() -> None:
    """The line to remove and the line to write, exactly as they stand in the file."""
    file = load_text(EXAMPLE)
    found = advice(SnapshotFinding("key_not_unique", "patients", "patient_id", 3), file.tables["patients"], file.unit)
    assert found[0].endswith("remove this line from table patients: key: patient_id")
    assert found[1:3] == ("and write in its place: contribution: auto", f"Or {CONTRIBUTION_EXAMPLE}")
    visits = EXAMPLE.replace("key: visit_id\n", "key: patient_id\n").replace(f"    {CONTRIBUTION_EXAMPLE}\n", "", 1)
    file = DatasetFile.model_validate(yaml.safe_load(visits))
    found = advice(SnapshotFinding("key_not_unique", "visits", "patient_id", 3), file.tables["visits"], file.unit)
    assert found[0].endswith("remove this line from table visits: key: patient_id")
    # Doing so makes a sound file again.
    mended = visits.replace("    key: patient_id\n    references", f"    {CONTRIBUTION_EXAMPLE}\n    references")
    mended = mended.replace("references: {visit_id: visits.visit_id}", "references: {visit_id: patients.patient_id}")
    assert [item for item in check_text(mended) if is_error(item)] == []


def test_another_key_that_repeats_is_another_matter() -> None:
    """A key of visits that repeats says nothing about persons: the key goes, or the data is mended."""
    file = load_text(EXAMPLE)
    found = advice(SnapshotFinding("key_not_unique", "visits", "visit_id", 3), file.tables["visits"], file.unit)
    assert "remove this line from table visits: key: visit_id" in found[0]
    assert "contribution" not in " ".join(found)
