"""The least spends that would do: of a fresh run, of a price, and as what a refusal advises."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from accountant.account import Account
from mechanisms.families import FAMILIES, NoiseFamily, Price
from privacy.currency import Currency
from privacy.numbers import PICO
from privacy.policy import Dataset
from privacy.refusal import Refused
from privacy.statistic import CoreStatistics
from server.calibrations import Calibrations
from server.floor import Floor
from server.price_refusals import above_policy, floor_above_policy, spend_below_floor, too_exact, unreachable
from server.pricing import Priced, Wish, candidates
from server.spends import cost_on

__all__ = ["four_digits", "least_spend", "refusal_of", "spend_for"]


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
    nominal = four_digits(max(currency.nominal_epsilon(least, path[0]), cost))
    return _raised(nominal, lambda epsilon: currency.nominal_amount(epsilon, path[0]) >= least)


def _least_own(
    cores: Sequence[CoreStatistics],
    wish: Wish,
    delta: Fraction,
    *,
    path: Sequence[Account],
    dataset: Dataset,
    known: Calibrations,
) -> Fraction:
    """As `least_spend`, in the epsilon of the answer itself, whichever of the families of the wish answers then.

    Errors: ValueError when no family may answer.
    """
    found: list[Fraction] = []
    reasons: list[str] = []
    room = path[0].limit.delta - delta
    for family, entry in FAMILIES.items():
        if wish.noise not in (None, family) or not entry.currency.pays(path[0]) or not all(map(entry.selects, cores)):
            continue
        try:
            least = Floor.of(dataset, path[-1]).least(cores, family, delta, known).amount
            own = four_digits(entry.currency.own_epsilon(least, delta=room))
        except ValueError as error:
            reasons.append(str(error))
        else:
            found.append(_raised(own, partial(_buys, entry.currency, room, least)))
    if not found:
        raise ValueError("; ".join(reasons))
    return max(found)


def _buys(currency: Currency, room: Fraction, least: Fraction, epsilon: Fraction) -> bool:
    """Whether an answer that promises this epsilon, at the delta in `room`, takes the least amount."""
    return currency.own_amount(epsilon, delta=room) >= least


def _raised(epsilon: Fraction, buys: Callable[[Fraction], bool]) -> Fraction:
    """Rounding within the account and within the curve is finer than the digits shown, but it is there."""
    while not buys(epsilon):
        epsilon = four_digits(epsilon * Fraction(10_001, 10_000))
    return epsilon


def four_digits(amount: Fraction) -> Fraction:
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
    family, delta, own, by_name = priced.family, priced.price.delta, None, None
    try:
        nominal = least_spend(cores, family, delta, path=path, dataset=dataset, known=known)
        if wish.own_epsilon is not None:
            own = _least_own(cores, wish, delta, path=path, dataset=dataset, known=known)
            by_name = _sold_by_name(cores, wish, path=path, dataset=dataset, known=known)
    except ValueError as error:
        return unreachable([str(error)])
    most = min(dataset.limits.epsilon_max, path[0].limit.epsilon)
    return spend_below_floor(nominal, own, most=most, by_name=by_name)


def _sold_by_name(
    cores: Sequence[CoreStatistics], wish: Wish, *, path: Sequence[Account], dataset: Dataset, known: Calibrations
) -> NoiseFamily | None:
    """A family that answers this epsilon of the answer itself if it is named, None where the wish names one."""
    if wish.noise is not None:
        return None
    found = candidates(cores, wish, path=path, dataset=dataset, known=known)
    return next((one.family for one in found if one.sold and one.admitted), None)
