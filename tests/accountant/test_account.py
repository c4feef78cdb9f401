"""Accounts: what they admit, what they show, and why they refuse."""

from __future__ import annotations

import dataclasses
import datetime
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.account import Account, FilterKind, Limit
from accountant.filter import DEFAULT_SHARES, Branch, split_limit
from privacy.composition import compose
from privacy.currency import MU_SQUARED
from privacy.events import Event, GaussianEvent, GaussianThresholdEvent, LaplaceEvent
from privacy.numbers import ATTO, PICO

MICRO = Fraction(1, 10**6)


def opened(*, epsilon: str = "1", delta: Fraction = MICRO) -> Account:
    """A new account; pure when delta is zero."""
    return Account.opened(
        id="account-1",
        dataset="people",
        parent=None,
        principal=None,
        name="root",
        limit=Limit(Fraction(epsilon), delta),
        filter=FilterKind.APPROXIMATE if delta else FilterKind.PURE,
        created=datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    )


def after(account: Account, *events: Event) -> Account:
    """The account when it was charged for these events, one charge each."""
    for event in events:
        account = dataclasses.replace(account, spent=account.spent.add(event.loss(), account.branches))
    return account


def laplace(epsilon: str | Fraction) -> LaplaceEvent:
    """Laplace noise of that epsilon."""
    return LaplaceEvent(l1_sensitivity=Fraction(epsilon), scale=Fraction(1))


def gaussian(mu_squared: Fraction) -> GaussianEvent:
    """Gaussian noise of that mu squared."""
    return GaussianEvent(l2_squared=mu_squared, variance=Fraction(1))


def test_a_new_account_has_everything_left() -> None:
    """Shows the figures of a new account of each kind."""
    for account, branches in (
        (opened(delta=Fraction(0)), (Branch.PURE,)),
        (opened(), tuple(Branch)),
    ):
        assert branches == account.alive_branches()
        assert account.used_share() == 0
        assert account.remaining_epsilon() == 1
    assert opened().remaining_delta() == MICRO * 15 / 100
    assert opened(delta=Fraction(0)).remaining_delta() == 0


def test_pure_figures_are_exact() -> None:
    """Shows that a pure account that spent 0.3 of 1 has used 3/10 and has 0.7 left, to the last digit."""
    account = after(opened(delta=Fraction(0)), laplace("0.1"), laplace("0.2"))
    assert account.used_share() == Fraction(3, 10)
    assert account.remaining_epsilon() == Fraction(7, 10)
    assert account.admits(laplace("0.7").loss())
    assert not account.admits(laplace("0.700000000001").loss())


def test_shares_of_the_gaussian_branch_fit() -> None:
    """Shows that n queries of a share 1/n are all admitted by the Gaussian branch and no further one is."""
    for parts in (1, 3, 7, 10):
        account = opened()
        price = MU_SQUARED.nominal_amount(Fraction(1, parts), account)
        for _ in range(parts):
            assert account.admits(gaussian(price).loss())
            account = after(account, gaussian(price))
        assert Branch.GAUSSIAN in account.alive_branches()
        assert account.used_share() == pytest.approx(1, abs=1e-9)
        assert not account.admits(gaussian(price).loss())


def test_used_share_follows_the_least_used_branch() -> None:
    """Shows that Gaussian traffic is measured by its branch, and that a share of 1/4 leaves 3/4 of epsilon."""
    account = opened(epsilon="2")
    account = after(account, gaussian(MU_SQUARED.nominal_amount(Fraction(1, 2), account)))
    assert account.alive_branches() == (Branch.GAUSSIAN, Branch.CONCENTRATED)
    assert account.used_share() == pytest.approx(Fraction(1, 4), abs=1e-9)
    assert account.remaining_epsilon() == pytest.approx(Fraction(3, 2), abs=1e-9)


def test_a_lowered_limit_leaves_nothing() -> None:
    """Shows that an account below what it already spent admits nothing and shows nothing left."""
    account = after(opened(delta=Fraction(0)), laplace("0.5"))
    limit = Limit(Fraction(1, 4), Fraction(0))
    account = dataclasses.replace(account, limit=limit, branches=split_limit(limit, FilterKind.PURE, DEFAULT_SHARES))
    assert account.alive_branches() == ()
    assert account.used_share() == 1
    assert account.remaining_epsilon() == 0
    assert not account.admits(laplace("0.000001").loss())
    [shortage] = account.explain_refusal(laplace("0.000001").loss())
    assert shortage.measure == "pure"
    assert shortage.remaining == 0


def test_refusals_name_every_amount() -> None:
    """Shows what is short: one amount in a pure account, each branch in an approximate one, delta by itself."""
    pure = after(opened(delta=Fraction(0)), laplace("0.9"))
    [shortage] = pure.explain_refusal(laplace("0.2").loss())
    assert (shortage.measure, shortage.asked, shortage.remaining) == ("pure", Fraction(1, 5), Fraction(1, 10))
    [shortage] = pure.explain_refusal(gaussian(Fraction(1, 100)).loss())
    assert (shortage.measure, shortage.asked, shortage.remaining) == ("pure", None, Fraction(1, 10))

    mixed = after(opened(), gaussian(Fraction(1, 1000)))
    short = {entry.measure: entry for entry in mixed.explain_refusal(laplace("0.9").loss())}
    assert set(short) == {"pure", "mu_squared", "rho", "mixed_pure", "mixed_mu_squared"}
    assert short["pure"].remaining is None
    assert short["mu_squared"].remaining == (mixed.branches.mu_squared or 0) * PICO - Fraction(1, 1000)

    threshold = GaussianThresholdEvent(l2_squared=Fraction(1, 10**6), variance=Fraction(1), delta=MICRO)
    [shortage] = opened().explain_refusal(threshold.loss())
    assert (shortage.measure, shortage.asked, shortage.remaining) == ("delta", MICRO, MICRO * 15 / 100)


def test_remaining_delta_falls_by_what_thresholds_take() -> None:
    """Shows that the cap on deltas is counted down exactly."""
    threshold = GaussianThresholdEvent(l2_squared=Fraction(1, 10**6), variance=Fraction(1), delta=MICRO / 20)
    assert after(opened(), threshold, threshold).remaining_delta() == MICRO / 20


@given(
    spent=st.lists(st.integers(min_value=1, max_value=400), max_size=4),
    asked=st.lists(st.integers(min_value=1, max_value=600), min_size=1, max_size=3),
    by_gaussian=st.lists(st.booleans(), min_size=7, max_size=7),
    pure=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_an_explanation_is_a_refusal(spent: list[int], asked: list[int], by_gaussian: list[bool], pure: bool) -> None:
    """Shows that a charge is explained exactly when it is refused, for random accounts and charges."""
    flags = iter(by_gaussian)

    def event(milli: int) -> Event:
        return gaussian(Fraction(milli, 10**4)) if next(flags) else laplace(Fraction(milli, 1000))

    account = opened(delta=Fraction(0) if pure else MICRO)
    for milli in spent:
        one = event(milli)
        if account.admits(one.loss()):
            account = after(account, one)
    loss = compose([event(milli) for milli in asked])
    assert account.admits(loss) == (not account.explain_refusal(loss))
    assert 0 <= account.used_share() <= 1


def test_gaussian_prices_that_do_not_exist() -> None:
    """Shows that a pure account sells no Gaussian noise, and that nothing, less than nothing and dust buy none."""
    with pytest.raises(ValueError, match="no budget for Gaussian"):
        MU_SQUARED.nominal_amount(Fraction(1, 10), opened(delta=Fraction(0)))
    for wrong in (Fraction(0), Fraction(-1), Fraction(1, 10**12)):
        with pytest.raises(ValueError, match="too small"):
            MU_SQUARED.nominal_amount(wrong, opened())


def test_branches_belong_to_their_limit() -> None:
    """Shows that an account cannot be built from the budgets of a larger limit, nor with more delta than it has."""
    larger = split_limit(Limit(Fraction(2), MICRO), FilterKind.APPROXIMATE, DEFAULT_SHARES)
    with pytest.raises(AssertionError, match="another limit"):
        dataclasses.replace(opened(), branches=larger)
    more = split_limit(Limit(Fraction(1), MICRO * 2), FilterKind.APPROXIMATE, DEFAULT_SHARES)
    with pytest.raises(AssertionError, match="more than the limit's delta"):
        dataclasses.replace(opened(), branches=more)
    assert opened().branches.delta * ATTO == MICRO * 15 / 100
