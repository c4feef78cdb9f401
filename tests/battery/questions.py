"""The texts of the battery: one file for each world, with what becomes of each text before it.

-- answered                  as DuckDB answers it (tests/battery/test_battery.py compares)
-- other: why                answered, and not as DuckDB does, by design
-- refused: code             never answered
-- not yet: code             refused until somebody builds it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Question", "questions"]

_FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Question:
    """A text, where it stands, and what becomes of it: a word, and a code or a reason."""

    world: str
    number: int
    text: str
    outcome: str
    detail: str


def questions(world: str) -> Iterator[Question]:
    """The texts of a world, in order."""
    for number, part in enumerate((_FOLDER / f"{world}.sql").read_text(encoding="utf-8").strip().split("\n\n")):
        header, _, text = part.partition("\n")
        assert header.startswith("-- "), f"{world}.sql: text {number} has no outcome"
        outcome, _, detail = header.removeprefix("-- ").partition(": ")
        assert outcome in ("answered", "other", "refused", "not yet"), f"{world}.sql: text {number}"
        yield Question(world, number, text, outcome, detail)
