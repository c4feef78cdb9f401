"""Averages of two columns share one statistic: less noise for the same price, and what was paid for stays free."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from accountant.account import FilterKind
from mechanisms import held_sums
from mechanisms.calibrate import Price, calibrate
from mechanisms.estimates import expected_errors
from mechanisms.families import NoiseFamily
from privacy.bounds import ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, Dataset, PublicKeys, Table
from privacy.unit import PrivacyUnit
from server.journey import charges
from server.services import Services
from sql_rewrite import bound
from sql_rewrite.bound import BoundedCore, bound_core
from sql_rewrite.lift import lift
from tests.journey.clinic import open_account, question, stored

Analyst = Callable[..., str]

PEOPLE = Table(
    "people",
    (
        Column("person_id", ColumnType.INTEGER, nullable=False),
        Column("age", ColumnType.INTEGER, bounds=ValueBounds(Fraction(0), Fraction(100)), nullable=False),
        Column("sex", ColumnType.TEXT, keys=PublicKeys(("female", "male"))),
        Column("salary", ColumnType.NUMBER, bounds=ValueBounds(Fraction(0), Fraction(100_000))),
    ),
    protected=True,
    key="person_id",
    contribution=ContributionBound(1, 1, 1),
)
DATASET = Dataset("clinic", PrivacyUnit("people", "person_id"), (PEOPLE,), 1, "d")

TWO = "SELECT AVG(age), AVG(person_id % 100) FROM people"
THREE = "SELECT AVG(age), AVG(person_id % 100), AVG(person_id % 7) FROM people"


def asked(services: Services, sql: str, principal: str, **options: Any) -> dict[str, Any]:
    """The answer."""
    admitted = services.journey.admit(question(sql, principal, **options))
    return dict(json.loads(stored(admitted) or services.journey.complete(admitted)))


def bounded(sql: str, *, joined: bool = True) -> BoundedCore:
    """The only core of a text."""
    (core,) = lift(sql, DATASET).cores
    return bound_core(core, DATASET, joined=joined)


def kinds(core: BoundedCore) -> list[str]:
    """The kinds of a core's statistics."""
    return [statistic.kind.name.lower() for statistic in core.described.statistics]


@pytest.mark.parametrize(
    ("sql", "measured"),
    [
        (TWO, ["products"]),
        (f"{TWO} WHERE sex = 'male'", ["products"]),
        ("SELECT sex, COUNT(*), AVG(age), AVG(person_id % 100) FROM people GROUP BY sex", ["products"]),
        (THREE, ["products", "moments"]),
        ("SELECT AVG(age), AVG(person_id % 100), COVAR_POP(person_id % 100, age) FROM people", ["products"]),
        # A row may lack a salary; a variance needs squares; sums and filters are of other rows or other bounds.
        ("SELECT AVG(age), AVG(salary) FROM people", ["moments", "moments"]),
        ("SELECT AVG(age), VARIANCE(person_id % 100) FROM people", ["moments", "moments"]),
        ("SELECT AVG(age), SUM(person_id % 100), AVG(person_id % 100) FROM people", ["moments", "moments"]),
        ("SELECT AVG(age) FILTER (WHERE age > 3), AVG(person_id % 100) FROM people", ["moments", "moments"]),
        (
            "SELECT sex, AVG(age), AVG(person_id % 100) FROM people GROUP BY ROLLUP (sex)",
            ["moments", "moments"],
        ),
    ],
)
def test_which_averages_are_joined(sql: str, measured: list[str]) -> None:
    """Shows which averages have a statistic of pairs, and that all others are measured as they were."""
    assert kinds(bounded(sql)) == measured


@pytest.mark.parametrize(
    "sql",
    [
        TWO,
        THREE,
        TWO.replace("SELECT", "SELECT COUNT(*),"),
        TWO.replace("SELECT", "SELECT COUNT(*), VARIANCE(person_id % 7),"),
        TWO.replace("SELECT", "SELECT COVAR_POP(age, person_id % 100),"),
        TWO.replace("SELECT", "SELECT CORR(age, person_id % 100),"),
    ],
)
@pytest.mark.parametrize(("family", "times"), [(NoiseFamily.LAPLACE, 2**0.5), (NoiseFamily.GAUSSIAN, (37 / 32) ** 0.5)])
def test_no_average_has_more_error(sql: str, family: NoiseFamily, times: float) -> None:
    """Shows the claim: of two columns the standard error is that of before over the root of two with Laplace noise,
    over the root of 37/32 with Gaussian noise and values spread evenly; of three none is worse.
    """
    errors = []
    for joined in (True, False):
        core = bounded(sql, joined=joined).described
        calibration = calibrate([core], Price(family, Fraction(1), Fraction(0)))
        errors.append([
            [size.standard_error for size in expected_errors(measurement, estimate, alpha=0.05)]
            for estimate in core.estimates
            if (measurement := calibration.measurement(core.name, estimate.statistic))
        ])  # fmt: skip
    for now, before in zip(*errors, strict=True):
        for small, large in zip(now, before, strict=True):
            assert small is not None
            assert large is not None
            assert small <= large * 1.001
            if sql == TWO and large < 1:  # where the error is not held to the range of the values
                assert large / small == pytest.approx(times, rel=0.01)


def test_the_answers_are_the_averages(services: Services) -> None:
    """Shows that each column has its own average, in the order of the text, with hardly any noise."""
    open_account(services.ledger, "exact", epsilon="100000", kind=FilterKind.PURE)
    sql = "SELECT AVG(person_id % 100), COUNT(*), AVG(age) FROM people"
    (row,) = asked(services, sql, "exact", epsilon="90")["rows"]
    (rough,) = asked(services, "SELECT AVG(age) FROM people WHERE TRUE AND age >= 0", "exact", epsilon="90")["rows"]
    assert row[0] == pytest.approx(49.5, abs=0.01)
    assert row[1] == pytest.approx(3000, abs=2)
    assert row[2] == pytest.approx(rough[0], abs=0.01)


def test_one_average_of_two_is_free(services: Services, analyst: Analyst) -> None:
    """Shows that the store gives each average and the rows of a pair, and a pair the sums that hold both."""
    who = analyst()
    asked(services, TWO, who)
    for then in ("SELECT AVG(age) FROM people", "SELECT AVG(person_id % 100) FROM people"):
        assert asked(services, then, who, epsilon="0.1")["accounting"]["reused"], then
    assert asked(services, "SELECT COUNT(*) FROM people", who, epsilon="0.1")["accounting"]["reused"]
    assert not asked(services, "SELECT AVG(age + 1) FROM people", who, epsilon="0.1")["accounting"]["reused"]
    other = analyst()
    asked(services, "SELECT AVG(age), VARIANCE(age), VARIANCE(person_id % 100) FROM people", other)
    assert asked(services, TWO, other, epsilon="0.1")["accounting"]["reused"]


_SPELLED = itertools.count()


def spelled(sql: str) -> str:
    """The same question in a text that no plan is kept of."""
    return f"{sql} AS t{next(_SPELLED)}"


def test_what_was_paid_for_before_is_free(
    services: Services, analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that a release of two statistics serves its question for the same price, and with twice the quality where
    a width is asked for; without the earlier key it would be paid again.
    """
    who = analyst()
    with monkeypatch.context() as before:
        before.setattr(bound, "with_joined_averages", lambda core: core.aggregates)
        release = asked(services, spelled(TWO), who)
    again = asked(services, spelled(TWO), who)
    assert again["accounting"]["reused"]
    assert again["rows"] == release["rows"]
    assert again["provenance"]["releases"] == release["provenance"]["releases"]
    monkeypatch.setattr(charges, "_earlier", lambda *_: ())
    monkeypatch.setattr(held_sums, "_kind", lambda *_: None)
    assert not asked(services, spelled(TWO), who)["accounting"]["reused"]
