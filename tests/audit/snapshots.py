"""The same audit on the real path: source files, the real snapshot builder, and the private engine's workers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb

from engines.handlers.connection import identifier
from engines.private import PrivateEngine
from engines.snapshot import build_snapshot
from engines.table_source import TableSource
from privacy.exact import Exact
from privacy.statement import Statement
from tests.audit.generate import Row, Scene, restricted
from tests.audit.harness import Store

__all__ = ["SnapshotStore", "write_source"]


def write_source(scene: Scene, rows: Mapping[str, list[Row]], path: Path) -> Path:
    """A database file with these rows as an owner would have them: NaN and infinities included."""
    with closing(duckdb.connect(str(path))) as connection:
        for table in scene.dataset.tables:
            parts = [
                f"unnest(CAST(${place} AS {column.type.sql}[])) AS {identifier(column.name)}"
                for place, column in enumerate(table.columns, start=1)
            ]
            values = [[row[column.name] for row in rows[table.name]] for column in table.columns]
            connection.execute(f"CREATE TABLE {identifier(table.name)} AS SELECT {', '.join(parts)}", values)
    return path


class SnapshotStore(Store):
    """The rows of some units in a snapshot made by the real builder, read by the real private engine."""

    def __init__(self, scene: Scene, units: frozenset[Any], *, engine: PrivateEngine, folder: Path, key: bytes) -> None:
        super().__init__(scene, units, seed=0)
        self._engine = engine
        source = write_source(scene, restricted(scene, units), folder / "source.duckdb")
        self._snapshot = build_snapshot(
            scene.dataset,
            [TableSource(table.name, source, "duckdb", table.name) for table in scene.dataset.tables],
            directory=folder / "snapshots",
            draw_key=key,
        )
        with closing(duckdb.connect(str(self._snapshot.path), read_only=True)) as connection:
            found = connection.execute('SELECT person_id, "unit$draw" FROM people').fetchall()
        self.draws = {unit: int(draw) for unit, draw in found}

    def exact(self, statement: Statement) -> Exact:
        """The answer of the private engine."""
        return self._engine.run(self._snapshot.path, statement, timeout_seconds=60)
