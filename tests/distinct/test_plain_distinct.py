"""Aggregates of different values at a huge epsilon are DuckDB's own, where contribution bounds do not bind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.plain_clinic import Clinic, open_clinic
from tests.test_huge_epsilon import compare


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """One snapshot for all queries."""
    with open_clinic(tmp_path_factory.mktemp("clinic")) as opened:
        yield opened


QUERIES: list[tuple[str, dict[str, Any]]] = [
    # One row per unit
    ("SELECT COUNT(DISTINCT age), COUNT(DISTINCT edu), COUNT(DISTINCT born), COUNT(DISTINCT member) FROM people", {}),
    ("SELECT COUNT(DISTINCT sex), COUNT(DISTINCT level), COUNT(DISTINCT note), COUNT(DISTINCT weight) FROM people", {}),
    ("SELECT SUM(DISTINCT age), AVG(DISTINCT age), COUNT(DISTINCT age), COUNT(age), SUM(age) FROM people", {}),
    ("SELECT SUM(DISTINCT weight), STDDEV(DISTINCT weight), MEAN(DISTINCT weight) FROM people", {}),
    ("SELECT sex, COUNT(DISTINCT age), VAR_POP(DISTINCT age), COUNT(*) FROM people GROUP BY sex", {}),
    ("SELECT edu, COUNT(DISTINCT age) FROM people GROUP BY edu", {}),
    ("SELECT COUNT(DISTINCT 1), COUNT(DISTINCT NULLIF(1, 1)), COUNT(DISTINCT age // 10) FROM people", {}),
    # Several rows per unit
    ("SELECT COUNT(DISTINCT days), COUNT(DISTINCT dept), COUNT(DISTINCT day), COUNT(DISTINCT cost) FROM visits", {}),
    ("SELECT SUM(DISTINCT days) FROM visits", {}),
    ("SELECT SUM(DISTINCT cost), COUNT(DISTINCT cost), AVG(DISTINCT cost) FROM visits", {}),
    ("SELECT VARIANCE(DISTINCT days), VAR_SAMP(DISTINCT days), STDDEV_POP(DISTINCT days) FROM visits", {}),
    ("SELECT STDDEV_SAMP(DISTINCT days), COUNT(*), SUM(days), AVG(days), COUNT(DISTINCT person_id) FROM visits", {}),
    ("SELECT kind, COUNT(DISTINCT days), SUM(DISTINCT days), COUNT(DISTINCT dept) FROM visits GROUP BY kind", {}),
    ("SELECT dept, COUNT(DISTINCT days), AVG(DISTINCT cost), COUNT(*) FROM visits GROUP BY dept", {}),
    ("SELECT dept, kind, COUNT(DISTINCT days) FROM visits GROUP BY dept, kind", {}),
    ("SELECT COUNT(DISTINCT days) FILTER (WHERE cost > $least), COUNT(DISTINCT days) FROM visits", {"least": 2500}),
    ("SELECT SUM(DISTINCT days) FILTER (WHERE kind = 'plan'), AVG(DISTINCT days + 1) FROM visits WHERE days > 3", {}),
    ("SELECT COUNT(DISTINCT days * 2 - 7), SUM(DISTINCT days * 2 - 7), AVG(DISTINCT -days) FROM visits", {}),
    ("SELECT COUNT(DISTINCT dept || kind), COUNT(DISTINCT month(day)), COUNT(DISTINCT cost > 100) FROM visits", {}),
    ("SELECT region, COUNT(DISTINCT days), COUNT(DISTINCT p.age) FROM visits v JOIN people p USING (person_id) "
     "JOIN hospitals h USING (hospital_id) GROUP BY region", {}),
    ("SELECT COUNT(DISTINCT v.person_id), COUNT(DISTINCT person_id + 0) FROM visits v", {}),
    ("SELECT COUNT(DISTINCT days) / COUNT(*) AS share FROM visits HAVING COUNT(DISTINCT days) > 0", {}),
]  # fmt: skip


@pytest.mark.sparse(8)
@pytest.mark.parametrize(("sql", "parameters"), QUERIES, ids=lambda value: value if isinstance(value, str) else "")
def test_the_answer_is_plain(clinic: Clinic, sql: str, parameters: dict[str, Any]) -> None:
    """Every shape, over columns and expressions, beside other aggregates, public and hidden keys, filters."""
    gaussian = "dept" in sql or len(sql) % 2 == 0  # hidden groups of several rows need it
    compare(clinic.directly(sql, parameters), clinic.answer(sql, parameters, gaussian=gaussian), ordered=False)


def test_the_approximate_count_is_the_count(clinic: Clinic) -> None:
    """DuckDB's own is a sketch; here it is COUNT(DISTINCT x), the same release."""
    one, other = (clinic.answer(f"SELECT {call} FROM visits", {}, gaussian=False) for call in
                  ("APPROX_COUNT_DISTINCT(cost)", "COUNT(DISTINCT cost)"))  # fmt: skip
    assert one == other
