"""Frames of RANGE and GROUPS, EXCLUDE and IGNORE NULLS within a unit, compared exactly with plain Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from privacy.policy import ColumnType
from sql_rewrite import lower_unit_windows
from tests.audit import harness, windows
from tests.audit.harness import Tally, audit_scene
from tests.audit.violation import Violation
from tests.audit.windows import make_windows

T = ColumnType
_MEASURED = (
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "GROUPS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING EXCLUDE TIES",
    "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP",
)
_WHOLE = (
    "RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 3 PRECEDING EXCLUDE TIES",
    "RANGE BETWEEN 0 FOLLOWING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
)
_CLOCK = (
    "RANGE BETWEEN INTERVAL 3 DAY PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN INTERVAL '1 day 6 hours' PRECEDING AND INTERVAL 2 WEEK FOLLOWING EXCLUDE GROUP",
)


def _framed(relation: windows._Windows, name: str, unit: str) -> tuple[str, Any]:
    """An aggregate over such a frame, or a value of another row that is not NULL."""
    r = relation.r
    if r.random() < 0.3:
        call = r.choice(["LAG({} IGNORE NULLS)", "LEAD({}, 2 IGNORE NULLS)", "LAST_VALUE({} IGNORE NULLS)"])
        over = f"PARTITION BY {unit} ORDER BY {', '.join(relation._terms())}"
        frame = " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW" if "LAST" in call else ""
        return f"{call.format(relation.bounded(1))} OVER ({over}{frame})", relation._made(name, T.NUMBER)
    maker, frames = r.choice(
        [(relation.whole, _WHOLE), (relation.real, _WHOLE), (relation.day, _CLOCK), (None, _MEASURED)]
    )
    terms = ", ".join(relation._terms()) if maker is None else maker(0) + r.choice(["", " DESC", " NULLS FIRST"])
    call = r.choice(["COUNT(*)", f"SUM({relation.bounded(0)})", f"MAX({relation.bounded(0)})"])
    kind = T.INTEGER if call == "COUNT(*)" else T.NUMBER
    return f"{call} OVER (PARTITION BY {unit} ORDER BY {terms} {r.choice(frames)})", relation._made(name, kind)


def _audited(monkeypatch: pytest.MonkeyPatch, seeds: range, queries: int) -> Tally:
    monkeypatch.setattr(harness, "make_query", make_windows)
    monkeypatch.setattr(windows._Windows, "_windowed", _framed)
    tally = Tally()
    for seed in seeds:
        audit_scene(seed, queries=queries, neighbours=2, tally=tally, shrink=False)
    return tally


def test_frames_are_of_the_units_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows what a second meaning in Python makes of the same rows, with NULL, ties and extremes, in any order."""
    tally = _audited(monkeypatch, range(5_400, 5_402), 8)
    assert tally.triples == 32
    assert sum(tally.refused.values()) <= 16, tally.refused


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_frames_are_of_the_units_rows_alone_in_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the same of eight hundred triples."""
    assert _audited(monkeypatch, range(5_500, 5_520), 20).triples == 800


def test_a_row_that_is_not_left_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants frames without what EXCLUDE leaves out of them."""
    lowered = lower_unit_windows._lowered_frame

    def whole(window: Any) -> Any:
        frame = lowered(window)
        return None if frame is None else replace(frame, exclude="")

    monkeypatch.setattr(lower_unit_windows, "_lowered_frame", whole)
    with pytest.raises(Violation):
        _audited(monkeypatch, range(5_600, 5_610), 8)
