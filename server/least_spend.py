"""The least spends that would do: of a fresh run, of a price, and as what a refusal advises."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from accountant.account import Account
from mechanisms.families import FAMILIES, NoiseFamily, Price
from privacy.numbers import PICO
from privacy.policy import Dataset
from privacy.refusal import Refused
from privacy.statistic import CoreStatistics
from server.calibrations import Calibrations
from server.floor import Floor
from server.price_refusals import above_policy, floor_above_policy, spend_below_floor, too_exact, unreachable
from server.pricing import Priced, Wish
from server.spends import cost_on

__all__ = ["least_spend", "refusal_of", "spend_for"]


def least_spend(
    cores: Sequence[CoreStatistics],
    family: NoiseFamily,
    delta: Fraction,
    *,
    path: Sequence[Account],
    dataset: Dataset,
    known: Calibrations,
) -> Fraction:
    """The least spend of a fresh run of this family, in nominal epsilon of the paying account.

    Rounded up to four digits, so that what is named here is accepted. Errors: ValueError when there is none.
    """
    return spend_for(cores, Floor.of(dataset, path[-1]).least(cores, family, delta, known), path=path, known=known)


def spend_for(
    cores: Sequence[CoreStatistics], price: Price, *, path: Sequence[Account], known: Calibrations
) -> Fraction:
    """The least spend that buys this price, in nominal epsilon of the paying account, rounded up to four digits.

    Errors: ValueError as `calibrate`.
    """
    least, currency = price.amount, FAMILIES[price.family].currency
    cost = cost_on(path[0], known.get(cores, price).loss)
    nominal = _rounded(max(currency.nominal_epsilon(least, path[0]), cost))
    return _raised(nominal, lambda epsilon: currency.nominal_amount(epsilon, path[0]) >= least)


def _least_own(
    cores: Sequence[CoreStatistics],
    family: NoiseFamily,
    delta: Fraction,
    *,
    path: Sequence[Account],
    dataset: Dataset,
    known: Calibrations,
) -> Fraction:
    """As `least_spend`, in the epsilon of the answer itself."""
    least = Floor.of(dataset, path[-1]).least(cores, family, delta, known).amount
    currency, room = FAMILIES[family].currency, path[0].limit.delta - delta
    own = _rounded(currency.own_epsilon(least, delta=room))
    return _raised(own, lambda epsilon: currency.own_amount(epsilon, delta=room) >= least)


def _raised(epsilon: Fraction, buys: Callable[[Fraction], bool]) -> Fraction:
    """Rounding within the account and within the curve is finer than the digits shown, but it is there."""
    while not buys(epsilon):
        epsilon = _rounded(epsilon * Fraction(10_001, 10_000))
    return epsilon


def _rounded(amount: Fraction) -> Fraction:
    """The amount rounded up to four significant digits, and to whole picos."""
    units = max(math.ceil(amount / PICO), 1)
    step = 10 ** max(len(str(units)) - 4, 0)
    return Fraction(-(-units // step) * step) * PICO


def refusal_of(
    priced: Priced,
    cores: Sequence[CoreStatistics],
    wish: Wish,
    *,
    path: Sequence[Account],
    dataset: Dataset,
    known: Calibrations,
) -> Refused | None:
    """Why no fresh run is made at this price, with what would be accepted; None when one is, or the ledger decides."""
    if priced.above_policy:
        if wish.half_width is not None:
            return too_exact(priced.cost, wish.most(dataset))
        return above_policy(path[0], dataset, own=True) if wish.named else floor_above_policy(priced.cost, dataset)
    if not priced.below_floor:
        return None
    family, delta, own = priced.family, priced.price.delta, None
    try:
        nominal = least_spend(cores, family, delta, path=path, dataset=dataset, known=known)
        if wish.own_epsilon is not None:
            own = _least_own(cores, family, delta, path=path, dataset=dataset, known=known)
    except ValueError as error:
        return unreachable([str(error)])
    return spend_below_floor(nominal, own, most=min(dataset.limits.epsilon_max, path[0].limit.epsilon))
