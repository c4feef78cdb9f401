"""Choices of keys on neighbours: what one unit does to the scores of a choice, and that wrong claims of it are seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from mechanisms import release as releasing
from mechanisms.calibrate import Price, calibrate
from mechanisms.families import NoiseFamily
from mechanisms.measurement import Integers
from mechanisms.measurements.choices import ChoiceMeasurement
from privacy.bounds import ContributionBound
from privacy.composition import compose
from privacy.exact import Exact
from privacy.statistic import Choice, CoreStatistics
from sql_rewrite import bound as bounding
from sql_rewrite import choices
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from tests.audit.generate import Scene
from tests.audit.harness import Store
from tests.audit.planted import change_sensitivity
from tests.audit.smallest import scene
from tests.audit.violation import Violation, require

_EDGES: tuple[Any, ...] = (2**63 - 1, -(2**63), 0, None, 7)
_REALS: tuple[Any, ...] = (math.inf, -math.inf, math.nan, None, -0.0, 1.7976931348623157e308, -3.5)


def world(bounds: tuple[str, str] = ("0", "10")) -> Scene:
    """Persons with 0, 1, 5 and 50 visits, whose values and keys are NULL, extreme and everything between."""
    visits = [
        {"person_id": unit, "x": _EDGES[(i + unit) % 5], "y": _REALS[(i * 3 + unit) % 7], "k": ("a", "b", None)[i % 3]}
        for unit, count in enumerate((0, 1, 5, 50, 3))
        for i in range(count)
    ]
    people = [{"x": number, "k": "ab"[number % 2]} for number in range(5)]
    return scene(people, visits, bounds=bounds, contribution=ContributionBound(6, 2, 2))


QUERIES = (
    "SELECT k FROM visits GROUP BY k ORDER BY COUNT(*) DESC LIMIT 1",
    "SELECT k FROM visits GROUP BY k ORDER BY COUNT(x) LIMIT 1",
    "SELECT k FROM visits WHERE y > 0 GROUP BY k ORDER BY COUNT(DISTINCT person_id) DESC, k LIMIT 2",
    "SELECT k FROM visits GROUP BY k ORDER BY SUM(x) DESC LIMIT 1",
    "SELECT k FROM visits GROUP BY k ORDER BY SUM(y) FILTER (WHERE x > 0) LIMIT 1",
    "SELECT MODE(k) FROM visits",
    "SELECT MODE(x) FILTER (WHERE y IS NOT NULL) FROM visits",
    "SELECT k, MODE(x) AS m FROM visits GROUP BY k",
    "SELECT MODE() WITHIN GROUP (ORDER BY x) FROM people",
    "SELECT k, MODE(x) FROM people GROUP BY k",
    "SELECT people.k, MODE(visits.k) FROM visits JOIN people USING (person_id) GROUP BY people.k",
    "SELECT ARG_MIN(k, n) FROM (SELECT k, COUNT(*) AS n FROM visits GROUP BY k)",
    "SELECT UNNEST(APPROX_TOP_K(k, 1)) FROM visits",
)


def _placed(core: CoreStatistics, exact: Exact) -> list[int]:
    """The scores of all candidates, in their order."""
    seen: list[Integers] = []

    def keep(measurement: object, matrix: Integers, bits: object) -> None:
        seen.append(matrix)
        raise InterruptedError

    price = Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(releasing.gateway, "perturb", keep)
        with pytest.raises(InterruptedError):
            releasing.release(core, calibrate([core], price), exact, bits=None, confidence=Fraction(95, 100))  # type: ignore[arg-type]
    return [int(row[0]) for row in seen[0].tolist()]


def _ways(measurement: ChoiceMeasurement, scores: list[int]) -> list[float]:
    """The logarithms of the chances of the first draw by Gumbel noise."""
    terms = [score / float(measurement.scale) * (-1 if measurement.choice.least else 1) for score in scores]
    most = max(terms)
    whole = math.log(sum(math.exp(term - most) for term in terms))
    return [term - most - whole for term in terms]


def audited(scene_: Scene, sql: str) -> Fraction:
    """Compares each neighbour without one unit. Returns how much of the allowed change of a score was seen."""
    plan = lift(sql, scene_.dataset)
    (core,) = bound(plan)
    described, greatest = core.described, Fraction(0)
    assert described.choice is not None, "no choice"
    parts, (statistic,) = described.choice.parts(described.keys), described.statistics
    price = Price(NoiseFamily.GAUSSIAN, Fraction(1), Fraction(0))
    calibration = calibrate([described], price)
    (measurement,) = calibration.measurements
    assert isinstance(measurement, ChoiceMeasurement)
    loss = compose(calibration.events())
    require(loss.mu_squared is not None and loss.mu_squared <= 1, "more than the price")
    every = _scores(scene_, core, frozenset(scene_.units), seed=1)
    for unit in scene_.units:
        fewer = _scores(scene_, core, frozenset(scene_.units) - {unit}, seed=2)
        changes = [a - b for a, b in zip(every, fewer, strict=True)]
        moved = max(map(abs, changes))
        greatest = max(greatest, moved / statistic.sensitivity.linf)
        require(moved <= statistic.sensitivity.linf, f"a score changed by {moved}")
        touched = [part for part in parts if any(changes[place] for place in part)]
        require(len(touched) <= described.choice.parts_per_unit, f"{len(touched)} parts changed")
        drawn = sum(min(described.choice.count, len(part)) for part in touched)
        require(drawn <= measurement.draws, f"{drawn} draws changed")
        for part in touched:
            signs = {changes[place] > 0 for place in part if changes[place]}
            require(not described.choice.one_way or len(signs) == 1, "scores moved in both directions")
            logs = [_ways(measurement, [scores[place] for place in part]) for scores in (every, fewer)]
            ratios = [a - b for a, b in zip(*logs, strict=True)]
            require(max(ratios) - min(ratios) <= float(measurement.epsilon) * (1 + 1e-9), "beyond the bounded range")
    return greatest


def _scores(scene_: Scene, core: BoundedCore, units: frozenset[Any], *, seed: int) -> list[int]:
    with closing(Store(scene_, units, seed=seed)) as store:
        return _placed(core.described, store.exact(lower(core)))


@pytest.mark.sparse(4)
@pytest.mark.parametrize("sql", QUERIES)
def test_one_unit_moves_a_choice_by_no_more_than_is_charged(sql: str) -> None:
    """Shows sensitivity, direction, number of parts and range of the chances, on units of 0, 1, 3, 5 and 50 rows."""
    if "SUM" not in sql:
        assert audited(world(), sql) == 1
        return
    for bounds in (("0", "10"), ("-10", "4")):
        assert Fraction(1, 5) <= audited(world(bounds), sql) <= 1


def two_directions(patch: pytest.MonkeyPatch) -> None:
    """Signed sums are taken to move in one direction."""
    genuine = choices.described_choice
    patch.setattr(
        bounding,
        "described_choice",
        lambda *args: replace(found := genuine(*args), choice=replace(found.choice, one_way=True)),  # type: ignore[type-var]
    )


def one_part(patch: pytest.MonkeyPatch) -> None:
    """Each unit is taken to be in one group of MODE's."""
    patch.setattr(choices, "parts_of_unit", lambda core, *, groups, parts: 1)


def one_draw(patch: pytest.MonkeyPatch) -> None:
    """Several keys are charged as one."""
    patch.setattr(Choice, "draws_per_unit", property(lambda choice: choice.parts_per_unit))


def one_row(patch: pytest.MonkeyPatch) -> None:
    """A unit's several rows of a group are forgotten."""
    change_sensitivity(
        patch,
        lambda _, item: replace(
            item.statistic.sensitivity,
            linf=item.statistic.sensitivity.linf / 2,
        ),
    )


@pytest.mark.sparse(2)
@pytest.mark.parametrize(
    ("plant", "sql", "says"),
    [
        (two_directions, QUERIES[3], "both directions"),
        (one_part, QUERIES[7], "2 parts changed"),
        (one_row, QUERIES[0], "a score changed by 2"),
        (one_draw, QUERIES[2], "2 draws changed"),
    ],
)
def test_wrong_claims_are_seen(plant: Callable[[pytest.MonkeyPatch], None], sql: str, says: str) -> None:
    """Planted bugs: each of the numbers of a choice too small, caught for the right reason."""
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        with pytest.raises(Violation, match=says):
            audited(world(("-10", "4")), sql)
