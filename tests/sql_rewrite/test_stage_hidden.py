"""Released lists of hidden groups in the private part: what is proved, what is bound, and what is refused."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace

import pytest

from engines.encoding import encode_statement
from mechanisms.released_table import ReleasedTable
from privacy.policy import ColumnType
from privacy.refusal import Refused
from privacy.release import ColumnKind, ReleasedColumn
from privacy.statement import Released, StageValue
from server.journey.stages import sampled, stage_values
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.cost import check_work
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import Call, Expression, Literal, columns_of, walk
from sql_rewrite.functions import build
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.plan_key import core_key
from sql_rewrite.stage_tables import StageTable, flags_of
from sql_rewrite.stage_values import is_released, released_key
from tests.sql_rewrite.datasets import CLINIC
from tests.sql_rewrite.pasting import offered

LISTED = "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY 1 ORDER BY COUNT(*) DESC LIMIT 3)"
JOINED = (
    "SELECT SUM(v.cost) FROM visits AS v JOIN (SELECT ward, AVG(cost) AS a FROM visits GROUP BY 1 "
    "HAVING COUNT(*) > 4 ORDER BY a LIMIT 2) AS r ON v.ward = r.ward WHERE v.cost > r.a"
)


def facts(core: BoundedCore) -> list[object]:
    """What is proved of the sums of a core."""
    return [(item.statistic.kind, item.statistic.sensitivity) for item in core.statistics]


@pytest.mark.parametrize(
    ("staged", "written"),
    [
        (LISTED, "SELECT COUNT(*) FROM visits WHERE ward IN ('a', 'b')"),
        (JOINED, "SELECT SUM(cost) FROM visits WHERE ward = 'a' AND cost > 5"),
        ("SELECT sex, COUNT(*) FROM people AS p WHERE age > (SELECT AVG(q.age) FROM people AS q "
         "WHERE q.education = p.education) GROUP BY sex",
         "SELECT sex, COUNT(*) FROM people WHERE age > 5.5 GROUP BY sex"),
    ],
)  # fmt: skip
def test_released_keys_bound_as_columns_do(staged: str, written: str) -> None:
    """Shows the sensitivities of the question with a list in its place, which narrows nothing."""
    assert facts(bound(lift(staged, CLINIC))[-1]) == facts(bound(lift(written, CLINIC))[0])


@pytest.mark.parametrize(("sql", "places"), [(LISTED, 3), (JOINED, 2), (LISTED.replace("LIMIT 3", "LIMIT 5000"), 100)])
def test_the_text_of_a_statement_has_room_that_the_question_decides(sql: str, places: int) -> None:
    """Shows one text for every list, and as many keys and flags as LIMIT leaves, or a hundred."""
    plan = lift(sql, CLINIC)
    (first, last) = bound(plan)
    statement = lower(last)
    read = {one for one in statement.parameters if isinstance(one, StageValue)}
    ((_, name, _),) = plan.lists
    assert {StageValue("c0", f"k0@{name}.{place}") for place in range(places)} <= read
    assert not {StageValue("c0", f"k0@{name}.{places}"), StageValue("c0", f"{name}@{places}")} & read
    assert encode_statement(statement) is None
    (tried,) = sampled(plan, [statement])
    assert tried.sql == statement.sql
    assert encode_statement(tried) is not None
    empty = stage_values(first, released(), plan.lists)
    assert read <= empty.keys()
    assert set(empty.values()) == {None, False}


def released(*rows: tuple[object, float], kind: ColumnType = ColumnType.TEXT) -> ReleasedTable:
    """A released table of one key and one number."""
    keys, numbers = tuple(row[0] for row in rows), tuple(row[1] for row in rows)
    columns = (
        ReleasedColumn("k0", ColumnKind.KEY, kind, keys),  # type: ignore[arg-type]
        ReleasedColumn("a0", ColumnKind.RELEASED, ColumnType.NUMBER, numbers),
    )
    return ReleasedTable("c0", len(rows), columns, "0.95")


def test_what_is_bound_is_the_list_in_its_order_and_nothing_beyond_its_end() -> None:
    """Shows keys, numbers and flags of a list; NULL is a key too."""
    plan = lift(LISTED, CLINIC)
    (first, _) = bound(plan)
    ((_, name, _),) = plan.lists
    found = stage_values(first, released(("b", 4.0), (None, 9.0), ("c", 4.5), ("d", 1.0)), plan.lists)
    assert [found[StageValue("c0", f"k0@{name}.{place}")] for place in range(3)] == [None, "c", "b"]
    assert [found[StageValue("c0", f"a0@{name}.{place}")] for place in range(3)] == [9.0, 4.5, 4.0]
    assert [found[StageValue("c0", f"{name}@{place}")] for place in range(3)] == [True, True, True]
    found = stage_values(first, released(("b", float("nan"))), plan.lists)
    assert [found[StageValue("c0", f"k0@{name}.{place}")] for place in range(3)] == ["b", None, None]
    assert [found[StageValue("c0", f"a0@{name}.{place}")] for place in range(3)] == [None, None, None]
    assert [found[StageValue("c0", f"{name}@{place}")] for place in range(3)] == [True, False, False]


def test_a_list_of_more_groups_than_there_is_room_for_is_refused() -> None:
    """Shows a hundred and one groups, and that a hundred are read."""
    plan = lift("SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY 1)", CLINIC)
    (first, _) = bound(plan)
    rows = [(f"w{place}", 1.0) for place in range(101)]
    assert stage_values(first, released(*rows[:100]), plan.lists)
    with pytest.raises(Refused) as refused:
        stage_values(first, released(*rows), plan.lists)
    assert refused.value.findings[0].code == "too_large"


KEYS = (None, "a", "b", "c")


def table_of(keys: tuple[str | None, ...]) -> tuple[StageTable, dict[str, Released]]:
    """A table of hidden groups with three places, and what is bound for these keys."""
    cells = tuple((released_key("c0", f"k0@l.{place}", ColumnType.TEXT),) for place in range(3))
    table = StageTable("c0", cells, (ColumnType.TEXT,), (("k", 0),), (), flags_of("c0", "l", 3), hidden=True)
    bound_to: dict[str, Released] = {}
    for place in range(3):
        bound_to[f"k0@l.{place}"] = keys[place] if place < len(keys) else None
        bound_to[f"l@{place}"] = place < len(keys)
    return table, bound_to


def told(expression: Expression, values: dict[str, Released]) -> object:
    """What an expression over released values is."""
    row = {(ref.relation, ref.name): values[ref.name] for ref in columns_of(expression) if is_released(ref)}
    return evaluate(expression, row)


@pytest.mark.parametrize("keys", [(), ("a",), (None,), ("a", "b"), (None, "a"), ("c", None, "b")])
@pytest.mark.parametrize("value", KEYS)
def test_in_and_not_in_are_those_of_sql(keys: tuple[str | None, ...], value: str | None) -> None:
    """Shows three values of truth for every list, NULL in it and before it, and none of a place beyond its end."""
    table, bound_to = table_of(keys)
    asked = Literal(value, ColumnType.TEXT)
    expected: bool | None = value in keys
    if keys and (value is None or (None in keys and value not in keys)):
        expected = None
    assert told(table.has(asked, loose=False), bound_to) == expected
    assert told(build("not", (table.has(asked, loose=False),)), bound_to) == (
        None if expected is None else not expected
    )
    assert told(table.has(asked, loose=True), bound_to) == (expected is True)
    (there, columns) = table.joined([asked], outer=False)
    assert there is not None
    assert told(there, bound_to) == (value is not None and value in keys)
    assert columns == (("k", asked),)


def test_dates_and_numbers_are_keys_of_lists_too() -> None:
    """Shows the types of what is tried on empty tables, and of what is bound."""
    values = {StageValue("c0", kind.value, kind): kind for kind in ColumnType}
    assert StageValue("c0", "k0", ColumnType.DATE) == StageValue("c0", "k0")
    plan = lift(LISTED, CLINIC)
    statement = lower(bound(plan)[-1])
    made = sampled(replace(plan, stages=(("c1", ("c0",)),)), [replace(statement, parameters=tuple(values))])[0]
    assert {type(one) for one in made.parameters} == {int, float, str, datetime.date, datetime.datetime}


def test_lists_are_in_the_key_of_what_reads_them() -> None:
    """Shows other conditions, orders and limits as other questions, and spellings of one as one."""
    text = "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY 1 {})"
    asked = ("", "HAVING COUNT(*) > 4", "HAVING COUNT(*) > 5", "ORDER BY COUNT(*) LIMIT 4", "ORDER BY COUNT(*) LIMIT 5")
    keys = {core_key(bound(lift(text.replace("{}", how), CLINIC))[1], CLINIC) for how in asked}
    assert len(keys) == len(asked)
    spelt = "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT w.ward FROM visits AS w GROUP BY w.ward)"
    assert core_key(bound(lift(spelt, CLINIC))[1], CLINIC) in keys
    distinct = "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT DISTINCT ward FROM visits)"
    assert core_key(bound(lift(distinct, CLINIC))[1], CLINIC) in keys


def test_estimates_say_that_the_list_is_no_public_one() -> None:
    """Shows the warning, once, and none where groups are public."""
    assert [one.code for one in lift(LISTED, CLINIC).warnings] == ["hidden_groups_read", "conditional_on_release"]
    public = lift(
        "SELECT COUNT(*) FROM people WHERE sex IN (SELECT sex FROM people GROUP BY 1 ORDER BY AVG(age) LIMIT 1)", CLINIC
    )
    assert [one.code for one in public.warnings] == ["conditional_on_release"]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY 1 HAVING COUNT(*))",
         "unsupported_type"),
        ("SELECT COUNT(*) FROM people WHERE age IN (SELECT education FROM people GROUP BY 1)", "unsupported_type"),
        ("SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY 1 HAVING ward LIKE 'a%' LIMIT 3)",
         "correlated_subquery"),
        ("SELECT COUNT(*) FROM visits v JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1 HAVING n > 2 * 3 "
         "LIMIT 1) r ON v.ward = r.ward", "unsupported_sql"),
        ("SELECT COUNT(*) FROM visits v JOIN (SELECT ward, sex, COUNT(*) AS n FROM visits JOIN people "
         "USING (person_id) GROUP BY 1, 2) r ON v.ward = r.ward", "join_not_on_key"),
        ("SELECT COUNT(*) FROM people p JOIN (SELECT ROUND(salary, 1) AS s, COUNT(*) AS n FROM people GROUP BY 1) r "
         "ON p.salary = r.s", "unsupported_sql"),
        ("SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM people GROUP BY 1 HAVING COUNT(*) > 2 "
         "ORDER BY 1 LIMIT 3)", "private_row_limit"),
    ],
)  # fmt: skip
def test_what_is_not_read_of_hidden_groups_is_refused(sql: str, code: str) -> None:
    """Shows the codes."""
    with pytest.raises(Refused) as refused:
        bound(lift(sql, CLINIC))
    assert refused.value.findings[0].code == code


IN_CASE = "SELECT SUM(CASE WHEN {} THEN 1 ELSE 0 END) FROM visits AS v"
GROUPS = "SELECT ward FROM visits GROUP BY ward"


@pytest.mark.parametrize(
    ("condition", "loose"),
    [
        (f"ward IN ({GROUPS})", True),
        (f"cost > 3 AND (ward IN ({GROUPS}) OR cost < 1)", True),
        (f"NOT ward IN ({GROUPS})", False),
        (f"(ward IN ({GROUPS})) IS NULL", False),
    ],
)
def test_a_condition_of_case_takes_null_for_false(condition: str, loose: bool) -> None:
    """Shows that a branch has room for a hundred groups where NULL and FALSE are one, and tells them apart else."""
    core = bound(lift(IN_CASE.format(condition), CLINIC))[-1]
    (argument,) = (one.argument for one in core.statistics)
    assert argument is not None
    nulls = [node for node in walk(argument) if isinstance(node, Call) and node.operator == "is_null"]
    assert (len(nulls) <= 1) == loose


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(v.cost - (SELECT AVG(w.cost) FROM visits AS w WHERE w.ward = v.ward)) FROM visits AS v",
        f"SELECT SUM(CASE WHEN ward NOT IN ({GROUPS}) THEN cost ELSE 0 END), AVG(cost) FROM visits",
        "WITH t AS (SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward) SELECT SUM(CASE WHEN v.cost > t.m THEN "
        "v.cost - t.m ELSE 0 END) FROM visits AS v JOIN t ON v.ward = t.ward",
    ],
)
def test_a_list_that_has_no_room_says_how_many_groups_it_may_keep(sql: str) -> None:
    """Shows that a list of so many groups is answered."""
    with pytest.raises(Refused) as refused:
        check_work(bound(lift(sql, CLINIC)))
    (finding,) = refused.value.findings
    assert not offered(finding.instead[0])
    advised = re.search(r"LIMIT (\d+), and join it", finding.instead[0])
    assert advised is not None
    kept = "WITH g AS (SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward ORDER BY COUNT(*) DESC LIMIT {}) "
    for one in (
        "SELECT AVG(v.cost - g.m) FROM visits AS v JOIN g ON v.ward = g.ward",
        "SELECT SUM(CASE WHEN v.cost > g.m THEN v.cost - g.m ELSE 0 END) FROM visits AS v JOIN g ON v.ward = g.ward",
        "SELECT SUM(CASE WHEN ward NOT IN (SELECT ward FROM g) THEN cost ELSE 0 END), AVG(cost) FROM visits",
    ):
        if ("NOT IN" in one, "CASE" in one) == ("NOT IN" in sql, "CASE" in sql):
            check_work(bound(lift(kept.format(advised[1]) + one, CLINIC)))
