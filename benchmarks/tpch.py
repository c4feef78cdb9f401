"""The six joins of TPC-H with one private table, beside the errors that R2T published.

    python -m benchmarks.tpch FOLDER [--epsilon 0.8 ...] [--runs 10] [--question Q3 ...]

FOLDER has customer, orders, lineitem, supplier and partsupp of scale 1 (`tpchgen-cli parquet -s 1`). The privacy unit
is the customer, the supplier or the order, as in R2T; noise is Laplace, from accounts of pure differential privacy; the
histogram that chooses the norm is part of the epsilon, as the choice of a threshold is for R2T. Error as R2T reports
it: the mean of the absolute errors of ten answers without the two best and the two worst.

Published: Dong, Fang, Yi, Tao and Machanavajjhala, "R2T: Instance-optimal Truncation for Differentially Private Query
Evaluation with Foreign Keys", SIGMOD 2022: the result files of the artifact (hkustDB/Race-to-the-Top, commit b725d6f),
with a global sensitivity of 10^6. Nothing is declared here but the bounds of the two columns that Q11 multiplies, as
TPC-H specifies them. Q12 counts the line items of orders; Q20 those of suppliers: its joins to partsupp, nation and
supplier keep every one. Q3 counts 2,888,656 line items by a filter that is not in the artifact's index; here it counts
those ordered before 1995-03-15. Prints one JSON object, with the geometric mean of the ratios of errors.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from accountant.account import FilterKind
from server.services import Services
from tests.journey.clinic import attach, open_account, question, services_of, told

_CUSTOMERS = """\
unit: {table: customer, key: c_custkey}
tables:
  customer: {source: {file: tpch.duckdb, table: customer}, key: c_custkey, columns: {c_custkey: {type: integer}}}
  orders:
    source: {file: tpch.duckdb, table: orders}
    key: o_orderkey
    references: {o_custkey: customer.c_custkey}
    contribution: auto
    columns: {o_orderkey: {type: integer}, o_custkey: {type: integer}, o_orderdate: {type: date}}
  lineitem:
    source: {file: tpch.duckdb, table: lineitem}
    references: {l_orderkey: orders.o_orderkey}
    contribution: auto
    columns: {l_orderkey: {type: integer}, l_quantity: {type: integer}}
"""

_SUPPLIERS = """\
unit: {table: supplier, key: s_suppkey}
tables:
  supplier: {source: {file: tpch.duckdb, table: supplier}, key: s_suppkey, columns: {s_suppkey: {type: integer}}}
  partsupp:
    source: {file: tpch.duckdb, table: partsupp}
    references: {ps_suppkey: supplier.s_suppkey}
    contribution: auto
    columns:
      ps_suppkey: {type: integer}
      ps_supplycost: {type: number, bounds: [1, 1000]}
      ps_availqty: {type: integer, bounds: [1, 9999]}
  lineitem:
    source: {file: tpch.duckdb, table: lineitem}
    references: {l_suppkey: supplier.s_suppkey}
    contribution: auto
    columns: {l_suppkey: {type: integer}}
"""

_ORDERS = """\
unit: {table: orders, key: o_orderkey}
tables:
  orders: {source: {file: tpch.duckdb, table: orders}, key: o_orderkey, columns: {o_orderkey: {type: integer}}}
  lineitem:
    source: {file: tpch.duckdb, table: lineitem}
    references: {l_orderkey: orders.o_orderkey}
    contribution: auto
    columns: {l_orderkey: {type: integer}}
"""

COLUMNS = {
    "customer": "c_custkey",
    "orders": "o_orderkey, o_custkey, o_orderdate",
    "lineitem": "l_orderkey, l_suppkey, CAST(l_quantity AS BIGINT) AS l_quantity",
    "supplier": "s_suppkey",
    "partsupp": "ps_suppkey, CAST(ps_supplycost AS DOUBLE) AS ps_supplycost, ps_availqty",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: the tables and their unit, its text, what R2T counted, and R2T's errors by epsilon."""

    tables: str
    sql: str
    truth_of_r2t: float
    published: dict[str, float]


_EPSILONS = ("0.1", "0.2", "0.4", "0.8", "1.6", "3.2", "6.4")


def _published(*errors: float) -> dict[str, float]:
    return dict(zip(_EPSILONS, errors, strict=True))


QUESTIONS = {
    "Q3": Asked(
        _CUSTOMERS,
        "SELECT COUNT(*) AS n FROM lineitem JOIN orders ON l_orderkey = o_orderkey "
        "WHERE o_orderdate < DATE '1995-03-15'",
        2_888_656,
        _published(65753.4, 32649.8, 14337.8, 7338.6, 2745.9, 1983.2, 840.6),
    ),
    "Q10": Asked(
        _CUSTOMERS,
        "SELECT COUNT(*) AS n FROM orders",
        1_500_000,
        _published(10590.6, 6656.0, 3732.3, 2615.5, 2016.4, 1655.2, 891.3),
    ),
    "Q11": Asked(
        _SUPPLIERS,
        "SELECT SUM(ps_supplycost * ps_availqty / 1000000) AS n FROM partsupp",
        2_003_609.41,
        _published(298203.2, 150764.4, 58406.1, 36438.3, 18311.1, 10917.2, 5157.7),
    ),
    "Q12": Asked(
        _ORDERS,
        "SELECT COUNT(*) AS n FROM orders JOIN lineitem ON o_orderkey = l_orderkey",
        6_001_215,
        _published(12247.2, 5459.6, 2403.0, 1373.0, 623.9, 245.9, 182.0),
    ),
    "Q18": Asked(
        _CUSTOMERS,
        "SELECT SUM(l_quantity) AS n FROM lineitem",
        153_078_795,
        _published(1336230.4, 763048.0, 432793.7, 201957.5, 99594.7, 47680.7, 22290.2),
    ),
    "Q20": Asked(
        _SUPPLIERS,
        "SELECT COUNT(*) AS n FROM supplier JOIN lineitem ON s_suppkey = l_suppkey",
        6_001_215,
        _published(299765.9, 139533.3, 73398.1, 34725.6, 20303.2, 8503.4, 3846.3),
    ),
}
"""The joins, with the errors in the artifact's Result/TPCH."""


def trimmed(errors: Sequence[float]) -> float:
    """The mean without the two least and the two greatest of ten, or as many of more."""
    aside = len(errors) // 5
    kept = sorted(errors)[aside : len(errors) - aside]
    return sum(kept) / len(kept)


def measure(services: Services, asked: Asked, truth: float, *, epsilon: str, runs: int, name: str) -> dict[str, Any]:
    """The errors of one question at one epsilon."""
    errors, norms, seconds = [], [], []
    for run in range(runs):
        who = f"{name}_{epsilon}_{run}"
        open_account(services.ledger, who, dataset="tpch", epsilon="10", kind=FilterKind.PURE)
        start = time.perf_counter()
        answer = json.loads(told(services.journey, question(asked.sql, who, dataset="tpch", epsilon=epsilon)))
        seconds.append(time.perf_counter() - start)
        errors.append(abs(answer["rows"][0][0] - truth))
        norms.append(float(answer["provenance"]["norms"][0]["norm"]))
    error, published = trimmed(errors), asked.published.get(epsilon)
    found = {
        "error": round(error, 1),
        "relative": float(f"{error / truth:.3g}"),
        "r2t": published,
        "r2t_relative": None if published is None else float(f"{published / asked.truth_of_r2t:.3g}"),
        "median_norm": sorted(norms)[len(norms) // 2],
        "median_seconds": round(sorted(seconds)[len(seconds) // 2], 2),
    }
    if published is not None:
        found["ratio"] = round(published / asked.truth_of_r2t / (error / truth), 1)
    return found


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epsilon", nargs="+", default=["0.1", "0.8", "6.4"])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--question", nargs="+", default=list(QUESTIONS), choices=list(QUESTIONS))
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for tables in dict.fromkeys(QUESTIONS[name].tables for name in options.question):
        with tempfile.TemporaryDirectory() as place:
            home = Path(place)
            (home / "tpch.yaml").write_text(f'version: 2\ndataset: tpch\n{tables}policy: {{epsilon_max: "100"}}\n')
            names = [name for name in options.question if QUESTIONS[name].tables == tables]
            with duckdb.connect(str(home / "tpch.duckdb")) as data:
                for table, columns in COLUMNS.items():
                    if f"table: {table}}}" in tables:
                        source = options.folder / f"{table}.parquet"
                        data.execute(f"CREATE TABLE {table} AS SELECT {columns} FROM read_parquet('{source}')")
                truths = {name: float(data.execute(QUESTIONS[name].sql).fetchall()[0][0]) for name in names}
            with services_of(home) as services:
                attach(services, home / "tpch.yaml")
                for name in names:
                    found[name] = {"truth": truths[name]}
                    for epsilon in options.epsilon:
                        found[name][epsilon] = measure(
                            services, QUESTIONS[name], truths[name], epsilon=epsilon, runs=options.runs, name=name
                        )
    ratios = [cell["ratio"] for each in found.values() for cell in each.values() if isinstance(cell, dict)]
    found["ratio_geometric_mean"] = round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 1)
    found["ratio_least"] = min(ratios)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
