"""Numbers computed within each unit whose range nobody narrowed are warned of, and the advice ends the warning."""

from __future__ import annotations

from dataclasses import replace

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
