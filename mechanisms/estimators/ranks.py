"""Estimators of quantiles, from noisy counts on a tree of intervals: quantiles.md.

With U places that values can be in, row k of n (from 0) lies in the first place whose upper end has more than k rows
below it. A quantile is a row or lies between two. Its interval is that of the places which the noise does not rule out:
what is true of the ends of the one place where the value lies needs no more than one chance of a miss on each side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mechanisms import ranks
from mechanisms.estimators.estimator import GROUP_SIZES, Column, Estimator, ExpectedError
from mechanisms.estimators.forms import encoding_of
from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Measurement
from mechanisms.measurements.drawn_ranks import Beside, draws_of
from privacy.aggregate import AggregateFunction
from privacy.rank_tree import QuantileMechanism, RankTree
from privacy.statistic import Statistic, StatisticKind

__all__ = ["ESTIMATORS", "Extreme", "Quantile"]

_HIDDEN = 2.0
"""Standard errors of a rank: as many rows beyond an extreme quantile could be noise alone."""


_KNOWN = 0.25
"""A standard error of a rank, in rows: with less, the tree says which row it is, and values between rows are theirs."""

_NONE = Fraction(0)


@dataclass(frozen=True, slots=True)
class _Ranked(Estimator):
    """What every quantile has in common: it asks for a row, or for a point between two, by its rank."""

    fraction: Fraction = Fraction(1, 2)

    widening: ClassVar[float] = 3.0
    """Each end is bounded by itself, and lies at the end of a place."""

    def at(self, fraction: Fraction | None) -> Estimator:
        """The estimator of another part of the rows."""
        return self if fraction is None else replace(self, fraction=fraction)

    def form(self, statistic: Statistic) -> None:
        """Quantiles are not linear. Errors: ValueError when the statistic has no ranks."""
        if statistic.kind is not StatisticKind.RANKS:
            raise ValueError("the statistic does not hold the estimate")

    def ends(self, measurement: Measurement) -> tuple[float, float]:
        """The bounds of the values."""
        tree = _tree(measurement)
        return float(tree.lower), float(tree.upper)

    def of_nobody(self, measurement: Measurement, noisy: Integers, *, alpha: float) -> tuple[bool, ...]:
        """Whether the number of rows may be zero."""
        tree, whole = _tree(measurement), Fraction(0)
        counts = _rows(measurement, noisy.astype(np.float64))[..., : tree.branching].sum(axis=-1)
        return tuple((counts <= ranks.reach(measurement, whole, alpha)[-1]).tolist())

    def rows_of_noise(self, measurement: Measurement, *, alpha: float) -> float:
        """Where both ends of the range are within reach."""
        most = float(ranks.reach(measurement, self.fraction, alpha).max())
        return most / max(float(self.fraction), 1 - float(self.fraction))

    def expected(self, measurement: Measurement, *, integer: bool, alpha: float) -> tuple[ExpectedError, ...]:
        """Of values spread evenly: the error of a rank, over the rows, times the range; of any, the whole range."""
        tree, encoding = _tree(measurement), encoding_of(measurement.statistic)
        width = float(tree.upper - tree.lower)
        errors, draw = np.full(len(GROUP_SIZES), self._rank_error(measurement)), self._draw(measurement)
        if draw is not None:
            assert isinstance(measurement, Beside)
            sizes = np.array(GROUP_SIZES, dtype=np.float64)
            errors = measurement.rank_deviation(draws_of(measurement.statistic)[draw - tree.nodes], sizes)
        most = float(ranks.reach(measurement, self.fraction, alpha).max())
        return tuple(
            ExpectedError(
                rows,
                width * min(error / rows, 0.5),
                min(width * most / rows + float(encoding.step), width),
                width,
            )
            for rows, error in zip(GROUP_SIZES, errors.tolist(), strict=True)
        )

    def column(self, measurement: Measurement, noisy: Integers, *, integer: bool, alpha: float) -> Column:
        """The value at the rank, with the places that its noise leaves open."""
        tree, used = _tree(measurement), encoding_of(measurement.statistic).highest + 1
        below = ranks.counts_below(tree, _rows(measurement, noisy.astype(np.float64)), used)
        smooth = ranks.monotone(below)
        there = self._there(measurement, below)
        values = self._values(measurement, below, smooth)
        errors = self._errors(measurement, below, smooth)
        draw = self._draw(measurement)
        if draw is not None:
            values, errors = _drawn(measurement, draw, noisy.astype(np.float64))
        first, last = self._open(measurement, below, alpha)
        lows, highs = _values_at(measurement, first, 0.0), _values_at(measurement, last, 1.0)
        lows, highs = np.minimum(lows, values), np.maximum(highs, values)
        lower, upper = self.ends(measurement)
        lows, highs = np.where(there, lows, lower), np.where(there, highs, upper)
        if integer:
            shown = [round(value) if known else None for value, known in zip(values.tolist(), there, strict=True)]
            return Column(
                values=tuple(shown),
                standard_errors=tuple(e if known else None for e, known in zip(errors.tolist(), there, strict=True)),
                lows=tuple(int(np.floor(low)) for low in lows.tolist()),
                highs=tuple(int(np.ceil(high)) for high in highs.tolist()),
            )
        return Column(
            values=tuple(value if known else None for value, known in zip(values.tolist(), there, strict=True)),
            standard_errors=tuple(e if known else None for e, known in zip(errors.tolist(), there, strict=True)),
            lows=tuple(lows.tolist()),
            highs=tuple(highs.tolist()),
        )

    def simulated(self, measurement: Measurement, noisy: Floats, *, integer: bool) -> Floats:
        """The same values without intervals."""
        tree, used = _tree(measurement), encoding_of(measurement.statistic).highest + 1
        below = ranks.counts_below(tree, _rows(measurement, noisy), used)
        draw = self._draw(measurement)
        if draw is None:
            values = self._values(measurement, below, ranks.monotone(below))
        else:
            values = _drawn_values(measurement, draw, noisy)
        there = self._there(measurement, below)
        result: Floats = np.where(there, np.rint(values) if integer else values, np.nan)
        return result

    def _rank_error(self, measurement: Measurement) -> float:
        """The greatest standard error of its rank on the tree, in rows."""
        tree = _tree(measurement)
        return _deviation(measurement) * float(ranks.spread(tree.branching, tree.levels, self.fraction).max())

    def _draw(self, measurement: Measurement) -> int | None:
        """The coordinate of its own draw. None where it is not drawn, and where the tree knows every rank by itself."""
        return None

    def _there(self, measurement: Measurement, below: Floats) -> npt.NDArray[np.bool_]:
        """Whether there is a row, as far as is known: where values are drawn the number of rows is less exact."""
        tree, rows = _tree(measurement), below[..., -1]
        if measurement.statistic.drawn is not None:
            rows = rows + _HIDDEN * _deviation(measurement) * float(
                ranks.spread(tree.branching, tree.levels, _NONE)[-1]
            )
        result: npt.NDArray[np.bool_] = np.rint(rows) >= 1
        return result

    # What tells quantiles apart

    def _values(self, measurement: Measurement, below: Floats, smooth: Floats) -> Floats:
        """The values where there are rows; anything within the bounds elsewhere."""
        raise NotImplementedError

    def _rank(self, measurement: Measurement, below: Floats, smooth: Floats) -> Floats:
        """About the rank of the row that is asked for."""
        raise NotImplementedError

    def _beside(self) -> tuple[float, float]:
        """The least that the upper end of the value's place has below it, and the most that the lower end has.

        Both less the fraction of all rows, for true counts.
        """
        raise NotImplementedError

    # What they have in common

    def _errors(self, measurement: Measurement, below: Floats, smooth: Floats) -> Floats:
        """Half the distance between the values one standard error of the rank to either side."""
        tree = _tree(measurement)
        rank = self._rank(measurement, below, smooth)
        weights = ranks.spread(tree.branching, tree.levels, self.fraction)
        error = _deviation(measurement) * weights[_place(smooth, rank + 0.5) + 1]
        most = np.maximum(smooth[..., -1] - 1, 0)
        high, low = (_row(measurement, smooth, np.clip(rank + sign * error, 0, most)) for sign in (1, -1))
        result: Floats = (high - low) / 2
        return result

    def _open(self, measurement: Measurement, below: Floats, alpha: float) -> tuple[Floats, Floats]:
        """The first place whose upper end may have enough rows below it, and the last whose lower end may have few."""
        used = below.shape[-1] - 1
        reach = ranks.reach(measurement, self.fraction, alpha)[: used + 1]
        ranked = below - float(self.fraction) * below[..., -1:]
        # Where rows weigh a part of one, the row that is asked for may be most of one off.
        part = 1.0 if measurement.statistic.fractional else 0.0
        least, most = self._beside()
        least, most = least - part, most + part
        enough, few = ranked[..., 1:] >= least - reach[1:], ranked[..., :-1] <= most + reach[:-1]
        # All rows lie below the last end, none below the first: that is known.
        enough[..., -1], few[..., 0] = True, True
        first = np.argmax(enough, axis=-1)
        last = used - 1 - np.argmax(few[..., ::-1], axis=-1)
        return first.astype(np.float64), np.maximum(first, last).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Quantile(_Ranked):
    """The value below which the fraction of the rows lies: between two rows, or (`discrete`) the row that reaches it.

    Of n rows the first is at (n - 1) p, the second is row ceil(n p) - 1, at least row 0: as DuckDB defines them.
    """

    discrete: bool = False

    def _draw(self, measurement: Measurement) -> int | None:
        drawn, tree = measurement.statistic.drawn, _tree(measurement)
        if drawn is None:
            return None
        place = drawn.place(self.fraction, discrete=self.discrete)
        known = drawn.method is QuantileMechanism.EXPONENTIAL and self._rank_error(measurement) < _KNOWN
        return None if place is None or known else tree.nodes + place

    def truth(self, values: Floats, *, nulls: int) -> float | None:
        """The definition."""
        if not values.size:
            return None
        if self.discrete:
            return float(np.sort(values)[int(_reached(self.fraction, np.array([values.size]))[0])])
        return float(np.quantile(values, float(self.fraction)))

    def _values(self, measurement: Measurement, below: Floats, smooth: Floats) -> Floats:
        rank = self._rank(measurement, below, smooth)
        if self.discrete:
            return _row(measurement, smooth, rank)
        first = np.floor(rank)
        low = _row(measurement, smooth, first)
        most = np.maximum(np.rint(smooth[..., -1]) - 1, 0)
        high = _row(measurement, smooth, np.minimum(first + 1, most))
        result: Floats = low + (rank - first) * (high - low)
        return result

    def _rank(self, measurement: Measurement, below: Floats, smooth: Floats) -> Floats:
        if self.discrete:
            return _reached(self.fraction, np.maximum(np.rint(below[..., -1]), 1)).astype(np.float64)
        result: Floats = np.maximum(below[..., -1] - 1, 0) * float(self.fraction)
        return result

    def _beside(self) -> tuple[float, float]:
        part = float(self.fraction)
        return (0.0, 0.0) if self.discrete else (-part, 1 - part)


@dataclass(frozen=True, slots=True)
class Extreme(_Ranked):
    """About the least or the greatest value: the outermost place that as many rows lie beyond as noise could be."""

    def truth(self, values: Floats, *, nulls: int) -> float | None:
        """The least or the greatest value itself: what it is without noise, and what the interval holds."""
        if not values.size:
            return None
        return float(values.max() if self.fraction else values.min())

    def at(self, fraction: Fraction | None) -> Estimator:
        """It has its own."""
        return self

    def _values(self, measurement: Measurement, below: Floats, smooth: Floats) -> Floats:
        """The place where more rows lie beyond than are hidden, with every end judged by its own error."""
        tree, used = _tree(measurement), below.shape[-1] - 1
        weights = ranks.spread(tree.branching, tree.levels, self.fraction)[: used + 1]
        hidden = np.maximum(_HIDDEN * _deviation(measurement) * weights, 0.5)
        if self.fraction:
            beyond = smooth[..., -1:] - smooth[..., :-1] >= hidden[:-1]
            place = used - 1 - np.argmax(beyond[..., ::-1], axis=-1)
            place = np.where(beyond.any(axis=-1), place, 0)
        else:
            beyond = smooth[..., 1:] >= hidden[1:]
            place = np.where(beyond.any(axis=-1), np.argmax(beyond, axis=-1), used - 1)
        return _values_at(measurement, place.astype(np.float64), 0.5)

    def _rank(self, measurement: Measurement, below: Floats, smooth: Floats) -> Floats:
        result: Floats = np.maximum(smooth[..., -1] - 1, 0) * float(self.fraction)
        return result

    def _beside(self) -> tuple[float, float]:
        return (0.0, -1.0) if self.fraction else (1.0, 0.0)


def _tree(measurement: Measurement) -> RankTree:
    tree = measurement.statistic.tree
    assert tree is not None
    return tree


def _rows(measurement: Measurement, noisy: Floats) -> Floats:
    """Noisy counts on nodes in rows."""
    return noisy[..., : _tree(measurement).nodes] * float(measurement.grid * measurement.unit)


def _deviation(measurement: Measurement) -> float:
    """The standard deviation of one count in rows."""
    return float(np.sqrt(measurement.variance())) * float(measurement.grid * measurement.unit)


def _drawn_values(measurement: Measurement, coordinate: int, noisy: Floats) -> Floats:
    """The middles of the places that were drawn."""
    drawn = measurement.statistic.drawn
    assert drawn is not None
    tree, step = _tree(measurement), float(encoding_of(measurement.statistic).step) / drawn.finer
    middle = (step - 1) / 2 if tree.whole else step / 2
    result: Floats = np.clip(
        float(tree.lower) + noisy[..., coordinate] * step + middle, float(tree.lower), float(tree.upper)
    )
    return result


def _drawn(measurement: Measurement, coordinate: int, noisy: Floats) -> tuple[Floats, Floats]:
    """The values that were drawn, and their errors: that of a rank, as densely as values lie there, and of a place."""
    statistic, tree = measurement.statistic, _tree(measurement)
    drawn, encoding = statistic.drawn, encoding_of(statistic)
    assert drawn is not None
    assert isinstance(measurement, Beside)
    draw = draws_of(statistic)[coordinate - tree.nodes]
    at = (noisy[..., coordinate] + 0.5) / drawn.finer
    rows = _rows(measurement, noisy)
    down, up = ranks.slopes(measurement, rows, draw.fraction, at, encoding.highest + 1)
    error = measurement.rank_deviation(draw, rows[..., : tree.branching].sum(axis=-1)) * (down + up) / 2
    inside = 0.0 if tree.whole and encoding.step == drawn.finer else 1 / (drawn.finer * math.sqrt(12))
    return _drawn_values(measurement, coordinate, noisy), np.hypot(error, inside) * float(encoding.step)


def _reached(fraction: Fraction, rows: Floats) -> Integers:
    """ceil(n p) - 1 and at least 0, in whole numbers."""
    most = np.minimum(rows, 2.0**40).astype(np.int64)
    above = [-(-int(n) * fraction.numerator // fraction.denominator) - 1 for n in most.reshape(-1).tolist()]
    return np.maximum(np.array(above, dtype=np.int64).reshape(most.shape), 0)


def _place(smooth: Floats, rank: Floats) -> Integers:
    """The first place whose upper end has at least so many rows below it, or the last one."""
    found = (smooth[..., 1:] < np.asarray(rank)[..., None]).sum(axis=-1)
    result: Integers = np.minimum(found, smooth.shape[-1] - 2)
    return result


def _row(measurement: Measurement, smooth: Floats, rank: Floats) -> Floats:
    """The value of the row of that rank, if the rows of a place are spread evenly in it."""
    place = _place(smooth, rank + 0.5)
    before, after = (np.take_along_axis(smooth, place[..., None] + i, axis=-1)[..., 0] for i in (0, 1))
    held = after - before
    inside = np.where(held > 0, (rank + 0.5 - before) / np.where(held > 0, held, 1), 0.5)
    return _values_at(measurement, place.astype(np.float64), np.clip(inside, 0, 1))


def _values_at(measurement: Measurement, place: Floats, inside: Floats | float) -> Floats:
    """The value at a part of a place: of whole numbers the first to the last in it. Within the bounds."""
    tree, step = _tree(measurement), float(encoding_of(measurement.statistic).step)
    width = step - 1 if tree.whole else step
    values = float(tree.lower) + place * step + np.asarray(inside) * width
    result: Floats = np.clip(values, float(tree.lower), float(tree.upper))
    return result


ESTIMATORS: tuple[Estimator, ...] = (
    Quantile(AggregateFunction.QUANTILE),
    Quantile(AggregateFunction.QUANTILE_DISCRETE, discrete=True),
    Extreme(AggregateFunction.LEAST, fraction=Fraction(0)),
    Extreme(AggregateFunction.GREATEST, fraction=Fraction(1)),
)
