"""Overhead of the engines' processes: start, a small private statement, a plan on an empty twin, a shell check and run.

    python -m benchmarks.engine [--rounds 200]

Prints one JSON object in milliseconds (median and 90th percentile of the rounds), beside DuckDB in this process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from benchmarks.optimizers import DATASET, QUESTIONS
from engines.private import PrivateEngine
from engines.shell import ShellColumn, ShellEngine, ShellTable
from engines.texts import AskedText
from privacy.policy import ColumnType
from privacy.statement import Statement, StatementKey, StatementSum
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower

TEXT = AskedText(QUESTIONS["average by public key, filtered"])
STATEMENT = Statement(
    sql='SELECT CAST(k AS VARCHAR) AS "k", CAST(0 AS BIGINT) AS "n_high", count(*) AS "n_low" FROM main.t GROUP BY k',
    parameters=(),
    keys=(StatementKey("k", ColumnType.TEXT),),
    sums=(StatementSum("n", 2**40),),
)
RELEASE = ShellTable(
    "release",
    (
        ShellColumn("k", ColumnType.TEXT, [f"k{i}" for i in range(50)]),
        ShellColumn("n", ColumnType.INTEGER, list(range(50))),
        ShellColumn("mean", ColumnType.NUMBER, [i / 3 for i in range(50)]),
    ),
)
SHELL = "SELECT k, n, mean * 2 AS twice, rank() OVER (ORDER BY n DESC) AS place FROM release WHERE n > 3 ORDER BY n"


def timed(call: Callable[[], object], rounds: int, *, pause: float = 0.0) -> dict[str, float]:
    """Median and 90th percentile in milliseconds, with a pause in seconds between calls."""
    call()
    taken = []
    for _ in range(rounds):
        time.sleep(pause)
        begin = time.perf_counter()
        call()
        taken.append(1000 * (time.perf_counter() - begin))
    taken.sort()
    return {"median": round(statistics.median(taken), 2), "p90": round(taken[int(0.9 * rounds)], 2)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    (core,) = bound(lift(QUESTIONS["average by public key, filtered"], DATASET, {}))
    planned = lower(core)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE t AS SELECT i, 'k' || i % 50 AS k FROM range(100000) r(i)")
        begin = time.perf_counter()
        private, shell = PrivateEngine(), ShellEngine()
        try:
            assert private.wait_ready()
            assert shell.wait_ready()
            start = 1000 * (time.perf_counter() - begin)
            private.warm(path)
            with duckdb.connect(str(path), read_only=True) as connection:
                direct = timed(lambda: connection.cursor().execute(STATEMENT.sql).fetchall(), rounds)
            found = {
                "start_both_engines": round(start, 1),
                "statement_in_process": direct,
                "private_run": timed(lambda: private.run(path, STATEMENT, timeout_seconds=10), rounds),
                "plan_on_twin": timed(lambda: shell.plan(DATASET, (planned,)), rounds),
                "plan_on_twin_with_text": timed(lambda: shell.plan(DATASET, (planned,), text=TEXT), rounds),
                "shell_check": timed(lambda: shell.check((RELEASE,), SHELL), rounds),
                "shell_run": timed(lambda: shell.run((RELEASE,), SHELL, timeout_seconds=10), rounds, pause=0.02),
                "shell_run_without_pause": timed(lambda: shell.run((RELEASE,), SHELL, timeout_seconds=10), rounds),
            }
        finally:
            private.close()
            shell.close()
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
