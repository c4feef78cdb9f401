"""Invented rows: they fulfil what is declared, follow from nothing else, and can be attached."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from privacy.policy import Dataset, PublicKeys
from server.datasets import load, load_text, to_dataset
from server.datasets.invented import Invented, invent, with_sources
from tests.datasets import test_docs
from tests.journey.clinic import write_files


def clinic(folder: Path) -> Dataset:
    """The declarations of the clinic."""
    return to_dataset(load(write_files(folder)), policy_version=1, data_version="d", public_values=None)


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A clinic's declarations."""
    return clinic(tmp_path_factory.mktemp("clinic"))


def column(made: Invented, table: str, name: str) -> list[object]:
    """The values of a column."""
    (found,) = [one for one in made.tables if one.table.name == table]
    return list(found.columns[name])


def test_values_are_those_that_are_declared(declared: Dataset) -> None:
    """Shows bounds, keys and nullability, one row for each person, and several visits that name people."""
    made = invent(declared, units=400)
    people = column(made, "people", "person_id")
    assert people == list(range(1, 401))
    ages = column(made, "people", "age")
    assert all(isinstance(age, int) and 0 <= age <= 100 for age in ages)
    assert 35 < sum(map(float, map(str, ages))) / 400 < 65
    assert {None} < set(column(made, "people", "salary")) or None not in column(made, "people", "salary")
    assert set(column(made, "people", "sex")) <= {"female", "male", None}
    owners = column(made, "visits", "person_id")
    assert set(owners) == set(people)
    assert 800 < len(owners) < 1_800
    assert len(set(column(made, "visits", "visit_id"))) == len(owners)
    assert made.assumed == ("people.income", "people.town", "visits.ward")


def test_rows_follow_from_declarations_alone(declared: Dataset) -> None:
    """Shows the same rows for other data under the same declarations, and others for another seed."""
    made = invent(declared, units=50)
    assert invent(replace(declared, data_version="other", policy_version=9), units=50) == made
    random.seed(7)
    assert invent(declared, units=50) == made
    assert invent(declared, units=50, seed=1) != made


def test_rows_of_a_synthetic_table_are_taken_as_they_are(declared: Dataset) -> None:
    """Shows its columns over and over, and people who are still one each."""
    made = invent(declared, units=5, drawn={"people": {"age": [41, 42], "person_id": [7, 7]}})
    assert column(made, "people", "age") == [41, 42, 41, 42, 41]
    assert column(made, "people", "person_id") == [1, 2, 3, 4, 5]


def test_a_file_of_every_kind_can_be_invented(tmp_path: Path) -> None:
    """Shows the page's example, with keys from a public table: rows that are read back as the types that they have."""
    example, _ = [text.split("```")[0] for text in test_docs.PAGE.split("```yaml\n")[1:3]]
    file = load_text(example)
    public = {("hospitals", "region"): ("north", "south")}
    dataset = to_dataset(file, policy_version=1, data_version="d", public_values=public)
    # As the catalogue does: what a public table holds is public.
    hospitals = dataset.tables[-1]
    known = tuple(
        replace(one, keys=PublicKeys(("north", "south"))) if one.name == "region" else one for one in hospitals.columns
    )
    dataset = replace(dataset, tables=(*dataset.tables[:-1], replace(hospitals, columns=known)))
    made = invent(dataset, units=30)
    assert {"north", "south"} <= set(column(made, "hospitals", "region"))
    assert set(column(made, "visits", "hospital_id")) <= set(column(made, "hospitals", "hospital_id"))
    for one in made.tables:
        path = tmp_path / f"{one.table.name}.csv"
        one.write(path)
        assert len(path.read_text().splitlines()) == one.rows + 1
    document = with_sources(file.model_dump(mode="json", by_alias=True, exclude_unset=True))
    assert load_text(json.dumps(document), directory=tmp_path).tables["visits"].source.file == "visits.csv"


def test_the_key_of_a_public_table_has_the_values_that_are_keys_elsewhere(tmp_path: Path) -> None:
    """Shows one row for each, so that rows of people name values that the table has and no group is made up."""
    (tmp_path / "members.csv").write_text("member_id,branch\n")
    (tmp_path / "branches.csv").write_text("branch,seats\n")
    file = load_text("""\
version: 2
dataset: library
unit: {table: members, key: member_id}
tables:
  members:
    source: {file: members.csv}
    key: member_id
    columns:
      member_id: {type: integer}
      branch: {type: text, keys: {table: branches, column: branch}}
  branches:
    public: true
    source: {file: branches.csv}
    key: branch
    columns: {branch: {type: text}, seats: {type: integer}}
""", directory=tmp_path)  # fmt: skip
    public = {("branches", "branch"): ("north", "south")}
    made = invent(to_dataset(file, policy_version=1, data_version="d", public_values=public), units=30)
    assert column(made, "branches", "branch") == ["north", "south"]
    assert len(column(made, "branches", "seats")) == 2
    assert set(column(made, "members", "branch")) <= {"north", "south", None}
