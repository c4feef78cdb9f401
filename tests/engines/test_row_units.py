"""Rows as units: no row can change what is drawn for another one, and nothing that moves with a row can be seen."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from engines.snapshot import build_snapshot
from engines.snapshot_findings import SnapshotRefused
from engines.table_source import TableSource
from privacy.bounds import ContributionBound
from privacy.policy import Dataset, Table
from privacy.unit import PrivacyUnit
from tests.engines.datasets import DRAW_KEY, column, read, write_csv, write_parquet

ONE = ContributionBound(rows_per_unit=1, groups_per_unit=1, rows_per_unit_and_group=1)


def survey(*, bound: ContributionBound = ONE) -> Table:
    """A table whose rows are the units."""
    return Table(
        name="survey",
        columns=(column("a", "text"), column("b", "text"), column("x", "number")),
        protected=True,
        contribution=bound,
    )


def declared(*tables: Table, unit: str = "survey") -> Dataset:
    return Dataset("test", PrivacyUnit(unit, None), tables, 1, "")


def drawn(folder: Path, name: str, rows: list[str]) -> Counter[tuple[object, ...]]:
    """The rows of a snapshot with their draws, as a multiset."""
    path = write_csv(folder / f"{name}.csv", "a,b,x", *rows)
    snapshot = build_snapshot(
        declared(survey()), [TableSource("survey", path, "csv")], directory=folder / "snapshots", draw_key=DRAW_KEY
    )
    assert snapshot.report.units == len(rows)
    return Counter(read(snapshot.path, 'SELECT a, b, x, "unit$draw" FROM survey'))


ROWS = ["p,q,1", "p,q,1", "p,q,1", "pq,,1", ",pq,1", "p,q,2", "1:p,q,1", ",,", ",,", "n,n,", "p,q,1.0"]


@pytest.mark.sparse(8)
@pytest.mark.parametrize("left_out", range(len(ROWS)))
def test_a_row_that_is_left_out_changes_no_other_draw(tmp_path: Path, left_out: int) -> None:
    """The rows with their draws are those of the neighbour and one more, wherever the row stood and however often."""
    whole = drawn(tmp_path, "whole", ROWS)
    less = drawn(tmp_path, "less", ROWS[:left_out] + ROWS[left_out + 1 :])
    assert less <= whole
    assert (whole - less).total() == 1
    ((*cells, _),) = whole - less
    named = [value or None for value in ROWS[left_out].split(",")]
    assert cells == [*named[:2], None if named[2] is None else float(named[2])]


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    """The same rows in another order have the same draws, and the stored order says nothing about the file's."""
    assert drawn(tmp_path, "there", ROWS) == drawn(tmp_path, "back", ROWS[::-1])


def test_draws_of_equal_rows_differ(tmp_path: Path) -> None:
    """Equal rows are units of their own: each has its draw, and rows whose cells join to one text are told apart."""
    whole = drawn(tmp_path, "whole", ROWS)
    assert len({draw for *_, draw in whole}) == len(ROWS)


def test_the_draw_is_the_documented_hash(tmp_path: Path) -> None:
    """A draw is SHA-256 over key, keyed hash of the contents with their lengths, and number among equal rows."""
    key = DRAW_KEY.hex()

    def expected(copy: int) -> int:
        # A length is counted in bytes: "é1" has three.
        contents = hashlib.sha256(f"{key}:row:t3:é1nt3:1.0".encode()).hexdigest()
        return int(hashlib.sha256(f"{key}:{contents}:{copy}".encode()).hexdigest()[:16], 16)

    found = drawn(tmp_path, "two", ["é1,,1", "é1,,1"])
    assert {draw for *_, draw in found} == {expected(1), expected(2)}


def test_no_number_of_a_row_is_stored(tmp_path: Path) -> None:
    """Beside the declared columns there are the unit's dense number and its draw, each once per row."""
    path = write_parquet(tmp_path / "s.parquet", "SELECT 'x' AS a, 'y' AS b, range AS x FROM range(100)")
    snapshot = build_snapshot(
        declared(survey()), [TableSource("survey", path, "parquet")], directory=tmp_path / "s", draw_key=DRAW_KEY
    )
    assert [row[0] for row in read(snapshot.path, "DESCRIBE survey")] == ["a", "b", "x", "unit$id", "unit$draw"]
    assert read(snapshot.path, 'SELECT count(DISTINCT "unit$id"), min("unit$id"), max("unit$id") FROM survey') == [
        (100, 0, 99)
    ]
    in_file = read(snapshot.path, 'SELECT x FROM survey ORDER BY "unit$id"')
    assert in_file != sorted(in_file), "numbers carry no order of arrival"
    assert read(snapshot.path, "SELECT count(*) FROM duckdb_tables()") == [(1,)]


def test_columns_called_like_the_engine_s_own_are_harmless(tmp_path: Path) -> None:
    """A declared column "rowid" is a column like others."""
    table = Table(name="survey", columns=(column("rowid", "integer"),), protected=True, contribution=ONE)
    path = write_csv(tmp_path / "s.csv", "rowid", "7", "7", "8")
    snapshot = build_snapshot(
        declared(table), [TableSource("survey", path, "csv")], directory=tmp_path / "s", draw_key=DRAW_KEY
    )
    assert sorted(read(snapshot.path, "SELECT rowid FROM survey")) == [(7,), (7,), (8,)]
    assert read(snapshot.path, 'SELECT count(DISTINCT "unit$id") FROM survey') == [(3,)]


@pytest.mark.parametrize(
    "tables",
    [
        (survey(), Table(name="more", columns=(column("a", "text"),), protected=True, contribution=ONE)),
        (Table(name="survey", columns=(column("a", "text"),), protected=True, contribution=ONE, unit_column="a"),),
    ],
    ids=["another table", "a key after all"],
)
def test_declarations_that_contradict_themselves_are_refused(tmp_path: Path, tables: tuple[Table, ...]) -> None:
    """Where rows are units there is one protected table and no column of the unit; a bound of rows is only a bound."""
    path = write_csv(tmp_path / "s.csv", "a,b,x", "1,2,3")
    with pytest.raises(SnapshotRefused) as caught:
        build_snapshot(
            declared(*tables),
            [TableSource(table.name, path, "csv") for table in tables],
            directory=tmp_path / "s",
            draw_key=DRAW_KEY,
        )
    assert {found.code for found in caught.value.findings} == {"unit_unknown"}
