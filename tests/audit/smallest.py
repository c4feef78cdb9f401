"""The smallest data on which a rule shows: a few persons with a few visits, and the world without one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from privacy.bounds import ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, Dataset, PublicKeys, Reference, Table
from privacy.unit import PrivacyUnit
from tests.audit.generate import Query, Scene
from tests.audit.harness import Audit, Tally

__all__ = ["audited", "beyond_64_bits", "scene"]

T = ColumnType
MANY = ContributionBound(3, 2, 3)


def scene(
    people: Sequence[dict[str, Any]],
    visits: Sequence[dict[str, Any]] = (),
    *,
    bounds: tuple[str, str] = ("0", "10"),
    contribution: ContributionBound = MANY,
) -> Scene:
    """People and visits with a whole `x` and a real `y` in these bounds, a public key `k` and hidden words `w`."""

    def columns() -> tuple[Column, ...]:
        value = ValueBounds(Fraction(bounds[0]), Fraction(bounds[1]))
        keys = PublicKeys(("a", "b", None))
        return (
            Column("x", T.INTEGER, value),
            Column("y", T.NUMBER, value),
            Column("k", T.TEXT, keys=keys),
            Column("w", T.TEXT),
        )

    person = Column("person_id", T.INTEGER, nullable=False)
    dataset = Dataset(
        "lessons",
        PrivacyUnit("people", "person_id"),
        (
            Table(
                "people",
                (person, *columns()),
                protected=True,
                key="person_id",
                references=(),
                unit_column="person_id",
                contribution=ContributionBound(1, 1, 1),
            ),
            Table(
                "visits",
                (Column("visit_id", T.INTEGER, nullable=False), person, *columns()),
                protected=True,
                key="visit_id",
                references=(Reference("person_id", "people", "person_id"),),
                unit_column="person_id",
                contribution=contribution,
            ),
        ),
        policy_version=1,
        data_version="v",
    )
    empty = {"x": None, "y": None, "k": None, "w": None}
    persons = [{"person_id": number, **empty, **row} for number, row in enumerate(people)]
    rows = {
        "people": persons,
        "visits": [{"visit_id": number, **empty, **row} for number, row in enumerate(visits)],
    }
    return Scene(0, dataset, rows, tuple(row["person_id"] for row in persons), None)


def audited(world: Scene, sql: str, without: Any, *, gaussian: bool = False) -> Tally:
    """Audits the world against the world without one unit."""
    tally = Tally()
    neighbour = frozenset(world.units) - {without}
    Audit(world, Query(sql, {}), gaussian, Fraction(1), neighbour).check(tally)
    assert not tally.refused
    return tally


def beyond_64_bits() -> Scene:
    """Two units with extremes of every type, and so many rows that sums of squares leave 64 bits."""
    extremes = [2**63 - 1, -(2**63), 2**53 + 1, 0, None]
    reals = [1.7976931348623157e308, -1.7976931348623157e308, 5e-324, -0.0, math.nan, math.inf, -math.inf, None]
    visits = [{"person_id": 0, "x": extremes[i % 5], "y": reals[i % 8]} for i in range(80)]
    visits += [{"person_id": 1, "x": 2**63 - 1, "y": 1e300} for _ in range(400)]
    return scene([{}, {}], visits, bounds=("0", "128"), contribution=ContributionBound(1_000, 1, 1_000))
