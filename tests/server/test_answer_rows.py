"""Error bars of computed cells: what simulated values may say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from typing import Any

import pytest

from engines.shell import ShellEngine
from privacy.policy import ColumnType
from privacy.release import ReleasedColumn, ReleasedTable
from server.answer_rows import AnswerRows, _spread, assemble, shapes
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from tests.sql_rewrite.datasets import CLINIC

SQL = "SELECT sex, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM people GROUP BY sex ORDER BY sex"


@pytest.fixture(scope="module")
def shell() -> Iterator[ShellEngine]:
    """One worker for all tests."""
    with closing(ShellEngine(workers=1)) as engine:
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


def test_a_rank_that_noise_may_change_has_an_interval(shell: ShellEngine) -> None:
    """Two counts that are closer than their noise: either rank is possible, and the interval says so."""
    answer = ranked(shell, [1_003, 1_000], 10)
    for row, place in ((0, 1), (1, 2)):
        value, error, low, high = cell(answer, row)
        assert (place, 1, 2) == (value, low, high)
        assert 0.3 < error <= 0.5


def test_a_rank_that_noise_does_not_move_is_not_called_exact(shell: ShellEngine) -> None:
    """Two counts that are far apart: the interval is one rank, and no standard error of zero is claimed."""
    answer = ranked(shell, [5_000, 1_000], 10)
    assert (1, None, 1, 1) == cell(answer, 0)
    assert (2, None, 2, 2) == cell(answer, 1)


def test_a_few_simulations_do_not_vouch_for_a_high_confidence(shell: ShellEngine) -> None:
    """At 99.9 % confidence 400 equal values are not enough for an interval: it is unknown."""
    assert (1, None, None, None) == cell(ranked(shell, [5_000, 1_000], 10, "0.999"), 0)


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
    ],
)
def test_quantiles_are_values_that_were_simulated(values: list[float], alpha: float, expected: Any) -> None:
    """Ends are simulated values, never between two ranks; equal values count from three by alpha on."""
    assert expected == _spread(values, alpha)
