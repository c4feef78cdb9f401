"""Large spends take the family that is worth more together with what it leaves."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from fractions import Fraction

import pytest

from accountant.account import Account
from accountant.filter import DEFAULT_SHARES, FIRST_SHARES, DeltaShares
from mechanisms.families import NoiseFamily
from privacy.composition import compose
from privacy.events import GaussianEvent
from server import pricing, weighing
from server.calibrations import Calibrations
from server.pricing import SMALL, Priced, Wish
from tests.journey.test_joined_averages import bounded
from tests.server.test_prices import account, ask, charged, core_of, with_limits

POLICY = with_limits(epsilon_default=Fraction(1, 10))
LAPLACE, GAUSSIAN = NoiseFamily.LAPLACE, NoiseFamily.GAUSSIAN


def bought(leaf: Account, share: str, kind: str = "count", noise: NoiseFamily | None = None) -> Priced:
    """A question for a share of the account's limit."""
    wish = Wish(epsilon=Fraction(share) * leaf.limit.epsilon, noise=noise)
    return ask(wish, (leaf,), kind, POLICY)


def error(priced: Priced) -> float:
    """The standard error of the count."""
    (core,) = priced.calibration.cores
    found = priced.calibration.predicted_errors(core.name)["n"]
    assert found is not None
    return found


def test_a_count_for_the_whole_account_has_the_least_error_there_is() -> None:
    """Error 1.44 of all of (1, 1e-6), three times less than with Gaussian noise, and never at more than was asked."""
    leaf = account(1, "1e-6")
    whole = bought(leaf, "1")
    assert (whole.family, whole.cost) == (LAPLACE, 1)
    assert error(whole) < 1.45
    assert error(bought(leaf, "1", noise=GAUSSIAN)) > 2.9 * error(whole)


@pytest.mark.parametrize("text", ["AVG(age)", "VAR_SAMP(age)", "STDDEV_SAMP(age)"])
def test_averages_and_variances_for_the_whole_account_too(text: str) -> None:
    """For all of (1, 1e-6) they have the noise of a pure account of 1: an average the error 0.01 in 10,000 rows."""
    known = Calibrations()
    core, wish = bounded(f"SELECT {text} AS a FROM people").described, Wish(epsilon=Fraction(1))
    one, pure = (
        pricing.price([core], wish, path=(leaf,), dataset=POLICY, known=known)
        for leaf in (account(1, "1e-6"), account(1))
    )
    assert (one.family, one.cost, one.price.amount) == (LAPLACE, 1, pure.price.amount)
    if text == "AVG(age)":
        (name,) = (estimate.name for estimate in core.estimates)
        (largest,) = (
            size for size in one.calibration.expected_errors(core.name, Fraction(95, 100))[name] if size.rows == 10_000
        )
        assert largest.standard_error == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "shares", "from_share"),
    [(1, DEFAULT_SHARES, "0.2"), (10, DEFAULT_SHARES, "0.35"), (10, FIRST_SHARES, "0.5")],
)
def test_small_spends_are_gaussian_and_large_ones_laplace(
    epsilon: int, shares: DeltaShares, from_share: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows where the choice changes, once, and that an account without a mixed branch, where a Laplace answer leaves
    less, changes later. Twin: the error of this answer alone would take Laplace noise where later ones lose more."""
    leaf = account(epsilon, "1e-6", shares=shares)
    spends = ("0.05", "0.12", "0.15", "0.2", "0.25", "0.3", "0.35", "0.4", "0.5", "0.7", "1")
    assert [one for one in spends if bought(leaf, one).family is LAPLACE] == [
        one for one in spends if Fraction(one) >= Fraction(from_share)
    ]
    monkeypatch.setattr(weighing, "_next_error", lambda after, default: 0.0)
    assert bought(leaf, "0.15").family is LAPLACE


def test_gaussian_answers_go_on_after_half_by_laplace_noise() -> None:
    """After half of the account a small spend buys Gaussian noise with 1.5 times its error at most; without a mixed
    branch it bought Laplace noise."""
    for shares, family in ((DEFAULT_SHARES, GAUSSIAN), (FIRST_SHARES, LAPLACE)):
        leaf = account(10, "1e-6", shares=shares)
        half = bought(leaf, "0.5")
        assert half.family is LAPLACE
        later = bought(leaf.after(half.loss), "0.01")
        assert (later.family, later.sold) == (family, True)
        assert later.cost <= Fraction(1, 10)
        assert (error(later) <= 1.5 * error(bought(leaf, "0.01"))) == (family is GAUSSIAN)


def test_hidden_groups_are_shown_from_fewer_units() -> None:
    """Where each unit has one group a large spend selects by the truncated geometric, which shows smaller groups."""
    leaf = account(1, "1e-6")

    def shown(priced: Priced) -> int:
        (core,) = priced.calibration.cores
        assert core.keys.selection is not None
        units = priced.calibration.measurement(core.name, core.keys.selection).half_shown(1)
        assert units is not None
        return units

    whole, gaussian = bought(leaf, "1", "hidden"), bought(leaf, "1", "hidden", GAUSSIAN)
    assert whole.family is LAPLACE
    assert shown(whole) < 0.8 * shown(gaussian)


def test_what_is_not_weighed() -> None:
    """A small spend, a named family, a width and an own epsilon have no weight; of what remains an eighth is small."""
    leaf = account(1, "1e-6")
    assert bought(leaf, "0.12").weight is None
    assert bought(leaf, str(SMALL)).weight is not None
    assert bought(leaf, "0.5", noise=LAPLACE).weight is None
    for wish in (Wish(half_width=Fraction(9)), Wish(own_epsilon=Fraction(1, 2))):
        assert ask(wish, (leaf,), dataset=POLICY).weight is None
    spent = leaf.after(bought(leaf, "0.5", noise=GAUSSIAN).loss)
    assert ask(Wish(epsilon=Fraction(7, 100)), (spent,), dataset=POLICY).weight is not None
    # What the accounts above have spent is not looked at, but their admission is.
    root = account(10, "1e-6", name="root")
    busy = root.after(bought(root, "0.5", noise=GAUSSIAN).loss)
    wish = Wish(epsilon=Fraction(7, 10))
    child = replace(leaf, parent="root")
    assert ask(wish, (child, root), dataset=POLICY).weight == ask(wish, (child, busy), dataset=POLICY).weight


def costs(leaf: Account, kind: str) -> list[tuple[Priced, Priced]]:
    """What spends cost that are sold, each with the next larger one: around an eighth of what remains, and above."""
    found: list[Priced] = []
    known = Calibrations()
    for part in ("0.05", "0.124", "0.125", "0.126", "0.2", "0.35", "0.525", "0.625", "0.725", "0.825", "0.999"):
        wish = Wish(epsilon=Fraction(part) * leaf.remaining_epsilon() // Fraction(1, 10**9) * Fraction(1, 10**9))
        one = pricing.price([core_of(kind)], wish, path=(leaf,), dataset=POLICY, known=known)
        found += [one] if one.sold and one.admitted else []
    return list(itertools.pairwise(found))


def cheaper(pairs: list[tuple[Priced, Priced]]) -> list[tuple[Fraction, Fraction]]:
    """Those where the larger spend costs less, by more than the steps of amounts leave."""
    return [(less.cost, more.cost) for less, more in pairs if more.cost < less.cost * Fraction(9_999, 10_000)]


@pytest.mark.parametrize("seed", range(3))
def test_a_larger_spend_never_costs_less(seed: int) -> None:
    """Across the switch too, whatever was asked before, and it costs no more than it says."""
    source = random.Random(seed)
    switched = 0
    for _ in range(6):
        leaf = account(
            source.choice(["0.3", 1, 3, 10]),
            source.choice(["1e-7", "1e-6", "1e-4"]),
            shares=source.choice([DEFAULT_SHARES, FIRST_SHARES]),
        )
        leaf = charged(leaf, source, source.randrange(5))
        pairs = costs(leaf, source.choice(["count", "sum", "hidden"]))
        assert not cheaper(pairs)
        assert all(one.cost <= one.epsilon for pair in pairs for one in pair)
        switched += any(less.family is not more.family for less, more in pairs)
    assert switched


@pytest.mark.parametrize(
    ("epsilon", "delta", "shares", "kind", "spent"),
    [("0.3", "1e-4", FIRST_SHARES, "sum", None), ("0.3", "1e-6", DEFAULT_SHARES, "hidden", "94.23")],
)
def test_without_comparing_costs_a_larger_spend_would_cost_less(
    epsilon: str, delta: str, shares: DeltaShares, kind: str, spent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twin: the least weight alone takes noise that costs a tenth less than the spend before it."""
    leaf = account(epsilon, delta, shares=shares)
    if spent is not None:
        leaf = leaf.after(compose([GaussianEvent(l2_squared=Fraction(1), variance=Fraction(spent) ** 2)]))
    assert not cheaper(costs(leaf, kind))
    monkeypatch.setattr(pricing, "_SAME", Fraction(1))
    assert any(more < less * Fraction(9, 10) for less, more in cheaper(costs(leaf, kind)))
