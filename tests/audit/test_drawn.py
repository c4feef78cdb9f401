"""Drawn quantiles on neighbouring data: scores, ranges and draws, with finer places, and what is planted is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from mechanisms.measurements import drawn_ranks
from privacy.bounds import ContributionBound
from sql_rewrite import ranks
from tests.audit.smallest import scene
from tests.audit.test_quantiles import PEOPLE, VISITS, audit
from tests.audit.violation import Violation

MANY = ("0", "3000")
QUERIES = (
    "SELECT MEDIAN(y), QUANTILE_DISC(y, 0.9) FROM people",
    "SELECT QUANTILE_CONT(x, 0.1), COUNT(*) FROM people WHERE k = 'a'",
    "SELECT k, MEDIAN(y) FROM people GROUP BY k",
)


@pytest.mark.sparse(6)
@pytest.mark.parametrize("sql", QUERIES)
def test_one_person_moves_the_law_of_a_draw_within_its_range(monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    """With places that are divided, whole ones of whole numbers among them, whoever is left out."""
    monkeypatch.setattr(ranks, "_DRAWN_PLACES", 2**13)
    world = scene(PEOPLE, bounds=MANY)
    for without, gaussian in ((0, True), (4, False)):
        assert any(kind.startswith("ranks") for kind in audit(world, sql, without, gaussian=gaussian).kinds)


@pytest.mark.parametrize("gaussian", [True, False])
def test_a_person_with_several_rows_and_groups_stays_within_the_ranges(*, gaussian: bool) -> None:
    """Of units with 0 to 30 rows in several groups."""
    world = scene([*PEOPLE[:5], {}], VISITS, contribution=ContributionBound(3, 2, 3), bounds=MANY)
    audit(world, "SELECT k, MEDIAN(x), COUNT(*) FROM visits GROUP BY k", 4, gaussian=gaussian)


def _half_the_change(patch: pytest.MonkeyPatch) -> None:
    """A planted bug: scores are taken to move by half of what they do."""
    genuine = drawn_ranks._draw

    def draw(statistic: Any, fraction: Fraction, *, discrete: bool) -> Any:
        found = genuine(statistic, fraction, discrete=discrete)
        return replace(found, change=-(-found.change // 2))

    patch.setattr(drawn_ranks, "_draw", draw)


def _one_draw_charged(patch: pytest.MonkeyPatch) -> None:
    """A planted bug: several draws cost what one does."""
    genuine = drawn_ranks._ranges

    def ranges(statistic: Any, greatest: Fraction) -> Any:
        l1, squares = genuine(statistic, greatest)
        return l1 / statistic.drawn.count, squares / statistic.drawn.count

    patch.setattr(drawn_ranks, "_ranges", ranges)


def _rows_of_one_place(patch: pytest.MonkeyPatch) -> None:
    """A planted bug: where units have several rows, a group is taken to change by one row."""
    genuine = drawn_ranks._draw

    def draw(statistic: Any, fraction: Fraction, *, discrete: bool) -> Any:
        bound = replace(statistic.sensitivity, linf=Fraction(statistic.tree.worth))
        return genuine(replace(statistic, sensitivity=bound), fraction, discrete=discrete)

    patch.setattr(drawn_ranks, "_draw", draw)


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    ("plant", "message"),
    [
        (_half_the_change, "noise of a draw is too little|another place"),
        (_one_draw_charged, "ranges of the draws add up"),
        (_rows_of_one_place, "noise of a draw is too little|another place"),
    ],
)
def test_planted_bugs_are_caught(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], message: str
) -> None:
    """Too little noise, too small a price, and a sensitivity of one row where there are several."""
    plant(monkeypatch)
    world = scene([{}, {}], [{"person_id": 0, "y": 5.0}, *[{"person_id": 1, "y": 5.0}] * 3], bounds=MANY,
                  contribution=ContributionBound(3, 1, 3))  # fmt: skip
    with pytest.raises(Violation, match=message):
        audit(world, "SELECT QUANTILE_CONT(y, [0.25, 0.5, 0.75]) FROM visits", 1, gaussian=True)
