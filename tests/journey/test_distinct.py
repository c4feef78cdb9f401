"""Different values through the whole journey: priced, answered, stored, and served again for free."""

from __future__ import annotations

from collections.abc import Callable

from server.services import Services
from tests.journey.clinic import answer_to, question

SQL = "SELECT COUNT(DISTINCT age) AS n, AVG(DISTINCT age) AS a FROM people"


def test_different_values_are_stored_and_served_again(services: Services, analyst: Callable[..., str]) -> None:
    """The same noise the second time, at no cost, from sums that were stored; another question is another release."""
    name = analyst()
    first = answer_to(services, question(SQL, name))
    second = answer_to(
        services, question(SQL.replace("COUNT(", "APPROX_COUNT_").replace("_DISTINCT ", "_DISTINCT("), name)
    )
    assert first["accounting"]["charged"]
    assert second["accounting"]["charged"] == []
    assert second["rows"] == first["rows"]
    plain = answer_to(services, question(SQL.replace("DISTINCT ", ""), name))
    assert plain["accounting"]["charged"]
