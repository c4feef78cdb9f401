"""A checked file in the words of `privacy`, and the files to read."""

from __future__ import annotations

import datetime
from fractions import Fraction
from pathlib import Path

import pytest

from engines.table_source import TableSource
from privacy.bounds import ContributionBound, ValueBounds
from privacy.policy import ColumnType, Dataset, Reference
from server.datasets import DatasetFileRefused, load_text, public_columns, sources, to_dataset
from tests.datasets.example import EXAMPLE, changed

REGIONS = {("hospitals", "region"): ["West", "East", "West", None]}


def dataset(text: str = EXAMPLE) -> Dataset:
    return to_dataset(load_text(text), policy_version=3, data_version="d1", public_values=REGIONS)


def test_tables_and_ways_to_the_unit() -> None:
    """Each protected table knows its unit: itself, by its own column, or by a chain of references."""
    found = dataset()
    patients, visits, tests, hospitals = found.tables
    assert ("patient_id", (), ContributionBound(1, 1, 1)) == (
        patients.unit_column,
        patients.unit_path,
        patients.contribution,
    )
    assert (visits.unit_column, visits.unit_path) == ("patient_id", ())
    assert ContributionBound(rows_per_unit=40, groups_per_unit=4, rows_per_unit_and_group=15) == visits.contribution
    assert (None, (Reference("visit_id", "visits", "visit_id"), Reference("patient_id", "patients", "patient_id"))) == (
        tests.unit_column,
        tests.unit_path,
    )
    assert (hospitals.protected, hospitals.contribution) == (False, None)
    assert (found.policy_version, found.data_version, found.name) == (3, "d1", "clinic")


def test_bounds_and_amounts_are_exact() -> None:
    """Decimals become fractions without passing through a float."""
    found = dataset()
    value = found.tables[2].column("value")
    assert value is not None
    assert ValueBounds(Fraction(1, 10), Fraction(2500)) == value.bounds
    assert (Fraction(1, 10), Fraction(1), Fraction(1, 10**7)) == (
        found.limits.epsilon_default,
        found.limits.epsilon_max,
        found.limits.delta_per_query,
    )


def test_keys_of_every_kind() -> None:
    """Listed keys keep their order, ranges are spelled out, and a public table's values are sorted, NULL last."""
    text = changed(
        ("visit_date: {type: date}", 'visit_date: {type: date, keys: {range: ["2024-02-28", "2024-03-01"]}}'),
        ("[female, male]", "[male, female, null]"),
    )
    found = dataset(text)
    keys = {column.name: column.keys.values for table in found.tables for column in table.columns if column.keys}
    assert keys["sex"] == ("male", "female", None)
    assert tuple(range(111)) == keys["age"]
    assert keys["region"] == ("East", "West", None)
    assert tuple(datetime.date(2024, *day) for day in ((2, 28), (2, 29), (3, 1))) == keys["visit_date"]


def test_a_draft_has_no_keys_from_public_tables() -> None:
    """Before the snapshot exists those values are not known, and nothing stands in for them."""
    draft = to_dataset(load_text(EXAMPLE), policy_version=1, data_version="draft", public_values=None)
    region = draft.tables[0].column("region")
    assert region is not None
    assert region.keys is None
    assert public_columns(load_text(EXAMPLE)) == (("hospitals", "region"),)


@pytest.mark.parametrize("values", [[], [1, 2], list(map(str, range(100_001)))])
def test_public_tables_that_give_no_keys_are_refused(values: list[object]) -> None:
    """No rows, other types or too many values: the owner is told which table."""
    with pytest.raises(DatasetFileRefused, match="cannot give the keys"):
        to_dataset(
            load_text(EXAMPLE),
            policy_version=1,
            data_version="d",
            public_values={("hospitals", "region"): values},  # type: ignore[dict-item]
        )


def test_a_unit_table_with_many_rows_per_unit() -> None:
    """A single file of visits can be its own unit table: its key is not the unit, so a contribution is declared."""
    text = """
dataset: visits
unit: {table: visits, key: person}
tables:
  visits:
    source: {file: visits.csv}
    contribution: {rows_per_unit: 20, groups_per_unit: 3, rows_per_unit_and_group: 10}
    columns: {person: {type: text}, cost: {type: number, bounds: [0, 10]}}
"""
    (table,) = to_dataset(load_text(text), policy_version=1, data_version="d", public_values={}).tables
    assert (
        table.unit_column,
        table.unit_path,
        table.contribution and table.contribution.rows_per_unit,
    ) == ("person", (), 20)
    assert ColumnType.TEXT is table.columns[0].type


def test_sources_are_relative_to_the_dataset_file() -> None:
    """Formats come from suffixes, and DuckDB files name the table inside."""
    folder = Path("folder")
    assert [
        TableSource("patients", folder / "patients.csv", "csv"),
        TableSource("visits", folder / "visits.parquet", "parquet"),
        TableSource("tests", folder / "clinic.duckdb", "duckdb", "lab_tests"),
        TableSource("hospitals", folder / "hospitals.csv", "csv"),
    ] == sources(load_text(EXAMPLE), folder)
