"""Set operations on rows about people: random ones, compared exactly, and bugs that the comparison catches.

Each triple runs one question on data and on a neighbour, in the engine and in plain Python (`interpreter.source_rows`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from privacy.bounds import ContributionBound
from privacy.policy import Other, PublicKeys
from privacy.refusal import Refused
from sql_rewrite import lower_unit_groups, row_unions
from sql_rewrite.lift import lift
from sql_rewrite.relations import Appended, Output, TableRows
from sql_rewrite.scalars import Whole
from tests.audit import harness, unions
from tests.audit.generate import make_scene, owner_of
from tests.audit.harness import Tally, audit_scene
from tests.audit.promises import check_promises
from tests.audit.smallest import audited, scene
from tests.audit.unions import make_union
from tests.audit.violation import Violation
from tests.sql_rewrite.datasets import CLINIC


def _audited(monkeypatch: pytest.MonkeyPatch, seeds: range, *, queries: int) -> Tally:
    monkeypatch.setattr(harness, "make_query", make_union)
    tally = Tally()
    for seed in seeds:
        audit_scene(seed, queries=queries, neighbours=2, tally=tally, shrink=False)
    return tally


@pytest.mark.slow
def test_a_unit_adds_the_same_beside_any_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows unit-locality, sensitivities and totality of a few set operations."""
    tally = _audited(monkeypatch, range(8_000, 8_002), queries=8)
    assert tally.triples == 32
    assert sum(tally.refused.values()) <= 16, tally.refused


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_unit_adds_the_same_beside_any_others_in_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the same of two thousand triples."""
    tally = _audited(monkeypatch, range(8_100, 8_150), queries=20)
    assert tally.triples == 2_000
    assert sum(tally.refused.values()) <= 700, tally.refused


def test_rows_that_repeat_are_kept_by_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the same of INTERSECT ALL and EXCEPT ALL, whose sides have windows."""
    monkeypatch.setattr(unions, "OPERATIONS", ("INTERSECT ALL", "EXCEPT ALL"))
    tally = _audited(monkeypatch, range(8_300, 8_302), queries=4)
    assert tally.triples == 16
    assert sum(tally.refused.values()) <= 10, tally.refused


def _caught(monkeypatch: pytest.MonkeyPatch, *operations: str) -> None:
    monkeypatch.setattr(unions, "OPERATIONS", operations)
    with pytest.raises(Violation):
        _audited(monkeypatch, range(8_200, 8_210), queries=6)


@pytest.mark.slow
def test_a_bound_of_one_branch_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants one row of a unit where each branch has one, as the first table declares."""
    genuine = row_unions._SetOperation._described

    def described(self: Any, union: Any, shown: Any) -> Any:
        found = genuine(self, union, shown)
        rows = all(branch.sources[0].table.one_row for branch in union.branches)
        table = union.branches[0].sources[0].table
        return replace(found, key=table.key, unit_column=table.unit_column) if rows else found

    monkeypatch.setattr(row_unions._SetOperation, "_described", described)
    _caught(monkeypatch, "UNION ALL")


def test_rows_of_one_unit_for_all_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants branches all of whose rows belong to the first unit."""

    def everybody(parts: Any) -> Any:
        first, *others = parts
        unit, *rest = first.outputs
        return Appended((TableRows((Output(Whole(0), unit.name), *rest), first.sources, first.where), *others))

    monkeypatch.setattr(lower_unit_groups, "Appended", everybody)
    _caught(monkeypatch, "UNION ALL")


def test_the_sums_of_bounds_are_those_of_all_branches() -> None:
    """Shows that a branch with one row of a unit counts as one."""
    (people,) = lift("SELECT COUNT(*) FROM people", CLINIC).cores
    assert row_unions._added([people.sources, people.sources]) == ContributionBound(2, 2, 2)


@pytest.mark.slow
def test_what_is_known_of_unions_is_true() -> None:
    """Shows types, NULL, ranges, keys, the unit and numbers of rows of many set operations, on their rows."""
    checked = 0
    for seed in range(8_300, 8_304):
        scene = make_scene(seed)
        owners = {table.name: owner_of(scene, table.name) for table in scene.dataset.tables}
        for number in range(40):
            query = make_union(scene, seed * 1_000 + number)
            try:
                cores = lift(query.sql, scene.dataset, query.parameters).cores
            except Refused:
                continue
            checked += sum(check_promises(core.sources, scene.dataset, scene.rows, owners) for core in cores)
    assert checked > 200


def test_values_that_are_gathered_as_null_have_a_group() -> None:
    """Shows that other values of a column without NULL are in a cell of a union, whoever has some."""
    made = scene([{}, {}], [{"person_id": 0, "k": "a"}, {"person_id": 1, "k": "elsewhere"}])
    visits = made.table("visits")
    other = PublicKeys(("a", "b"), Other(None))
    columns = tuple(replace(c, keys=other, nullable=False) if c.name == "k" else c for c in visits.columns)
    tables = tuple(replace(t, columns=columns) if t is visits else t for t in made.dataset.tables)
    world = replace(made, dataset=replace(made.dataset, tables=tables))
    for operation in ("UNION ALL", "UNION", "INTERSECT", "EXCEPT"):
        select = "SELECT person_id, k FROM visits"
        audited(world, f"SELECT k, COUNT(*) FROM ({select} {operation} {select}) AS t GROUP BY k", 1)
