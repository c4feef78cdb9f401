"""Synthetic demo data: patients, their visits, and a public table of hospitals. Nobody in it exists.

The generator's seed is fixed, so that every installation has the same demo data and examples can be checked. This is
the only place in the server where numpy's random generator is used, and nothing here is ever used as noise.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from server.datasets.schema import SCHEMA_PATH
from server.files import whole_file, write_whole

__all__ = ["DATASET_FILE", "PATIENTS", "SEED", "Demo", "DemoTable", "generate", "write_demo"]

SEED = 20_260_101
"""Seed of the synthetic data. It has nothing to do with noise, which never has a seed."""

PATIENTS = 25_000

_FIRST_DAY = date(2023, 1, 1)
_DAYS = 1_096  # 2023 to 2025

_REGIONS = ("Coast", "Hills", "Lakes", "North", "Plains", "South")
_REGION_SHARES = (0.24, 0.09, 0.13, 0.18, 0.15, 0.21)
_REGION_INCOME = (1.15, 0.88, 1.0, 0.96, 0.86, 1.08)

_KINDS = ("General", "Clinic", "Medical Centre", "Infirmary")
_PER_REGION = (5, 3, 4, 4, 3, 5)

_DEPARTMENTS = ("Cardiology", "Emergency", "General", "Maternity", "Oncology", "Orthopaedics", "Paediatrics")
_DAY_COST = np.array([620.0, 410.0, 290.0, 380.0, 890.0, 540.0, 310.0])
_FIXED_COST = np.array([340.0, 260.0, 90.0, 700.0, 800.0, 950.0, 110.0])
_MEAN_STAY = np.array([3.4, 0.5, 1.1, 2.4, 4.6, 3.8, 1.2])

DESCRIPTION = (
    "Synthetic hospital visits of 25,000 invented patients, 2023 to 2025. No real person or hospital is in it."
)


@dataclass(frozen=True, slots=True)
class Demo:
    """What was written: the dataset file, and the number of rows of each table."""

    dataset_file: Path
    rows: dict[str, int]


@dataclass(frozen=True, slots=True)
class DemoTable:
    """One table of the demo: column names, and one sequence of values per column."""

    names: tuple[str, ...]
    columns: tuple[Sequence[object], ...]

    @property
    def rows(self) -> int:
        return len(self.columns[0])


def write_demo(directory: Path, *, progress: Callable[[str], None] = lambda text: None) -> Demo:
    """Writes the demo's CSV files and `demo.yaml` into `directory` and returns what was written. Takes seconds.

    Files are replaced one by one, each in one step; the dataset file comes last, so an interrupted run is seen by its
    absence. Calls `progress` with one line per table.
    Errors: OSError when the folder cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    rows = {}
    for name, table in generate().items():
        progress(f"writing {name}.csv: {table.rows:,} synthetic rows")
        _write_csv(directory / f"{name}.csv", table)
        rows[name] = table.rows
    path = directory / "demo.yaml"
    head = f"# yaml-language-server: $schema={SCHEMA_PATH.as_uri()}\n" if SCHEMA_PATH.exists() else ""
    write_whole(path, head + DATASET_FILE)
    return Demo(dataset_file=path, rows=rows)


def generate(patients: int = PATIENTS) -> dict[str, DemoTable]:
    """The tables by name. Always the same for the same number of patients."""
    draw = np.random.Generator(np.random.PCG64(SEED))
    hospitals, hospital_region = _hospitals(draw)

    region = draw.choice(len(_REGIONS), size=patients, p=_REGION_SHARES)
    birth_year = np.clip(1981 + np.rint(23 * draw.standard_normal(patients)).astype(np.int64), 1925, 2022)
    age = 2025 - birth_year
    female = draw.random(patients) < 0.515
    adult = age >= 18
    smoker = adult & (draw.random(patients) < np.where(female, 0.16, 0.22) - 0.0012 * np.maximum(age - 60, 0))
    working = 0.45 + 0.55 * np.exp(-(((age - 48) / 24.0) ** 2))
    income = 38_000 * np.asarray(_REGION_INCOME)[region] * working * np.exp(0.45 * draw.standard_normal(patients))
    income = np.where(adult, np.minimum(np.rint(income / 100) * 100, 200_000), 0).astype(np.int64)
    number = np.arange(1, patients + 1)

    # Most people come a few times, some come again and again: a log-normal rate that grows with age and smoking.
    rate = np.log(3.5) + 0.012 * (age - 40) + 0.35 * smoker + 1.15 * draw.standard_normal(patients)
    visits = np.minimum(draw.poisson(np.exp(np.minimum(rate, 6.3))), 600)
    owner = np.repeat(np.arange(patients), visits)
    total = len(owner)

    hospital = _choose_hospital(draw, region[owner], hospital_region)
    department = _choose_department(draw, age[owner], female[owner])
    stay = draw.poisson(_MEAN_STAY[department] * (0.6 + age[owner] / 100) * draw.exponential(1.0, total))
    stay = np.minimum(stay, 90)
    base = _FIXED_COST[department] + _DAY_COST[department] * stay
    cost = base * (0.85 + age[owner] / 250 + 0.1 * smoker[owner]) * np.exp(0.3 * draw.standard_normal(total))
    cost = np.minimum(np.rint(cost * 100) / 100, 60_000.0)
    day = np.floor(_DAYS * draw.random(total) ** 0.93).astype(np.int64)
    order = np.lexsort((owner, day))

    days = [(_FIRST_DAY + timedelta(days=offset)).isoformat() for offset in range(_DAYS)]
    return {
        "hospitals": hospitals,
        "patients": DemoTable(
            ("patient_id", "birth_year", "age", "sex", "region", "smoker", "income"),
            (
                number.tolist(),
                birth_year.tolist(),
                age.tolist(),
                np.where(female, "female", "male").tolist(),
                np.asarray(_REGIONS)[region].tolist(),
                np.where(smoker, "true", "false").tolist(),
                income.tolist(),
            ),
        ),
        "visits": DemoTable(
            ("visit_id", "patient_id", "hospital_id", "visit_date", "department", "length_of_stay_days", "cost"),
            (
                np.arange(1, total + 1).tolist(),
                number[owner][order].tolist(),
                (hospital[order] + 1).tolist(),
                [days[offset] for offset in day[order].tolist()],
                np.asarray(_DEPARTMENTS)[department[order]].tolist(),
                stay[order].tolist(),
                [f"{value:.2f}" for value in cost[order].tolist()],
            ),
        ),
    }


def _hospitals(draw: np.random.Generator) -> tuple[DemoTable, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """Invented hospitals, and the region of each."""
    names, regions, places = [], [], []
    for index, (region, count) in enumerate(zip(_REGIONS, _PER_REGION, strict=True)):
        for position in range(count):
            names.append(f"{region} {_KINDS[position % len(_KINDS)]} {position // len(_KINDS) + 1}")
            regions.append(region)
            places.append(index)
    beds = (40 + 20 * draw.integers(0, 40, len(names))).tolist()
    table = DemoTable(
        ("hospital_id", "name", "region", "beds"), (list(range(1, len(names) + 1)), names, regions, list(beds))
    )
    return table, np.asarray(places, dtype=np.int64)


def _choose_hospital(
    draw: np.random.Generator,
    region: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    hospital_region: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """A hospital for each visit: nine of ten in the patient's own region."""
    chosen = draw.integers(0, len(hospital_region), len(region))
    at_home = draw.random(len(region)) < 0.9
    share = draw.random(len(region))
    for index in range(len(_REGIONS)):
        own = np.flatnonzero(hospital_region == index)
        rows = np.flatnonzero(at_home & (region == index))
        chosen[rows] = own[np.floor(share[rows] ** 1.5 * len(own)).astype(np.int64)]
    return chosen


def _choose_department(
    draw: np.random.Generator,
    age: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    female: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """A department for each visit, plausible for age and sex."""
    size = len(age)
    weight = np.empty((size, len(_DEPARTMENTS)))
    weight[:, 0] = np.clip((age - 25) / 45, 0.02, 1.4)  # Cardiology
    weight[:, 1] = 0.9  # Emergency
    weight[:, 2] = 1.3  # General
    weight[:, 3] = np.where(female & (age >= 18) & (age <= 46), 0.8, 0.0)  # Maternity
    weight[:, 4] = np.clip((age - 35) / 70, 0.02, 0.6)  # Oncology
    weight[:, 5] = 0.25 + np.clip(age / 160, 0, 0.5)  # Orthopaedics
    weight[:, 6] = np.where(age < 18, 3.0, 0.0)  # Paediatrics
    edges = np.cumsum(weight, axis=1)
    target = draw.random(size) * edges[:, -1]
    return np.asarray((edges < target[:, None]).sum(axis=1), dtype=np.int64)


def _write_csv(path: Path, table: DemoTable) -> None:
    with whole_file(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(table.names)
        rows: Iterable[tuple[object, ...]] = zip(*table.columns, strict=True)
        writer.writerows(rows)


DATASET_FILE = f"""\
# The demo dataset of Noisegate. The data is synthetic: it was generated, and nobody in it exists.
# This file is also an example of how to describe your own data; docs/datasets.md explains every line.
version: 2
dataset: demo
description: {DESCRIPTION}
unit: {{table: patients, key: patient_id}}   # whose presence is protected
tables:
  patients:
    description: One row per patient.
    source: {{file: patients.csv}}
    key: patient_id
    columns:
      patient_id: {{type: integer}}
      birth_year: {{type: integer, bounds: [1925, 2025]}}
      age:
        type: integer
        bounds: [0, 100]
        keys: {{range: [0, 100]}}
        nullable: false   # every row has a value, so there is no group of missing ages; verified
        description: Age at the end of 2025.
      sex: {{type: text, keys: [female, male], nullable: false}}
      region: {{type: text, keys: {{table: hospitals, column: region}}, nullable: false}}
      smoker: {{type: boolean, nullable: false}}
      income: {{type: integer, bounds: [0, 200000], description: Yearly income.}}
  visits:
    description: One row per visit; most patients have a few, some have hundreds.
    source: {{file: visits.csv}}
    key: visit_id
    references: {{patient_id: patients.patient_id, hospital_id: hospitals.hospital_id}}
    contribution: auto   # each question chooses how much of one patient counts
    rows_stored_per_unit: 600   # nobody has more; the fewer may be stored, the less answers wait to hide one patient
    rows_expected: 200000   # anyone may know about how many there are: answers appear when they are usually ready
    columns:
      visit_id: {{type: integer}}
      patient_id: {{type: integer}}
      hospital_id: {{type: integer, keys: {{table: hospitals, column: hospital_id}}, nullable: false}}
      visit_date:
        type: date
        bounds: ["2023-01-01", "2025-12-31"]
        keys: {{range: ["2023-01-01", "2025-12-31"]}}   # so the months are public too
        nullable: false
      department:
        type: text
        keys: [{", ".join(_DEPARTMENTS)}]
        nullable: false
      length_of_stay_days: {{type: integer, bounds: [0, 90]}}
      cost: {{type: number, bounds: [0, 20000]}}
  hospitals:
    description: Invented hospitals. Everybody may know every row.
    public: true
    source: {{file: hospitals.csv}}
    key: hospital_id
    columns:
      hospital_id: {{type: integer}}
      name: {{type: text}}
      region: {{type: text}}
      beds: {{type: integer}}
policy:
  epsilon_default: "0.1"
  epsilon_max: "1"
  delta_per_query: "0.000000001"
  releases_shared: "no"
"""
