"""What runs at night only does not rot by day: its modules are imported by every run, and read by mypy.

Every test is collected, the nightly ones too (tests/conftest.py marks them to be skipped), so their imports hold.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HELPERS = {"tests.journey.real", "tests.journey.timing"}
"""Modules without tests that are made for nightly ones."""


def nightly() -> set[str]:
    """The modules with a test marked nightly."""
    found = set()
    for path in ROOT.glob("tests/**/*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        if any(
            isinstance(node, ast.FunctionDef)
            and any(word in ast.unparse(one) for one in node.decorator_list for word in ("mark.nightly", "by_day="))
            for node in ast.walk(tree)
        ):
            found.add(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return found


@pytest.mark.slow
def test_every_nightly_test_is_read_by_mypy() -> None:
    """Lint checks the types of what they call, and of the helpers that no other test calls."""
    checked = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]["modules"]
    assert sorted(nightly() | HELPERS) == checked


@pytest.mark.slow
def test_no_nightly_test_hides_the_journey_from_mypy() -> None:
    """`journey: Any = services.journey` made two of them rot: mypy believed whatever they called."""
    for module in nightly() | HELPERS:
        tree = ast.parse((ROOT / (module.replace(".", "/") + ".py")).read_text("utf-8"))
        hidden = [
            ast.unparse(node)
            for node in ast.walk(tree)
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "Any"
        ]
        assert not hidden, f"{module}: {hidden}"
