"""A registered statistic as it is shown: what is proposed and tested before it is asked, and the outcome after."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.interval import two_sided_alpha
from mechanisms.measurement import plain_text
from mechanisms.tested_statistics import ProposedQuantiles, StableMode
from privacy.numbers import decimal_text
from privacy.policy import key_as_json
from privacy.values import Json
from server.statistics.quoting import Quoted

__all__ = ["ANSWERED", "NO_ANSWER", "outcome_body", "test_body"]

ANSWERED = "answered"
NO_ANSWER = "no_answer"

_RARELY, _MOSTLY = 0.05, 0.95


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What the noise of an answer says of it, in the unit of the column."""

    step: Fraction
    low: Fraction
    high: Fraction
    scale: Fraction
    half_width: float


def test_body(quoted: Quoted, confidence: Fraction) -> dict[str, Json]:
    """What is tested, and how wide an answer would be: a function of text, declarations and price."""
    tested = quoted.tested
    numbers = _numbers(quoted, confidence)
    rarely, mostly = math.floor(tested.distance_of(_RARELY)), math.ceil(tested.distance_of(_MOSTLY))
    return {
        "kind": quoted.form.kind.value,
        "width": None if numbers is None else plain_text(_width(quoted) * numbers.step),
        "step": None if numbers is None else plain_text(numbers.step),
        "low": None if numbers is None else float(numbers.low),
        "high": None if numbers is None else float(numbers.high),
        "standard_error": None if numbers is None else math.sqrt(2) * float(numbers.scale * numbers.step),
        "half_width": None if numbers is None else numbers.half_width,
        "confidence": decimal_text(confidence),
        "test": {
            "epsilon": decimal_text(tested.tested, places=12),
            "threshold": float(tested.threshold),
            "passes_rarely_below": max(0, rarely),
            "passes_mostly_from": mostly,
            "lead_rarely_to": tested.lead_to(rarely) if isinstance(tested, StableMode) else None,
            "lead_mostly_from": tested.lead_from(mostly) if isinstance(tested, StableMode) else None,
        },
    }


def outcome_body(quoted: Quoted, found: int | None, confidence: Fraction) -> dict[str, Json]:
    """The outcome of the test, which is a released value either way."""
    numbers = _numbers(quoted, confidence)
    body: dict[str, Json] = {"outcome": NO_ANSWER, "value": None, "interval": None}
    if found is None:
        return body
    if numbers is None:
        return {**body, "outcome": ANSWERED, "value": key_as_json(quoted.form.values[found])}
    origin = sum((sign for _, sign in quoted.form.terms), 0) * _offset(quoted)
    value = min(max(origin + found * numbers.step, numbers.low), numbers.high)
    low = max(float(value) - numbers.half_width, float(numbers.low))
    high = min(float(value) + numbers.half_width, float(numbers.high))
    return {"outcome": ANSWERED, "value": float(value), "interval": [low, high]}


def _numbers(quoted: Quoted, confidence: Fraction) -> _Numbers | None:
    """None for a most frequent value, which has no noise."""
    tested, form = quoted.tested, quoted.form
    if not isinstance(tested, ProposedQuantiles):
        return None
    low, high = form.range
    # The tail of Laplace noise; a half for its rounding, and half a place of values for each quantile.
    places = float(tested.scale) * math.log(1 / two_sided_alpha(confidence)) + (1 + len(form.terms)) / 2
    return _Numbers(form.step, low, high, tested.scale, places * float(form.step))


def _width(quoted: Quoted) -> int:
    assert isinstance(quoted.tested, ProposedQuantiles)
    return quoted.tested.width


def _offset(quoted: Quoted) -> Fraction:
    assert quoted.form.places is not None
    return quoted.form.places.offset
