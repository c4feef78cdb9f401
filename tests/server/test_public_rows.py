"""What the lift may know of public tables, read from a snapshot: never of a table of people."""

from __future__ import annotations

from pathlib import Path

import pytest

from server import public_rows
from server.public_rows import SnapshotRows
from tests.plain_clinic import open_clinic


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
