"""What the part above the aggregates compares with something that it cannot be is refused, and costs nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from accountant.states import QueryStatus
from privacy.refusal import ExecutionFailed, Refused
from server.errors import problem_of_execution
from server.journey.query import ToRun
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


@pytest.mark.sparse(3)
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


NUMBERED = f"FROM ({GROUPS}) AS t"
SUMMED = "FROM (SELECT sex, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY sex) AS t"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT sex, NTILE(n - n) OVER (ORDER BY sex) AS v {NUMBERED}",
        f"SELECT sex, NTILE(0) OVER (ORDER BY sex) AS v {NUMBERED}",
        f"SELECT sex, ABS(CAST(-9223372036854775808 AS BIGINT)) AS v {NUMBERED}",
        f"SELECT sex, n + ABS(CAST(-9223372036854775808 AS BIGINT)) AS v {NUMBERED}",
        f"SELECT sex, CAST(300 AS TINYINT) AS v {NUMBERED}",
        f"SELECT sex, CAST(n * 0 + 300 AS TINYINT) AS v {NUMBERED}",
        f"SELECT sex, sex LIKE 'x' ESCAPE 'ab' AS v {NUMBERED}",
    ],
)
def test_a_text_that_fails_whatever_the_numbers_are_is_refused_before_the_charge(
    services: Services, attacker: Callable[..., str], sql: str
) -> None:
    """A function of a constant that is out of range was estimated as affordable, paid for, and failed."""
    name = attacker()
    with pytest.raises(Refused) as caught:
        services.journey.estimate(question(sql, name))
    assert caught.value.findings[0].code == "unsupported_sql"
    assert "whatever their numbers are" in caught.value.findings[0].why


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT sex, NTILE(n) OVER (ORDER BY sex) AS v {NUMBERED}",
        f"SELECT sex, LN(n - 1000000) AS v {NUMBERED}",
        f"SELECT sex, CAST(n AS TINYINT) AS v {NUMBERED}",
        f"SELECT NTILE(COUNT(*) - 1) OVER () AS v {NUMBERED}",
        f"SELECT sex, NTILE(CAST(s - n AS BIGINT)) OVER (ORDER BY sex) AS v {SUMMED}",
        f"SELECT sex, NTILE(CAST(n - s AS BIGINT)) OVER (ORDER BY sex) AS v {SUMMED}",
    ],
)
def test_a_text_that_some_numbers_suit_is_not_refused(
    services: Services, attacker: Callable[..., str], sql: str
) -> None:
    """What fails on the first made-up rows may be right for other numbers, or for several rows."""
    services.journey.estimate(question(sql, attacker()))


def test_a_failure_above_stored_releases_is_not_said_to_be_charged(
    services: Services, attacker: Callable[..., str]
) -> None:
    """Nothing was charged, and the failure said that it was, and so did the state of the query."""
    name = attacker()
    (account,) = (account for account in services.ledger.accounts() if account.principal == name)
    admitted = services.journey.admit(question(GROUPS, name))
    assert isinstance(admitted, ToRun)
    services.journey.complete(admitted)
    spent = services.ledger.account(account.id).spent
    failing = services.journey.admit(question(f"SELECT sex, CAST(n AS TINYINT) AS v {NUMBERED}", name))
    assert isinstance(failing, ToRun)
    with pytest.raises(ExecutionFailed) as failed:
        services.journey.complete(failing)
    record = services.ledger.query(failing.query_id)
    assert record is not None
    assert (failed.value.started, record.state, record.charged) == (False, QueryStatus.FAILED_VOID, ())
    assert problem_of_execution(failed.value).charged is False
    assert services.ledger.account(account.id).spent == spent
    assert services.ledger.audit().ok


def test_a_failure_above_fresh_releases_is_said_to_be_charged(services: Services, attacker: Callable[..., str]) -> None:
    """What was read was paid for: it is kept, and the charge with it."""
    name = attacker()
    failing = services.journey.admit(question(f"SELECT sex, CAST(n AS TINYINT) AS v {NUMBERED}", name))
    assert isinstance(failing, ToRun)
    with pytest.raises(ExecutionFailed) as failed:
        services.journey.complete(failing)
    record = services.ledger.query(failing.query_id)
    assert record is not None
    assert (failed.value.started, record.state) == (True, QueryStatus.FAILED_CHARGED)
    assert problem_of_execution(failed.value).charged is True
