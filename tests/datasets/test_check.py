"""Findings about dataset files: all at once, each with its place and what to write instead."""

# ruff: noqa: E501   (one mistake a line reads better than a wrapped table)

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.datasets import DatasetFileRefused, check, check_text, is_error, load, load_text, severity, to_dataset
from server.datasets.waiting import text_wait_seconds
from server.journey.moments import SHARE
from sql_rewrite.bound import bound
from sql_rewrite.cost import work_of
from sql_rewrite.lift import lift
from tests.datasets.example import EXAMPLE, changed, errors, findings


def test_the_example_is_sound() -> None:
    """A sound file has no findings, warnings neither."""
    assert check_text(EXAMPLE) == []
    assert load_text(EXAMPLE).dataset == "clinic"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # names
        ("dataset: clinic", "dataset: my-clinic", '"dataset" cannot be "my-clinic"'),
        ("dataset: clinic", "dataset: " + "x" * 64, '"dataset" cannot be "' + "x" * 57 + '..."'),
        ("dataset: clinic\n", "", '"dataset" is missing'),
        ("  visits:\n", "  9visits:\n", 'table "9visits" is not a name that can be used'),
        ("      sex:", "      sex-code:", 'column "patients.sex-code" is not a name that can be used'),
        ("      sex:", "      Income:", '"income" and "Income" differ only in upper and lower case'),
        ("      sex: {type: text, keys: [female, male]}", "      sex: {typ: text}", '"type" is missing in column "patients.sex"'),
        ("    public: true", "    publik: true", 'unknown name "publik" in table "hospitals"'),
        ("description: An example.", "descripton: x", 'unknown name "descripton"'),
        # types
        ("sex: {type: text", "sex: {type: txt", '"type" of column "patients.sex" cannot be "txt"'),
        ("    public: true", "    public: yes", '"public" of table "hospitals" must be true or false, and it is "yes"'),
        ("sex: {type: text, keys: [female, male]}", "sex: text", 'column "patients.sex" must be a mapping (name: value), and it is "text"'),
        # bounds
        ("[0, 200000]", "[200000, 0]", 'the bounds of column "patients.income" are reversed'),
        ("[0, 200000]", "[7, 7]", 'the bounds of column "patients.income" are equal'),
        ("[0, 200000]", "[0, .inf]", '"bounds" of column "patients.income" cannot be Infinity'),
        ("[0, 200000]", "[.nan, 1]", '"bounds" of column "patients.income" cannot be NaN'),
        ("[0, 200000]", "[0, 1e19]", 'a bound of column "patients.income" is too large'),
        ("[0, 200000]", "[0, high]", '"bounds" of column "patients.income" must be a number, and it is "high"'),
        ("[0, 200000]", "[true, 5]", '"bounds" of column "patients.income" must be a number, and it is true'),
        ("[0, 200000]", "[0]", '"bounds" of column "patients.income" must have 2 or more entries, and it has 1'),
        ("[0, 200000]", "[0, 1, 2]", '"bounds" of column "patients.income" must have 2 entries or fewer, and it has 3'),
        ("bounds: [0, 110], keys", "bounds: [0.5, 110], keys", 'column "patients.age" is of type integer, and its bounds are not whole numbers'),
        ("visit_date: {type: date}", "visit_date: {type: date, bounds: [1, 2]}", 'the bounds of column "visits.visit_date" cannot be used'),
        ("visit_date: {type: date}", 'visit_date: {type: date, bounds: ["2025-01-01", "2024-01-01"]}', 'the bounds of column "visits.visit_date" are reversed'),
        # keys
        ("[female, male]", "[female, female]", 'key "female" of column "patients.sex" is listed twice'),
        ("[female, male]", "[female, 1]", 'key 1 of column "patients.sex" is not of its type'),
        ("[female, male]", "[]", '"keys" of column "patients.sex" must have 1 or more entries, and it has 0'),
        ("[female, male]", "female", '"keys" of column "patients.sex" must be a list of values, {values: [...]}, {range: [first, last]} or {table: ..., column: ...}'),
        ("keys: {range: [0, 110]}", "keys: {range: [110, 0]}", 'the range of keys of column "patients.age" cannot be used'),
        ("keys: {range: [0, 110]}", "keys: {range: [0, 100000000]}", 'the range of keys of column "patients.age" cannot be used'),
        ("keys: {range: [0, 110]}", "keys: [1, true]", 'key true of column "patients.age" is not of its type'),
        ("keys: {range: [0, 110]}", "keys: [9223372036854775808]", 'key 9223372036854775808 of column "patients.age" is not of its type'),
        ("bounds: [0, 200000]", "bounds: [0, 9], keys: [1]", 'column "patients.income" of type number cannot have keys'),
        ("visit_date: {type: date}", "visit_date: {type: date, keys: [2024-02-30]}", 'key "2024-02-30" of column "visits.visit_date" is not of its type'),
        ("{table: hospitals, column: region}", "{table: hospital, column: region}", 'table "hospital" is not in this file'),
        ("{table: hospitals, column: region}", "{table: hospitals, column: regio}", 'column "regio" is not in table "hospitals"'),
        ("{table: hospitals, column: region}", "{table: visits, column: cost}", 'the keys of column "patients.region" come from the protected table "visits"'),
        ("{table: hospitals, column: region}", "{table: hospitals, column: hospital_id}", 'column "patients.region" is of type text, and "hospitals.hospital_id" of type integer'),
        # keys and references
        ("key: visit_id\n", "key: visit\n", 'column "visit" is not in table "visits"'),
        ("key: visit_id\n", "key: cost\n", 'column "visits.cost" of type number cannot be a key'),
        ("patients.patient_id,", "patients,", '"patients" is not a reference'),
        ("patients.patient_id,", "people.patient_id,", 'table "people" is not in this file'),
        ("patients.patient_id,", "patients.age,", '"patients.age" is not the key of table "patients"'),
        ("    key: hospital_id\n", "", '"hospitals.hospital_id" is not the key of table "hospitals"'),
        ("hospital_id: {type: integer}\n      visit_date", "hospital_id: {type: text}\n      visit_date", '"visits.hospital_id" is of type text, and "hospitals.hospital_id" of type integer'),
        # the privacy unit
        ("unit: {table: patients, key: patient_id}\n", "", '"unit" is missing'),
        ("unit: {table: patients", "unit: {table: patient", 'table "patient" is not in this file'),
        ("unit: {table: patients, key: patient_id}", "unit: {table: patients, key: id}", 'column "id" is not in table "patients"'),
        ("unit: {table: patients, key: patient_id}", "unit: {table: hospitals, key: hospital_id}", 'the table of the privacy unit, "hospitals", is public'),
        ("    references: {visit_id: visits.visit_id}\n", "", 'table "tests" does not reach the privacy unit'),
        ("    references: {visit_id: visits.visit_id}\n", "    references: {visit_id: visits.visit_id}\n    unit_via: visit\n", '"unit_via" of table "tests" names no reference'),
        # contribution
        ("    contribution: {rows_per_unit: 40, groups_per_unit: 4, rows_per_unit_and_group: 15}\n", "", 'table "visits" has no contribution bounds'),
        ("rows_per_unit: 40", "rows_per_unit: 0", '"contribution.rows_per_unit" of table "visits" must be 1 or more'),
        ("rows_per_unit: 40", "rows_per_unit: -1", '"contribution.rows_per_unit" of table "visits" must be 1 or more'),
        ("rows_per_unit: 40", "rows_per_unit: 4.5", '"contribution.rows_per_unit" of table "visits" must be a whole number, and it is 4.5'),
        ("rows_per_unit: 40", "rows_per_unit: 99999999", '"contribution.rows_per_unit" of table "visits" must be 1048576 or less'),
        ("    public: true", "    public: true\n    contribution: {rows_per_unit: 2, groups_per_unit: 2, rows_per_unit_and_group: 2}", '"contribution" has no meaning in the public table "hospitals"'),
        # sources
        ("file: patients.csv", "file: patients.xlsx", 'the format of "patients.xlsx" is not known'),
        ("file: patients.csv", "file: patients.csv, table: x", '"source.table" of table "patients" has no meaning for a csv file'),
        ("file: patients.csv", 'file: ""', '"source.file" of table "patients" must not be empty'),
        # policy
        ('epsilon_max: "1"', "epsilon_max: 1", '"policy.epsilon_max" must be a decimal written as text'),
        ('epsilon_max: "1"', 'epsilon_max: "1e9"', '"epsilon_max" of the policy cannot be used'),
        ('epsilon_max: "1"', 'epsilon_max: "nan"', '"epsilon_max" of the policy cannot be used'),
        ('epsilon_max: "1"', 'epsilon_max: "-1"', '"epsilon_max" of the policy cannot be used'),
        ('epsilon_max: "1"', 'epsilon_max: "0"', '"epsilon_max" of the policy cannot be used'),
        ('epsilon_max: "1"', 'epsilon_max: "0.05"', '"epsilon_default" of the policy is above "epsilon_max"'),
        ('"1e-7"', '"1.5"', '"delta_per_query" of the policy cannot be used'),
        ('"1e-7"', '"1e-19"', '"delta_per_query" of the policy cannot be used'),
        ('delta_per_query: "1e-7"', "timeout_seconds: 0", '"policy.timeout_seconds" must be 1 or more'),
    ],
)  # fmt: skip
def test_one_mistake_is_one_finding_of_its_own(old: str, new: str, expected: str) -> None:
    """Each mistake is named; what follows from it alone is not reported beside it, other than by its own words."""
    found = errors((old, new))
    assert expected in found
    assert len(found) <= 3, found


def test_every_finding_has_a_place_and_a_way_out() -> None:
    """Several independent mistakes come back together, in the order of the file, each with its line."""
    found = findings(
        ("[0, 200000]", "[9, 1]"),
        ("[female, male]", "[female, female]"),
        ("patients.patient_id,", "patients.age,"),
        ("rows_per_unit: 60", "rows_per_unit: 0"),
        ("    public: true", "    publik: true"),
        ('epsilon_max: "1"', "epsilon_max: 1"),
    )
    expected = [
        'the bounds of column "patients.income" are reversed',
        'key "female" of column "patients.sex" is listed twice',
        '"patients.age" is not the key of table "patients"',
        '"contribution.rows_per_unit" of table "tests" must be 1 or more',
        'unknown name "publik" in table "hospitals"',
        '"policy.epsilon_max" must be a decimal written as text',
    ]
    whats = [problem.what for problem in found]
    assert expected == [what for what in whats if what in expected]
    lines = [problem.position.line for problem in found if problem.position is not None]
    assert len(lines) == len(found)
    assert lines == sorted(lines)
    assert all(problem.position and problem.position.column and problem.why and problem.instead for problem in found)


def test_a_wrong_part_does_not_hide_the_others() -> None:
    """A column with an unknown type is left out, and references to it are not called unknown."""
    found = errors(("      patient_id: {type: integer}\n      income", "      patient_id: {type: int}\n      income"))
    assert found == ['"type" of column "patients.patient_id" cannot be "int"']


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("type: text, keys: [female", "type: tex, keys: [female", 'Did you mean "text"?'),
        ("unit: {table: patients", "unit: {table: patient", 'Did you mean "patients"?'),
        ("column: region", "column: Regoin", 'Did you mean "region"?'),
        ("    key: visit_id", "    keyy: visit_id", 'Did you mean "key"?'),
        ("rows_per_unit: 40", "row_per_unit: 40", 'Did you mean "rows_per_unit"?'),
        ('epsilon_default: "0.1"', 'epsilon_defualt: "0.1"', 'Did you mean "epsilon_default"?'),
    ],
)
def test_the_nearest_known_name_is_suggested(old: str, new: str, hint: str) -> None:
    """A misspelt name is met with the one that was most likely meant."""
    assert any(hint in problem.instead[0] for problem in findings((old, new)))


def test_a_missing_bound_is_a_warning() -> None:
    """COUNT works without bounds, so the file is usable; identifiers are not asked for bounds."""
    found = findings((", bounds: [0, 20000]", ""))
    assert [(severity(item), item.what) for item in found] == [("warning", 'column "visits.cost" has no value bounds')]
    assert load_text(changed((", bounds: [0, 20000]", ""))).tables["visits"].columns["cost"].bounds is None


def test_two_ways_to_the_unit_need_a_choice() -> None:
    """A table that refers to the unit twice is refused until the owner chooses, and then only one way counts."""
    second = (
        ("      cost: {type: number, bounds: [0, 20000]}", "      cost: {type: number, bounds: [0, 20000]}\n      payer: {type: integer}"),
        ("patients.patient_id,", "patients.patient_id, payer: patients.patient_id,"),
    )  # fmt: skip
    assert errors(*second) == [
        'table "visits" reaches the privacy unit in more than one way',
        'table "tests" reaches the privacy unit in more than one way',
    ]
    assert errors(*second, ("    key: visit_id\n", "    key: visit_id\n    unit_via: payer\n")) == []


def test_references_that_go_in_circles_are_no_way_to_the_unit() -> None:
    """Two tables that refer to one another reach nobody."""
    circle = (
        (
            "    references: {visit_id: visits.visit_id}",
            "    key: visit_id\n    references: {visit_id: visits.visit_id}",
        ),
        ("{patient_id: patients.patient_id, hospital_id", "{visit_id: tests.visit_id, hospital_id"),
    )
    found = errors(*circle)
    assert found == ['table "visits" does not reach the privacy unit', 'table "tests" does not reach the privacy unit']


def test_one_row_per_unit_needs_no_contribution() -> None:
    """The unit's own table has one row per unit; a larger contribution there contradicts the key."""
    wider = ("    key: patient_id\n", "    key: patient_id\n    contribution: {rows_per_unit: 2, groups_per_unit: 1, rows_per_unit_and_group: 2}\n")  # fmt: skip
    assert errors(wider) == ['the contribution of table "patients" is larger than its key allows']
    without_key = errors(("    key: patient_id\n", ""))
    assert 'table "patients" has no contribution bounds' in without_key


def test_data_files_are_looked_at_by_their_first_bytes(tmp_path: Path) -> None:
    """A file that is missing or is not what it claims to be is found before anything is attached."""
    (tmp_path / "clinic.yaml").write_text(EXAMPLE)
    (tmp_path / "patients.csv").write_bytes(b"PK\x03\x04\x00\x00")
    (tmp_path / "visits.parquet").write_bytes(b"visit_id,patient_id\n")
    (tmp_path / "clinic.duckdb").write_bytes(b"")
    assert [problem.what for problem in check(tmp_path / "clinic.yaml")] == [
        '"patients.csv" is not a csv file',
        '"visits.parquet" is not a parquet file',
        '"clinic.duckdb" is not a duckdb file',
        'could not read the data file "hospitals.csv"',
    ]


def test_files_outside_the_folder_are_refused_when_confined(tmp_path: Path) -> None:
    """A caller who may not name any file on the server can neither climb out nor name an absolute path."""
    for name in ("../secret.csv", "/etc/passwd", "sub/../../x.csv"):
        text = changed(("file: patients.csv", f"file: {name}, format: csv"))
        with pytest.raises(DatasetFileRefused) as refused:
            load_text(text, directory=tmp_path, confined=True)
        assert 'the data file of table "patients" is outside the folder of datasets' in [
            problem.what for problem in refused.value.findings
        ]


def test_a_file_that_cannot_be_opened_is_one_finding(tmp_path: Path) -> None:
    """A wrong path gives a finding, not a stack trace."""
    (found,) = check(tmp_path / "nothing.yaml")
    assert "could not read the dataset file" in found.what
    with pytest.raises(OSError, match="nothing"):
        load(tmp_path / "nothing.yaml")


def test_a_refused_file_carries_every_finding() -> None:
    """The exception has what `check` has."""
    text = changed(("[0, 200000]", "[9, 1]"), ("[female, male]", "[female, female]"))
    with pytest.raises(DatasetFileRefused, match="and 1 more") as refused:
        load_text(text)
    assert check_text(text) == list(refused.value.findings)


def test_a_stored_document_is_the_same_file() -> None:
    """What the registry stores as JSON reads back as an equal file, exact bounds included."""
    file = load_text(EXAMPLE)
    stored = json.dumps(file.model_dump(mode="json", exclude_unset=True))
    again = load_text(stored)
    assert file.model_dump() == again.model_dump()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
paths = st.lists(st.integers(0, 12), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(paths, values)
@pytest.mark.slow
def test_no_document_makes_the_check_fail(path: list[int], value: object) -> None:
    """Whatever stands anywhere in a file, the check ends with findings, and `load` agrees with it."""
    document = load_text(EXAMPLE).model_dump(mode="json", exclude_unset=True)
    here: object = document
    for step in path[:-1]:
        children = list(here.values()) if isinstance(here, dict) else here if isinstance(here, list) else []
        if not children:
            break
        here = children[step % len(children)]
    if isinstance(here, dict) and here:
        here[list(here)[path[-1] % len(here)]] = value
    elif isinstance(here, list) and here:
        here[path[-1] % len(here)] = value
    text = json.dumps(document)
    refused = any(is_error(problem) for problem in check_text(text))
    if refused:
        with pytest.raises(DatasetFileRefused):
            load_text(text)
    else:
        load_text(text)


def test_bounds_below_the_declared_groups_are_not_silent() -> None:
    """One warning names the bound that would cover the column with most groups; at that bound there is none."""
    assert findings() == []
    visited = ("visit_date: {type: date}", 'visit_date: {type: date, keys: {range: ["2024-01-01", "2024-01-05"]}}')
    (problem,) = findings(visited)
    assert severity(problem) == "warning"
    assert problem.what == 'groups_per_unit of table "visits" is below the groups of "visit_date"'
    assert "groups_per_unit: 5 " in problem.instead[0]
    assert findings(visited, ("groups_per_unit: 4", "groups_per_unit: 5")) == []


def test_two_tables_of_events_are_told_to_have_a_table_of_units() -> None:
    """Where both tables have several rows of a unit, no key can be declared: the advice is a third table, and how."""
    events = """\
version: 2
dataset: clinic
unit: {table: visits, key: patient_id}
tables:
  visits:
    source: {file: visits.csv}
    contribution: {rows_per_unit: 40, groups_per_unit: 4, rows_per_unit_and_group: 15}
    columns:
      patient_id: {type: integer}
  labs:
    source: {file: labs.csv}
    contribution: {rows_per_unit: 40, groups_per_unit: 4, rows_per_unit_and_group: 15}
    references: {patient_id: visits.patient_id}
    columns:
      patient_id: {type: integer}
"""
    for text in (events, events.replace("    references: {patient_id: visits.patient_id}\n", "")):
        (problem,) = [item for item in check_text(text) if is_error(item)]
        assert "Add a table with one row for each unit" in problem.instead[0]
        assert "SELECT DISTINCT patient_id AS patient_id FROM 'visits.csv' UNION" in problem.instead[0]
        assert "references: {patient_id: units.patient_id}" in problem.instead[0]


# Texts that make answers wait


def waits(*changes: tuple[str, str]) -> list[str]:
    """What the example, with a note of each visit, is warned of."""
    note = (
        "cost: {type: number, bounds: [0, 20000]}",
        "cost: {type: number, bounds: [0, 20000]}\n      note: {type: text}",
    )
    return [f"{item.what}. {item.why} {item.instead}" for item in findings(note, *changes) if not is_error(item)]


def test_a_text_that_lets_answers_wait_is_not_silent() -> None:
    """A column of text without a length in a table with many rows of a unit: the warning says what it costs."""
    (warning,) = waits()
    assert 'column "visits.note" has no length_max' in warning
    assert "1,000 rows of one unit may hold 1,000 characters each" in warning
    assert "shown after 0.3 s or more" in warning
    assert "With 50 it is 0.02 s" in warning


@pytest.mark.parametrize(
    "change",
    [
        ("note: {type: text}", "note: {type: text, length_max: 100}"),
        ("note: {type: text}", "note: {type: text, keys: [a, b]}"),
        ("note: {type: text}", "note: {type: text, keys: {values: [a, b], other: c}}"),
        ("note: {type: text}", "note: {type: integer, bounds: [0, 9]}"),
        ("    key: visit_id\n", "    key: visit_id\n    rows_stored_per_unit: 50\n"),
    ],
)
def test_a_text_that_lets_nobody_wait_is_not_warned_of(change: tuple[str, str]) -> None:
    """Declared lengths, keys, few rows of a unit: no warning. Nor for tables with one row of a unit, or public ones."""
    assert waits(change) == []
    assert findings(("sex: {type: text, keys: [female, male]}", "sex: {type: text}")) == []


def test_the_waiting_time_is_not_made_up() -> None:
    """What the warning says is the tick of such a question: ten times what the cost model counts for one unit."""
    text = changed(("cost: {type: number, bounds: [0, 20000]}", "note: {type: text}"))
    values = {("hospitals", "region"): ["north", "south"]}
    dataset = to_dataset(load_text(text), policy_version=1, data_version="d", public_values=values)
    plan = bound(lift("SELECT COUNT(*) AS n FROM visits WHERE LOWER(note) = 'x'", dataset))
    tick = SHARE * work_of(plan).unit_nanoseconds / 1e9
    said = text_wait_seconds(rows=1_000, characters=1_000)
    assert said <= tick <= 1.5 * said
