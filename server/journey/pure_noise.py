"""Answers that would surely be noise alone: an error that is wider than everything the answer could say.

An average over n rows has a half-width of about q / n of the range of its values, where q follows from the noise that
the spend buys; a sum has one of h, and is at most n times the greatest value. With q rows or fewer, or h over the
greatest value, nothing of the answer would be data, so a question is refused before the charge where n is known to be
that small: from the declared `rows_expected`, or from a stored count of the same rows. Doubt alone is not a reason for
refusal: group sizes that nobody declared or released may be anything, and of hidden groups only those that were shown
are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from accountant.account import Account
from mechanisms.amounts import least_amount
from mechanisms.calibrate import Calibration
from mechanisms.estimates import rows_of_noise
from mechanisms.families import FAMILIES, NoiseFamily, Price
from mechanisms.interval import two_sided_alpha
from privacy.numbers import decimal_text
from privacy.refusal import Finding, Refused
from server.journey.query import Prepared
from server.journey.reuse import Reusable, Stored
from server.least_spend import spend_for
from server.pricing import Priced, Wish
from server.question import Question
from sql_rewrite.bound import BoundedCore

__all__ = ["refuse_pure_noise"]

EXPECTED_TIMES = 2
"""How many times the declared number of rows a table is taken to have at most: "about" is not a bound."""


@dataclass(frozen=True, slots=True)
class _Few:
    """A core of values over few rows: how many at most, and who says so."""

    core: BoundedCore
    rows: float
    source: str

    def hopeless(self, calibration: Calibration, alpha: float) -> Iterator[tuple[str, float]]:
        """The aggregates that would be noise alone, each with the number of rows below which it is."""
        name = self.core.described.name
        for aggregate, estimate in zip(self.core.core.aggregates, self.core.described.estimates, strict=True):
            needed = rows_of_noise(calibration.measurement(name, estimate.statistic), estimate, alpha=alpha)
            if needed is not None and needed >= self.rows:
                yield aggregate.text, needed


def refuse_pure_noise(
    prepared: Prepared,
    priced: Priced,
    question: Question,
    price: Callable[[Wish], Priced],
    *,
    path: Sequence[Account],
    stored: Stored,
    reusable: Reusable,
) -> None:
    """Errors: Refused (accuracy_unreachable), with the least spend that would do, where a column would be noise alone.

    Not where a stored release answers its core for free. `price` is the price of a wish for this question.
    """
    few = [one for core in prepared.cores for one in _few(prepared, core, question, stored)]
    # The width that the answer shows. Of hidden groups it may be wider, and doubt is not a reason for refusal.
    alpha = two_sided_alpha(question.confidence, prepared.at_once() or 1)
    if not any(any(one.hopeless(priced.calibration, alpha)) for one in few):
        return
    free = {core.core.name for core, serves in zip(prepared.cores, reusable.serve(), strict=True) if serves}
    few = [one for one in few if one.core.core.name not in free]
    found = [(one, text, needed) for one in few for text, needed in one.hopeless(priced.calibration, alpha)]
    if not found:
        return
    most = min(prepared.plan.dataset.limits.epsilon_max, path[0].limit.epsilon)

    def says(calibration: Calibration) -> bool:
        return not any(any(one.hopeless(calibration, alpha)) for one in few)

    spend = _least_spend(prepared, priced, question, price, says, path=path, most=most)
    if spend is None:
        instead = "ask about more rows at once, or declare tighter bounds: no spend that the policy allows would do"
    else:
        instead = f'"spend": {{"epsilon": "{decimal_text(spend, places=12)}"}} or more'
    raise Refused(
        [
            Finding(
                code="accuracy_unreachable",
                what=f"{text} would be noise alone",
                why=f"With this spend its ± is wider than everything it could be below {needed:,.0f} rows, and "
                f"{one.source}.",
                instead=(instead, 'ask with "accept_noise": true (or --accept-noise) to pay for it all the same'),
            )
            for one, text, needed in found
        ]
    )


def _few(prepared: Prepared, core: BoundedCore, question: Question, stored: Stored) -> Iterator[_Few]:
    # Counts always say something.
    if not any(estimate.kind.statistic.described.of_values for estimate in core.described.estimates):
        return
    limits: list[tuple[float, str]] = []
    expected = core.core.sources[0].table.rows_expected
    if expected is not None:
        limits.append((float(EXPECTED_TIMES * expected), f"the table is declared to have about {expected:,} rows"))
    # Hidden groups that were not shown may have any number of rows, whatever those that were have.
    public = core.described.keys.domain is not None
    counted = stored.most_rows(prepared.counting_key(core), question) if public else None
    if counted is not None:
        limits.append((counted, f"a stored count says at most {counted:,.0f} rows"))
    if limits:
        rows, source = min(limits)
        yield _Few(core, max(rows, 1.0), source)


def _least_spend(
    prepared: Prepared,
    priced: Priced,
    question: Question,
    price: Callable[[Wish], Priced],
    says: Callable[[Calibration], bool],
    *,
    path: Sequence[Account],
    most: Fraction,
) -> Fraction | None:
    """The least spend at which the answer would say something, None where no spend up to `most` buys that.

    Noise never grows with the amount, so the least amount is searched as that of a half width is
    (mechanisms/amounts.py), and the spend that buys it is what is named. With that spend the question is priced again,
    as it will be: the account may choose the other kind of noise then.
    """
    cores, known = prepared.described, prepared.calibrations
    for family in dict.fromkeys((priced.family, *((question.noise,) if question.noise else FAMILIES))):
        currency = FAMILIES[family].currency
        if not currency.pays(path[0]):
            continue

        def enough(amount: Fraction, family: NoiseFamily = family) -> bool:
            try:
                return says(known.get(cores, Price(family, amount, priced.delta)).calibration)
            except ValueError:  # no noise in range
                return False

        greatest = currency.nominal_amount(most, path[0])
        if not enough(greatest):
            continue
        guess = priced.price.amount if family == priced.family else greatest
        least = Price(family, least_amount(enough, guess=guess, greatest=greatest), priced.delta)
        spend = spend_for(cores, least, path=path, known=known)
        if spend > most:
            continue
        try:
            bought = price(Wish(epsilon=spend, noise=question.noise, delta=question.delta))
        except Refused:
            continue
        if bought.sold and says(bought.calibration):
            return spend
    return None
