"""Training: which rows a model is fitted to, and the integers in which a worker adds up what units contribute.

Every sum that leaves a worker is a sum, over units, of a vector of integers that follows from the unit's own rows and
from released numbers. The greatest norm of such a vector is a constant of this module: mechanisms/private_descent.md.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import assert_never

from privacy.statement import Statement

__all__ = [
    "CLIPPED_UNITS",
    "COLUMNS_MAX",
    "HELD_PLACES",
    "PRODUCT_COLUMNS_MAX",
    "ROW_UNITS",
    "UNIT_WEIGHT",
    "VECTOR_UNITS",
    "WEIGHTS_NORM_MAX",
    "WEIGHT_UNITS",
    "Clipping",
    "FeatureKind",
    "TrainingFeature",
    "TrainingStatement",
    "Wanted",
    "greatest_change",
    "greatest_norm",
    "norm_of",
    "sums_of",
    "width_of",
]

ROW_UNITS = 1 << 14
"""The norm of one, in integer units of an encoded row; also a residual of one in its own units."""

VECTOR_UNITS = 1 << 28
"""A gradient of norm one, or a product of two entries of one, in integer units."""

CLIPPED_UNITS = 1 << 26
"""A gradient of the norm to which gradients are held, in integer units."""

UNIT_WEIGHT = 1 << 20
"""What the rows of one held-out unit weigh together."""

WEIGHT_UNITS = 1 << 16
"""A weight of one in the integers that a worker is sent."""

WEIGHTS_NORM_MAX = 1 << 26
"""Greatest L2 norm of these: every partial sum of a row's products is then at most 2^40, and doubles add it exactly."""

COLUMNS_MAX = 256
"""Most encoded columns of a model, the intercept included."""

PRODUCT_COLUMNS_MAX = 96
"""Most of them where all pairs are measured."""

HELD_PLACES = 1 << 10
"""The parts into which units are split by their draw."""


class Clipping(enum.StrEnum):
    """What of a unit is held to a norm."""

    INPUTS = "inputs"
    """Its rows, once, before the first iteration."""

    GRADIENTS = "gradients"
    """Its gradient, in each iteration."""


class Wanted(enum.StrEnum):
    """What is added up over units."""

    COUNT = "count"
    """One for each unit that is trained on."""

    GRADIENT = "gradient"
    """The gradient of the logistic loss at given weights, of what is trained on."""

    PRODUCTS = "products"
    """All pairs of encoded columns, and each with the label, of what is trained on."""

    OUTCOMES = "outcomes"
    """Of what is held out: false and true predictions, by label."""

    ERRORS = "errors"
    """Of what is held out: its weight, labels, their squares and squared errors."""


class FeatureKind(enum.StrEnum):
    """How a feature becomes columns."""

    NUMBER = "number"
    """One column in [-1, 1]: its steps, less the middle of the bounds."""

    KEYS = "keys"
    """One column for each declared key: one for the key of the row, zero for all others."""


@dataclass(frozen=True, slots=True)
class TrainingFeature:
    """A feature, or the label: a result column of whole numbers.

    A number is `offset + step * T` with T from 0 to `highest`; of keys T is the place of the key, from one, and zero is
    none of them. `NULL` adds nothing.
    """

    name: str
    column: str
    kind: FeatureKind
    highest: int
    offset: Fraction = Fraction(0)
    step: Fraction = Fraction(1)
    keys: tuple[str | None, ...] = ()
    chosen: bool = False
    """Whether its ends follow from bounds that the model chooses: nominal ones until a histogram of values is there."""

    def __post_init__(self) -> None:
        assert self.highest >= 1
        assert (self.kind is FeatureKind.KEYS) == bool(self.keys)
        assert not self.keys or len(self.keys) == self.highest

    @property
    def width(self) -> int:
        """The encoded columns that it has."""
        return self.highest if self.kind is FeatureKind.KEYS else 1

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Of a number, the values that become -1 and 1."""
        return self.offset, self.offset + self.step * self.highest


@dataclass(frozen=True, slots=True)
class TrainingStatement:
    """Rows that a model is fitted to, as keys of a statement without sums: `u`, the unit; `d`, the part of the units
    that it is in, of HELD_PLACES; and the whole numbers of each feature and of the label.
    """

    rows: Statement
    features: tuple[TrainingFeature, ...]
    label: TrainingFeature


def greatest_change(wanted: Wanted, clipping: Clipping) -> int:
    """The square of the greatest L2 norm of what one unit adds: mechanisms/private_descent.md, section 2."""
    match wanted:
        case Wanted.COUNT:
            return 1
        case Wanted.GRADIENT:
            return (VECTOR_UNITS if clipping is Clipping.INPUTS else CLIPPED_UNITS) ** 2
        case Wanted.PRODUCTS:
            assert clipping is Clipping.INPUTS, "products have no bound where gradients are held"
            return 2 * VECTOR_UNITS**2
        case Wanted.OUTCOMES:
            return UNIT_WEIGHT**2
        case Wanted.ERRORS:
            return 4 * UNIT_WEIGHT**2
        case _:
            assert_never(wanted)


def sums_of(wanted: Wanted, width: int) -> int:
    """How many sums there are, of encoded rows of this width."""
    match wanted:
        case Wanted.COUNT:
            return 1
        case Wanted.GRADIENT:
            return width
        case Wanted.PRODUCTS:
            return width * (width + 1) // 2 + width
        case Wanted.OUTCOMES | Wanted.ERRORS:
            return 4
        case _:
            assert_never(wanted)


def width_of(features: Sequence[TrainingFeature]) -> int:
    """Encoded columns of a model: the intercept first, then those of each feature."""
    return 1 + sum(feature.width for feature in features)


def greatest_norm(features: Sequence[TrainingFeature]) -> int:
    """The greatest norm of an encoded row before it is clipped, in integer units, rounded up.

    The intercept is one, a number at most one, and of the columns of a feature's keys one at most is not zero.
    """
    return norm_of((1 + len(features)) * ROW_UNITS**2)


def norm_of(square: int) -> int:
    """An integer that is not below the root of a square."""
    root = isqrt(square)
    return root if root * root == square else root + 1
