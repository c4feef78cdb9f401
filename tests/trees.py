"""The syntax trees of the product, each parsed once, for the tests that read its code."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

__all__ = ["CHECKOUT", "files_of", "sources", "tree_of", "walked"]

CHECKOUT = Path(__file__).resolve().parents[1]


def sources(*rooms: str) -> Iterator[tuple[str, ast.Module]]:
    """Every Python file of these rooms: its name in the checkout and its tree."""
    with _no_garbage():
        found = [(name, tree_of(name)) for room in rooms for name in files_of(room)]
    yield from found


def files_of(room: str) -> list[str]:
    """Every Python file of a room, by its name in the checkout."""
    return sorted(path.relative_to(CHECKOUT).as_posix() for path in (CHECKOUT / room).rglob("*.py"))


@cache
def tree_of(name: str) -> ast.Module:
    """The tree of one file."""
    return ast.parse((CHECKOUT / name).read_text(encoding="utf-8"), name)


@cache
def walked(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All nodes of a tree, for every rule that looks at each of them."""
    return tuple(ast.walk(tree))


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Two thirds of the time of parsing went to looking for garbage among nodes, of which none becomes garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
