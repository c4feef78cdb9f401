"""How data is written: encodings, marks, words, zones, and tables in several parts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from engines.inspect import inspect_source
from engines.snapshot import build_snapshot
from engines.snapshot_findings import SnapshotRefused
from engines.table_source import TableSource
from privacy.policy import Column, ColumnType
from tests.engines.datasets import DRAW_KEY, column, dataset, people

COLUMNS = (column("id", "integer"),)


def attach(tmp_path: Path, columns: tuple[Column, ...], source: TableSource) -> Any:
    """The stored rows of a table `people` without its unit columns, in order of id."""
    declared = dataset(people(*columns))
    snapshot = build_snapshot(declared, [source], directory=tmp_path / "snapshots", draw_key=DRAW_KEY)
    with duckdb.connect(str(snapshot.path), read_only=True) as connection:
        names = ", ".join(f'"{item.name}"' for item in (*COLUMNS, *columns))
        return snapshot, connection.execute(f"SELECT {names} FROM people ORDER BY id").fetchall()


def codes(tmp_path: Path, columns: tuple[Column, ...], source: TableSource) -> list[str]:
    """The codes of the findings of data that must be refused."""
    with pytest.raises(SnapshotRefused) as refused:
        attach(tmp_path, columns, source)
    return [finding.code for finding in refused.value.findings]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "windows-1252"])
def test_letters_are_read_in_the_declared_encoding(tmp_path: Path, encoding: str) -> None:
    """A file in another encoding is refused with its name, and read when the encoding is declared."""
    path = tmp_path / "people.csv"
    path.write_text("id,city\n1,Köln\n2,Orléans\n", encoding=encoding)
    columns = (column("city", "text"),)
    assert codes(tmp_path, columns, TableSource("people", path, "csv")) == ["not_text"]
    _, rows = attach(tmp_path, columns, TableSource("people", path, "csv", encoding=encoding))
    assert rows == [(1, "Köln"), (2, "Orléans")]
    inspected = inspect_source(path, source_format="csv").tables[0]
    assert inspected.encoding == ("utf-16" if encoding == "utf-16" else "windows-1252")
    assert [item.name for item in inspected.columns] == ["id", "city"]


def test_a_wrong_encoding_is_found(tmp_path: Path) -> None:
    """Bytes that the declared encoding does not have are a finding, also beyond the first ones."""
    path = tmp_path / "people.csv"
    path.write_bytes(b"id,city\n" + b"".join(b"%d,town\n" % number for number in range(20_000)) + b"99999,\x81\n")
    assert codes(tmp_path, (column("city", "text"),), TableSource("people", path, "csv", encoding="windows-1252")) == [
        "not_encoded"
    ]


@pytest.mark.slow
@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    ("mark", "decimal", "texts", "values"),
    [
        (",", ".", ["1,250.5", "1250.5", "-12,345,678", "7"], [1250.5, 1250.5, -12345678.0, 7.0]),
        (".", ",", ["1.250,5", "1250,5", "-12.345.678", "7"], [1250.5, 1250.5, -12345678.0, 7.0]),
        ("'", ".", ["1'250.5", "1\u2019250.5", "0", "7"], [1250.5, 1250.5, 0.0, 7.0]),
        (" ", ",", ["1 250,5", "1\u00a0250,5", "1\u202f250", "7"], [1250.5, 1250.5, 1250.0, 7.0]),
    ],
)
def test_thousands_are_read_where_they_are_declared(
    tmp_path: Path, mark: Any, decimal: Any, texts: list[str], values: list[float]
) -> None:
    """Groups of three digits are one number with the declared mark, and refused without it or in other groups."""
    path = tmp_path / "people.csv"
    path.write_text("id;x\n" + "".join(f"{i};{text}\n" for i, text in enumerate(texts)))
    source = TableSource("people", path, "csv", decimal=decimal, thousands=mark)
    assert [row[1] for row in attach(tmp_path, (column("x", "number"),), source)[1]] == values
    assert codes(tmp_path, (column("x", "number"),), TableSource("people", path, "csv", decimal=decimal)) == [
        "value_not_of_type"
    ]
    for wrong in (f"1{mark}25", f"12{mark}50{mark}000", f"x{mark}250"):
        path.write_text(f"id;x\n1;{wrong}\n")
        assert codes(tmp_path, (column("x", "number"),), source) == ["value_not_of_type"], wrong


@pytest.mark.slow
def test_marks_of_missing_values_and_words_of_truth(tmp_path: Path) -> None:
    """Declared marks are NULL in every column; declared words are truth values, and the usual ones are then none."""
    path = tmp_path / "people.csv"
    path.write_text("id,age,smoker\n1,NA,ja\n2,30,Nein\n3,-,NA\n")
    columns = (column("age", "integer"), column("smoker", "boolean"))
    source = TableSource("people", path, "csv", nulls=("NA", "-"), true=("ja",), false=("nein",))
    assert attach(tmp_path, columns, source)[1] == [(1, None, True), (2, 30, False), (3, None, None)]
    assert codes(tmp_path, columns, TableSource("people", path, "csv", nulls=("NA",))) == ["value_not_of_type"] * 2
    path.write_text("id,age,smoker\n1,2,true\n")
    assert codes(tmp_path, columns, source) == ["value_not_of_type"]


def test_written_offsets_ask_which_zone_is_meant(tmp_path: Path) -> None:
    """Text with an offset was read in UTC without a word. What ends in Z shows the clock of UTC already."""
    columns = (column("at", "timestamp"),)
    path = tmp_path / "p.csv"
    path.write_text("id,at\n1,2020-02-29 01:00:00+02:00\n2,2020-02-29T01:00:00Z\n")
    assert codes(tmp_path, columns, TableSource("people", path, "csv")) == ["zone_missing"]
    _, rows = attach(tmp_path, columns, TableSource("people", path, "csv", zone="UTC"))
    assert rows == [(1, datetime(2020, 2, 28, 23)), (2, datetime(2020, 2, 29, 1))]


def test_moments_with_a_zone_ask_which_zone_is_meant(tmp_path: Path) -> None:
    """A moment becomes the clock of the declared zone, summer time included; without one it is refused."""
    path = tmp_path / "people.parquet"
    duckdb.sql(
        "SELECT 1 AS id, TIMESTAMPTZ '2024-07-01 22:30:00+00' AS moment "
        "UNION ALL SELECT 2, TIMESTAMPTZ '2024-01-01 22:30:00+00' UNION ALL SELECT 3, 'infinity'::TIMESTAMPTZ"
    ).write_parquet(str(path))
    columns = (column("moment", "timestamp"),)
    assert codes(tmp_path, columns, TableSource("people", path, "parquet")) == ["zone_missing"]
    assert codes(tmp_path, columns, TableSource("people", path, "parquet", zone="Europe/Atlantis")) == ["zone_unknown"]
    berlin = TableSource("people", path, "parquet", zone="Europe/Berlin")
    assert codes(tmp_path, columns, berlin) == ["value_not_of_type"]
    duckdb.sql(f"SELECT * FROM '{path}' WHERE id < 3").write_parquet(str(path.with_name("two.parquet")))
    two = TableSource("people", path.with_name("two.parquet"), "parquet", zone="Europe/Berlin")
    assert [row[1] for row in attach(tmp_path, columns, two)[1]] == [
        datetime(2024, 7, 2, 0, 30),
        datetime(2024, 1, 1, 23, 30),
    ]
    assert datetime(2024, 7, 1, 22, 30, tzinfo=UTC)


@pytest.mark.slow
def test_parts_are_one_table_whatever_their_names_and_order(tmp_path: Path) -> None:
    """Several files are one table; names and order of parts do not change the version, contents do."""
    paths = []
    for number, rows in enumerate(("1,a\n", "2,b\n3,c\n")):
        path = tmp_path / f"part-{number}.csv"
        path.write_text("id,city\n" + rows)
        paths.append(path)
    columns = (column("city", "text"),)
    first, rows = attach(tmp_path, columns, TableSource("people", tmp_path, "csv", parts=tuple(paths)))
    assert rows == [(1, "a"), (2, "b"), (3, "c")]
    moved = paths[0].rename(tmp_path / "z.csv")
    again, _ = attach(tmp_path, columns, TableSource("people", tmp_path, "csv", parts=(moved, paths[1])))
    assert again.data_version == first.data_version
    moved.write_text("id,city\n1,d\n")
    changed, _ = attach(tmp_path, columns, TableSource("people", tmp_path, "csv", parts=(moved, paths[1])))
    assert changed.data_version != first.data_version
    moved.write_text("id,town\n1,d\n")
    assert codes(tmp_path, columns, TableSource("people", tmp_path, "csv", parts=(moved, paths[1]))) == ["parts_differ"]


def test_versions_of_data_without_these_options_stay(tmp_path: Path) -> None:
    """What is not declared is not part of the version: data that is attached keeps its own."""
    assert TableSource("people", tmp_path / "a.csv", "csv").written() == {}
    assert TableSource("people", tmp_path / "a.csv", "csv", decimal=",", nulls=("NA",)).written() == {
        "decimal": ",",
        "nulls": ["NA"],
    }


def test_a_database_shows_its_keys_and_references(tmp_path: Path) -> None:
    """PRIMARY KEY, FOREIGN KEY and UNIQUE of one column are read; longer ones are not."""
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE patients (id INTEGER PRIMARY KEY, age INTEGER, mail VARCHAR UNIQUE)")
        connection.execute("CREATE TABLE visits (no INTEGER PRIMARY KEY, who INTEGER REFERENCES patients (id))")
        connection.execute("CREATE TABLE pairs (a INTEGER, b INTEGER, PRIMARY KEY (a, b), UNIQUE (b, a))")
    tables = {item.name: item for item in inspect_source(path, source_format="duckdb").tables}
    assert (tables["patients"].key, tables["patients"].unique) == ("id", ("mail",))
    assert tables["pairs"].unique == ()
    assert (tables["visits"].key, tables["visits"].references) == ("no", (("who", "patients", "id"),))
    assert (tables["pairs"].key, tables["pairs"].references) == (None, ())
    assert tables["patients"].columns[0].type is ColumnType.INTEGER
