"""A home that an earlier version left behind serves on: nothing that was paid for, granted or promised is lost.

`make_home.py` says what the homes hold.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.accountant.exported import Program
from tests.upgrade.homes import LEFT, OldHome, archive_of
from tests.upgrade.recipes import (
    BATCH,
    MODEL,
    NOBODY,
    PAYING,
    RANGES,
    RECIPES,
    SHARPER,
    STATISTIC,
    STREAM,
    SYNTHETIC,
)

ARCHIVE_MAX = 1_000_000


def since(version: str) -> pytest.MarkDecorator:
    """Tests of what homes have since a version."""
    names = list(LEFT)
    return pytest.mark.parametrize("version", names[names.index(version) :], indirect=True, scope="module")


of_0_1 = pytest.mark.parametrize("version", ["0.1.0"], indirect=True, scope="module")


@pytest.mark.parametrize("left", LEFT)
def test_the_archive_is_small(left: str) -> None:
    """Homes are kept in the repository, so they stay small."""
    assert archive_of(left).stat().st_size < ARCHIVE_MAX


def test_the_ledger_is_as_it_was(old: OldHome) -> None:
    """Shows that the migration loses no entry, no query and no release, and breaks no chain."""
    assert old.services is not None
    report = old.audit
    assert report is not None
    assert report.findings == ()
    assert (report.accounts, report.queries, report.releases) == (
        old.left.accounts,
        old.left.queries,
        old.left.releases,
    )
    # A migration may add entries of its own, and never removes one.
    assert report.entries >= len(old.entries) >= 32
    assert not old.services.ledger.behind


def test_no_entry_is_rewritten(old: OldHome) -> None:
    """Shows that each entry of before is there with every field and its hash, before those written since."""
    assert old.services is not None
    ledger = old.services.ledger
    for account in ledger.accounts():
        before = [row for row in old.entries if row["account"] == account.id]
        assert before
        now = ledger.entries(account.id, count=1000)
        assert len(now) >= len(before)
        for row, entry in zip(before, now, strict=False):
            assert row["hash"] == entry.hash == entry.digest()
            assert (row["details"], row["kind"], row["query_id"]) == (entry.details, entry.kind, entry.query_id)
            assert entry.amounts._asdict() == {name: row.get(name, 0) for name in entry.amounts._fields}


def test_the_log_of_acts_is_in_the_chain(old: OldHome) -> None:
    """Shows that what the earlier version logged is there as acts, and that the upgrade vouches for what it found."""
    assert old.services is not None
    acts = old.services.registry.acts(count=1000)
    assert {"principal_created", "key_created", "dataset_registered"} <= {action for _, _, _, action, _ in acts}
    assert [actor for _, _, actor, action, _ in acts if action == "registry_taken_over"] == ["upgrade"]
    assert old.services.ledger.audit().findings == ()


def test_balances_are_those_of_before(old: OldHome) -> None:
    """Shows that every account has the limit, the use and the remainder that the earlier version showed."""
    now = {budget["id"]: budget for budget in old.budgets}
    assert len(now) == len(old.asked["budgets"]) == old.left.accounts
    for before in old.asked["budgets"]:
        for name in old.left.balance:
            assert before[name] == now[before["id"]][name]


@pytest.mark.parametrize("who", ["admin", "anna", "ben"])
def test_keys_still_open(old: OldHome, who: str) -> None:
    """Shows that keys made by the earlier version are accepted."""
    answer = old.call(who, "GET", "/v1/budgets")
    assert answer.status_code == 200
    assert answer.json()["budgets"]


def test_answers_are_read_again(old: OldHome) -> None:
    """Shows that a stored answer is the same bytes of JSON, whatever this version would answer."""
    for name in old.left.answered:
        asked = old.question(name)
        read = old.call(asked["principal"], "GET", asked["answer"]["links"]["self"])
        assert read.status_code == 200, (name, read.text)
        assert read.json() == asked["answer"], name


@pytest.mark.parametrize("media_type", ["application/json", "text/csv"])
def test_releases_are_read_by_identifier(old: OldHome, media_type: str) -> None:
    """Shows that a stored release is read in its payer's name, with its groups."""
    for name in old.left.paid:
        asked = old.question(name)
        assert asked["answer"]["links"]["releases"]
        reads = [
            old.call(asked["principal"], "GET", address, Accept=media_type)
            for address in asked["answer"]["links"]["releases"]
        ]
        assert {read.status_code for read in reads} == {200}, (name, [read.text for read in reads])
        # Beside the sums there may be histograms, whose groups are others; a map is written out anew, and so are groups
        # that were merged.
        first = "merged" if asked["answer"].get("merged") else asked["answer"]["columns"][0]["kind"]
        groups = [row[0] for row in asked["answer"]["rows"] if first == "key" and isinstance(row[0], str)]
        assert any(all(group in read.text for group in groups) for read in reads), name


@since("0.2.0")
def test_a_release_that_was_read_for_a_charge_is_still_read(old: OldHome) -> None:
    """Shows that what ben was charged for reading stays his to read, and is not charged again."""
    asked = old.question("read")
    paid = old.question("wide")["answer"]
    assert asked["answer"]["provenance"]["releases"] == paid["provenance"]["releases"]
    (address,) = paid["links"]["releases"]
    assert old.call("ben", "GET", address).status_code == 200
    assert old.call("ben", "POST", "/v1/estimates", asked["body"]).json()["verdict"] == "free"


def test_a_retry_gets_the_stored_answer(old: OldHome) -> None:
    """Shows that an Idempotency-Key that was settled is still answered from the ledger, for nothing."""
    asked = old.question("retried")
    key = {"Idempotency-Key": asked["idempotency_key"]}
    before = old.call("ben", "GET", "/v1/budgets").json()["budgets"]
    again = old.call("ben", "POST", "/v1/queries", asked["body"], **key)
    assert again.status_code == 200, again.text
    assert again.json() == asked["answer"]
    assert old.call("ben", "GET", "/v1/budgets").json()["budgets"] == before
    assert old.call("ben", "POST", "/v1/queries", {**asked["body"], "sql": "SELECT 1"}, **key).status_code == 409


def _sensitivity(answer: dict[str, Any]) -> str:
    found: str = answer["provenance"]["mechanisms"][0]["sensitivity"]
    return found


@since("0.2.0")
def test_what_was_paid_for_is_free(old: OldHome) -> None:
    """Shows that an equal question finds the stored release: the identity of a release is the same."""
    for name in old.left.paid:
        asked = old.question(name)
        estimate = old.call(asked["principal"], "POST", "/v1/estimates", asked["body"])
        answer = old.call(asked["principal"], "POST", "/v1/queries", asked["body"])
        assert (estimate.status_code, answer.status_code) == (200, 200), (name, answer.text)
        if name == "width" and _sensitivity(answer.json()) != _sensitivity(asked["answer"]):
            continue  # 0.8.0 reads another norm from the same histogram, and a width follows from the norm
        if name == "pairs" and "sharpened" not in old.asked:
            continue  # 0.13.0 knows a list of pairs by the comparisons that it is, as docs/upgrading.md says
        assert estimate.json()["verdict"] == "free", name
        # Of several stored releases the most exact one serves: the mean of one that was sharpened.
        told = old.asked["sharpened"]["answer"] if name == "moments" else asked["answer"]
        assert answer.json()["rows"] == told["rows"], name
        # Histograms that chose its norms and bounds come before the sums, which alone are read again.
        chosen = {"norms": 1, "weights": 1, "values": 2, "width": 1, "rows": 1}.get(name, 0)
        assert answer.json()["provenance"]["releases"] == told["provenance"]["releases"][chosen:], name


@since("0.9.0")
def test_a_monitor_goes_on(old: OldHome) -> None:
    """Shows that a session that was paid keeps its terms, its hit and its comparisons, and compares again."""
    kept = old.asked["monitor"]
    address = kept["opened"]["links"]["self"]
    now = old.call("anna", "GET", address).json()
    counted = {"hits_left": 1, "evaluations_made": 1, "last": kept["compared"], "passed": now["passed"]}
    # A field since 0.11.0: one from before is compared when somebody asks, as it was.
    counted |= {"background": kept["opened"].get("background", False)}
    # It is called settled since 0.11.0, as everything that was charged and is there.
    same = {name: value for name, value in kept["opened"].items() if name not in ("status", "links")}
    assert {name: now[name] for name in {**same, **counted}} == {**same, **counted}
    assert (now["status"], now["price"], now["closed"]) == ("settled", kept["opened"].get("price"), None)
    assert now["charged"]
    assert len(now["passed"]) == 1
    again = old.call("anna", "POST", f"{address}/evaluations", {})
    assert again.status_code == 200, again.text
    assert again.json() == {**kept["compared"], "repeated": True}


@since("0.9.0")
def test_a_collector_goes_on(old: OldHome) -> None:
    """Shows that reports are counted as before, that a used token stays used, and that the one that is left counts."""
    kept = old.asked["collector"]
    links = kept["opened"]["links"]
    before = {name: value for name, value in kept["estimates"].items() if name != "state"}
    # It was called open until 0.11.0.
    assert old.call("ben", "GET", links["estimates"]).json() == {**before, "status": "settled"}
    used, *_, left = kept["tokens"]
    for token, status in ((used, 403), (left, 200)):
        report = {"reports": [{"token": token, "report": [0]}]}
        assert old.call("anna", "POST", f"{links['self']}/reports", report).status_code == status
    assert old.call("ben", "GET", links["estimates"]).json()["reports"] == kept["estimates"]["reports"] + 1


@since("0.10.0")
def test_resources_are_read_as_before(old: OldHome) -> None:
    """Shows that a batch, a model and a synthetic table say what they said, and that a retry finds them for nothing."""
    before = old.call("anna", "GET", "/v1/budgets").json()["budgets"]
    for name, results in (
        ("batch", ("rows", "strategy")),
        ("model", ("model",)),
        ("synthetic", ("columns", "measured")),
    ):
        made = old.asked[name]
        read = old.call("anna", "GET", made["links"]["self"])
        assert read.status_code == 200, (name, read.text)
        assert {field: read.json()[field] for field in results} == {field: made[field] for field in results}
    assert old.call("anna", "POST", "/v1/queries", NOBODY).json()["rows"] == old.asked["nobody"]
    waits = {"wait_ms": 30_000}
    for name, path, body, key in (
        ("batch", "/v1/batches", {**BATCH, **waits}, "batch-1"),
        ("model", "/v1/models", {**MODEL, **waits}, "model-1"),
        ("synthetic", "/v1/synthetic", SYNTHETIC, "table-1"),
    ):
        again = old.call("anna", "POST", path, body, **{"Idempotency-Key": key})
        assert again.status_code in (200, 201), (name, again.text)
        assert again.json()["id"] == old.asked[name]["id"]
    assert old.call("anna", "GET", "/v1/budgets").json()["budgets"] == before


@since("0.11.0")
def test_a_stream_goes_on(old: OldHome) -> None:
    """Shows that a stream that was paid keeps its answers, and that a retry opens no second one."""
    before = old.call("anna", "GET", "/v1/budgets").json()["budgets"]
    kept = old.asked["stream"]
    address = kept["opened"]["links"]["self"]
    now = old.call("anna", "GET", address).json()
    # 0.11.0 called it comparing, and stored no price; the home was left after it was asked.
    asked = ("status", "links", "updates_left", "compared")
    same = {name: value for name, value in kept["opened"].items() if name not in asked}
    assert {name: now[name] for name in same} == same
    assert (now["status"], now["comparing"], now["price"]) == ("settled", True, kept["opened"].get("price"))
    assert now["charged"]
    assert now["updates_left"] == kept["answered"]["updates_left"]
    assert now["compared"] == kept["answered"]["compared"] == 2
    again = old.call("anna", "POST", f"{address}/queries", RANGES)
    assert again.status_code == 200, again.text
    answered = kept["answered"]["answers"]
    assert again.json()["answers"] == [{**answer, "repeated": True} for answer in answered]
    opened = old.call("anna", "POST", "/v1/streams", STREAM, **{"Idempotency-Key": "stream-1"})
    assert opened.json()["id"] == kept["opened"]["id"]
    assert old.call("anna", "GET", "/v1/budgets").json()["budgets"] == before


@since("0.12.0")
def test_the_division_of_delta_stays(old: OldHome, version: str) -> None:
    """Shows that an account keeps the shares that were named when it was opened, and the others those they had."""
    now = {budget["id"]: budget["delta_shares"] for budget in old.budgets}
    # A share since 0.13.0: no account of before has a mixed branch, and a pure one has no delta to divide.
    before = {budget["id"]: budget["delta_shares"] for budget in old.asked["budgets"]}
    assert now == {of: shares and {"mixed": 0, **shares} for of, shares in before.items()}
    named = RECIPES[version].shares_of_ben
    of_ben = next(budget["id"] for budget in old.budgets if budget["principal"] == "ben")
    assert named is not None
    assert now[of_ben] == {"mixed": 0, **named}


@since("0.13.0")
def test_a_sharpened_answer_goes_on(old: OldHome) -> None:
    """Shows that a retry gets the stored bytes, that the mean serves what it serves, and that more is added to it."""
    assert old.services is not None
    kept = old.asked["sharpened"]["answer"]
    before = old.call("anna", "GET", "/v1/budgets").json()["budgets"]
    assert old.call("anna", "GET", kept["links"]["self"]).json() == kept
    address = f"/v1/queries/{old.asked['sharpened']['of']}:sharpen"
    again = old.call("anna", "POST", address, SHARPER, **{"Idempotency-Key": "sharper-1"})
    assert again.json() == kept
    body = old.question("moments")["body"]
    free = old.call("anna", "POST", "/v1/queries", {**body, **SHARPER}).json()
    assert (free["rows"], free["provenance"]["releases"]) == (kept["rows"], kept["provenance"]["releases"])
    assert old.call("anna", "GET", "/v1/budgets").json()["budgets"] == before
    # Only quoted: of several stored releases the most exact one serves, and other tests ask for this one.
    more = old.call("anna", "POST", "/v1/estimates", {**body, "spend": {"epsilon": "1"}}).json()
    (one,) = more["sharpening"]["releases"]
    assert one["release"] == kept["links"]["releases"][0]
    assert float(more["price"]["epsilon"]) < float(more["sharpening"]["anew"]["epsilon"])


@since("0.13.0")
def test_a_mixed_branch_goes_on(old: OldHome) -> None:
    """Shows that a charge put into the mixed branch stays there, and that both families are admitted beside it."""
    assert old.services is not None
    ledger = old.services.ledger
    (account,) = ledger.accounts(dataset="surgery", principal="anna")
    spent = account.spent
    assert spent.mixed_pure
    assert spent.mixed_mu_squared
    for noise in ("laplace", "gaussian"):
        body = {"dataset": "surgery", "sql": "SELECT COUNT(*) AS n FROM patients WHERE age > 25", "noise": noise}
        asked = {**body, "spend": {"epsilon": "1"}, "reuse": "none"}
        assert old.call("anna", "POST", "/v1/queries", asked).status_code == 200
    (now,) = ledger.accounts(dataset="surgery", principal="anna")
    assert (now.spent.mixed_pure or 0) > spent.mixed_pure
    assert (now.spent.mixed_mu_squared or 0) > spent.mixed_mu_squared
    assert ledger.audit().findings == ()


@since("0.11.0")
def test_a_statistic_and_chosen_bounds_are_there(old: OldHome) -> None:
    """Shows that a tested statistic and a model that chose bounds say what they said, and cost nothing more."""
    before = old.call("anna", "GET", "/v1/budgets").json()["budgets"]
    asked = old.asked["statistic"]
    again = old.call(
        "anna", "POST", "/v1/statistics", {**STATISTIC, "wait_ms": 30_000}, **{"Idempotency-Key": "statistic-1"}
    )
    assert {name: again.json()[name] for name in ("id", "outcome", "value")} == {
        name: asked[name] for name in ("id", "outcome", "value")
    }
    model = old.asked["paying"]
    again = old.call("anna", "POST", "/v1/models", {**PAYING, "wait_ms": 30_000}, **{"Idempotency-Key": "model-2"})
    assert (again.json()["id"], again.json()["model"]) == (model["id"], model["model"])
    assert old.call("anna", "GET", "/v1/budgets").json()["budgets"] == before


@of_0_1
@pytest.mark.parametrize("name", ["public_keys", "hidden_keys", "average", "retried"])
def test_the_data_is_served_or_says_what_to_run(old: OldHome, name: str) -> None:
    """Shows that a dataset of version 0.1.0 is answered as before, or refused with the command that upgrades it.

    A repeat of a stored answer is free where this version gives the release the same meaning, and is charged like a
    new question where it does not; it is never the old numbers under a new meaning.
    """
    asked = old.question(name)
    estimate = old.call(asked["principal"], "POST", "/v1/estimates", asked["body"])
    if estimate.status_code in (403, 404, 409, 422) and "dataset upgrade" in estimate.text:
        return
    assert estimate.status_code == 200, estimate.text
    answer = old.call(asked["principal"], "POST", "/v1/queries", asked["body"])
    assert answer.status_code == 200, answer.text
    releases = answer.json()["provenance"]["releases"]
    assert (releases == asked["answer"]["provenance"]["releases"]) is (estimate.json()["verdict"] == "free")


@of_0_1
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


def test_what_ended_without_an_answer_stays_so(old: OldHome) -> None:
    """Shows that a voided query stays free and a failed one charged, and that one left open is failed too."""
    assert old.services is not None
    found = {name: old.services.ledger.query(name) for name in old.left.ended}
    assert {name: None if query is None else query.state for name, query in found.items()} == old.left.ended
    assert all(query is not None and query.charged for query in found.values())


def test_asked_names_what_was_answered(old: OldHome) -> None:
    """The record beside the home is about this home: each answer is one of its queries."""
    assert old.services is not None
    assert {*old.left.answered} == {*old.asked["questions"]}
    for asked in old.asked["questions"].values():
        stored = old.services.ledger.query(asked["answer"]["id"])
        assert stored is not None
        assert stored.answer is not None
        assert json.loads(stored.answer)["id"] == asked["answer"]["id"]


def test_an_export_of_the_home_agrees(old: OldHome) -> None:
    """Shows that the auditor's program finds every price, balance, path and limit of earlier versions in order."""
    assert old.services is not None
    verifier = Program.Verifier()
    verifier.read(old.services.ledger.export(now=1), {})
    assert verifier.findings == []
    assert verifier.counts["entry"] >= len(old.entries) > 0
