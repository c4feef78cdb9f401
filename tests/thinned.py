"""What `make check` runs of a long search: a part of it, while `./noisegate test` runs the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TypeVar

import pytest

__all__ = ["mark_sparse", "slow_ones", "thinned"]

Value = TypeVar("Value")


def thinned(every: int, *, by_day: int = 1) -> pytest.MarkDecorator:
    """Two runs of a search that takes `every`: one item in so many, and, marked slow, each of them.

    With `by_day`, the slow run takes one in so many too, and each of them is taken at night.
    """
    runs = [pytest.param(every, id=f"one in {every}")]
    if by_day > 1:
        runs.append(pytest.param(by_day, id=f"one in {by_day}", marks=pytest.mark.slow))
    whole = pytest.mark.slow if by_day == 1 else pytest.mark.nightly
    return pytest.mark.parametrize("every", [*runs, pytest.param(1, id="all", marks=whole)])


def slow_ones(slow: Collection[Value], values: Iterable[Value]) -> list[object]:
    """The values of a parameter, of which these are marked slow."""
    given = list(values)
    assert all(value in given for value in slow), f"{slow} are not all among {given}"
    return [pytest.param(value, marks=pytest.mark.slow) if value in slow else value for value in given]


POSTGRESQL_EVERY = 10
"""Of the tests of a file that are made on PostgreSQL as well, `make check` makes one in so many there."""


def mark_sparse(items: Iterable[pytest.Item]) -> None:
    """Marks cases of tests marked `sparse(every)` slow: all but the first and, along each table, one in so many.

    What is made on PostgreSQL as well as on SQLite is made on both by `./noisegate test`.
    """
    on_postgresql: Counter[Path] = Counter()
    for item in items:
        if item.get_closest_marker("postgresql") is not None:
            if on_postgresql[item.path] % POSTGRESQL_EVERY != 0:
                item.add_marker(pytest.mark.slow)
            on_postgresql[item.path] += 1
        sparse = item.get_closest_marker("sparse")
        if sparse is not None and isinstance(item, pytest.Function) and _place(item) % sparse.args[0] != 0:
            item.add_marker(pytest.mark.slow)


def _place(item: pytest.Function) -> int:
    """The number of a case: of its rows in all tables of parameters together, whatever order pytest runs them in.

    Pytest numbers the cases of all tables through, the last row first; what is left is the number of fixtures' cases.
    """
    tables = list(item.iter_markers("parametrize"))
    number, place = max(item.callspec.indices.values()), 0
    for table in reversed(tables):
        number, row = divmod(number, len(table.args[1]))
        place += row
    return place + number
