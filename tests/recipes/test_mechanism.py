"""The recipe of a mechanism, done on a copy of the checkout: three files and a page, and what it charges is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recipes.recipe import blocks, copy_of_checkout, files, run

RECIPE = blocks("mechanism.md")
CODE = {"privacy/events/approximate.py", "mechanisms/measurements/geometric.py", "mechanisms/families.py"}
PAGE = "mechanisms/geometric.md"
EVENTS = "tests/privacy/test_events.py"
PYTEST = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly")


def test_it_is_three_files_and_a_page() -> None:
    """What the recipe changes is the event, the measurement, the entry, the proof, and the suite of events."""
    assert files(RECIPE) == CODE | {PAGE, EVENTS}


@pytest.mark.slow
def test_the_new_mechanism_draws_what_it_charges(tmp_path: Path) -> None:
    """Shows that geometric noise is asked for over the whole way, has its law, and that every suite takes it in."""
    copy = copy_of_checkout(tmp_path)
    for block in RECIPE:
        block.apply(copy)
    written = run(copy, "-m", "server.write_openapi", "docs/openapi.json")
    assert written.returncode == 0, written.stderr
    tests = ["tests/recipes/applied_mechanism.py", "tests/test_families.py", EVENTS, "tests/mechanisms/test_pages.py"]
    done = run(copy, *PYTEST, *tests, "tests/server/test_openapi.py::test_the_kept_document_is_the_applications")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.slow
def test_neither_the_page_nor_the_case_can_be_forgotten(tmp_path: Path) -> None:
    """Shows that the code alone fails the test of the proof pages and the suite of events."""
    copy = copy_of_checkout(tmp_path)
    for block in RECIPE:
        if block.file in CODE:
            block.apply(copy)
    done = run(copy, *PYTEST, "tests/mechanisms/test_pages.py", f"{EVENTS}::test_every_kind_has_a_sample")
    failed = {line.split(" ")[1] for line in done.stdout.splitlines() if line.startswith("FAILED ")}
    assert failed == {
        "tests/mechanisms/test_pages.py::test_each_measurement_has_a_proof_page[geometric]",
        f"{EVENTS}::test_every_kind_has_a_sample",
    }
