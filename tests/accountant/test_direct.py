"""Statements on the driver itself: the errors are SQLAlchemy's, and a connection that broke leaves the pool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from accountant.connection import open_engine
from accountant.direct import Direct, read


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """A database with one table of one row, on one connection."""
    made = open_engine(f"sqlite:///{tmp_path}/a.sqlite", pool_size=1)
    with made.connect().execution_options(immediate=True) as connection:
        connection.exec_driver_sql("CREATE TABLE kept (id INTEGER PRIMARY KEY, word TEXT NOT NULL)")
        connection.exec_driver_sql("INSERT INTO kept VALUES (1, 'a')")
        connection.commit()
    yield made
    made.dispose()


def test_rows_are_read_and_changed_in_the_transaction_of_the_connection(engine: Engine) -> None:
    """What is not committed is taken back, and nobody else sees it."""
    with engine.connect().execution_options(immediate=True) as connection, connection.begin() as transaction:
        direct = Direct(connection)
        assert direct.change("UPDATE kept SET word = :word WHERE id = :id", {"word": "b", "id": 1}) == 1
        assert direct.change("UPDATE kept SET word = :word WHERE id = :id", {"word": "b", "id": 2}) == 0
        direct.change("INSERT INTO kept VALUES (:id, :word)", [{"id": 2, "word": "c"}, {"id": 3, "word": "d"}])
        assert direct.select("SELECT id, word FROM kept ORDER BY id") == [(1, "b"), (2, "c"), (3, "d")]
        transaction.rollback()
    assert read(engine, "SELECT id, word FROM kept WHERE id < :below", {"below": 9}) == [(1, "a")]


def test_errors_are_those_of_sqlalchemy_and_repeat_no_values(engine: Engine) -> None:
    """A caller tells what the database refused from a database that is not there, and a log gets no answer."""
    with engine.connect().execution_options(immediate=True) as connection, connection.begin():
        with pytest.raises(IntegrityError) as refused:
            Direct(connection).change("INSERT INTO kept VALUES (:id, :word)", {"id": 1, "word": "a secret"})
        assert "secret" not in str(refused.value)
        with pytest.raises(OperationalError):
            Direct(connection).select("SELECT word FROM nowhere")
    with pytest.raises(OperationalError):
        read(engine, "SELECT word FROM nowhere")


def test_a_connection_that_broke_leaves_the_pool(engine: Engine) -> None:
    """The next statement gets another one."""
    with engine.connect() as connection:
        direct = Direct(connection)
        assert connection.connection.driver_connection is not None
        connection.connection.driver_connection.close()
        with pytest.raises(DBAPIError):
            direct.select("SELECT word FROM kept")
        assert connection.invalidated
    assert read(engine, "SELECT word FROM kept") == [("a",)]
