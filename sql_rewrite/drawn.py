"""Synthetic tables in queries: outer queries read them, as they read public tables, and statements about people do not.

A synthetic table is in no snapshot, so no statement that reads rows of people could join it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from privacy.policy import Table
from sql_rewrite.plan import Plan
from sql_rewrite.refuse import refuse

__all__ = ["check_drawn"]


def check_drawn(plan: Plan) -> None:
    """Refuses a plan that reads a synthetic table beside rows of people. Errors: Refused (unsupported_sql)."""
    if not plan.dataset.drawn:
        return
    for table in _tables(plan.cores):
        if table.drawn is not None:
            raise refuse(
                "unsupported_sql",
                f'synthetic table "{table.name}" is refused beside rows about people',
                "Its rows stand for nobody, and are not kept with those of people: there is nothing to join by.",
                "ask for statistics of people in a nested query with GROUP BY, and join its result",
                "ask the synthetic table alone, which costs nothing",
            )


def _tables(value: object) -> Iterator[Table]:
    """Every table that a part of a plan reads, however deep it is."""
    if isinstance(value, Table):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _tables(part)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for one in dataclasses.fields(value):
            yield from _tables(getattr(value, one.name))
