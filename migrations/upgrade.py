"""Brings a database to the newest schema, and tells which schema it has."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from accountant.connection import BUSY_SECONDS, open_engine
from accountant.errors import SchemaTooNew

__all__ = ["configuration", "current", "head", "upgrade"]

_LOCK = 0x4E6F697365  # any number that nobody else uses for an advisory lock


def configuration() -> Config:
    """Alembic's configuration, made here so that no file has to be found at run time."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def head() -> str:
    """The newest revision that this code knows."""
    revision = ScriptDirectory.from_config(configuration()).get_current_head()
    assert revision is not None
    return revision


def current(url: str) -> str | None:
    """The revision of the database, None when it was never migrated."""
    engine = open_engine(url, foreign_keys=False)
    try:
        with engine.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision()
    finally:
        engine.dispose()


def upgrade(url: str) -> str:
    """Migrates to the newest revision and returns it. Safe to run again and from several processes at once.

    Everything happens in one transaction: it is all there or nothing. Raises SchemaTooNew when the database has a
    revision that this code does not know.
    """
    engine = open_engine(url, foreign_keys=False)
    try:
        with engine.connect().execution_options(immediate=True) as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text(f"SET LOCAL lock_timeout = '{BUSY_SECONDS * 5}s'"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            known = {script.revision for script in ScriptDirectory.from_config(configuration()).walk_revisions()}
            present = MigrationContext.configure(connection).get_current_revision()
            if present is not None and present not in known:
                raise SchemaTooNew(
                    f'the database has schema revision "{present}", which is newer than this program; '
                    "run the program that wrote it"
                )
            config = configuration()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            if connection.dialect.name == "sqlite":
                broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
                if broken:
                    raise RuntimeError("the migration would leave rows that refer to nothing; nothing was changed")
            connection.commit()
    finally:
        engine.dispose()
    return head()
