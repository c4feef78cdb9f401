"""The first questions of an analyst, nothing declared beside everything: does the truth lie where the answer says?

    python -m benchmarks.questions [--customers 5000] [--lines 100000] [--epsilon 0.3] [--seed 8] [--show]

Makes a shop (customers whose numbers of lines follow Zipf's law, prices with a long tail, missing values), serves it
twice on 127.0.0.1, once as `up` proposes it and once with bounds, keys and dates declared, and asks each question from
an account as large as the one that `up` opens. The truth is the same SQL on DuckDB, over all rows of the files.

A cell holds when the truth lies within its interval of noise, widened by the cut that the answer states
(`provenance.norms`: the share and twice its error). `held_of_kept_rows` compares with the rows that the server keeps:
at most `rows_stored_per_unit` of each customer, which answers state as well. `--show` lists the cells that do not hold,
and refusals. Prints one JSON object: cells, the parts that hold, the median relative error, and groups that were not
shown or are not there.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import httpx

CATEGORIES = [
    "books", "garden", "toys", "grocery", "shoes", "music", "tools", "games", "beauty", "sports", "pets", "office",
]  # fmt: skip
REGIONS = ["north", "south", "east", "west"]
CHANNELS = ["web", "shop", "phone"]
FIRST_DAY = datetime.date(2022, 1, 1)
DAYS = 1096

QUESTIONS = [
    # How many, and of whom.
    "SELECT COUNT(*) AS n FROM lines",
    "SELECT COUNT(*) AS n FROM customers",
    "SELECT COUNT(DISTINCT customer_id) AS n FROM lines",
    "SELECT COUNT(price) AS n FROM lines",
    "SELECT COUNT(*) AS n FROM lines WHERE price > 50",
    "SELECT COUNT(*) AS n FROM lines WHERE discount IS NULL",
    "SELECT COUNT(*) AS n FROM lines WHERE category = 'books' AND channel = 'web'",
    "SELECT COUNT(*) AS n FROM lines WHERE ordered_on >= DATE '2024-01-01'",
    "SELECT COUNT(DISTINCT customer_id) AS n FROM lines WHERE category = 'toys'",
    "SELECT COUNT(*) AS n FROM customers WHERE age BETWEEN 30 AND 39",
    # By one thing.
    "SELECT category, COUNT(*) AS n FROM lines GROUP BY category",
    "SELECT channel, COUNT(*) AS n FROM lines GROUP BY channel",
    "SELECT region, COUNT(*) AS n FROM customers GROUP BY region",
    "SELECT category, COUNT(DISTINCT customer_id) AS n FROM lines GROUP BY category",
    "SELECT channel, COUNT(DISTINCT customer_id) AS n FROM lines GROUP BY channel",
    "SELECT YEAR(ordered_on) AS y, COUNT(*) AS n FROM lines GROUP BY y",
    "SELECT DATE_TRUNC('month', ordered_on) AS m, COUNT(*) AS n FROM lines GROUP BY m ORDER BY m",
    "SELECT DATE_TRUNC('quarter', ordered_on) AS q, COUNT(*) AS n FROM lines GROUP BY q ORDER BY q",
    "SELECT DATE_TRUNC('month', ordered_on) AS m, COUNT(DISTINCT customer_id) AS n FROM lines GROUP BY m ORDER BY m",
    "SELECT YEAR(joined) AS y, COUNT(*) AS n FROM customers GROUP BY y ORDER BY y",
    "SELECT age, COUNT(*) AS n FROM customers GROUP BY age",
    "SELECT age // 10 * 10 AS decade, COUNT(*) AS n FROM customers GROUP BY decade ORDER BY decade",
    "SELECT CASE WHEN price < 10 THEN 'low' WHEN price < 50 THEN 'middle' ELSE 'high' END AS class, COUNT(*) AS n "
    "FROM lines GROUP BY class",
    "SELECT MONTH(ordered_on) AS m, COUNT(*) AS n FROM lines GROUP BY m",
    "SELECT DAYOFWEEK(ordered_on) AS d, COUNT(*) AS n FROM lines GROUP BY d",
    "SELECT discount IS NOT NULL AS given, COUNT(*) AS n FROM lines GROUP BY given",
    # By two things.
    "SELECT DATE_TRUNC('month', ordered_on) AS m, category, COUNT(*) AS n FROM lines GROUP BY m, category",
    "SELECT DATE_TRUNC('month', ordered_on) AS m, channel, COUNT(*) AS n FROM lines GROUP BY m, channel",
    "SELECT category, channel, COUNT(*) AS n FROM lines GROUP BY category, channel",
    "SELECT YEAR(ordered_on) AS y, category, COUNT(DISTINCT customer_id) AS n FROM lines GROUP BY y, category",
    # Sums.
    "SELECT SUM(quantity) AS s FROM lines",
    "SELECT SUM(price) AS s FROM lines",
    "SELECT SUM(price * quantity) AS revenue FROM lines",
    "SELECT SUM(price) AS s FROM lines WHERE category = 'books'",
    "SELECT category, SUM(quantity) AS s FROM lines GROUP BY category",
    "SELECT category, SUM(price) AS s FROM lines GROUP BY category",
    "SELECT channel, SUM(price) AS s FROM lines GROUP BY channel",
    "SELECT DATE_TRUNC('month', ordered_on) AS m, SUM(price) AS s FROM lines GROUP BY m ORDER BY m",
    "SELECT YEAR(ordered_on) AS y, SUM(quantity) AS s FROM lines GROUP BY y ORDER BY y",
    "SELECT SUM(CASE WHEN category = 'books' THEN quantity ELSE 0 END) AS s FROM lines",
    "SELECT SUM(age) AS s FROM customers",
    # Averages and spreads.
    "SELECT AVG(price) AS a FROM lines",
    "SELECT AVG(quantity) AS a FROM lines",
    "SELECT AVG(age) AS a FROM customers",
    "SELECT AVG(discount) AS a FROM lines",
    "SELECT category, AVG(price) AS a FROM lines GROUP BY category",
    "SELECT channel, AVG(price) AS a, COUNT(*) AS n FROM lines GROUP BY channel",
    "SELECT region, AVG(age) AS a FROM customers GROUP BY region",
    "SELECT STDDEV(age) AS s FROM customers",
    "SELECT STDDEV(price) AS s FROM lines",
    "SELECT DATE_TRUNC('month', ordered_on) AS m, AVG(price) AS a FROM lines GROUP BY m",
    # Computed from released numbers.
    "SELECT category, COUNT(*) AS n FROM lines GROUP BY category ORDER BY n DESC LIMIT 5",
    "SELECT category, COUNT(*) AS n FROM lines GROUP BY category HAVING COUNT(*) > 5000",
    "SELECT category, SUM(quantity) AS s FROM lines GROUP BY category ORDER BY s DESC LIMIT 3",
    "SELECT COUNT(*) * 1.0 / COUNT(DISTINCT customer_id) AS per_customer FROM lines",
    "SELECT category, COUNT(*) * 1.0 / COUNT(DISTINCT customer_id) AS per_customer FROM lines GROUP BY category",
    "SELECT channel, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS percent FROM lines GROUP BY channel",
    "SELECT COUNT(*) FILTER (WHERE discount IS NOT NULL) * 1.0 / COUNT(*) AS part FROM lines",
    "SELECT SUM(price) / COUNT(price) AS a FROM lines",
    # Lines with their customers.
    "SELECT c.region, COUNT(*) AS n FROM lines l JOIN customers c ON l.customer_id = c.customer_id GROUP BY c.region",
    "SELECT c.region, SUM(l.quantity) AS s FROM lines l JOIN customers c ON l.customer_id = c.customer_id "
    "GROUP BY c.region",
    "SELECT c.region, AVG(l.price) AS a FROM lines l JOIN customers c USING (customer_id) GROUP BY c.region",
    "SELECT c.region, COUNT(DISTINCT l.customer_id) AS n FROM lines l JOIN customers c USING (customer_id) "
    "WHERE l.category = 'garden' GROUP BY c.region",
    "SELECT COUNT(*) AS n FROM lines l JOIN customers c USING (customer_id) WHERE c.age >= 65",
    "SELECT c.region, l.category, COUNT(*) AS n FROM lines l JOIN customers c USING (customer_id) "
    "GROUP BY c.region, l.category",
    "SELECT AVG(n) AS per_customer FROM (SELECT customer_id, COUNT(*) AS n FROM lines GROUP BY customer_id)",
    "SELECT CASE WHEN n >= 20 THEN 'many' ELSE 'few' END AS class, COUNT(*) AS customers "
    "FROM (SELECT customer_id, COUNT(*) AS n FROM lines GROUP BY customer_id) GROUP BY class",
]

DECLARED = {
    "region": f"keys: [{', '.join(REGIONS)}]",
    "age": "bounds: [0, 110]\n        keys: {range: [0, 110]}",
    "joined": 'bounds: ["2015-01-01", "2021-12-31"]\n        keys: {range: ["2015-01-01", "2021-12-31"]}',
    "ordered_on": 'bounds: ["2022-01-01", "2024-12-31"]\n        keys: {range: ["2022-01-01", "2024-12-31"]}',
    "category": f"keys: [{', '.join(CATEGORIES)}]",
    "channel": f"keys: [{', '.join(CHANNELS)}]",
    "quantity": "bounds: [0, 100]",
    "price": "bounds: [0, 300]",
    "discount": "bounds: [0, 0.3]",
}
"""What an owner who knows the shop could say about its columns."""


def shop(folder: Path, customers: int, lines: int, exponent: float, seed: int) -> Path:
    """A DuckDB file with the tables `customers` and `lines`, the same in each run with that seed."""
    draw = random.Random(seed)
    with (folder / "customers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["customer_id", "region", "age", "joined"])
        for number in range(1, customers + 1):
            region = draw.choices([*REGIONS, None], [4, 3, 2, 2, 0.4])[0]
            joined = datetime.date(2015, 1, 1) + datetime.timedelta(draw.randrange(7 * 365))
            writer.writerow([number, region, draw.choice([None, *range(18, 90)]), joined])
    weights = [rank**-exponent for rank in range(1, customers + 1)]
    with (folder / "lines.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["line_id", "customer_id", "ordered_on", "category", "quantity", "price", "discount", "channel"]
        )
        for number, unit in enumerate(draw.choices(range(1, customers + 1), weights, k=lines), start=1):
            day = FIRST_DAY + datetime.timedelta(int(DAYS * draw.random() ** 0.9))
            category = draw.choices(CATEGORIES, [(rank + 1) ** -0.7 for rank in range(len(CATEGORIES))])[0]
            writer.writerow([
                number, unit, day, category if draw.random() > 0.01 else None, min(500, int(draw.paretovariate(1.5))),
                round(math.exp(draw.gauss(2.5, 1.1)), 2) if draw.random() > 0.02 else None,
                round(draw.random() * 0.3, 2) if draw.random() < 0.3 else None, draw.choice(CHANNELS),
            ])  # fmt: skip
    path = folder / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE customers (customer_id BIGINT PRIMARY KEY, region VARCHAR, age INTEGER, joined DATE)"
        )
        connection.execute(
            "CREATE TABLE lines (line_id BIGINT PRIMARY KEY, customer_id BIGINT REFERENCES customers(customer_id), "
            "ordered_on DATE, category VARCHAR, quantity INTEGER, price DOUBLE, discount DOUBLE, channel VARCHAR)"
        )
        for table in ("customers", "lines"):
            connection.execute(f"INSERT INTO {table} SELECT * FROM read_csv('{folder / (table + '.csv')}')")
    return path


def declared(proposal: str) -> str:
    """The proposed dataset file with everything declared that it asks for."""
    lines, column = [], ""
    for line in proposal.splitlines():
        name = line.strip().removesuffix(":")
        if line.startswith("      ") and not line.startswith("       ") and name in DECLARED:
            column = name
        lines.append(line)
        if column and line.strip().startswith("type:"):
            lines.append(f"        {DECLARED[column]}")
            column = ""
    return "\n".join(lines) + "\n"


Key = tuple[Any, ...]


@dataclass
class Tally:
    """What the cells of one way of declaring came to."""

    cells: int = 0
    held: int = 0
    held_of_kept: int = 0
    by_noise: int = 0
    without_interval: int = 0
    errors: list[float] = field(default_factory=list)
    hidden: int = 0
    not_there: int = 0
    refused: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """For the printed object."""
        return {
            "answered": len(self.seconds),
            "refused": len(self.refused),
            "cells": self.cells,
            "held": round(self.held / max(1, self.cells), 4),
            "held_of_kept_rows": round(self.held_of_kept / max(1, self.cells), 4),
            "held_by_the_noise_alone": round(self.by_noise / max(1, self.cells), 4),
            "median_relative_error": round(statistics.median(self.errors), 4) if self.errors else None,
            "cells_without_interval": self.without_interval,
            "groups_not_shown": self.hidden,
            "groups_that_are_not_there": self.not_there,
            "median_seconds": round(statistics.median(self.seconds), 3) if self.seconds else None,
        }


class Asking:
    """One server with as many copies of the dataset as the questions need accounts."""

    def __init__(self, ready: dict[str, Any], home: Path) -> None:
        self._admin = httpx.Client(
            base_url=ready["url"], headers={"Authorization": f"Bearer {ready['admin_key']}"}, timeout=120
        )
        self._analyst = httpx.Client(
            base_url=ready["url"], headers={"Authorization": f"Bearer {ready['analyst_key']}"}, timeout=120
        )
        self._home = home
        self._copies: dict[str, int] = {}
        self._left: dict[str, float] = {}

    def dataset(self, name: str, text: str, epsilon: float) -> str:
        """A copy of the dataset whose account, like the one of `up`, can pay for the next question."""
        copy = self._copies.get(name, -1)
        if copy < 0 or self._left[name] < epsilon:
            copy += 1
            self._copies[name], self._left[name] = copy, 10.0
            path = self._home / f"{name}_{copy}.yaml"
            path.write_text(text.replace("\ndataset: shop\n", f"\ndataset: {name}_{copy}\n"))
            command = [sys.executable, "-m", "server.cli", "dataset", "add", str(path), "--home", str(self._home)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stdout + done.stderr)
            self._open(f"{name}_{copy}")
        self._left[name] -= epsilon
        return f"{name}_{copy}"

    def _open(self, dataset: str) -> None:
        limits: list[dict[str, Any]] = [
            {"limit": {"epsilon": "20", "delta": "0.00001"}},
            {"limit": {"epsilon": "10", "delta": "0.000001"}, "principal": "analyst"},
        ]
        parent = None
        for limit in limits:
            body = {"dataset": dataset, "filter": "approximate", **limit}
            answer = self._admin.post("/v1/budgets", json=body if parent is None else {**body, "parent": parent})
            answer.raise_for_status()
            parent = answer.json()["id"]
        for _ in range(50):  # a running server notices within about a second
            if self._analyst.get(f"/v1/datasets/{dataset}").status_code == 200:
                return
            time.sleep(0.1)
        raise SystemExit(f"the server does not serve {dataset}")

    def ask(self, dataset: str, sql: str, epsilon: float) -> tuple[dict[str, Any], float]:
        """The answer or the problem, and how long it took."""
        start = time.perf_counter()
        answer = self._analyst.post(
            "/v1/queries",
            json={"dataset": dataset, "sql": sql, "spend": {"epsilon": str(epsilon)}, "wait_ms": 30000},
        )
        body: dict[str, Any] = answer.json()
        return body, time.perf_counter() - start


def truth_of(sql: str, data: duckdb.DuckDBPyConnection, keys: list[int]) -> dict[Key, tuple[Any, ...]]:
    """The true rows by their keys."""
    return {tuple(as_wire(row[place]) for place in keys): row for row in data.execute(unlimited(sql)).fetchall()}


def value_of(truth: dict[Key, tuple[Any, ...]], key: Key, place: int) -> float:
    """A true number; 0 of a group that is not there."""
    return float(truth[key][place] or 0) if key in truth else 0.0


def compare(
    sql: str, answer: dict[str, Any], data: duckdb.DuckDBPyConnection, kept: duckdb.DuckDBPyConnection, tally: Tally
) -> Iterator[str]:
    """Counts every cell of the answer, and says of which the truth is elsewhere."""
    columns = answer["columns"]
    keys = [place for place, column in enumerate(columns) if column["kind"] == "key"]
    truth, truth_kept = truth_of(sql, data, keys), truth_of(sql, kept, keys)
    shown = set()
    stated = cut(answer)
    for row, lows, highs in zip(answer["rows"], answer["lows"], answer["highs"], strict=True):
        key = tuple(as_wire(row[place]) for place in keys)
        shown.add(key)
        if key not in truth:
            tally.not_there += not any(row[place] == 0 for place in range(len(row)) if place not in keys)
        for place, column in enumerate(columns):
            if place in keys:
                continue
            true, true_kept = value_of(truth, key, place), value_of(truth_kept, key, place)
            if row[place] is None or lows[place] is None:
                tally.without_interval += 1
                continue
            low, high = float(lows[place]), float(highs[place])
            tally.cells += 1
            tally.by_noise += low <= true <= high
            held = within(true, low, high, stated)
            tally.held_of_kept += within(true_kept, low, high, stated)
            tally.held += held
            if true:
                tally.errors.append(abs(float(row[place]) - true) / abs(true))
            if not held:
                interval = f"{row[place]} in [{lows[place]}, {highs[place]}], cut {stated:.1%}"
                yield f"{column['name']} of {key or 'all'}: {interval}, true {true:g}, of the kept rows {true_kept:g}"
    if unlimited(sql) == sql:
        tally.hidden += len(set(truth) - shown)


def within(true: float, low: float, high: float, stated: float) -> bool:
    """Whether the interval, widened by the stated part of the truth, holds it."""
    return low - stated * abs(true) <= true <= high + stated * abs(true)


def unlimited(sql: str) -> str:
    """The question before its HAVING, ORDER BY and LIMIT chose rows by noisy numbers."""
    return sql.split(" HAVING ")[0].split(" ORDER BY ")[0]


def cut(answer: dict[str, Any]) -> float:
    """The part of the whole that the answer says its norms cut, with twice its error."""
    said = [chosen["cut"] for chosen in answer["provenance"].get("norms") or [] if chosen.get("cut") is not None]
    return sum((one["share"] or 0.0) + 2 * (one["error"] or 0.0) for one in said)


def as_wire(value: Any) -> Any:
    """A key of DuckDB and one of the answer, in one form."""
    if isinstance(value, datetime.date | datetime.datetime):
        value = value.isoformat()
    return value[:10] if isinstance(value, str) and value[4:5] == "-" else value


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--customers", type=int, default=5000)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--exponent", type=float, default=0.8, help="of Zipf's law")
    parser.add_argument("--epsilon", type=float, default=0.3, help="of an account of 10")
    parser.add_argument("--seed", type=int, default=8, help="of the shop")
    parser.add_argument("--show", action="store_true", help="cells that do not hold, and refusals")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        data = shop(Path(folder), options.customers, options.lines, options.exponent, options.seed)
        server = subprocess.Popen(
            [
                sys.executable, "-m", "server.cli", "up", "--home", str(home), "--port", "0", "--json",
                "--data", str(data), "--unit", "customer_id",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
        try:
            assert server.stdout is not None
            ready = json.loads(server.stdout.readline())
            proposal = (home / "datasets" / "shop.yaml").read_text()
            asking = Asking(ready, home)
            plain = duckdb.connect(str(data), read_only=True)
            figures = {
                name: measure(asking, name, text, (plain, home), options).figures()
                for name, text in (("nothing", proposal), ("declared", declared(proposal)))
            }
            print(json.dumps(figures, indent=2))
        finally:
            server.terminate()
            server.wait(timeout=30)


def measure(
    asking: Asking, name: str, text: str, data: tuple[duckdb.DuckDBPyConnection, Path], options: argparse.Namespace
) -> Tally:
    """The tally of all questions to one way of declaring."""
    tally = Tally()
    plain, home = data
    kept = duckdb.connect()
    for sql in QUESTIONS:
        dataset = asking.dataset(name, text, options.epsilon)
        if not tally.seconds and not tally.refused:  # every copy keeps as many rows
            snapshot = next((home / "snapshots" / dataset).glob("*.duckdb"))
            kept = duckdb.connect(str(snapshot), read_only=True)
        answer, seconds = asking.ask(dataset, sql, options.epsilon)
        if "rows" not in answer:
            tally.refused.append(sql)
            missed = [f"refused, {answer.get('code')}: {answer.get('detail')}"]
        else:
            tally.seconds.append(seconds)
            missed = list(compare(sql, answer, plain, kept, tally))
        if options.show and missed:
            print(f"{name}: {sql}", *(f"    {line}" for line in missed[:8]), sep="\n", file=sys.stderr)
            if len(missed) > 8:
                print(f"    and {len(missed) - 8} more", file=sys.stderr)
            for warning in answer.get("warnings") or []:
                print(f"    warned: {warning['what']}", file=sys.stderr)
    return tally


if __name__ == "__main__":
    main()
