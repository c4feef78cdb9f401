"""Names that columns of several tables have: refused by the lift as what they are, wherever DuckDB refuses them."""

from __future__ import annotations

import re

import pytest

from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from tests.hostile.duck import Reader
from tests.sql_rewrite.datasets import CLINIC

ON = "visits v JOIN hospitals h ON v.hospital_id = h.hospital_id"
USING = "visits v JOIN hospitals h USING (hospital_id)"
AS_ONE = (
    "SELECT hospital_id, COUNT(*) FROM {} GROUP BY hospital_id",
    "SELECT v.hospital_id % 3 AS k, COUNT(*) FROM {} GROUP BY hospital_id % 3",
    "SELECT COUNT(*) FROM {} WHERE hospital_id = 3",
    "SELECT COUNT(*) FILTER (WHERE hospital_id = 3) FROM {}",
    "SELECT COUNT(hospital_id) FROM {}",
    "SELECT SUM(GREATEST(0, LEAST(hospital_id, 10))) FROM {}",
    "SELECT COUNT(*) FROM {} HAVING COUNT(hospital_id) > 1",
    "SELECT v.hospital_id AS k, COUNT(*) FROM {} GROUP BY ALL ORDER BY hospital_id",
    "SELECT v.hospital_id AS hospital_id, COUNT(*) FROM {} GROUP BY v.hospital_id ORDER BY hospital_id + 1",
    "SELECT v.hospital_id AS hospital_id, COUNT(*) FROM {} GROUP BY v.hospital_id HAVING hospital_id > 1",
    "SELECT v.hospital_id AS k, COUNT(*), ROW_NUMBER() OVER (ORDER BY hospital_id) FROM {} GROUP BY v.hospital_id",
    "SELECT v.hospital_id AS k, COUNT(*) FROM {} GROUP BY 1 QUALIFY ROW_NUMBER() OVER (ORDER BY hospital_id) < 3",
)
"""Queries that name a column of two tables; some of them are answered where USING makes the two one."""

RELEASED = (
    "WITH a AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex), "
    "b AS (SELECT sex, SUM(age) AS n, COUNT(smoker) AS m FROM people GROUP BY sex) "
)
AMONG_RELEASED = (
    "SELECT sex, m FROM a JOIN b ON a.sex = b.sex",
    "SELECT n FROM a JOIN b USING (sex)",
    "SELECT a.n AS n FROM a JOIN b USING (sex) WHERE n > 3",
    "SELECT a.n AS n FROM a JOIN b USING (sex) GROUP BY n",
    "SELECT a.n AS k FROM a CROSS JOIN b ORDER BY n",
    "SELECT a.n AS n FROM a, b ORDER BY n + 1",
    "SELECT SUM(n) FROM a LEFT JOIN b USING (sex)",
    "SELECT a.sex AS sex, SUM(m) FROM a, b GROUP BY a.sex HAVING sex > 'a'",
    "SELECT * FROM a JOIN b ON a.sex = b.sex ORDER BY n",
    "SELECT b.n, a.n FROM a, b ORDER BY n",
    "SELECT m FROM a JOIN b ON sex = b.sex",
    "SELECT m FROM a JOIN b ON a.sex = b.sex JOIN (SELECT sex FROM a) AS c USING (sex)",
)
MEANT = (
    f"SELECT v.hospital_id, COUNT(*) FROM {ON} GROUP BY v.hospital_id ORDER BY hospital_id",
    f"SELECT v.hospital_id AS hospital_id, COUNT(*) FROM {ON} GROUP BY v.hospital_id ORDER BY hospital_id DESC",
    f"SELECT hospital_id, COUNT(*) FROM {USING} GROUP BY hospital_id ORDER BY hospital_id",
    f"SELECT COUNT(hospital_id) FROM {USING} WHERE hospital_id > 3",
    f"{RELEASED}SELECT sex FROM a JOIN b USING (sex) JOIN (SELECT sex FROM a) AS c ON a.sex = c.sex",
    f"{RELEASED}SELECT a.n FROM a JOIN b USING (sex) ORDER BY n",
    f"{RELEASED}SELECT a.n AS n, b.n AS n FROM a, b ORDER BY n",
    f"{RELEASED}SELECT a.* FROM a, b ORDER BY n",
    f"{RELEASED}SELECT a.n FROM a JOIN b ON a.n = m JOIN (SELECT m, sex FROM b) AS c ON a.sex = c.sex",
)
"""Queries in which such a name has one meaning: that of USING, or of a column of the answer behind ORDER BY."""


@pytest.fixture(scope="module")
def reader() -> Reader:
    """What reads texts before anything is charged."""
    return Reader()


def ambiguous(text: str) -> tuple[str, str]:
    """The place and the advice of a text that the lift refuses for an ambiguous name."""
    with pytest.raises(Refused) as caught:
        bound(lift(text, CLINIC))
    (finding, *_) = caught.value.findings
    assert (finding.code, finding.position is None) == ("ambiguous_column", False), text
    assert finding.position is not None
    return finding.position.text, finding.instead[0]


@pytest.mark.parametrize("text", AS_ONE)
def test_names_of_two_joined_tables_are_ambiguous(reader: Reader, text: str) -> None:
    """Shows that the lift marks a name that DuckDB does not accept, and that each piece of its advice is accepted."""
    text = text.format(ON)
    with pytest.raises(Refused):
        reader.judge(text)
    place, advice = ambiguous(text)
    assert (place, advice) == ("hospital_id", "write it with its table: v.hospital_id or h.hospital_id")
    reader.read(re.sub(r"(?<![.\w])(?<!AS )hospital_id", "v.hospital_id", text))


@pytest.mark.parametrize("text", AMONG_RELEASED)
def test_names_of_two_released_relations_are_ambiguous(reader: Reader, text: str) -> None:
    """Shows the same for relations of released numbers, with the names that the relations have in the text."""
    with pytest.raises(Refused):
        reader.judge(RELEASED + text)
    place, advice = ambiguous(RELEASED + text)
    assert place in ("sex", "n")
    assert f"a.{place} or b.{place}" in advice


@pytest.mark.parametrize("text", MEANT)
def test_names_with_one_meaning_are_read(reader: Reader, text: str) -> None:
    """Shows that nothing is refused that DuckDB reads."""
    reader.read(text)


def test_a_name_of_using_must_be_clear_too(reader: Reader) -> None:
    """Shows that USING refuses a name that two earlier tables have, with the place and the way out."""
    text = (
        "SELECT COUNT(*) FROM tests t JOIN visits v ON t.visit_id = v.visit_id "
        "JOIN people p ON v.person_id = p.person_id JOIN visits w USING (visit_id)"
    )
    with pytest.raises(Refused):
        reader.judge(text)
    place, advice = ambiguous(text)
    assert (place, advice) == ("visit_id", "join with ON instead of USING: t.visit_id or v.visit_id")


def test_a_name_of_the_query_around_gets_the_same_advice(reader: Reader) -> None:
    """Shows what is said where only DuckDB sees that a name is ambiguous: a query inside one over two relations."""
    with pytest.raises(Refused) as caught:
        reader.judge(f"{RELEASED}SELECT (SELECT n) AS z FROM a, b")
    assert "where several tables have n, write it with its table" in caught.value.findings[0].instead
