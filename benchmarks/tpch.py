"""One-hop counts and sums of TPC-H with nothing declared, beside the errors that R2T published.

    python -m benchmarks.tpch FOLDER [--epsilon 0.8 ...] [--runs 10]

FOLDER has customer.parquet, orders.parquet and lineitem.parquet of scale 1 (`tpchgen-cli parquet -s 1`). The privacy
unit is the customer; noise is Laplace, from accounts of pure differential privacy; the histogram that chooses the norm
is part of the epsilon, as the choice of a threshold is for R2T. Error as R2T reports it: the mean of the absolute
errors of ten answers without the two best and the two worst.

Published: Dong, Fang, Yi, Tao and Machanavajjhala, "R2T: Instance-optimal Truncation for Differentially Private Query
Evaluation with Foreign Keys", SIGMOD 2022: the result files of the artifact (hkustDB/Race-to-the-Top, commit b725d6f),
with a global sensitivity of 10^6. Its Q10 and Q18 are here as they are. Its Q3 counts 2,888,656 line items by a filter
that is not in the artifact's index; here it counts those ordered before 1995-03-15. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from accountant.account import FilterKind
from server.services import Services
from tests.journey.clinic import attach, open_account, question, services_of, told

DATASET = """\
version: 2
dataset: tpch
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
policy: {epsilon_max: "100"}
"""

COLUMNS = {
    "customer": "c_custkey",
    "orders": "o_orderkey, o_custkey, o_orderdate",
    "lineitem": "l_orderkey, CAST(l_quantity AS BIGINT) AS l_quantity",
}

QUESTIONS = {
    "Q3": "SELECT COUNT(*) AS n FROM lineitem JOIN orders ON l_orderkey = o_orderkey "
    "WHERE o_orderdate < DATE '1995-03-15'",
    "Q10": "SELECT COUNT(*) AS n FROM orders",
    "Q18": "SELECT SUM(l_quantity) AS n FROM lineitem",
}

PUBLISHED = {
    "Q3": {"0.1": 65753.4, "0.2": 32649.8, "0.4": 14337.8, "0.8": 7338.6, "1.6": 2745.9, "3.2": 1983.2, "6.4": 840.6},
    "Q10": {"0.1": 10590.6, "0.2": 6656.0, "0.4": 3732.3, "0.8": 2615.5, "1.6": 2016.4, "3.2": 1655.2, "6.4": 891.3},
    "Q18": {
        "0.1": 1336230.4, "0.2": 763048.0, "0.4": 432793.7, "0.8": 201957.5, "1.6": 99594.7, "3.2": 47680.7,
        "6.4": 22290.2,
    },
}  # fmt: skip
"""The errors in the artifact's Result/TPCH, by epsilon."""

TRUTH_OF_R2T = {"Q3": 2_888_656, "Q10": 1_500_000, "Q18": 153_078_795}


def trimmed(errors: Sequence[float]) -> float:
    """The mean without the two least and the two greatest of ten, or as many of more."""
    aside = len(errors) // 5
    kept = sorted(errors)[aside : len(errors) - aside]
    return sum(kept) / len(kept)


def measure(services: Services, sql: str, truth: float, *, epsilon: str, runs: int, name: str) -> dict[str, Any]:
    """The errors of one question at one epsilon."""
    errors, norms, seconds = [], [], []
    for run in range(runs):
        who = f"{name}_{epsilon}_{run}"
        open_account(services.ledger, who, dataset="tpch", epsilon="10", kind=FilterKind.PURE)
        start = time.perf_counter()
        answer = json.loads(told(services.journey, question(sql, who, dataset="tpch", epsilon=epsilon)))
        seconds.append(time.perf_counter() - start)
        errors.append(abs(answer["rows"][0][0] - truth))
        norms.append(float(answer["provenance"]["norms"][0]["norm"]))
    error, published = trimmed(errors), PUBLISHED[name].get(epsilon)
    return {
        "error": round(error, 1),
        "relative": float(f"{error / truth:.3g}"),
        "r2t": published,
        "r2t_relative": None if published is None else float(f"{published / TRUTH_OF_R2T[name]:.3g}"),
        "median_norm": sorted(norms)[len(norms) // 2],
        "median_seconds": round(sorted(seconds)[len(seconds) // 2], 2),
    }


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epsilon", nargs="+", default=["0.1", "0.8", "6.4"])
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        (home / "tpch.yaml").write_text(DATASET)
        found: dict[str, Any] = {}
        with duckdb.connect(str(home / "tpch.duckdb")) as data:
            for table, columns in COLUMNS.items():
                source = options.folder / f"{table}.parquet"
                data.execute(f"CREATE TABLE {table} AS SELECT {columns} FROM read_parquet('{source}')")
            truths = {name: float(data.execute(sql).fetchall()[0][0]) for name, sql in QUESTIONS.items()}
        with services_of(home) as services:
            attach(services, home / "tpch.yaml")
            for name, sql in QUESTIONS.items():
                found[name] = {"truth": truths[name]}
                for epsilon in options.epsilon:
                    found[name][epsilon] = measure(
                        services, sql, truths[name], epsilon=epsilon, runs=options.runs, name=name
                    )
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
