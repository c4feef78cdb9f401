"""Alembic's entry: one chain for the ledger's tables and the server's own, on SQLite and PostgreSQL."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from accountant.connection import open_engine
from accountant.tables import metadata as ledger_metadata
from server.store.tables import metadata as server_metadata


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=[ledger_metadata, server_metadata],
        render_as_batch=True,
        compare_type=True,
        # SQLite has transactional DDL once BEGIN is explicit (accountant/connection.py): a migration that is killed
        # half-way leaves nothing behind.
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


if context.is_offline_mode():
    raise SystemExit("migrations run on a live database only: triggers differ between databases")

_given: Connection | None = context.config.attributes.get("connection")
if _given is not None:
    _run(_given)
else:
    _url = context.config.get_main_option("sqlalchemy.url") or context.get_x_argument(as_dictionary=True).get("url")
    if not _url:
        raise SystemExit("give the database as: alembic -x url=sqlite:///ledger.db ...")
    _engine = open_engine(_url, foreign_keys=False)
    with _engine.connect() as _connection:
        _run(_connection)
        _connection.commit()
    _engine.dispose()
