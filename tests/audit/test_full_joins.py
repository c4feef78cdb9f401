"""FULL JOIN on the unit: random questions, compared exactly with plain Python on data and on neighbours."""

from __future__ import annotations

import random

import pytest
from sqlglot import exp

from sql_rewrite import full_joins
from tests.audit import harness, relations
from tests.audit.generate import Query, Scene
from tests.audit.harness import Tally, audit_scene
from tests.audit.relations import _Relations
from tests.audit.violation import Violation


class _Full(_Relations):
    def _join(self) -> str:
        return "FULL JOIN"

    def _member(self, letter: str) -> str:
        return f"{letter}.person_id IS {self.r.choice(['', 'NOT '])}NULL"


def _audited(monkeypatch: pytest.MonkeyPatch, seeds: range, *, queries: int) -> Tally:
    def make(scene: Scene, seed: int) -> Query:
        return _Full(random.Random(seed), scene.dataset).question()

    monkeypatch.setattr(harness, "make_query", make)
    monkeypatch.setattr(relations, "SHAPES", ("two", "stored"))
    tally = Tally()
    for seed in seeds:
        audit_scene(seed, queries=queries, neighbours=2, tally=tally, shrink=False)
    return tally


@pytest.mark.slow
def test_a_unit_adds_the_same_beside_any_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows unit-locality, sensitivities and totality of a few full joins."""
    tally = _audited(monkeypatch, range(5_200, 5_202), queries=6)
    assert tally.triples == 24
    assert sum(tally.refused.values()) <= 14, tally.refused


def test_rows_of_both_branches_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants a right side that keeps the rows of units which have rows on the left."""
    genuine = full_joins._Outer.write

    def both_sides(self: full_joins._Outer) -> None:
        genuine(self)
        union = self._node.args["from_"].this.this
        assert union.expression.args["where"].this.find(exp.Exists)
        union.expression.set("where", None)

    monkeypatch.setattr(full_joins._Outer, "write", both_sides)
    grouped = "SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id"
    text = f"SELECT COUNT(*) AS m0 FROM ({grouped}) AS a FULL JOIN people AS p ON a.person_id = p.person_id"
    monkeypatch.setattr(harness, "make_query", lambda scene, seed: Query(text, {}))
    with pytest.raises(Violation):
        audit_scene(7_200, queries=2, neighbours=2, tally=Tally(), shrink=False)
