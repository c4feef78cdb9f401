"""Rows that are computed within each unit, and joins of rows of one unit: random trees, compared exactly.

Each triple runs one question on data and on a neighbour, in the engine and in plain Python (tests/audit/unit_rows.py):
what one unit adds is the same beside any others, whatever the order of rows is, and within what is declared.
"""

from __future__ import annotations

from typing import Any

import pytest

from privacy.policy import ColumnType
from sql_rewrite import contribution, lower_unit_groups, unit_facts
from sql_rewrite.dialects.duckdb import DuckDB
from sql_rewrite.layer_values import EndOf
from sql_rewrite.relations import Grouped, JoinOn, Output
from sql_rewrite.scalars import Column, Named
from tests.audit import harness, relations
from tests.audit.harness import Tally, audit_scene
from tests.audit.relations import make_relation
from tests.audit.violation import Violation


def _audited(monkeypatch: pytest.MonkeyPatch, seeds: range, *, queries: int) -> Tally:
    monkeypatch.setattr(harness, "make_query", make_relation)
    tally = Tally()
    for seed in seeds:
        audit_scene(seed, queries=queries, neighbours=2, tally=tally, shrink=False)
    return tally


@pytest.mark.slow
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


def _at_an_end(relation: relations._Relations, name: str) -> tuple[str, Any]:
    """The value of a unit's rows where another one is least or greatest; few values of it, so that many are equal."""
    r = relation.r
    maker, kind = r.choice(
        [(relation.bounded, ColumnType.NUMBER), (relation.words, ColumnType.TEXT), (relation.day, ColumnType.DATE)]
    )
    by = r.choice([relation.whole, relation.real, relation.words, relation.day, relation.truth])(0)
    filtered = f" FILTER (WHERE {relation.truth(1)})" if r.random() < 0.2 else ""
    return f"{r.choice(['ARG_MAX', 'ARG_MIN'])}({maker(1)}, {by}){filtered}", relation._made(name, kind)


def test_values_at_an_end_are_of_the_units_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the same of ARG_MAX and ARG_MIN within a unit, with NULL, NaN, ties and rows in any order."""
    monkeypatch.setattr(relations._Relations, "_value_of", _at_an_end)
    monkeypatch.setattr(relations, "SHAPES", ("one",))
    tally = _audited(monkeypatch, range(5_100, 5_102), queries=8)
    assert tally.triples == 32
    assert sum(tally.refused.values()) <= 16, tally.refused


def test_a_value_at_an_end_without_an_order_of_ties_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants the engine's own ARG_MAX, which takes the first of equal rows."""
    monkeypatch.setattr(relations._Relations, "_value_of", _at_an_end)

    def first(dialect: Any, node: EndOf) -> str:
        name, value = "MIN" if node.which == "least" else "MAX", dialect.write(node.value)
        return f"arg_{name}({value}, ({value})[1])" if "row(" in value else f"{name}({value})"

    monkeypatch.setitem(DuckDB._writers, EndOf, first)
    _caught(monkeypatch, "one")


def _caught(monkeypatch: pytest.MonkeyPatch, *shapes: str) -> str:
    """What the audit says of a planted bug, over questions of these shapes."""
    monkeypatch.setattr(relations, "SHAPES", shapes)
    with pytest.raises(Violation) as caught:
        _audited(monkeypatch, range(7_000, 7_010), queries=6)
    return str(caught.value)


def test_bounds_of_the_first_table_alone_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants a bound that forgets that joins on the unit multiply rows."""
    monkeypatch.setattr(contribution, "contribution_bound", lambda sources: unit_facts.contribution_bound(sources[:1]))
    _caught(monkeypatch, "left")


def test_groups_without_the_unit_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants groups that hold rows of several units."""
    genuine = Grouped

    def grouped(rows: Any, alias: str, shown: Any, by: Any, outputs: Any) -> Any:
        unit = EndOf("least", Named("u"))
        others = tuple(name for name in by if name not in ("u", "s"))
        return genuine(rows, alias, tuple(name for name in shown if name != "u"), others, (Output(unit, "u"), *outputs))

    monkeypatch.setattr(lower_unit_groups, "Grouped", grouped)
    _caught(monkeypatch, "one")


def test_a_join_of_other_units_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants a join that puts rows of all units together."""
    genuine = JoinOn

    def anybody(child: Any, parent: Any, *, outer: bool, also: Any) -> Any:
        return genuine(Column(child.relation, "unit$id"), Column(child.relation, "unit$id"), outer=outer, also=also)

    monkeypatch.setattr(lower_unit_groups, "JoinOn", anybody)
    _caught(monkeypatch, "pairs")


def test_a_nested_query_that_looks_at_others_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants groups that are found by their other keys alone, whoever they belong to."""
    genuine = JoinOn

    def anybody(child: Any, parent: Any, *, outer: bool, also: Any) -> Any:
        (child, parent), *rest = also or ((child, parent),)
        return genuine(child, parent, outer=outer, also=tuple(rest))

    monkeypatch.setattr(lower_unit_groups, "JoinOn", anybody)
    _caught(monkeypatch, "others")
