"""A warning: units count in fewer groups than the answer shows, so its counts and sums are too low."""

from __future__ import annotations

from collections.abc import Iterator

from privacy.bounds import BOUND_MAX
from privacy.warning import AnswerWarning
from sql_rewrite.bound import BoundedCore
from sql_rewrite.plan import Plan

__all__ = ["groups_beyond_bound"]


def groups_beyond_bound(_: Plan, cores: tuple[BoundedCore, ...]) -> Iterator[AnswerWarning]:
    """One warning per core whose public groups are more than a unit may count in."""
    for core in cores:
        cells = core.described.keys.domain
        if not core.contribution.choose_groups or cells is None:
            continue
        count, groups = len(cells), core.contribution.groups
        covers = (
            (
                f'"contribution": {{"groups_per_unit": {count}}} in the request, or --groups-per-unit {count}, covers '
                "this grouping, with more noise",
            )
            if count <= BOUND_MAX
            else ()
        )
        yield AnswerWarning(
            code="groups_beyond_bound",
            what="counts and sums of the groups leave something out",
            why=f"The answer has {count:,} groups, and a unit counts in at most {groups:,} of them (groups_per_unit): "
            "the others of a unit with more are dropped, and ± does not show it.",
            instead=(*covers, "group by fewer keys"),
        )
