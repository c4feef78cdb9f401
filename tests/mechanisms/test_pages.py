"""Every measurement has its proof page, and every page its five parts."""

from __future__ import annotations

from pathlib import Path

import pytest

import mechanisms
from mechanisms.families import MEASUREMENTS

ROOM = Path(mechanisms.__file__).parent


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_each_measurement_has_a_proof_page(name: str) -> None:
    """Statement, assumptions, proof, what differs in our code, what is not covered."""
    text = (ROOM / f"{name}.md").read_text()
    for part in (
        "**Statement.**",
        "**Assumptions.**",
        "**Proof.**",
        "**What differs in our code.**",
        "**Not covered.**",
    ):
        assert part in text


def test_the_readme_names_every_other_page() -> None:
    """The page of a measurement has its name; the README says so, and names the pages that are shared."""
    readme = (ROOM / "README.md").read_text()
    shared = {page.stem for page in ROOM.glob("*.md")} - {"README", *MEASUREMENTS}
    assert shared
    assert "There is one for each measurement, under its name" in readme
    assert [name for name in shared if f"`{name}.md`" not in readme] == []


@pytest.mark.parametrize("name", ["moments", "products", "rounding", "shown_counts"])
def test_shared_pages(name: str) -> None:
    """The pages that several measurements rest on state, prove and limit their claims too."""
    text = (ROOM / f"{name}.md").read_text()
    for part in ("**Statement.**", "**Proof.**", "**Not covered.**"):
        assert part in text
