"""Every measurement has its proof page, and every page its five parts."""

from __future__ import annotations

from pathlib import Path

import pytest

import mechanisms
from mechanisms.families import MEASUREMENTS

ROOM = Path(mechanisms.__file__).parent


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_each_measurement_has_a_proof_page(name: str) -> None:
    """Statement, assumptions, proof, what differs in our code, what is not covered; named in the README."""
    text = (ROOM / f"{name}.md").read_text()
    for part in (
        "**Statement.**",
        "**Assumptions.**",
        "**Proof.**",
        "**What differs in our code.**",
        "**Not covered.**",
    ):
        assert part in text
    assert f"`{name}.md`" in (ROOM / "README.md").read_text()


@pytest.mark.parametrize("name", ["moments", "rounding", "shown_counts"])
def test_shared_pages(name: str) -> None:
    """The pages that several measurements rest on state, prove and limit their claims too."""
    text = (ROOM / f"{name}.md").read_text()
    for part in ("**Statement.**", "**Proof.**", "**Not covered.**"):
        assert part in text
