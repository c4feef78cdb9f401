"""LEAST and GREATEST of several columns that may be NULL are warned of, and the advice means what DuckDB means."""

from __future__ import annotations

import duckdb
import pytest

from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.plan_warnings import plan_warnings
from tests.battery.worlds import WORLDS

SHOP = WORLDS["shop"]


def warned(sql: str) -> list[str]:
    """The first advice of each such warning."""
    plan = lift(sql, SHOP, {})
    return [one.instead[0] for one in plan_warnings(plan, bound(plan)) if one.code == "null_not_skipped"]


def test_columns_that_may_be_null_are_warned_of() -> None:
    """Shows the advice, once for each call."""
    advice = "LEAST(COALESCE(total, discount_opt), COALESCE(discount_opt, total)) is as in DuckDB"
    assert warned("SELECT SUM(LEAST(total, discount_opt)) FROM orders") == [advice]
    one = "COALESCE(LEAST(discount_opt, 0.2), 0.2) is as in DuckDB"
    assert warned("SELECT SUM(LEAST(discount_opt, 0.2)) FROM orders") == [one]
    assert warned("SELECT SUM(GREATEST(0.1, discount_opt)) FROM orders") == [
        "COALESCE(GREATEST(0.1, discount_opt), 0.1) is as in DuckDB"
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(GREATEST(0, LEAST(discount_opt, 1))) FROM orders",
        "SELECT SUM(LEAST((GREATEST(discount_opt, 0)), 1)) FROM orders",
        "SELECT SUM(LEAST(total, 5)) FROM orders",
        "SELECT SUM(COALESCE(LEAST(discount_opt, 0.2), 0.2)) FROM orders",
        "SELECT SUM(LEAST(COALESCE(total, discount_opt), COALESCE(discount_opt, total))) FROM orders",
    ],
)
def test_clipping_is_not_warned_of(sql: str) -> None:
    """Shows that between constants a missing value is missing, and that the advice ends the warning."""
    assert warned(sql) == []


def test_the_advice_is_duckdbs_own_meaning() -> None:
    """Shows it for all pairs of a number and NULL, where NULL of one argument makes LEAST and GREATEST NULL."""
    with duckdb.connect(":memory:") as connection:
        for name in ("LEAST", "GREATEST"):
            rows = connection.execute(
                f"SELECT {name}(a, b) IS NOT DISTINCT FROM CASE WHEN COALESCE(a, b) IS NULL OR COALESCE(b, a) IS NULL "
                f"THEN NULL ELSE {name}(COALESCE(a, b), COALESCE(b, a)) END "
                "FROM (VALUES (1), (3), (NULL)) x(a), (VALUES (2), (NULL)) y(b)"
            ).fetchall()
            assert rows == [(True,)] * 6
