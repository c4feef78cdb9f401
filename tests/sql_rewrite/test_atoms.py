"""Conditions as atoms: each aggregate adds up the rows that it asked for, and what would mean something else stays."""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from privacy.policy import ColumnType
from privacy.release import ColumnKind
from sql_rewrite import atoms, core_blocks
from sql_rewrite.atoms import atoms_of
from sql_rewrite.bound import bound
from sql_rewrite.contribution import Contribution
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import Expression, Literal, Value, columns_of
from sql_rewrite.functions import build
from sql_rewrite.lift import lift
from sql_rewrite.lifting import ByAtoms
from sql_rewrite.plan import Core, Plan
from sql_rewrite.plan_key import canonical_core
from tests.sql_rewrite.datasets import AUTOMATIC, CLINIC

CONDITIONS = (
    "age > 50", "age > 60", "age BETWEEN 20 AND 60", "sex = 'male'", "sex <> 'male'", "smoker", "NOT smoker",
    "income IS NULL", "income > 5", "income <= 5 OR income IS NULL", "education IN ('a', 'b')", "education = 'a'",
    "NOT education = 'a'", "born < '1950-01-01'", "income > 5 IS NOT TRUE", "education LIKE 'a%'",
)  # fmt: skip

VALUES: dict[str, tuple[Value, ...]] = {
    "age": (19, 20, 50, 51, 60, 61, 99),
    "sex": ("male", "female"),
    "smoker": (True, False),
    "income": (None, 4.0, 5.0, 6.0),
    "education": (None, "a", "ab", "b", "c"),
    "born": (None, datetime.date(1949, 12, 31), datetime.date(1950, 1, 1)),
}


def written(sql: str, monkeypatch: pytest.MonkeyPatch) -> Core:
    """The core of a text as it is written."""
    with monkeypatch.context() as patch:
        patch.setattr(core_blocks, "atoms_of", lambda *_, **__: None)
        (core,) = lift(sql, CLINIC).cores
    return core


def wrong(monkeypatch: pytest.MonkeyPatch, questions: int = 50) -> tuple[int, list[str]]:
    """How many random questions are asked by atoms, and those whose atoms hold other rows than their conditions."""
    draw = random.Random(5)
    made, found = 0, []
    for _ in range(questions):
        asked = draw.sample(CONDITIONS, draw.randint(2, 4))
        calls = [f"COUNT(*) FILTER (WHERE {one})" for one in asked] + ["COUNT(*)"] * draw.randint(0, 1)
        core = written(f"SELECT {', '.join(calls)} FROM people", monkeypatch)
        known = atoms_of(core, CLINIC)
        if known is None:
            continue
        made += 1
        label = dict(known.core.keys)[known.key]
        filters = [one.filter for one in core.aggregates if one.filter is not None]
        read = [*dict.fromkeys(ref for said in (label, *filters) for ref in columns_of(said))]
        for _ in range(40):
            row: Mapping[tuple[str, str], Value] = {(c.relation, c.name): draw.choice(VALUES[c.name]) for c in read}
            atom = evaluate(label, row)
            for one, (_, _, masks) in zip(core.aggregates, known.sums, strict=True):
                kept = one.filter is None or evaluate(one.filter, row) is True
                if kept is not (atom in masks):
                    found.append(f"{calls}: {row}")
    return made, found


def test_each_aggregate_is_the_sum_of_the_rows_that_it_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows it of random conditions on rows with NULLs: an atom is read exactly where the condition is TRUE."""
    made, found = wrong(monkeypatch)
    assert made > 15
    assert found == []


def _overlapping(core: Core, conditions: list[Expression], masks: tuple[int, ...]) -> atoms.Atoms:
    """Labels whose smaller sets of conditions stand first, so that a row is in the atom of a part of its own set."""
    made = _BY_ATOMS(core, conditions, masks)
    label = dict(made.core.keys)[made.key]
    *branches, other = label.arguments  # type: ignore[union-attr]
    pairs = [branches[place : place + 2] for place in range(0, len(branches), 2)][::-1]
    turned = build("case", [*(part for pair in pairs for part in pair), other])
    return _with_label(made, turned)


def _with_nulls(core: Core, conditions: list[Expression], masks: tuple[int, ...]) -> atoms.Atoms:
    """Labels that count a condition which is NULL."""
    made = _BY_ATOMS(core, conditions, masks)
    label = dict(made.core.keys)[made.key]
    parts = list(label.arguments)  # type: ignore[union-attr]
    for place in range(0, len(parts) - 1, 2):
        parts[place] = build("coalesce", (parts[place], Literal(True, ColumnType.BOOLEAN)))
    return _with_label(made, build("case", parts))


def _with_label(made: atoms.Atoms, label: Expression) -> atoms.Atoms:
    keys = tuple((name, label if name == made.key else key) for name, key in made.core.keys)
    return replace(made, core=replace(made.core, keys=keys))


_BY_ATOMS = atoms._by_atoms


@pytest.mark.parametrize("planted", [_overlapping, _with_nulls])
def test_atoms_that_overlap_or_count_null_are_found(planted: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twins: a row in the atom of a part of its conditions, and a row of which a condition is NULL."""
    monkeypatch.setattr(atoms, "_by_atoms", planted)
    assert wrong(monkeypatch, 30)[1]


def plan(sql: str) -> Plan:
    """The plan of a text."""
    return lift(sql, CLINIC)


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        ("COUNT(*) FILTER (WHERE sex = 'male'), COUNT(*) FILTER (WHERE sex = 'female') FROM people", [1, 1]),
        ("COUNT(*), COUNT(*) FILTER (WHERE smoker) FROM people", [2, 1]),
        ("COUNT_IF(age > 50), COUNT_IF(age > 60), COUNT_IF(age > 70), COUNT(*) FROM people", [3, 2, 1, 4]),
        ("AVG(salary) FILTER (WHERE smoker), AVG(salary) FILTER (WHERE NOT smoker) FROM people", [1, 1]),
        ("SUM(CASE WHEN smoker THEN 1 ELSE 0 END), SUM(CASE WHEN NOT smoker THEN 1 END) FROM people", [1, 1]),
        ("SUM(CASE WHEN smoker THEN salary END), SUM(salary) FILTER (WHERE NOT smoker) FROM people", [1, 1]),
        ("COUNT_IF(p.sex = 'male'), COUNT(*) FROM visits v JOIN people p USING (person_id)", [1, 2]),
    ],
)
def test_what_is_asked_by_atoms_is_one_statistic(asked: str, numbers: list[int]) -> None:
    """Shows that one vector has the whole price, and of how many of its cells each column is the sum."""
    found = plan(f"SELECT {asked}")
    (core,) = bound(found)
    assert len(core.statistics) == 1
    assert core.described.keys.groups_per_unit == 1
    assert [1 if o.total is None else o.total[2] for o in found.shell.outputs] == numbers
    kinds = [ColumnKind.RELEASED if number == 1 else ColumnKind.DERIVED for number in numbers]
    assert [output.kind for output in found.shell.outputs] == kinds


@pytest.mark.parametrize(
    "sql",
    [
        # A unit may have rows in both, and would be counted twice in their sum.
        "SELECT COUNT(DISTINCT person_id) FILTER (WHERE cost > 50), COUNT(DISTINCT person_id) FROM visits",
        # Both orders are worth as much.
        "SELECT COUNT(*) FILTER (WHERE age > 50), COUNT(*) FILTER (WHERE smoker) FROM people",
        # Groups that are not public are selected by their counts.
        "SELECT education, COUNT(*) FILTER (WHERE smoker), COUNT(*) FROM people GROUP BY education",
        # Averages of several atoms are no sums, different values no sums, quantiles neither.
        "SELECT AVG(salary), AVG(salary) FILTER (WHERE smoker) FROM people",
        "SELECT COUNT(DISTINCT hours) FILTER (WHERE smoker), COUNT(DISTINCT hours) FROM people",
        "SELECT MEDIAN(age) FILTER (WHERE smoker), MEDIAN(age) FILTER (WHERE NOT smoker) FROM people",
        # The condition narrows the range of what is summed.
        "SELECT SUM(age) FILTER (WHERE age < 30), SUM(age) FILTER (WHERE age >= 30) FROM people",
        # Other statistics than by themselves.
        "SELECT COUNT(*), SUM(salary) FILTER (WHERE smoker) FROM people",
    ],
)  # fmt: skip
def test_what_would_mean_something_else_or_gain_nothing_stays(sql: str) -> None:
    """Shows the questions that are asked as they are written."""
    (core,) = plan(sql).cores
    assert len(core.keys) == sql.count("GROUP BY")
    assert any(one.filter is not None for one in core.aggregates)


def test_rows_of_which_a_unit_has_several_are_held_over_all_atoms() -> None:
    """Shows one statistic with the bounds of one count, or with one norm, of the rows with some condition alone."""
    sql = "SELECT COUNT(*) FILTER (WHERE cost > 50), COUNT(*) FILTER (WHERE cost <= 50) FROM visits"
    (one,) = bound(lift("SELECT COUNT(*) FROM visits", CLINIC))
    for dataset in (CLINIC, AUTOMATIC):
        (core,) = bound(lift(sql, dataset))
        assert core.core.atoms == "k0"
        assert core.core.where is not None
        assert len(core.statistics) == 1
        assert core.described.keys.domain == ((1,), (2,))
        assert len(core.norms) == (dataset is AUTOMATIC)
        if isinstance(core.contribution, Contribution):
            assert isinstance(one.contribution, Contribution)
            assert core.contribution.l2_squared_rows == one.contribution.l2_squared_rows
    (core,) = lift(sql.replace("FROM", ", COUNT(*) FROM"), CLINIC).cores
    assert core.where is None
    partners = "SELECT COUNT(*), COUNT(*) FILTER (WHERE v.cost IS NOT NULL) FROM people p LEFT JOIN visits v USING "
    assert [core.atoms for core in lift(f"{partners}(person_id)", AUTOMATIC).cores] == [None]


def test_asked_widths_stay_those_of_each_number() -> None:
    """Shows that a width asked for is that of the number shown."""
    sql = "SELECT COUNT(*) FILTER (WHERE p.smoker), COUNT(*) FROM visits v JOIN people p USING (person_id)"
    assert [len(core.keys) for core in lift(sql, CLINIC).cores] == [1]
    assert [len(core.keys) for core in lift(sql, CLINIC, atoms=ByAtoms.ALONE).cores] == [0]
    alone = "SELECT COUNT_IF(smoker), COUNT_IF(NOT smoker) FROM people"
    assert [len(core.keys) for core in lift(alone, CLINIC, atoms=ByAtoms.ALONE).cores] == [1]


def test_the_order_of_conditions_is_no_part_of_the_question() -> None:
    """Shows that the same conditions in another order have the same core."""
    texts = ("COUNT_IF(smoker), COUNT_IF(NOT smoker)", "COUNT(*) FILTER (WHERE smoker IS FALSE), COUNT_IF(smoker)")
    assert len({canonical_core(plan(f"SELECT {text} FROM people").cores[0]) for text in texts}) == 1
