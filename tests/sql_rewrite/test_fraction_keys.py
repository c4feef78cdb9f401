"""Keys with a fraction: the core groups by the whole number in them, and the rest is refused as before."""

from __future__ import annotations

import pytest

from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.evaluate import map_domain
from sql_rewrite.expressions import describe
from sql_rewrite.lift import lift
from tests.sql_rewrite.datasets import CLINIC


@pytest.mark.parametrize(
    ("key", "whole"),
    [
        ("FLOOR(age / 0.5) * 0.5", "FLOOR(age / 0.5)"),
        ("0.25 * CEIL(age / 0.25)", "CEIL(age / 0.25)"),
        ("-FLOOR(age / 7.0) / 2", "FLOOR(age / 7.0)"),
        ("(age // 7) * 0.1", "age // 7"),
        ("ROUND(age / 7.0, 2)", "ROUND((age / 7.0) * 100.0, 0)"),
        ("ROUND(age * 10.0) / 10", "ROUND(age * 10.0, 0)"),
    ],
)
def test_the_core_groups_by_the_whole_number(key: str, whole: str) -> None:
    """The constant is applied to the released key: the core's key is an integer, and says nothing of the constant."""
    (core,) = lift(f"SELECT {key} AS b, COUNT(*) FROM people GROUP BY b", CLINIC).cores
    ((_, found),) = core.keys
    assert found.type is ColumnType.INTEGER
    assert describe(found) in (whole, f"CAST({whole} AS BIGINT)")


@pytest.mark.parametrize("column", ["income", "salary", "age"])
def test_buckets_are_public_whatever_is_declared(column: str) -> None:
    """Their numbers are known of any number: without bounds, with bounds, and with declared keys."""
    (core,) = lift(f"SELECT WIDTH_BUCKET({column}, 0, 80, 4) AS b, COUNT(*) FROM people GROUP BY b", CLINIC).cores
    ((_, found),) = core.keys
    assert {0, 1, 2, 3, 4, 5} >= set(map_domain(found, 100) or [-1]) - {None} >= {1, 2, 3, 4}


def test_two_spellings_of_one_grid_are_one_core() -> None:
    """What differs by a constant alone is one release, shown twice."""
    sql = "SELECT FLOOR(age / 0.5) * 0.5 AS a, FLOOR(age / 0.5) / 8 AS b, COUNT(*) FROM people GROUP BY ALL"
    (core,) = lift(sql, CLINIC).cores
    assert len(core.keys) == 1


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("age / 7", "unsupported_type"),
        ("FLOOR(age / 7.0) * income", "unsupported_type"),
        ("FLOOR(age / 7.0) * 1e-300", "unsupported_type"),
        ("FLOOR(age / 7.0) + 0.5", "unsupported_type"),
        ("SQRT(FLOOR(age / 7.0))", "unsupported_type"),
        ("ROUND(age / 7.0, 12)", "unsupported_type"),
        ("ROUND(person_id * 1.0, 1)", "group_by_unit"),
        ("FLOOR(person_id * 1.0) * 0.5", "group_by_unit"),
    ],
)
def test_other_fractions_are_refused(key: str, code: str) -> None:
    """Whatever is no whole number times a constant has almost as many groups as rows."""
    with pytest.raises(Refused) as refused:
        lift(f"SELECT {key} AS b, COUNT(*) FROM people GROUP BY b", CLINIC)
    assert {finding.code for finding in refused.value.findings} == {code}
