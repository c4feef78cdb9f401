"""The chain of migrations on both databases."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, Table, Text, inspect, select, text
from sqlalchemy.exc import DBAPIError

from accountant import tables
from accountant.connection import open_engine
from accountant.errors import SchemaTooNew
from accountant.ledger import Ledger
from migrations.upgrade import configuration, current, head, upgrade
from server.store import tables as server_tables


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without anything in it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    address: str = request.getfixturevalue("empty_postgresql_url")
    return address


def test_from_nothing_to_the_newest(empty_url: str) -> None:
    """An empty database becomes a ledger that opens; a second run changes nothing."""
    assert current(empty_url) is None
    assert head() == upgrade(empty_url)
    assert current(empty_url) == head()
    with Ledger(empty_url, instance="test") as ledger:
        identity = ledger.identity
    assert upgrade(empty_url) == head()
    with Ledger(empty_url, instance="test") as ledger:
        assert ledger.identity == identity


def test_no_drift(empty_url: str) -> None:
    """What the chain makes is what the table modules describe: Alembic proposes no change."""
    upgrade(empty_url)
    engine = open_engine(empty_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        # One comparison for all tables: Alembic takes a list of metadata in its environment, but one here.
        assert compare_metadata(context, _merged()) == []
        config = configuration()
        config.attributes["connection"] = connection
        command.check(config)
    engine.dispose()


def _merged() -> tables.MetaData:
    merged = tables.MetaData()
    for source in (tables.metadata, server_tables.metadata):
        for table in source.tables.values():
            table.to_metadata(merged)
    return merged


def test_constraints_and_triggers_are_there(empty_url: str) -> None:
    """Alembic does not compare CHECK constraints and triggers, so their names are compared here."""
    upgrade(empty_url)
    engine = open_engine(empty_url)
    with engine.connect() as connection:
        inspector = inspect(connection)
        for name, table in tables.metadata.tables.items():
            described = {
                str(constraint.name)
                for constraint in table.constraints
                if isinstance(constraint, tables.CheckConstraint)
            }
            assert described == {check["name"] for check in inspector.get_check_constraints(name)}
        source = "sqlite_master" if connection.dialect.name == "sqlite" else "pg_trigger"
        column = "name" if connection.dialect.name == "sqlite" else "tgname"
        found = set(connection.execute(text(f"SELECT {column} FROM {source}")).scalars())
        for trigger in (
            "tr_entries_update_kept",
            "tr_entries_delete_kept",
            "tr_releases_update_kept",
            "tr_queries_delete_kept",
            "tr_queries_update_kept",
            "tr_accounts_delete_kept",
            "tr_accounts_update_place",
            "tr_accounts_update_covered",
            "tr_ledger_meta_delete_kept",
        ):
            assert trigger in found
    engine.dispose()


def test_one_chain() -> None:
    """There is one head and every revision follows one other."""
    script = ScriptDirectory.from_config(configuration())
    assert len(script.get_heads()) == 1
    revisions = [revision.revision for revision in script.walk_revisions()]
    assert revisions == sorted(revisions, reverse=True)
    assert revisions[-1] == "0001"


def test_a_newer_database(empty_url: str) -> None:
    """A revision that this program does not know is refused, and stays as it is."""
    upgrade(empty_url)
    engine = open_engine(empty_url)
    with engine.connect() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        connection.commit()
    engine.dispose()
    with pytest.raises(SchemaTooNew, match="newer than this program"):
        upgrade(empty_url)
    assert current(empty_url) == "9999"


@pytest.mark.slow
def test_two_at_once(empty_url: str) -> None:
    """Several processes that start together migrate once."""
    with ThreadPoolExecutor(4) as pool:
        assert [head()] * 4 == list(pool.map(upgrade, [empty_url] * 4))


def test_all_or_nothing(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration that fails at its end leaves no table behind."""
    from alembic.operations import Operations

    original = Operations.execute

    def fail_at_the_last(self: Operations, statement: object, **options: object) -> None:
        if "tr_ledger_meta_delete_kept" in str(statement):
            raise RuntimeError("the lights went out")
        original(self, statement, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Operations, "execute", fail_at_the_last)
    with pytest.raises(RuntimeError, match="lights"):
        upgrade(empty_url)
    monkeypatch.undo()
    engine = open_engine(empty_url)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == []
    engine.dispose()
    assert upgrade(empty_url) == head()


def test_sqlite_file_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """An address that cannot be written gives the database's error and makes nothing."""
    if os.geteuid() == 0:
        folder = Path("/proc")
    else:
        folder = tmp_path / "closed"
        folder.mkdir(mode=0o500)
    with pytest.raises(Exception, match="unable to open database file"):
        upgrade(f"sqlite:///{folder / 'ledger.db'}")


def test_a_running_query_is_reserved_again(empty_url: str) -> None:
    """Revision 0008 turns "running" into "reserved", keeps other rows and what names them, and allows it no more."""
    engine = open_engine(empty_url, foreign_keys=False)
    with engine.connect() as connection:
        config = configuration()
        config.attributes["connection"] = connection
        command.upgrade(config, "0007")
        there = MetaData()
        there.reflect(connection)
        queries, open_states = there.tables["queries"], ("reserved", "running")
        connection.execute(there.tables["instances"].insert().values(_filled(there.tables["instances"], id="i")))
        root = _filled(there.tables["accounts"], id="a", filter="pure", limit_epsilon=1, budget_pure=1)
        connection.execute(there.tables["accounts"].insert().values(root))
        rows = [
            _filled(
                queries,
                id=f"q_{state}",
                state=state,
                account="a",
                instance="i",
                idempotency_key=state,
                answer=b"told" if state == "settled" else None,
                finished=None if state in open_states else 2,
            )
            for state in (*open_states, "settled", "failed_charged", "failed_void")
        ]
        connection.execute(queries.insert(), rows)
        for number, row in enumerate(rows):
            entry = _filled(there.tables["entries"], sequence=number, account_sequence=number, account="a", kind="post")
            connection.execute(there.tables["entries"].insert().values({**entry, "query_id": row["id"]}))
        connection.commit()
    engine.dispose()
    upgrade(empty_url)
    engine = open_engine(empty_url)
    with engine.connect() as connection:
        kept = [dict(row._mapping) for row in connection.execute(select(queries))]
        expected = [{**row, "state": "reserved"} if row["state"] == "running" else row for row in rows]
        assert sorted(kept, key=lambda row: str(row["id"])) == sorted(expected, key=lambda row: str(row["id"]))
        named = connection.execute(text("SELECT count(*) FROM entries JOIN queries ON queries.id = query_id"))
        assert named.scalar_one() == len(rows)
    for refused in (
        "UPDATE queries SET state = 'running' WHERE id = 'q_reserved'",
        "UPDATE queries SET finished = 3 WHERE id = 'q_reserved'",
        "UPDATE queries SET state = 'reserved' WHERE id = 'q_failed_void'",
        "UPDATE entries SET query_id = 'q_none' WHERE sequence = 1",
        "DELETE FROM queries WHERE id = 'q_reserved'",
    ):
        with engine.connect() as connection, pytest.raises(DBAPIError):
            connection.execute(text(refused))
    engine.dispose()


def _filled(table: Table, **values: object) -> dict[str, object]:
    """A row with something in every column that must not be empty."""
    return {
        column.name: values.get(column.name, None if column.nullable else "x" if isinstance(column.type, Text) else 0)
        for column in table.columns
    }
