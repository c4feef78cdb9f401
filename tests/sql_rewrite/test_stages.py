"""Released numbers in the private part: what is proved of them, one statement for every value, what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from engines.encoding import encode_statement
from mechanisms.released_table import ReleasedTable
from privacy.policy import ColumnType
from privacy.refusal import Finding, Refused
from privacy.release import ColumnKind, ReleasedColumn
from privacy.statement import StageValue
from server.journey.stages import stage_values
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.expressions import Call, Literal, columns_of, walk
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.norms import lower_norms
from sql_rewrite.plan import Plan
from sql_rewrite.plan_key import canonical_core, core_key
from sql_rewrite.stage_values import is_released, stages_of
from tests.sql_rewrite.datasets import AUTOMATIC, CLINIC

ABOVE = "SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)"


def last(sql: str) -> BoundedCore:
    """The bounded core of the last stage."""
    return bound(lift(sql, CLINIC))[-1]


def stages(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Which core reads which."""
    return dict(plan.stages)


def refused(sql: str) -> Finding:
    """The first finding of a text that must be refused."""
    with pytest.raises(Refused) as caught:
        bound(lift(sql, CLINIC))
    return caught.value.findings[0]


@pytest.mark.parametrize(
    ("staged", "written"),
    [
        (ABOVE, "SELECT COUNT(*) FROM visits WHERE cost > 12.5"),
        ("SELECT ward, SUM(cost) FROM visits WHERE cost < (SELECT AVG(cost) FROM visits) GROUP BY ward",
         "SELECT ward, SUM(cost) FROM visits WHERE cost < 5000 GROUP BY ward"),
        ("SELECT AVG(CASE WHEN age > (SELECT MEDIAN(age) FROM people) THEN salary END) FROM people",
         "SELECT AVG(CASE WHEN age > 12.5 THEN salary END) FROM people"),
        ("SELECT sex, COUNT(*) FILTER (WHERE age > (SELECT COUNT(*) FROM visits)) FROM people GROUP BY sex",
         "SELECT sex, COUNT(*) FILTER (WHERE age > 12.5) FROM people GROUP BY sex"),
    ],
)  # fmt: skip
def test_a_released_number_bounds_as_a_constant_does(staged: str, written: str) -> None:
    """Shows the sensitivities of the question with a number in its place, which narrows no bounds."""

    def facts(core: BoundedCore) -> list[object]:
        return [(item.statistic.kind, item.statistic.sensitivity) for item in core.statistics]

    assert facts(last(staged)) == facts(last(written))


def test_the_text_of_a_statement_does_not_depend_on_the_number() -> None:
    """Shows a parameter in its place, and a statement without it that no engine takes."""
    core = last(ABOVE)
    statement = lower(core)
    assert statement.parameters == (StageValue("c0", "a0"),)
    assert encode_statement(statement) is None
    for number in (None, 0.0, -1e308, 12.5):
        filled = statement.filled({StageValue("c0", "a0"): number})
        assert filled == replace(statement, parameters=(number,))
        assert encode_statement(filled) is not None
    with pytest.raises(KeyError):
        statement.filled({StageValue("c1", "a0"): 1.0})


def test_tables_that_statements_share_are_filled_too() -> None:
    """Shows no parameter that is left over in the tables of a histogram of norms."""
    core = bound(lift(ABOVE, AUTOMATIC))[-1]
    statement = lower_norms(core, DUCKDB, shared=True)
    assert statement.shared is not None
    assert any(StageValue("c0", "a0") in table.parameters for table in statement.shared.tables)
    filled = statement.filled({StageValue("c0", "a0"): 3.5})
    assert filled.shared is not None
    assert all(not isinstance(one, StageValue) for table in filled.shared.tables for one in table.parameters)


def test_an_average_has_the_bounds_of_its_argument_and_a_count_has_none() -> None:
    """Shows the declared range of what is released, by which a sum clips it."""
    core = last("SELECT SUM(ABS(age - (SELECT AVG(age) FROM people))) FROM people")
    (found,) = {column for item in core.core.aggregates for part in item.values for column in columns_of(part)
                if is_released(column)}  # fmt: skip
    assert found.declared is not None
    assert (found.declared.lower, found.declared.upper) == (0, 100)
    assert refused("SELECT SUM(age * (SELECT COUNT(*) FROM visits)) FROM people").code == "column_without_bounds"
    assert refused("SELECT SUM(age * (SELECT STDDEV(age) FROM people)) FROM people").code == "column_without_bounds"


def test_stages_are_in_order_and_each_is_there_once() -> None:
    """Shows cores, and who reads whom: equal nested queries are one core, and a nested one may have its own."""
    twice = lift("SELECT COUNT(*) FROM people WHERE age BETWEEN (SELECT AVG(age) FROM people) - 5 "
                 "AND (SELECT AVG(age) FROM people) + 5", CLINIC)  # fmt: skip
    assert [core.name for core in twice.cores] == ["c0", "c1"]
    assert stages(twice) == {"c1": ("c0",)}
    assert [warning.code for warning in twice.warnings] == ["conditional_on_release"]
    three = lift("SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people WHERE salary > "
                 "(SELECT AVG(salary) FROM people))", CLINIC)  # fmt: skip
    assert stages(three) == {"c1": ("c0",), "c2": ("c1",)}
    assert stages_of(three.cores[0]) == frozenset()
    shown = lift("WITH m AS (SELECT AVG(age) AS a FROM people) SELECT n, a FROM m, "
                 "(SELECT COUNT(*) AS n FROM people WHERE age > (SELECT a FROM m)) AS t", CLINIC)  # fmt: skip
    assert len(shown.cores) == 2
    assert not lift("SELECT COUNT(*) FROM people", CLINIC).stages


@pytest.mark.parametrize(
    "sql",
    [
        "WITH m AS (SELECT AVG(cost) AS a FROM visits) SELECT COUNT(*) FROM visits WHERE cost > (SELECT a FROM m)",
        "SELECT COUNT(*) FROM visits WHERE (SELECT AVG(v.cost) FROM visits AS v) < cost",
        "SELECT COUNT(*) FROM visits WHERE cost > ((SELECT AVG(cost) AS mean FROM visits))",
        "WITH m AS (SELECT AVG(cost) AS a FROM visits) SELECT COUNT(*) FROM visits, m WHERE cost > m.a",
        "WITH m(b) AS (SELECT AVG(cost) AS a FROM visits) SELECT COUNT(*) FROM m AS n, visits WHERE cost > n.b",
        "SELECT COUNT(*) FROM visits CROSS JOIN (SELECT AVG(cost) AS a FROM visits) AS m WHERE cost > a",
        "SELECT COUNT(*) FROM visits JOIN (SELECT AVG(cost) AS a FROM visits) AS m ON cost > a AND TRUE",
        "SELECT COUNT(*) FROM (SELECT AVG(cost) AS a FROM visits) AS m JOIN visits ON cost > a",
        "WITH m AS (SELECT AVG(cost) AS a FROM visits), v AS (SELECT cost AS c FROM visits, m WHERE cost > a) "
        "SELECT COUNT(*) FROM v",
    ],
)
def test_spellings_are_one_question(sql: str) -> None:
    """Shows the same cores: the stored releases of one serve the other."""
    first, second = lift(ABOVE, CLINIC), lift(sql, CLINIC)
    assert list(map(canonical_core, first.cores)) == list(map(canonical_core, second.cores))
    assert stages(first) == stages(second)


@pytest.mark.parametrize(
    ("nested", "code"),
    [
        ("SELECT AVG(age) FROM people GROUP BY sex", "correlated_subquery"),
        ("SELECT age FROM people", "correlated_subquery"),
        ("SELECT AVG(age) FROM people LIMIT 1", "correlated_subquery"),
        ("SELECT AVG(v.cost) FROM visits AS v WHERE v.cost > p.salary", "correlated_subquery"),
        ("SELECT AVG(age), MAX(age) FROM people", "unsupported_sql"),
        ("SELECT AVG(age) + age FROM people", "raw_rows"),
        ("SELECT AVG(income) FROM nobody", "unknown_table"),
        ("SELECT AVG(agge) FROM people", "unknown_column"),
        ("SELECT AVG(age) FROM people WHERE RANDOM() < 0.5", "volatile_function"),
        ("SELECT AVG(age) FROM people WHERE salary > (SELECT AVG(salary) FROM people WHERE hours > "
         "(SELECT AVG(hours) FROM people))", "too_large"),
    ],
)  # fmt: skip
def test_what_releases_no_single_number_is_refused(nested: str, code: str) -> None:
    """Shows the codes of nested queries that are not answered, with advice."""
    found = refused(f"SELECT COUNT(*) FROM people AS p WHERE p.age > ({nested})")
    assert found.code == code
    assert found.instead or code in ("volatile_function",)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT COUNT(*) FROM people LEFT JOIN m ON age > a", "unsupported_sql"),
        ("SELECT COUNT(*) FROM people FULL JOIN m ON age > a", "unsupported_sql"),
        ("SELECT COUNT(*) FROM people NATURAL JOIN m", "unsupported_sql"),
        ("SELECT COUNT(*) FROM visits JOIN m ON cost > a RIGHT JOIN people USING (person_id)", "unsupported_sql"),
        ("SELECT COUNT(*), a FROM people, m", "raw_rows"),
        ("SELECT sex, COUNT(*) FROM people, m GROUP BY sex, a", "unsupported_type"),
    ],
)  # fmt: skip
def test_what_one_released_row_is_not_joined_by_is_refused(sql: str, code: str) -> None:
    """Shows the codes of joins with one row that are not answered."""
    assert refused(f"WITH m AS (SELECT AVG(age) AS a FROM people) {sql}").code == code


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM (SELECT person_id FROM visits WHERE cost > {} UNION ALL SELECT person_id FROM people) t",
        "SELECT COUNT(*) FROM (SELECT person_id, SUM(cost - {}) AS s FROM visits GROUP BY person_id) AS t WHERE s > 0",
        "SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM visits WHERE cost > {})",
        "SELECT COUNT(*) FROM (SELECT person_id FROM visits GROUP BY person_id HAVING AVG(cost) > {}) AS t",
        "SELECT COUNT(*) FROM (SELECT person_id, SUM(cost) > 5 * {} AS b FROM visits GROUP BY person_id HAVING b) AS t",
        "SELECT COUNT(*) FROM (SELECT DISTINCT person_id, cost > {} AS b FROM visits) AS t",
        "SELECT COUNT(*) FROM people AS p JOIN (VALUES (1), (2)) AS v(x) ON p.age > v.x * {}",
        "SELECT COUNT(*) FROM people AS p WHERE NOT EXISTS (SELECT 1 FROM visits AS v WHERE v.person_id = p.person_id "
        "AND v.cost > {})",
        "SELECT COUNT(*) FROM people AS p LEFT JOIN visits AS v ON p.person_id = v.person_id WHERE v.cost > {}",
        "SELECT AVG(CASE WHEN age > {} THEN 1 ELSE 0 END), MEDIAN(age) FILTER (WHERE age > {}) FROM people",
        "SELECT age > {}, COUNT(DISTINCT hours) FROM people GROUP BY 1",
    ],
)
def test_a_number_is_found_wherever_a_core_reads_it(sql: str) -> None:
    """Shows each statement's parameters among the stages of its plan: what is not there would never be bound."""
    plan = lift(sql.replace("{}", "(SELECT AVG(cost) FROM visits)"), CLINIC)
    assert stages(plan) == {"c1": ("c0",)}
    read = [one for one in lower(bound(plan)[-1]).parameters if isinstance(one, StageValue)]
    assert read == [StageValue("c0", "a0")]


def test_one_row_that_nothing_reads_is_not_paid_for() -> None:
    """Shows that every row meets it, whatever it holds: no stage is left."""
    plan = lift("SELECT COUNT(*) FROM people, (SELECT COUNT(*) AS n FROM visits) AS m", CLINIC)
    assert len(plan.cores) == 1
    assert not plan.stages
    assert not plan.warnings


def test_a_number_that_is_not_finite_is_null() -> None:
    """Shows what is bound for NULL, NaN and infinities, and that groups give no number."""

    def table(value: float | None) -> ReleasedTable:
        return ReleasedTable("c0", 1, (ReleasedColumn("a0", ColumnKind.RELEASED, ColumnType.NUMBER, (value,)),), "0.95")

    (core, _) = bound(lift(ABOVE, CLINIC))
    for value, expected in ((12.5, 12.5), (3, 3.0), (None, None), (math.nan, None), (math.inf, None)):
        assert stage_values(core, table(value)) == {StageValue("c0", "a0"): expected}
    (hidden,) = bound(lift("SELECT education, COUNT(*) FROM people GROUP BY education", CLINIC))
    assert stage_values(hidden, table(1.0)) == {}


def test_released_groups_are_values_and_flags_of_each_public_one() -> None:
    """Shows what is bound of a released table: NULL where a group is missing, and the list that sorting makes."""
    plan = lift(
        "SELECT COUNT(*) FROM people "
        "WHERE hours IN (SELECT hours FROM people GROUP BY 1 ORDER BY AVG(salary) DESC LIMIT 2)",
        CLINIC,
    )
    (grouped, _) = bound(plan)
    assert grouped.described.keys.domain is not None
    hours = [cell[0] for cell in grouped.described.keys.domain]
    shown = hours[:3]
    columns = (
        ReleasedColumn("k0", ColumnKind.KEY, ColumnType.INTEGER, tuple(shown)),
        ReleasedColumn("a0", ColumnKind.RELEASED, ColumnType.NUMBER, (5.0, math.nan, 7.0)),
    )
    found = stage_values(grouped, ReleasedTable("c0", 3, columns, "0.95"), plan.lists)
    ((_, name, _),) = plan.lists
    assert [found[StageValue("c0", f"a0@{place}")] for place in range(4)] == [5.0, None, 7.0, None]
    assert [found[StageValue("c0", f"there@{place}")] for place in range(4)] == [True, True, True, False]
    assert [found[StageValue("c0", f"{name}@{place}")] for place in range(4)] == [True, False, True, False]
    assert {one for one in lower(bound(plan)[1]).parameters if isinstance(one, StageValue)} <= found.keys()


@pytest.mark.parametrize(
    ("having", "shown"),
    [
        ("AVG(salary) > 5", [False, False, True, False]),
        ("5 < AVG(salary)", [False, False, True, False]),
        ("5 <> AVG(salary)", [False, False, True, False]),
        ("AVG(salary) <= 7 AND -1.5 <= AVG(salary)", [True, False, True, False]),
        ("AVG(salary) = 5", [True, False, False, False]),
    ],
)
def test_a_comparison_before_the_cut_leaves_out_what_is_null(having: str, shown: list[bool]) -> None:
    """Shows which groups are in a list: a released number that is NaN is NULL, which fulfils nothing."""
    plan = lift(
        "SELECT COUNT(*) FROM people WHERE hours IN (SELECT hours FROM people GROUP BY 1 "
        f"HAVING {having} ORDER BY AVG(salary) LIMIT 3)",
        CLINIC,
    )
    (grouped, _) = bound(plan)
    assert grouped.described.keys.domain is not None
    columns = (
        ReleasedColumn(
            "k0", ColumnKind.KEY, ColumnType.INTEGER, tuple(one for (one,) in grouped.described.keys.domain[:3])
        ),
        ReleasedColumn("a0", ColumnKind.RELEASED, ColumnType.NUMBER, (5.0, math.nan, 7.0)),
    )
    found = stage_values(grouped, ReleasedTable("c0", 3, columns, "0.95"), plan.lists)
    ((_, name, _),) = plan.lists
    assert [found[StageValue("c0", f"{name}@{place}")] for place in range(4)] == shown


def test_a_condition_on_released_groups_is_true_or_false_for_each() -> None:
    """Shows that a group whose HAVING is NULL is left out, and so is no NULL in NOT IN: flags are never NULL."""
    plan = lift(
        "SELECT COUNT(*) FROM people WHERE sex NOT IN (SELECT sex FROM people WHERE sex IS NOT NULL GROUP BY 1 "
        "HAVING AVG(age) > 5)",
        CLINIC,
    )
    where = plan.cores[-1].where
    assert isinstance(where, Call)
    flags = [one for one in walk(where) if isinstance(one, Call) and one.operator == "case" and len(one.arguments) == 3
             and one.arguments[0].nullable and is_released(one.arguments[1])]  # type: ignore[arg-type]  # fmt: skip
    assert flags
    assert all(one.arguments[2] == Literal(value=False, type=ColumnType.BOOLEAN) for one in flags)
    assert not any(one.nullable for one in flags)


def test_lists_that_are_cut_otherwise_are_other_questions() -> None:
    """Shows the limit and the order in the key of the later core: they decide which list a release was made at."""
    text = "SELECT COUNT(*) FROM people WHERE sex IN (SELECT sex FROM people GROUP BY 1 ORDER BY COUNT(*) {})"
    keys = {
        core_key(bound(lift(text.replace("{}", how), CLINIC))[1], CLINIC)
        for how in ("LIMIT 1", "DESC LIMIT 1", "LIMIT 2", "LIMIT 1 OFFSET 1")
    }
    assert len(keys) == 4


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT COUNT(*) FROM people AS p JOIN r ON p.age = r.a", "join_not_on_key"),
        ("SELECT COUNT(*) FROM people AS p, r WHERE p.age > r.a", "join_not_on_key"),
        ("SELECT COUNT(*) FROM r JOIN people AS p ON p.sex = r.sex", "join_not_on_key"),
        ("SELECT COUNT(*) FROM people AS p LEFT JOIN r ON p.sex = r.sex AND p.age > 3", "join_not_on_key"),
        ("SELECT COUNT(*) FROM people AS p RIGHT JOIN r ON p.sex = r.sex", "join_not_on_key"),
        ("SELECT COUNT(*) FROM people AS p FULL JOIN r ON p.sex = r.sex", "join_not_on_key"),
        ("SELECT COUNT(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM r WHERE r.a > 3)", "correlated_subquery"),
        ("SELECT COUNT(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM r WHERE r.sex = p.sex AND r.a > p.age)",
         "correlated_subquery"),
        ("SELECT COUNT(*) FROM people AS p WHERE EXISTS (SELECT nothing FROM r WHERE r.sex = p.sex)",
         "correlated_subquery"),
        ("SELECT COUNT(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM r WHERE r.sex = p.age)", "correlated_subquery"),
        ("SELECT COUNT(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM r WHERE r.sex = p.sex AND r.nothing > 3)",
         "raw_rows"),
        ("SELECT COUNT(*) FROM people AS p JOIN r ON p.education = r.sex AND p.age = r.nothing", "unknown_column"),
        ("SELECT r.a, COUNT(*) FROM people AS p JOIN r ON p.sex = r.sex GROUP BY r.a", "unsupported_type"),
        ("SELECT COUNT(*) FROM visits AS v JOIN r ON v.ward = r.sex RIGHT JOIN people AS p "
         "ON v.person_id = p.person_id", "unsupported_sql"),
    ],
)  # fmt: skip
def test_what_a_released_table_is_not_joined_by_is_refused(sql: str, code: str) -> None:
    """Shows the codes of joins with released groups that are not answered."""
    assert refused(f"WITH r AS (SELECT sex, AVG(age) AS a FROM people GROUP BY sex) {sql}").code == code


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT COUNT(*) FROM people WHERE sex IN (SELECT DISTINCT sex FROM people)", "correlated_subquery"),
        ("SELECT COUNT(*) FROM people WHERE age IN (SELECT DISTINCT person_id FROM people)", "group_by_unit"),
        ("SELECT COUNT(*) FROM people WHERE sex IN (SELECT sex FROM people GROUP BY 1 HAVING sex > 3 LIMIT 1)",
         "correlated_subquery"),
        ("SELECT COUNT(*) FROM people p JOIN (SELECT sex FROM people GROUP BY 1 HAVING COUNT(*) > 2 * 3 LIMIT 1) r "
         "ON p.sex = r.sex", "unsupported_sql"),
        ("SELECT COUNT(*) FROM people WHERE sex IN (SELECT sex FROM people GROUP BY 1 HAVING COUNT(*))",
         "unsupported_type"),
        ("SELECT COUNT(*) FROM people WHERE sex IN (SELECT sex FROM people GROUP BY 1 HAVING age > 3)", "raw_rows"),
        ("WITH r AS (SELECT sex, AVG(age) AS a FROM people GROUP BY sex) SELECT COUNT(*) FROM people "
         "WHERE sex IN (SELECT sex FROM r WHERE b > 3)", "raw_rows"),
        ("SELECT COUNT(*) FROM people WHERE age IN (SELECT sex FROM people GROUP BY 1 ORDER BY COUNT(*) LIMIT 1)",
         "unsupported_type"),
    ],
)  # fmt: skip
def test_other_lists_of_groups_are_refused(sql: str, code: str) -> None:
    """Shows the codes of released lists and tables that are not read yet."""
    assert refused(sql).code == code
