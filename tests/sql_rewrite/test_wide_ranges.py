"""Numbers computed within each unit whose range nobody narrowed are warned of, and the advice ends the warning."""

from __future__ import annotations

from dataclasses import replace

import pytest

from privacy.bounds import AutomaticContribution, ContributionBound
from privacy.policy import Dataset
from privacy.refusal import Finding
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.plan_warnings import plan_warnings
from tests.battery.worlds import WORLDS
from tests.sql_rewrite.pasting import pasted

PER_CUSTOMER = "SELECT AVG(n) FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id)"


def automatic() -> Dataset:
    """The shop, whose questions choose contribution bounds."""
    counted = ContributionBound(12, 12, 12)
    tables = [
        table
        if table.contribution is None or table.one_row
        else replace(table, contribution=AutomaticContribution(counted))
        for table in WORLDS["shop"].tables
    ]
    return replace(WORLDS["shop"], tables=tuple(tables))


def warned(sql: str, dataset: Dataset) -> list[Finding]:
    """Its warnings of this kind."""
    plan = lift(sql, dataset, {})
    return [one for one in plan_warnings(plan, bound(plan)) if one.code == "range_not_narrowed"]


def test_a_range_of_all_rows_is_warned_of_and_narrowed() -> None:
    """Shows the advice, that it is answered when pasted, and that it ends the warning."""
    shop = automatic()
    (finding,) = warned(PER_CUSTOMER, shop)
    assert finding.instead[0] == "AVG(LEAST(n, 40)) where hardly any unit has more"
    ((candidate, *_),) = pasted(PER_CUSTOMER, finding, finding.instead[0])
    assert "AVG(LEAST(n, 40))" in candidate
    assert warned(candidate, shop) == []


def test_declared_bounds_are_not_warned_of() -> None:
    """Shows that where the owner declared how many rows count, the range is theirs; nor are counts warned of."""
    assert warned(PER_CUSTOMER, WORLDS["shop"]) == []
    assert warned(PER_CUSTOMER.replace("AVG(n)", "COUNT(*)"), automatic()) == []


N = "(SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id)"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT AVG(n * 2) FROM {N} AS t",
        f"SELECT AVG(n - 5) FROM {N} AS t",
        f"SELECT AVG(-n) FROM {N} AS t",
        f"SELECT SUM(COALESCE(n, 0)) FROM {N} AS t",
        f"SELECT AVG(CASE WHEN n > 3 THEN n ELSE 0 END) FROM {N} AS t",
        f"SELECT AVG(CAST(n AS DOUBLE)) FROM {N} AS t WHERE n IS NOT NULL",
        f"SELECT AVG(m) FROM (SELECT n * 1.0 AS m FROM {N} AS t) AS u",
        f"SELECT AVG(n) FROM (SELECT n FROM {N} AS t UNION ALL SELECT n FROM {N} AS u) AS v",
        "SELECT AVG(r) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY order_id) AS r FROM orders)",
        "SELECT AVG((SELECT COUNT(*) FROM orders AS o WHERE o.customer_id = c.customer_id)) FROM customers AS c",
    ],
)
def test_what_is_computed_from_such_a_number_is_warned_of(sql: str) -> None:
    """Shows the warning of expressions, windows, unions and correlated counts, and that its advice ends it."""
    shop = automatic()
    (finding,) = warned(sql, shop)
    advised = finding.instead[0].partition(" where ")[0]
    name, _, written = finding.what.partition("the noise of ")[2].partition(" is that of values")[0].partition("(")
    assert written
    narrower = sql.replace(f"{name}({written}", advised, 1)
    assert narrower != sql
    assert warned(narrower, shop) == []


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT AVG(n) FROM {N} AS t WHERE n < 40",
        f"SELECT AVG(LEAST(n * 1000, 40000)) FROM {N} AS t",
        f"SELECT AVG(n % 7) FROM {N} AS t",
        f"SELECT AVG(CASE WHEN n > 3 THEN 1 ELSE 0 END) FROM {N} AS t",
        "SELECT AVG(k) FROM (SELECT customer_id, total AS k, COUNT(*) AS n FROM orders GROUP BY 1, 2) AS t",
        f"SELECT COUNT(n) FROM {N} AS t",
    ],
)
def test_what_is_narrow_already_is_not_warned_of(sql: str) -> None:
    """Shows conditions and functions that narrow, keys of groups, and counts, without the warning."""
    assert warned(sql, automatic()) == []


NEAR = (
    "SELECT {} FROM readings AS a JOIN readings AS b ON a.home = b.home "
    "WHERE a.moment > '2023-01-01' AND a.moment < '2024-01-01' AND b.moment > '2023-01-01' AND b.moment < '2024-01-01'"
)


@pytest.mark.parametrize(
    ("argument", "advice"),
    [
        (
            "AVG(date_diff('minute', a.moment, b.moment))",
            "LEAST(date_diff('minute', a.moment, b.moment), 30000), -30000",
        ),
        ("AVG(b.moment - a.moment)", "AVG(GREATEST(LEAST(epoch(b.moment - a.moment), 2000000), -2000000))"),
        (
            "SUM(epoch(b.moment - a.moment) / 3600)",
            "SUM(GREATEST(LEAST(epoch(b.moment - a.moment) / 3600, 400), -400))",
        ),
    ],
)
def test_a_difference_of_moments_that_nobody_narrowed_is_warned_of(argument: str, advice: str) -> None:
    """Shows the advice, that it is answered when pasted, and that it and conditions on both end the warning."""
    sensors, sql = WORLDS["sensors"], NEAR.format(argument)
    (finding,) = warned(sql, sensors)
    assert advice in finding.instead[0]
    ((candidate, *_),) = pasted(sql, finding, finding.instead[0])
    assert warned(candidate, sensors) == []
    assert len(warned(f"{sql} AND b.moment >= a.moment", sensors)) == 1
    assert warned(f"{sql} AND b.moment BETWEEN a.moment AND a.moment + INTERVAL 2 HOUR", sensors) == []


def test_an_end_that_a_condition_says_is_not_clipped_once_more() -> None:
    """Shows that of a difference with one end near, the advice clips the far one alone, and ends the warning."""
    sensors, sql = WORLDS["sensors"], NEAR.format("AVG(epoch(b.moment - a.moment))")
    sql += " AND b.moment - a.moment < INTERVAL 2 HOUR"
    (finding,) = warned(sql, sensors)
    assert finding.instead[0].startswith("AVG(GREATEST(epoch(b.moment - a.moment), -2000000)) where")
    ((candidate, *_),) = pasted(sql, finding, finding.instead[0])
    assert warned(candidate, sensors) == []
