"""Releases that are measured in addition to stored ones: the difference is charged, and nobody reads it for that."""

from __future__ import annotations

import json
import secrets
from fractions import Fraction

import pytest

from accountant.account import Account
from accountant.errors import PriceMoved
from accountant.ledger import Ledger
from accountant.request import Base, CoreCharge, Reserved, StoredRelease
from privacy.events import Event, event_to_json
from tests.accountant.making import analyst, core, gaussian, request, root, sha256, spend
from tests.accountant.test_ledger_audit import tamper

FIRST, ADDED = gaussian("0.001"), gaussian("0.0005")


def raised(base: StoredRelease, *, events: tuple[Event, ...] = (ADDED,), quality: object = "0.2") -> CoreCharge:
    """A core that is measured in addition to a stored release."""
    keys = (sha256("core"), sha256("raised"))
    own = Base(release=base.id, keys=keys, events=base.events)
    return CoreCharge(core_key=sha256("raised"), quality=Fraction(str(quality)), events=events, base=own)


def posted(ledger: Ledger, reserved: Reserved, charge: CoreCharge, principal: str) -> StoredRelease:
    """The release of a charge, posted."""
    one = StoredRelease(
        id=f"r_{secrets.token_hex(8)}",
        core_key=charge.core_key,
        quality=charge.quality,
        principal=principal,
        dataset="people",
        query_id=reserved.query_id,
        events=charge.released,
        body=b"noisy",
    )
    ledger.post(reserved.query_id, [one], b"answer")
    return one


class Books:
    """A ledger with two analysts, of whom anna has a release."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.top = root(ledger, epsilon=10, delta="0.00001", pure=False)
        self.anna, self.ben = (self._analyst(name) for name in ("anna", "ben"))
        spend(ledger, request(self.anna, core("core", FIRST), principal="anna"))
        found = ledger.find_release(sha256("core"), principal="anna")
        assert found is not None
        self.base = found

    def _analyst(self, name: str) -> Account:
        return analyst(self.ledger, self.top, principal=name, epsilon=5, delta="0.000001", pure=False)

    def spent(self, account: Account) -> Fraction:
        """Mu squared."""
        return Fraction(self.ledger.account(account.id).spent.mu_squared or 0, 10**12)


@pytest.fixture
def books(ledger: Ledger) -> Books:
    """On both databases."""
    return Books(ledger)


def test_the_difference_is_charged_and_the_release_has_the_events_of_both(books: Books) -> None:
    """Payer and root pay the rest; the audit finds both in what is stored."""
    charge = raised(books.base)
    reserved = books.ledger.reserve(request(books.anna, charge, principal="anna", reuse="own"))
    one = posted(books.ledger, reserved, charge, "anna")
    assert one.events == (FIRST, ADDED)
    assert books.spent(books.anna) == books.spent(books.top) == Fraction("0.0015")
    assert books.ledger.audit().findings == ()


@pytest.mark.parametrize("paid_before", [False, True], ids=["neither", "the base"])
def test_a_reader_is_charged_the_whole(books: Books, paid_before: bool) -> None:
    """Whoever read neither pays for both; so does whoever paid for the first alone, which is more than is lost."""
    if paid_before:
        spend(books.ledger, request(books.ben, core("core", FIRST), principal="ben", reuse="charged"))
        assert books.spent(books.ben) == Fraction("0.001")
    charge = raised(books.base)
    reserved = books.ledger.reserve(request(books.anna, charge, principal="anna", reuse="own"))
    posted(books.ledger, reserved, charge, "anna")
    before = books.spent(books.ben)
    asked = core("raised", gaussian("0.0015"), quality="0.2")
    got = books.ledger.reserve(request(books.ben, asked, principal="ben", reuse="charged"))
    books.ledger.post(got.query_id, [], b"answer")
    assert books.spent(books.ben) - before == Fraction("0.0015")
    assert books.spent(books.top) == Fraction("0.0015")
    assert books.ledger.audit().findings == ()


def test_a_base_that_is_not_the_best_any_more_moves_the_price(books: Books) -> None:
    """Nothing is charged on a release that another one has overtaken, nor on one that the reader has not."""
    spend(books.ledger, request(books.anna, core("core", FIRST, quality="0.15"), principal="anna"))
    spent = books.spent(books.anna)
    for account, principal, reuse in (
        (books.anna, "anna", "own"),
        (books.ben, "ben", "own"),
        (books.ben, "ben", "charged"),
        (books.anna, "anna", "none"),
    ):
        with pytest.raises(PriceMoved):
            books.ledger.reserve(request(account, raised(books.base), principal=principal, reuse=reuse))
    assert books.spent(books.anna) == spent
    assert books.spent(books.ben) == 0


def test_what_failed_stays_charged_and_the_base_remains(books: Books) -> None:
    """A difference whose measurement failed is spent; the next one rests on the same base."""
    charge = raised(books.base)
    reserved = books.ledger.reserve(request(books.anna, charge, principal="anna", reuse="own"))
    books.ledger.fail(reserved.query_id)
    again = books.ledger.reserve(request(books.anna, charge, principal="anna", reuse="own"))
    posted(books.ledger, again, charge, "anna")
    assert books.spent(books.anna) == Fraction("0.002")
    assert books.ledger.audit().findings == ()


def test_a_release_without_the_events_of_its_base_is_refused_and_found(books: Books, url: str) -> None:
    """Whoever reads it would be charged for the difference alone: the ledger takes none, and the audit finds one."""
    charge = raised(books.base)
    reserved = books.ledger.reserve(request(books.anna, charge, principal="anna", reuse="own"))
    bare = CoreCharge(core_key=charge.core_key, quality=charge.quality, events=charge.events)
    with pytest.raises(ValueError, match="privacy events"):
        posted(books.ledger, reserved, bare, "anna")
    made = posted(books.ledger, reserved, charge, "anna")
    assert books.ledger.audit().findings == ()
    events = json.dumps([event_to_json(event) for event in charge.events])
    tamper(url, f"UPDATE releases SET events = '{events}' WHERE id = '{made.id}'".replace(":", "\\:"))
    assert {found.code for found in books.ledger.audit().findings} == {"uncharged_release", "wrong_release"}
