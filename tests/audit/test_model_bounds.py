"""Bounds that models choose, on neighbours: they follow from what was released, and norms hold within any of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms import gateway
from mechanisms import release as releasing
from mechanisms.measurement import Integers, Measurement, Perturbed
from mechanisms.private_descent import Method, ModelNoise
from mechanisms.randomness import BitSource
from privacy.bounds import AutomaticContribution, ValueBounds
from privacy.composition import compose
from privacy.policy import Dataset
from privacy.statement import Statement
from privacy.training import greatest_change, width_of
from server.models import chosen_bounds
from server.models.chosen_bounds import histograms_of, left_for_model
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.training import lift_training
from tests.audit.generate import Scene
from tests.audit.harness import Store
from tests.audit.recorder import FixedBits
from tests.audit.test_choices import world
from tests.audit.test_models import designs_of, measured, weights_of
from tests.audit.violation import Violation, require

SQL = "SELECT x, y + 1 AS more, x * y AS both, k = 'a' AS a, x > 2 AS label FROM visits"
MU_SQUARED = Fraction(1, 2)
CHOSEN = [(-1, 1), (0, 4096), (-8, 0), (0, 0)]


def unbounded(dataset: Dataset) -> Dataset:
    """The dataset without bounds of y, and a policy that lets questions choose some."""
    tables = tuple(
        replace(table, columns=tuple(replace(one, bounds=None) if one.name == "y" else one for one in table.columns))
        for table in dataset.tables
    )
    return replace(dataset, tables=tables, limits=replace(dataset.limits, automatic_bounds=True))


def opened() -> Scene:
    """Units with up to 50 visits; the y of one lies far beyond those of all others."""
    scene_ = world(("-4", "10"))
    return replace(scene_, dataset=unbounded(scene_.dataset))


def automatic(scene_: Scene) -> Scene:
    """The scene with nothing declared of how much a unit takes part."""
    tables = tuple(
        table if table.contribution is None else replace(table, contribution=AutomaticContribution())
        for table in scene_.dataset.tables
    )
    return replace(scene_, dataset=replace(scene_.dataset, tables=tables))


@pytest.mark.parametrize("declared", [opened, lambda: automatic(opened())], ids=["declared", "automatic"])
@pytest.mark.parametrize("ends", CHOSEN)
@pytest.mark.sparse(2)
def test_norms_hold_within_any_bounds(ends: tuple[int, int], declared: Callable[[], Scene]) -> None:
    """Shows that one unit changes no sum by more than is charged, whatever a histogram chose."""
    scene_ = declared()
    place = ("visits", "y")
    bounds = {place: ValueBounds(Fraction(ends[0]), Fraction(ends[1]))}
    training = lift_training(SQL, scene_.dataset, DUCKDB, chosen=bounds)
    assert (training.open, set(training.used)) == ((place,), {place})
    assert [feature.chosen for feature in training.statement.features] == [False, True, True, False]
    width, every = width_of(training.statement.features), frozenset(scene_.units)
    wholes = designs_of(training.statement, scene_, every, seed=1)
    for unit in (2, 3):
        others = designs_of(training.statement, scene_, every - {unit}, seed=2)
        for (clipping, whole), (_, other) in zip(wholes, others, strict=True):
            for wanted in measured(clipping):
                for weights in weights_of(width, wanted):
                    more, less = (one.sums(wanted, weights) for one in (whole, other))
                    square = sum((a - b) ** 2 for a, b in zip(more, less, strict=True))
                    require(square <= greatest_change(wanted, clipping), f"{wanted.value} changed by too much")


def rows_of(scene_: Scene, without: int | None) -> Statement:
    """The rows that a model would read, after its histogram was released of these units."""
    training = lift_training(SQL, scene_.dataset, DUCKDB)
    histograms = histograms_of(training, scene_.dataset, DUCKDB)
    assert histograms is not None
    stage = histograms.priced(MU_SQUARED)
    with closing(Store(scene_, frozenset(scene_.units) - {without}, seed=1)) as store:
        tables = [
            releasing.release(
                one.bounded.described,
                stage.calibration,
                store.exact(statement),
                bits=FixedBits(0),
                confidence=Fraction(95, 100),
            )
            for one, statement in zip(histograms.histograms, histograms.statements, strict=True)
        ]
    width = width_of(training.statement.features)
    chosen = stage.chosen(tables, columns=width, mu_squared=MU_SQUARED)
    bounds = {place: ValueBounds(choice.lower, choice.upper) for place, choice in chosen.items()}
    return lift_training(SQL, scene_.dataset, DUCKDB, chosen=bounds).statement.rows


def compared(scene_: Scene) -> None:
    """The rows are asked for alike with and without each unit. Errors: Violation."""
    whole = rows_of(scene_, None)
    for unit in (1, 3):
        require(rows_of(scene_, unit) == whole, "bounds follow from more than what was released")


def released(measurement: Measurement, exact: Integers, bits: BitSource) -> Perturbed:
    """What the gateway returned, in both worlds."""
    return Perturbed(np.arange(exact.size, dtype=np.int64).reshape(exact.shape) % 900)


def looked(measurement: Measurement, exact: Integers, bits: BitSource) -> Perturbed:
    """A bug: true counts, without noise."""
    return Perturbed(exact * (10_000 // measurement.grid + 1))


def test_bounds_follow_from_what_was_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the same statement for every neighbour once the gateway said the same; and that looking is caught."""
    scene_ = opened()
    with monkeypatch.context() as patch:
        patch.setattr(gateway, "perturb", released)
        compared(scene_)
    with monkeypatch.context() as patch:
        patch.setattr(gateway, "perturb", looked)
        with pytest.raises(Violation, match="more than what was released"):
            compared(scene_)


def test_the_histograms_are_in_the_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that both together cost no more than was asked for; a model that has all of it for itself is refuted."""
    scene_ = opened()
    training = lift_training(SQL, scene_.dataset, DUCKDB)
    histograms = histograms_of(training, scene_.dataset, DUCKDB)
    assert histograms is not None

    def whole() -> Fraction:
        noise = ModelNoise(
            method=Method.INPUT_CLIPPING,
            width=5,
            mu_squared=chosen_bounds.left_for_model(MU_SQUARED, histograms),
            iterations=10,
            held=100,
            classes=True,
        )
        loss = compose((noise.event(), *histograms.priced(MU_SQUARED).events({})))
        assert loss.mu_squared is not None
        return loss.mu_squared

    assert MU_SQUARED * Fraction(99, 100) < whole() <= MU_SQUARED
    assert left_for_model(MU_SQUARED, None) == MU_SQUARED
    every: Any = lambda mu_squared, _: mu_squared  # noqa: E731
    monkeypatch.setattr(chosen_bounds, "left_for_model", every)
    assert whole() > MU_SQUARED * Fraction(6, 5)
