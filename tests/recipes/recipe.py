"""Recipes: pages whose blocks say where their lines go, so that a test can do what the page tells a reader to do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(
    r'^(?P<fence>```|~~~)\w+ file=(?P<file>\S+) (?:(?P<side>before|after|instead)="(?P<anchor>[^\n]*?)"|new)'
    r"(?: indent=(?P<indent>\d+))?\n(?P<lines>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_COPIED = (
    "privacy", "sql_rewrite", "mechanisms", "engines", "accountant", "server", "migrations", "tests", "schemas", "docs",
    "benchmarks",
)  # fmt: skip


@dataclass(frozen=True)
class Block:
    """Lines that a recipe adds to a file, before, after or instead of its only line that is the anchor.

    A file without an anchor is new. The page shows code without the indentation that it has in the file, and without
    the blank lines behind it.
    """

    file: str
    side: str | None
    anchor: str | None
    lines: str

    def apply(self, checkout: Path) -> None:
        """Writes the lines. Fails where the anchor is not one line of the file."""
        path = checkout / self.file
        if self.anchor is None:
            assert not path.exists(), f"{self.file} is there already"
            path.write_text(self.lines, "utf-8")
            return
        text = path.read_text("utf-8")
        assert text.splitlines().count(self.anchor) == 1, f"{self.file} has no single line {self.anchor!r}"
        anchor = f"{self.anchor}\n"
        place = f"\n{text}".index(f"\n{anchor}")
        begin = place + (len(anchor) if self.side == "after" else 0)
        end = place + (0 if self.side == "before" else len(anchor))
        path.write_text(text[:begin] + self.lines + text[end:], "utf-8")

    def take_away(self, checkout: Path) -> None:
        """Undoes `apply`. Fails where the lines are not there once, beside the anchor, as the page has them."""
        assert self.anchor is not None
        path = checkout / self.file
        text = f"\n{path.read_text('utf-8')}"
        anchor = f"{self.anchor}\n"
        applied = {"before": self.lines + anchor, "after": anchor + self.lines, "instead": self.lines}[self.side or ""]
        assert text.count(f"\n{applied}") == 1, f"{self.file} does not have the recipe's lines"
        path.write_text(text.replace(f"\n{applied}", f"\n{anchor}")[1:], "utf-8")


def blocks(page: str) -> tuple[Block, ...]:
    """The blocks of a recipe, in their order."""
    text = (CHECKOUT / "docs" / "recipes" / page).read_text("utf-8")
    return tuple(
        Block(
            found["file"],
            found["side"],
            found["anchor"],
            _placed(found["lines"], indent=int(found["indent"] or 0), before=found["side"] == "before"),
        )
        for found in _BLOCK.finditer(text)
    )


def _placed(lines: str, *, indent: int, before: bool) -> str:
    """Lines as they stand in a file: indented, and before what follows them with the blank lines of the style."""
    blank = ("\n" if indent else "\n\n") if before else ""
    return textwrap.indent(lines, " " * indent) + blank


def copy_of_checkout(folder: Path) -> Path:
    """The rooms, their tests and pages as a checkout of its own."""
    copy = folder / "checkout"
    copy.mkdir()
    shutil.copy(CHECKOUT / "pyproject.toml", copy)
    left_out = shutil.ignore_patterns("*.pyc.*", "node_modules", "*.tar.gz")
    for name in _COPIED:
        shutil.copytree(CHECKOUT / name, copy / name, ignore=left_out)
    return copy


def run(copy: Path, *arguments: str, within_seconds: int = 250) -> subprocess.CompletedProcess[str]:
    """Python in a copy of the checkout, which imports the rooms of the copy and no others."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env={**inherited, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=within_seconds,
        check=False,
    )


def typed(copy: Path, *checked: str) -> subprocess.CompletedProcess[str]:
    """What mypy says of rooms or files of a copy.

    What lint has checked is checked again only where it changed: mypy compares contents.
    """
    kept = CHECKOUT / ".mypy_cache"
    if kept.is_dir():
        shutil.copytree(kept, copy / ".mypy_cache")
    return run(copy, "-m", "mypy", "--cache-dir", ".mypy_cache", *checked)


def files(applied: Collection[Block]) -> set[str]:
    """The files that blocks change."""
    return {block.file for block in applied}
