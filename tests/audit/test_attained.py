"""Every kind of declared bound is attained: on the smallest data one unit moves each kind of statistic by all of it.

A sensitivity that is too small is a leak, which the neighbours find; one that is too large is noise for nothing, which
only this finds. KINDS lists every kind that the product makes; random queries meet no other (test_neighbours.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest

from privacy.bounds import ContributionBound
from tests.audit.harness import Tally
from tests.audit.planted import change_sensitivity
from tests.audit.smallest import audited, scene

UP, DOWN, AROUND = ("0", "10"), ("-10", "-2"), ("-10", "7")

_SINGLE: Mapping[str, tuple[str, tuple[str, str]]] = {
    "count": ("COUNT(*)", UP),
    "sum": ("SUM(y)", UP),
    "moments1": ("AVG(y)", UP),
    "moments1n": ("AVG(y), COUNT(*)", UP),
    "moments2": ("STDDEV(y)", UP),
    "moments2n": ("STDDEV(y), COUNT(*)", UP),
    "moments3": ("SKEWNESS(y)", UP),
    "moments3n": ("SKEWNESS(y), COUNT(*)", UP),
    "moments4": ("KURTOSIS(y)", UP),
    "moments4n": ("KURTOSIS_POP(y), AVG(y), COUNT(*)", UP),
    "products11": ("COVAR_POP(y, x)", UP),
    "products11n": ("REGR_COUNT(x, y), COUNT(*)", UP),
    "products12": ("REGR_SLOPE(x, y)", UP),
    "products12n": ("REGR_SXX(x, y), COUNT(*)", UP),
    "products21": ("REGR_SYY(y, x)", UP),
    "products21n": ("REGR_SYY(y, x), COUNT(*)", UP),
    "products22": ("CORR(x, y)", UP),
    "products22n": ("REGR_R2(x, y), REGR_SXY(x, y), COUNT(*)", UP),
    "moments1 clipped": ("SUM(y), COUNT(y)", UP),
    "moments1n clipped": ("SUM(y), COUNT(*)", UP),
    "moments1 both raised": ("SUM(y), AVG(y)", UP),
    "moments1n both raised": ("SUM(y), AVG(y), COUNT(*)", UP),
    "moments1 both lowered": ("SUM(y), AVG(y)", DOWN),
    "moments1n both lowered": ("SUM(y), AVG(y), COUNT(*)", DOWN),
    "moments1 both raised lowered": ("SUM(y), AVG(y)", AROUND),
    "moments1n both raised lowered": ("SUM(y), AVG(y), COUNT(*)", AROUND),
}
KINDS: Mapping[str, tuple[str, tuple[str, str]]] = {
    "units": ("COUNT(DISTINCT person_id)", UP),
    **_SINGLE,
    **{f"{kind} of parts": made for kind, made in _SINGLE.items()},
}
"""Aggregates and bounds of `y` that make each kind of statistic."""

ALSO: Mapping[str, str] = {
    "COUNT(x)": "count of parts",
    "SUM(x)": "sum of parts",
    "AVG(x)": "moments1 of parts",
    "SUM(y), COUNT(x), COUNT(y)": "moments1 clipped of parts",
    "SUM(x), AVG(x)": "moments1 both raised of parts",
    "SUM(x), AVG(x), COUNT(*)": "moments1n both raised of parts",
}
"""Other aggregates of the same kinds: of whole numbers, and of two columns."""

ROUNDED = Fraction(1, 10**5)
"""Parts of rows are rounded down, by less than a millionth of a row in each group."""


def of_one_unit(kind: str, spread: tuple[int, int], bound: ContributionBound, call: str = "") -> Tally:
    """One unit with so many rows in two groups, each with the value that is worth most."""
    usual, bounds = KINDS[kind]
    far = max(bounds, key=lambda text: abs(int(text)))
    mine = [
        {"person_id": 0, "x": int(far), "y": float(far), "k": key}
        for key, count in zip("ab", spread, strict=True)
        for _ in range(count)
    ]
    world = scene([{}, {}], [*mine, {"person_id": 1, "x": 3, "y": 4.5, "k": "a"}], bounds=bounds, contribution=bound)
    grouped = ("k, ", " GROUP BY k") if kind.endswith("of parts") or kind == "units" else ("", "")
    return audited(world, f"SELECT {grouped[0]}{call or usual} FROM visits{grouped[1]}", 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sparse(8)
def test_every_kind_of_bound_is_attained(kind: str) -> None:
    """Three rows of one unit, two in one group and one in another, are all that it may move, in each norm."""
    tally = of_one_unit(kind, (2, 1), ContributionBound(3, 2, 2))
    assert {kind} == tally.kinds.keys()
    for most in (tally.tightest, tally.squares, tally.greatest):
        assert most[kind] == 1


@pytest.mark.sparse(18)
@pytest.mark.parametrize("spread", [(3, 3), (50, 1), (1, 1), (2, 0)])
@pytest.mark.parametrize(
    ("call", "kind"),
    [*ALSO.items(), *[("", kind) for kind in KINDS if kind == "units" or kind.endswith("of parts")]],
)
def test_a_unit_in_several_groups_is_bounded_over_all_of_them(call: str, kind: str, spread: tuple[int, int]) -> None:
    """Three rows over two groups: a unit moves each aggregate by at most three rows, and by all of them if it can."""
    ratio = of_one_unit(kind, spread, ContributionBound(3, 2, 3), call).tightest[kind]
    expected = sum(count > 0 for count in spread) / Fraction(2)
    if kind != "units":
        expected = Fraction(min(sum(spread), 3), 3)
    assert expected - ROUNDED <= ratio <= expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sparse(16)
def test_a_bound_that_is_too_large_is_not_attained(kind: str) -> None:
    """Twin of the guard: sensitivities a thousandth too large are seen."""
    with pytest.MonkeyPatch.context() as patch:
        change_sensitivity(
            patch,
            lambda _, item: replace(
                item.statistic.sensitivity,
                l1=item.statistic.sensitivity.l1 * Fraction(1_001, 1_000),
                l2_squared=item.statistic.sensitivity.l2_squared * Fraction(1_001, 1_000) ** 2,
            ),
        )
        tally = of_one_unit(kind, (2, 1), ContributionBound(3, 2, 2))
    assert tally.tightest[kind] < 1 - ROUNDED
    assert tally.squares[kind] < 1 - ROUNDED
