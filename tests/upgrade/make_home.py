"""Makes `home-VERSION.tar.gz`: a small home as that version leaves it behind, for the tests that upgrade it.

An archive is made once, with the program of its version, and never again with a newer one; this script says how. It
runs that program's own command line and HTTP interface, as its users did:

    git worktree add --detach ../noisegate-0.1.0 aa1f533
    python tests/upgrade/make_home.py ../noisegate-0.1.0 0.1.0 tests/upgrade/home-0.1.0.tar.gz
    git worktree add --detach ../noisegate-0.2.0 fbfd7e7
    python tests/upgrade/make_home.py ../noisegate-0.2.0 0.2.0 tests/upgrade/home-0.2.0.tar.gz
    git worktree add --detach ../noisegate-0.2.1 8d12600
    python tests/upgrade/make_home.py ../noisegate-0.2.1 0.2.1 tests/upgrade/home-0.2.1.tar.gz
    git worktree add --detach ../noisegate-0.3.0 e4fbeda
    python tests/upgrade/make_home.py ../noisegate-0.3.0 0.3.0 tests/upgrade/home-0.3.0.tar.gz
    git worktree add --detach ../noisegate-0.4.0 e6350b2
    python tests/upgrade/make_home.py ../noisegate-0.4.0 0.4.0 tests/upgrade/home-0.4.0.tar.gz
    git worktree add --detach ../noisegate-0.5.0 c758317
    python tests/upgrade/make_home.py ../noisegate-0.5.0 0.5.0 tests/upgrade/home-0.5.0.tar.gz
    git worktree add --detach ../noisegate-0.6.0 1f49e7e
    python tests/upgrade/make_home.py ../noisegate-0.6.0 0.6.0 tests/upgrade/home-0.6.0.tar.gz
    git worktree add --detach ../noisegate-0.7.0 973ab72
    python tests/upgrade/make_home.py ../noisegate-0.7.0 0.7.0 tests/upgrade/home-0.7.0.tar.gz
    git worktree add --detach ../noisegate-0.8.0 a18a9fb
    python tests/upgrade/make_home.py ../noisegate-0.8.0 0.8.0 tests/upgrade/home-0.8.0.tar.gz
    git worktree add --detach ../noisegate-0.9.0 f59f4ab
    python tests/upgrade/make_home.py ../noisegate-0.9.0 0.9.0 tests/upgrade/home-0.9.0.tar.gz
    git worktree add --detach ../noisegate-0.10.0 789661f
    python tests/upgrade/make_home.py ../noisegate-0.10.0 0.10.0 tests/upgrade/home-0.10.0.tar.gz
    git worktree add --detach ../noisegate-0.11.0 20c7d9d
    python tests/upgrade/make_home.py ../noisegate-0.11.0 0.11.0 tests/upgrade/home-0.11.0.tar.gz
    git worktree add --detach ../noisegate-0.12.0 fcbdf98
    python tests/upgrade/make_home.py ../noisegate-0.12.0 0.12.0 tests/upgrade/home-0.12.0.tar.gz

What is in each: a dataset of two tables (invented by arithmetic, 300 patients), whose policy shares releases; keys of
an administrator and two analysts; a root and accounts of anna and ben; answers with public and with hidden keys, an
AVG, a repeat, one with an Idempotency-Key; and one voided and one failed query, made through the ledger, since no
client can make an engine fail. That of 0.1.0 has a second account of anna, side by side with the first, which paid too.
Those since 0.2 have a release that ben was charged for reading, and a query that was left open: in the ledger's
state "running" by 0.2.0, reserved by the later ones, which have no such state. Those since 0.4.0 have a third table,
of which nothing is declared but its keys: norms and value bounds are chosen, and hidden groups selected by weights.
Those since 0.5.0 have a width that was bought in two charges: a histogram, and then sums at the price that follows.
Those since 0.6.0 have a median, a count of different values, an average of what each patient has, and several levels.
Those since 0.7.0 have a question in two stages, a choice of groups, several quantiles, first visits, and rows of two
tables. Those since 0.8.0 have levels of columns measured together, a HISTOGRAM, a BOOL_OR, and a list of released
groups. Those since 0.9.0 have a median within a patient, months that a series adds, and pairs in a list; a monitor of
anna that compared once, and a collector with reports. Those since 0.10.0 have a pivot, a median by a mechanism that was
named, and a column that asks for membership in a list of released groups; a batch, a model and a synthetic table. Those
since 0.11.0 have a stream that was asked, a registered statistic, and a model that chose bounds. That of 0.12.0 has a
public table beside people, other rows of the same patient, and an account that named how its delta is divided.
`asked.json` keeps what was asked and answered. The keys open nothing but these archives.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

DATASET = """\
dataset: surgery
description: Patients of an invented surgery and their visits.
unit: {table: patients, key: patient_id}
tables:
  patients:
    source: {file: patients.csv}
    key: patient_id
    columns:
      patient_id: {type: integer, nullable: false}
      age: {type: integer, bounds: [0, 100], nullable: false, description: Age in years.}
      region: {type: text, keys: [coast, hills, plain]}
      town: {type: text}
  visits:
    source: {file: visits.csv}
    key: visit_id
    references: {patient_id: patients.patient_id}
    contribution: {rows_per_unit: 8, groups_per_unit: 2, rows_per_unit_and_group: 4}
    columns:
      visit_id: {type: integer, nullable: false}
      patient_id: {type: integer, nullable: false}
      month: {type: integer, keys: {range: [1, 12]}}
      cost: {type: number, bounds: [0, 500]}
policy: {epsilon_default: "0.1", epsilon_max: "2", delta_per_query: "1e-8", releases_shared: true}
"""
"""The file of version 0.1.0."""

COST = "      cost: {type: number, bounds: [0, 500]}\n"

Question = tuple[str, str, dict[str, Any], str | None]
"""Who asked, under which name `asked.json` keeps it, what, and with which Idempotency-Key."""

QUESTIONS: tuple[Question, ...] = (
    ("anna", "public_keys", {"sql": "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"}, None),
    ("anna", "hidden_keys", {"sql": "SELECT town, COUNT(*) AS n FROM patients GROUP BY town"}, None),
    ("anna", "average", {"sql": "SELECT AVG(cost) AS cost FROM visits", "spend": {"epsilon": "0.5"}}, None),
    ("ben", "retried", {"sql": "SELECT COUNT(*) AS n FROM visits", "spend": {"epsilon": "0.25"}}, "report-7"),
    ("anna", "repeated", {"sql": "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"}, "again-1"),
)

_MADE = """
import hashlib, sys
from fractions import Fraction
from accountant.ledger import Ledger
from accountant.request import CoreCharge, ReserveRequest
from privacy.events import LaplaceEvent
with Ledger(sys.argv[1], instance="made", high_water=__import__("pathlib").Path(sys.argv[2])) as ledger:
    account = ledger.spendable("surgery", "ben")[0][0].id
    for name in NAMES:
        key = hashlib.sha256(name.encode()).hexdigest()
        event = LaplaceEvent(l1_sensitivity=Fraction(1), scale=Fraction(8))
        core = CoreCharge(core_key=key, quality=Fraction(1, 8), events=(event,))
        ledger.reserve(ReserveRequest(query_id=f"q_{name}", principal="ben", account=account, cores=(core,),
                                      body_hash=key))
"""
"""Reserves queries without an answer, by a name each."""

CLOSED = _MADE.replace("NAMES", "('void', 'fail')") + '        getattr(ledger, name)(f"q_{name}")\n'
"""Leaves a voided and a failed query."""

RUNNING = _MADE.replace("NAMES", "('running',)") + '        ledger.start(f"q_{name}")\n'
"""Leaves a query open, and running: what a server of 0.2.0 that was killed could have left."""

RESERVED = _MADE.replace("NAMES", "('reserved',)")
"""Leaves a query open: what a server that was killed leaves."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is different between versions: the dataset file, anna's limits, the questions, and what stays open."""

    dataset: str
    limits_of_anna: tuple[str, ...]
    questions: tuple[Question, ...]
    left_open: str | None
    sessions: bool = False
    """Whether there are a monitor and a collector."""
    resources: bool = False
    """Whether there are a batch, a model and a synthetic table."""
    streams: bool = False
    """Whether there are a stream, a registered statistic and a model that chose bounds."""
    shares_of_ben: Mapping[str, int] | None = None
    """How the delta of ben's account is divided, where it is named."""


WIDE = {"sql": "SELECT COUNT(*) AS n FROM patients WHERE age > 40", "accuracy": {"half_width": "40"}}

OF_0_2 = Recipe(
    "version: 2\n" + DATASET.replace("releases_shared: true", "releases_shared: charged"),
    ("5",),
    (
        *QUESTIONS,
        # By width, so that both want the same noise: a release that is dearer than the question is not read.
        ("anna", "wide", WIDE, None),
        ("ben", "read", WIDE, None),
    ),
    RUNNING,
)

STAYS = """\
  stays:
    source: {file: stays.csv}
    references: {patient_id: patients.patient_id}
    contribution: auto
    columns:
      patient_id: {type: integer, nullable: false}
      month: {type: integer, keys: {range: [1, 12]}, nullable: false}
      ward: {type: text, nullable: false}
      days: {type: integer, nullable: false}
"""
"""A table of the file of version 0.4.0."""

PAID = "      paid: {type: integer, nullable: false}\n"
"""A column of the visits of version 0.11.0, without bounds."""

STATISTICS = 'statistics: {typical_age: {sql: "SELECT MEDIAN(age) FROM patients"}}\n'
"""What the file of version 0.11.0 registers."""

UNDECLARED: tuple[Question, ...] = (
    ("anna", "norms", {"sql": "SELECT month, COUNT(*) AS n FROM stays GROUP BY month"}, None),
    (
        "anna",
        "weights",
        {"sql": "SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward", "spend": {"epsilon": "1"}},
        None,
    ),
    ("anna", "values", {"sql": "SELECT AVG(days) AS days FROM stays", "spend": {"epsilon": "0.5"}}, None),
)
"""Questions that choose norms and bounds by histograms."""

WIDTH = {"sql": "SELECT COUNT(*) AS n FROM stays WHERE days > 5", "accuracy": {"half_width": "400"}}
"""Says how close, of rows whose norm nobody knows yet."""

OF_0_4 = replace(
    OF_0_2,
    dataset=OF_0_2.dataset.replace("policy:", STAYS + "policy:"),
    questions=(*OF_0_2.questions, *UNDECLARED),
    left_open=RESERVED,
)

OF_0_5 = replace(OF_0_4, questions=(*OF_0_4.questions, ("anna", "width", WIDTH, None)))

OF_ROWS: tuple[Question, ...] = (
    ("anna", "median", {"sql": "SELECT MEDIAN(age) AS m FROM patients"}, None),
    ("anna", "distinct", {"sql": "SELECT COUNT(DISTINCT month) AS n FROM visits WHERE cost > 100"}, None),
    (
        "anna",
        "within",
        {"sql": "SELECT AVG(n) AS a FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t"},
        None,
    ),
    ("anna", "levels", {"sql": "SELECT month, COUNT(*) AS n FROM visits GROUP BY ROLLUP (month)"}, None),
)
"""Questions that 0.6.0 was the first to answer."""

FIRST = "SELECT patient_id, month FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY month) = 1"

BOTH = "SELECT patient_id, month FROM visits UNION ALL SELECT patient_id, month FROM stays WHERE days > 20"

OF_STAGES: tuple[Question, ...] = (
    (
        "anna",
        "stages",
        {"sql": "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)"},
        None,
    ),
    (
        "anna",
        "choice",
        {"sql": "SELECT month FROM visits WHERE cost > 200 GROUP BY month ORDER BY COUNT(*) DESC LIMIT 2"},
        None,
    ),
    ("anna", "quantiles", {"sql": "SELECT QUANTILE_CONT(age, [0.25, 0.75]) AS q FROM patients"}, None),
    ("anna", "first", {"sql": f"SELECT month, COUNT(*) AS n FROM ({FIRST}) AS f GROUP BY month"}, None),
    ("anna", "rows", {"sql": f"SELECT COUNT(*) AS n FROM ({BOTH}) AS b"}, None),
)
"""Questions that 0.7.0 was the first to answer."""

LISTED = "SELECT month FROM visits GROUP BY month HAVING COUNT(*) > 70"

OF_LEVELS: tuple[Question, ...] = (
    (
        "anna",
        "together",
        {"sql": "SELECT region, age // 20 AS band, COUNT(*) AS n FROM patients GROUP BY ROLLUP (region, age // 20)"},
        None,
    ),
    ("anna", "histogram", {"sql": "SELECT HISTOGRAM(region) AS h FROM patients"}, None),
    ("anna", "any", {"sql": "SELECT BOOL_OR(cost > 400) AS a FROM visits"}, None),
    ("anna", "listed", {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE month IN ({LISTED})"}, None),
)
"""Questions that 0.8.0 was the first to answer."""

MIDDLE = "SELECT patient_id, MEDIAN(cost) AS m FROM visits GROUP BY patient_id"

OF_FORMS: tuple[Question, ...] = (
    ("anna", "middle", {"sql": f"SELECT AVG(m) AS a FROM ({MIDDLE}) AS t"}, None),
    (
        "anna",
        "series",
        {
            "sql": "SELECT s.m, COUNT(v.visit_id) AS n FROM generate_series(1, 6) AS s(m) "
            "LEFT JOIN visits AS v ON v.month = s.m GROUP BY s.m"
        },
        None,
    ),
    (
        "anna",
        "pairs",
        {"sql": "SELECT COUNT(*) AS n FROM patients WHERE (region, age // 50) IN (('coast', 0), ('hills', 1))"},
        None,
    ),
)
"""Questions that 0.9.0 was the first to answer."""

MEMBERSHIP = f"SELECT month IN ({LISTED}) AS busy, COUNT(*) AS n FROM visits GROUP BY 1"

PAIRS = "(SELECT region, age > 50 AS old FROM patients)"

OF_RESOURCES: tuple[Question, ...] = (
    ("anna", "pivot", {"sql": f"PIVOT {PAIRS} ON region IN ('coast', 'hills') USING COUNT(*) GROUP BY old"}, None),
    (
        "anna",
        "named",
        {"sql": "SELECT MEDIAN(age) AS m FROM patients WHERE region = 'coast'", "mechanism": "smooth"},
        None,
    ),
    ("anna", "membership", {"sql": MEMBERSHIP}, None),
)
"""Questions that 0.10.0 was the first to answer."""

TARIFFS = """\
  tariffs:
    source: {file: tariffs.csv}
    public: true
    columns:
      month: {type: integer, nullable: false}
      price: {type: number, nullable: false}
"""
"""A public table of the file of version 0.12.0."""

DEARER = "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(price) FROM tariffs)"

RETURNED = (
    "SELECT COUNT(*) AS n FROM visits AS a LEFT JOIN visits AS b "
    "ON b.patient_id = a.patient_id AND b.month > a.month AND a.cost > 100 WHERE b.visit_id IS NULL"
)

OF_PUBLIC: tuple[Question, ...] = (
    ("anna", "dearer", {"sql": DEARER}, None),
    ("anna", "returned", {"sql": RETURNED}, None),
)
"""Questions that 0.12.0 was the first to answer."""

MONITOR = {
    "dataset": "surgery",
    "sql": "SELECT COUNT(*) FROM visits WHERE cost > 100",
    "threshold": "200",
    "epsilon": "1",
    "contribution": {"rows_per_unit": 3},
    "hits": 2,
    "evaluations": 4,
}
"""Passes at its first comparison: 660 visits cost that much."""

BATCH = {
    "dataset": "surgery",
    "queries": [f"SELECT COUNT(*) FROM patients WHERE age BETWEEN {low} AND {low + 30}" for low in (10, 20, 30, 40)],
    "spend": {"epsilon": "0.5"},
}

MODEL = {
    "dataset": "surgery",
    "sql": "SELECT age, region, age > 50 AS label FROM patients",
    "iterations": 5,
    "spend": {"epsilon": "1"},
}

SYNTHETIC = {
    "dataset": "surgery",
    "table": "patients",
    "name": "nobody",
    "columns": [{"name": "age"}, {"name": "region"}],
    "epsilon": "1",
}

NOBODY = {"dataset": "surgery", "sql": "SELECT region, COUNT(*) AS n FROM nobody GROUP BY region ORDER BY region"}
"""Reads the synthetic table."""

STATISTIC = {"dataset": "surgery", "statistic": "typical_age", "width": "2", "spend": {"own_epsilon": "0.5"}}

STREAM = {
    "dataset": "surgery",
    "table": "patients",
    "columns": [{"name": "age", "low": 10, "high": 89}, {"name": "region"}],
    "epsilon": "1",
    "updates": 3,
    "queries": 20,
}

RANGES = {
    "queries": [
        {"where": [{"key": "age", "low": 30, "high": 59}, {"key": "region", "values": ["coast"]}]},
        {"where": []},
    ]
}
"""Asked of the stream."""

PAYING = {
    "dataset": "surgery",
    "sql": "SELECT paid, month > 6 AS late, cost > 200 AS label FROM visits",
    "iterations": 5,
    "spend": {"epsilon": "1"},
}
"""A model of a column without bounds."""

COLLECTOR = {"question": "Did the surgery see you in time?", "domain": ["yes", "no"], "epsilon": "1"}

ALL_OF_0_10 = (*OF_0_5.questions, *OF_ROWS, *OF_STAGES, *OF_LEVELS, *OF_FORMS, *OF_RESOURCES)

RECIPES = {
    "0.1.0": Recipe(DATASET, ("5", "4"), QUESTIONS, None),
    "0.2.0": OF_0_2,
    "0.2.1": replace(OF_0_2, left_open=RESERVED),
    "0.3.0": replace(OF_0_2, left_open=RESERVED),
    "0.4.0": OF_0_4,
    "0.5.0": OF_0_5,
    "0.6.0": replace(OF_0_5, questions=(*OF_0_5.questions, *OF_ROWS)),
    "0.7.0": replace(OF_0_5, questions=(*OF_0_5.questions, *OF_ROWS, *OF_STAGES)),
    "0.8.0": replace(OF_0_5, questions=(*OF_0_5.questions, *OF_ROWS, *OF_STAGES, *OF_LEVELS)),
    "0.9.0": replace(
        OF_0_5,
        limits_of_anna=("12",),
        questions=(*OF_0_5.questions, *OF_ROWS, *OF_STAGES, *OF_LEVELS, *OF_FORMS),
        sessions=True,
    ),
    "0.10.0": replace(
        OF_0_5,
        limits_of_anna=("18",),
        questions=ALL_OF_0_10,
        sessions=True,
        resources=True,
    ),
    "0.11.0": replace(
        OF_0_5,
        dataset=OF_0_5.dataset.replace(COST, COST + PAID).replace("policy:", STATISTICS + "policy:"),
        limits_of_anna=("24",),
        questions=ALL_OF_0_10,
        sessions=True,
        resources=True,
        streams=True,
    ),
    "0.12.0": replace(
        OF_0_5,
        dataset=OF_0_5.dataset.replace(COST, COST + PAID).replace("policy:", TARIFFS + STATISTICS + "policy:"),
        limits_of_anna=("26",),
        questions=(*ALL_OF_0_10, *OF_PUBLIC),
        sessions=True,
        resources=True,
        streams=True,
        shares_of_ben={"gaussian": 40, "concentrated": 10, "groups": 50},
    ),
}


def write_sources(folder: Path, dataset: str) -> Path:
    """Writes the tables and the dataset file; returns the latter."""
    folder.mkdir(parents=True)
    with (folder / "patients.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["patient_id", "age", "region", "town"])
        for person in range(300):
            region = ["coast", "hills", "plain"][person * 7 % 3]
            rows.writerow([person, 18 + person * 13 % 70, region, f"town{person % 3}" if person % 50 else "hamlet"])
    with (folder / "visits.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["visit_id", "patient_id", "month", "cost", "paid"])
        for visit in range(900):
            rows.writerow([visit, visit % 300, 1 + visit % 12, 20 + visit * 17 % 400, 20 + visit * 17 % 400 // 10])
    with (folder / "stays.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["patient_id", "month", "ward", "days"])
        for stay in range(1500):
            rows.writerow([stay % (300 if stay % 3 else 40), 1 + stay % 12, f"ward{stay % 4}", 1 + stay * 17 % 40])
    with (folder / "tariffs.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["month", "price"])
        rows.writerows([month, 100 + month * 20] for month in range(1, 13))
    path = folder / "surgery.yaml"
    path.write_text(dataset)
    return path


class Program:
    """The program of one checkout, on one home."""

    def __init__(self, checkout: Path, home: Path) -> None:
        self._checkout = checkout
        self._home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NOISEGATE_")}
        self._environment = {**kept, "PYTHONPATH": str(checkout)}

    def command(self, *arguments: str) -> Any:
        """Runs one command and returns its line of JSON."""
        line = [sys.executable, "-m", "server.cli", *arguments, "--home", str(self._home), "--json"]
        done = subprocess.run(line, cwd=self._checkout, env=self._environment, check=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout)

    def run(self, script: str, *arguments: str) -> None:
        """Runs a script with the program's modules."""
        line = [sys.executable, "-c", script, *arguments]
        subprocess.run(line, cwd=self._checkout, env=self._environment, check=True)

    @contextlib.contextmanager
    def serving(self) -> Any:
        """A server on the home; gives its address."""
        line = [sys.executable, "-m", "server.cli", "serve", "--home", str(self._home), "--port", "0"]
        lock = self._home / "serving.lock"
        lock.unlink(missing_ok=True)
        with subprocess.Popen(line, cwd=self._checkout, env=self._environment, stderr=subprocess.DEVNULL) as server:
            try:
                yield self._ready(server, lock)
            finally:
                server.terminate()

    def _ready(self, server: subprocess.Popen[bytes], lock: Path) -> str:
        """Waits until the server is ready; its address."""
        while server.poll() is None:
            with contextlib.suppress(OSError, ValueError):
                url: str = json.loads(lock.read_text())["url"]
                urllib.request.urlopen(f"{url}/readyz").close()
                return url
            time.sleep(0.1)
        raise RuntimeError("the server ended before it was ready")


def ask(url: str, path: str, key: str, body: dict[str, Any], retry: str | None = None) -> Any:
    """One POST."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    if retry is not None:
        headers["Idempotency-Key"] = retry
    request = urllib.request.Request(url + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{path}: {error.read().decode()}") from None


def make(checkout: Path, home: Path, recipe: Recipe) -> None:
    """Does on `home` what the text above says."""
    program = Program(checkout, home)
    program.command("migrate")
    program.command("dataset", "add", str(write_sources(home / "datasets", recipe.dataset)))
    keys = {"admin": program.command("key", "create", "admin", "--role", "admin", "--days", "3650")["key"]}
    for name in ("anna", "ben"):
        keys[name] = program.command("key", "create", name, "--days", "3650")["key"]
    asked: dict[str, Any] = {"keys": keys, "questions": {}}
    with program.serving() as url:
        root = {"dataset": "surgery", "limit": {"epsilon": "20", "delta": "0.00001"}}
        ask(url, "/v1/budgets", keys["admin"], root)
        for name, epsilon in (*(("anna", epsilon) for epsilon in recipe.limits_of_anna), ("ben", "3")):
            limit = {"epsilon": epsilon, "delta": "0.000001"}
            opened = {"dataset": "surgery", "principal": name, "limit": limit, "filter": "approximate"}
            if name == "ben" and recipe.shares_of_ben is not None:
                opened["delta_shares"] = recipe.shares_of_ben
            ask(url, "/v1/budgets", keys["admin"], opened)
        own = ask_budgets(url, keys["anna"])
        for name, title, body, retry in recipe.questions:
            whole = {"dataset": "surgery", **body}
            asked["questions"][title] = {
                "principal": name,
                "body": whole,
                "idempotency_key": retry,
                "answer": ask(url, "/v1/queries", keys[name], whole, retry),
            }
        # A second account of anna pays too: in version 0.1.0 both are spendable.
        for account in own[1:]:
            second = {"dataset": "surgery", "sql": "SELECT AVG(age) AS age FROM patients", "budget": account["id"]}
            asked["questions"]["second_account"] = {
                "principal": "anna",
                "body": second,
                "idempotency_key": None,
                "answer": ask(url, "/v1/queries", keys["anna"], second),
            }
        if recipe.sessions:
            asked.update(open_sessions(url, keys))
        if recipe.resources:
            asked.update(make_resources(url, keys))
        if recipe.streams:
            asked.update(open_streams(url, keys))
    ledger = f"sqlite:///{home / 'ledger.sqlite'}", str(home / "ledger.highwater")
    program.run(CLOSED, *ledger)
    with program.serving() as url:
        # While the server runs, which fails only what its own start finds open.
        if recipe.left_open is not None:
            program.run(recipe.left_open, *ledger)
        asked["budgets"] = ask_budgets(url, keys["admin"])
    (home / "asked.json").write_text(json.dumps(asked, indent=1))


def open_sessions(url: str, keys: dict[str, str]) -> dict[str, Any]:
    """A monitor that compared once, and a collector with three reports and a token that is left."""
    monitor = ask(url, "/v1/monitors", keys["anna"], MONITOR, "watch-1")
    compared = ask(url, f"/v1/monitors/{monitor['id']}/evaluations", keys["anna"], {})
    collector = ask(url, "/v1/collectors", keys["admin"], COLLECTOR, "collect-1")
    address = f"/v1/collectors/{collector['id']}"
    tokens = ask(url, f"{address}/tokens", keys["admin"], {"count": 4})["tokens"]
    reports = [{"token": token, "report": [value]} for token, value in zip(tokens, (0, 1, 1), strict=False)]
    ask(url, f"{address}/reports", keys["admin"], {"reports": reports})
    return {
        "monitor": {"opened": monitor, "compared": compared},
        "collector": {
            "opened": collector,
            "tokens": tokens,
            "estimates": get(url, f"{address}/estimates", keys["anna"]),
        },
    }


def make_resources(url: str, keys: dict[str, str]) -> dict[str, Any]:
    """A batch, a model and a synthetic table of anna, and what a query reads of the table."""
    batch = ask(url, "/v1/batches", keys["anna"], {**BATCH, "wait_ms": 30_000}, "batch-1")
    model = ask(url, "/v1/models", keys["anna"], {**MODEL, "wait_ms": 30_000}, "model-1")
    made = ask(url, "/v1/synthetic", keys["anna"], SYNTHETIC, "table-1")
    read = ask(url, "/v1/queries", keys["anna"], NOBODY)
    return {"batch": batch, "model": model, "synthetic": made, "nobody": read["rows"]}


def open_streams(url: str, keys: dict[str, str]) -> dict[str, Any]:
    """A stream of anna that answered twice, what a registered statistic gave, and a model that chose bounds."""
    stream = ask(url, "/v1/streams", keys["anna"], STREAM, "stream-1")
    answered = ask(url, f"/v1/streams/{stream['id']}/queries", keys["anna"], RANGES)
    statistic = ask(url, "/v1/statistics", keys["anna"], {**STATISTIC, "wait_ms": 30_000}, "statistic-1")
    paying = ask(url, "/v1/models", keys["anna"], {**PAYING, "wait_ms": 30_000}, "model-2")
    return {"stream": {"opened": stream, "answered": answered}, "statistic": statistic, "paying": paying}


def get(url: str, path: str, key: str) -> Any:
    """One GET."""
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def ask_budgets(url: str, key: str) -> list[dict[str, Any]]:
    """The budgets that a key sees."""
    budgets: list[dict[str, Any]] = get(url, "/v1/budgets", key)["budgets"]
    return budgets


def pack(home: Path, archive: Path) -> None:
    """One archive of the home, without times, owners and absolute paths."""
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w") as tar:
        for path in sorted(home.rglob("*")):
            if path.is_file() and not path.name.endswith(("-wal", "-shm", "-owner", ".lock")):
                info = tarfile.TarInfo(path.relative_to(home).as_posix())
                info.size = path.stat().st_size
                info.mode = path.stat().st_mode & 0o777
                with path.open("rb") as file:
                    tar.addfile(info, file)
    archive.write_bytes(gzip.compress(kept.getvalue(), 9, mtime=0))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        make(Path(sys.argv[1]).resolve(), Path(folder) / "home", RECIPES[sys.argv[2]])
        pack(Path(folder) / "home", Path(sys.argv[3]))
