"""Values as whole numbers of steps between their bounds: what a statistic sums, exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from privacy.norms import NORM_MAX
from privacy.statistic import Encoding
from sql_rewrite.contribution import FINE

__all__ = [
    "ROW_BITS",
    "coarser",
    "moment_encoding",
    "normed_moment_encoding",
    "normed_row_bits",
    "normed_sum_encoding",
    "product_encodings",
    "refined",
    "stepped_encoding",
    "sum_encoding",
]

WIDTH_MAX = 2**30
"""Most steps between the bounds of a value: with it every product of the bounding SQL stays below 2^127."""

STEP_EXPONENT_MIN = -900
"""Exponent of the finest step: a power of two that a double holds exactly, and whose reciprocal is finite."""


def sum_encoding(lower: Fraction, upper: Fraction, *, integer: bool, fine: bool) -> Encoding:
    """Whole steps through zero: step 1 for integers, else a power of two that makes at most 2^30 steps.

    `fine` divides the steps of integers until the larger bound has enough of them for a part of a row.
    """
    largest = max(abs(lower), abs(upper))
    step = _step(largest, integer=integer)
    encoding = Encoding(offset=Fraction(0), step=step, lowest=math.floor(lower / step), highest=math.ceil(upper / step))
    if not fine:
        return encoding
    parts = _parts(encoding.largest, FINE)
    return Encoding(encoding.offset, step / parts, encoding.lowest * parts, encoding.highest * parts)


def moment_encoding(lower: Fraction, upper: Fraction, *, integer: bool) -> Encoding:
    """Whole steps from the lower bound; at least one, so that the noise is never zero."""
    if integer:
        lower, upper = Fraction(math.floor(lower)), Fraction(math.ceil(upper))
    step = _step(upper - lower, integer=integer)
    return Encoding(offset=lower, step=step, lowest=0, highest=max(1, math.ceil((upper - lower) / step)))


def stepped_encoding(lower: Fraction, upper: Fraction, *, integer: bool) -> Encoding:
    """From the lower bound in steps that also lead through zero, fine enough for a part of a row."""
    step = _step(max(abs(lower), abs(upper), upper - lower), integer=integer)
    low = math.floor(lower / step)
    width = max(1, math.ceil(upper / step) - low)
    return refined(Encoding(offset=low * step, step=step, lowest=0, highest=width), 1)


def refined(encoding: Encoding, degree: int) -> Encoding:
    """The same range in steps so small that a row of W^degree units can be scaled."""
    least = 1 << -(-(FINE.bit_length() - 1) // degree)
    parts = _parts(encoding.highest, least)
    return Encoding(encoding.offset, encoding.step / parts, 0, encoding.highest * parts)


NORMED_SQUARE_BITS = 22
"""Of the width of a variance's values under a norm: their squares, times norm and factor, then stay below 2^86."""

_SUMMED_ROWS = 2**20
"""Rows of one unit at the greatest value that a norm of sums still distinguishes."""


def normed_moment_encoding(lower: Fraction, upper: Fraction, *, integer: bool, degree: int) -> Encoding:
    """As `moment_encoding`, in at most 2^22 steps where squares are summed: the unit's factor needs the other bits."""
    encoding = moment_encoding(lower, upper, integer=integer)
    return encoding if degree == 1 else coarser(encoding, NORMED_SQUARE_BITS)


ROW_BITS = 60
"""Most binary places of the worth of a row of moments or products: a row's integers then fit 64 bits."""

_NORMED_BITS, _NORMED_LEAST = 74, 44
"""Of a unit's rows, each with its worth, under a norm: mechanisms/norms.md leaves 12 places for the unit's factor."""


def normed_row_bits(rows: int) -> int:
    """Most binary places of the worth of a row where a unit of so many rows is scaled to a norm."""
    return min(ROW_BITS, max(_NORMED_LEAST, _NORMED_BITS - rows.bit_length()))


def coarser(encoding: Encoding, bits: int) -> Encoding:
    """The same range in at most 2^bits steps."""
    excess = (encoding.highest - 1).bit_length() - bits
    if excess <= 0:
        return encoding
    return Encoding(encoding.offset, encoding.step * 2**excess, 0, -((-encoding.highest) >> excess))


def product_encodings(
    ranges: Sequence[tuple[Fraction, Fraction]], whole: Sequence[bool], degrees: tuple[int, int], *, bits: int
) -> tuple[Encoding, Encoding]:
    """Encodings of two values whose products, each to its degree, have at most so many binary places.

    A value that needs fewer leaves its places to the other. At least 2^20 units to a row, so that one can be scaled.
    """
    plain = [moment_encoding(*limits, integer=integer) for limits, integer in zip(ranges, whole, strict=True)]
    least = -(-(FINE.bit_length() - 1) // sum(degrees)) + 1  # of what is refined below
    wanted = [max(least, (encoding.highest - 1).bit_length()) for encoding in plain]
    share = bits // sum(degrees)
    places = [
        min(wanted[i], max(share, (bits - degrees[1 - i] * min(wanted[1 - i], share)) // degrees[i])) for i in range(2)
    ]
    places[1] = min(places[1], (bits - degrees[0] * places[0]) // degrees[1])
    first, second = (coarser(encoding, most) for encoding, most in zip(plain, places, strict=True))
    first, second = refined(first, sum(degrees)), refined(second, sum(degrees))
    assert first.highest ** degrees[0] * second.highest ** degrees[1] <= 2**bits
    return first, second


def normed_sum_encoding(lower: Fraction | None, upper: Fraction | None, *, integer: bool, rows: int) -> Encoding:
    """Whole steps through zero, at least so long that the sum of a unit's rows is within the greatest norm.

    Whole numbers without a range are clipped to the greatest norm, which holds every sum of theirs.
    """
    if lower is None or upper is None:
        assert integer
        return Encoding(Fraction(0), Fraction(1), -NORM_MAX, NORM_MAX)
    largest = max(abs(lower), abs(upper))
    step = Fraction(1) if integer else _step(largest, integer=False)
    while largest / step * min(rows, _SUMMED_ROWS) > NORM_MAX:
        step *= 2
    return Encoding(Fraction(0), step, math.floor(lower / step), math.ceil(upper / step))


def _parts(size: int, least: int) -> int:
    """The power of two by which steps are divided so that there are at least that many."""
    parts = 1
    while size * parts < least:
        parts *= 2
    return parts


def _step(size: Fraction, *, integer: bool) -> Fraction:
    if size == 0:
        return Fraction(1)
    # Never below the smallest normal doubles: a step that reads as zero would make 0 / 0, and a cast of it raises.
    exponent = max(math.ceil(math.log2(float(size))) - 30 + 1, STEP_EXPONENT_MIN)
    step = Fraction(2) ** exponent
    while size / step > WIDTH_MAX:
        step *= 2
    return max(step, Fraction(1)) if integer else step
