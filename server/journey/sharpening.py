"""Precision that is bought and not bought again: the difference between a stored release and a better wish.

What is bought is measured beside what is stored, and both together are the new release (gaussian_combined.md). Its
intervals hold at every look, and are wider than those of a fresh release of the same noise: so it has a key of its
own, and serves a width only where its own intervals are that narrow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from accountant.account import Account
from accountant.request import Base, CoreCharge, Reuse, StoredRelease
from mechanisms.amounts import least_amount
from mechanisms.calibrate import Calibration, at_chosen_norms, even_part
from mechanisms.families import FAMILIES, NoiseFamily, Price
from mechanisms.interval import two_sided_alpha
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.released_table import ReleasedTable
from mechanisms.sharpening import Difference, difference, half_widths, sharpenable, stated_half_widths
from privacy.bounds import ValueBounds
from privacy.composition import compose
from privacy.loss import Loss
from privacy.numbers import PICO
from privacy.refusal import Finding, Refused
from privacy.statistic import CoreStatistics
from server.answer_rows import from_stored
from server.floor import Floor
from server.journey.charges import needed_charges
from server.journey.query import Prepared, Raised
from server.journey.release_key import law_of, quality_of, release_key
from server.journey.reuse import Reusable
from server.journey.wire_amounts import stated_epsilon
from server.price_refusals import above_max_cost
from server.pricing import Priced
from server.question import Question
from server.spends import cost_on
from sql_rewrite.automatic_bounds import bound_with
from sql_rewrite.bound import BoundedCore
from sql_rewrite.norms import at_norms

__all__ = [
    "NOT_SHARPENED",
    "Offered",
    "Sharpened",
    "offered_means",
    "refuse_cost",
    "refuse_unsharpened",
    "sharpened",
    "sharper",
]

_GROWN_MOST = Fraction(256)
"""Most precision, over that of a fresh release of the same width, at which a width is looked for."""


@dataclass(frozen=True, slots=True)
class Offered:
    """The charges of a question, with the stored releases that serve them: means among them, and those of others.

    `bases` are the best releases of cores of which precision can be added to, by the place of the core; `inputs` the
    means that must still be there, since their own intervals were looked at.
    """

    charges: tuple[CoreCharge, ...]
    reusable: Reusable
    bases: Mapping[int, _Base]
    inputs: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class _Base:
    """A stored release that precision may be added to, and what is asked of it; its body is read once, if at all."""

    wish: _Wish
    record: StoredRelease
    read: list[ReleasedTable] = field(default_factory=list)

    @property
    def table(self) -> ReleasedTable:
        """The release as a table."""
        if not self.read:
            body, name = self.record.body, self.wish.core.name
            self.read.append(from_stored(body, name, self.wish.question.confidence))
        return self.read[0]

    def stored(self) -> tuple[GaussianMeasurement, ...] | None:
        """Its measurements; None where it cannot be made more precise."""
        return sharpenable(self.wish.bounded(self.table).described, self.table)

    def serves(self) -> bool:
        """Whether it is as good as the wish: of a mean, whether its intervals are as narrow."""
        wish = self.wish
        if wish.width is None or self.record.core_key != wish.raised_key:
            return wish.least is not None and self.record.quality >= wish.least // PICO * PICO
        stored = self.stored()
        widths = [] if stored is None or wish.alpha is None else stated_half_widths(wish.core, stored, wish.alpha)
        return bool(widths) and max(widths) <= wish.width


def offered_means(
    question: Question,
    prepared: Prepared,
    priced: Priced | None,
    charges: tuple[CoreCharge, ...],
    reusable: Reusable,
) -> Offered:
    """The charges, served by means that are stored as well: a spend by their precision, a width by their intervals."""
    made, bases, inputs = list(charges), dict[int, _Base](), dict[str, str | None]()
    if priced is None or prepared.plan.stages:
        return Offered(charges, reusable, bases, inputs)
    for place, charge in enumerate(charges[: len(prepared.cores)]):
        if not _may(prepared, place):
            continue
        wish = _Wish(question, prepared, priced, place)
        base = reusable.base(wish.keys, lent=charge.lent)
        least = wish.least if wish.width is None else None
        if base is not None:
            bases[place] = _Base(wish, base)
            if wish.width is not None and base.core_key == wish.raised_key and bases[place].serves():
                least, inputs[charge.core_key] = base.quality, base.id
        if least is not None:
            made[place] = replace(charge, serving=((wish.raised_key, least), *_own(charge)))
    return Offered(tuple(made), reusable, bases, inputs)


@dataclass(frozen=True, slots=True)
class Sharpened:
    """A question whose stored releases are made more precise: its charges, and what the ledger must still find.

    `raised` is by the key of the charge. `priced` has the cost of what is charged.
    """

    priced: Priced | None
    charges: tuple[CoreCharge, ...]
    reusable: Reusable
    raised: Mapping[str, Raised]
    inputs: Mapping[str, str | None]
    able: frozenset[str] = frozenset()
    """The cores, by the keys of their charges, of which precision could be added to, if for more than anew."""
    whole: Fraction | None = None
    """What it would cost to buy all of them anew; None where none is made more precise."""

    def needed(self, prepared: Prepared) -> tuple[CoreCharge, ...]:
        """The charges without histograms of norms that nothing chooses by: those of stored releases stay."""
        cores = zip(self.charges[: len(prepared.cores)], self.reusable.serve(), strict=True)
        return needed_charges(
            prepared, self.priced, self.charges, [free or charge.core_key in self.raised for charge, free in cores]
        )

    @property
    def by_name(self) -> dict[str, Raised]:
        """What is raised, by the name of the core."""
        return {one.core.described.name: one for one in self.raised.values()}


def sharpened(
    question: Question, prepared: Prepared, priced: Priced | None, offered: Offered, path: Sequence[Account]
) -> Sharpened:
    """The charges of a question with the difference to a stored release where one is not good enough by itself."""
    charges, reusable = offered.charges, offered.reusable
    made, raised, able = list(charges), dict[str, Raised](), set[str]()
    for place, base in offered.bases.items():
        charge, wish = charges[place], base.wish
        if base.serves() or charge.core_key in reusable.serving:
            continue
        if base.stored() is not None:
            able.add(charge.core_key)
        bought = _bought(base, Floor.of(prepared.plan.dataset, path[-1]))
        if bought is not None:
            made[place], raised[wish.raised_key] = _charge(charge, wish, *bought), bought[0]
    again = reusable.beside(tuple(made))
    found = Sharpened(priced, tuple(made), again, raised, offered.inputs, frozenset(able))
    if priced is None or not raised:
        return found
    anew = cost_on(path[0], _fresh_loss(needed_charges(prepared, priced, charges, reusable.serve()), reusable))
    loss = _fresh_loss(found.needed(prepared), again)
    admitted = all(account.admits(loss) for account in path)
    return replace(found, whole=anew, priced=replace(priced, loss=loss, cost=cost_on(path[0], loss), admitted=admitted))


def _own(charge: CoreCharge) -> tuple[tuple[str, Fraction], ...]:
    """The keys and least qualities by which a charge is served."""
    return charge.serving or ((charge.core_key, charge.quality),)


def _charge(charge: CoreCharge, wish: _Wish, one: Raised, quality: Fraction) -> CoreCharge:
    """The charge of what is bought beside a stored release. What is made of both serves the same wish next time."""
    least = quality if wish.width is not None or wish.least is None else wish.least
    own = [serves for serves in _own(charge) if serves[0] != wish.raised_key]
    return replace(
        charge,
        core_key=wish.raised_key,
        quality=quality,
        events=one.difference.drawn.events_of(wish.core.name),
        serving=((wish.raised_key, least), *own),
        base=Base(release=one.base.id, keys=wish.keys, events=one.base.events),
    )


def _fresh_loss(charges: Sequence[CoreCharge], reusable: Reusable) -> Loss:
    """The loss of what no stored release serves for free."""
    serving = reusable.serving
    return compose([event for one in charges if one.core_key not in serving for event in one.events])


def refuse_cost(question: Question, charges: Sequence[CoreCharge], reusable: Reusable, leaf: Account) -> None:
    """Refuses a question that would take more of its account than it may. Errors: Refused (above_max_cost).

    The cost is compared as it is stated, rounded up: an estimate's own price is always enough, and no answer states
    more. What is read for a charge in place of these costs no more (accountant/reading.py).
    """
    if question.max_cost is None or all(one.core_key in reusable.serving for one in charges):
        return
    cost = stated_epsilon(cost_on(leaf, _fresh_loss(charges, reusable)), leaf)
    if cost > question.max_cost:
        raise above_max_cost(cost, question.max_cost)


def refuse_unsharpened(question: Question, charges: Sequence[CoreCharge], found: Sharpened, reusable: Reusable) -> None:
    """Refuses what was to be made more precise and cannot be. Errors: Refused (not_sharpened).

    Where it could be, and a width costs less anew, it is bought anew.
    """
    if not question.sharpens:
        return
    known = found.raised.keys() | found.able | reusable.serving.keys()
    if any(one.core_key not in known for one in charges):
        raise Refused([NOT_SHARPENED])


def sharper(asked: Question, better: Question) -> Question:
    """An earlier question with the wish, the key and the limit of another one; stored releases may serve it."""
    return replace(
        asked,
        epsilon=better.epsilon,
        own_epsilon=better.own_epsilon,
        half_width=better.half_width,
        relative=better.relative,
        at_most=better.at_most,
        confidence=better.confidence
        if better.half_width is not None or better.relative is not None
        else asked.confidence,
        max_cost=better.max_cost,
        idempotency_key=better.idempotency_key,
        body_hash=better.body_hash,
        reuse=Reuse.OWN if asked.reuse is Reuse.NONE else asked.reuse,
        max_staleness_s=None,
        sharpens=True,
    )


NOT_SHARPENED = Finding(
    code="not_sharpened",
    what="the answer cannot be made more precise",
    why="Precision is added to Gaussian noise on groups that are public. This answer has other noise, groups that its "
    "noise selected or chose, quantiles that were drawn, several levels of groups, or stages; or no "
    "stored release of it, or of the histogram that chose its value bounds, is read for free.",
    instead=(
        "ask the question with the better wish: POST /v1/queries buys it anew, POST /v1/estimates says the price",
    ),
)


def _may(prepared: Prepared, place: int) -> bool:
    """Whether a core's groups are public, and it does not buy histograms of values.

    Norms and value bounds that a question chooses are those of what is stored.
    """
    core = prepared.described[place]
    chosen = prepared.values is not None and core.name in prepared.values.places
    return core.keys.domain is not None and core.choice is None and not chosen


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is asked of one core: so much Gaussian noise, or intervals so narrow."""

    question: Question
    prepared: Prepared
    priced: Priced
    place: int

    @property
    def core(self) -> CoreStatistics:
        """The core."""
        return self.prepared.described[self.place]

    @property
    def raised_key(self) -> str:
        """The key of means of its releases."""
        return self._key(raised=True)

    @property
    def keys(self) -> tuple[str, str]:
        """The keys of the releases that can be made more precise: of fresh ones, and of what was made so."""
        return self._key(raised=False), self.raised_key

    def _key(self, *, raised: bool) -> str:
        law = law_of(self.core, NoiseFamily.GAUSSIAN, pure=False)
        key = self.prepared.keys[self.place]
        return release_key(key, NoiseFamily.GAUSSIAN, delta=Fraction(0), law=law, raised=raised)

    def part(self, price: Price, *, least: bool) -> Fraction:
        """The part that the core gets of a price; where it is split by need, the fixed part that is never less.

        `least`: the one that is never more, for what is said of what was bought.
        """
        return even_part(self.core, self.prepared.priced, price, least=least)

    @property
    def least(self) -> Fraction | None:
        """The least quality of Gaussian noise that serves the wish; None where that family may not."""
        enough = next((price for price in self.priced.enough if price.family is NoiseFamily.GAUSSIAN), None)
        return None if enough is None else quality_of(enough, self.part(enough, least=False))

    @property
    def width(self) -> float | None:
        """The half width that its intervals are to have; None where something else was asked for."""
        shown = self.core.name not in self.prepared.plan.unshown
        return float(self.question.half_width) if self.question.half_width is not None and shown else None

    @property
    def alpha(self) -> float | None:
        """How often each interval may miss; None where that is not known before the answer."""
        cells = self.prepared.at_once()
        return None if cells is None else two_sided_alpha(self.question.confidence, cells)

    def bounded(self, table: ReleasedTable) -> BoundedCore:
        """The core at the norms and value bounds of a stored release, where the question chooses them."""
        core, prepared = self.prepared.cores[self.place], self.prepared
        if table.clipped_to and self.core.name in prepared.bounds:
            ends = {(of, column): ValueBounds(lower, upper) for of, column, lower, upper in table.clipped_to}
            core, _ = bound_with(prepared.plan.cores[self.place], prepared.plan.dataset, ends, power=prepared.power)
        chosen = self.prepared.histograms[self.place] is not None
        return at_norms(core, dict(table.scaled_to)) if chosen and table.scaled_to else core


def _bought(base: _Base, floor: Floor) -> tuple[Raised, Fraction] | None:
    """What is bought beside a stored release, and the quality of both; None where the whole is bought anew.

    It is at least what a run must take (server/floor.py), and less than the whole.
    """
    wish, table = base.wish, base.table
    price, bounded = wish.priced.price, wish.bounded(table)
    core = bounded.described
    stored = sharpenable(core, table)
    if stored is None or price.family is not NoiseFamily.GAUSSIAN:
        return None
    wanted = at_chosen_norms(wish.priced.calibration, core)
    scale = Fraction(1) if wish.width is None else _scale(wish, wanted, stored, wish.width)
    if scale is None:
        return None
    try:
        bought, times = difference(core, wanted, stored, scale=scale), Fraction(1)
        missing = 0.0 if bought is None else floor.missing(_loss(core, bought))
        if missing > 1:
            times = Fraction(math.ceil(missing * 1001), 1000)
            bought = difference(core, wanted, stored, scale=scale, times=times)
    except ValueError:
        return None
    currency, whole = FAMILIES[NoiseFamily.GAUSSIAN].currency, compose(wanted.events_of(core.name))
    if bought is None or currency.amount_of(_loss(core, bought)) >= currency.amount_of(whole):
        return None
    quality = quality_of(replace(price, amount=price.amount * scale), wish.part(price, least=True))
    if times > 1:
        both = [*base.record.events, *bought.drawn.events_of(core.name)]
        quality = max(quality, currency.quality(currency.amount_of(compose(both))))
    return Raised(base.record, table, bought, bounded), quality


def _loss(core: CoreStatistics, bought: Difference) -> Loss:
    return compose(bought.drawn.events_of(core.name))


def _scale(wish: _Wish, wanted: Calibration, stored: Sequence[GaussianMeasurement], goal: float) -> Fraction | None:
    """How many times the mu squared of a fresh release the mean needs for intervals as narrow; None above a limit."""
    alpha = wish.alpha

    def fits(scale: Fraction) -> bool:
        try:
            found = difference(wish.core, wanted, stored, scale=scale)
        except ValueError:
            return False
        if found is None or alpha is None:
            return False
        return max(half_widths(wish.core, found.mean, alpha), default=math.inf) <= goal

    if not fits(_GROWN_MOST):
        return None
    return least_amount(fits, guess=Fraction(5, 2), greatest=_GROWN_MOST)
