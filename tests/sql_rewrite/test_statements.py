"""Statements are written as they were: more than a thousand of them, by fingerprint."""

from __future__ import annotations

import json

import pytest

from tests.sql_rewrite.statements import FILE, found


@pytest.mark.sparse(6)
@pytest.mark.parametrize("corpus", json.loads(FILE.read_text()))
def test_statements_are_what_they_were(corpus: str) -> None:
    """What is asked as before is written as before (not so on purpose? see tests/sql_rewrite/statements).

    Nine of ten questions that have a fingerprint are still asked: where corpora changed more, the file is old.
    """
    kept, now = json.loads(FILE.read_text())[corpus], found(corpus)
    asked = kept.keys() & now.keys()
    assert len(asked) >= max(30, 0.9 * len(kept))
    assert {name: now[name] for name in asked} == {name: kept[name] for name in asked}
