"""Where an outer query is refused: the place in the analyst's own text, in which released columns have other names."""

from __future__ import annotations

import pytest

from privacy.refusal import Refused
from server.services import Services
from tests.journey.clinic import question
from tests.journey.test_journey import Analyst

GROUPS = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        (f"{GROUPS} HAVING sex = 5", "sex = 5"),
        (f"{GROUPS} HAVING COUNT(*) > 5 AND sex = 5", "sex = 5"),
        (f"{GROUPS} HAVING 5 <> sex AND n > 5", "5 <> sex"),
        (f"{GROUPS} HAVING sex != 5", "sex != 5"),
        (f"{GROUPS} HAVING sex IN (5)", "sex IN (5)"),
        (f"{GROUPS} HAVING sex > 5", "sex > 5"),
        (f"{GROUPS} ORDER BY sex = 5", "sex = 5"),
        (f"{GROUPS} HAVING COUNT(*) > 'x'", "'x'"),
        (f"{GROUPS} HAVING CAST(sex AS INTEGER) > 1", "CAST(sex AS INTEGER)"),
        (f"SELECT t.n FROM ({GROUPS}) AS t WHERE t.sex = 5", "sex = 5"),
        (f"SELECT ABS(t.sex) FROM ({GROUPS}) AS t", "ABS(t.sex)"),
        ("SELECT age AS sex, COUNT(*) AS n FROM people GROUP BY age HAVING age = 'x'", "'x'"),
    ],
)
def test_a_refused_key_never_lacks_its_place(services: Services, analyst: Analyst, sql: str, place: str) -> None:
    """A key or a count that is compared with another type is marked in the text as it was written."""
    with pytest.raises(Refused) as caught:
        services.journey.estimate(question(sql, analyst(), epsilon="0.5"))
    (finding,) = caught.value.findings
    assert finding.position is not None
    assert finding.position.text == place
    assert sql[finding.position.column - 1 :].startswith(place)


def test_what_stands_twice_is_not_marked_by_chance(services: Services, analyst: Analyst) -> None:
    """Of two equal comparisons either might be meant, so that neither is marked."""
    with pytest.raises(Refused) as caught:
        services.journey.estimate(question(f"{GROUPS} HAVING sex = 5 OR sex = 5 AND n = 1", analyst(), epsilon="0.5"))
    assert caught.value.findings[0].position is None
