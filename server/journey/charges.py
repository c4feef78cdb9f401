"""What the ledger is asked about a query, and the keys under which plans and answers of it are kept. Pure functions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction

from accountant.account import Account
from accountant.request import CoreCharge, ReserveRequest, Reuse
from mechanisms.calibrate import VALUES_SHARE, even_part, part_of, split_of
from mechanisms.families import FAMILIES, Law, Price
from privacy.currency import MU_SQUARED
from privacy.norms import NormPower
from privacy.policy import Dataset
from privacy.statistic import CoreStatistics
from privacy.values import Json
from server.journey.query import Asked, Prepared
from server.journey.release_key import law_of, measured, quality_of, release_key
from server.journey.value_stage import ValueStage
from server.pricing import Priced, Wish
from server.question import Question

__all__ = [
    "HISTOGRAM_SERVES",
    "charges_of",
    "needed_charges",
    "power_of",
    "repeat_key",
    "request_of",
    "serving_laws",
    "text_key",
    "wish_of",
]


def power_of(question: Question, leaf: Account) -> NormPower:
    """The norm to which units are scaled where the question chooses it: that of the noise which the account can pay."""
    currency = MU_SQUARED if question.noise is None else FAMILIES[question.noise].currency
    return NormPower.L2 if currency is MU_SQUARED and MU_SQUARED.pays(leaf) else NormPower.L1


def text_key(question: Question, dataset: Dataset, power: NormPower) -> Hashable:
    """What decides steps 2 and 3: the text, its parameters with their types, policy, data, and the power of norms.

    Of texts that read the clock, also when they began: a plan of yesterday is another plan.
    """
    # By their written form: 0.0 and -0.0 are equal, and not the same question.
    parameters = tuple(sorted((k, type(v).__name__, repr(v)) for k, v in question.parameters.items()))
    bounds = question.contribution
    return (
        question.sql,
        parameters,
        dataset.name,
        dataset.policy_version,
        dataset.data_version,
        dataset.drawn,
        bounds,
        question.nonempty,
        question.atoms,
        question.merge is not None,
        question.started,
        question.clause,
        question.mechanism,
        power,
    )


def repeat_key(question: Question, prepared: Prepared, leaf: Account) -> Hashable:
    """What decides an answer, given its releases. By principal, because releases may be one's own.

    The limit of the account is a part of it: what a spend buys there decides which releases are good enough.
    """
    account = (question.principal, leaf.id, leaf.limit, leaf.filter)
    chosen = prepared.plan.chosen  # the same text may be answered by counts that are stored
    asked = (
        text_key(question, prepared.plan.dataset, prepared.power),
        wish_of(question),
        question.with_cut,
        question.nonnegative,
        question.merge,
    )
    return (*asked, account, chosen)


def wish_of(question: Question) -> Wish:
    """What decides the price of a question, given its plan and accounts."""
    return Wish(
        epsilon=question.epsilon,
        own_epsilon=question.own_epsilon,
        half_width=question.half_width,
        confidence=question.confidence,
        noise=question.noise,
        delta=question.delta,
        at_most=question.at_most,
    )


def request_of(asked: Asked, reuse: Reuse) -> ReserveRequest:
    """What the ledger is asked."""
    question = asked.question
    return ReserveRequest(
        query_id=asked.query_id,
        principal=question.principal,
        account=asked.path[0].id,
        body_hash=question.body_hash,
        cores=asked.charges,
        idempotency_key=question.idempotency_key,
        reuse=reuse,
        most=None if asked.priced is None else asked.priced.cost,
        charges=asked.histograms_only,
        inputs=asked.inputs,
        description=_description(asked.prepared, asked.priced),
    )


def charges_of(prepared: Prepared, priced: Priced | None) -> tuple[CoreCharge, ...]:
    """What the ledger is asked to charge: per core its events, and which stored releases serve instead."""
    if priced is None:
        return ()
    cores, family = prepared.priced, priced.family
    selecting = sum(core.keys.selection is not None for core in prepared.described)
    policy = prepared.plan.dataset.limits.delta_per_query
    charges = []
    for place, (core, key) in enumerate(zip(prepared.described, prepared.keys, strict=True)):
        part, split = part_of(core, cores, priced.price), _split(core, cores, priced.price)
        even = part_of(core, cores) if priced.price.parts else part
        # The same question has had less for its sums when it bought the histograms of values as well.
        times = 1 - VALUES_SHARE if core.name in prepared.spared else Fraction(1)
        deltas = [Fraction(0)]
        if core.keys.selection is not None:
            asked = priced.price.delta / selecting
            deltas = [asked, *([policy] if policy > asked else [])]
        own = measured(core, family)
        charges.append(
            CoreCharge(
                core_key=release_key(
                    key,
                    family,
                    delta=deltas[0],
                    levels=own,
                    law=law_of(core, family, pure=priced.price.pure, levels=own),
                    split=split,
                ),
                quality=quality_of(priced.price, part),
                events=priced.calibration.events_of(core.name),
                serving=tuple(
                    (release_key(key, price.family, delta=delta, levels=levels, law=law, split=split), quality)
                    for price in sorted(priced.enough, key=lambda one: one.family is not family)
                    for delta in deltas
                    for levels in dict.fromkeys((measured(core, price.family), ""))
                    for split, least in (_splits(core, cores, price) if price.parts else (("", even),))
                    for law, quality in serving_laws(
                        core, price, least * times, levels=levels, promised=priced.promised
                    )
                )
                + _earlier(prepared, priced, core.name, times, deltas),
                lent=_lent(prepared, place),
            )
        )
    charges.extend(_of_histogram(prepared, priced, key) for key in prepared.histograms_by_key(family))
    if prepared.values is not None:
        charges.extend(_of_values(prepared, prepared.values, priced, one) for one in range(len(prepared.values.keys)))
    return tuple(charges)


def _split(core: CoreStatistics, cores: Sequence[CoreStatistics], price: Price) -> str:
    """How a price splits a core's part among its statistics; empty where they have their fixed parts."""
    return split_of(core, cores, price) if price.parts else ""


def _splits(core: CoreStatistics, cores: Sequence[CoreStatistics], price: Price) -> Iterator[tuple[str, Fraction]]:
    """How releases that serve a price split it among a core's statistics, with the part of it that they need."""
    split = _split(core, cores, price)
    if split:
        yield split, part_of(core, cores, price)
    yield "", even_part(core, cores, price, least=False)


def serving_laws(
    core: CoreStatistics, price: Price, part: Fraction, *, levels: str, promised: bool
) -> Iterator[tuple[Law | None, Fraction]]:
    """The laws of noise whose releases serve a price, with the quality that they need: what is drawn now first.

    `promised`: a half width was asked for, which noise of an earlier law may need more of its amount for.
    """
    quality = quality_of(price, part)
    drawn, best = (law_of(core, price.family, pure=pure, levels=levels) for pure in (price.pure, True))
    for law in dict.fromkeys((drawn, best, None)):
        needed = drawn.times if law is None and drawn is not None and promised else 1
        yield law, quality * needed
        for earlier in () if law is None else law.between:
            yield earlier, quality * (earlier.times if promised else 1)


def _earlier(
    prepared: Prepared, priced: Priced, name: str, times: Fraction, deltas: Sequence[Fraction]
) -> tuple[tuple[str, Fraction], ...]:
    """Releases of the same question by versions that split its price among more statistics, and what they need.

    One that was bought for as much serves, as it always did. Where a half width was asked for it needs twice as much:
    averages of two columns are one statistic now, so each of theirs then has what this one would get.
    """
    key = prepared.earlier.get(name)
    if key is None:
        return ()
    core = next(core for core in prepared.described if core.name == name)
    twice = 2 if priced.promised else 1
    return tuple(
        (release_key(key, price.family, delta=delta, law=law), quality * twice)
        for price in priced.enough
        for part in (even_part(core, prepared.priced, price, least=False) * times,)
        for delta in deltas
        for law, quality in serving_laws(core, price, part, levels="", promised=priced.promised)
    )


def _lent(prepared: Prepared, place: int) -> bool:
    """Whether a core's sums may be read for a charge: not where norms or bounds were chosen for them.

    What was chosen stands in the release and says something of the histogram, which is not among its events. The same
    holds of later stages and of what they read: their keys name one release, and its events are not theirs.
    """
    core = prepared.described[place]
    if any(core.name == name or core.name in inputs for name, inputs in prepared.plan.stages):
        return False
    return prepared.histograms[place] is None and core.name not in prepared.notes and not _bounded(prepared, core)


def _bounded(prepared: Prepared, core: CoreStatistics) -> bool:
    """Whether histograms choose value bounds of the core, or chose them."""
    return core.name in prepared.bounds or (prepared.values is not None and core.name in prepared.values.places)


HISTOGRAM_SERVES = Fraction(1, 4)
"""Part of the wished quality from which on a stored histogram of norms chooses them."""


def _of_histogram(prepared: Prepared, priced: Priced, key: str) -> CoreCharge:
    """The charge of a histogram of norms: a poorer stored one serves as well, because it only chooses."""
    histogram = prepared.histograms_by_key(priced.family)[key]
    part = part_of(histogram.described, prepared.priced)
    of = [
        core
        for core, one in zip(prepared.described, prepared.histograms, strict=True)
        if one is not None and one.key == histogram.key
    ]
    return CoreCharge(
        core_key=key,
        quality=quality_of(priced.price, part),
        events=priced.calibration.events_of(histogram.described.name),
        serving=tuple(
            (histogram.release_key(price.family), quality_of(price, part) * HISTOGRAM_SERVES)
            for price in sorted(priced.enough, key=lambda one: one.family is not priced.family)
        ),
        lent=not prepared.plan.stages and not any(_bounded(prepared, core) for core in of),
    )


def _of_values(prepared: Prepared, stage: ValueStage, priced: Priced, place: int) -> CoreCharge:
    """The charge of a histogram of values: a poorer stored one serves as well."""
    described = stage.histograms[place].bounded.described
    part = part_of(described, prepared.priced)
    return CoreCharge(
        core_key=stage.release_key(place, priced.family),
        quality=quality_of(priced.price, part),
        events=priced.calibration.events_of(described.name),
        serving=tuple(
            (stage.release_key(place, price.family), quality_of(price, part) * HISTOGRAM_SERVES)
            for price in sorted(priced.enough, key=lambda one: one.family is not priced.family)
        ),
    )


def needed_charges(
    prepared: Prepared, priced: Priced | None, charges: tuple[CoreCharge, ...], served: Sequence[bool]
) -> tuple[CoreCharge, ...]:
    """The charges without histograms whose cores are all `served` by stored releases: nothing is chosen then."""
    if priced is None:
        return charges
    needed = {
        histogram.release_key(priced.family)
        for histogram, free in zip(prepared.histograms, served, strict=True)
        if histogram is not None and not free
    }
    stage = prepared.values
    if stage is not None:
        fresh = {core.described.name for core, free in zip(prepared.cores, served, strict=True) if not free}
        if fresh & set(stage.places):
            needed |= {stage.release_key(place, priced.family) for place in range(len(stage.keys))}
    cores = len(prepared.cores)
    return (*charges[:cores], *(charge for charge in charges[cores:] if charge.core_key in needed))


def _description(prepared: Prepared, priced: Priced | None) -> Mapping[str, Json]:
    """What the ledger keeps about a query beside its price: shapes, never literals."""
    return {
        "cores": [
            {
                "tables": [source.table.name for source in core.core.sources],
                "keys": len(core.core.keys),
                "aggregates": [aggregate.function.value for aggregate in core.core.aggregates],
            }
            for core in prepared.cores
        ],
        "noise": None if priced is None else priced.family,
    }
