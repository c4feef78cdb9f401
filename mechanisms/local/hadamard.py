"""Hadamard Response: a column of a Hadamard matrix, likely with -1 in the value's row. Proof: hadamard_response.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from mechanisms.local.draws import Places, happen, uniform_below
from mechanisms.local.encoder import Floats, LocalEncoder, Report, Shares
from mechanisms.local.ratio import ratio_below
from mechanisms.randomness import BitSource

__all__ = ["HadamardResponse", "transform"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardResponse(LocalEncoder):
    """Values are the rows, other than the first, of blocks of a Hadamard matrix; a report is a column of a block.

    The columns where the row of x has -1 are r times as likely under x as all other columns of all blocks.
    `printed` is the layout of Acharya, Sun and Zhang 2019, with the first column of each block, in which every row is
    +1, and with blocks that hold no value; without it these are left out, which costs no privacy and lowers the error.
    """

    name: ClassVar[str] = "hadamard"
    use: ClassVar[str] = "large domains; a report is one number"
    printed: bool = False
    order: int = field(init=False)
    """b: rows and columns of a block, a power of two."""
    blocks: int = field(init=False)

    def __post_init__(self) -> None:
        super(HadamardResponse, self).__post_init__()
        ratio = self.worst_ratio
        parts = 1 << (int(min(Fraction(2 * self.size), ratio)).bit_length() - 1)
        order = 1 << (-(-self.size // parts)).bit_length()
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "blocks", parts if self.printed else -(-self.size // (order - 1)))

    @property
    def worst_ratio(self) -> Fraction:
        """The weight of a column inside over that of one outside."""
        return ratio_below(self.epsilon)

    @property
    def first(self) -> int:
        """How many columns of each block are left out: the one of +1, or none."""
        return 0 if self.printed else 1

    @property
    def width(self) -> int:
        """Columns of a block that may be reported."""
        return self.order - self.first

    @property
    def tally_size(self) -> int:
        """K: the columns of all blocks."""
        return self.blocks * self.width

    @property
    def report_max(self) -> int:
        """Columns are counted from 0."""
        return self.tally_size - 1

    @property
    def report_bits(self) -> int:
        """One column."""
        return (self.tally_size - 1).bit_length()

    @property
    def inside(self) -> Fraction:
        """The probability that a report is one of the s = b / 2 columns of its value."""
        s, ratio = self.order // 2, self.worst_ratio
        return s * ratio / (s * ratio + self.tally_size - s)

    def reports(self) -> Iterator[Report]:
        """Every column."""
        return iter(range(self.tally_size))

    def supports(self, report: int, value: int) -> bool:
        """Whether the column is in the value's block and its row has -1 there."""
        block, row = divmod(value, self.order - 1)
        where, column = divmod(report, self.width)
        return where == block and ((row + 1) & (column + self.first)).bit_count() % 2 == 1

    def probability(self, report: Report, value: int) -> Fraction:
        """Uniform among the columns of the value, and among all others."""
        assert isinstance(report, int)
        s = self.order // 2
        if self.supports(report, value):
            return self.inside / s
        return (1 - self.inside) / (self.tally_size - s)

    def is_report(self, numbers: tuple[int, ...]) -> bool:
        """One column."""
        return len(numbers) == 1 and 0 <= numbers[0] < self.tally_size

    def encode(self, values: Places, bits: BitSource) -> list[Report]:
        """One number for each value."""
        return list(self._drawn(values, bits).tolist())

    def simulate(self, values: Places, bits: BitSource) -> Places:
        """The tally of fresh reports."""
        return np.bincount(self._drawn(values, bits), minlength=self.tally_size)

    def _drawn(self, values: Places, bits: BitSource) -> Places:
        """Columns: of the value's own, or of all others, each uniform."""
        s = self.order // 2
        block, row = np.divmod(values, self.order - 1)
        row += 1
        inside = happen(self.inside, values.size, bits)
        own = uniform_below(s, values.size, bits)
        other = uniform_below(self.tally_size - s, values.size, bits) if self.tally_size > s else own
        # Of the others, the first are the columns of the block where the row has +1; column 0 is the first of them.
        near = s - self.first
        index = np.where(inside, own, np.minimum(other, near - 1) + self.first)
        within = block * self.width + _columns(index, row, odd=inside) - self.first
        far = other - near
        far += np.where(far >= block * self.width, self.width, 0)
        return np.where(inside | (other < near), within, far)

    def shares(self, tally: Places, reports: int) -> Shares:
        """Unbiased estimates, by one Walsh-Hadamard transform of the columns of each block."""
        s, ratio = self.order // 2, float(self.worst_ratio)
        total, gain = s * ratio + self.tally_size - s, s * (ratio - 1)
        columns = np.zeros((self.blocks, self.order))
        columns[:, self.first :] = tally.reshape(self.blocks, self.width)
        rows = -transform(columns)[:, 1:]
        values = (total * rows.reshape(-1)[: self.size] / reports - self.first) / gain
        # How often a block is reported says which share of the people has its values.
        seen = columns.sum(axis=1) / reports
        held = np.clip((seen * total - self.width) / gain, 0, 1)
        level, slope = self._line(np.repeat(held, self.order - 1)[: self.size])
        return Shares(values, level, slope, reports)

    def _line(self, held: Floats) -> tuple[Floats, Floats]:
        """The line of n times the variance, where `held` is the share of the people with values of the same block."""
        s, ratio = self.order // 2, float(self.worst_ratio)
        total, gain = s * ratio + self.tally_size - s, s * (ratio - 1)
        near = total * (s * ratio + s - self.first) - self.first
        far = total * self.width - self.first
        own = total * (s * ratio + s - self.first) - (gain + self.first) ** 2
        level = (far + (near - far) * held) / gain**2
        return level, np.full(held.shape, (own - near) / gain**2)

    def mean_variance(self) -> float:
        """Of a uniform population."""
        sizes = np.full(self.blocks, self.order - 1, dtype=np.float64)
        used = -(-self.size // (self.order - 1))
        sizes[used - 1] = self.size - (used - 1) * (self.order - 1)
        sizes = sizes[:used]
        level, slope = self._line(np.repeat(sizes, sizes.astype(np.int64)) / self.size)
        return float(np.mean(level + slope / self.size))


def _columns(index: Places, row: Places, *, odd: Places | np.ndarray) -> Places:
    """The column of each index among those whose bits in common with the row are odd (or even) in number.

    The lowest bit of the row is left free: the bits of the index go around it, and it makes the parity right. So each
    index below b / 2 has one column; of the even ones index 0 has column 0.
    """
    lowest = row & -row
    below = index & (lowest - 1)
    column = ((index ^ below) << 1) | below
    parity = (np.bitwise_count(column & row) & 1).astype(np.bool_)
    return column | np.where(parity != odd, lowest, 0)


def transform(matrix: Floats) -> Floats:
    """The Walsh-Hadamard transform of each row: entry j sums the entries i with the sign (-1)^(bits i and j share)."""
    rows, order = matrix.shape
    result = matrix.astype(np.float64)
    step = 1
    while step < order:
        pairs = result.reshape(rows, order // (2 * step), 2, step)
        left, right = pairs[:, :, 0], pairs[:, :, 1]
        result = np.stack((left + right, left - right), axis=2).reshape(rows, order)
        step *= 2
    return result
