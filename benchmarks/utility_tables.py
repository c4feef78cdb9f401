"""The tables, questions and true answers of `benchmarks.utility`.

Each table becomes a CSV file of the same columns: person, v (a number with bounds), k (a key whose groups are public),
h (a key whose groups are not) and r (a whole number from 0 to 99), with at most so many rows of one person.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

PLACES = 100
"""Values of r."""

Cell = tuple[int, str, str]
"""Which query of a question, which statistic, which group."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of which everybody knows the same."""

    name: str
    file: Path
    bounds: tuple[int, int]
    rows: int
    """The most rows of one person."""
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """One query: statistics of v, by a column or none, of rows with r in a range."""

    statistics: tuple[str, ...]
    by: str | None = None
    where: tuple[int, int] | None = None

    def sql(self) -> str:
        """The query, as this server and DuckDB read it."""
        columns = [SQL[one] for one in self.statistics]
        where = "" if self.where is None else f" WHERE r BETWEEN {self.where[0]} AND {self.where[1]}"
        if self.by is None:
            return f"SELECT {', '.join(columns)} FROM t{where}"
        return f"SELECT {', '.join([self.by, *columns])} FROM t{where} GROUP BY {self.by}"


SQL = {"count": "COUNT(*)", "sum": "SUM(v)", "avg": "AVG(v)", "var": "VAR_POP(v)", "std": "STDDEV_POP(v)"}


@dataclass(frozen=True, slots=True)
class Question:
    """What an analyst wants for one price."""

    name: str
    queries: tuple[Query, ...]
    times: int = 1
    """How often it is refreshed."""
    together: bool = False
    """Whether all its counts are asked here in one SELECT, one FILTER each."""


RANGES = (
    (0, 9),
    (5, 19),
    (10, 39),
    (15, 29),
    (20, 59),
    (30, 44),
    (35, 74),
    (40, 49),
    (45, 89),
    (50, 99),
    (60, 64),
    (0, 74),
)

QUESTIONS = (
    *(Question(SQL[one], (Query((one,)),)) for one in SQL),
    Question("COUNT under a condition", (Query(("count",), where=(20, 59)),)),
    Question("all five at once", (Query(tuple(SQL)),)),
    Question("COUNT by public keys", (Query(("count",), "k"),)),
    Question("AVG by public keys", (Query(("avg",), "k"),)),
    Question("COUNT by hidden keys", (Query(("count",), "h"),)),
    Question("AVG by hidden keys", (Query(("avg",), "h"),)),
    Question("histogram of 100 cells", (Query(("count",), "r"),)),
    Question("twelve ranges", tuple(Query(("count",), where=where) for where in RANGES), together=True),
    Question(
        "dashboard of twelve tiles, three times",
        (
            *(Query(("count",), "k", where) for where in (None, *RANGES[2:5])),
            *(Query(("count",), where=where) for where in RANGES[4:]),
        ),
        times=3,
    ),
)  # fmt: skip


def adult(source: Path, folder: Path) -> Table:
    """UCI Adult, one row of each person: age, years of education, education, hours a week."""
    with source.open(newline="") as file:
        rows = [
            (row["person_id"], row["age"], row["education_num"], row["education"], row["hours_per_week"])
            for row in csv.DictReader(file)
        ]
    return _written(folder, "adult", rows, (0, 100), 1, tuple(str(years) for years in range(1, 17)))


def orders(source: Path, folder: Path, customers: int) -> Table:
    """Orders of TPC-H's first customers: price in whole dollars, priority, month, and the month's number."""
    month = "CAST(date_diff('month', DATE '1992-01-01', o_orderdate) AS INTEGER)"
    rows = (
        duckdb.connect()
        .execute(
            f"SELECT o_custkey, CAST(floor(o_totalprice) AS INTEGER), o_orderpriority, "
            f"strftime(o_orderdate, '%Y-%m'), {month} FROM read_parquet('{source / 'orders.parquet'}') "
            f"WHERE o_custkey <= {customers} ORDER BY o_orderkey"
        )
        .fetchall()
    )
    keys = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
    return _written(folder, "orders", rows, (0, 600_000), 41, keys)


def heavy(folder: Path, people: int) -> Table:
    """Made up: numbers of rows by a power law up to 20, amounts with a Pareto tail, towns by Zipf's law."""
    draw = np.random.Generator(np.random.PCG64(5))
    counts = np.minimum(20, np.floor(draw.pareto(1.2, people) + 1)).astype(int)
    rows = []
    for person, count in enumerate(counts.tolist()):
        amounts = np.minimum(1000, np.floor(10 * (draw.pareto(1.3, count) + 1))).astype(int).tolist()
        towns = np.minimum(79, np.floor(draw.pareto(0.7, count))).astype(int).tolist()
        places = np.minimum(PLACES - 1, np.floor(draw.exponential(20, count))).astype(int).tolist()
        kinds = draw.integers(0, 12, count).tolist()
        rows += [
            (person, amount, f"kind{kind:02}", f"town{town:02}", place)
            for amount, kind, town, place in zip(amounts, kinds, towns, places, strict=True)
        ]
    return _written(folder, "heavy", rows, (0, 1000), 20, tuple(f"kind{kind:02}" for kind in range(12)))


def _written(
    folder: Path,
    name: str,
    rows: Sequence[tuple[object, ...]],
    bounds: tuple[int, int],
    most: int,
    keys: tuple[str, ...],
) -> Table:
    file = folder / f"{name}.csv"
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["person", "v", "k", "h", "r"])
        writer.writerows(rows)
    return Table(name, file, bounds, most, keys)


def dataset_file(table: Table) -> Path:
    """The dataset file that says of a table what everybody knows of it."""
    one = table.rows == 1
    # A person has at most so many rows, so they are in at most so many groups, and have at most so many in one.
    counts = ("rows_per_unit", "groups_per_unit", "rows_per_unit_and_group")
    bounds = ", ".join(f"{count}: {table.rows}" for count in counts)
    path = table.file.with_suffix(".yaml")
    path.write_text(f"""\
version: 2
dataset: {table.name}
unit: {{table: t, key: person}}
tables:
  t:
    source: {{file: {table.file.name}}}
    {"key: person" if one else f"contribution: {{{bounds}}}"}
    columns:
      person: {{type: integer, nullable: false}}
      v: {{type: integer, bounds: [{table.bounds[0]}, {table.bounds[1]}], nullable: false}}
      k: {{type: text, keys: [{", ".join(f'"{key}"' for key in table.keys)}], nullable: false}}
      h: {{type: text, nullable: false}}
      r: {{type: integer, keys: {{range: [0, {PLACES - 1}]}}, nullable: false}}
policy: {{epsilon_max: "100", delta_per_query: "1.5e-7"}}
""")
    return path


def truth_of(table: Table, question: Question) -> Mapping[Cell, float]:
    """The true numbers, of all public groups and of the hidden ones that are there."""
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS SELECT * FROM read_csv('{table.file}', types={{'k': 'VARCHAR'}})")
    found: dict[Cell, float] = {}
    for place, query in enumerate(question.queries):
        if query.statistics == ("count",):
            found.update({(place, "count", group): 0.0 for group in groups_of(table, query) or ()})
        for row in connection.execute(query.sql()).fetchall():
            group, numbers = ("", row) if query.by is None else (str(row[0]), row[1:])
            found.update({(place, name, group): float(n) for name, n in zip(query.statistics, numbers, strict=True)})
    return found


def groups_of(table: Table, query: Query) -> list[str] | None:
    """The groups that everybody knows; none where there is no key or it is hidden."""
    return {"k": list(table.keys), "r": [str(place) for place in range(PLACES)]}.get(query.by or "")


def unasked(table: Table, name: str) -> float:
    """What a number is taken for that an answer does not show: nothing, or the middle of the bounds for averages."""
    return sum(table.bounds) / 2 if name == "avg" else 0.0
