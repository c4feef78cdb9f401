"""ROLLUP, CUBE and GROUPING SETS: what is released for them, and which levels they stand for."""

from __future__ import annotations

import pytest
from sqlglot import exp

from privacy.refusal import Refused
from sql_rewrite.levels import LEVELS_MAX, levels_of
from sql_rewrite.lift import lift
from sql_rewrite.plan import Plan
from sql_rewrite.plan_key import canonical_core
from sql_rewrite.syntax import parse
from tests.sql_rewrite.datasets import CLINIC


def plan(sql: str) -> Plan:
    """The plan of a text."""
    return lift(sql, CLINIC, {})


def sets_of(group: str) -> list[str]:
    """The levels of a GROUP BY, each as the keys that it groups by."""
    tree, text = parse(f"SELECT COUNT(*) FROM t GROUP BY {group}")
    assert isinstance(tree, exp.Select)
    levels = levels_of(tree, text)
    assert levels is not None
    return ["".join(levels.keys[place].name for place in places) for places in levels.sets]


@pytest.mark.parametrize(
    ("expected", "group"),
    [
        (["ab", "a", ""], "ROLLUP (a, b)"),
        (["abc", "ab", ""], "ROLLUP ((a, b), c)"),
        (["ab", "a", "b", ""], "CUBE (a, b)"),
        (["ab", "a", ""], "GROUPING SETS ((a, b), a, ())"),
        (["ab", "a", "", "c"], "GROUPING SETS (ROLLUP (a, b), (c))"),
        (["ca", "c"], "c, ROLLUP (a)"),
        (["ab", "a", "b", ""], "ROLLUP (a), ROLLUP (b)"),
        (["a", "a"], "a, ROLLUP (a)"),
    ],
)
def test_levels_are_those_of_the_dialect(expected: list[str], group: str) -> None:
    """Shows the sets of keys that a GROUP BY stands for, repeats included."""
    assert sorted(expected) == sorted(sets_of(group))


def test_the_finest_level_is_all_that_is_released() -> None:
    """Shows one core, the same as that of the plain GROUP BY: every level is post-processing of its release."""
    rolled = plan("SELECT sex, smoker, COUNT(*), SUM(hours) FROM people GROUP BY ROLLUP (sex, smoker)")
    plain = plan("SELECT sex, smoker, COUNT(*), SUM(hours) FROM people GROUP BY sex, smoker")
    assert [canonical_core(core) for core in rolled.cores] == [canonical_core(core) for core in plain.cores]


def test_levels_beyond_the_limit_are_not_written_out() -> None:
    """Shows that a cube of many keys is refused before its levels are listed."""
    keys = ", ".join(f"a{i}" for i in range(40))
    with pytest.raises(Refused) as caught:
        sets_of(f"CUBE ({keys})")
    assert caught.value.findings[0].code == "too_large"
    assert str(LEVELS_MAX) in caught.value.findings[0].why


def test_levels_that_do_not_follow_are_cores_of_their_own() -> None:
    """Shows one core for each level of hidden keys, and of aggregates that do not add up, with a warning."""
    hidden = plan("SELECT education, COUNT(*) FROM people GROUP BY ROLLUP (education)")
    assert [len(core.keys) for core in hidden.cores] == [1, 0]
    spread = plan("SELECT sex, smoker, VAR_POP(age) FROM people GROUP BY GROUPING SETS ((sex), (smoker))")
    assert [len(core.keys) for core in spread.cores] == [1, 1]
    assert [warning.code for found in (hidden, spread) for warning in found.warnings] == ["levels_apart"] * 2
    alone = plan("SELECT smoker, VAR_POP(age) FROM people GROUP BY smoker")
    assert canonical_core(alone.cores[0]) == canonical_core(spread.cores[1])
