"""The recipe of an aggregate, done on a copy of the checkout: two files and a page, and its numbers are true."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recipes.recipe import blocks, copy_of_checkout, files, run

RECIPE = blocks("aggregate.md")
DESCRIPTION = "privacy/aggregate.py"


def test_it_is_two_files_and_a_page() -> None:
    """What the recipe changes is the description, the estimator and the line of the documentation."""
    assert files(RECIPE) == {DESCRIPTION, "mechanisms/estimators/moments.py", "docs/sql.md"}


@pytest.mark.slow
def test_the_new_aggregate_is_answered_with_its_own_numbers(tmp_path: Path) -> None:
    """Shows that SEM(age) is asked over the whole way and means SEM, with an error and an interval that hold."""
    copy = copy_of_checkout(tmp_path)
    for block in RECIPE:
        block.apply(copy)
    tests = ["tests/recipes/applied_aggregate.py", "tests/test_aggregates.py"]
    done = run(copy, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly", *tests)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.parametrize("module", ["mechanisms.estimates", "server.answer"])
def test_without_an_estimator_nothing_starts(tmp_path: Path, module: str) -> None:
    """Shows that an aggregate which is only described stops the import, by name: no other's mathematics answers it."""
    copy = copy_of_checkout(tmp_path)
    for block in RECIPE:
        if block.file == DESCRIPTION:
            block.apply(copy)
    done = run(copy, "-c", f"import {module}")
    assert done.returncode != 0
    assert "no estimator is registered for the aggregates: STANDARD_ERROR" in done.stderr
