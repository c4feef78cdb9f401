"""The warning of synthetic tables: their rows are about nobody (server/synthetic)."""

from __future__ import annotations

from collections.abc import Iterable

from privacy.refusal import Finding
from sql_rewrite.bound import BoundedCore
from sql_rewrite.plan import Plan

__all__ = ["synthetic_rows"]


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
