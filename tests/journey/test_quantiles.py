"""Quantiles over the whole way: values, intervals, errors, price, stored answers, chosen bounds, refusals."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privacy.refusal import Refused
from server.services import Services
from tests.journey.clinic import answer_to, clinic_in, open_account, question

MANY = (
    "SELECT sex, MEDIAN(age) AS m, QUANTILE_CONT(salary, 0.9) AS q, MIN(age) AS low, MAX(age) AS high, COUNT(*) AS n "
    "FROM people GROUP BY sex"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the clinic is."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def services(home: Path) -> Iterator[Services]:
    """The clinic with an account that may spend much."""
    with clinic_in(home) as (started, _):
        open_account(started.ledger, "anna")
        yield started


def people(home: Path) -> list[dict[str, str]]:
    """The true rows."""
    with (home / "sources" / "people.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_quantiles_of_groups(services: Services, home: Path) -> None:
    """At a large spend intervals hold the true values; quantiles of one column are one release."""
    answer = answer_to(services, question(MANY, "anna", epsilon="100"))
    # The keys may be NULL, and nobody is in that group.
    assert {warning["code"] for warning in answer["warnings"]} == {"extreme_quantile", "nobody_seen"}
    assert len(answer["provenance"]["mechanisms"]) == 3
    for row, lows, highs in list(zip(answer["rows"], answer["lows"], answer["highs"], strict=True))[:2]:
        mine = [one for one in people(home) if one["sex"] == row[0]]
        ages, salaries = (np.array([float(one[name]) for one in mine]) for name in ("age", "salary"))
        truths = [None, np.median(ages), np.quantile(salaries, 0.9), ages.min(), ages.max(), len(mine)]
        for place in range(1, 6):
            assert lows[place] <= truths[place] <= highs[place], place
        assert abs(row[1] - truths[1]) <= 1
        assert abs(row[2] - truths[2]) < 500
        assert row[3] - truths[3] in (0, 1)
        assert truths[4] - row[4] in (0, 1)


def test_quantiles_of_several_rows_of_a_person(services: Services, home: Path) -> None:
    """Nobody has more rows than are allotted, so the median is that of the rows; hidden groups have theirs."""
    with (home / "sources" / "visits.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    answer = answer_to(services, question("SELECT MEDIAN(cost), COUNT(*), MAX(cost) FROM visits", "anna", epsilon="50"))
    costs = np.array([float(row["cost"]) for row in rows])
    for place, truth in enumerate((np.median(costs), len(costs), costs.max())):
        assert answer["lows"][0][place] <= truth <= answer["highs"][0][place]
    assert abs(answer["rows"][0][0] - np.median(costs)) < 10
    hidden = answer_to(services, question("SELECT ward, MEDIAN(cost) FROM visits GROUP BY ward", "anna", epsilon="90"))
    assert {row[0] for row in hidden["rows"]} == set("abcd")
    assert all(350 < row[1] < 550 for row in hidden["rows"])


def test_several_quantiles_in_one_call(services: Services, home: Path) -> None:
    """A list is a column for each element, at one price."""
    sql = "SELECT QUANTILE_CONT(age, [0.25, 0.75]) AS q, QUANTILE_CONT(age, [0.25, 0.75])[2] AS third FROM people"
    answer = answer_to(services, question(sql, "anna", epsilon="100"))
    assert [column["name"] for column in answer["columns"]] == ["q_1", "q_2", "third"]
    assert len(answer["provenance"]["mechanisms"]) == 1
    ages = np.array([float(one["age"]) for one in people(home)])
    first, second, third = answer["rows"][0]
    assert abs(first - np.quantile(ages, 0.25)) <= 1
    assert second == third
    assert abs(third - np.quantile(ages, 0.75)) <= 1


@pytest.mark.slow
def test_an_answer_is_stored_and_served_again(services: Services) -> None:
    """Asked twice it is one answer, and costs once; at another confidence its intervals are others."""
    asked = question("SELECT MEDIAN(age) AS m, MEDIAN(age) / 2 AS half FROM people", "anna", epsilon="1")
    first, second = (answer_to(services, asked) for _ in range(2))
    assert first["rows"] == second["rows"]
    assert second["accounting"]["reused"]
    ((value, half),), ((error, derived),) = first["rows"], first["standard_errors"]
    assert half == value / 2
    assert error is not None
    assert derived is None or derived >= 0
    assert first["lows"][0][1] is None or first["lows"][0][1] <= half


def test_an_estimate_says_what_to_expect(services: Services) -> None:
    """The price is known, the width is one that groups of some sizes would have."""
    estimate = services.journey.estimate(question("SELECT MEDIAN(salary) FROM people", "anna", epsilon="1"))
    assert estimate["verdict"] == "affordable"
    assert "MEDIAN(salary)" in str(estimate)


def test_bounds_are_chosen_for_a_column_that_has_none(services: Services) -> None:
    """As for averages: a histogram of values first, then the tree between the bounds that it chooses."""
    answer = answer_to(services, question("SELECT MEDIAN(income) AS m FROM people", "anna", epsilon="20"))
    ((value,),), ((low,),), ((high,),) = answer["rows"], answer["lows"], answer["highs"]
    assert answer["provenance"]["value_bounds"][0]["source"] == "chosen"
    assert low <= 53 * 7 + 14
    assert high >= 53 * 7 - 14
    assert 300 < value < 450


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT QUANTILE_CONT(age, 1.5) FROM people", "unsupported_sql"),
        ("SELECT UNNEST(QUANTILE_CONT(age, [0.25, 0.5])) FROM people", "unsupported_sql"),
        ("SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age DESC) FROM people", "unsupported_sql"),
        ("SELECT MEDIAN(DISTINCT age) FROM people", "unsupported_sql"),
        ("SELECT MEDIAN(sex) FROM people", "unsupported_type"),
    ],
)
def test_what_is_not_answered_is_refused_before_the_charge(services: Services, sql: str, code: str) -> None:
    """Lists, other orders, different values."""
    with pytest.raises(Refused) as refused:
        services.journey.admit(question(sql, "anna"))
    findings: Any = refused.value.findings
    assert [finding.code for finding in findings] == [code]
    assert all(finding.instead for finding in findings)
