"""The facts of a plan's nodes hold for the rows themselves."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest

from sql_rewrite.bound import bound
from sql_rewrite.explained import Node, explain_core, explain_outer
from sql_rewrite.lift import lift
from tests.hostile.good import GOOD
from tests.sql_rewrite.datasets import CLINIC


def tree(sql: str) -> Node:
    """The tree of a text over the clinic."""
    plan = lift(sql, CLINIC, {})
    return explain_outer(plan, tuple(explain_core(core, CLINIC) for core in bound(plan)))


def nodes(node: Node) -> list[Node]:
    """The node and all below it."""
    return [node, *(inner for one in node.inputs for inner in nodes(one))]


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("SELECT COUNT(*) FROM people", ["aggregate", "scan"]),
        ("SELECT COUNT(*) + 1 FROM people WHERE age > 3", ["outer query", "aggregate", "filter", "scan"]),
        (
            "SELECT region, SUM(cost) FROM visits v LEFT JOIN hospitals h ON v.hospital_id = h.hospital_id "
            "GROUP BY region",
            ["aggregate", "left join", "scan", "scan"],
        ),
        (
            "SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id)",
            ["aggregate", "group within the unit", "scan"],
        ),
        (
            "SELECT SUM(x) FROM (SELECT cost AS x FROM visits UNION ALL SELECT age FROM people)",
            ["aggregate", "union all", "scan", "scan"],
        ),
    ],
)
def test_a_tree_has_a_node_for_each_step(sql: str, kinds: list[str]) -> None:
    """Shows the kinds, outermost first."""
    assert [node.kind for node in nodes(tree(sql))] == kinds


def test_a_join_on_the_unit_multiplies_rows_and_uniqueness_is_not_claimed() -> None:
    """Shows that the bound on a unit's rows is the product, and that no column is unique any more."""
    join = nodes(tree("SELECT COUNT(*) FROM visits a JOIN visits b ON a.person_id = b.person_id"))[1]
    assert join.kind == "join"
    left, right = (one.facts.rows_per_unit for one in join.inputs)
    assert left is not None
    assert right is not None
    assert join.facts.rows_per_unit == left * right
    assert join.facts.unique == ()


def test_every_text_that_is_answered_has_a_tree() -> None:
    """Shows that no kind of source is without words, and that the outer query alone stands above cores."""
    seen = Counter(node.kind for text in GOOD for node in nodes(tree(text)))
    assert seen["scan"] > 20
    assert set(seen) <= {
        "outer query", "aggregate", "filter", "join", "left join", "scan", "group within the unit",
        "windows within the unit",
    }  # fmt: skip


def test_unique_columns_and_ranges_hold_for_rows() -> None:
    """Shows it on rows of a join and of groups within the unit, which DuckDB computes."""
    with duckdb.connect(":memory:") as connection:
        connection.execute("CREATE TABLE visits AS SELECT i AS visit_id, i % 7 AS person_id FROM range(40) t(i)")
        connection.execute("CREATE TABLE people AS SELECT i AS person_id FROM range(9) t(i)")
        joined = "visits v JOIN people p ON v.person_id = p.person_id"
        node = nodes(tree(f"SELECT COUNT(*) FROM {joined}"))[1]
        assert node.facts.unique == ("visit_id",)
        most = f"SELECT MAX(c) FROM (SELECT COUNT(*) AS c FROM {joined} GROUP BY visit_id)"
        assert connection.execute(most).fetchall() == [(1,)]
        groups = nodes(tree("SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id)"))[1]
        assert groups.facts.unique == ("unit",)
        assert groups.facts.rows_per_unit == 1
