"""A small sound dataset file, and a way to change one thing in it."""

from __future__ import annotations

from privacy.refusal import Finding
from server.datasets import check_text, is_error

__all__ = ["EXAMPLE", "changed", "errors", "findings"]

EXAMPLE = """\
version: 2
dataset: clinic
description: An example.
unit: {table: patients, key: patient_id}
tables:
  patients:
    source: {file: patients.csv}
    key: patient_id
    columns:
      patient_id: {type: integer}
      income: {type: number, bounds: [0, 200000]}
      sex: {type: text, keys: [female, male]}
      age: {type: integer, bounds: [0, 110], keys: {range: [0, 110]}}
      region: {type: text, keys: {table: hospitals, column: region}}
  visits:
    source: {file: visits.parquet}
    key: visit_id
    references: {patient_id: patients.patient_id, hospital_id: hospitals.hospital_id}
    contribution: {rows_per_unit: 40, groups_per_unit: 4, rows_per_unit_and_group: 15}
    columns:
      visit_id: {type: integer}
      patient_id: {type: integer}
      hospital_id: {type: integer}
      visit_date: {type: date}
      cost: {type: number, bounds: [0, 20000]}
  tests:
    source: {file: clinic.duckdb, table: lab_tests}
    references: {visit_id: visits.visit_id}
    contribution: {rows_per_unit: 60, groups_per_unit: 5, rows_per_unit_and_group: 20}
    columns:
      visit_id: {type: integer}
      value: {type: number, bounds: [0.1, 2.5e3]}
  hospitals:
    public: true
    source: {file: hospitals.csv}
    key: hospital_id
    columns:
      hospital_id: {type: integer}
      region: {type: text}
policy: {epsilon_default: "0.1", epsilon_max: "1", delta_per_query: "1e-7"}
"""


def changed(*changes: tuple[str, str]) -> str:
    """The example with texts replaced; every text must be there."""
    text = EXAMPLE
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def findings(*changes: tuple[str, str]) -> list[Finding]:
    """Everything that is found in the example after these changes."""
    return check_text(changed(*changes))


def errors(*changes: tuple[str, str]) -> list[str]:
    """What the errors in the example say after these changes."""
    return [problem.what for problem in findings(*changes) if is_error(problem)]
