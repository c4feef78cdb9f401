"""A retry is owed its stored answer, whatever became of the dataset; a ledger that is gone answers nobody."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.account import Limit
from accountant.errors import IdempotencyConflict, LedgerBehind
from privacy.refusal import Refused
from server.services import Services
from tests.journey.clinic import DATASET, attach, clinic_in, open_account, question, stored
from tests.journey.test_http import Api

SQL = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Services, Path]]:
    """Services of a home of its own, because its dataset comes and goes, and the folder of its files."""
    folder = tmp_path_factory.mktemp("retries")
    with clinic_in(folder) as home:
        yield home


def settle(services: Services, who: str, key: str) -> bytes:
    """Asks once under a key and returns the stored answer."""
    admitted = services.journey.admit(question(SQL, who, idempotency_key=key, reuse="none"))
    return services.journey.complete(admitted)


def retried(services: Services, who: str, key: str) -> bytes | None:
    """The same request once more."""
    return stored(services.journey.admit(question(SQL, who, idempotency_key=key, reuse="none")))


def test_a_retry_is_answered_after_the_dataset_was_removed(home: tuple[Services, Path]) -> None:
    """Shows the stored bytes after a removal, and a refusal for a new question and for another principal's key."""
    services, path = home
    open_account(services.ledger, "anna")
    answer = settle(services, "anna", "key-removed")
    services.registrar.remove("clinic", actor="test")
    try:
        assert retried(services, "anna", "key-removed") == answer
        for who, key in (("anna", "key-new"), ("ben", "key-removed")):
            with pytest.raises(Refused):
                retried(services, who, key)
        with pytest.raises(IdempotencyConflict):
            services.journey.admit(question("SELECT COUNT(*) FROM visits", "anna", idempotency_key="key-removed"))
    finally:
        attach(services, path)


@pytest.mark.slow
def test_a_retry_is_answered_after_the_policy_and_the_limit_were_lowered(home: tuple[Services, Path]) -> None:
    """Shows the stored bytes where the same question is refused today by policy and by budget."""
    services, path = home
    account = open_account(services.ledger, "carl")
    answer = settle(services, "carl", "key-policy")
    path.write_text(DATASET.replace('epsilon_max: "100"', 'epsilon_max: "0.5"'))
    attach(services, path)
    services.ledger.change_limit(account, Limit(Fraction(1, 10), Fraction(1, 10**7)), actor="test", reason="less")
    try:
        with pytest.raises(Refused):
            retried(services, "carl", "key-other")
        assert retried(services, "carl", "key-policy") == answer
        asked = dataclasses.replace(question(SQL, "carl", idempotency_key="key-policy"), account="b_of_nobody")
        assert stored(services.journey.admit(asked)) == answer
    finally:
        path.write_text(DATASET)
        attach(services, path)


@pytest.mark.slow
def test_a_server_whose_ledger_was_removed_is_not_ready_and_answers_nobody(tmp_path: Path) -> None:
    """Shows 503 at /readyz and for a question after `rm ledger.sqlite*`, since its commits are lost."""
    with clinic_in(tmp_path) as (services, _):
        api = Api(services)
        api.key("anna", "analyst")
        open_account(services.ledger, "anna")
        # The answer first: only then a worker of each kind has served, and the server is ready.
        settle(services, "anna", "key-before")
        assert api.call("anna", "GET", "/readyz").status_code == 200
        for file in tmp_path.glob("ledger.sqlite*"):
            file.unlink()
        with pytest.raises(LedgerBehind):
            services.journey.admit(question(SQL, "anna", reuse="none"))
        assert api.call("anna", "GET", "/readyz").status_code == 503
