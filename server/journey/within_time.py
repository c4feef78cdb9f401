"""Bounded cores whose work is within what one unit may take, if there is a way to bound them so.

Where groups are hidden, all of a unit's groups count under a norm, as long as a snapshot keeps few rows of it. Of more
rows, such as those of two tables put together, the same takes longer than an expensive question may: its units are
then held to counts, which an answer warns of. What a text gets depends on it and on declarations alone.
"""

from __future__ import annotations

from dataclasses import replace

from privacy.norms import NormPower
from privacy.refusal import Refused
from server.journey.value_stage import ValueStage, bound_or_nominal
from sql_rewrite.bound import BoundedCore
from sql_rewrite.contribution import WEIGHED_GROUPS_MOST, NormedContribution
from sql_rewrite.cost import Work, check_work
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.norms import norm_core
from sql_rewrite.plan import Plan

__all__ = ["Bounded", "bound_within_time"]

Bounded = tuple[Plan, tuple[BoundedCore, ...], ValueStage | None, Work]
"""A plan, its cores, how their value bounds are chosen, and what all of it takes."""


def bound_within_time(plan: Plan, power: NormPower, dialect: Dialect) -> Bounded:
    """The plan with its bounded cores: of those that take too long, units with many rows are held to counts.

    Errors: Refused, as `bound_or_nominal` and `check_work`.
    """
    cores, values = bound_or_nominal(plan, power, dialect)
    try:
        return plan, cores, values, _work(cores, values, dialect)
    except Refused:
        long = {core.described.name for core in cores if _is_long(core)}
        if not long:
            raise
    counted = tuple(replace(core, counted=True) if core.name in long else core for core in plan.cores)
    plan = replace(plan, cores=counted)
    cores, values = bound_or_nominal(plan, power, dialect)
    return plan, cores, values, _work(cores, values, dialect)


def _is_long(core: BoundedCore) -> bool:
    """Whether more rows of a unit count in hidden groups under a norm than always do."""
    contribution, hidden = core.contribution, core.described.keys.domain is None
    return hidden and isinstance(contribution, NormedContribution) and contribution.rows > WEIGHED_GROUPS_MOST


def _work(cores: tuple[BoundedCore, ...], values: ValueStage | None, dialect: Dialect) -> Work:
    first = [core for core in cores if norm_core(core) is not None]
    of_values = () if values is None else tuple(histogram.bounded for histogram in values.histograms)
    apart = frozenset[str]() if values is None else values.norms_first
    return check_work((*cores, *of_values), dialect.costs, first=first, apart=apart)
