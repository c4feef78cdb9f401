"""One sum of rows against a threshold: a comparison of a sparse vector run. sparse_vector.md.

The true distance from the threshold stays in here: it is compared once, and may be answered once more with fresh noise
that its owner pays for.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from mechanisms import gateway
from mechanisms.measurement import integers
from mechanisms.randomness import BitSource
from mechanisms.release import single_sum
from mechanisms.sparse_vector import Hit, NumericSparse, SparseRun
from privacy.exact import Exact
from privacy.statistic import CoreStatistics, Statistic
from privacy.statistic_kind import StatisticKind

__all__ = ["Comparable", "Compared", "comparable", "compare"]

_KINDS = (StatisticKind.UNITS, StatisticKind.COUNT, StatisticKind.SUM)


@dataclass(frozen=True, slots=True)
class Comparable:
    """What a comparison has to know of a sum: all of it follows from text and declarations.

    `change`: the greatest change of the sum between neighbours, in units of `step`. `one_way`: whether a unit moves
    every sum of this kind in one direction, upwards where `upwards`.
    """

    statistic: Statistic
    step: Fraction
    change: Fraction
    one_way: bool
    upwards: bool


def comparable(core: CoreStatistics) -> Comparable | None:
    """The one sum of a core without groups; None for a core that releases anything else.

    A unit that is added adds its own rows and changes nobody else's, so a sum of what is never negative only rises; not
    where a value counts once for all units that have it.
    """
    if core.keys.columns or core.keys.domain != ((),) or core.choice is not None or core.levels or core.norms:
        return None
    if len(core.statistics) != 1 or len(core.estimates) != 1:
        return None
    (statistic,) = core.statistics
    if statistic.kind not in _KINDS or statistic.coordinates != 1 or statistic.norm is not None or statistic.fractional:
        return None
    lowest, highest = statistic.of_one_row
    return Comparable(
        statistic=statistic,
        step=Fraction(1) if statistic.encoding is None else statistic.encoding.step,
        change=statistic.sensitivity.linf,
        one_way=not statistic.distinct and (lowest >= 0 or highest <= 0),
        upwards=lowest >= 0,
    )


class Compared:
    """The outcome of one comparison, and the true distance in it, which nothing but fresh noise shows. Has no repr."""

    __slots__ = ("_distance", "hit")

    def __init__(self, hit: Hit | None, distance: int) -> None:
        self.hit = hit
        self._distance = distance

    def answer(self, numeric: NumericSparse, bits: BitSource) -> int:
        """The distance with fresh noise, charged before."""
        return numeric.answer(self._distance, bits)

    def __repr__(self) -> str:
        return "<Compared>"


def compare(
    core: CoreStatistics, run: SparseRun, exact: Exact, *, threshold: int, below: bool, bits: BitSource
) -> Compared:
    """One comparison of the run: whether the core's sum is at least the threshold, or with `below` at most.

    `threshold` is in integer units of the sum. Requires: the sum's sensitivity is at most the run's, and its direction
    that of the run. Errors: ExecutionFailed for a sum that the plan rules out; ValueError when no hit is left.
    """
    total = single_sum(core, exact)
    distance = threshold - total if below else total - threshold
    found = gateway.compare(run, integers([distance]), bits)
    return Compared(found[0] if found else None, distance)
