"""Statements run as text on a connection's own driver, with the errors of SQLAlchemy.

SQLAlchemy prepares a result for every statement, which takes several times as long as a short statement does. So what
every question needs is run here: text that was compiled before, named parameters of the driver's types, plain tuples.
Connections, their pool and their transactions stay SQLAlchemy's; a connection that broke leaves the pool, as there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NoReturn, TypeAlias, TypeVar

from sqlalchemy import Connection, Dialect, Engine
from sqlalchemy.engine.interfaces import DBAPICursor, DBAPIModule
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import PoolProxiedConnection

__all__ = ["Asked", "Direct", "Parameters", "Row", "read"]

Parameters: TypeAlias = Mapping[str, object]
"""The parameters of a statement, by name."""

Row: TypeAlias = tuple[object, ...]
"""The fields of a row, in the order of its statement: whoever reads them knows their types."""

Made = TypeVar("Made")

_NONE: Final[Parameters] = {}


class Asked:
    """A statement that was sent: its rows, or how many it changed, once they are asked for. Errors: DBAPIError."""

    __slots__ = ("_cursor", "_direct")

    def __init__(self, direct: Direct, cursor: DBAPICursor) -> None:
        self._direct = direct
        self._cursor = cursor

    def rows(self) -> list[Row]:
        """The rows."""
        with self._direct.failing():
            return list(self._cursor.fetchall())

    @property
    def changed(self) -> int:
        """How many rows it changed, once it has run; below 0 before."""
        return self._cursor.rowcount

    def read(self, make: Callable[..., Made]) -> list[Made]:
        """What `make` makes of the fields of each row."""
        return [make(*row) for row in self.rows()]


class Direct:
    """Runs statements in the transaction of a connection. Errors: DBAPIError for each call, as SQLAlchemy raises it."""

    __slots__ = ("_connection", "_dialect", "_driver", "_error")

    def __init__(self, connection: Connection) -> None:
        """For one transaction, which has begun."""
        self._connection = connection
        self._dialect = connection.dialect
        self._error = _module(self._dialect).Error
        self._driver = connection.connection

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Statements inside are sent without waiting for the one before, where the driver can; all have run at the end.

        The database runs them one after another, as ever. What one of them finds is asked for inside, by `Asked` or
        where this waits; the first that fails is raised there or at the end, and no later one has run.
        """
        pipeline = getattr(self._driver.driver_connection, "pipeline", None)
        if pipeline is None:
            yield
            return
        with self.failing(), pipeline():
            yield

    @contextlib.contextmanager
    def failing(self) -> Iterator[None]:
        """Errors of the driver inside are raised as SQLAlchemy does."""
        try:
            yield
        except self._error as error:
            self._fail(error)

    def ask(self, statement: str, parameters: Parameters = _NONE) -> Asked:
        """Sends a statement whose outcome is looked at afterwards."""
        try:
            cursor = self._driver.cursor()
            cursor.execute(statement, parameters)
        except self._error as error:
            self._fail(error)
        return Asked(self, cursor)

    def select(self, statement: str, parameters: Parameters = _NONE) -> list[Row]:
        """The rows."""
        return self.ask(statement, parameters).rows()

    def read(self, make: Callable[..., Made], statement: str, parameters: Parameters = _NONE) -> list[Made]:
        """What `make` makes of the fields of each row."""
        return [make(*row) for row in self.select(statement, parameters)]

    def change(
        self, statement: str, parameters: Parameters | Sequence[Parameters] | Sequence[Sequence[object]] = _NONE
    ) -> int:
        """How many rows were changed. For several sets of parameters the statement is run with each of them.

        Parameters without names are for SQLite alone.
        """
        try:
            cursor = self._driver.cursor()
            if isinstance(parameters, Sequence):
                cursor.executemany(statement, parameters)
            else:
                cursor.execute(statement, parameters)
            return cursor.rowcount
        except self._error as error:
            self._fail(error)

    def _fail(self, error: DBAPIModule.Error) -> NoReturn:
        if self._dialect.is_disconnect(error, self._driver, None):
            self._connection.invalidate(error)
        _raise(self._dialect, error)


def read(engine: Engine, statement: str, parameters: Parameters = _NONE) -> list[Row]:
    """The rows of one statement, on a connection of the engine's pool and outside any transaction.

    Errors: DBAPIError, as SQLAlchemy raises it; its TimeoutError when no connection comes free.
    """
    dialect = engine.dialect
    failed = _module(dialect).Error
    try:
        opened = engine.raw_connection()
    except failed as error:
        _raise(dialect, error)
    try:
        return _rows(dialect, opened, failed, statement, parameters)
    finally:
        # The pool ends what the driver may have begun.
        opened.close()


def _rows(
    dialect: Dialect,
    opened: PoolProxiedConnection,
    failed: type[DBAPIModule.Error],
    statement: str,
    parameters: Parameters,
) -> list[Row]:
    try:
        cursor = opened.cursor()
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())
    except failed as error:
        if dialect.is_disconnect(error, opened, None):
            opened.invalidate(error)
        _raise(dialect, error)


def _module(dialect: Dialect) -> DBAPIModule:
    module = dialect.loaded_dbapi
    assert module is not None
    return module


def _raise(dialect: Dialect, error: DBAPIModule.Error) -> NoReturn:
    """Raises the error as SQLAlchemy does. Without the statement and its parameters, which may be an answer."""
    raise DBAPIError.instance(None, None, error, _module(dialect).Error, dialect=dialect) from error
