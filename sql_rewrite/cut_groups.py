"""A warning: units count in fewer groups than the answer shows, so its counts and sums are too low."""

from __future__ import annotations

from collections.abc import Iterator

from privacy.bounds import BOUND_MAX
from privacy.refusal import Finding
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.contribution import Contribution
from sql_rewrite.plan import Plan

__all__ = ["groups_beyond_bound", "shown_groups_beyond_bound"]


def groups_beyond_bound(_: Plan, cores: tuple[BoundedCore, ...]) -> Iterator[Finding]:
    """One warning per core whose public groups are more than a unit may count in."""
    for core in cores:
        cells = core.described.keys.domain
        bound = core.contribution
        if isinstance(bound, Contribution) and bound.choose_groups and cells is not None:
            yield _beyond(len(cells), bound.groups)


def shown_groups_beyond_bound(cores: tuple[BoundedCore, ...], rows: int) -> Iterator[Finding]:
    """The same where only the answer shows the groups: its `rows` are groups of its one core.

    Which groups are shown is released, so their number reveals nothing more.
    """
    if len(cores) == 1 and cores[0].described.keys.domain is None:
        bound = cores[0].contribution
        if isinstance(bound, Contribution) and bound.choose_groups and rows > bound.groups:
            yield _beyond(rows, bound.groups)


def _beyond(count: int, groups: int) -> Finding:
    covers = (
        (
            f'ask with "contribution": {{"groups_per_unit": {count}}} (or --groups-per-unit {count}) to cover this '
            "grouping, with more noise",
        )
        if count <= BOUND_MAX
        else ()
    )
    return Finding(
        code="groups_beyond_bound",
        what="counts and sums of the groups are too low",
        why=f"The answer has {count:,} groups, and a unit counts in at most {groups:,} of them (groups_per_unit): "
        "the others of a unit with more are dropped, and ± does not show it.",
        instead=(*covers, "group by fewer keys"),
    )
