"""Who reads dashboards: owners, overseers, readers that are named, links; and pages of other origins."""

from __future__ import annotations

import asyncio
import csv
import datetime
import io
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from server import log
from server.app import create_app
from server.dashboards.links import LinkFault, LinkRefused, Signer
from server.dashboards.refreshing import Refreshing
from server.serving import listen
from server.settings import SettingsRefused, load_settings
from server.store.api_keys import EarlierSecret
from server.web_server import uvicorn_options
from tests.server.conftest import NOW, SECRET, World
from tests.server.fakes import Api

BODY: dict[str, Any] = {
    "dataset": "clinic",
    "title": "The clinic",
    "envelope": {"epsilon": "2"},
    "readers": ["dashboard"],
    "tiles": [
        {
            "name": "people",
            "title": "People",
            "sql": "SELECT COUNT(*) AS n FROM people",
            "spend": {"epsilon": "0.5"},
            "schedule": {"times": ["06:00"]},
        }
    ],
}


def made(world: World, **change: Any) -> str:
    """The address of a dashboard of the analyst's."""
    response = world.api.post("/v1/dashboards", json={**BODY, **change})
    assert response.status_code == 201, response.text
    assert response.headers["location"] == response.json()["links"]["self"]
    return str(response.headers["location"])


def refresh(world: World) -> None:
    """Looks of the schedule until nothing is due."""
    services = world.services
    process = Refreshing(services.dashboards, services.journey, services.catalogue, services.jobs, world.clock)  # type: ignore[arg-type]

    async def look() -> None:
        while await process.look():
            await process.rounds.finished()

    asyncio.run(look())


def linked(world: World, address: str, **body: Any) -> tuple[str, str]:
    """A link of a dashboard: its identifier and its token."""
    link = world.api.post(f"{address}/links", json={"label": "hall", **body}).json()
    assert link["urls"]["people"] == f"{address}/tiles/people.csv?link={link['token']}"
    return link["id"], link["token"]


def test_who_reads_a_dashboard(world: World) -> None:
    """The owner sees texts, overseers all but texts, readers tiles; strangers, and readers of other roles, nothing."""
    address = made(world, readers=["dashboard", "other"])
    refresh(world)
    with world.registry._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE dashboard_tiles SET code = 'no_budget'")
    shown = {
        who: world.api.get(address, who=who) for who in ("analyst", "admin", "auditor", "dashboard", "other", "owner")
    }
    assert {who: one.status_code for who, one in shown.items()} == {
        "analyst": 200, "admin": 200, "auditor": 200, "dashboard": 200, "other": 404, "owner": 404,
    }  # fmt: skip
    seen = {
        who: (one.json()["tiles"][0]["sql"], one.json()["envelope"]) for who, one in shown.items() if one.is_success
    }
    assert [who for who, (sql, _) in seen.items() if sql is not None] == ["analyst"]
    assert [who for who, (_, envelope) in seen.items() if envelope is not None] == ["analyst", "admin", "auditor"]
    tiles = {who: one.json()["tiles"][0] for who, one in shown.items() if one.is_success}
    for hidden in ("query", "refused", "spend"):
        assert [who for who, tile in tiles.items() if tile[hidden] is not None] == ["analyst", "admin", "auditor"]
    assert shown["dashboard"].json()["readers"] is None
    for who, status in (("dashboard", 200), ("auditor", 200), ("other", 404), ("owner", 404)):
        assert world.api.get(f"{address}/tiles/people.csv", who=who).status_code == status
        assert len(world.api.get("/v1/dashboards", who=who).json()["dashboards"]) == (status == 200)
    assert world.api.call("POST", f"{address}:pause", who="owner").status_code == 404
    assert world.api.call("POST", f"{address}:pause", who="admin").status_code == 200
    assert world.api.call("POST", f"{address}:resume", who="admin").status_code == 404
    assert world.api.get(f"{address}/tiles/people").headers["noisegate-tile-state"] == "paused"
    assert world.api.call("DELETE", address, who="admin").status_code == 200
    assert world.api.get(address, who="dashboard").status_code == 404


def test_a_get_spends_nothing_and_asks_nothing(world: World) -> None:
    """Before the first refresh a tile waits, whatever is read; nobody's poll asks a question."""
    address = made(world)
    asked = len(world.journey.asked)
    assert world.api.get(f"{address}/tiles/people").json()["state"] == "waiting"
    waiting = world.api.get(f"{address}/tiles/people.csv")
    assert (waiting.status_code, waiting.headers["retry-after"]) == (503, "5")
    for path in ("tiles/people/history", "tiles/absent", "tiles/people.xml", "tiles/absent/history", "links"):
        world.api.get(f"{address}/{path}")
    assert world.api.get(f"{address}/tiles/people.xml").status_code == 404
    assert (len(world.journey.asked), world.spent()) == (asked, 0)
    refresh(world)
    assert world.api.get(f"{address}/tiles/people.csv").text == '"n","n_low","n_high"\r\n1,-4,6\r\n'
    spent = world.spent()
    assert [world.api.get(f"{address}/tiles/people.csv").status_code for _ in range(3)] == [200] * 3
    assert world.spent() == spent > 0


@pytest.mark.parametrize("accept", ["arrow", "arrows", "parquet"])
def test_a_tile_as_arrow(world: World, accept: str) -> None:
    """The same table in binary formats."""
    import pyarrow.ipc
    import pyarrow.parquet

    address = made(world)
    refresh(world)
    content = io.BytesIO(world.api.get(f"{address}/tiles/people.{accept}").content)
    read = {
        "arrow": lambda: pyarrow.ipc.open_file(content).read_all(),
        "arrows": lambda: pyarrow.ipc.open_stream(content).read_all(),
        "parquet": lambda: pyarrow.parquet.read_table(content),
    }[accept]
    assert read().to_pylist() == [{"n": 1, "n_low": -4.0, "n_high": 6.0}]


def test_a_link_opens_the_tiles_of_one_dashboard_until_it_ends(world: World) -> None:
    """A token of another dashboard, a changed one, an expired and a revoked one open nothing; a link opens no more."""
    address, other = made(world), made(world, title="Other")
    refresh(world)
    link, token = linked(world, address, days=2)

    def get(path: str, token: str = token, **more: Any) -> tuple[int, str]:
        response = world.api.get(f"{path}?link={token}", who=None, **more)
        return response.status_code, response.json().get("why", "") if response.status_code == 401 else ""

    tile = f"{address}/tiles/people.csv"
    assert get(tile)[0] == get(f"{address}/tiles/people/history")[0] == 200
    assert get(f"{other}/tiles/people.csv")[0] == 401
    name, expiry, code = token.split(".")
    for wrong in (f"{name}.{int(expiry) + 9}.{code}", f"k_{'0' * 16}.{expiry}.{code}", token[:-1], "", "x" * 150):
        assert get(tile, wrong)[0] == 401, wrong
    # A link is no key: it has no other route, and does not stand beside one.
    assert get(address)[0] == 422
    assert get(f"{address}/links")[0] == 422
    assert world.api.get(f"{tile}?link={token}").status_code == 401
    again = world.api.get(tile, who=None)
    assert again.status_code == 401
    for disabled, status in ((True, 401), (False, 200)):
        world.api.call("PATCH", "/v1/principals/analyst", who="admin", json={"disabled": disabled})
        world.services.dashboards.reader.forget(address.rpartition("/")[2])
        assert get(tile)[0] == status
        assert len(world.api.get(f"{address}/links", who="admin").json()["links"]) == 1
    assert world.api.call("DELETE", f"{address}/links/{link}").json()["revoked"] is not None
    assert world.api.call("DELETE", f"{address}/links/{link}").status_code == 404
    assert get(tile) == (401, "It was revoked.")
    late = linked(world, address, days=2)[1]
    assert get(tile, late)[0] == 200
    world.clock.now += datetime.timedelta(days=2)
    assert get(tile, late) == (401, "It has expired.")
    assert [one["label"] for one in world.api.get(f"{address}/links").json()["links"]] == ["hall", "hall"]


def test_a_token_stands_in_no_log_metric_or_problem(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever becomes of a request with a token: nothing that the server writes or says repeats it."""
    stream = io.StringIO()
    monkeypatch.setattr(log, "_logger", log.Log(level=0, stream=stream))
    address = made(world)
    _, token = linked(world, address)
    said = []
    for path in ("tiles/people", "tiles/people.csv", "tiles/absent", "links", "tiles/people/history", "nowhere"):
        for query in (f"link={token}", f"link={token}&link={token}", f"link={token}&{token}=1", f"link={token}x"):
            response = world.api.get(f"{address}/{path}?{query}", who=None)
            said.append(response.text + str(response.headers))
    said.append(world.api.get("/metrics", who="admin").text)
    assert '"route": "/v1/dashboards/{dashboard_id}/tiles/{tile}"' in stream.getvalue()
    code = token.rsplit(".", 1)[1]
    assert code not in stream.getvalue() + "".join(said)
    # Stored neither: a dump of the database opens nothing.
    dump = (world.settings.home / "ledger.sqlite").read_bytes()
    wal = world.settings.home / "ledger.sqlite-wal"
    assert code.encode() not in dump + (wal.read_bytes() if wal.exists() else b"")


def test_a_link_is_made_once_under_a_key(world: World) -> None:
    """A retry gets the link without its token."""
    address = made(world)
    first, again = (
        world.api.post(f"{address}/links", json={"label": "x"}, headers={"Idempotency-Key": "k"}).json()
        for _ in range(2)
    )
    assert again == {**first, "token": None, "urls": None}


def test_signed_tokens_are_of_one_secret() -> None:
    """Another secret signs other tokens; one before is accepted for its time."""
    token = Signer.of(SECRET).token("k_0123456789abcdef", "d_1", NOW + datetime.timedelta(days=1))
    assert Signer.of(SECRET).link_of(token, "d_1", NOW) == "k_0123456789abcdef"
    rotated = Signer.of(SECRET[::-1], [EarlierSecret(SECRET, "2026-03-01T13:00:00Z")])
    assert rotated.link_of(token, "d_1", NOW) == "k_0123456789abcdef"
    with pytest.raises(LinkRefused):
        rotated.link_of(token, "d_1", NOW + datetime.timedelta(hours=1))
    for signer, dashboard in ((Signer.of(SECRET[::-1]), "d_1"), (Signer.of(SECRET), "d_2")):
        with pytest.raises(LinkRefused) as refused:
            signer.link_of(token, dashboard, NOW)
        assert refused.value.reason is LinkFault.INVALID


@contextmanager
def served(world: World) -> Iterator[str]:
    """The address of the application on a port of its own, as a program on the network sees it."""
    options = {**uvicorn_options(world.settings), "workers": 1, "port": 0, "lifespan": "off"}
    server = uvicorn.Server(uvicorn.Config(world.api.app, **options))
    listener = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        # The socket listens already: what connects waits until it is answered.
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        listener.close()


class NoRedirections(urllib.request.HTTPRedirectHandler):
    """A tool that follows none."""

    def redirect_request(self, *_: Any) -> None:
        return None


def test_what_tools_send(world: World) -> None:
    """A spreadsheet's import, a JSON data source, `read_csv` of an address: one GET with a link, and nothing else.

    They send few headers, follow no redirection, and read UTF-8 with a header line; some ask with HEAD first, and some
    revalidate.
    """
    address = made(world, tiles=[{**BODY["tiles"][0], "title": "Menschen über 18"}])
    refresh(world)
    token = linked(world, address)[1]
    with served(world) as url:
        tile, opener = f"{url}{address}/tiles/people", urllib.request.build_opener(NoRedirections)

        def get(path: str, method: str = "GET", **headers: str) -> Any:
            return opener.open(urllib.request.Request(path, method=method, headers=headers), timeout=20)

        with get(f"{tile}.csv?link={token}", **{"User-Agent": "Mozilla/5.0 (compatible; Sheets)"}) as sheet:
            rows = list(csv.reader(io.TextIOWrapper(sheet, "utf-8", newline="")))
            tag = sheet.headers["ETag"]
        assert rows == [["n", "n_low", "n_high"], ["1", "-4", "6"]]
        with get(f"{tile}?link={token}", Accept="application/json, text/plain, */*") as source:
            table = json.load(source)
        assert (table["rows"], table["title"]) == ([{"n": 1, "n_low": -4, "n_high": 6}], "Menschen über 18")
        with get(f"{tile}.csv?link={token}", "HEAD") as head:
            assert (head.status, head.headers["ETag"], head.read()) == (200, tag, b"")
        for path, headers, status in ((f"{tile}.csv?link={token}", {"If-None-Match": tag}, 304), (tile, {}, 401)):
            with pytest.raises(urllib.error.HTTPError) as answered:
                get(path, **headers)
            with answered.value as response:
                assert response.code == status


def test_a_long_poll_ends_with_another_tag_or_its_time(world: World) -> None:
    """304 when the time is over; 200 as soon as what is shown is another."""
    tile = f"{made(world)}/tiles/people"
    tag = world.api.get(tile).headers["etag"]
    bare = tag.strip('"')
    assert world.api.get(f"{tile}?after={bare}&wait=0s").status_code == 304
    assert world.api.get(f"{tile}?after=another&wait=30s").status_code == 200
    for wrong in ("wait=31s", "wait=-1", "wait=1e3", "after=x&after=y", "wait=20m"):
        assert world.api.get(f"{tile}?{wrong}").status_code == 422
    changed, _ = world.api.calls(
        ("GET", f"{tile}?after={bare}&wait=30s", "dashboard", {}),
        ("POST", tile.replace("/tiles/people", ":pause"), "analyst", {}),
    )
    assert (changed.status_code, changed.json()["paused"]) == (200, True)


def test_pages_of_allowed_origins_read_tiles_and_nothing_else(world: World) -> None:
    """CORS by a list: an origin that is not on it, other routes and other methods get no permission."""
    wall = "https://wall.example.com"
    settings = world.settings.model_copy(update={"cors_origins": (wall,)})
    api = Api(create_app(settings, services=world.services), world.api._runner, world.api.keys)
    address = made(world)
    tile = f"{address}/tiles/people"
    for origin, path, allowed in (
        (wall, tile, wall),
        ("https://wall.example.com.evil.test", tile, None),
        ("null", tile, None),
        (wall, address, None),
        (wall, "/v1/me", None),
    ):
        response = api.get(path, headers={"Origin": origin})
        assert response.headers.get("access-control-allow-origin") == allowed, (origin, path)
        assert ("Origin" in response.headers.get("vary", "")) == (path == tile)
    preflight = api.call("OPTIONS", tile, who=None, headers={"Origin": wall, "Access-Control-Request-Method": "GET"})
    assert (preflight.status_code, preflight.headers["access-control-allow-methods"]) == (204, "GET")
    assert api.call("OPTIONS", address, who=None, headers={"Origin": wall}).status_code == 405
    assert world.api.get(tile, headers={"Origin": wall}).headers.get("access-control-allow-origin") is None
    api.close()
    for entry in ("*", "https://wall.example.com/", "wall.example.com", "https://*.example.com"):
        with pytest.raises(SettingsRefused, match="cors_origins"):
            load_settings(cors_origins=(entry,))


def test_making_one_twice_under_a_key_makes_one(world: World) -> None:
    """An idempotent POST; and no more dashboards than a principal may have."""
    headers = {"Idempotency-Key": "one"}
    first, again = (world.api.post("/v1/dashboards", json=BODY, headers=headers) for _ in range(2))
    assert json.loads(first.content) == json.loads(again.content)
    assert len(world.api.get("/v1/dashboards").json()["dashboards"]) == 1
    assert sum(account.name.startswith("dashboard") for account in world.ledger.accounts(dataset="clinic")) == 1
