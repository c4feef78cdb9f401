"""Connections whose durability is checked: a commit that returned must survive a power loss.

SQLite: write-ahead log, synchronous FULL (with NORMAL a power loss takes acknowledged charges back), foreign keys,
one explicit BEGIN IMMEDIATE per writing transaction. PostgreSQL: READ COMMITTED, fsync, full_page_writes and
synchronous_commit on. The settings are read back on every new connection, because a setting that was asked for and
not granted looks the same as one that holds.

A link to PostgreSQL that swallows everything is given up on by both sides after `LINK_SECONDS`: without that, a step
hangs for as long as the kernel sends the same bytes again, and what the lost side had locked stays locked.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.exc import ArgumentError

from accountant.direct import Direct
from accountant.errors import WeakDurability

__all__ = ["BUSY_SECONDS", "LINK_SECONDS", "open_engine", "parse_url", "sqlite_path", "unhurried"]

BUSY_SECONDS = 60
"""How long a transaction waits for another process before it gives up."""

LINK_SECONDS = 10
"""How long nothing may come over a link to PostgreSQL before it counts as lost; also how long a connection may take."""

_STATEMENT_SECONDS = 30
"""The longest that PostgreSQL works at one statement of a step, waiting for others' locks apart."""

_SYNCHRONOUS_FULL = 2

_BUSY = 5
"""SQLite's code where another connection holds a lock."""
_LOOK_SECONDS = 0.01
"""How often a file is tried again that another process is just turning to the write-ahead log."""


def parse_url(url: str) -> URL:
    """The database address, checked: `sqlite:///file` or `postgresql://...` (read with psycopg)."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # A port that is not a number is a plain ValueError, with the text in it.
        raise ValueError("the ledger's address must look like sqlite:///file or postgresql://host/name") from None
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        if not parsed.database or parsed.database == ":memory:" or parsed.query:
            raise ValueError("a SQLite ledger needs a plain file: memory would forget what was spent")
        return parsed.set(drivername="sqlite+pysqlite")
    if parsed.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    raise ValueError("a ledger lives in SQLite or PostgreSQL")


def sqlite_path(url: URL) -> Path | None:
    """The file of a SQLite address, None for PostgreSQL."""
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def open_engine(url: str, *, foreign_keys: bool = True, read_only: bool = False, pool_size: int = 8) -> Engine:
    """An engine whose every connection has checked settings.

    `conn.execution_options(immediate=True)` makes the next transaction of a SQLite connection a writing one from its
    first statement. `foreign_keys=False` is for migrations, which rebuild SQLite tables; with `read_only` the
    database refuses every statement that writes.
    """
    parsed = parse_url(url)
    if sqlite_path(parsed) is not None:
        return _sqlite_engine(parsed, foreign_keys=foreign_keys, read_only=read_only, pool_size=pool_size)
    return _postgresql_engine(parsed, read_only=read_only, pool_size=pool_size)


def unhurried(connection: Connection) -> None:
    """Lets the statements of this transaction take their time: an audit, a migration, a copy of everything."""
    if connection.dialect.name == "postgresql":
        Direct(connection).change("SET LOCAL statement_timeout = 0")


def _sqlite_engine(url: URL, *, foreign_keys: bool, read_only: bool, pool_size: int) -> Engine:
    engine = create_engine(
        url,
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False, "isolation_level": None},
        pool_size=pool_size,
        max_overflow=64,
        paramstyle="named",
    )

    def set_up(connection: DBAPIConnection, _: object) -> None:
        with contextlib.closing(connection.cursor()) as cursor:
            journal = _write_ahead(cursor, engine.dialect.loaded_dbapi.Error)
            cursor.execute("PRAGMA synchronous=FULL")
            cursor.execute("PRAGMA fullfsync=ON")  # where fsync alone does not reach the disk; no effect elsewhere
            cursor.execute(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")
            synchronous = cursor.execute("PRAGMA synchronous").fetchone()[0]
            checked = cursor.execute("PRAGMA foreign_keys").fetchone()[0]
            if read_only:
                cursor.execute("PRAGMA query_only=ON")
        if journal.lower() != "wal" or int(synchronous) != _SYNCHRONOUS_FULL or bool(checked) is not foreign_keys:
            raise WeakDurability("SQLite did not grant write-ahead log, synchronous FULL and foreign keys")

    def begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("immediate", False)
        Direct(connection).change("BEGIN IMMEDIATE" if immediate else "BEGIN")

    event.listen(engine, "connect", set_up)
    event.listen(engine, "begin", begin)
    return engine


def _write_ahead(cursor: DBAPICursor, failure: type[Exception]) -> str:
    """Asks for the write-ahead log and returns the journal that is granted.

    A new file is turned to it once. While another process holds the write lock for that, SQLite refuses at once instead
    of waiting as it does elsewhere, because a reader that becomes a writer could wait forever; so the waiting is here.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            granted = cursor.fetchone()
            return "" if granted is None else str(granted[0])
        except failure as refused:
            # The low byte tells the kind: busy, and busy because another recovers the log.
            if getattr(refused, "sqlite_errorcode", 0) & 0xFF != _BUSY or time.monotonic() > deadline:
                raise
        time.sleep(_LOOK_SECONDS)


def _postgresql_engine(url: URL, *, read_only: bool, pool_size: int) -> Engine:
    silent, probe, probes = LINK_SECONDS // 2, max(1, LINK_SECONDS // 6), 3
    link = {
        "connect_timeout": max(2, LINK_SECONDS),
        "keepalives_idle": max(1, silent),
        "keepalives_interval": probe,
        "keepalives_count": probes,
        "tcp_user_timeout": LINK_SECONDS * 1000,
    }
    limits = {
        # A transaction left behind by a broken connection must not hold the ledger's head forever.
        "idle_in_transaction_session_timeout": f"{BUSY_SECONDS // 2}s",
        "lock_timeout": f"{BUSY_SECONDS}s",
        "statement_timeout": f"{BUSY_SECONDS + _STATEMENT_SECONDS}s",
        # The same on the other side of the link: it lets go of what this side can no longer end.
        "tcp_keepalives_idle": str(max(1, silent)),
        "tcp_keepalives_interval": str(probe),
        "tcp_keepalives_count": str(probes),
        "tcp_user_timeout": str(LINK_SECONDS * 1000),
    }
    engine = create_engine(
        url,
        # What an operator says in the address is meant.
        connect_args={name: value for name, value in link.items() if name not in url.query},
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        pool_size=pool_size,
        max_overflow=64,
    )

    def set_up(connection: DBAPIConnection, _: object) -> None:
        before = connection.autocommit
        connection.autocommit = True
        try:
            with contextlib.closing(connection.cursor()) as cursor:
                cursor.execute("; ".join(f"SET {name} = '{value}'" for name, value in limits.items()))
                if read_only:
                    cursor.execute("SET default_transaction_read_only = on")
                settings = {}
                for name in ("fsync", "full_page_writes", "synchronous_commit"):
                    cursor.execute(f"SHOW {name}")
                    shown = cursor.fetchone()
                    settings[name] = "off" if shown is None else shown[0]
        finally:
            connection.autocommit = before
        weak = [name for name, value in settings.items() if value == "off"]
        if weak:
            raise WeakDurability(
                f"PostgreSQL runs with {', '.join(f'{name} off' for name in weak)}: a committed charge could be lost"
            )

    event.listen(engine, "connect", set_up)
    return engine
