"""Quantiles on neighbouring data: a unit is in one interval of each level of a tree, and changes nothing else."""

from __future__ import annotations

import math
from contextlib import ExitStack, closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms.calibrate import Price, calibrate
from mechanisms.families import NoiseFamily
from mechanisms.fitted_trees import fitting
from mechanisms.release import _counted
from privacy.bounds import ContributionBound
from privacy.norms import NormPower
from sql_rewrite import lower as lowering
from sql_rewrite.bound import bound
from sql_rewrite.layer_values import Count
from sql_rewrite.lift import lift
from sql_rewrite.relations import Grouped, Output, Relation
from sql_rewrite.scalars import Arithmetic, Cast, EngineType, Whole
from tests.audit.generate import Query, Scene
from tests.audit.harness import Audit, Store, Tally
from tests.audit.normed import Seen, automatic, check_stores
from tests.audit.smallest import scene
from tests.audit.violation import Violation

PEOPLE: list[dict[str, Any]] = [
    {"x": 3, "y": 2.5, "k": "a", "w": "one"},
    {"x": 3, "y": 2.5, "k": "a", "w": "two"},
    {"x": 10, "y": 10.0, "k": "b", "w": "one"},
    {"x": -(2**63), "y": -math.inf, "k": "b", "w": None},
    {"x": 2**63 - 1, "y": 1.7976931348623157e308, "k": None, "w": "x"},
    {"x": None, "y": math.nan, "k": "a", "w": "y"},
    {"x": 0, "y": -0.0, "k": "b", "w": "z"},
    {"x": 7, "y": 5e-324, "k": None, "w": "z"},
]
QUERIES = (
    ("SELECT MEDIAN(y) FROM people", True),
    ("SELECT QUANTILE_CONT(x, 0.9), QUANTILE_DISC(x, 0.1), MIN(x), COUNT(*), AVG(x) FROM people", False),
    ("SELECT k, MEDIAN(x), MAX(x) FROM people GROUP BY k", True),
    ("SELECT k, PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY x * 2 - x) FROM people GROUP BY k", False),
    ("SELECT MEDIAN(x) FILTER (WHERE w <> 'one'), MEDIAN(x) FILTER (WHERE y > 2) FROM people WHERE k = 'a'", True),
)


def audit(world: Scene, sql: str, without: int, *, gaussian: bool, epsilon: Fraction = Fraction(1)) -> Tally:
    """Audits one triple."""
    tally = Tally()
    Audit(world, Query(sql, {}), gaussian, epsilon, frozenset(world.units) - {without}).check(tally)
    assert not tally.refused
    return tally


@pytest.mark.slow
@pytest.mark.parametrize(("sql", "gaussian"), QUERIES)
def test_one_person_changes_one_interval_of_each_level(sql: str, gaussian: bool) -> None:
    """Sums are those of the definition, and move by no more than is declared, whoever is left out."""
    world = scene(PEOPLE)
    for without in (0, 2, 4, 5) if "(y)" in sql else range(len(PEOPLE)):
        assert "ranks" in audit(world, sql, without, gaussian=gaussian).kinds


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    ("bounds", "column"), [(("-10", "-2"), "x"), (("0", "0"), "x"), (("0", "1000000"), "x"), (("0", "10"), "y")]
)
def test_the_declared_bound_is_attained(bounds: tuple[str, str], column: str) -> None:
    """A person with a value moves a tree by all of its sensitivity in each norm; nothing is charged in vain."""
    world = scene([{"x": 5, "y": 5.0}, {}], bounds=bounds)
    tally = audit(world, f"SELECT MEDIAN({column}) FROM people", 0, gaussian=True)
    for most in (tally.tightest, tally.squares, tally.greatest):
        assert most["ranks"] == 1


OWNERS = (0, 1, 1, 2, 2, 2, 3, 3, 3, 3, *[4] * 30)
VISITS: list[dict[str, Any]] = [
    {"person_id": owner, **PEOPLE[place % len(PEOPLE)], **({"w": "one"} if owner == 4 and place % 3 else {})}
    for place, owner in enumerate(OWNERS)
]
SEVERAL = (
    "SELECT MEDIAN(y), COUNT(*) FROM visits",
    "SELECT QUANTILE_CONT(x, 0.9), MEDIAN(2 * x) FILTER (WHERE w <> 'one'), AVG(x) FROM visits WHERE k = 'a'",
    "SELECT k, MAX(x), SUM(x), MEDIAN(x) FROM visits GROUP BY k",
    "SELECT w, MEDIAN(x) FROM visits GROUP BY w",
    "SELECT w, k, MIN(x) FILTER (WHERE y > 2), COUNT(DISTINCT x) FROM visits GROUP BY w, k",
    "SELECT p.k, MEDIAN(v.x) FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY p.k",
    "SELECT p.w, MEDIAN(v.x) FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY p.w",
)
"""Of units with 0, 1, 2, 3, 4 and 30 rows, with nothing, NULL, infinities and extremes among them."""


@pytest.mark.sparse(8)
@pytest.mark.parametrize("sql", SEVERAL)
@pytest.mark.parametrize(
    "bound", [ContributionBound(3, 2, 3), ContributionBound(8, 1, 8), ContributionBound(2, 5, 7)], ids=str
)
def test_a_person_with_several_rows_moves_no_more_than_its_allotted_rows(sql: str, bound: ContributionBound) -> None:
    """Rows are weighed as the definition says, in every group and on every level."""
    world = scene([*PEOPLE[:5], {}], VISITS, contribution=bound)
    for gaussian, without in ((True, 4), (False, 2), (True, 5)):
        tally = audit(world, sql, without, gaussian=gaussian and "DISTINCT" not in sql)
        assert any(kind.startswith("ranks") for kind in tally.kinds)


@pytest.mark.parametrize("gaussian", [True, False])
def test_where_no_group_is_shown_no_quantile_is(*, gaussian: bool) -> None:
    """Shows that hidden groups are answered where there is none, where one is not shown, and with all aggregates."""
    world = scene([{"w": "one", "x": 3, "y": 1.0}, {}])
    sql = "SELECT w, MEDIAN(y), QUANTILE_DISC(x, 0.9), MIN(x), COUNT(*) FROM people WHERE x = 3 GROUP BY w"
    audit(world, sql, 0, gaussian=gaussian)


@pytest.mark.parametrize("without", [0, 1])
def test_the_bound_of_several_rows_is_attained(without: int) -> None:
    """Many rows of one value move a tree by all of its sensitivity, whether or not they are too many."""
    rows = [{"person_id": 0, "y": 5.0}] * 3 + [{"person_id": 1, "y": 5.0}] * 8
    tally = audit(scene([{}, {}], rows, contribution=ContributionBound(3, 1, 3)), "SELECT MEDIAN(y) FROM visits",
                  without, gaussian=True)  # fmt: skip
    for most in (tally.tightest, tally.squares, tally.greatest):
        assert most["ranks of parts"] == pytest.approx(1, abs=1e-5)


@pytest.mark.slow
@pytest.mark.sparse(3)
@pytest.mark.parametrize("sql", [text for text in SEVERAL if "DISTINCT" not in text])
@pytest.mark.parametrize("power", NormPower)
def test_a_person_moves_no_more_than_its_norm(sql: str, power: NormPower) -> None:
    """The same where a question chooses norms, at norms below and above those of the units."""
    if power is NormPower.L1 and "w," in sql and "p.w" not in sql:
        return  # hidden groups of Laplace noise are bounded by counts
    world = automatic(scene([*PEOPLE[:5], {}], VISITS))
    seen = Seen()
    with ExitStack() as stack:
        units = frozenset(world.units)
        stores = [
            stack.enter_context(closing(Store(world, units - left, seed=1)))
            for left in (frozenset[int](), {4}, {2}, {5})
        ]
        for seed in range(3):
            check_stores(world, stores, Query(sql, {}), power=power, seed=seed, seen=seen)
    assert seen.cores == 3
    assert seen.triples == 9


HEAVY = scene([{}, {}], [{"person_id": 0, "y": 5.0}, *[{"person_id": 1, "y": 5.0, "k": "a"}] * 12],
              contribution=ContributionBound(3, 2, 3))  # fmt: skip


@pytest.mark.parametrize("auto", [False, True])
def test_rows_that_are_not_weighed_are_caught(monkeypatch: pytest.MonkeyPatch, *, auto: bool) -> None:
    """A planted bug: each row of a unit weighs one, however many there are."""

    def whole(rows: Relation, *rest: Any, **more: Any) -> Relation:
        return _with_weight_one(genuine(rows, *rest, **more))

    genuine = lowering.places_summed
    monkeypatch.setattr(lowering, "places_summed", whole)
    with ExitStack() as stack, pytest.raises(Violation, match=r"expected|changed by"):
        _look_at_the_heavy(stack) if auto else audit(
            HEAVY, "SELECT k, MEDIAN(y) FROM visits GROUP BY k", 1, gaussian=True
        )


def _look_at_the_heavy(stack: ExitStack) -> None:
    world = automatic(HEAVY)
    stores = [stack.enter_context(closing(Store(world, frozenset(units), seed=1))) for units in ((0, 1), (0,))]
    query = Query("SELECT MEDIAN(y) FROM visits", {})
    check_stores(world, stores, query, power=NormPower.L2, seed=0, seen=Seen())


def _with_weight_one(relation: Relation) -> Relation:
    """The counts by place where the sum of weights is that of as many ones."""
    assert isinstance(relation, Grouped)
    inner = relation.rows
    assert isinstance(inner, Grouped)
    ones = Arithmetic("*", Count(), Cast(Whole(2**20), EngineType.INTEGER), EngineType.INTEGER)
    return replace(relation, rows=replace(inner, outputs=(Output(ones, inner.outputs[0].name),)))


def test_a_tree_that_is_halved_has_the_sums_of_the_finer_one() -> None:
    """Where very many hidden groups are shown: the same sensitivity, and counts of as many rows on each level."""
    dataset = scene(PEOPLE).dataset
    (core,) = bound(lift("SELECT w, MEDIAN(x), MEDIAN(y) FROM people GROUP BY w", dataset))
    price = Price(NoiseFamily.GAUSSIAN, Fraction(1), Fraction(1, 10**7))
    calibration = calibrate([core.described], price)
    for groups, places in ((900, 64), (3_000, 16), (100_000, 4)):
        fitted = fitting(calibration, core.described.name, groups=groups)
        assert fitted.events() == calibration.events()
        for item in core.described.statistics:
            if item.tree is None:
                continue
            found = fitted.measurement(core.described.name, item.name).statistic
            assert found.tree is not None
            assert found.encoding is not None
            assert found.tree.places == places
            assert found.encoding.highest < places
            matrix = np.arange(3 * item.tree.places).reshape(3, -1)
            fine, coarse = (_counted(one, matrix) for one in (item, found))
            assert (coarse.sum(axis=1) == fine.sum(axis=1)).all()
            assert (coarse[:, : found.tree.branching].reshape(3, found.tree.branching, -1).sum(axis=(1, 2))
                    == matrix.sum(axis=1)).all()  # fmt: skip
