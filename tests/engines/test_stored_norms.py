"""What a snapshot keeps of each unit beside its rows is what counting the rows that are stored would give."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from engines.declaration import data_version, norms_stored
from engines.snapshot import build_snapshot
from engines.stored import stored_norms, stored_totals, stored_units
from engines.table_source import TableSource
from privacy.bounds import ValueBounds
from privacy.stored_norms import SQUARES_MAX
from sql_rewrite.kept_totals import kept_totals
from tests.engines.datasets import DRAW_KEY, column, dataset, people, read, visits, write_csv

KEYED = replace(
    visits(),
    columns=(*visits().columns, column("kind", "text", keys=("a", "b")), column("urgent", "boolean")),
    rows_stored_per_unit=6,
)
ROWS = [f"{n},{n % 3 if n < 12 else 1},x,{'' if n % 4 == 0 else 'ab'[n % 2]},{'ty'[n % 2] if n % 5 else ''}"
        for n in range(30)]  # fmt: skip
"""Units 0 to 2; unit 1 has more rows than are stored, and some rows have no kind."""


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("norms")
    sources = (
        TableSource("people", write_csv(folder / "p.csv", "id", "0", "1", "2", "3"), "csv"),
        TableSource("visits", write_csv(folder / "v.csv", "visit,person,city,kind,urgent", *ROWS), "csv"),
    )
    return build_snapshot(dataset(people(), KEYED), sources, directory=folder / "snapshots", draw_key=DRAW_KEY).path


def test_every_row_has_the_norms_of_its_unit(snapshot: Path) -> None:
    """As many rows, and squares by each column with public keys, NULL among the values, after rows are left out."""
    assert stored_norms(snapshot) == {"visits": ("kind", "urgent")}
    found = read(
        snapshot, 'SELECT DISTINCT person, "unit$rows", "unit$squares$kind", "unit$squares$urgent" FROM visits'
    )
    assert len(found) == 3
    for person, rows, kinds, urgent in found:
        assert [(rows,)] == read(snapshot, f"SELECT count(*) FROM visits WHERE person = {person}")
        for name, squares in (("kind", kinds), ("urgent", urgent)):
            groups = f"SELECT count(*) AS n FROM visits WHERE person = {person} GROUP BY {name}"
            assert [(squares,)] == read(snapshot, f"SELECT sum(n * n) FROM ({groups})")
    assert (1, 6) in [found_of[:2] for found_of in found]


def test_one_row_of_each_unit_is_the_first(snapshot: Path) -> None:
    """Units without a row have none, all others exactly one."""
    first = 'SELECT person, count(*) FILTER (WHERE "unit$first") FROM visits GROUP BY 1 ORDER BY 1'
    assert read(snapshot, first) == [(0, 1), (1, 1), (2, 1)]
    assert read(snapshot, 'SELECT count(*) FROM visits WHERE "unit$first" IS NULL') == [(0,)]


def test_units_have_their_norms_in_a_table_of_their_own(snapshot: Path) -> None:
    """One row of each unit that has rows, as beside its first row; and how many units have as many rows."""
    assert stored_units(snapshot) == {"visits"}
    norms = ", ".join(f'"unit${name}"' for name in ("rows", "squares$kind", "squares$urgent"))
    beside = read(snapshot, f'SELECT {norms} FROM visits WHERE "unit$first" ORDER BY "unit$id"')
    assert read(snapshot, f'SELECT {norms} FROM "visits$units"') == beside
    assert len(beside) == 3
    sizes = Counter(rows for rows, *_ in beside)
    assert read(snapshot, 'SELECT "unit$rows", "unit$units" FROM "visits$sizes"') == sorted(sizes.items())


def test_totals_are_sums_of_the_rows_of_a_unit(tmp_path: Path) -> None:
    """Of the rows that are stored, each clipped; squares by each column with public keys. NULL adds nothing.

    Beside them how many values there are. These are in no version: with them the data is what it was.
    """
    keyed = replace(
        KEYED,
        columns=(*KEYED.columns, replace(column("paid", "number"), bounds=ValueBounds(Fraction(0), Fraction(9, 2)))),
    )
    declared = dataset(people(), keyed)
    sources = (
        TableSource("people", write_csv(tmp_path / "p.csv", "id", "0", "1", "2", "3"), "csv"),
        TableSource(
            "visits",
            write_csv(tmp_path / "v.csv", "visit,person,city,kind,urgent,paid",
                      *(f"{row},{'' if n % 7 == 0 else n - 5.25}" for n, row in enumerate(ROWS))),
            "csv",
        ),
    )  # fmt: skip
    totals = kept_totals(declared)
    total, values = totals["visits"]
    assert (total.values, values.values) == (False, True)
    plain = build_snapshot(declared, sources, directory=tmp_path / "plain", draw_key=DRAW_KEY)
    built = build_snapshot(declared, sources, directory=tmp_path / "snapshots", draw_key=DRAW_KEY, totals=totals)
    assert built.data_version != plain.data_version
    alone, files, draw = {"visits": (values,)}, ("0", "1"), b"k" * 32
    assert data_version(declared, sources, files, draw, totals=alone) == data_version(declared, sources, files, draw)
    assert (stored_totals(plain.path), stored_totals(built.path)) == ({}, totals)
    rows = read(built.path, 'SELECT person, kind, urgent, paid, "unit$total$paid", "unit$total$paid$kind", '
                            '"unit$total$paid$urgent", "unit$values$paid" FROM visits')  # fmt: skip
    step = float(total.nearest.split("CAST('")[-1].split("'")[0])
    for person in (0, 1, 2):
        own = [row for row in rows if row[0] == person]
        added = [0 if row[3] is None else round(min(max(float(str(row[3])), 0.0), 4.5) * step) for row in own]
        assert {row[4] for row in own} == {sum(added)}
        assert {row[7] for row in own} == {sum(row[3] is not None for row in own)}
        for place, stored in ((1, 5), (2, 6)):
            cells = Counter[object]()
            for row, amount in zip(own, added, strict=True):
                cells[row[place]] += amount
            assert {row[stored] for row in own} == {sum(amount**2 for amount in cells.values())}
    assert any(row[4] for row in rows)


def test_which_tables_keep_norms() -> None:
    """Those with several rows of a unit; squares by the first columns with public keys, but for gathered ones."""
    assert norms_stored(people()) is None
    assert norms_stored(replace(visits(), protected=False, contribution=None)) is None
    assert norms_stored(visits()) == ()
    many = tuple(column(f"k{n}", "text", keys=("x",)) for n in range(SQUARES_MAX + 3))
    assert norms_stored(replace(visits(), columns=(*visits().columns, *many))) == tuple(
        f"k{n}" for n in range(SQUARES_MAX)
    )
