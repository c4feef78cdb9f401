"""The clinic in DuckDB, and what reads texts about it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.duck import Clinic, Reader


@pytest.fixture(scope="module")
def clinic() -> Iterator[Clinic]:
    """The clinic's rows in DuckDB."""
    made = Clinic()
    yield made
    made.close()


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    """What reads texts before anything is charged."""
    made = Reader()
    yield made
    made.close()
