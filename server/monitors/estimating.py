"""What a monitor would cost and how exact it would be, before it is opened: text, declarations and balances, no row."""

from __future__ import annotations

import math

from privacy.numbers import decimal_text
from privacy.values import Json
from server.journey.moments import Moments
from server.monitors.terms import Terms
from server.resources.offer import Offer
from server.spends import cost_on

__all__ = ["BETA", "estimated", "textbook_within", "within"]

BETA = 0.05
"""The chance that `within` does not hold."""


def within(terms: Terms) -> float:
    """By how much no outcome of all evaluations is wrong, but with a chance of BETA: in the unit of the sum."""
    return terms.sparse.accuracy(queries=terms.evaluations, beta=BETA) * float(terms.step)


def textbook_within(terms: Terms) -> float:
    """The same for the algorithms as they are printed, at the same epsilon, change of one score and number of hits.

    Source: Dwork and Roth 2014, Theorem 3.24 for one hit, 8 (ln k + ln(2/b)) / epsilon; 3.26 for c hits,
    8c (ln k + ln(2c/b)) / epsilon; with answers 3.28, 9c (ln k + ln(4c/b)) / epsilon, where comparisons have 8/9 of
    the whole. Ours has the noise of mechanisms/sparse_vector.md.
    """
    hits, epsilon = terms.hits, float(terms.epsilon)
    logarithm = math.log(terms.evaluations) + math.log((4 if terms.numeric else 2) * hits / BETA)
    return float(terms.change * terms.step) * 8 * hits * logarithm / epsilon


def estimated(terms: Terms, offer: Offer, moments: Moments) -> dict[str, Json]:
    """An estimate as it is shown."""
    step = float(terms.step)
    answer: dict[str, Json] | None = None
    if terms.numeric is not None:
        charged = terms.numeric.answer_event().loss()
        answer = {
            "epsilon": decimal_text(cost_on(offer.account, charged), places=12),
            "standard_error": terms.numeric.answer_variance**0.5 * step,
        }
    return {
        "verdict": offer.verdict.value,
        "price": offer.price(),
        "answer": answer,
        "comparison_standard_error": terms.sparse.gap_variance**0.5 * step,
        "within": within(terms),
        "textbook_within": textbook_within(terms),
        "first_moment_seconds": round(moments.first, 3),
        "tick_seconds": round(moments.tick, 4),
    }
