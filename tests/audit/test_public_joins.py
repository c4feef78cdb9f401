"""Rows about people beside public tables by columns that are no key: compared exactly, and bugs that this catches."""

from __future__ import annotations

from types import ModuleType

import pytest

from sql_rewrite import join_links, public_joins, row_condition
from tests.audit import harness
from tests.audit import public_joins as generator
from tests.audit.harness import Tally, audit_scene
from tests.audit.public_joins import make_joined, make_public_scene
from tests.audit.violation import Violation


def _audited(monkeypatch: pytest.MonkeyPatch, seeds: range, *, queries: int) -> Tally:
    monkeypatch.setattr(harness, "make_scene", make_public_scene)
    monkeypatch.setattr(harness, "make_query", make_joined)
    tally = Tally()
    for seed in seeds:
        audit_scene(seed, queries=queries, neighbours=2, tally=tally, shrink=False)
    return tally


def test_a_unit_adds_the_same_beside_any_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows unit-locality, sensitivities and totality of a few joins."""
    tally = _audited(monkeypatch, range(9_500, 9_502), queries=10)
    assert tally.triples == 40
    assert sum(tally.refused.values()) <= 20, tally.refused


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_unit_adds_the_same_beside_any_others_in_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the same of two thousand triples."""
    tally = _audited(monkeypatch, range(9_600, 9_650), queries=20)
    assert tally.triples == 2_000
    assert sum(tally.refused.values()) <= 900, tally.refused


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    ("module", "name", "join"),
    [(join_links, "shares", "equal"), (public_joins, "most_met", "equal"), (row_condition, "most_met", "between")],
)
def test_a_row_that_is_said_to_meet_one_row_is_caught(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, join: str
) -> None:
    """Plants a proof that finds one row of the public table where there are several, by columns or by conditions."""
    monkeypatch.setattr(module, name, lambda *_: 1)
    monkeypatch.setattr(generator, "JOINS", (join,))
    with pytest.raises(Violation):
        _audited(monkeypatch, range(9_700, 9_710), queries=6)
