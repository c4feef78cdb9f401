"""Frozen dataclasses that are made by their slots: the same objects, as frozen and as checked as before."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, replace
from fractions import Fraction
from inspect import signature

import pytest

from privacy.by_slots import by_slots
from sql_rewrite.expressions import Interval


@dataclass(frozen=True, slots=True)
class Plain:
    """One that checks what it is given, with a field of either kind."""

    low: int
    high: int = 10
    name: str = field(default="x", kw_only=True)
    kept: int | None = field(default=None, init=False, compare=False)

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("turned round")


@by_slots
@dataclass(frozen=True, slots=True)
class Quick:
    """The same, made by its slots."""

    low: int
    high: int = 10
    name: str = field(default="x", kw_only=True)
    kept: int | None = field(default=None, init=False, compare=False)

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("turned round")


def test_it_takes_checks_and_keeps_what_the_dataclass_does() -> None:
    """Shows the signature, defaults, checks, comparison, copies and that nothing can be changed afterwards."""
    assert signature(Quick) == signature(Plain)
    made = Quick(3, name="y")
    assert (made.low, made.high, made.name, made.kept) == (3, 10, "y", None)
    assert made == Quick(3, 10, name="y") != Quick(3)
    assert hash(made) == hash(replace(Quick(2, name="y"), low=3))
    assert copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made
    for refused in (lambda: Quick(11), lambda: replace(made, low=11)):
        with pytest.raises(ValueError, match="turned round"):
            refused()
    with pytest.raises(FrozenInstanceError):
        made.low = 4  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del made.low
    with pytest.raises(TypeError):
        Quick(1, 2, 3)  # type: ignore[misc, call-arg]


def test_a_class_of_the_plan_is_still_frozen() -> None:
    """Shows it on a range of values, on which bounds of sums rest."""
    interval = Interval(Fraction(0), Fraction(1))
    with pytest.raises(FrozenInstanceError):
        interval.upper = Fraction(2)  # type: ignore[misc]


def _without_slots() -> object:
    @by_slots
    @dataclass(frozen=True)
    class Loose:
        low: int

    return Loose


def _with_a_factory() -> object:
    @by_slots
    @dataclass(frozen=True, slots=True)
    class Made:
        parts: list[int] = field(default_factory=list)

    return Made


def _no_dataclass() -> object:
    @by_slots
    class Other:
        def __init__(self, low: int) -> None:
            self.low = low

    return Other


@pytest.mark.parametrize("define", [_without_slots, _with_a_factory, _no_dataclass])
def test_other_classes_are_refused_when_they_are_defined(define: Callable[[], object]) -> None:
    """Shows that no field could be left out or set otherwise than the dataclass would."""
    with pytest.raises(TypeError):
        define()
