"""Registered statistics on neighbouring data: what one unit changes, whatever its rows, and bugs that are caught."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms import release as releasing
from mechanisms.tested_statistics import ProposedQuantiles, StableMode, Term, Tested
from privacy.bounds import AskedContribution, ContributionBound
from privacy.policy import Dataset, OwnStatistic
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.own_statistics import OwnForm, OwnKind, lift_statistic
from tests.audit.generate import Scene
from tests.audit.harness import Store
from tests.audit.smallest import scene
from tests.audit.violation import Violation, require


def clinic(rows: int) -> Scene:
    """One person with many rows in one place, one with none, and others with two, of whom `rows` may count each."""
    visits: list[dict[str, Any]] = [{"person_id": 0, "y": 11.0, "k": "b"} for _ in range(20)]
    visits += [{"person_id": person, "y": float(person * 5 % 13), "k": "ab"[person % 2]} for person in range(1, 17)]
    visits += [{"person_id": person, "y": float(person * 7 % 13), "k": "a"} for person in range(1, 17)]
    return scene([{}] * 18, visits, contribution=ContributionBound(rows, 2, rows), bounds=("0", "12"))


def noise_of(form: OwnForm) -> Tested:
    """A price and a proposal for it."""
    price = {"epsilon": Fraction(2), "delta": Fraction(1, 10**6)}
    if form.kind is OwnKind.MODE:
        return StableMode(change=form.change, **price)
    return ProposedQuantiles(
        change=form.change, terms=tuple(Term(part, sign) for part, sign in form.terms), width=9_000, **price
    )


def counts_of(form: OwnForm, world: Scene, without: int | None) -> np.ndarray[Any, np.dtype[np.int64]]:
    """What the gateway would be given."""
    with closing(Store(world, frozenset(world.units) - {without}, seed=1)) as store:
        counts = releasing.counts_by_place(form.bounded.described, store.exact(form.statement))
    return counts if form.places is None else counts[: form.places.highest + 1]


def check(sql: str, *, rows: int = 3, asked: int | None = None) -> None:
    """What each unit changes is within what the test counts on. Errors: Violation."""
    world = clinic(rows)
    wanted = None if asked is None else AskedContribution(rows_per_unit=asked)
    form = lift_statistic(OwnStatistic("own", sql, contribution=wanted), world.dataset, DUCKDB)
    own = noise_of(form)
    full = counts_of(form, world, None)
    moved = 0
    for unit in world.units:
        less = counts_of(form, world, unit)
        change = full.astype(object) - less.astype(object)
        require(bool((change >= 0).all()), "a unit that comes lowers a count")
        most = max(change) if form.kind is OwnKind.MODE else sum(change)
        require(most <= form.change, f"a unit changes {most}, and {form.change} is the most that is counted on")
        require(abs(own.distance(full) - own.distance(less)) <= 1, "the distance moves by more than one")
        if isinstance(own, ProposedQuantiles) and own.distance(full) > 0:
            require(abs(own.place(full) - own.place(less)) <= own.width, "it moves further than was tested")
        moved = max(moved, most)
    require(moved > form.change // 2, "nobody comes near the bound: the audit sees nothing")


@pytest.mark.sparse(4)
@pytest.mark.parametrize("sql", [
    "SELECT MEDIAN(y) FROM visits",
    "SELECT QUANTILE_DISC(y, 0.9) - QUANTILE_CONT(y, 0.1) FROM visits WHERE k = 'a' OR y > 3",
    "SELECT MODE(k) FROM visits",
])  # fmt: skip
@pytest.mark.parametrize("asked", [None, 1])
def test_one_unit_changes_no_more_than_is_counted_on(sql: str, asked: int | None) -> None:
    """Shows it for units of 0, 2 and 20 rows, of whom three count, or one."""
    check(sql, asked=asked)


def test_a_unit_with_one_row_changes_one_count() -> None:
    """Shows it where no unit has several rows."""
    world = scene([{"y": float(n)} for n in range(12)], bounds=("0", "12"))
    form = lift_statistic(OwnStatistic("own", "SELECT MEDIAN(y) FROM people"), world.dataset, DUCKDB)
    full, less = counts_of(form, world, None), counts_of(form, world, 3)
    assert int((full - less).sum()) == form.change == int(np.abs(full - less).max())


@pytest.mark.parametrize("planted", ["rows", "change"])
def test_rows_that_nobody_bounds_are_caught(monkeypatch: pytest.MonkeyPatch, planted: str) -> None:
    """Shows the audit failing where all rows of a unit count, and where the distance is counted in rows."""
    genuine = lift_statistic

    def wrong(own: OwnStatistic, dataset: Dataset, dialect: Dialect) -> OwnForm:
        form = genuine(own, dataset, dialect)
        if planted == "change":
            return replace(form, change=form.change // 3)
        every = replace(own, contribution=AskedContribution(rows_per_unit=50))
        return replace(genuine(every, dataset, dialect), change=form.change)

    monkeypatch.setitem(globals(), "lift_statistic", wrong)
    with pytest.raises(Violation, match="a unit changes"):
        check("SELECT MEDIAN(y) FROM visits")
