"""One estimate from several Gaussian releases: the linear unbiased one with the least variance (gaussian_combined.md).

Each release gives sums of *atoms* (sets of cells of the same rows, sql_rewrite/boxes.py) with independent noise. What
is asked is a sum of atoms too. The weights follow from what the sums are of and from the scales of their noise, never
from a noisy value. Reads released numbers only (post-processing: Dwork and Roth 2014, Proposition 2.1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from mechanisms.interval import gaussian_two_sided
from mechanisms.measurement import Integers, Measurement, narrow, root_up
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.gaussian_combined import GUARD_BITS, CombinedGaussian, as_kept, carried, factors
from mechanisms.measurements.gaussian_moments import GaussianMoments
from mechanisms.noisy_sums import NoisySums
from privacy.events import Event
from privacy.numbers import dyadic_up
from privacy.refusal import ExecutionFailed

__all__ = ["DRAWS_MAX", "JoinedGaussian", "Term", "estimated", "joined", "joins", "radius", "weights_of"]

DRAWS_MAX = 64
"""Most draws of noise that one estimate is made of: its interval reaches as far as their number asks."""

_BITS = 140
"""Binary digits of a weight."""

_EXACT_BITS = 120
"""To so many binary digits weights give each atom what is asked of it."""

_SUMS_BITS = 80
"""Sums are below this power of two: beyond that nothing is estimated."""

_ROUNDS = 6
_IDLE = 1e-9

_JOINED: tuple[type[Measurement], ...] = (GaussianMeasurement, GaussianMoments, CombinedGaussian)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedGaussian(CombinedGaussian):
    """The noise of a weighted sum of sums of several releases. `sigma` is its own, `carried` its rounding at worst.

    `draws` is how many independent draws it is made of, and `rounded` the variance of the rounding of its parts, in
    squared units of the grid. Nothing is drawn with it, and nothing is stored of it.
    """

    use: ClassVar[str] = "an estimate from several stored releases"

    draws: int
    rounded: float

    def widening(self, alpha: float) -> float:
        """Scales may have been chosen after seeing values: the reach that holds for any of them (Cauchy, Schwarz)."""
        return radius(alpha, self.draws) / gaussian_two_sided(alpha)

    def event(self) -> Event:
        """None: the releases that it is made of were paid for."""
        raise AssertionError("nothing is measured")

    def against_first(self, alpha: float) -> float:
        """Nothing: it is no later look at a release that had a narrower interval."""
        return 0.0

    @property
    def rounded_variance(self) -> float:
        """Of the last rounding and of those of its parts."""
        return 1 / 12 + self.rounded


@dataclass(frozen=True, slots=True)
class Term:
    """One sum that an estimate is made of: how many cells of which release are added up, and its weight."""

    release: int
    cells: int
    weight: Fraction


def joins(measurement: Measurement) -> bool:
    """Whether a measurement has Gaussian noise on each sum by itself: what is added up here."""
    alone = measurement.statistic.tree is None and not measurement.statistic.distinct and not measurement.mixed
    return type(measurement) in _JOINED and alone


def weights_of(
    wanted: frozenset[int], sums: Sequence[frozenset[int]], variances: Sequence[float]
) -> list[Fraction] | None:
    """The weights of the best linear unbiased estimate of the sum of some atoms; None where the sums do not tell it.

    The sums have independent noise of these variances. Weights are exact to 2^-140; together they give each atom what
    is asked of it but for 2^-120.
    """
    atoms = sorted({one for own in (wanted, *sums) for one in own})
    place = {one: row for row, one in enumerate(atoms)}
    deviations = np.sqrt(np.array(variances, dtype=np.float64))
    design = np.zeros((len(atoms), len(sums)))
    for column, own in enumerate(sums):
        design[[place[one] for one in own], column] = 1
    # With u = weight times deviation: of all u with B u = what is asked, the shortest one has the least variance.
    scale = float(deviations.min())
    inverse = (scale / deviations)[:, None] * np.linalg.pinv(design * (scale / deviations), rcond=1e-11)
    one_each, exact = 1 << _BITS, 1 << (_BITS - _EXACT_BITS)
    columns = [[place[one] for one in own] for own in sums]
    target = [one_each if one in wanted else 0 for one in atoms]
    whole, missing, used = [0] * len(sums), target, np.ones(len(sums), dtype=bool)
    for turn in range(_ROUNDS):
        more = inverse @ np.array([one / one_each for one in missing])
        if not turn:
            used = np.abs(more) > _IDLE  # nobody has to be served what tells nothing
        own = np.where(used, more, 0.0).tolist()
        whole = [weight + _units(one) for weight, one in zip(whole, own, strict=True)]
        missing = list(target)
        for weight, rows in zip(whole, columns, strict=True):
            for row in rows if weight else ():
                missing[row] -= weight
        most = max(map(abs, missing), default=0)
        if most > one_each // 1000:
            return None
        if most <= exact:
            return [Fraction(weight, one_each) for weight in whole]
    return None


def _units(weight: float) -> int:
    """A weight in units of 2^-140, rounded down."""
    numerator, denominator = weight.as_integer_ratio()
    return (numerator << _BITS) // denominator


def joined(name: str, measurements: Mapping[int, GaussianMeasurement], terms: Sequence[Term]) -> JoinedGaussian | None:
    """The noise of an estimate made of these terms; None where it is of more draws than an interval is stated for.

    `name` is that of its statistic. Requires: all have the same factors of their coordinates.
    """
    used = [measurements[term.release] for term in terms]
    grid = min(one.grid for one in used)
    variance, worst, rounded, draws = Fraction(0), Fraction(0), 0.0, 0
    by_release: dict[int, tuple[int, int]] = {}
    for term in terms:
        weight = term.weight.numerator * (1 << _BITS) // term.weight.denominator
        squares, lengths = by_release.get(term.release, (0, 0))
        by_release[term.release] = squares + weight * weight * term.cells, lengths + abs(weight) * term.cells
        one = measurements[term.release]
        draws += one.looks if isinstance(one, CombinedGaussian) else 1
    for release, (squares, lengths) in by_release.items():
        one = measurements[release]
        assert factors(one) == factors(used[0])
        own, part = carried(one) * one.grid / grid, Fraction(squares, 1 << 2 * _BITS)
        variance += part * one.scale_of_sums**2
        worst += Fraction(lengths, 1 << _BITS) * own
        rounded += float(part) * float(own) ** 2 / 3
    if draws > DRAWS_MAX:
        return None
    missed = Fraction(len(terms), 2 ** (_EXACT_BITS - _SUMS_BITS))
    last = used[-1]
    return JoinedGaussian(
        core=last.core,
        statistic=replace(last.statistic, name=name),
        share=last.share,
        grid=grid,
        sigma=root_up(variance / grid**2),
        mu_squared=Fraction(1),
        grown=Fraction(1),
        looks=1,
        carried=dyadic_up(worst + missed + Fraction(1, 1 << GUARD_BITS), bits=32),
        squares=factors(used[0]),
        draws=draws,
        rounded=rounded,
    )


def estimated(
    measurement: JoinedGaussian,
    parts: Sequence[NoisySums],
    terms: Sequence[Term],
    rows: Sequence[Sequence[Sequence[int]]],
) -> NoisySums:
    """The estimate of each cell from the sums of releases. All arithmetic is of integers and fractions.

    Shape: of each term, the rows of its release that are added up for each cell. Errors: ExecutionFailed for sums that
    are too large.
    """
    cells, coordinates = len(rows[0]), measurement.statistic.coordinates
    total = [[Fraction(0)] * coordinates for _ in range(cells)]
    for term, of_cells in zip(terms, rows, strict=True):
        part = parts[term.release]
        one = part.measurement
        assert isinstance(one, GaussianMeasurement)
        kept = as_kept(one, part.values, part.fine)
        unit = term.weight * (one.grid // measurement.grid)
        for cell, added in enumerate(of_cells):
            if len(added) != term.cells:
                raise ExecutionFailed
            for coordinate in range(coordinates):
                value = sum(int(kept[row, coordinate]) for row in added)
                if abs(value) * one.grid >= 1 << (_SUMS_BITS + GUARD_BITS):
                    raise ExecutionFailed
                total[cell][coordinate] += unit * value
    fine: Integers = np.array(
        [[math.floor(value + Fraction(1, 2)) for value in row] for row in total], dtype=object
    ).reshape(cells, coordinates)
    values: Integers = (fine + (1 << GUARD_BITS - 1)) // (1 << GUARD_BITS)
    return NoisySums(measurement, narrow(values), (), fine)


@lru_cache(maxsize=256)
def radius(alpha: float, draws: int) -> float:
    """The r that the length of so many independent standard normals exceeds with probability alpha, rounded up."""
    low, high = 0.0, math.sqrt(draws) + math.sqrt(-2 * math.log(alpha)) + 1
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _longer(middle, draws) > alpha else (low, middle)
    return high


def _longer(r: float, draws: int) -> float:
    """P(the length of so many standard normals > r): the chi-squared tail, by its recurrence in steps of two."""
    half, shape = r * r / 2, 0.5 if draws % 2 else 1.0
    tail = math.erfc(math.sqrt(half)) if draws % 2 else math.exp(-half)
    while shape < draws / 2:
        tail += half**shape * math.exp(-half) / math.gamma(shape + 1)
        shape += 1
    return tail
