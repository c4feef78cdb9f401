"""Small declared datasets that the engine tests share."""

from __future__ import annotations

from pathlib import Path

import duckdb

from privacy.bounds import ContributionBound
from privacy.policy import Column, ColumnType, Dataset, PublicKeys, Reference, Table
from privacy.unit import PrivacyUnit

DRAW_KEY = bytes(range(32))


def contribution(rows: int = 5) -> ContributionBound:
    """A bound with that many rows per unit."""
    return ContributionBound(rows_per_unit=rows, groups_per_unit=2, rows_per_unit_and_group=3)


def column(name: str, kind: str, *, keys: tuple[str | None, ...] | None = None, nullable: bool = True) -> Column:
    """A column with an optional list of declared keys."""
    return Column(name, ColumnType(kind), keys=None if keys is None else PublicKeys(keys), nullable=nullable)


def people(*columns: Column, rows: int = 1, key: str | None = "id") -> Table:
    """The table of the units."""
    return Table(
        name="people",
        columns=(column("id", "integer"), *columns),
        protected=True,
        key=key,
        unit_column="id",
        contribution=contribution(rows),
    )


def dataset(*tables: Table, unit: str = "people", key: str = "id") -> Dataset:
    """A dataset over these tables."""
    return Dataset(name="test", unit=PrivacyUnit(unit, key), tables=tables, policy_version=1, data_version="")


def visits() -> Table:
    """Rows that hold the unit's key."""
    return Table(
        name="visits",
        columns=(column("visit", "integer"), column("person", "integer"), column("city", "text")),
        protected=True,
        key="visit",
        references=(Reference("person", "people", "id"),),
        unit_column="person",
        contribution=contribution(),
    )


def bills() -> Table:
    """Rows that reach the unit through visits."""
    return Table(
        name="bills",
        columns=(column("visit", "integer"), column("amount", "number")),
        protected=True,
        unit_path=(Reference("visit", "visits", "visit"),),
        contribution=contribution(),
    )


def write_csv(path: Path, *lines: str) -> Path:
    """A CSV file of these lines."""
    path.write_text("\n".join(lines) + "\n")
    return path


def write_parquet(path: Path, sql: str) -> Path:
    """A Parquet file with the result of the query."""
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet)")
    return path


def read(path: Path, sql: str) -> list[tuple[object, ...]]:
    """Rows of a query on a snapshot."""
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()
