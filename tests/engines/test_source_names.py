"""Columns that the source calls otherwise, and text in the conventions of other countries."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from engines.columns import column_fault, matching_columns
from engines.inspect import inspect_source, source_columns
from engines.snapshot import build_snapshot
from engines.snapshot_findings import SnapshotFinding, SnapshotRefused
from engines.stored import Snapshot
from engines.table_source import TableSource
from privacy.policy import Column, ColumnType
from tests.engines.datasets import DRAW_KEY, column, dataset, people, read, write_csv, write_parquet

NAMES = (("id", "Person ID"), ("age", "age (years)"))


def attach(folder: Path, columns: tuple[Column, ...], source: TableSource) -> Snapshot:
    return build_snapshot(dataset(people(*columns)), [source], directory=folder / "snapshots", draw_key=DRAW_KEY)


def refusals(folder: Path, columns: tuple[Column, ...], source: TableSource) -> list[tuple[str, str | None]]:
    with pytest.raises(SnapshotRefused) as caught:
        attach(folder, columns, source)
    return [(found.code, found.column) for found in caught.value.findings]


def test_every_format_is_read_under_declared_names(tmp_path: Path) -> None:
    """CSV, Parquet and DuckDB columns with names that SQL would need quotes for are stored under the declared ones."""
    sql = 'SELECT 1 AS "Person ID", 30 AS "age (years)", 9 AS other UNION ALL SELECT 2, 40, 9'
    database = tmp_path / "p.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE TABLE folk AS {sql}")
    sources: list[tuple[Path, Any, str | None]] = [
        (write_csv(tmp_path / "p.csv", " Person ID ,age (years),other", "1,30,9", "2,40,9"), "csv", None),
        (write_parquet(tmp_path / "p.parquet", sql), "parquet", None),
        (database, "duckdb", "folk"),
    ]
    for path, kind, inner in sources:
        snapshot = attach(tmp_path, (column("age", "integer"),), TableSource("people", path, kind, inner, NAMES))
        assert sorted(read(snapshot.path, "SELECT id, age FROM people")) == [(1, 30), (2, 40)], kind


def test_a_declaration_without_source_names_keeps_its_version(tmp_path: Path) -> None:
    """Naming the source's own name is another declared shape; leaving it out is the one of before."""
    path = write_csv(tmp_path / "p.csv", "id", "1", "2")
    plain = attach(tmp_path, (), TableSource("people", path, "csv"))
    named = attach(tmp_path, (), TableSource("people", path, "csv", None, (("id", "id"),)))
    assert plain.data_version != named.data_version
    written = attach(tmp_path, (), TableSource("people", path, "csv", decimal=","))
    assert len({plain.data_version, named.data_version, written.data_version}) == 3


@pytest.mark.parametrize(
    ("present", "declared", "source_name", "expected"),
    [
        (["id", "age"], "age", None, [1]),
        (["ID", " Age "], "age", None, [1]),
        (["ID", "id"], "id", None, [0, 1]),
        (["ID", "id"], "person", "ID", [0]),
        (["ID", "id"], "person", "Id", [0, 1]),
        (["x", "x"], "y", "x", [0, 1]),
        (["x"], "x", "y", []),
        (["größe"], "g", "Größe", [0]),
    ],
)
def test_which_column_is_meant(present: list[str], declared: str, source_name: str | None, expected: list[int]) -> None:
    """An exact source_name chooses among names that differ in case; a plain name must be the only one."""
    assert matching_columns(present, declared, source_name) == expected
    fault = None if len(expected) == 1 else "duplicate_columns" if expected else "column_missing"
    assert column_fault(expected) == fault


def test_all_name_findings_come_together(tmp_path: Path) -> None:
    """A missing name, an ambiguous one and one that is read twice are three findings of one attempt."""
    path = write_csv(tmp_path / "p.csv", "id,AGE,Age,City", "1,2,3,x")
    names = (("town", "city"), ("place", "CITY"), ("job", "Beruf"))
    columns = (column("age", "integer"), column("town", "text"), column("place", "text"), column("job", "text"))
    assert refusals(tmp_path, columns, TableSource("people", path, "csv", None, names)) == [
        ("duplicate_columns", "age"),
        ("column_repeated", "place"),
        ("column_missing", "job"),
    ]


def test_names_that_differ_only_in_case_can_be_chosen(tmp_path: Path) -> None:
    """With exact source names both columns are read, each under its own; other repeats in the file do not matter."""
    path = write_csv(tmp_path / "p.csv", "id,AGE,Age,x,x", "1,2,3,4,5")
    columns = (column("age", "integer"), column("age_now", "integer"))
    names = (("age", "Age"), ("age_now", "AGE"))
    snapshot = attach(tmp_path, columns, TableSource("people", path, "csv", None, names))
    assert read(snapshot.path, "SELECT age, age_now FROM people") == [(3, 2)]


def test_source_columns_tell_names_and_faults(tmp_path: Path) -> None:
    """The header of each source, or the one thing that is wrong with it; nothing of the rows."""
    database = tmp_path / "p.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE folk AS SELECT 1 AS \"Person ID\", 'CANARY' AS name")
    parquet = write_parquet(tmp_path / "b.parquet", "SELECT 'CANARY' AS \"ID\", {'street': 1} AS address")
    found = source_columns(
        [
            TableSource("a", write_csv(tmp_path / "a.csv", "x;y z", "CANARY;2"), "csv"),
            TableSource("b", parquet, "parquet"),
            TableSource("c", database, "duckdb", "folk"),
            TableSource("d", database, "duckdb", "nobody"),
            TableSource("e", tmp_path / "none.csv", "csv"),
        ]
    )
    assert found == [
        ("x", "y z"),
        ("ID", "address"),
        ("Person ID", "name"),
        SnapshotFinding("source_table_missing", "d"),
        SnapshotFinding("file_missing", "e"),
    ]
    assert "CANARY" not in repr(found)


# Decimal commas and orders of days


@pytest.mark.sparse(8)
@pytest.mark.parametrize(
    ("decimal", "text", "expected"),
    [
        (",", "1250,5", 1250.5),
        (",", "-0,25", -0.25),
        (",", "7", 7.0),
        (",", "1,5e3", 1500.0),
        (",", "", None),
        (",", "1.250,5", "refused"),
        (",", "1250.5", "refused"),
        (",", "1,250,000", "refused"),
        (".", "1250,5", "refused"),
        (".", "1250.5", 1250.5),
    ],
)
def test_numbers_are_read_in_the_declared_way_only(
    tmp_path: Path, decimal: Any, text: str, expected: float | str | None
) -> None:
    """A point beside a decimal comma may separate thousands, so it is refused, not guessed."""
    path = write_csv(tmp_path / "p.csv", "id;x", f'1;"{text}"')
    source = TableSource("people", path, "csv", decimal=decimal)
    columns = (column("x", "number"),)
    if expected == "refused":
        assert refusals(tmp_path, columns, source) == [("value_not_of_type", "x")]
    else:
        assert read(attach(tmp_path, columns, source).path, "SELECT x FROM people") == [(expected,)]


@pytest.mark.sparse(8)
@pytest.mark.parametrize(
    ("dates", "kind", "text", "expected"),
    [
        ("DD.MM.YYYY", "date", "3.4.2024", datetime.date(2024, 4, 3)),
        ("DD/MM/YYYY", "date", "03/04/2024", datetime.date(2024, 4, 3)),
        ("MM/DD/YYYY", "date", "03/04/2024", datetime.date(2024, 3, 4)),
        ("DD-MM-YYYY", "date", "03-04-2024", datetime.date(2024, 4, 3)),
        ("DD.MM.YYYY", "timestamp", "03.04.2024 13:05", datetime.datetime(2024, 4, 3, 13, 5)),
        ("YYYY-MM-DD", "date", "2024-04-03", datetime.date(2024, 4, 3)),
        ("DD.MM.YYYY", "date", "", None),
        ("DD.MM.YYYY", "date", "2024-04-03", "refused"),
        ("DD.MM.YYYY", "date", "03/04/2024", "refused"),
        ("DD.MM.YYYY", "date", "31.02.2024", "refused"),
        ("DD.MM.YYYY", "date", "03.04.24", "refused"),
        ("MM/DD/YYYY", "date", "13/04/2024", "refused"),
        ("YYYY-MM-DD", "date", "03.04.2024", "refused"),
    ],
)
def test_days_are_read_in_the_declared_order_only(
    tmp_path: Path, dates: Any, kind: str, text: str, expected: object
) -> None:
    """A day that does not stand in the declared order refuses the column; no order is tried after another."""
    path = write_csv(tmp_path / "p.csv", "id,day", f"1,{text}")
    source = TableSource("people", path, "csv", dates=dates)
    columns = (column("day", kind),)
    if expected == "refused":
        assert refusals(tmp_path, columns, source) == [("value_not_of_type", "day")]
    else:
        assert read(attach(tmp_path, columns, source).path, "SELECT day FROM people") == [(expected,)]


@pytest.mark.slow
@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    ("values", "kind", "decimal", "dates"),
    [
        (["1,5", "2,25"], ColumnType.NUMBER, ",", "YYYY-MM-DD"),
        (["1,250", "2,500"], ColumnType.TEXT, ".", "YYYY-MM-DD"),  # thousands, or thousandths?
        (["0,250", "0,500"], ColumnType.NUMBER, ",", "YYYY-MM-DD"),
        (["1.250,5", "2,5"], ColumnType.NUMBER, ",", "YYYY-MM-DD"),  # the point parts thousands
        (["1.250,5", "2.5"], ColumnType.TEXT, ".", "YYYY-MM-DD"),  # and here it does both
        (["1.5", "2.25"], ColumnType.NUMBER, ".", "YYYY-MM-DD"),
        (["1.250", "900"], ColumnType.TEXT, ".", "YYYY-MM-DD"),  # semicolons: thousands, or thousandths?
        (["1.250", "0.500"], ColumnType.NUMBER, ".", "YYYY-MM-DD"),
        (["1250.125", "2.500"], ColumnType.NUMBER, ".", "YYYY-MM-DD"),
        (["31.12.2024", "01.02.2024"], ColumnType.DATE, ".", "DD.MM.YYYY"),
        (["31/12/2024", "01/02/2024"], ColumnType.DATE, ".", "DD/MM/YYYY"),
        (["12/31/2024", "01/02/2024"], ColumnType.DATE, ".", "MM/DD/YYYY"),
        (["01/02/2024", "03/04/2024"], ColumnType.TEXT, ".", "YYYY-MM-DD"),  # which is the month?
        (["31.12.2024 13:00", "01.02.2024 09:30"], ColumnType.TIMESTAMP, ".", "DD.MM.YYYY"),
        (["2024-12-31", "2024-02-01"], ColumnType.DATE, ".", "YYYY-MM-DD"),
        (["2024-12-31", "unknown"], ColumnType.TEXT, ".", "YYYY-MM-DD"),
        (["12", "NA"], ColumnType.INTEGER, ".", "YYYY-MM-DD"),  # a word for missing values
        (["12", "absent"], ColumnType.TEXT, ".", "YYYY-MM-DD"),  # a word of the file's own
    ],
)
def test_what_is_proposed_can_be_attached(
    tmp_path: Path, values: list[str], kind: ColumnType, decimal: str, dates: str
) -> None:
    """A convention is proposed where it is certain; a doubt is text. The proposal then reads every value."""
    lines = [f"{place};{value}" for place, value in enumerate(values)]
    path = write_csv(tmp_path / "p.csv", "id;x", *lines)
    (table,) = inspect_source(path).tables
    assert (table.columns[1].type, table.decimal, table.dates) == (kind, decimal, dates)
    source = TableSource(
        "people", path, "csv", decimal=table.decimal, dates=table.dates, thousands=table.thousands, nulls=table.nulls
    )
    assert attach(tmp_path, (column("x", kind.value),), source).report.units == len(values)


def test_points_between_commas_are_decimal(tmp_path: Path) -> None:
    """Where commas part the columns nobody writes decimal commas: a point does not part thousands."""
    (table,) = inspect_source(write_csv(tmp_path / "p.csv", "id,x", "1,1.250", "2,2.500")).tables
    assert (table.columns[1].type, table.decimal) == (ColumnType.NUMBER, ".")


def test_a_late_value_is_seen(tmp_path: Path) -> None:
    """A value behind the part that the engine guesses from takes the guess back."""
    lines = [f"{place},{place}" for place in range(60_000)] + ["60000,none"]
    (table,) = inspect_source(write_csv(tmp_path / "p.csv", "id,x", *lines)).tables
    assert [item.type for item in table.columns] == [ColumnType.INTEGER, ColumnType.TEXT]
    assert table.rows == 60_001
