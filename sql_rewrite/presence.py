"""The warning of BOOL_OR and BOOL_AND: they are read from a noisy count (mechanisms/estimators/presence.py)."""

from __future__ import annotations

from collections.abc import Iterable

from privacy.aggregate import AggregateFunction
from privacy.refusal import Finding
from sql_rewrite.bound import BoundedCore
from sql_rewrite.plan import Plan

__all__ = ["presence_by_count"]


def presence_by_count(plan: Plan, cores: tuple[BoundedCore, ...]) -> Iterable[Finding]:
    """What BOOL_OR and BOOL_AND of rows about people are."""
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
