"""How much one privacy unit may take part in a core, and how what it adds is bounded: by counts, or by norms.

A unit's rows of one group are *allotted*: at most `rows` of them count, and over all groups of the unit at most
`total`; a unit with more has the rows of each of its groups scaled by the same factor. Everything that it adds to
a group is then bounded to the worth of the rows allotted there. mechanisms/bounding.md has the proofs.

Where questions choose the bounds, each unit's whole vector is scaled to a norm instead: mechanisms/norms.md. Hidden
groups are then selected by weights (mechanisms/weighted_threshold.md). That needs Gaussian noise: in L1, and where a
unit may have very many groups, counts bound a unit that may have several.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from privacy.bounds import AutomaticContribution
from privacy.norms import NormPower
from privacy.policy import KeyValue
from sql_rewrite.expressions import columns_of
from sql_rewrite.plan import Core
from sql_rewrite.unit_facts import contribution_bound, rows_of_unit, steady_relations

__all__ = [
    "FINE",
    "NOMINAL_NORM",
    "WEIGHED_GROUPS_MOST",
    "WEIGHED_LONG_MOST",
    "Bounding",
    "Contribution",
    "NormedContribution",
    "contribution_of",
    "contribution_over_atoms",
    "parts_of_unit",
]

NOMINAL_NORM = Fraction(1)
"""The norm of a core before one is chosen: one row, one unit, one step of a sum."""

WEIGHED_GROUPS_MOST = 1_000
"""Most rows that a snapshot may keep of a unit for all its hidden groups to count: each takes time that shows."""

WEIGHED_LONG_MOST = 4_000
"""The same where the question leaves time for them, as unions of two to four tables may: others are `counted`."""

FINE = 2**20
"""Fewest integer units in one scaled row: rounding down then loses less than a millionth of a row."""


class Bounding(enum.Enum):
    """How the values of one unit in one group are held to the worth of its allotted rows. Counts are always clipped."""

    SCALED = "scaled"
    """Each row counts by the same part: what averages need, so that a unit weighs by its rows, not by its values."""

    CLIPPED = "clipped"
    """The unit's sum is clipped: it is the whole sum unless that is worth more than the allotted rows could be."""

    BOTH = "both"
    """A clipped sum and scaled rows side by side in one vector, at the sensitivity of one of them."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """How much one unit may take part in one core: `groups`, `rows` in each of them, `total` rows over all of them.

    `one_row` says that the unit owns at most one row (declared and verified), so nothing needs bounding;
    `choose_groups` that a unit may own more groups than `groups` and the lowered SQL must choose among them.
    """

    groups: int
    rows: int
    total: int
    one_row: bool
    choose_groups: bool

    def __post_init__(self) -> None:
        assert 1 <= self.rows <= self.total
        assert self.groups >= 1

    @property
    def scaled(self) -> bool:
        """Whether a unit within `groups` and `rows` may be beyond `total`, so that its groups are scaled."""
        return self.groups * self.rows > self.total

    @property
    def l1_rows(self) -> int:
        """Most rows that one unit adds to all cells together."""
        return min(self.groups * self.rows, self.total)

    @property
    def l2_squared_rows(self) -> int:
        """Largest sum of squares of the rows that one unit adds to the cells.

        The sum of squares is convex, so over 0 <= a_g <= rows with at most `groups` of them and a sum of at most
        `total` it is largest at a corner: as many full groups as fit, and the remainder in one more.
        """
        if not self.scaled:
            return self.groups * self.rows**2
        full, remainder = divmod(self.total, self.rows)
        return full * self.rows**2 + remainder**2


@dataclass(frozen=True, slots=True)
class NormedContribution:
    """A unit's vectors over all cells of a core are scaled to norms, by name.

    `cells` is the most of them in which a unit may be, `rows` the most rows of it that a snapshot keeps.
    """

    power: NormPower
    cells: int
    rows: int
    norms: tuple[tuple[str, Fraction], ...]

    def __post_init__(self) -> None:
        assert self.cells >= 1
        assert self.rows >= 1
        assert all(norm > 0 for _, norm in self.norms)

    @property
    def nominal(self) -> bool:
        """Whether no norm was chosen yet."""
        return all(norm == NOMINAL_NORM for _, norm in self.norms)

    def norm(self, name: str) -> Fraction:
        """The norm of that name. KeyError for another one."""
        return dict(self.norms)[name]


def parts_of_unit(core: Core, *, groups: int, parts: int) -> int:
    """The most parts of a choice in which a unit with so many groups has rows, of all of them."""
    assert core.choice is not None
    within = core.choice.within
    return 1 if not within or _steady(core, within, steady_relations(core.sources)) else min(groups, parts)


def _steady(core: Core, keys: Sequence[str], steady: set[str]) -> bool:
    """Whether these keys read what is the same in all rows of a unit."""
    return all(ref.relation in steady for name, key in core.keys if name in keys for ref in columns_of(key))


def contribution_of(
    core: Core, cells: int | None, power: NormPower = NormPower.L2
) -> Contribution | NormedContribution:
    """What one unit may add to a core with that many public cells (None: keys that are not public).

    Where the keys read what is the same in all rows of a unit (unit_facts.py), it has one group, whatever its number of
    rows. Norms of that power are chosen where bounds are automatic and groups can be selected; this names none yet.
    """
    bound = contribution_bound(core.sources)
    if bound is None:
        return Contribution(groups=1, rows=1, total=1, one_row=True, choose_groups=False)
    declared = bound.counted if isinstance(bound, AutomaticContribution) else bound
    total = declared.rows_per_unit
    steady = steady_relations(core.sources)
    alone = all(ref.relation in steady for _, key in core.keys for ref in columns_of(key))
    stored = rows_of_unit(core.sources)
    if core.choice is not None and (not core.choice.within or _steady(core, core.choice.within, steady)):
        # What a unit adds to one group is all that counts, in however many groups it is: exponential_mechanism.md.
        assert cells is not None
        rows = min(total if alone else declared.rows_per_unit_and_group, total, stored)
        groups = 1 if alone else cells
        return Contribution(groups=groups, rows=rows, total=groups * rows, one_row=False, choose_groups=False)
    weighed = power is NormPower.L2 and stored <= (WEIGHED_GROUPS_MOST if core.counted else WEIGHED_LONG_MOST)
    # A value that several units share keeps its weight when one of them is scaled: only counts bound different values.
    chosen = isinstance(bound, AutomaticContribution) and not any(a.distinct for a in core.aggregates)
    chosen = chosen and core.choice is None  # a choice is by counts that bounds hold
    if chosen and (cells is not None or alone or weighed):
        most = stored if cells is None else min(cells, stored)
        return NormedContribution(power=power, cells=1 if alone else most, rows=stored, norms=())
    if alone:
        return Contribution(groups=1, rows=total, total=total, one_row=False, choose_groups=False)
    groups, choose = declared.groups_per_unit, True
    if cells is not None and cells <= groups:
        groups, choose = cells, False
    rows = min(declared.rows_per_unit_and_group, total)
    return Contribution(groups=groups, rows=rows, total=total, one_row=False, choose_groups=choose)


def contribution_over_atoms(
    core: Core, cells: Sequence[tuple[KeyValue, ...]], power: NormPower = NormPower.L2
) -> Contribution | NormedContribution:
    """What one unit may add to a core by atoms: as much as to the same core without them, over all atoms together.

    Claim. Where the core without its atoms allots a unit at most `rows` in each of C groups and `total` over them, no
    groups chosen, this one allots it at most T = min(C rows, total) over all cells, and `rows` in each. So L1, and L2
    by the convexity in `Contribution`, are those of the core without atoms, however many atoms there are.
    Where a norm is chosen it is that of the vector of all atoms. Requires: no groups are chosen.
    """
    place = next(place for place, (name, _) in enumerate(core.keys) if name == core.atoms)
    outer = replace(core, keys=(*core.keys[:place], *core.keys[place + 1 :]), atoms=None)
    apart = contribution_of(outer, len({(*cell[:place], *cell[place + 1 :]) for cell in cells}), power)
    if isinstance(apart, NormedContribution):
        found = contribution_of(replace(core, atoms=None), len(cells), power)
        assert isinstance(found, NormedContribution)
        return found
    assert not apart.one_row
    assert not apart.choose_groups
    groups = apart.groups * len({cell[place] for cell in cells})
    return replace(apart, groups=max(1, groups), total=apart.l1_rows)
