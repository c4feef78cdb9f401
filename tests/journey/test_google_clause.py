"""Questions in GoogleSQL's spelling: the same plan, price and release as the request's own options."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from mechanisms.families import NoiseFamily
from privacy.bounds import AskedContribution
from privacy.refusal import Refused
from server.services import Services
from tests.journey.clinic import answer_to, question

HEAD = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS "


def test_the_clause_is_a_spelling_of_the_request(services: Services, analyst: Callable[..., str]) -> None:
    """Shows the price of the answer's own epsilon, and the plain question served by the same release."""
    who = analyst()
    text = HEAD + "(epsilon = 0.5, max_groups_contributed = 1, privacy_unit_column = person_id) "
    text += "sex, SUM(salary, contribution_bounds_per_group => (0, 50000)) AS s FROM people GROUP BY sex"
    answer = answer_to(services, question(text, who, epsilon=None))
    assert answer["accounting"]["own"]["epsilon"] == "0.5"
    assert [warning["code"] for warning in answer["warnings"]] == ["other_meaning"]
    plain = "SELECT sex, SUM(GREATEST(0, LEAST(50000, salary))) AS s FROM people GROUP BY sex"
    bounds = AskedContribution(groups_per_unit=1)
    again = answer_to(services, question(plain, who, epsilon=None, own_epsilon=Fraction(1, 2), contribution=bounds))
    assert again["accounting"]["charged"] == []
    assert again["rows"] == answer["rows"]
    assert again["warnings"] == []


def test_an_estimate_reads_it_too(services: Services, analyst: Callable[..., str]) -> None:
    """Shows the bounds of the text in the plan of an estimate."""
    text = (
        HEAD
        + "(max_groups_contributed = 1) ward, COUNT(*, contribution_bounds_per_group => (0, 2)) FROM visits GROUP BY 1"
    )
    estimate: Any = services.journey.estimate(question(text, analyst()))
    (core,) = estimate["contribution"]
    assert (core["groups_per_unit"], core["rows_per_unit_and_group"]) == (1, 2)


@pytest.mark.parametrize(
    ("code", "sql", "options"),
    [
        ("unsupported_sql", "(epsilon = 1) COUNT(*) FROM people", {"epsilon": "1"}),
        (
            "unsupported_sql",
            "(max_groups_contributed = 1) COUNT(*) FROM people",
            {"contribution": AskedContribution(rows_per_unit=3)},
        ),
        ("unsupported_sql", "(privacy_unit_column = age) COUNT(*) FROM people", {}),
        ("policy_forbids", "(epsilon = 100000) COUNT(*) FROM people", {"epsilon": None}),
        ("policy_forbids", "(epsilon = 1, delta = 0.001) town, COUNT(*) FROM people GROUP BY town", {"epsilon": None}),
        ("raw_rows", "(epsilon = 1) age FROM people", {"epsilon": None}),
        (
            "volatile_function",
            "(epsilon = 1) ANON_SUM(random() CLAMPED BETWEEN 0 AND 1) FROM people",
            {"epsilon": None},
        ),
    ],
)
def test_the_clause_loosens_nothing(
    services: Services, analyst: Callable[..., str], code: str, sql: str, options: dict[str, Any]
) -> None:
    """Shows policy, unit and language as they are without it, and nothing said twice."""
    with pytest.raises(Refused) as caught:
        services.journey.admit(question(HEAD + sql, analyst(), **options))
    assert caught.value.findings[0].code == code


def test_a_refusal_marks_the_place_in_the_text(services: Services, analyst: Callable[..., str]) -> None:
    """Shows the column of a name behind a clause as the analyst counts it."""
    text = HEAD + "(epsilon = 1) SUM(age, contribution_bounds_per_group => (0, 9)), SUM(nothing) FROM people"
    with pytest.raises(Refused) as caught:
        services.journey.admit(question(text, analyst(), epsilon=None))
    position = caught.value.findings[0].position
    assert position is not None
    assert (position.line, position.column) == (1, text.index("nothing") + 1)


@pytest.mark.parametrize(
    ("narrow", "wide", "times"),
    [
        (
            "(epsilon = 0.1) SUM(salary, contribution_bounds_per_group => (0, 10000)) FROM people",
            "(epsilon = 0.05) SUM(salary, contribution_bounds_per_group => (0, 10000)) FROM people",
            2,
        ),
        (
            "(epsilon = 1) SUM(salary, contribution_bounds_per_group => (0, 10000)) FROM people",
            "(epsilon = 1) SUM(salary, contribution_bounds_per_group => (0, 50000)) FROM people",
            5,
        ),
        (
            "(epsilon = 0.1) COUNT(*, contribution_bounds_per_group => (0, 2)) FROM visits",
            "(epsilon = 0.1) COUNT(*, contribution_bounds_per_group => (0, 6)) FROM visits",
            3,
        ),
    ],
)
def test_intervals_follow_the_clause(
    services: Services, analyst: Callable[..., str], narrow: str, wide: str, times: int
) -> None:
    """Shows half widths in proportion to one over epsilon, and to what a unit may add by the bounds of the text.

    Of Laplace noise, which an account of a thousand sells by name alone for so little.
    """
    who = analyst()
    widths = []
    for text in (narrow, wide):
        estimate: Any = services.journey.estimate(question(HEAD + text, who, epsilon=None, noise=NoiseFamily.LAPLACE))
        (column,) = estimate["columns"]
        widths.append(column["half_width"])
    assert widths[1] / widths[0] == pytest.approx(times, rel=0.01)
