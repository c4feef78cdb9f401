"""Windows over groups: which sums of neighbours an outer query reads, and that nothing else of a plan follows."""

from __future__ import annotations

import pytest

from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lifting import ByAtoms
from sql_rewrite.plan import Plan, Running
from sql_rewrite.plan_key import core_key
from tests.sql_rewrite.datasets import CLINIC

INNER = "SELECT sex, hours, COUNT(*) AS n, SUM(hours) AS s FROM people GROUP BY ALL"
ONE = "SELECT hours, COUNT(*) AS n FROM people GROUP BY hours"
BELOW, WITHIN = (None, 0), "OVER (PARTITION BY sex ORDER BY hours"


def plan(sql: str) -> Plan:
    """The plan of a text."""
    return lift(sql, CLINIC, {})


@pytest.mark.parametrize(
    ("expected", "sql"),
    [
        (Running(0, (BELOW,), False), "SELECT hours, SUM(COUNT(*)) OVER (ORDER BY hours) FROM people GROUP BY hours"),
        (Running(0, (BELOW,), True), f"SELECT hours, n, SUM(n) OVER (ORDER BY hours) FROM ({ONE}) AS t"),
        (Running(0, (BELOW,), True), f"WITH t AS ({ONE}) SELECT n, SUM(t.n) OVER (ORDER BY t.hours) AS b FROM t"),
        (Running(0, ((0, None),), False), f"SELECT SUM(n) OVER (ORDER BY hours DESC) AS above FROM ({ONE}) AS t"),
        (
            Running(0, ((-6, 0), (-1, 1)), False),
            f"SELECT AVG(n) OVER (ORDER BY hours ROWS 6 PRECEDING) AS a, SUM(n) OVER w AS b FROM ({ONE}) AS t "
            "WINDOW w AS (ORDER BY hours ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
        ),
        (Running(0, (BELOW,), False), f"SELECT SUM(n) OVER (ORDER BY hours) / SUM(n) OVER () AS p FROM ({ONE}) AS t"),
        (Running(0, (BELOW,), False), f"SELECT SUM(n) {WITHIN}) AS b, SUM(s) {WITHIN}) AS c FROM ({INNER}) AS t"),
        (
            Running(0, (BELOW,), False),
            "SELECT SUM(COUNT(*)) OVER (ORDER BY FLOOR(hours / 10)) AS b FROM people GROUP BY FLOOR(hours / 10)",
        ),
        (None, f"SELECT SUM(n) OVER (ORDER BY hours) AS b FROM ({INNER}) AS t"),
        (None, f"SELECT RANK() OVER (ORDER BY hours) AS b FROM ({ONE}) AS t"),
        (None, f"SELECT SUM(n) OVER (ORDER BY n) AS b FROM ({ONE}) AS t"),
        (None, f"SELECT SUM(n) OVER () AS b FROM ({ONE}) AS t"),
        (None, f"SELECT SUM(n) OVER (ORDER BY hours RANGE 5 PRECEDING) AS b FROM ({ONE}) AS t"),
    ],
)
def test_windows_in_the_order_of_a_key_are_found(expected: Running | None, sql: str) -> None:
    """Shows the sums that are read, in blocks, nested queries and CTEs, and what is left as it is."""
    (core,) = plan(sql).cores
    assert expected == core.running


def test_the_sums_are_ranges_of_the_groups() -> None:
    """Shows their places, at most so many of them, in the order of the key; of hidden groups, and beside aggregates
    that do not add up, there are none."""
    (core,) = bound(plan(f"SELECT SUM(n) OVER (ORDER BY hours ROWS 1 PRECEDING) AS b FROM ({ONE}) AS t"))
    assert core.described.running is not None
    assert core.described.running.ends[:3] == ((0, 1), (0, 2), (1, 3))
    assert core.described.keys.domain is not None
    assert core.described.running.ends[-1][1] == len(core.described.keys.domain)
    hidden = "SELECT SUM(COUNT(*)) OVER (ORDER BY born) AS b FROM people GROUP BY born"
    others = "SELECT SUM(COUNT(*)) OVER (ORDER BY hours) AS b, COUNT(DISTINCT age) FROM people GROUP BY hours"
    for sql in (hidden, others):
        (core,) = bound(plan(sql))
        assert core.core.running is not None
        assert core.described.running is None


def test_no_key_of_a_plan_has_them() -> None:
    """Shows the identity of the plain GROUP BY, and that questions of a width have no such sums."""
    sql = f"SELECT SUM(n) OVER (ORDER BY hours) AS b FROM ({ONE}) AS t"
    (summed,), (plain,) = bound(plan(sql)), bound(plan(ONE))
    assert core_key(summed, CLINIC) == core_key(plain, CLINIC)
    assert lift(sql, CLINIC, {}, atoms=ByAtoms.ALONE).cores[0].running is None
