"""Levels that are measured together: neighbours change all nodes by no more than the event says, and reach it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from mechanisms import families
from mechanisms.consistency import Lattice
from privacy.bounds import ContributionBound
from privacy.events import GaussianEvent, LaplaceEvent
from tests.audit.harness import Store, run
from tests.audit.levels import nodes_of
from tests.audit.smallest import Query, audited, scene
from tests.audit.violation import Violation

ROLLUP = "SELECT k, x > 5 AS b, COUNT(*) AS n, SUM(x) AS s, AVG(y) AS a FROM {} GROUP BY ROLLUP (k, b)"
CUBE = "SELECT k, x > 5 AS b, COUNT(*) AS n, SUM(y) AS s FROM {} GROUP BY CUBE (k, b)"


BELOW = "SELECT k, SUM(COUNT(*)) OVER (ORDER BY k) AS n, SUM(SUM(x)) OVER (ORDER BY k) AS s FROM {} GROUP BY k"


@pytest.fixture(autouse=True)
def all_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every asked level is measured, the finest with weight 2, also of groups so few that it would not be worth it."""

    def lattice(domain: Sequence[tuple[Any, ...]], levels: Sequence[tuple[int, ...]], *_: object) -> Lattice:
        sizes = tuple(len({cell[place] for cell in domain}) for place in range(len(domain[0])))
        finest = tuple(range(len(sizes)))
        return Lattice(sizes, ((finest, 2), *((level, 1) for level in levels if level != finest)))

    def tree(domain: Sequence[tuple[Any, ...]], *_: object) -> Lattice:
        return Lattice((2, 2), (((0, 1), 2), ((0,), 1), ((), 1)), ((len(domain), 2),))

    monkeypatch.setattr(families, "_lattice_of", lattice)
    monkeypatch.setattr(families, "_tree_of", tree)


def visits_of(*owners: tuple[int, str | None, float | None]) -> list[dict[str, Any]]:
    """Visits by owner, group and value, which is whole and real."""
    return [{"person_id": who, "k": k, "x": None if v is None else int(v), "y": v} for who, k, v in owners]


WORLD = scene(
    [
        {"k": "a", "x": 7, "y": 7.0},
        {"k": "b", "x": 3, "y": float("nan")},
        {"k": None},
        {"k": "b", "x": 2**62, "y": 3.5},
    ],
    visits_of((0, "a", 10.0), (0, "b", 10.0), (0, "a", -1.0), (1, "a", None), (1, None, 4.0), *[(2, "b", 10.0)] * 5),
)


@pytest.mark.sparse(3)
@pytest.mark.parametrize("gaussian", [False, True], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("without", [0, 1, 2, 3])
def test_one_unit_changes_no_more_than_the_event_says(without: int, gaussian: bool) -> None:
    """Shows it for units of 0, 1, 2, 3 and 5 rows, with NULL, NaN and values beyond bounds; and noise and estimates."""
    for sql in (ROLLUP.format("visits"), CUBE.format("visits" if without else "people")):
        audited(WORLD, sql, without, gaussian=gaussian)
    audited(WORLD, BELOW.format("visits"), without, gaussian=gaussian)


@pytest.mark.parametrize("gaussian", [False, True], ids=["laplace", "gaussian"])
def test_the_bound_is_reached(gaussian: bool) -> None:
    """Shows that a unit with a full row in each of its two groups moves the nodes by all of the event's sensitivity."""
    world = scene([{}], visits_of((0, "a", 10.0), (0, "b", 10.0)), contribution=ContributionBound(2, 2, 1))
    query = Query("SELECT k, COUNT(*) AS n FROM visits GROUP BY ROLLUP (k)", {})
    store = Store(world, frozenset(world.units), seed=1)
    side = run(store, world, query, gaussian=gaussian, epsilon=Fraction(1))
    store.close()
    (call,) = side.sides[0].calls
    nodes = [abs(value) for row in nodes_of(call.measurement, call.exact) for value in row]  # type: ignore[arg-type]
    event = call.event
    if isinstance(event, LaplaceEvent):
        assert sum(nodes) == event.l1_sensitivity == 6
    else:
        assert isinstance(event, GaussianEvent)
        assert sum(node**2 for node in nodes) == event.l2_squared == 12


@pytest.mark.parametrize("gaussian", [False, True], ids=["laplace", "gaussian"])
def test_levels_that_are_not_paid_are_found(gaussian: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants a price for the finest level alone, and one that forgets that a unit adds up in coarser groups."""
    world = scene([{}], visits_of((0, "a", 10.0), (0, "b", 10.0)), contribution=ContributionBound(2, 2, 1))
    rolled = "SELECT k, COUNT(*) AS n FROM visits GROUP BY ROLLUP (k)"
    bugs = [lambda self, power, groups: self.weights[0][1] ** power]
    if gaussian:
        bugs.append(lambda self, power, groups: sum(weight**power for _, weight in self.weights))
    for bug in bugs:
        monkeypatch.setattr(Lattice, "change", bug)
        for sql in (rolled, BELOW.format("visits")):
            with pytest.raises(Violation, match="levels or rounding to the grid are not in the event"):
                audited(world, sql, 0, gaussian=gaussian)


def test_an_estimate_that_is_not_least_squares_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants an estimate that is one away: the audit solves the equations by elimination, from the event's noise."""
    genuine = Lattice.consistent

    def consistent(self: Lattice, noisy: Any) -> Any:
        found = genuine(self, noisy)
        found[0] += 1
        return found

    monkeypatch.setattr(Lattice, "consistent", consistent)
    with pytest.raises(Violation, match="the noise is not that of the charged event"):
        audited(WORLD, ROLLUP.format("people"), 0)
