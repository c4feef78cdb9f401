"""Brings a database to the newest schema, and reports which schema it has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from accountant.connection import BUSY_SECONDS, open_engine, unhurried
from accountant.errors import NotMigrated, SchemaTooNew

if TYPE_CHECKING:
    from alembic.config import Config

__all__ = ["configuration", "current", "head", "require_newest", "upgrade"]

_LOCK = 0x4E6F697365  # any number that nobody else uses for an advisory lock


def configuration() -> Config:
    """Alembic's configuration, made here so that no file has to be found at run time."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def head() -> str:
    """The newest revision that this code knows: the chain is one line, and its files are numbered."""
    names = (re.match(r"revision_(\d{4})_", path.name) for path in (Path(__file__).parent / "versions").iterdir())
    return max(name[1] for name in names if name is not None)


def current(url: str) -> str | None:
    """The revision of the database, None when it was never migrated."""
    engine = open_engine(url, foreign_keys=False)
    try:
        with engine.connect() as connection:
            return _present(connection)
    finally:
        engine.dispose()


def _present(connection: Connection) -> str | None:
    """The revision that Alembic left in its table."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return None if revision is None else str(revision)


def require_newest(revision: str | None) -> None:
    """Errors: NotMigrated or SchemaTooNew unless this is the newest revision: they are numbered in their order."""
    if revision is None or revision < head():
        raise NotMigrated("the database has an older schema" if revision else "the database has no schema yet")
    if revision > head():
        raise SchemaTooNew("the database has a schema that this program does not know")


def upgrade(url: str, *, revision: str | None = None) -> str:
    """Migrates to that revision, by default the newest, and returns it. Safe to run again and from several processes.

    Everything happens in one transaction: it is all there or nothing. Raises SchemaTooNew when the database has a
    revision that this code does not know, or is to get one.
    """
    newest = head() if revision is None else revision
    engine = open_engine(url, foreign_keys=False)
    try:
        with engine.connect() as connection:
            if _present(connection) == newest:
                # The usual case at a start; loading Alembic would be a tenth of it.
                return newest
        from alembic import command
        from alembic.script import ScriptDirectory

        with engine.connect().execution_options(immediate=True) as connection:
            if connection.dialect.name == "postgresql":
                unhurried(connection)
                connection.execute(text(f"SET LOCAL lock_timeout = '{BUSY_SECONDS * 5}s'"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            known = {script.revision for script in ScriptDirectory.from_config(configuration()).walk_revisions()}
            present = _present(connection)
            unknown = next((one for one in (present, newest) if one is not None and one not in known), None)
            if unknown is not None:
                raise SchemaTooNew(
                    f'the database has schema revision "{unknown}", which is newer than this program; '
                    "run the program that wrote it"
                )
            config = configuration()
            config.attributes["connection"] = connection
            command.upgrade(config, newest)
            if connection.dialect.name == "sqlite":
                broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
                if broken:
                    raise RuntimeError("the migration would leave rows that refer to nothing; nothing was changed")
            connection.commit()
    finally:
        engine.dispose()
    return newest
