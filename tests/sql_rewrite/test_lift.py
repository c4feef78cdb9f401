"""The lift: what becomes a core, what becomes shell, and that equal questions are equal plans."""

from __future__ import annotations

import pytest

from privacy.aggregate import AggregateFunction
from privacy.refusal import Refused
from privacy.statistic import StatisticKind
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.lift import lift
from sql_rewrite.plan import Plan
from sql_rewrite.plan_key import core_key
from tests.sql_rewrite.datasets import CLINIC, clinic


def plan(sql: str, **parameters: object) -> Plan:
    """The plan of a text over the test dataset."""
    return lift(sql, CLINIC, parameters)  # type: ignore[arg-type]


def core(sql: str) -> BoundedCore:
    """The only bounded core of a text."""
    (only,) = bound(plan(sql))
    return only


def refusal(sql: str) -> tuple[str, ...]:
    """The codes of a text's refusal."""
    with pytest.raises(Refused) as caught:
        bound(plan(sql))
    return tuple(finding.code for finding in caught.value.findings)


def test_an_aggregation_alone_needs_no_shell() -> None:
    """Shows that a plain aggregation is answered from the released table as it is."""
    answer = plan("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex")
    assert answer.shell.trivial
    assert [(o.name, o.kind) for o in answer.shell.outputs] == [("sex", "key"), ("n", "released")]


def test_having_and_order_stand_in_the_shell() -> None:
    """Shows that HAVING, ORDER BY and LIMIT act on released numbers only."""
    answer = plan("SELECT sex, COUNT(*) n FROM people GROUP BY sex HAVING COUNT(*) > 10 ORDER BY n DESC LIMIT 1")
    assert not answer.shell.trivial
    assert 'WHERE "c0"."a0" > 10 ORDER BY "n" DESC LIMIT 1' in answer.shell.sql
    assert answer.cores[0].where is None


@pytest.mark.parametrize(
    "other",
    [
        "select SEX, count(1) from PEOPLE where AGE > 18 and hours < 40 group by 1",
        "SELECT p.sex FROM people p WHERE (p.hours < 40) AND p.age > 18 GROUP BY p.sex HAVING COUNT(*) > 3",
        "SELECT COUNT(*) AS n, sex AS s FROM people WHERE 40 > hours AND 18 < age GROUP BY s ORDER BY n LIMIT 3",
        "WITH x AS (SELECT sex, COUNT(*) n FROM people WHERE age > 18 AND hours < 40 GROUP BY ALL) SELECT n FROM x",
    ],
)
def test_equal_questions_have_one_key(other: str) -> None:
    """Shows that names, order, spelling and the shell do not change the identity of a release."""
    first = plan("SELECT sex, COUNT(*) FROM people WHERE age > 18 AND hours < 40 GROUP BY sex")
    assert core_key(bound(first)[0], CLINIC) == core_key(bound(plan(other))[0], CLINIC)


@pytest.mark.parametrize(
    "other",
    [
        "SELECT sex, COUNT(*) FROM people WHERE age > 19 GROUP BY sex",
        "SELECT sex, COUNT(*) FROM people WHERE age >= 18 GROUP BY sex",
        "SELECT sex, SUM(age) FROM people WHERE age > 18 GROUP BY sex",
        "SELECT hours, COUNT(*) FROM people WHERE age > 18 GROUP BY hours",
        "SELECT sex, COUNT(*) FILTER (WHERE smoker) FROM people WHERE age > 18 GROUP BY sex",
    ],
)
def test_other_questions_have_other_keys(other: str) -> None:
    """Shows that constants, operators, aggregates, keys and filters are part of a release's identity."""
    first = plan("SELECT sex, COUNT(*) FROM people WHERE age > 18 GROUP BY sex")
    assert core_key(bound(first)[0], CLINIC) != core_key(bound(plan(other))[0], CLINIC)


def test_the_same_core_twice_is_one_core() -> None:
    """Shows that a query that asks one thing twice pays once."""
    answer = plan("SELECT (SELECT COUNT(*) FROM people) - (SELECT COUNT(*) AS m FROM people) AS zero")
    assert len(answer.cores) == 1


def test_count_average_and_deviation_share_one_statistic() -> None:
    """Shows that five aggregates of one column are one statistic of degree two, and cost what one of them costs."""
    answer = core("SELECT COUNT(*), SUM(age), AVG(age), VARIANCE(age), STDDEV(age) FROM people")
    (only,) = answer.statistics
    assert only.statistic.kind is StatisticKind.MOMENTS
    assert only.statistic.degree == 2
    assert only.statistic.sensitivity.l1 == 100**2


def test_a_threshold_reuses_the_count_of_units() -> None:
    """Shows that COUNT(*) over hidden keys costs nothing beside the selection, whose count of units it is."""
    answer = core("SELECT education, COUNT(*), COUNT(DISTINCT person_id) FROM people GROUP BY education")
    (only,) = answer.statistics
    assert only.statistic.kind is StatisticKind.UNITS
    assert answer.described.keys.selection == only.statistic.name
    assert {e.kind for e in answer.described.estimates} == {AggregateFunction.ROWS, AggregateFunction.UNITS}


def test_sum_needs_the_greater_bound() -> None:
    """Shows that a clipped sum has the sensitivity max(|l|, |u|), not u - l: units appear with whole values."""
    answer = core("SELECT SUM(50 + age / 10) FROM people")
    statistic = answer.statistics[0].statistic
    assert statistic.encoding is not None
    assert 59.99 < float(statistic.sensitivity.l1 * statistic.encoding.step) < 60.01


def test_rows_of_one_unit_multiply_the_sensitivity() -> None:
    """Shows the rows over all groups as L1, and the fullest groups that make them as L2."""
    answer = core("SELECT ward, COUNT(*) FROM visits GROUP BY ward")
    rows = next(s for s in answer.statistics if s.statistic.kind is StatisticKind.COUNT)
    step = rows.statistic.encoding.step  # type: ignore[union-attr]
    assert rows.statistic.sensitivity.l1 * step == 40
    assert rows.statistic.sensitivity.l2_squared * step**2 == 2 * 15**2 + 10**2
    assert answer.contribution.choose_groups


def test_keys_of_the_unit_make_one_group_per_unit() -> None:
    """Shows that attributes of the unit itself need no choice of groups, and allow all rows of the unit."""
    answer = core("SELECT p.sex, COUNT(*) FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY p.sex")
    assert (answer.contribution.groups, answer.contribution.rows) == (1, 40)
    assert not answer.contribution.choose_groups


def test_bounds_belong_to_expressions() -> None:
    """Shows that a column redefined by an expression takes the expression's range, not the declared one of its name."""
    statistic = core("SELECT SUM(age * 3 - 10) FROM people").statistics[0].statistic
    assert statistic.encoding is not None
    assert (statistic.encoding.lowest, statistic.encoding.highest) == (-10, 290)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM people", "raw_rows"),
        ("SELECT age FROM people", "raw_rows"),
        ("SELECT sex, age, COUNT(*) FROM people GROUP BY sex", "raw_rows"),
        ("SELECT person_id, COUNT(*) FROM people GROUP BY person_id", "group_by_unit"),
        ("SELECT v.person_id, sex, COUNT(*) FROM visits v JOIN people USING (person_id) GROUP BY ALL", "group_by_unit"),
        ("SELECT SUM(income) FROM people", "column_without_bounds"),
        ("SELECT DISTINCT ON (sex) sex FROM people", "private_row_limit"),
        ("SELECT ROW_NUMBER() OVER () FROM people", "private_row_limit"),
        ("SELECT COUNT(*) FROM people p JOIN visits v ON p.person_id = v.visit_id", "join_not_on_key"),
        ("SELECT COUNT(*) FROM people a JOIN people b ON a.age = b.age", "join_not_on_key"),
        ("SELECT COUNT(*) FROM people LEFT JOIN visits ON people.person_id < visits.person_id", "join_not_on_key"),
        ("SELECT COUNT(*) FROM people, visits", "join_not_on_key"),
        ("SELECT COUNT(*) FROM people TABLESAMPLE 10%", "unsupported_sql"),
        ("SELECT COUNT(*) FROM read_csv('x')", "unsupported_sql"),
        ("SELECT COUNT(*) FROM 'people.csv'", "unknown_table"),
        ("SELECT COUNT(*) FROM information_schema.tables", "unknown_table"),
        ("SELECT COUNT(*) FROM people WHERE age > random()", "volatile_function"),
        ("SELECT COUNT(*) FROM people WHERE error('x') IS NULL", "unsupported_function"),
        ("SELECT COUNT(*) FROM people WHERE age IN (SELECT age FROM people)", "correlated_subquery"),
        ("SELECT COUNT(DISTINCT age, hours) FROM people", "unsupported_sql"),
        ("SELECT MEDIAN(DISTINCT age) FROM people", "unsupported_sql"),
        ("SELECT MAD(age) FROM people GROUP BY ROLLUP (sex)", "unsupported_function"),
        ("SELECT SUM(education) FROM people", "unsupported_type"),
        ("SELECT salary, COUNT(*) FROM people GROUP BY salary", "unsupported_type"),
        ("DELETE FROM people", "not_a_query"),
        ("SELECT COUNT(*) FROM people; SELECT 1", "many_statements"),
        ("SELECT COUNT(* FROM people", "parse_error"),
        ("", "parse_error"),
        ("WITH a AS (SELECT COUNT(*) FROM people) SELECT 1", "unsupported_sql"),
        ("WITH RECURSIVE a AS (SELECT 1) SELECT * FROM a", "unsupported_sql"),
    ],
)
def test_refusals_name_their_code(sql: str, code: str) -> None:
    """Shows the code of each kind of refusal."""
    assert refusal(sql) == (code,)


def test_independent_findings_come_together() -> None:
    """Shows that four mistakes are told at once, not one after the other."""
    codes = refusal("SELECT SUM(agee), FIRST(age) FROM people WHERE random() > 1 GROUP BY nothing")
    assert sorted(codes) == ["unknown_column", "unknown_column", "unsupported_function", "volatile_function"]


def test_a_misspelt_column_is_suggested() -> None:
    """Shows the nearest public name in the refusal, and its place in the text."""
    with pytest.raises(Refused) as caught:
        plan("SELECT COUNT(*)\nFROM people WHERE agee > 3")
    (finding,) = caught.value.findings
    assert finding.instead == ('did you mean "age"?',)
    assert finding.position is not None
    assert (finding.position.line, finding.position.column, finding.position.text) == (2, 19, "agee")


def test_a_public_table_alone_is_no_core() -> None:
    """Shows that everything above a public table is the shell's, whose columns are as public as keys."""
    lifted = plan("SELECT region, COUNT(*) AS n FROM hospitals GROUP BY region")
    assert lifted.cores == ()
    assert [(relation.name, relation.table.name) for relation in lifted.public] == [("p0", "hospitals")]
    assert [output.kind for output in lifted.shell.outputs] == ["key", "key"]


def test_too_many_public_cells_are_refused() -> None:
    """Shows that the product of public keys is limited before anything is charged."""
    with pytest.raises(Refused) as caught:
        bound(lift("SELECT hours, sex, COUNT(*) FROM people GROUP BY ALL", clinic(cells_max=100)))
    assert caught.value.findings[0].code == "key_domain_too_large"


def test_public_keys_contain_null_unless_it_cannot_be() -> None:
    """Shows that NULL is a cell of a column that may be NULL (docs/decisions/0010), and of no other."""
    cells = core("SELECT hours, COUNT(*) FROM people GROUP BY hours").described.keys.domain
    assert cells == (*((hours,) for hours in range(81)), (None,))
    assert core("SELECT smoker, COUNT(*) FROM people GROUP BY 1").described.keys.domain == ((False,), (True,))


def test_windows_of_aggregates_are_shell() -> None:
    """Shows that the inner call of SUM(COUNT(*)) OVER () is measured and the outer one is free."""
    answer = plan("SELECT sex, SUM(COUNT(*)) OVER () AS total FROM people GROUP BY sex")
    assert [a.function.value for a in answer.cores[0].aggregates] == ["rows"]
    assert answer.shell.simulation is not None


def test_doubling_ctes_are_stopped() -> None:
    """Shows that expanded relations are counted: a chain of doubling CTEs never reaches an engine."""
    chain = "WITH a0 AS (SELECT COUNT(*) n FROM people)"
    for i in range(1, 12):
        chain += f", a{i} AS (SELECT x.n FROM a{i - 1} x, a{i - 1} y)"
    assert refusal(chain + " SELECT n FROM a11") == ("too_large",)


@pytest.mark.parametrize("depth", [40, 400, 4_000])
def test_deep_texts_are_refused(depth: int) -> None:
    """Shows that nesting is refused as too large, never as a crash."""
    assert refusal("SELECT COUNT(*) FROM people WHERE age > " + "(" * depth + "1" + ")" * depth) == ("too_large",)


def test_parameters_that_differ_in_case_alone_are_refused() -> None:
    """DuckDB has one value for $a and $A; two would answer another question."""
    with pytest.raises(Refused) as caught:
        plan("SELECT COUNT(*) AS n FROM people WHERE age > $a + $A", a=2, A=30)
    (finding,) = caught.value.findings
    assert finding.code == "unsupported_sql"
    assert "case" in finding.why


def test_parameters_are_values() -> None:
    """Shows that a parameter can never become text of a statement."""
    answer = plan("SELECT COUNT(*) FROM people WHERE education = $e", e="x' OR 1=1 --")
    (bounded,) = bound(answer)
    from sql_rewrite.lower import lower

    statement = lower(bounded)
    assert "OR 1=1" not in statement.sql
    assert "x' OR 1=1 --" in statement.parameters


def test_doubling_aliases_are_stopped() -> None:
    """Shows that aliases that name aliases are refused before they are written out 2^40 times."""
    columns = ", ".join(f"x{i - 1} + x{i - 1} AS x{i}" for i in range(1, 41))
    assert refusal(f"SELECT COUNT(*) AS x0, {columns} FROM people") == ("too_large",)


def test_an_alias_may_be_called_like_our_own_name_for_another_table() -> None:
    """Shows that r0 and r1 in a text are the analyst's names: the same query under other aliases is the same core."""
    text = (
        "SELECT COUNT(*) FROM visits {v} JOIN people {p} ON {v}.person_id = {p}.person_id "
        "WHERE {p}.person_id = 5 AND {p}.age > 3 GROUP BY {p}.sex HAVING COUNT(*) > 2"
    )
    expected = core_key(core(text.format(v="v", p="p")), CLINIC)
    assert expected == core_key(core(text.format(v="r1", p="r0")), CLINIC)
    assert expected == core_key(core(text.format(v="r0", p="r1")), CLINIC)


def test_our_own_names_are_no_aliases() -> None:
    """Shows that a relation which the text does not name is unknown, whatever it is called inside."""
    assert refusal("SELECT COUNT(*) FROM people p WHERE r0.age > 3") == ("unknown_table",)
