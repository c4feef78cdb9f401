"""The filter: budgets of its branches, what it admits, and that it never admits too much."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.filter import (
    AMOUNT_MAX,
    DEFAULT_SHARES,
    FIRST_SHARES,
    NOTHING,
    Branch,
    Branches,
    DeltaShares,
    FilterKind,
    Limit,
    Sums,
    alive_branches,
    fits,
    split_limit,
)
from privacy.composition import compose
from privacy.conversions import concentrated_rho, gaussian_delta, gaussian_mu_squared
from privacy.events import (
    Event,
    GaussianEvent,
    GaussianThresholdEvent,
    LaplaceEvent,
    SparseSessionEvent,
    SparseVectorEvent,
    TruncatedGeometricEvent,
)
from privacy.loss import ZERO_LOSS, Loss
from privacy.numbers import ATTO, PICO, units_down
from tests.privacy.vectors import load

MICRO = Fraction(1, 10**6)


def shares_of(gaussian: int, concentrated: int, mixed: int, groups: int) -> DeltaShares:
    """Shares in the order of the table in filter.md."""
    return DeltaShares(gaussian=gaussian, concentrated=concentrated, mixed=mixed, groups=groups)


SHARES = st.lists(st.integers(min_value=0, max_value=100), min_size=3, max_size=3).map(
    lambda cuts: shares_of(*(high - low for low, high in pairwise([0, *sorted(cuts), 100])))
)
SAME_DEVIATION = 20_000  # variance of Laplace noise at epsilon 0.01: its standard deviation is 141.42


def laplace(epsilon: str | Fraction) -> Event:
    """Laplace noise of that epsilon."""
    return LaplaceEvent(l1_sensitivity=Fraction(epsilon), scale=Fraction(1))


def gaussian(variance: int | Fraction) -> Event:
    """Gaussian noise of that variance for an L2 change of one."""
    return GaussianEvent(l2_squared=Fraction(1), variance=Fraction(variance))


def only(*, pure: int = 1, mu_squared: int | None = None, rho: int | None = None, delta: int = 0) -> Branches:
    """Budgets in units; a branch that is not named is as good as absent."""
    return Branches(pure=pure, mu_squared=mu_squared, rho=rho, delta=delta, gaussian_delta=1, concentrated_delta=1)


def admitted(event: Event, branches: Branches, *, most: int = 5000) -> int:
    """How many equal events the filter admits one after another."""
    sums, loss = NOTHING, event.loss()
    for count in range(most):
        after = sums.add(loss, branches)
        if not fits(after, branches):
            return count
        sums = after
    raise AssertionError("the filter did not stop")


def reference(accountant: str, mechanism: str) -> int:
    """A row of the reference table."""
    rows = load("queries_allowed")["rows"]
    [count] = [
        row["queries"]
        for row in rows
        if row["accountant"].startswith(accountant) and row["mechanism"].startswith(mechanism)
    ]
    assert isinstance(count, int)
    return count


def test_pure_sum_meets_the_reference_table() -> None:
    """Shows that (1, 0) admits exactly 100 Laplace queries of 0.01, and no Gaussian query."""
    branches = split_limit(Limit(Fraction(1), Fraction(0)), FilterKind.PURE, DEFAULT_SHARES)
    assert reference("basic sum (pure)", "Laplace") == 100 == admitted(laplace("0.01"), branches)
    assert admitted(gaussian(SAME_DEVIATION), branches) == 0


def test_gaussian_branch_meets_the_reference_table() -> None:
    """Shows that the whole delta in the Gaussian branch admits 1,120 Gaussian and 356 boxes of 0.01, (1, 1e-6)."""
    budget = units_down(gaussian_mu_squared(epsilon=Fraction(1), delta=MICRO), PICO)
    box = TruncatedGeometricEvent(epsilon=Fraction(1, 100), delta=ATTO)
    assert (
        reference("GDP filter (exact", "Gaussian")
        == 1120
        == admitted(gaussian(SAME_DEVIATION), only(mu_squared=budget))
    )
    assert reference("GDP filter, mu(eps0)", "Laplace") == 356 == admitted(box, only(mu_squared=budget, delta=10**6))
    # Continuous Laplace noise is a little cheaper than the box that the table charges for it.
    assert admitted(laplace("0.01"), only(mu_squared=budget)) == 358


def test_concentrated_branch_meets_the_reference_table() -> None:
    """Shows that the whole delta in the concentrated branch admits 974 Gaussian, 488 Laplace and 487 box queries."""
    budget = units_down(concentrated_rho(epsilon=Fraction(1), delta=MICRO), PICO)
    box = TruncatedGeometricEvent(epsilon=Fraction(1, 100), delta=ATTO)
    assert (
        reference("zCDP filter + CKS conversion", "Gaussian")
        == 974
        == admitted(gaussian(SAME_DEVIATION), only(rho=budget))
    )
    assert reference("zCDP filter, tight Laplace rho", "Laplace") == 488 == admitted(laplace("0.01"), only(rho=budget))
    assert reference("zCDP filter rho=eps0^2/2", "Laplace") == 487 == admitted(box, only(rho=budget, delta=10**6))


def test_ten_tenths_fill_one() -> None:
    """Shows that ten charges of 0.1 fill a limit of 1 exactly and the eleventh, however small, is refused."""
    for limit, kind in (
        (Limit(Fraction(1), Fraction(0)), FilterKind.PURE),
        (Limit(Fraction(1), MICRO), FilterKind.APPROXIMATE),
    ):
        branches = split_limit(limit, kind, DEFAULT_SHARES)
        sums = NOTHING
        for _ in range(10):
            sums = sums.add(laplace("0.1").loss(), branches)
            assert fits(sums, branches)
        assert sums.pure == branches.pure == 10**12
        assert not fits(sums.add(laplace("0.1").loss(), branches), branches)
        assert not fits(sums.add(laplace("1e-29").loss(), branches), branches), "the least charge is one unit"


def test_split_of_a_limit() -> None:
    """Shows the first split of (1, 1e-6): half for thresholds, a quarter each for two branches."""
    branches = split_limit(Limit(Fraction(1), MICRO), FilterKind.APPROXIMATE, FIRST_SHARES)
    assert branches.pure == 10**12
    assert branches.delta == 5 * 10**11
    assert branches.gaussian_delta == branches.concentrated_delta == 25 * 10**10
    assert branches.delta + branches.gaussian_delta + branches.concentrated_delta == 10**12
    assert branches.mu_squared is not None
    assert branches.rho is not None
    # One release over the whole budget needs the sigma 4.2247 with all of delta and this with a quarter of it
    # (root of Balle and Wang's delta by scipy's norm and brentq).
    assert (branches.mu_squared * float(PICO)) ** -0.5 == pytest.approx(4.5022542554, rel=1e-9)
    assert branches.mu_squared * PICO <= gaussian_mu_squared(epsilon=Fraction(1), delta=MICRO / 4)
    assert branches.rho * PICO <= concentrated_rho(epsilon=Fraction(1), delta=MICRO / 4)


@given(
    epsilon=st.integers(min_value=1, max_value=10**18),
    delta=st.integers(min_value=4, max_value=10**16),
    shares=SHARES,
)
@settings(max_examples=60, deadline=None)
def test_budgets_are_within_the_limit(epsilon: int, delta: int, shares: DeltaShares) -> None:
    """Shows for limits of any size that shares add up to delta at most and every budget can be stored."""
    branches = split_limit(Limit(epsilon * PICO, delta * ATTO), FilterKind.APPROXIMATE, shares)
    assert branches.delta + branches.gaussian_delta + branches.concentrated_delta <= delta
    assert branches.pure == epsilon
    for budget in (branches.mu_squared, branches.rho):
        assert budget is None or 0 < budget <= AMOUNT_MAX


@pytest.mark.parametrize("shares", [FIRST_SHARES, DEFAULT_SHARES, shares_of(100, 0, 0, 0)])
def test_the_gaussian_budget_keeps_its_delta(shares: DeltaShares) -> None:
    """Shows that a Gaussian with the whole budget is (E, g delta)-DP, by the formula of the other direction."""
    share = MICRO * shares.gaussian / 100
    for epsilon in ("0.1", "1", "10"):
        branches = split_limit(Limit(Fraction(epsilon), MICRO), FilterKind.APPROXIMATE, shares)
        assert branches.mu_squared is not None
        root = Fraction(math.isqrt(branches.mu_squared * 10**12), 10**12)  # not above the root of the budget
        assert share * Fraction(999, 1000) < gaussian_delta(mu=root, epsilon=Fraction(epsilon)) <= share


@pytest.mark.parametrize(
    "wrong", [(71, 10, 0, 20), (70, 10, 5, 14), (-1, 51, 0, 50), (101, -1, 0, 0), (50, 10, 50, 10), (0, 0, 0, 0)]
)
def test_shares_are_a_whole(wrong: tuple[int, int, int, int]) -> None:
    """Shows that shares which give delta twice, waste it or are negative cannot be made."""
    with pytest.raises(ValueError, match="add up to 100"):
        shares_of(*wrong)


def test_counts_that_an_account_affords() -> None:
    """Shows that of (1, 1e-6) the division of new accounts leaves 1,082 counts of deviation 141.4, the first one 986,
    and that a share of nothing is a branch that nothing fits."""
    limit, count = Limit(Fraction(1), MICRO), gaussian(SAME_DEVIATION)
    counts = [
        admitted(count, split_limit(limit, FilterKind.APPROXIMATE, shares))
        for shares in (DEFAULT_SHARES, FIRST_SHARES, shares_of(0, 0, 0, 100))
    ]
    assert counts == [1082, 986, 0]
    groups = GaussianThresholdEvent(l2_squared=Fraction(1), variance=Fraction(10**9), delta=ATTO)
    assert admitted(groups, split_limit(limit, FilterKind.APPROXIMATE, shares_of(100, 0, 0, 0))) == 0


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [("0", "0"), ("-1", "0"), ("1000001", "0"), ("1e-13", "0"), ("1", "-1e-6"), ("1", "0.02"), ("1", "1e-19")],
)
def test_limits_out_of_range_are_refused(epsilon: str, delta: str) -> None:
    """Shows that zero, negative, huge and too fine limits raise ValueError."""
    with pytest.raises(ValueError, match=r"of a limit must be|must be a whole number"):
        Limit(Fraction(epsilon), Fraction(delta))


@pytest.mark.parametrize("wrong", [1.0, math.nan, math.inf, 1, "1", None])
def test_limits_are_exact(wrong: object) -> None:
    """Shows that floats (with NaN), integers and text are no limit."""
    with pytest.raises(TypeError, match="must be Fractions"):
        Limit(wrong, Fraction(0))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be Fractions"):
        Limit(Fraction(1), wrong)  # type: ignore[arg-type]


def test_kinds_and_deltas_belong_together() -> None:
    """Shows that a pure account has no delta, and an approximate one enough of it to share."""
    with pytest.raises(ValueError, match="pure account has delta 0"):
        split_limit(Limit(Fraction(1), MICRO), FilterKind.PURE, DEFAULT_SHARES)
    for delta in (0, 3):
        with pytest.raises(ValueError, match="needs a delta"):
            split_limit(Limit(Fraction(1), delta * ATTO), FilterKind.APPROXIMATE, DEFAULT_SHARES)


def test_a_pure_account_admits_no_delta() -> None:
    """Shows that neither a delta of one atto nor a charge without a pure epsilon enters a pure account."""
    branches = split_limit(Limit(Fraction(10), Fraction(0)), FilterKind.PURE, DEFAULT_SHARES)
    box = TruncatedGeometricEvent(epsilon=Fraction(1, 10), delta=Fraction(1, 10**200))
    assert fits(NOTHING.add(laplace("0.1").loss(), branches), branches)
    assert not fits(NOTHING.add(box.loss(), branches), branches)
    assert not fits(NOTHING.add(gaussian(10**6).loss(), branches), branches)
    assert not fits(NOTHING.add(compose([laplace("0.1"), gaussian(10**6)]), branches), branches)


def test_branches_die_and_others_carry_on() -> None:
    """Shows the union: a Gaussian kills the pure branch for good, and the others take the account further."""
    branches = split_limit(Limit(Fraction(1), MICRO), FilterKind.APPROXIMATE, DEFAULT_SHARES)
    sums = NOTHING
    assert alive_branches(sums, branches) == tuple(Branch)
    sums = sums.add(laplace("0.5").loss(), branches)
    assert Branch.PURE in alive_branches(sums, branches)
    assert Branch.GAUSSIAN not in alive_branches(sums, branches)
    small = NOTHING.add(laplace("0.01").loss(), branches).add(gaussian(10**4).loss(), branches)
    assert alive_branches(small, branches) == (Branch.GAUSSIAN, Branch.CONCENTRATED, Branch.MIXED)
    assert small.pure is None
    assert small.add(laplace("0.01").loss(), branches).pure is None
    # After half of it by Laplace noise a Gaussian is admitted by the mixed branch alone.
    assert not fits(
        sums.add(gaussian(10**6).loss(), branches), replace(branches, mixed_pure=None, mixed_mu_squared=None)
    )
    assert alive_branches(sums.add(gaussian(10**6).loss(), branches), branches) == (Branch.MIXED,)
    assert fits(sums.add(laplace("0.5").loss(), branches), branches)


def test_many_small_laplace_queries_pass_the_pure_sum() -> None:
    """Shows that the union admits more than the pure sum: Laplace queries of 0.01 go on after the hundredth."""
    branches = split_limit(Limit(Fraction(1), MICRO), FilterKind.APPROXIMATE, DEFAULT_SHARES)
    count = admitted(laplace("0.01"), branches)
    assert 390 < count < reference("zCDP filter, tight Laplace rho", "Laplace")


def test_the_cap_on_deltas_is_its_own() -> None:
    """Shows that deltas of thresholds stop at their share of the limit's, whatever else is left."""
    branches = split_limit(Limit(Fraction(1), MICRO), FilterKind.APPROXIMATE, FIRST_SHARES)
    event = GaussianThresholdEvent(l2_squared=Fraction(1), variance=Fraction(10**9), delta=Fraction(1, 10**7))
    assert admitted(event, branches) == 5
    sums = NOTHING.add(event.loss().times(5), branches)
    assert fits(sums, branches)
    assert fits(sums.add(gaussian(10**9).loss(), branches), branches), "noise without a delta goes on"
    assert not fits(sums.add(laplace("0.1").loss(), branches).add(event.loss(), branches), branches)


def test_true_loss_of_what_is_admitted() -> None:
    """Shows with exact composition of randomised response that the Gaussian branch keeps its delta, not vacuously.

    The optimum for k boxes of 0.01 (Kairouz, Oh and Viswanath 2015, Theorem 3.3) is far within delta after all that
    the filter admits, and beyond it after twice as many.
    """
    branches = split_limit(Limit(Fraction(1), MICRO), FilterKind.APPROXIMATE, DEFAULT_SHARES)
    box = TruncatedGeometricEvent(epsilon=Fraction(1, 100), delta=ATTO)
    count = admitted(box, branches)
    with mpmath.workdps(40):
        assert _response_delta(count) <= mpmath.mpf("1e-6") * 7 / 10
        assert _response_delta(2 * count) > mpmath.mpf("1e-6")


def _response_delta(count: int) -> mpmath.mpf:
    """The hockey-stick divergence at e^1 of `count` randomised responses of 0.01."""
    p = 1 / (1 + mpmath.exp(mpmath.mpf("-0.01")))
    total = mpmath.mpf(0)
    for lies in range(count + 1):
        ways = mpmath.binomial(count, lies)
        here = ways * p ** (count - lies) * (1 - p) ** lies
        there = ways * (1 - p) ** (count - lies) * p**lies
        total += max(here - mpmath.e * there, mpmath.mpf(0))
    return total


_EVENTS = st.one_of(
    st.integers(min_value=1, max_value=300).map(lambda n: laplace(Fraction(n, 1000))),
    st.integers(min_value=20, max_value=10**5).map(gaussian),
    st.builds(
        TruncatedGeometricEvent,
        epsilon=st.integers(min_value=1, max_value=200).map(lambda n: Fraction(n, 1000)),
        delta=st.integers(min_value=1, max_value=10**11).map(lambda n: Fraction(n, 3 * 10**18)),
    ),
    st.builds(
        GaussianThresholdEvent,
        l2_squared=st.just(Fraction(1)),
        variance=st.integers(min_value=20, max_value=10**5).map(Fraction),
        delta=st.integers(min_value=1, max_value=10**11).map(lambda n: Fraction(n, 3 * 10**18)),
    ),
)


@given(
    charges=st.lists(st.lists(_EVENTS, min_size=1, max_size=3), max_size=40),
    pure=st.booleans(),
    shares=SHARES,
)
@settings(max_examples=80, deadline=None)
def test_no_sequence_exceeds_every_budget(charges: list[list[Event]], pure: bool, shares: DeltaShares) -> None:
    """Shows that after any sequence the exact losses are within delta's cap and within some branch's true budget."""
    limit = Limit(Fraction(1), Fraction(0) if pure else MICRO)
    branches = split_limit(limit, FilterKind.PURE if pure else FilterKind.APPROXIMATE, shares)
    sums, truth, in_pure, in_noise = NOTHING, ZERO_LOSS, ZERO_LOSS, ZERO_LOSS
    for events in charges:
        loss = compose(events)
        after = sums.add(loss, branches)
        if not fits(after, branches):
            continue
        if after.mixed_pure != sums.mixed_pure:
            in_pure += loss
        else:
            in_noise += loss
        sums, truth = after, truth + loss
        assert truth.delta <= limit.delta * shares.groups / 100
        assert _within(truth, limit, shares) or _mixed_within(in_pure, in_noise, limit, shares)
        assert not pure or truth.pure is not None


def _within(truth: Loss, limit: Limit, shares: DeltaShares) -> bool:
    if truth.pure is not None and truth.pure <= limit.epsilon:
        return True
    if limit.delta == 0:
        return False
    assert truth.mu_squared is not None
    assert truth.rho is not None
    gaussian_share, concentrated_share = (limit.delta * share / 100 for share in (shares.gaussian, shares.concentrated))
    return bool(
        (gaussian_share and truth.mu_squared <= gaussian_mu_squared(epsilon=limit.epsilon, delta=gaussian_share))
        or (concentrated_share and truth.rho <= concentrated_rho(epsilon=limit.epsilon, delta=concentrated_share))
    )


def _mixed_within(in_pure: Loss, in_noise: Loss, limit: Limit, shares: DeltaShares) -> bool:
    """The same of the mixed branch: every charge is in one of the two losses."""
    if not shares.mixed or in_pure.pure is None or in_noise.mu_squared is None:
        return False
    most = gaussian_mu_squared(epsilon=limit.epsilon / 2, delta=limit.delta * shares.mixed / 100)
    return in_pure.pure <= limit.epsilon / 2 and in_noise.mu_squared <= most


@given(charges=st.lists(_EVENTS, min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_sums_cover_the_exact_losses(charges: list[Event]) -> None:
    """Shows that sums in whole units are never below the exact losses, and above by one unit a charge at most."""
    sums, truth, branches = NOTHING, ZERO_LOSS, only()
    for event in charges:
        sums, truth = sums.add(event.loss(), branches), truth + event.loss()
    for stored, exact, unit in (
        (sums.pure, truth.pure, PICO),
        (sums.rho, truth.rho, PICO),
        (sums.mu_squared, truth.mu_squared, PICO),
        (sums.delta, truth.delta, ATTO),
    ):
        assert (stored is None) == (exact is None)
        if stored is not None and exact is not None:
            assert exact <= stored * unit < exact + len(charges) * unit


def test_charges_are_rounded_once() -> None:
    """Shows that three thirds in one charge are one, and in three charges three picos more than they should be."""
    third, branches = laplace(Fraction(1, 3)), only()
    assert Sums.of(compose([third] * 3)).pure == 10**12
    assert (
        NOTHING.add(third.loss(), branches).add(third.loss(), branches).add(third.loss(), branches).pure == 10**12 + 2
    )


def test_huge_amounts_are_infinite() -> None:
    """Shows that what a ledger column cannot hold counts as infinite, alone or as a sum, and stays so."""
    huge = LaplaceEvent(l1_sensitivity=Fraction(10**6), scale=Fraction(1)).loss()
    sums, branches = Sums.of(huge), only()
    assert sums.pure == 10**18
    for _ in range(4):
        sums = sums.add(huge, branches)
    assert sums.pure is None
    assert sums.add(laplace("0.1").loss(), branches).pure is None
    assert Sums.of(GaussianEvent(l2_squared=Fraction(10**12), variance=Fraction(1)).loss()).mu_squared is None
    assert Sums(delta=AMOUNT_MAX).plus(Sums(delta=1), branches).delta == AMOUNT_MAX
    assert not fits(sums, split_limit(Limit(Fraction(10**6), Fraction(0)), FilterKind.PURE, DEFAULT_SHARES))


def test_sums_cannot_be_negative() -> None:
    """Shows that no code path can lower a balance by adding a negative amount."""
    for wrong in ({"pure": -1}, {"rho": -1}, {"mu_squared": -1}, {"delta": -1}, {"delta": AMOUNT_MAX + 1}):
        with pytest.raises(AssertionError):
            Sums(**wrong)


def test_a_session_closes_the_concentrated_branch_for_good() -> None:
    """Shows that what stays open beside others leaves the pure and the Gaussian branch, and that no later charge is
    admitted by the sum of rho; the same comparisons released at once leave it alive."""
    branches = split_limit(Limit(Fraction(1), MICRO), FilterKind.APPROXIMATE, DEFAULT_SHARES)
    scales = {"threshold_scale": Fraction(2000), "query_scale": Fraction(2000), "moves": Fraction(1)}
    session, at_once = (
        kind(sensitivity=Fraction(1), hits=Fraction(1), **scales).loss()
        for kind in (SparseSessionEvent, SparseVectorEvent)
    )
    small = laplace(Fraction(1, 100)).loss()

    def admits(first: Loss) -> tuple[int, Sums]:
        sums, count = NOTHING.add(first, branches), 0
        assert fits(sums, branches)
        while fits(sums.add(small, branches), branches):
            sums, count = sums.add(small, branches), count + 1
        return count, sums

    (with_session, after), (without, other) = admits(session), admits(at_once)
    assert Branch.CONCENTRATED not in alive_branches(after, branches)
    assert alive_branches(other, branches) == (Branch.CONCENTRATED,)
    assert with_session < without
    assert not fits(other.add(session, branches), branches), "an account that only this branch keeps opens no session"
    assert fits(other, branches)
