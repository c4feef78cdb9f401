"""What the part above the aggregates compares with something that it cannot be is refused, and costs nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from privacy.refusal import Refused
from server.services import Services
from tests.journey.clinic import question

GROUPS = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.mark.parametrize(
    ("sql", "marked"),
    [
        (f"{GROUPS} HAVING n > 'a'", "'a'"),
        (f"{GROUPS} HAVING n > 5 AND n < 'it''s'", "'it''s'"),
        (f"SELECT SUM(n) AS s FROM ({GROUPS}) AS t HAVING SUM(n) > 'ä' AND SUM(n) > 'x'", "'ä'"),
        (f"SELECT CASE WHEN n > 10 THEN 'x' ELSE n END AS v FROM ({GROUPS}) AS t", "'x'"),
        # The lift knows the type of a key.
        (f"{GROUPS} HAVING sex = 5", "sex = 5"),
        # What stands there twice is not guessed.
        (f"{GROUPS} HAVING n > 'a' OR n < 'a'", None),
    ],
)
def test_a_value_that_does_not_fit_is_marked(
    services: Services, attacker: Callable[..., str], sql: str, marked: str | None
) -> None:
    """The refusal of a comparison above the aggregates said neither which nor where."""
    with pytest.raises(Refused) as caught:
        services.journey.estimate(question(sql, attacker()))
    position = caught.value.findings[0].position
    assert (None if position is None else position.text) == marked


@pytest.mark.parametrize(
    "sql",
    [
        f"{GROUPS} HAVING n > 'a'",
        f"{GROUPS} HAVING n > 5 AND n < 'x'",
        f"{GROUPS} HAVING sex = 5",
        f"{GROUPS} HAVING sex IN (1, 2)",
        f"SELECT SUM(n) AS s FROM ({GROUPS}) AS t HAVING SUM(n) > 'x'",
        f"SELECT CASE WHEN n > 10 THEN 'x' ELSE n END AS v FROM ({GROUPS}) AS t",
        f"SELECT CAST(n AS DATE) AS d FROM ({GROUPS}) AS t",
        f"SELECT x.n FROM ({GROUPS}) AS x JOIN ({GROUPS}) AS y ON x.n = y.sex",
    ],
)
def test_a_text_that_fails_on_every_release_is_refused_before_the_charge(
    services: Services, attacker: Callable[..., str], sql: str
) -> None:
    """Estimates said affordable, and the run failed with the charge kept."""
    name = attacker()
    (account,) = (account for account in services.ledger.accounts() if account.principal == name)
    with pytest.raises(Refused) as caught:
        services.journey.admit(question(sql, name))
    assert caught.value.findings[0].code == "unsupported_sql"
    assert services.ledger.account(account.id).spent == account.spent
