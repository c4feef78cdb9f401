"""Which noise a query gets and what it costs: step 4 of the journey, a pure function of plan and balances.

Each family of noise says which groups it can select, and in which currency it is paid (mechanisms/families.py): Laplace
in pure epsilon, Gaussian in mu squared. A wish fixes an amount of each:

| wish | Laplace | Gaussian |
|---|---|---|
| epsilon of the account | at most that epsilon | at most the same share of the Gaussian branch |
| epsilon of the answer itself | that epsilon | the mu squared with that epsilon at the account's delta |
| a half width | the least amount that promises it | the same |

An account is never charged more than the epsilon that was asked for, nor more than the policy's `epsilon_max`: where
the whole amount of a spend would cost more, less is bought (server/spends.py), and a wish that cannot be had for that
much is refused (docs/decisions/0018).

For a spend of the account's epsilon an approximate account gets Gaussian noise as long as every account of the path
admits at least a third of its amount: a Laplace release would also take a large part of the Gaussian branch. A large
spend takes the family that is worth more together with what it leaves (server/weighing.py), of those that cost as much
as it asks for: so a spend past the switch does not cost less than one before it. For an epsilon of the answer itself,
and for a half width, it is the family that costs less now. So a smaller epsilon, or a wider width, never costs more: it
needs no more of either family, and the cost never falls with the amount (decision 0041). A named family is the only
one. Balances are functions of earlier questions, and not private.

A fresh run takes at least the dataset's floor (server/floor.py): a spend below it is refused with the least that would
do, and where the server chooses the price (a half width, or nothing wished) it is raised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from accountant.account import Account
from mechanisms.calibrate import Calibration, calibrate_for_half_width, evenly
from mechanisms.families import FAMILIES, NoiseFamily, Price
from privacy.currency import MU_SQUARED
from privacy.loss import Loss
from privacy.numbers import ATTO
from privacy.policy import Dataset
from privacy.statistic import CoreStatistics
from server.calibrations import Calibrations
from server.floor import Floor
from server.price_refusals import (
    above_policy,
    delta_above_policy,
    floor_above_policy,
    too_exact,
    unreachable,
    width_not_known,
)
from server.spends import affordable_amount, cost_on
from server.weighing import weight

__all__ = [
    "SMALL",
    "Priced",
    "Wish",
    "candidates",
    "choose",
    "delta_that_fits",
    "own_deltas",
    "price",
]


SMALL = Fraction(1, 8)
"""The part of what remains below which a spend is not weighed: Gaussian noise is worth more there, or nearly."""

_SAME = Fraction(1, 10_000)
"""The part of a cost that the steps of amounts may leave of what was asked for (mechanisms/amounts.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a price is asked for: one of `epsilon`, `own_epsilon` and `half_width`, or none for the policy's default.

    `cells` is the number of intervals that hold at once with the confidence, None where only the answer says it: then
    no half width can be promised. `noise` is the only family that may answer, None for the server's choice; `delta` is
    that of selecting groups, None for the policy's. `at_most` is the greatest epsilon for a half width, None for that
    of the policy. `unshown` are cores that are no part of the answer, of which a half width promises nothing.
    """

    epsilon: Fraction | None = None
    own_epsilon: Fraction | None = None
    half_width: Fraction | None = None
    confidence: Fraction = Fraction(95, 100)
    cells: int | None = 1
    noise: NoiseFamily | None = None
    delta: Fraction | None = None
    at_most: Fraction | None = None
    unshown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given = [amount for amount in (self.epsilon, self.own_epsilon, self.half_width) if amount is not None]
        assert len(given) <= 1, "one price, asked for in one way"

    @property
    def named(self) -> bool:
        """Whether a spend was named, so that another one must not be taken."""
        return self.epsilon is not None or self.own_epsilon is not None

    def most(self, dataset: Dataset) -> Fraction:
        """The greatest epsilon of the paying account that the answer may cost."""
        most = dataset.limits.epsilon_max
        return most if self.at_most is None else min(most, self.at_most)


@dataclass(frozen=True, slots=True)
class Priced:
    """A calibrated query. `admitted` is the filters' verdict now.

    `epsilon` is the price in nominal epsilon of the paying account; `cost` is how much less of that account would
    remain, which is what the ledger will say it charged. `price` is what was calibrated; `enough` are the amounts, one
    for each family that may answer, of which a stored release serves the wish. `raised` says that the floor made the
    price, `reduced` that a spend buys less than a third of its nominal amount. `below_floor` and `above_policy` say
    that no fresh run is made at this price, because it is too little or the account would be charged more than the
    policy allows (a stored release may still answer). `promised` says that a half width was asked for. `weight` is that
    of a large spend (server/weighing.py), None where families are not weighed.
    """

    epsilon: Fraction
    cost: Fraction
    price: Price
    calibration: Calibration
    loss: Loss
    admitted: bool
    enough: tuple[Price, ...]
    raised: bool = False
    reduced: bool = False
    below_floor: bool = False
    above_policy: bool = False
    promised: bool = False
    weight: float | None = None

    @property
    def sold(self) -> bool:
        """Whether a fresh run is made at this price, if the accounts admit it."""
        return not self.below_floor and not self.above_policy

    @property
    def family(self) -> NoiseFamily:
        """The family of the noise."""
        return self.price.family

    @property
    def delta(self) -> Fraction:
        """Delta of partition selection, charged beside epsilon."""
        return self.loss.delta


def price(
    cores: Sequence[CoreStatistics],
    wish: Wish,
    *,
    path: Sequence[Account],
    dataset: Dataset,
    known: Calibrations,
) -> Priced:
    """The candidate that answers: `choose` of the `candidates`, without calibrating one that cannot be chosen.

    Errors: as `candidates`.
    """
    return choose(_candidates(cores, wish, path=path, dataset=dataset, known=known, all_families=False), wish)


def candidates(
    cores: Sequence[CoreStatistics],
    wish: Wish,
    *,
    path: Sequence[Account],
    dataset: Dataset,
    known: Calibrations,
) -> tuple[Priced, ...]:
    """The query calibrated with each family that may answer, the paying account first in `path` and the root last.

    Errors: Refused (policy_forbids, accuracy_unreachable) when there is none.
    """
    return _candidates(cores, wish, path=path, dataset=dataset, known=known, all_families=True)


def _candidates(
    cores: Sequence[CoreStatistics],
    wish: Wish,
    *,
    path: Sequence[Account],
    dataset: Dataset,
    known: Calibrations,
    all_families: bool,
) -> tuple[Priced, ...]:
    delta = _delta(cores, wish, dataset)
    if wish.epsilon is not None and wish.epsilon > dataset.limits.epsilon_max:
        raise above_policy(path[0], dataset, own=False)
    if wish.half_width is not None and wish.cells is None:
        raise width_not_known()
    floor = Floor.of(dataset, path[-1])
    wished: list[_Wished] = []
    reasons: list[str] = []
    for family in FAMILIES if wish.noise is None else (wish.noise,):
        try:
            wished.append(_wished(family, cores, wish, delta, path, dataset))
        except ValueError as error:
            reasons.append(str(error))
    found: list[Priced] = []
    most = wish.most(dataset)
    for one_wished in sorted(wished, key=lambda one: _preference(one.price.family)):
        try:
            one = _candidate(one_wished, wished, cores, wish, floor, path=path, dataset=dataset, known=known)
        except ValueError as error:
            reasons.append(str(error))
            continue
        found.append(one)
        if not all_families and _asked(wish, dataset) is not None and _preferred(one) and one.epsilon <= most:
            # Whatever the other one costs, `choose` takes this one; tables and losses of the other are slow to make.
            return (one,)
    if not found:
        raise unreachable(reasons)
    within = tuple(one for one in found if one.epsilon <= most)
    if within:
        return within
    if all(one.raised for one in found) and wish.half_width is None:
        raise floor_above_policy(min(one.epsilon for one in found), dataset)
    if wish.own_epsilon is not None:
        raise above_policy(path[0], dataset, own=True)
    raise too_exact(min(one.epsilon for one in found), most)


def choose(found: Sequence[Priced], wish: Wish) -> Priced:
    """The candidate that answers. When no family is admitted one is returned with `admitted` False: the ledger then
    refuses, unless stored releases answer the query for free.
    """

    def answers(one: Priced) -> bool:
        return one.sold and one.admitted

    if wish.half_width is not None:
        return min(found, key=lambda one: (not answers(one), one.cost, _preference(one.family)))
    if wish.own_epsilon is not None:
        # Below the floor it stays this one, which is then refused: the other would cost more than a greater epsilon.
        paid = [one for one in found if one.admitted and not one.above_policy] or found
        return min(paid, key=lambda one: (one.cost, _preference(one.family)))
    able = [one for one in found if answers(one) and one.cost <= one.epsilon]
    if able and all(one.weight is not None for one in able):
        # Where the other family costs less than the one that answers small spends, a larger spend would cost less.
        usual = min(able, key=lambda one: _preference(one.family))
        weighed = [one for one in able if one is usual or one.cost >= (1 - _SAME) * usual.cost]
        return min(weighed, key=lambda one: (one.weight, _preference(one.family)))
    # First those that give what was asked for at its price, then the preferred family, then the cheaper.
    return min(found, key=lambda one: (not answers(one), _falls_short(one), _preference(one.family), one.cost))


def _falls_short(one: Priced) -> bool:
    """Whether a spend buys much less than its nominal amount, or costs more because the floor raised it."""
    return one.reduced or one.cost > one.epsilon


def _preferred(one: Priced) -> bool:
    """Whether `choose` takes this candidate for a spend whatever the other one is."""
    first = min(map(_preference, FAMILIES))
    weighed = one.weight is not None
    return not weighed and _preference(one.family) == first and one.sold and one.admitted and not _falls_short(one)


def _preference(family: NoiseFamily) -> int:
    """Of families that cost the same the one with the least answers."""
    return FAMILIES[family].preference


def delta_that_fits(path: Sequence[Account], loss: Loss) -> Fraction | None:
    """The greatest delta of a query that these accounts could admit; None when the loss's own is not too much.

    Of the paying account it is what is left; of the accounts above it only their whole cap is looked at, which is a
    function of their limits: what is left there would reveal what others asked.
    """
    caps = [path[0].remaining_delta(), *(account.branches.delta * ATTO for account in path[1:])]
    return None if loss.delta <= min(caps) else min(caps)


def own_deltas(account: Account, dataset: Dataset) -> dict[str, Fraction]:
    """At which delta the own figure of an answer is said that this account pays for."""
    return {"delta": account.limit.delta, "otherwise": dataset.limits.delta_per_query or Fraction(1, 10**9)}


@dataclass(frozen=True, slots=True)
class _Wished:
    """The price that a wish names in one family, and the least of it with which a stored release serves the wish."""

    price: Price
    enough: Price


def _wished(
    family: NoiseFamily,
    cores: Sequence[CoreStatistics],
    wish: Wish,
    delta: Fraction,
    path: Sequence[Account],
    dataset: Dataset,
) -> _Wished:
    """What the wish names in this family. Errors: ValueError with the reason why it cannot be."""
    entry, leaf = FAMILIES[family], path[0]
    pure = not any(map(MU_SQUARED.pays, path))
    if not all(map(entry.selects, cores)):
        raise ValueError(entry.unselected)
    if not entry.currency.pays(leaf):
        raise ValueError(entry.currency.unpaid)
    epsilon = _asked(wish, dataset)
    if epsilon is not None:
        nominal, serving = entry.currency.nominal_amount(epsilon, leaf), entry.currency.serving_amount(epsilon, leaf)
        return _Wished(Price(family, nominal, delta, pure), Price(family, serving, delta, pure))
    if wish.half_width is not None:
        assert wish.cells is not None
        price = calibrate_for_half_width(
            cores,
            wish.half_width,
            wish.confidence,
            family,
            cells=wish.cells,
            delta=delta,
            unshown=wish.unshown,
            pure=pure,
        )
    else:
        assert wish.own_epsilon is not None
        price = Price(family, entry.currency.own_amount(wish.own_epsilon, delta=leaf.limit.delta - delta), delta, pure)
    return _Wished(price, price)


def _asked(wish: Wish, dataset: Dataset) -> Fraction | None:
    """The nominal epsilon that was asked for, or that of the policy; None when something else was asked for."""
    if wish.own_epsilon is not None or wish.half_width is not None:
        return None
    return dataset.limits.epsilon_default if wish.epsilon is None else wish.epsilon


def _candidate(
    wished: _Wished,
    all_wished: Sequence[_Wished],
    cores: Sequence[CoreStatistics],
    wish: Wish,
    floor: Floor,
    *,
    path: Sequence[Account],
    dataset: Dataset,
    known: Calibrations,
) -> Priced:
    leaf, nominal, asked = path[0], wished.price, _asked(wish, dataset)
    if nominal.parts and not floor.covered(cores, known.get(cores, nominal).by_core):
        nominal = _covering(cores, nominal, floor, known)
        wished = replace(wished, price=nominal, enough=nominal)
        all_wished = [wished if one.price.family is nominal.family else one for one in all_wished]
    price, sold = nominal, True
    if asked is not None:
        amount = _affordable(cores, nominal, asked, floor, leaf, known)
        if amount is None:
            sold = False
        elif amount != nominal.amount:
            price = replace(nominal, amount=amount)
    # What is bought now serves the same wish; in the other family it is what the wish names there.
    enough = tuple(
        replace(one.enough, amount=min(one.enough.amount, price.amount)) if one is wished else one.enough
        for one in all_wished
    )
    reduced = 3 * price.amount < nominal.amount
    sold = sold and floor.covered(cores, known.get(cores, price).by_core)
    raised = not sold and not wish.named
    if raised:
        price = replace(floor.least(cores, price.family, price.delta, known), pure=price.pure)
    currency = FAMILIES[price.family].currency
    epsilon = currency.nominal_epsilon(price.amount, leaf) if asked is None or raised else asked
    calibrated = known.get(cores, price)
    loss = calibrated.loss
    cost, fits = cost_on(leaf, loss), leaf.admits(loss)
    if not fits:
        # More than the whole limit cannot show as a share of it, so what was asked is the price then.
        cost = max(cost, epsilon)
    if asked is not None and not raised:
        # Nor does a spend show a greater price where nothing is sold for it.
        cost = min(cost, asked)
    below_floor = fits and not sold and not raised
    return Priced(
        epsilon=epsilon,
        cost=cost,
        price=price,
        calibration=calibrated.calibration,
        loss=loss,
        admitted=all(account.admits(loss) for account in path),
        enough=enough,
        raised=raised,
        reduced=reduced and not raised,
        below_floor=below_floor,
        above_policy=fits and not below_floor and cost > wish.most(dataset),
        promised=wish.half_width is not None,
        weight=None
        if asked is None or raised or wish.noise is not None or asked < SMALL * leaf.remaining_epsilon()
        else weight(calibrated, cores, asked=asked, default=dataset.limits.epsilon_default, leaf=leaf),
    )


_FINE = 2**40
"""Parts of what the core that needs most gets: so fine that a wider width never costs more by their rounding."""


def _covering(cores: Sequence[CoreStatistics], nominal: Price, floor: Floor, known: Calibrations) -> Price:
    """A price that is split by need, with the least that covers the floor for each run that would be below it.

    Each core's own split stays, and no statistic gets less. With fixed parts where that costs no more: then all of it
    may have to be raised. Errors: ValueError as `Floor.least`.
    """
    needs, amounts = list[tuple[int, ...]](), list[Fraction]()
    for core in cores:
        place = sum(map(len, needs))
        needs.append(nominal.parts[place : place + len(core.statistics)])
        need = nominal.amount * sum(needs[-1]) / sum(nominal.parts)
        alone = known.once(
            ("alone", core.name, floor, nominal.family),
            partial(floor.least, (core,), nominal.family, nominal.delta, Calibrations()),
        )
        amounts.append(max(need, alone.amount))
    rates = [amount / sum(own) for amount, own in zip(amounts, needs, strict=True)]
    # Whole multiples of each core's own parts, so that its split is the one that it always has.
    times = [math.ceil(rate * _FINE / max(rates)) for rate in rates]
    parts = tuple(one * many for own, many in zip(needs, times, strict=True) for one in own)
    amount = sum(amounts, Fraction(0)) * (1 + Fraction(sum(nominal.parts), _FINE))
    price = replace(nominal, amount=amount, parts=parts)
    even = evenly(cores, nominal)
    covers = floor.covered(cores, known.losses(cores, price))
    return price if price.amount < even.amount and covers else even


def _affordable(
    cores: Sequence[CoreStatistics], nominal: Price, asked: Fraction, floor: Floor, leaf: Account, known: Calibrations
) -> Fraction | None:
    """What a spend buys of its nominal price, None when nothing is sold for it. Errors: ValueError as `calibrate`."""
    return affordable_amount(
        known.losses_of(cores, nominal),
        nominal=nominal.amount,
        asked=asked,
        power=FAMILIES[nominal.family].currency.power,
        leaf=leaf,
        covered=partial(floor.covered, cores),
    )


def _delta(cores: Sequence[CoreStatistics], wish: Wish, dataset: Dataset) -> Fraction:
    """The delta of selecting groups, zero where all of them are public. Errors: Refused above the policy's."""
    most = dataset.limits.delta_per_query
    if wish.delta is not None and wish.delta > most:
        raise delta_above_policy(most)
    if all(core.keys.selection is None for core in cores):
        return Fraction(0)
    return most if wish.delta is None else wish.delta
