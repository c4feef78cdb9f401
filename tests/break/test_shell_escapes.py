"""Ways out of the shell: whatever DuckDB's own catalogue holds, in every place where a text could name it.

The lists are DuckDB's, read at the time of the test: a release that brings a new function, setting or view brings its
own attempts with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import duckdb
import pytest

from privacy.refusal import Refused
from sql_rewrite.lift import lift
from sql_rewrite.plan import Plan
from tests.hostile.calls import CALLS
from tests.hostile.corpus import answered
from tests.hostile.duck import Reader
from tests.hostile.good import GOOD
from tests.sql_rewrite.datasets import CLINIC
from tests.thinned import thinned

_OVER = "SELECT {} FROM (SELECT COUNT(*) AS n, AVG(salary) AS m FROM people) AS t"
_SHELL = (
    _OVER.format("{f}()"),
    _OVER.format("{f}(n)"),
    _OVER.format("{f}(n, 'a') OVER ()"),
    _OVER.format("{f}"),
    _OVER.format('"{f}"(n)'),
    _OVER.format("system.main.{f}(n)"),
    _OVER.format("n.{f}()"),
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING {f}(COUNT(*)) IS NULL",
)
_PROTECTED = (
    "SELECT COUNT(*) AS n FROM people WHERE {f}(age) IS NULL",
    "SELECT COUNT(*) AS n FROM people WHERE {f}() IS NULL",
    "SELECT SUM({f}(age)) AS n FROM people",
    "SELECT {f}(age) AS k, COUNT(*) AS n FROM people GROUP BY 1",
    "SELECT {f}(age) AS n FROM people",
)
_TABLES = (
    "SELECT * FROM {f}()",
    "SELECT t.n FROM (SELECT COUNT(*) AS n FROM people) AS t, {f}('people') AS u",
    "SELECT COUNT(*) AS n FROM people CROSS JOIN {f}('people')",
)
_TYPED = (
    "", "CAST(n AS VARCHAR)", "CAST(n AS VARCHAR), 2", "CAST(n AS VARCHAR), 'a'", "CAST(n AS VARCHAR), 1, 2", "n > 1",
    "m > 1, n, m", "DATE '2020-01-01'", "'day', DATE '2020-01-01', DATE '2021-01-01'", "n, 1", "m, 0.5", "n, m, 1",
    "CAST(n AS INTEGER)", "DISTINCT n",
)  # fmt: skip
"""Arguments of every type that a function of the list takes."""

_STATEMENTS = ("CALL {f}()", "PRAGMA {f}", "PRAGMA {f}('people')")

_OURS = frozenset({"-", "+", "*", "approx_count_distinct", "geomean", "geometric_mean", "histogram", "mad"})
"""Functions of the catalogue that are operators or spellings of the dialect, and are written out or counted by it."""

_ENGINE_NAMES = frozenset(
    "!~~ % * + - / // abs any_value arg_max arg_min avg bool_and bool_or cbrt ceil concat concat_ws contains corr "
    "count count_if count_star covar_pop covar_samp cume_dist date_diff date_trunc day dayname dayofweek "
    "dayofyear dense_rank ends_with exp first_value floor generate_series greatest hour isodow kurtosis "
    "kurtosis_pop lag last_day last_value lead least left length list_value listagg ln log lower ltrim mad max median "
    "min minute mode month monthname nth_value ntile nullif percent_rank pi power quantile quantile_cont "
    "quantile_disc quarter range rank repeat regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx "
    "regr_sxy regr_syy replace right round row_number rtrim second sign skewness split_part sqrt starts_with "
    "stddev stddev_pop stddev_samp strftime substring sum to_months trim trunc unnest upper var_pop variance week "
    "weekofyear year || ~~".split()
)
"""What the engines may be asked to call: functions of numbers, texts and dates, without files or catalogue.

Series and lists are of constants, and how long they may be is known before they are made (sql_rewrite/public.py).
"""


@cache
def catalogue() -> tuple[str, ...]:
    """The name of every function, macro, table function and pragma."""
    with duckdb.connect(":memory:") as connection:
        names = {row[0] for row in connection.execute("SELECT function_name FROM duckdb_functions()").fetchall()}
    assert len(names) > 1_000
    assert {"read_text", "glob", "query", "query_table", "range", "repeat", "random", "current_setting"} <= names
    return tuple(sorted(names))


@cache
def reader() -> Reader:
    """What reads texts before anything is charged."""
    return Reader()


def outcome(text: str) -> str:
    """The code of a text's refusal, or "answered"."""
    try:
        reader().read(text)
    except Refused as refused:
        return refused.findings[0].code
    return "answered"


@pytest.mark.parametrize(
    "text",
    [
        _OVER.format("abs(n)"), _OVER.format("lag(n, 1) OVER ()"), _OVER.format("m"), _PROTECTED[0].format(f="abs"),
        _PROTECTED[2].format(f="abs"), _PROTECTED[3].format(f="abs"), _SHELL[-1].format(f="abs"),
    ],
)  # fmt: skip
def test_the_places_are_answered_with_a_function_of_ours(text: str) -> None:
    """The texts of this module are refused for the name in them and for nothing else."""
    assert outcome(text) == "answered"


@pytest.mark.sparse(3)
@thinned(25)
@pytest.mark.parametrize("texts", [_SHELL, _PROTECTED, _TABLES, _STATEMENTS], ids=["shell", "rows", "tables", "call"])
def test_no_function_of_the_engine_is_reached_but_ours(texts: tuple[str, ...], every: int) -> None:
    """Every name of the engine's catalogue in every place of a text: refused, unless it is in the dialect's list."""
    columns = {column.name for table in CLINIC.tables for column in table.columns}
    reached = [
        (name, text)
        for name in catalogue()[::every]
        if name.lower() not in CALLS and name not in _OURS and name not in columns
        for text in texts
        if outcome(text.replace("{f}", name)) == "answered"
    ]
    assert reached == []


def test_the_list_of_functions_names_nothing_that_reaches_out() -> None:
    """No function of the dialect is one that the engine calls volatile, a table function or a pragma."""
    with duckdb.connect(":memory:") as connection:
        rows = connection.execute("SELECT DISTINCT function_name, function_type, stability FROM duckdb_functions()")
        kinds = rows.fetchall()
    computed = {n for n, k, _ in kinds if k in ("scalar", "aggregate", "macro", "window")}
    assert {(n, k) for n, k, _ in kinds if n in CALLS and n not in computed} == set()
    tables = sorted({n for n, k, _ in kinds if n in CALLS and k in ("table", "table_macro", "pragma")})
    assert {name for name in tables for text in _TABLES if outcome(text.replace("{f}", name)) == "answered"} == set()
    assert {(n, s) for n, _, s in kinds if n in CALLS and s not in ("CONSISTENT", None)} == set()


@thinned(25)
def test_no_view_or_setting_of_the_engine_is_reached(every: int) -> None:
    """System views, schemas and settings are refused by whatever name and statement."""
    with duckdb.connect(":memory:") as connection:
        views = connection.execute("SELECT schema_name, view_name FROM duckdb_views() WHERE internal").fetchall()
        settings = [row[0] for row in connection.execute("SELECT name FROM duckdb_settings()").fetchall()]
    assert len(views) > 30
    assert len(settings) > 100
    texts = []
    for schema, view in views:
        for name in (view, f"{schema}.{view}", f"system.{schema}.{view}", f'"{view}"', f"'{view}'"):
            texts += [f"SELECT * FROM {name}", f"SELECT COUNT(*) FROM people JOIN {name} ON TRUE"]
            texts += [f"SELECT (SELECT COUNT(*) FROM {name}) AS v, COUNT(*) AS n FROM people"]
    for name in settings:
        texts += [f"SET {name} = '1'", f"RESET {name}", f"PRAGMA {name} = 1", f"SELECT current_setting('{name}')"]
        texts += [_OVER.format(f"getvariable('{name}')"), _OVER.format(f"@@{name}"), _OVER.format(f"${name}")]
    assert [text for text in texts[::every] if outcome(text) == "answered"] == []


@pytest.mark.parametrize(
    "text",
    [
        "FROM '/etc/passwd'", "SELECT * FROM 'x.csv'", "SELECT * FROM \"x.parquet\"", "SELECT * FROM 's3://b/k.csv'",
        "SELECT t.n FROM (SELECT COUNT(*) AS n FROM people) AS t, 'x.csv' AS u", "TABLE people", "SHOW TABLES",
        "SELECT n FROM (SHOW TABLES) AS t", "SELECT n FROM (DESCRIBE people) AS t", "SUMMARIZE people",
        "PIVOT people ON sex USING COUNT(*)", "SELECT * FROM (PIVOT people ON sex USING COUNT(*)) AS t",
        "WITH RECURSIVE r AS (SELECT COUNT(*) AS n FROM people UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
        "WITH x AS (COPY people TO '/x/z.csv') SELECT 1", "COPY people TO 'z.csv'", "ATTACH 'x.db'",
        "WITH x AS (DELETE FROM people RETURNING age) SELECT COUNT(*) FROM x",
        "EXPLAIN ANALYZE SELECT COUNT(*) FROM people",
        _OVER.format("[x FOR x IN range(1000000000)]"), _OVER.format("list_transform([n], x -> x)"),
        _OVER.format("unnest([n, n])"), _OVER.format("[n][1]"), _OVER.format("{'a': n}"),
        _OVER.format("COLUMNS(c -> TRUE)"), _OVER.format("* REPLACE (age AS n)"),
        _OVER.format("t"), _OVER.format("n::ENUM('a')"), _OVER.format("n::JSON"),
        _OVER.format("CAST(n AS BIT)"), _OVER.format("n::VARCHAR::BLOB"), _OVER.format("rowid"),
        _OVER.format("t.rowid"),
        _OVER.format("n") + " TABLESAMPLE 10%", _OVER.format("n") + " USING SAMPLE 1",
        _OVER.format("n") + " POSITIONAL JOIN t",
        "SELECT * FROM (VALUES (1)) AS v(a) CROSS JOIN people",
        "SELECT n FROM (SELECT COUNT(*) AS n FROM people) AS t, LATERAL (SELECT * FROM query('SELECT 1')) AS u",
        "SELECT n FROM (SELECT COUNT(*) AS n FROM people) AS t ORDER BY (SELECT content FROM read_text('/etc/passwd'))",
        "SELECT n FROM (SELECT COUNT(*) AS n FROM people) AS t LIMIT (SELECT COUNT(*) FROM glob('*'))",
        "PREPARE p AS SELECT 1", "EXECUTE p", "SET VARIABLE a = 1", "CREATE MACRO f(x) AS x", "LOAD httpfs",
        "SELECT COUNT(*) FROM people; SELECT * FROM people", "BEGIN", "USE system", "CHECKPOINT",
        "EXPORT DATABASE '/d'",
    ],
)  # fmt: skip
def test_no_other_way_out_is_answered(text: str) -> None:
    """Files as tables, statements inside queries, lists, samples and recursion: none becomes a plan."""
    assert outcome(text) != "answered"


@pytest.mark.slow
@thinned(20)
def test_the_shells_that_run_call_and_read_nothing_else(every: int) -> None:
    """A third opinion on answered texts: DuckDB's own tree of each shell names released tables and known functions."""
    texts = [*GOOD, *(entry.text for entry in answered())]
    for name in CALLS:
        calls = (f"{name}({', '.join(('n', 'm', '2')[:count])})" for count in range(4))
        texts += [text for call in calls for text in (_OVER.format(call), _OVER.format(call + " OVER (ORDER BY n)"))]
        texts += [
            *(_OVER.format(f"{name}({arguments})") for arguments in _TYPED),
            *(_OVER.format(f"{name}({arguments}) OVER (ORDER BY n)") for arguments in _TYPED),
            _OVER.format(f"{name}(CAST(n AS VARCHAR), 'a', 'b')"),
            _OVER.format(f"{name}('day', DATE '2020-01-01')"),
        ]
    plans = [lift(text, CLINIC) for text in [*dict.fromkeys(texts)][::every] if outcome(text) == "answered"]
    shells = [(plan, sql) for plan in plans for sql in _texts(plan)]
    assert len(shells) > 150 / every
    with duckdb.connect(":memory:") as connection:
        read = 0
        for plan, sql in shells:
            (document,) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchone() or ("",)
            tree = json.loads(document)
            if tree["error"]:
                # What the engine cannot read is refused when the shell is checked, before anything is charged.
                assert tree["error_type"] == "parser", sql
                continue
            assert len(tree["statements"]) == 1
            nodes = list(_nodes(tree))
            ctes = {key for node in nodes for key in _cte_names(node)}
            released = {core.name for core in plan.cores} | {public.name for public in plan.public} | ctes
            assert {node["table_name"] for node in nodes if node.get("type") == "BASE_TABLE"} <= released, sql
            assert {node["schema_name"] for node in nodes if node.get("type") == "BASE_TABLE"} <= {""}, sql
            assert not [node for node in nodes if node.get("type") == "TABLE_FUNCTION"], sql
            read += 1
            called = {node["function_name"] for node in nodes if node.get("class") in ("FUNCTION", "WINDOW")}
            assert called <= _ENGINE_NAMES, (called - _ENGINE_NAMES, sql)
    assert read > 600 / every


def _texts(plan: Plan) -> Iterator[str]:
    if not plan.shell.trivial:
        yield plan.shell.sql
        if plan.shell.simulation is not None:
            yield plan.shell.simulation.sql


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from _nodes(part)
    elif isinstance(value, list):
        for part in value:
            yield from _nodes(part)


def _cte_names(node: dict[str, Any]) -> list[str]:
    ctes = node.get("cte_map")
    return [entry["key"] for entry in ctes.get("map", [])] if isinstance(ctes, dict) else []
