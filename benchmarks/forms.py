"""Statements of joins, TPC-H forms and quantiles, as ratios to DuckDB's own answer to the same text in one run.

    python -m benchmarks.forms FOLDER [--runs 5] [--rows 10000000]

FOLDER has the tables of TPC-H as Parquet (`tpchgen-cli parquet -s 1`). The privacy unit is the customer; suppliers,
nations and regions are public; contribution is bounded by declared counts that no customer exceeds, so that what is
compared is the statement of the sums alone. `plain` is the text under DuckDB's defaults on the same snapshot file;
`ours` is every statement that the question lowers to, as a private connection runs it. Ten quantiles of one column are
compared with ten texts of one quantile each, and medians also over as many rows of a table of random values, where a
unit has one row or several (`--rows`). Results are read as arrays, as workers read them. Prints one JSON object:
milliseconds of processor time of the plain text, and the ratio to it (the least of the runs each), beside what was to
be reached.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb

from engines.handlers.connection import private_settings
from privacy.norms import NormPower
from privacy.policy import Dataset
from privacy.statement import Parameter
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from tests.journey.clinic import attach, services_of

_NATIONS = (
    "ALGERIA, ARGENTINA, BRAZIL, CANADA, EGYPT, ETHIOPIA, FRANCE, GERMANY, INDIA, INDONESIA, IRAN, IRAQ, JAPAN, "
    "JORDAN, KENYA, MOROCCO, MOZAMBIQUE, PERU, CHINA, ROMANIA, SAUDI ARABIA, VIETNAM, RUSSIA, "
    "UNITED KINGDOM, UNITED STATES"
)

DECLARED = f"""\
version: 2
dataset: tpch
unit: {{table: customer, key: c_custkey}}
tables:
  customer:
    source: {{file: tpch.duckdb, table: customer}}
    key: c_custkey
    references: {{c_nationkey: nation.n_nationkey}}
    columns:
      c_custkey: {{type: integer}}
      c_nationkey: {{type: integer}}
      c_acctbal: {{type: number, bounds: [-1000, 10000]}}
  orders:
    source: {{file: tpch.duckdb, table: orders}}
    key: o_orderkey
    references: {{o_custkey: customer.c_custkey}}
    contribution: {{rows_per_unit: 64, groups_per_unit: 8, rows_per_unit_and_group: 64}}
    columns:
      o_orderkey: {{type: integer}}
      o_custkey: {{type: integer}}
      o_orderdate: {{type: date}}
      o_totalprice: {{type: number, bounds: [0, 600000]}}
  lineitem:
    source: {{file: tpch.duckdb, table: lineitem}}
    references: {{l_orderkey: orders.o_orderkey, l_suppkey: supplier.s_suppkey}}
    contribution: {{rows_per_unit: 256, groups_per_unit: 8, rows_per_unit_and_group: 256}}
    columns:
      l_orderkey: {{type: integer}}
      l_suppkey: {{type: integer}}
      l_quantity: {{type: number, bounds: [0, 50]}}
      l_extendedprice: {{type: number, bounds: [0, 110000]}}
      l_discount: {{type: number, bounds: [0, 1]}}
      l_tax: {{type: number, bounds: [0, 1]}}
      l_returnflag: {{type: text, keys: [A, N, R]}}
      l_linestatus: {{type: text, keys: [F, O]}}
      l_shipdate: {{type: date}}
  supplier:
    source: {{file: tpch.duckdb, table: supplier}}
    public: true
    key: s_suppkey
    references: {{s_nationkey: nation.n_nationkey}}
    columns: {{s_suppkey: {{type: integer}}, s_nationkey: {{type: integer}}}}
  nation:
    source: {{file: tpch.duckdb, table: nation}}
    public: true
    key: n_nationkey
    references: {{n_regionkey: region.r_regionkey}}
    columns:
      n_nationkey: {{type: integer}}
      n_name: {{type: text, keys: [{_NATIONS}]}}
      n_regionkey: {{type: integer}}
  region:
    source: {{file: tpch.duckdb, table: region}}
    public: true
    key: r_regionkey
    columns: {{r_regionkey: {{type: integer}}, r_name: {{type: text}}}}
"""

RANDOM = """\
version: 2
dataset: random
unit: {table: people, key: id}
tables:
  people:
    source: {file: random.duckdb, table: people}
    key: id
    columns: {id: {type: integer}, income: {type: number, bounds: [0, 500000]}}
  visits:
    source: {file: random.duckdb, table: visits}
    references: {person: people.id}
    contribution: {rows_per_unit: 64, groups_per_unit: 8, rows_per_unit_and_group: 64}
    columns:
      person: {type: integer}
      cost: {type: number, bounds: [0, 10000]}
      paid: {type: number, bounds: [0, 10000], nullable: false}
"""
RANDOM_TABLES = {
    "people": "i AS id, exp(10 + 3 * random()) AS income",
    "visits": "CAST(floor(random() * random() * {units}) AS BIGINT) AS person, exp(3 + 5 * random()) AS cost, "
    "exp(3 + 5 * random()) AS paid",
}

_LINES = "l_returnflag, l_linestatus, l_shipdate"
_NUMBERS = ", ".join(
    f"CAST({name} AS DOUBLE) AS {name}" for name in ("l_quantity", "l_extendedprice", "l_discount", "l_tax")
)
COLUMNS = {
    "customer": "c_custkey, c_nationkey, CAST(c_acctbal AS DOUBLE) AS c_acctbal",
    "orders": "o_orderkey, o_custkey, o_orderdate, CAST(o_totalprice AS DOUBLE) AS o_totalprice",
    "lineitem": f"l_orderkey, l_suppkey, {_NUMBERS}, {_LINES}",
    "supplier": "s_suppkey, s_nationkey",
    "nation": "n_nationkey, n_name, n_regionkey",
    "region": "r_regionkey, r_name",
}

_TENTHS = [f"{tenth / 11:.4f}" for tenth in range(1, 11)]

FORMS: dict[str, tuple[float, str]] = {
    "join on the unit": (
        2.0,
        "SELECT COUNT(*) AS n FROM orders AS a JOIN orders AS b ON a.o_custkey = b.o_custkey "
        "WHERE a.o_totalprice > 300000",
    ),
    "sum over a join on the unit": (
        2.0,
        "SELECT SUM(o_totalprice) AS s FROM orders JOIN customer ON o_custkey = c_custkey WHERE c_acctbal > 0",
    ),
    "Q1": (
        12.0,
        "SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS q, SUM(l_extendedprice) AS p, "
        "SUM(l_extendedprice * (1 - l_discount)) AS d, SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS c, "
        "AVG(l_quantity) AS aq, AVG(l_extendedprice) AS ap, AVG(l_discount) AS ad, COUNT(*) AS n FROM lineitem "
        "WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus",
    ),
    "Q5": (
        1.6,
        "SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue "
        "FROM customer, orders, lineitem, supplier, nation, region "
        "WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey "
        "AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' "
        "AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01' GROUP BY n_name",
    ),
    "Q6": (
        2.8,
        "SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= DATE '1994-01-01' "
        "AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    ),
    "median, one row per unit": (0.7, "SELECT QUANTILE_CONT(c_acctbal, 0.5) AS m FROM customer"),
    "median, several rows per unit": (0.7, "SELECT QUANTILE_CONT(l_extendedprice, 0.5) AS m FROM lineitem"),
}
"""Texts, and the ratios that were to be reached."""

MEDIANS: dict[str, tuple[float, str]] = {
    "median of random rows, one per unit": (0.7, "SELECT QUANTILE_CONT(income, 0.5) AS m FROM people"),
    "median of random rows, several per unit": (0.7, "SELECT QUANTILE_CONT(cost, 0.5) AS m FROM visits"),
    "the same, never NULL": (0.7, "SELECT QUANTILE_CONT(paid, 0.5) AS m FROM visits"),
}
"""The same over random rows."""


def milliseconds(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Parameter], runs: int, *, arrays: bool = False
) -> float:
    """Processor time of a statement and of reading its few rows, or arrays; the least of some runs."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        found = connection.execute(sql, list(parameters))
        _ = found.fetchnumpy() if arrays else found.fetchall()
        best = min(best, 1000 * (time.process_time() - start))
    return best


def ours(connection: duckdb.DuckDBPyConnection, sql: str, dataset: Dataset, runs: int) -> float:
    """All statements of a question, one after the other."""
    cores = bound(lift(sql, dataset, {}), power=NormPower.L2)
    statements = [lower(core) for core in cores]
    return sum(milliseconds(connection, one.sql, one.parameters, runs, arrays=True) for one in statements)


def compared(
    snapshot: Path, dataset: Dataset, forms: dict[str, tuple[float, str]], runs: int
) -> dict[str, dict[str, float]]:
    """Each of the forms, ours and plain one after the other."""
    with duckdb.connect(
        str(snapshot), read_only=True, config=private_settings(threads=2, memory_limit_mb=4096)
    ) as private:
        times = {name: ours(private, sql, dataset, runs) for name, (_, sql) in forms.items()}
    found = {}
    with duckdb.connect(str(snapshot), read_only=True, config={"threads": 2}) as plain:
        for name, (target, sql) in forms.items():
            least = milliseconds(plain, sql, (), runs)
            found[name] = {"plain_ms": round(least, 1), "ratio": round(times[name] / least, 2), "target": target}
    return found


def measure(snapshot: Path, dataset: Dataset, runs: int) -> dict[str, object]:
    """Every form of TPC-H."""
    found: dict[str, object] = {**compared(snapshot, dataset, FORMS, runs)}
    private = duckdb.connect(str(snapshot), read_only=True, config=private_settings(threads=2, memory_limit_mb=4096))
    column = "QUANTILE_CONT(l_extendedprice, {}) AS q"
    ten = ours(private, f"SELECT {column.format('[' + ', '.join(_TENTHS) + ']')} FROM lineitem", dataset, runs)
    private.close()
    with duckdb.connect(str(snapshot), read_only=True, config={"threads": 2}) as plain:
        each = sum(milliseconds(plain, f"SELECT {column.format(tenth)} FROM lineitem", (), runs) for tenth in _TENTHS)
    found["ten quantiles of one column"] = {"plain_ms": round(each, 1), "ratio": round(ten / each, 2), "target": 0.3}
    return found


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        (home / "tpch.yaml").write_text(DECLARED)
        with duckdb.connect(str(home / "tpch.duckdb")) as data:
            for table, columns in COLUMNS.items():
                source = options.folder / f"{table}.parquet"
                data.execute(f"CREATE TABLE {table} AS SELECT {columns} FROM read_parquet('{source}')")
        (home / "random.yaml").write_text(RANDOM)
        with duckdb.connect(str(home / "random.duckdb")) as data:
            for table, columns in RANDOM_TABLES.items():
                listed = columns.format(units=options.rows // 10)
                data.execute(f"CREATE TABLE {table} AS SELECT {listed} FROM range({options.rows}) AS t(i)")
        with services_of(home) as services:
            found: dict[str, object] = {}
            for name in ("tpch", "random"):
                attach(services, home / f"{name}.yaml")
                dataset = services.catalogue.get(name)
                assert dataset is not None
                snapshot = next((home / "snapshots").rglob(f"{dataset.data_version}.duckdb"))
                if name == "tpch":
                    found |= measure(snapshot, dataset, options.runs)
                else:
                    found |= compared(snapshot, dataset, MEDIANS, options.runs)
            print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
