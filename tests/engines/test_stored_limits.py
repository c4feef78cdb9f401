"""Limits of what a snapshot stores: rows of one unit, and characters of a text."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from engines.snapshot import build_snapshot
from engines.snapshot_findings import SnapshotRefused
from engines.stored import Snapshot
from engines.table_source import TableSource
from privacy.bounds import ContributionBound
from privacy.policy import (
    LENGTH_MAX_DEFAULT,
    ROWS_STORED_DEFAULT,
    Column,
    ColumnType,
    Dataset,
    Other,
    PublicKeys,
    Reference,
    Table,
)
from privacy.unit import PrivacyUnit
from sql_rewrite.expression_cost import characters
from sql_rewrite.expressions import columns_of
from sql_rewrite.lift import lift

KEY = b"k" * 32
Row = tuple[object, ...]


def declared(*, rows_stored: int | None = 5, length_max: int | None = None, rows_per_unit: int = 4) -> Dataset:
    """People, and their visits."""
    unit = Column("person_id", ColumnType.TEXT, nullable=False, length_max=length_max)
    return Dataset(
        name="d",
        unit=PrivacyUnit("people", "person_id"),
        tables=(
            Table("people", (unit,), protected=True, key="person_id", contribution=ContributionBound(1, 1, 1)),
            Table(
                "visits",
                (unit, Column("n", ColumnType.INTEGER), Column("note", ColumnType.TEXT, length_max=length_max)),
                protected=True,
                references=(Reference("person_id", "people", "person_id"),),
                unit_path=(Reference("person_id", "people", "person_id"),),
                contribution=ContributionBound(rows_per_unit, 1, 1),
                rows_stored_per_unit=rows_stored,
            ),
        ),
        policy_version=1,
        data_version="",
    )


def attach(folder: Path, visits: Sequence[Row], dataset: Dataset) -> Snapshot:
    """The snapshot of these visits, and of whoever made them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, header, rows in (
        ("people", ["person_id"], [(who,) for who in sorted({str(row[0]) for row in visits})]),
        ("visits", ["person_id", "n", "note"], visits),
    ):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(rows)
    sources = [TableSource(name, folder / f"{name}.csv", "csv") for name in ("people", "visits")]
    return build_snapshot(dataset, sources, directory=folder / "snapshots", draw_key=KEY)


def stored(snapshot: Snapshot) -> list[Row]:
    """The visits of a snapshot, sorted."""
    with duckdb.connect(str(snapshot.path), read_only=True) as connection:
        return sorted(connection.execute("SELECT person_id, n, note FROM visits").fetchall())


def visits_of(who: str, count: int) -> list[Row]:
    """Different visits, some of them twice."""
    return [(who, number // 2, f"note {number // 2}") for number in range(count)]


def test_no_unit_has_more_rows_than_declared(tmp_path: Path) -> None:
    """471 rows of one person moved an answer from one second to eight: a unit could be a stopwatch by its size."""
    snapshot = attach(tmp_path, visits_of("many", 400) + visits_of("few", 4) + visits_of("exact", 5), declared())
    counts = {who: [row[0] for row in stored(snapshot)].count(who) for who in ("many", "few", "exact")}
    assert counts == {"many": 5, "few": 4, "exact": 5}
    visits = snapshot.report.tables[1]
    assert (visits.rows_read, visits.rows_stored, visits.rows_beyond, visits.rows_without_unit) == (409, 14, 395, 0)


def test_which_rows_are_kept_is_a_function_of_the_units_own_rows(tmp_path: Path) -> None:
    """Order in the file, and other people, change nothing: so neighbouring data differ in the unit's rows alone."""
    rows = visits_of("many", 60) + visits_of("other", 30)
    first = stored(attach(tmp_path / "a", rows, declared()))
    shuffled = list(rows)
    random.Random(3).shuffle(shuffled)
    assert stored(attach(tmp_path / "b", shuffled, declared())) == first
    alone = stored(attach(tmp_path / "c", visits_of("many", 60), declared()))
    assert alone == [row for row in first if row[0] == "many"]


@pytest.mark.slow
def test_which_rows_are_kept_depends_on_the_secret(tmp_path: Path) -> None:
    """Without it, nobody can write the rows that will be kept."""
    attach(tmp_path, visits_of("many", 400), declared())
    sources = [TableSource(name, tmp_path / f"{name}.csv", "csv") for name in ("people", "visits")]
    kept = {
        tuple(stored(build_snapshot(declared(), sources, directory=tmp_path / f"s{n}", draw_key=bytes([n]) * 32)))
        for n in range(4)
    }
    assert len(kept) == 4


def test_the_default_is_generous_and_never_below_what_counts() -> None:
    """Shows the default of a table, and of one in which more rows may count."""
    assert declared(rows_stored=None).tables[1].rows_stored == ROWS_STORED_DEFAULT
    assert declared(rows_stored=None, rows_per_unit=5_000).tables[1].rows_stored == 5_000
    assert declared().tables[0].rows_stored == 1


@pytest.mark.slow
def test_limits_are_part_of_the_data_version(tmp_path: Path) -> None:
    """Two limits are two snapshots; one of them never serves for the other."""
    rows = visits_of("many", 40)
    versions = {
        attach(tmp_path, rows, declared(rows_stored=most, length_max=length)).data_version
        for most, length in ((5, None), (6, None), (5, 50))
    }
    assert len(versions) == 3


@pytest.mark.sparse(3)
@pytest.mark.parametrize("character", ["a", "ß", "😀"])
def test_no_text_is_longer_than_declared(tmp_path: Path, character: str) -> None:
    """2,048 messages of 2 KB of one person made a query fail that the neighbouring data answers."""
    rows: list[Row] = [("who", 1, character * 30), ("who", 2, character * 10), ("who", 3, "")]
    snapshot = attach(tmp_path, rows, declared(length_max=10))
    assert stored(snapshot) == [("who", 1, character * 10), ("who", 2, character * 10), ("who", 3, None)]
    assert snapshot.report.tables[1].texts_cut == (("note", 1),)


def test_texts_that_name_units_are_refused_and_not_cut(tmp_path: Path) -> None:
    """Two people whose keys begin alike would become one."""
    with pytest.raises(SnapshotRefused) as refused:
        attach(tmp_path, [("a" * 11, 1, "x"), ("a" * 10, 2, "y")], declared(length_max=10))
    assert {finding.code for finding in refused.value.findings} == {"text_too_long"}
    assert {finding.column for finding in refused.value.findings} == {"person_id"}


@pytest.mark.sparse(3)
@pytest.mark.parametrize(("length_max", "longest"), [(None, LENGTH_MAX_DEFAULT), (10, 10), (3, 7)])
def test_texts_beside_listed_keys_have_a_longest_length(tmp_path: Path, length_max: int | None, longest: int) -> None:
    """Forbids that a column of keys with `other` keeps a text of any length: one person's would be a stopwatch.

    The limit is that of the cost model, and no text is cut to one of the keys.
    """
    keys = PublicKeys(("north", "nnnnnn"), Other("elsewhere"))
    dataset = declared(rows_stored=None)
    people, visits = dataset.tables
    note = Column("note", ColumnType.TEXT, keys=keys, length_max=length_max)
    dataset = replace(dataset, tables=(people, replace(visits, columns=(*visits.columns[:2], note))))
    snapshot = attach(tmp_path, [("a", 1, "n" * 200_000), ("a", 2, "north"), ("a", 3, "")], dataset)
    assert stored(snapshot) == [("a", 1, "n" * longest), ("a", 2, "north"), ("a", 3, None)]
    (core,) = lift("SELECT COUNT(*) FROM visits WHERE LOWER(note) = 'x'", dataset).cores
    assert core.where is not None
    (column,) = columns_of(core.where)
    assert characters(column) == longest
