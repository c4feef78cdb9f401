"""Which shape a core has whose units are scaled to norms (lower_normed.py): a function of declarations."""

from __future__ import annotations

import enum
from typing import assert_never

from privacy.norms import NORM_MAX, NormOf, NormPower
from sql_rewrite.bounded import BoundedCore, BoundedNorm
from sql_rewrite.contribution import NormedContribution
from sql_rewrite.stored_norms import known_norms

__all__ = ["Shape", "additive", "finds_squares", "shape_of", "shares_tables", "signed"]

_SHARED_BYTES_MAX = 2**30
"""Most bytes of shared tables where the number of rows is declared: half of what an engine has by default.

What is larger goes to disk, as it does in the engine's other operators; but then a second pass is no slower.
"""

_SPREAD_CELLS = 32
"""Fewest public groups for which L2 norms are found without a group for each cell of a unit."""


class Shape(enum.Enum):
    """How norms are found, as lower_normed.py says."""

    STORED = "stored"
    ALONE = "alone"
    ROWS = "rows"
    CELLS = "cells"


def shape_of(bounded: BoundedCore) -> Shape:
    """Which shape a core has whose units are scaled to norms: a function of declarations."""
    assert isinstance(bounded.contribution, NormedContribution)
    if known_norms(bounded) is not None:
        return Shape.STORED
    if bounded.contribution.cells == 1:
        return Shape.ALONE
    if any(item.statistic.norm is None for item in bounded.statistics) or not all(map(additive, bounded.norms)):
        return Shape.CELLS
    return Shape.ROWS if bounded.contribution.power.choose(l1=True, l2=_spread(bounded)) else Shape.CELLS


def finds_squares(bounded: BoundedCore) -> bool:
    """Whether the norms of units are squares that are found beside their rows: a function of declarations."""
    contribution = bounded.contribution
    assert isinstance(contribution, NormedContribution)
    return contribution.power is NormPower.L2 and shape_of(bounded) is Shape.ROWS


def _spread(bounded: BoundedCore) -> bool:
    """Whether the rows of a unit may be expected in cells of their own, and no sum over a cell is held to a norm.

    Where there are few groups, most rows share their cell with others, and cells are fewer than rows.
    """
    contribution, domain = bounded.contribution, bounded.described.keys.domain
    assert isinstance(contribution, NormedContribution)
    if domain is None or len(domain) < _SPREAD_CELLS:
        return False
    sums = [norm.encoding for norm in bounded.norms if norm.encoding is not None]
    return all(contribution.rows * encoding.largest <= NORM_MAX for encoding in sums)


def shares_tables(bounded: BoundedCore) -> bool:
    """Whether the histogram of a core's norms and its sums share tables: a function of declarations.

    Each row of the table is at most one row of them. Where no number of rows is declared, they share. Counts by place
    are made of rows and not of cells, so that a core with quantiles shares none.
    """
    if known_norms(bounded) is not None or any(item.statistic.tree is not None for item in bounded.statistics):
        return False
    rows = bounded.core.sources[0].table.rows_expected
    columns = len(bounded.described.keys.columns) + 2 * len(bounded.norms) + 2 * len(bounded.statistics)
    return bool(bounded.norms) and (rows is None or rows * 8 * (1 + columns) <= _SHARED_BYTES_MAX)


def additive(norm: BoundedNorm) -> bool:
    """Whether the norm is the sum of what each row adds, whatever cells the rows are in."""
    match norm.norm.of:
        case NormOf.ROWS:
            return True
        case NormOf.UNITS:
            return False
        case NormOf.SUM:
            assert norm.encoding is not None
            return norm.encoding.lowest >= 0
        case _:
            assert_never(norm.norm.of)


def signed(norm: BoundedNorm) -> bool:
    """Whether a unit's number in a cell may be negative."""
    match norm.norm.of:
        case NormOf.ROWS | NormOf.UNITS:
            return False
        case NormOf.SUM:
            return True
        case _:
            assert_never(norm.norm.of)
