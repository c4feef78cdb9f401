"""What a price is made of: histograms of values, histograms of norms, and the sums. Answers and estimates say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction

from accountant.account import Account
from accountant.request import CoreCharge, StoredRelease
from mechanisms.families import FAMILIES
from privacy.composition import compose
from privacy.events import Event
from server.journey.query import Asked, Prepared, Quote, ToRun
from server.journey.wire_amounts import epsilon_text, own_json, share_text
from server.journey.wire_sharpened import bought_events
from server.pricing import Priced

__all__ = ["Part", "answer_parts", "estimate_parts", "fresh_names"]


class Part(StrEnum):
    """A part of a price. The values are sent."""

    VALUES = "value_histograms"
    NORMS = "norm_histograms"
    SUMS = "sums"


_SAVED = {
    Part.VALUES: "Declared value bounds, or values that the text clips, save this part; so does a stored histogram.",
    Part.NORMS: "Declared contribution bounds, or bounds in the request, save this part; so does a stored histogram.",
    Part.SUMS: None,
}


def estimate_parts(
    prepared: Prepared, quote: Quote, cost: Fraction, *, query: str | None = None
) -> list[dict[str, object]]:
    """The parts of what an estimate says will be charged."""
    priced = quote.priced
    if priced is None:
        return []
    events = {
        part: [event for name in names for event in bought_events(quote, name)]
        for part, names in fresh_names(prepared, quote).items()
    }
    return _parts(events, priced, cost, quote.path[0], prepared, charge=1, query=query)


def fresh_names(prepared: Prepared, quote: Quote) -> dict[Part, list[str]]:
    """What no stored release answers: the names of cores, and of the histograms that they need."""
    assert quote.priced is not None
    family, reusable = quote.priced.family, quote.reusable
    cores = [core.name for core, key in zip(prepared.described, quote.keys, strict=True) if key not in reusable]
    needed = {
        histogram.release_key(family)
        for core, histogram in zip(prepared.described, prepared.histograms, strict=True)
        if histogram is not None and core.name in cores
    }
    known = prepared.histograms_by_key(family)
    stage, values = prepared.values, []
    if stage is not None and not stage.places.keys().isdisjoint(cores):
        values = [
            histogram.bounded.described.name
            for place, histogram in enumerate(stage.histograms)
            if stage.release_key(place, family) not in reusable
        ]
    return {
        Part.VALUES: values,
        Part.NORMS: [known[key].described.name for key in known if key in needed and key not in reusable],
        Part.SUMS: [] if quote.histograms_only else cores,
    }


def answer_parts(
    asked: Asked, reused: Mapping[str, StoredRelease], cost: Fraction, leaf: Account, *, first: ToRun | None
) -> list[dict[str, object]]:
    """The parts of what an answer was charged; `first` is the query of an earlier charge of it."""
    before = [] if first is None else _charged(first.asked, first.paid.reused, _spent(first, leaf), leaf, charge=1)
    return [*before, *_charged(asked, reused, cost, leaf, charge=1 if first is None else 2)]


def _spent(query: ToRun, leaf: Account) -> Fraction:
    return sum((charged.epsilon for charged in query.paid.charged if charged.account == leaf.id), Fraction(0))


def _charged(
    asked: Asked, reused: Mapping[str, StoredRelease], cost: Fraction, leaf: Account, *, charge: int
) -> list[dict[str, object]]:
    priced = asked.priced
    if priced is None:
        return []
    events: dict[Part, list[Event]] = {part: [] for part in Part}
    for part, one in _by_part(asked, priced):
        if one.core_key not in reused:
            events[part].extend(one.events)
    return _parts(events, priced, cost, leaf, asked.prepared, charge=charge, query=asked.query_id)


def _by_part(asked: Asked, priced: Priced) -> list[tuple[Part, CoreCharge]]:
    """Each charge with what it is for."""
    sums, norms = set(asked.sums), asked.prepared.histograms_by_key(priced.family)
    return [
        (Part.SUMS if one in sums else Part.NORMS if one.core_key in norms else Part.VALUES, one)
        for one in asked.charges
    ]


def _parts(
    events: Mapping[Part, Sequence[Event]],
    priced: Priced,
    cost: Fraction,
    leaf: Account,
    prepared: Prepared,
    *,
    charge: int,
    query: str | None,
) -> list[dict[str, object]]:
    """The parts of one charge: its cost is divided as the amounts of noise are."""
    currency = FAMILIES[priced.family].currency
    amounts = {part: currency.amount_of(compose(own)) for part, own in events.items() if own}
    whole = sum(amounts.values())
    if not whole or not cost:
        return []
    return [
        {
            "for": part,
            "charge": charge,
            "query": query,
            "epsilon": epsilon_text(cost * amount / whole, leaf),
            "share": share_text(cost * amount / whole, leaf),
            "own": own_json(events[part], leaf, prepared.plan.dataset),
            "saved_by": _SAVED[part],
        }
        for part, amount in amounts.items()
    ]
