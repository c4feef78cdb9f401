"""Texts by which batches are answered, on neighbours: one unit moves what meets noise by no more than is charged."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest

from mechanisms import families
from mechanisms.consistency import Lattice
from mechanisms.measurements.levels import GaussianLevels, LaplaceLevels
from mechanisms.trees import prefixes
from privacy.bounds import ContributionBound
from sql_rewrite.batch_axes import axes_of
from sql_rewrite.batch_forms import cells_of, disjoint, disjoint_text, ones_text
from sql_rewrite.batch_text import read_batch
from tests.audit.harness import Store, run
from tests.audit.smallest import Query, audited, scene
from tests.audit.test_levels import visits_of
from tests.audit.violation import Violation

VISITS = ContributionBound(4, 4, 4)
WORLD = scene(
    [{"k": "a", "x": 7, "y": 7.0}, {"k": "b", "x": 0, "y": float("nan")}, {"k": None}, {"k": "b", "x": 2**62}],
    visits_of((0, "a", 0.0), (0, "b", 3.0), (0, "a", 9.0), (1, "a", None), (1, None, 4.0), *[(2, "b", 5.0)] * 6),
    contribution=VISITS,
)
LEAVES = scene([{}], visits_of((0, "a", 0.0), (0, "b", 3.0)), contribution=ContributionBound(2, 2, 1))
"""One unit, with a full row in each of two leaves of one node."""


def texts(table: str, conditions: Sequence[str], bases: tuple[int, ...] | None) -> list[str]:
    """All the texts by which a batch with these conditions may be answered."""
    written = [f"SELECT COUNT(*) FROM {table} WHERE {condition}" for condition in conditions]
    read = read_batch(written, WORLD.dataset)
    found = [ones_text(read.source, read.queries)]
    if disjoint(read.queries):
        found.append(disjoint_text(read.source, read.queries)[0])
    axes = axes_of(read.queries)
    assert axes is not None
    found.append(cells_of(read.source, *axes).text)
    if bases is not None:
        found.append(cells_of(read.source, *axes, bases=bases).text)
    return found


RANGES = ["x BETWEEN 0 AND 3", "x BETWEEN 2 AND 9", "x >= 0 AND x < 7", "x = 5"]
"""Cuts at 0, 2, 4, 5, 6, 7 and 10: six pieces."""
BATCHES = {
    "ranges": (RANGES, (3, 2)),
    "disjoint": (["x BETWEEN 0 AND 3", "x BETWEEN 4 AND 9"], None),
    "two columns": (["x < 5", "k = 'a'", "k = 'a' AND x < 5", "k IN ('a', 'b') AND x >= 5"], None),
    "others": (["x + y > 3", "k IS NULL", "y < 4.5 AND x + y > 3"], None),
}


@pytest.mark.sparse(10)
@pytest.mark.parametrize("gaussian", [False, True], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("table", ["people", "visits"])
def test_one_unit_changes_no_more_than_the_event_says(name: str, table: str, gaussian: bool) -> None:
    """Shows it for every text of a batch, and units without rows, in one cell, and in several leaves."""
    conditions, bases = BATCHES[name]
    for sql in texts(table, conditions, bases):
        for without in (0, 2):
            audited(WORLD, sql, without, gaussian=gaussian)


@pytest.fixture
def every_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """All levels of a tree are measured, also where there are too few cells for that to be worth it."""

    def lattice(domain: Sequence[tuple[object, ...]], *_: object) -> Lattice:
        sizes = tuple(len({cell[place] for cell in domain}) for place in range(len(domain[0])))
        return Lattice(sizes, tuple((level, 1) for level in prefixes(len(sizes))))

    monkeypatch.setattr(families, "_lattice_of", lattice)


@pytest.mark.usefixtures("every_level")
@pytest.mark.parametrize("gaussian", [False, True], ids=["laplace", "gaussian"])
def test_a_tree_priced_as_one_level_is_found(gaussian: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants a price of the leaves alone, and of units that are in one leaf: the audit names what is not paid."""
    sql = texts("visits", RANGES, (3, 2))[-1]
    audited(LEAVES, sql, 0, gaussian=gaussian)
    bugs = [lambda self, power, groups: self.weights[0][1] ** power]
    if gaussian:
        bugs.append(lambda self, power, groups: sum(weight**power for _, weight in self.weights))
    for bug in bugs:
        with monkeypatch.context() as planted:
            planted.setattr(Lattice, "change", bug)
            with pytest.raises(Violation, match="levels or rounding to the grid are not in the event"):
                audited(LEAVES, sql, 0, gaussian=gaussian)


@pytest.mark.usefixtures("every_level")
def test_all_levels_of_a_tree_meet_noise_once() -> None:
    """Shows that the text of a tree is one measurement of all its levels, with digits in the order of the tree."""
    sql = texts("people", RANGES, (3, 2))[-1]
    store = Store(WORLD, frozenset(WORLD.units), seed=1)
    side = run(store, WORLD, Query(sql, {}), gaussian=True, epsilon=Fraction(1))
    store.close()
    (call,) = side.sides[0].calls
    assert isinstance(call.measurement, GaussianLevels | LaplaceLevels)
    assert call.measurement.lattice.sizes == (3, 2)
    assert [len(level) for level, _ in call.measurement.lattice.weights] == [2, 1, 0]
