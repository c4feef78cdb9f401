"""What the lift may know of public tables, read from a snapshot: never of a table of people."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engines.shell import ShellColumn, ShellTable
from engines.snapshot_findings import SnapshotFinding, SnapshotRefused
from privacy.policy import ColumnType
from privacy.values import Cell
from server import public_rows
from server.public_rows import SnapshotRows
from tests.plain_clinic import open_clinic


@pytest.mark.slow
def test_public_rows_are_read_once_and_people_never(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows rows, how many agree, the limits, and that a table of people has none of it."""
    with open_clinic(tmp_path) as clinic:
        rows = SnapshotRows(clinic.snapshot)
        known = tuple((["north", "south"][number % 2], number * 50) for number in range(1, 5))
        assert rows.rows("hospitals", ("region", "beds"), 10) == known
        assert rows.rows("hospitals", ("region",), 3) is None
        assert rows.agreeing("hospitals", ("region",)) == 2
        assert rows.agreeing("hospitals", ("region", "beds")) == 1
        assert rows.rows("people", ("age",), 1_000) is None
        assert rows.agreeing("people", ("age",)) is None
        monkeypatch.setattr(public_rows, "public_table", lambda *_, **__: pytest.fail("it was read again"))
        assert rows.agreeing("hospitals", ("beds",)) == 1


def test_reading_one_table_holds_up_nobody_who_asks_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a table that is being read is read once, and that neither a kept table nor a new one waits for it."""
    begun, go_on, reads = threading.Event(), threading.Event(), Counter[str]()

    def read(_: Path, table: str, **__: object) -> ShellTable:
        reads[table] += 1
        if table == "slow":
            begun.set()
            assert go_on.wait(20)
        return numbers_of(table, (1, 1, 2))

    monkeypatch.setattr(public_rows, "public_table", read)
    rows = SnapshotRows(Path("unused"))
    assert rows.agreeing("kept", ("n",)) == 2
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(rows.agreeing, "slow", ("n",)) for _ in range(2)]
        assert begun.wait(20)
        assert rows.rows("kept", ("n",), 3) == ((1,), (1,), (2,))
        assert rows.agreeing("other", ("n",)) == 2
        go_on.set()
        assert [found.result(20) for found in waiting] == [2, 2]
    assert reads == {"kept": 1, "other": 1, "slow": 1}


def test_large_tables_stay_without_their_values_and_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a table is not read again for other columns, and that the one used longest ago is forgotten."""
    reads = Counter[str]()

    def read(_: Path, table: str, **__: object) -> ShellTable:
        reads[table] += 1
        return numbers_of(table, (1, 1, 2, None))

    monkeypatch.setattr(public_rows, "public_table", read)
    monkeypatch.setattr(public_rows, "_ROWS_WITH_VALUES", 3)
    monkeypatch.setattr(public_rows, "_CELLS_WITH_VALUES", 7)
    monkeypatch.setattr(public_rows, "_CELLS_KEPT", 16)
    rows = SnapshotRows(Path("unused"))
    for table in ("one", "two"):
        assert [rows.agreeing(table, columns) for columns in (("n",), ("same",), ("n", "same"))] == [2, 3, 2]
    assert reads == {"one": 1, "two": 1}
    assert rows.rows("one", ("n",), 3) is None
    assert rows.rows("one", ("n",), 4) is None
    assert rows.agreeing("three", ("n",)) == 2
    assert [rows.agreeing(table, ("n",)) for table in ("one", "two", "three")] == [2, 2, 2]
    assert reads == {"one": 1, "two": 1, "three": 1}
    assert [rows._table(table) is None for table in ("one", "two")] == [False, False]
    assert reads == {"one": 1, "two": 2, "three": 1}


def test_a_table_that_cannot_be_read_is_not_tried_at_each_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a failure is remembered for a minute, and that a table with too many rows is never tried again."""
    now, reads = [0.0], Counter[str]()

    def read(_: Path, table: str, **__: object) -> ShellTable:
        reads[table] += 1
        raise SnapshotRefused([SnapshotFinding("too_many_rows" if table == "large" else "not_completed")])

    monkeypatch.setattr(public_rows, "public_table", read)
    rows = SnapshotRows(Path("unused"), clock=lambda: now[0])
    for moment in (0.0, 59.0, 61.0, 62.0):
        now[0] = moment
        assert rows.agreeing("large", ("n",)) is None
        assert rows.rows("damaged", ("n",), 10) is None
    assert reads == {"large": 1, "damaged": 2}


def test_values_that_are_no_number_agree_as_they_do_in_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that two NaN are one value, as for `=` of the engine: a bound on what joins meet must count them so."""
    values = (float("nan"), float("nan"), float("nan"), 1.0)
    monkeypatch.setattr(public_rows, "public_table", lambda _, table, **__: numbers_of(table, values))
    assert SnapshotRows(Path("unused")).agreeing("scores", ("n",)) == 3


def numbers_of(table: str, values: tuple[Cell, ...]) -> ShellTable:
    """A table with these values in the column n, and equal ones in another; NULL where they are."""
    same = tuple(None if value is None else 7 for value in values)
    return ShellTable(
        table,
        (ShellColumn("n", ColumnType.NUMBER, values), ShellColumn("same", ColumnType.INTEGER, same)),
    )
