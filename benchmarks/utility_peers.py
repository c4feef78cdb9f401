"""Answers of another library to the questions of `benchmarks.utility`: run by that library's own interpreter.

Reads one JSON object on standard input and prints one. Without "peer": the versions of the peers that this interpreter
has. Else a task: a CSV file with the columns v (a whole number within `bounds`), k, h and r, the greatest number of
`rows` of a person, a total `epsilon` and `delta`, how many questions of this price share it (`of`), how often this one
is refreshed (`times`), and its `queries`: statistics by a column or none, with the groups or hidden ones, in a range.

The file is put side by side `copies` times, of different people each: so one evaluation draws the noise of a question
that often, at the same scale. Evaluates until so many `seconds` or draws (`most`). Prints {"draws": [[[query,
statistic, group, number], ...], ...]}, or {"refused": why}. Only public interfaces of the libraries are used; of their
kinds of noise the one with less error for so many questions is taken. Needs nothing of this project.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import math
import os
import sys
import time
import warnings
from typing import Any

MOST_ROWS = 10_000_000
"""More rows than there are, said where a library asks for that."""

Cell = tuple[int, str, str, float]
Draws = dict[int, list[Cell]]
"""The numbers of one evaluation by copy."""


class Refused(Exception):
    """A library has no way to answer this."""


def rho_of(epsilon: float, delta: float) -> float:
    """The most zero-concentrated loss that implies (epsilon, delta) (Canonne, Kamath and Steinke 2020, Cor. 13)."""

    def delta_of(rho: float) -> float:
        best = 1.0
        for step in range(1, 4000):
            alpha = 1 + 10 ** (-3 + step / 500)
            power = (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha)
            best = min(best, math.exp(min(power, 0)) / (alpha - 1))
        return best

    low, high = 1e-9, 1e3
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if delta_of(middle) <= delta else (low, middle)
    return low


def gaussian(task: dict[str, Any], shares: int, delta: float) -> bool:
    """Whether Gaussian noise under concentrated accounting has less error than Laplace noise, for so many releases."""
    epsilon = float(task["epsilon"])
    return math.sqrt(shares / (2 * rho_of(epsilon, delta))) < math.sqrt(2) * shares / epsilon


def side_by_side(task: dict[str, Any]) -> Any:
    """The table with all copies, as a pandas frame."""
    pandas = importlib.import_module("pandas")
    frame = pandas.read_csv(task["file"], dtype={"k": str, "h": str})
    frame["person"] += 1
    people = int(frame["person"].max())
    copies = [frame.assign(copy=place, person=frame["person"] + place * people) for place in range(task["copies"])]
    return pandas.concat(copies, ignore_index=True)


def releases(query: dict[str, Any]) -> int:
    """How many sums a query takes where a library has no statistic of its own for it."""
    return {"count": 1, "sum": 1, "avg": 2}.get(query["statistics"][0], 3) if len(query["statistics"]) == 1 else 3


class SmartNoise:
    """SmartNoise SQL: its own composition of the queries' costs, whichever of its two accountants says less."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.snsql = importlib.import_module("snsql")
        self.task, self.frame = task, side_by_side(task)
        low, high = task["bounds"]
        # With one row each, rows are the units: the same noise, without a choice among rows.
        person = {"type": "int", "private_id": True} if task["rows"] > 1 else {"type": "int"}
        self.table = {
            "rows": len(self.frame), "max_ids": task["rows"], "row_privacy": task["rows"] == 1, "person": person,
            "v": {"type": "int", "lower": low, "upper": high}, "r": {"type": "int"}, "k": {"type": "string"},
            "h": {"type": "string"}, "copy": {"type": "int"},
        }  # fmt: skip
        hidden = any(query["by"] is not None and query["groups"] is None for query in task["queries"])
        self.table["censor_dims"] = hidden
        self.shares: int = task["of"] * task["times"] * sum(
            round(self._reader(1.0, 1e-9).get_privacy_cost(self._sql(query))[0]) for query in task["queries"]
        )  # fmt: skip
        self.reader = self._reader(self._epsilon(), task["delta"] / self.shares)

    def _reader(self, epsilon: float, delta: float) -> Any:
        privacy = self.snsql.Privacy(epsilon=epsilon, delta=delta)
        return self.snsql.from_df(self.frame, metadata={"": {"d": {"t": self.table}}}, privacy=privacy)

    def _epsilon(self) -> float:
        """What each release may take, by the better of its odometer and a plain sum."""
        odometer = importlib.import_module("snsql.sql.odometer").OdometerHeterogeneous
        high = float(self.task["epsilon"])
        low = high / float(self.shares)
        for _ in range(30):
            middle = (low + high) / 2
            spent = odometer(self.snsql.Privacy(epsilon=1.0, delta=self.task["delta"]))
            for _ in range(self.shares):
                spent.spend(self.snsql.Privacy(epsilon=middle, delta=0.0))
            low, high = (middle, high) if spent.spent[0] <= self.task["epsilon"] else (low, middle)
        return low

    def _sql(self, query: dict[str, Any]) -> str:
        names = {"count": "COUNT(*)", "sum": "SUM(v)", "avg": "AVG(v)", "var": "VAR(v)", "std": "STDDEV(v)"}
        keys = ["copy"] if query["by"] is None else ["copy", query["by"]]
        columns = [*keys, *(f"{names[one]} AS a{place}" for place, one in enumerate(query["statistics"]))]
        where = f" WHERE r >= {query['where'][0]} AND r <= {query['where'][1]}" if query["where"] else ""
        return f"SELECT {', '.join(columns)} FROM d.t{where} GROUP BY {', '.join(keys)}"

    def draw(self) -> Draws:
        """One evaluation."""
        found: Draws = {place: [] for place in range(self.task["copies"])}
        for place, query in enumerate(self.task["queries"]):
            keys = 1 if query["by"] is None else 2
            for row in self.reader.execute(self._sql(query))[1:]:
                group = "" if keys == 1 else str(row[1])
                for name, number in zip(query["statistics"], row[keys:], strict=True):
                    if number is not None:
                        found[int(row[0])].append((place, name, group, float(number)))
        return found


def by_moments(query: dict[str, Any], sums: dict[str, float], low: float, high: float) -> dict[str, float]:
    """Statistics from a count and sums of distances and squared distances from the middle of the bounds."""
    count, middle = max(sums["n"], 1.0), (low + high) / 2
    first = sums.get("d", 0.0) / count
    variance = max(sums.get("q", 0.0) / count - first * first, 0.0)
    found = {
        "count": sums["n"], "sum": sums.get("d", 0.0) + middle * sums["n"], "avg": middle + first, "var": variance,
        "std": math.sqrt(variance),
    }  # fmt: skip
    return {name: found[name] for name in query["statistics"]}


class OpenDP:
    """OpenDP on Polars: Laplace noise or, where it has less error, Gaussian noise with concentrated accounting."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.dp, self.polars = importlib.import_module("opendp.prelude"), importlib.import_module("polars")
        self.dp.enable_features("contrib")
        self.task = task
        low, high = task["bounds"]
        middle = (low + high) // 2
        frame = self.polars.read_csv(task["file"], schema_overrides={"k": self.polars.String, "h": self.polars.String})
        frame = frame.drop("person").with_columns(d=self.polars.col("v") - middle)
        frame = frame.with_columns(q=self.polars.col("d") ** 2)
        self.frame = self.polars.concat(
            [frame.with_columns(copy=self.polars.lit(place)) for place in range(task["copies"])]
        )
        self.shares = task["of"] * task["times"] * len(task["queries"])
        hidden = any(query["by"] is not None and query["groups"] is None for query in task["queries"])
        delta = task["delta"] / 2 if hidden else task["delta"]
        # A hidden grouping takes half of the delta for its thresholds.
        each = {"delta": delta / self.shares} if hidden else {}
        if gaussian(task, self.shares * max(releases(query) for query in task["queries"]), delta):
            self.loss = self.dp.loss_of(rho=rho_of(task["epsilon"], delta) / self.shares, **each)
        else:
            self.loss = self.dp.loss_of(epsilon=task["epsilon"] / self.shares, **each)

    def draw(self) -> Draws:
        """One evaluation."""
        found: Draws = {place: [] for place in range(self.task["copies"])}
        for place, query in enumerate(self.task["queries"]):
            for copy, group, numbers in self._asked(query):
                found[copy] += [(place, name, group, number) for name, number in numbers.items()]
        return found

    def _asked(self, query: dict[str, Any]) -> list[tuple[int, str, dict[str, float]]]:
        low, high = self.task["bounds"]
        col, half = self.polars.col, (high - low + 1) // 2
        keys = ["copy"] if query["by"] is None else ["copy", query["by"]]
        margin = self.dp.polars.Margin(by=[], max_length=MOST_ROWS)
        asked = self.dp.Context.compositor(
            data=self.frame.lazy(), privacy_unit=self.dp.unit_of(contributions=self.task["rows"]),
            privacy_loss=self.loss, split_evenly_over=1, margins=[margin],
        ).query()  # fmt: skip
        if query["where"]:
            asked = asked.filter((col("r") >= query["where"][0]) & (col("r") <= query["where"][1]))
        one = query["statistics"][0] if len(query["statistics"]) == 1 else "five"
        if one in ("count", "sum", "avg"):
            sums = {
                "count": self.dp.len(signed=True).alias("x"), "sum": col("v").dp.sum(bounds=(low, high)).alias("x"),
                "avg": col("v").dp.mean(bounds=(low, high)).alias("x"),
            }[one]  # fmt: skip
            wanted = [sums]
        else:
            wanted = [self.dp.len(signed=True).alias("n"), col("d").dp.sum(bounds=(-half, half))]
            wanted.append(col("q").dp.sum(bounds=(0, half * half)))
        grouped = asked.group_by(*keys).agg(*wanted)
        if query["by"] is None or query["groups"] is not None:
            grouped = grouped.with_keys(self._groups(query))
        rows = grouped.release().collect().to_dicts()
        return [
            (
                row["copy"], "" if query["by"] is None else str(row[query["by"]]),
                {one: float(row["x"])} if "x" in row else by_moments(query, row, low, high),
            )
            for row in rows if row.get("x", 0.0) is not None
        ]  # fmt: skip

    def _groups(self, query: dict[str, Any]) -> Any:
        copies = self.polars.DataFrame({"copy": list(range(self.task["copies"]))}, schema={"copy": self.polars.Int32})
        if query["by"] is None:
            return copies
        groups = self.polars.DataFrame({query["by"]: query["groups"]})
        return copies.join(
            groups.with_columns(self.polars.col(query["by"]).cast(self.frame[query["by"]].dtype)), how="cross"
        )


class Diffprivlib:
    """diffprivlib: pure noise of one record, so R rows of a person take R parts; numbers of rows are public to it."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.library, self.numpy = importlib.import_module("diffprivlib"), importlib.import_module("numpy")
        self.task = {**task, "copies": 1}
        self.frame = side_by_side(self.task)
        if any(query["by"] is not None and query["groups"] is None for query in task["queries"]):
            raise Refused("has no way to release groups that are not known")
        self.parts = task["of"] * task["times"] * sum(len(query["statistics"]) for query in task["queries"])
        accountant = self.library.BudgetAccountant(epsilon=task["epsilon"], delta=task["delta"], slack=task["delta"])
        self.epsilon = max(accountant.remaining(self.parts)[0], task["epsilon"] / self.parts) / task["rows"]

    def draw(self) -> Draws:
        """One evaluation."""
        cells: list[Cell] = []
        for place, query in enumerate(self.task["queries"]):
            frame = self.frame
            if query["where"]:
                frame = frame[(frame["r"] >= query["where"][0]) & (frame["r"] <= query["where"][1])]
            of = {} if query["by"] is None else dict(list(frame.groupby(frame[query["by"]].astype(str))["v"]))
            groups = {"": frame["v"]} if query["by"] is None else {key: of.get(key) for key in query["groups"]}
            for group, values in groups.items():
                numbers = self.numpy.zeros(0) if values is None else values.to_numpy(dtype=float)
                cells += [(place, name, group, self._one(name, numbers)) for name in query["statistics"]]
        return {0: cells}

    def _one(self, name: str, values: Any) -> float:
        low, high = self.task["bounds"]
        quiet = self.library.BudgetAccountant()
        if name == "count":
            # A condition on all rows, whose number is the most that it answers.
            ones = self.numpy.arange(len(self.frame)) < len(values)
            return float(self.library.tools.count_nonzero(ones, epsilon=self.epsilon, accountant=quiet))
        tool = {"avg": "mean"}.get(name, name)
        return float(
            getattr(self.library.tools, tool)(values, epsilon=self.epsilon, bounds=(low, high), accountant=quiet)
        )


class Tumult:
    """Tumult Analytics: pure or, where it has less error, concentrated accounting; hidden groups are asked first."""

    def __init__(self, task: dict[str, Any]) -> None:
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        builder = importlib.import_module("pyspark.sql").SparkSession.builder.master("local[1]")
        for name, value in (("ui.enabled", "false"), ("sql.shuffle.partitions", "1"), ("driver.memory", "3g"),
                            ("ui.showConsoleProgress", "false")):  # fmt: skip
            builder = builder.config(f"spark.{name}", value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("OFF")
        self.library = importlib.import_module("tmlt.analytics")
        self.task = task
        self.table = self.spark.createDataFrame(side_by_side(task).drop(columns="person")).cache()
        self.hidden = any(query["by"] is not None and query["groups"] is None for query in task["queries"])
        asked = [name for query in task["queries"] for name in query["statistics"]]
        self.shares = task["of"] * task["times"] * len(asked)
        sums = max({"count": 1, "sum": 1, "avg": 2}.get(name, 3) for name in asked)
        self.concentrated = not self.hidden and gaussian(task, self.shares * sums, task["delta"])

    def _budget(self, parts: int) -> Any:
        if self.concentrated:
            return self.library.RhoZCDPBudget(rho_of(self.task["epsilon"], self.task["delta"]) * parts / self.shares)
        epsilon = self.task["epsilon"] * parts / self.shares
        return self.library.ApproxDPBudget(epsilon, self.task["delta"] * parts / self.shares) if self.hidden else (
            self.library.PureDPBudget(epsilon)
        )  # fmt: skip

    def draw(self) -> Draws:
        """One evaluation."""
        change = self.library.AddOneRow() if self.task["rows"] == 1 else self.library.AddMaxRows(self.task["rows"])
        session = self.library.Session.from_dataframe(
            self._budget(self.shares), "t", self.table, protected_change=change
        )
        found: Draws = {place: [] for place in range(self.task["copies"])}
        for place, query in enumerate(self.task["queries"]):
            keys = self._keys(session, query)
            for name in query["statistics"]:
                grouped = self._rows(query).groupby(keys)
                bounds = () if name == "count" else ("v", *self.task["bounds"])
                asked = getattr(grouped, {"avg": "average", "var": "variance", "std": "stdev"}.get(name, name))(*bounds)
                budget = self._budget(1)
                if self.hidden:
                    budget = self.library.ApproxDPBudget(self.task["epsilon"] / self.shares / 2, 0)
                for row in session.evaluate(asked, budget).toPandas().itertuples(index=False):
                    group = "" if query["by"] is None else str(row[1])
                    found[int(row[0])].append((place, name, group, float(row[-1])))
        return found

    def _rows(self, query: dict[str, Any]) -> Any:
        builder = self.library.QueryBuilder("t")
        if query["where"]:
            builder = builder.filter(f"r >= {query['where'][0]} AND r <= {query['where'][1]}")
        return builder

    def _keys(self, session: Any, query: dict[str, Any]) -> Any:
        copies = {"copy": list(range(self.task["copies"]))}
        if query["by"] is None:
            return self.library.KeySet.from_dict(copies)
        if query["groups"] is not None:
            numbers = query["by"] == "r"
            groups = [int(key) if numbers else key for key in query["groups"]]
            return self.library.KeySet.from_dict({**copies, query["by"]: groups})
        half = self.library.ApproxDPBudget(self.task["epsilon"] / self.shares / 2, self.task["delta"] / self.shares)
        shown = session.evaluate(self._rows(query).get_groups(["copy", query["by"]]), half)
        return self.library.KeySet.from_dataframe(shown)


PEERS: dict[str, tuple[Any, str]] = {
    "smartnoise-sql": (SmartNoise, "snsql"),
    "opendp": (OpenDP, "polars"),
    "diffprivlib": (Diffprivlib, "diffprivlib"),
    "tmlt.analytics": (Tumult, "tmlt.analytics"),
}
"""By package: how it is asked, and a module that is there where it can be."""


def versions() -> dict[str, str]:
    """The peers that can be imported here."""
    found = {}
    for name, (_, module) in PEERS.items():
        try:
            importlib.import_module(module)
            found[name] = importlib.metadata.version(name)
        except Exception:  # noqa: BLE001 - whatever a library raises at its import, it is not here
            continue
    return found


def answered(task: dict[str, Any]) -> dict[str, Any]:
    """What a peer says to a task."""
    try:
        peer = PEERS[task["peer"]][0](task)
        draws: list[list[Cell]] = []
        began = time.monotonic()
        while len(draws) < task["most"] and (not draws or time.monotonic() - began < task["seconds"]):
            draws += peer.draw().values()
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is its answer
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        return {"refused": f"{type(error).__name__}: {' '.join(said)[:300]}"}
    return {"draws": draws}


def main() -> None:
    """Answers the tasks on standard input, one a line."""
    warnings.filterwarnings("ignore")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin:
        task = json.loads(line)
        told = answered(task) if "peer" in task else versions()
        print(json.dumps(told), file=out, flush=True)


if __name__ == "__main__":
    main()
