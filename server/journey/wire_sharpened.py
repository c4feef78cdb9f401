"""Stored releases that are made more precise, as estimates and answers say it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from accountant.account import Account
from mechanisms.confidence_sequence import narrower_from
from mechanisms.families import FAMILIES, NoiseFamily
from mechanisms.interval import two_sided_alpha
from mechanisms.measurement import Measurement
from mechanisms.measurements.gaussian_combined import CombinedGaussian
from mechanisms.released_table import ReleasedTable
from privacy.composition import compose
from privacy.events import Event
from privacy.numbers import decimal_text
from privacy.refusal import Finding
from server.journey.query import Quote, Raised
from server.journey.wire_amounts import epsilon_text
from server.pricing import Priced

__all__ = ["bought_events", "expected_warnings", "sharpened_json", "sharpened_warnings", "with_means"]


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


def expected_warnings(raised: Mapping[str, Raised], confidence: Fraction) -> tuple[Finding, ...]:
    """What an estimate says of means whose intervals will be no narrower than those of the first release in them."""
    means = [one.difference.mean.measurements_of(one.core.described.name) for one in raised.values()]
    return tuple(_not_narrower(measurements, confidence) for measurements in means if _wide(measurements, confidence))


def sharpened_warnings(tables: Sequence[ReleasedTable], confidence: Fraction) -> tuple[Finding, ...]:
    """What an answer says of such means, whenever it is given."""
    means = [[one.measurement for one in table.sums or ()] for table in tables]
    return tuple(_not_narrower(measurements, confidence) for measurements in means if _wide(measurements, confidence))


def _wide(measurements: Sequence[Measurement], confidence: Fraction) -> list[CombinedGaussian]:
    """The means whose intervals are no narrower than those of the first release in them."""
    alpha = two_sided_alpha(confidence)
    means = [one for one in measurements if isinstance(one, CombinedGaussian)]
    return [one for one in means if one.against_first(alpha) >= 1]


def _not_narrower(measurements: Sequence[Measurement], confidence: Fraction) -> Finding:
    alpha = two_sided_alpha(confidence)
    worst = max(_wide(measurements, confidence), key=lambda one: one.against_first(alpha))
    enough = math.ceil(narrower_from(alpha) * 100) / 100
    return Finding(
        code="not_narrower",
        what="standard errors become less, and intervals not narrower",
        why="Precision was added after a value was seen, so the intervals are such that all of them hold, however "
        f"often more is added. They reach {worst.against_first(alpha):.2f} times as far as those of the first release, "
        f"whose precision this is {float(worst.grown):.2f} times; from {enough:.2f} times on they are narrower.",
        instead=(
            "buy more precision, or read the standard errors",
            'buy the answer anew, with the intervals of one release: "reuse": "none" (or --reuse none)',
        ),
    )


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
