"""Randomise one answer before it leaves this machine: the client of Noisegate's local collectors.

    report = encode(law, value)

`law` is the object of that name in `GET /v1/collectors/{collector}`: the encoding, how many values its domain has, and
the rational that stands for e^epsilon (for "rappor" e^(epsilon/2)) as a multiple of 2^-32. `value` is the place of the
answer in the domain, counted from 0. The report is a list of whole numbers.

Compute `epsilon_of(law)` and decide whether that is acceptable before anything is sent: it depends on nothing else.
Encode an answer once, keep the report, and send the same report again where a reply was lost: every fresh report of one
answer costs epsilon again.

The draws are exact: whole numbers are compared with random bits of the operating system, and no float takes part.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping

__all__ = ["Draws", "encode", "epsilon_of"]

UNIT = 2**32

Bytes = Callable[[int], bytes]


class Draws:
    """Exact draws from a source of random bytes."""

    def __init__(self, random_bytes: Bytes = secrets.token_bytes) -> None:
        self._bytes = random_bytes

    def below(self, bound: int) -> int:
        """A whole number below the bound, uniform: the lowest bits of big-endian bytes, again where not below."""
        width = (bound - 1).bit_length()
        while width:
            drawn = int.from_bytes(self._bytes((width + 7) // 8), "big") & ((1 << width) - 1)
            if drawn < bound:
                return drawn
        return 0

    def happens(self, weight: int, against: int) -> bool:
        """True with probability weight / (weight + against)."""
        return self.below(weight + against) < weight


def epsilon_of(law: Mapping[str, object]) -> float:
    """The epsilon that a report by this law costs; for people to read."""
    encoding, _, ratio = _read(law)
    return (2 if encoding == "rappor" else 1) * math.log(ratio / UNIT)


def encode(law: Mapping[str, object], value: int, draws: Draws | None = None) -> list[int]:
    """A report of the value. Errors: ValueError for a value outside the domain or a law that is not understood."""
    encoding, size, ratio = _read(law)
    if not (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < size):
        raise ValueError(f"the value is the place of an answer in the domain, from 0 to {size - 1}")
    return _ENCODERS[encoding](size, ratio, value, draws or Draws())


def _read(law: Mapping[str, object]) -> tuple[str, int, int]:
    encoding, size, ratio = law.get("encoding"), law.get("size"), law.get("ratio")
    if not (isinstance(encoding, str) and encoding in _ENCODERS):
        raise ValueError("the law names no encoding that this client knows")
    if not (isinstance(size, int) and 2 <= size <= 2**20):
        raise ValueError("the law has no size between 2 and 1048576")
    if not (isinstance(ratio, str) and ratio.isascii() and ratio.isdigit() and UNIT < int(ratio) < 2**56):
        raise ValueError("the law has no ratio between 2^32 and 2^56, as a string of digits")
    return encoding, size, int(ratio)


def _randomised_response(size: int, ratio: int, value: int, draws: Draws) -> list[int]:
    if draws.happens(ratio, (size - 1) * UNIT):
        return [value]
    other = draws.below(size - 1)
    return [other + (other >= value)]


def _optimised_unary(size: int, ratio: int, value: int, draws: Draws) -> list[int]:
    return [at for at in range(size) if (draws.happens(1, 1) if at == value else draws.happens(UNIT, ratio))]


def _rappor(size: int, ratio: int, value: int, draws: Draws) -> list[int]:
    return [at for at in range(size) if (draws.happens(ratio, UNIT) if at == value else draws.happens(UNIT, ratio))]


def _subset_selection(size: int, ratio: int, value: int, draws: Draws) -> list[int]:
    chosen = -(-size * UNIT // (ratio + UNIT))
    inside = draws.happens(chosen * ratio, (size - chosen) * UNIT)
    needed = chosen - inside
    report = [value] if inside else []
    for column in range(size - 1):
        if draws.below(size - 1 - column) < needed:
            needed -= 1
            report.append(column + (column >= value))
    return sorted(report)


def _hadamard(size: int, ratio: int, value: int, draws: Draws) -> list[int]:
    parts = 1 << (min(2 * size, ratio // UNIT).bit_length() - 1)
    order = 1 << (-(-size // parts)).bit_length()
    width, half = order - 1, order // 2
    columns = -(-size // width) * width
    block, row = divmod(value, width)
    row += 1
    if draws.happens(half * ratio, (columns - half) * UNIT):
        return [block * width + _column(draws.below(half), row, odd=True) - 1]
    other = draws.below(columns - half)
    if other < half - 1:
        return [block * width + _column(other + 1, row, odd=False) - 1]
    other -= half - 1
    return [other + width if other >= block * width else other]


def _column(index: int, row: int, *, odd: bool) -> int:
    """The bits of the index around the lowest bit of the row, which makes the common bits odd or even in number."""
    lowest = row & -row
    below = index & (lowest - 1)
    column = ((index ^ below) << 1) | below
    return column | lowest if ((column & row).bit_count() % 2 == 1) != odd else column


_ENCODERS: dict[str, Callable[[int, int, int, Draws], list[int]]] = {
    "randomised_response": _randomised_response,
    "hadamard": _hadamard,
    "subset_selection": _subset_selection,
    "optimised_unary": _optimised_unary,
    "rappor": _rappor,
}
