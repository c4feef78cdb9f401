"""What is proposed for a source: what its file declares, and of values only what all of them agree with."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from engines.handlers.propose import _MISSING
from engines.inspect import inspect_source
from engines.inspected import InspectedTable
from engines.snapshot import build_snapshot
from engines.table_source import TableSource
from privacy.policy import Column, ColumnType
from tests.engines.datasets import DRAW_KEY, dataset, people, read, write_csv

INT, NUM, TXT, DAY, BOOL = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.TEXT, ColumnType.DATE, ColumnType.BOOLEAN


def inspected(tmp_path: Path, *columns: list[str], mark: str = ";") -> tuple[Path, InspectedTable]:
    """The table of a CSV file with a number for each row and these columns."""
    rows = [f"{number}{mark}{mark.join(values)}" for number, values in enumerate(zip(*columns, strict=True))]
    head = mark.join(["id", *(f"x{number}" for number in range(len(columns)))])
    path = write_csv(tmp_path / "p.csv", head, *rows)
    (table,) = inspect_source(path).tables
    return path, table


def values(tmp_path: Path, path: Path, table: InspectedTable) -> list[list[object]]:
    """The stored columns after the data was attached as proposed."""
    columns = [Column(item.name, item.type) for item in table.columns[1:] if item.type is not None]
    source = TableSource(
        "people", path, "csv",
        decimal=table.decimal, dates=table.dates, thousands=table.thousands, nulls=table.nulls,
    )  # fmt: skip
    snapshot = build_snapshot(dataset(people(*columns)), [source], directory=tmp_path / "snapshots", draw_key=DRAW_KEY)
    names = ", ".join(f'"{column.name}"' for column in columns)
    rows = read(snapshot.path, f"SELECT {names} FROM people ORDER BY id")
    return [list(column) for column in zip(*rows, strict=True)]


# Marks of thousands


@pytest.mark.sparse(9)
@pytest.mark.parametrize(
    ("texts", "kind", "decimal", "thousands", "first"),
    [
        (["1,250,000", "900", "12"], INT, ".", ",", 1_250_000),
        (["1,250.50", "900", "1,000"], NUM, ".", ",", 1250.5),
        (["1.250.000", "900", "12"], INT, ",", ".", 1_250_000),
        (["1.250,5", "900", "0,25"], NUM, ",", ".", 1250.5),
        (["1 250", "12 500", "7"], INT, ".", " ", 1_250),
        (["1 250,5", "12 500,25", "7"], NUM, ",", " ", 1250.5),
        (["1\u202f250", "12", "7"], INT, ".", " ", 1_250),
        (["1'250.5", "12", "7"], NUM, ".", "'", 1250.5),
        (["1_250", "12", "7"], INT, ".", "_", 1_250),
    ],
)
def test_a_certain_mark_of_thousands_is_not_left_to_the_owner(
    tmp_path: Path, texts: list[str], kind: ColumnType, decimal: str, thousands: str, first: float
) -> None:
    """Where values show the mark for certain it is proposed with the type, and what is proposed reads every value."""
    path, table = inspected(tmp_path, texts)
    assert (table.columns[1].type, table.decimal, table.thousands) == (kind, decimal, thousands)
    assert values(tmp_path, path, table)[0][0] == first


@pytest.mark.sparse(9)
@pytest.mark.parametrize(
    "texts",
    [
        ["1,250", "2,500"],  # or thousandths
        ["1.250", "900"],  # or thousandths: semicolons part the columns
        ["123 456 789", "987 654 321"],  # or an identifier in groups
        ["012 345", "1 250"],  # an identifier
        ["1 250", "1'250'000"],  # two marks
        ["1,250,000", "1.250.000"],  # two marks
        ["1,25,000", "1,250,000"],  # not groups of three
        ["1,250,000", "about 7"],
        ["1,250.5", "2,5"],  # a decimal point and a decimal comma
    ],
)
def test_a_doubtful_mark_of_thousands_is_not_guessed(tmp_path: Path, texts: list[str]) -> None:
    """Where one value contradicts, or none decides, no mark is proposed and the column is text."""
    _, table = inspected(tmp_path, texts)
    assert (table.columns[1].type, table.decimal, table.thousands) == (TXT, ".", None)


def test_one_column_decides_for_the_file(tmp_path: Path) -> None:
    """One way of writing holds for the file: what one column shows, another that does not contradict is read by."""
    path, table = inspected(tmp_path, ["1,250,000", "2"], ["1,250", "900"], ["12.5", "3.25"], ["a", "1,5"])
    assert [item.type for item in table.columns] == [INT, INT, INT, NUM, TXT]
    assert values(tmp_path, path, table)[1] == [1250, 900]


# Words for missing values


@pytest.mark.sparse(20)
@pytest.mark.parametrize("mark", _MISSING)
def test_a_word_for_missing_values_is_not_taken_for_a_text(tmp_path: Path, mark: str) -> None:
    """A column of numbers, days or truth values keeps its type, and its missing values are none."""
    path, table = inspected(tmp_path, ["12", mark, "7"], ["2024-01-31", "2023-07-01", mark], [mark, "true", "false"])
    assert (table.nulls, [item.type for item in table.columns[1:]]) == ((mark,), [INT, DAY, BOOL])
    assert [column.count(None) for column in values(tmp_path, path, table)] == [1, 1, 1]


@pytest.mark.slow
def test_words_for_missing_values_are_found_anywhere(tmp_path: Path) -> None:
    """Several words, one of them behind the rows that the engine guesses from, beside marks of thousands and commas."""
    numbers = [str(number) for number in range(30_000)]
    path, table = inspected(
        tmp_path, [*numbers, "NA"], ["-", *("2,5" for _ in numbers)], [*("1.250,5" for _ in numbers), "N/A"]
    )
    assert (table.nulls, table.decimal, table.thousands) == (("NA", "N/A", "-"), ",", ".")
    assert [item.type for item in table.columns[1:]] == [INT, NUM, NUM]
    assert values(tmp_path, path, table)[0][-1] is None


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    ("first", "second", "types", "nulls"),
    [
        (["12", "NA"], ["NA", "DE"], [TXT, TXT], ()),  # Namibia
        (["12", "NA"], ["-", "DE"], [INT, TXT], ("NA",)),  # the dash is nobody's number
        (["12", "NA"], ["NA", "NA"], [INT, TXT], ("NA",)),  # nothing but missing values
        (["12", "absent"], ["NA", "DE"], [TXT, TXT], ()),
        (["NA", "n/a"], ["1", "2"], [TXT, INT], ()),
        (["12", "NA later"], ["1", "2"], [TXT, INT], ()),
        (["12", "quetzal"], ["quetzal", "2"], [TXT, TXT], ()),
    ],
)
def test_a_word_that_may_be_a_value_is_not_declared_missing(
    tmp_path: Path, first: list[str], second: list[str], types: list[ColumnType], nulls: tuple[str, ...]
) -> None:
    """`nulls` holds for every column of the file, so a word that a column of text has too is left to the owner."""
    _, table = inspected(tmp_path, first, second)
    assert ([item.type for item in table.columns[1:]], table.nulls) == (types, nulls)


@pytest.mark.slow
def test_no_word_of_the_file_is_repeated(tmp_path: Path) -> None:
    """Whatever stands in the cells, what comes back has names, types and words of closed lists."""
    _, table = inspected(tmp_path, ["1,250,000", "CANARY"], ["CANARY", "12"], ["NA", "31.12.2024"])
    assert "CANARY" not in repr(table)
    assert "2024" not in repr(table)
    assert "1,250" not in repr(table)


# Columns that are never NULL


def test_a_declared_not_null_is_not_lost(tmp_path: Path) -> None:
    """NOT NULL and PRIMARY KEY of a database, and required fields of all parts of a Parquet table."""
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE SCHEMA more")
        connection.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, born DATE NOT NULL, sex VARCHAR)")
        connection.execute("CREATE TABLE more.p (id INTEGER, born DATE, sex VARCHAR NOT NULL)")
    tables = {item.name: item for item in inspect_source(path).tables}
    assert [item.required for item in tables["p"].columns] == [True, True, False]
    assert [item.required for item in tables["more.p"].columns] == [False, False, True]


@pytest.mark.slow
def test_a_required_field_of_one_part_alone_is_not_required(tmp_path: Path) -> None:
    """A Parquet field is never NULL where every part of the table says so; nested fields do not count for others."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    inner = pyarrow.struct([pyarrow.field("z", pyarrow.int64(), nullable=False)])
    fields = [("id", pyarrow.int64()), ("inner", inner), ("x", pyarrow.int64()), ("y", pyarrow.int64())]
    for name, required in (("a", {"id", "x"}), ("b", {"id", "y"})):
        schema = pyarrow.schema([pyarrow.field(field, kind, nullable=field not in required) for field, kind in fields])
        table = pyarrow.Table.from_pydict({"id": [1], "inner": [{"z": 1}], "x": [1], "y": [1]}, schema=schema)
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    one = inspect_source(tmp_path / "a.parquet").tables[0]
    assert [item.required for item in one.columns] == [True, False, True, False]
    parts = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    (both,) = inspect_source(tmp_path, source_format="parquet", parts=parts).tables
    assert [item.required for item in both.columns] == [True, False, False, False]


def test_never_null_is_not_read_from_rows(tmp_path: Path) -> None:
    """That no row lacks a value is a fact about rows: nothing in a CSV file declares it, so it is not proposed."""
    _, table = inspected(tmp_path, ["1", "2"], ["a", "b"])
    assert not any(item.required for item in table.columns)
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT range AS id FROM range(9)) TO '{tmp_path / 'n.parquet'}' (FORMAT parquet)")
    assert not any(item.required for item in inspect_source(tmp_path / "n.parquet").tables[0].columns)
