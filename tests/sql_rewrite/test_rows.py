"""Nested blocks that select rows about people: each is the flat query that it stands for, or it is refused."""

from __future__ import annotations

import pytest

from privacy.refusal import Refused
from privacy.statistic import StatisticKind
from sql_rewrite.bound import bound
from sql_rewrite.contribution import Contribution
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import core_key
from tests.sql_rewrite.datasets import CLINIC
from tests.sql_rewrite.test_refusals import finding


def keys(sql: str) -> list[str]:
    """The identities of the text's releases, in order."""
    plan = lift(sql, CLINIC)
    return [core_key(core, plan.dataset) for core in bound(plan)]


@pytest.mark.parametrize(
    ("nested", "flat"),
    [
        (
            "SELECT sex, COUNT(*) FROM (SELECT * FROM people) AS p GROUP BY sex",
            "SELECT sex, COUNT(*) FROM people GROUP BY sex",
        ),
        (
            "WITH v AS (SELECT * FROM visits) SELECT COUNT(*) FROM v",
            "SELECT COUNT(*) FROM visits",
        ),
        (
            "WITH old AS (SELECT age AS years, sex FROM people WHERE age > 60) SELECT sex, AVG(years) FROM old "
            "WHERE years < 90 GROUP BY sex",
            "SELECT sex, AVG(age) FROM people WHERE age > 60 AND age < 90 GROUP BY sex",
        ),
        (
            "SELECT SUM(twice) FROM (SELECT half * 4 AS twice FROM (SELECT age // 2 AS half FROM people) AS a) AS b",
            "SELECT SUM((age // 2) * 4) FROM people",
        ),
        (
            "WITH a (x, y) AS (SELECT age, sex FROM people), b AS (SELECT x + 1 AS z, y FROM a WHERE x < 50) "
            "SELECT y, SUM(z) FROM b GROUP BY y",
            "SELECT sex, SUM(age + 1) FROM people WHERE age < 50 GROUP BY sex",
        ),
        (
            "SELECT n, COUNT(*) FROM (SELECT age AS n FROM people) AS t (m), (SELECT COUNT(*) AS n FROM people) AS u "
            "GROUP BY n",
            "",
        ),
        (
            "SELECT sex, COUNT(*) FROM (SELECT v.*, p.sex FROM visits AS v JOIN people AS p "
            "ON v.person_id = p.person_id WHERE p.age > 20) AS t GROUP BY t.sex",
            "SELECT sex, COUNT(*) FROM visits JOIN people ON visits.person_id = people.person_id WHERE age > 20 "
            "GROUP BY sex",
        ),
        (
            "SELECT p.sex, SUM(v.cost) FROM (SELECT person_id, cost FROM visits WHERE cost > 10) AS v "
            "JOIN (SELECT person_id, sex FROM people WHERE age > 20) AS p ON v.person_id = p.person_id GROUP BY "
            "p.sex",
            "SELECT sex, SUM(cost) FROM visits JOIN people ON visits.person_id = people.person_id "
            "WHERE cost > 10 AND age > 20 GROUP BY sex",
        ),
        (
            "SELECT sex, COUNT(*) FROM visits AS v, people AS p WHERE v.person_id = p.person_id AND age > 20 "
            "GROUP BY sex",
            "SELECT sex, COUNT(*) FROM visits JOIN people ON visits.person_id = people.person_id WHERE age > 20 "
            "GROUP BY sex",
        ),
        (
            "SELECT COUNT(*) FROM visits AS v, people AS p WHERE (v.person_id = p.person_id AND age > 20) "
            "OR (cost > 3 AND (v.person_id = p.person_id AND age < 9))",
            "SELECT COUNT(*) FROM visits AS v JOIN people AS p ON v.person_id = p.person_id "
            "WHERE (v.person_id = p.person_id AND age > 20) OR (cost > 3 AND v.person_id = p.person_id AND age < 9)",
        ),
        (
            "SELECT sex, COUNT(*) FROM visits v CROSS JOIN people p WHERE p.person_id = v.person_id GROUP BY sex",
            "SELECT sex, COUNT(*) FROM visits JOIN people ON visits.person_id = people.person_id GROUP BY sex",
        ),
        (
            "SELECT sex, COUNT(*) FROM visits JOIN people ON visits.person_id = people.person_id AND age > 20 "
            "GROUP BY sex",
            "SELECT sex, COUNT(*) FROM visits JOIN people ON visits.person_id = people.person_id WHERE age > 20 "
            "GROUP BY sex",
        ),
        (
            "SELECT sex, COUNT(*) FROM visits AS v LEFT JOIN (SELECT person_id, sex FROM people) AS p USING "
            "(person_id) "
            "GROUP BY sex",
            "SELECT sex, COUNT(*) FROM visits LEFT JOIN people USING (person_id) GROUP BY sex",
        ),
        (
            "SELECT h.region, COUNT(v.visit_id), SUM(v.cost) FROM hospitals AS h LEFT JOIN visits AS v "
            "ON v.hospital_id = h.hospital_id GROUP BY h.region",
            "SELECT h.region, COUNT(v.visit_id), SUM(v.cost) FROM hospitals AS h JOIN visits AS v "
            "ON v.hospital_id = h.hospital_id GROUP BY h.region",
        ),
        (
            "SELECT h.region, COUNT(v.cost) FROM visits AS v RIGHT JOIN hospitals AS h USING (hospital_id) "
            "GROUP BY h.region",
            "SELECT h.region, COUNT(v.cost) FROM visits AS v JOIN hospitals AS h USING (hospital_id) GROUP BY h.region",
        ),
        (
            "SELECT h.region, COUNT(v.cost) FROM hospitals AS h LEFT JOIN visits AS v "
            "ON v.hospital_id = h.hospital_id AND v.cost > 10 GROUP BY h.region",
            "SELECT h.region, COUNT(v.cost) FROM hospitals AS h JOIN visits AS v USING (hospital_id) "
            "WHERE cost > 10 GROUP BY h.region",
        ),
        (
            "SELECT COUNT(DISTINCT who) FROM (SELECT person_id AS who FROM visits) AS t",
            "SELECT COUNT(DISTINCT person_id) FROM visits",
        ),
        (
            "SELECT AVG(z) FROM (SELECT age AS x, x + 1 AS y, y * 2 AS z FROM people) AS t",
            "SELECT AVG((age + 1) * 2) FROM people",
        ),
    ],
)
def test_a_nested_block_is_the_flat_query(nested: str, flat: str) -> None:
    """Shows one identity for both: the same statements, sensitivities and releases."""
    if not flat:
        with pytest.raises(Refused):
            lift(nested, CLINIC)
        return
    assert keys(nested) == keys(flat)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT COUNT(*) FROM (SELECT * FROM people LIMIT 10) AS t", "private_row_limit"),
        ("SELECT COUNT(*) FROM (SELECT * FROM people ORDER BY age) AS t", "private_row_limit"),
        ("SELECT * FROM (SELECT * FROM people) AS t", "raw_rows"),
        ("WITH t AS (SELECT * FROM people) SELECT age FROM t WHERE age > 3", "raw_rows"),
        ("SELECT k, COUNT(*) FROM (SELECT person_id + 0 AS k FROM people) AS t GROUP BY k", "group_by_unit"),
        ("SELECT COUNT(*) FROM (SELECT random() AS r FROM people) AS t", "volatile_function"),
        ("SELECT SUM(x) FROM (SELECT nothing AS x FROM people) AS t", "unknown_column"),
        ("SELECT SUM(y) FROM (SELECT age AS x FROM people) AS t", "unknown_column"),
        ("SELECT SUM(t.age) FROM (SELECT age AS x FROM people) AS t", "unknown_column"),
        ("SELECT SUM(people.age) FROM (SELECT age FROM people) AS t", "unknown_table"),
        ("SELECT COUNT(*) FROM visits, people WHERE visits.cost = people.age", "join_not_on_key"),
        ("SELECT COUNT(*) FROM visits, people", "join_not_on_key"),
        (
            "SELECT COUNT(*) FROM visits v LEFT JOIN people p ON v.person_id > p.person_id AND age > 3",
            "join_not_on_key",
        ),
        ("SELECT SUM(x) FROM (SELECT age AS x FROM people WHERE SUM(age) > 1) AS t", "unsupported_sql"),
    ],
)
def test_what_a_nested_block_may_not_be(sql: str, code: str) -> None:
    """Shows the refusal."""
    assert finding(sql).code == code


def test_a_right_join_is_the_left_join_of_the_other_order() -> None:
    """Shows that columns of the table that may be missing are NULL there, in both."""
    written = "SELECT p.sex, COUNT(*) FROM {} USING (person_id) GROUP BY p.sex"
    right, left = (
        lift(written.format(tables), CLINIC).cores[0]
        for tables in ("people AS p RIGHT JOIN visits AS v", "visits AS v LEFT JOIN people AS p")
    )
    assert [source.table.name for source in right.sources] == [source.table.name for source in left.sources]
    assert [source.join is not None and source.join.outer for source in right.sources] == [False, True]
    assert all(key.nullable for core in (right, left) for _, key in core.keys)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT h.region, COUNT(*) FROM hospitals AS h LEFT JOIN visits AS v USING (hospital_id) GROUP BY h.region",
        "SELECT h.region, COUNT(*) FROM hospitals AS h LEFT JOIN visits AS v ON v.hospital_id = h.hospital_id "
        "AND v.cost > 1 GROUP BY h.region",
        "SELECT h.region, COUNT(COALESCE(v.cost, 0)) FROM hospitals AS h LEFT JOIN visits AS v USING (hospital_id) "
        "GROUP BY h.region",
        "SELECT v.ward, COUNT(v.cost) FROM hospitals AS h LEFT JOIN visits AS v USING (hospital_id) GROUP BY v.ward",
        "SELECT h.region, COUNT(h.beds) FROM hospitals AS h LEFT JOIN visits AS v USING (hospital_id) "
        "GROUP BY h.region",
        "SELECT h.region, COUNT(v.cost) FROM hospitals AS h LEFT JOIN visits AS v USING (hospital_id) "
        "WHERE v.cost IS NULL OR v.cost > 3 GROUP BY h.region",
        "SELECT h.region, COUNT(h.beds) FILTER (WHERE v.cost IS NULL) FROM hospitals AS h LEFT JOIN visits AS v "
        "USING (hospital_id) GROUP BY h.region",
    ],
)
def test_rows_of_nobody_are_never_seen(sql: str) -> None:
    """Shows that what would count public rows without a partner is refused, and says what to write."""
    found = finding(sql)
    assert found.code == "unsupported_sql"
    assert "without a partner" in found.why


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM (SELECT h.region FROM hospitals AS h LEFT JOIN visits AS v USING (hospital_id)) AS t",
        "WITH t AS (SELECT v.person_id FROM visits AS v RIGHT JOIN hospitals AS h USING (hospital_id)) "
        "SELECT COUNT(*) FROM t",
    ],
)
def test_rows_of_nobody_are_in_no_nested_query(sql: str) -> None:
    """Shows the refusal; with a condition that drops them the query is the inner join."""
    found = finding(sql)
    assert (found.code, "without a partner" in found.why) == ("unsupported_sql", True)
    kept = sql.replace("USING (hospital_id)", "USING (hospital_id) WHERE v.cost > 1")
    assert keys(kept) == keys(kept.replace("LEFT JOIN", "JOIN").replace("RIGHT JOIN", "JOIN"))


def test_nested_queries_that_double_are_refused_soon() -> None:
    """CTEs that read the one before twice, in FROM or in IN, and stars that repeat all columns."""
    ids = "SELECT person_id FROM"
    inside = ["c0 AS (SELECT person_id FROM visits)"]
    inside += [
        f"c{i} AS ({ids} visits WHERE person_id IN ({ids} c{i - 1}) AND person_id NOT IN ({ids} c{i - 1} AS x))"
        for i in range(1, 21)
    ]
    assert finding(f"WITH {', '.join(inside)} SELECT COUNT(*) FROM c20").code == "too_large"
    stars = ["c0 AS (SELECT * FROM people)", *(f"c{i} AS (SELECT a.*, a.* FROM c{i - 1} AS a)" for i in range(1, 25))]
    assert finding(f"WITH {', '.join(stars)} SELECT COUNT(*) FROM c24").code == "too_large"


def test_columns_that_double_are_refused_soon() -> None:
    """Each block writes its column twice: forty of them would be longer than anything that can be planned."""
    ctes = ["t0 AS (SELECT age AS x FROM people)"]
    ctes += [f"t{i + 1} AS (SELECT x + x AS x FROM t{i})" for i in range(20)]
    assert finding(f"WITH {', '.join(ctes)} SELECT SUM(x) FROM t20").code == "too_large"
    uses = ", ".join(f"SUM(x + {i})" for i in range(30))
    ctes = ctes[:11]
    assert finding(f"WITH {', '.join(ctes)} SELECT {uses} FROM t10").code == "too_large"


@pytest.mark.parametrize(
    ("joins", "groups"),
    [
        ("visits AS v LEFT JOIN people AS p ON v.person_id = p.person_id", 1),
        ("visits AS v LEFT JOIN people AS p ON v.person_id = p.person_id AND p.age > 3", 1),
        (
            "tests AS t JOIN visits AS v ON t.visit_id = v.visit_id LEFT JOIN people AS p ON v.person_id = p.person_id",
            1,
        ),
        (
            "tests AS t LEFT JOIN visits AS v ON t.visit_id = v.visit_id JOIN people AS p ON v.person_id = p.person_id",
            1,
        ),
        (
            "tests AS t LEFT JOIN visits AS v ON t.visit_id = v.visit_id "
            "LEFT JOIN people AS p ON v.person_id = p.person_id",
            2,
        ),
        (
            "tests AS t LEFT JOIN visits AS v ON t.visit_id = v.visit_id AND v.cost > 10 "
            "LEFT JOIN people AS p ON v.person_id = p.person_id",
            2,
        ),
        (
            "tests AS t LEFT JOIN (SELECT * FROM visits WHERE cost > 10) AS v ON t.visit_id = v.visit_id "
            "LEFT JOIN (SELECT person_id, sex FROM people) AS p ON v.person_id = p.person_id",
            2,
        ),
    ],
)
def test_a_person_behind_two_outer_joins_is_not_the_same_in_all_rows(joins: str, groups: int) -> None:
    """Shows in how many groups of a person's attribute one unit may be.

    Where its visit is missing in some of a unit's rows, so is the person, and these rows are of the group of NULL.
    """
    (core,) = bound(lift(f"SELECT p.sex, COUNT(*) FROM {joins} GROUP BY p.sex", CLINIC))
    assert isinstance(core.contribution, Contribution)
    assert core.contribution.groups == groups
    (units,) = bound(lift(f"SELECT COUNT(DISTINCT p.person_id) FROM {joins}", CLINIC))
    counted = {one.statistic.kind for one in units.statistics}
    assert (StatisticKind.UNITS in counted) == (groups == 1 and "age" not in joins)


def test_groups_within_a_unit_behind_two_outer_joins_are_several_rows() -> None:
    """Shows that such an attribute beside the unit gives it two rows, and that they are bounded."""
    sql = (
        "SELECT COUNT(*) FROM (SELECT w.person_id, p.sex FROM tests AS t JOIN visits AS w ON t.visit_id = w.visit_id "
        "LEFT JOIN visits AS v ON t.visit_id = v.visit_id AND v.cost > 10 LEFT JOIN people AS p "
        "ON v.person_id = p.person_id GROUP BY w.person_id, p.sex) AS u"
    )
    (core,) = bound(lift(sql, CLINIC))
    assert not core.one_row
