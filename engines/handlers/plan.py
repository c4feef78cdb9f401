"""Statements planned and run on empty twins: no row is in reach, and nothing that happens depends on one."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import duckdb

from engines.handler import Invalid
from engines.handlers.connection import identifier, lock_down, private_settings
from engines.handlers.layout import stored_type
from engines.handlers.private import run_statement

__all__ = ["Twins"]

_KEPT: Final = 8
_MEMORY_MB: Final = 256


class Twins:
    """A few empty twins by name, each an in-memory database under the settings of private connections."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, duckdb.DuckDBPyConnection] = OrderedDict()

    def plan(self, header: Mapping[str, Any]) -> Mapping[str, Any]:
        """Runs every statement on the twin. Says `known: False` when its tables have to be sent.

        Errors: Invalid for whatever the engine says.
        """
        name, tables = str(header["twin"]), header["tables"]
        try:
            twin = self._twin(name, tables)
            if twin is None:
                return {"known": False}
            for statement in header["statements"]:
                with contextlib.closing(twin.cursor()) as cursor:
                    run_statement(cursor, statement)
        except (duckdb.Error, ValueError, MemoryError):
            # An engine that met an error inside may refuse everything that follows.
            broken = self._open.pop(name, None)
            if broken is not None:
                broken.close()
            raise Invalid from None
        return {"known": True}

    def _twin(self, name: str, tables: Sequence[Mapping[str, Any]] | None) -> duckdb.DuckDBPyConnection | None:
        twin = self._open.get(name)
        if twin is None and tables is not None:
            while len(self._open) >= _KEPT:
                self._open.popitem(last=False)[1].close()
            twin = self._open[name] = _opened(tables)
        if twin is not None:
            self._open.move_to_end(name)
        return twin


def _opened(tables: Sequence[Mapping[str, Any]]) -> duckdb.DuckDBPyConnection:
    no_spill = {"temp_directory": "", "max_temp_directory_size": "0MB"}
    config = {**private_settings(threads=1, memory_limit_mb=_MEMORY_MB), **no_spill}
    twin = duckdb.connect(":memory:", config=config)
    for table in tables:
        columns = [f"{identifier(column['name'])} {stored_type(column)}" for column in table["columns"]]
        if table["protected"]:
            columns += ['"unit$id" INTEGER', '"unit$draw" UBIGINT']
        twin.execute(f"CREATE TABLE main.{identifier(str(table['name']))} ({', '.join(columns)})")
    lock_down(twin, local_files=False)
    return twin
