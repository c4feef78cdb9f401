"""What a plan warns about: the findings of the lift, and those of rules over the bounded cores.

A rule is a pure function of the plan and its bounded cores. It reads neither rows nor balances, so an estimate and
the answer to the same question carry the same warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from privacy.refusal import Finding
from privacy.warning import WARNINGS
from sql_rewrite.bound import BoundedCore
from sql_rewrite.cut_groups import bounds_assumed, groups_beyond_bound, no_group_shown, shown_groups_beyond_bound
from sql_rewrite.empty_groups import empty_groups
from sql_rewrite.extremes import extreme_quantiles
from sql_rewrite.plan import Plan
from sql_rewrite.presence import presence_by_count
from sql_rewrite.synthetic_rows import synthetic_rows
from sql_rewrite.wide_differences import wide_differences
from sql_rewrite.wide_ranges import wide_ranges

__all__ = ["RULES", "answer_warnings", "plan_warnings"]

Rule = Callable[[Plan, tuple[BoundedCore, ...]], Iterable[Finding]]

RULES: tuple[Rule, ...] = (
    empty_groups,
    bounds_assumed,
    groups_beyond_bound,
    extreme_quantiles,
    presence_by_count,
    wide_ranges,
    wide_differences,
    synthetic_rows,
)
"""Rules over the bounded plan, in the order in which answers list their findings."""


def plan_warnings(plan: Plan, cores: tuple[BoundedCore, ...]) -> tuple[Finding, ...]:
    """Every warning of a plan, without repeats: first those of the text, in its order, then those of the rules."""
    found = dict.fromkeys(plan.warnings)
    for rule in RULES:
        found.update(dict.fromkeys(rule(plan, cores)))
    return _checked(found)


def answer_warnings(cores: tuple[BoundedCore, ...], rows: int, shown: Sequence[int]) -> tuple[Finding, ...]:
    """Warnings that only an answer can give: a function of the plan and of released numbers.

    These are the number of rows, and that of the groups of each core which are `shown`.
    """
    return _checked((*shown_groups_beyond_bound(cores, rows), *no_group_shown(cores, shown)))


def _checked(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, which have codes of warnings."""
    warnings = tuple(found)
    assert all(warning.code in WARNINGS for warning in warnings), "a warning has a code of a warning"
    return warnings
