"""LIMIT and OFFSET by a parameter are the same as by the number."""

from __future__ import annotations

from typing import Any

import pytest

from sql_rewrite.lift import lift
from tests.sql_rewrite.datasets import CLINIC

GROUPS = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC"
UNION = f"SELECT * FROM ({GROUPS} LIMIT 5) AS t UNION ALL SELECT * FROM ({GROUPS} LIMIT 5) AS u ORDER BY n DESC"


@pytest.mark.parametrize(
    ("tail", "parameters", "written", "chosen"),
    [
        ("LIMIT $k", {"k": 50}, "LIMIT 50", False),
        ("LIMIT $k", {"k": 1}, "LIMIT 1", True),
        ("LIMIT $k OFFSET $o", {"k": 50, "o": 0}, "LIMIT 50 OFFSET 0", False),
        ("LIMIT $k OFFSET $o", {"k": 50, "o": 1}, "LIMIT 50 OFFSET 1", True),
    ],
)
@pytest.mark.parametrize("sql", [GROUPS, UNION])
def test_a_limit_that_leaves_out_nothing_does_not_widen_intervals(
    sql: str, tail: str, parameters: dict[str, Any], written: str, chosen: bool
) -> None:
    """A LIMIT of at least the number of public groups chooses no rows, whether it is written or given."""
    given, plain = lift(f"{sql} {tail}", CLINIC, parameters), lift(f"{sql} {written}", CLINIC)
    assert given.shell.chosen is plain.shell.chosen is chosen
    assert given.shell == plain.shell
