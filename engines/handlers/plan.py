"""Texts judged and statements planned on empty twins: no row is in reach, and nothing that happens depends on one."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, NamedTuple

import duckdb

from engines.described import TwinTable
from engines.handler import Invalid
from engines.handlers.connection import identifier, lock_down, private_settings
from engines.handlers.judge import Broken, judge, open_tables
from engines.handlers.layout import norm_types, stored_type, unit_tables
from engines.handlers.private import run_statement
from engines.records import read_list, read_records
from privacy.values import Json

__all__ = ["Twin", "Twins", "open_twin"]

_KEPT: Final = 8
_MEMORY_MB: Final = 256


class Twin(NamedTuple):
    """The empty tables as a snapshot stores them, for statements, and as analysts see them, for their texts."""

    stored: duckdb.DuckDBPyConnection
    seen: duckdb.DuckDBPyConnection

    def close(self) -> None:
        """Ends both."""
        self.seen.close()
        self.stored.close()


class Twins:
    """A few empty twins by name, each two databases in memory under the settings of private connections."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Twin] = OrderedDict()

    def plan(self, header: Mapping[str, object]) -> Mapping[str, Json]:
        """Judges the text, if there is one, and runs every statement on the twin when the engine reads the text.

        Says `known: False` when the twin's tables have to be sent, and `stopped` where the engine stopped reading.
        Errors: Invalid for whatever the engine says of a statement.
        """
        name = str(header["twin"])
        try:
            twin = self._twin(name, str(header["schema"]), header["tables"])
            if twin is None:
                return {"known": False, "stopped": None}
            stopped = None if header["text"] is None else judge(twin.seen, header["text"])
            if stopped is not None:
                return {"known": True, "stopped": stopped}
            for statement in read_list(header["statements"]):
                with contextlib.closing(twin.stored.cursor()) as cursor:
                    run_statement(cursor, statement)
        except (duckdb.Error, Broken, ValueError, MemoryError):
            # An engine that met an error inside may refuse everything that follows.
            broken = self._open.pop(name, None)
            if broken is not None:
                broken.close()
            raise Invalid from None
        return {"known": True, "stopped": None}

    def _twin(self, name: str, schema: str, tables: object) -> Twin | None:
        twin = self._open.get(name)
        if twin is None and tables is not None:
            while len(self._open) >= _KEPT:
                self._open.popitem(last=False)[1].close()
            twin = self._open[name] = open_twin(tables, schema)
        if twin is not None:
            self._open.move_to_end(name)
        return twin


def open_twin(tables: object, schema: str) -> Twin:
    """A twin of the tables that `engines.twin` describes, for texts that name them with that schema or without one."""
    no_spill = {"temp_directory": "", "max_temp_directory_size": "0MB"}
    config = {**private_settings(threads=1, memory_limit_mb=_MEMORY_MB), **no_spill}
    stored = duckdb.connect(":memory:", config=config)
    described = read_records(TwinTable, tables)
    for table in described:
        columns = [f"{identifier(column.name)} {stored_type(column)}" for column in table.columns]
        if table.protected:
            columns += ['"unit$id" INTEGER', '"unit$draw" UBIGINT']
        if table.norms is not None:
            columns += [f"{identifier(name)} {kind}" for name, kind in norm_types(table.norms, table.totals)]
        stored.execute(f"CREATE TABLE main.{identifier(table.name)} ({', '.join(columns)})")
        if table.units:
            assert table.norms is not None
            for name, listed in unit_tables(table.name, table.norms, table.totals):
                own = [f"{identifier(column)} {kind}" for column, kind in listed]
                stored.execute(f"CREATE TABLE main.{identifier(name)} ({', '.join(own)})")
    seen = open_tables(stored, described, schema=schema)
    lock_down(stored, local_files=False)
    return Twin(stored, seen)
