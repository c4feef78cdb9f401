"""Findings about a dataset file.

ValueError
  DatasetFileRefused    a dataset file with at least one error; carries every finding
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["DatasetFileRefused", "Path", "Problem"]

Path = tuple[str | int, ...]
"""Where something stands in the file, from the outside in: ("tables", "visits", "columns", "cost", "bounds", 0)."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding in a dataset file: where, what, why, and what to write instead.

    `place` is the path in the file, joined with dots; `line` and `column` count from 1 and are None when the finding
    is about the file as a whole. An "error" keeps the dataset from being attached, a "warning" does not.
    """

    severity: Literal["error", "warning"]
    place: str
    line: int | None
    column: int | None
    what: str
    why: str
    instead: str

    def __str__(self) -> str:
        position = "" if self.line is None else f"line {self.line}, column {self.column}: "
        place = f" ({self.place})" if self.place else ""
        return f"{self.severity}: {position}{self.what}{place}\n  Why: {self.why}\n  Instead: {self.instead}"


class DatasetFileRefused(ValueError):
    """A dataset file that cannot be used. Carries every finding, warnings too."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        errors = [problem for problem in self.problems if problem.severity == "error"]
        assert errors, "a refused file has at least one error"
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(errors[0].what + more)
