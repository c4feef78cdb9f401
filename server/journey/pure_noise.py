"""Answers that would surely be noise alone: an error that is wider than everything the answer could say.

An average over n rows has a half-width of about q / n of the range of its values, where q follows from the noise that
the spend buys; a sum has one of h, and is at most n times the greatest value. With q rows or fewer, or h over the
greatest value, nothing of the answer would be data, so a question is refused before the charge where n is known to be
that small: from the declared `rows_expected`, or from a stored count of the same rows. Doubt alone is no ground for
refusal: group sizes that nobody declared or released may be anything, and of hidden groups only those that were shown
are counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.calibrate import Calibration
from mechanisms.estimates import rows_of_noise
from mechanisms.families import FAMILIES
from mechanisms.interval import two_sided_alpha
from privacy.numbers import decimal_text
from privacy.policy import Dataset
from privacy.refusal import Finding, Refused
from server.journey.query import Prepared
from server.journey.reuse import Reusable, Stored
from server.pricing import Priced
from server.question import Question
from sql_rewrite.bound import BoundedCore

__all__ = ["refuse_pure_noise"]

EXPECTED_TIMES = 2
"""How many times the declared number of rows a table is taken to have at most: "about" is no bound."""


@dataclass(frozen=True, slots=True)
class _Hopeless:
    """A column that would be noise alone: rows that it would need, and rows that are there at most."""

    text: str
    needed: float
    rows: float
    source: str


def refuse_pure_noise(
    prepared: Prepared, priced: Priced, question: Question, *, stored: Stored, reusable: Reusable
) -> None:
    """Errors: Refused (accuracy_unreachable), with the spend that would do, where a column would surely be noise.

    Not where a stored release answers its core for free.
    """
    found = [_hopeless(prepared, core, priced.calibration, question, stored) for core in prepared.cores]
    if any(found):
        fresh = [core for core, free in zip(found, reusable.serve(), strict=True) if not free]
        findings = [_finding(hopeless, priced, prepared.plan.dataset) for core in fresh for hopeless in core]
        if findings:
            raise Refused(findings)


def _hopeless(
    prepared: Prepared, core: BoundedCore, calibration: Calibration, question: Question, stored: Stored
) -> list[_Hopeless]:
    # Counts always say something.
    if not any(estimate.kind.statistic.described.of_values for estimate in core.described.estimates):
        return []
    limits: list[tuple[float, str]] = []
    expected = core.core.sources[0].table.rows_expected
    if expected is not None:
        limits.append((float(EXPECTED_TIMES * expected), f"the table is declared to have about {expected:,} rows"))
    # Hidden groups that were not shown may have any number of rows, whatever those that were have.
    public = core.described.keys.domain is not None
    counted = stored.most_rows(prepared.counting_key(core), question) if public else None
    if counted is not None:
        limits.append((counted, f"a stored count says at most {counted:,.0f} rows"))
    if not limits:
        return []
    rows, source = min(limits)
    rows = max(rows, 1.0)
    found = []
    alpha, name = two_sided_alpha(question.confidence), core.described.name
    for aggregate, estimate in zip(core.core.aggregates, core.described.estimates, strict=True):
        needed = rows_of_noise(calibration.measurement(name, estimate.statistic), estimate, alpha=alpha)
        if needed is not None and needed >= rows:
            found.append(_Hopeless(aggregate.text, needed, rows, source))
    return found


def _finding(hopeless: _Hopeless, priced: Priced, dataset: Dataset) -> Finding:
    times = hopeless.needed / hopeless.rows * 1.01
    factor = times ** FAMILIES[priced.family].currency.power
    enough = float(priced.epsilon) * factor
    digits = 1 - math.floor(math.log10(enough))
    spend = Fraction(math.ceil(enough * 10**digits) * Fraction(10) ** -digits)
    limit = dataset.limits.epsilon_max
    if spend <= limit:
        first = f'"spend": {{"epsilon": "{decimal_text(spend, places=12)}"}} or more'
    else:
        first = "ask about more rows at once, or declare tighter bounds: no spend that the policy allows would do"
    return Finding(
        code="accuracy_unreachable",
        what=f"{hopeless.text} would be noise alone",
        why=f"With this spend its ± is wider than everything it could be below {hopeless.needed:,.0f} rows, and "
        f"{hopeless.source}.",
        instead=(first, 'ask with "accept_noise": true (or --accept-noise) to pay for it all the same'),
    )
