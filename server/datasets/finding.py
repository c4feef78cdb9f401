"""Findings about a dataset file: errors keep the dataset from being attached, warnings do not.

ValueError
  DatasetFileRefused    a dataset file with at least one error; carries every finding

The `field` of a finding is the path in the file, joined with dots; its `position` has line and column, and is None when
the finding is about the file as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from privacy.refusal import Finding

__all__ = ["ERROR", "WARNING", "DatasetFileRefused", "Path", "is_error", "listed", "paragraph", "severity"]

Path = tuple[str | int, ...]
"""Where something is in the file, from the outside in: ("tables", "visits", "columns", "cost", "bounds", 0)."""

ERROR = "dataset_refused"
"""The code of what keeps a dataset from being attached, also over HTTP."""

WARNING = "dataset_doubtful"
"""The code of what is allowed, and probably not meant."""


def is_error(finding: Finding) -> bool:
    """Whether the finding keeps the dataset from being attached."""
    return finding.code == ERROR


def severity(finding: Finding) -> str:
    """The finding's severity, "error" or "warning"."""
    return "error" if is_error(finding) else "warning"


def listed(finding: Finding) -> dict[str, str | int | None]:
    """The finding as JSON for scripts."""
    at = finding.position
    return {
        "severity": severity(finding),
        "place": finding.field or "",
        "line": None if at is None else at.line,
        "column": None if at is None else at.column,
        "what": finding.what,
        "why": finding.why,
        "instead": " ".join(finding.instead),
    }


def paragraph(finding: Finding) -> str:
    """The finding as three lines for people."""
    at = finding.position
    position = "" if at is None else f"line {at.line}, column {at.column}: "
    field = f" ({finding.field})" if finding.field else ""
    head = f"{severity(finding)}: {position}{finding.what}{field}"
    return "\n".join((head, f"  Why: {finding.why}", *(f"  Instead: {line}" for line in finding.instead)))


class DatasetFileRefused(ValueError):
    """A dataset file that cannot be used. Carries every finding, warnings too."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = tuple(findings)
        self.errors = tuple(finding for finding in self.findings if is_error(finding))
        assert self.errors, "a refused file has at least one error"
        more = f" (and {len(self.errors) - 1} more)" if len(self.errors) > 1 else ""
        super().__init__(self.errors[0].what + more)
