"""What an account is charged for a spend: never more than was asked, nor more than the policy allows."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.account import Account
from accountant.filter import FIRST_SHARES
from mechanisms.amounts import amount_at, index_up
from mechanisms.calibrate import Calibration, calibrate, losses
from mechanisms.families import FAMILIES, NoiseFamily, Price
from privacy.loss import ZERO_LOSS, Loss
from privacy.policy import Dataset
from privacy.refusal import Refused
from privacy.statistic import CoreStatistics
from server import calibrations, pricing
from server.calibrations import Calibrations
from server.journey.release_key import quality_of
from server.least_spend import refusal_of
from server.pricing import Priced, Wish
from server.spends import affordable_amount
from tests.server.test_prices import account, ask, core_of, with_limits

POLICY = with_limits(epsilon_max=Fraction(1), epsilon_min=Fraction(1, 10**6))
LAPLACE = NoiseFamily.LAPLACE
COUNT = core_of("count")
ByCore = Callable[[Fraction], Sequence[Loss]]
Covered = Callable[[Sequence[Loss]], bool]
KNOWN = {kind: Calibrations() for kind in ("count", "sum", "hidden")}


def charged(leaf: Account, priced: Priced) -> Fraction:
    """What the ledger deducts from the account: the fall of what remains."""
    assert leaf.admits(priced.loss)
    return leaf.remaining_epsilon() - leaf.after(priced.loss).remaining_epsilon()


def after(leaf: Account, *wishes: Wish, dataset: Dataset = POLICY) -> Account:
    """The account when it has paid for these wishes for a count, one after another."""
    for wish in wishes:
        leaf = leaf.after(ask(wish, (leaf,), dataset=dataset).loss)
    return leaf


def refusal(leaf: Account, wish: Wish, kind: str = "count", dataset: Dataset = POLICY) -> Refused | None:
    """Why nothing is run for the wish, None where something is."""
    priced = ask(wish, (leaf,), kind, dataset)
    return refusal_of(priced, [core_of(kind)], wish, path=(leaf,), dataset=dataset, known=Calibrations())


def test_a_width_is_not_bought_for_more_than_the_policy_allows() -> None:
    """After Gaussian answers of 0.8, Laplace noise of an own epsilon below 1 would take more than 1 of the account."""
    leaf = after(account(5, "1e-6"), Wish(epsilon=Fraction(8, 10)))
    wish = Wish(half_width=Fraction(3), noise=LAPLACE)
    dear = ask(wish, (leaf,), dataset=POLICY)
    assert dear.price.amount < 1 < dear.cost
    assert not dear.sold
    refused = refusal(leaf, wish)
    assert refused is not None
    (finding,) = refused.findings
    assert finding.code == "accuracy_unreachable"
    assert f"It needs epsilon {float(dear.cost):.6g}; the query may spend at most 1." in finding.why
    # A wider one is had for less, and so is this one with the other noise.
    for possible in (replace(wish, half_width=Fraction(12)), replace(wish, half_width=Fraction(10), noise=None)):
        priced = ask(possible, (leaf,), dataset=POLICY)
        assert priced.sold
        assert charged(leaf, priced) == priced.cost <= 1


def test_named_laplace_noise_costs_no_more_than_its_spend() -> None:
    """On an account with Gaussian answers a spend of 1 was charged 2.79."""
    leaf = after(account(10, "1e-6"), *[Wish(epsilon=Fraction(1, 10))] * 3)
    priced = ask(Wish(epsilon=Fraction(1), noise=LAPLACE), (leaf,), dataset=POLICY)
    assert Fraction(999, 1000) < priced.cost <= 1
    assert charged(leaf, priced) == priced.cost
    # A planted twin: the nominal amount.
    (twin,) = losses([COUNT], Price(LAPLACE, Fraction(1), Fraction(0)))
    assert leaf.cost(twin) > Fraction(12, 10)


def test_one_laplace_answer_leaves_the_others_gaussian() -> None:
    """The spend of before is Gaussian still, nearly as exact, and costs no more than it says; small spends too."""
    fresh = account(10, "1e-6")
    leaf = after(fresh, Wish(epsilon=Fraction(1, 10), noise=LAPLACE))
    for amount in (Fraction(1, 10), Fraction(1, 100), Fraction(1, 1000)):
        before, now = (ask(Wish(epsilon=amount), (one,), dataset=POLICY) for one in (fresh, leaf))
        assert now.family is before.family is NoiseFamily.GAUSSIAN
        assert now.sold
        assert Fraction(95, 100) * amount < now.cost <= amount
        assert Fraction(3, 4) * before.price.amount < now.price.amount <= before.price.amount


def test_where_gaussian_noise_would_be_cut_short_laplace_noise_answers() -> None:
    """Laplace answers that use much of the Gaussian branch: what Gaussian noise would take of it is more than asked,
    on an account without a mixed branch. With one it goes on, for the same spend."""
    three, wish = [Wish(epsilon=Fraction(1, 2), noise=LAPLACE)] * 3, Wish(epsilon=Fraction(1, 10))
    shared = ask(wish, (after(account(10, "1e-6"), *three),), dataset=POLICY)
    assert (shared.family, shared.sold) == (NoiseFamily.GAUSSIAN, True)
    assert Fraction(99, 1000) < shared.cost <= Fraction(1, 10)
    leaf = after(account(10, "1e-6", shares=FIRST_SHARES), *three)
    priced = ask(wish, (leaf,), dataset=POLICY)
    assert (priced.family, priced.sold, priced.cost) == (LAPLACE, True, Fraction(1, 10))
    # Named, it is refused with the least that would do, which is accepted.
    gaussian = replace(wish, noise=NoiseFamily.GAUSSIAN)
    refused = refusal(leaf, gaussian)
    assert refused is not None
    (finding,) = refused.findings
    assert finding.code == "policy_forbids"
    named = replace(gaussian, epsilon=Fraction(finding.instead[0].split('"')[5]))
    assert refusal(leaf, named) is None
    assert ask(named, (leaf,), dataset=POLICY).cost <= (named.epsilon or 0)


def test_what_remains_can_be_spent_and_more_is_refused_by_the_ledger() -> None:
    """A spend of all that remains buys what it can; one above it is not made smaller."""
    leaf = after(account(1, "1e-6"), *[Wish(epsilon=Fraction(1, 100), noise=LAPLACE)] * 3)
    leaf = after(leaf, Wish(epsilon=Fraction(9, 10)))
    left = Fraction(int(leaf.remaining_epsilon() * 10**12), 10**12)
    assert ask(Wish(epsilon=left), (leaf,), dataset=POLICY).admitted
    assert not ask(Wish(epsilon=left * 2), (leaf,), dataset=POLICY).admitted


@st.composite
def histories(draw: st.DrawFn) -> Account:
    """An approximate account after answers of both families, bought for spends and widths."""
    source = random.Random(draw(st.integers(0, 2**32)))
    leaf = account(source.choice(["0.3", 1, 5, 10, 100]), source.choice(["1e-9", "1e-6", "0.001"]))
    for _ in range(source.randrange(6)):
        noise = source.choice([None, *NoiseFamily])
        if source.random() < 0.7:
            wish = Wish(epsilon=Fraction(source.randrange(1, 10**4), 10**4), noise=noise)
        else:
            wish = Wish(half_width=Fraction(source.randrange(10, 10**4), 10), noise=noise)
        try:
            priced = pricing.price([COUNT], wish, path=(leaf,), dataset=POLICY, known=KNOWN["count"])
        except Refused:
            continue
        if priced.sold and priced.admitted:
            leaf = leaf.after(priced.loss)
    return leaf


@settings(max_examples=40, deadline=None)
@given(
    leaf=histories(),
    kind=st.sampled_from(["count", "sum", "hidden"]),
    amount=st.integers(1, 10**4).map(lambda n: Fraction(n, 10**4)),
    width=st.integers(2, 4_000).map(lambda n: Fraction(n)),
    noise=st.sampled_from([None, *NoiseFamily]),
)
@pytest.mark.slow
def test_no_charge_is_above_what_was_asked_or_what_the_policy_allows(
    leaf: Account, kind: str, amount: Fraction, width: Fraction, noise: NoiseFamily | None
) -> None:
    """Of every family that is offered the price is the charge, and within both bounds."""
    for wish in (
        Wish(epsilon=amount, noise=noise),
        Wish(own_epsilon=amount, noise=noise),
        Wish(half_width=width, noise=noise),
        Wish(noise=noise),
    ):
        cores, known = [core_of(kind)], KNOWN[kind]
        try:
            found = pricing.candidates(cores, wish, path=(leaf,), dataset=POLICY, known=known)
        except Refused:
            continue
        for one in found:
            if one.sold and one.admitted:
                assert charged(leaf, one) == one.cost <= POLICY.limits.epsilon_max
                assert wish.epsilon is None or one.cost <= wish.epsilon
                assert wish.named or wish.half_width or one.raised or one.cost <= POLICY.limits.epsilon_default
        chosen = pricing.price(cores, wish, path=(leaf,), dataset=POLICY, known=known)
        assert chosen == pricing.choose(found, wish)
        refused = refusal_of(chosen, cores, wish, path=(leaf,), dataset=POLICY, known=known)
        assert chosen.sold == (refused is None)


@settings(max_examples=60, deadline=None)
@given(
    leaf=histories(),
    kind=st.sampled_from(["count", "sum"]),
    amount=st.integers(10, 10**4).map(lambda n: Fraction(n, 10**4)),
    noise=st.sampled_from(list(NoiseFamily)),
)
def test_a_spend_buys_as_much_as_it_can(leaf: Account, kind: str, amount: Fraction, noise: NoiseFamily) -> None:
    """The next amount of the grid would cost more, or is more than the nominal one."""
    cores = [core_of(kind)]
    try:
        priced = ask(Wish(epsilon=amount, noise=noise), (leaf,), kind, POLICY)
    except Refused:
        return
    nominal = FAMILIES[noise].currency.nominal_amount(amount, leaf)
    if priced.sold and priced.admitted and priced.price.amount < nominal:
        more = min(amount_at(index_up(priced.price.amount) + 1), nominal)
        loss = sum(losses(cores, replace(priced.price, amount=more)), ZERO_LOSS)
        assert not leaf.admits(loss) or leaf.cost(loss) > amount


def halved(by_core: ByCore, nominal: Fraction, asked: Fraction, leaf: Account, covered: Covered) -> Fraction | None:
    """What `affordable_amount` finds, by halving alone: some twenty losses."""

    def within(amount: Fraction) -> bool:
        loss = sum(by_core(amount), ZERO_LOSS)
        return leaf.admits(loss) and leaf.cost(loss) <= asked

    if within(nominal) or asked > leaf.remaining_epsilon():
        return nominal
    low, high = 0, index_up(nominal)
    while high - low > 1:
        middle = (low + high) // 2
        if within(amount_at(middle)):
            low = middle
        elif covered(by_core(amount_at(middle))):
            high = middle
        else:
            return None
    return amount_at(low) if low else None


@settings(max_examples=80, deadline=None)
@given(
    leaf=histories(),
    kind=st.sampled_from(["count", "sum", "hidden"]),
    amount=st.integers(1, 10**6).map(lambda n: Fraction(n, 10**6)),
    noise=st.sampled_from(list(NoiseFamily)),
)
def test_what_is_bought_is_found_without_many_losses(
    leaf: Account, kind: str, amount: Fraction, noise: NoiseFamily
) -> None:
    """Some five losses find what halving finds with twenty: each of Laplace noise takes part of a millisecond.

    Below a ten-thousandth of epsilon, where a charge is a few steps of an account's sums, more guesses may be wrong.
    """
    cores = [core_of(kind)]
    delta = POLICY.limits.delta_per_query if kind == "hidden" else Fraction(0)
    if not all(FAMILIES[noise].selects(core) for core in cores) or not FAMILIES[noise].currency.pays(leaf):
        return
    try:
        nominal = FAMILIES[noise].currency.nominal_amount(amount, leaf)
        losses(cores, Price(noise, nominal, delta))
    except ValueError:
        return
    tried = 0

    def by_core(amount: Fraction) -> Sequence[Loss]:
        nonlocal tried
        tried += 1
        return losses(cores, Price(noise, amount, delta))

    def covered(_: Sequence[Loss]) -> bool:
        return True

    power = FAMILIES[noise].currency.power
    found = affordable_amount(by_core, nominal=nominal, asked=amount, power=power, leaf=leaf, covered=covered)
    assert tried <= (7 if amount * 10_000 >= 1 else 20)
    try:
        assert halved(by_core, nominal, amount, leaf, covered) == found
    except ValueError:  # less than any noise in range
        assert found is None


def test_no_table_is_made_of_an_amount_that_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of selection take up to 0.2 s each; one was made of the nominal amount, and one of what was bought."""
    leaf = after(account(10, "1e-6"), *[Wish(epsilon=Fraction(1, 10))] * 3)
    made: list[Price] = []

    def counted(cores: Sequence[CoreStatistics], price: Price) -> Calibration:
        made.append(price)
        return calibrate(cores, price)

    monkeypatch.setattr(calibrations, "calibrate", counted)
    wish = Wish(epsilon=Fraction(1, 2), noise=LAPLACE)
    priced = pricing.price([core_of("hidden")], wish, path=(leaf,), dataset=POLICY, known=Calibrations())
    assert priced.sold
    assert priced.price.amount < Fraction(1, 2)
    assert made == [priced.price]


@pytest.mark.parametrize("limit", [("0.3", "0.001"), (1, "1e-6"), (10, "1e-6"), (100, "1e-9")])
@pytest.mark.parametrize("noise", [None, NoiseFamily.GAUSSIAN])
def test_what_a_spend_bought_goes_on_serving_it(limit: tuple[object, object], noise: NoiseFamily | None) -> None:
    """The first Gaussian answer after a Laplace one is a little smaller than later ones, which it serves for free."""
    whole = Fraction(str(limit[0]))
    leaf = after(account(*limit), Wish(epsilon=whole / 1000, noise=LAPLACE))
    for amount in (whole / 1000, whole / 30, whole / 9):
        wish = Wish(epsilon=min(amount, Fraction(1)), noise=noise)
        bought = ask(wish, (leaf,), dataset=POLICY)
        again = ask(wish, (leaf.after(bought.loss),), dataset=POLICY)
        assert bought.family is again.family is NoiseFamily.GAUSSIAN
        assert again.price.amount >= bought.price.amount
        (least,) = (price for price in again.enough if price.family is bought.family)
        assert quality_of(bought.price, Fraction(1)) >= quality_of(least, Fraction(1))
        # A clearly smaller spend does not serve it.
        smaller = ask(replace(wish, epsilon=(wish.epsilon or 0) * Fraction(1, 3)), (leaf,), dataset=POLICY)
        assert smaller.price.amount < least.amount
