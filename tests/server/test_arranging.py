"""Outer queries that only sort and cut are answered without the engine, and as the engine answers them."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest

from engines.shell import ShellColumn, ShellEngine, ShellTable
from mechanisms.released_table import ReleasedTable
from privacy.policy import ColumnType
from privacy.release import ColumnKind, ReleasedColumn
from server.arranging import arranged
from sql_rewrite.lift import lift
from sql_rewrite.released import ROW
from tests.kept_workers import kept_workers
from tests.sql_rewrite.datasets import CLINIC

CORE = "SELECT education AS e, born AS b, COUNT(*) AS n, AVG(hours) AS h FROM people GROUP BY education, born"
VALUES: dict[ColumnType, tuple[Any, ...]] = {
    ColumnType.TEXT: ("", "a", "A", "é", "z", "\U0001f600", "\uffff", "10", "9", None),
    ColumnType.DATE: (datetime.date(1970, 1, 1), datetime.date(1, 1, 1), datetime.date(2024, 2, 29), None),
    ColumnType.INTEGER: (-5, 0, 3, 2**62, -(2**62), None),
    ColumnType.NUMBER: (0.5, -0.5, 1e300, float("inf"), float("-inf"), float("nan"), None),
    ColumnType.BOOLEAN: (True, False, None),
}
TYPES = {"k0": ColumnType.TEXT, "k1": ColumnType.DATE, "a0": ColumnType.NUMBER, "a1": ColumnType.INTEGER}


def released(seed: int, rows: int) -> ReleasedTable:
    """A table with many equal values, so that later terms and ties matter."""
    source = random.Random(seed)
    columns = tuple(
        ReleasedColumn(
            name=name,
            role=ColumnKind.KEY if name.startswith("k") else ColumnKind.RELEASED,
            type=type_,
            values=tuple(source.choice(VALUES[type_]) for _ in range(rows)),
        )
        for name, type_ in TYPES.items()
    )
    return ReleasedTable(name="c0", rows=rows, columns=columns, confidence="19/20", notes=(), sums=(), family=None)


def orders(source: random.Random) -> str:
    """An ORDER BY of some terms, by name, place or column, in all directions, then LIMIT and OFFSET."""
    terms = [
        f"{source.choice(['e', 'n', 'h', 'b', '1', '3', 'education', 'COUNT(*)'])}"
        f"{source.choice(['', ' ASC', ' DESC'])}{source.choice(['', ' NULLS FIRST', ' NULLS LAST'])}"
        for _ in range(source.randrange(4))
    ]
    order = f" ORDER BY {', '.join(terms)}" if terms else ""
    return order + source.choice(["", " LIMIT 0", " LIMIT 3", " LIMIT 7 OFFSET 2", " OFFSET 4"])


@pytest.fixture(scope="module")
def shell() -> Any:
    with kept_workers():
        engine = ShellEngine(workers=1)
    yield engine
    engine.close()


def test_arranged_rows_are_those_of_the_engine(shell: ShellEngine) -> None:
    """A hundred orders over tables of dear values: equal rows, up to the order of rows that tie in every term."""
    source = random.Random(7)
    seen = 0
    for seed in range(100):
        sql = CORE + orders(source)
        plan = lift(sql, CLINIC, {})
        if plan.shell.trivial:
            continue
        assert plan.shell.arrangement is not None, sql
        seen += 1
        table = released(seed, 25)
        columns = [ShellColumn(c.name, c.type, c.values) for c in table.columns]
        relation = ShellTable("c0", (*columns, ShellColumn(ROW, ColumnType.INTEGER, tuple(range(table.rows)))))
        theirs = shell.run([relation], plan.shell.sql, timeout_seconds=10).rows
        ours = arranged(table, plan.shell.arrangement)
        places = [term.column for term in plan.shell.arrangement.order]
        by_name = {c.name: [None if repr(v) == "nan" else v for v in c.values] for c in table.columns}
        by_name[ROW] = list(range(table.rows))
        assert len(ours) == len(theirs), sql
        for mine, other in zip(ours, theirs, strict=True):
            row = other[-1]
            assert repr(tuple(by_name[name][row] for name in plan.shell.arrangement.columns)) == repr(tuple(other)), sql
            # Rows that tie may change places.
            assert [repr(by_name[p][mine[-1]]) for p in places] == [repr(by_name[p][row]) for p in places], sql
        if " LIMIT" not in sql and " OFFSET" not in sql:
            assert sorted(row[-1] for row in ours) == list(range(25))
    assert seen > 70


@pytest.mark.parametrize(
    "sql",
    [
        f"{CORE} HAVING COUNT(*) > 5 ORDER BY n",
        f"{CORE} ORDER BY n + 1",
        f"{CORE} ORDER BY n LIMIT 5 + 1",
        "SELECT (SELECT COUNT(*) FROM people) AS n",
        "SELECT (SELECT COUNT(*) FROM people) AS n ORDER BY 1 LIMIT 1",
        f"SELECT DISTINCT e FROM ({CORE}) AS t ORDER BY e",
        f"SELECT e, n * 2 AS m FROM ({CORE}) AS t ORDER BY e",
        f"SELECT e, n, RANK() OVER (ORDER BY n) AS r FROM ({CORE}) AS t ORDER BY e",
        f"SELECT e, n FROM ({CORE}) AS t WHERE n > 3 ORDER BY n",
        f"SELECT a.e, a.n FROM ({CORE}) AS a JOIN ({CORE}) AS b ON a.e = b.e ORDER BY a.n",
    ],
)
def test_what_does_more_than_sort_and_cut_is_left_to_the_engine(sql: str) -> None:
    """Shows that nothing of a query is overlooked."""
    try:
        plan = lift(sql, CLINIC, {})
    except Exception as error:
        assert type(error).__name__ == "Refused"
        return
    assert plan.shell.arrangement is None
