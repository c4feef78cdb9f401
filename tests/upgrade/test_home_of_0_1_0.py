"""A home that version 0.1.0 left behind serves on: nothing that was paid for, granted or promised is lost.

`make_home.py` says what the home holds.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.upgrade.conftest import OldHome, archive_of

VERSION = "0.1.0"
ARCHIVE_MAX = 1_000_000


def question(old: OldHome, name: str) -> dict[str, Any]:
    """What was asked of version 0.1.0 under that name, and what it answered."""
    asked: dict[str, Any] = old.asked["questions"][name]
    return asked


def needs_upgrade(status: int, text: str) -> bool:
    """Whether a dataset of before is refused with the command that brings it to this version."""
    return status in (403, 404, 409, 422) and "dataset upgrade" in text


def test_the_archive_is_small() -> None:
    """The home is kept in the repository, so it stays small."""
    assert archive_of(VERSION).stat().st_size < ARCHIVE_MAX


def test_the_ledger_is_as_it_was(old: OldHome) -> None:
    """Shows that the migration loses no entry, no query and no release, and breaks no chain."""
    assert old.services is not None
    report = old.audit
    assert report is not None
    assert report.findings == ()
    assert (report.accounts, report.queries, report.releases) == (4, 8, 5)
    # At least those of version 0.1.0: a migration may add entries of its own, and never removes one.
    assert report.entries >= 32
    assert not old.services.ledger.behind


def test_balances_are_those_of_before(old: OldHome) -> None:
    """Shows that every account has the limit, the use and the remainder that version 0.1.0 showed."""
    now = {budget["id"]: budget for budget in old.budgets}
    assert len(now) == len(old.asked["budgets"])
    for before in old.asked["budgets"]:
        for name in ("limit", "filter", "parent", "principal", "used_share", "remaining"):
            assert before[name] == now[before["id"]][name]


@pytest.mark.parametrize("who", ["admin", "anna", "ben"])
def test_keys_still_open(old: OldHome, who: str) -> None:
    """Shows that keys made by version 0.1.0 are accepted."""
    answer = old.call(who, "GET", "/v1/budgets")
    assert answer.status_code == 200
    assert answer.json()["budgets"]


@pytest.mark.parametrize("name", ["public_keys", "hidden_keys", "average", "retried", "repeated", "second_account"])
def test_answers_are_read_again(old: OldHome, name: str) -> None:
    """Shows that a stored answer is the same bytes of JSON, whatever this version would answer."""
    asked = question(old, name)
    read = old.call(asked["principal"], "GET", asked["answer"]["links"]["self"])
    assert read.status_code == 200
    assert read.json() == asked["answer"]


@pytest.mark.parametrize("name", ["public_keys", "hidden_keys", "average", "retried", "second_account"])
@pytest.mark.parametrize("media_type", ["application/json", "text/csv"])
def test_releases_are_read_by_identifier(old: OldHome, name: str, media_type: str) -> None:
    """Shows that a release stored by version 0.1.0 is read in its payer's name, with its groups."""
    asked = question(old, name)
    for address in asked["answer"]["links"]["releases"]:
        read = old.call(asked["principal"], "GET", address, Accept=media_type)
        assert read.status_code == 200, read.text
        for row in asked["answer"]["rows"]:
            if isinstance(row[0], str):
                assert row[0] in read.text


def test_a_retry_gets_the_stored_answer(old: OldHome) -> None:
    """Shows that an Idempotency-Key that version 0.1.0 settled is still answered from the ledger, for nothing."""
    asked = question(old, "retried")
    before = old.call("ben", "GET", "/v1/budgets").json()["budgets"]
    again = old.call("ben", "POST", "/v1/queries", asked["body"], **{"Idempotency-Key": asked["idempotency_key"]})
    assert again.status_code == 200, again.text
    assert again.json() == asked["answer"]
    assert old.call("ben", "GET", "/v1/budgets").json()["budgets"] == before
    other = old.call(
        "ben", "POST", "/v1/queries", {**asked["body"], "sql": "SELECT 1"}, **{"Idempotency-Key": "report-7"}
    )
    assert other.status_code == 409


@pytest.mark.parametrize("name", ["public_keys", "hidden_keys", "average", "retried"])
def test_the_data_is_served_or_says_what_to_run(old: OldHome, name: str) -> None:
    """Shows that a dataset of version 0.1.0 is answered as before, or refused with the command that upgrades it.

    A repeat of a stored answer is free where this version gives the release the same meaning, and is charged like a
    new question where it does not; it is never the old numbers under a new meaning.
    """
    asked = question(old, name)
    estimate = old.call(asked["principal"], "POST", "/v1/estimates", asked["body"])
    if needs_upgrade(estimate.status_code, estimate.text):
        return
    assert estimate.status_code == 200, estimate.text
    answer = old.call(asked["principal"], "POST", "/v1/queries", asked["body"])
    assert answer.status_code == 200, answer.text
    releases = answer.json()["provenance"]["releases"]
    assert (releases == asked["answer"]["provenance"]["releases"]) is (estimate.json()["verdict"] == "free")


def test_second_accounts_are_frozen_and_the_oldest_pays(old: OldHome) -> None:
    """Shows that anna's second account keeps what it spent and pays for nothing more, with an entry that says so."""
    assert old.services is not None
    ledger = old.services.ledger
    first, second = ledger.accounts(dataset="surgery", principal="anna")
    assert (first.frozen, second.frozen) == (False, True)
    assert [path[0].id for path in ledger.spendable("surgery", "anna")] == [first.id]
    entry = ledger.entries(second.id)[-1]
    assert (entry.kind, json.loads(entry.details)["kept"]) == ("adjust", first.id)
    asked = {"dataset": "surgery", "sql": "SELECT COUNT(*) AS n FROM patients", "budget": second.id}
    assert old.call("anna", "POST", "/v1/queries", asked).json()["code"] == "no_budget"
    assert second.spent.mu_squared
    assert json.loads(ledger.entries(first.id)[0].details)["limit"]["epsilon"] == "5"


def test_a_voided_and_a_failed_query_stay_so(old: OldHome) -> None:
    """Shows that what ended without an answer has none, and that only the failed one stays charged."""
    assert old.services is not None
    states = {name: old.services.ledger.query(name) for name in ("q_void", "q_fail")}
    assert {name: None if found is None else found.state for name, found in states.items()} == {
        "q_void": "failed_void",
        "q_fail": "failed_charged",
    }
    assert all(found is not None and found.charged for found in states.values())


def test_asked_names_what_was_answered(old: OldHome) -> None:
    """The record beside the home is about this home: each answer is one of its queries."""
    assert old.services is not None
    for asked in old.asked["questions"].values():
        stored = old.services.ledger.query(asked["answer"]["id"])
        assert stored is not None
        assert stored.answer is not None
        assert json.loads(stored.answer)["id"] == asked["answer"]["id"]
