"""Refused outer joins advise what means the same, and say of an inner join when it would."""

from __future__ import annotations

import duckdb
import pytest

from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.join_advice import INNER
from sql_rewrite.lift import lift
from tests.sql_rewrite.datasets import CLINIC

_MEETS_ONE = (
    "FROM visits v LEFT JOIN hospitals h ON v.hospital_id = h.hospital_id {}JOIN people p ON v.person_id = p.person_id"
)
_EITHER = "p.age > v.cost OR p.age > 40"

SAME = {
    "a condition of both sides": (
        f"SELECT COUNT(*), SUM(p.age) {_MEETS_ONE.format('LEFT ')} AND ({_EITHER})",
        f"SELECT COUNT(*), SUM(CASE WHEN {_EITHER} THEN p.age END) {_MEETS_ONE.format('LEFT ')}",
        f"SELECT COUNT(*), SUM(p.age) {_MEETS_ONE.format('')} AND ({_EITHER})",
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_what_is_advised_means_the_same(case: str) -> None:
    """Shows one answer of DuckDB for what is refused and for what is advised in its place, which is lifted; another one
    for the inner join, which the advice names for another question."""
    refused, advised, inner = SAME[case]
    with pytest.raises(Refused) as found:
        bound(lift(refused, CLINIC))
    assert all("JOIN" not in line or line == INNER for line in found.value.findings[0].instead)
    bound(lift(advised, CLINIC))
    with duckdb.connect() as rows:
        rows.execute("CREATE TABLE people AS SELECT i AS person_id, i * 7 % 90 AS age FROM range(60) r(i)")
        rows.execute(
            "CREATE TABLE visits AS SELECT i % 40 AS person_id, i * 13 % 80 AS cost, i % 9 AS hospital_id "
            "FROM range(100) r(i)"
        )
        rows.execute("CREATE TABLE hospitals AS SELECT i AS hospital_id FROM range(7) r(i)")
        told = [rows.execute(text).fetchall() for text in (refused, advised, inner)]
    assert told[0] == told[1] != told[2]


def test_an_outer_join_is_advised_in_place_of_an_outer_join() -> None:
    """Shows the join that keeps the same rows where a declared one is named in place of it."""
    with pytest.raises(Refused) as found:
        lift("SELECT COUNT(*) FROM visits v LEFT JOIN people p ON TRUE", CLINIC)
    assert found.value.findings[0].instead == ("visits LEFT JOIN people ON visits.person_id = people.person_id",)


@pytest.mark.parametrize(("kind", "word"), [("SEMI", "x IN "), ("ANTI", "x NOT IN ")])
def test_joins_that_only_choose_are_conditions(kind: str, word: str) -> None:
    """Shows a condition in place of a semi or an anti join with constants, and not a join, which repeats rows."""
    with pytest.raises(Refused) as found:
        lift(f"SELECT COUNT(*) FROM people {kind} JOIN (VALUES (20), (30)) AS v(x) ON age = x", CLINIC)
    assert any(word in line for finding in found.value.findings for line in finding.instead)
