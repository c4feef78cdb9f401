"""A home that version 0.2.0 left behind serves on: nothing that was paid for, granted or promised is lost.

`make_home.py` says what the home holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from tests.upgrade.conftest import OldHome, archive_of, unpack

VERSION = "0.2.0"
ARCHIVE_MAX = 1_000_000
ASKED = ("public_keys", "hidden_keys", "average", "retried", "repeated", "wide", "read")
PAID = ("public_keys", "hidden_keys", "average", "retried", "wide")


def question(old: OldHome, name: str) -> dict[str, Any]:
    """What was asked of version 0.2.0 under that name, and what it answered."""
    asked: dict[str, Any] = old.asked["questions"][name]
    return asked


@pytest.fixture(scope="module")
def entries_before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """The rows of the entries as version 0.2.0 wrote them."""
    folder: Path = tmp_path_factory.mktemp("before")
    unpack(VERSION, folder)
    engine = create_engine(f"sqlite:///{folder / 'ledger.sqlite'}")
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT * FROM entries ORDER BY sequence"))
        yield [dict(row._mapping) for row in rows]
    engine.dispose()


def test_the_archive_is_small() -> None:
    """The home is kept in the repository, so it stays small."""
    assert archive_of(VERSION).stat().st_size < ARCHIVE_MAX


def test_the_ledger_is_as_it_was(old: OldHome) -> None:
    """Shows that the migration loses no entry, no query and no release, and breaks no chain."""
    assert old.services is not None
    report = old.audit
    assert report is not None
    assert report.findings == ()
    assert (report.accounts, report.queries, report.releases) == (3, 10, 5)
    assert not old.services.ledger.behind


def test_no_entry_is_rewritten(old: OldHome, entries_before: list[dict[str, Any]]) -> None:
    """Shows that each entry of version 0.2.0 is there with every field and its hash, before those written since."""
    assert old.services is not None
    ledger = old.services.ledger
    for account in ledger.accounts():
        before = [row for row in entries_before if row["account"] == account.id]
        assert before
        now = ledger.entries(account.id, count=1000)
        assert len(now) >= len(before)
        for row, entry in zip(before, now, strict=False):
            assert row["hash"] == entry.hash == entry.digest()
            assert (row["details"], row["kind"], row["query_id"]) == (entry.details, entry.kind, entry.query_id)
            assert entry.amounts._asdict() == {name: row[name] for name in entry.amounts._fields}


def test_balances_are_those_of_before(old: OldHome) -> None:
    """Shows that every account has the limit, the use and the remainder that version 0.2.0 showed."""
    now = {budget["id"]: budget for budget in old.budgets}
    assert len(now) == len(old.asked["budgets"]) == 3
    for before in old.asked["budgets"]:
        for name in ("limit", "filter", "parent", "principal", "used_share", "remaining", "membership_guess"):
            assert before[name] == now[before["id"]][name]


@pytest.mark.parametrize("who", ["admin", "anna", "ben"])
def test_keys_still_open(old: OldHome, who: str) -> None:
    """Shows that keys made by version 0.2.0 are accepted."""
    answer = old.call(who, "GET", "/v1/budgets")
    assert answer.status_code == 200
    assert answer.json()["budgets"]


@pytest.mark.parametrize("name", ASKED)
def test_answers_are_read_again(old: OldHome, name: str) -> None:
    """Shows that a stored answer is the same bytes of JSON, whatever this version would answer."""
    asked = question(old, name)
    read = old.call(asked["principal"], "GET", asked["answer"]["links"]["self"])
    assert read.status_code == 200
    assert read.json() == asked["answer"]


@pytest.mark.parametrize("name", PAID)
@pytest.mark.parametrize("media_type", ["application/json", "text/csv"])
def test_releases_are_read_by_identifier(old: OldHome, name: str, media_type: str) -> None:
    """Shows that a release stored by version 0.2.0 is read in its payer's name, with its groups."""
    asked = question(old, name)
    for address in asked["answer"]["links"]["releases"]:
        read = old.call(asked["principal"], "GET", address, Accept=media_type)
        assert read.status_code == 200, read.text
        for row in asked["answer"]["rows"]:
            if isinstance(row[0], str):
                assert row[0] in read.text


def test_a_release_that_was_read_for_a_charge_is_still_read(old: OldHome) -> None:
    """Shows that what ben was charged for reading stays his to read, and is not charged again."""
    asked = question(old, "read")
    paid = question(old, "wide")["answer"]
    assert asked["answer"]["provenance"]["releases"] == paid["provenance"]["releases"]
    (address,) = paid["links"]["releases"]
    assert old.call("ben", "GET", address).status_code == 200
    assert old.call("ben", "POST", "/v1/estimates", asked["body"]).json()["verdict"] == "free"


def test_a_retry_gets_the_stored_answer(old: OldHome) -> None:
    """Shows that an Idempotency-Key that version 0.2.0 settled is still answered from the ledger, for nothing."""
    asked = question(old, "retried")
    before = old.call("ben", "GET", "/v1/budgets").json()["budgets"]
    again = old.call("ben", "POST", "/v1/queries", asked["body"], **{"Idempotency-Key": asked["idempotency_key"]})
    assert again.status_code == 200, again.text
    assert again.json() == asked["answer"]
    assert old.call("ben", "GET", "/v1/budgets").json()["budgets"] == before


@pytest.mark.parametrize("name", PAID)
def test_what_was_paid_for_is_free(old: OldHome, name: str) -> None:
    """Shows that an equal question finds the release of version 0.2.0: the identity of a release is the same."""
    asked = question(old, name)
    estimate = old.call(asked["principal"], "POST", "/v1/estimates", asked["body"])
    assert (estimate.status_code, estimate.json()["verdict"]) == (200, "free")
    answer = old.call(asked["principal"], "POST", "/v1/queries", asked["body"])
    assert answer.status_code == 200, answer.text
    assert answer.json()["provenance"]["releases"] == asked["answer"]["provenance"]["releases"]


def test_what_ended_without_an_answer_stays_so(old: OldHome) -> None:
    """Shows that a voided query stays free and a failed one charged, and that one left running is failed too."""
    assert old.services is not None
    found = {name: old.services.ledger.query(name) for name in ("q_void", "q_fail", "q_running")}
    assert {name: None if query is None else query.state for name, query in found.items()} == {
        "q_void": "failed_void",
        "q_fail": "failed_charged",
        "q_running": "failed_charged",
    }
    assert all(query is not None and query.charged for query in found.values())


def test_asked_names_what_was_answered(old: OldHome) -> None:
    """The record beside the home is about this home: each answer is one of its queries."""
    assert old.services is not None
    for asked in old.asked["questions"].values():
        stored = old.services.ledger.query(asked["answer"]["id"])
        assert stored is not None
        assert stored.answer is not None
        assert json.loads(stored.answer)["id"] == asked["answer"]["id"]
