"""The house words: what pages, comments, docstrings and messages never say.

The list is the table under "Never" in CONTRIBUTING.md; this module has no list of its own. An expression stands for
whole words, in any case and over line ends; `...` in it stands for one word. Tests, and the changelog of what was
released, are not read.

    python -m tests.words        each place with the expression and what to write; exit code 1 when there is one
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Breach", "breaches", "never"]

ROOT = Path(__file__).resolve().parents[1]
_SUFFIXES = (".py", ".md", ".toml", ".yml", ".html")
_LEFT_OUT = ("tests/", "CONTRIBUTING.md", "CHANGELOG.md")
_ROW = re.compile(r"^\| (.+?) \| (.+?) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Breach:
    """An expression that is never used, where it was, and what to write."""

    line: int
    found: str
    instead: str


def never(page: str) -> dict[str, str]:
    """What the page forbids, with what it says to write. Errors: ValueError when it has no such table."""
    _, heading, table = page.partition("\n| never | write |\n|---|---|\n")
    if not heading:
        raise ValueError("CONTRIBUTING.md has no table of what is never written")
    return {said: instead for row, instead in _ROW.findall(table.partition("\n\n")[0]) for said in row.split(", ")}


def breaches(text: str, forbidden: dict[str, str]) -> Iterator[Breach]:
    """Every place of the text where something stands that is never written."""
    for said, instead in forbidden.items():
        # A line may end within an expression; the next one may begin with the mark of a comment.
        words = [r"\w+" if word == "..." else re.escape(word) for word in said.split()]
        for match in re.finditer(r"\b" + r"(?:\s|#)+".join(words) + r"\b", text, re.IGNORECASE):
            yield Breach(text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), instead)


def main() -> int:
    """Reports every breach in the files that git tracks."""
    forbidden = never((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    count = 0
    for name in filter(None, listed.split("\0")):
        if name.startswith(_LEFT_OUT) or not (name.endswith(_SUFFIXES) or name == "noisegate"):
            continue
        path = ROOT / name
        if not path.is_file():
            continue
        for breach in breaches(path.read_text("utf-8"), forbidden):
            count += 1
            print(f'{name}:{breach.line}: "{breach.found}": write {breach.instead}')
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
