"""Conditions of rows of which a unit has several: all atoms together are held to what one statistic is held to."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from privacy.bounds import ContributionBound
from privacy.norms import NormPower
from privacy.policy import KeyValue
from sql_rewrite import bound as bounding
from sql_rewrite.bound import bound
from sql_rewrite.contribution import Contribution, contribution_over_atoms
from sql_rewrite.lift import lift
from sql_rewrite.plan import Core
from tests.audit.generate import Query, Scene
from tests.audit.harness import Store, run
from tests.audit.smallest import audited, scene
from tests.audit.violation import Violation

QUESTIONS = (
    "SELECT COUNT(*) FILTER (WHERE x < 4), COUNT(*) FILTER (WHERE x >= 4) FROM visits",
    "SELECT COUNT(*), COUNT(*) FILTER (WHERE x < 4), COUNT(*) FILTER (WHERE x < 7) FROM visits",
    "SELECT k, SUM(y) FILTER (WHERE x < 4), SUM(y) FILTER (WHERE x > 6) FROM visits GROUP BY k",
    "SELECT AVG(y) FILTER (WHERE x < 4), AVG(y) FILTER (WHERE NOT x < 4) FROM visits WHERE x IS NOT NULL",
)
BOUNDS = ContributionBound(rows_per_unit=4, groups_per_unit=3, rows_per_unit_and_group=3)


def world(seed: int, most: int) -> Scene:
    """Four people, of whom the first has most rows in all atoms and groups."""
    draw = random.Random(seed)
    visits = [
        {
            "person_id": person,
            "x": draw.choice((None, 0, 3, 4, 6, 7, 10)),
            "y": draw.choice((None, 0.0, 2.5, 10.0)),
            "k": draw.choice(("a", "b", None)),
        }
        for person in range(4)
        for _ in range(most if person == 0 else draw.randint(0, 4))
    ]
    return scene([{}] * 4, visits, contribution=BOUNDS)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_unit_changes_all_atoms_by_what_one_statistic_may(sql: str) -> None:
    """Shows sensitivities that are declared, on data with units far beyond the bounds, and that atoms cost nothing."""
    for seed, most in ((1, 3), (2, 9), (3, 40)):
        audited(world(seed, most), sql, 0, gaussian=seed == 2)
    (core,) = bound(lift(sql, world(1, 3).dataset))
    alone = "k, COUNT(*)" if core.core.keys[1:] else "COUNT(*)"
    (one,) = bound(lift(f"SELECT {alone} FROM visits{' GROUP BY k' * (alone[0] == 'k')}", world(1, 3).dataset))
    assert core.core.atoms is not None
    assert isinstance(core.contribution, Contribution)
    assert isinstance(one.contribution, Contribution)
    assert core.contribution.l1_rows == one.contribution.l1_rows
    assert core.contribution.l2_squared_rows == one.contribution.l2_squared_rows


def _each(core: Core, cells: tuple[tuple[KeyValue, ...], ...], power: NormPower) -> Contribution:
    """The twin: what a unit may add to one atom is taken for what it may add to all."""
    found = contribution_over_atoms(core, cells, power)
    assert isinstance(found, Contribution)
    return replace(found, groups=1, total=found.rows)


@pytest.mark.parametrize("sql", [QUESTIONS[0], QUESTIONS[1]])
def test_atoms_of_which_each_is_held_by_itself_are_caught(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants bounds of one atom for those of all."""
    monkeypatch.setattr(bounding, "contribution_over_atoms", _each)
    with pytest.raises(Violation, match="changed by"):
        audited(world(3, 40), sql, 0)


def exact(data: Scene, sql: str) -> list[list[Fraction]]:
    """The true number of rows under each atom, in rows."""
    with closing(Store(data, frozenset(data.units), seed=0)) as store:
        side = run(store, data, Query(sql, {}), gaussian=True, epsilon=Fraction(1))
    (core,) = side.sides
    found: list[list[Fraction]] = []
    for call in core.calls:
        step: Any = call.measurement.statistic.encoding
        found.append([Fraction(int(cell[0])) * step.step for cell in call.exact])
    return found


def test_units_within_bounds_add_all_that_they_have() -> None:
    """Shows the same numbers as one by one where no unit is beyond the bounds, and the whole bound of one beyond."""
    sql = QUESTIONS[0]
    visits = [{"person_id": person, "x": x} for person, xs in enumerate(((1, 5, 9), (2, 3), (7,))) for x in xs]
    visits += [{"person_id": 0, "x": None}] * 50
    inside = scene([{}] * 3, visits, contribution=BOUNDS)
    assert exact(inside, sql) == [[Fraction(3), Fraction(3)]]
    beyond = scene([{}], [{"person_id": 0, "x": x} for x in [1] * 6 + [9] * 10], contribution=BOUNDS)
    (cells,) = exact(beyond, sql)
    assert sum(cells) == pytest.approx(4, abs=1e-5)
