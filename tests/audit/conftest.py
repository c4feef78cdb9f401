"""The audit reads every true sum in Python, of two or three sides: it draws quantiles among fewer places."""

from __future__ import annotations

import pytest

from sql_rewrite import ranks

PLACES = 2**12
"""As many as a tree has of one group: each of its places is one. `test_drawn.py` divides them."""


@pytest.fixture(autouse=True)
def fewer_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a unit changes is the same with any number of places."""
    monkeypatch.setattr(ranks, "_DRAWN_PLACES", PLACES)
