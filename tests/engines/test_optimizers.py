"""Plans on true data are functions of text and schema: decided optimizers, and the attack that forced the decision."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from benchmarks.optimizers import DATASET, QUESTIONS, fill
from engines.handlers.connection import private_settings, settings, shell_settings
from engines.handlers.private import PrivateHandler
from engines.optimizers import DECISIONS, PRIVATE_OFF, PRIVATE_ON, SHELL_OFF
from privacy.statement import Statement
from sql_rewrite.bound import bound
from sql_rewrite.dialects.duckdb import NO_ARRAY
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower

PAGE = Path("engines/optimizers.md").read_text()

ATTACK = (
    "SELECT COUNT(*) FROM people "
    "WHERE CASE WHEN FALSE THEN 'a' WHEN income > {x} AND age >= 0 THEN 'b' END IN ('a', 'b')"
)
"""Answered below the greatest income and failed above it: thirty questions gave the greatest income exactly."""

MORE = {
    "all keys listed": "SELECT sex, COUNT(*) FROM people WHERE sex IN ('f', 'm', 'x') GROUP BY sex",
    "same": "SELECT COUNT(*) FROM people WHERE age = age AND born = born",
    "beyond": "SELECT COUNT(*) FROM people WHERE age > 1000 OR income < -1",
    "long list": "SELECT COUNT(*) FROM people WHERE age IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
    "null or not": "SELECT COALESCE(city, 'none'), COUNT(*) FROM people GROUP BY 1",
    "median": "SELECT MEDIAN(income) FROM people",
}


def lowered(text: str) -> Statement:
    (core,) = bound(lift(text, DATASET, {}))
    return lower(core)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("optimizers") / "snapshot.duckdb"
    with duckdb.connect(str(path)) as connection:
        fill(connection, 20_000)
    return path


def opened(path: Path, config: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(str(path), read_only=True, config=dict(config))


def twin_of(path: Path, config: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """An empty database with the tables of a file."""
    with duckdb.connect(str(path), read_only=True) as connection:
        texts = [str(text) for (text,) in connection.execute("SELECT sql FROM duckdb_tables()").fetchall()]
    twin = duckdb.connect(":memory:", config=dict(config))
    for text in texts:
        twin.execute(text)
    return twin


def shape(connection: duckdb.DuckDBPyConnection, statement: Statement) -> str:
    """The plan without its guessed numbers of rows and the name of the database."""
    with closing(connection.cursor()) as cursor:
        rows = cursor.execute(f"EXPLAIN (FORMAT json) {statement.sql}", list(statement.parameters)).fetchall()
    return json.dumps(_bare(json.loads(str(rows[0][1]))))


def _bare(part: Any) -> Any:
    if isinstance(part, list):
        return [_bare(item) for item in part]
    if isinstance(part, dict):
        return {name: _bare(item) for name, item in part.items() if name != "Estimated Cardinality"}
    return re.sub(r'\A"?(memory|snapshot)"?\.main\.', "", part)


def differing(path: Path, config: Mapping[str, Any]) -> list[str]:
    """Names of questions whose plan on rows is another one than on the empty twin."""
    texts = {**QUESTIONS, **MORE, "attack": ATTACK.format(x=1), "attack above": ATTACK.format(x=10**9)}
    found = []
    with closing(twin_of(path, config)) as twin, closing(opened(path, config)) as full:
        for name, text in texts.items():
            statement = lowered(text)
            try:
                same = shape(full, statement) == shape(twin, statement)
            except duckdb.Error:
                same = False
            if not same:
                found.append(name)
    return found


def test_every_optimizer_of_the_engine_is_decided() -> None:
    """A version of the engine with another list of optimizers fails here, and starts no private worker."""
    listed = [str(name) for (name,) in duckdb.connect().execute("FROM duckdb_optimizers()").fetchall()]
    assert listed == list(DECISIONS)
    assert PRIVATE_ON == {
        "in_clause",
        "unused_columns",
        "common_subexpressions",
        "common_aggregate",
        "column_lifetime",
    }
    assert PRIVATE_ON | PRIVATE_OFF == set(listed)
    assert PRIVATE_ON.isdisjoint(PRIVATE_OFF)
    for config, off in ((private_settings, PRIVATE_OFF), (shell_settings, SHELL_OFF)):
        text = str(config(threads=1, memory_limit_mb=64)["disabled_optimizers"])
        assert set(text.split(",")) == off


def test_a_worker_of_an_undecided_engine_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An optimizer that nobody decided keeps private workers from starting."""
    options = {"threads": 1, "memory_limit_mb": 64, "temporary": str(tmp_path), "temporary_mb": 1, "open_max": 1}
    PrivateHandler(options)
    monkeypatch.setattr("engines.handlers.private.DECISIONS", {**DECISIONS, "brand_new": (True, "")})
    with pytest.raises(ValueError, match=r"^$"):
        PrivateHandler(options)


def test_the_page_has_the_decisions() -> None:
    """The table of the page is the table of the code."""
    rows = re.findall(r"^\| `([a-z_]+)` \| (on|off) \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [(name, "on" if on else "off", why) for name, (on, why) in DECISIONS.items()]


def test_plans_do_not_depend_on_rows(snapshot: Path) -> None:
    """Each statement has the same plan on rows and on none; with DuckDB's own optimizers many do not."""
    assert differing(snapshot, private_settings(threads=2, memory_limit_mb=512)) == []
    before = differing(snapshot, settings(threads=2, memory_limit_mb=512))
    assert {"attack above", "all keys listed", "sum per unit"} <= set(before)


@pytest.mark.parametrize("name", ["statistics_propagation", "expression_rewriter"])
def test_one_optimizer_that_reads_statistics_is_seen(snapshot: Path, name: str) -> None:
    """The comparison of plans notices a single wrong decision."""
    config = private_settings(threads=2, memory_limit_mb=512)
    assert differing(snapshot, {**config, "disabled_optimizers": ",".join(sorted(PRIVATE_OFF - {name}))})


def test_arrays_of_groups_follow_from_types(snapshot: Path) -> None:
    """Integers of 16 bits are grouped in an array, whatever rows there are; no other type is, however few its values.

    With DuckDB's own optimizers the extremes of rows decide.
    """
    types = ("USMALLINT", "INTEGER", "BIGINT", "DATE")
    values = dict.fromkeys(types[:3], "age % 9") | {"DATE": "born"}

    def arrays(config: Mapping[str, Any], connect: Any, beside: str = "") -> list[bool]:
        with closing(connect(snapshot, config)) as connection:
            texts = [
                f"SELECT k, COUNT(*) FROM (SELECT CAST({values[kind]} AS {kind}) AS k FROM people) GROUP BY k{beside}"
                for kind in types
            ]
            return ["PERFECT" in shape(connection, Statement(text, (), (), ())) for text in texts]

    config = private_settings(threads=2, memory_limit_mb=512)
    assert [True, False, False, False] == arrays(config, opened) == arrays(config, twin_of)
    plain = settings(threads=2, memory_limit_mb=512)
    assert [True, False, False, False] != arrays(plain, opened)
    assert arrays(plain, opened, f", {NO_ARRAY}") == [False] * 4, "the group beside keys of all other statements"


def test_max_income_is_not_found_by_failing_questions(snapshot: Path) -> None:
    """The attack of the issue: below and above the greatest income the same outcome; before, the text above failed."""

    def outcome(connection: duckdb.DuckDBPyConnection, x: int) -> str:
        statement = lowered(ATTACK.format(x=x))
        try:
            connection.cursor().execute(statement.sql, list(statement.parameters)).fetchall()
        except duckdb.Error as error:
            return type(error).__name__
        return "answered"

    with closing(opened(snapshot, private_settings(threads=1, memory_limit_mb=512))) as connection:
        found = connection.execute("SELECT max(income) FROM people").fetchone()
        assert found is not None
        highest = int(found[0])
        around = (0, highest - 1, highest, highest + 1, 10**9)
        assert ["answered"] * 5 == [outcome(connection, x) for x in around]
    with closing(opened(snapshot, settings(threads=1, memory_limit_mb=512))) as connection:
        assert ["answered", "InvalidInputException"] == [outcome(connection, x) for x in (highest - 1, highest + 1)]
