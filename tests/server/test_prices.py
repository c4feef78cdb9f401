"""Prices as pure functions of plans, wishes and accounts: least over families, floors, deltas, reuse."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.account import Account, FilterKind, Limit
from accountant.filter import DEFAULT_SHARES, DeltaShares, Sums
from mechanisms.calibrate import UNKNOWN_WIDTH, UNPROMISED_WIDTH, Price
from mechanisms.families import ONE_GROUP, NoiseFamily
from privacy.aggregate import AggregateFunction
from privacy.composition import compose
from privacy.currency import MU_SQUARED
from privacy.events import GaussianEvent, LaplaceEvent
from privacy.numbers import PICO
from privacy.own import own_figure
from privacy.policy import Dataset, Limits, Table
from privacy.refusal import Refused
from privacy.statistic import CoreStatistics, Estimate
from privacy.unit import PrivacyUnit
from server import pricing
from server.calibrations import Calibrations
from server.floor import RUNS, Floor, epsilon_min
from server.journey.charges import serving_laws
from server.journey.release_key import quality_of, release_key
from server.least_spend import refusal_of
from server.price_refusals import above_max_cost, unreachable
from server.pricing import Priced, Wish
from server.spends import cost_on
from tests.mechanisms.support import count, moments, plain_sum, scalar_core, selected_core

COUNT = Estimate("n", AggregateFunction.ROWS, "n", integer=True)
SUM = Estimate("s", AggregateFunction.SUM, "s")
LIMITS = Limits(epsilon_max=Fraction(1000), delta_per_query=Fraction(1, 10**9))
DATASET = Dataset("d", PrivacyUnit("t", "k"), (Table("t", (), protected=False),), 1, "v", limits=LIMITS)


def account(
    epsilon: object,
    delta: object = 0,
    *,
    name: str = "a",
    parent: str | None = None,
    shares: DeltaShares = DEFAULT_SHARES,
) -> Account:
    """An account that spent nothing: pure when its delta is zero."""
    limit = Limit(Fraction(str(epsilon)), Fraction(str(delta)))
    kind = FilterKind.APPROXIMATE if limit.delta else FilterKind.PURE
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return Account.opened(
        id=name, dataset="d", parent=parent, principal=None, name=name, limit=limit, filter=kind, shares=shares,
        created=moment,
    )  # fmt: skip


def core_of(kind: str) -> CoreStatistics:
    """A question: a count, a sum, or a count of groups that are not public."""
    if kind == "count":
        return scalar_core([count()], [COUNT])
    if kind == "sum":
        return scalar_core([count(), plain_sum()], [COUNT, SUM])
    return selected_core()


def ask(wish: Wish, path: tuple[Account, ...], kind: str = "count", dataset: Dataset = DATASET) -> Priced:
    """What step 4 says."""
    cores = [core_of(kind)]
    priced = pricing.price(cores, wish, path=path, dataset=dataset, known=Calibrations())
    # The short way to it is the same as the long one.
    found = pricing.candidates(cores, wish, path=path, dataset=dataset, known=Calibrations())
    assert pricing.choose(found, wish) == priced
    return priced


def with_limits(**limits: object) -> Dataset:
    return replace(DATASET, limits=replace(LIMITS, **limits))  # type: ignore[arg-type]


# A looser wish never costs more (point 16)


def test_a_wider_half_width_is_not_charged_more_than_a_narrower_one() -> None:
    """The pair of the issue: on (1, 1e-6) a half width of 8 cost 0.352 and one of 10 cost 0.706."""
    path = (account(1, "1e-6"),)
    narrow, wide = (ask(Wish(half_width=Fraction(width)), path) for width in (8, 10))
    assert wide.cost <= narrow.cost
    assert wide.cost < Fraction(353, 1000)


def charged(leaf: Account, source: random.Random, charges: int) -> Account:
    """An account after so many charges of either noise, those of them that it admits."""
    for _ in range(charges):
        scale = Fraction(source.randrange(1, 10_000), 100)
        event = (
            LaplaceEvent(l1_sensitivity=Fraction(1), scale=scale)
            if source.random() < 0.6
            else GaussianEvent(l2_squared=Fraction(1), variance=scale**2)
        )
        loss = compose([event])
        if leaf.admits(loss):
            leaf = leaf.after(loss)
    return leaf


@st.composite
def accounts(draw: st.DrawFn) -> tuple[Account, ...]:
    """A leaf and its root with random limits and histories."""
    source = random.Random(draw(st.integers(0, 2**32)))
    root = account(source.choice([1, 5, 20, 300]), source.choice(["1e-6", "1e-5", "0.001", 0]), name="root")
    delta = source.choice(["1e-7", "1e-6", "0.0001", 0])
    leaf = account(source.choice(["0.3", 1, 3, 10]), delta, name="leaf", parent="root")
    leaf = charged(leaf, source, source.randrange(6))
    return leaf, replace(root, spent=leaf.spent)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    path=accounts(),
    kind=st.sampled_from(["count", "sum", "hidden"]),
    widths=st.lists(st.integers(2, 4_000_000).map(lambda n: Fraction(n, 1000)), min_size=2, max_size=6),
    confidence=st.sampled_from([Fraction(8, 10), Fraction(95, 100), Fraction(999, 1000)]),
)
def test_a_looser_wish_never_costs_more(
    path: tuple[Account, ...], kind: str, widths: list[Fraction], confidence: Fraction
) -> None:
    """Whatever the accounts have spent: of two widths that can be had, the wider one is had too, and costs no more."""
    prices = []
    for width in sorted(widths):
        try:
            prices.append(ask(Wish(half_width=width, confidence=confidence), path, kind))
        except Refused:
            # Once a width can be promised, every wider one can.
            assert not prices
    for narrow, wide in itertools.pairwise(prices):
        if narrow.admitted:
            assert wide.admitted
            assert wide.cost <= narrow.cost
            assert wide.cost == cost_on(path[0], wide.loss)


@settings(max_examples=40, deadline=None)
@given(
    width=st.integers(1, 10**6).map(lambda n: Fraction(n, 97)),
    nearer=st.integers(0, 10**9).map(lambda n: Fraction(n, 10**15)),
    kind=st.sampled_from(["count", "sum"]),
)
def test_widths_that_hardly_differ_keep_their_order(width: Fraction, nearer: Fraction, kind: str) -> None:
    """The search for a price has no tolerance of its own that could turn two near wishes round."""
    path = (account(1000, "1e-3"),)
    try:
        narrow = ask(Wish(half_width=width), path, kind)
    except Refused:
        return
    assert ask(Wish(half_width=width * (1 + nearer)), path, kind).cost <= narrow.cost


@settings(max_examples=60, deadline=None)
@given(
    path=accounts(),
    kind=st.sampled_from(["count", "sum", "hidden"]),
    amount=st.integers(1, 10**6).map(lambda n: Fraction(n, 10**6)),
    own=st.booleans(),
)
def test_the_short_way_to_a_price_is_the_long_one(
    path: tuple[Account, ...], kind: str, amount: Fraction, own: bool
) -> None:
    """A family that cannot be chosen is not calibrated, and nothing else changes (`ask` compares both)."""
    try:
        ask(Wish(own_epsilon=amount) if own else Wish(epsilon=amount), path, kind)
    except Refused:
        return


# The floor (point 3)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NoiseFamily)
@pytest.mark.parametrize("kind", ["count", "sum", "hidden"])
@pytest.mark.parametrize("root", [account(1, "1e-6"), account(20, "1e-5"), account(10)], ids=["1", "20", "pure"])
@pytest.mark.sparse(6)
def test_a_root_affords_no_more_fresh_runs_than_its_floor_allows(root: Account, kind: str, noise: str) -> None:
    """The least price of either family, over and over: the root is used up after 100,000 runs, for all its branches."""
    if noise == "gaussian" and root.filter is FilterKind.PURE:
        return
    if kind == "hidden" and root.filter is FilterKind.PURE:
        return
    wish = Wish(half_width=Fraction(10**9), noise=noise)  # type: ignore[arg-type]
    priced = ask(wish, (root,), kind)
    assert priced.raised
    one = replace(priced.loss, delta=Fraction(0))
    assert RUNS * Fraction(95, 100) <= root.charges_left(one) <= RUNS * Fraction(1001, 1000) or kind == "hidden"
    assert root.charges_left(one) <= RUNS * Fraction(1001, 1000)
    # A planted twin: the floor taken in epsilon alone would let Laplace noise be asked for very much more often.
    if noise is NoiseFamily.LAPLACE and root.filter is FilterKind.APPROXIMATE and kind == "count":
        twin = LaplaceEvent(l1_sensitivity=Fraction(1), scale=RUNS / root.limit.epsilon).loss()
        assert root.charges_left(twin) > 10 * RUNS


@pytest.mark.parametrize("noise", NoiseFamily)
@pytest.mark.parametrize("way", ["epsilon", "own_epsilon"])
def test_a_spend_below_the_floor_names_the_least_that_is_accepted(noise: str, way: str) -> None:
    """1e-9 of an account is refused; what the refusal names is accepted, and a hundredth less is not."""
    root = account(20, "1e-5", name="root")
    leaf = account(5, "1e-6", name="leaf", parent="root")
    path = (leaf, root)
    cores = [core_of("sum")]

    def priced(amount: Fraction) -> Priced:
        wish = Wish(noise=noise, **{way: amount})  # type: ignore[arg-type]
        return ask(wish, path, "sum")

    low = priced(Fraction(1, 10**9))
    assert low.below_floor
    wish = Wish(noise=noise, **{way: Fraction(1, 10**9)})  # type: ignore[arg-type]
    refused = refusal_of(low, cores, wish, path=path, dataset=DATASET, known=Calibrations())
    assert refused is not None
    (finding,) = refused.findings
    assert finding.code == "policy_forbids"
    named = Fraction(finding.instead[0].split('"')[5])
    assert not priced(named).below_floor
    assert priced(named * Fraction(98, 100)).below_floor


def test_a_price_that_the_server_chooses_is_raised_to_the_floor() -> None:
    """Neither a wide half width nor a small default can be had for less than the floor; the answer is more exact."""
    path = (account(10, "1e-6"),)
    wide = ask(Wish(half_width=Fraction(10**8)), path)
    assert wide.raised
    assert Floor.of(DATASET, path[0]).covered([core_of("count")], [wide.loss])
    default = ask(Wish(), path, dataset=with_limits(epsilon_default=Fraction(1, 10**9)))
    assert default.raised
    assert not ask(Wish(half_width=Fraction(50)), path).raised


def test_all_that_is_raised_to_the_floor_costs_the_same() -> None:
    """The floor is one number for a plan, wherever the search for it began (found by hypothesis: 556 and 557)."""
    path = (account("0.3", "0.0001", name="leaf", parent="root"), account(5, "1e-6", name="root"))
    costs = {
        ask(Wish(half_width=Fraction(width), noise=NoiseFamily.LAPLACE), path).cost
        for width in (1100, 1101, 5000, 10**8)
    }
    assert len(costs) == 1


def test_the_policys_floor_is_an_amount_of_the_root() -> None:
    """With `epsilon_min` 0.01 a root of 1 affords a hundred runs."""
    dataset = with_limits(epsilon_min=Fraction(1, 100))
    for root in (account(1, "1e-6"), account(1)):
        priced = ask(Wish(half_width=Fraction(10**9)), (root,), dataset=dataset)
        assert 99 <= root.charges_left(priced.loss) <= 100
    assert epsilon_min(DATASET, account(10**6, "1e-5")) == Fraction(1, 1000)


# What an answer promises by itself (point 12)


def test_the_two_accounts_of_the_issue_say_what_epsilon_a_tenth_promises() -> None:
    """The same spend of 0.1 promises very different things on accounts of 1 and of 10, and the own figure says so."""
    owns = []
    for epsilon in (1, 10):
        leaf = account(epsilon, "1e-6")
        priced = ask(Wish(epsilon=Fraction(1, 10), noise=NoiseFamily.GAUSSIAN), (leaf,))
        owns.append(own_figure(priced.calibration.events(), **pricing.own_deltas(leaf, DATASET)))
        widths = priced.calibration.predicted_half_widths("core", Fraction(95, 100))
        assert widths["n"] is not None
    assert [own.delta for own in owns] == [Fraction(1, 10**6)] * 2
    assert owns[0].epsilon < owns[1].epsilon


def test_a_spend_of_an_own_epsilon_promises_that_much() -> None:
    """Of either family and with or without groups to select: the figure is at most what was asked, and nearly it."""
    for kind in ("count", "sum", "hidden"):
        for noise in NoiseFamily:
            leaf = account(10, "1e-6")
            wish = Wish(own_epsilon=Fraction(3, 10), noise=noise)  # type: ignore[arg-type]
            priced = ask(wish, (leaf,), kind)
            own = own_figure(priced.calibration.events(), **pricing.own_deltas(leaf, DATASET))
            assert Fraction(2999, 10_000) < own.epsilon <= Fraction(3, 10)


@settings(max_examples=40, deadline=None)
@given(
    path=accounts(),
    kind=st.sampled_from(["count", "sum", "hidden"]),
    owns=st.lists(st.integers(0, 300).map(lambda n: Fraction(round(1.05**n), 10**5)), min_size=2, max_size=4),
)
def test_a_smaller_own_epsilon_never_costs_more(path: tuple[Account, ...], kind: str, owns: list[Fraction]) -> None:
    """Whatever the accounts have spent: of two promises that are sold, the smaller one costs no more."""
    prices = []
    for own in sorted(owns):
        with contextlib.suppress(Refused):
            prices.append(ask(Wish(own_epsilon=own), path, kind))
    sold = [one for one in prices if one.admitted and one.sold]
    assert all(less.cost <= more.cost for less, more in itertools.pairwise(sold))


def test_an_own_epsilon_takes_the_same_noise_from_the_floor_on() -> None:
    """Below the floor of Gaussian noise there is a refusal, where Laplace noise would cost ten times the floor.

    Near the limit Laplace noise costs less, and answers.
    """
    path, cores = (account(10, "1e-6"),), [core_of("count")]

    def found(own: str, noise: NoiseFamily | None = None) -> Priced:
        return ask(Wish(own_epsilon=Fraction(own), noise=noise), path)

    below = found("0.01")
    assert (below.family, below.below_floor) == (NoiseFamily.GAUSSIAN, True)
    named = found("0.01", NoiseFamily.LAPLACE)
    assert named.sold
    refused = refusal_of(
        below, cores, Wish(own_epsilon=Fraction(1, 100)), path=path, dataset=DATASET, known=Calibrations()
    )
    assert refused is not None
    first, second, _ = refused.findings[0].instead
    assert second.startswith('"noise": "laplace"')
    least = Fraction(first.split('"')[5])
    sold = ask(Wish(own_epsilon=least), path)
    assert (sold.family, sold.sold) == (NoiseFamily.GAUSSIAN, True)
    assert 3 * sold.cost < named.cost
    path = (account(1, "1e-6"),)
    assert [found(own).family.value for own in ("0.5", "0.75", "0.99", "1")] == ["gaussian"] * 2 + ["laplace"] * 2
    # Twin: preferred noise first, as for a spend. The promise of 0.99 costs less than that of 0.98 then.
    last = found("0.98", NoiseFamily.GAUSSIAN)
    assert last.admitted
    assert not found("0.99", NoiseFamily.GAUSSIAN).admitted
    assert found("0.99").cost < last.cost


def test_on_a_pure_account_both_ways_to_spend_are_the_same() -> None:
    """Nominal epsilon, own epsilon and the sum of the events' epsilons are one number."""
    leaf = account(10)
    for amount in (Fraction(1, 10), Fraction(7, 3).limit_denominator(1000)):
        nominal = ask(Wish(epsilon=Fraction(math.floor(amount * 1000), 1000)), (leaf,), "sum")
        own = ask(Wish(own_epsilon=nominal.epsilon), (leaf,), "sum")
        assert nominal.price == own.price
        figure = own_figure(nominal.calibration.events(), **pricing.own_deltas(leaf, DATASET))
        assert (math.ceil(figure.epsilon / PICO) * PICO, figure.delta) == (nominal.epsilon, 0)
        assert nominal.cost == nominal.epsilon


def test_an_own_epsilon_beyond_the_policy_is_refused_in_the_accounts_words() -> None:
    """The refusal names the largest spend of the account, which is accepted."""
    dataset = with_limits(epsilon_max=Fraction(1, 2))
    path = (account(1, "1e-6"),)
    with pytest.raises(Refused) as refused:
        ask(Wish(own_epsilon=Fraction(5)), path, dataset=dataset)
    assert refused.value.findings[0].code == "policy_forbids"
    assert '"epsilon": "0.5"' in refused.value.findings[0].instead[0]
    assert ask(Wish(epsilon=Fraction(1, 2)), path, dataset=dataset).admitted


# The trap of delta (point 19)


def test_a_delta_that_never_fits_names_the_one_that_does() -> None:
    """The policy's delta is above the account's share for groups: refused as priced, and what is named is admitted."""
    dataset = with_limits(delta_per_query=Fraction(1, 10**6))
    path = (account(1, "1e-6", name="leaf", parent="root"), account(20, "1e-5", name="root"))
    priced = ask(Wish(), path, "hidden", dataset)
    assert not priced.admitted
    fits = pricing.delta_that_fits(path, priced.loss)
    assert fits == Fraction(15, 10**8)
    assert ask(Wish(delta=fits), path, "hidden", dataset).admitted
    assert pricing.delta_that_fits(path, ask(Wish(delta=fits), path, "hidden", dataset).loss) is None


def test_the_delta_that_fits_does_not_tell_what_others_spent() -> None:
    """Of the accounts above only the cap counts: what is left of it is a function of what others asked."""
    dataset = with_limits(delta_per_query=Fraction(1, 10**6))
    leaf, root = account(1, "1e-3", name="leaf", parent="root"), account(20, "1e-5", name="root")
    busy = replace(root, spent=Sums(delta=root.branches.delta - 10))
    priced = ask(Wish(), (leaf, root), "hidden", dataset)
    assert pricing.delta_that_fits((leaf, root), priced.loss) is None
    assert pricing.delta_that_fits((leaf, busy), priced.loss) is None


def test_a_delta_above_the_policy_is_refused() -> None:
    """A request may take less than the policy's delta, never more."""
    with pytest.raises(Refused) as refused:
        ask(Wish(delta=Fraction(1, 10**8)), (account(1, "1e-6"),), "hidden")
    assert refused.value.findings[0].code == "policy_forbids"


# Families


def test_a_named_family_is_the_only_one() -> None:
    """On an approximate account a spend gets Gaussian noise unless the other is named; a pure account has no other."""
    path = (account(10, "1e-6"),)
    assert ask(Wish(epsilon=Fraction(1, 10)), path).family == "gaussian"
    assert ask(Wish(epsilon=Fraction(1, 10), noise=NoiseFamily.LAPLACE), path).family == "laplace"
    assert ask(Wish(epsilon=Fraction(1, 10)), (account(10),)).family == "laplace"
    with pytest.raises(Refused) as refused:
        ask(Wish(epsilon=Fraction(1, 10), noise=NoiseFamily.GAUSSIAN), (account(10),))
    assert refused.value.findings[0].code == "accuracy_unreachable"


# What a stored release serves


def test_releases_of_another_family_or_delta_have_another_key() -> None:
    """So a question that names one is never answered from the other."""
    keys = {
        release_key("0" * 64, price.family, delta=delta)
        for price in (
            Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(0)),
            Price(NoiseFamily.GAUSSIAN, Fraction(1), Fraction(0)),
        )
        for delta in (Fraction(0), Fraction(1, 10**9), Fraction(1, 10**10))
    }
    assert len(keys) == 6


def test_a_release_of_an_earlier_law_serves_a_price_and_a_width_only_where_it_is_as_exact() -> None:
    """Noise on squares had one size before 0.13: asked by a price it serves as before, by a width with 1.87 times."""
    squares, counts = scalar_core([moments()], []), core_of("count")
    price = Price(NoiseFamily.GAUSSIAN, Fraction(4), Fraction(0))
    whole = Fraction(1)
    (own, needed), (before, least) = serving_laws(squares, price, whole, levels="", promised=False)
    assert own is not None
    assert before is None
    assert needed == least == 2
    (_, needed), (_, least) = serving_laws(squares, price, whole, levels="", promised=True)
    assert float(least / needed) == pytest.approx(math.sqrt(3.5))
    key = release_key("0" * 64, price.family, delta=Fraction(0))
    assert release_key("0" * 64, price.family, delta=Fraction(0), law=own) != key
    for other, levels in ((counts, ""), (squares, "0")):
        assert list(serving_laws(other, price, whole, levels=levels, promised=True)) == [(None, 2)]


def test_a_wish_is_served_by_what_it_would_buy_in_each_family_that_may_answer() -> None:
    """`auto` takes both, a name takes one. What was spent makes no difference, until the mixed branch has noise of both
    kinds: then the same spend may buy less Gaussian noise, and that serves it."""
    fresh, wish = account(10, "1e-6"), Wish(epsilon=Fraction(1, 10))
    spent = fresh.after(GaussianEvent(l2_squared=Fraction(1), variance=Fraction(10)).loss())
    mixed = spent.after(LaplaceEvent(l1_sensitivity=Fraction(1), scale=Fraction(1)).loss())
    assert ask(wish, (fresh,)).enough == ask(wish, (spent,)).enough
    laplace, gaussian = NoiseFamily.LAPLACE, NoiseFamily.GAUSSIAN
    before, after = ({price.family: price.amount for price in ask(wish, (one,)).enough} for one in (fresh, mixed))
    assert set(before) == set(NoiseFamily)
    assert after[laplace] == before[laplace]
    assert 2 * after[gaussian] > before[gaussian] * Fraction(13, 10) > after[gaussian] * Fraction(13, 10)
    one = replace(wish, noise=NoiseFamily.LAPLACE)
    assert [price.family for price in ask(one, (fresh,)).enough] == [NoiseFamily.LAPLACE]


@settings(deadline=None)
@given(st.integers(1, 10**18), st.integers(1, 10**18), st.integers(1, 12))
def test_quality_follows_the_amount_of_noise(left: int, right: int, parts: int) -> None:
    """More of a family's amount is never less quality, whatever the account."""
    left, right = sorted((left, right))
    for family in NoiseFamily:
        low, high = (quality_of(Price(family, n * PICO, Fraction(0)), Fraction(1, parts)) for n in (left, right))
        assert 0 < low <= high


def test_a_kind_of_noise_that_cannot_answer_is_refused_with_what_helps() -> None:
    """No spend gives a pure account Gaussian noise, or lets Laplace noise select groups of which a unit has several."""
    assert MU_SQUARED.unpaid is not None
    (one,) = unreachable([MU_SQUARED.unpaid]).findings
    assert one.why.startswith("This account")
    for reasons in ([MU_SQUARED.unpaid], [ONE_GROUP], [ONE_GROUP, MU_SQUARED.unpaid]):
        (found,) = unreachable(reasons).findings
        assert not any("spend" in text for text in found.instead)
    assert "--groups-per-unit 1" in unreachable([ONE_GROUP]).findings[0].instead[1]


def test_a_half_width_that_cannot_be_promised_points_to_a_spend() -> None:
    """Shows that public keys are no advice where a width is unknown before the answer, or too small."""
    for reason in (UNKNOWN_WIDTH, f"{UNPROMISED_WIDTH} (a whole number cannot be told better)"):
        (found,) = unreachable([reason]).findings
        assert '"spend"' in found.instead[-1]
        assert not any("public keys" in line for line in found.instead)


def test_a_cost_just_above_its_limit_is_not_said_to_be_it() -> None:
    """0.2000001 is not written as the 0.2 that was allowed: the words show that it is more."""
    refused = above_max_cost(Fraction(2000001, 10**7), Fraction(1, 5)).findings[0]
    assert "It would take epsilon 0.200001 of the paying account, and its max_cost is 0.2." in refused.why
    assert refused.instead[1] == "allow more: a max_cost of at least 0.200001"
