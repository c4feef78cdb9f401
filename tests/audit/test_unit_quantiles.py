"""Medians, quantiles, median distances and modes within a unit: of its rows alone, in whatever order they are."""

from __future__ import annotations

from typing import Any

import pytest

from privacy.policy import ColumnType
from sql_rewrite.dialects.duckdb import DuckDB
from sql_rewrite.layer_values import MostOften, Ranked
from tests.audit import harness, relations
from tests.audit.harness import Tally, audit_scene
from tests.audit.violation import Violation


def _quantile(relation: relations._Relations, name: str) -> tuple[str, Any]:
    """A quantile of a unit's rows; of numbers between which it may lie, whole ones, and with a condition."""
    r = relation.r
    value = r.choice([relation.bounded, relation.whole])(1)
    call = r.choice(
        [
            "MEDIAN({})",
            "QUANTILE_CONT({}, 0.3)",
            "QUANTILE_CONT({}, 0)",
            "QUANTILE_DISC({}, 0.75)",
            "MAD({})",
            "MODE({})",
        ]
    ).format(value)
    filtered = f" FILTER (WHERE {relation.truth(1)})" if r.random() < 0.2 and "MAD" not in call else ""
    return f"GREATEST(-50, LEAST(50, {call}{filtered}))", relation._made(name, ColumnType.NUMBER)


def _audited(monkeypatch: pytest.MonkeyPatch, seeds: range, queries: int) -> Tally:
    monkeypatch.setattr(harness, "make_query", relations.make_relation)
    monkeypatch.setattr(relations._Relations, "_value_of", _quantile)
    monkeypatch.setattr(relations, "SHAPES", ("one",))
    tally = Tally()
    for seed in seeds:
        audit_scene(seed, queries=queries, neighbours=2, tally=tally, shrink=False)
    return tally


def test_quantiles_are_of_the_units_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows what a second meaning in Python makes of the same rows, with NULL, NaN, ties and rows in any order."""
    tally = _audited(monkeypatch, range(5_200, 5_202), 8)
    assert tally.triples == 32
    assert sum(tally.refused.values()) <= 16, tally.refused


def test_a_value_that_depends_on_the_order_of_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants the first of a unit's rows where the middle one is meant."""
    for node in (Ranked, MostOften):
        monkeypatch.setitem(DuckDB._writers, node, lambda dialect, node: f"first({dialect.write(node.value)})")
    with pytest.raises(Violation):
        _audited(monkeypatch, range(5_300, 5_310), 6)
