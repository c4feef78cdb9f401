"""docs/mechanisms.md has a row for each system and each error, and the tests that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mechanisms.families import MEASUREMENTS
from mechanisms.local.encodings import ENCODINGS
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


def test_every_mechanism_has_its_evidence() -> None:
    """Shows that each kind of measurement and each encoder has a row, with a law, a refuted variant and rows."""
    start = LINES.index("## Evidence, mechanism by mechanism")
    end = LINES.index("## The errors of the texts")
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in LINES[start:end] if line[:1] == "|"]
    named = [name for row in cells for name in re.findall(r"`(\w+)`", row[0])]
    assert len(named) == len(set(named))
    assert set(named) >= set(MEASUREMENTS) | {kind.name for kind in ENCODINGS}
    for row in cells[2:]:
        assert len(row) == 4, row[0]
        tests = [re.findall(r"`(tests/[^`]+)`", cell) for cell in row[1:]]
        assert tests[0] or "`" in row[1], row[0]
        assert tests[1], row[0]
        assert [name for names in tests for name in names if not exists(name)] == [], row[0]


def test_files_that_are_named_are_there() -> None:
    """Shows that pages and modules of the tables exist; a page of the folder mechanisms may be named without it."""
    text = "\n".join(LINES)
    for name in re.findall(r"`((?:mechanisms|privacy|accountant|server|docs)/[^`]+)`", text):
        assert (CHECKOUT / name).is_file(), name
    for name in re.findall(r"`([a-z_]+\.md)`", text):
        assert (CHECKOUT / "mechanisms" / name).is_file(), name
