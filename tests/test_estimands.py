"""One aggregate, one meaning: with bounds that bind, an answer at a huge epsilon is the estimand of its definition.

The definitions are written here once more, on the plain rows of each person, in fractions: nothing of the lowering, of
encodings or of shared statistics is in them. Every aggregate must give the same truth alone and in company.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from privacy.bounds import ContributionBound
from tests.plain_clinic import Clinic, open_clinic

BOUNDS = [(3, 2, 3), (2, 2, 2), (4, 2, 3), (6, 2, 3), (20, 2, 20), (1, 2, 1)]
"""Rows per unit, groups per unit (there are two kinds), rows per unit and group. People have up to nine visits."""

CALLS = ("SUM(days - 20)", "SUM(cost)", "COUNT(*)", "COUNT(NULLIF(days, 3))", "AVG(cost)", "AVG(days - 20)")
LIMITS = {"days - 20": (-20, 40), "cost": (0, 5000)}


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """One snapshot for all bounds: it does not depend on them."""
    with open_clinic(tmp_path_factory.mktemp("estimands")) as opened:
        yield opened


def bounded(clinic: Clinic, bounds: tuple[int, int, int]) -> Clinic:
    """The same rows under other bounds."""
    tables = tuple(
        replace(t, contribution=ContributionBound(*bounds)) if t.name == "visits" else t for t in clinic.dataset.tables
    )
    return replace(clinic, dataset=replace(clinic.dataset, tables=tables))


def estimand(clinic: Clinic, call: str, bounds: tuple[int, int, int], *, grouped: bool) -> dict[str, float]:
    """The definition of mechanisms/bounding.md, person by person."""
    total, _, rows = bounds
    rows = min(rows, total) if grouped else total
    people: dict[int, dict[str, list[tuple[int, float]]]] = defaultdict(lambda: defaultdict(list))
    for person, kind, days, cost in clinic.plain.execute("SELECT person_id, kind, days, cost FROM visits").fetchall():
        people[person][kind if grouped else ""].append((days, cost))
    tops: dict[str, Fraction] = defaultdict(Fraction)
    bottoms: dict[str, Fraction] = defaultdict(Fraction)
    argument = call.partition("(")[2].rstrip(")")
    for groups in people.values():
        together = sum(min(len(members), rows) for members in groups.values())
        for kind, members in groups.items():
            allotted = Fraction(min(len(members), rows)) * min(Fraction(1), Fraction(total, together))
            if call.startswith("COUNT"):
                there = len(members) if "*" in call else sum(days != 3 for days, _ in members)
                tops[kind] += min(allotted, there)
                continue
            values = [Fraction(days - 20) if "days" in argument else Fraction(str(cost)) for days, cost in members]
            low, high = LIMITS[argument]
            if call.startswith("SUM"):
                tops[kind] += max(allotted * min(low, 0), min(sum(values), allotted * max(high, 0)))
            else:
                tops[kind] += sum(values) * allotted / len(values)
                bottoms[kind] += allotted
    return {kind: float(top / bottoms[kind] if call.startswith("AVG") else top) for kind, top in tops.items()}


def companies() -> Iterator[tuple[str, ...]]:
    """Every aggregate alone, every pair, all together, and beside a deviation."""
    yield from ((call,) for call in CALLS)
    yield from itertools.combinations(CALLS, 2)
    yield CALLS
    yield (*CALLS, "STDDEV(cost)", "VAR_POP(days - 20)")


@pytest.mark.slow
@pytest.mark.sparse(4)
@pytest.mark.parametrize("grouped", [False, True], ids=["all", "groups"])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_an_aggregate_means_the_same_in_every_company(
    clinic: Clinic, bounds: tuple[int, int, int], grouped: bool
) -> None:
    """SUM clips a person's sum, COUNT a person's rows, AVG weighs persons by rows, whatever stands beside them."""
    world = bounded(clinic, bounds)
    truths = {call: estimand(clinic, call, bounds, grouped=grouped) for call in CALLS}
    for calls in companies():
        keys = "kind, " if grouped else ""
        sql = f"SELECT {keys}{', '.join(calls)} FROM visits{' GROUP BY kind' if grouped else ''}"
        for row in world.answer(sql, {}, gaussian=len(calls) > 1):
            kind, values = (row[0], row[1:]) if grouped else ("", row)
            for call, value in zip(calls, values, strict=False):
                if call in truths:
                    exact = truths[call][kind]
                    # Counts and sums of whole numbers are shown as whole numbers.
                    assert math.isclose(exact, value, rel_tol=1e-5, abs_tol=0.51), (sql, call, kind)
                    if "cost" in call:
                        assert math.isclose(exact, value, rel_tol=1e-5), (sql, call, kind)


def test_a_sum_beside_a_count_is_the_sum_alone(clinic: Clinic) -> None:
    """`SUM(v)` and `SUM(v), COUNT(*)` have one estimand: two intervals of one question cannot be disjoint."""
    world = bounded(clinic, (3, 2, 3))
    answers: list[list[Any]] = [
        world.answer(f"SELECT {calls} FROM visits", {}, gaussian=False)[0]
        for calls in ("SUM(cost)", "SUM(cost), COUNT(*)", "SUM(cost), AVG(cost)", "SUM(cost), STDDEV(cost)")
    ]
    assert max(row[0] for row in answers) - min(row[0] for row in answers) <= 1e-6 * answers[0][0]


def test_few_rows_in_many_groups_are_scaled_and_not_lost(clinic: Clinic) -> None:
    """A part of a row counts: with one row over two groups each gets its half, though half a row is no whole number."""
    world = bounded(clinic, (1, 2, 1))
    expected = estimand(clinic, "COUNT(*)", (1, 2, 1), grouped=True)
    answered = {
        row[0]: row[1] for row in world.answer("SELECT kind, COUNT(*) FROM visits GROUP BY kind", {}, gaussian=False)
    }
    assert sum(answered.values()) == pytest.approx(sum(expected.values()), abs=1)
    assert sum(answered.values()) > 150, "everybody who came"
