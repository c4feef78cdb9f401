"""What is suggested where the engine stops reading a text that the lift accepts."""

from __future__ import annotations

import pytest

from privacy.statement import Step
from sql_rewrite.foreign import foreign_text

QUOTED = 'a keyword of the dialect is a name only in double quotes: "at"'


@pytest.mark.parametrize(
    ("sql", "stopped"),
    [
        ("SELECT DATE_TRUNC('month', at) AS m, COUNT(*) AS n FROM events GROUP BY m", ") AS m"),
        ("SELECT at, COUNT(*) AS n FROM events GROUP BY ALL", ", COUNT"),
        ("SELECT COUNT(*) AS n, at FROM events GROUP BY ALL", "FROM events"),
        ("SELECT COUNT(*) AS n FROM events WHERE at BETWEEN '2024-01-01' AND '2024-02-01'", "BETWEEN"),
    ],
)
def test_a_column_named_like_a_keyword_is_to_be_quoted(sql: str, stopped: str) -> None:
    """A column that a Parquet file calls `at`: the engine stops behind the name, which may be a keyword there."""
    refused = foreign_text(sql, Step.READ, sql.index(stopped))
    (finding,) = refused.findings
    assert QUOTED in finding.instead


def test_a_name_in_quotes_is_not_suspected() -> None:
    """Shows that a name which is quoted already is not suggested."""
    sql = 'SELECT "at" FROM events'
    (finding,) = foreign_text(sql, Step.READ, sql.index("FROM")).findings
    assert QUOTED not in finding.instead
