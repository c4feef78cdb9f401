"""What another analyst asked, told by time: estimates are free, so a dictionary of guesses could read their texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from server.services import Services
from tests.journey.clinic import question


def test_a_text_of_another_analyst_is_prepared_anew(
    services: Services, attacker: Callable[..., str], monkeypatch: Any
) -> None:
    """Plans were kept for all analysts together: what somebody had asked was estimated in half the time."""
    journey: Any = services.journey
    shell = journey.preparing._shell
    planned: list[str] = []
    plan = shell.plan

    def counted(*given: Any, **named: Any) -> Any:
        planned.append(named["owner"])
        return plan(*given, **named)

    monkeypatch.setattr(shell, "plan", counted)
    names = attacker(), attacker()
    sql = "SELECT sex, AVG(age) AS a FROM people WHERE salary > 4321 GROUP BY sex"
    for name in (*names, names[0]):
        services.journey.estimate(question(sql, name))
    assert planned == list(names)
