"""Calibrations of one plan, kept by price, which is all they depend on: a repeated question is not calibrated again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import add

from mechanisms.calibrate import Calibration, calibrate, losses
from mechanisms.families import Price
from privacy.composition import compose
from privacy.loss import Loss
from privacy.statistic import CoreStatistics

__all__ = ["Calibrated", "Calibrations"]

_KEPT = 64


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Measurements and what they cost: each core by itself, in the order of the plan, and all together."""

    calibration: Calibration
    by_core: tuple[Loss, ...]
    loss: Loss


class Calibrations:
    """What was calibrated for a plan, by price. Safe to use from many threads: entries are equal whoever makes them."""

    def __init__(self) -> None:
        self._known: dict[Price, Calibrated] = {}
        self._found: dict[Hashable, Price] = {}

    def get(self, cores: Sequence[CoreStatistics], price: Price) -> Calibrated:
        """The calibration of the plan's cores and its losses. Errors: ValueError as `calibrate`."""
        found = self._known.get(price)
        if found is None:
            calibration = calibrate(cores, price)
            by_core = tuple(compose(calibration.events_of(core.name)) for core in cores)
            found = Calibrated(calibration, by_core, reduce(add, by_core))
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[price] = found
        return found

    def losses(self, cores: Sequence[CoreStatistics], price: Price) -> tuple[Loss, ...]:
        """What each core costs at this price. Errors: ValueError as `mechanisms.calibrate.losses`."""
        found = self._known.get(price)
        return losses(cores, price) if found is None else found.by_core

    def losses_of(self, cores: Sequence[CoreStatistics], price: Price) -> Callable[[Fraction], tuple[Loss, ...]]:
        """What each core costs at other amounts of a price.

        Without the tables that drawing needs: the amount that is sought may well turn out to be another one.
        """
        return lambda amount: self.losses(cores, replace(price, amount=amount))

    def once(self, key: Hashable, search: Callable[[], Price]) -> Price:
        """A price that was searched for this plan under a key, or the search's result from now on."""
        found = self._found.get(key)
        if found is None:
            found = search()
            if len(self._found) >= _KEPT:
                self._found.clear()
            self._found[key] = found
        return found
