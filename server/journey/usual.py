"""First moments that follow what earlier answers of the same plan showed.

A plan says what its operators cost and nothing of how many rows there are, so its own first moment may be too early for
every run: each answer would wait for the second one, twice as late. When an answer showed is known to whoever asked, so
later moments of that asker may follow from it.

Claim. The bound of moments.py on one look holds for every look. Proof: the moments of a look are fixed by the plan,
declarations and the moments that the same asker saw before; given these, the look is the function of T + U that is
looked at there. What is learned from one asker's answers is used for nobody else, so it tells nobody of another's
questions.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace

from server.journey.moments import Moments

__all__ = ["Usual"]

KEPT_MAX = 10_000
_PATIENCE = 8
_PATIENCE_MAX = 64
_STEP = 1 / 8
"""How much earlier an answer is tried to show, as a part of the first moment."""


@dataclass(slots=True)
class _Plan:
    """What one asker saw of one plan: the first moment in use, and how many answers in a row showed at it.

    `before` is the moment that was in use while an earlier one is tried; after `patience` answers one is tried again.
    """

    first: float
    row: int = 0
    before: float | None = None
    patience: int = _PATIENCE


class Usual:
    """First moments by asker and plan, those not asked for longest forgotten. Safe to use from many threads."""

    def __init__(self, grid_seconds: float, *, kept_max: int = KEPT_MAX) -> None:
        self._grid = grid_seconds
        self._kept_max = kept_max
        self._lock = threading.Lock()
        self._plans: OrderedDict[Hashable, _Plan] = OrderedDict()

    def moments(self, key: Hashable, planned: Moments) -> Moments:
        """The moments of the next run: those of its plan, the first of them later where earlier answers were."""
        with self._lock:
            plan = self._plans.get(key)
            return planned if plan is None else replace(planned, first=max(planned.first, plan.first))

    def showed(self, key: Hashable, planned: Moments, used: Moments, moment: float) -> None:
        """Learns from the moment at which a run with the moments `used` showed; those `planned` are the earliest."""
        with self._lock:
            plan = self._plans.setdefault(key, _Plan(used.first))
            self._plans.move_to_end(key)
            while len(self._plans) > self._kept_max:
                self._plans.popitem(last=False)
            if used.first != max(planned.first, plan.first):
                return  # runs beside each other: this one had other moments
            plan.first = used.first
            if moment > used.first:
                self._later(plan, moment)
            else:
                self._in_time(plan, planned.first)

    def _later(self, plan: _Plan, moment: float) -> None:
        """An answer missed its first moment."""
        if plan.before is not None:
            plan.first, plan.before = plan.before, None
            plan.patience = min(_PATIENCE_MAX, 2 * plan.patience)
        elif plan.row == 0:
            # None has shown at this moment yet: it is far too early.
            plan.first = self._on_grid((plan.first + moment) / 2)
        else:
            plan.first += self._step(plan.first)
        plan.row = 0

    def _in_time(self, plan: _Plan, least: float) -> None:
        """An answer showed at its first moment; after several an earlier one is tried."""
        plan.row += 1
        if plan.row >= plan.patience and plan.first > least:
            plan.before = plan.first
            plan.first = max(least, plan.first - self._step(plan.first))
            plan.row = 0

    def _step(self, first: float) -> float:
        return self._grid * max(1, math.floor(first * _STEP / self._grid))

    def _on_grid(self, moment: float) -> float:
        return self._grid * math.ceil(round(moment / self._grid, 6))
