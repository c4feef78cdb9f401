"""What was asked of each version whose home is kept, and of which dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    sharpened: str | None = None
    """Which answer is made more precise."""


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

MOMENTS = "SELECT region, COUNT(*) AS n, AVG(age) AS a, VAR_POP(age) AS v FROM patients GROUP BY region"

OF_SHARING: tuple[Question, ...] = (
    ("anna", "laplace", {"sql": "SELECT COUNT(*) AS n FROM patients WHERE age > 60", "noise": "laplace"}, None),
    ("anna", "moments", {"sql": MOMENTS, "noise": "gaussian"}, None),
    ("anna", "derived", {"sql": "SELECT region, STDDEV_POP(age) AS d FROM patients GROUP BY region"}, None),
    ("anna", "atoms", {"sql": "SELECT COUNT_IF(age > 50) AS old, COUNT(*) AS n FROM patients"}, None),
    ("anna", "own_groups", {"sql": "SELECT town, AVG(age) AS a FROM patients GROUP BY town"}, None),
)
"""Questions that 0.13.0 was the first to answer, or that it answers from what others measured."""

RUNNING_SUM = """SELECT month, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY month) AS r
FROM visits WHERE cost > 50 GROUP BY month"""

OF_MANY: tuple[Question, ...] = (
    ("anna", "running", {"sql": RUNNING_SUM}, None),
    ("anna", "averages", {"sql": "SELECT AVG(age) AS a, AVG(age % 10) AS b FROM patients", "noise": "gaussian"}, None),
    (
        "anna",
        "merged",
        {
            "sql": "SELECT region, COUNT(*) AS n FROM patients WHERE age > 80 GROUP BY region",
            "accuracy": {"relative": "0.5", "merge": True},
        },
        None,
    ),
    (
        "anna",
        "positive",
        {
            "sql": "SELECT region, COUNT(*) AS n FROM patients WHERE age > 85 GROUP BY region",
            "nonnegative": True,
        },
        None,
    ),
    ("anna", "part", {"sql": "SELECT COUNT(*) AS n FROM patients WHERE age > 70"}, None),
    ("anna", "rest", {"sql": "SELECT COUNT(*) AS n FROM patients WHERE age <= 70"}, None),
)
"""Questions that 0.14.0 was the first to answer, and two which together are a third."""

SHARPER = {"spend": {"epsilon": "0.3"}, "max_cost": "0.25"}
"""A better wish for an answer of the default spend."""

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
    "0.13.0": replace(
        OF_0_5,
        dataset=OF_0_5.dataset.replace(COST, COST + PAID).replace("policy:", TARIFFS + STATISTICS + "policy:"),
        limits_of_anna=("28",),
        questions=(*ALL_OF_0_10, *OF_PUBLIC, *OF_SHARING),
        sessions=True,
        resources=True,
        streams=True,
        shares_of_ben={"gaussian": 40, "concentrated": 10, "mixed": 10, "groups": 40},
        sharpened="moments",
    ),
    "0.14.0": replace(
        OF_0_5,
        dataset=OF_0_5.dataset.replace(COST, COST + PAID).replace("policy:", TARIFFS + STATISTICS + "policy:"),
        limits_of_anna=("32",),
        questions=(*ALL_OF_0_10, *OF_PUBLIC, *OF_SHARING, *OF_MANY),
        sessions=True,
        resources=True,
        streams=True,
        shares_of_ben={"gaussian": 40, "concentrated": 10, "mixed": 10, "groups": 40},
        sharpened="moments",
    ),
}
