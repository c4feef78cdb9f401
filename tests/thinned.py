"""What `make check` runs of a long search: a part of it, while `./noisegate test` runs the whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

import pytest

__all__ = ["first_quick", "slow_ones", "thinned"]

Value = TypeVar("Value")


def thinned(every: int) -> pytest.MarkDecorator:
    """Two runs of a search that takes `every`: one item in so many, and, marked slow, each of them."""
    whole = pytest.param(1, id="all", marks=pytest.mark.slow)
    return pytest.mark.parametrize("every", [pytest.param(every, id=f"one in {every}"), whole])


def first_quick(values: Iterable[Value], quick: int = 1) -> list[object]:
    """The values of a parameter (a tuple for several), all but the first ones marked slow."""
    every = list(values)
    return [*every[:quick], *(_slow(value) for value in every[quick:])]


def slow_ones(slow: Collection[Value], values: Iterable[Value]) -> list[object]:
    """The values of a parameter, of which these are marked slow."""
    return [_slow(value) if value in slow else value for value in values]


def _slow(value: object) -> object:
    return pytest.param(*(value if type(value) is tuple else (value,)), marks=pytest.mark.slow)
