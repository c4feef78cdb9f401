"""The texts of the battery: two files for each world, with what becomes of each text before it.

What analysts may ask is in WORLD.sql, what nobody may ask in WORLD_refused.sql.

-- answered                  as DuckDB answers it (tests/battery/test_battery.py compares)
-- other: why                answered, and not as DuckDB does, by design
-- refused: code             never answered
-- not yet: code             refused until somebody builds it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Question", "files", "questions"]

_FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Question:
    """A text, where it stands, and what becomes of it: a word, and a code or a reason."""

    world: str
    number: int
    text: str
    outcome: str
    detail: str


def files(world: str) -> tuple[Path, Path]:
    """Where the texts of a world are: what may be asked, and what is refused."""
    return _FOLDER / f"{world}.sql", _FOLDER / f"{world}_refused.sql"


def questions(world: str) -> Iterator[Question]:
    """The texts of a world, in order."""
    parts = [part for path in files(world) for part in path.read_text(encoding="utf-8").strip().split("\n\n")]
    for number, part in enumerate(parts):
        header, _, text = part.partition("\n")
        assert header.startswith("-- "), f"{world}.sql: text {number} has no outcome"
        outcome, _, detail = header.removeprefix("-- ").partition(": ")
        assert outcome in ("answered", "other", "refused", "not yet"), f"{world}.sql: text {number}"
        yield Question(world, number, text, outcome, detail)
