"""Comparisons with any or all rows of a nested query: true, false and NULL where they are, or refused with a form."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence

import duckdb
import pytest

from privacy.refusal import Refused
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import Expression, Value, columns_of
from sql_rewrite.lift import lift
from sql_rewrite.stage_values import is_released
from tests.sql_rewrite.datasets import CLINIC

_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
_LISTS = ("(1), (3), (3)", "(3), (NULL), (5)", "(NULL)", "(3)", "(1) LIMIT 0")


def _key(condition: str) -> Expression:
    """A condition on rows of visits, as the key of a GROUP BY: its three values are three groups."""
    plan = lift(f"SELECT {condition} AS part, COUNT(*) FROM visits AS v GROUP BY part", CLINIC)
    ((_, key),) = plan.cores[-1].keys
    return key


@pytest.mark.parametrize("operator", _OPERATORS)
def test_known_rows_are_compared_as_the_engine_does(operator: str) -> None:
    """Shows every comparison with lists that have NULL, equal values or nothing, for values on each side of theirs."""
    connection = duckdb.connect()
    for quantifier, rows in itertools.product(("ANY", "ALL"), _LISTS):
        listed = f"(SELECT x FROM (VALUES {rows.removesuffix(' LIMIT 0')}) AS t(x)"
        listed += " WHERE x > 8)" if rows.endswith("LIMIT 0") else ")"
        key = _key(f"v.hospital_id {operator} {quantifier} {listed}")
        for value in (None, 0, 1, 2, 3, 5, 6):
            found = evaluate(key, {(c.relation, c.name): value for c in columns_of(key)})
            asked = f"SELECT CAST({'NULL' if value is None else value} AS BIGINT) {operator} {quantifier} {listed}"
            (theirs,) = connection.execute(asked).fetchall()[0]
            assert found is theirs, (operator, quantifier, rows, value)


def _decided(parts: Sequence[bool | None], *, every: bool) -> bool | None:
    """AND or OR in logic of three values."""
    if (not every) in parts:
        return not every
    return None if None in parts else every


@pytest.mark.parametrize(("quantifier", "every"), [("ANY", False), ("ALL", True)])
def test_released_groups_are_compared_where_they_are_there(quantifier: str, every: bool) -> None:
    """Shows it for all values that three groups may have, NULL and absent ones among them."""
    groups = "SELECT AVG(w.cost) FROM visits AS w JOIN hospitals AS h USING (hospital_id) GROUP BY h.region"
    key = _key(f"v.cost > {quantifier} ({groups})")
    released = sorted((c.name for c in columns_of(key) if is_released(c)), key=lambda name: name.rpartition("@")[2])
    values = [name for name in released if name.startswith("a")]
    flags = [f"there@{name.partition('@')[2]}" for name in values]
    assert len(values) == 3
    assert set(flags) <= set(released)
    cells: list[tuple[bool, Value]] = [(False, None), (True, None), (True, 1.0), (True, 5.0)]
    for cost, chosen in itertools.product((None, 2.0), itertools.product(cells, repeat=3)):
        row: dict[tuple[str, str], Value] = {}
        for column in columns_of(key):
            place = next((at for at in range(3) if column.name in (values[at], flags[at])), None)
            row[column.relation, column.name] = cost if place is None else chosen[place][column.name == values[place]]
        parts = [
            None if value is None or cost is None else cost > value for there, value in chosen
            if there and not isinstance(value, str | datetime.date)
        ]  # fmt: skip
        assert evaluate(key, row) is _decided(parts, every=every), chosen


def test_rows_of_the_unit_are_compared_by_exists() -> None:
    """Shows ALL and ANY of a unit's own rows as the same release as NOT EXISTS and EXISTS."""
    rows = "SELECT {} FROM visits AS w WHERE w.person_id = v.person_id"
    pairs = [
        (
            f"v.visit_id >= ALL ({rows.format('w.visit_id')})",
            f"NOT EXISTS ({rows.format('1')} AND v.visit_id < w.visit_id)",
        ),
        (f"v.day > ANY ({rows.format('w.day')})", f"EXISTS ({rows.format('1')} AND v.day > w.day)"),
    ]
    for quantified, plain in pairs:
        plans = [lift(f"SELECT COUNT(*) FROM visits AS v WHERE {c}", CLINIC) for c in (quantified, plain)]
        assert plans[0].cores == plans[1].cores


def test_exists_of_one_or_another_is_either() -> None:
    """Shows EXISTS of an OR that compares both sides as one release with an OR of EXISTS; of more, as pairs of rows."""
    inner = "EXISTS (SELECT 1 FROM visits AS w WHERE w.person_id = v.person_id AND w.ward = 'a' AND {})"
    either = ["w.cost > v.cost", "w.day < v.day", "(w.ward = v.ward AND w.visit_id <> v.visit_id)"]
    texts = [inner.format(f"({' OR '.join(either)})"), " OR ".join(inner.format(one) for one in either)]
    plans = [lift(f"SELECT COUNT(*) FROM visits AS v WHERE {text}", CLINIC) for text in texts]
    assert plans[0].cores == plans[1].cores
    many = inner.format("(" + " OR ".join(f"w.cost > v.cost + {n}" for n in range(5)) + ")")
    (of_pairs,) = lift(f"SELECT COUNT(*) FROM visits AS v WHERE {many}", CLINIC).cores
    assert len(of_pairs.sources) == 2


@pytest.mark.parametrize(
    "condition",
    [
        "cost >= ALL (SELECT w.cost FROM visits AS w)",
        "cost < ANY (SELECT w.cost FROM visits AS w WHERE w.ward = 'a')",
        "v.day >= ALL (SELECT w.day FROM visits AS w WHERE w.person_id = v.person_id)",
        # One side that may be NULL, and a name that would mean another row inside.
        "v.cost >= ALL (SELECT w.visit_id FROM visits AS w WHERE w.person_id = v.person_id)",
        "cost > ANY (SELECT w.cost FROM visits AS w WHERE w.person_id = v.person_id)",
    ],
)
def test_rows_of_other_people_are_refused(condition: str) -> None:
    """Shows the form with a released extreme, which is answered, and what may be NULL and so is no EXISTS."""
    with pytest.raises(Refused) as refused:
        lift(f"SELECT COUNT(*) FROM visits AS v WHERE {condition}", CLINIC)
    (finding,) = refused.value.findings
    assert finding.code == "unsupported_sql"
    assert lift(f"SELECT COUNT(*) FROM visits AS v WHERE {finding.instead[0]}", CLINIC).cores
