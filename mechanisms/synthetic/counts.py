"""True counts of the cells of marginals, and what is chosen and measured of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats
from mechanisms.randomness import BitSource
from mechanisms.release import counts_of_cells
from mechanisms.synthetic.price import SELECTED_FROM, Synthesis
from privacy.binned import BinnedColumn, Marginal, cells_of
from privacy.exact import Exact

__all__ = [
    "CELLS_MAX",
    "PAIR_CELLS_MAX",
    "TRIPLE_CELLS_MAX",
    "Noisy",
    "choose_pairs",
    "choose_triples",
    "columns_measured",
    "paired",
]

PAIR_CELLS_MAX = 20_000
TRIPLE_CELLS_MAX = 100_000
"""Most cells of a marginal: larger ones would be noise."""

CELLS_MAX = 2_000_000
"""Most cells of all marginals of one statement."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Noisy:
    """Noisy counts of the cells of one marginal (an axis for each column), with the deviation of their noise."""

    marginal: Marginal
    counts: Floats
    sigma: float

    @property
    def variance(self) -> float:
        """That of one cell."""
        return self.sigma**2


def _counted(exact: Exact, columns: Sequence[BinnedColumn], marginals: Sequence[Marginal]) -> list[Counts]:
    """The counts of each marginal. Errors: ExecutionFailed for what the statement cannot have returned."""
    sizes = [cells_of(columns, one) for one in marginals]
    every = counts_of_cells(exact, sizes)
    return [every[stop - size : stop] for size, stop in zip(sizes, itertools.accumulate(sizes), strict=True)]


def _shape(columns: Sequence[BinnedColumn], marginal: Marginal) -> tuple[int, ...]:
    return tuple(columns[one].size for one in marginal)


def _noisy(
    synthesis: Synthesis,
    columns: Sequence[BinnedColumn],
    exact: Mapping[Marginal, Counts],
    marginals: Sequence[Marginal],
    bits: BitSource,
) -> tuple[Noisy, ...]:
    """Noisy counts of some of the marginals, all of one size of group, measured together."""
    if not marginals:
        return ()
    sigmas = (lambda _: synthesis.sigma_of_columns, synthesis.sigma_of_pairs, synthesis.sigma_of_triples)
    sigma = sigmas[len(marginals[0]) - 1](len(marginals))
    whole = np.concatenate([exact[one] for one in marginals])
    values = synthesis.measured(whole, marginals=len(marginals), sigma=sigma, bits=bits).astype(np.float64)
    found, start = [], 0
    for one in marginals:
        shape = _shape(columns, one)
        found.append(Noisy(one, values[start : start + math.prod(shape)].reshape(shape), float(sigma)))
        start += math.prod(shape)
    return tuple(found)


def columns_measured(
    synthesis: Synthesis, columns: Sequence[BinnedColumn], exact: Exact, bits: BitSource
) -> tuple[Noisy, ...]:
    """The marginals of one column each, of a statement that counts these in their order."""
    marginals: list[Marginal] = [(number,) for number in range(len(columns))]
    counted = dict(zip(marginals, _counted(exact, columns, marginals), strict=True))
    return _noisy(synthesis, columns, counted, marginals, bits)


def paired(columns: Sequence[BinnedColumn]) -> list[Marginal]:
    """The pairs that may be measured: those that do not have too many cells. Where none is chosen, those of a path."""
    count = len(columns)
    every = [(i, j) for i in range(count) for j in range(i + 1, count) if count >= SELECTED_FROM or j == i + 1]
    return [one for one in every if cells_of(columns, one) <= PAIR_CELLS_MAX]


def _score(exact: Counts, expected: Floats, sigma: float) -> int:
    """How far a marginal is from what is known of it, less the error that measuring it would leave.

    A sum of distances of whole numbers: a row more in one cell changes it by one at most. The rest of it follows from
    numbers that were released.
    """
    whole = np.rint(expected.reshape(-1)).astype(np.int64)
    return int(np.abs(exact - whole).sum()) - math.ceil(math.sqrt(2 / math.pi) * sigma * exact.size)


def choose_pairs(
    synthesis: Synthesis,
    columns: Sequence[BinnedColumn],
    expected: Mapping[Marginal, Floats],
    exact: Exact,
    bits: BitSource,
) -> tuple[Noisy, ...]:
    """The pairs of a forest, noisy, of a statement that counts those of `expected` in their order.

    `expected` are the counts that released numbers lead to expect. Pairs are chosen one after the other, each between
    columns that no chosen pairs connect, until none is better than no further pair, or none is left.
    """
    marginals = list(expected)
    counted = dict(zip(marginals, _counted(exact, columns, marginals), strict=True))
    if not synthesis.selects:
        return _noisy(synthesis, columns, counted, marginals, bits)
    sigma = float(synthesis.sigma_of_pairs(synthesis.pairs))
    scores = {one: _score(counted[one], expected[one], sigma) for one in marginals}
    group = list(range(len(columns)))
    chosen: list[Marginal] = []
    for _ in range(synthesis.pairs):
        left = [one for one in marginals if group[one[0]] != group[one[1]]]
        if not left:
            break
        place = synthesis.chosen([0, *(scores[one] for one in left)], bits)
        if place == 0:
            break
        first, second = left[place - 1]
        chosen.append((first, second))
        gone, stays = group[second], group[first]
        group = [stays if one == gone else one for one in group]
    return _noisy(synthesis, columns, counted, chosen, bits)


def choose_triples(
    synthesis: Synthesis,
    columns: Sequence[BinnedColumn],
    expected: Mapping[Marginal, Floats],
    exact: Exact,
    bits: BitSource,
) -> tuple[Noisy, ...]:
    """The triples that improve a tree, noisy, of a statement that counts those of `expected` in their order.

    Of those with the same last column, the child, one is chosen at most.
    """
    marginals = list(expected)
    counted = dict(zip(marginals, _counted(exact, columns, marginals), strict=True))
    if not synthesis.selects:
        return _noisy(synthesis, columns, counted, marginals, bits)
    sigma = float(synthesis.sigma_of_triples(synthesis.triples))
    scores = {one: _score(counted[one], expected[one], sigma) for one in marginals}
    chosen: list[Marginal] = []
    left = marginals
    for _ in range(synthesis.triples):
        if not left:
            break
        place = synthesis.chosen([0, *(scores[one] for one in left)], bits)
        if place == 0:
            break
        found = left[place - 1]
        chosen.append(found)
        left = [one for one in left if one[-1] != found[-1]]
    return _noisy(synthesis, columns, counted, chosen, bits)
