"""The synthetic demo data."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from server.datasets import check, is_error, load
from server.datasets.model import KeysRange
from server.demo import PATIENTS, DemoTable, generate, write_demo


@pytest.fixture(scope="module")
def tables() -> dict[str, DemoTable]:
    return generate()


def column(table: DemoTable, name: str) -> np.ndarray:  # type: ignore[type-arg]
    return np.asarray(table.columns[table.names.index(name)])


def test_it_is_always_the_same(tables: dict[str, DemoTable]) -> None:
    """The seed is fixed: examples in the documentation can rely on the data."""
    assert tables == generate()


def test_it_is_worth_asking_about(tables: dict[str, DemoTable]) -> None:
    """25,000 patients, a median of about 4 visits and a heavy tail, costs that depend on department and age."""
    visits = tables["visits"]
    per_patient = np.bincount(column(visits, "patient_id"), minlength=PATIENTS + 1)[1:]
    assert PATIENTS == tables["patients"].rows == 25_000
    assert 150_000 < visits.rows < 250_000
    assert 3 <= np.median(per_patient) <= 5
    assert 200 <= per_patient.max() <= 600
    cost, department = column(visits, "cost").astype(float), column(visits, "department")
    assert cost[department == "Oncology"].mean() > 3 * cost[department == "General"].mean()
    age = dict(zip(column(tables["patients"], "patient_id"), column(tables["patients"], "age"), strict=True))
    ages = np.array([age[patient] for patient in column(visits, "patient_id")])
    assert cost[ages >= 60].mean() > 1.3 * cost[ages < 40].mean()


def test_the_file_describes_the_data(tmp_path: Path, tables: dict[str, DemoTable]) -> None:
    """demo.yaml is sound, and every declared fact holds: keys, references, bounds that clip little."""
    demo = write_demo(tmp_path)
    assert [problem for problem in check(demo.dataset_file) if is_error(problem)] == []
    file = load(demo.dataset_file)
    assert "synthetic" in file.description.lower()
    for name, table in file.tables.items():
        with (tmp_path / f"{name}.csv").open(newline="", encoding="utf-8") as stream:
            rows = csv.reader(stream)
            assert list(table.columns) == next(rows)
            assert demo.rows[name] == sum(1 for _ in rows) == tables[name].rows
        if table.key is not None:
            values = column(tables[name], table.key)
            assert len(values) == len(set(values.tolist()))
        for key, target in table.references.items():
            other, _, other_key = target.partition(".")
            assert set(column(tables[name], key).tolist()) <= set(column(tables[other], other_key).tolist())
        for key, declared in table.columns.items():
            if isinstance(declared.keys, list) and declared.type == "text":
                assert set(declared.keys) == set(column(tables[name], key).tolist())
            if declared.bounds is not None:
                kind = str if declared.type == "date" else float  # days of ISO 8601 are ordered as text
                values = column(tables[name], key).astype(kind)
                outside = (values < kind(declared.bounds[0])) | (values > kind(declared.bounds[1]))
                assert outside.mean() < 0.02


@pytest.mark.slow
def test_writing_twice_replaces(tmp_path: Path) -> None:
    """A second start finds the same files and no remains."""
    first = write_demo(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert first == write_demo(tmp_path)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {"demo.yaml", "patients.csv", "visits.csv", "hospitals.csv"} == set(before)


def test_nobody_has_to_guess_for_the_first_chart(tmp_path: Path, tables: dict[str, DemoTable]) -> None:
    """The bounds of the first chart that anybody tries are chosen by the question, over months that are public."""
    visits = load(write_demo(tmp_path).dataset_file).tables["visits"]
    assert visits.contribution == "auto"
    days = [str(day) for day in column(tables["visits"], "visit_date")]
    keys = visits.columns["visit_date"].keys
    assert isinstance(keys, KeysRange)
    assert [str(end) for end in keys.range] == ["2023-01-01", "2025-12-31"]
    assert min(days) >= "2023-01-01"
    assert max(days) <= "2025-12-31"
    assert len({day[:7] for day in days}) == 36
