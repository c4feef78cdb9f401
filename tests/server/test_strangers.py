"""What a path or a body names is not there for a stranger: every route, by what it declares and by what it answers."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import httpx
import pytest
from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute

from mechanisms.sparse_vector import SparseVector
from mechanisms.streams.price import StreamNoise
from privacy.policy import Dataset
from server.app import create_app
from server.auth import Caller, access_of, roles
from server.batches.strategy import Strategy
from server.batches.terms import Terms as BatchTerms
from server.monitors.terms import Direction, Terms
from server.roles import OVERSEEING, Role
from server.routes import queries
from server.routes.sight import SIGHTS, unseen_routes, visible_dataset
from server.store.resources import (
    BATCHES,
    MODELS,
    MONITORS,
    STREAMS,
    BatchRow,
    MonitorRow,
    ResourceRow,
    StreamRow,
    SyntheticRow,
)
from server.store.webhooks import WebhookRow
from server.streams.terms import Terms as StreamTerms
from tests.journey.clinic import clinic_in, open_account
from tests.server.conftest import World
from tests.server.fakes import Api, query
from tests.server.test_roles import ROWS

STRANGERS = ("other", "dashboard", "owner")
"""Principals without an account for the dataset: every role but those that see everything."""

ASKED = "SELECT COUNT(*) AS n FROM people"

ABSENT = {
    "dataset": "absent",
    "table": "absent",
    "budget_id": "b_00000000000000000000000000000000",
    "query_id": "q_00000000000000000000000000000000",
    "release_id": "r_00000000000000000000000000000000",
    "collector_id": "c_00000000000000000000",
    "model_id": "t_00000000000000000000",
    "monitor_id": "m_00000000000000000000",
    "stream_id": "st_000000000000000000000000",
    "synthetic_id": "s_000000000000000000000000",
    "batch_id": "q_00000000000000000000000000000000",
    "webhook_id": "w_00000000000000000000",
    "dashboard_id": "d_00000000000000000000",
    "request_id": "br_00000000000000000000",
    "proposal_id": "pr_000000000000000000000000",
    "tile": "absent",
    "link_id": "k_0000000000000000",
    "key_id": "000000000000",
    "name": "nobody",
    "code": "absent",
}
"""By the parameter of a path, what does not exist."""

SHOWN_TO_ALL = {"/v1/collectors/{collector_id}", "/v1/collectors/{collector_id}/estimates"}
"""What is made to be read by everybody with a key: questions whose answers were randomised before they were sent."""


def watched(dataset: str) -> dict[str, object]:
    """A monitor to open."""
    return {"dataset": dataset, "sql": ASKED, "threshold": "1000", "epsilon": "1", "evaluations": 10}


def ranged(dataset: str) -> dict[str, object]:
    """A stream to open."""
    return {"dataset": dataset, "table": "patients", "columns": [{"name": "age"}], "epsilon": "1"}


def fitted(dataset: str) -> dict[str, object]:
    """A model to fit."""
    return {"dataset": dataset, "sql": "SELECT age, smoker AS label FROM people", "spend": {"own_epsilon": "1"}}


def registered(dataset: str) -> dict[str, object]:
    """A statistic to ask."""
    return {"dataset": dataset, "statistic": "typical", "width": "1", "spend": {"own_epsilon": "1"}}


def drawn(dataset: str) -> dict[str, object]:
    """A synthetic table to make."""
    return {"dataset": dataset, "table": "patients", "name": "drawn", "epsilon": "1"}


def polled(dataset: str) -> dict[str, object]:
    """A dashboard to make."""
    tile = {"name": "people", "title": "People", "sql": ASKED, "spend": {"epsilon": "1"}}
    tiles = [{**tile, "schedule": {"each": "data_version"}}]
    return {"dataset": dataset, "title": "The clinic", "envelope": {"epsilon": "2"}, "tiles": tiles}


def wished(dataset: str) -> dict[str, object]:
    """A limit to ask for."""
    return {"dataset": dataset, "limit": {"epsilon": "20", "delta": "0.000001"}, "reason": "a survey"}


NAMING = {
    "POST /v1/budget-requests": [{"json": wished(name)} for name in ("clinic", "absent")],
    "POST /v1/dashboards": [{"json": polled(name)} for name in ("clinic", "absent")],
    "POST /v1/queries": [{"json": query(ASKED, dataset=name)} for name in ("clinic", "absent")],
    "POST /v1/estimates": [{"json": query(ASKED, dataset=name)} for name in ("clinic", "absent")],
    "POST /v1/monitors": [{"json": watched(name)} for name in ("clinic", "absent")],
    "POST /v1/monitors:estimate": [{"json": watched(name)} for name in ("clinic", "absent")],
    "POST /v1/streams": [{"json": ranged(name)} for name in ("clinic", "absent")],
    "POST /v1/streams:estimate": [{"json": ranged(name)} for name in ("clinic", "absent")],
    "POST /v1/models": [{"json": fitted(name)} for name in ("clinic", "absent")],
    "POST /v1/models:estimate": [{"json": fitted(name)} for name in ("clinic", "absent")],
    "POST /v1/statistics": [{"json": registered(name)} for name in ("clinic", "absent")],
    "POST /v1/statistics:estimate": [{"json": registered(name)} for name in ("clinic", "absent")],
    "POST /v1/synthetic": [{"json": drawn(name)} for name in ("clinic", "absent")],
    "POST /v1/synthetic:estimate": [{"json": drawn(name)} for name in ("clinic", "absent")],
    "POST /v1/batches": [{"json": {"dataset": name, "queries": [ASKED]}} for name in ("clinic", "absent")],
    "POST /v1/batches:estimate": [{"json": {"dataset": name, "queries": [ASKED]}} for name in ("clinic", "absent")],
    "GET /v1/budgets": [{"params": {"dataset": name}} for name in ("clinic", "absent")],
    **{
        f"GET /v1/{plural}": [{"params": {"dataset": name}} for name in ("clinic", "absent")]
        for plural in ("batches", "models", "monitors", "streams", "synthetic")
    },
}
"""Routes that name a dataset beside their path: a request for what is there, and one for what is not."""


@dataclass(frozen=True)
class Probe:
    """One route, asked for something that exists and for something that does not."""

    method: str
    there: str
    absent: str
    more: Sequence[dict[str, Any]] = ({}, {})

    def answers(self, api: Api, who: str) -> list[tuple[int, object, dict[str, str]]]:
        """What is told of both: status, body and headers, without the names."""
        return [
            told(api.call(self.method, path, who=who, **more), path, more)
            for path, more in zip((self.there, self.absent), self.more, strict=True)
        ]


def told(response: httpx.Response, path: str, more: dict[str, Any]) -> tuple[int, object, dict[str, str]]:
    """An answer without what differs between any two requests."""
    own = {"x-request-id", "date", "noisegate-request"}
    # What the request made has an identifier and a moment of its own.
    headers = {
        name: re.sub(r"br_[0-9a-f]{24}", "", value) for name, value in response.headers.items() if name not in own
    }
    text = re.sub(r'"(?:request_id|created)": ?"[^"]*"|br_[0-9a-f]{24}', "", response.text)
    for name in {*path.split("/"), *(str(value) for part in more.values() for value in part.values())} - {"", "v1"}:
        text = text.replace(f'\\"{name}\\"', "NAME").replace(f'"{name}"', "NAME")
    return response.status_code, text, {name: value for name, value in headers.items() if name != "content-length"}


def collector(world: World) -> str:
    """A collector with a report."""
    body = {"question": "Do you smoke?", "domain": ["yes", "no"], "epsilon": "1"}
    made: str = world.api.post("/v1/collectors", json=body, who="admin").json()["id"]
    address = f"/v1/collectors/{made}"
    (token,) = world.api.post(f"{address}/tokens", json={"count": 1}, who="admin").json()["tokens"]
    world.api.post(f"{address}/reports", json={"reports": [{"token": token, "report": [0]}]}, who=None)
    return made


def monitor(world: World) -> str:
    """A monitor of the analyst, as it is stored."""
    sparse = SparseVector.for_epsilon(Fraction(1), sensitivity=Fraction(1), hits=1, one_way=True, interactive=True)
    terms = Terms(
        direction=Direction.ABOVE,
        epsilon=Fraction(1),
        hits=1,
        evaluations=10,
        stream=False,
        change=Fraction(1),
        step=Fraction(1),
        one_way=True,
        upwards=True,
        threshold_scale=sparse.threshold_scale,
        query_scale=sparse.query_scale,
        answer_scale=None,
        answer_epsilon=None,
        restores=0,
    )
    row = MonitorRow(
        id="m_1",
        principal="analyst",
        dataset="clinic",
        account=world.account.id,
        price=None,
        terms=terms.to_json(),
        sealed=b"",
        left=1,
    )
    return world.registry.add_resource(MONITORS, row).id


def stream(world: World) -> str:
    """A stream of the analyst, as it is stored."""
    terms = StreamTerms(
        epsilon=Fraction(1),
        queries=10,
        tolerance=100,
        step=Fraction(1),
        cells=2,
        noise=StreamNoise.for_epsilon(Fraction(1), change=Fraction(1), updates=1),
        restores=0,
    )
    row = StreamRow(
        id="st_1",
        principal="analyst",
        dataset="clinic",
        account=world.account.id,
        price=None,
        terms=terms.to_json(),
        frame=b"",
        sealed=b"",
        left=1,
    )
    return world.registry.add_resource(STREAMS, row).id


def model(world: World) -> str:
    """A model of the analyst, as it is stored."""
    terms = json.dumps({"method": "input_clipping", "iterations": 10, "held_out": 0.1})
    row = ResourceRow(
        id="t_1", principal="analyst", dataset="clinic", account=world.account.id, price=None, terms=terms
    )
    return world.registry.add_resource(MODELS, row).id


def synthetic(world: World) -> str:
    """A synthetic table of the analyst, as it is stored."""
    row = SyntheticRow(
        id="s_1",
        principal="analyst",
        dataset="clinic",
        account=world.account.id,
        price=None,
        name="drawn",
        slot=None,
        data_version="d_1",
        terms='{"table": "patients", "epsilon": "1", "rows_per_unit": 1, "left_out": []}',
    )
    return world.registry.add_synthetic(row).id


def webhook(world: World) -> str:
    """A webhook of the analyst, as it is stored."""
    events = '["monitor.passed"]'
    row = WebhookRow(id="w_1", principal="analyst", host="h.test", events=events, subjects=None, sealed=b"")
    stored = world.registry.add_webhook(row, most=9)
    assert stored is not None
    return stored.id


def batch(world: World, query_id: str) -> str:
    """A batch of the analyst, as it is stored, beside its query."""
    terms = BatchTerms(strategy=Strategy.ONE_BY_ONE, confidence=Fraction(95, 100), places=(0,), cells=None)
    row = BatchRow(
        id=query_id,
        principal="analyst",
        dataset="clinic",
        account=world.account.id,
        price=None,
        terms=terms.to_json(),
        sealed=b"",
    )
    return world.registry.add_resource(BATCHES, row).id


def probes(world: World) -> Iterator[tuple[str, Probe]]:
    """Every route of the surface that names something, with the analyst's own things in its path."""
    answer = world.api.post("/v1/queries", json=query()).json()
    dashboard = world.api.post("/v1/dashboards", json=polled("clinic")).json()["id"]
    there = {
        "dataset": "clinic",
        "table": "patients",
        "budget_id": world.account.id,
        "query_id": answer["id"],
        "release_id": answer["provenance"]["releases"][0],
        "collector_id": collector(world),
        "model_id": model(world),
        "monitor_id": monitor(world),
        "stream_id": stream(world),
        "synthetic_id": synthetic(world),
        "batch_id": batch(world, answer["id"]),
        "webhook_id": webhook(world),
        "dashboard_id": dashboard,
        "tile": "people",
        "request_id": world.api.post("/v1/budget-requests", json=wished("clinic")).json()["id"],
        "proposal_id": world.api.post(
            f"/v1/budgets/{world.root.id}:adjust",
            json={"direction": "raise", "epsilon": "0.5", "delta": "0", "reason": "x"},
            who="admin",
        ).json()["id"],
        "link_id": world.api.post(f"/v1/dashboards/{dashboard}/links", json={"label": "hall"}).json()["id"],
        "key_id": world.api.keys["analyst"].split("_")[1],
        "name": "analyst",
        "code": "not_found",
    }
    for method, path, allowed in ROWS:
        if "{" in path and allowed != "public":
            one, other = (re.sub(r"\{([a-z_]+)\}", lambda found: known[found[1]], path) for known in (there, ABSENT))  # noqa: B023
            yield f"{method} {path}", Probe(method, one, other)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An application over the real journey; the analyst alone has an account for its dataset."""
    with clinic_in(tmp_path_factory.mktemp("home")) as (services, _), asyncio.Runner() as runner:
        open_account(services.ledger, "analyst")
        keys = {}
        for name in ("analyst", *STRANGERS):
            role = "analyst" if name == "other" else name
            services.registry.create_principal(name, role, actor="test")
            keys[name] = services.registry.create_key(name, label="test", days=1, actor="test").text
        api = Api(create_app(services.settings, services=dataclasses.replace(services)), runner, keys)
        yield api
        api.close()


def test_what_belongs_to_others_is_not_there(world: World) -> None:
    """Each route answers each stranger of what is there exactly as of what is not: status, words and headers."""
    met = set()
    for name, probe in probes(world):
        for who in STRANGERS:
            there, absent = probe.answers(world.api, who)
            if name.removeprefix("GET ") in SHOWN_TO_ALL:
                assert (there[0], absent[0]) == (200, 404), (name, who)
                continue
            assert there == absent, (name, who)
            assert there[0] in (403, 404), (name, who, there)
            met.add(there[0])
    assert met == {403, 404}


@pytest.mark.sparse(4)
@pytest.mark.parametrize("name", NAMING)
def test_a_dataset_of_others_is_not_there_for_a_question_or_a_list(asked: Api, name: str) -> None:
    """The same where a body or a list names it, on the real journey; an analyst with an account gets another answer."""
    method, path = name.split(" ")
    probe = Probe(method, path, path, NAMING[name])
    for who in STRANGERS:
        there, absent = probe.answers(asked, who)
        assert there == absent, who
    there, absent = probe.answers(asked, "analyst")
    # A page of resources is empty in either case: the analyst has none in this world.
    assert there != absent or (method == "GET" and path != "/v1/budgets")


def test_the_probes_see_a_difference(world: World) -> None:
    """The same probes as somebody who may see it: what is there is answered otherwise, wherever the role is served."""
    for name, probe in probes(world):
        # The registrar of this world keeps no versions.
        if not name.startswith("GET") or name.endswith("/versions"):
            continue
        there, absent = probe.answers(world.api, "auditor")
        if there[0] != 403:
            assert (there[0], absent[0]) == (200, 404), name


@pytest.mark.slow
def test_every_route_that_names_something_sees_it(world: World) -> None:
    """Each parameter of a path that strangers may write has its dependency, and the table of them is used."""
    routes = [route for route in world.api.app.routes if isinstance(route, APIRoute)]
    assert unseen_routes(routes) == []
    named = set()
    for route in routes:
        access = access_of(route)
        assert access is not None
        if access.allowed and not access.allowed <= set(OVERSEEING):
            named |= route.param_convertors.keys()
    assert named == SIGHTS.keys()
    # What a body or a list names is not seen by introspection: each model and list that names a dataset is probed.
    document = world.api.get("/openapi.json", who=None).json()
    naming = set()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            named = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"}
            for media in operation.get("requestBody", {}).get("content", {}).values():
                named |= document["components"]["schemas"][media["schema"]["$ref"].rsplit("/", 1)[1]][
                    "properties"
                ].keys()
            if "dataset" in named:
                naming.add(f"{method.upper()} {path}")
    for_all = {f"{method} {path}" for method, path, allowed in ROWS if not set(allowed.split()) <= set(OVERSEEING)}
    assert naming & for_all == NAMING.keys()


def test_a_route_that_does_not_ask_is_found(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    """A route without the dependency, with it too early, or with another's parameter stops the application."""
    router = APIRouter()

    @router.get("/one/{dataset}")
    async def forgotten(dataset: str, caller: Annotated[Caller, Depends(roles(*Role))]) -> None: ...

    @router.get("/two/{dataset}")
    async def too_early(
        found: Annotated[Dataset, Depends(visible_dataset)], caller: Annotated[Caller, Depends(roles(*Role))]
    ) -> None: ...

    @router.get("/three/{dataset}/{thing}")
    async def unknown(
        thing: str,
        caller: Annotated[Caller, Depends(roles(*Role))],
        found: Annotated[Dataset, Depends(visible_dataset)],
    ) -> None: ...

    @router.get("/four/{dataset}")
    async def right(
        caller: Annotated[Caller, Depends(roles(*Role))], found: Annotated[Dataset, Depends(visible_dataset)]
    ) -> None: ...

    @router.get("/five/{dataset}")
    async def overseen(dataset: str, caller: Annotated[Caller, Depends(roles(*OVERSEEING))]) -> None: ...

    assert unseen_routes(list(router.routes)) == ["/one/{dataset}", "/two/{dataset}", "/three/{dataset}/{thing}"]
    monkeypatch.setattr(queries, "router", router)
    with pytest.raises(RuntimeError, match="do not ask who may see what they name: /one/"):
        create_app(world.settings, services=world.services)
