"""Error bars of computed cells: what simulated values may say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from typing import Any

import pytest

from engines.shell import ShellEngine
from mechanisms.released_table import ReleasedTable
from privacy.policy import ColumnType
from privacy.release import ReleasedColumn
from server.answer_rows import AnswerRows, assemble, shapes
from server.derived.draws import spread
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from tests.kept_workers import kept_workers
from tests.sql_rewrite.datasets import CLINIC

SQL = "SELECT sex, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM people GROUP BY sex ORDER BY sex"


@pytest.fixture(scope="module")
def shell() -> Iterator[ShellEngine]:
    """One worker for all tests."""
    with kept_workers():
        engine = ShellEngine(workers=1)
    with closing(engine):
        yield engine


def ranked(shell: ShellEngine, counts: list[int], error: float, confidence: str = "0.95") -> AnswerRows:
    """The answer of the ranking query when these counts were released with this standard error."""
    plan = lift(SQL, CLINIC)
    cores = bound(plan)
    released = ReleasedTable(
        name="c0",
        rows=2,
        columns=(
            ReleasedColumn("k0", "key", ColumnType.TEXT, ("female", "male"), (), (), ()),
            ReleasedColumn(
                "a0",
                "released",
                ColumnType.INTEGER,
                tuple(counts),
                (error,) * 2,
                tuple(count - 2 * error for count in counts),
                tuple(count + 2 * error for count in counts),
            ),
        ),
        confidence=confidence,
        notes=(),
    )
    types = shell.check(shapes(cores), plan.shell.sql)
    return assemble(
        plan.shell,
        types,
        [released],
        shell=shell,
        confidence=Fraction(confidence),
        timeout_seconds=30,
        owner="analyst",
    )


def cell(answer: AnswerRows, row: int) -> tuple[Any, Any, Any, Any]:
    """Value, standard error and ends of a row's rank."""
    return answer.rows[row][2], answer.standard_errors[row][2], answer.lows[row][2], answer.highs[row][2]


def test_ranks_of_a_release_without_sums_have_no_interval(shell: ShellEngine) -> None:
    """Ranks need intervals that hold at once; a release that version 1 stored does not know them, and says so.

    Ranks of releases with sums are in test_derived.py: they were simulated, and equal counts never all the first.
    """
    answer = ranked(shell, [1_003, 1_000], 10)
    for row, place in ((0, 1), (1, 2)):
        assert (place, None, None, None) == cell(answer, row)
    assert [(2, "stored_without_sums", None)] == [(r.column, r.code, r.rows) for r in answer.reasons]


@pytest.mark.parametrize(
    ("values", "alpha", "expected"),
    [
        ([2.0] * 100, 0.05, (None, 2.0, 2.0)),
        ([2.0] * 59, 0.05, (None, None, None)),
        ([2.0] * 60, 0.05, (None, 2.0, 2.0)),
        ([2.0] * 100, 0.01, (None, None, None)),
        ([1.0] * 50 + [2.0] * 50, 0.1, (0.5, 1.0, 2.0)),
        ([1.0] * 99 + [2.0], 0.1, (pytest.approx(0.0995, rel=0.01), 1.0, 1.0)),
        ([1.0] * 95 + [2.0] * 5, 0.1, (pytest.approx(0.2179, rel=0.01), 1.0, 2.0)),
        ([float(i) for i in range(39)], 0.05, (pytest.approx(11.25, rel=0.01), 0.0, 38.0)),
        ([float(i) for i in range(38)], 0.05, (pytest.approx(10.97, rel=0.01), None, None)),
        ([float(i) for i in range(399)], 0.005, (pytest.approx(115.2, rel=0.01), 0.0, 398.0)),
    ],
)
def test_a_few_draws_do_not_vouch_for_a_high_confidence(values: list[float], alpha: float, expected: Any) -> None:
    """Ends are simulated values, as many from the outside as the confidence allows, or none; equal values count from
    three by alpha on."""
    found = spread(values, alpha)
    assert expected == (found.error, found.low, found.high)
    assert (found.low is None) == (found.reason == "too_few_draws")
