"""What was found broken once is forbidden by a test: tests/regressions.md names tests that are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
TABLE = CHECKOUT / "tests" / "regressions.md"
SHOWN = ("fails: ", "cannot be expressed: ", "not run: ")
"""How the last cell begins: what the test says on the version before, why it has no words for it there, or why not."""

Row = tuple[str, str, list[str], str]


def rows() -> list[Row]:
    """Point, what is forbidden, names of tests, and what was seen on the version before."""
    found: list[Row] = []
    for line in TABLE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if re.fullmatch(r"F?[1-9][0-9]*", cells[0]):
            assert len(cells) == 4, line
            found.append((cells[0], cells[1], re.findall(r"`(tests/[^`]+)`", cells[2]), cells[3]))
    return found


@cache
def names_in(path: str) -> frozenset[str]:
    """The tests that pytest collects from a file, by name; those of a class as `Class::name`."""
    tree = ast.parse((CHECKOUT / path).read_text("utf-8"))
    found: set[str] = set()
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test") else [node]
        owner = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        functions = [one.name for one in inner if isinstance(one, ast.FunctionDef)]
        found |= {owner + name for name in functions if name.startswith("test_")}
    return frozenset(found)


def exists(name: str) -> bool:
    """Whether `file::test` names a test."""
    path, _, test = name.partition("::")
    return (CHECKOUT / path).is_file() and Path(path).name.startswith("test_") and test in names_in(path)


def test_every_named_test_exists() -> None:
    """Shows that no test of the table was renamed or removed without its row."""
    assert [name for _, _, names, _ in rows() for name in names if not exists(name)] == []


def test_no_point_is_without_a_test() -> None:
    """Shows that points 1 to 26 and all frictions have rows, each with a test and with what was seen before."""
    table = rows()
    points = [point for point, _, _, _ in table]
    assert list(dict.fromkeys(point for point in points if point[0] != "F")) == [str(point) for point in range(1, 27)]
    frictions = [point for point in points if point[0] == "F"]
    assert frictions == [f"F{number}" for number in range(1, len(frictions) + 1)]
    assert len(frictions) >= 20
    for point, forbidden, names, seen in table:
        assert forbidden, point
        assert names, point
        assert seen.startswith(SHOWN), point
        assert len(seen) > 20, point


def test_a_name_that_is_not_there_would_be_found() -> None:
    """Shows that the check above tells tests from other names."""
    assert exists("tests/test_regressions.py::test_every_named_test_exists")
    for wrong in ("tests/test_regressions.py::rows", "tests/test_none.py::test_x", "tests/test_regressions.py::test_"):
        assert not exists(wrong)
