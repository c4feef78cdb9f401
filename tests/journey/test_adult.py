"""Real data: the UCI Adult table, where its file is at hand (NOISEGATE_ADULT_CSV)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import pytest

from benchmarks import provenance
from mechanisms.calibrate import Price, calibrate
from mechanisms.families import NoiseFamily
from mechanisms.randomness import SystemBits
from mechanisms.release import release
from server.services import Services
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from tests.journey.clinic import attach, open_account, question, services_of

ADULT = os.environ.get("NOISEGATE_ADULT_CSV", "")

pytestmark = [
    pytest.mark.adult,
    pytest.mark.skipif(not ADULT, reason="set NOISEGATE_ADULT_CSV to the path of the UCI Adult file with person_id"),
]

DATASET = """\
version: 2
dataset: adult
unit: {table: people, key: person_id}
tables:
  people:
    source: {file: adult.csv}
    key: person_id
    columns:
      person_id: {type: integer, nullable: false}
      age: {type: integer, bounds: [0, 125], nullable: false}
      workclass:
        type: text
        keys: [Federal-gov, Local-gov, Never-worked, Private, Self-emp-inc, Self-emp-not-inc, State-gov, Without-pay]
      education: {type: text}
      education_num: {type: integer, bounds: [1, 16], keys: {range: [1, 16]}}
      occupation: {type: text}
      sex: {type: text, keys: [Female, Male]}
      hours_per_week: {type: integer, bounds: [0, 100]}
policy: {epsilon_default: "1", epsilon_max: "10"}
"""

TRUTH = [
    ("SELECT COUNT(*) FROM people", 32_561),
    ("SELECT COUNT(*) FROM people WHERE age >= 40", 14_237),
    ("SELECT SUM(age) FROM people", 1_256_257),
    ("SELECT COUNT(*) FROM people WHERE occupation = 'Sales'", 3_650),
    ("SELECT COUNT(*) FROM people WHERE education_num > 10", 10_516),
    ("SELECT COUNT(*) FROM people WHERE age > 20 AND age < 33", 9_878),
    ("SELECT SUM(LEAST(age, 30)) FROM people", 913_809),
    ("SELECT SUM(age) FROM people WHERE education_num > 10", 422_876),
]
"""Counts that the seed documents print, in the version that is true of the file."""


@pytest.fixture(scope="module")
def adult(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Services with the Adult table attached."""
    home: Path = tmp_path_factory.mktemp("adult")
    source = home / "sources"
    source.mkdir()
    (source / "adult.csv").symlink_to(Path(ADULT).resolve())
    (source / "adult.yaml").write_text(DATASET)
    with services_of(home) as services:
        attach(services, source / "adult.yaml")
        open_account(services.ledger, "ann", epsilon="100000", dataset="adult")
        yield services


def releases(services: Services, sql: str, epsilon: Fraction, count: int) -> list[Any]:
    """Fresh releases of one core without a charge: the same statement, noise drawn `count` times."""
    dataset = services.catalogue.get("adult")
    assert dataset is not None
    (core,) = bound(lift(sql, dataset, {}))
    journey: Any = services.journey
    exact = journey.running._private.run(journey.running._served.snapshot(dataset), lower(core), timeout_seconds=30)
    calibration = calibrate([core.described], Price(NoiseFamily.LAPLACE, epsilon, Fraction(0)))
    bits = SystemBits()
    return [release(core.described, calibration, exact, bits=bits, confidence=Fraction(95, 100)) for _ in range(count)]


@pytest.mark.parametrize(("sql", "truth"), TRUTH)
def test_huge_epsilon_gives_the_printed_counts(adult: Services, sql: str, truth: int) -> None:
    """Shows that without noise to speak of the deterministic figures of the seeds come out exactly."""
    (table,) = releases(adult, sql, Fraction(100_000), 1)
    assert truth == table.columns[-1].values[0]


@pytest.mark.slow
@pytest.mark.parametrize(("sql", "truth"), TRUTH)
def test_intervals_cover_as_often_as_they_say(adult: Services, sql: str, truth: int) -> None:
    """Shows coverage over 200 fresh releases at epsilon 1: not fewer than 95 % promises, within chance.

    The chance of a false alarm is below 1e-6 on each side for intervals that cover with 95 % (rounded noise covers
    a little more often, so the upper side allows up to 99.9 %).
    """
    covered = 0
    for table in releases(adult, sql, Fraction(1), 200):
        column = table.columns[-1]
        covered += column.lows[0] <= truth <= column.highs[0]
    assert covered >= _quantile(200, 0.95, 1e-6)
    if truth > 100_000:  # continuous noise: an interval that always covers would be too wide
        assert covered <= 200 - 1


def _quantile(count: int, chance: float, tail: float) -> int:
    """The largest k such that a binomial count falls below k with probability at most `tail`."""
    total, k = 0.0, 0
    while True:
        total += comb(count, k) * chance**k * (1 - chance) ** (count - k)
        if total > tail:
            return k
        k += 1


@pytest.mark.parametrize(
    ("key", "group", "share"),
    [
        ("workclass", "Private", 22_696),
        ("workclass", None, 1_836),
        ("COALESCE(workclass, 'none')", "none", 1_836),
        ("COALESCE(workclass, 'none')", "Private", 22_696),
        ("workclass IS NULL", True, 1_836),
        ("CASE WHEN workclass IS NULL THEN 'missing' WHEN workclass = 'Private' THEN 'private' ELSE 'else' END",
         "missing", 1_836),
    ],
)  # fmt: skip
def test_groups_by_a_key_with_missing_values_are_complete(adult: Services, key: str, group: Any, share: int) -> None:
    """Shows that 69.70 % are Private, and that the 1,836 without a class are in the group that SQL gives them."""
    (table,) = releases(adult, f"SELECT {key} AS k, COUNT(*) AS n FROM people GROUP BY k", Fraction(100_000), 1)
    counts = dict(zip(table.columns[0].values, table.columns[1].values, strict=True))
    assert sum(int(count) for count in counts.values()) == 32_561  # type: ignore[arg-type]
    assert counts[group] == share


def test_the_differencing_attack_finds_noise(adult: Services) -> None:
    """Shows that two sums that differ in one person do not tell that person's age (the seeds' 39)."""
    journey = adult.journey
    answers = []
    for condition in ("TRUE", "person_id <> 1"):
        sql = f"SELECT SUM(age) AS s FROM people WHERE {condition}"
        asked = question(sql, "ann", dataset="adult", epsilon="1", reuse="none")
        answer = json.loads(journey.complete(journey.admit(asked)))
        answers.append((answer["rows"][0][0], answer["standard_errors"][0][0]))
    difference = answers[0][0] - answers[1][0]
    assert difference != 39 or answers[0][1] > 39
    assert answers[0][1] > 39, "the noise is wider than any one age"


def test_a_histogram_over_http_shapes(adult: Services) -> None:
    """Shows education counts near the truth for hidden keys, and no group that does not exist."""
    asked = question("SELECT education, COUNT(*) AS n FROM people GROUP BY education", "ann", dataset="adult")
    answer = json.loads(adult.journey.complete(adult.journey.admit(asked)))
    counts = dict(answer["rows"])
    assert len(counts) >= 15
    assert abs(counts["HS-grad"] - 10_501) < 60
    assert abs(counts["Bachelors"] - 5_355) < 60


@pytest.mark.slow
def test_more_ranges_are_answered_than_by_added_epsilons() -> None:
    """DProvDB's workload, its beginning: each counted answer states an error that meets the request."""
    asked = provenance.workload(3, 40)
    with provenance.adult_of(Path(ADULT), "free") as services:
        answered = provenance.ours(asked, services, Fraction(2, 5))
        (root,) = [one for one in services.ledger.accounts() if one.parent is None]
        assert root.remaining_epsilon() >= 0
    assert answered > provenance.additive(asked, 0.4) > 0
