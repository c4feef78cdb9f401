"""Values of the group of the row outside: released first by public keys, and refused where they are no such groups."""

from __future__ import annotations

import pytest

from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import core_key
from tests.sql_rewrite.datasets import CLINIC


@pytest.mark.parametrize("value", ["AVG(q.salary)", "QUANTILE_CONT(q.salary, 0.95) / 2", "QUANTILE(q.salary, 0.5)"])
def test_it_is_the_join_with_released_groups(value: str) -> None:
    """Shows the same stage and the same release as the LEFT JOIN that it stands for."""
    nested = f"SELECT COUNT(*) FROM people p WHERE salary > (SELECT {value} FROM people q WHERE q.sex = p.sex)"
    joined = (
        f"SELECT COUNT(*) FROM people p LEFT JOIN (SELECT q.sex AS s, {value} AS a FROM people q GROUP BY q.sex) "
        "AS g ON p.sex = g.s WHERE salary > g.a"
    )
    one, two = lift(nested, CLINIC), lift(joined, CLINIC)
    assert one.stages
    assert [core_key(core, CLINIC) for core in bound(one)] == [core_key(core, CLINIC) for core in bound(two)]
    assert "conditional_on_release" in [warning.code for warning in one.warnings]


@pytest.mark.parametrize(
    "condition",
    [
        "salary > (SELECT AVG(q.salary) FROM people q WHERE q.salary = p.salary)",
        "salary > (SELECT AVG(q.salary) FROM people q WHERE q.sex = p.sex AND q.age < p.age)",
        "salary > (SELECT AVG(q.salary) FROM people q WHERE q.sex = p.sex AND p.smoker)",
        "salary > (SELECT AVG(q.salary) FROM people q WHERE q.sex = p.sex ORDER BY 1)",
        "salary > (SELECT AVG(q.salary) FROM people q WHERE q.sex = p.sex GROUP BY q.smoker)",
        "salary > (SELECT q.salary FROM people q WHERE q.sex = p.sex)",
        "salary > (SELECT AVG(q.salary + p.salary) FROM people q WHERE q.sex = p.sex)",
        "salary > (SELECT COUNT(*) + 1 FROM people q WHERE q.sex = p.sex)",
        "salary > (SELECT QUANTILE_CONT(q.salary, [0.5, 0.9]) FROM people q WHERE q.sex = p.sex)",
    ],
)
def test_other_values_of_groups_are_refused(condition: str) -> None:
    """Shows the refusal of keys that are not compared, of other comparisons, and of other values."""
    with pytest.raises(Refused):
        bound(lift(f"SELECT COUNT(*) FROM people p WHERE {condition}", CLINIC))


def test_a_count_of_no_group_is_zero() -> None:
    """Shows that a count is 0, and an average NULL, where the condition inside rules the row's group out."""
    found = []
    for value in ("COUNT(*)", "AVG(q.salary)"):
        inner = f"(SELECT {value} FROM people q WHERE q.sex = p.sex AND q.sex = 'female')"
        found.append(bound(lift(f"SELECT COUNT(*) FROM people p WHERE COALESCE({inner}, -1) < 5", CLINIC))[-1])
    counted, averaged = (repr(core.core.where).count("coalesce") for core in found)
    assert counted == averaged + 1
