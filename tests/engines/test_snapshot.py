"""Snapshots: what is stored, what is verified, what is refused, and that nothing but counts is ever said."""

from __future__ import annotations

import datetime
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from engines.inspect import inspect_source
from engines.snapshot import build_snapshot, public_values
from engines.snapshot_findings import SnapshotRefused
from engines.stored import Snapshot, open_snapshot
from engines.table_source import TableSource
from privacy.policy import ColumnType, Dataset, Table
from tests.engines.datasets import (
    DRAW_KEY,
    bills,
    column,
    contribution,
    dataset,
    people,
    read,
    visits,
    write_csv,
    write_parquet,
)


def build(folder: Path, declared: Dataset, *sources: TableSource, key: bytes = DRAW_KEY) -> Snapshot:
    return build_snapshot(declared, sources, directory=folder / "snapshots", draw_key=key)


def refused(
    folder: Path, declared: Dataset, *sources: TableSource
) -> list[tuple[str, str | None, str | None, int | None]]:
    with pytest.raises(SnapshotRefused) as caught:
        build(folder, declared, *sources)
    assert not list((folder / "snapshots").glob("*.duckdb"))
    return [(found.code, found.table, found.column, found.count) for found in caught.value.findings]


def test_layout_of_protected_and_public_tables(tmp_path: Path) -> None:
    """Every declared table has its declared names and types; protected ones have dense ids and draws."""
    city = Table(name="City", columns=(column("Name", "text"), column("size", "integer")), protected=False, key="Name")
    snapshot = build(
        tmp_path,
        dataset(people(column("Kind", "text", keys=("b", "a"))), visits(), bills(), city),
        TableSource("people", write_csv(tmp_path / "p.csv", "ID,kind,extra", "7,a,1", "9,b,2", "8,,3"), "csv"),
        TableSource(
            "visits",
            write_parquet(
                tmp_path / "v.parquet", "SELECT * FROM (VALUES (1,7,'x'),(2,7,'y'),(3,9,'z')) t(visit,person,city)"
            ),
            "parquet",
        ),
        TableSource("bills", write_csv(tmp_path / "b.csv", "visit;amount", "1;1.5", "1;2.5", "3;-1e3"), "csv"),
        TableSource("city", write_csv(tmp_path / "c.csv", "name,size", "x,10", "y,20"), "csv"),
    )
    types = read(
        snapshot.path,
        "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY 1, column_index",
    )
    assert types == [
        ("City", "Name", "VARCHAR"),
        ("City", "size", "BIGINT"),
        ("bills", "visit", "BIGINT"),
        ("bills", "amount", "DOUBLE"),
        ("bills", "unit$id", "INTEGER"),
        ("bills", "unit$draw", "UBIGINT"),
        ("bills", "unit$rows", "BIGINT"),
        ("bills", "unit$first", "BOOLEAN"),
        ("bills$sizes", "unit$rows", "BIGINT"),
        ("bills$sizes", "unit$units", "BIGINT"),
        ("bills$units", "unit$rows", "BIGINT"),
        ("people", "id", "BIGINT"),
        ("people", "Kind", "ENUM('b', 'a')"),
        ("people", "unit$id", "INTEGER"),
        ("people", "unit$draw", "UBIGINT"),
        ("visits", "visit", "BIGINT"),
        ("visits", "person", "BIGINT"),
        ("visits", "city", "VARCHAR"),
        ("visits", "unit$id", "INTEGER"),
        ("visits", "unit$draw", "UBIGINT"),
        ("visits", "unit$rows", "BIGINT"),
        ("visits", "unit$first", "BOOLEAN"),
        ("visits$sizes", "unit$rows", "BIGINT"),
        ("visits$sizes", "unit$units", "BIGINT"),
        ("visits$units", "unit$rows", "BIGINT"),
    ]
    assert read(snapshot.path, 'SELECT "unit$id" FROM people ORDER BY "unit$draw"') == [(0,), (1,), (2,)]
    assert read(
        snapshot.path,
        'SELECT count(*) FROM bills b JOIN visits v USING (visit) JOIN people p ON v.person = p.id WHERE b."unit$id" = '
        'p."unit$id" AND v."unit$draw" = p."unit$draw" AND b."unit$draw" = p."unit$draw"',
    ) == [(3,)]
    assert read(snapshot.path, "SELECT amount FROM bills ORDER BY 1") == [(-1000.0,), (1.5,), (2.5,)]
    assert snapshot.report.units == 3
    assert snapshot.data_version == snapshot.path.stem
    assert stat.S_IMODE(snapshot.path.stat().st_mode) == 0o400
    assert [snapshot.path.name, f"{snapshot.data_version}.json"] == sorted(os.listdir(snapshot.path.parent))


@pytest.mark.slow
def test_same_input_is_the_same_version(tmp_path: Path) -> None:
    """The version is a function of contents, shape and draw key; an existing file is used and never written again."""
    source = TableSource("people", write_csv(tmp_path / "p.csv", "id,x", "1,2", "2,3"), "csv")
    declared = dataset(people(column("x", "integer")))
    first = build(tmp_path, declared, source)
    written = (first.path.stat().st_ino, first.path.read_bytes())
    os.utime(first.path, (0, 0))
    again = build(tmp_path, declared, source)
    assert first == again
    assert written == (again.path.stat().st_ino, again.path.read_bytes())
    assert again.path.stat().st_mtime > 0, "what removes old copies must see that this one is in use again"
    assert first == open_snapshot(first.path)
    copy = TableSource("people", write_csv(tmp_path / "other.csv", "id,x", "1,2", "2,3"), "csv")
    assert first.data_version == build(tmp_path, declared, copy).data_version
    versions = {
        first.data_version,
        build(tmp_path, dataset(people(column("x", "number"))), source).data_version,
        build(tmp_path, dataset(people(column("x", "integer"), key=None)), source).data_version,
        build(tmp_path, declared, source, key=bytes(32)).data_version,
        build(
            tmp_path, declared, TableSource("people", write_csv(tmp_path / "q.csv", "id,x", "1,2"), "csv")
        ).data_version,
    }
    assert len(versions) == 5
    described = replace(declared, description="other words", policy_version=9)
    assert first.data_version == build(tmp_path, described, source).data_version


@pytest.mark.slow
def test_the_draw_is_a_function_of_the_unit_alone(tmp_path: Path) -> None:
    """Removing units, adding rows or changing other columns never changes a unit's draw; another key changes all."""
    declared = dataset(people())
    sql = 'SELECT id, "unit$draw" FROM people'
    full = build(
        tmp_path, declared, TableSource("people", write_csv(tmp_path / "a.csv", "id", *map(str, range(200))), "csv")
    )
    fewer = build(
        tmp_path,
        declared,
        TableSource("people", write_csv(tmp_path / "b.csv", "id", *map(str, range(199, 0, -3))), "csv"),
    )
    draws, remaining = dict(read(full.path, sql)), dict(read(fewer.path, sql))
    assert remaining == {unit: draws[unit] for unit in remaining}
    assert len(set(draws.values())) == 200
    other = build(tmp_path, declared, TableSource("people", tmp_path / "a.csv", "csv"), key=bytes([1] * 32))
    assert not set(draws.values()) & set(dict(read(other.path, sql)).values())
    order = [unit for (unit,) in read(full.path, 'SELECT id FROM people ORDER BY "unit$id"')]
    assert sorted(draws, key=lambda unit: draws[unit]) == order != sorted(order)


def test_draw_is_sha256_of_key_and_unit(tmp_path: Path) -> None:
    """The draw is the documented function, so another engine can compute it."""
    import hashlib

    snapshot = build(
        tmp_path, dataset(people()), TableSource("people", write_csv(tmp_path / "a.csv", "id", "-41"), "csv")
    )
    digest = hashlib.sha256(DRAW_KEY.hex().encode() + b":-41").hexdigest()
    assert [(0, int(digest[:16], 16))] == read(snapshot.path, 'SELECT "unit$id", "unit$draw" FROM people')


def test_rows_without_a_unit_are_left_out_and_counted(tmp_path: Path) -> None:
    """Rows whose unit is NULL, unknown, or behind a broken path are not stored."""
    snapshot = build(
        tmp_path,
        dataset(people(), visits(), bills()),
        TableSource("people", write_csv(tmp_path / "p.csv", "id", "1", "2"), "csv"),
        TableSource("visits", write_csv(tmp_path / "v.csv", "visit,person,city", "10,1,a", "11,,b", "12,99,c"), "csv"),
        TableSource(
            "bills", write_csv(tmp_path / "b.csv", "visit,amount", "10,1", "11,2", "12,3", "13,4", ",5"), "csv"
        ),
    )
    reports = {
        table.name: (table.rows_read, table.rows_stored, table.rows_without_unit) for table in snapshot.report.tables
    }
    assert reports == {"people": (2, 2, 0), "visits": (3, 1, 2), "bills": (5, 1, 4)}
    assert read(snapshot.path, "SELECT visit, amount FROM bills") == [(10, 1.0)]


def test_units_of_a_table_with_many_rows_each(tmp_path: Path) -> None:
    """A single table of events may hold its units: equal keys share one id."""
    declared = dataset(people(column("x", "integer"), rows=9, key=None))
    snapshot = build(
        tmp_path, declared, TableSource("people", write_csv(tmp_path / "p.csv", "id,x", "5,1", "6,2", "5,3"), "csv")
    )
    assert snapshot.report.units == 2
    assert read(snapshot.path, 'SELECT count(*), count(DISTINCT "unit$id") FROM people WHERE id = 5') == [(2, 1)]


def test_a05_special_numbers_become_null_and_are_counted(tmp_path: Path) -> None:
    """NaN and infinities of NUMBER columns, and NaN holes in whole numbers, are NULL; nothing else is touched."""
    sql = (
        "SELECT * FROM (VALUES (1,'nan'::DOUBLE,1.0::DOUBLE),(2,'inf'::DOUBLE,'nan'::DOUBLE),"
        "(3,'-inf'::DOUBLE,3.0),(4,NULL,NULL),(5,-0.0,9007199254740992.0)) t(id,x,n)"
    )
    declared = dataset(people(column("x", "number"), column("n", "integer")))
    snapshot = build(tmp_path, declared, TableSource("people", write_parquet(tmp_path / "p.parquet", sql), "parquet"))
    assert snapshot.report.tables[0].non_finite == (("x", 3), ("n", 1))
    assert read(snapshot.path, "SELECT id, x, n FROM people ORDER BY id") == [
        (1, None, 1),
        (2, None, None),
        (3, None, 3),
        (4, None, None),
        (5, 0.0, 2**53),
    ]
    text = build(
        tmp_path,
        dataset(people(column("x", "number"))),
        TableSource(
            "people", write_csv(tmp_path / "p.csv", "id,x", "1,NaN", "2,-Infinity", "3,1e999", "4, 2.5 "), "csv"
        ),
    )
    assert text.report.tables[0].non_finite == (("x", 3),)
    assert read(text.path, "SELECT id, x FROM people WHERE x IS NOT NULL") == [(4, 2.5)]


TEXT_VALUES = [
    ("integer", "9223372036854775807", 2**63 - 1),
    ("integer", "-9223372036854775808", -(2**63)),
    ("integer", " +12.000 ", 12),
    ("integer", "", None),
    ("number", "1.25E2", 125.0),
    ("number", ".5", 0.5),
    ("text", " a b ", " a b "),
    ("text", '"x,""y"""', 'x,"y"'),
    ("text", '""', None),
    ("boolean", "Yes", True),
    ("boolean", "0", False),
    ("date", "0001-01-01", datetime.date.min),
    ("date", "9999-12-31", datetime.date.max),
    ("timestamp", "2020-02-29", datetime.datetime(2020, 2, 29)),
    ("timestamp", "2020-02-29T23:59:59.5", datetime.datetime(2020, 2, 29, 23, 59, 59, 500_000)),
    ("timestamp", "2020-02-29T01:00:00Z", datetime.datetime(2020, 2, 29, 1)),
]


def test_text_becomes_declared_types(tmp_path: Path) -> None:
    """CSV cells convert by the written rules: ISO dates, UTC, spaces around numbers, empty is NULL."""
    columns = [column(f"x{index}", kind) for index, (kind, _, _) in enumerate(TEXT_VALUES)]
    header, row = ",".join(item.name for item in columns), ",".join(cell for _, cell, _ in TEXT_VALUES)
    path = write_csv(tmp_path / "p.csv", f"id,{header}", f"1,{row}")
    snapshot = build(tmp_path, dataset(people(*columns)), TableSource("people", path, "csv"))
    assert read(snapshot.path, f"SELECT {header} FROM people") == [tuple(value for _, _, value in TEXT_VALUES)]


ODD_VALUES = [
    ("integer", "9223372036854775808"),
    ("integer", "1.5"),
    ("integer", "1e3"),
    ("integer", "1_000"),
    ("integer", "0x10"),
    ("integer", "CANARY"),
    ("number", "1_000"),
    ("number", "1,5"),
    ("number", "CANARY"),
    ("boolean", "maybe"),
    ("date", "10000-01-01"),
    ("date", "0000-12-31"),
    ("date", "0001-01-01 (BC)"),
    ("date", "2021-02-29"),
    ("date", "infinity"),
    ("date", "01/02/2020"),
    ("timestamp", "2020-01-01 25:00:00"),
    ("timestamp", "epoch"),
    ("timestamp", "0001-01-01 00:00:00+14"),
]


def test_a11_values_that_do_not_convert_are_counted_never_shown(tmp_path: Path) -> None:
    """One odd value refuses the column with a count; the column never silently becomes another type."""
    columns = [column(f"x{index}", kind) for index, (kind, _) in enumerate(ODD_VALUES)]
    row = ",".join(f'"{cell}"' for _, cell in ODD_VALUES)
    lines = (",".join(["id", *(item.name for item in columns)]), f"1,{row}", f"2,{row}", "3" + "," * len(columns))
    with pytest.raises(SnapshotRefused) as caught:
        build(tmp_path, dataset(people(*columns)), TableSource("people", write_csv(tmp_path / "p.csv", *lines), "csv"))
    assert [(found.code, found.column, found.count) for found in caught.value.findings] == [
        ("value_not_of_type", item.name, 2) for item in columns
    ]
    shown = repr(caught.value) + repr(caught.value.args) + repr(caught.value.findings)
    assert not [cell for _, cell in ODD_VALUES if cell in shown]


TYPED_VALUES = [
    ("integer", "1.5::DOUBLE", False),
    ("integer", "2.00::DECIMAL(9,2)", True),
    ("integer", "2.01::DECIMAL(9,2)", False),
    ("integer", "1e19::DOUBLE", False),
    ("integer", "18446744073709551615::UBIGINT", False),
    ("integer", "170141183460469231731687303715884105727::HUGEINT", False),
    ("number", "170141183460469231731687303715884105727::HUGEINT", True),
    ("date", "'infinity'::DATE", False),
    ("date", "'10000-01-01'::DATE", False),
    ("date", "'2020-01-01 00:00:00'::TIMESTAMP", True),
    ("date", "'2020-01-01 00:00:01'::TIMESTAMP", False),
    ("timestamp", "'-infinity'::TIMESTAMP", False),
    ("timestamp", "'2020-01-01 00:00:00.123456789'::TIMESTAMP_NS", True),
    ("timestamp", "'2020-01-01'::DATE", True),
    ("boolean", "1::INTEGER", True),
    ("boolean", "3::INTEGER", False),
    ("text", "5::INTEGER", True),
]


def test_typed_sources_convert_exactly_or_not_at_all(tmp_path: Path) -> None:
    """Whole doubles and decimals may be integers; nothing is rounded, wrapped or clipped on the way."""
    columns = [column(f"x{index}", kind) for index, (kind, _, _) in enumerate(TYPED_VALUES)]
    cells = [f"{sql} AS {item.name}" for item, (_, sql, _) in zip(columns, TYPED_VALUES, strict=True)]
    database = tmp_path / "source.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT 1 AS id, {', '.join(cells)}")
    source = TableSource("people", database, "duckdb")
    assert refused(tmp_path, dataset(people(*columns)), source) == [
        ("value_not_of_type", "people", item.name, 1)
        for item, (_, _, fits) in zip(columns, TYPED_VALUES, strict=True)
        if not fits
    ]
    good = [item for item, (_, _, fits) in zip(columns, TYPED_VALUES, strict=True) if fits]
    assert build(tmp_path, dataset(people(*good)), source).report.tables[0].rows_stored == 1


def test_timestamps_with_a_zone_become_the_clock_of_the_declared_one(tmp_path: Path) -> None:
    """A Parquet timestamp with a zone is stored as the time of the zone that the source declares."""
    sql = "SELECT 1 AS id, '2020-06-01 00:30:00+05:30'::TIMESTAMPTZ AS x"
    declared = dataset(people(column("x", "timestamp")))
    source = TableSource("people", write_parquet(tmp_path / "p.parquet", sql), "parquet", zone="UTC")
    snapshot = build(tmp_path, declared, source)
    assert [(datetime.datetime(2020, 5, 31, 19),)] == read(snapshot.path, "SELECT x FROM people")


@pytest.mark.slow
def test_declared_facts_are_verified(tmp_path: Path) -> None:
    """Keys that repeat or are NULL, values outside the declared keys: refused with counts."""
    csv = write_csv(tmp_path / "p.csv", "id,kind", "1,a", "1,b", "2,CANARY", "3,")
    kind = column("kind", "text", keys=("a", "b"), nullable=False)
    assert refused(tmp_path, dataset(people(kind)), TableSource("people", csv, "csv")) == [
        ("null_in_column", "people", "kind", 1),
        ("value_outside_keys", "people", "kind", 1),
    ]
    assert refused(tmp_path, dataset(people()), TableSource("people", csv, "csv")) == [
        ("key_not_unique", "people", "id", 1)
    ]
    empty = write_csv(tmp_path / "e.csv", "id,kind", "1,a", ",b", ",c")
    assert refused(tmp_path, dataset(people()), TableSource("people", empty, "csv")) == [
        ("key_null", "people", "id", 2)
    ]
    assert refused(tmp_path, dataset(people(rows=3, key=None)), TableSource("people", empty, "csv")) == [
        ("unit_key_null", "people", "id", 2)
    ]
    # Without a key that names the unit, a bound of one row is a bound like any other.
    assert build(tmp_path, dataset(people(key=None)), TableSource("people", csv, "csv")).path.exists()


def test_a_reference_into_repeated_keys_is_refused(tmp_path: Path) -> None:
    """A path through a key that repeats would multiply rows."""
    sources = (
        TableSource("people", write_csv(tmp_path / "p.csv", "id", "1", "2"), "csv"),
        TableSource("visits", write_csv(tmp_path / "v.csv", "visit,person,city", "10,1,a", "10,2,b"), "csv"),
        TableSource("bills", write_csv(tmp_path / "b.csv", "visit,amount", "10,1"), "csv"),
    )
    loose = replace(visits(), key=None)
    assert refused(tmp_path, dataset(people(), loose, bills()), *sources) == [("key_not_unique", "visits", "visit", 1)]


def test_declaration_faults_are_found_before_files_are_opened(tmp_path: Path) -> None:
    """All faults of the declaration come together."""
    odd = replace(
        visits(),
        columns=(*visits().columns, column("unit$id", "integer")),
        references=(*visits().references, replace(visits().references[0], key="nothing")),
        unit_column="city",
    )
    found = refused(tmp_path, dataset(people(), odd), TableSource("other", tmp_path / "none", "csv"))
    assert {
        ("source_unknown", "other", None, None),
        ("source_missing", "people", None, None),
        ("source_missing", "visits", None, None),
        ("reserved_name", "visits", "unit$id", None),
        ("reference_unknown", "visits", "person", None),
        ("unit_type", "visits", "city", None),
    } == set(found)
    lost = Table(name="lost", columns=(column("a", "integer"),), protected=True, contribution=contribution())
    assert [item for item in refused(tmp_path, dataset(people(), lost)) if item[0] == "unit_unknown"] == [
        ("unit_unknown", "lost", None, None)
    ]


@pytest.mark.slow
def test_files_that_are_not_what_they_claim(tmp_path: Path) -> None:
    """Every odd file is one clear finding without a value."""
    declared = dataset(people())
    png = tmp_path / "picture.csv"
    png.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    latin = tmp_path / "latin.csv"
    latin.write_bytes("id,name\n1,Zoë and more words after it\n".encode("latin-1"))
    whole = write_parquet(tmp_path / "whole.parquet", "SELECT range AS id FROM range(10000)")
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-200])
    rotten = tmp_path / "rotten.parquet"
    rotten.write_bytes(whole.read_bytes()[:4] + b"\xff" * 500 + whole.read_bytes()[-8:])
    fake = tmp_path / "fake.duckdb"
    fake.write_bytes(b"\0" * 8 + b"DUCK" + b"\xff" * 9000)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "empty.csv").write_bytes(b"")
    cases = {
        ("csv", png): "not_csv",
        ("csv", latin): "not_text",
        ("csv", whole): "not_csv",
        ("csv", tmp_path / "missing.csv"): "file_missing",
        ("csv", tmp_path / "folder.csv"): "file_is_directory",
        ("csv", tmp_path / "empty.csv"): "file_empty",
        ("csv", write_csv(tmp_path / "header.csv", "id")): "no_rows",
        ("csv", write_csv(tmp_path / "star[1].csv", "id", "1")): "path_unsupported",
        ("csv", write_csv(tmp_path / "ragged.csv", "id,x", "1,2", "CANARY", "3,4,5")): "malformed_csv",
        ("csv", write_csv(tmp_path / "twice.csv", "id,x,ID", "1,2,3")): "duplicate_columns",
        ("csv", write_csv(tmp_path / "other.csv", "name", "CANARY")): "column_missing",
        ("parquet", png): "not_parquet",
        ("parquet", cut): "not_parquet",
        ("parquet", rotten): "source_damaged",
        ("parquet", write_parquet(tmp_path / "list.parquet", "SELECT [1] AS id")): "type_mismatch",
        ("parquet", write_parquet(tmp_path / "none.parquet", "SELECT 1 AS id LIMIT 0")): "no_rows",
        ("duckdb", whole): "not_duckdb",
    }
    for (kind, path), code in cases.items():
        found = refused(tmp_path, declared, TableSource("people", path, kind))  # type: ignore[arg-type]
        assert [code] == [item[0] for item in found], path.name
    assert refused(tmp_path, declared, TableSource("people", fake, "duckdb"))[0][0] in (
        "source_damaged",
        "source_version",
    )


@pytest.mark.slow
def test_database_sources(tmp_path: Path) -> None:
    """A table of a database by name; a missing one, and a database that is open elsewhere, are findings."""
    database = tmp_path / "it's.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.folk AS SELECT 5 AS id")
    declared = dataset(people())
    assert build(tmp_path, declared, TableSource("people", database, "duckdb", "s.folk")).report.units == 1
    other = tmp_path / "other"
    other.mkdir()
    assert refused(other, declared, TableSource("people", database, "duckdb")) == [
        ("source_table_missing", "people", None, None)
    ]
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); input()",
            database,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert refused(other, declared, TableSource("people", database, "duckdb", "s.folk")) == [
            ("source_locked", "people", None, None)
        ]
    finally:
        holder.communicate(b"\n")


def test_a_view_cannot_read_other_files(tmp_path: Path) -> None:
    """A database source whose view reads a file outside is refused: only the given files are open."""
    secret = write_csv(tmp_path / "secret.csv", "id", "1")
    database = tmp_path / "source.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE VIEW people AS SELECT * FROM read_csv('{secret}')")
    found = refused(tmp_path, dataset(people()), TableSource("people", database, "duckdb"))
    assert [item[0] for item in found] == ["source_damaged"]


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    """After a refusal no part of the work remains in the directory."""
    path = write_csv(tmp_path / "p.csv", "id", "1", "1")
    assert refused(tmp_path, dataset(people()), TableSource("people", path, "csv")) == [
        ("key_not_unique", "people", "id", 1)
    ]
    assert os.listdir(tmp_path / "snapshots") == []


@pytest.mark.slow
def test_public_values_come_from_public_tables_only(tmp_path: Path) -> None:
    """Distinct values in order; a protected table is never read this way."""
    city = Table(
        name="city",
        columns=(column("name", "text", keys=("y", "x")), column("size", "integer"), column("share", "number")),
        protected=False,
    )
    snapshot = build(
        tmp_path,
        dataset(people(), city),
        TableSource("people", write_csv(tmp_path / "p.csv", "id", "1"), "csv"),
        TableSource("city", write_csv(tmp_path / "c.csv", "name,size,share", "y,3,1", "x,2,1", ",2,1"), "csv"),
    )
    assert public_values(snapshot, "CITY", "Name") == ["x", "y", None]
    assert public_values(snapshot.path, "city", "size") == [2, 3]
    for table, name in (("people", "id"), ("city", "none"), ("city", "share"), ("none", "id")):
        with pytest.raises(LookupError):
            public_values(snapshot, table, name)


def test_inspecting_shows_schema_only(tmp_path: Path) -> None:
    """Names, proposed types and the row count; no value of any row appears."""
    csv = write_csv(
        tmp_path / "p.csv", "id, name ,when,x,flag", "1,CANARY,2020-01-01,1.5,true", "2,CANARY,2020-01-02,2,false"
    )
    table = inspect_source(csv).tables[0]
    assert [(item.name, item.type) for item in table.columns] == [
        ("id", ColumnType.INTEGER),
        ("name", ColumnType.TEXT),
        ("when", ColumnType.DATE),
        ("x", ColumnType.NUMBER),
        ("flag", ColumnType.BOOLEAN),
    ]
    assert table.rows == 2
    database = tmp_path / "p.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE a AS SELECT 1::DECIMAL(9,2) AS d, 'CANARY'::ENUM('CANARY') AS e, [1] AS l")
    inspected = inspect_source(database)
    assert [(item.name, item.type, item.source_type) for item in inspected.tables[0].columns] == [
        ("d", ColumnType.NUMBER, "DECIMAL"),
        ("e", ColumnType.TEXT, "ENUM"),
        ("l", None, "INTEGER[]"),
    ]
    assert "CANARY" not in repr(inspected) + repr(table)
    with pytest.raises(SnapshotRefused) as caught:
        inspect_source(tmp_path / "none.parquet")
    assert [found.code for found in caught.value.findings] == ["file_missing"]
