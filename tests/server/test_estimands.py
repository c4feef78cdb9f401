"""The answer says what its columns estimate, and which bound may have cut how."""

from __future__ import annotations

from dataclasses import replace

import pytest

from privacy.aggregate import AggregateFunction
from privacy.bounds import AskedContribution, ContributionBound
from server.estimands import estimand, what_is_cut
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.cut_groups import shown_groups_beyond_bound
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import core_key
from sql_rewrite.plan_warnings import plan_warnings
from tests.sql_rewrite.datasets import CLINIC

PER_MONTH = "SELECT month(day) AS m, COUNT(*), SUM(cost), AVG(cost) FROM visits GROUP BY m"


def core(sql: str, asked: AskedContribution | None = None) -> BoundedCore:
    """The only core of a query."""
    (found,) = bound(lift(sql, CLINIC.bounded_by(asked)))
    return found


def test_a_request_names_its_own_bounds() -> None:
    """What is named replaces the declared bound, fewer rows shrink the others, and one row per unit stays that."""
    declared = ContributionBound(40, 4, 15)
    assert AskedContribution(groups_per_unit=36).over(declared) == ContributionBound(40, 36, 15)
    assert AskedContribution(rows_per_unit=2).over(declared) == ContributionBound(2, 2, 2)
    assert AskedContribution(rows_per_unit=2, groups_per_unit=9).over(declared) == ContributionBound(2, 9, 2)
    asked = CLINIC.bounded_by(AskedContribution(rows_per_unit=7))
    people, visits = asked.table("people"), asked.table("visits")
    assert people == CLINIC.table("people")
    assert visits is not None
    assert visits.rows_stored == CLINIC.table("visits").rows_stored  # type: ignore[union-attr]


def test_an_asked_bound_is_part_of_the_release() -> None:
    """Another bound is another release and another sensitivity; naming the declared one is the same release."""
    plain, same = core(PER_MONTH), core(PER_MONTH, AskedContribution(groups_per_unit=4))
    other = core(PER_MONTH, AskedContribution(groups_per_unit=13))
    assert core_key(plain, CLINIC) == core_key(same, CLINIC) != core_key(other, CLINIC)
    assert not other.contribution.choose_groups
    assert plain.contribution.choose_groups


def test_the_answer_says_what_was_cut_and_what_would_cover_it() -> None:
    """One plain sentence per core names each bound that may bind, and the bound that covers the grouping."""
    said = what_is_cut(core(PER_MONTH))
    assert said is not None
    assert said.count(":") == 3
    for words in ("at most 4 of the 13 groups (groups_per_unit)", "at most 15 rows in each", "beyond 40 rows over all"):
        assert words in said
    assert "covers them" in said
    assert what_is_cut(core("SELECT COUNT(*) FROM people")) is None
    assert what_is_cut(core("SELECT COUNT(DISTINCT person_id) FROM visits")) is None
    assert "at most 40 rows (rows_per_unit)" in str(what_is_cut(core("SELECT COUNT(*) FROM visits")))


def test_the_answer_says_that_values_beyond_declared_bounds_count_as_the_bound() -> None:
    """A sum that lacks a fifth of its worth does not look exact, also where each unit has one row; ranges of constants
    and of conditions clip nothing that was stored."""
    assert "cost 0 to 5,000." in str(what_is_cut(core("SELECT SUM(cost) FROM visits")))
    assert what_is_cut(core("SELECT AVG(age + age) FROM people")) == (
        "Values beyond the declared bounds count as the bound: age 0 to 100."
    )
    assert what_is_cut(core("SELECT SUM(CASE WHEN age > 30 THEN 1 ELSE 0 END), COUNT(age) FROM people")) is None
    assert what_is_cut(core("SELECT AVG(hours) FROM people")) is None, "its keys are verified, and lie within"


def test_a_bound_on_rows_alone_is_a_whole_sentence() -> None:
    """Where every group of a unit counts, the sentence still has a verb."""
    asked = AskedContribution(groups_per_unit=13)
    assert str(what_is_cut(core(PER_MONTH, asked))).startswith("A unit counts with at most 15 rows in each group (")


def test_groups_beyond_the_bound_are_a_warning_with_the_bound_that_covers_them() -> None:
    """36 months with groups_per_unit 4 are not drawn in silence; with the named bound the warning is gone."""
    plan = lift(PER_MONTH, CLINIC)
    (warning,) = plan_warnings(plan, bound(plan))
    cells = core(PER_MONTH).described.keys.domain
    assert cells is not None
    assert warning.code == "groups_beyond_bound"
    assert f'"groups_per_unit": {len(cells)}' in warning.instead[0]
    asked = CLINIC.bounded_by(AskedContribution(groups_per_unit=len(cells)))
    assert plan_warnings(lift(PER_MONTH, asked), bound(lift(PER_MONTH, asked))) == ()


def test_groups_that_only_the_answer_shows_are_not_cut_in_silence() -> None:
    """Where groups are not public, their released number is held against the bound; fewer say nothing."""
    hidden = bound(lift("SELECT date_trunc('month', day) AS m, COUNT(*) FROM visits GROUP BY 1", CLINIC))
    groups = hidden[0].contribution.groups
    assert hidden[0].described.keys.domain is None
    (warning,) = shown_groups_beyond_bound(hidden, groups + 1)
    assert f'"groups_per_unit": {groups + 1}' in warning.instead[0]
    assert list(shown_groups_beyond_bound(hidden, groups)) == []
    assert list(shown_groups_beyond_bound(bound(lift(PER_MONTH, CLINIC)), 100)) == [], "the plan has said it"


@pytest.mark.parametrize(
    "calls", ["SUM(cost)", "SUM(cost), COUNT(*)", "SUM(cost), AVG(cost)", "SUM(cost), STDDEV(cost)"]
)
def test_the_estimand_of_a_column_does_not_depend_on_its_company(calls: str) -> None:
    """A SUM is named the same in every company."""
    found = core(f"SELECT {calls} FROM visits")
    said = [estimand(found, e) for e in found.described.estimates if e.kind is AggregateFunction.SUM]
    assert said == ["each unit's sum, clipped to what 40 rows can be worth"]


def test_estimands_are_named() -> None:
    """Every kind of column has its words."""
    found = core(PER_MONTH)
    said = {e.kind.value: estimand(found, e) for e in found.described.estimates}
    assert said["rows"].startswith("rows, at most 15 rows per unit and group, 40 over all groups")
    assert said["average"].startswith("over rows, each unit weighing as its rows")
    units = replace(found, contribution=replace(found.contribution, one_row=True))
    assert estimand(units, found.described.estimates[0]) == "plain: each unit has one row"


@pytest.mark.parametrize("keys", ["", ", ward"])
def test_units_under_a_filter_are_not_told_as_rows(keys: str) -> None:
    """Each unit counts once, under a condition as well: the answer said that forty rows of each count."""
    sql = f"SELECT COUNT(DISTINCT person_id) FILTER (WHERE cost > 50) AS n, COUNT(*) AS k{keys} FROM visits"
    found = core(f"{sql} GROUP BY ward" if keys else sql)
    rows, units = sorted(estimand(found, estimate) for estimate in found.described.estimates)
    assert units.startswith("units")
    assert rows.startswith("rows, at most")
