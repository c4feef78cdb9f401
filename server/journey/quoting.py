"""Step 4: the price of a query, what is refused for its price or its noise, and all that an estimate says about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypedDict

from accountant.account import Account
from accountant.request import CoreCharge
from mechanisms.families import NoiseFamily
from mechanisms.released_table import ReleasedTable
from privacy.refusal import Refused
from privacy.statistic import CoreStatistics
from server import pricing
from server.answer_rows import from_stored
from server.calibrations import Calibrations
from server.journey.charges import wish_of
from server.journey.pure_noise import refuse_pure_noise
from server.journey.query import Prepared, Quote
from server.journey.reuse import Reusable, Stored
from server.least_spend import least_spend, refusal_of
from server.question import Question

__all__ = ["Quoting"]

_CURVE = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))


class _Limits(TypedDict):
    """What every wish of a question has in common."""

    noise: NoiseFamily | None
    delta: Fraction | None


class Quoting:
    """The prices of one query on one path of accounts."""

    def __init__(self, question: Question, prepared: Prepared, path: Sequence[Account]) -> None:
        self._question = question
        self._wish = replace(wish_of(question), cells=prepared.at_once(), unshown=prepared.plan.unshown)
        self._prepared = prepared
        self._path = path
        self._dataset = prepared.plan.dataset

    def price(self) -> pricing.Priced | None:
        """The price; None for a query that reads no rows. Errors: Refused."""
        return self._price(self._wish) if self._prepared.cores else None

    def refuse_price(self, priced: pricing.Priced) -> None:
        """Errors: Refused for a price at which nothing is run."""
        refused = self._refused(priced)
        if refused is not None:
            raise refused

    def _refused(self, priced: pricing.Priced) -> Refused | None:
        return refusal_of(
            priced,
            self._prepared.priced,
            self._wish,
            path=self._path,
            dataset=self._dataset,
            known=self._prepared.calibrations,
        )

    def refuse(self, priced: pricing.Priced, stored: Stored, reusable: Reusable) -> None:
        """Errors: Refused for a price at which nothing is run, and for columns that would be noise alone.

        Neither where stored releases answer for free; noise alone is answered where it is asked for.
        """
        refused = self._refused(priced)
        if refused is not None and not all(reusable.serve()):
            raise refused
        if not self._question.accept_noise:
            refuse_pure_noise(
                self._prepared, priced, self._question, self._price, path=self._path, stored=stored, reusable=reusable
            )

    def quote(self, priced: pricing.Priced | None, reusable: Reusable, charges: Sequence[CoreCharge]) -> Quote:
        """All that an estimate says about prices. `charges` are those of the cores, in the order of the plan."""
        keys = [charge.core_key for charge in charges]
        if priced is None:
            return Quote(None, self._path, {}, [], (), None, keys)
        return Quote(
            priced,
            self._path,
            reusable.serving,
            self._curve(priced),
            self._families(priced),
            self._least(priced),
            keys,
            self._histograms(priced, reusable),
            charges=charges,
        )

    def _histograms(self, priced: pricing.Priced, reusable: Reusable) -> dict[str, ReleasedTable]:
        """The stored histograms that serve, by the name of their core."""
        found = {}
        for core, histogram in zip(self._prepared.cores, self._prepared.histograms, strict=True):
            stored = None if histogram is None else reusable.serving.get(histogram.release_key(priced.family))
            if histogram is not None and stored is not None:
                name = histogram.described.name
                found[core.described.name] = from_stored(stored.body, name, self._question.confidence)
        return found

    def priced_by_default(self) -> pricing.Priced:
        """The price of a spend in place of a width: what chooses norms before the width is priced."""
        return self._price(pricing.Wish(noise=self._question.noise, delta=self._question.delta))

    def at_spend(self, epsilon: Fraction) -> pricing.Priced | None:
        """The query at another spend; None where the policy does not allow it or nothing is sold for it."""
        if epsilon > self._dataset.limits.epsilon_max or (epsilon * 10**12).denominator != 1:
            return None
        return self._sold((), pricing.Wish(epsilon=epsilon, **self._limits()))

    def for_width(
        self, width: Fraction, cells: int | None, cores: Sequence[CoreStatistics] = ()
    ) -> pricing.Priced | None:
        """The cheapest spend for a half width of so many intervals at once; None where none is sold for it.

        Of other cores where they are named.
        """
        wish = pricing.Wish(half_width=width, confidence=self._question.confidence, cells=cells, **self._limits())
        if not cores:
            wish = replace(wish, unshown=self._prepared.plan.unshown)
        return self._sold(cores, wish)

    def _sold(self, cores: Sequence[CoreStatistics], wish: pricing.Wish) -> pricing.Priced | None:
        known = Calibrations() if cores else self._prepared.calibrations
        measured = cores or self._prepared.priced
        try:
            found = pricing.price(measured, wish, path=self._path, dataset=self._dataset, known=known)
        except Refused:
            return None
        return found if found.sold else None

    def _limits(self) -> _Limits:
        return {"noise": self._question.noise, "delta": self._question.delta}

    def _price(self, wish: pricing.Wish) -> pricing.Priced:
        return pricing.price(
            self._prepared.priced, wish, path=self._path, dataset=self._dataset, known=self._prepared.calibrations
        )

    def _least(self, priced: pricing.Priced) -> Fraction | None:
        """The least spend of a fresh run with this noise, None where no price would do."""
        try:
            return least_spend(
                self._prepared.priced,
                priced.family,
                priced.price.delta,
                path=self._path,
                dataset=self._dataset,
                known=self._prepared.calibrations,
            )
        except ValueError:
            return None

    def _families(self, priced: pricing.Priced) -> tuple[pricing.Priced, ...]:
        """The query with each family of noise that is sold for the wish, the chosen one first."""
        try:
            both = pricing.candidates(
                self._prepared.priced,
                replace(self._wish, noise=None),
                path=self._path,
                dataset=self._dataset,
                known=self._prepared.calibrations,
            )
        except Refused:
            return (priced,)
        return (priced, *(other for other in both if other.family != priced.family and other.sold))

    def _curve(self, priced: pricing.Priced) -> list[pricing.Priced]:
        """The same query at a few spends below and above, as far as the policy allows them."""
        points = (self.at_spend(priced.epsilon * factor) for factor in _CURVE)
        return [point for point in points if point is not None]
