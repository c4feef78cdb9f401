"""The recipe of a route, done on a copy of the checkout: two files, and nothing that promises it can be forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recipes.recipe import blocks, copy_of_checkout, files, run

RECIPE = blocks("route.md")
CODE = {"server/wire/dataset_answers.py", "server/routes/datasets.py"}
KEPT_IN_STEP = {
    "tests/server/test_openapi.py::test_the_kept_document_is_the_applications",
    "tests/server/test_openapi.py::test_the_page_of_the_api_is_complete",
    "tests/server/test_roles.py::test_the_surface_is_the_table",
}
ROLES = "caller: Annotated[Caller, Depends(roles(*Role))]"
SIGHT = "found: Annotated[Dataset, Depends(visible_dataset)]"
LEFT_OUT = (
    (ROLES, "caller: str", "routes that do not say whom they serve"),
    (SIGHT, "dataset: str", "routes that do not ask who may see what they name"),
)
"""What is left out, what stands in its place, and why the server does not start."""
PYTEST = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly")


def test_it_is_two_files_and_what_promises_it() -> None:
    """What the recipe changes is the model, the route, the page and the table of the surface."""
    assert files(RECIPE) == CODE | {"docs/api.md", "tests/server/test_roles.py"}


@pytest.mark.slow
def test_the_new_route_answers_whom_it_may(tmp_path: Path) -> None:
    """Shows that the route answers, that others are told nothing, and that every test of the surface holds for it."""
    copy = copy_of_checkout(tmp_path)
    for block in RECIPE:
        block.apply(copy)
    written = run(copy, "-m", "server.write_openapi", "docs/openapi.json")
    assert written.returncode == 0, written.stderr
    surface = "limits or test_openapi or test_the_surface_is_the_table or applied_route"
    tests = ["tests/recipes/applied_route.py", "tests/server/test_openapi.py", "tests/server/test_roles.py"]
    done = run(copy, *PYTEST, "-k", surface, *tests)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.slow
def test_what_promises_the_route_cannot_be_forgotten(tmp_path: Path) -> None:
    """Shows that the code alone fails the tests of the page, of the document and of the table of roles."""
    copy = copy_of_checkout(tmp_path)
    for block in RECIPE:
        if block.file in CODE:
            block.apply(copy)
    done = run(copy, *PYTEST, *sorted(KEPT_IN_STEP))
    failed = {line.split(" ")[1] for line in done.stdout.splitlines() if line.startswith("FAILED ")}
    assert failed == KEPT_IN_STEP, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("left_out", "instead", "why"), LEFT_OUT)
def test_without_roles_or_sight_nothing_starts(tmp_path: Path, left_out: str, instead: str, why: str) -> None:
    """Shows that a route which does not say whom it serves, or who sees what it names, stops the server by its path."""
    copy = copy_of_checkout(tmp_path)
    for block in RECIPE:
        block.apply(copy)
    module = copy / "server" / "routes" / "datasets.py"
    before, after = module.read_text("utf-8").split("async def get_limits(")
    assert left_out in after
    module.write_text(f"{before}async def get_limits({after.replace(left_out, instead, 1)}", "utf-8")
    done = run(copy, "-m", "server.write_openapi", "docs/openapi.json")
    assert done.returncode != 0
    assert f"{why}: /v1/datasets/{{dataset}}/limits" in done.stderr
