"""Warnings about empty public groups: where they are counted, and where they were left out."""

from __future__ import annotations

from collections.abc import Iterable

from privacy.refusal import Finding
from sql_rewrite.bound import BoundedCore
from sql_rewrite.plan import Plan

__all__ = ["empty_groups"]


def empty_groups(plan: Plan, cores: tuple[BoundedCore, ...]) -> Iterable[Finding]:
    """What a query does with public groups that may be empty."""
    public = {
        core.core.name: len(core.described.keys.domain)
        for core in cores
        if core.core.keys and core.described.keys.domain is not None and len(core.described.keys.domain) > 1
    }
    if plan.nonempty:
        if public:
            yield Finding(
                code="empty_groups_left_out",
                what="groups whose noisy count may be that of an empty group are left out",
                why="The noise decides too which ones: small groups may be missing, and the numbers of groups just "
                "large enough to be shown are biased upwards.",
                instead=("ask without nonempty for every group",),
            )
        return
    for counting in plan.counting:
        groups = max((public[name] for name in counting.cores if name in public), default=0)
        if groups:
            yield Finding(
                code="empty_groups_counted",
                what=f"{counting.what} counts all {groups:,} public groups, including empty ones",
                why="Groups that are known in advance always appear, and empty ones have noise alone.",
                instead=(
                    'ask with "nonempty": true (or --nonempty) to leave out groups whose noisy count may be zero',
                ),
                position=counting.position,
            )
