"""The owner's report of how easily people could be told apart, against counts by hand and printed values."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from engines.classes import ClassCounter, ClassSizes, Coarse
from engines.snapshot import build_snapshot
from engines.table_source import TableSource
from privacy.policy import Dataset
from server.administration import risk
from tests.engines.datasets import DRAW_KEY, column, dataset, people, visits
from tests.mechanisms.support import SeededBits

ADULT = os.environ.get("NOISEGATE_ADULT_CSV", "")
Row = tuple[object, ...]

PEOPLE: tuple[Row, ...] = (
    (1, 31, "A", "2001-02-03", "12345"),
    (2, 32, "A", "2001-02-28", "12346"),
    (3, 38, "A", "2001-03-01", "12347"),
    (4, 39, "B", "2001-03-09", "54321"),
    (5, 39, "B", "2002-01-01", "54322"),
    (6, None, "B", "", "54323"),
)
TABLE = people(column("age", "integer"), column("city", "text"), column("born", "date"), column("zip", "text"))


def write(path: Path, names: Sequence[str], rows: Sequence[Row]) -> Path:
    """A CSV file."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)
    return path


def sizes(snapshot: Path, table: str, columns: Sequence[Coarse]) -> ClassSizes:
    """The sizes of the classes of some columns."""
    with ClassCounter(snapshot, table) as counter:
        return counter.sizes(columns)


@pytest.fixture(scope="module")
def attached(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Dataset]:
    """Six people, three of whom have visits."""
    declared, tmp_path = dataset(TABLE, visits()), tmp_path_factory.mktemp("risk")
    first = write(tmp_path / "people.csv", ("id", "age", "city", "born", "zip"), PEOPLE)
    rows = [(1, 1, "A"), (2, 1, "A"), (3, 1, "B"), (4, 2, "A"), (5, 3, "A")]
    second = write(tmp_path / "visits.csv", ("visit", "person", "city"), rows)
    sources = [TableSource("people", first, "csv"), TableSource("visits", second, "csv")]
    return build_snapshot(declared, sources, directory=tmp_path / "snapshots", draw_key=DRAW_KEY).path, declared


@pytest.mark.slow
def test_classes_are_counted_by_people(attached: tuple[Path, Dataset]) -> None:
    """NULL is a value; whoever has several rows counts once, in the smallest class."""
    snapshot, _ = attached
    assert sizes(snapshot, "people", [Coarse("city")]) == ((3, 6),)
    assert sizes(snapshot, "people", [Coarse("age"), Coarse("city")]) == ((1, 4), (2, 2))
    # Person 1 alone has been in B; in A there were three people.
    assert sizes(snapshot, "visits", [Coarse("city")]) == ((1, 1), (3, 2))
    assert sizes(snapshot, "people", [Coarse("city", "hidden")]) == ((6, 6),)


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    ("coarse", "expected"),
    [
        (Coarse("age", "width", 10), ((1, 1), (5, 5))),
        (Coarse("zip", "prefix", 2), ((3, 6),)),
        (Coarse("born", "month"), ((1, 2), (2, 4))),
        (Coarse("born", "year"), ((1, 2), (4, 4))),
    ],
    ids=lambda value: value.kept if isinstance(value, Coarse) else "",
)
def test_coarser_columns(attached: tuple[Path, Dataset], coarse: Coarse, expected: tuple[tuple[int, int], ...]) -> None:
    """Widths, first characters, months and years."""
    assert sizes(attached[0], "people", [coarse]) == expected


def test_what_coarser_columns_follow_from(attached: tuple[Path, Dataset]) -> None:
    """Different values, greatest less least, longest text."""
    with ClassCounter(attached[0], "people") as counter:
        age, city = counter.spreads(["age", "city"])
    assert (age.values, age.range) == (4, 8.0)
    assert (city.values, city.length) == (2, 1)


def test_a_report(attached: tuple[Path, Dataset]) -> None:
    """Shares found for certain and guessed, each column by itself, and columns coarse enough."""
    snapshot, declared = attached
    report = risk.measure(snapshot, declared, TABLE, ["age", "city"], k=3)
    assert (report.classes.units, report.classes.least) == (6, 1)
    assert report.classes.certain == pytest.approx(4 / 6)
    assert report.classes.guessed == pytest.approx((4 + 2 / 2) / 6)
    assert [one.least for one in report.alone] == [1, 3]
    assert report.generalised is not None
    assert report.generalised.classes.least >= 3
    assert [sql for _, sql in report.generalised.columns][1] == "city"
    assert sum(units for _, _, units, _ in report.classes.buckets()) == 6


def test_no_column_could_be_finer(attached: tuple[Path, Dataset]) -> None:
    """Each column of what is proposed, one step finer, would leave a class with fewer people."""
    snapshot, _ = attached
    with ClassCounter(snapshot, "people") as counter:
        found = risk.generalise(counter, TABLE, ["age", "born", "zip"], k=2)
        assert risk.generalise(counter, TABLE, ["age"], k=7) is None
    assert found is not None
    assert found.classes.least >= 2
    assert Counter(coarse.kept == "exact" for coarse, _ in found.columns)[True] < 3


def test_what_says_whose_row_it_is_is_no_quasi_identifier(attached: tuple[Path, Dataset]) -> None:
    """Neither the unit's key nor the table's own."""
    _, declared = attached
    assert risk.suitable(declared, TABLE) == ("age", "city", "born", "zip")
    assert risk.suitable(declared, visits()) == ("city",)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_differencing_stays_below_its_limit(epsilon: Fraction) -> None:
    """20,000 trials: five standard deviations of a share are 0.018. Wrong noise is noticed: a tenth of it passes."""
    found = risk.difference(epsilon, SeededBits(31))
    assert 0.5 - 0.018 < found.noisy < found.limit + 0.018
    assert risk.difference(epsilon * 10, SeededBits(32)).noisy > found.limit


@pytest.mark.sparse(3)
@pytest.mark.adult
@pytest.mark.skipif(not ADULT, reason="needs the UCI Adult file (NOISEGATE_ADULT_CSV)")
@pytest.mark.parametrize(
    ("rows", "columns", "least"),
    [
        (None, ["age", "education_num"], 1),
        (None, [Coarse("age", "width", 10), Coarse("education_num", "width", 10)], 21),
        (1000, [Coarse("age", "width", 10), Coarse("education_num", "width", 10)], 1),
    ],
)
def test_printed_values_of_adult(tmp_path: Path, rows: int | None, columns: list[Coarse | str], least: int) -> None:
    """E23: the whole table truncated to tens is 21-anonymous in age and education; its first 1,000 rows are not."""
    with Path(ADULT).open(newline="") as file:
        read = list(csv.DictReader(file))[:rows]
    names = {name.strip().lower().replace("-", "_").replace(" ", "_"): name for name in read[0]}
    values = [(place, row[names["age"]], row[names["education_num"]]) for place, row in enumerate(read)]
    table = people(column("age", "integer"), column("education_num", "integer"))
    path = write(tmp_path / "people.csv", ("id", "age", "education_num"), values)
    built = build_snapshot(
        dataset(table), [TableSource("people", path, "csv")], directory=tmp_path / "s", draw_key=DRAW_KEY
    )
    exact = [Coarse(item) if isinstance(item, str) else item for item in columns]
    assert risk.Classes(sizes(built.path, "people", exact)).least == least
