"""Contribution bounds that a request has to name, because what it opens is charged for a bound that is known before.

How many rows units have is read from the published profile, which everybody who may ask reads anyway: no row is read,
and nothing is released.
"""

from __future__ import annotations

from dataclasses import dataclass

from privacy.policy import Table
from privacy.refusal import Finding, Refused
from server.journey.query import Prepared
from server.profile_types import Profile

__all__ = ["Beyond", "beyond_bound", "require_named_bounds"]

_LEVELS = ((0.9, "nine of ten units"), (0.99, "99 of 100 units"))
"""Quantiles of a profile that are advised, in words."""
_UNKNOWN = 20
"""The number in the advice where nothing is known."""


def require_named_bounds(prepared: Prepared, profile: Profile | None, *, what: str, why: str) -> None:
    """Refuses a question whose contribution bounds would be chosen from the data. Errors: Refused.

    `what` is refused, and `why` says for what its bound has to be known. The advice has bounds of the profile, where
    one is published.
    """
    if not any(prepared.histograms):
        return
    tables = [
        source.table
        for core in prepared.cores
        for source in core.core.sources
        if source.stored and source.table.protected and not source.table.one_row
    ]
    known = _of_profile(tables, profile)
    instead = (
        *(_named(rows, said) for rows, said in known),
        *(() if known else (_named(_UNKNOWN, None), _WHERE_KNOWN)),
    )
    chosen = "How much of one unit counts would be chosen from the data"
    raise Refused([Finding(code="contribution_not_named", what=what, why=f"{chosen}; {why}.", instead=instead)])


_WHERE_KNOWN = "a profile of the data says how many rows units have: ask its owner for noisegate dataset profile"


def _named(rows: int, said: str | None) -> str:
    body = f'name it: "contribution": {{"rows_per_unit": {rows}, "groups_per_unit": {rows}, '
    return f'{body}"rows_per_unit_and_group": {rows}}}' + (
        "" if said is None else f": {said} have at most that many rows, by the profile"
    )


def _of_profile(tables: list[Table], profile: Profile | None) -> list[tuple[int, str]]:
    """Bounds with what is true of them, the smaller first; none where the profile does not know the tables."""
    quantiles = _quantiles(tables, profile)
    if not quantiles:
        return []
    found: dict[int, str] = {}
    for level, said in _LEVELS:
        rows = [known[level] for known in quantiles if level in known]
        if len(rows) == len(quantiles):
            found.setdefault(max(1, *rows), said)
    return sorted(found.items())


def _quantiles(tables: list[Table], profile: Profile | None) -> list[dict[float, int]]:
    """Of each table that the profile knows the quantiles of rows of a unit, by their level."""
    if profile is None:
        return []
    named = {table.name.lower() for table in tables}
    return [
        {quantile["level"]: quantile["value"] for quantile in table["rows_per_unit"] or ()}
        for table in profile["tables"]
        if table["name"].lower() in named
    ]


@dataclass(frozen=True, slots=True)
class Beyond:
    """What a profile says of units with more rows than a bound, in words.

    `covers` is a bound that 99 of 100 units keep, None where no profile knows one.
    """

    said: str
    covers: int | None


def beyond_bound(tables: list[Table], profile: Profile | None, rows: int) -> Beyond:
    """How many units have more than `rows` rows, as far as the published profile says it.

    Of one table alone: how many rows a join leaves of a unit no profile says.
    """
    known = _quantiles(tables, profile) if len(tables) == 1 else []
    if not known or not known[0]:
        return Beyond("How many units have more is not known: no profile of the data says it.", None)
    (levels,) = known
    kept = max((level for level, most in levels.items() if most <= rows), default=None)
    name, covers = tables[0].name, levels.get(_LEVELS[-1][0])
    if kept is None:
        return Beyond(f'By the published profile many units, half of them or more, have more rows in "{name}".', covers)
    share = f"at most about {100 - 100 * kept:.0f} of 100 units"
    return Beyond(f'By the published profile {share} have more rows in "{name}".', covers)
