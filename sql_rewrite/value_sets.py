"""Sets of values of one expression, NULL among them or not: what a condition on it keeps.

    x > 3 AND x <= 9        between two cuts
    x IN (1, 5)             around two points
    x <> 4 OR x IS NULL     all but a point, and NULL

A cut lies before or after a value, and a set is where it begins and its cuts in order: at each it is left or entered.
Whole numbers and dates have no values between two neighbours, so a cut after one is a cut before the next: `x > 3` and
`x >= 4` are one set. Moments, numbers with a fraction and texts are taken to have values everywhere, which is never
wrong: two sets with the same values may then differ, and no two with different values are equal.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

__all__ = [
    "NOTHING",
    "NULL",
    "PRESENT",
    "Cut",
    "Piece",
    "Point",
    "ValueSet",
    "above",
    "below",
    "both",
    "either",
    "numbers",
    "points",
]

Point = str | int | float | bool | datetime.date | datetime.datetime
"""A value that is not NULL; a date as its number."""

Cut = tuple[Point, int]
"""A value, and 0 before it or 1 after it. Values are of one type that has an order; of whole numbers always 0."""

Piece = tuple[Cut | None, Cut | None]
"""From one cut to the next; None where there is no end."""


@dataclass(frozen=True, slots=True)
class ValueSet:
    """`begins` says whether the least values are inside; `null` whether NULL is."""

    begins: bool
    cuts: tuple[Cut, ...]
    null: bool

    @property
    def none(self) -> bool:
        """Whether nothing is inside."""
        return not self.begins and not self.cuts and not self.null

    @property
    def every(self) -> bool:
        """Whether all values and NULL are inside."""
        return self.begins and not self.cuts and self.null

    def other(self) -> ValueSet:
        """Whatever is not inside, NULL too."""
        return ValueSet(not self.begins, self.cuts, not self.null)

    def pieces(self) -> list[Piece]:
        """The parts of its values, in order; without NULL."""
        ends: list[Cut | None] = [None, *self.cuts] if self.begins else [*self.cuts]
        if len(ends) % 2:
            ends.append(None)
        return list(zip(ends[::2], ends[1::2], strict=True))

    def holes(self) -> list[Piece]:
        """The parts between and beside its pieces."""
        return replace(self, begins=not self.begins).pieces()


NOTHING = ValueSet(begins=False, cuts=(), null=False)
PRESENT = ValueSet(begins=True, cuts=(), null=False)
NULL = ValueSet(begins=False, cuts=(), null=True)


def above(cut: Cut) -> ValueSet:
    """The values beyond a cut."""
    return ValueSet(begins=False, cuts=(cut,), null=False)


def below(cut: Cut) -> ValueSet:
    """The values before a cut."""
    return ValueSet(begins=True, cuts=(cut,), null=False)


def points(values: Iterable[Point]) -> ValueSet:
    """Some values with others between them."""
    found = sorted(set(values), key=lambda value: (value,))
    return ValueSet(begins=False, cuts=tuple([(value, side) for value in found for side in (0, 1)]), null=False)


def numbers(values: Iterable[int]) -> ValueSet:
    """Some whole numbers, each of which reaches to the next."""
    found: list[Cut] = []
    for value in sorted(set(values)):
        if found and found[-1] == (value, 0):
            found[-1] = (value + 1, 0)
        else:
            found += [(value, 0), (value + 1, 0)]
    return ValueSet(begins=False, cuts=tuple(found), null=False)


def both(sets: Sequence[ValueSet]) -> ValueSet:
    """What is in all of them."""
    return _counted(sets, len(sets))


def either(sets: Sequence[ValueSet]) -> ValueSet:
    """What is in one of them at least."""
    return _counted(sets, 1)


def _counted(sets: Sequence[ValueSet], least: int) -> ValueSet:
    """What is in so many of them at least."""
    if len(sets) == 1:
        return sets[0]
    steps: dict[Cut, int] = {}
    for one in sets:
        step = -1 if one.begins else 1
        for cut in one.cuts:
            steps[cut] = steps.get(cut, 0) + step
            step = -step
    inside = sum(one.begins for one in sets)
    begins = held = inside >= least
    cuts: list[Cut] = []
    for cut in sorted(steps):
        inside += steps[cut]
        if (inside >= least) is not held:
            held = not held
            cuts.append(cut)
    return ValueSet(begins, tuple(cuts), sum(one.null for one in sets) >= least)
