"""Outer joins that keep public rows: which groups there are, what is counted in them, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from privacy.policy import PublicKeys
from privacy.refusal import Refused
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.lift import lift
from tests.battery.worlds import WORLDS
from tests.sql_rewrite.datasets import CLINIC

NOBODY = "(VALUES ('female'), ('nobody')) AS k(s)"


def core(text: str) -> BoundedCore:
    """The only bounded core of a text."""
    (only,) = bound(lift(text, CLINIC))
    return only


def groups(text: str) -> list[tuple[object, ...]]:
    """The public groups of a text."""
    return list(core(text).described.keys.domain or ())


@pytest.mark.parametrize(
    ("join", "shown"),
    [
        (f"{NOBODY} JOIN people AS p ON p.sex = k.s", ["female"]),
        (f"{NOBODY} LEFT JOIN people AS p ON p.sex = k.s", ["female", "nobody"]),
        (f"people AS p RIGHT JOIN {NOBODY} ON p.sex = k.s", ["female", "nobody"]),
        (f"{NOBODY} LEFT JOIN people AS p ON p.sex = k.s AND k.s = 'female'", ["female", "nobody"]),
        (f"{NOBODY} LEFT JOIN people AS p ON p.sex = k.s WHERE k.s > 'g'", ["nobody"]),
        (f"{NOBODY} LEFT JOIN people AS p ON p.sex = k.s WHERE p.age > 30", ["female"]),
        (f"{NOBODY} FULL JOIN people AS p ON p.sex = k.s", ["female", "nobody", None]),
        (f"people AS p FULL JOIN {NOBODY} ON p.sex = k.s", ["female", "nobody", None]),
        (f"people AS p LEFT JOIN {NOBODY} ON p.sex = k.s", ["female", "nobody", None]),
    ],
)
def test_groups_are_those_of_the_public_side(join: str, shown: list[object]) -> None:
    """Shows that conditions of ON rule out no group of rows that the join keeps, and those of WHERE do."""
    assert [key for (key,) in groups(f"SELECT k.s, COUNT(p.age) FROM {join} GROUP BY k.s")] == shown


def test_a_join_that_keeps_public_rows_is_another_question_where_its_groups_are_others() -> None:
    """Shows that both joins of one text are two cores, whose released tables have different rows."""
    text = "SELECT k.s, COUNT(p.age) AS n FROM {} GROUP BY k.s"
    kept = text.format(f"{NOBODY} LEFT JOIN people AS p ON p.sex = k.s")
    inner = text.format(f"{NOBODY} JOIN people AS p ON p.sex = k.s")
    plan = lift(f"SELECT * FROM ({kept}) AS a JOIN ({inner}) AS b ON a.s = b.s", CLINIC)
    assert sorted(len(one.described.keys.domain or ()) for one in bound(plan)) == [1, 2]


def test_a_row_of_people_meets_as_many_as_before() -> None:
    """Shows that bounds of a unit follow from the condition, whichever rows are kept."""
    bands = "(VALUES ('a', 0, 30), ('b', 20, 60), ('c', 200, 300)) AS b(name, low, high)"
    for join in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"):
        text = (
            f"SELECT b.name, COUNT(p.age) FROM {bands} {join} people AS p ON p.age >= low AND p.age < high GROUP BY 1"
        )
        if join == "RIGHT JOIN":
            text = text.replace(bands, "people AS p").replace("RIGHT JOIN people AS p", f"RIGHT JOIN {bands}")
        constants = next(one.constants for one in core(text).core.sources if one.constants is not None)
        assert constants.most == 2


@pytest.mark.parametrize(
    ("select", "advice"),
    [
        ("k.s, COUNT(*)", "COUNT(p.person_id)"),
        ("k.s, COUNT(k.s)", "COUNT(p.person_id)"),
        ("k.s, SUM(CASE WHEN p.smoker THEN 0 ELSE 1 END)", "COUNT(p.person_id)"),
        ("k.s, SUM(COALESCE(p.age, 1))", "COUNT(p.person_id)"),
    ],
)
def test_what_would_see_rows_of_nobody_is_refused(select: str, advice: str) -> None:
    """Shows it, with a column that can be counted instead."""
    with pytest.raises(Refused) as refused:
        lift(f"SELECT {select} FROM {NOBODY} LEFT JOIN people AS p ON p.sex = k.s GROUP BY k.s", CLINIC)
    (finding,) = refused.value.findings
    assert finding.code == "unsupported_sql"
    assert advice in finding.instead[0]


@pytest.mark.parametrize(
    "value",
    ["SUM(CASE WHEN p.smoker THEN 1 ELSE 0 END)", "COUNT(CASE WHEN p.smoker THEN 1 END)", "COUNT_IF(p.age > 3)"],
)
def test_what_adds_nothing_of_nobody_is_answered(value: str) -> None:
    """Shows sums that are 0 there, and arguments that are NULL there."""
    assert core(f"SELECT k.s, {value} FROM {NOBODY} LEFT JOIN people AS p ON p.sex = k.s GROUP BY k.s")


@pytest.mark.parametrize(
    ("key", "rest", "shown"),
    [
        ("hospital_id", "USING (hospital_id)", range(1, 13)),
        ("COALESCE(h.hospital_id, v.hospital_id)", "ON v.hospital_id = h.hospital_id", range(1, 13)),
        ("hospital_id % 3", "USING (hospital_id)", range(3)),
        ("hospital_id", "USING (hospital_id) WHERE hospital_id > 10", (11, 12)),
        ("hospital_id", "USING (hospital_id) WHERE v.cost > 10 AND v.hospital_id > 10", (11, 12)),
    ],
)
def test_the_key_of_a_full_join_is_that_of_either_side(key: str, rest: str, shown: range) -> None:
    """Shows that conditions on people before the join rule out none of its groups, and those of WHERE do."""
    for people in ("visits", "(SELECT * FROM visits WHERE hospital_id < 12)"):
        text = f"SELECT {key} AS k, COUNT(v.cost) FROM {people} AS v FULL JOIN hospitals AS h {rest} GROUP BY k"
        (core,) = bound(lift(text, WORLDS["clinic"]))
        before = 12 if people != "visits" and "v.hospital_id > 10" in rest else 13
        found = [value for (value,) in core.described.keys.domain or ()]
        assert found == [value for value in shown if value < before]


@pytest.mark.parametrize("beside", ["v.cost > 5000", "v.hospital_id < 4", "h.beds > 300 AND v.cost > h.beds"])
def test_a_right_join_has_conditions_beside_its_equality(beside: str) -> None:
    """Shows that they rule out rows of people and no group, wherever the join stands, as in a LEFT JOIN."""
    on = f"ON v.hospital_id = h.hospital_id AND {beside}"
    for joined in (
        f"hospitals AS h LEFT JOIN visits AS v {on}",
        f"visits AS v RIGHT JOIN hospitals AS h {on}",
        f"patients AS p JOIN visits AS v USING (patient_id) RIGHT JOIN hospitals AS h {on}",
    ):
        text = f"SELECT h.hospital_id, COUNT(v.cost) FROM {joined} GROUP BY 1"
        (core,) = bound(lift(text, WORLDS["clinic"]))
        assert [key for (key,) in core.described.keys.domain or ()] == list(range(1, 13))
        assert core.core.where is not None


def test_a_key_of_people_alone_is_refused_above_a_full_join() -> None:
    """Shows it of the key's own side, of public values that people's column does not declare, and what is advised."""
    text = "SELECT {}, COUNT(v.cost) FROM visits AS v FULL JOIN hospitals AS h USING (hospital_id) GROUP BY 1"
    few = WORLDS["clinic"]
    visits = few.table("visits")
    assert visits is not None
    column = visits.column("hospital_id")
    assert column is not None
    less = replace(column, keys=PublicKeys((1, 2)))
    tables = [
        replace(table, columns=tuple(less if table is visits and one is column else one for one in table.columns))
        for table in few.tables
    ]
    for key, dataset in (("v.hospital_id", few), ("hospital_id", replace(few, tables=tuple(tables)))):
        with pytest.raises(Refused) as refused:
            lift(text.format(key), dataset)
        (finding,) = refused.value.findings
        assert finding.instead[0] == "group by h.hospital_id, the public table's own column"
        assert bound(lift(text.format("h.hospital_id"), dataset))


def test_constants_are_computed_from_constants() -> None:
    """Shows a CTE that computes the months of a series, and those that its WHERE keeps."""
    text = (
        "WITH m AS (SELECT CAST(d AS DATE) AS month FROM generate_series(DATE '2024-11-01', DATE '2025-04-01', "
        "INTERVAL 1 MONTH) AS g(d) WHERE YEAR(d) = 2025) SELECT month, COUNT(v.cost) FROM m "
        "LEFT JOIN visits AS v ON date_trunc('month', v.day) = month GROUP BY month"
    )
    assert [str(key) for (key,) in groups(text)] == ["2025-01-01", "2025-02-01", "2025-03-01", "2025-04-01"]
