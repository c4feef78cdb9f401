"""The pages about rooms say what is there: tables of rooms against files, the map of types against the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
ROOMS = ("privacy", "sql_rewrite", "mechanisms", "engines", "accountant", "server")
_NAME = re.compile(r"`([a-z_/]+(?:\.md)?)`")


def tables(text: str) -> Iterator[list[list[str]]]:
    """The tables of a page: the cells of each row, the heading first."""
    rows: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif rows:
            yield [rows[0], *rows[2:]]
            rows = []


def column(text: str, *headings: str) -> list[str]:
    """The cells below one of these headings, in every table that has it."""
    found = []
    for heading, *rows in tables(text):
        names = [name.strip("| ") for name in heading]
        for place in (names.index(wanted) for wanted in headings if wanted in names):
            found += [row[place] for row in rows]
    return found


def named(room: str) -> set[str]:
    """The modules, folders and pages that the table of a room names; what follows a name of a folder may be in it."""
    found = set()
    for cell in column((CHECKOUT / room / "README.md").read_text("utf-8"), "module", "file"):
        folder = ""
        for name in _NAME.findall(cell):
            within, slash, last = name.rpartition("/")
            folder = within + slash or folder
            found.add(f"{folder}{last}" if (CHECKOUT / room / f"{folder}{last}.py").exists() else name)
    return found


def present(room: str, names: set[str]) -> Iterator[str]:
    """What the table of a room has to name: its modules, and each folder as a whole or module by module."""
    for path in sorted((CHECKOUT / room).iterdir()):
        if path.suffix == ".py" and path.stem not in ("__init__", "__main__"):
            yield path.stem
        elif path.is_dir() and (path / "__init__.py").exists():
            if f"{path.name}/" in names:
                yield f"{path.name}/"
            else:
                yield from (f"{path.name}/{inner.stem}" for inner in sorted(path.glob("[a-z]*.py")))


@pytest.mark.parametrize("room", ROOMS)
def test_the_table_of_a_room_is_its_files(room: str) -> None:
    """Each module and folder is named in the table of its room's page, and what the table names exists."""
    names = named(room)
    assert set(present(room, names)) - names == set(), f"{room}/README.md does not name them"
    gone = {
        name
        for name in names
        if not any((CHECKOUT / room / f"{name.rstrip('/')}{end}").exists() for end in ("", ".py"))
    }
    assert gone == set(), f"{room}/README.md names what is not there"


def test_what_a_table_leaves_out_is_found() -> None:
    """Modules are asked for one by one, those of a folder too unless it is named as a whole."""
    without = set(present("engines", set()))
    assert {"pool", "handlers/speed"} <= without
    assert {"pool", "handlers/"} <= set(present("engines", {"handlers/"}))
    assert column("| part | module |\n|---|---|\n| x | `a`, `b/` |\n", "module", "file") == ["`a`, `b/`"]


# --- The map of types -----------------------------------------------------------------------------------------------

STEPS = [str(step) for step in range(1, 9)]


def flow() -> list[tuple[str, str, str, list[str], list[str]]]:
    """The rows of the map in docs/architecture.md: step, type, where it is defined, who makes it, who reads it."""
    text = (CHECKOUT / "docs" / "architecture.md").read_text("utf-8")
    (rows,) = [rows for rows in tables(text) if "made by" in [cell.strip("| ") for cell in rows[0]]]
    found = []
    for step, name, *places in rows[1:]:
        (defined,), made, read = (re.findall(r"`([a-z_/]+)`", cell) for cell in places)
        found.append((step.strip("| "), name.split("`")[1], defined, made, read))
    return found


def tree_of(module: str) -> ast.Module:
    """The tree of a module that the map names."""
    return ast.parse((CHECKOUT / f"{module}.py").read_text("utf-8"), module)


def made_in(module: str, name: str) -> bool:
    """Whether a module calls it: the class, or the function that makes it."""
    calls = (node for node in ast.walk(tree_of(module)) if isinstance(node, ast.Call))
    return any(isinstance(call.func, ast.Name) and call.func.id == name for call in calls)


def test_the_map_follows_the_eight_steps() -> None:
    """Every step hands on something, in their order."""
    steps = [step for step, *_ in flow()]
    assert sorted(set(steps)) == STEPS
    assert steps == sorted(steps)


@pytest.mark.parametrize(
    ("name", "defined", "made", "read"), [row[1:] for row in flow()], ids=[row[1] for row in flow()]
)
def test_each_type_is_where_the_map_says(name: str, defined: str, made: list[str], read: list[str]) -> None:
    """It is defined there, each maker calls it, and each reader names it and does not make it."""
    definitions = {node.name for node in tree_of(defined).body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    assert name in definitions
    assert made
    assert [module for module in made if not made_in(module, name)] == []
    assert read
    assert set(read) & set(made) == set()
    mentioned = re.compile(rf"\b{name}\b")
    assert [module for module in read if not mentioned.search((CHECKOUT / f"{module}.py").read_text("utf-8"))] == []
