"""Intervals of weighted sums of linear numbers: by the exact law of their noise, or each number at its end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import numpy as np

from mechanisms.estimates import linear_form
from mechanisms.interval import Floats
from mechanisms.linear import weighted_quantiles
from mechanisms.measurement import Law, Measurement
from mechanisms.noisy_sums import NoisySums
from server.derived.cells import CellError, Identity, IntervalMethod, NoInterval, Way, finite_number, none
from server.derived.released_numbers import Numbers, row_of
from server.derived.scenarios import result_of
from sql_rewrite.trace import Read

__all__ = ["added", "is_linear", "linear"]


def is_linear(numbers: Numbers, read: Read) -> bool:
    """Whether a number is linear in sums whose noise has a law that adds up, or selected the number's group."""
    source = numbers.sources[read[0], read[1]]
    if source.sums is None or not source.sums.linear(read[1]):
        return False
    law = source.sums.measurement.law
    match law:
        case Law.LAPLACE | Law.NORMAL:
            return True
        case Law.OTHER:
            return source.conditional
        case _:
            assert_never(law)


def added(numbers: Numbers, total: tuple[str, str, int], reads: Sequence[Read]) -> Way | None:
    """A sum of numbers of one linear column, each of another row of the same answer's row: the weights are all one.

    However many rows there are, the shell need not be asked. None where noisy numbers choose the rows, or cells have no
    noise of their own.
    """
    core, name, number = total
    source = numbers.sources[core, name]
    if numbers.plan.chosen or len(reads) != number or source.conditional or source.sums is None:
        return None
    if {(read[0], read[1]) for read in reads} != {(core, name)} or any(at is None for _, _, at in reads):
        return None
    if source.sums.measurement.spread(np.zeros((0, *source.sums.values.shape))) is not None:
        return None
    cells = [((core, name), at) for _, _, at in reads]
    known: dict[int, dict[Identity, CellError]] = {}

    def way(place: int, identity: Identity) -> CellError:
        if place not in known:
            identities = list(numbers.shown(place))
            ones = np.ones((len(identities), number))
            known[place] = _weighted(numbers, place, identities, ones, cells, numbers.alpha / numbers.at_once)
        return known[place].get(identity, CellError(reason=NoInterval.UNDEFINED))

    return way


def linear(numbers: Numbers, reads: Sequence[Read]) -> Way | None:
    """A weighted sum of linear numbers: the weights come from the shell itself, at zero and at one.

    None where there are too many weights to ask for.
    """
    columns = list(dict.fromkeys((core, name) for core, name, _ in reads))
    cells: list[tuple[tuple[str, str], int | None]] = [(column, None) for column in columns]
    conditional = any(numbers.sources[column].conditional for column in columns)
    if any(at is None for _, _, at in reads) or len(columns) < len(reads):
        # Several rows of one column: each cell by itself.
        cells = [(column, row) for column in columns for row in range(numbers.sources[column].table.rows)]
        if conditional:
            return none(NoInterval.GIVEN_SHOWN)
    if not numbers.scenarios.room_for(len(cells) + 1):
        return None
    zero = numbers.scenarios.zero()
    units = [numbers.scenarios.unit(column, row) for column, row in cells]
    known: dict[int, dict[Identity, CellError]] = {}

    def weights(place: int) -> tuple[list[Identity], Floats]:
        identities = [i for i in zero.results if finite_number(zero.results[i][place]) is not None]
        matrix = np.zeros((len(identities), len(cells)))
        for i, identity in enumerate(identities):
            base = result_of(zero, identity, place) or 0.0
            for j, unit in enumerate(units):
                at_one = result_of(unit, identity, place)
                matrix[i, j] = math.nan if at_one is None else at_one - base
        return identities, matrix

    def way(place: int, identity: Identity) -> CellError:
        if place not in known:
            identities, matrix = weights(place)
            # Where noisy numbers chose rows, the intervals hold for all that there are, and for all that were left out.
            alpha = numbers.alpha / max(numbers.at_once, len(identities) if numbers.plan.chosen else 1)
            if conditional:
                known[place] = _boxed(numbers, place, identities, matrix, reads, alpha)
            else:
                known[place] = _weighted(numbers, place, identities, matrix, cells, alpha)
        return known[place].get(identity, CellError(reason=NoInterval.UNDEFINED))

    return way


def _weighted(
    numbers: Numbers,
    place: int,
    identities: Sequence[Identity],
    matrix: Floats,
    cells: Sequence[tuple[tuple[str, str], int | None]],
    alpha: float,
) -> dict[Identity, CellError]:
    """Errors of weighted sums: cells of one statistic and row share its noise, all others are independent.

    Noise is drawn in whole numbers, so whole weights of counts make whole errors: those within a reach are within its
    whole part, and the ends are whole numbers too.

    Sums whose precision was raised have intervals that hold at every look (gaussian_combined.md, Proposition 3): each
    such statistic has its part of `alpha`, and all others together have one.
    """
    parts: dict[tuple[int, int | None], Floats] = {}
    sums: dict[int, NoisySums] = {}
    spread = np.zeros(len(identities))
    noises: dict[int | None, _Noise] = {None: _Noise(len(identities))}
    whole = np.ones(len(identities), dtype=bool)
    for j, (key, row) in enumerate(cells):
        one = numbers.sources[key].sums
        assert one is not None
        estimate = one.estimate(key[1])
        assert estimate is not None
        form = linear_form(one.measurement.statistic, estimate.kind)
        assert form is not None
        exact = [part * one.measurement.grid for part in form]
        vector = matrix[:, j, None] * np.array([float(part) for part in exact])
        exactly = all(part.denominator == 1 for part in exact)
        # NaN is not equal to itself: a weight that could not be found is not whole.
        whole &= (matrix[:, j] == np.round(matrix[:, j])) & exactly | (matrix[:, j] == 0)
        sums[id(one)] = one
        parts[id(one), row] = parts.get((id(one), row), 0) + vector
        if estimate.integer and not exactly:
            noises[None].bounded.append(np.abs(matrix[:, j, None]) / 2)
            spread = spread + matrix[:, j] ** 2 / 12
    beside = np.zeros(len(identities))
    for whose, vector, moved in _by_noise(parts, sums):
        measurement = sums[whose].measurement
        spread = spread + measurement.noise_variances(vector)
        beside = beside + moved
        raised = whose if measurement.widening(alpha) > 1 else None
        noises.setdefault(raised, _Noise(len(identities))).add(measurement, vector)
    used = {raised: noise for raised, noise in noises.items() if noise.bounded or len(noises) == 1}
    reach = beside
    for raised, noise in used.items():
        share = alpha / len(used)
        reach = reach + noise.reach(share, 1.0 if raised is None else sums[raised].measurement.widening(share))
    # Of a reach that floating-point numbers make a hair too small the next whole number is meant.
    reach = np.where(whole, np.floor(reach * (1 + 1e-12) + 1e-9), reach)
    return _within(numbers.shown(place), identities, reach, spread)


class _Noise:
    """The noise of some of the numbers in weighted sums, which is independent of that of the others."""

    def __init__(self, rows: int) -> None:
        self.bounded: list[Floats] = []
        self._laplace: list[Floats] = []
        self._variance: Floats = np.zeros(rows)

    def add(self, measurement: Measurement, vector: Floats) -> None:
        """The noise of one statistic with these weights."""
        scaled = measurement.scaled(vector)
        match measurement.law:
            case Law.LAPLACE:
                self._laplace.append(np.abs(scaled))
            case Law.NORMAL:
                self._variance = self._variance + (scaled**2).sum(axis=-1)
            case Law.OTHER:
                raise AssertionError("simulated, or in a box")
            case _:
                assert_never(measurement.law)
        self.bounded.append(np.abs(vector) * measurement.noise_rounding)

    def reach(self, alpha: float, wider: float) -> Floats:
        """What it exceeds with probability at most alpha in size, one for each row."""
        return weighted_quantiles(
            np.concatenate(self._laplace, axis=-1) if self._laplace else np.zeros((len(self._variance), 0)),
            self._variance,
            np.concatenate(self.bounded, axis=-1) if self.bounded else np.zeros((len(self._variance), 0)),
            alpha,
            wider=wider,
        )


def _within(
    values: Mapping[Identity, float | None], identities: Sequence[Identity], reach: Floats, spread: Floats
) -> dict[Identity, CellError]:
    """The errors of values whose reaches are known, and the variances of their noise."""
    found = {}
    for identity, half, error in zip(identities, reach.tolist(), np.sqrt(spread).tolist(), strict=True):
        value = values.get(identity)
        if value is None or not math.isfinite(half):
            found[identity] = CellError(reason=NoInterval.UNDEFINED)
        else:
            found[identity] = CellError(error, value - half, value + half, IntervalMethod.LINEAR)
    return found


def _by_noise(
    parts: Mapping[tuple[int, int | None], Floats], sums: Mapping[int, NoisySums]
) -> Iterator[tuple[int, Floats, Floats]]:
    """Weights of independent noise, by whose sums it is in, and how far whole numbers in place of estimates move them.

    Where several levels are measured together, cells have no noise of their own: consistency.md, Propositions 2 and 4.
    One cell of each row stands for any, since all have the same law.
    """
    gathered: dict[int, Floats] = {}
    for (whose, row), vector in parts.items():
        one = sums[whose]
        shape = (len(vector), *one.values.shape)
        if one.measurement.spread(np.zeros(shape)[:0]) is None:
            yield whose, vector, np.zeros(len(vector))
            continue
        if whose not in gathered:
            gathered[whose] = np.zeros(shape)
        gathered[whose][:, row or 0] += vector
    for whose, weights in gathered.items():
        noise = sums[whose].measurement.spread(weights)
        assert noise is not None
        changes = np.abs(np.diff(weights, axis=1, prepend=0.0, append=0.0)).sum(axis=(1, 2))
        yield whose, noise, changes / 2


def _boxed(
    numbers: Numbers, place: int, identities: Sequence[Identity], matrix: Floats, reads: Sequence[Read], alpha: float
) -> dict[Identity, CellError]:
    """Errors of weighted sums of numbers of one row of which one selected it: each at its end, all at once."""
    found = {}
    values = numbers.shown(place)
    ends = [numbers.ends_of(core, name, alpha / len(reads)) for core, name, _ in reads]
    middles = [numbers.sources[core, name].column.numbers for core, name, _ in reads]
    for i, identity in enumerate(identities):
        value, low, high = values.get(identity), 0.0, 0.0
        for j, (_, _, at) in enumerate(reads):
            weight, both = float(matrix[i, j]), ends[j]
            row = None if at is None else row_of(identity, at)
            middle = None if row is None else middles[j][row]
            if both is None or middle is None or value is None or not math.isfinite(weight):
                value = None
                break
            moves = [weight * (float(side[row]) - float(middle)) for side in both]
            low, high = low + min(moves), high + max(moves)
        if value is None:
            found[identity] = CellError(reason=NoInterval.UNDEFINED)
        else:
            found[identity] = CellError(None, value + low, value + high, IntervalMethod.BOUNDS)
    return found
