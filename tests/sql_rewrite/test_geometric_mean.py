"""GEOMEAN(x) is EXP(AVG(LN(x))), as DuckDB writes it out: the same core, and the same outer query."""

from __future__ import annotations

import pytest

from privacy.refusal import Refused
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import canonical_core
from tests.sql_rewrite.datasets import CLINIC

SPELLINGS = (
    ("SELECT GEOMEAN(age + 1) AS g FROM people", "SELECT EXP(AVG(LN(age + 1))) AS g FROM people"),
    (
        "SELECT sex, 2 * geometric_mean(age) FILTER (WHERE smoker) AS g FROM people GROUP BY sex",
        "SELECT sex, 2 * EXP(AVG(LN(age)) FILTER (WHERE smoker)) AS g FROM people GROUP BY sex",
    ),
    (
        "SELECT sex FROM people GROUP BY sex HAVING GEOMEAN(age) > 3 ORDER BY GEOMEAN(age)",
        "SELECT sex FROM people GROUP BY sex HAVING EXP(AVG(LN(age))) > 3 ORDER BY EXP(AVG(LN(age)))",
    ),
)


@pytest.mark.parametrize(("short", "long"), SPELLINGS)
def test_it_is_written_out(short: str, long: str) -> None:
    """Both texts ask for one core, and compute the same from it."""
    one, other = lift(short, CLINIC), lift(long, CLINIC)
    assert [canonical_core(core) for core in one.cores] == [canonical_core(core) for core in other.cores]
    assert one.shell.sql == other.shell.sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(GEOMEAN(age)) FROM people",
        "SELECT GEOMEAN(age, hours) FROM people",
        "SELECT GEOMEAN(DISTINCT age) FROM people",
        "SELECT COUNT(*) FROM people GROUP BY GEOMEAN(age)",
        "SELECT GEOMEAN(age) OVER () FROM people",
    ],
)
def test_other_forms_are_refused(sql: str) -> None:
    """What is not one mean of one expression of rows is refused."""
    with pytest.raises(Refused):
        lift(sql, CLINIC)
