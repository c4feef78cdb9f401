"""Two worlds that differ in one person with as many rows as are stored, texts that make them dear, and a stopwatch.

The person's rows hold the values that are dearest for the operators; a condition that they alone meet guards what is
dear. `search` climbs from random texts to the one whose running times in the engine differ most, in ticks of its plan:
all that the moments show is made from these times, and they can be measured a hundred times faster than moments.

With automatic bounds a question has several statements: histograms of values, histograms of norms, then the sums. All
of them are measured, against the tick of the whole question.
"""

from __future__ import annotations

import asyncio
import csv
import random
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import httpx

from accountant.account import FilterKind
from migrations.upgrade import upgrade
from privacy.norms import NormPower
from privacy.refusal import Refused
from privacy.statement import Statement
from server.app import create_app
from server.build import build_services
from server.journey.query import Prepared
from server.roles import Role
from server.services import Services
from server.settings import Settings
from sql_rewrite.lower import lower
from sql_rewrite.norms import at_norms
from tests.journey.clinic import attach, open_account, question
from tests.journey.real import admitted_by, dataset_of, journey_of

__all__ = ["Text", "accuracy", "best_threshold", "busy", "search", "shift", "statements_of", "watch", "worlds"]

OTHERS = 2_000
ROWS_STORED = 1_000
LENGTH_MAX = 64
WORLDS = ("here", "there")

_DATASET = """\
version: 2
dataset: {name}
unit: {{table: people, key: person_id}}
tables:
  people:
    source: {{file: {name}_people.csv}}
    key: person_id
    columns:
      person_id: {{type: integer, nullable: false}}
  visits:
    source: {{file: {name}_visits.csv}}
    key: visit_id
    references: {{person_id: people.person_id}}
    contribution: {contribution}
    rows_stored_per_unit: {rows}
    columns:
      visit_id: {{type: integer, nullable: false}}
      person_id: {{type: integer, nullable: false}}
      x: {{type: number}}
      y: {{type: number{bounds}}}
      kind: {{type: integer, keys: {{range: [0, 49]}}, nullable: false}}
      memo: {{type: text, length_max: {length}}}
policy: {{epsilon_default: "0.001", epsilon_max: "100", delta_per_query: "1e-12", automatic_bounds: {automatic}}}
"""
_COUNTED = {
    "contribution": "{rows_per_unit: 20, groups_per_unit: 2, rows_per_unit_and_group: 10}",
    "bounds": ", bounds: [0, 100]",
    "automatic": "false",
}
_AUTOMATIC = {"contribution": "auto", "bounds": "", "automatic": "true"}

_WORST = ("ß" * LENGTH_MAX, "9" * LENGTH_MAX, "a" * LENGTH_MAX, " " * (LENGTH_MAX - 1) + "a", "2024-02-29" + " " * 54)

DEAR = (
    "LOWER(UPPER(memo)) LIKE '%x{k}%'",
    "CAST(memo || '{k}' AS DOUBLE) > {k}",
    "REPLACE(memo, 'aab', '') = '{k}'",
    "TRIM(memo) = '{k}'",
    "memo ILIKE '%a%{k}%'",
    "SQRT(SQRT(x + {k}.5) + 1) > 1000000000",
    "CAST(memo AS DATE) = '2020-01-01'",
    "POWER(x, 0.{k}1) / (x + {k}) > 5",
    "CAST(x AS BIGINT) % {k}7 = -1",
)
FORMS = (
    "SELECT COUNT(*) AS n FROM visits WHERE CASE WHEN person_id >= {others} THEN {dear} ELSE FALSE END",
    "SELECT COUNT(*) AS n FROM visits WHERE person_id >= {others} AND ({dear})",
    "SELECT COUNT(*) AS n FROM visits WHERE person_id < {others} OR {dear}",
    "SELECT COUNT(*) FILTER (WHERE person_id >= {others} AND ({dear})) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE {dear}",
    "SELECT SUM(CASE WHEN person_id >= {others} AND ({dear}) THEN y ELSE 1 END) AS n FROM visits",
    "SELECT AVG(CASE WHEN person_id >= {others} AND ({dear}) THEN y END) AS n, STDDEV(y) AS s, SUM(y) AS t FROM visits",
    "SELECT memo AS k, COUNT(*) AS n FROM visits WHERE {dear} GROUP BY memo",
    "SELECT CAST(x AS BIGINT) % 1000 AS k, COUNT(*) AS n, SUM(y) AS s, AVG(y) AS a FROM visits "
    "WHERE person_id < {others} OR NOT ({dear}) GROUP BY k",
    "SELECT kind AS k, COUNT(*) AS n, SUM(y) AS s, AVG(y) AS a, COUNT(DISTINCT person_id) AS u FROM visits "
    "WHERE person_id < {others} OR NOT ({dear}) GROUP BY k",
    "SELECT kind AS k, SUM(CASE WHEN person_id >= {others} AND ({dear}) THEN 1 - 2 * kind ELSE kind END) AS s, "
    "STDDEV(y) AS d FROM visits WHERE kind >= 0 GROUP BY k",
)
GROUPED = tuple(number for number, form in enumerate(FORMS) if "GROUP BY" in form)


@dataclass(frozen=True)
class Text:
    """A query: what is dear, how often, under which form, and how much work all rows do beside it."""

    dear: int
    times: int
    form: int
    filler: int
    cores: int

    def sql(self, salt: int = 0) -> str:
        """The text; the salt makes it another question to the release store, with the same work."""
        parts = []
        for core in range(self.cores):
            dear = " OR ".join(DEAR[self.dear].format(k=k + 1) for k in range(self.times))
            filler = "".join(f" AND x <> -{k + 1}.25" for k in range(self.filler))
            sql = FORMS[self.form].format(others=OTHERS, dear=dear)
            condition = f"x <> -{10_000 + salt}.{core + 1}{filler}"
            if self.form in GROUPED:
                parts.append(sql.replace(" WHERE ", f" WHERE {condition} AND (").replace(" GROUP BY", ") GROUP BY"))
                break
            joined = " AND " if " WHERE " in sql and "FILTER" not in sql else " WHERE "
            parts.append(f"{sql}{joined}{condition}")
            if ", STDDEV" in sql:
                break
        return parts[0] if self.cores == 1 else "SELECT " + ", ".join(f"({p}) AS c{i}" for i, p in enumerate(parts))

    def changed(self, source: random.Random) -> Text:
        """A neighbour of the text."""
        match source.randrange(5):
            case 0:
                return replace(self, times=max(1, self.times + source.choice((-8, -3, -1, 1, 3, 8))))
            case 1:
                return replace(self, filler=max(0, self.filler + source.choice((-20, -5, 5, 20))))
            case 2:
                return replace(self, form=source.randrange(len(FORMS)))
            case 3:
                return replace(self, cores=source.randrange(1, 5))
        return replace(self, dear=source.randrange(len(DEAR)))


def _write(folder: Path, name: str, *, person: bool, automatic: bool) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}_people.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["person_id"])
        rows.writerows([i] for i in range(OTHERS + person))
    with (folder / f"{name}_visits.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["visit_id", "person_id", "x", "y", "kind", "memo"])
        rows.writerows([i, i % OTHERS, i / 7, i % 100, i % 4, "memo"] for i in range(4 * OTHERS))
        if person:
            rows.writerows(
                [4 * OTHERS + i, OTHERS, 1e5 + i, 99.5, i % 50, _WORST[i % len(_WORST)]] for i in range(2 * ROWS_STORED)
            )
    path = folder / f"{name}.yaml"
    bounds = _AUTOMATIC if automatic else _COUNTED
    path.write_text(_DATASET.format(name=name, rows=ROWS_STORED, length=LENGTH_MAX, **bounds))
    return path


@contextmanager
def worlds(home: Path, *, automatic: bool = False) -> Iterator[tuple[Services, str]]:
    """Started services with the default tick and both worlds, and the key of an analyst.

    With `automatic`, questions choose norms and value bounds.
    """
    home.mkdir(parents=True, exist_ok=True)
    settings = Settings(home=home, requests_per_minute=1_000_000, requests_burst=1_000_000)
    upgrade(settings.database())
    services = build_services(settings)
    try:
        for name in WORLDS:
            path = _write(home / "sources", name, person=name == "here", automatic=automatic)
            attach(services, path)
            open_account(services.ledger, "watcher", dataset=name, epsilon="1000", kind=FilterKind.APPROXIMATE)
        services.registry.create_principal("watcher", Role.ANALYST, actor="test")
        yield services, services.registry.create_key("watcher", label="", days=1, actor="test").text
    finally:
        services.jobs.close(seconds=5)
        for close in services.closing:
            close()


@contextmanager
def busy(services: Services) -> Iterator[None]:
    """Another analyst, who asks one dear question after the other meanwhile."""
    open_account(services.ledger, "other", dataset="there", epsilon="1000", kind=FilterKind.APPROXIMATE)
    ended = threading.Event()

    def ask() -> None:
        source = random.Random(1)
        while not ended.is_set():
            text = Text(dear=5, times=4, form=4, filler=source.randrange(40), cores=1).sql(source.randrange(10**6))
            asked = question(text, "other", dataset="there", epsilon="0.01", reuse="none")
            services.journey.complete(admitted_by(services, asked))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def watch(services: Services, key: str, text: Text, pairs: int, *, salt: int) -> tuple[list[float], list[float]] | None:
    """How long answers took over HTTP, in both worlds in turn; None for a text that is refused."""

    async def all_of_them() -> tuple[list[float], list[float]] | None:
        transport = httpx.ASGITransport(app=create_app(services.settings, services=services))
        headers = {"Authorization": f"Bearer {key}"}
        seen: dict[str, list[float]] = {name: [] for name in WORLDS}
        async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60, headers=headers) as http:
            for name in WORLDS:  # planned once: what planning takes is no secret
                body = {"dataset": name, "sql": text.sql(salt), "spend": {"epsilon": "0.01"}, "reuse": "none"}
                response = await http.post("/v1/queries", json=body)
                if response.status_code == 422:
                    return None
                assert response.status_code == 200, response.text
            for _ in range(pairs):
                for name in WORLDS:
                    body = {"dataset": name, "sql": text.sql(salt), "spend": {"epsilon": "0.01"}, "reuse": "none"}
                    start = time.perf_counter()
                    response = await http.post("/v1/queries", json=body)
                    seen[name].append(time.perf_counter() - start)
                    assert response.status_code == 200, response.text
        return seen["here"], seen["there"]

    return asyncio.run(all_of_them())


def _right(threshold: float, sign: int, here: Sequence[float], there: Sequence[float]) -> float:
    """The share of answers that the rule "longer than the threshold means here" assigns rightly (or its opposite)."""
    right = sum(value > threshold for value in here) + sum(value <= threshold for value in there)
    share = right / (len(here) + len(there))
    return share if sign > 0 else 1 - share


def best_threshold(here: Sequence[float], there: Sequence[float]) -> tuple[float, int]:
    """The rule that tells these answers apart best."""
    rules = [(threshold, sign) for threshold in sorted({*here, *there}) for sign in (1, -1)]
    return max(rules, key=lambda rule: _right(rule[0], rule[1], here, there))


def accuracy(here: Sequence[float], there: Sequence[float]) -> float:
    """Cross-validated: the rule is chosen on one half and judged on the other, both ways."""
    halves = [(here[k::2], there[k::2]) for k in (0, 1)]
    judged = 0.0
    for known, others in (halves, reversed(halves)):
        threshold, sign = best_threshold(*known)
        judged += _right(threshold, sign, *others)
    return judged / 2


def shift(services: Services, text: Text, runs: int, *, salt: int = 0) -> float | None:
    """By how many ticks of its plan one person moves a text's running time in the engine; None when it is refused.

    Twice the accuracy of one look beyond a half, if nothing else moves running times.
    """
    journey = journey_of(services)
    datasets = [dataset_of(services, name) for name in WORLDS]
    try:
        asked = [
            journey.preparing.prepare(question(text.sql(salt), "watcher", dataset=dataset.name), dataset, NormPower.L2)
            for dataset in datasets
        ]
    except Refused:
        return None
    tick = journey.pace.moments(asked[0].work).tick
    snapshots = [journey.running._served.snapshot(dataset) for dataset in datasets]
    seen: list[list[float]] = [[], []]
    for _ in range(runs):
        for world, prepared in enumerate(asked):
            with journey.running._private.lease(owner="search") as lease:
                start = time.perf_counter()
                for statement in statements_of(prepared):
                    journey.running._private.run(snapshots[world], statement, timeout_seconds=60, lease=lease)
                seen[world].append(time.perf_counter() - start)
    here, there = map(statistics.median, seen)
    return (here - there) / float(tick)


def statements_of(prepared: Prepared) -> tuple[Statement, ...]:
    """All that a run of a question sends to the engine in one lease, at norms that scale the one person down.

    The sums of a core follow its histogram of norms, whose tables they read where they share some.
    """
    found = [] if prepared.values is None else [*prepared.values.statements]
    for core, histogram in zip(prepared.cores, prepared.histograms, strict=True):
        if histogram is not None:
            found.append(histogram.statement)
        norms = {item.norm.name: Fraction(3) for item in core.norms}
        found.append(lower(at_norms(core, norms), shared=histogram is not None and histogram.shared))
    return tuple(found)


def search(services: Services, *, texts: int, seed: int, runs: int = 5, again: int = 41) -> tuple[Text, float, int]:
    """The text in which one person moves the running time most, by how many ticks, and how many texts were refused.

    A climb, of so many runs of each text; its ten best are measured again, because the best of many measurements is
    the luckiest.
    """
    source = random.Random(seed)

    def fresh() -> Text:
        return Text(
            dear=source.randrange(len(DEAR)),
            times=source.choice((1, 2, 4, 8, 16)),
            form=source.randrange(len(FORMS)),
            filler=source.choice((0, 10, 40)),
            cores=source.choice((1, 1, 2, 4)),
        )

    found: dict[Text, float] = {}
    best, best_score, refused, stale = fresh(), 0.0, 0, 0
    for _ in range(texts):
        candidate = fresh() if stale > 15 or best_score == 0 else best.changed(source)
        score = shift(services, candidate, runs)
        stale += 1
        if score is None:
            refused += 1
            continue
        found[candidate] = abs(score)
        if abs(score) > best_score or stale > 16:
            best, best_score, stale = candidate, abs(score), 0
    best_ones = sorted(found, key=found.__getitem__)[-10:]
    measured = {text: abs(shift(services, text, again) or 0.0) for text in best_ones}
    top = max(measured, key=measured.__getitem__)
    return top, measured[top], refused
