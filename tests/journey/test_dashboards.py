"""Dashboards with real parts: what the schedule spends, what is charged once, and what their readers see."""

from __future__ import annotations

import asyncio
import csv
import datetime
import io
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import httpx
import pytest

from accountant.ledger import utc_now
from accountant.reader import LedgerReader
from accountant.request import Reuse
from mechanisms import gateway
from mechanisms.measurement import Integers, Measurement, Perturbed
from mechanisms.randomness import BitSource
from privacy.refusal import ExecutionFailed
from server.dashboards import refreshing
from server.dashboards.dashboards import Dashboards
from server.dashboards.refreshing import Refreshing
from tests.audit.recorder import FixedBits
from tests.journey.clinic import clinic_in
from tests.journey.watched import Clinic

SEXES = 'SELECT sex, COUNT(*) AS "number of people" FROM people GROUP BY sex'
DAILY = {"times": ["06:00"]}
DAY = datetime.timedelta(days=1)
HOUR = datetime.timedelta(hours=1)


class Wall:
    """The dashboards of a clinic, whose clock and whose looks are the test's."""

    def __init__(self, clinic: Clinic) -> None:
        self.clinic = clinic
        # Noon, such that none of the daily times lies between it and the machine's clock, which dates what is made.
        self.moment = (utc_now() - 6 * HOUR).replace(hour=12, minute=0, second=0, microsecond=0)
        self.who = ""
        services = clinic.services
        assert isinstance(services.dashboards, Dashboards)
        services.dashboards = replace(services.dashboards, now=self.now)

    def now(self) -> datetime.datetime:
        """The clock."""
        return self.moment

    def process(self) -> Refreshing:
        """What a server process refreshes with."""
        services = self.clinic.services
        assert isinstance(services.dashboards, Dashboards)
        return Refreshing(services.dashboards, services.journey, services.catalogue, services.jobs, self.now)

    def turn(self, *processes: Refreshing) -> int:
        """Looks until nothing is due, and waits for the ends. Returns how many refreshes were begun."""

        async def look(many: tuple[Refreshing, ...]) -> int:
            begun = sum(await asyncio.gather(*(one.look() for one in many)))
            for one in many:
                await one.rounds.finished()
            return begun

        total = 0
        while begun := asyncio.run(look(processes or (self.process(),))):
            total += begun
        return total

    def make(self, *tiles: dict[str, Any], epsilon: str = "2", **more: Any) -> str:
        """A fresh analyst's dashboard, refreshed once."""
        self.who, self.account = self.clinic.somebody()
        body = {"dataset": "clinic", "title": "The clinic", "envelope": {"epsilon": epsilon}, **more}
        made = self.clinic.call(self.who, "POST", "/v1/dashboards", {**body, "tiles": list(tiles)})
        assert made.status_code == 201, made.text
        self.turn()
        return str(made.json()["id"])

    def tile(self, dashboard: str, name: str = "sexes", **headers: str) -> httpx.Response:
        """One poll."""
        return self.clinic.call(self.who, "GET", f"/v1/dashboards/{dashboard}/tiles/{name}", **headers)

    def shown(self, dashboard: str) -> dict[str, Any]:
        """What its owner sees."""
        return dict(self.clinic.call(self.who, "GET", f"/v1/dashboards/{dashboard}").json())

    def charges(self) -> int:
        """How many queries of the analyst were charged."""
        records = self.clinic.services.ledger.queries(self.who, after=None, count=100)
        return sum(bool(record.charged) for record in records)

    def left(self, dashboard: str) -> Fraction:
        """What the envelope has left."""
        return Fraction(self.shown(dashboard)["envelope"]["remaining"]["epsilon"])


def sexes(schedule: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A tile of two groups."""
    tile = {"name": "sexes", "title": "People by sex", "sql": SEXES, "spend": {"epsilon": "0.5"}}
    return {**tile, "schedule": schedule or {"each": "data_version"}, **more}


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic of this module."""
    home = tmp_path_factory.mktemp("dashboards")
    with clinic_in(home) as (services, path):
        yield Clinic(home, services, path)


@pytest.fixture
def wall(clinic: Clinic) -> Iterator[Wall]:
    """Its dashboards; those of other tests rest."""
    yield Wall(clinic)
    for principal in clinic.services.registry.principals():
        clinic.services.registry.change_principal(principal.name, disabled=True, actor="test")


def test_a_tile_has_the_names_of_its_query_and_intervals(wall: Wall) -> None:
    """Shows JSON and CSV of one stored answer, their tags, 304, and that polls are charged nothing."""
    dashboard = wall.make(sexes())
    table = wall.tile(dashboard).json()
    names = ["sex", "number of people", "number of people_low", "number of people_high"]
    assert [column["name"] for column in table["columns"]] == names
    assert (table["state"], table["paused"], len(table["rows"])) == ("current", False, 3)
    for row in table["rows"]:
        assert row["number of people_low"] <= row["number of people"] <= row["number of people_high"]
    sheet = wall.tile(dashboard, "sexes.csv")
    assert sheet.headers["content-type"].startswith("text/csv; charset=utf-8")
    read = list(csv.DictReader(io.StringIO(sheet.content.decode("utf-8"))))
    assert read == [{name: "" if value is None else str(value) for name, value in row.items()} for row in table["rows"]]
    assert sheet.headers["etag"] != wall.tile(dashboard).headers["etag"]
    assert sheet.headers["cache-control"] == "private, no-cache"
    again = wall.tile(dashboard, "sexes.csv", **{"If-None-Match": sheet.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert wall.charges() == 1
    assert wall.left(dashboard) == pytest.approx(Fraction("1.5"))


def test_new_data_is_charged_once_and_unchanged_data_never(wall: Wall) -> None:
    """Shows a refresh for each version; a schedule of times that finds nothing new keeps bytes and budget."""
    dashboard = wall.make(sexes(), sexes(DAILY, name="daily"))
    before = {name: wall.tile(dashboard, f"{name}.csv") for name in ("sexes", "daily")}
    # Two tiles with the same text have the same release.
    assert before["sexes"].content == before["daily"].content
    assert (wall.turn(), wall.charges()) == (0, 1)
    wall.moment += DAY
    assert (wall.turn(), wall.charges()) == (1, 1)
    assert wall.tile(dashboard, "daily.csv").headers["etag"] == before["daily"].headers["etag"]
    wall.clinic.grow(5)
    assert (wall.turn(), wall.charges()) == (1, 2)
    assert wall.tile(dashboard, "sexes.csv").headers["etag"] != before["sexes"].headers["etag"]
    assert wall.tile(dashboard, "daily.csv").headers["etag"] == before["daily"].headers["etag"]
    wall.moment += DAY
    assert (wall.turn(), wall.charges()) == (1, 2)
    assert wall.tile(dashboard, "daily.csv").content == wall.tile(dashboard, "sexes.csv").content
    history = wall.tile(dashboard, "daily/history").json()
    assert [row["at"] for row in history["rows"]] == sorted(row["at"] for row in history["rows"])
    assert len(history["rows"]) == 9
    assert len({row["data_version"] for row in history["rows"]}) == 2
    assert wall.tile(dashboard, "daily/history", Accept="text/csv").text.count("\r\n") == 10


def test_two_processes_refresh_once(wall: Wall) -> None:
    """Shows that processes which look at the same time charge one refresh, and that each refresh is stored once."""
    dashboard = wall.make(sexes())
    wall.clinic.grow(3)
    wall.turn(wall.process(), wall.process(), wall.process())
    assert wall.charges() == 2
    assert len(wall.tile(dashboard, "sexes/history").json()["rows"]) == 6


def test_a_process_that_dies_is_not_charged_again(wall: Wall, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows a crash after the answer was settled: the next process finds it under the same key, at charge 0.

    A twin whose key is drawn anew is charged twice: the test sees it.
    """
    dashboard = wall.make(sexes())
    registry = wall.clinic.services.registry

    def dies(*_: Any, **__: Any) -> bool:
        raise ConnectionError

    for twin, charged in ((False, 1), (True, 2)):
        wall.clinic.grow(2)
        before = wall.charges()
        with monkeypatch.context() as patch:
            patch.setattr(type(registry), "end_refresh", dies)
            asyncio.run(_looked(wall.process()))
        wall.moment += datetime.timedelta(minutes=3)
        if twin:
            with registry._writing() as connection:
                connection.exec_driver_sql("UPDATE dashboard_tiles SET due = 'asked anew'")
                connection.commit()
            _without_reuse(wall, monkeypatch)
        assert wall.turn() == 1
        assert wall.charges() - before == charged
        assert wall.shown(dashboard)["tiles"][0]["state"] == "current"


async def _looked(process: Refreshing) -> None:
    await process.look()
    await process.rounds.finished()


def _without_reuse(wall: Wall, monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions of the schedule that no stored release answers."""
    genuine = refreshing.question_of

    def fresh(*parts: Any, **named: Any) -> Any:
        return replace(genuine(*parts, **named), reuse=Reuse.NONE)

    monkeypatch.setattr(refreshing, "question_of", fresh)


def test_a_clock_that_steps_refreshes_nothing_twice(wall: Wall) -> None:
    """Shows steps back and forth across a moment of the schedule, with other data at each look."""
    dashboard = wall.make(sexes(DAILY))
    for step, due in ((DAY, 1), (-3 * DAY, 0), (3 * DAY, 0), (90 * DAY, 1), (-90 * DAY, 1), (DAY, 1)):
        wall.moment += step
        wall.clinic.grow(1)
        assert wall.turn() == due, step
    # After a clock that was 90 days ahead the schedule goes on, and what was due before is asked under its own key.
    assert wall.charges() == 4
    assert wall.shown(dashboard)["tiles"][0]["next"] > wall.now().isoformat()


def test_an_exhausted_envelope_keeps_the_last_answer_and_says_so(wall: Wall) -> None:
    """Shows state and tag of an exhausted tile, the projected day, and that a larger envelope goes on."""
    dashboard = wall.make(sexes(), epsilon="0.6")
    last = wall.tile(dashboard).json()
    wall.clinic.grow(1)
    wall.turn()
    now = wall.tile(dashboard)
    assert now.json() == {**last, "state": "exhausted"}
    assert now.headers["noisegate-tile-state"] == "exhausted"
    wall.moment += DAY
    shown = wall.shown(dashboard)
    assert shown["tiles"][0]["refused"] == "budget_exhausted"
    assert shown["exhausted_on"] == wall.now().date().isoformat()
    assert wall.turn() == 0
    body = {"title": "The clinic", "envelope": {"epsilon": "3"}, "tiles": [sexes()]}
    assert wall.clinic.call(wall.who, "PUT", f"/v1/dashboards/{dashboard}", body).status_code == 200
    asked = wall.clinic.call(wall.who, "POST", f"/v1/dashboards/{dashboard}/tiles/sexes:refresh")
    assert asked.status_code == 202
    wall.turn()
    assert wall.tile(dashboard).json()["state"] == "current"


def test_failures_are_opaque(wall: Wall, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a refresh which ended without an answer keeps the last one, and is the same to readers whatever ended
    it."""
    dashboard = wall.make(sexes())
    last = wall.tile(dashboard).json()
    journey = wall.clinic.services.journey
    told = []

    def fails(query: Any) -> bytes:
        wall.clinic.services.ledger.fail(query.query_id)
        raise ExecutionFailed

    for _ in range(2):
        wall.clinic.grow(1)
        with monkeypatch.context() as patch:
            patch.setattr(journey, "complete", fails)
            wall.turn()
        told.append(wall.tile(dashboard).content)
    assert told[0] == told[1]
    assert json.loads(told[0]) == {**last, "state": "failed"}


def read(wall: Wall, who: str, dashboard: str) -> list[object]:
    """What readers see of a tile, but for what differs between any two dashboards and any two requests."""
    found: list[object] = []
    wall.who = who
    for name in ("sexes.json", "sexes.csv", "sexes/history"):
        response = wall.tile(dashboard, name)
        headers = {name: value for name, value in response.headers.items() if name not in ("x-request-id", "etag")}
        found.append((response.status_code, headers, response.text.replace(dashboard, "")))
        again = wall.tile(dashboard, name, **{"If-None-Match": response.headers["etag"]})
        found.append((again.status_code, again.content))
    return found


@pytest.mark.parametrize("twin", [False, True])
def test_readers_see_released_answers_and_the_schedule_alone(
    wall: Wall, twin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tiles about other people with the same releases are the same to readers: when data change, when a refresh
    fails, when the envelope is used up. In the twin releases hold counts, and the test sees them.
    """
    journey = wall.clinic.services.journey

    def perturb(measurement: Measurement, exact_matrix: Integers, _: BitSource) -> Perturbed:
        return measurement.perturb(exact_matrix if twin else exact_matrix * 0, FixedBits(1))

    def fails(query: Any) -> bytes:
        wall.clinic.services.ledger.fail(query.query_id)
        raise ExecutionFailed

    monkeypatch.setattr(gateway, "perturb", perturb)
    # What is asked for at once is due at the moment at which it is asked for.
    monkeypatch.setattr(wall.clinic.services.registry, "_clock", wall.now)
    pair = []
    for people in ("age < 30", "age > 31"):
        text = f"SELECT sex, COUNT(*) AS n FROM people WHERE {people} GROUP BY sex"
        dashboard = wall.make(sexes(sql=text), epsilon="1.2")
        pair.append((wall.who, dashboard))
    same = []
    for step in ("made", "fails", "exhausted"):
        with monkeypatch.context() as patch:
            if step == "fails":
                patch.setattr(journey, "complete", fails)
            if step != "made":
                wall.clinic.grow(1)
                wall.turn()
        one, other = (read(wall, *dashboard) for dashboard in pair)
        same.append(one == other)
        assert wall.tile(pair[1][1]).json()["state"] == {"made": "current", "fails": "failed"}.get(step, step)
    assert same == [not twin] * 3


def test_a_paused_dashboard_rests_and_a_closed_one_is_gone(wall: Wall) -> None:
    """Shows pause, resume, PUT that begins a tile anew, and DELETE."""
    dashboard = wall.make(sexes())
    address = f"/v1/dashboards/{dashboard}"
    assert wall.clinic.call(wall.who, "POST", f"{address}:pause").json()["paused"] is not None
    wall.clinic.grow(1)
    assert wall.turn() == 0
    assert wall.tile(dashboard).json()["paused"]
    assert wall.clinic.call(wall.who, "POST", f"{address}:resume").json()["paused"] is None
    assert wall.turn() == 1
    other = sexes(sql="SELECT COUNT(*) AS n FROM people")
    body = {"title": "Other", "envelope": {"epsilon": "2"}, "tiles": [other]}
    assert wall.clinic.call(wall.who, "PUT", address, body).json()["tiles"][0]["state"] == "waiting"
    assert wall.tile(dashboard, "sexes.csv").status_code == 503
    wall.turn()
    assert [row.keys() for row in wall.tile(dashboard).json()["rows"]] == [{"n", "n_low", "n_high"}]
    assert wall.clinic.call(wall.who, "DELETE", address).status_code == 200
    assert wall.tile(dashboard).status_code == 404
    wall.clinic.grow(1)
    assert wall.turn() == 0


def test_the_ledger_shows_the_owner_and_the_envelope(wall: Wall) -> None:
    """Shows that refreshes are queries of the owner on the envelope and what is above it; an audit accepts them."""
    dashboard = wall.make(sexes())
    ledger = wall.clinic.services.ledger
    (record,) = ledger.queries(wall.who, after=None, count=10)
    envelope = wall.shown(dashboard)["envelope"]["id"]
    path = [account.id for account in ledger.path(envelope)]
    assert (record.principal, record.account, path[1]) == (wall.who, envelope, wall.account)
    assert {part.account for part in record.charged} == set(path)
    with closing(LedgerReader(wall.clinic.services.settings.database())) as reader:
        assert not reader.audit().findings
    assert wall.clinic.call(wall.who, "GET", f"/v1/budgets/{envelope}").json()["used_share"] == "0.25"
    other, _ = wall.clinic.somebody()
    assert wall.clinic.call(other, "GET", f"/v1/budgets/{envelope}").status_code == 404
    # Nobody asks from it but the schedule.
    asked = {"dataset": "clinic", "sql": SEXES, "budget": envelope, "spend": {"epsilon": "0.1"}}
    assert wall.clinic.call(wall.who, "POST", "/v1/queries", asked).json()["code"] == "no_budget"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"sql": "SELECT age FROM people"}, "raw_rows"),
        ({"sql": "SELECT ("}, "parse_error"),
        ({"spend": {"epsilon": "5"}}, "policy_forbids"),
        ({"schedule": {"times": ["24:00"]}}, "invalid_request"),
        ({"schedule": {"each": "data_version", "days": ["mon"]}}, "invalid_request"),
        ({"schedule": {}}, "invalid_request"),
        ({"name": "a.csv"}, "invalid_request"),
    ],
)
def test_what_cannot_be_a_tile_is_refused_before_anything_is_made(wall: Wall, change: Any, code: str) -> None:
    """Shows refusals of texts, spends, schedules and names: nothing is opened."""
    who, _ = wall.clinic.somebody()
    accounts = len(wall.clinic.services.ledger.accounts(dataset="clinic"))
    body = {"dataset": "clinic", "title": "x", "envelope": {"epsilon": "2"}, "tiles": [{**sexes(), **change}]}
    assert wall.clinic.call(who, "POST", "/v1/dashboards", body).json()["code"] == code
    assert len(wall.clinic.services.ledger.accounts(dataset="clinic")) == accounts
