"""Error by question, account and system: ours beside SmartNoise SQL, OpenDP, diffprivlib and Tumult Analytics.

    python -m benchmarks.utility [TPCH_FOLDER] [--peers FOLDER] [--peer-python VENV/bin/python ...] [--table adult ...]

The tables (benchmarks/utility_tables.py): UCI Adult (the file that NOISEGATE_ADULT_CSV names), orders of a folder of
TPC-H in Parquet (`tpchgen-cli parquet -s 1`), and a made-up table with heavy tails. Everybody knows the same: bounds
of the values, how many rows a person has at most, the public groups. `alone` is one question with all of (1, 1e-6);
`tenth` a question with a tenth of it, when nine tenths are spent; `tenth of 10` the same of (10, 1e-6). Peers divide
the total by their own accountants, evenly among their queries. A dashboard is paid anew by them at each refresh.

Ours: the whole way of a server within this process, with a new account of the real ledger for every run; the better of
Gaussian and Laplace noise, both of which an estimate states before anything is charged. Root-mean-square error over
groups and runs; of several statistics, the geometric mean of theirs. A group that is not shown counts as 0, its average
as the middle of the bounds. The ratio is that to ours, with its standard error; **bold** is what no other is below by
two standard errors.

`--peers FOLDER` makes environments there from PyPI, once; `--peer-python` are interpreters that have them already. A
peer that is in none is listed as not installed. Peers take seconds for an answer: `--record FILE` keeps their errors,
and reads those that it has; `--recorded` asks no peer, and shows what the file has. Prints a Markdown table of each.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from accountant.account import FilterKind, Limit
from accountant.filter import DEFAULT_SHARES
from accountant.ledger import Ledger
from benchmarks.utility_tables import (
    PLACES,
    QUESTIONS,
    SQL,
    Cell,
    Query,
    Question,
    Table,
    adult,
    dataset_file,
    groups_of,
    heavy,
    orders,
    truth_of,
    unasked,
)
from mechanisms.families import NoiseFamily
from server.services import Services
from tests.journey.clinic import attach, open_account, question, services_of, told

PACKAGES: Mapping[str, tuple[str, ...]] = {
    "opendp": ("opendp[polars]",),
    "diffprivlib": ("diffprivlib", "scikit-learn<1.6"),
    "smartnoise-sql": ("smartnoise-sql",),
    "tmlt.analytics": ("tmlt.analytics",),
}
"""What is installed for each peer, in an environment of its own: their requirements exclude each other."""

ROWS_SIDE_BY_SIDE = 200_000
GROUP_SHARE = Fraction(DEFAULT_SHARES.groups, 100)
"""How much of the delta of a new account is for hidden groups."""


@dataclass(frozen=True, slots=True)
class Account:
    """A total, and how many questions share it evenly."""

    name: str
    epsilon: int
    of: int
    delta: Fraction = Fraction(1, 1_000_000)


ACCOUNTS = (Account("alone", 1, 1), Account("tenth", 1, 10), Account("tenth of 10", 10, 10))


@dataclass(frozen=True, slots=True)
class Error:
    """A root-mean-square error, and its standard error as a part of it."""

    value: float
    uncertain: float

    def to(self, ours: Error) -> str:
        """The ratio to ours."""
        ratio = self.value / ours.value
        return f"{ratio:.2f} ± {ratio * math.hypot(self.uncertain, ours.uncertain):.2f}"

    def beats(self, other: Error) -> bool:
        """Whether it is less, beyond two standard errors."""
        return self.value * (1 + 2 * math.hypot(self.uncertain, other.uncertain)) < other.value


Draw = Mapping[Cell, float]


def error_of(table: Table, truth: Draw, draws: Sequence[Draw]) -> Error:
    """The error over draws: of several statistics the geometric mean."""
    values, parts = [], []
    for name in SQL:
        cells = [cell for cell in truth if cell[1] == name]
        if not cells:
            continue
        missing = unasked(table, name)
        squares = np.array(
            [np.mean([(draw.get(cell, missing) - truth[cell]) ** 2 for cell in cells]) for draw in draws]
        )
        values.append(math.sqrt(float(squares.mean())))
        parts.append(float(squares.std(ddof=1)) / math.sqrt(len(squares)) / float(squares.mean()) / 2)
    mean = math.exp(sum(map(math.log, values)) / len(values))
    return Error(mean, math.sqrt(sum(part * part for part in parts)) / len(parts))


class Ours:
    """This server within this process."""

    def __init__(self, services: Services, table: Table) -> None:
        self._services, self._table = services, table
        self._made = 0
        attach(services, dataset_file(table))
        # One that is never used up: the accounts below it are what is compared.
        assert isinstance(services.ledger, Ledger)
        services.ledger.create_account(
            dataset=table.name, parent=None, principal=None, name="root",
            limit=Limit(Fraction(10**5), Fraction(1, 100)), filter=FilterKind.APPROXIMATE, actor="benchmark",
        )  # fmt: skip

    def errors(self, asked: Question, account: Account, noise: NoiseFamily, seconds: float, most: int) -> Error | str:
        """The error of a question, or why it is refused."""
        truth = truth_of(self._table, asked)
        draws: list[Draw] = []
        until = time.monotonic() + seconds
        while len(draws) < most and (len(draws) < 5 or time.monotonic() < until):
            try:
                draws.append(self._draw(asked, account, noise))
            except Exception as error:  # noqa: BLE001 - a refusal is an answer
                return f"refused: {error}"
        return error_of(self._table, truth, draws)

    def best(self, asked: Question, account: Account, seconds: float, most: int) -> tuple[str, Error | str]:
        """The kind of noise with the least error of a question, and that error; or why both refuse it."""
        found = {one: self.errors(asked, account, one, seconds, most) for one in NoiseFamily}
        errors = {one: error for one, error in found.items() if isinstance(error, Error)}
        if not errors:
            return "", found[NoiseFamily.GAUSSIAN]
        name = min(errors, key=lambda one: errors[one].value)
        return name.value, errors[name]

    def _draw(self, asked: Question, account: Account, noise: NoiseFamily) -> dict[Cell, float]:
        self._made += 1
        who = f"analyst{self._made}"
        open_account(self._services.ledger, who, epsilon=str(account.epsilon), dataset=self._table.name)
        each = _rounded(Fraction(account.epsilon, account.of))
        if account.of > 1:
            self._rows("SELECT COUNT(*) FROM t WHERE v = 7", who, each * (account.of - 1), noise)
        found: dict[Cell, float] = {}
        delta = (
            account.delta * GROUP_SHARE * Fraction(99, 100) / account.of
            if any(query.by == "h" for query in asked.queries)
            else None
        )
        if asked.together:
            (row,) = self._rows(_together(asked.queries), who, each, noise)
            return {(place, "count", ""): float(number) for place, number in enumerate(row)}
        for _ in range(asked.times):
            for place, query in enumerate(asked.queries):
                for row in self._rows(query.sql(), who, _rounded(each / len(asked.queries)), noise, delta):
                    group, numbers = ("", row) if query.by is None else (str(row[0]), row[1:])
                    # An average of noise alone is NULL: it is taken for what is not shown.
                    cells = zip(query.statistics, numbers, strict=True)
                    found.update({(place, name, group): float(n) for name, n in cells if n is not None})
        return found

    def _rows(
        self, sql: str, who: str, epsilon: Fraction, noise: NoiseFamily, delta: Fraction | None = None
    ) -> list[list[Any]]:
        asked = question(sql, who, dataset=self._table.name, epsilon=str(epsilon), delta=delta, noise=noise)
        rows: list[list[Any]] = json.loads(told(self._services.journey, asked))["rows"]
        return rows


def _rounded(epsilon: Fraction) -> Fraction:
    """A spend of six digits, as requests name them."""
    return Fraction(math.floor(epsilon * 10**6), 10**6)


def _together(queries: Iterable[Query]) -> str:
    filters = (
        f"COUNT(*) FILTER (WHERE r BETWEEN {low} AND {high})"
        for low, high in (one.where or (0, PLACES) for one in queries)
    )
    return f"SELECT {', '.join(filters)} FROM t"


class Peer:
    """A library in a process of its own interpreter, asked over its standard input and output."""

    def __init__(self, name: str, python: Path) -> None:
        self.name = name
        script = Path(__file__).with_name("utility_peers.py").resolve()
        self._folder = tempfile.TemporaryDirectory()  # a library leaves files where it runs
        self._process = subprocess.Popen(
            [str(python.absolute()), "-I", "-W", "ignore", str(script)],
            cwd=self._folder.name, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def told(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a task."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        return dict(json.loads(line)) if line else {"refused": "its process ended"}

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._folder.cleanup()

    def errors(self, table: Table, asked: Question, account: Account, seconds: float, most: int) -> Error | str:
        """The error of a question, or why it is refused; of ranges, by the better of two ways."""
        truth = truth_of(table, asked)
        ways = [asked.queries]
        if asked.together:
            ways.append((Query(("count",), "r"),))
        found: list[Error] = []
        why = ""
        for queries in ways:
            answer = self.told(self._task(table, queries, asked.times, account, seconds, most))
            if "refused" in answer:
                why = str(answer["refused"])
                continue
            draws = [{(place, name, group): n for place, name, group, n in draw} for draw in answer["draws"]]
            if queries != asked.queries:
                draws = [_ranges_of(draw, asked.queries) for draw in draws]
            found.append(error_of(table, truth, draws))
        return min(found, key=lambda one: one.value) if found else why

    def _task(
        self, table: Table, queries: Sequence[Query], times: int, account: Account, seconds: float, most: int
    ) -> dict[str, Any]:
        with table.file.open() as file:
            rows = sum(1 for _ in file)
        return {
            "peer": self.name, "file": str(table.file), "rows": table.rows, "bounds": table.bounds,
            "epsilon": account.epsilon, "delta": float(account.delta), "of": account.of, "times": times,
            "copies": max(2, ROWS_SIDE_BY_SIDE // rows), "seconds": seconds, "most": most,
            "queries": [
                {"statistics": one.statistics, "by": one.by, "where": one.where, "groups": groups_of(table, one)}
                for one in queries
            ],
        }  # fmt: skip


def _ranges_of(draw: Draw, queries: Sequence[Query]) -> dict[Cell, float]:
    """Counts of ranges from those of all places."""
    found = {}
    for place, query in enumerate(queries):
        low, high = query.where or (0, PLACES - 1)
        found[(place, "count", "")] = sum(draw.get((0, "count", str(one)), 0.0) for one in range(low, high + 1))
    return found


def peers_of(pythons: Sequence[Path], folder: Path | None) -> tuple[dict[str, Path], dict[str, str]]:
    """The interpreter of each peer, and of each what its version is or why it is not there."""
    found: dict[str, Path] = {}
    said = dict.fromkeys(PACKAGES, "not installed")
    for python in [*pythons, *(() if folder is None else _installed(folder, said))]:
        peer = Peer("", python)
        for name, version in peer.told({}).items():
            if name not in found and name in PACKAGES:
                found[name], said[name] = python, version
        peer.close()
    return found, said


def _installed(folder: Path, said: dict[str, str]) -> list[Path]:
    """Environments with the peers, made where they are absent."""
    made = []
    for name, packages in PACKAGES.items():
        python = folder / name / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True)
            line = [str(python), "-m", "pip", "install", "--quiet", *packages]
            done = subprocess.run(line, capture_output=True, text=True, check=False)
            if done.returncode:
                said[name] = f"not installed: {done.stderr.strip().splitlines()[-1][:200]}"
        made.append(python)
    return made


_GEOMETRIC = (
    "two-sided geometric noise has 0.94 of the error, and takes 1.43 times the mu squared of the accounts above"
)
REASONS: Mapping[tuple[str, str], str] = {
    ("COUNT(*)", "alone"): "diffprivlib takes the number of rows as known, and never says more",
    ("COUNT(*)", "tenth"): "diffprivlib takes the number of rows as known, and never says more",
    ("COUNT by public keys", "alone"): _GEOMETRIC,
    ("histogram of 100 cells", "alone"): _GEOMETRIC,
    ("twelve ranges", "alone"): "rows of one person may be under several conditions: each FILTER has its own share",
    (
        "COUNT by hidden keys",
        "tenth",
    ): "few runs: by the law ours is 18.2 with this noise, and 18.4 with half of delta for thresholds",
}
"""Why a question is not first, by its name and account."""


def line_of(asked: Question, account: Account, found: Mapping[str, Error | str], noise: str) -> str:
    """One line of the table."""
    ours = found["ours"]
    if isinstance(ours, str):
        return f"| {asked.name} | {account.name} | {ours} |"
    errors = [one for one in found.values() if isinstance(one, Error)]
    cells = []
    for name, one in found.items():
        if isinstance(one, str):
            cells.append("-")
            continue
        shown = f"{one.value:.3g}" if name == "ours" else one.to(ours)
        first = not any(other.beats(one) for other in errors)
        cells.append(f"**{shown}**" if first else shown)
        cells += [noise] if name == "ours" else []
    beaten = any(other.beats(ours) for other in errors)
    reason = REASONS.get((asked.name, account.name), "to do") if beaten else ""
    return f"| {asked.name} | {account.name} | {' | '.join(cells)} | {reason} |"


class Record:
    """Errors of peers that were measured before, in a file; with no file, nothing is kept."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._kept: dict[str, Any] = {} if file is None or not file.exists() else json.loads(file.read_text())

    def versions(self) -> dict[str, str]:
        """The peers that it has errors of, and their versions."""
        return dict(key.partition(", ")[0].split(" ", 1) for key in self._kept)

    def of(self, key: str, measure: Callable[[], Error | str] | None) -> Error | str:
        """The error under that name, measured where it is not known and can be."""
        if key not in self._kept:
            if measure is None:
                return "not measured"
            told = measure()
            self._kept[key] = told if isinstance(told, str) else [told.value, told.uncertain]
            if self._file is not None:
                self._file.write_text(json.dumps(self._kept, indent=0))
        kept = self._kept[key]
        return kept if isinstance(kept, str) else Error(*kept)


def tables_of(names: Sequence[str], tpch: Path | None, folder: Path, customers: int) -> list[Table]:
    """The tables that are asked for and whose data is at hand."""
    found = []
    source = os.environ.get("NOISEGATE_ADULT_CSV")
    if "adult" in names and source:
        found.append(adult(Path(source), folder))
    if "orders" in names and tpch is not None:
        found.append(orders(tpch, folder, customers))
    if "heavy" in names:
        found.append(heavy(folder, customers))
    return found


def compare(
    services: Services, table: Table, peers: Mapping[str, Path], said: Mapping[str, str], options: argparse.Namespace
) -> None:
    """Prints the table of one data set."""
    record = Record(options.record)
    ours = Ours(services, table)
    asking = {name: Peer(name, python) for name, python in peers.items()}
    names = [name for name in PACKAGES if name in asking or (options.recorded and name in said)]
    header = ["question", "account", "ours", "noise", *names, "reason"]
    print(f"\n### {table.name}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}", flush=True)
    for asked in QUESTIONS:
        for account in ACCOUNTS:
            if options.only not in (None, asked.name) or account.name not in options.account:
                continue
            noise, best = ours.best(asked, account, options.seconds, options.most)
            found: dict[str, Error | str] = {"ours": best}
            for name in names:
                key = f"{name} {said[name]}, {table.name}, {asked.name}, {account.name}"
                measured = None
                if name in asking:
                    measured = functools.partial(
                        asking[name].errors, table, asked, account, options.seconds, options.most
                    )
                found[name] = record.of(key, measured)
                if isinstance(found[name], str):
                    print(f"{key}: {found[name]}", file=sys.stderr)
            print(line_of(asked, account, found, noise), flush=True)
    for peer in asking.values():
        peer.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tpch", type=Path, nargs="?", help="a folder with orders.parquet of TPC-H")
    parser.add_argument("--peers", type=Path, help="a folder for environments of the peers")
    parser.add_argument("--peer-python", type=Path, action="append", default=[], help="an interpreter that has a peer")
    parser.add_argument("--peer", action="append", choices=list(PACKAGES), help="one peer or more; all without it")
    parser.add_argument("--record", type=Path, help="a file that keeps the errors of peers")
    parser.add_argument("--recorded", action="store_true", help="show what the file has, and ask no peer")
    parser.add_argument("--table", action="append", choices=["adult", "orders", "heavy"], help="one table or more")
    parser.add_argument("--account", action="append", choices=[one.name for one in ACCOUNTS])
    parser.add_argument("--only", choices=[one.name for one in QUESTIONS], help="one question")
    parser.add_argument("--seconds", type=float, default=3, help="for each question and system")
    parser.add_argument("--most", type=int, default=200, help="draws of each question and system")
    parser.add_argument("--customers", type=int, default=10_000, help="of TPC-H, and people with heavy tails")
    options = parser.parse_args(arguments)
    options.account = options.account or [one.name for one in ACCOUNTS]
    peers, said = peers_of(options.peer_python, options.peers)
    peers = {name: python for name, python in peers.items() if options.peer is None or name in options.peer}
    if options.recorded:
        peers, said = {}, Record(options.record).versions()
    print(", ".join(f"{name} {version}" for name, version in said.items()), flush=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "sources"
        folder.mkdir()
        names = options.table or ["adult", "orders", "heavy"]
        with services_of(Path(place)) as services:
            for table in tables_of(names, options.tpch, folder, options.customers):
                compare(services, table, peers, said, options)


if __name__ == "__main__":
    main()
