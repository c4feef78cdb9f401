"""Reading what another account paid for: charged below the common ancestor, once, in one transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from sqlalchemy import text

from accountant.account import Account
from accountant.connection import open_engine
from accountant.errors import BudgetExhausted
from accountant.filter import FilterKind
from accountant.ledger import Ledger
from accountant.request import Base
from tests.accountant.making import analyst, core, gaussian, laplace, limit, releases_for, request, root, spend

TENTH = 10**11


def group(ledger: Ledger, parent: Account, name: str, epsilon: object = 1) -> Account:
    """An account without a principal below a root."""
    return ledger.create_account(
        dataset=parent.dataset,
        parent=parent.id,
        principal=None,
        name=name,
        limit=limit(epsilon),
        filter=FilterKind.PURE,
        actor="admin",
    )


class Tree:
    """A root, two groups, two analysts in the first and one in the second."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.root = root(ledger)
        self.first, self.second = group(ledger, self.root, "first"), group(ledger, self.root, "second")
        self.anna = analyst(ledger, self.first, principal="anna")
        self.ben = analyst(ledger, self.first, principal="ben")
        self.carl = analyst(ledger, self.second, principal="carl")

    def spent(self) -> dict[str, int]:
        """Tenths of epsilon that each account has spent."""
        named = {"root": self.root, "first": self.first, "second": self.second}
        named |= {"anna": self.anna, "ben": self.ben, "carl": self.carl}
        found = {name: self.ledger.account(account.id).spent.pure for name, account in named.items()}
        return {name: (spent or 0) // TENTH for name, spent in found.items()}

    def ask(self, who: str, name: str = "core", *, quality: object = "0.1", reuse: str = "charged") -> bool:
        """Asks and posts; whether everything was served by stored releases."""
        account: Account = getattr(self, who)
        asked = request(account, core(name, quality=quality), principal=who, reuse=reuse)
        reserved = self.ledger.reserve(asked)
        self.ledger.post(reserved.query_id, releases_for(self.ledger, reserved, asked.cores), b"answer")
        return len(reserved.reused) == len(asked.cores)


@pytest.fixture
def tree(ledger: Ledger) -> Tree:
    """Accounts in two groups."""
    return Tree(ledger)


def test_the_accounts_below_the_common_ancestor_are_charged(tree: Tree) -> None:
    """Within a group only the reader pays; from another group the group pays as well; the root pays once."""
    assert not tree.ask("anna")
    assert tree.spent() == {"root": 1, "first": 1, "anna": 1, "second": 0, "ben": 0, "carl": 0}
    assert tree.ask("ben")
    assert tree.spent() == {"root": 1, "first": 1, "anna": 1, "second": 0, "ben": 1, "carl": 0}
    assert tree.ask("carl")
    assert tree.spent() == {"root": 1, "first": 1, "anna": 1, "second": 1, "ben": 1, "carl": 1}
    assert tree.ledger.audit().findings == ()


def test_reading_again_is_free(tree: Tree) -> None:
    """Who was charged once reads for nothing, in one transaction; so does the one who paid for the making."""
    tree.ask("anna")
    tree.ask("carl")
    before = tree.spent()
    for who in ("anna", "carl"):
        assert tree.ask(who)
    release = tree.ledger.find_release(core("core").core_key)
    assert release is not None
    asked = request(tree.carl, core("core"), principal="carl", reuse="charged")
    outcome = tree.ledger.repeat(asked, {release.core_key: release.id}, b"answer")
    assert outcome is not None
    assert tree.ledger.has_read("carl", release.id)
    assert not tree.ledger.has_read("ben", release.id)
    assert tree.spent() == before
    assert tree.ledger.audit().ok


def test_releases_that_serve_together_are_each_ones_own_or_were_paid_for(tree: Tree) -> None:
    """All or none, and never for a charge: who lacks one of two, or only could read it, is charged for the question.

    Each is kept by its own key, so the repeat of such an answer needs both as well.
    """
    tree.ask("anna", "total")
    tree.ask("anna", "part")
    parts = [core(name) for name in ("total", "part")]
    asked = replace(core("rest"), joined=tuple((one.core_key, one.quality) for one in parts))
    tree.ask("ben", "total")
    for who, free in (("ben", False), ("carl", False), ("anna", True)):
        before, account = tree.spent(), getattr(tree, who)
        reserved = tree.ledger.reserve(request(account, asked, principal=who, reuse="charged"))
        assert bool(reserved.reused) == free
        assert (tree.spent() == before) == free
        if free:
            assert {key: one.core_key for key, one in reserved.reused.items()} == {
                asked.core_key: parts[0].core_key,
                parts[1].core_key: parts[1].core_key,
            }
        tree.ledger.void(reserved.query_id)
    tree.ask("ben", "part")
    names = {one.core_key: found.id for one in parts if (found := tree.ledger.find_release(one.core_key)) is not None}
    served = {asked.core_key: names[parts[0].core_key], parts[1].core_key: names[parts[1].core_key]}
    again = request(tree.ben, asked, principal="ben", reuse="charged")
    assert tree.ledger.repeat(again, {asked.core_key: served[asked.core_key]}, b"answer") is None
    assert tree.ledger.repeat(again, served, b"answer") is not None
    better = replace(asked, joined=(*asked.joined[:1], (parts[1].core_key, parts[1].quality * 2)))
    assert not tree.ledger.reserve(request(tree.ben, better, principal="ben", reuse="charged")).reused
    with pytest.raises(ValueError, match="keys of their own"):
        replace(asked, joined=(*asked.joined, asked.joined[1]))
    assert tree.ledger.audit().findings == ()


def test_a_repeat_charges_nobody(tree: Tree) -> None:
    """The free way in one transaction leaves a release that must be paid for to `reserve`."""
    tree.ask("anna")
    release = tree.ledger.find_release(core("core").core_key)
    assert release is not None
    asked = request(tree.ben, core("core"), principal="ben", reuse="charged")
    assert tree.ledger.repeat(asked, {release.core_key: release.id}, b"answer") is None
    assert tree.spent()["ben"] == 0


def test_a_small_limit_does_not_read_a_large_release(ledger: Ledger) -> None:
    """A limit of 0.001 reads nothing that cost 1: neither for nothing nor for a charge that it does not cover."""
    tree = Tree(ledger)
    tree.ask("anna", quality="0.9")
    small = analyst(ledger, tree.second, principal="dora", epsilon="0.001")
    asked = request(small, core("core", quality="0.001"), principal="dora", reuse="charged")
    reserved = ledger.reserve(asked)
    assert not reserved.reused, "measured anew for what was agreed, not read for more"
    with pytest.raises(BudgetExhausted):
        ledger.reserve(request(small, core("core", quality="0.9"), principal="dora", reuse="charged"))
    assert ledger.account(small.id).spent.pure == TENTH // 100
    assert ledger.audit().ok


def test_nobody_is_charged_more_than_was_asked(tree: Tree) -> None:
    """A better release than was asked for, which costs more, is not sold unasked; an equal one is read."""
    tree.ask("anna", quality="0.5")
    assert not tree.ask("ben", quality="0.1")
    assert tree.spent()["ben"] == 1
    assert tree.ask("carl", quality="0.1")
    assert tree.spent() == {"root": 6, "first": 6, "anna": 5, "second": 1, "ben": 1, "carl": 1}
    assert tree.ledger.audit().ok


def test_a_reading_needs_no_room_above_the_common_ancestor(tree: Tree) -> None:
    """A root that is spent refuses what is new, and lets readers pay from their own accounts."""
    tree.ask("anna", "core", quality="0.5")
    tree.ask("anna", "rest", quality="0.5")
    with pytest.raises(BudgetExhausted) as refused:
        tree.ask("carl", "new")
    assert refused.value.root
    assert tree.ask("carl", "core", quality="0.5")
    assert tree.spent()["root"] == 10


def test_a_pure_account_reads_no_gaussian_release(ledger: Ledger) -> None:
    """What its filter does not admit is not read: the core is measured anew, with the noise that was asked."""
    top = root(ledger, epsilon=10, delta="0.00001", pure=False)
    anna = analyst(ledger, top, principal="anna", epsilon=10, delta="0.000001", pure=False)
    ben = analyst(ledger, top, principal="ben", epsilon=10)
    spend(ledger, request(anna, core("core", gaussian("0.0001")), principal="anna"))
    asked = request(ben, core("core", laplace("0.1")), principal="ben", reuse="charged")
    reserved = ledger.reserve(asked)
    assert not reserved.reused
    assert not reserved.read


def test_a_query_with_fresh_and_read_cores_charges_each_account_its_part(tree: Tree) -> None:
    """The root pays for the fresh core alone, the reader for both, and each account's entry says so."""
    tree.ask("anna", "old")
    asked = request(
        tree.carl, core("old"), core("new", quality="0.2"), principal="carl", reuse="charged", idempotency_key="key"
    )
    reserved = tree.ledger.reserve(asked)
    assert set(reserved.reused) == {core("old").core_key} == set(reserved.read)
    assert {part.account: part.epsilon for part in reserved.charged} == {
        tree.carl.id: Fraction(3, 10),
        tree.second.id: Fraction(3, 10),
        tree.root.id: Fraction(2, 10),
    }
    assert tree.spent() == {"root": 3, "first": 1, "anna": 1, "second": 3, "ben": 0, "carl": 3}
    assert tree.ledger.audit().ok
    tree.ledger.post(reserved.query_id, releases_for(tree.ledger, reserved, asked.cores), b"answer")
    record = tree.ledger.query(reserved.query_id)
    assert record is not None
    assert set(record.reused) == {core("old").core_key}
    assert '"read":[{' in tree.ledger.entries(tree.carl.id)[1].details
    assert '"read"' not in tree.ledger.entries(tree.root.id)[-2].details
    assert tree.ledger.audit().ok
    assert tree.ledger.earlier("carl", "key", asked.body_hash) is not None


def test_a_voided_reading_is_given_back_and_not_paid(tree: Tree) -> None:
    """What was told to nobody costs nothing; the next reading is charged; a failed one stays charged and is paid."""
    tree.ask("anna")

    def reserve() -> str:
        asked = request(tree.carl, core("core"), principal="carl", reuse="charged")
        return tree.ledger.reserve(asked).query_id

    tree.ledger.void(reserve())
    assert tree.spent()["carl"] == tree.spent()["second"] == 0
    assert not tree.ledger.has_read("carl", tree.ledger.find_release(core("core").core_key).id)  # type: ignore[union-attr]
    tree.ledger.fail(reserve())
    assert tree.spent()["carl"] == tree.spent()["second"] == 1
    assert tree.ask("carl")
    assert tree.spent()["carl"] == 1
    assert tree.ledger.audit().ok


def test_two_readings_at_once_never_read_uncharged(open_ledger: Callable[..., Ledger]) -> None:
    """Over two servers a reader is charged at least once before anything is told, and the ledger agrees with itself."""
    ledgers = [open_ledger(f"server {number}") for number in range(2)]
    tree = Tree(ledgers[0])
    tree.ask("anna")
    served: list[int] = []

    def read(ledger: Ledger) -> None:
        asked = request(tree.carl, core("core"), principal="carl", reuse="charged")
        reserved = ledger.reserve(asked)
        assert reserved.reused
        served.append(len(reserved.charged))
        ledger.post(reserved.query_id, (), b"answer")

    threads = [threading.Thread(target=read, args=(ledgers[number % 2],)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(served) == 6
    assert tree.spent()["carl"] == sum(count > 0 for count in served) >= 1
    assert tree.spent()["root"] == 1
    assert ledgers[0].audit().ok


def test_a_group_that_paid_for_a_difference_only_pays_for_the_whole(tree: Tree) -> None:
    """Anna makes her answer more precise from the second group, which never paid for it: a reader there does."""
    tree.ask("anna")
    before = tree.ledger.find_release(core("core").core_key)
    assert before is not None
    other = analyst(tree.ledger, tree.second, principal="anna")
    base = Base(release=before.id, keys=(before.core_key,), events=before.events)
    for name, quality, rests_on in (("mean", "0.3", base), ("twice", "0.4", None)):
        if rests_on is None:
            made = tree.ledger.find_release(core("mean").core_key)
            assert made is not None
            rests_on = Base(release=made.id, keys=(made.core_key,), events=made.events)
        charge = replace(core(name, laplace("0.1"), quality=quality), base=rests_on)
        spend(tree.ledger, request(other, charge, principal="anna", reuse="charged"))
    assert tree.spent() == {"root": 3, "first": 1, "anna": 1, "second": 2, "ben": 0, "carl": 0}
    assert tree.ask("carl", "twice", quality="0.4")
    assert tree.spent() == {"root": 3, "first": 1, "anna": 1, "second": 5, "ben": 0, "carl": 3}
    assert tree.ask("carl", "twice", quality="0.4"), "and only once"
    assert tree.spent()["carl"] == 3
    assert tree.ledger.audit().findings == ()


def test_free_and_own_are_as_before(tree: Tree) -> None:
    """`any` serves everybody for nothing and charges nobody; `own` measures anew."""
    tree.ask("anna")
    assert tree.ask("carl", reuse="any")
    assert tree.spent()["carl"] == 0
    assert not tree.ask("ben", reuse="own")
    assert tree.ledger.audit().ok


def test_the_audit_finds_a_reading_that_was_not_charged(tree: Tree, url: str) -> None:
    """A row that says "paid" without its entry, as a shortcut would leave it, is a finding; rows never change."""
    tree.ask("anna")
    release = tree.ledger.find_release(core("core").core_key)
    assert release is not None
    engine = open_engine(url)
    try:
        with engine.connect() as connection:
            statement = (
                "INSERT INTO readings (account, release, core_key, query_id, created) VALUES (:a, :r, :c, :q, 1)"
            )
            connection.execute(
                text(statement),
                {"a": tree.carl.id, "r": release.id, "c": release.core_key, "q": release.query_id},
            )
            connection.commit()
        assert [finding.code for finding in tree.ledger.audit().findings] == ["uncharged_reading"]
        for change in ("DELETE FROM readings", "UPDATE readings SET account = account"):
            with engine.connect() as connection, pytest.raises(Exception, match="kept"):
                connection.execute(text(change))
    finally:
        engine.dispose()
