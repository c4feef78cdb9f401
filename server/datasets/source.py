"""Where the rows of a declared table are."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast

from engines.snapshot import TableSource
from server.datasets.files import file_format
from server.datasets.model import TableFile

__all__ = ["source_of"]


def source_of(name: str, table: TableFile, directory: Path) -> TableSource:
    """The source of one table; a relative path is taken from `directory`. Requires: its format is known."""
    kind = table.source.format or file_format(table.source.file)
    assert kind in ("csv", "parquet", "duckdb"), "the file was checked"
    return TableSource(
        table=name,
        path=directory / table.source.file,
        format=cast(Literal["csv", "parquet", "duckdb"], kind),
        source_table=(table.source.table or name) if kind == "duckdb" else None,
        decimal=table.source.decimal,
        dates=table.source.dates,
        source_names=tuple(
            (column, declared.source_name)
            for column, declared in table.columns.items()
            if declared.source_name is not None
        ),
    )
