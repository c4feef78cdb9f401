"""Cheaper forms of a question: stored releases that answer it, fewer groups, fewer columns. Computed, never guessed.

Each form is bounded and priced as the question itself was, for the same half width of the columns that it keeps. Only
what costs less is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from mechanisms.estimates import linear_form
from privacy.numbers import decimal_text
from privacy.refusal import Refused
from server.journey.query import Prepared, Quote
from server.journey.quoting import Quoting
from server.journey.wire_amounts import epsilon_text
from server.question import Question
from sql_rewrite.bound import BoundedCore, bound_core
from sql_rewrite.expressions import describe
from sql_rewrite.plan import Core

__all__ = ["cheaper_forms"]

_TRIED = 4
"""How many keys and how many columns are left out, one at a time."""

_LESS = Fraction(49, 50)
"""A form is named where it costs at most this part of the price."""

_HAIR = Fraction(1_000_001, 1_000_000)
"""A search for a price rounds to six digits: at a width a hair above the promised one it finds no more than that."""


def cheaper_forms(
    question: Question, prepared: Prepared, quote: Quote, quoting: Quoting, *, stored_width: Fraction | None
) -> list[dict[str, object]]:
    """What would cost less, the cheapest first. `stored_width` is the half width of the caller's own stored answer."""
    priced = quote.priced
    if priced is None:
        return []
    found: list[dict[str, object]] = [
        {"kind": "stored_release", "what": f"/v1/releases/{release.id} answers a part of it for free",
         "epsilon": "0", "accuracy": None}
        for release in quote.reusable.values()
    ]  # fmt: skip
    if quote.offer is not None:
        release, errors, spend = quote.offer
        exact = "; ".join(f"{text} ± {error:.3g}" for text, error in errors.items() if error is not None)
        what = f"/v1/releases/{release} answers it for free where a spend of {decimal_text(spend)} would be enough"
        what += f" (standard errors: {exact})" if exact else ""
        found.append({"kind": "stored_release", "what": what, "epsilon": "0", "accuracy": None})
    if stored_width is not None and not quote.reusable:
        width = _width_text(stored_width)
        what = f"your stored answer serves for free where ±{width} is enough"
        asked = {"half_width": width, "confidence": str(float(question.confidence))}
        found.append({"kind": "stored_release", "what": what, "epsilon": "0", "accuracy": asked})
    open_ones = any(prepared.histograms) or prepared.values is not None
    if len(prepared.cores) == 1 and not quote.reusable and not open_ones:
        core = prepared.cores[0]
        widths = priced.calibration.predicted_half_widths(core.described.name, question.confidence, cells=1)
        known = {name: width for name, width in widths.items() if width is not None}
        if known:
            found += _priced(core, known, prepared, quote, question, quoting)
    return found


def _priced(
    core: BoundedCore,
    known: Mapping[str, float],
    prepared: Prepared,
    quote: Quote,
    question: Question,
    quoting: Quoting,
) -> Iterator[dict[str, object]]:
    """The question itself asked by its accuracy, and its forms, where they cost less than what was asked."""
    assert quote.priced is not None
    leaf, cells, before = quote.path[0], prepared.at_once(), quote.priced.cost
    widest = Fraction(max(quote.priced.calibration.predicted_half_widths(
        core.described.name, question.confidence, cells=cells or 1)[name] or 0 for name in known))  # fmt: skip
    widest = _above(widest)
    itself = None if cells is None else quoting.for_width(widest, cells)
    if itself is not None and itself.cost <= before * _LESS:
        asked = {"half_width": _width_text(widest), "confidence": str(float(question.confidence))}
        noise = "" if itself.family is quote.priced.family else f", with {itself.family} noise"
        what = f"asked by its accuracy, half width {asked['half_width']}{noise}"
        yield {"kind": "accuracy", "what": what, "epsilon": epsilon_text(itself.cost, leaf), "accuracy": asked}
        before = itself.cost
    for kind, what, cost in sorted(_forms(core, known, prepared, quoting), key=lambda form: form[2]):
        if cost <= before * _LESS:
            yield {"kind": kind, "what": what, "epsilon": epsilon_text(cost, leaf), "accuracy": None}


def _above(width: Fraction) -> Fraction:
    """A width at which a search finds no more than the price that promises it."""
    return width if width.denominator == 1 else width * _HAIR


def _width_text(width: Fraction) -> str:
    """Six digits, rounded up: what costs no more than the width itself."""
    exact = Decimal(width.numerator) / Decimal(width.denominator)
    with localcontext(prec=6, rounding=ROUND_CEILING):
        return format((+exact).normalize(), "f")


def _forms(
    core: BoundedCore, known: Mapping[str, float], prepared: Prepared, quoting: Quoting
) -> Iterator[tuple[str, str, Fraction]]:
    """Forms with one key or one aggregate less, each with the least price at which its columns are as exact as now."""
    whole = core.core
    for name, key in whole.keys[:_TRIED]:
        without = replace(whole, keys=tuple(one for one in whole.keys if one[0] != name))
        cost = _cost(without, max(known.values()), prepared, quoting)
        if cost is not None:
            yield "fewer_groups", f"without {describe(key)} in GROUP BY", cost
    if len(whole.aggregates) < 2:
        return
    for aggregate in whole.aggregates[:_TRIED]:
        kept = tuple(one for one in whole.aggregates if one is not aggregate)
        own = [known[one.name] for one in kept if one.name in known]
        cost = _cost(replace(whole, aggregates=kept), max(own), prepared, quoting) if own else None
        if cost is not None:
            yield "fewer_columns", f"without {aggregate.text}", cost


def _cost(core: Core, width: float, prepared: Prepared, quoting: Quoting) -> Fraction | None:
    """The least price of another core for a half width; None where it has none."""
    try:
        described = bound_core(core, prepared.plan.dataset, power=prepared.power).described
    except Refused:
        return None
    by_name = {statistic.name: statistic for statistic in described.statistics}
    if all(linear_form(by_name[one.statistic], one.kind) is None for one in described.estimates):
        return None
    found = quoting.for_width(_above(Fraction(width)), 1, (described,))
    return None if found is None else found.cost
