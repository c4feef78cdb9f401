"""Later stages on neighbours: whatever number was released, one unit changes the sums as the plan says."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from typing import Any

import pytest

from mechanisms import calibrate as calibrating
from mechanisms import release as releasing
from privacy.bounds import ContributionBound
from privacy.policy import ColumnType
from privacy.statement import Released, StageValue
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.expressions import Call, ColumnRef, Literal
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.stage_values import is_released
from tests.audit.generate import Scene, owner_of
from tests.audit.harness import CONFIDENCE, CoreSide, Side, Store, Tally, check_pair, check_side, price_for
from tests.audit.interpreter import contributions
from tests.audit.recorder import FixedBits, recorded
from tests.audit.smallest import T, scene
from tests.audit.violation import Violation

TEXTS = (
    "SELECT COUNT(*) FROM visits WHERE y > (SELECT AVG(y) FROM visits)",
    "SELECT k, COUNT(*), SUM(y) FROM visits WHERE x <= (SELECT AVG(x) FROM visits) GROUP BY k",
    "SELECT SUM(ABS(y - (SELECT AVG(y) FROM visits))) FROM visits",
    "SELECT AVG(CASE WHEN x > (SELECT COUNT(*) FROM people) THEN y ELSE (SELECT AVG(y) FROM visits) END) FROM visits",
    "SELECT COUNT(*) FILTER (WHERE NOT (y < (SELECT AVG(y) FROM visits))), VARIANCE(y) FROM visits "
    "WHERE x / (SELECT AVG(x) FROM visits) > 0.5 OR x IS NULL",
    "SELECT x > (SELECT AVG(x) FROM visits), COUNT(*) FROM visits GROUP BY 1",
    "SELECT r.k, COUNT(*), SUM(v.y - r.a) FROM visits AS v JOIN (SELECT k, AVG(y) AS a, COUNT(*) AS n FROM visits "
    "GROUP BY k) AS r ON v.k = r.k WHERE v.x > r.n OR v.y < r.a GROUP BY r.k",
    "SELECT COUNT(*) FROM visits WHERE k NOT IN (SELECT k FROM visits GROUP BY k ORDER BY COUNT(*) LIMIT 2)",
    "SELECT COUNT(*), SUM(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits "
    "WHERE y >= (SELECT AVG(y) FROM visits) GROUP BY person_id HAVING AVG(x) < (SELECT AVG(x) FROM visits)) AS t",
    "SELECT COUNT(*), SUM(y) FROM visits WHERE k IN (SELECT k FROM visits GROUP BY k HAVING COUNT(*) > 3 AND k <> 'z')",
    "SELECT COUNT(r.a), SUM(COALESCE(v.y, r.a)) FROM visits AS v LEFT JOIN (SELECT k, a FROM (SELECT k, AVG(y) AS a "
    "FROM visits GROUP BY k) AS s WHERE a > 1 OR k = 'a') AS r ON v.k = r.k",
    "SELECT v.k, COUNT(*) FROM visits AS v JOIN (SELECT k, COUNT(*) AS n FROM visits GROUP BY k HAVING COUNT(*) > 2 "
    "ORDER BY n DESC LIMIT 1) AS r ON v.k = r.k WHERE v.x > r.n OR v.y > 3 GROUP BY v.k",
    # Hidden groups: their keys are released values too.
    "SELECT COUNT(*), SUM(y) FROM visits WHERE x IN (SELECT x FROM visits GROUP BY x HAVING COUNT(*) > 3 "
    "ORDER BY x LIMIT 4)",
    "SELECT k, COUNT(*), SUM(y) FROM visits WHERE x NOT IN (SELECT x FROM visits GROUP BY x HAVING AVG(y) * 2 > 3) "
    "OR y > 5 GROUP BY k",
    "SELECT COUNT(*), SUM(v.y - r.a) FROM visits AS v LEFT JOIN (SELECT x, AVG(y) AS a FROM visits GROUP BY x "
    "ORDER BY a LIMIT 3) AS r ON v.x = r.x WHERE r.a IS NULL OR v.y < r.a",
    "SELECT SUM(v.y) FROM visits AS v WHERE v.y < (SELECT AVG(w.y) FROM visits AS w WHERE w.x = v.x)",
    "SELECT COUNT(*), SUM(d) FROM (SELECT person_id, y - (SELECT AVG(y) FROM visits) AS d, RANK() OVER (PARTITION BY "
    "person_id ORDER BY y > (SELECT AVG(y) FROM visits), x) AS r FROM visits) AS t WHERE r <= 3",
)
NUMBERS = (None, 0.0, 4.5, -1.7976931348623157e308, 1.7976931348623157e308)


def world() -> Scene:
    """Units with 0, 1, 5 and 50 visits: NULL, NaN, infinities and extremes among them."""
    reals = [0.0, 4.5, 10.0, None, math.nan, math.inf, -math.inf, 1.7976931348623157e308, 5e-324, -3.0]
    wholes = [0, 4, 5, 10, None, 2**63 - 1, -(2**63)]
    visits = [
        {"person_id": person, "x": wholes[(place + person) % 7], "y": reals[(place * 3 + person) % 10]}
        for person, rows in ((1, 1), (2, 5), (3, 50))
        for place in range(rows)
    ]
    keyed = [{**visit, "k": "ab"[place % 2]} for place, visit in enumerate(visits)]
    return scene([{}, {}, {}, {}], keyed, contribution=ContributionBound(6, 2, 4))


def told(core: Any, number: float | None) -> Any:
    """A plan's part with a constant for every released number, for the reference."""
    if isinstance(core, ColumnRef):
        return constant(core.name, number, core.type) if is_released(core) else core
    if isinstance(core, Call):
        return dataclasses.replace(core, arguments=tuple(told(one, number) for one in core.arguments))
    if isinstance(core, tuple):
        return tuple(told(one, number) for one in core)
    if dataclasses.is_dataclass(core) and not isinstance(core, type) and type(core).__module__.startswith("sql_"):
        values = {field.name: told(getattr(core, field.name), number) for field in dataclasses.fields(core)}
        return dataclasses.replace(core, **values)
    return core


def constant(name: str, number: float | None, kind: ColumnType) -> Literal:
    """What stands for a released value: a number, a hidden key, or whether a group is in a list, some of which are."""
    if name.startswith("k"):
        return Literal([4, 2**63 - 1, None, 5][int(name.partition(".")[2]) % 4], kind)
    flag = name.startswith(("there", "list"))
    return Literal(number is None or name[-1] != "1", T.BOOLEAN) if flag else Literal(number, T.NUMBER)


def later_stage(world: Scene, sql: str) -> BoundedCore:
    """The bounded core of the last stage."""
    return bound(lift(sql, world.dataset))[-1]


def side(
    core: BoundedCore,
    store: Store,
    number: float | None,
    *,
    gaussian: bool,
    exact: Callable[[StageValue], Released] | None = None,
) -> Side:
    """What the mechanisms are given for a later stage that reads this number, or what `exact` says."""
    lowered = lower(core)
    read = {one for one in lowered.parameters if isinstance(one, StageValue)}
    assert read
    values = {one: exact(one) if exact else constant(one.column, number, one.type).value for one in read}
    statement = lowered.filled(values)
    assert statement.sql == lowered.sql
    price = price_for([core], gaussian=gaussian, epsilon=Fraction(1))
    calibration = calibrating.calibrate([core.described], price)
    sums = store.exact(statement)
    with recorded(noise=True, seed=0) as recorder:
        table = releasing.release(core.described, calibration, sums, bits=FixedBits(0), confidence=CONFIDENCE)
    columns = [column.values for column in table.columns if column.role == "key"]
    keys = tuple(zip(*columns, strict=True)) if columns else ((),) * table.rows
    return Side((core,), (statement,), calibration, (CoreSide(keys, tuple(recorder.calls)),))


@pytest.mark.sparse(6)
@pytest.mark.parametrize("sql", TEXTS)
def test_one_unit_stays_within_its_bound_whatever_was_released(sql: str) -> None:
    """Shows the sums of the reference, and those of each neighbour within the sensitivities, for extremes too."""
    made = world()
    core = later_stage(made, sql)
    units = frozenset(made.units)
    owners = {table.name: owner_of(made, table.name) for table in made.dataset.tables}
    with closing(Store(made, units, seed=1)) as every:
        others = [Store(made, units - {unit}, seed=2) for unit in (1, 2, 3)]
        try:
            for number in NUMBERS:
                gaussian = number is None or number == 0
                whole = side(core, every, number, gaussian=gaussian)
                parts = contributions(told(core, number), made.rows, owners, every.hashes(core))
                check_side(whole, [parts], units, [{}])
                for other in others:
                    check_pair(whole, side(core, other, number, gaussian=gaussian), Tally())
        finally:
            for other in others:
                other.close()


def test_a_stage_that_reads_true_numbers_is_caught() -> None:
    """Plants a later stage that is bound to the exact average of the rows, in place of the released one."""
    many = [{"person_id": person, "x": x} for person, x in ((0, 10), *((1 + n % 9, 4 + n % 2) for n in range(18)))]
    made = scene([{}] * 10, many, contribution=ContributionBound(2, 1, 2))
    core = later_stage(made, "SELECT COUNT(*) FROM visits WHERE x > (SELECT AVG(x) FROM visits)")
    units = frozenset(made.units)

    def exact(of: frozenset[Any]) -> float:
        values = [row["x"] for row in made.rows["visits"] if row["person_id"] in of]
        # Of the nearest half, as a true number may be: with unit 0 it is five, without it four and a half.
        return math.ceil(2 * sum(values) / len(values)) / 2

    one, two = units, units - {0}
    assert exact(one) != exact(two)
    with closing(Store(made, one, seed=1)) as first, closing(Store(made, two, seed=2)) as second:
        check_pair(side(core, first, 4.5, gaussian=False), side(core, second, 4.5, gaussian=False), Tally())
        with pytest.raises(Violation):
            check_pair(
                side(core, first, exact(one), gaussian=False), side(core, second, exact(two), gaussian=False), Tally()
            )


def test_a_list_of_groups_that_nothing_selected_is_caught() -> None:
    """Plants a later stage that is bound to the group with most rows, in place of a released list."""
    many = [{"person_id": person, "x": x, "y": 10.0 * (x == 5)} for person in range(1, 10) for x in (4, 5)]
    made = scene([{}] * 10, [{"person_id": 0, "x": 5, "y": 10.0}, *many], contribution=ContributionBound(2, 1, 2))
    core = later_stage(
        made,
        "SELECT SUM(y) FROM visits WHERE x IN (SELECT x FROM visits GROUP BY x ORDER BY COUNT(*) DESC, x LIMIT 1)",
    )
    units = frozenset(made.units)

    def exact(of: frozenset[Any]) -> Callable[[StageValue], Released]:
        counts = Counter(row["x"] for row in made.rows["visits"] if row["person_id"] in of)
        first = min(counts, key=lambda x: (-counts[x], x))
        return lambda one: True if one.type is T.BOOLEAN else first

    one, two = units, units - {0}
    with closing(Store(made, one, seed=1)) as first, closing(Store(made, two, seed=2)) as second:

        def both(here: frozenset[Any], there: frozenset[Any]) -> tuple[Side, Side]:
            return (
                side(core, first, None, gaussian=False, exact=exact(here)),
                side(core, second, None, gaussian=False, exact=exact(there)),
            )

        check_pair(*both(one, one), Tally())
        with pytest.raises(Violation):
            check_pair(*both(one, two), Tally())
