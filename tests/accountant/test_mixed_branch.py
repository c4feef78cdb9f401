"""The mixed branch: each charge is in one of its two sums, for good; the ledger, the database and the audit know."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant import entry as entry_module
from accountant.account import Account
from accountant.entry import Amounts
from accountant.errors import BudgetExhausted
from accountant.filter import (
    DEFAULT_SHARES,
    NOTHING,
    Branch,
    Branches,
    FilterKind,
    Limit,
    Sums,
    alive_branches,
    charges_left,
    fits,
    least_share,
    place,
    split_limit,
)
from accountant.ledger import Ledger
from accountant.states import EntryKind
from privacy.events import Event
from privacy.numbers import ATTO, PICO
from tests.accountant.exported import Program
from tests.accountant.making import analyst, core, gaussian, laplace, limit, request, root, sha256, spend
from tests.accountant.test_accounts_once import execute
from tests.accountant.test_ledger_audit import tamper

MICRO = Fraction(1, 10**6)
ONE = Limit(Fraction(1), MICRO)
BRANCHES = split_limit(ONE, FilterKind.APPROXIMATE, DEFAULT_SHARES)
Rule = Callable[[Sums, Sums, Branches], tuple[int, int] | None]


def mixed_of(branches: Branches) -> tuple[int, int]:
    """The two budgets of an account that has the branch."""
    assert branches.mixed_pure is not None
    assert branches.mixed_mu_squared is not None
    return branches.mixed_pure, branches.mixed_mu_squared


def hockey(mu: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    """The hockey-stick divergence of a Gaussian at any epsilon (Balle and Wang 2018, Theorem 8)."""
    ratio = epsilon / mu
    return mpmath.ncdf(mu / 2 - ratio) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - ratio)


def exact_delta(responses: Sequence[Fraction], mu_squared: Fraction, at: int = 1) -> mpmath.mpf:
    """The divergence at e^`at` of randomised responses and one Gaussian together: over the signs of the responses."""
    with mpmath.workdps(40):
        mu = mpmath.sqrt(mpmath.mpf(mu_squared.numerator) / mu_squared.denominator)
        cases = [(mpmath.mpf(1), mpmath.mpf(0))]
        for response in responses:
            epsilon = mpmath.mpf(response.numerator) / response.denominator
            true = 1 / (1 + mpmath.exp(-epsilon))
            cases = [
                case
                for chance, lost in cases
                for case in ((chance * true, lost + epsilon), (chance * (1 - true), lost - epsilon))
            ]
        return mpmath.fsum(chance * hockey(mu, at - lost) for chance, lost in cases)


def test_the_budgets_together_keep_their_delta_and_a_charge_in_neither_sum_does_not() -> None:
    """Shows with the exact loss of randomised response and a Gaussian that both budgets together are within the
    branch's delta, not vacuously, and that one more response of E/2, counted in neither sum, is beyond all of delta."""
    whole, noise = mixed_of(BRANCHES)
    share = MICRO * DEFAULT_SHARES.mixed / 100
    for parts in (1, 4):
        assert exact_delta([whole * PICO / parts] * parts, noise * PICO) <= share
    assert exact_delta([whole * PICO], noise * PICO) > share / 2
    assert exact_delta([whole * PICO] * 2, noise * PICO) > 1000 * MICRO
    # Twin: the noise of the whole epsilon beside half of it in the pure sum, as if delta alone were divided.
    assert BRANCHES.mu_squared is not None
    assert exact_delta([whole * PICO], BRANCHES.mu_squared * PICO) > 10 * MICRO


@pytest.mark.parametrize("epsilon", ["0.000000000003", "0.3", "1", "10", "1000000"])
def test_the_budgets_follow_from_the_limit(epsilon: str) -> None:
    """Shows that half of epsilon, rounded down, is pure, that the noise belongs to the rest at its share of delta, and
    that the deltas of all branches add up to delta at most; too little epsilon has no such branch."""
    branches = split_limit(Limit(Fraction(epsilon), MICRO), FilterKind.APPROXIMATE, DEFAULT_SHARES)
    taken = branches.delta + branches.gaussian_delta + branches.concentrated_delta + branches.mixed_delta
    assert taken <= MICRO / ATTO
    if branches.mixed_pure is None:
        assert epsilon == "0.000000000003"
        return
    whole, noise = mixed_of(branches)
    assert whole == branches.pure // 2
    with mpmath.workdps(60):
        mu = mpmath.sqrt(mpmath.mpf(noise) / 10**12)
        rest = mpmath.mpf(branches.pure - whole) / 10**12
        assert hockey(mu, rest) <= mpmath.mpf(branches.mixed_delta) / 10**18


def test_delta_is_not_given_twice() -> None:
    """Shows that budgets whose deltas are more than the limit's make no account, whichever branch has too much."""
    account = Account.opened(
        id="a", dataset="d", parent=None, principal=None, name="a", limit=ONE, filter=FilterKind.APPROXIMATE,
        created=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    )  # fmt: skip
    twice = replace(BRANCHES, mixed_delta=BRANCHES.mixed_delta + BRANCHES.gaussian_delta)
    with pytest.raises(AssertionError, match="more than the limit's delta"):
        replace(account, branches=twice)


_CHARGES = st.builds(
    Sums,
    pure=st.none() | st.integers(1, 6 * 10**11),
    rho=st.none() | st.integers(1, 10**11),
    mu_squared=st.none() | st.integers(1, 2 * 10**10),
)


@given(charges=st.lists(_CHARGES, min_size=1, max_size=25))
@settings(max_examples=60, deadline=None)
def test_every_charge_is_in_exactly_one_sum(charges: list[Sums]) -> None:
    """Shows against a reference that is written otherwise: the place is the one with the smaller part of those that
    fit, nothing is in both or in neither, and what is there stays there."""
    whole, noise = mixed_of(BRANCHES)
    in_pure, in_noise, infinite, sums = [0], [0], False, NOTHING
    for charge in charges:
        before, sums = sums, sums.plus(charge, BRANCHES)
        if charge.pure is None and charge.mu_squared is None:
            infinite = True
        options = []
        if charge.pure is not None:
            beyond = infinite or sum(in_pure) + charge.pure > whole
            options.append((beyond, Fraction(charge.pure, BRANCHES.pure), 0, charge.pure, in_pure))
        if charge.mu_squared is not None:
            beyond = infinite or sum(in_noise) + charge.mu_squared > noise
            part = Fraction(charge.mu_squared * (BRANCHES.pure - whole), BRANCHES.pure * noise)
            options.append((beyond, part, 1, charge.mu_squared, in_noise))
        if options:
            *_, amount, sum_of = min(options, key=lambda option: option[:3])
            sum_of.append(amount)
        wanted = (None, None) if infinite else (sum(in_pure), sum(in_noise))
        assert (sums.mixed_pure, sums.mixed_mu_squared) == wanted
        if not infinite:
            grown = sums.mixed_pure != before.mixed_pure, sums.mixed_mu_squared != before.mixed_mu_squared
            assert sorted(grown) == [False, True]
        alive = not infinite and sum(in_pure) <= whole and sum(in_noise) <= noise
        assert (Branch.MIXED in alive_branches(sums, BRANCHES)) == alive


@given(
    before=st.lists(_CHARGES, max_size=4),
    charge=st.tuples(st.integers(1, 6 * 10**11), st.integers(1, 2 * 10**10)),
    grows=st.tuples(st.integers(0, 10**11), st.integers(0, 10**10)),
)
@settings(max_examples=60, deadline=None)
def test_a_greater_charge_never_uses_less(before: list[Sums], charge: tuple[int, int], grows: tuple[int, int]) -> None:
    """Shows that the share of the account after a charge does not fall when both of its measures grow."""
    sums = NOTHING
    for earlier in before:
        sums = sums.plus(earlier, BRANCHES)
    small, large = Sums(pure=charge[0], mu_squared=charge[1]), Sums(charge[0] + grows[0], 0, charge[1] + grows[1])
    less, more = (Fraction(*least_share(sums.plus(one, BRANCHES), BRANCHES)) for one in (small, large))
    assert less <= more


def test_into_the_pure_sum_while_it_fits_would_make_more_cost_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted twin of the rule: near the end of the pure sum a greater answer has a smaller price."""

    def while_it_fits(charge: Sums, spent: Sums, branches: Branches) -> tuple[int, int] | None:
        whole, _ = mixed_of(branches)
        assert charge.pure is not None
        assert charge.mu_squared is not None
        assert spent.mixed_pure is not None
        return (charge.pure, 0) if spent.mixed_pure + charge.pure <= whole else (0, charge.mu_squared)

    sums = NOTHING.add(laplace("0.49").loss(), BRANCHES).add(gaussian("0.001").loss(), BRANCHES)

    def prices() -> list[Fraction]:
        return [
            Fraction(*least_share(sums.add(laplace(size).loss(), BRANCHES), BRANCHES)) for size in ("0.01", "0.0101")
        ]

    assert prices()[0] <= prices()[1]
    monkeypatch.setattr("accountant.filter.place", while_it_fits)
    assert prices()[0] > prices()[1]


def test_both_kinds_of_noise_share_an_account() -> None:
    """Shows that after half of epsilon by Laplace noise the Gaussian part of the branch is left whole, at the price
    that shares say, and that nothing jumps when the pure branch ends."""
    sums = NOTHING.add(laplace("0.5").loss(), BRANCHES)
    assert Fraction(*least_share(sums, BRANCHES)) == Fraction(1, 2)
    _, noise = mixed_of(BRANCHES)
    tenth = Sums(None, noise // 20, noise // 10)
    assert charges_left(tenth, sums, BRANCHES) == 10
    for count in range(1, 11):
        sums = sums.plus(tenth, BRANCHES)
        assert fits(sums, BRANCHES)
        assert alive_branches(sums, BRANCHES) == (Branch.MIXED,)
        assert abs(Fraction(*least_share(sums, BRANCHES)) - (Fraction(1, 2) + Fraction(count, 20))) < Fraction(1, 10**9)
    assert not fits(sums.plus(tenth, BRANCHES), BRANCHES)


@given(first=_CHARGES, charge=_CHARGES)
@settings(max_examples=40, deadline=None)
def test_as_many_are_left_as_are_admitted(first: Sums, charge: Sums) -> None:
    """Shows that what is said to be left of equal charges is what the filter admits one after another."""
    charge = Sums(*(amount and max(amount, 10**9) for amount in (charge.pure, charge.rho, charge.mu_squared)))
    sums, count = NOTHING.plus(first, BRANCHES), 0
    left = charges_left(charge, sums, BRANCHES)
    while count <= left and fits(sums.plus(charge, BRANCHES), BRANCHES):
        sums, count = sums.plus(charge, BRANCHES), count + 1
    assert count == left


def shared(ledger: Ledger) -> Account:
    """An account of (1, 1e-6) below a root of (10, 1e-6), both with a mixed branch."""
    return analyst(ledger, root(ledger, epsilon=10, delta="1e-6", pure=False), delta="1e-6", pure=False)


def reserved(ledger: Ledger, account: Account) -> list[Amounts]:
    """The amounts of the charges of an account, voids left out."""
    return [one.amounts for one in ledger.entries(account.id) if one.kind is EntryKind.RESERVE]


def charge(ledger: Ledger, account: Account, event: Event) -> str:
    """Reserves one charge and leaves it open."""
    return ledger.reserve(request(account, core("x", event))).query_id


def test_places_are_entries_of_the_ledger(ledger: Ledger) -> None:
    """Each account's entry says where its charge was put, a void takes it out of there, a raised limit moves nothing,
    and the audit replays it; an account with a Gaussian answer takes a Laplace one of a third of its epsilon."""
    leaf = shared(ledger)
    spend(ledger, request(leaf, core("a", laplace("0.3"))))
    spend(ledger, request(leaf, core("b", gaussian("0.001"))))
    first, open_noise = charge(ledger, leaf, laplace("0.15")), charge(ledger, leaf, gaussian("0.002"))
    with pytest.raises(BudgetExhausted):
        ledger.reserve(request(leaf, core("c", laplace("0.3"))))
    spent = ledger.account(leaf.id).spent
    assert (spent.mixed_pure, spent.mixed_mu_squared) == (45 * 10**10, 3 * 10**9)
    assert ledger.account(leaf.id).alive_branches() == (Branch.MIXED,)
    ledger.void(first)
    ledger.void(open_noise)
    spent = ledger.account(leaf.id).spent
    assert (spent.mixed_pure, spent.mixed_mu_squared) == (30 * 10**10, 10**9)
    # What does not fit the old half goes to the other sum, and stays there under a greater limit.
    spend(ledger, request(leaf, core("d", laplace("0.05"))))
    ledger.change_limit(leaf.id, limit(2, "1e-6"), actor="admin", reason="more")
    before = reserved(ledger, leaf)
    spend(ledger, request(leaf, core("e", laplace("0.4"))))
    assert [(one.mixed_pure > 0, one.mixed_mu_squared > 0) for one in reserved(ledger, leaf)] == [
        *[(True, False), (False, True)] * 2,
        *[(True, False)] * 2,
    ]
    assert reserved(ledger, leaf)[:-1] == before
    ledger.change_limit(leaf.id, limit("0.5", "1e-6"), actor="admin", reason="less")
    with pytest.raises(BudgetExhausted):
        charge(ledger, leaf, gaussian("0.000001"))
    assert ledger.audit().findings == ()


def _nowhere(charge: Sums, spent: Sums, branches: Branches) -> tuple[int, int] | None:
    return 0, 0


def _both(charge: Sums, spent: Sums, branches: Branches) -> tuple[int, int] | None:
    return charge.pure or 0, charge.mu_squared or 0


def _other(charge: Sums, spent: Sums, branches: Branches) -> tuple[int, int] | None:
    placed = place(charge, spent, branches)
    assert placed is not None
    return (0, charge.mu_squared or 0) if placed[0] else (charge.pure or 0, 0)


@pytest.mark.parametrize("rule", [_nowhere, _both, _other])
def test_the_audit_replays_the_rule(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, rule: Rule) -> None:
    """Planted twins that write whole and valid chains: a charge in neither sum, in both, in the other one."""
    leaf = shared(ledger)
    spend(ledger, request(leaf, core("a", laplace("0.3"))))
    with monkeypatch.context() as planted:
        planted.setattr(entry_module, "place", rule)
        spend(ledger, request(leaf, core("b", laplace("0.05"))))
    spend(ledger, request(leaf, core("c", gaussian("0.001"))))
    assert {finding.code for finding in ledger.audit().findings} == {"wrong_amounts"}


def test_a_void_from_the_wrong_sum_is_found(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted void that takes the same amount from the other sum writes a valid chain; the audit finds it."""
    leaf = shared(ledger)
    spend(ledger, request(leaf, core("a", gaussian("0.001"))))
    query = charge(ledger, leaf, laplace("0.000001"))
    back = Amounts.reversed_sign

    def planted(amounts: Amounts) -> Amounts:
        right = back(amounts)
        return right._replace(mixed_pure=right.mixed_mu_squared, mixed_mu_squared=right.mixed_pure)

    assert reserved(ledger, leaf)[-1].mixed_mu_squared > 0
    with monkeypatch.context() as context:
        context.setattr(Amounts, "reversed_sign", planted)
        with pytest.raises(Exception, match=r"(?i)spent_mixed"):
            ledger.void(query)
    # Below zero the database itself refuses; from a sum that holds enough only the audit sees it.
    spend(ledger, request(leaf, core("b", laplace("0.3"))))
    with monkeypatch.context() as context:
        context.setattr(Amounts, "reversed_sign", planted)
        ledger.void(query)
    found = {finding.code for finding in ledger.audit().findings}
    assert "wrong_amounts" in found
    assert not found & {"wrong_hash", "broken_chain", "wrong_balance"}


def test_a_place_that_is_changed_afterwards_is_found(ledger: Ledger, url: str) -> None:
    """A charge that is moved to the other sum, in its entry and in the account alike, and a budget that is doubled."""
    leaf = shared(ledger)
    spend(ledger, request(leaf, core("a", laplace("0.3"))))
    noise = mixed_of(ledger.account(leaf.id).branches)[1]
    tamper(
        url,
        f"UPDATE entries SET mixed_pure = 0, mixed_mu_squared = 1 WHERE mixed_pure > 0 AND account = '{leaf.id}'",
        f"UPDATE accounts SET spent_mixed_pure = 0, spent_mixed_mu_squared = 1 WHERE id = '{leaf.id}'",
    )
    found = {finding.code for finding in ledger.audit().findings}
    assert {"wrong_hash", "wrong_amounts"} <= found
    assert "wrong_balance" not in found
    tamper(url, f"UPDATE accounts SET budget_mixed_mu_squared = {2 * noise} WHERE id = '{leaf.id}'")
    assert "wrong_limit" in {finding.code for finding in ledger.audit().findings}


def test_the_database_knows_the_branch(ledger: Ledger, url: str) -> None:
    """Also a program with a bug cannot spend beyond every budget, the mixed one's included, nor divide delta twice."""
    leaf = shared(ledger)
    whole, noise = mixed_of(leaf.branches)
    gone = "spent_pure = 5000000000000, spent_mu_squared = 5000000000000, spent_rho = 5000000000000"
    update = f"UPDATE accounts SET {gone}, spent_mixed_pure = %s, spent_mixed_mu_squared = %s WHERE id = '{leaf.id}'"
    for wrong in ((whole + 1, noise), (whole, noise + 1)):
        with pytest.raises(Exception, match="does not cover this"):
            execute(url, update % wrong)
    with pytest.raises(Exception, match=r"(?i)budget_mixed|check"):
        execute(url, f"UPDATE accounts SET budget_mixed_delta = budget_gaussian_delta WHERE id = '{leaf.id}'")
    execute(url, update % (whole, noise))


def test_entries_without_the_branch_are_hashed_as_before(ledger: Ledger) -> None:
    """Shows both published forms: what is zero in the branch keeps its hash of 0.12.0, byte for byte."""
    leaf = shared(ledger)
    spend(ledger, request(leaf, core("a", laplace("0.3"))))
    grant, charged, posted = ledger.entries(leaf.id)
    assert not any(grant.amounts + posted.amounts)
    without = replace(charged, amounts=charged.amounts._replace(mixed_pure=0))
    digests = {one.digest() for one in (charged, without)}
    assert len(digests) == 2
    for one, form, count in ((charged, "entry/2", 10), (without, "entry/1", 7), (posted, "entry/1", 7)):
        fields = [
            *(form, one.sequence, one.account, one.account_sequence, one.kind, one.query_id, one.amounts[:count]),
            *(one.details, one.created, one.account_previous, one.previous),
        ]
        assert one.digest() == sha256(json.dumps(fields, separators=(",", ":")))


def test_a_branch_that_comes_late_forgets_no_charge(ledger: Ledger, url: str) -> None:
    """Shows that an account whose delta was too small for the branch does not get it after it was charged: it would
    begin with both sums empty, and half of the limit could be spent again. Where nothing was charged it gets it; a
    forged raise is found."""
    small = limit(1, "12e-18")
    used, unused = (
        ledger.create_account(
            dataset=name, parent=None, principal=None, name="lifetime", limit=small, filter=FilterKind.APPROXIMATE,
            actor="admin",
        )
        for name in ("used", "unused")
    )  # fmt: skip
    assert split_limit(small, FilterKind.APPROXIMATE, DEFAULT_SHARES).mixed_pure is None
    spend(ledger, request(used, core("all", laplace(1))))
    for refused in (limit(1, "1e-6"), limit("0.5", "12e-18"), limit("0.5", "1e-6")):
        with pytest.raises(ValueError, match="open another account"):
            ledger.change_limit(used.id, refused, actor="admin", reason="more")
    ledger.change_limit(used.id, limit(2, "12e-18"), actor="admin", reason="more")
    ledger.change_limit(unused.id, limit(1, "1e-6"), actor="admin", reason="more")
    assert ledger.audit().findings == ()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("accountant.operations.forgets_charges", lambda *_, **__: False)
        ledger.change_limit(used.id, limit(1, "1e-6"), actor="admin", reason="more")
    spend(ledger, request(used, core("again", laplace("0.5"))))
    assert {finding.code for finding in ledger.audit().findings} == {"wrong_limit"}
    verifier = Program.Verifier()
    verifier.read(ledger.export(now=1), {})
    assert {code for code, _, _ in verifier.findings} == {"over_limit"}


def test_a_limit_that_stops_an_account_can_be_raised_again(ledger: Ledger) -> None:
    """An account that was stopped by a tiny limit, under which nothing fits, goes on with the branch it had."""
    top = root(ledger, epsilon=10, delta="1e-6", pure=False)
    spend(ledger, request(top, core("one", laplace("0.5"))))
    for amount in ("0.000001", 10):
        ledger.change_limit(top.id, limit(amount, "1e-6"), actor="admin", reason="stop")
    assert ledger.audit().findings == ()
