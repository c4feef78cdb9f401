"""What ends of queries say was kept: answers, releases and owners that somebody changed are found, and not served."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from accountant.entry import EMPTY, Kept, body_hash
from accountant.errors import LedgerRejected
from accountant.ledger import Ledger
from accountant.reader import LedgerReader
from accountant.request import StoredRelease
from accountant.states import EntryKind
from accountant.tables import SCHEMA
from privacy.events import event_to_json
from server.errors import problem_of_ledger
from tests.accountant.making import analyst, core, laplace, request, root, sha256, spend
from tests.accountant.test_ledger_audit import tamper


@pytest.fixture
def asked(ledger: Ledger) -> str:
    """The query of a released and answered count, whose root is the uppermost account."""
    leaf = analyst(ledger, root(ledger))
    return spend(ledger, request(leaf, core("a", laplace("0.01")))).query_id


def whole(release: StoredRelease) -> str:
    """The hash of a release, as accountant/README.md says it."""
    events = json.dumps([event_to_json(event) for event in release.events], sort_keys=True, separators=(",", ":"))
    what = [release.core_key, release.dataset, release.principal, int(release.quality * 10**12), events]
    text = json.dumps([*what, release.frame, release.coarse, release.held], separators=(",", ":"))
    return hashlib.sha256(text.encode() + b"\n" + release.body).hexdigest()


def read_all(ledger: Ledger, query: str) -> None:
    """Everything that would show what the query released or answered."""
    ledger.query(query)
    ledger.answer_of(query)
    ledger.releases_of(query)
    ledger.find_release(core("a").core_key)


def test_the_end_of_a_query_says_what_was_kept(ledger: Ledger, asked: str) -> None:
    """In the entry of the uppermost account, once: whose it is, and the hashes of its answer and its releases; of one
    that failed no answer; of one that was voided nothing."""
    (release,) = ledger.releases_of(asked)
    top, leaf = (ledger.entries(account.id) for account in ledger.accounts())
    ends = [next(one for one in entries if one.kind is EntryKind.POST) for entries in (top, leaf)]
    assert ends[1].details == EMPTY
    assert Kept.read(ends[0].details) == Kept("analyst", body_hash(b"answer"), {release.id: whole(release)})
    assert SCHEMA >= 8
    account = ledger.accounts()[1]
    ledger.fail(ledger.reserve(request(account)).query_id)
    ledger.void(ledger.reserve(request(account)).query_id)
    failed, voided = (next(one for one in ledger.entries(ledger.accounts()[0].id) if one.kind is kind)
                      for kind in (EntryKind.FAIL, EntryKind.VOID))  # fmt: skip
    assert Kept.read(failed.details) == Kept("analyst", None, {})
    assert Kept.read(voided.details) is None
    assert ledger.audit().findings == ()
    read_all(ledger, asked)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE queries SET answer = CAST('forged' AS {bytes}) WHERE state = 'settled'", "wrong_answer"),
        ("UPDATE releases SET body = CAST('forged' AS {bytes})", "wrong_release"),
        ("UPDATE releases SET body = 'a text'", "wrong_release"),
        ("UPDATE releases SET id = 'r_other'", "wrong_release"),
        ("UPDATE queries SET principal = 'ben'", "wrong_owner"),
        ("UPDATE releases SET core_key = 'other'", "wrong_release"),
        ("UPDATE releases SET frame = 'other'", "wrong_release"),
        ("UPDATE releases SET principal = 'ben'", "wrong_release"),
        ("UPDATE releases SET quality = quality + 1", "wrong_release"),
        ("DELETE FROM releases", "wrong_release"),
        ("UPDATE accounts SET principal = 'ben' WHERE parent IS NOT NULL", "wrong_owner"),
    ],
)
def test_what_was_changed_is_found_and_not_served(
    ledger: Ledger, asked: str, url: str, statement: str, code: str
) -> None:
    """The audit names it; where it would be shown it is refused instead, and from then on nothing is spent."""
    tamper(url, statement.format(bytes="BLOB" if url.startswith("sqlite") else "BYTEA"))
    assert code in {finding.code for finding in ledger.audit().findings}
    if "DELETE" in statement or "accounts" in statement:
        return
    assert ledger.rejected is None
    with pytest.raises(LedgerRejected, match="does not agree with itself") as served:
        read_all(ledger, asked)
    assert problem_of_ledger(served.value, spending=True).code == "charge_unknown"
    assert ledger.rejected is not None
    (leaf,) = ledger.accounts(principal="analyst")
    before = leaf.spent
    with pytest.raises(LedgerRejected) as spent:
        ledger.reserve(request(leaf))
    assert problem_of_ledger(spent.value, spending=True).code == "unavailable"
    with pytest.raises(LedgerRejected):
        ledger.check_writable()
    assert ledger.account(leaf.id).spent == before


def test_an_answer_that_was_posted_whole_shares_nothing(ledger: Ledger, asked: str, url: str) -> None:
    """Whoever makes it a part of another answer does not take it out of what is checked."""
    (leaf,) = ledger.accounts(principal="analyst")
    other = spend(ledger, request(leaf)).query_id
    part = f"CAST('forged' AS {'BLOB' if url.startswith('sqlite') else 'BYTEA'})"
    sets = f"answer = {part}, answer_of = '{other}', answer_at = 0, answer_from = 0, answer_to = 1"
    tamper(url, f"UPDATE queries SET {sets} WHERE id = '{asked}'")
    assert "wrong_answer" in {finding.code for finding in ledger.audit().findings}
    for read in (ledger.query, ledger.answer_of):
        with pytest.raises(LedgerRejected):
            read(asked)


def test_a_retry_is_of_its_owner(ledger: Ledger, url: str) -> None:
    """A key that somebody gave to another principal's query does not show them its answer."""
    leaf = analyst(ledger, root(ledger))
    spend(ledger, request(leaf, idempotency_key="again"))
    assert ledger.earlier("analyst", "again", sha256("body")) is not None
    tamper(url, "UPDATE queries SET principal = 'ben'")
    with pytest.raises(LedgerRejected):
        ledger.earlier("ben", "again", sha256("body"))


def test_an_end_that_says_nothing_is_one_of_before(ledger: Ledger, asked: str, url: str) -> None:
    """Entries of earlier versions promise nothing and are served; but taking a promise out of an entry breaks its
    hash, and so does making one."""
    tamper(url, "UPDATE entries SET details = '{}' WHERE kind = 'post'")
    read_all(ledger, asked)
    assert "wrong_hash" in {finding.code for finding in ledger.audit().findings}


@pytest.mark.parametrize("details", ['{"a"\\:1}', '{"owner"\\:"x","releases"\\:7}'])
def test_an_end_that_says_what_none_says_is_refused(ledger: Ledger, asked: str, url: str, details: str) -> None:
    """Details of another shape are a finding and a refusal, never a traceback."""
    tamper(url, f"UPDATE entries SET details = '{details}' WHERE kind = 'post'")
    assert "wrong_state" in {finding.code for finding in ledger.audit().findings}
    with pytest.raises(LedgerRejected):
        read_all(ledger, asked)


def test_no_entry_is_made_by_what_is_not_charged(
    ledger: Ledger, asked: str, open_ledger: Callable[..., Ledger]
) -> None:
    """A repeat is served from the release, which is checked; it has no entry of its own."""
    (leaf,) = ledger.accounts(principal="analyst")
    again = ledger.reserve(request(leaf, core("a", laplace("0.01")), reuse="own"))
    ledger.post(again.query_id, [], b"again")
    assert [entry.kind for entry in ledger.entries(leaf.id)] == ["grant", "reserve", "post"]
    read_all(open_ledger("other"), again.query_id)


def test_a_ledger_that_is_opened_for_reading_cannot_be_written(ledger: Ledger, asked: str, url: str) -> None:
    """On both databases: the database refuses, the audit and an export are read, and the mark is compared."""
    with contextlib.closing(LedgerReader(url)) as reader, reader._engine.connect() as connection:
        with pytest.raises(DBAPIError, match=r"(?i)read-?only"):
            connection.execute(text("UPDATE accounts SET spent_pure = 0"))
        connection.rollback()
        assert reader.audit() == ledger.audit()
        assert b"".join(reader.export(now=1)) == b"".join(ledger.export(now=1))
        assert (reader.behind, reader.query(asked) == ledger.query(asked)) == (False, True)
