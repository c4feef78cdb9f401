"""The ledger's steps, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from accountant.account import Account, FilterKind, Limit
from accountant.connection import open_engine
from accountant.entry import GENESIS, Amounts, Entry
from accountant.errors import (
    BudgetExhausted,
    IdempotencyConflict,
    IllegalTransition,
    LedgerUnavailable,
    PriceMoved,
    UnknownAccount,
    UnknownQuery,
)
from accountant.filter import Sums
from accountant.ledger import Ledger
from accountant.request import CoreCharge, StoredRelease
from privacy.events import TruncatedGeometricEvent
from tests.accountant.making import (
    analyst,
    core,
    gaussian,
    laplace,
    limit,
    releases_for,
    request,
    root,
    sha256,
    spend,
)

PICO = 10**12
Result = TypeVar("Result")


class TestAccounts:
    """Opening and reading accounts."""

    def test_reads_back_what_was_opened(self, ledger: Ledger) -> None:
        """An account keeps its limit, filter and budgets exactly."""
        top = root(ledger, epsilon="2.5", delta="1e-6", pure=False)
        below = analyst(ledger, top, epsilon="0.000000000001")
        assert ledger.account(top.id) == top
        assert ledger.account(below.id) == below
        assert top.limit == Limit(epsilon=Fraction(5, 2), delta=Fraction(1, 10**6))
        assert top.branches.mu_squared is not None
        assert ledger.path(below.id) == (below, top)
        assert ledger.accounts(dataset="people") == [top, below]
        assert ledger.accounts(principal="analyst") == [below]
        assert ledger.accounts(dataset="others") == []

    def test_one_root_for_a_dataset(self, ledger: Ledger) -> None:
        """A second root would double what can be told about the same people."""
        root(ledger)
        with pytest.raises(ValueError, match="root account"):
            root(ledger)
        assert len(ledger.accounts()) == 1

    def test_refuses_a_parent_of_another_dataset(self, ledger: Ledger) -> None:
        """A branch of the tree cannot leave its dataset."""
        top = root(ledger)
        with pytest.raises(ValueError, match="dataset of its parent"):
            ledger.create_account(
                dataset="visits",
                parent=top.id,
                principal=None,
                name="x",
                limit=limit(),
                filter=FilterKind.PURE,
                actor="a",
            )
        with pytest.raises(UnknownAccount):
            ledger.create_account(
                dataset="people",
                parent="b_no",
                principal=None,
                name="x",
                limit=limit(),
                filter=FilterKind.PURE,
                actor="a",
            )

    def test_refuses_too_deep_a_tree_and_empty_texts(self, ledger: Ledger) -> None:
        """Everything has a limit."""
        account = root(ledger)
        for _ in range(7):
            account = analyst(ledger, account)
        with pytest.raises(ValueError, match="deep"):
            analyst(ledger, account)
        with pytest.raises(ValueError, match="characters"):
            analyst(ledger, account, principal=" ")

    def test_pure_account_has_no_delta(self, ledger: Ledger) -> None:
        """A limit that does not suit the filter opens nothing."""
        with pytest.raises(ValueError, match="delta 0"):
            root(ledger, delta="1e-6")
        assert ledger.accounts() == []

    def test_unknown_account(self, ledger: Ledger) -> None:
        """Reading an account that is not there raises."""
        for read in (ledger.account, ledger.path):
            with pytest.raises(UnknownAccount):
                read("b_none")
        with pytest.raises(UnknownAccount):
            ledger.change_limit("b_none", limit(), actor="a", reason="r")


class TestReserve:
    """Charging."""

    def test_debits_the_whole_path(self, ledger: Ledger) -> None:
        """A charge is on the leaf and on every account above it, exactly."""
        top = root(ledger, epsilon=10)
        middle = analyst(ledger, top, principal="group", epsilon=5)
        leaf = ledger.create_account(
            dataset="people",
            parent=middle.id,
            principal="analyst",
            name="x",
            limit=limit(1),
            filter=FilterKind.PURE,
            actor="admin",
        )
        reserved = ledger.reserve(request(leaf, core("a", laplace("0.25"))))
        assert reserved.fresh
        assert reserved.state == "reserved"
        assert [(leaf.id, Fraction(1, 4), 0), (middle.id, Fraction(1, 4), 0), (top.id, Fraction(1, 4), 0)] == list(
            reserved.charged
        )
        for account in (leaf, middle, top):
            now = ledger.account(account.id)
            assert now.spent.pure == PICO // 4
            assert now.reserved == now.spent
        assert ledger.audit().ok

    def test_ten_tenths_fill_one_exactly(self, ledger: Ledger) -> None:
        """Ten charges of 0.1 fit a limit of 1 and the eleventh does not: no float sums, in any order."""
        leaf = analyst(ledger, root(ledger, epsilon=10))
        for _ in range(10):
            ledger.reserve(request(leaf))
        with pytest.raises(BudgetExhausted) as refused:
            ledger.reserve(request(leaf, core("tiny", laplace("0.000000000001"))))
        assert refused.value.account == leaf.id
        assert not refused.value.root
        assert [(short.measure, short.remaining) for short in refused.value.shortages] == [("pure", 0)]
        assert ledger.account(leaf.id).spent.pure == PICO

    def test_a_refusal_changes_nothing(self, ledger: Ledger) -> None:
        """No account, no entry and no query is touched when one account on the path refuses."""
        top = root(ledger, epsilon=10)
        leaf = analyst(ledger, top, epsilon="0.05")
        before = ledger.audit()
        asked = request(leaf)
        with pytest.raises(BudgetExhausted):
            ledger.reserve(asked)
        assert ledger.audit() == before
        assert ledger.account(top.id) == top
        assert ledger.query(asked.query_id) is None

    def test_several_cores_are_one_charge(self, ledger: Ledger) -> None:
        """The losses of all events are added before they are rounded up, once."""
        leaf = analyst(ledger, root(ledger))
        third = laplace("1/3")
        ledger.reserve(request(leaf, core("a", third, third), core("b", third)))
        assert ledger.account(leaf.id).spent.pure == PICO

    def test_rounds_up_once_per_charge(self, ledger: Ledger) -> None:
        """What is spent is never understated."""
        leaf = analyst(ledger, root(ledger))
        ledger.reserve(request(leaf, core("a", laplace("1/3"))))
        assert ledger.account(leaf.id).spent.pure == PICO // 3 + 1

    def test_gaussian_noise_on_a_pure_account(self, ledger: Ledger) -> None:
        """A charge without a pure epsilon is refused by a pure account, whatever its size."""
        leaf = analyst(ledger, root(ledger, epsilon=1000), epsilon=1000)
        with pytest.raises(BudgetExhausted):
            ledger.reserve(request(leaf, core("a", gaussian("0.000001"))))

    def test_gaussian_noise_kills_the_pure_branch_only(self, ledger: Ledger) -> None:
        """On an approximate account Gaussian charges go to mu squared and rho; the pure branch ends."""
        leaf = analyst(ledger, root(ledger, epsilon=10, delta="1e-6", pure=False), epsilon=1, delta="1e-6", pure=False)
        ledger.reserve(request(leaf, core("a", gaussian("0.01"))))
        now = ledger.account(leaf.id)
        assert now.spent == Sums(None, PICO // 200, PICO // 100, mixed_mu_squared=PICO // 100)
        with pytest.raises(BudgetExhausted):
            ledger.reserve(request(leaf, core("b", gaussian(1))))
        assert ledger.account(leaf.id) == now

    def test_delta_has_its_own_cap(self, ledger: Ledger) -> None:
        """Thresholds spend delta; a share of the limit's delta is for them."""
        leaf = analyst(ledger, root(ledger, epsilon=10, delta="1e-3", pure=False), epsilon=1, delta="1e-6", pure=False)
        event = TruncatedGeometricEvent(epsilon=Fraction(1, 10), delta=Fraction(1, 10**7))
        reserved = ledger.reserve(request(leaf, core("a", event)))
        assert reserved.charged[0].delta == Fraction(1, 10**7)
        with pytest.raises(BudgetExhausted) as refused:
            ledger.reserve(request(leaf, core("c", event)))
        assert [short.measure for short in refused.value.shortages] == ["delta"]

    def test_charged_is_what_no_longer_remains(self, ledger: Ledger) -> None:
        """The epsilon that a charge reports is by how much `remaining_epsilon` fell."""
        top = root(ledger, epsilon=10, delta="1e-6", pure=False)
        leaf = analyst(ledger, top, epsilon=2, delta="1e-6", pure=False)
        for event in (laplace("0.01"), gaussian("0.02"), gaussian("0.03"), laplace("0.05")):
            before = ledger.path(leaf.id)
            reserved = ledger.reserve(request(leaf, core("x", event)))
            after = ledger.path(leaf.id)
            assert [
                old.remaining_epsilon() - new.remaining_epsilon() for old, new in zip(before, after, strict=True)
            ] == [charge.epsilon for charge in reserved.charged]

    def test_only_its_principal_may_spend(self, ledger: Ledger) -> None:
        """An account of one principal does not exist for another."""
        leaf = analyst(ledger, root(ledger))
        with pytest.raises(UnknownAccount):
            ledger.reserve(request(leaf, principal="somebody"))
        with pytest.raises(UnknownAccount):
            ledger.reserve(request("b_none"))

    def test_query_id_is_used_once(self, ledger: Ledger) -> None:
        """An identifier that is taken is refused, and nothing is charged for it."""
        leaf = analyst(ledger, root(ledger))
        asked = request(leaf)
        ledger.reserve(asked)
        spent = ledger.account(leaf.id).spent
        with pytest.raises(ValueError, match="used before"):
            ledger.reserve(asked)
        assert ledger.account(leaf.id).spent == spent

    def test_malformed_requests(self) -> None:
        """A free core, a repeated core and identifiers that are not what they must be are no requests."""
        with pytest.raises(ValueError, match="without privacy events"):
            CoreCharge(core_key=sha256("a"), quality=Fraction(1), events=())
        for key in ("a", sha256("a").upper(), sha256("a") + "\n"):
            with pytest.raises(ValueError, match="SHA-256"):
                CoreCharge(core_key=key, quality=Fraction(1), events=(laplace(),))
        for quality in (Fraction(0), Fraction(-1), 0.5, Fraction(10**7)):
            with pytest.raises(ValueError, match="quality"):
                CoreCharge(core_key=sha256("a"), quality=quality, events=(laplace(),))  # type: ignore[arg-type]
        for change, words in (
            ({"cores": (core("a"), core("a"))}, "once"),
            ({"cores": tuple(core(str(number)) for number in range(65))}, "at most"),
            ({"reuse": "all"}, "reuse"),
            ({"body_hash": "x"}, "body hash"),
            ({"idempotency_key": ""}, "idempotency key"),
            ({"idempotency_key": "k" * 256}, "idempotency key"),
            ({"query_id": ""}, "names its query"),
            ({"idempotency_key": "a\x00b"}, "NUL"),
            ({"idempotency_key": "\ud800"}, "surrogate"),
            ({"principal": "a\x00b"}, "NUL"),
        ):
            with pytest.raises(ValueError, match=words):
                request("b_x", **change)

    def test_description_with_a_number_that_json_does_not_know(self, ledger: Ledger) -> None:
        """A description that is not JSON is refused before anything is charged."""
        leaf = analyst(ledger, root(ledger))
        with pytest.raises(ValueError, match="JSON"):
            ledger.reserve(request(leaf, description={"rows": float("nan")}))
        assert ledger.account(leaf.id) == leaf


class TestRetry:
    """The idempotency key."""

    def test_the_same_key_charges_once(self, ledger: Ledger) -> None:
        """A retry finds the reservation, and is told that it is not the one who runs the query."""
        leaf = analyst(ledger, root(ledger))
        first = ledger.reserve(request(leaf, idempotency_key="k"))
        again = ledger.reserve(request(leaf, idempotency_key="k"))
        assert (again.query_id, again.state, again.fresh) == (first.query_id, "reserved", False)
        assert again.charged == first.charged
        assert ledger.account(leaf.id).spent.pure == PICO // 10

    def test_a_settled_retry_has_the_same_bytes(self, ledger: Ledger) -> None:
        """After the answer was stored, a retry gets the same bytes and no second draw."""
        leaf = analyst(ledger, root(ledger))
        first = spend(ledger, request(leaf, idempotency_key="k"), b"\x00 the \xff answer")
        again = ledger.reserve(request(leaf, idempotency_key="k"))
        assert (again.query_id, again.state, again.answer) == (first.query_id, "settled", b"\x00 the \xff answer")

    def test_another_body_is_a_conflict(self, ledger: Ledger) -> None:
        """The same key with another body names the first query and charges nothing."""
        leaf = analyst(ledger, root(ledger))
        first = ledger.reserve(request(leaf, idempotency_key="k"))
        with pytest.raises(IdempotencyConflict) as conflict:
            ledger.reserve(request(leaf, idempotency_key="k", body_hash=sha256("other")))
        assert conflict.value.query_id == first.query_id
        assert ledger.account(leaf.id).spent.pure == PICO // 10

    def test_keys_belong_to_principals(self, ledger: Ledger) -> None:
        """Two principals may use the same key without learning of one another."""
        top = root(ledger)
        one = analyst(ledger, top, principal="one")
        two = analyst(ledger, top, principal="two")
        first = ledger.reserve(request(one, principal="one", idempotency_key="k"))
        second = ledger.reserve(request(two, principal="two", idempotency_key="k", body_hash=sha256("other")))
        assert first.query_id != second.query_id
        assert second.fresh

    @pytest.mark.parametrize("key", ["k" * 255, "ключ", 'quote " and \\', "a\nb", "'; DROP TABLE entries; --"])
    def test_any_text_is_a_key(self, ledger: Ledger, key: str) -> None:
        """Keys are data: quotes, line ends and other scripts are found again."""
        leaf = analyst(ledger, root(ledger))
        first = ledger.reserve(request(leaf, idempotency_key=key))
        assert ledger.reserve(request(leaf, idempotency_key=key)).query_id == first.query_id

    @pytest.mark.parametrize(("step", "state"), [("fail", "failed_charged"), ("void", "failed_void")])
    def test_a_failed_retry_says_so(self, ledger: Ledger, step: str, state: str) -> None:
        """A retry of a query that failed gets its state, not a new run under the old charge."""
        leaf = analyst(ledger, root(ledger))
        first = ledger.reserve(request(leaf, idempotency_key="k"))
        getattr(ledger, step)(first.query_id)
        again = ledger.reserve(request(leaf, idempotency_key="k"))
        assert (again.state, again.fresh, again.answer) == (state, False, None)

    def test_concurrent_retries_charge_once(self, ledger: Ledger) -> None:
        """Sixteen equal requests at once: one is fresh, all others find it."""
        leaf = analyst(ledger, root(ledger))
        outcomes = _together(16, lambda _: ledger.reserve(request(leaf, idempotency_key="k")))
        assert sum(outcome.fresh for outcome in outcomes) == 1
        assert len({outcome.query_id for outcome in outcomes}) == 1
        assert ledger.account(leaf.id).spent.pure == PICO // 10


class TestReuse:
    """Stored releases."""

    def test_own_release_is_free(self, ledger: Ledger) -> None:
        """A core that the principal has released is served from the store and charges nothing."""
        leaf = analyst(ledger, root(ledger))
        asked = request(leaf, core("a"))
        spend(ledger, asked)
        spent = ledger.account(leaf.id).spent
        again = ledger.reserve(request(leaf, core("a"), reuse="own"))
        assert again.fresh
        assert again.charged == ()
        assert [(key, found.body) for key, found in again.reused.items()] == [(sha256("a"), b"noisy")]
        assert next(iter(again.reused.values())).events == (laplace("0.1"),)
        ledger.post(again.query_id, [], b"second answer")
        assert ledger.account(leaf.id).spent == spent
        record = ledger.query(again.query_id)
        assert record is not None
        assert (record.state, record.answer, record.charged) == ("settled", b"second answer", ())
        assert ledger.audit().ok

    def test_none_draws_again_and_pays(self, ledger: Ledger) -> None:
        """Without reuse the same core is charged again."""
        leaf = analyst(ledger, root(ledger))
        spend(ledger, request(leaf, core("a")))
        again = ledger.reserve(request(leaf, core("a"), reuse="none"))
        assert again.reused == {}
        assert ledger.account(leaf.id).spent.pure == PICO // 5

    def test_others_releases_only_when_shared(self, ledger: Ledger) -> None:
        """ "own" does not see another principal's release, "any" does."""
        top = root(ledger)
        one = analyst(ledger, top, principal="one")
        two = analyst(ledger, top, principal="two")
        spend(ledger, request(one, core("a"), principal="one"))
        own = ledger.reserve(request(two, core("a"), principal="two", reuse="own"))
        assert own.reused == {}
        shared = ledger.reserve(request(two, core("a"), principal="two", reuse="any"))
        assert list(shared.reused) == [sha256("a")]
        assert ledger.account(two.id).spent.pure == PICO // 10

    def test_only_a_release_that_is_good_enough(self, ledger: Ledger) -> None:
        """A release serves requests of its own quality and below, and the best one is taken."""
        leaf = analyst(ledger, root(ledger))
        spend(ledger, request(leaf, core("a", quality="0.1")))
        better = ledger.reserve(request(leaf, core("a", quality="0.2"), reuse="own"))
        assert better.reused == {}
        ledger.post(better.query_id, releases_for(ledger, better, [core("a", quality="0.2")], b"better"), b"")
        for quality in ("0.05", "0.1", "0.2"):
            served = ledger.reserve(request(leaf, core("a", quality=quality), reuse="own"))
            assert [found.body for found in served.reused.values()] == [b"better"]

    def test_part_of_a_query(self, ledger: Ledger) -> None:
        """Only the cores that are not in the store are charged."""
        leaf = analyst(ledger, root(ledger))
        spend(ledger, request(leaf, core("a")))
        both = ledger.reserve(request(leaf, core("a"), core("b", quality="0.3"), reuse="own"))
        assert list(both.reused) == [sha256("a")]
        assert both.charged[0].epsilon == Fraction(3, 10)
        ledger.post(both.query_id, releases_for(ledger, both, [core("b", quality="0.3")]), b"")
        assert ledger.account(leaf.id).spent.pure == PICO * 4 // 10
        assert ledger.audit().ok

    def test_another_dataset_never(self, ledger: Ledger) -> None:
        """A release of one dataset does not serve another, even with the same core key."""
        one = analyst(ledger, root(ledger))
        two = analyst(ledger, root(ledger, dataset="visits"))
        spend(ledger, request(one, core("a")))
        assert ledger.reserve(request(two, core("a"), reuse="any")).reused == {}

    def test_an_unfinished_release_is_not_waited_for(self, ledger: Ledger) -> None:
        """Two equal queries at the same time are both charged; afterwards either serves a third."""
        leaf = analyst(ledger, root(ledger))
        one = ledger.reserve(request(leaf, core("a"), reuse="own"))
        two = ledger.reserve(request(leaf, core("a"), reuse="own"))
        assert (len(one.charged), len(two.charged)) == (2, 2)
        for reserved in (one, two):
            ledger.post(reserved.query_id, releases_for(ledger, reserved, [core("a")]), b"")
        assert ledger.reserve(request(leaf, core("a"), reuse="own")).charged == ()

    def test_what_was_priced_to_charge_is_never_reserved_for_nothing(self, ledger: Ledger) -> None:
        """Where a stored release serves by now: nothing is written, and the key is still to be used."""
        leaf = analyst(ledger, root(ledger))
        asked = request(leaf, core("a"), reuse="own", charges=True, idempotency_key="k")
        spend(ledger, request(leaf, core("a")))
        before = ledger.path(leaf.id)
        with pytest.raises(PriceMoved):
            ledger.reserve(asked)
        assert ledger.query(asked.query_id) is None
        assert ledger.path(leaf.id) == before
        more = request(leaf, core("a"), core("b"), reuse="own", charges=True, idempotency_key="k")
        assert ledger.reserve(more).charged
        assert ledger.reserve(replace(more, query_id="q_again")).query_id == more.query_id

    def test_finding_releases(self, ledger: Ledger) -> None:
        """Releases are found by identifier, by core and by query; an estimate uses the same look-up."""
        leaf = analyst(ledger, root(ledger))
        reserved = spend(ledger, request(leaf, core("a")))
        found = ledger.find_release(sha256("a"), quality=Fraction(1, 10), principal="analyst")
        assert found is not None
        assert ledger.release(found.id) == found
        assert ledger.releases_of(reserved.query_id) == [found]
        assert found.created is not None
        assert ledger.find_release(sha256("a"), quality=Fraction(1, 5)) is None
        assert ledger.find_release(sha256("a"), principal="somebody") is None
        assert ledger.release("r_none") is None


class TestRepeats:
    """An answer that is known before the query is asked is settled in one transaction, and for nothing."""

    def served(self, ledger: Ledger) -> tuple[Account, dict[str, str]]:
        """An account that paid for the core "a", and the release by core key."""
        leaf = analyst(ledger, root(ledger))
        reserved = spend(ledger, request(leaf, core("a")))
        return leaf, {release.core_key: release.id for release in ledger.releases_of(reserved.query_id)}

    def test_a_repeat_is_settled_for_nothing(self, ledger: Ledger) -> None:
        """The record is that of a reused query, nothing is charged, and the answer is stored under its key."""
        leaf, stored = self.served(ledger)
        before = ledger.path(leaf.id)
        asked = request(leaf, core("a"), reuse="own", idempotency_key="k")
        repeated = ledger.repeat(asked, stored, b"again")
        assert repeated is not None
        assert (repeated.state, repeated.fresh, repeated.answer, repeated.charged) == ("settled", True, b"again", ())
        record = ledger.query(asked.query_id)
        assert record is not None
        assert (record.state, record.answer, record.reused, record.charged) == ("settled", b"again", stored, ())
        assert ledger.path(leaf.id) == before
        retried = ledger.repeat(request(leaf, core("a"), reuse="own", idempotency_key="k"), stored, b"other")
        assert retried is not None
        assert (retried.query_id, retried.fresh, retried.answer) == (asked.query_id, False, b"again")
        with pytest.raises(IdempotencyConflict):
            ledger.repeat(
                request(leaf, core("a"), reuse="own", idempotency_key="k", body_hash=sha256("other")), stored, b""
            )
        assert ledger.audit().ok

    @pytest.mark.parametrize("case", ["better", "worse", "another core", "one more core", "none", "reuse none"])
    def test_what_a_reservation_would_decide_otherwise_changes_nothing(self, ledger: Ledger, case: str) -> None:
        """None when the ledger would take another release or charge; then nothing was written."""
        leaf, stored = self.served(ledger)
        cores: tuple[CoreCharge, ...] = (core("a"),)
        if case == "better":
            spend(ledger, request(leaf, core("a", quality="0.2")))
        elif case == "worse":
            cores = (core("a", quality="0.3"),)
        elif case == "another core":
            cores = (core("b"),)
        elif case == "one more core":
            cores = (core("a"), core("b"))
        elif case == "none":
            cores, stored = (), {}
        asked = request(leaf, cores=cores, reuse="none" if case == "reuse none" else "own")
        before = ledger.path(leaf.id)
        assert ledger.repeat(asked, stored, b"again") is None
        assert ledger.query(asked.query_id) is None
        assert ledger.path(leaf.id) == before

    def test_releases_of_others_and_accounts_of_others(self, ledger: Ledger) -> None:
        """Somebody else's release serves only where releases are shared; somebody else's account never."""
        leaf, stored = self.served(ledger)
        other = analyst(ledger, ledger.path(leaf.id)[-1], principal="other")
        theirs = request(other, core("a"), principal="other", reuse="own")
        assert ledger.repeat(theirs, stored, b"") is None
        shared = request(other, core("a"), principal="other", reuse="any")
        assert ledger.repeat(shared, stored, b"") is not None
        with pytest.raises(UnknownAccount):
            ledger.repeat(request(leaf, core("a"), principal="other", reuse="any"), stored, b"")


class TestSteps:
    """States of a query."""

    def test_post_settles(self, ledger: Ledger) -> None:
        """After post the answer is stored, the reservation is over and the charge stays."""
        top = root(ledger)
        leaf = analyst(ledger, top)
        reserved = spend(ledger, request(leaf, description={"tables": ["people"]}), b"bytes")
        record = ledger.query(reserved.query_id)
        assert record is not None
        assert (record.state, record.answer) == ("settled", b"bytes")
        assert record.description == {"tables": ["people"]}
        assert record.charged == reserved.charged
        assert record.finished is not None
        for account in (leaf, top):
            now = ledger.account(account.id)
            assert (now.spent.pure, now.reserved) == (PICO // 10, Sums())
        assert [entry.kind for entry in ledger.entries(leaf.id)] == ["grant", "reserve", "post"]
        assert [entry.kind for entry in ledger.entries(top.id)] == ["grant", "reserve", "post"]

    def test_fail_keeps_the_charge(self, ledger: Ledger) -> None:
        """A query that fails after its engine was started stays charged."""
        leaf = analyst(ledger, root(ledger))
        reserved = ledger.reserve(request(leaf))
        ledger.fail(reserved.query_id)
        now = ledger.account(leaf.id)
        assert (now.spent.pure, now.reserved) == (PICO // 10, Sums())
        assert [entry.kind for entry in ledger.entries(leaf.id)] == ["grant", "reserve", "fail"]

    def test_void_gives_everything_back(self, ledger: Ledger) -> None:
        """A void takes back exactly what the reserve added, on the whole path, infinite amounts too."""
        top = root(ledger, epsilon=10, delta="1e-6", pure=False)
        leaf = analyst(ledger, top, delta="1e-6", pure=False)
        ledger.reserve(request(leaf, core("kept", laplace("0.05"))))
        before = ledger.path(leaf.id)
        reserved = ledger.reserve(request(leaf, core("a", gaussian("0.01"))))
        assert ledger.account(leaf.id).spent.pure is None
        ledger.void(reserved.query_id)
        assert ledger.path(leaf.id) == before
        (_, _, reserve, void) = ledger.entries(leaf.id)
        assert (reserve.kind, void.kind) == ("reserve", "void")
        assert reserve.amounts.plus(void.amounts) == Amounts()
        assert ledger.audit().ok

    def test_reserved_until_post(self, ledger: Ledger) -> None:
        """A query that was reserved and has no answer is reserved, and so is its charge, until it is settled."""
        leaf = analyst(ledger, root(ledger))
        asked = request(leaf)
        reserved = ledger.reserve(asked)
        record = ledger.query(reserved.query_id)
        assert record is not None
        assert record.state == "reserved"
        assert ledger.account(leaf.id).reserved.pure == PICO // 10
        ledger.post(reserved.query_id, releases_for(ledger, reserved, asked.cores), b"")
        assert ledger.account(leaf.id).reserved.pure == 0

    @pytest.mark.parametrize("last", ["post", "fail", "void"])
    @pytest.mark.parametrize("step", ["post", "fail", "void"])
    def test_final_states_are_final(self, ledger: Ledger, last: str, step: str) -> None:
        """Nothing leads on from a settled or failed query: no second post, no void after a post."""
        leaf = analyst(ledger, root(ledger))
        asked = request(leaf)
        reserved = ledger.reserve(asked)

        def run(name: str) -> None:
            if name == "post":
                ledger.post(reserved.query_id, releases_for(ledger, reserved, asked.cores), b"answer")
            else:
                getattr(ledger, name)(reserved.query_id)

        run(last)
        before = (ledger.query(reserved.query_id), ledger.account(leaf.id), ledger.releases_of(reserved.query_id))
        with pytest.raises(IllegalTransition) as refused:
            run(step)
        assert refused.value.step == step
        assert (
            ledger.query(reserved.query_id),
            ledger.account(leaf.id),
            ledger.releases_of(reserved.query_id),
        ) == before
        assert ledger.audit().ok

    def test_unknown_query(self, ledger: Ledger) -> None:
        """Steps on a query that is not there raise."""
        for step in (ledger.fail, ledger.void):
            with pytest.raises(UnknownQuery):
                step("q_none")
        with pytest.raises(UnknownQuery):
            ledger.post("q_none", [], b"")

    def test_only_what_was_charged_is_released(self, ledger: Ledger) -> None:
        """A release of another core, quality, event, owner or query is refused, and the query stays open."""
        leaf = analyst(ledger, root(ledger))
        asked = request(leaf, core("a"))
        reserved = ledger.reserve(asked)
        (good,) = releases_for(ledger, reserved, asked.cores)

        def changed(**values: object) -> StoredRelease:
            fields = {name: getattr(good, name) for name in StoredRelease.__slots__}
            return StoredRelease(**(fields | values))

        for releases in (
            [changed(core_key=sha256("b"))],
            [changed(quality=Fraction(1))],
            [changed(events=(laplace("0.2"),))],
            [changed(events=())],
            [changed(principal="somebody")],
            [changed(dataset="visits")],
            [changed(query_id="q_other")],
            [good, changed(id="r_second")],
        ):
            with pytest.raises(ValueError, match="release must"):
                ledger.post(reserved.query_id, releases, b"")
        ledger.post(reserved.query_id, [good], b"")
        assert ledger.releases_of(reserved.query_id)[0].id == good.id

    def test_a_release_id_that_is_taken(self, ledger: Ledger) -> None:
        """Rows that the database refuses undo their own step only: state, answer and entries stay as they were."""
        leaf = analyst(ledger, root(ledger))
        first = request(leaf, core("a"))
        reserved = ledger.reserve(first)
        (release,) = releases_for(ledger, reserved, first.cores)
        ledger.post(reserved.query_id, [release], b"")
        second = request(leaf, core("b"))
        other = ledger.reserve(second)
        fields = {name: getattr(release, name) for name in StoredRelease.__slots__}
        clash = StoredRelease(**(fields | {"core_key": sha256("b"), "query_id": other.query_id}))
        with pytest.raises(IntegrityError):
            ledger.post(other.query_id, [clash], b"")
        record = ledger.query(other.query_id)
        assert record is not None
        assert record.state == "reserved"
        assert ledger.audit().ok


class TestTree:
    """Parents and children."""

    def test_the_root_refuses_when_children_oversubscribe(self, ledger: Ledger) -> None:
        """Children may have more together than their parent: first come, first served, and then the root refuses."""
        top = root(ledger, epsilon=1)
        leaves = [analyst(ledger, top, principal=f"analyst{number}", epsilon=1) for number in range(3)]
        for turn in range(10):
            leaf = leaves[turn % 3]
            ledger.reserve(request(leaf, principal=leaf.name))
        for leaf in leaves:
            with pytest.raises(BudgetExhausted) as refused:
                ledger.reserve(request(leaf, principal=leaf.name))
            assert (refused.value.account, refused.value.root) == (top.id, True)
        assert ledger.account(top.id).spent.pure == PICO
        assert sum(ledger.account(leaf.id).spent.pure or 0 for leaf in leaves) == PICO
        assert ledger.audit().ok

    def test_each_account_has_its_own_filter(self, ledger: Ledger) -> None:
        """A pure child of an approximate root keeps Gaussian noise out for its analyst alone."""
        top = root(ledger, epsilon=10, delta="1e-6", pure=False)
        strict = analyst(ledger, top, principal="strict")
        easy = analyst(ledger, top, principal="easy", delta="1e-6", pure=False)
        with pytest.raises(BudgetExhausted) as refused:
            ledger.reserve(request(strict, core("a", gaussian("0.001")), principal="strict"))
        assert refused.value.account == strict.id
        ledger.reserve(request(easy, core("a", gaussian("0.001")), principal="easy"))


class TestLimits:
    """Changing a limit."""

    def test_raising_lets_more_in(self, ledger: Ledger) -> None:
        """After a raise the account has the new budgets and what was spent is still spent."""
        leaf = analyst(ledger, root(ledger, epsilon=10))
        ledger.reserve(request(leaf, core("a", laplace(1))))
        with pytest.raises(BudgetExhausted):
            ledger.reserve(request(leaf))
        changed = ledger.change_limit(leaf.id, limit("1.1"), actor="admin", reason="new project")
        assert changed.limit == limit("1.1")
        ledger.reserve(request(leaf))
        assert ledger.account(leaf.id).spent.pure == PICO * 11 // 10
        entry = ledger.entries(leaf.id)[2]
        assert entry.kind == "adjust"
        assert '"actor":"admin"' in entry.details
        assert '"reason":"new project"' in entry.details
        assert '"from":{"delta":"0","epsilon":"1"}' in entry.details
        assert ledger.audit().ok

    def test_lowering_below_what_is_spent(self, ledger: Ledger) -> None:
        """Such an account admits nothing, not even the smallest charge, and can still settle and void."""
        leaf = analyst(ledger, root(ledger))
        one = request(leaf, core("a", laplace("0.5")))
        first = ledger.reserve(one)
        second = ledger.reserve(request(leaf, core("b", laplace("0.3"))))
        ledger.change_limit(leaf.id, limit("0.1"), actor="admin", reason="smaller")
        with pytest.raises(BudgetExhausted):
            ledger.reserve(request(leaf, core("c", laplace("0.000000000001"))))
        ledger.post(first.query_id, releases_for(ledger, first, one.cores), b"")
        ledger.void(second.query_id)
        assert ledger.account(leaf.id).spent.pure == PICO // 2
        assert ledger.audit().ok

    def test_every_budget_grows_with_the_limit(self, ledger: Ledger) -> None:
        """The rule for changes of limits rests on this: no branch shrinks when epsilon or delta grows."""
        account = root(ledger, epsilon="0.1", delta="1e-9", pure=False)
        for epsilon, delta in (("0.1", "1e-7"), ("0.2", "1e-7"), ("5", "1e-7"), ("5", "1e-3"), ("100", "0.01")):
            after = ledger.change_limit(account.id, limit(epsilon, delta), actor="a", reason="r")
            for name in ("pure", "mu_squared", "rho", "delta"):
                assert getattr(after.branches, name) >= getattr(account.branches, name)
            account = after

    def test_unsuitable_changes(self, ledger: Ledger) -> None:
        """A limit that does not suit the filter, or a change without a reason, is refused."""
        leaf = analyst(ledger, root(ledger))
        with pytest.raises(ValueError, match="delta 0"):
            ledger.change_limit(leaf.id, limit(1, "1e-6"), actor="a", reason="r")
        with pytest.raises(ValueError, match="characters"):
            ledger.change_limit(leaf.id, limit(2), actor="a", reason="  ")
        assert ledger.account(leaf.id) == leaf


class TestPages:
    """Reading in pages."""

    def test_entries(self, ledger: Ledger) -> None:
        """Pages of entries are gapless, oldest first, and chained."""
        leaf = analyst(ledger, root(ledger))
        for _ in range(4):
            spend(ledger, request(leaf))
        first = ledger.entries(leaf.id, count=5)
        second = ledger.entries(leaf.id, after=first[-1].account_sequence, count=5)
        assert [entry.account_sequence for entry in first + second] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
        assert first[0].account_previous == GENESIS
        for before, entry in zip((first + second)[:-1], (first + second)[1:], strict=True):
            assert entry.account_previous == before.hash
            assert entry.digest() == entry.hash
        assert ledger.entries(leaf.id, after=9) == []
        for count in (0, -1, 1001):
            with pytest.raises(ValueError, match="page"):
                ledger.entries(leaf.id, count=count)

    def test_queries(self, open_ledger: Callable[..., Ledger]) -> None:
        """Pages of queries are newest first and have no answers; equal times do not lose a row."""
        moment = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
        ledger = open_ledger(clock=lambda: moment)
        leaf = analyst(ledger, root(ledger))
        made = {spend(ledger, request(leaf)).query_id for _ in range(5)}
        listed: list[str] = []
        after = None
        while page := ledger.queries("analyst", after=after, count=2):
            listed += [query.id for query in page]
            assert all(query.answer is None for query in page)
            after = page[-1].id
        assert sorted(made, reverse=True) == listed
        assert ledger.queries("somebody") == []
        assert ledger.queries("analyst", after="q_none") == []
        assert len(ledger.queries(None, dataset="people")) == 5
        assert ledger.queries(None, dataset="visits") == []


class TestTogether:
    """Many callers at once."""

    def test_threads_never_overspend(self, ledger: Ledger) -> None:
        """Sixteen threads on one account: exactly what fits is admitted, and the rest is refused, not delayed."""
        leaf = analyst(ledger, root(ledger, epsilon=10), epsilon=10)

        def spender(number: int) -> int:
            count = 0
            for _ in range(10):
                try:
                    ledger.reserve(request(leaf))
                    count += 1
                except BudgetExhausted:
                    pass
            return count

        assert sum(_together(16, spender)) == 100
        assert ledger.account(leaf.id).spent.pure == 10 * PICO
        assert ledger.audit().ok

    def test_one_fault_does_not_disturb_the_others(self, ledger: Ledger) -> None:
        """In a batch where the database refuses one row, all other callers get what they asked for."""
        leaf = analyst(ledger, root(ledger, epsilon=100), epsilon=100)
        first = request(leaf, core("a"))
        reserved = ledger.reserve(first)
        (taken,) = releases_for(ledger, reserved, first.cores)
        ledger.post(reserved.query_id, [taken], b"")
        fields = {name: getattr(taken, name) for name in StoredRelease.__slots__}

        def post_or_spend(number: int) -> str:
            asked = request(leaf, core(f"core {number}"))
            mine = ledger.reserve(asked)
            if number % 5:
                ledger.post(mine.query_id, releases_for(ledger, mine, asked.cores), b"")
                return "settled"
            clash = StoredRelease(**(fields | {"core_key": sha256(f"core {number}"), "query_id": mine.query_id}))
            with pytest.raises(IntegrityError):
                ledger.post(mine.query_id, [clash], b"")
            ledger.fail(mine.query_id)
            return "failed"

        outcomes = _together(20, post_or_spend)
        assert (outcomes.count("settled"), outcomes.count("failed")) == (16, 4)
        assert ledger.audit().ok

    def test_closed_ledger(self, ledger: Ledger) -> None:
        """After closing, steps say that the ledger is closed instead of waiting forever."""
        leaf = analyst(ledger, root(ledger))
        ledger.close()
        with pytest.raises(LedgerUnavailable):
            ledger.reserve(request(leaf))


class TestRows:
    """What the database itself refuses."""

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE entries SET pure = 0",
            "DELETE FROM entries",
            "UPDATE releases SET body = body",
            "DELETE FROM queries",
            "DELETE FROM accounts",
            "UPDATE queries SET state = 'reserved', answer = NULL, finished = NULL",
            "UPDATE accounts SET parent = NULL, depth = 0",
            "UPDATE accounts SET filter = 'approximate'",
            "UPDATE accounts SET principal = 'somebody'",
            "UPDATE accounts SET spent_pure = budget_pure + 1",
            "UPDATE accounts SET spent_pure = -1",
            "UPDATE accounts SET unbounded_pure = 1",
            "UPDATE accounts SET spent_delta = 1",
            "DELETE FROM ledger_meta",
            "INSERT INTO ledger_meta (id, schema, ledger, sequence, hash) VALUES (2, 1, 'x', 0, 'y')",
        ],
    )
    def test_refuses(self, ledger: Ledger, url: str, statement: str) -> None:
        """History cannot be edited, and an account cannot be overspent, by any statement."""
        leaf = analyst(ledger, root(ledger))
        spend(ledger, request(leaf))
        engine = open_engine(url)
        with engine.connect() as connection, pytest.raises(IntegrityError):
            connection.execute(text(statement))
        engine.dispose()
        assert ledger.audit().ok


def _together(count: int, work: Callable[[int], Result]) -> list[Result]:
    """Runs the work in threads that start at the same moment; raises the first error."""
    results: list[Result] = []
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            barrier.wait()
            results.append(work(number))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def test_the_published_form_of_a_hash() -> None:
    """Anybody can check an export: the hash is the SHA-256 of the JSON that the room's README describes."""
    entry = Entry(
        sequence=7,
        account="b_1",
        account_sequence=2,
        kind="reserve",
        query_id="q_1",
        amounts=Amounts(pure=100, mu_squared=5, unbounded_rho=1),
        details='{"charged":[],"reused":{}}',
        created=1_900_000_000_000_000,
        account_previous="a" * 64,
        previous="b" * 64,
        hash="",
    )
    stored = (
        '["entry/1",7,"b_1",2,"reserve","q_1",[100,0,0,5,0,1,0],"{\\"charged\\":[],\\"reused\\":{}}",'
        f'1900000000000000,"{"a" * 64}","{"b" * 64}"]'
    )
    assert sha256(stored) == entry.digest()
    assert entry.moment == datetime.datetime(2030, 3, 17, 17, 46, 40, tzinfo=datetime.UTC)
