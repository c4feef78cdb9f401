"""Sums that monitors compare, on neighbours: what one unit does to the distance that meets noise, over two versions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms import comparing, gateway
from mechanisms.comparing import Comparable, comparable, compare
from mechanisms.measurement import Integers
from mechanisms.randomness import BitSource
from mechanisms.sparse_vector import Hit, SparseRun, SparseVector
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from tests.audit.generate import Scene
from tests.audit.harness import Store
from tests.audit.test_choices import world
from tests.audit.violation import Violation, require
from tests.mechanisms.support import SeededBits

QUERIES = (
    "SELECT COUNT(*) FROM people",
    "SELECT COUNT(*) FROM visits",
    "SELECT COUNT(x) FROM visits WHERE y > 0",
    "SELECT COUNT(DISTINCT person_id) FROM visits",
    "SELECT COUNT(DISTINCT k) FROM visits",
    "SELECT SUM(x) FROM visits",
    "SELECT SUM(x) FROM visits WHERE k = 'a'",
    "SELECT COUNT(*) FROM visits JOIN people USING (person_id) WHERE people.k = 'a'",
)


def _distance(
    scene_: Scene, core: BoundedCore, units: frozenset[Any], *, below: bool, seed: int
) -> tuple[int, SparseRun]:
    """What meets noise, with the run that it meets: read at the gateway."""
    found = comparable(core.described)
    require(found is not None, "not compared")
    assert found is not None
    sparse = SparseVector.for_epsilon(
        Fraction(1), sensitivity=found.change, hits=1, one_way=found.one_way, interactive=True
    )
    seen: list[tuple[int, SparseRun]] = []

    def keep(run: SparseRun, distances: Integers, bits: BitSource) -> tuple[Hit, ...]:
        seen.append((int(distances[0]), run))
        return ()

    with closing(Store(scene_, units, seed=seed)) as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(gateway, "compare", keep)
        bits = SeededBits(1)
        exact = store.exact(lower(core))
        compare(core.described, sparse.start(bits), exact, threshold=7, below=below, bits=bits)
    return seen[0]


def audited(scene_: Scene, sql: str, *, below: bool = False) -> Fraction:
    """Compares each neighbour without one unit, on two versions of the data. How much of the change was seen.

    The versions are with all units and without one of them: a unit's whole history is there, or is not.
    """
    (core,) = bound(lift(sql, scene_.dataset))
    every, greatest = frozenset(scene_.units), Fraction(0)
    (last,) = (unit for unit in scene_.units if unit == max(scene_.units))
    for unit in scene_.units:
        signs = set()
        for version in (every, every - {last}):
            more, run = _distance(scene_, core, version, below=below, seed=1)
            less, _ = _distance(scene_, core, version - {unit}, below=below, seed=2)
            moved = more - less
            charged = run.mechanism.event()
            require(abs(moved) <= charged.sensitivity, f"a distance changed by {moved}")
            greatest = max(greatest, abs(moved) / charged.sensitivity)
            signs |= {moved > 0} if moved else set()
            require(charged.moves == 2 or len(signs) <= 1, "distances moved in both directions")
            found = comparable(core.described)
            assert found is not None
            upwards = found.upwards != below
            require(charged.moves == 2 or signs <= {upwards}, "distances moved against the stated direction")
    return greatest


@pytest.mark.parametrize(
    ("sql", "below"), [(sql, place % 2 == 0) for place, sql in enumerate(QUERIES)] + [(QUERIES[0], False)]
)
@pytest.mark.sparse(7)
def test_one_unit_moves_a_distance_by_no_more_than_is_charged(sql: str, *, below: bool) -> None:
    """Shows sensitivity and direction in either direction of a monitor, on units of 0, 1, 3, 5 and 50 rows."""
    for bounds in (("0", "10"), ("-10", "4"), ("-10", "-4")):
        seen = audited(world(bounds), sql, below=below)
        assert seen <= 1
        # Texts and edges of values of this world do not reach what a sum or shared values may do.
        assert seen >= Fraction(1, 2) or "SUM" in sql or "DISTINCT k" in sql
        if "SUM" not in sql:
            break


def test_signed_sums_and_shared_values_are_charged_for_both_directions() -> None:
    """Shows which sums have one direction: counts of rows and of units, and sums of one sign."""

    def way(sql: str, bounds: tuple[str, str] = ("0", "10")) -> Comparable:
        (core,) = bound(lift(sql, world(bounds).dataset))
        found = comparable(core.described)
        assert found is not None
        return found

    assert [way(sql).one_way for sql in QUERIES[:4]] == [True] * 4
    assert not way(QUERIES[4]).one_way
    assert way(QUERIES[5]).one_way
    assert not way(QUERIES[5], ("-10", "4")).one_way
    assert (way(QUERIES[5], ("-10", "-4")).one_way, way(QUERIES[5], ("-10", "-4")).upwards) == (True, False)


def half_change(patch: pytest.MonkeyPatch) -> None:
    """A unit's several rows are forgotten."""
    genuine = comparing.comparable
    _plant(patch, lambda core: replace(found := genuine(core), change=found.change / 2))  # type: ignore[type-var]


def one_direction(patch: pytest.MonkeyPatch) -> None:
    """Signed sums are charged for one direction."""
    genuine = comparing.comparable
    _plant(patch, lambda core: replace(genuine(core), one_way=True))  # type: ignore[type-var]


def _plant(patch: pytest.MonkeyPatch, bug: Callable[..., Any]) -> None:
    patch.setattr("tests.audit.test_monitors.comparable", bug)


@pytest.mark.parametrize(
    ("plant", "sql", "says"),
    [
        (half_change, QUERIES[1], "a distance changed by"),
        (one_direction, QUERIES[5], "against the stated direction|both directions"),
    ],
)
def test_planted_bugs_are_seen(
    plant: Callable[[pytest.MonkeyPatch], None], sql: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that a sensitivity that is too small, and a direction that is not kept, are caught."""
    plant(monkeypatch)
    with pytest.raises(Violation, match=says):
        audited(world(("-4", "10")), sql)


def test_a_comparison_shows_nothing_but_its_outcome() -> None:
    """Shows that the true distance has no text form, and that a comparison below shows no number."""
    scene_ = world()
    (core,) = bound(lift(QUERIES[0], scene_.dataset))
    sparse = SparseVector.for_epsilon(Fraction(10), sensitivity=Fraction(1), hits=1, one_way=True, interactive=True)
    bits = SeededBits(2)
    with closing(Store(scene_, frozenset(scene_.units), seed=1)) as store:
        exact = store.exact(lower(core))
        compared = compare(core.described, sparse.start(bits), exact, threshold=500_000, below=False, bits=bits)
    assert compared.hit is None
    assert "4999" not in f"{compared!r} {compared}"
    assert np.isclose(float(sparse.event().epsilon), 10)
