"""Sums that models are fitted to, on neighbours: what one unit adds, what the measurements of a model cost together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from engines import design
from engines.design import Design, DesignColumn, Gathered
from engines.encoding import DesignRows, encode_rows
from engines.handlers.training import read_design
from mechanisms import gateway, private_descent
from mechanisms.measurement import Integers, Measurement
from mechanisms.private_descent import Descent, Method, ModelNoise, regression
from mechanisms.randomness import BitSource
from privacy.exact import Exact
from privacy.training import (
    CLIPPED_UNITS,
    ROW_UNITS,
    WEIGHT_UNITS,
    Clipping,
    TrainingStatement,
    Wanted,
    greatest_change,
    greatest_norm,
    sums_of,
    width_of,
)
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.training import lift_training
from tests.audit.generate import Scene
from tests.audit.harness import Store
from tests.audit.test_choices import world
from tests.audit.violation import Violation, require
from tests.mechanisms.support import SeededBits

VISITS = "SELECT x, GREATEST(-2, LEAST(y, 9)) AS y, k = 'a' AS a, y > 0 AS label FROM visits"
QUERIES = (
    VISITS,
    "SELECT x, k = 'b' AS b, x > 2 AS label FROM people",
    "SELECT visits.x, people.x AS own, visits.x > 3 AS label FROM visits JOIN people USING (person_id)",
    "SELECT n, x > 2 AS label FROM people JOIN (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id) AS v "
    "USING (person_id)",
    "SELECT v.x, n, people.x > 2 AS label FROM (SELECT person_id, x, ROW_NUMBER() OVER (PARTITION BY person_id "
    "ORDER BY x, y, k) AS n FROM visits) AS v JOIN people USING (person_id) WHERE people.x > -3",
)
HELD = 600


def statement_of(sql: str, scene_: Scene) -> TrainingStatement:
    """The rows of a text."""
    return lift_training(sql, scene_.dataset, DUCKDB).statement


def designs_of(
    statement: TrainingStatement, scene_: Scene, units: frozenset[Any], *, seed: int
) -> list[tuple[Clipping, Design]]:
    """The encoded rows of some units, as a worker reads them, at norms that bind and at norms that do not."""
    most = greatest_norm(statement.features)
    norms = [(Clipping.INPUTS, clip) for clip in (most, most // 3)]
    norms += [(Clipping.GRADIENTS, int(CLIPPED_UNITS * share)) for share in (0.9, 0.2)]
    with closing(Store(scene_, units, seed=seed)) as store, closing(store.connection.cursor()) as cursor:
        return [
            (clipping, read_design(cursor, encode_rows(DesignRows(statement, HELD, clipping, clip))))
            for clipping, clip in norms
        ]


def measured(clipping: Clipping) -> list[Wanted]:
    """What is added up where this is held to a norm."""
    return [wanted for wanted in Wanted if wanted is not Wanted.PRODUCTS or clipping is Clipping.INPUTS]


def weights_of(width: int, wanted: Wanted) -> list[list[int]]:
    """None at all, and some that no row has made, for what follows from weights."""
    if wanted in (Wanted.COUNT, Wanted.PRODUCTS):
        return [[]]
    random = np.random.Generator(np.random.Philox(4))
    return [[0] * width, random.integers(-9 * WEIGHT_UNITS, 9 * WEIGHT_UNITS, width).tolist()]


def audited(sql: str, bounds: tuple[str, str] = ("-4", "10")) -> float:
    """Adds up with and without each unit; no norm of what changes is above the one that is charged.

    A unit that is trained on changes nothing of what is held out, and the other way round. Returns the greatest part of
    the charged norm that was seen.
    """
    scene_ = world(bounds)
    statement = statement_of(sql, scene_)
    width, every, seen = width_of(statement.features), frozenset(scene_.units), 0.0
    wholes = designs_of(statement, scene_, every, seed=1)
    for unit in scene_.units:
        others = designs_of(statement, scene_, every - {unit}, seed=2)
        changed = set()
        for (clipping, whole), (_, other) in zip(wholes, others, strict=True):
            for wanted in measured(clipping):
                greatest = greatest_change(wanted, clipping)
                for weights in weights_of(width, wanted):
                    more, less = (one.sums(wanted, weights) for one in (whole, other))
                    assert len(more) == sums_of(wanted, width)
                    square = sum((a - b) ** 2 for a, b in zip(more, less, strict=True))
                    require(square <= greatest, f"{wanted.value} changed by {square / greatest:.4f} of its square")
                    seen = max(seen, square / greatest)
                    changed |= {wanted in (Wanted.OUTCOMES, Wanted.ERRORS)} if square else set()
        require(len(changed) <= 1, "one unit is trained on and held out")
    return seen


@pytest.mark.parametrize("sql", QUERIES)
@pytest.mark.sparse(4)
def test_one_unit_changes_sums_by_no_more_than_is_charged(sql: str) -> None:
    """Shows sensitivities in whole numbers, on units of 0, 1, 3, 5 and 50 rows, and that the bounds are met."""
    assert audited(sql) > 0.9


def clip_rows(patch: pytest.MonkeyPatch) -> None:
    """Each row is held to the norm, in place of all rows of its unit together."""
    genuine = Design._scale
    patch.setattr(Design, "_scale", lambda self, most, *, by_unit: genuine(self, most, by_unit=False))


def standardised_by_rows(patch: pytest.MonkeyPatch) -> None:
    """Columns are centred by the mean of the rows."""
    genuine = Design._encoded

    def centred(gathered: Any, columns: Any, order: Any) -> Any:
        rows = genuine(gathered, columns, order)
        if len(rows):
            rows[:, 1:] -= rows[:, 1:].mean(axis=0).astype(rows.dtype)
        return rows

    patch.setattr(Design, "_encoded", staticmethod(centred))


def weighed_by_rows(patch: pytest.MonkeyPatch) -> None:
    """Held-out rows weigh one each."""
    patch.setattr(Design, "_row_weights", lambda self: np.repeat(np.where(self._held, 1 << 20, 0), self._unit_rows))


def split_by_rows(patch: pytest.MonkeyPatch) -> None:
    """The part of a unit follows from its place among all, in place of its draw."""
    genuine = Design.__init__

    def other(self: Any, gathered: Any, *parts: Any, **named: Any) -> None:
        object.__setattr__(gathered, "parts", gathered.units * 400)
        genuine(self, gathered, *parts, **named)

    patch.setattr(Design, "__init__", other)


@pytest.mark.sparse(2)
@pytest.mark.parametrize("plant", [clip_rows, standardised_by_rows, weighed_by_rows, split_by_rows])
def test_planted_bugs_are_seen(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the audit refutes each of these."""
    plant(monkeypatch)
    with pytest.raises(Violation):
        audited(VISITS)


def beyond_norms(seed: int) -> int:
    """How many of 300 units of one to four drawn rows add a vector beyond the norm that is charged."""
    random, beyond = np.random.Generator(np.random.Philox(seed)), 0
    columns = [DesignColumn(highest, keys=False) for highest in (3, 10, 97, 4096)] + [DesignColumn(3, keys=True)]
    for _ in range(300):
        rows = int(random.integers(1, 5))
        gathered = Gathered(
            units=np.zeros(rows, dtype=np.int64),
            parts=np.full(rows, 1023),
            columns=[random.integers(0, column.highest + 1, rows) for column in columns],
            nulls=[random.integers(0, 9, rows) == 0 for _ in columns],
            label=random.integers(0, 2, rows),
            label_null=np.zeros(rows, dtype=np.bool_),
        )
        for clipping, clip in ((Clipping.INPUTS, ROW_UNITS), (Clipping.GRADIENTS, CLIPPED_UNITS // 9)):
            alone = Design(gathered, columns, DesignColumn(1, keys=False), held=0, clipping=clipping, clip=clip)
            # Weights at which each row is called the other label, as far as there are any.
            weights = random.integers(-60 * WEIGHT_UNITS, 60 * WEIGHT_UNITS, 8).tolist()
            for wanted in (Wanted.GRADIENT, Wanted.PRODUCTS):
                if wanted is Wanted.GRADIENT or clipping is Clipping.INPUTS:
                    added = sum(value**2 for value in alone.sums(wanted, weights if wanted is Wanted.GRADIENT else []))
                    beyond += added > greatest_change(wanted, clipping)
    return beyond


def test_no_unit_is_beyond_its_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that gradients at their norm are not above it by a single whole number, as they are when entries are
    rounded away from zero after the norm was taken."""
    assert beyond_norms(1) == 0
    monkeypatch.setattr(design, "_toward_zero", lambda v, d: np.sign(v) * -(-np.abs(v) // d))
    monkeypatch.setattr(design, "_quotients", lambda v, d: np.sign(v) * np.ceil(np.abs(v) / d[:, None]))
    assert beyond_norms(1) > 50


def test_a_unit_of_equal_rows_counts_as_one_row() -> None:
    """Shows that a row is predicted by itself and counts by its part of the unit: no weight grows with the rows."""
    columns, weights = [DesignColumn(8, keys=False)], [2 * WEIGHT_UNITS, 3 * WEIGHT_UNITS]

    def added(rows: int) -> list[int]:
        gathered = Gathered(
            units=np.zeros(rows, dtype=np.int64),
            parts=np.full(rows, 1023),
            columns=[np.full(rows, 7)],
            nulls=[np.zeros(rows, dtype=np.bool_)],
            label=np.zeros(rows, dtype=np.int64),
            label_null=np.zeros(rows, dtype=np.bool_),
        )
        clip = 2 * ROW_UNITS  # above the norm of a row, as the greatest norm of other rows may be
        one = Design(gathered, columns, DesignColumn(1, keys=False), held=0, clipping=Clipping.INPUTS, clip=clip)
        return one.sums(Wanted.GRADIENT, weights)

    # Together they have the norm that they are held to, which one row has not.
    several = added(2)
    for rows in (4, 20, 50):
        for value, expected in zip(added(rows), several, strict=True):
            assert value == pytest.approx(expected, abs=rows * ROW_UNITS)


def test_what_a_unit_adds_does_not_follow_from_others() -> None:
    """Shows that sums over disjoint sets of units add up exactly: to an encoded row nobody else matters."""
    scene_ = world(("-4", "10"))
    statement = statement_of(VISITS, scene_)
    every = sorted(scene_.units)
    split = [designs_of(statement, scene_, frozenset(units), seed=7) for units in (every, every[:2], every[2:], [])]
    for parts in zip(*split, strict=True):
        clipping = parts[0][0]
        for wanted in measured(clipping):
            for weights in weights_of(width_of(statement.features), wanted):
                whole, first, second, none = (np.array(one.sums(wanted, weights)) for _, one in parts)
                assert (whole == first + second).all()
                assert not none.any()


def recorded_prices(noise: ModelNoise, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Wanted, Fraction]]:
    """What each call at the gateway costs while a model is fitted to sums of zero."""
    seen: list[tuple[Wanted, Fraction]] = []
    genuine = gateway.perturb

    def keep(measurement: Measurement, matrix: Integers, bits: BitSource) -> Any:
        mu_squared = measurement.event().loss().mu_squared
        assert mu_squared is not None
        seen.append((Wanted(measurement.statistic.name), mu_squared))
        return genuine(measurement, matrix, bits)

    monkeypatch.setattr(gateway, "perturb", keep)
    bits = SeededBits(3)

    def released(wanted: Wanted) -> list[int]:
        zeros = [0] * noise.sums(wanted)
        return noise.released(wanted, Exact(keys={}, sums={"sums": zeros}, rows=1), bits)

    if noise.method.logistic:
        descent = Descent(noise, released(Wanted.COUNT)[0], Fraction(1, 2))
        for _ in range(noise.iterations):
            descent.step(released(Wanted.GRADIENT))
        fitted = descent.fitted()
    else:
        fitted = regression(noise, released(Wanted.PRODUCTS))
    assert sum(w * w for w in fitted.sent()) <= (1 << 26) ** 2
    if noise.tested_by is not None:
        released(noise.tested_by)
    return seen


def require_paid(noise: ModelNoise, seen: list[tuple[Wanted, Fraction]]) -> None:
    """The event covers what was measured of each of the two parts of the units."""
    charged = noise.event().loss().mu_squared
    assert charged is not None
    for held in (False, True):
        own = sum((price for wanted, price in seen if (wanted is noise.tested_by) == held), Fraction(0))
        require(own <= charged, f"measurements cost {float(own / charged):.4f} of the event")


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("held", [0, 102])
def test_the_event_covers_every_measurement(method: Method, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the one event of a model is at least what its calls at the gateway cost, and nearly no more."""
    noise = ModelNoise(method=method, width=5, mu_squared=Fraction(1, 7), iterations=12, held=held, classes=True)
    seen = recorded_prices(noise, monkeypatch)
    require_paid(noise, seen)
    charged = noise.event().loss().mu_squared
    assert charged is not None
    assert charged <= Fraction(1, 7)
    assert charged > Fraction(1, 7) * Fraction(999, 1000)


def test_a_forgotten_iteration_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that an event of one iteration less is refuted."""
    genuine = ModelNoise.event

    def forgetful(self: ModelNoise) -> Any:
        event = genuine(self)
        assert event.l2_squared is not None
        left = event.l2_squared - private_descent._mu_squared(self.measurement(Wanted.GRADIENT))
        return type(event)(l2_squared=left, variance=event.variance)

    noise = ModelNoise(
        method=Method.INPUT_CLIPPING, width=5, mu_squared=Fraction(1, 7), iterations=12, held=0, classes=True
    )
    seen = recorded_prices(noise, monkeypatch)
    monkeypatch.setattr(ModelNoise, "event", forgetful)
    with pytest.raises(Violation):
        require_paid(noise, seen)


def test_roots_are_never_below() -> None:
    """Shows the integer above a root at squares, beside them, and at the greatest ones that doubles hold."""
    roots = np.array([0, 1, 2, 3, 94_906_264, 2**26 - 1, 2**26], dtype=np.int64)
    squares = np.unique(np.concatenate([roots**2 + more for more in (-1, 0, 1)]))
    squares = squares[(squares >= 0) & (squares < 2**53)]
    found = design._root_above(squares)
    assert (found**2 >= squares).all()
    assert (np.maximum(found - 1, 0) ** 2 < squares).sum() == (squares > 0).sum()
    assert ROW_UNITS**2 * 257 < 2**53
