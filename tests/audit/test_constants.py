"""Rows about people beside rows of constants: random joins, compared exactly, and a bug that the comparison catches."""

from __future__ import annotations

import pytest

from privacy.policy import ColumnType
from sql_rewrite import constant_outer, row_condition
from sql_rewrite.expressions import Literal
from sql_rewrite.functions import build
from tests.audit import constants, harness
from tests.audit.constants import make_constants
from tests.audit.harness import Tally, audit_scene
from tests.audit.violation import Violation
from tests.thinned import slow_ones


def _audited(monkeypatch: pytest.MonkeyPatch, seeds: range, *, queries: int) -> Tally:
    monkeypatch.setattr(harness, "make_query", make_constants)
    tally = Tally()
    for seed in seeds:
        audit_scene(seed, queries=queries, neighbours=2, tally=tally, shrink=False)
    return tally


def test_a_unit_adds_the_same_beside_any_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows unit-locality, sensitivities and totality of a few joins."""
    tally = _audited(monkeypatch, range(9_000, 9_002), queries=8)
    assert tally.triples == 32
    assert sum(tally.refused.values()) <= 16, tally.refused


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_unit_adds_the_same_beside_any_others_in_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the same of two thousand triples."""
    tally = _audited(monkeypatch, range(9_100, 9_150), queries=20)
    assert tally.triples == 2_000
    assert sum(tally.refused.values()) <= 700, tally.refused


@pytest.mark.parametrize("join", slow_ones(["cross"], ["cross", "series"]))
def test_a_row_that_is_said_to_meet_one_constant_is_caught(monkeypatch: pytest.MonkeyPatch, join: str) -> None:
    """Plants a proof that finds one row of constants where there are several."""
    monkeypatch.setattr(row_condition, "most_met", lambda *_: 1)
    monkeypatch.setattr(constants, "JOINS", (join,))
    with pytest.raises(Violation):
        _audited(monkeypatch, range(9_200, 9_210), queries=6)


def test_a_row_of_null_beside_others_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants a LEFT JOIN in which everybody meets all rows, the row of NULL with them."""
    genuine, always = constant_outer.kept_people, Literal(value=True, type=ColumnType.BOOLEAN)
    monkeypatch.setattr(row_condition, "kept_people", lambda *given: build("or", (genuine(*given), always)))
    monkeypatch.setattr(constants, "JOINS", ("bands",))
    with pytest.raises(Violation):
        _audited(monkeypatch, range(9_200, 9_210), queries=6)
