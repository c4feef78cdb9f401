"""All stages of questions that choose norms, value bounds and weights are within one price: an audit over HTTP.

Both worlds are attached to one server. The person who is in one of them only has 64 rows in each of four wards: an L1
norm of 2^8 and an L2 norm of 2^7, both at the edge of a bin. The least and greatest payment are at edges too, and
the person is in 64 towns, each of which others bring to the threshold of its selection. The attacker knows all that,
and the exact numbers by which the person moves every histogram; what is looked at are the best linear combinations, the
numbers that were chosen, and the status, the groups and the size of every answer.
"""

from __future__ import annotations

import asyncio
import csv
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

from accountant.account import FilterKind, Limit
from mechanisms.noisy_sums import sums_from_plain
from migrations.upgrade import upgrade
from privacy.loss import Loss
from privacy.statement import Statement
from server.app import create_app
from server.build import build_services
from server.journey import norms, value_bounds
from server.journey.query import Prepared, ToRun
from server.services import Services
from server.settings import Settings
from tests.audit.test_norms import weight_of_one
from tests.audit.worlds import Answer, Event, half_line, learned, less_noise, told_too_much, without_waiting
from tests.journey.clinic import question
from tests.kept_workers import kept_workers

pytestmark = pytest.mark.slow

TOWNS, OTHERS, TIMES, EPSILON = 64, 40, 60, "0.2"
WORLDS = ("here", "there")
ROWS_OF_ONE = 64
"""Of the person in each of four wards."""

DATASET = """\
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
    references: {{person_id: people.person_id}}
    contribution: auto
    columns:
      person_id: {{type: integer, nullable: false}}
      ward: {{type: text, keys: [a, b, c, d], nullable: false}}
      cost: {{type: integer, nullable: false}}
      paid: {{type: number}}
  homes:
    source: {{file: {name}_homes.csv}}
    references: {{person_id: people.person_id}}
    contribution: auto
    columns:
      person_id: {{type: integer, nullable: false}}
      town: {{type: text}}
policy: {{epsilon_max: "100", delta_per_query: "1e-6", automatic_bounds: true}}
"""

NORMS = "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward"
BOUNDS = "SELECT ward, SUM(paid) AS s, AVG(paid) AS a FROM visits GROUP BY ward"
WEIGHTS = "SELECT town, COUNT(*) AS n FROM homes GROUP BY town"


@dataclass(frozen=True)
class Served:
    """The server, a key for each kind of account, and by how much the person moves each cell of each histogram."""

    services: Services
    keys: Mapping[FilterKind, str]
    moved: Mapping[tuple[str, FilterKind], tuple[Mapping[tuple[int, str], int], ...]]
    units_by_town: int


def write(folder: Path, name: str, *, person: bool, units_by_town: int) -> Path:
    """One world."""
    folder.mkdir(parents=True, exist_ok=True)
    people = max(OTHERS, TOWNS * units_by_town)
    visits = [(i, "abcd"[i % 4], 1, 1) for i in range(OTHERS)]
    homes = [(i, f"town{i % TOWNS}") for i in range(TOWNS * units_by_town)]
    if person:
        ends = {0: -(2**10), 1: 2**20}
        visits += [(people, ward, 4, ends.get(i, 2**10)) for i in range(ROWS_OF_ONE) for ward in "abcd"]
        homes += [(people, f"town{i}") for i in range(TOWNS)]
    for part, header, rows in (
        ("people", ["person_id"], [(i,) for i in range(people + person)]),
        ("visits", ["person_id", "ward", "cost", "paid"], visits),
        ("homes", ["person_id", "town"], homes),
    ):
        with (folder / f"{name}_{part}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(rows)
    path = folder / f"{name}.yaml"
    path.write_text(DATASET.format(name=name))
    return path


def open_accounts(services: Services, dataset: str) -> None:
    """A root, and an account of each kind."""
    create = services.ledger.create_account
    root = create(
        dataset=dataset, parent=None, principal=None, name="root", limit=Limit(Fraction(100_000), Fraction(1, 100)),
        filter=FilterKind.APPROXIMATE, actor="test",
    )  # fmt: skip
    for kind in FilterKind:
        delta = Fraction(0) if kind is FilterKind.PURE else Fraction(1, 125)
        create(
            dataset=dataset, parent=root.id, principal=kind.value, name=kind.value,
            limit=Limit(Fraction(20_000), delta), filter=kind, actor="test",
        )  # fmt: skip


def prepared(services: Services, sql: str, kind: FilterKind, dataset: str) -> ToRun:
    """A question, admitted and given back."""
    asked = question(sql, kind.value, dataset=dataset, epsilon=EPSILON, reuse="none", accept_noise=True)
    admitted = services.journey.admit(asked)
    assert isinstance(admitted, ToRun)
    services.journey.abandon(admitted)
    return admitted


def exact(services: Services, statement: Statement, dataset: str) -> dict[tuple[int, str], int]:
    """What a histogram's statement counts, by bin and statistic."""
    journey: Any = services.journey
    snapshot = journey.running._served.snapshot(services.catalogue.get(dataset))
    columns, sums, _ = journey.running._private.run(snapshot, statement, timeout_seconds=30).reveal()
    found: dict[tuple[int, str], int] = defaultdict(int)
    for name, values in sums.items():
        for place, value in zip(columns["bin"], values, strict=True):
            found[int(place), name.rpartition("_")[0]] += int(value)
    return found


def moves(services: Services, sql: str, kind: FilterKind) -> tuple[Mapping[tuple[int, str], int], ...]:
    """By how much the person moves the histograms of values, and those of norms."""
    one: Prepared = prepared(services, sql, kind, "here").asked.prepared
    statements = [] if one.values is None else [*one.values.statements]
    statements += [histogram.statement for histogram in one.histograms if histogram is not None]
    found = []
    for statement in statements:
        here, there = (exact(services, statement, name) for name in WORLDS)
        found.append({cell: here[cell] - there[cell] for cell in {*here, *there} if here[cell] != there[cell]})
    return tuple(found)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server with both worlds, and a third one that shows where the threshold of a selection is."""
    with _served(tmp_path_factory.mktemp("stages")) as started:
        yield started


@contextmanager
def _served(home: Path) -> Iterator[Served]:
    settings = Settings(home=home, answer_tick_ms=1, requests_per_minute=1_000_000, requests_burst=1_000_000)
    upgrade(settings.database())
    with kept_workers():
        services = build_services(settings)
    try:
        for kind in FilterKind:
            services.registry.create_principal(kind.value, "analyst", actor="test")
        keys = {
            kind: services.registry.create_key(kind.value, label="", days=1, actor="test").text for kind in FilterKind
        }
        units = 1
        for name in ("probe", *WORLDS):
            path = write(home / "sources", name, person=name == "here", units_by_town=units)
            services.registrar.attach_path(path, actor="test")  # type: ignore[attr-defined]
            open_accounts(services, name)
            if name == "probe":
                priced = prepared(services, WEIGHTS, FilterKind.APPROXIMATE, name).asked.priced
                assert priced is not None
                selection: Any = priced.calibration.measurements[0]
                units = round(selection.threshold * selection.grid / 2**20)
        without_waiting(services)
        cases = [(NORMS, kind) for kind in FilterKind] + [(BOUNDS, kind) for kind in FilterKind]
        cases.append((WEIGHTS, FilterKind.APPROXIMATE))
        yield Served(services, keys, {(sql, kind): moves(services, sql, kind) for sql, kind in cases}, units)
    finally:
        services.jobs.close(seconds=5)
        for close in services.closing:
            close()


def test_the_person_is_at_the_edges_of_bins(served: Served) -> None:
    """Shows what the attack relies on: one more unit in one bin of each histogram, at 2^7, 2^8, -2^10 and 2^20."""
    (values, rows) = served.moved[BOUNDS, FilterKind.APPROXIMATE]
    assert list(values.values()) == [1, 1]
    assert set(rows.values()) == {1}
    assert dict(served.moved[NORMS, FilterKind.APPROXIMATE][0]) == {(28, "n1"): 1, (36, "n0"): 1}
    assert dict(served.moved[NORMS, FilterKind.PURE][0]) == {(32, "n1"): 1, (40, "n0"): 1}
    assert dict(served.moved[WEIGHTS, FilterKind.APPROXIMATE][0]) == {(12, "n0"): 1}


def seen(served: Served, response: httpx.Response, sql: str, kind: FilterKind) -> tuple[Answer, tuple[Loss, ...]]:
    """What an attacker makes of an answer and its releases, as a row of numbers; and what they cost."""
    assert response.status_code == 200, response.text
    document = response.json()
    releases = [served.services.ledger.release(name) for name in document["provenance"]["releases"]]
    row: list[float] = []
    best = 0.0
    moved = iter(served.moved[sql, kind])
    for release in releases:
        assert release is not None
        body = json.loads(release.body)
        bins = next((column["values"] for column in body["columns"] if column["name"] == "bin"), None)
        if bins is None:
            continue
        cells = next(moved)
        score = 0.0
        for told in sums_from_plain(body["statistics"]):
            variance = float(told.measurement.variance() * told.measurement.grid**2)
            for (place, name), by in cells.items():
                if name == told.measurement.statistic.name:
                    at = bins.index(place)
                    score += by * float(told.values[at, 0] * told.measurement.grid) / variance
        row.append(score)
        best += score
    chosen = {column: norm for norm in document["provenance"]["norms"] for column in norm["columns"]}
    for place, (column, each, others) in enumerate(ADDS[sql], 1):
        cells = [
            (float(line[place]), float(error[place]))
            for line, error in zip(document["rows"], document["standard_errors"], strict=True)
            if error[place]
        ]
        row.append(sum(value for value, _ in cells))
        # What the person adds to each group under the norm that was chosen, and what all others do.
        norm = chosen[column]
        groups = TOWNS if sql == WEIGHTS else 4
        more = min(each, float(norm["norm"]) / (groups if norm["power"] == "l1" else groups**0.5))
        known = served.units_by_town if sql == WEIGHTS else others
        best += sum((value - known) * more / error**2 for value, error in cells)
    numbers = [float(norm["norm"]) for norm in document["provenance"]["norms"]]
    ends = [float(bound[end]) for bound in document["provenance"]["value_bounds"] for end in ("lower", "upper")]
    row += [
        best,
        float(len(document["rows"])),
        float(len(response.content)),
        *numbers,
        *ends,
        float(len(document["warnings"])),
    ]
    return Answer(200, (tuple(row),)), tuple(event.loss() for release in releases for event in release.events)  # type: ignore[union-attr]


ADDS: Mapping[str, Sequence[tuple[str, float, float]]] = {
    NORMS: (("COUNT(*)", 64, 10), ("SUM(cost)", 256, 10)),
    BOUNDS: (("SUM(paid)", 1e9, 10),),
    WEIGHTS: (("COUNT(*)", 1, math.nan),),
}
"""Of columns: what the person adds to each group before any norm, and what the others add to it (by town: see
`Served.units_by_town`)."""


def findings(served: Served, sql: str, kind: FilterKind, *, times: int = TIMES) -> list[str]:
    """What the answers of the two worlds tell apart better than their charge allows, or that differs in kind."""
    services = served.services
    services.journey.preparing.forget()  # type: ignore[attr-defined]
    told: dict[str, list[Answer]] = {name: [] for name in WORLDS}
    charged: set[tuple[Loss, ...]] = set()
    shapes: list[object] = []

    async def ask_all() -> None:
        transport = httpx.ASGITransport(app=create_app(services.settings, services=services))
        headers = {"Authorization": f"Bearer {served.keys[kind]}"}
        work = iter([name for _ in range(times) for name in WORLDS])
        async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60, headers=headers) as http:

            async def one_after_another() -> None:
                for name in work:
                    body = {
                        "dataset": name, "sql": sql, "spend": {"epsilon": EPSILON}, "reuse": "none",
                        "accept_noise": True,
                    }  # fmt: skip
                    response = await http.post("/v1/queries", json=body)
                    answer, losses = seen(served, response, sql, kind)
                    # Which parts are null follows from released numbers: a shape is one more number of the answer.
                    shape = shape_of(response.json())
                    shapes.append(shape)
                    told[name].append(replace(answer, rows=((*answer.rows[0], shapes.index(shape)),)))
                    charged.add(losses)

            await asyncio.gather(*(one_after_another() for _ in range(4)))

    asyncio.run(ask_all())
    found = [] if len(charged) == 1 else ["the price differs"]
    losses = next(iter(charged))
    first = times // 4
    here, there = told["here"], told["there"]
    best = len(served.moved[sql, kind]) + len(ADDS[sql])
    events: list[Event] = learned(here[:first], there[:first], losses)
    # The combination is looked at in several places, whatever the first answers suggest.
    middle = sorted(answer.rows[0][best] for answer in (*here[:first], *there[:first]))
    events += [half_line(best, middle[len(middle) * k // 4], above=True) for k in (1, 2, 3)]
    events += [
        Event(f"shape {place}: {shapes[place]}", lambda answer, place=place: answer.rows[0][-1] == place)  # type: ignore[misc]
        for place in sorted({answer.rows[0][-1] for answer in (*here, *there)})
    ]
    return found + [event.name for event in events if told_too_much(event, here[first:], there[first:], losses)]


def shape_of(document: Any) -> object:
    """Names and types of everything in an answer, without its values and the number of its groups."""
    if isinstance(document, dict):
        return tuple(sorted((name, shape_of(part)) for name, part in document.items() if name not in VARYING))
    if isinstance(document, list):
        return tuple(sorted({repr(shape_of(part)) for part in document}))
    return "number" if isinstance(document, int | float) and not isinstance(document, bool) else type(document).__name__


VARYING = {"warnings", "cut", "rows", "lows", "highs", "standard_errors", "interval_reasons", "share", "error"}
"""Parts that follow from released numbers, and may be there or not."""

CASES = [
    (NORMS, FilterKind.PURE),
    (NORMS, FilterKind.APPROXIMATE),
    (BOUNDS, FilterKind.PURE),
    (BOUNDS, FilterKind.APPROXIMATE),
    (WEIGHTS, FilterKind.APPROXIMATE),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("sql", "kind"), CASES, ids=["norms-pure", "norms", "bounds-pure", "bounds", "weights"])
def test_all_stages_together_tell_no_more_than_their_price(served: Served, sql: str, kind: FilterKind) -> None:
    """Two worlds that differ by one person at every edge: histograms, chosen numbers, sums, groups and sizes."""
    assert findings(served, sql, kind) == []


# Planted bugs


def an_eighth_of_the_noise_at_chosen_bounds(patch: pytest.MonkeyPatch) -> None:
    """Sums within chosen bounds have the noise of bounds an eighth as wide."""
    less_noise(patch, value_bounds, norms, by=8)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("plant", "sql", "times"),
    [(an_eighth_of_the_noise_at_chosen_bounds, BOUNDS, 240), (weight_of_one, WEIGHTS, 200)],
    ids=["an eighth of the noise", "a whole weight"],
)
def test_planted_bugs_are_noticed(
    served: Served, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], sql: str, times: int
) -> None:
    """The audit above refutes servers with one deliberate bug each.

    An eighth of the noise of a sum shifts the combination by three standard deviations, where all stages may by 0.62:
    of 240 answers of each world, three in four refute that, except once in 10^8 runs. A whole weight in each of 64
    towns shifts it by five at the norm of the weights, and by less at greater ones that may be chosen.
    """
    plant(monkeypatch)
    assert findings(served, sql, FilterKind.APPROXIMATE, times=times) != []
