"""SELECT DISTINCT of keys, and GROUP BY without an aggregate: declared groups for free, hidden ones by selection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from privacy.policy import Column, ColumnType, Dataset, PublicKeys
from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.declared_groups import GROUPS_MAX
from sql_rewrite.lift import lift
from tests.plain_clinic import Clinic, declared, open_clinic
from tests.test_huge_epsilon import compare


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """One snapshot for all queries, in which every declared group has somebody."""
    with open_clinic(tmp_path_factory.mktemp("clinic")) as opened:
        yield opened


DECLARED = [
    "SELECT DISTINCT sex FROM people",
    "SELECT sex, level FROM people GROUP BY sex, level",
    "SELECT DISTINCT level, sex AS s FROM people WHERE level > 1 ORDER BY level DESC, s LIMIT 3",
    "SELECT UPPER(sex) AS s, level * 2 AS l FROM people GROUP BY sex, level HAVING sex <> 'Male' ORDER BY 2",
    "SELECT DISTINCT FLOOR(level / 2) * 3 AS x FROM people",
    "SELECT DISTINCT member, sex IS NULL AS missing FROM people",
    "SELECT DISTINCT region FROM visits v JOIN hospitals h USING (hospital_id)",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT sex, level FROM people)",
    "WITH k AS (SELECT DISTINCT sex FROM people) SELECT k.sex, n FROM k LEFT JOIN "
    "(SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t ON k.sex = t.sex",
    "SELECT DISTINCT sex FROM people UNION SELECT DISTINCT kind FROM visits",
]
HIDDEN = [
    "SELECT DISTINCT edu FROM people",
    "SELECT edu, sex FROM people GROUP BY ALL ORDER BY 2, 1",
    "SELECT DISTINCT dept, kind FROM visits WHERE days > 2",
]


@pytest.mark.sparse(4)
@pytest.mark.parametrize("sql", [*DECLARED, *HIDDEN])
def test_the_groups_are_those_of_the_engine(clinic: Clinic, sql: str) -> None:
    """With everybody's groups declared, or far above the threshold, the answer is DuckDB's."""
    compare(clinic.directly(sql, {}), clinic.answer(sql, {}, gaussian=True), ordered="ORDER BY" in sql)


@pytest.mark.parametrize("sql", DECLARED)
def test_declared_groups_read_nothing_and_say_so(sql: str) -> None:
    """No core is made of them, so that nothing is read or paid; the warning says that nobody need be in them."""
    plan = lift(sql, declared())
    assert [warning.code for warning in plan.warnings if warning.code == "groups_declared"]
    # What counts beside them is a core of its own.
    assert len(plan.cores) == ("COUNT(*) AS n FROM people" in sql)


@pytest.mark.parametrize("sql", HIDDEN)
def test_hidden_groups_are_selected_and_nothing_else_is_released(sql: str) -> None:
    """One statistic, the count of units that selects them, and no estimate of it."""
    (core,) = bound(lift(sql, declared()))
    (statistic,) = core.described.statistics
    assert core.described.keys.selection == statistic.name
    assert core.described.estimates == ()


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT DISTINCT person_id FROM people", "group_by_unit"),
        ("SELECT DISTINCT weight FROM people", "unsupported_type"),
        ("SELECT DISTINCT * FROM people", "raw_rows"),
        ("SELECT DISTINCT ON (sex) level FROM people", "private_row_limit"),
        ("SELECT DISTINCT sex FROM people WHERE 1 = 2", "no_groups"),
        ("SELECT DISTINCT sex FROM people WHERE sex = 'other'", "no_groups"),
        ("SELECT DISTINCT RANK() OVER (ORDER BY sex) FROM people", "private_row_limit"),
        ("SELECT sex, level FROM people GROUP BY sex", "raw_rows"),
    ],
)
def test_what_is_no_key_is_refused(sql: str, code: str) -> None:
    """As in any GROUP BY: units, fractions, rows, and groups that cannot be."""
    with pytest.raises(Refused) as refused:
        bound(lift(sql, declared()))
    assert [finding.code for finding in refused.value.findings] == [code]


def test_too_many_declared_groups_are_not_written_out() -> None:
    """More than a thousand are refused with the query that counts them, which is answered."""
    world = many()
    lift("SELECT DISTINCT level FROM people WHERE level < 1000", world)
    with pytest.raises(Refused) as refused:
        lift("SELECT DISTINCT level FROM people", world)
    assert [finding.code for finding in refused.value.findings] == ["key_domain_too_large"]
    bound(lift("SELECT DISTINCT level, COUNT(*) FROM people GROUP BY level", world))


def many() -> Dataset:
    """One column with more keys than are written out."""
    dataset = declared()
    level = Column("level", ColumnType.INTEGER, keys=PublicKeys(tuple(range(GROUPS_MAX + 1))), nullable=False)
    people = dataset.tables[0]
    columns = tuple(level if column.name == "level" else column for column in people.columns)
    return replace(dataset, tables=(replace(people, columns=columns), *dataset.tables[1:]))
