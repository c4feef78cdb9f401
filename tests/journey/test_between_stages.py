"""What may happen between the stages of a question, over HTTP: a worker is killed, or new data are attached.

A killed server is in test_crash.py.
"""

from __future__ import annotations

import csv
import os
import re
import signal
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from server.services import Services
from tests.journey.clinic import attach, open_account, services_of, write_files
from tests.journey.test_http import Api
from tests.mechanisms.support import recorded

SQL = "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("between")


@pytest.fixture(scope="module")
def services(home: Path) -> Iterator[Services]:
    with services_of(home) as started:
        attach(started, write_files(home / "sources"))
        yield started


@pytest.fixture
def between(services: Services, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], None]], list[int]]:
    """Does something before the statement of that number; what it returns counts statements."""

    def planned(number: int, done: Callable[[], None]) -> list[int]:
        private: Any = services.journey.running._private  # type: ignore[attr-defined]
        run, seen = private.run, list[int]()

        def interrupted(*arguments: Any, **options: Any) -> Any:
            seen.append(len(seen) + 1)
            if len(seen) == number:
                done()
            return run(*arguments, **options)

        monkeypatch.setattr(private, "run", interrupted)
        return seen

    return planned


def asking(services: Services, who: str) -> Api:
    """The application, with an analyst of that name who has an account."""
    api = Api(services)
    api.key(who, "analyst")
    open_account(services.ledger, who)
    return api


def told(api: Api, who: str) -> tuple[int, str]:
    """The status and the body of an answer, without times and what is drawn for each request."""
    sent = api.call(who, "POST", "/v1/queries", {"dataset": "clinic", "sql": SQL, "spend": {"epsilon": "1"}})
    return sent.status_code, re.sub(r"[0-9a-f]{12,}|\d{4}-\d\d-\d\dT[0-9:.]+Z?", "*", sent.text)


@pytest.mark.slow
def test_a_worker_killed_before_either_statement_is_one_outcome(
    services: Services, between: Callable[[int, Callable[[], None]], list[int]]
) -> None:
    """Shows one status and one body whichever stage failed, the whole charge, nothing stored, and a whole ledger."""
    found = []
    for number in (1, 2):
        who = f"killed{number}"
        api = asking(services, who)
        private: Any = services.journey.running._private  # type: ignore[attr-defined]
        seen = between(number, lambda at=private: [os.kill(one, signal.SIGKILL) for one in at.process_ids()])  # type: ignore[misc]
        found.append(told(api, who))
        assert len(seen) == number
        ((leaf, *_),) = services.ledger.spendable("clinic", who)
        assert Fraction(leaf.limit.epsilon - leaf.remaining_epsilon()) == pytest.approx(1, rel=1e-6)
        (record,) = services.ledger.queries(who)
        assert record.state == "failed_charged"
        assert not services.ledger.releases_of(record.id)
        status, body = told(api, who)
        assert (status, '"n"' in body) == (200, True)
    assert found[0] == found[1]
    assert found[0][0] >= 500
    assert "execution_failed" in found[0][1]
    assert not services.ledger.audit().findings


@pytest.mark.slow
def test_new_data_between_stages_are_read_by_neither(
    home: Path, services: Services, between: Callable[[int, Callable[[], None]], list[int]]
) -> None:
    """Shows that both stages read the version of the data that the question was priced on, and that it says so."""
    api = asking(services, "first")
    path, file = home / "sources" / "clinic.yaml", home / "sources" / "visits.csv"
    old = file.read_text()
    version = api.call("first", "GET", "/v1/datasets/clinic").json()["data_version"]
    with duckdb.connect() as connection:
        truth = "SELECT COUNT(*) FROM '{0}' WHERE cost > (SELECT AVG(cost) FROM '{0}')".replace("{0}", str(file))
        (wanted,) = connection.execute(truth).fetchone() or ()

    def renewed() -> None:
        with file.open() as rows:
            header, *every = csv.reader(rows)
        with file.open("w", newline="") as rows:
            csv.writer(rows).writerows([header, *([*row[:3], "900"] for row in every)])
        attach(services, path)

    try:
        seen = between(2, renewed)
        with recorded(noiseless=True):
            body = {"dataset": "clinic", "sql": SQL, "spend": {"epsilon": "1"}}
            answer = api.call("first", "POST", "/v1/queries", body).json()
        assert len(seen) == 2
        assert answer["provenance"]["data_version"] == version
        assert answer["rows"] == [[wanted]]
        assert api.call("first", "GET", "/v1/datasets/clinic").json()["data_version"] != version
        # The new version is another question, whose stages both read it: no row is above the average now.
        with recorded(noiseless=True):
            again = api.call("first", "POST", "/v1/queries", body).json()
        assert again["provenance"]["data_version"] != version
        assert again["rows"] == [[0]]
        assert again["accounting"]["charged"]
    finally:
        file.write_text(old)
        attach(services, path)
    assert not services.ledger.audit().findings
