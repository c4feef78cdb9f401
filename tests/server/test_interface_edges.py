"""Where clients differ, and where things are missing: HEAD, Allow, null, If-Match, files, snapshots, addresses."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from server.administration.refusal import FaultyDataset
from server.routes.refusals import problem_of_act
from server.services import DatasetRefused, OtherName, Services
from server.settings import SettingsRefused, load_settings
from server.store.errors import NotReplaced, NotThere
from server.store.versions import version_tag
from tests.journey.clinic import services_of, write_files
from tests.server.conftest import World

SQL = "SELECT COUNT(*) AS n FROM patients"


# HEAD and Allow


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    ("path", "who"),
    [
        ("/healthz", None),
        ("/readyz", None),
        ("/docs", None),
        ("/", None),
        ("/openapi.json", None),
        ("/v1/me", "analyst"),
        ("/v1/me", None),
        ("/v1/datasets/clinic", "analyst"),
        ("/v1/datasets/absent", "analyst"),
        ("/v1/queries", "analyst"),
        ("/v1/budgets", "admin"),
        ("/absent", None),
        ("/v1/queries?count=x", "analyst"),
    ],
)
def test_head_is_not_refused_where_get_is_answered(world: World, path: str, who: str | None) -> None:
    """The same status and headers as GET, and no body; it was 405 everywhere."""
    head, get = (world.api.call(method, path, who=who) for method in ("HEAD", "GET"))
    assert head.status_code == get.status_code
    assert head.content == b""
    ours = {"x-request-id"}
    if path != "/v1/me" or who is not None:
        assert head.headers["content-length"] == get.headers["content-length"]
    assert {name for name in head.headers if name not in ours} == {name for name in get.headers if name not in ours}


def test_head_of_an_answer_has_its_tag_and_spends_nothing(world: World) -> None:
    """A stored answer's headers, as many times as one likes."""
    asked = world.api.post("/v1/queries", json={"dataset": "clinic", "sql": SQL, "spend": {"epsilon": "0.5"}})
    address, spent = f"/v1/queries/{asked.json()['id']}", world.spent()
    head, get = world.api.call("HEAD", address), world.api.get(address)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", get.headers["etag"])
    assert int(head.headers["content-length"]) == len(get.content)
    again = world.api.call("HEAD", address, headers={"If-None-Match": head.headers["etag"]})
    assert again.status_code == 304
    assert world.spent() == spent


def test_no_address_hides_a_method_that_it_offers(world: World) -> None:
    """`Allow` named the methods of the first route only: POST for /v1/queries, and not GET."""
    offered: dict[str, set[str]] = {}
    for route in world.api.app.routes:
        assert isinstance(route, APIRoute)
        offered.setdefault(route.path, set()).update(route.methods or ())
    assert offered["/v1/queries"] == {"GET", "POST"}
    for path, methods in offered.items():
        address = path.replace("{", "").replace("}", "")
        refused = world.api.call("OPTIONS", address)
        assert refused.status_code == 405, path
        allowed = set(refused.headers["allow"].split(", "))
        # An address with an action (q_1:cancel) also has the form of one without.
        assert allowed >= methods | ({"HEAD"} if "GET" in methods else set()), path
        if ":" not in path:
            assert allowed == methods | ({"HEAD"} if "GET" in methods else set()), path
    refused = world.api.call("HEAD", "/v1/estimates")
    assert (refused.status_code, refused.headers["allow"], refused.content) == (405, "POST", b"")


# null


def test_null_in_an_optional_field_is_not_a_wrong_value(world: World) -> None:
    """Programs that fill in whole objects send null for what they leave out."""
    full: dict[str, Any] = {
        "dataset": "clinic",
        "sql": SQL,
        "parameters": None,
        "accuracy": None,
        "spend": {"epsilon": "0.5"},
        "reuse": None,
        "max_staleness_s": None,
        "budget": None,
        "wait_ms": None,
    }
    key = {"Idempotency-Key": "once"}
    first = world.api.post("/v1/queries", json=full, headers=key)
    assert first.status_code == 200, first.text
    short = {name: value for name, value in full.items() if value is not None}
    again = world.api.post("/v1/queries", json=short, headers=key)
    assert (again.status_code, again.content) == (200, first.content)
    accuracy = {"half_width": None, "relative": None, "confidence": None}
    assert world.api.post("/v1/estimates", json={**full, "accuracy": accuracy}).status_code == 200
    # A parameter may be null, and that is a value of it.
    asked = world.api.post("/v1/queries", json={**short, "parameters": {"p": None}}, headers=key)
    assert (asked.status_code, asked.json()["code"]) == (409, "idempotency_conflict")
    assert world.journey.asked[-1].parameters == {"p": None}
    for field in ("dataset", "sql"):
        refused = world.api.post("/v1/queries", json={**full, field: None})
        assert (refused.status_code, refused.json()["findings"][0]["field"]) == (422, field)
    refused = world.api.post("/v1/queries", json={**full, "spend": {"epsilon": None}})
    assert refused.status_code == 422
    made = world.api.post(
        "/v1/keys", json={"principal": "analyst", "label": None, "days": None}, who="admin", headers={}
    )
    assert made.status_code == 201, made.text


# Datasets


def test_a_dataset_is_not_replaced_by_a_post_alone(world: World) -> None:
    """POST of a served name was a silent replacement; now it needs the ETag, or PUT."""
    document = {"dataset": "school", "tables": {}}
    made = world.api.post("/v1/datasets", json={"dataset": document}, who="admin")
    tag = made.headers["etag"]
    assert (made.status_code, tag) == (201, world.api.get("/v1/datasets/school", who="admin").headers["etag"])
    given = len(world.registrar.given)
    again = world.api.post("/v1/datasets", json={"dataset": document}, who="admin")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert tag in " ".join(again.json()["instead"])
    for stale in ('"1-other"', '"x"'):
        for method, path in (("POST", "/v1/datasets"), ("PUT", "/v1/datasets/school")):
            refused = world.api.call(method, path, json={"dataset": document}, who="admin", headers={"If-Match": stale})
            assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed")
    for wrong in ("school", 'W/"1-d1"', '"a", "b"', '""'):
        refused = world.api.post("/v1/datasets", json={"dataset": document}, who="admin", headers={"If-Match": wrong})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    assert len(world.registrar.given) == given
    for method, path, headers in (
        ("POST", "/v1/datasets", {"If-Match": tag}),
        ("PUT", "/v1/datasets/school", {"If-Match": tag}),
        ("PUT", "/v1/datasets/school", {}),
    ):
        done = world.api.call(method, path, json={"dataset": document}, who="admin", headers=headers)
        assert done.status_code in (200, 201), done.text
    assert len(world.registrar.given) == given + 3


def test_another_version_than_was_read_is_not_removed(world: World) -> None:
    """`If-Match` on DELETE was ignored: an administrator removed what somebody else had just attached."""
    document = {"dataset": "school", "tables": {}}
    tag = world.api.post("/v1/datasets", json={"dataset": document}, who="admin").headers["etag"]

    def remove(header: str) -> tuple[int, str]:
        done = world.api.call("DELETE", "/v1/datasets/school", who="admin", headers={"If-Match": header})
        return done.status_code, done.json()["code"] if done.content else ""

    for stale in ('"1-other"', '"x"'):
        assert remove(stale) == (412, "precondition_failed")
    for wrong in ("school", f"W/{tag}", f'{tag}, "b"', '""'):
        assert remove(wrong) == (422, "invalid_request")
    assert world.api.get("/v1/datasets/school", who="admin").headers["etag"] == tag
    assert remove(tag) == (204, "")
    for header in (tag, "*"):
        assert remove(header) == (404, "not_found")
    assert world.api.post("/v1/datasets", json={"dataset": document}, who="admin").status_code == 201
    assert remove("*") == (204, "")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Services]:
    """Real services with the clinic's files in the folder of datasets, and nothing attached."""
    home = tmp_path / "home"
    write_files(home / "datasets")
    with services_of(home) as services:
        yield services


@pytest.mark.slow
def test_the_registrar_replaces_only_what_it_was_told_to(own: Services) -> None:
    """The rule at its real place: tags, any version, none, another name, and what comes back after its removal."""
    registrar, registry = own.registrar, own.registry
    with pytest.raises(NotReplaced):
        registrar.register_file("clinic.yaml", actor="a", replaces="*")
    with pytest.raises(OtherName):
        registrar.register_file("clinic.yaml", actor="a", name="school")
    first = registrar.register_file("clinic.yaml", actor="a", name="clinic", replaces=None)
    with pytest.raises(NotReplaced) as served:
        registrar.register_file("clinic.yaml", actor="a", replaces=None)
    assert served.value.tag == version_tag(first.policy_version, first.data_version)
    file = own.settings.datasets_directory / "clinic.yaml"
    file.write_text(file.read_text().replace('epsilon_default: "0.1"', 'epsilon_default: "0.2"'))
    second = registrar.register_file("clinic.yaml", actor="a", replaces=served.value.tag)
    assert second.policy_version != first.policy_version
    # For certain in the transaction too, where two administrators meet.
    with pytest.raises(NotReplaced):
        registry.register_dataset(
            name="clinic", policy_version=9, data_version="d", snapshot="s", document={}, actor="a",
            replaces=served.value.tag,
        )  # fmt: skip
    with pytest.raises(NotReplaced):
        registrar.remove("clinic", actor="a", replaces=served.value.tag)
    assert own.catalogue.get("clinic") is not None
    registrar.remove("clinic", actor="a", replaces=version_tag(second.policy_version, second.data_version))
    with pytest.raises(NotThere):
        registrar.remove("clinic", actor="a", replaces="*")
    registrar.register_file("clinic.yaml", actor="a", replaces=None)


def test_a_missing_dataset_file_is_not_a_fault_of_the_server(own: Services) -> None:
    """A file that is not there, is a folder, is no text, or names data that is not there: findings, never a 500."""
    folder = own.settings.datasets_directory
    (folder / "folder.yaml").mkdir()
    (folder / "bytes.yaml").write_bytes(b"\xff\xfe\x00dataset")
    text = (folder / "clinic.yaml").read_text()
    (folder / "lost.yaml").write_text(text.replace("dataset: clinic", "dataset: lost").replace("people.csv", "no.csv"))
    for name in ("absent.yaml", "folder.yaml", "bytes.yaml", "lost.yaml"):
        with pytest.raises(DatasetRefused) as refused:
            own.registrar.register_file(name, actor="a")
        problem = problem_of_act(FaultyDataset(refused.value.findings))
        assert problem.code == "dataset_refused"
        assert problem.finding.what
        assert str(folder) not in problem.finding.what + problem.finding.why
    (folder / "closed.yaml").symlink_to("/nonexistent/file.yaml")
    with pytest.raises(DatasetRefused):
        own.registrar.register_file("closed.yaml", actor="a")


@pytest.mark.slow
def test_a_server_without_a_snapshot_is_not_ready(own: Services) -> None:
    """`/readyz` stayed 200 while every question to the dataset failed."""
    check = next(check for check in own.checks if check.name == "snapshots")
    check.run()
    dataset = own.registrar.register_file("clinic.yaml", actor="a")
    check.run()
    folder = own.settings.snapshots_directory / dataset.name
    kept = folder.with_name("kept")
    folder.rename(kept)
    with pytest.raises(LookupError):
        check.run()
    shutil.copytree(kept, folder)
    check.run()
    snapshot = folder / f"{dataset.data_version}.duckdb"
    snapshot.chmod(0o600)
    snapshot.write_bytes(b"cut short")
    with pytest.raises(LookupError):
        check.run()


# Settings


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ledger.sqlite",
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://ann:hunter22@host/name",
        "postgresql://ann:hunter22@host:port/name",
        "postgresql://ann:hunter22@[::1/name",
        "https://ann:hunter22@host/",
    ],
)
@pytest.mark.parametrize("in_file", [False, True])
def test_a_broken_database_url_is_not_an_unforeseen_failure(tmp_path: Path, url: str, in_file: bool) -> None:
    """One sentence that names the setting and its form, without the password."""
    values: dict[str, Any] = {"home": tmp_path, "database_url": url}
    if in_file:
        (tmp_path / "url").write_text(url)
        values = {"home": tmp_path, "database_url_file": tmp_path / "url"}
    with pytest.raises(SettingsRefused) as refused:
        load_settings(**values)
    text = " ".join(refused.value.findings)
    assert "database_url is not accepted" in text
    assert "postgresql://" in text
    assert "hunter22" not in text


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////srv/noisegate/ledger.sqlite",
        "sqlite:///ledger.sqlite",
        "postgresql://ann:hun/ter#22@host:5432/name",
        "postgresql:///name?host=/run/postgresql",
        "postgresql+psycopg://ann@[::1]:5432/name?sslmode=require",
        "postgres://host/name",
    ],
)
def test_a_working_database_url_is_not_refused(tmp_path: Path, url: str) -> None:
    """Everything that the database's own library reads is taken."""
    assert load_settings(home=tmp_path, database_url=url).database() == url
