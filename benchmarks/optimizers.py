"""What a private worker pays for plans that do not depend on rows, beside plain DuckDB with every optimizer on.

    python -m benchmarks.optimizers [--rows 1000000] [--rounds 15] [--each]

Lowers real questions, and runs each statement on one file under three settings in turn: `plain` (DuckDB's own, every
optimizer on), `before` (only `top_n_window_elimination` off: the settings until each optimizer was decided) and
`private` (what workers use, engines/optimizers.py). Prints a JSON object with the least times in milliseconds and the
ratio of `private` to `plain`. `--each` adds the time with each optimizer that is off switched on by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import shutil
import tempfile
import time
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from engines.handlers.connection import private_settings
from engines.optimizers import PRIVATE_OFF
from privacy.bounds import ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, Dataset, PublicKeys, Reference, Table
from privacy.statement import Statement
from privacy.unit import PrivacyUnit
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower

__all__ = ["DATASET", "QUESTIONS", "fill"]

_T = ColumnType
DATASET = Dataset(
    "bench",
    PrivacyUnit("people", "person_id"),
    (
        Table(
            "people",
            (
                Column("person_id", _T.INTEGER, nullable=False),
                Column("age", _T.INTEGER, ValueBounds(Fraction(0), Fraction(100))),
                Column("income", _T.NUMBER, ValueBounds(Fraction(0), Fraction(200_000))),
                Column("sex", _T.TEXT, keys=PublicKeys(("f", "m", "x"))),
                Column("city", _T.TEXT),
                Column("born", _T.DATE),
            ),
            protected=True,
            key="person_id",
            unit_column="person_id",
            contribution=ContributionBound(1, 1, 1),
        ),
        Table(
            "visits",
            (
                Column("visit_id", _T.INTEGER, nullable=False),
                Column("person_id", _T.INTEGER, nullable=False),
                Column("cost", _T.NUMBER, ValueBounds(Fraction(0), Fraction(1_000))),
                Column("nights", _T.INTEGER, ValueBounds(Fraction(0), Fraction(30))),
                Column("kind", _T.TEXT, keys=PublicKeys(("a", "b", "c"))),
                Column("ward", _T.TEXT),
                Column("day", _T.DATE),
            ),
            protected=True,
            key="visit_id",
            references=(Reference("person_id", "people", "person_id"),),
            unit_column="person_id",
            contribution=ContributionBound(8, 3, 4),
        ),
    ),
    policy_version=1,
    data_version="bench",
)
"""People and their visits, four each: the shape of the demo."""

_LISTED = ", ".join(f"'w{i}'" for i in range(200))
QUESTIONS: Mapping[str, str] = {
    "count": "SELECT COUNT(*) FROM people",
    "count by public key": "SELECT sex, COUNT(*) FROM people GROUP BY sex",
    "average by public key, filtered": "SELECT sex, AVG(income) FROM people WHERE age BETWEEN 30 AND 39 GROUP BY sex",
    "rare rows": "SELECT COUNT(*) FROM people WHERE income > 199900",
    "hidden text keys": "SELECT city, COUNT(*) FROM people GROUP BY city",
    "sum per unit": "SELECT SUM(cost) FROM visits",
    "count per unit": "SELECT COUNT(*) FROM visits",
    "sum per unit and public key": "SELECT kind, SUM(cost) FROM visits GROUP BY kind",
    "choice of groups, dates": "SELECT date_trunc('month', day), COUNT(*) FROM visits GROUP BY 1",
    "join": "SELECT p.sex, AVG(v.cost) FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY p.sex",
    "join, filtered on both sides": (
        "SELECT COUNT(*) FROM visits v JOIN people p ON v.person_id = p.person_id WHERE p.age < 30 AND v.cost > 500"
    ),
    "list of 200 texts": f"SELECT COUNT(*) FROM visits WHERE ward IN ({_LISTED})",
    "text functions": (
        "SELECT COUNT(*) FROM visits WHERE UPPER(ward) || LOWER(ward) = 'x' OR REPLACE(ward, 'a', 'b') = 'y'"
    ),
    "expressions": (
        "SELECT SUM(CASE WHEN ward LIKE 'ward 1%' AND cost / 7 > 20 THEN ROUND(cost * 1.1, 1) ELSE 0 END) FROM visits"
    ),
}
"""Questions by what they stand for."""


def fill(connection: duckdb.DuckDBPyConnection, rows: int) -> None:
    """Rows in the layout of a snapshot: clustered by unit, dense numbers."""
    connection.execute(
        f"""
        CREATE TABLE people AS SELECT
            i::BIGINT AS person_id, (i % 90)::BIGINT AS age, (i * 7919 % 200000)::DOUBLE AS income,
            (['f', 'm', 'x'])[1 + i % 3]::ENUM('f', 'm', 'x') AS sex, 'city ' || hash(i) % 1000 AS city,
            DATE '1950-01-01' + (hash(i + 7) % 20000)::INTEGER AS born,
            i::INTEGER AS "unit$id", hash(i) AS "unit$draw"
        FROM range({rows // 4}) r(i)
        """
    )
    connection.execute(
        f"""
        CREATE TABLE visits AS SELECT
            i::BIGINT AS visit_id, (i // 4)::BIGINT AS person_id, (hash(i) % 1000)::DOUBLE AS cost,
            (hash(i + 1) % 30)::BIGINT AS nights, (['a', 'b', 'c'])[1 + i % 3]::ENUM('a', 'b', 'c') AS kind,
            'ward ' || hash(i + 2) % 50 AS ward, DATE '2020-01-01' + (hash(i + 3) % 900)::INTEGER AS day,
            (i // 4)::INTEGER AS "unit$id", hash(i // 4) AS "unit$draw"
        FROM range({rows // 4 * 4}) r(i)
        """
    )


def _least(connections: Mapping[str, duckdb.DuckDBPyConnection], statement: Statement, rounds: int) -> dict[str, float]:
    """The least time of each connection in milliseconds. They take turns: a busy machine slows all of them alike."""
    least = dict.fromkeys(connections, math.inf)
    for _ in range(rounds):
        for name, connection in connections.items():
            begin = time.perf_counter()
            connection.cursor().execute(statement.sql, list(statement.parameters)).fetchall()
            least[name] = min(least[name], 1000 * (time.perf_counter() - begin))
    return {name: round(value, 2) for name, value in least.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--each", action="store_true")
    options = parser.parse_args()
    private = private_settings(threads=options.threads, memory_limit_mb=2048)
    kinds: dict[str, dict[str, Any]] = {
        "plain": {"threads": str(options.threads)},
        "before": {**private, "disabled_optimizers": "top_n_window_elimination"},
        "private": dict(private),
    }
    if options.each:
        for name in sorted(PRIVATE_OFF):
            kinds[f"+{name}"] = {**private, "disabled_optimizers": ",".join(sorted(PRIVATE_OFF - {name}))}
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        first = Path(folder) / "bench.duckdb"
        with duckdb.connect(str(first)) as connection:
            fill(connection, options.rows)
        connections = {}
        for place, (kind, settings) in enumerate(kinds.items()):
            # The engine opens a file under one setting only.
            path = Path(shutil.copy(first, first.with_name(f"bench{place}.duckdb")))
            connections[kind] = stack.enter_context(duckdb.connect(str(path), read_only=True, config=settings))
        for name, text in QUESTIONS.items():
            (core,) = bound(lift(text, DATASET, {}))
            times = _least(connections, lower(core), options.rounds)
            found[name] = {**times, "private / plain": round(times["private"] / times["plain"], 2)}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
