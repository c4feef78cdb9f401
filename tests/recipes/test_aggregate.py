"""The recipe of an aggregate, whose blocks are SEM as it is in the code: two files and a page.

What holds for every aggregate, its own numbers among that, is tested where the others are
(tests/mechanisms/test_standard_error.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recipes.recipe import CHECKOUT, blocks, copy_of_checkout, files, run
from tests.thinned import slow_ones

RECIPE = blocks("aggregate.md")
DESCRIPTION = "privacy/aggregate.py"
CORPUS = "tests/hostile/functions.sql"
PYTEST = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly")
MISTAKES = (
    # The variance over n rows without the n: what any other moments would say of it.
    ("np.minimum(found.values / count, 0.25)", "found.values", "tests/mechanisms/test_release.py"),
    ("low = np.where(there, np.minimum(found.lows / most, squared), 0.0)", "low = 0.99 * squared",
     "tests/mechanisms/test_coverage.py"),
    ("error = np.minimum(error, 0.25)", "error = np.minimum(error, 0.25) / 2", "tests/mechanisms/test_calibrate.py"),
    ("float(values.std() / math.sqrt(values.size))", "float(values.std() / values.size)",
     "tests/test_aggregates.py -k STANDARD_ERROR"),
)  # fmt: skip
"""What is written in the estimator, what is put there instead, and the test that finds it."""


def without(folder: Path) -> Path:
    """A copy of the checkout from which what the recipe adds was taken away."""
    copy = copy_of_checkout(folder)
    for block in reversed(RECIPE):
        block.take_away(copy)
    return copy


def test_it_is_two_files_and_a_page() -> None:
    """What the recipe changes is the description, the estimator and the line of the documentation.

    And the one text of the corpus that was refused because nothing had this name.
    """
    assert files(RECIPE) == {DESCRIPTION, "mechanisms/estimators/moments.py", "docs/sql.md"} | {CORPUS}


def test_it_is_how_the_code_came_to_be(tmp_path: Path) -> None:
    """Shows that following the recipe where its aggregate is not known gives the files as they are."""
    copy = without(tmp_path)
    for block in RECIPE:
        block.apply(copy)
    for file in files(RECIPE):
        assert (copy / file).read_text("utf-8") == (CHECKOUT / file).read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(("right", "wrong", "test"), MISTAKES)
def test_a_mistake_in_the_new_estimator_is_found(tmp_path: Path, right: str, wrong: str, test: str) -> None:
    """Shows that the suites hold the new aggregate to its truth: each mistake in its estimator fails one of them."""
    copy = copy_of_checkout(tmp_path)
    module = copy / "mechanisms" / "estimators" / "moments.py"
    text = module.read_text("utf-8")
    assert text.count(right) == 1
    module.write_text(text.replace(right, wrong), "utf-8")
    done = run(copy, *PYTEST, "-x", *test.split())
    assert done.returncode == 1, done.stdout + done.stderr
    assert "standard_error" in done.stdout


@pytest.mark.parametrize("module", slow_ones(["server.answer"], ["mechanisms.estimates", "server.answer"]))
def test_without_an_estimator_nothing_starts(tmp_path: Path, module: str) -> None:
    """Shows that an aggregate which is only described stops the import, by name: no other's mathematics answers it."""
    copy = without(tmp_path)
    for block in RECIPE:
        if block.file == DESCRIPTION:
            block.apply(copy)
    done = run(copy, "-c", f"import {module}")
    assert done.returncode != 0
    assert "no estimator is registered for the aggregates: STANDARD_ERROR" in done.stderr
