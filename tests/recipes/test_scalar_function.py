"""The recipe of a scalar function, done on a copy of the checkout: one file, its test and its line of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from privacy.refusal import Refused
from sql_rewrite.lift import lift
from tests.recipes.recipe import blocks, copy_of_checkout, files, run, typed
from tests.sql_rewrite.datasets import CLINIC

RECIPE = blocks("scalar_function.md")
DESCRIPTION = "sql_rewrite/functions/powers.py"
TEST = "tests/sql_rewrite/test_functions.py"
OTHERS = ("tests/sql_rewrite/test_cost.py", "tests/test_docs.py", "tests/sql_rewrite/test_statements.py")
CHOSEN = "cbrt or CBRT or every_operator or every_function_is or give_the_values or null_rules or statements_are"
"""What is tested of the function, and of all functions together; the others are what they were."""


def test_it_is_one_file_its_test_and_its_page() -> None:
    """What the recipe changes is the description, the cases of the test and the line of the documentation."""
    assert files(RECIPE) == {DESCRIPTION, TEST, "docs/functions.md"}


def test_the_function_is_not_there_without_the_recipe() -> None:
    """Shows that the recipe adds something: this checkout refuses the function by its name."""
    with pytest.raises(Refused) as refused:
        lift("SELECT AVG(CBRT(income)) FROM people", CLINIC)
    (finding,) = refused.value.findings
    assert finding.code == "unsupported_function"
    assert "CBRT()" in finding.what


@pytest.mark.slow
def test_the_new_function_is_answered(tmp_path: Path) -> None:
    """Shows that AVG(CBRT(age)) is asked over the whole way, and that what is tested of each function holds for it."""
    copy = copy_of_checkout(tmp_path)
    for block in RECIPE:
        block.apply(copy)
    options = ("-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly")
    applied = run(copy, "-m", "pytest", *options, "tests/recipes/applied_scalar_function.py")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert " passed" in applied.stdout
    listed = run(copy, "-m", "pytest", *options, "-k", CHOSEN, TEST, *OTHERS)
    assert listed.returncode == 0, listed.stdout + listed.stderr
    assert " passed" in listed.stdout
    checked = typed(copy, DESCRIPTION)
    assert checked.returncode == 0, checked.stdout + checked.stderr
