"""Families of noise: what a price buys, which groups it can select or choose, and how its intervals widen.

A family is a name of `NoiseFamily` and an entry of `FAMILIES`. Pricing, releases and the description of the server loop
over the entries and read their fields; none distinguishes families by name. How the error of several sums is computed
follows from the law that its measurements name (`measurement.Law`). docs/recipes/mechanism.md adds a family.
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from types import MappingProxyType

from mechanisms.consistency import CELLS_MAX, Lattice, chosen_lattice, sizes_of
from mechanisms.measurement import Measurement, root_up
from mechanisms.measurements.choices import ExponentialMechanism, PermuteAndFlip
from mechanisms.measurements.discrete_laplace import SCALE_MOST, DiscreteLaplaceMeasurement, counted
from mechanisms.measurements.drawn_ranks import GaussianRanks, LaplaceRanks
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.gaussian_combined import CombinedGaussian
from mechanisms.measurements.gaussian_moments import GaussianMoments
from mechanisms.measurements.gaussian_pairs import GaussianPairs
from mechanisms.measurements.gaussian_threshold import GaussianThresholdMeasurement
from mechanisms.measurements.laplace import LaplaceMeasurement
from mechanisms.measurements.levels import GaussianLevels, LaplaceLevels
from mechanisms.measurements.moments_threshold import (
    GaussianMomentsThreshold,
    GaussianPairsThreshold,
    LaplaceMomentsThreshold,
)
from mechanisms.measurements.named_ranks import GaussianBlocks, GaussianSmooth, LaplaceBlocks, LaplaceSmooth
from mechanisms.measurements.truncated_geometric import TruncatedGeometricMeasurement
from mechanisms.measurements.weighted_threshold import WeightedThresholdMeasurement
from mechanisms.moment_weights import PAIR_TIMES, has_pair_noise, squares_of
from mechanisms.samplers.undecided import require_scale
from mechanisms.trees import running_tree
from privacy.currency import MU_SQUARED, PURE, Currency
from privacy.events import LaplaceEvent
from privacy.events.gaussian import gaussian_loss
from privacy.loss import Loss
from privacy.policy import KeyValue
from privacy.rank_tree import QuantileMechanism
from privacy.statistic import CoreStatistics, RunningSums, Statistic, StatisticKind

__all__ = [
    "BY_MECHANISM",
    "FAMILIES",
    "MEASUREMENTS",
    "ONE_GROUP",
    "Family",
    "Law",
    "NoiseFamily",
    "Price",
    "registered",
]

ONE_GROUP = "Laplace noise selects groups only where each privacy unit has one group"


class NoiseFamily(enum.StrEnum):
    """The families of noise that can answer a query. The values are used in requests, answers and stored releases."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True, slots=True)
class Price:
    """An amount in the family's currency for all statistics together; delta only for the selection of groups.

    `pure`: nothing but pure epsilon counts on any account that pays. `parts`: how many parts of the amount each
    statistic gets, in the order of cores and statistics, where a width splits it by need (shares.md); empty where they
    are fixed.
    """

    family: NoiseFamily
    amount: Fraction
    delta: Fraction
    pure: bool = False
    parts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Law:
    """A law of noise that took another one's place: its name in the keys of releases.

    `times`: with so many times the quality a release of the earlier law is at least as exact in every estimate.
    """

    name: str
    times: Fraction
    between: tuple[Law, ...] = ()
    """Laws between the first one and this, each with how many times its quality is enough in its place."""


@dataclass(frozen=True, slots=True)
class Family(ABC):
    """One family of noise.

    `preference`: of families that cost the same the one with the least answers. `measurements`: the kinds that it
    draws, its noise first. `unselected`: why it does not select some groups, None where it selects all.
    """

    name: NoiseFamily
    currency: Currency
    preference: int
    measurements: tuple[type[Measurement], ...]
    unselected: str | None = None
    power: int | None = None
    """That of the norm to which noise on several levels of groups is calibrated; None where it is on one alone."""

    def paid(self, *, pure: bool) -> Family:
        """The noise that it draws where nothing but pure epsilon counts, or elsewhere."""
        return self

    def law(self, core: CoreStatistics, *, pure: bool) -> Law | None:
        """The law of a core's noise where it is a better one than earlier versions drew; None where it is theirs.

        Of noise on one level of groups: that on several levels has the law that it had.
        """
        return None

    def lattice(self, core: CoreStatistics) -> Lattice | None:
        """The levels of a core that are measured with this noise; None where only the finest one is. Reads no data."""
        asked = core.levels or core.running is not None
        if self.power is None or not asked or core.keys.domain is None or len(core.keys.domain) > CELLS_MAX:
            return None
        if any(statistic.drawn is not None for statistic in core.statistics):
            return None  # what is drawn in a group is not a sum
        if core.running is not None:
            return _tree_of(core.keys.domain, core.running, self.power, core.keys.groups_per_unit)
        return _lattice_of(core.keys.domain, core.levels, self.power, core.keys.groups_per_unit)

    def measurement_of_levels(
        self, core: CoreStatistics, statistic: Statistic, lattice: Lattice, *, share: Fraction, amount: Fraction
    ) -> Measurement:
        """Noise on the sums of all levels of a lattice. Errors: ValueError out of range, or where it measures none."""
        raise ValueError("this noise does not measure several levels")

    @abstractmethod
    def loss(self, amount: Fraction) -> Loss:
        """What releasing one count with this amount costs. Errors: ValueError when it is out of range."""

    @abstractmethod
    def selects(self, core: CoreStatistics) -> bool:
        """Whether the core's groups are public, or can be selected with this noise."""

    @abstractmethod
    def measurement(self, core: str, statistic: Statistic, *, share: Fraction, amount: Fraction) -> Measurement:
        """Noise on the sums of a statistic at this amount. Errors: ValueError when it is out of range."""

    @abstractmethod
    def selection(
        self, core: CoreStatistics, statistic: Statistic, *, share: Fraction, amount: Fraction, delta: Fraction
    ) -> Measurement:
        """Noise on the number of units of each group, by which groups are selected. Errors: ValueError as above."""

    @abstractmethod
    def chosen(self, core: CoreStatistics, statistic: Statistic, *, share: Fraction, amount: Fraction) -> Measurement:
        """The choice of the core's best groups by this statistic, of which no sum is released. Errors: as above."""

    @abstractmethod
    def widening(self, before: float, after: float) -> float:
        """How much wider an interval has to be at confidence `after` than at `before`, which is less."""


_OF_ROWS = (StatisticKind.MOMENTS, StatisticKind.PRODUCTS)
"""The kinds whose sums of a cell add up to its rows, by which groups may be selected (own_threshold.md)."""

_LAPLACE_RANKS: Mapping[QuantileMechanism, type[LaplaceRanks | LaplaceSmooth]] = {
    QuantileMechanism.EXPONENTIAL: LaplaceRanks,
    QuantileMechanism.SMOOTH: LaplaceSmooth,
    QuantileMechanism.SAMPLE_AND_AGGREGATE: LaplaceBlocks,
}

_GAUSSIAN_RANKS: Mapping[QuantileMechanism, type[GaussianRanks | GaussianSmooth]] = {
    QuantileMechanism.EXPONENTIAL: GaussianRanks,
    QuantileMechanism.SMOOTH: GaussianSmooth,
    QuantileMechanism.SAMPLE_AND_AGGREGATE: GaussianBlocks,
}


@lru_cache(maxsize=64)
def _lattice_of(
    domain: tuple[tuple[KeyValue, ...], ...], levels: tuple[tuple[int, ...], ...], power: int, groups: int
) -> Lattice | None:
    """The levels that are measured of a domain; None where the finest alone is: also of what is not a product."""
    sizes = sizes_of(domain)
    return None if sizes is None else chosen_lattice(sizes, levels, power=power, groups=groups)


@lru_cache(maxsize=64)
def _tree_of(domain: tuple[tuple[KeyValue, ...], ...], sums: RunningSums, power: int, groups: int) -> Lattice | None:
    """The tree by which running sums of a domain are measured; None where its cells alone are."""
    counts = sizes_of(domain)
    return None if counts is None else running_tree(counts, sums, power=power, groups=groups)


@dataclass(frozen=True, slots=True)
class _Laplace(Family):
    """Laplace noise; groups of which each unit has one are selected by the truncated geometric."""

    def loss(self, amount: Fraction) -> Loss:
        return LaplaceEvent(l1_sensitivity=Fraction(1), scale=1 / amount).loss()

    def selects(self, core: CoreStatistics) -> bool:
        return core.keys.selection is None or core.keys.groups_per_unit == 1

    def measurement(self, core: str, statistic: Statistic, *, share: Fraction, amount: Fraction) -> Measurement:
        kind = LaplaceMeasurement if statistic.drawn is None else _LAPLACE_RANKS[statistic.drawn.method]
        return kind.for_epsilon(core=core, statistic=statistic, share=share, epsilon=amount)

    def measurement_of_levels(
        self, core: CoreStatistics, statistic: Statistic, lattice: Lattice, *, share: Fraction, amount: Fraction
    ) -> Measurement:
        return LaplaceLevels.of_levels(
            core=core.name, statistic=statistic, share=share, epsilon=amount, lattice=lattice
        )

    def selection(
        self, core: CoreStatistics, statistic: Statistic, *, share: Fraction, amount: Fraction, delta: Fraction
    ) -> Measurement:
        if self.selects(core) and statistic.kind in _OF_ROWS:
            return LaplaceMomentsThreshold.selecting(
                core=core.name, statistic=statistic, share=share, epsilon=amount, delta=delta
            )
        if not self.selects(core) or statistic.sensitivity.l1 != 1:
            raise ValueError("selecting groups with a pure price needs one group per privacy unit")
        return TruncatedGeometricMeasurement(
            core=core.name, statistic=statistic, share=share, epsilon=amount, delta=delta
        )

    def chosen(self, core: CoreStatistics, statistic: Statistic, *, share: Fraction, amount: Fraction) -> Measurement:
        return PermuteAndFlip.for_epsilon(core, statistic=statistic, share=share, epsilon=amount)

    def widening(self, before: float, after: float) -> float:
        """Exact for one variable; the quantile of a sum is larger to begin with, and grows no faster."""
        return math.log(1 - after) / math.log(1 - before)


@dataclass(frozen=True, slots=True)
class _PureLaplace(_Laplace):
    """The same where nothing but pure epsilon counts: counts have two-sided geometric noise where it is narrower."""

    def measurement(self, core: str, statistic: Statistic, *, share: Fraction, amount: Fraction) -> Measurement:
        plain = _Laplace.measurement(self, core, statistic, share=share, amount=amount)
        if not counted(statistic) or plain.grid != 1 or plain.scale_of_sums > SCALE_MOST:
            return plain
        return DiscreteLaplaceMeasurement.for_epsilon(core=core, statistic=statistic, share=share, epsilon=amount)


@dataclass(frozen=True, slots=True)
class _EitherLaplace(_Laplace):
    """Laplace noise, and the discrete one of counts where nothing but pure epsilon counts."""

    def paid(self, *, pure: bool) -> Family:
        if not pure:
            return self
        return _PureLaplace(self.name, self.currency, self.preference, self.measurements, self.unselected, self.power)

    def law(self, core: CoreStatistics, *, pure: bool) -> Law | None:
        """Two-sided geometric noise on counts; Laplace noise of half its scale is narrower (discrete_laplace.md)."""
        return Law("discrete", Fraction(2)) if pure and any(map(counted, core.statistics)) else None


@dataclass(frozen=True, slots=True)
class _Gaussian(Family):
    """Gaussian noise; groups are selected by a threshold on the noisy number of units, or on their noisy weight."""

    def law(self, core: CoreStatistics, *, pure: bool) -> Law | None:
        """Factors of moments, and of the forms of pairs."""
        found = [squares for one in core.statistics if (squares := squares_of(one)) is not None]
        moments = Law("moments", root_up(max(max(squares) for squares in found))) if found else None
        if not any(one.parts > 1 and has_pair_noise(one) for one in core.statistics):
            return moments
        if moments is None:
            return Law("pairs", PAIR_TIMES)
        return Law("moments and pairs", max(PAIR_TIMES, moments.times), (Law(moments.name, PAIR_TIMES),))

    def loss(self, amount: Fraction) -> Loss:
        return gaussian_loss(mu_squared=amount, delta=Fraction(0))

    def selects(self, core: CoreStatistics) -> bool:
        return True

    def measurement(self, core: str, statistic: Statistic, *, share: Fraction, amount: Fraction) -> Measurement:
        kind: type[GaussianMeasurement | GaussianRanks | GaussianSmooth] = GaussianMeasurement
        if statistic.drawn is not None:
            kind = _GAUSSIAN_RANKS[statistic.drawn.method]
        elif statistic.parts > 1 and has_pair_noise(statistic):
            kind = GaussianPairs
        elif squares_of(statistic) is not None:
            kind = GaussianMoments
        return kind.for_mu_squared(core=core, statistic=statistic, share=share, mu_squared=amount)

    def measurement_of_levels(
        self, core: CoreStatistics, statistic: Statistic, lattice: Lattice, *, share: Fraction, amount: Fraction
    ) -> Measurement:
        return GaussianLevels.of_levels(
            core=core.name,
            statistic=statistic,
            share=share,
            mu_squared=amount,
            lattice=lattice,
            groups=core.keys.groups_per_unit,
        )

    def selection(
        self, core: CoreStatistics, statistic: Statistic, *, share: Fraction, amount: Fraction, delta: Fraction
    ) -> Measurement:
        if statistic.kind in _OF_ROWS:
            by_rows = GaussianPairsThreshold if has_pair_noise(statistic) else GaussianMomentsThreshold
            return by_rows.selecting(
                core=core.name,
                statistic=statistic,
                share=share,
                mu_squared=amount,
                delta=delta,
                groups_per_unit=core.keys.groups_per_unit,
            )
        sigma = root_up(statistic.sensitivity.l2_squared / amount)
        require_scale(sigma)
        weighted = statistic.kind is StatisticKind.WEIGHTS
        kind = WeightedThresholdMeasurement if weighted else GaussianThresholdMeasurement
        return kind(
            core=core.name,
            statistic=statistic,
            share=share,
            sigma=sigma,
            delta=delta,
            groups_per_unit=core.keys.groups_per_unit,
        )

    def chosen(self, core: CoreStatistics, statistic: Statistic, *, share: Fraction, amount: Fraction) -> Measurement:
        return ExponentialMechanism.for_mu_squared(core, statistic=statistic, share=share, mu_squared=amount)

    def widening(self, before: float, after: float) -> float:
        """Exact: a weighted sum of normals is normal."""
        return NormalDist().inv_cdf((1 + after) / 2) / NormalDist().inv_cdf((1 + before) / 2)


def registered(families: Iterable[Family]) -> Mapping[NoiseFamily, Family]:
    """The families by name. Errors: ValueError when a name has none or more than one."""
    found: dict[NoiseFamily, Family] = {}
    for family in families:
        if family.name in found:
            raise ValueError(f"two families of noise are registered as {family.name}")
        found[family.name] = family
    missing = [name for name in NoiseFamily if name not in found]
    if missing:
        raise ValueError(f"no family of noise is registered as {', '.join(missing)}")
    return MappingProxyType(found)


FAMILIES: Mapping[NoiseFamily, Family] = registered(
    (
        _EitherLaplace(
            NoiseFamily.LAPLACE,
            PURE,
            preference=1,
            measurements=(
                LaplaceMeasurement,
                DiscreteLaplaceMeasurement,
                TruncatedGeometricMeasurement,
                LaplaceMomentsThreshold,
                PermuteAndFlip,
                LaplaceLevels,
                LaplaceRanks,
                LaplaceSmooth,
                LaplaceBlocks,
            ),
            unselected=ONE_GROUP,
            power=1,
        ),
        _Gaussian(
            NoiseFamily.GAUSSIAN,
            MU_SQUARED,
            preference=0,
            measurements=(
                GaussianMeasurement,
                GaussianMoments,
                GaussianPairs,
                GaussianThresholdMeasurement,
                GaussianMomentsThreshold,
                GaussianPairsThreshold,
                WeightedThresholdMeasurement,
                ExponentialMechanism,
                GaussianLevels,
                GaussianRanks,
                GaussianSmooth,
                GaussianBlocks,
                CombinedGaussian,
            ),
            power=2,
        ),
    )
)

MEASUREMENTS: Mapping[str, type[Measurement]] = MappingProxyType(
    {kind.name: kind for family in FAMILIES.values() for kind in family.measurements}
)
"""Every kind of measurement by the name under which releases store it."""

if len(MEASUREMENTS) != sum(len(family.measurements) for family in FAMILIES.values()):
    # A stored release would be read back with the law of the other one.
    raise ImportError("two kinds of measurement have one name")

BY_MECHANISM: Mapping[str, Family] = MappingProxyType(
    {kind.name: family for family in FAMILIES.values() for kind in family.measurements}
)
"""The family of each kind of measurement, by the kind's name."""
