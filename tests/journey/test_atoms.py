"""Answers by atoms: the error of GROUP BY, columns as they were, and sums whose intervals are those of their parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from server.derived import scenarios, sums
from server.services import Services
from tests.journey.clinic import question, stored

BOTH = "SELECT COUNT_IF(sex = 'male') AS men, COUNT_IF(sex = 'female') AS women FROM people"
SHARE = "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE age > 40) AS old FROM people"


def asked(services: Services, sql: str, principal: str, **options: Any) -> dict[str, Any]:
    """The answer."""
    admitted = services.journey.admit(question(sql, principal, **options))
    return dict(json.loads(stored(admitted) or services.journey.complete(admitted)))


def test_conditions_are_answered_with_the_error_of_groups(services: Services, analyst: Callable[..., str]) -> None:
    """Shows errors of answers and estimates, that a ratio of the same atoms is free, and widths asked for."""
    one, other, third = analyst(), analyst(), analyst()
    by_sex = asked(services, "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", one)
    both = asked(services, BOTH, other)
    (men, women) = both["standard_errors"][0]
    assert men == women == by_sex["standard_errors"][0][1]
    assert [(column["type"], column["kind"], column["interval"]) for column in both["columns"]] == [
        ("BIGINT", "released", "noise")
    ] * 2

    expected = services.journey.estimate(question(SHARE, other))["columns"]
    share = asked(services, SHARE, other)
    total, old = share["standard_errors"][0]
    assert [column["standard_error"] for column in expected] == pytest.approx([total, old], rel=0.01)
    assert old == men
    assert total == pytest.approx(old * 2**0.5, rel=0.01)
    assert share["lows"][0][0] <= 3_000 <= share["highs"][0][0]
    ratio = asked(services, SHARE.replace("AS n,", "* 1.0 /").replace("AS old", "AS r"), other)
    assert ratio["accounting"]["reused"]
    assert ratio["rows"][0][0] == pytest.approx(share["rows"][0][0] / share["rows"][0][1])

    wide = asked(services, SHARE, third, epsilon=None, half_width=Fraction(20))
    assert [high - low for low, high in zip(wide["lows"][0], wide["highs"][0], strict=True)] == [40, 40]


def test_sums_of_atoms_need_no_simulation(
    services: Services, analyst: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows the interval that weights from the shell give, and that it does not go where there is no room for them."""
    who = analyst()
    sql = "SELECT sex, COUNT_IF(age > 40) AS old, COUNT_IF(age > 60) AS older, COUNT(*) AS n FROM people GROUP BY 1"
    monkeypatch.setattr(scenarios, "_ROWS_MAX", 1)
    without = asked(services, sql, who)
    assert without["columns"][3]["interval"] == "linear"
    monkeypatch.undo()
    monkeypatch.setattr(sums, "added", lambda *_: None)
    asked_of_shell = asked(services, sql.replace("AS n", "AS number"), who)
    assert asked_of_shell["accounting"]["reused"]
    for row, other in zip(without["standard_errors"], asked_of_shell["standard_errors"], strict=True):
        assert row[1:] == pytest.approx(other[1:])
    assert without["lows"] == asked_of_shell["lows"]
    assert without["highs"] == asked_of_shell["highs"]
