"""Stored releases that are made more precise, as estimates and answers say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from accountant.account import Account
from mechanisms.families import FAMILIES, NoiseFamily
from privacy.composition import compose
from privacy.events import Event
from privacy.numbers import decimal_text
from server.journey.query import Quote, Raised
from server.journey.wire_amounts import epsilon_text
from server.pricing import Priced

__all__ = ["bought_events", "sharpened_json", "with_means"]


def sharpened_json(
    raised: Mapping[str, Raised], whole: Fraction | None, priced: Priced | None, keys: Sequence[str], leaf: Account
) -> dict[str, object] | None:
    """What is stored and what is bought beside it, as mu squared, and the epsilon of buying it all anew; None for none.

    `keys` are those of the question's cores, in their order.
    """
    if priced is None or whole is None or not raised:
        return None
    return {
        "anew": {"epsilon": epsilon_text(whole, leaf)},
        "releases": [
            {
                "release": f"/v1/releases/{one.base.id}",
                "stored": _amount(one.base.events),
                "bought": _amount(_drawn(one)),
            }
            for key in keys
            if (one := raised.get(key)) is not None
        ],
    }


def bought_events(quote: Quote, name: str) -> Sequence[Event]:
    """What is drawn of a core or of a histogram that no stored release serves for free."""
    for one in quote.raised.values():
        if one.difference.drawn.cores[0].name == name:
            return _drawn(one)
    assert quote.priced is not None
    return quote.priced.calibration.events_of(name)


def with_means(quote: Quote) -> Quote:
    """The quote with the errors that means of stored releases will have."""
    if quote.priced is None or not quote.raised:
        return quote
    calibration = quote.priced.calibration
    for one in quote.raised.values():
        calibration = calibration.with_core(one.difference.mean)
    priced = replace(quote.priced, calibration=calibration)
    families = [priced if one is quote.priced else one for one in quote.families]
    return replace(quote, priced=priced, families=families)


def _drawn(one: Raised) -> tuple[Event, ...]:
    """The events of what is bought."""
    drawn = one.difference.drawn
    return drawn.events_of(drawn.cores[0].name)


def _amount(events: Sequence[Event]) -> str:
    return decimal_text(FAMILIES[NoiseFamily.GAUSSIAN].currency.amount_of(compose(events)), places=12)
