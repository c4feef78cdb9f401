"""Products of two values and higher moments: neighbours under both ways of bounding a unit, and planted bugs.

The same audits as in test_neighbours.py and test_norms.py, with queries that ask for little else: exact sums against a
second implementation from the definition, and how far one unit moves them, in all four norms.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from privacy.statistic import StatisticKind
from sql_rewrite import lower_units, lower_vector
from sql_rewrite.bound import _Builder
from sql_rewrite.bounded import BoundedStatistic
from sql_rewrite.scalars import Coalesce, Named, Scalar, Whole
from tests.audit import harness, normed
from tests.audit.generate import make_query_of_products
from tests.audit.harness import Tally, audit_scene
from tests.audit.normed import Seen, audit_norms
from tests.audit.test_attained import KINDS
from tests.audit.violation import Violation

PARTS = 6
NIGHTLY = [0, *(pytest.param(part, marks=pytest.mark.nightly) for part in range(1, PARTS))]
"""One part by day."""


@pytest.fixture(autouse=True)
def of_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both audits ask for products."""
    for module in (harness, normed):
        monkeypatch.setattr(module, "make_query", make_query_of_products)


@pytest.mark.timeout(300)
@pytest.mark.slow
@pytest.mark.parametrize("part", NIGHTLY)
def test_one_unit_changes_no_more_than_declared(part: int) -> None:
    """Random triples where counts bound a unit."""
    tally = Tally()
    for seed in (5_000 + part,):
        audit_scene(seed, queries=10, neighbours=2, tally=tally)
    assert any(kind.startswith("products") for kind in tally.kinds)
    assert tally.kinds.keys() <= KINDS.keys()


@pytest.mark.timeout(300)
@pytest.mark.slow
@pytest.mark.parametrize("part", NIGHTLY)
def test_one_scaled_unit_changes_no_more_than_declared(part: int) -> None:
    """Random triples where units are scaled to norms, in L1 and L2."""
    seen = Seen()
    audit_norms(6_000 + part, queries=4, neighbours=1, seen=seen)
    assert seen.triples


def _null_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A row without its second value counts as one at its lower bound, in a sum whose bound it is not in."""
    genuine = lower_vector._both

    def both(item: BoundedStatistic) -> object:
        first, second = genuine(item)
        return first, second and (*second[:2], Coalesce((second[2], Whole(0))))

    patch.setattr(lower_vector, "_both", both)


def _running_sums_out_of_order(patch: pytest.MonkeyPatch) -> None:
    """Every running sum is the last one: entries are no longer what the rows add."""
    genuine = lower_units.UnitSums.scaled

    def scaled(self: lower_units.UnitSums, item: BoundedStatistic, running: Scalar) -> Scalar:
        last = Coalesce((Named(lower_vector.tail_names(item)[-1]), Whole(0)))
        return genuine(self, item, last if lower_vector.by_tails(item) else running)

    patch.setattr(lower_units.UnitSums, "scaled", scaled)


def _second_degree_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The sensitivity of a pair is that of its first value."""
    genuine = _Builder._add

    def add(self: _Builder, name: str, kind: StatisticKind, **named: object) -> None:
        if kind is StatisticKind.PRODUCTS:
            encoding = named["encoding"]
            named["per_row"] = encoding.highest ** named["degree"]  # type: ignore[attr-defined,operator]
        genuine(self, name, kind, **named)  # type: ignore[arg-type]

    patch.setattr(_Builder, "_add", add)


@pytest.mark.timeout(300)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "says"),
    [
        (_null_is_forgotten, "expected|changed by"),
        (_running_sums_out_of_order, "expected|changed by"),
        (_second_degree_forgotten, "changed by|beyond|failed"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_bug_is_caught(plant: Callable[[pytest.MonkeyPatch], None], says: str) -> None:
    """Each deliberate bug in the sums of products is found among a few hundred triples."""
    said = "nothing"
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        for seed in range(5_000, 5_030):
            try:
                audit_scene(seed, queries=10, neighbours=2, tally=Tally(), shrink=False)
            except Violation as violation:
                said = str(violation)
                break
    assert re.search(says, said), said
