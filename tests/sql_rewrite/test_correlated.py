"""Nested queries over other rows of the same unit: what is known of them, one identity, statements and refusals."""

from __future__ import annotations

import re

import pytest

from privacy.bounds import AutomaticContribution
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.contribution import Contribution
from sql_rewrite.cost import check_work
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.plan import Core
from sql_rewrite.plan_key import core_key
from sql_rewrite.unit_facts import rows_of_unit, steady_relations
from sql_rewrite.unit_keys import column_space, key_space
from tests.sql_rewrite.datasets import CLINIC
from tests.sql_rewrite.test_unit_groups import core, refused

_OTHERS = "FROM visits AS w WHERE w.person_id = v.person_id"


def counted(condition: str) -> BoundedCore:
    """The bounded core of a count of visits."""
    return core(f"SELECT COUNT(*) FROM visits AS v WHERE {condition}")


def _only(sql: str) -> Core:
    (found,) = lift(sql, CLINIC).cores
    return found


def test_key_spaces_are_those_of_verified_keys() -> None:
    """Shows that a visit's key and the tests' way to it are one space, and other references are none."""
    joined = _only(
        "SELECT COUNT(*) FROM tests AS t JOIN visits AS v USING (visit_id) JOIN people AS p USING (person_id)"
    )
    sources = joined.sources
    by_name = {source.table.name: source for source in sources}
    assert (
        column_space(by_name["tests"], "visit_id")
        == column_space(by_name["visits"], "visit_id")
        == ("visits", "visit_id")
    )
    assert column_space(by_name["tests"], "test_id") == ("tests", "test_id")
    assert column_space(by_name["visits"], "hospital_id") is None
    assert column_space(by_name["tests"], "result") is None
    outer = _only(
        "SELECT COUNT(w.cost) FROM people AS p LEFT JOIN visits AS w USING (person_id) GROUP BY w.visit_id % 3"
    )
    column = next(ref for _, key in outer.keys for ref in [key.arguments[0]])  # type: ignore[union-attr]
    assert key_space(column, outer.sources) is None


@pytest.mark.parametrize(
    "condition",
    [
        f"EXISTS (SELECT 1 {_OTHERS} AND w.ward = v.ward AND w.cost > v.cost)",
        f"cost > (SELECT AVG(w.cost) {_OTHERS})",
        f"(SELECT COUNT(*) {_OTHERS} AND w.ward = v.ward) > 2",
        "visit_id IN (SELECT visit_id FROM tests WHERE result > 3)",
        "visit_id NOT IN (SELECT visit_id FROM tests GROUP BY visit_id HAVING COUNT(*) > 3)",
        "NOT EXISTS (SELECT 1 FROM tests AS t WHERE t.visit_id = v.visit_id)",
    ],
)
def test_rows_are_not_multiplied(condition: str) -> None:
    """Shows the bounds of the visits alone, and a join that compares the unit first."""
    found = counted(condition)
    assert isinstance(found.contribution, Contribution)
    assert found.contribution.total == 40
    assert rows_of_unit(found.core.sources) == 1_000
    assert re.search(r'ON \("r0"."unit\$id" (=|IS NOT DISTINCT FROM) "r1"."unit\$id"', lower(found).sql)


def test_rows_of_one_visit_meet_its_row_alone() -> None:
    """Shows that a join on a key of rows multiplies only where that key repeats."""
    grouped = "(SELECT visit_id, AVG(result) AS mean FROM tests GROUP BY visit_id) AS t"
    for text in (
        f"visits AS v JOIN {grouped} ON t.visit_id = v.visit_id",
        f"{grouped} JOIN visits AS v USING (visit_id)",
    ):
        found = core(f"SELECT COUNT(*) FROM {text}")
        assert rows_of_unit(found.core.sources) == 1_000
    pairs = core("SELECT COUNT(*) FROM tests AS a JOIN tests AS b ON a.visit_id = b.visit_id AND a.test_id < b.test_id")
    assert rows_of_unit(pairs.core.sources) == 1_000_000
    assert isinstance(pairs.contribution, Contribution)
    assert pairs.contribution.total == 400
    assert not isinstance(pairs.core.sources[0].table.contribution, AutomaticContribution)


def test_names_and_sides_are_no_matter() -> None:
    """Shows one identity for other names, sides and brackets, and another one for another comparison."""
    texts = [
        f"EXISTS (SELECT 1 {_OTHERS} AND w.ward = v.ward AND w.cost > v.cost)",
        "EXISTS (SELECT * FROM visits AS x WHERE (v.cost < x.cost) AND v.person_id = x.person_id AND v.ward = x.ward)",
    ]
    keys = {core_key(counted(text), CLINIC) for text in texts}
    assert len(keys) == 1
    assert core_key(counted(texts[0].replace("> v.cost", ">= v.cost")), CLINIC) not in keys
    assert core_key(counted(texts[0].replace("w.ward = v.ward AND", "")), CLINIC) not in keys


def test_one_group_of_rows_is_joined_once() -> None:
    """Shows that two questions to one group of rows read it once, and other keys are another group."""
    condition = f"cost > (SELECT AVG(w.cost) {_OTHERS})"
    twice = counted(f"{condition} AND cost + 1 > (SELECT AVG(w.cost) {_OTHERS})")
    assert [source.relation for source in twice.core.sources] == ["r0", "r1"]
    other = counted(f"{condition} AND cost > (SELECT AVG(w.cost) {_OTHERS} AND w.ward = v.ward)")
    assert len(other.core.sources) == 3


@pytest.mark.parametrize(
    "condition",
    [
        "EXISTS (SELECT 1 FROM visits AS w WHERE w.hospital_id = v.hospital_id)",
        "EXISTS (SELECT 1 FROM tests AS t WHERE t.test_id = v.visit_id)",
        f"EXISTS (SELECT 1 {_OTHERS} AND w.day > v.day AND COALESCE(w.cost < v.cost, TRUE))",
        f"EXISTS (SELECT 1 {_OTHERS} AND (w.day > v.day OR w.cost < 3) AND (w.day < v.day OR w.cost > 9))",
        f"EXISTS (SELECT 1 {_OTHERS} AND w.hospital_id = v.ward)",
        f"cost > (SELECT w.cost {_OTHERS})",
        f"ward NOT IN (SELECT w.ward {_OTHERS})",
        "visit_id IN (SELECT test_id FROM tests)",
        "visit_id IN (SELECT hospital_id FROM visits)",
    ],
)
def test_what_is_refused(condition: str) -> None:
    """Shows that rows of others, several comparisons, and values that are not of one row are refused."""
    finding = refused(f"SELECT COUNT(*) FROM visits AS v WHERE {condition}")
    assert finding.code == "correlated_subquery", finding
    assert finding.instead


def test_two_comparisons_take_the_time_of_a_sort() -> None:
    """Shows that a thousand rows of each unit are not tried with one another, and three comparisons are too many."""
    asked = f"SELECT COUNT(*) FROM visits AS v WHERE EXISTS (SELECT 1 {_OTHERS} AND w.day > v.day AND w.cost > v.cost"
    found = core(f"{asked})")
    check_work([found])
    assert rows_of_unit(found.core.sources) == 1_000
    finding = refused(f"{asked} AND w.visit_id <> v.visit_id)")
    assert finding.code == "too_large"


def test_a_comparison_of_two_types_is_refused_where_it_stands() -> None:
    """Shows the refusal of what cannot be compared, by its own code and place."""
    finding = refused(f"SELECT COUNT(*) FROM visits AS v WHERE EXISTS (SELECT 1 {_OTHERS} AND w.cost < v.ward)")
    assert finding.code == "unsupported_type"
    assert finding.position is not None
    assert finding.position.text == "w.cost < v.ward"


def test_a_key_of_the_text_alone_groups_within_units() -> None:
    """Shows that GROUP BY of a visit is a group of one person's rows, and its answer is never by visit."""
    text = "SELECT n, COUNT(*) FROM (SELECT visit_id, COUNT(*) AS n FROM tests GROUP BY visit_id) AS t GROUP BY n"
    (found,) = bound(lift(text, CLINIC))
    assert found.core.sources[0].groups is not None
    assert refused("SELECT visit_id, COUNT(*) FROM tests GROUP BY visit_id").code == "group_by_unit"
    assert refused(
        "SELECT k, COUNT(*) FROM (SELECT visit_id AS k, COUNT(*) AS n FROM tests GROUP BY 1) AS t GROUP BY k"
    ).code


def test_a_row_that_some_rows_of_a_unit_find_is_not_constant() -> None:
    """Shows that what is there once in a unit is not the same in all its rows where the join compares more."""
    nested = "EXISTS (SELECT 1 FROM people AS p WHERE p.person_id = v.person_id AND p.age = v.visit_id)"
    found = core(f"SELECT {nested} AS k, COUNT(*) FROM visits AS v GROUP BY k")
    assert found.core.sources[1].table.one_row
    assert steady_relations(found.core.sources) == set()
    assert isinstance(found.contribution, Contribution)
    assert found.contribution.groups == 2
