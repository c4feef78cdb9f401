"""What a plan warns about: the findings of the lift, and those of rules over the bounded cores.

A rule is a pure function of the plan and its bounded cores. It reads neither rows nor balances, so an estimate and
the answer to the same question carry the same warnings. Those that take more than a look at the plan are in files of
their own: groups beyond a bound (cut_groups.py), and ranges that nobody narrowed (wide_ranges.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from privacy.aggregate import AggregateFunction
from privacy.refusal import Finding
from privacy.warning import WARNINGS
from sql_rewrite.bound import BoundedCore
from sql_rewrite.cut_groups import bounds_assumed, groups_beyond_bound, no_group_shown, shown_groups_beyond_bound
from sql_rewrite.plan import Plan
from sql_rewrite.quantile_moments import number_written
from sql_rewrite.value_bounds import written_argument
from sql_rewrite.wide_ranges import wide_differences, wide_ranges

__all__ = ["RULES", "answer_warnings", "plan_warnings"]

Rule = Callable[[Plan, tuple[BoundedCore, ...]], Iterable[Finding]]

_EXTREMES = (AggregateFunction.LEAST, AggregateFunction.GREATEST)


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


def extreme_quantiles(plan: Plan, cores: tuple[BoundedCore, ...]) -> Iterable[Finding]:
    """What MIN and MAX of rows about people are: extreme quantiles."""
    for core in plan.cores:
        for aggregate in core.aggregates:
            if aggregate.function in _EXTREMES:
                far, side = (
                    ("least", "below") if aggregate.function is AggregateFunction.LEAST else ("greatest", "above")
                )
                written = written_argument(aggregate)
                number = number_written(aggregate, written)
                shown: tuple[str, ...] = ()
                if number is not None:
                    shown = (f"{aggregate.text.partition('(')[0]}({number}) beside it has an interval, and is free",)
                    written = number if number.startswith("epoch") else written
                part = "0.05" if far == "least" else "0.95"
                yield Finding(
                    code="extreme_quantile",
                    what=f"{aggregate.text} is an extreme quantile, not the {far} value",
                    why=f"The {far} value is one person's. What is answered is about where as many rows lie {side} as "
                    "the noise hides; the interval reaches further where a few more could be.",
                    instead=(
                        *shown,
                        f"QUANTILE_CONT({written}, {part}) is a quantile that many people share",
                    ),
                    position=aggregate.position,
                )


def presence_by_count(plan: Plan, cores: tuple[BoundedCore, ...]) -> Iterable[Finding]:
    """What BOOL_OR and BOOL_AND of rows about people are (mechanisms/estimators/presence.py)."""
    for core in plan.cores:
        for aggregate in core.aggregates:
            if aggregate.function is not AggregateFunction.PRESENT:
                continue
            name, _, condition = aggregate.text.partition("(")
            every = name.strip().lower().endswith("and")
            counted = f"NOT ({condition[:-1]})" if every else condition[:-1]
            beside = f"COUNT_IF({counted}) beside it has an interval, and is free"
            yield Finding(
                code="presence_by_count",
                what=f"{aggregate.text} is read from a noisy count",
                why=f"It is {'false' if every else 'true'} where the noisy number of rows that "
                f"{'contradict it' if every else 'meet it'} is above zero with its whole interval. A few rows that the "
                "noise hides count as none; of none it is wrong as often as such an interval misses.",
                instead=(beside,) if condition.endswith(")") and "FILTER" not in condition.upper() else (),
                position=aggregate.position,
            )


def synthetic_rows(plan: Plan, cores: tuple[BoundedCore, ...]) -> Iterable[Finding]:
    """What numbers of a synthetic table are, once for each that the query reads beside released numbers."""
    for relation in plan.public:
        if relation.table.drawn is not None:
            yield Finding(
                code="synthetic_rows",
                what=f'"{relation.table.name}" has rows about nobody',
                why="It was drawn once from noisy tables of a few columns each, of a part of each person's rows. Its "
                "numbers are those of people only as far as its report says, and no interval covers the difference.",
                instead=(
                    f"GET /v1/synthetic/{relation.table.drawn} (or noisegate synthetic show) has the report",
                    "ask the table about people itself where a number counts",
                ),
            )


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
