"""How much of one unit a stream counts: the bound, who named it, and what it may leave out.

A function of declarations, of the request and of the published profile, which everybody who may ask reads anyway. No
row is read, and nothing is released.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Self

from privacy.bounds import AskedContribution
from privacy.values import Json
from server.estimands import what_is_cut
from server.journey.named_bounds import beyond_bound
from server.journey.query import Prepared
from server.profile_types import Profile
from sql_rewrite.contribution import Contribution

__all__ = ["Counted", "counted_of"]


@dataclass(frozen=True, slots=True)
class Counted:
    """The bounds of what counts of one unit, None where each has one row; and in words what is left out.

    `source` is who named the bounds: the request or the dataset. `larger` is a bound of rows that leaves out less, None
    where the snapshot keeps no more rows of a unit.
    """

    rows: int | None
    groups: int | None
    rows_in_group: int | None
    source: str
    larger: int | None
    cut: tuple[str, ...]

    def bounds(self) -> dict[str, Json] | None:
        """The bounds as they are shown."""
        if self.rows is None:
            return None
        return {
            "rows_per_unit": self.rows,
            "groups_per_unit": self.groups,
            "rows_per_unit_and_group": self.rows_in_group,
            "source": self.source,
            "larger": self.larger,
        }

    def plain(self) -> dict[str, Json]:
        """As it is stored."""
        return {**asdict(self), "cut": list(self.cut)}

    @classmethod
    def of_plain(cls, plain: Json) -> Self | None:
        """What was stored; None of streams of earlier servers."""
        if not isinstance(plain, dict):
            return None
        return cls(**{**plain, "cut": tuple(plain["cut"])})


def counted_of(prepared: Prepared, asked: AskedContribution | None, profile: Profile | None) -> Counted:
    """What a stream of this text counts of one unit. Requires: `sums_of` has no objection."""
    (core,) = prepared.cores
    cut = what_is_cut(core)
    said = () if cut is None else (cut,)
    bound = core.contribution
    if not isinstance(bound, Contribution) or bound.one_row:
        return Counted(None, None, None, "dataset", None, said)
    tables = [one.table for one in core.core.sources if one.stored and one.table.protected and not one.table.one_row]
    beyond = beyond_bound(tables, profile, bound.total)
    most = max((table.rows_stored for table in tables), default=bound.total)
    larger = min(most, max(2 * bound.total, beyond.covers or 0)) if most > bound.total else None
    return Counted(
        rows=bound.total,
        groups=bound.groups,
        rows_in_group=bound.rows,
        source="dataset" if asked is None or asked == AskedContribution() else "request",
        larger=larger,
        cut=(*said, beyond.said),
    )
