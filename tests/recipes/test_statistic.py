"""The page on statistics, tried on a copy: a new kind is asked for in exactly the files that the page lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.recipes.recipe import CHECKOUT, copy_of_checkout, run

KIND = """    PRODUCT = DescribedKind(stored="product", of_values=True, beyond="its whole product")

    described: DescribedKind
"""
LISTED = re.compile(r"^\| `([a-z_/]+\.py)` \| ", re.MULTILINE)


@pytest.mark.slow
def test_mypy_lists_the_files_of_the_page(tmp_path: Path) -> None:
    """Shows that no place takes a kind that it does not know, and that the figure of the page is true."""
    copy = copy_of_checkout(tmp_path)
    module = copy / "privacy" / "statistic_kind.py"
    text = module.read_text("utf-8")
    assert text.count("    described: DescribedKind\n") == 1
    module.write_text(text.replace("    described: DescribedKind\n", KIND), "utf-8")
    rooms = ("privacy", "sql_rewrite", "mechanisms", "engines", "accountant", "server")
    checked = run(copy, "-m", "mypy", "--no-incremental", *rooms)
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    assert all("assert_never" in error and "StatisticKind.PRODUCT" in error for error in errors), checked.stdout
    page = (CHECKOUT / "docs" / "recipes" / "statistic.md").read_text("utf-8")
    assert sorted({error.split(":")[0] for error in errors}) == sorted(LISTED.findall(page))
