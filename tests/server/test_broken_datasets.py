"""One attached dataset that cannot be read: the others are served, and everybody who should know is told."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from accountant.connection import open_engine
from server import log
from server.app import create_app
from server.build import open_catalogue
from server.catalogue import ServedDatasets
from server.datasets import convert
from server.services import DatasetRefused, Services
from server.store.tables import dataset_versions
from server.watching import DatasetWatch, catalogue_of
from tests.cli.support import cli
from tests.journey.clinic import open_account, services_of, write_files

REGIONS = "    public: true\n    source: {file: regions.csv}\n    columns:\n      name: {type: text}\n"
ASKED = {"sql": "SELECT COUNT(*) AS n FROM people", "spend": {"epsilon": "1"}}


def write_school(folder: Path) -> Path:
    """A second dataset over the clinic's people, whose towns come from a public table."""
    (folder / "regions.csv").write_text("name\n" + "".join(f"town{number}\n" for number in range(7)))
    text = (folder / "clinic.yaml").read_text().replace("dataset: clinic", "dataset: school")
    text = text.replace("town: {type: text}", "town: {type: text, keys: {table: regions, column: name}}")
    path = folder / "school.yaml"
    path.write_text(text.replace("\npolicy:", f"\n  regions:\n{REGIONS}policy:"))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the datasets clinic and school attached, and an analyst who may ask both."""
    home = tmp_path_factory.mktemp("made") / "home"
    write_files(home / "datasets")
    write_school(home / "datasets")
    with services_of(home) as services:
        for name in ("clinic", "school"):
            services.registrar.register_file(f"{name}.yaml", actor="test")
            open_account(services.ledger, "ann", dataset=name)
        services.registry.create_principal("ann", "analyst", actor="test")
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(made, tmp_path / "home")
    return tmp_path / "home"


def store(services: Services, change: Callable[[str], str]) -> None:
    """Changes what the database keeps of the school's description, as a damage or an editor would."""
    engine = open_engine(services.settings.database(), pool_size=1)
    (version,) = (version for version in services.registry.datasets() if version.name == "school")
    text = change(json.dumps(version.document))
    with engine.connect().execution_options(immediate=True) as connection:
        served = (dataset_versions.c.name == "school") & dataset_versions.c.current
        connection.execute(update(dataset_versions).where(served).values(document=text))
        connection.commit()
    engine.dispose()


def lose_public_values(services: Services) -> None:
    """Takes the values of the public table away: the snapshot and what was kept beside it."""
    for path in (services.settings.snapshots_directory / "school").iterdir():
        path.unlink()


DAMAGES: dict[str, Callable[[Services], None]] = {
    "no JSON": lambda services: store(services, lambda text: text[:-20]),
    "no object": lambda services: store(services, lambda _: "[1, 2]"),
    "nested without end": lambda services: store(services, lambda _: "[" * 100_000),
    "an unknown name": lambda services: store(services, lambda text: text.replace('"unit"', '"unite"', 1)),
    "another meaning": lambda services: store(services, lambda text: text.replace('"person_id"', '"nobody"', 1)),
    "public values": lose_public_values,
}


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """The program's log."""
    stream = io.StringIO()
    monkeypatch.setattr(log, "_logger", log.Log(level=30, stream=stream))
    return stream


def events(lines: io.StringIO) -> list[dict[str, Any]]:
    """The lines of the log about datasets that are not available."""
    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    return [line for line in found if line["event"] == "dataset_unavailable"]


def asked(services: Services, *requests: tuple[str, str, dict[str, Any] | None]) -> list[httpx.Response]:
    """The answers of the real application to ann."""
    key = services.registry.create_key("ann", label="test", days=1, actor="test").text

    async def send() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=create_app(services.settings, services=services))
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
            return [await client.request(method, path, json=body, timeout=60) for method, path, body in requests]

    return asyncio.run(send())


def check_others_are_served(services: Services) -> None:
    """The clinic is answered; the school is not available, costs nothing, and readiness says so."""
    clinic, school, read, listed, ready = asked(
        services,
        ("POST", "/v1/queries", {**ASKED, "dataset": "clinic"}),
        ("POST", "/v1/queries", {**ASKED, "dataset": "school"}),
        ("GET", "/v1/datasets/school", None),
        ("GET", "/v1/datasets", None),
        ("GET", "/readyz", None),
    )
    assert clinic.status_code == 200, clinic.text
    count, spend = "SELECT COUNT(*) AS n FROM people", {"epsilon": "0.1"}
    others = asked(
        services,
        ("POST", "/v1/batches", {"dataset": "school", "queries": [count], "spend": spend}),
        ("POST", "/v1/batches:estimate", {"dataset": "school", "queries": [count], "spend": spend}),
        ("POST", "/v1/models", {"dataset": "school", "sql": "SELECT 1 AS label FROM people", "spend": spend}),
        ("POST", "/v1/models:estimate", {"dataset": "school", "sql": "SELECT 1 AS label FROM people", "spend": spend}),
        ("POST", "/v1/statistics", {"dataset": "school", "statistic": "typical", "width": "1", "spend": spend}),
        (
            "POST",
            "/v1/statistics:estimate",
            {"dataset": "school", "statistic": "typical", "width": "1", "spend": spend},
        ),
        (
            "POST",
            "/v1/monitors",
            {"dataset": "school", "sql": count, "threshold": "5", "epsilon": "0.1", "hits": 1, "evaluations": 1},
        ),
        ("POST", "/v1/streams", {"dataset": "school", "table": "people", "columns": [{"name": "a"}], "epsilon": "1"}),
        ("POST", "/v1/synthetic", {"dataset": "school", "table": "people", "name": "drawn", "epsilon": "1"}),
        ("POST", "/v1/synthetic:estimate", {"dataset": "school", "table": "people", "name": "drawn", "epsilon": "1"}),
    )
    for refused in (school, read, *others):
        told = refused.json()
        assert (refused.status_code, told["code"], told["charged"]) == (503, "unavailable", False), refused.text
    assert ([item["name"] for item in listed.json()["datasets"]], listed.json()["unavailable"]) == (
        ["clinic"],
        ["school"],
    )
    assert ready.status_code == 503
    assert ready.json()["checks"]["datasets"] == "failed"
    (account,) = (a for a in services.ledger.accounts(dataset="school", principal="ann"))
    assert account.used_share() == 0


@pytest.mark.slow
@pytest.mark.sparse(6)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_broken_dataset_does_not_stop_the_start(home: Path, lines: io.StringIO, damage: str) -> None:
    """A start with one stored dataset that cannot be read ended with an exception; now the others are served."""
    with services_of(home) as services:
        DAMAGES[damage](services)
    with services_of(home) as services:
        (event,) = events(lines)
        assert (event["dataset"], event["level"]) == ("school", "error")
        check_others_are_served(services)
    told = cli("doctor", "--home", str(home), "--json")
    assert told.code == 1
    (check,) = (item for item in told.json["checks"] if item["check"] == "datasets")
    assert check["outcome"] == "fail"
    assert "school (" in check["seen"]
    assert "clinic" not in check["seen"]
    assert "dataset add" in check["instead"]
    shown = {item["dataset"]: item for item in cli("dataset", "list", "--home", str(home), "--json").json}
    assert shown["clinic"]["tables"] == ["people", "visits"]
    assert "school" in shown


@pytest.fixture
def running(home: Path) -> Iterator[tuple[Services, DatasetWatch]]:
    """A server of the home with its watch, whose looks the test takes."""
    with services_of(home) as services:
        yield services, DatasetWatch(services)


def register_again(services: Services, change: Callable[[str], str]) -> None:
    """Another process makes a new version of the school current, with that description."""
    (version,) = (version for version in services.registry.datasets() if version.name == "school")
    services.registry.register_dataset(
        name="school", policy_version=version.policy_version + 1, data_version=version.data_version,
        snapshot=version.snapshot, document=json.loads(change(json.dumps(version.document))), actor="other",
    )  # fmt: skip


@pytest.mark.slow
def test_a_broken_dataset_does_not_stop_the_reload(
    running: tuple[Services, DatasetWatch], lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running server drops the version that it cannot read, notices others, and takes it when it is mended."""
    services, watch = running
    catalogue = catalogue_of(services)
    before = catalogue.get("clinic")
    register_again(services, lambda text: text.replace('"unit"', '"unite"', 1))
    watch.look()
    assert catalogue.get("clinic") is before
    assert list(catalogue.unavailable()) == ["school"]
    check_others_are_served(services)
    for _ in range(5):
        watch.look()
    assert len(events(lines)) == 1, "not read again at each look"
    services.registry.remove_dataset("clinic", actor="other")
    watch.look()
    assert catalogue.get("clinic") is None
    watch._again = 0.0  # type: ignore[attr-defined]  # a minute later
    watch.look()
    assert len(events(lines)) >= 2, "complained of again"
    register_again(services, lambda text: text.replace('"unite"', '"unit"', 1))
    watch.look()
    assert list(catalogue.unavailable()) == []
    assert catalogue.get("school") is not None
    next(check for check in services.checks if check.name == "datasets").run()


def test_a_broken_dataset_cannot_keep_others_from_being_attached(home: Path) -> None:
    """`dataset add` of another dataset, and of the broken one itself, read every stored description before."""
    with services_of(home) as services:
        DAMAGES["no JSON"](services)
    for name in ("clinic", "school"):
        added = cli("dataset", "add", str(home / "datasets" / f"{name}.yaml"), "--home", str(home), "--json")
        assert added.code == 0, added.err
    with services_of(home) as services:
        assert [dataset.name for dataset in services.catalogue.all()] == ["clinic", "school"]
        assert list(services.catalogue.unavailable()) == []


@pytest.mark.slow
def test_what_no_start_could_read_is_never_registered(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal of the keys that a public table gives came after the version was current: the next start failed."""
    with services_of(home) as services:
        before = services.registry.datasets()
        monkeypatch.setattr(convert, "KEYS_MAX", 3)
        file = home / "datasets" / "school.yaml"
        file.write_text(file.read_text().replace("regions:\n", "areas:\n").replace("table: regions", "table: areas"))
        with pytest.raises(DatasetRefused, match="cannot give the keys"):
            services.registrar.register_file("school.yaml", actor="test")
        assert services.registry.datasets() == before
        assert services.catalogue.get("school") is not None


def test_names_of_broken_datasets_are_said_without_their_text(home: Path) -> None:
    """Why a dataset is broken is told in words and declared names; what else its row holds is not repeated."""
    with services_of(home) as services:
        store(services, lambda _: '{"dataset": "school", "canary-7731": {"x": "canary-7732"}}')
        catalogue = open_catalogue(services.settings, services.registry)
        assert isinstance(catalogue, ServedDatasets)
        (broken,) = catalogue.broken().values()
    assert "canary-7732" not in broken.why
