"""An analyst's own text is bound on empty tables and never run; what comes back is where the engine stops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import duckdb
import pytest

from engines.handlers.judge import judge
from engines.handlers.plan import open_twin
from engines.incidents import Incidents
from engines.shell import ShellEngine
from engines.texts import AskedText, TextRefused, encode_text, read_stopped
from engines.twin import twin_of
from privacy.policy import Table
from privacy.statement import Parameter
from tests.engines.datasets import column, dataset, people, visits
from tests.engines.logs import capture_logs

KEYWORDS = Table(
    name="Order",
    columns=(column("select", "integer"), column("Group", "text", keys=("a", "b")), column("end", "timestamp")),
    protected=False,
    key="select",
)
DECLARED = dataset(
    people(
        column("kind", "text", keys=("b", "a'"), nullable=False),
        column("born", "date"),
        column("seen", "timestamp"),
        column("well", "boolean"),
        column("height", "number"),
    ),
    visits(),
    KEYWORDS,
)


DOUBLING = "SELECT 1 AS a0" + "".join(f", a{i} + a{i} AS a{i + 1}" for i in range(60))
"""Each name stands for twice what the one before stands for: the engine writes all of it out."""


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(open_twin(twin_of(DECLARED).tables, "test")) as twin:
        yield twin.seen


def stops(
    tables: duckdb.DuckDBPyConnection, sql: str, parameters: dict[str, Parameter] | None = None
) -> TextRefused | None:
    """Where the engine stops reading a text, None when it reads all of it."""
    asked = AskedText(sql, parameters or {})
    stopped = judge(tables, encode_text(asked))
    return None if stopped is None else read_stopped(stopped).refusal(asked)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM people WHERE kind = 'neither' AND born > '2020-01-01' AND well AND height / 2 > id",
        "SELECT COUNT(*) FROM main.people",
        "SELECT p.kind, COUNT(*) FROM test.people AS p JOIN visits ON visits.person = p.id GROUP BY ALL",
        'SELECT "select" % 2 AS k, COUNT(*) FROM "Order" WHERE "Group" = \'c\' GROUP BY k',
        'SELECT COUNT(*) FROM "Order" WHERE "end" > DATE \'2020-01-01\' OR "end" = \'2020-01-01 10:00:00\'',
        "FROM PEOPLE SELECT COUNT(*)",
        "; ;\nSELECT COUNT(*) FROM people; ;",
        "WITH a(n) AS (SELECT COUNT(*) FROM people) SELECT n FROM a -- the end",
        "(SELECT COUNT(*) FROM people) UNION ALL (SELECT COUNT(*) FROM visits) ORDER BY 1 LIMIT 1",
        "PIVOT people ON kind USING COUNT(*) GROUP BY well",
        "WITH p AS (PIVOT people ON kind USING COUNT(*) GROUP BY well) SELECT * FROM p",
    ],
)
def test_texts_bind_on_the_tables_that_analysts_see(tables: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Shows declared names and types, keywords as names, both schemas, values outside of lists of keys."""
    assert stops(tables, sql) is None


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT COUNT(*) FROM people WHERE id > $least AND kind = $kind", {"least": 3, "kind": "x", "unused": 2**200}),
        ("SELECT COUNT(*) FROM people WHERE born >= $day AND seen < $day", {"day": "2020-02-29"}),
        (
            "SELECT COUNT(*) FROM people WHERE height > $x OR well = $yes OR id = $none",
            {"x": 0.5, "yes": True, "none": None},
        ),
        ("SELECT $name AS name, COUNT(*) AS n FROM people", {"name": "é"}),
        ("SELECT COUNT(*) FROM people WHERE id IN ($a, $b) AND $b > 1", {"a": 1, "b": 2}),
    ],
)
def test_parameters_have_the_types_of_literals(
    tables: duckdb.DuckDBPyConnection, sql: str, parameters: dict[str, Parameter]
) -> None:
    """Shows that a text with parameters binds as the same text with literals does, a text beside a date included."""
    assert stops(tables, sql, parameters) is None


@pytest.mark.parametrize(
    ("sql", "step", "text"),
    [
        ("SELECT COUNT(*) FROM people LIMIT 5, 3", "read", ","),
        ("SELECT 'é' AS e, COUNT(*) end FROM people", "read", "end"),
        ("SELECT 'é' AS e, nvl(COUNT(*), 1) FROM people", "bind", "nvl"),
        (";;\n SELECT COUNT(*), SUM(id, id) FROM people", "bind", "SUM"),
        ("SELECT COUNT(*) FROM people WHERE unit$id = 1", "bind", "unit$id"),
    ],
)
def test_the_place_is_where_the_engine_stopped(
    tables: duckdb.DuckDBPyConnection, sql: str, step: str, text: str
) -> None:
    """Shows the step and the character of the text, behind letters of several bytes and behind semicolons."""
    stopped = stops(tables, sql)
    assert stopped is not None
    assert (step, sql.index(text)) == (stopped.step, stopped.place)


@pytest.mark.parametrize(
    "sql", ["SELECT COUNT(*) FROM people WHERE id > 1 = TRUE", "SELECT COUNT(*) 'name' FROM people"]
)
def test_the_engine_may_not_say_where_it_stopped(tables: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Shows a refusal without a place: the words of the text must do (sql_rewrite/foreign.py)."""
    stopped = stops(tables, sql)
    assert stopped is not None
    assert ("read", None) == (stopped.step, stopped.place)


def test_nothing_is_run_whatever_the_text_is(tables: duckdb.DuckDBPyConnection) -> None:
    """Shows that binding runs nothing: no sequence moves, no error is raised, no rows are made, which would never end.

    The lift accepts none of these texts. A text that it should let through by a fault of ours does nothing either.
    Calls with constants alone are computed, as LENGTH(repeat('x', 1000000000)) is: such a text ends with its
    worker, which the tests of workers show.
    """
    tables.execute("CREATE SEQUENCE main.calls")
    assert stops(tables, "SELECT nextval('calls')") is None
    assert tables.execute("SELECT nextval('calls')").fetchone() == (1,)
    for sql in (
        "SELECT error('raised')",
        "SELECT CAST('x' AS BIGINT) FROM people",
        "SELECT SUM(i * j) FROM range(1000000000) a(i), range(1000000000) b(j)",
        "SELECT COUNT(*) FROM people LIMIT (SELECT COUNT(*) FROM range(1000000000000))",
    ):
        assert stops(tables, sql) is None, sql
    (tables_left,) = tables.execute(
        "SELECT COUNT(*) FROM duckdb_tables() WHERE schema_name = 'main' AND database_name = current_database()"
    ).fetchall()
    assert tables_left == (len(DECLARED.tables),)
    tables.execute("DROP SEQUENCE main.calls")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM '/etc/passwd'",
        "SELECT content FROM read_text('/etc/passwd')",
        "DROP TABLE people", "SELECT 1; DROP TABLE people", "ANALYZE people", "EXPLAIN SELECT 1",
        "ATTACH 'x.db'", "COPY people TO 'x.csv'",
        "SET enable_external_access = true", "EXPLAIN ANALYZE SELECT 1", "CREATE TABLE x AS SELECT 1",
        "INSERT INTO people SELECT * FROM people", "SELECT 1 UNION ALL (DELETE FROM people RETURNING 1)",
    ],
)  # fmt: skip
def test_only_one_select_is_bound_and_no_file_is_looked_at(tables: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Shows that other statements, several of them, and tables outside of the declaration are refused."""
    assert stops(tables, sql) is not None
    assert tables.execute(
        "SELECT COUNT(*) FROM duckdb_tables() WHERE schema_name = 'main' AND database_name = current_database()"
    ).fetchone() == (3,)


def test_a_text_and_its_statements_are_one_round_trip() -> None:
    """Shows a text that binds, one that does not, which is no incident, and one that is too long to read in time."""
    incidents = Incidents()
    with closing(ShellEngine(workers=1, incidents=incidents)) as engine:
        assert engine.wait_ready()
        served = [
            AskedText("SELECT COUNT(*) FROM people"),
            AskedText("SELECT COUNT(*) FROM people WHERE $a", {"a": True}),
        ]
        for asked in served:
            engine.plan(DECLARED, [], text=asked)
        with capture_logs() as logs, pytest.raises(TextRefused) as refused:
            engine.plan(DECLARED, [], text=AskedText("SELECT 'é', nvl(1, 2)"))
        assert ("bind", 12) == (refused.value.step, refused.value.place)
        assert "nvl" not in repr(logs)
        assert incidents.counts()["unplannable"] == 0
        with capture_logs() as logs, pytest.raises(TextRefused) as refused:
            engine.plan(DECLARED, [], text=AskedText(DOUBLING), timeout_seconds=0.5)
        assert ("end", None) == (refused.value.step, refused.value.place)
        assert incidents.counts()["unplannable"] == 0
        assert not any(log["event"] == "incident" for log in logs)
        engine.plan(DECLARED, [], text=served[0])
