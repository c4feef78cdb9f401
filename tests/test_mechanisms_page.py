"""docs/mechanisms.md has a row for each system and each error, and the tests that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_regressions import exists

CHECKOUT = Path(__file__).resolve().parents[1]
LINES = (CHECKOUT / "docs" / "mechanisms.md").read_text("utf-8").splitlines()


def rows(first: str) -> dict[str, list[str]]:
    """The cells of the rows whose first cell matches, by that cell."""
    cells = ([cell.strip() for cell in line.strip("|").split(" | ")] for line in LINES if line.startswith("| "))
    return {row[0]: row[1:] for row in cells if re.fullmatch(first, row[0])}


@pytest.mark.parametrize(
    ("first", "expected", "width"),
    [(r"[0-9]+", [str(n) for n in range(1, 42)], 5), (r"E[0-9]+", [f"E{n}" for n in range(1, 29)], 3)],
    ids=["systems", "errors"],
)
def test_nothing_is_left_out(first: str, expected: list[str], width: int) -> None:
    """Shows that every row is there, in order and whole, and that each names a test that exists."""
    found = rows(first)
    assert list(found) == expected
    for number, cells in found.items():
        assert len(cells) == width, number
        assert all(cells), number
        named = re.findall(r"`(tests/[^`]+)`", " ".join(cells))
        assert named, number
        assert [name for name in named if not exists(name)] == [], number


def test_files_that_are_named_are_there() -> None:
    """Shows that pages and modules of the tables exist; a page of the folder mechanisms may be named without it."""
    text = "\n".join(LINES)
    for name in re.findall(r"`((?:mechanisms|privacy|accountant|server|docs)/[^`]+)`", text):
        assert (CHECKOUT / name).is_file(), name
    for name in re.findall(r"`([a-z_]+\.md)`", text):
        assert (CHECKOUT / "mechanisms" / name).is_file(), name
