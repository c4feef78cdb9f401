"""The warning of MIN and MAX: they are extreme quantiles."""

from __future__ import annotations

from collections.abc import Iterable

from privacy.aggregate import AggregateFunction
from privacy.refusal import Finding
from sql_rewrite.bound import BoundedCore
from sql_rewrite.plan import Plan
from sql_rewrite.quantile_moments import number_written
from sql_rewrite.value_bounds import written_argument

__all__ = ["extreme_quantiles"]

_EXTREMES = (AggregateFunction.LEAST, AggregateFunction.GREATEST)


def extreme_quantiles(plan: Plan, cores: tuple[BoundedCore, ...]) -> Iterable[Finding]:
    """What MIN and MAX of rows about people are."""
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
