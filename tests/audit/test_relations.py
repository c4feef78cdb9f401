"""Rows that are computed within each unit, and joins of rows of one unit: random trees, compared exactly.

Each triple runs one question on data and on a neighbour, in the engine and in plain Python (tests/audit/unit_rows.py):
what one unit adds is the same beside any others, whatever the order of rows is, and within what is declared.
"""

from __future__ import annotations

import pytest

from tests.audit import harness
from tests.audit.harness import Tally, audit_scene
from tests.audit.relations import make_relation


def _audited(monkeypatch: pytest.MonkeyPatch, seeds: range, *, queries: int) -> Tally:
    monkeypatch.setattr(harness, "make_query", make_relation)
    tally = Tally()
    for seed in seeds:
        audit_scene(seed, queries=queries, neighbours=2, tally=tally, shrink=False)
    return tally


def test_a_unit_adds_the_same_beside_any_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows unit-locality, sensitivities and totality of a few random trees."""
    tally = _audited(monkeypatch, range(5_000, 5_002), queries=10)
    assert tally.triples == 40
    assert sum(tally.refused.values()) <= 20, tally.refused


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_unit_adds_the_same_beside_any_others_in_many_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the same of two thousand triples."""
    tally = _audited(monkeypatch, range(6_000, 6_050), queries=20)
    assert tally.triples == 2_000
    assert sum(tally.refused.values()) <= 500, tally.refused
