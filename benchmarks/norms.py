"""Statements of units that are scaled to norms, as ratios to DuckDB's own answer to the plain question in one run.

    python -m benchmarks.norms [--rows 10000000] [--units 1000000] [--runs 3] [--only TEXT]

For each question and power: the plain text under DuckDB's defaults; `both`, what a question that chooses its norm
runs: the tables that its statements share, the histogram and the sums at a norm that about half of the units are
beyond; `few beyond`, the same at a norm that is greater by a half; the sums and the histogram by themselves, as where a
stored histogram serves; `kept`, the same two statements where the snapshot keeps the norms of units, beside their rows
and in tables of their own, and `kept sums` the second of them alone; and the statement of declared counts. A COUNT
without groups is metadata to DuckDB, which reads no row for it, so `kept of a sum` puts `kept` beside the plain sum of
a column. Then the floor of the shapes without kept norms: the bare aggregate by unit (where the question has groups,
also by unit and key), as private connections run it, under DuckDB's defaults, and with these and arrays by unit; and
what clipping the values takes by itself. Prints one JSON object:
milliseconds of processor time of the plain text, and ratios to it (the least of the runs each). Processor time, of two
threads together, because other work on the machine counts little in it. Results are read as arrays, as workers read
them. Engines only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb

from engines.handlers.connection import make_table, private_settings
from privacy.bounds import AutomaticContribution, ContributionBound, ValueBounds
from privacy.norms import NormPower
from privacy.policy import Column, ColumnType, Dataset, PublicKeys, Table
from privacy.statement import Parameter, Statement
from privacy.stored_norms import FIRST, ROWS, UNITS, sizes_table, squares_name, total_name, units_table
from privacy.unit import PrivacyUnit
from sql_rewrite.bound import bound
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.kept_totals import kept_totals
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.norms import at_norms, lower_norms
from sql_rewrite.stored_norms import known_norms

GROUPS = (50, 1_000)

QUESTIONS = {
    "COUNT, no groups": "SELECT COUNT(*) AS n FROM visits",
    "SUM, no groups": "SELECT SUM(amount) AS s FROM visits",
    "COUNT, 50 groups": "SELECT k50, COUNT(*) AS n FROM visits GROUP BY k50",
    "SUM, 50 groups": "SELECT k50, SUM(amount) AS s FROM visits GROUP BY k50",
    "COUNT, 1,000 groups": "SELECT k1000, COUNT(*) AS n FROM visits GROUP BY k1000",
    "SUM, 1,000 groups": "SELECT k1000, SUM(amount) AS s FROM visits GROUP BY k1000",
    "COUNT, half of the rows, 50 groups": "SELECT k50, COUNT(*) AS n FROM visits WHERE amount < 50 GROUP BY k50",
    "COUNT, hidden groups": "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop",
    "COUNT(DISTINCT unit), hidden groups": "SELECT shop, COUNT(DISTINCT person_id) AS n FROM visits GROUP BY shop",
}

FLOORS = {
    "by unit": 'SELECT COUNT(*) FROM (SELECT "unit$id", {aggregate} FROM visits{where} GROUP BY "unit$id")',
    "by unit and key": (
        'SELECT COUNT(*) FROM (SELECT "unit$id", {key}, {aggregate} FROM visits{where} GROUP BY "unit$id", {key})'
    ),
}
"""What every shape begins with. The count around it keeps the result in the engine."""

ENCODED = (
    "SELECT SUM(CAST(CASE WHEN amount < 0 THEN 0 WHEN amount > 100 THEN 100 ELSE amount END AS BIGINT)) FROM visits"
)
"""The plain sum of values that are clipped, and of no unit."""

ARRAY_BITS = 22
"""Four million units, which is the most at which an array is faster than a hash table."""

COUNTED = ContributionBound(rows_per_unit=20, groups_per_unit=20, rows_per_unit_and_group=5)


KEPT = tuple(f"k{n}" for n in GROUPS)
"""The columns by which the squares of units' rows are kept."""


def dataset(contribution: ContributionBound | AutomaticContribution, *, kept: bool = False) -> Dataset:
    """Visits, several of each person; where the snapshot keeps the norms of units, or where it does not."""
    whole = ColumnType.INTEGER
    keys = [Column(f"k{n}", whole, keys=PublicKeys(tuple(range(n))), nullable=False) for n in GROUPS]
    amount = Column("amount", whole, ValueBounds(Fraction(0), Fraction(100)), nullable=False)
    people = Table(
        "people",
        (Column("person_id", whole, nullable=False),),
        protected=True,
        key="person_id",
        unit_column="person_id",
        contribution=ContributionBound(1, 1, 1),
    )
    visits = Table(
        "visits",
        (Column("person_id", whole, nullable=False), amount, *keys, Column("shop", whole, nullable=False)),
        protected=True,
        unit_column="person_id",
        contribution=contribution,
        stored_norms=KEPT if kept else None,
    )
    made = Dataset(
        "benchmark", PrivacyUnit("people", "person_id"), (people, visits), policy_version=1, data_version="v"
    )
    if not kept:
        return made
    return replace(made, tables=(people, replace(visits, stored_totals=kept_totals(made)["visits"], stored_units=True)))


def fill(path: Path, rows: int, units: int) -> None:
    """The table as a snapshot holds it: ordered by unit."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            'CREATE TABLE visits AS SELECT *, CAST(person_id AS INTEGER) AS "unit$id", hash(person_id) AS "unit$draw" '
            f"FROM (SELECT CAST(random() * {units - 1} AS BIGINT) AS person_id, "
            "CAST(random() * 100 AS BIGINT) AS amount, CAST(random() * 49 AS BIGINT) AS k50, "
            "CAST(random() * 999 AS BIGINT) AS k1000, "
            f"CAST(random() * {units - 1} AS BIGINT) AS shop FROM range({rows})) "
            "ORDER BY person_id"
        )
        connection.execute("CREATE TABLE plain AS SELECT * FROM visits")
        squares = {
            name: '(SELECT "unit$id", CAST(sum(n * n) AS BIGINT) AS n, CAST(sum(x * x) AS BIGINT) AS x FROM ('
            'SELECT "unit$id", count(*) AS n, CAST(sum(amount) AS BIGINT) AS x '
            f'FROM plain GROUP BY "unit$id", {name}) GROUP BY 1) AS {name}s'
            for name in KEPT
        }
        connection.execute(
            f'CREATE OR REPLACE TABLE visits AS SELECT p.*, r.n AS "{ROWS}", p.rowid = r.number AS "{FIRST}", '
            + f'r.x AS "{total_name("amount")}", '
            + ", ".join(
                f'{name}s.n AS "{squares_name(name)}", {name}s.x AS "{total_name("amount", name)}"' for name in KEPT
            )
            + " FROM plain AS p "
            + 'JOIN (SELECT "unit$id", count(*) AS n, min(rowid) AS number, CAST(sum(amount) AS BIGINT) AS x '
            "FROM plain GROUP BY 1) AS r "
            + 'USING ("unit$id") '
            + " ".join(f'JOIN {joined} USING ("unit$id")' for joined in squares.values())
            + ' ORDER BY p."unit$id"'
        )
        connection.execute("DROP TABLE plain")
        norms = [ROWS, *map(squares_name, KEPT), total_name("amount"), *(total_name("amount", name) for name in KEPT)]
        listed = ", ".join(f'"{name}"' for name in norms)
        connection.execute(
            f'CREATE TABLE "{units_table("visits")}" AS SELECT {listed} FROM visits WHERE "{FIRST}" ORDER BY "unit$id"'
        )
        connection.execute(
            f'CREATE TABLE "{sizes_table("visits")}" AS SELECT "{ROWS}", count(*) AS "{UNITS}" '
            f'FROM "{units_table("visits")}" GROUP BY 1 ORDER BY 1'
        )


def milliseconds(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Parameter], runs: int) -> float:
    """The least of some runs."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        connection.execute(sql, list(parameters)).fetchnumpy()
        best = min(best, 1000 * (time.process_time() - start))
    return best


def together(connection: duckdb.DuckDBPyConnection, statements: Sequence[Statement], runs: int) -> float:
    """The least of some runs of statements that share tables, with making these and dropping them."""
    best = float("inf")
    shared = statements[0].shared
    assert shared is not None
    for _ in range(runs):
        start = time.process_time()
        with contextlib.closing(connection.cursor()) as cursor:
            for table in shared.tables:
                make_table(cursor, table.name, table.sql, table.parameters)
            for statement in statements:
                cursor.execute(statement.sql, list(statement.parameters)).fetchnumpy()
        best = min(best, 1000 * (time.process_time() - start))
    return best


def norms_of(name: str, core: BoundedCore, power: NormPower) -> dict[str, Fraction]:
    """Norms that about half of the units are beyond."""
    half = Fraction(10 if "COUNT" in name else 500) / (2 if "half" in name else 1)
    if power is NormPower.L2 and "groups" in name and "no" not in name:
        half /= 3
    return {item.norm.name: half for item in core.norms}


def ratios(name: str, path: Path, runs: int) -> dict[str, float]:
    """One question in all its ways."""
    sql = QUESTIONS[name]
    selected = sql.removeprefix("SELECT ").split(" AS ")[0].split(", ")
    needed = ["by unit"] if len(selected) == 1 else list(FLOORS)
    where = "".join(re.findall(r" WHERE .*(?= GROUP)", sql))
    floors = {shown: FLOORS[shown].format(key=selected[0], aggregate=selected[-1], where=where) for shown in needed}
    with duckdb.connect(str(path), read_only=True, config={"threads": 2}) as plain:
        least = milliseconds(plain, sql, (), runs)
        defaults = {shown: milliseconds(plain, floor, (), runs) for shown, floor in floors.items()}
        # Arrays with one entry for each unit in place of hash tables: the engine takes them by what it knows of rows.
        plain.execute(f"SET perfect_ht_threshold = {ARRAY_BITS}")
        arrays = milliseconds(plain, floors["by unit"], (), runs)
        encoded = None
        if "SUM" in name and len(selected) == 1:
            encoded = milliseconds(plain, ENCODED, (), runs)
    summed = least
    if len(selected) == 1:
        with duckdb.connect(str(path), read_only=True, config={"threads": 2}) as plain:
            summed = milliseconds(plain, QUESTIONS["SUM, no groups"], (), runs)
    found = {"plain_ms": round(least, 1), "floor by unit, defaults, arrays": round(arrays / least, 1)}
    if encoded is not None:
        found["encoding alone"] = round(encoded / least, 1)
    with duckdb.connect(str(path), read_only=True, config=private_settings(threads=2, memory_limit_mb=4096)) as private:
        statements = {}
        for power in NormPower:
            (core,) = bound(lift(sql, dataset(AutomaticContribution()), {}), power=power)
            if not core.norms:
                continue  # hidden groups are scaled to L2 norms alone
            half = norms_of(name, core, power)
            at = at_norms(core, half)
            few = at_norms(core, {key: norm * 3 / 2 for key, norm in half.items()})
            for shown, scaled in (("both", at), ("both, few beyond", few)):
                shared = lower_norms(core, shared=True), lower(scaled, shared=True)
                found[f"{power.value} {shown}"] = round(together(private, shared, runs) / least, 1)
            (kept,) = bound(lift(sql, dataset(AutomaticContribution(), kept=True), {}), power=power)
            if known_norms(kept) is not None:
                sums, histogram = lower(at_norms(kept, half)), lower_norms(kept)
                alone = [milliseconds(private, one.sql, one.parameters, runs) for one in (sums, histogram)]
                found[f"{power.value} kept both"] = round(sum(alone) / least, 1)
                found[f"{power.value} kept sums"] = round(alone[0] / least, 1)
                if len(selected) == 1:
                    found[f"{power.value} kept of a sum"] = round(sum(alone) / summed, 2)
            statements[f"{power.value} sums"] = lower(at)
            statements[f"{power.value} histogram"] = lower_norms(core)
        (counted,) = bound(lift(sql, dataset(COUNTED), {}))
        statements["counts"] = lower(counted)
        for shown, floor in floors.items():
            found[f"floor {shown}"] = round(milliseconds(private, floor, (), runs) / least, 1)
            found[f"floor {shown}, defaults"] = round(defaults[shown] / least, 1)
        for shown, statement in statements.items():
            took = milliseconds(private, statement.sql, statement.parameters, runs)
            found[shown] = round(took / least, 1)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="ask the questions whose name has this text")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.duckdb"
        fill(path, given.rows, given.units)
        print(json.dumps({name: ratios(name, path, given.runs) for name in QUESTIONS if given.only in name}, indent=2))


if __name__ == "__main__":
    main()
