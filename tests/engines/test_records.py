"""JSON objects of frames as dataclasses."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal

import pytest

from engines.frames import FrameFault
from engines.records import read_record, read_records, write_record


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    colour: Colour | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    count: int
    share: float
    mark: Literal[".", ","]
    plain: str | bool | None
    parts: tuple[Part, ...] = ()
    ends: tuple[str, str] | None = None
    pairs: tuple[tuple[str, int], ...] = ()
    named: dict[str, Part] | None = None


SMALL = {"count": 1, "share": 2, "mark": ",", "plain": True}


def test_a_record_comes_back_as_it_was() -> None:
    """Nested dataclasses, tuples, enumerations and dictionaries, written and read."""
    whole = Whole(3, 0.5, ".", None, (Part("a", Colour.RED), Part("b")), ("x", "y"), (("n", 4),), {"p": Part("c")})
    assert whole == read_record(Whole, write_record(whole))
    assert [Part("a"), Part("b")] == read_records(Part, [{"name": "a"}, {"name": "b", "unknown": 1}])


def test_defaults_stand_for_what_is_missing() -> None:
    """A whole number does as a number, and an object as its pairs."""
    assert Whole(1, 2, ",", True) == read_record(Whole, SMALL)
    assert (("n", 4),) == read_record(Whole, {**SMALL, "pairs": {"n": 4}}).pairs


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {**SMALL, "count": True},
        {**SMALL, "count": "1"},
        {**SMALL, "count": 1.0},
        {**SMALL, "share": "2"},
        {**SMALL, "share": True},
        {**SMALL, "mark": ";"},
        {**SMALL, "mark": ["."]},
        {**SMALL, "plain": 1},
        {**SMALL, "parts": None},
        {**SMALL, "parts": "ab"},
        {**SMALL, "parts": [{}]},
        {**SMALL, "parts": [{"name": "a", "colour": "blue"}]},
        {**SMALL, "parts": [{"name": "a", "colour": ["red"]}]},
        {**SMALL, "ends": ["x"]},
        {**SMALL, "ends": ["x", "y", "z"]},
        {**SMALL, "pairs": {"n": "4"}},
        {**SMALL, "named": []},
        {**SMALL, "named": {"p": 1}},
    ],
)
def test_anything_else_is_a_malformed_frame(document: object) -> None:
    """What a worker that was taken over may send becomes the one fault of frames, whatever it is."""
    with pytest.raises(FrameFault):
        read_record(Whole, document)
