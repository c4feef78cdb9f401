"""Homes of earlier versions, unpacked and migrated, on both databases: a test module names its `VERSION`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from alembic import command
from pydantic import SecretStr
from sqlalchemy import MetaData, create_engine, func, select, text

from accountant.audit import AuditReport
from accountant.connection import open_engine
from migrations.upgrade import configuration, upgrade
from server.app import create_app
from server.build import build_services
from server.services import Services
from server.settings import Settings
from tests.databases import empty_postgresql_url, postgresql_server  # noqa: F401 - fixtures are found by their names

REVISIONS = {"0.1.0": "0003", "0.2.0": "0007"}
"""The newest revision of each version."""


def archive_of(version: str) -> Path:
    """The home that a version left behind."""
    return Path(__file__).with_name(f"home-{version}.tar.gz")


def unpack(version: str, folder: Path) -> None:
    """Puts the home of a version into a folder."""
    with tarfile.open(archive_of(version)) as archive:
        archive.extractall(folder, filter="data")


class OldHome:
    """One home of an earlier version under this version's program, and what its users were told."""

    def __init__(self, folder: Path, database: str | None) -> None:
        self.asked: dict[str, Any] = json.loads((folder / "asked.json").read_text())
        self.settings = Settings(home=folder, database_url=None if database is None else SecretStr(database))
        self.services: Services | None = None
        self.audit: AuditReport | None = None
        self.budgets: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def serving(self) -> Iterator[OldHome]:
        """The services of the home, started as `serve` starts them."""
        self.services = build_services(self.settings)
        try:
            yield self
        finally:
            self.services.jobs.close(seconds=5)
            for close in self.services.closing:
                close()
            self.services = None

    def call(self, who: str, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """One request with a key that the earlier version made."""
        assert self.services is not None
        services = self.services

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=create_app(services.settings, services=services))
            async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60) as client:
                key = {"Authorization": f"Bearer {self.asked['keys'][who]}"}
                return await client.request(method, path, json=body, headers={**key, **headers})

        return asyncio.run(send())


def _copy_to(url: str, ledger: Path, revision: str) -> None:
    """Puts the rows of a SQLite ledger into a PostgreSQL database, at the revision that its version had."""
    target = open_engine(url, foreign_keys=False)
    with target.connect() as connection:
        config = configuration()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        connection.commit()
    source = create_engine(f"sqlite:///{ledger}")
    there = MetaData()
    there.reflect(target)
    here = MetaData()
    here.reflect(source)
    with source.connect() as read, target.connect() as write:
        # The migration wrote a head of its own; the trigger that keeps it is about rows, not about this.
        write.execute(text("SET session_replication_role = replica"))
        write.execute(there.tables["ledger_meta"].delete())
        for table in here.sorted_tables:
            if table.name != "alembic_version":
                rows = [dict(row._mapping) for row in read.execute(select(table))]
                if rows:
                    write.execute(there.tables[table.name].insert(), rows)
        for name in ("dataset_versions", "registry_events"):
            newest = write.execute(select(func.max(there.tables[name].c.sequence))).scalar_one()
            write.execute(text(f"SELECT setval(pg_get_serial_sequence('{name}', 'sequence'), {newest})"))
        write.commit()
    source.dispose()
    target.dispose()


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def unpacked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OldHome]:
    """The home as the module's version left it: nothing was migrated yet."""
    folder: Path = tmp_path_factory.mktemp("old")
    version: str = request.module.VERSION
    unpack(version, folder)
    if request.param == "sqlite":
        yield OldHome(folder, None)
        return
    from tests.databases import EmptyDatabase

    with EmptyDatabase(request.getfixturevalue("postgresql_server")) as address:
        _copy_to(address, folder / "ledger.sqlite", REVISIONS[version])
        (folder / "ledger.sqlite").unlink()
        yield OldHome(folder, address)


@pytest.fixture(scope="module")
def old(unpacked: OldHome) -> Iterator[OldHome]:
    """The home, migrated and served by this version."""
    upgrade(unpacked.settings.database())
    with unpacked.serving():
        assert unpacked.services is not None
        # Before any test asks something: they come in any order, and some spend.
        unpacked.audit = unpacked.services.ledger.audit()
        unpacked.budgets = unpacked.call("admin", "GET", "/v1/budgets").json()["budgets"]
        yield unpacked
