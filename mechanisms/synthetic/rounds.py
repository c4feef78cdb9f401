"""The three rounds of measuring a synthetic table: columns, then chosen pairs, then chosen triples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mechanisms.randomness import BitSource
from mechanisms.synthetic.counts import Noisy, choose_pairs, choose_triples, columns_measured, paired
from mechanisms.synthetic.model import expected_pairs, narrowed, triples_of
from mechanisms.synthetic.price import Synthesis
from privacy.binned import BinnedColumn, Marginal
from privacy.exact import Exact

__all__ = ["Counted", "measured"]

Counted = Callable[[Sequence[BinnedColumn], Sequence[Marginal]], Exact]
"""Counts the rows in every cell of some marginals of columns: one statement."""


def measured(
    synthesis: Synthesis, columns: Sequence[BinnedColumn], counted: Counted, bits: BitSource
) -> tuple[tuple[Noisy, ...], tuple[BinnedColumn, ...]]:
    """The noisy marginals, and the columns with the places that were kept of them.

    What a round counts follows from what the rounds before it released. Errors: ExecutionFailed, and what `counted`
    raises.
    """
    assert len(columns) == synthesis.columns
    numbers: list[Marginal] = [(number,) for number in range(len(columns))]
    ones = columns_measured(synthesis, columns, counted(columns, numbers), bits)
    kept, ones = narrowed(columns, ones)
    noisy = list(ones)
    expected = expected_pairs(ones, paired(kept))
    if expected:
        noisy += choose_pairs(synthesis, kept, expected, counted(kept, list(expected)), bits)
    expected = triples_of(kept, noisy)
    if expected:
        noisy += choose_triples(synthesis, kept, expected, counted(kept, list(expected)), bits)
    return tuple(noisy), kept
