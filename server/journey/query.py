"""A query between the steps of the journey: what is known of it after each, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType

from accountant.account import Account
from accountant.request import Charged, CoreCharge, Reserved, StoredRelease
from privacy.aggregate import AggregateFunction
from privacy.refusal import Finding
from privacy.statement import Statement
from privacy.statistic import CoreStatistics
from server.admitted import InFlight, Settled
from server.calibrations import Calibrations
from server.derived.at_once import cells_at_once
from server.pricing import Priced
from server.question import Question
from sql_rewrite.bound import BoundedCore, bound_core
from sql_rewrite.cost import Work, work_of
from sql_rewrite.plan import Aggregate, Plan
from sql_rewrite.plan_key import core_key

__all__ = ["Admitted", "Asked", "Paid", "Prepared", "Quote", "ToRun"]

NONE_SHOWN: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query after steps 2 and 3: everything that follows from the text and public metadata."""

    plan: Plan
    cores: tuple[BoundedCore, ...]
    statements: tuple[Statement, ...]
    keys: tuple[str, ...]
    """What each core asks: with family and delta of the noise it is the key of a release (release_key.py)."""
    types: tuple[tuple[str, str], ...] | None
    work: Work
    """What the engine does for all of it."""
    warnings: tuple[Finding, ...] = ()
    calibrations: Calibrations = field(default_factory=Calibrations)
    """Calibrations of this plan by price."""
    _counting_keys: dict[str, str] = field(default_factory=dict)

    @property
    def described(self) -> tuple[CoreStatistics, ...]:
        """The statistics of all cores."""
        return tuple(core.described for core in self.cores)

    def at_once(self, shown: Mapping[str, int] = NONE_SHOWN) -> int | None:
        """How many intervals of the answer hold at once; None where that is not known before the answer.

        `shown` are the numbers of groups in stored releases that serve, by core: of hidden groups nothing else says it.
        """
        cells = [shown.get(core.name) if core.keys.domain is None else len(core.keys.domain) for core in self.described]
        known = [number for number in cells if number is not None]
        return None if self.plan.shell.chosen and len(known) < len(cells) else cells_at_once(self.plan.shell, known)

    def counting_key(self, core: BoundedCore) -> str:
        """The key of a count of the same rows in the same groups as one of the cores. Kept, as the plan is."""
        name = core.core.name
        known = self._counting_keys.get(name)
        if known is None:
            count = Aggregate("a0", AggregateFunction.ROWS, None, None, None, "COUNT(*)")
            counted = bound_core(replace(core.core, aggregates=(count,)), self.plan.dataset)
            known = self._counting_keys[name] = core_key(counted, self.plan.dataset)
        return known


@dataclass(frozen=True, slots=True)
class Quote:
    """What was found out about the price of a question.

    `families` are the candidates of all families of noise, the chosen one first; `least` is the least spend of a fresh
    run; `reusable` are stored releases that serve cores for free, by the core's key.
    """

    priced: Priced | None
    path: Sequence[Account]
    reusable: Mapping[str, StoredRelease]
    curve: Sequence[Priced]
    families: Sequence[Priced]
    least: Fraction | None
    keys: Sequence[str]
    """Keys of the cores, in the order of the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query after step 4: who asks what, at which price, and who pays. The first account of `path` is the leaf.

    `priced` is None for a query that reads no rows; `charges` are in the order of the plan's cores.
    """

    query_id: str
    question: Question
    prepared: Prepared
    priced: Priced | None
    charges: tuple[CoreCharge, ...]
    path: tuple[Account, ...]


@dataclass(frozen=True, slots=True)
class Paid:
    """What an answer took from accounts, and the stored releases that it took instead, by core key.

    `read` are those of the latter that somebody else had paid for.
    """

    charged: tuple[Charged, ...]
    reused: Mapping[str, StoredRelease]
    read: frozenset[str] = frozenset()

    @staticmethod
    def of(reserved: Reserved) -> Paid:
        """What a reservation took."""
        return Paid(reserved.charged, reserved.reused, reserved.read)


@dataclass(frozen=True, slots=True)
class ToRun:
    """A query after step 5, charged: this caller, and no other, runs it. `started` is when it was asked."""

    asked: Asked
    paid: Paid
    started: float

    @property
    def query_id(self) -> str:
        """The query's identifier."""
        return self.asked.query_id

    @property
    def reads_rows(self) -> bool:
        """Whether the engine is needed: some core is not served by a stored release."""
        return not all(charge.core_key in self.paid.reused for charge in self.asked.charges)

    @property
    def work(self) -> Work:
        """What the engine does: the cores that no stored release serves."""
        if not self.paid.reused:
            return self.asked.prepared.work
        charged = zip(self.asked.prepared.cores, self.asked.charges, strict=True)
        fresh = [core for core, charge in charged if charge.core_key not in self.paid.reused]
        return work_of(fresh, self.asked.prepared.work.costs)


Admitted = Settled | InFlight | ToRun
"""A query after step 5."""
