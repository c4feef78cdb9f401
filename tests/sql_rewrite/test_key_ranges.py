"""Public cells that ranges rule out: those that are left hold every row, and the others are gone."""

from __future__ import annotations

import random

import pytest

from privacy.policy import ColumnType
from sql_rewrite import key_ranges
from sql_rewrite.bound import bound
from sql_rewrite.evaluate import as_key, evaluate, map_domain
from sql_rewrite.expressions import ColumnRef, Expression, Literal
from sql_rewrite.functions import build
from sql_rewrite.key_ranges import within_ranges
from sql_rewrite.lift import lift
from sql_rewrite.reachable import narrowed
from tests.sql_rewrite.datasets import CLINIC
from tests.sql_rewrite.test_narrowed_values import DAYS, D, X, condition, rows

T = ColumnType


def keys() -> list[Expression]:
    """Public keys over a date and a whole number."""
    few = Literal("few", T.TEXT), Literal("some", T.TEXT), Literal("many", T.TEXT)
    zero, three = Literal(0, T.INTEGER), Literal(3, T.INTEGER)
    return [
        build("day", (D,)),
        build("month", (D,)),
        build("dayname", (D,)),
        build("case", (build("<", (X, zero)), few[0], build("<", (X, three)), few[1], few[2])),
        build("is_null", (X,)),
        build("=", (build("month", (D,)), Literal(2, T.INTEGER))),
    ]


def lost(seed: int, trees: int) -> tuple[int, int]:
    """How many rows that satisfy a condition have a key that is left out, and how many values are left out."""
    draw = random.Random(seed)
    missing = gone = 0
    for _ in range(trees):
        bounds = [build(">=", (X, Literal(-5, T.INTEGER))), build("<=", (X, Literal(draw.randint(-2, 5), T.INTEGER)))]
        days = [build(sign, (D, Literal(draw.choice(DAYS), T.DATE))) for sign in (">=", "<=")]
        where = build("and", [condition(draw, 2), *draw.choice([bounds, days, [*bounds, *days]])])
        found = narrowed(where, *keys())
        before = [map_domain(key, 10_000) for key in found]
        assert None not in before
        _, after = within_ranges(found, before, where, 10_000)
        for old, new in zip(before, after, strict=True):
            assert old is not None
            assert new is not None
            assert set(new) <= set(old)
            gone += len(old) - len(new)
        for row in rows(draw, 12):
            if evaluate(where, row) is True:
                values = [as_key(evaluate(key, row)) for key in keys()]
                missing += sum(value not in (new or ()) for value, new in zip(values, after, strict=True))
    return missing, gone


def test_every_row_is_in_a_cell_that_is_left() -> None:
    """Shows no row that satisfies WHERE outside the cells, and that most conditions leave some out."""
    missing, gone = lost(seed=3, trees=200)
    assert (missing, gone > 1_000) == (0, True)


def test_a_range_that_is_too_narrow_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the rows above see an end that is left out."""
    values = key_ranges._values

    def short(column: ColumnRef, facts: key_ranges.Facts) -> tuple[object, ...] | None:
        found = values(column, facts)
        return found if found is None or len(found) < 2 else found[:-1]

    monkeypatch.setattr(key_ranges, "_values", short)
    assert lost(seed=3, trees=200)[0]


@pytest.mark.parametrize(
    ("where", "months"),
    [
        ("day BETWEEN DATE '2024-01-15' AND DATE '2024-03-31'", (1, 2, 3)),
        ("day >= DATE '2024-11-15' AND day < TIMESTAMP '2025-02-01 00:00:00'", (1, 11, 12)),
        ("day >= DATE '2024-11-15' AND day <= TIMESTAMP '2025-02-01 00:00:00'", (1, 2, 11, 12)),
        ("day IN (DATE '2024-02-01', DATE '2024-04-30')", (2, 3, 4)),
        ("day < DATE '2024-03-01'", tuple(range(1, 13))),
        ("day BETWEEN DATE '2024-01-15' AND DATE '2024-03-31' OR day IS NULL", (*range(1, 13), None)),
        ("day BETWEEN DATE '2000-01-15' AND DATE '2024-03-31'", tuple(range(1, 13))),
    ],
)
def test_months_that_no_day_is_in_do_not_appear(where: str, months: tuple[int | None, ...]) -> None:
    """Shows the cells of MONTH(day), all twelve where a side is open, NULL may be, or the days are too many."""
    (core,) = bound(lift(f"SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits WHERE {where} GROUP BY m", CLINIC))
    assert core.described.keys.domain == tuple((month,) for month in months)


def test_hidden_groups_stay_hidden() -> None:
    """Shows that conditions make no key public which was not: an empty list of groups would be one of constants."""
    for key, where in (("age // 10", "age BETWEEN 20 AND 49"), ("day", "day = DATE '2024-01-15'")):
        table = "people" if "age" in key else "visits"
        (core,) = bound(lift(f"SELECT {key} AS k, COUNT(*) AS n FROM {table} WHERE {where} GROUP BY k", CLINIC))
        assert core.described.keys.domain is None
