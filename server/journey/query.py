"""A query between the steps of the journey: what is known of it after each, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType

from accountant.account import Account
from accountant.request import Charged, CoreCharge, Reserved, StoredRelease
from mechanisms.calibrate import part_of
from mechanisms.families import NoiseFamily
from mechanisms.released_table import ReleasedTable
from mechanisms.sharpening import Difference
from privacy.aggregate import AggregateFunction
from privacy.norms import NormPower
from privacy.refusal import Finding
from privacy.release import BoundsNote, NormNote
from privacy.statement import Statement
from privacy.statistic import CoreStatistics
from server.admitted import InFlight, Settled
from server.calibrations import Calibrations
from server.derived.at_once import cells_at_once
from server.journey.release_key import release_key
from server.journey.value_stage import Told, ValueStage
from server.pricing import Priced
from server.question import Question
from sql_rewrite.bound import BoundedCore, bound_core
from sql_rewrite.boxes import Box, box_of
from sql_rewrite.cost import Work, work_of
from sql_rewrite.finer_groups import FinerFrame, finer_frames
from sql_rewrite.frames import Frame, frame_of, wanted
from sql_rewrite.plan import Aggregate, Plan
from sql_rewrite.plan_key import core_key

__all__ = ["Admitted", "Asked", "Histogram", "Paid", "Prepared", "Quote", "Raised", "ToRun"]

NONE_SHOWN: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Histogram:
    """The histogram of a core's norms, by which a question chooses them: released before the core's sums."""

    described: CoreStatistics
    statement: Statement
    key: str
    """What it asks, as the keys of cores."""
    shared: bool = False
    """Whether the sums of its core read the tables that its statement makes."""

    def release_key(self, family: NoiseFamily) -> str:
        """The key of its releases with this family of noise."""
        return release_key(self.key, family, delta=Fraction(0))


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
    earlier: Mapping[str, str] = field(default_factory=dict)
    """What cores asked, by their names, whose averages have one statistic for two columns now: each had its own."""
    warnings: tuple[Finding, ...] = ()
    calibrations: Calibrations = field(default_factory=Calibrations)
    """Calibrations of this plan by price."""
    histograms: tuple[Histogram | None, ...] = ()
    """Of each core whose norms the question chooses; None of others."""
    power: NormPower = NormPower.L2
    notes: Mapping[str, tuple[NormNote, ...]] = field(default_factory=dict)
    """On norms that were chosen before the price, by core."""
    values: ValueStage | None = None
    """The histograms that choose value bounds; None where none are needed, or the bounds are chosen."""
    bounds: Mapping[str, tuple[BoundsNote, ...]] = field(default_factory=dict)
    """On value bounds that were chosen, by core."""
    ends: Mapping[str, tuple[tuple[str, str, Fraction, Fraction], ...]] = field(default_factory=dict)
    """These bounds, exact, by core: table, column, and both ends."""
    spared: frozenset[str] = frozenset()
    """The cores that stored histograms of values spare a part of the price, which their sums get instead."""
    told: tuple[ValueStage, tuple[Told, ...]] | None = None
    """The stored histograms that chose value bounds before the price: they choose again once the norms are known."""
    counted: Prepared | None = None
    """The same question, answered by counts in place of a choice of keys; None where that is no other question."""
    _counting_keys: dict[str, str] = field(default_factory=dict)
    _frames: dict[str, Frame | None] = field(default_factory=dict)
    _estimands: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _finer: dict[str, tuple[FinerFrame, ...]] = field(default_factory=dict)
    _boxes: dict[str, tuple[str, Box] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert len(self.histograms) == len(self.cores) == len(self.statements) == len(self.keys)

    @property
    def apart(self) -> frozenset[str]:
        """The cores whose histograms of norms share no tables with their sums."""
        both = zip(self.cores, self.histograms, strict=True)
        return frozenset(core.described.name for core, found in both if found is not None and not found.shared)

    @property
    def priced(self) -> tuple[CoreStatistics, ...]:
        """All that is measured: the statistics of all cores, and the histograms of their norms."""
        values = () if self.values is None else self.values.histograms
        return (
            *self.described,
            *(one.described for one in self.histograms if one is not None),
            *(one.bounded.described for one in values),
        )

    def histograms_by_key(self, family: NoiseFamily) -> dict[str, Histogram]:
        """The histograms to release with this family of noise, by their keys: of equal ones that with the most."""
        cores, found = self.priced, dict[str, Histogram]()
        for histogram in (one for one in self.histograms if one is not None):
            known = found.setdefault(histogram.release_key(family), histogram)
            if part_of(histogram.described, cores) > part_of(known.described, cores):
                found[histogram.release_key(family)] = histogram
        return found

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

    def frame(self, core: BoundedCore) -> Frame | None:
        """The frame of one of the cores; None without one. Kept, as the plan is."""
        name = core.core.name
        if name not in self._frames:
            self._frames[name] = frame_of(core, self.plan.dataset)
        return self._frames[name]

    def estimands(self, core: BoundedCore) -> tuple[str, ...]:
        """What each aggregate of one of the cores is of its frame. Kept, as the plan is."""
        name = core.core.name
        if name not in self._estimands:
            self._estimands[name] = wanted(core, self.plan.dataset)
        return self._estimands[name]

    def finer(self, core: BoundedCore) -> tuple[FinerFrame, ...]:
        """The frames whose finer groups give the cells of one of the cores. Kept, as the plan is."""
        name = core.core.name
        if name not in self._finer:
            self._finer[name] = finer_frames(core, self.plan.dataset)
        return self._finer[name]

    def box(self, core: BoundedCore) -> tuple[str, Box] | None:
        """The rows of one of the cores without its conditions, and its box in them; None without. Kept likewise."""
        name = core.core.name
        if name not in self._boxes:
            self._boxes[name] = box_of(core, self.plan.dataset)
        return self._boxes[name]

    def counting_key(self, core: BoundedCore) -> str:
        """The key of a count of the same rows in the same groups as one of the cores. Kept, as the plan is."""
        name = core.core.name
        known = self._counting_keys.get(name)
        if known is None:
            count = Aggregate("a0", AggregateFunction.ROWS, None, None, None, "COUNT(*)")
            counted = bound_core(replace(core.core, aggregates=(count,)), self.plan.dataset, power=self.power)
            known = self._counting_keys[name] = core_key(counted, self.plan.dataset)
        return known


@dataclass(frozen=True, slots=True)
class Raised:
    """A stored release that is made more precise: its record, its table, and what is bought beside it.

    `core` is the core at the norms of the stored release.
    """

    base: StoredRelease
    table: ReleasedTable
    difference: Difference
    core: BoundedCore


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
    histograms: Mapping[str, ReleasedTable] = field(default_factory=dict)
    """Stored histograms of norms that would choose them for free, by the name of their core."""
    histograms_only: bool = False
    """Whether the price is that of histograms alone: they say what the sums cost, which are a charge of their own."""
    charges: Sequence[CoreCharge] = ()
    """The charges of the cores, in the order of the plan: they say which stored releases serve."""
    offer: tuple[str, Mapping[str, float | None], Fraction] | None = None
    """A stored release that serves a smaller spend for free: which one, its standard errors, and about that spend."""
    raised: Mapping[str, Raised] = field(default_factory=dict)
    """The stored releases that would be made more precise, by the core's key."""
    whole: Fraction | None = None
    """What it would cost to buy all of them anew; None where none is made more precise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query after step 4: who asks what, at which price, and who pays. The first account of `path` is the leaf.

    `priced` is None for a query that reads no rows; `charges` are those of the plan's cores, in its order, and then
    those of the histograms of norms that fresh cores need.
    """

    query_id: str
    question: Question
    prepared: Prepared
    priced: Priced | None
    charges: tuple[CoreCharge, ...]
    path: tuple[Account, ...]
    histograms_only: bool = False
    """Whether the charges are those of histograms alone, whose sums are a charge of their own."""
    inputs: Mapping[str, str | None] = field(default_factory=dict)
    """Which stored release later stages read, by the key of its charge; None for one that the question makes."""
    raised: Mapping[str, Raised] = field(default_factory=dict)
    """The stored releases that are made more precise, by the key of their charge."""
    whole: Fraction | None = None
    """What it would cost to buy all of them anew; None where none is made more precise."""

    @property
    def sums(self) -> tuple[CoreCharge, ...]:
        """The charges of the plan's cores, in its order."""
        return () if self.histograms_only else self.charges[: len(self.prepared.cores)]


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
        if not self.paid.reused and not self.asked.histograms_only:
            return self.asked.prepared.work
        prepared, priced = self.asked.prepared, self.asked.priced
        charged = {charge.core_key for charge in self.asked.charges} - set(self.paid.reused)
        cores = zip(prepared.cores, self.asked.sums, strict=not self.asked.histograms_only)
        fresh = [core for core, charge in cores if charge.core_key in charged]
        first = [
            core
            for core, histogram in zip(prepared.cores, prepared.histograms, strict=True)
            if histogram is not None and priced is not None and histogram.release_key(priced.family) in charged
        ]
        if prepared.values is not None and priced is not None:
            fresh += [
                histogram.bounded
                for place, histogram in enumerate(prepared.values.histograms)
                if prepared.values.release_key(place, priced.family) in charged
            ]
        return work_of(fresh, prepared.work.costs, first=first, apart=prepared.apart)


Admitted = Settled | InFlight | ToRun
"""A query after step 5."""
