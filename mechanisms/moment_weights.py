"""How much less noise the middle coordinates of Bernstein sums need than the outer ones: gaussian_moments.md.

A row's vector of degree d lies on a curve that has the length 1 at its ends and less between them. So its middle
coordinates may be longer before noise of one size is added to all, which is the same as less noise on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

from mechanisms.measurement import root_up
from privacy.statistic import Statistic, StatisticKind

__all__ = ["PAIR_SQUARES", "PAIR_TIMES", "ROUNDED_FROM", "SQUARES", "has_pair_noise", "squares_of"]

_ONE = Fraction(1)

SQUARES: Mapping[int, tuple[Fraction, ...]] = MappingProxyType(
    {
        1: (_ONE, _ONE),
        2: (_ONE, Fraction(7, 2), _ONE),
        3: (_ONE, Fraction(31, 9), Fraction(31, 9), _ONE),
        4: (_ONE, Fraction(7, 2), Fraction(71, 18), Fraction(7, 2), _ONE),
    }
)
"""By degree, the squares of the factors of the coordinates under which no row's vector is longer than 1."""

ROUNDED_FROM = 2**20
"""Integer units of a row from which on its unit may be scaled, so that its sums are rounded: bounding.md."""

PAIR_SQUARES = (Fraction(52, 128), Fraction(37, 128), Fraction(37, 128), Fraction(2, 128))
"""The squares of the factors of the forms, which add up to 1. The product is no part of an average."""

PAIR_TIMES = root_up(max(square * 4 for square in PAIR_SQUARES))
"""With so many times mu, noise of one size on the sums is at least as exact: its factors are all a quarter."""


def has_pair_noise(statistic: Statistic) -> bool:
    """Whether it stands in place of two averages and holds nothing else that is asked for.

    Two parts of a price say so (sql_rewrite/together.py): with a covariance beside them it has three, and a covariance
    alone has one.
    """
    return (
        statistic.kind is StatisticKind.PRODUCTS
        and (statistic.degree, statistic.second_degree, statistic.parts) == (1, 1, 2)
        and not statistic.counts_nulls
    )


@lru_cache(maxsize=256)
def squares_of(statistic: Statistic) -> tuple[Fraction, ...] | None:
    """The squares of the factors of a statistic's coordinates; None where all of them are one.

    Those of products are the products of both values' ones; rows without a value have the factor one.
    """
    if statistic.kind not in (StatisticKind.MOMENTS, StatisticKind.PRODUCTS) or statistic.raised or statistic.lowered:
        return None
    first = SQUARES[statistic.degree]
    second = SQUARES[statistic.second_degree] if statistic.second_degree else (_ONE,)
    found = (*(one * two for one in first for two in second), *(_ONE,) * statistic.counts_nulls)
    assert len(found) == statistic.coordinates
    return None if set(found) == {_ONE} else found
