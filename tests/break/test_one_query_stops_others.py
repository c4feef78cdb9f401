"""Queries that kept the server busy for minutes, for nothing or for the smallest price."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms.calibrate import Price, calibrate
from mechanisms.families import NoiseFamily
from mechanisms.randomness import SystemBits
from mechanisms.release import release
from mechanisms.replicates import NUMBERS_MAX, simulate
from privacy.exact import Exact
from privacy.refusal import Refused
from server.services import Services
from sql_rewrite import evaluate, shell_names
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift


def test_the_public_keys_of_an_expression_are_not_worth_minutes(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An estimate is free: thousands of operators over thousands of combinations of keys took minutes of Python."""
    dataset = services.catalogue.get("clinic")
    assert dataset is not None
    evaluated = 0
    plain = evaluate.evaluate

    def counting(*arguments: Any) -> Any:
        nonlocal evaluated
        evaluated += 1
        return plain(*arguments)

    monkeypatch.setattr(evaluate, "evaluate", counting)
    monkeypatch.setattr(evaluate, "WORK_MAX", 50)
    for text, expected in (("LENGTH(sex)", True), ("LENGTH(sex) + " * 30 + "1", False)):
        plan = lift(f"SELECT {text} AS k, COUNT(*) AS n FROM people GROUP BY 1", dataset)
        domain = evaluate.map_domain(plan.cores[0].keys[0][1], dataset.limits.cells_max)
        assert (domain == (6, 4, None)) is expected
    assert 0 < evaluated <= 50


def test_error_bars_of_endless_noise_are_not_drawn_exactly(services: Services) -> None:
    """At epsilon 1e-12 each simulated draw took the exact path: one query kept a thread busy for minutes."""
    core = _core(services, "SELECT age, COUNT(*) + 1 AS n FROM people GROUP BY age")
    for epsilon, simulated in (("1", True), ("1e-12", False)):
        table = _released(core, Fraction(epsilon))
        assert (simulate(table.sums, 400) != {}) is simulated


def test_error_bars_of_many_statistics_share_one_limit(services: Services) -> None:
    """The limit was for each statistic: thirty of them took thirty times the memory."""
    sums = ", ".join(f"VARIANCE(age * {i}) + 1 AS v{i}" for i in range(1, 8))
    core = _core(services, f"SELECT age, {sums} FROM people GROUP BY age")
    matrices = simulate(_released(core, Fraction(1)).sums, 10_000).values()
    assert 3 * sum(np.asarray(matrix).size for matrix in matrices) <= NUMBERS_MAX


def _core(services: Services, sql: str) -> Any:
    dataset = services.catalogue.get("clinic")
    assert dataset is not None
    plan = lift(sql.replace("SELECT age", "SELECT age % 7 AS age").replace("GROUP BY age", "GROUP BY age % 7"), dataset)
    return bound(plan)[0].described


def _released(core: Any, epsilon: Fraction) -> Any:
    exact = Exact(
        keys={column.name: [] for column in core.keys.columns},
        sums={f"{s.name}_{i}": [] for s in core.statistics for i in range(s.coordinates)},
        rows=0,
    )
    calibration = calibrate([core], Price(NoiseFamily.LAPLACE, epsilon, Fraction(0)))
    return release(core, calibration, exact, bits=SystemBits(), confidence=Fraction(95, 100))


def test_a_pattern_of_names_is_looked_for_once(services: Services) -> None:
    """Python tried every way to spread a name over `.*.*.*`: eight of them took minutes, of every other caller too."""
    dataset = services.catalogue.get("clinic")
    assert dataset is not None
    with pytest.raises(Refused, match="COLUMNS"):
        lift(f"SELECT COLUMNS('{'.*' * 49}z') FROM (SELECT COUNT(*) AS {'a' * 60} FROM people) AS t", dataset)


def test_patterns_of_names_mean_what_they_meant() -> None:
    """Shows that looking once finds what looking everywhere does, over lines, ends and alternatives."""
    drawn, found = random.Random(3), 0
    for _ in range(3_000):
        pattern = "".join(drawn.choice(("a", "b", "A", ".", ".*", ".+", "|", "_")) for _ in range(drawn.randint(1, 7)))
        pattern = drawn.choice(("", "^")) + pattern + drawn.choice(("", "$"))
        name = "".join(drawn.choice("abAB_\n") for _ in range(drawn.randint(1, 9)))
        plain = re.search(pattern.removesuffix("$") + (r"\Z" if pattern.endswith("$") else ""), name) is not None
        assert shell_names._fitting(pattern)(name) == plain, (pattern, name)
        found += plain
    assert 500 < found < 2_500


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT COUNT(*) FROM visits AS v WHERE (SELECT {} OR COUNT(*) > 3 FROM visits AS w "
         "WHERE w.person_id = v.person_id)", "a pattern"),
        ("SELECT COUNT(*) FROM visits AS v WHERE cost > (SELECT CASE WHEN {} THEN 3 ELSE COUNT(*) END "
         "FROM visits AS w WHERE w.person_id = v.person_id)", "a pattern"),
        ("SELECT COUNT(b) FROM (SELECT LAG(cost > 3, 1, {}) OVER (PARTITION BY person_id ORDER BY cost) AS b "
         "FROM visits) AS t", "LAG"),
    ],
)  # fmt: skip
def test_a_pattern_over_constants_is_not_computed_beforehand(services: Services, sql: str, what: str) -> None:
    """What a nested query is without rows, and what LAG is before the first one, took Python hours: for an estimate."""
    dataset = services.catalogue.get("clinic")
    assert dataset is not None
    with pytest.raises(Refused, match=what):
        lift(sql.format(f"REGEXP_MATCHES('{'a' * 60}', '(a+)+b')"), dataset)
