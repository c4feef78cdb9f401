"""The whole database as one file of SQLite, and that file back as a database: what backups are made of.

A copy is of one moment: SQLite writes it from one read transaction, PostgreSQL's rows are read in one that is
repeatable. A copy of PostgreSQL has the same tables at the same revision, so either database takes it back, and an
installation moves from one to the other by it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from sqlalchemy import Connection, MetaData, Table, func, insert, inspect, select, text, update

from accountant.connection import open_engine, parse_url, sqlite_path, unhurried
from accountant.errors import NotMigrated
from migrations.upgrade import current, upgrade

__all__ = ["CopyFault", "copy_in", "copy_out", "is_empty"]

_REVISION = "alembic_version"
_ROWS = 2_000


class CopyFault(Exception):
    """A copy that is not what it was made from, or a file that is not a whole database. Its text says what."""


def copy_out(url: str, file: Path) -> str:
    """Copies the database of that address into a new file of SQLite, also while servers write; returns its revision.

    Errors: NotMigrated when there is no schema; SchemaTooNew for a PostgreSQL whose revision this program does not
    know; CopyFault; OSError; those of the database.
    """
    revision = current(url)
    if revision is None:
        raise NotMigrated("the database has no schema yet")
    if sqlite_path(parse_url(url)) is not None:
        _sqlite_out(url, file)
    else:
        upgrade(_address(file), revision=revision)
        _rows_over(url, _address(file))
    _settle(file)
    if current(_address(file)) != revision:
        raise CopyFault("the schema was changed while the copy was made")
    _single_file(file)
    return revision


def copy_in(file: Path, url: str) -> None:
    """Makes a database of a copy, where there is none yet. All of it is there afterwards, or nothing.

    Errors: CopyFault for a file that is damaged, or a database that is not empty; SchemaTooNew; OSError; those of the
    database.
    """
    _settle(file)
    if not is_empty(url):
        raise CopyFault("the database is not empty")
    path = sqlite_path(parse_url(url))
    if path is None:
        revision = current(_address(file))
        if revision is None:
            raise CopyFault("the copy has no schema")
        upgrade(url, revision=revision)
        _rows_over(_address(file), url)
        return
    fresh = path.with_name(f"{path.name}.part")
    try:
        shutil.copyfile(file, fresh)
        _flush(fresh)
        os.link(fresh, path)  # never over a file that appeared in between
    finally:
        fresh.unlink(missing_ok=True)
    _flush(path.parent)


def is_empty(url: str) -> bool:
    """Whether nothing is there that a copy could overwrite: no file, or a database without tables."""
    path = sqlite_path(parse_url(url))
    if path is not None:
        return not path.exists()
    engine = open_engine(url, foreign_keys=False)
    with contextlib.closing(engine.connect()) as connection:
        names = inspect(connection).get_table_names()
    engine.dispose()
    return not names


def _address(file: Path) -> str:
    return f"sqlite:///{file.absolute()}"


def _sqlite_out(url: str, file: Path) -> None:
    engine = open_engine(url, foreign_keys=False)
    try:
        # Outside a transaction of ours: the statement has its own.
        with contextlib.closing(engine.raw_connection()) as raw, contextlib.closing(raw.cursor()) as cursor:
            cursor.execute("VACUUM INTO ?", (str(file),))
    finally:
        engine.dispose()


def _settle(file: Path) -> None:
    """Errors: CopyFault when SQLite finds a page, an index or a reference of the file damaged."""
    engine = open_engine(_address(file), foreign_keys=False)
    try:
        with engine.connect() as connection:
            found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
            loose = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    finally:
        engine.dispose()
    if found != "ok" or loose is not None:
        raise CopyFault("the copy is damaged: SQLite finds pages or references that do not fit")


def _single_file(file: Path) -> None:
    """Takes the write-ahead log into the file, which then is all there is, and flushes it."""
    engine = open_engine(_address(file), foreign_keys=False)
    try:
        with contextlib.closing(engine.raw_connection()) as raw, contextlib.closing(raw.cursor()) as cursor:
            cursor.execute("PRAGMA journal_mode=DELETE")
    finally:
        engine.dispose()
    _flush(file)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Rows from one kind of database into the other


def _rows_over(source: str, target: str) -> None:
    """Copies all rows between two databases of one revision, of which the target has none. Errors: CopyFault."""
    one, other = open_engine(source, foreign_keys=False), open_engine(target, foreign_keys=False)
    try:
        with one.connect() as reading, other.connect().execution_options(immediate=True) as writing:
            if reading.dialect.name == "postgresql":
                reading = reading.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            for connection in (reading, writing):
                unhurried(connection)
            there, here = MetaData(), MetaData()
            there.reflect(reading)
            here.reflect(writing)
            if there.tables.keys() != here.tables.keys():
                raise CopyFault("the two databases do not have the same tables")
            _defer(writing, here, deferred=True)
            for table in here.sorted_tables:
                if table.name != _REVISION:
                    _table_over(reading, writing, there.tables[table.name], table)
            _count_on(writing, here)
            _defer(writing, here, deferred=False)
            writing.commit()
    finally:
        one.dispose()
        other.dispose()


def _table_over(reading: Connection, writing: Connection, source: Table, target: Table) -> None:
    chosen = select(*(source.c[column.name] for column in target.c))
    if writing.execute(select(func.count()).select_from(target)).scalar_one():
        # The head of the ledger, which a migration makes and nothing may delete: one row, which is here as it is there.
        writing.execute(update(target).values(dict(reading.execute(chosen).one()._mapping)))
    else:
        with reading.execution_options(yield_per=_ROWS).execute(chosen) as found:
            for rows in found.partitions():
                writing.execute(insert(target), [dict(row._mapping) for row in rows])
    counted = [
        connection.execute(select(func.count()).select_from(table)).scalar_one()
        for connection, table in ((reading, source), (writing, target))
    ]
    if counted[0] != counted[1]:
        raise CopyFault(f"the table {target.name} was not copied whole")


def _defer(connection: Connection, tables: MetaData, *, deferred: bool) -> None:
    """Has PostgreSQL look at references at the end: a row may come before the one in the same table that it names."""
    if connection.dialect.name != "postgresql":
        return
    word = "DEFERRABLE INITIALLY DEFERRED" if deferred else "NOT DEFERRABLE"
    if not deferred:
        connection.execute(text("SET CONSTRAINTS ALL IMMEDIATE"))
    quoted = connection.dialect.identifier_preparer.quote
    for table in tables.sorted_tables:
        for key in table.foreign_key_constraints:
            assert key.name is not None
            connection.execute(
                text(f"ALTER TABLE {quoted(table.name)} ALTER CONSTRAINT {quoted(str(key.name))} {word}")
            )


def _count_on(connection: Connection, tables: MetaData) -> None:
    """Lets PostgreSQL's own numbers go on after those that were copied."""
    if connection.dialect.name != "postgresql":
        return
    for table in tables.sorted_tables:
        for column in table.primary_key.columns:
            named = text("SELECT pg_get_serial_sequence(:table, :column)")
            sequence = connection.execute(named, {"table": table.name, "column": column.name}).scalar_one()
            if sequence is not None:
                last = connection.execute(select(func.max(column))).scalar_one()
                connection.execute(select(func.setval(sequence, last or 1, last is not None)))
