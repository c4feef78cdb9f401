"""Unions of tables whose bounds questions choose: hidden groups have a norm as those of one table, if time allows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from privacy.norms import NormPower
from privacy.refusal import Refused
from server.journey.within_time import bound_within_time
from sql_rewrite.contribution import Contribution, NormedContribution
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.lift import lift
from sql_rewrite.plan_warnings import plan_warnings
from tests.journey.norm_clinic import HEAVY, PEOPLE, auto_clinic
from tests.journey.test_norms import analyst, ask
from tests.sql_rewrite.datasets import AUTOMATIC

STORED = replace(
    AUTOMATIC,
    tables=tuple(
        replace(table, rows_stored_per_unit=1_000) if table.name == "visits" else table for table in AUTOMATIC.tables
    ),
)
BRANCHES = (
    "SELECT person_id, hospital_id AS h, cost AS x FROM visits",
    "SELECT person_id, visit_id, cost FROM visits",
)
TWO = " UNION ALL ".join(BRANCHES)


@pytest.mark.parametrize("asked", ["COUNT(*)", "COUNT(*), AVG(x), SUM(x)"])
def test_two_tables_have_a_norm_over_their_hidden_groups(asked: str) -> None:
    """Shows that all rows of both tables may count, and that nothing is warned of as if they were cut."""
    plan, (core,), _, work = bound_within_time(
        lift(f"SELECT h, {asked} FROM ({TWO}) GROUP BY h", STORED), NormPower.L2, DUCKDB
    )
    assert isinstance(core.contribution, NormedContribution)
    assert core.contribution.rows == 2_000
    assert work.unit_nanoseconds > 0
    assert not [one for one in plan_warnings(plan, (core,)) if one.code == "bounds_assumed"]


def test_what_would_take_too_long_is_counted_and_warned_of() -> None:
    """Shows that an expensive question of many rows is answered with counts as before, and says so."""
    expensive = f"SELECT h, COUNT(*), MEDIAN(x), AVG(x), SUM(x) FROM ({TWO}) GROUP BY h"
    plan, (core,), _, _ = bound_within_time(lift(expensive, STORED), NormPower.L2, DUCKDB)
    assert isinstance(core.contribution, Contribution)
    assert [one for one in plan_warnings(plan, (core,)) if one.code == "bounds_assumed"]
    five = " UNION ALL ".join([BRANCHES[0], *[BRANCHES[1]] * 4])
    _, (core,), _, _ = bound_within_time(
        lift(f"SELECT h, COUNT(*) FROM ({five}) GROUP BY h", STORED), NormPower.L2, DUCKDB
    )
    assert isinstance(core.contribution, Contribution)


def test_what_takes_too_long_anyway_is_refused() -> None:
    """Shows that counts are tried for hidden groups alone: another question that takes too long is refused at once."""
    many = ", ".join(f"AVG(x + {number})" for number in range(60))
    with pytest.raises(Refused):
        bound_within_time(lift(f"SELECT {many} FROM ({TWO})", STORED), NormPower.L2, DUCKDB)


@pytest.mark.slow
def test_the_counts_of_a_union_are_near_the_truth(tmp_path: Path) -> None:
    """Shows an answer of the journey: heavy units count with more than the 40 rows of default counts."""
    rows = (PEOPLE - HEAVY) * 5 // 2 + HEAVY * 150
    both = "SELECT person_id, town FROM visits UNION ALL SELECT person_id, town FROM visits"
    with auto_clinic(tmp_path) as (services, _):
        answer = ask(
            services, f"SELECT town, COUNT(*) AS n FROM ({both}) GROUP BY town", analyst(services), epsilon="60"
        )
    assert [row[0] for row in answer["rows"]] == ["town0", "town1", "town2"]
    assert sum(row[1] for row in answer["rows"]) > 2 * rows * 0.9
    assert answer["provenance"]["norms"]
