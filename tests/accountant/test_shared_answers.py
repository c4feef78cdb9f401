"""Answers that share most of their bytes with another one."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from accountant.connection import open_engine
from accountant.errors import LedgerRejected
from accountant.ledger import Ledger
from accountant.request import SharedAnswer
from tests.accountant.making import analyst, core, request, root, spend
from tests.accountant.test_ledger_audit import tamper

WHOLE = b'{"id":"one",ROWS ROWS ROWS,"end":1}'
REPEAT = b'{"id":"another",ROWS ROWS ROWS,"end":22}'
SHARED = {"start": WHOLE.index(b"ROWS"), "end": WHOLE.index(b',"end'), "at": REPEAT.index(b"ROWS")}


def told(ledger: Ledger) -> tuple[str, SharedAnswer, str]:
    """A settled query, how a repeat shares its answer, and the account."""
    leaf = analyst(ledger, root(ledger))
    first = spend(ledger, request(leaf, core("core")), answer=WHOLE)
    return first.query_id, SharedAnswer(query_id=first.query_id, **SHARED), leaf.id


def repeat(ledger: Ledger, leaf: str, shared: SharedAnswer | None, **options: object) -> bytes | None:
    """A repeat of the told answer."""
    (release,) = ledger.releases_of(shared.query_id if shared is not None else "")
    asked = request(leaf, core("core"), reuse="own", **options)
    outcome = ledger.repeat(asked, {release.core_key: release.id}, REPEAT, shared=shared)
    assert outcome is not None
    return outcome.answer


def test_a_reference_reads_like_a_copy(ledger: Ledger, url: str) -> None:
    """By identifier, by idempotency key and by retry the answer is whole; stored is only what is its own."""
    _, shared, leaf = told(ledger)
    for number in range(2):
        assert repeat(ledger, leaf, shared, idempotency_key="key", query_id=f"q_{number}") == REPEAT
    record = ledger.query("q_0")
    assert record is not None
    assert record.answer == REPEAT
    earlier = ledger.earlier("analyst", "key", record.body_hash)
    assert earlier is not None
    assert earlier.answer == REPEAT
    assert all(listed.answer is None for listed in ledger.queries("analyst"))
    engine = open_engine(url)
    with engine.connect() as connection:
        own = connection.execute(text("SELECT answer FROM queries WHERE id = 'q_0'")).scalar_one()
    engine.dispose()
    assert bytes(own) == REPEAT.replace(b"ROWS ROWS ROWS", b"")
    assert ledger.audit().ok


def test_what_was_changed_is_not_served_through_a_repeat(ledger: Ledger, url: str) -> None:
    """A repeat has no end of its own: the answer that it shares bytes with is compared with what was posted."""
    _, shared, leaf = told(ledger)
    repeat(ledger, leaf, shared, query_id="q_repeat")
    forged = WHOLE.replace(b"ROWS", b"WORS").hex()
    value = f"X'{forged}'" if url.startswith("sqlite") else f"decode('{forged}', 'hex')"
    tamper(url, f"UPDATE queries SET answer = {value} WHERE id = '{shared.query_id}'")
    for read in (ledger.query, ledger.answer_of):
        with pytest.raises(LedgerRejected):
            read("q_repeat")


def test_the_same_answer_again_stores_nothing(ledger: Ledger) -> None:
    """An equal repeat is the query of before, when its releases still serve; a key is always stored."""
    first, shared, leaf = told(ledger)
    repeat(ledger, leaf, shared, query_id="q_repeat")
    (release,) = ledger.releases_of(first)
    asked = request(leaf, core("core"), reuse="own")
    outcome = ledger.repeat(asked, {release.core_key: release.id}, REPEAT, again="q_repeat")
    assert outcome is not None
    assert (outcome.query_id, outcome.answer, outcome.fresh) == ("q_repeat", REPEAT, False)
    assert len(ledger.queries("analyst")) == 2
    better = request(leaf, core("core", quality="0.2"), reuse="none")
    spend(ledger, better)
    assert ledger.repeat(asked, {release.core_key: release.id}, REPEAT, again="q_repeat") is None
    with pytest.raises(ValueError, match="idempotency key"):
        ledger.repeat(
            request(leaf, core("core"), idempotency_key="key"), {release.core_key: release.id}, REPEAT, again="q_repeat"
        )


def test_the_audit_finds_a_reference_to_nothing(ledger: Ledger) -> None:
    """A reference beyond the end of the other answer, or to another reference, is a finding."""
    first, shared, leaf = told(ledger)
    repeat(ledger, leaf, shared, query_id="q_good")
    (release,) = ledger.releases_of(first)
    for number, wrong in enumerate(
        (
            SharedAnswer(query_id=first, start=SHARED["start"], end=len(WHOLE) + 1, at=0),
            SharedAnswer(query_id="q_good", start=0, end=1, at=0),
            SharedAnswer(query_id="q_absent", start=0, end=1, at=0),
        )
    ):
        asked = request(leaf, core("core"), reuse="own", query_id=f"q_wrong_{number}")
        ledger.repeat(asked, {release.core_key: release.id}, REPEAT, shared=wrong)
    findings = ledger.audit().findings
    assert [(finding.code, finding.subject) for finding in findings] == [
        ("wrong_answer", f"q_wrong_{number}") for number in range(3)
    ]
