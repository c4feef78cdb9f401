"""Statements are written as they were: more than a thousand of them, by fingerprint."""

from __future__ import annotations

import json

import pytest

from tests.sql_rewrite.statements import FILE, found


@pytest.fixture(scope="module")
def written() -> dict[str, list[str]]:
    """What the statements of all corpora are now."""
    return found()


@pytest.mark.parametrize("corpus", json.loads(FILE.read_text()))
def test_statements_are_what_they_were(corpus: str, written: dict[str, list[str]]) -> None:
    """A change of any statement is seen, by its place in the corpus (on purpose? see tests/sql_rewrite/statements)."""
    kept = json.loads(FILE.read_text())[corpus]
    assert len(kept) >= 40
    assert written[corpus] == kept
