"""The pages on statistics and bounds, tried on copies: a new kind is asked for in just the files that a page lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from privacy.statistic import StatisticKind
from sql_rewrite.statistics.counts import Units
from sql_rewrite.statistics.kind_sums import KindSums
from sql_rewrite.statistics.registry import sums_of
from sql_rewrite.statistics.totals import Totals
from tests.recipes.recipe import CHECKOUT, copy_of_checkout, typed

KIND = """    PRODUCT = DescribedKind(
        stored="product",
        of_values=True,
        beyond="its whole product",
        counts=None,
        row=RowAdds.STEPS,
        encoded=Encoded.ALWAYS,
        gives=Gives.ITSELF,
        estimated=None,
    )

    described: DescribedKind
"""
BOUND = (
    ("sql_rewrite/contribution.py", '    "contribution_of",\n', '    "OwnBound",\n    "contribution_of",\n'),
    (
        "sql_rewrite/contribution.py",
        "def contribution_of(",
        "class OwnBound:\n    pass\n\n\ndef contribution_of(",
    ),
    (
        "sql_rewrite/bounded.py",
        "Contribution, NormedContribution\n",
        "Contribution, NormedContribution, OwnBound\n",
    ),
    (
        "sql_rewrite/bounded.py",
        "    contribution: Contribution |",
        "    contribution: OwnBound | Contribution |",
    ),
)
ROOMS = ("privacy", "sql_rewrite", "mechanisms", "engines", "accountant", "server")
LISTED = re.compile(r"^\| `([a-z_/]+\.py)` \| ", re.MULTILINE)
ASKED = re.compile(r"^- `([a-z_/]+\.py)`$", re.MULTILINE)


def asked_for(copy: Path, kind: str) -> list[str]:
    """The files that do not know a kind, by mypy: it finds nothing else in the copy."""
    checked = typed(copy, *ROOMS)
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    assert all("assert_never" in error and kind in error for error in errors), checked.stdout
    return sorted({error.split(":")[0] for error in errors})


def listed(page: str, found: re.Pattern[str] = LISTED) -> list[str]:
    """The files of the table of a recipe, or of its list."""
    return sorted(found.findall((CHECKOUT / "docs" / "recipes" / page).read_text("utf-8")))


def test_no_sums_of_a_kind_may_leave_a_method_out() -> None:
    """Shows that nothing of what a kind sums has a default: a new one is asked for all of it."""
    methods = {name for name, value in vars(KindSums).items() if callable(value) and not name.startswith("_")}
    assert methods == set(KindSums.__abstractmethods__)
    assert len(methods) == 12
    assert {type(sums_of(kind)) for kind in StatisticKind} >= {Units, Totals}


@pytest.mark.slow
def test_mypy_lists_the_files_of_the_page(tmp_path: Path) -> None:
    """Shows that no place takes a kind that it does not know, and that the figure of the page is true."""
    copy = copy_of_checkout(tmp_path)
    module = copy / "privacy" / "statistic_kind.py"
    text = module.read_text("utf-8")
    assert text.count("    described: DescribedKind\n") == 1
    module.write_text(text.replace("    described: DescribedKind\n", KIND), "utf-8")
    assert asked_for(copy, "StatisticKind.PRODUCT") == listed("statistic.md", ASKED)


@pytest.mark.nightly
def test_mypy_lists_the_files_of_a_new_bound(tmp_path: Path) -> None:
    """Shows the same of a further way to bound what one unit adds."""
    copy = copy_of_checkout(tmp_path)
    for name, old, new in BOUND:
        module = copy / name
        text = module.read_text("utf-8")
        assert text.count(old) == 1, (name, old)
        module.write_text(text.replace(old, new), "utf-8")
    assert asked_for(copy, "OwnBound") == listed("bound.md")
